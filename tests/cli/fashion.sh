#!/usr/bin/env bash
# A real set of pictures: lenet on Fashion-MNIST gets at least 91 % of the test right, and no step allocates.
# fashion.sh MICA FOLDER: leaves the trained net in FOLDER.
set -euo pipefail
"$1" train lenet --data fashion-mnist --epochs 10 --batch 64 --lr 3e-3 --checkpoint "$2" --overwrite --json -q >"$2.json"
done=$(tail -n 1 "$2.json")
number() { grep -o "\"$1\": [0-9.]*" <<<"$done" | cut -d ' ' -f 2; }
echo "lenet on Fashion-MNIST: accuracy $(number accuracy) of $(number samples) test samples," \
    "$(number bytes) bytes planned, $(number heap_calls) heap calls in $(number counted_steps) steps"
awk -v accuracy="$(number accuracy)" -v calls="$(number heap_calls)" 'BEGIN { exit !(accuracy >= 0.91 && calls == 0) }'
