#!/usr/bin/env bash
# A trained net in int8: at most 0.3 points below float, at most 0.1 after training with the roundings, a quarter of the
# file's size (and at most 10 KiB), and the written file scores what quantize said.
# int8.sh MICA FOLDER NET DATA EPOCHS QAT: trains a built-in net, and leaves it and its int8 forms in FOLDER.
set -euo pipefail
mica=$1 net=$3 data=$4 epochs=$5 qat=$6
mkdir -p "$2"
base=$2/$net

# number KEY FILE: a number in JSON.
number() { grep -o "\"$1\": [0-9.]*" "$2" | head -n 1 | cut -d ' ' -f 2; }
accuracy() {
    "$mica" eval "$1" --data "$data" --json >"$base.json"
    number accuracy "$base.json"
}

"$mica" train "$net" --data "$data" --epochs "$epochs" --batch 64 --checkpoint "$base" --overwrite --json -q \
    >"$base-train.json"
"$mica" convert "$base" "$base-float.safetensors" >/dev/null
"$mica" quantize "$base" "$base-int8.safetensors" --int8 --data "$data" --json >"$base-int8.json"
"$mica" quantize "$base" "$base-qat.safetensors" --int8 --data "$data" --qat "$qat" --json >"$base-qat.json"

float=$(accuracy "$base-float.safetensors")
int8=$(accuracy "$base-int8.safetensors")
trained=$(accuracy "$base-qat.safetensors")
bytes=$(stat -c %s "$base-float.safetensors") small=$(stat -c %s "$base-int8.safetensors")
echo "$net, $(basename "$data"), $(number samples "$base.json") test samples: float $float, int8 $int8," \
    "int8 after --qat $qat $trained; $small bytes of $bytes"

python3 - "$base" "$float" "$int8" "$trained" "$bytes" "$small" <<'PYTHON'
import json
import sys

base = sys.argv[1]
before, int8, trained = (float(number) for number in sys.argv[2:5])
size, small = (int(number) for number in sys.argv[5:])
said = {name: json.load(open(f"{base}-{name}.json"))["int8"]["accuracy"] for name in ("int8", "qat")}
wrong = []
if before - int8 > 0.003 + 1e-9:
    wrong.append(f"int8 is {100 * (before - int8):.2f} points below float, expected at most 0.3")
if before - trained > 0.001 + 1e-9:
    wrong.append(f"after training with the roundings {100 * (before - trained):.2f} points, expected at most 0.1")
if small > size / 4 + 10240:  # names and scales are text, and each channel has a multiplier and a shift
    wrong.append(f"the file has {small} bytes of {size}, expected at most a quarter plus 10 KiB")
if said != {"int8": int8, "qat": trained}:
    wrong.append(f"quantize said {said}, the files score {int8} and {trained}")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
PYTHON
