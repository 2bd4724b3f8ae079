# Sounds and npz at the command line: info, training on folders of WAV files, run. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

here=$(dirname "${BASH_SOURCE[0]}")

# ---- npz ----
ends 0 info "$here/../data/npz/stored.npz"
says "npz, 2 arrays"
says "f32 [2, 3], 24 B"
ends 0 info "$here/../data/npz/stored.npz" --json
says_json 'data["arrays"][1] == {"name": "y", "dtype": "i64", "shape": [2], "bytes": 16}'
head -c 300 "$here/../data/npz/stored.npz" >"$folder/cut.npz"
ends 3 info "$folder/cut.npz"
complains "byte 300: npz: the end of a zip file's directory is missing"
ends 3 train mlp --data "$here/../data/npz/others.npz" --checkpoint "$folder/npz" -q
complains "npz: none of its 2 arrays has one of the usual names: expected x and y"
python3 - "$folder/flowers.npz" <<'TEXT'
import io, struct, sys, zipfile

def npy(kind, shape, data):
    text = str({"descr": kind, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data

with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as f:
    for part, count in (("train", 200), ("test", 40)):
        rows = [(i % 7 - 3, i % 5 - 2) for i in range(count)]
        f.writestr(f"x_{part}.npy", npy("<f4", (count, 2), b"".join(struct.pack("<ff", *r) for r in rows)))
        f.writestr(f"y_{part}.npy", npy("<i8", (count,), b"".join(struct.pack("<q", a > b) for a, b in rows)))
TEXT
ends 0 train mlp --data "$folder/flowers.npz" --epochs 20 --checkpoint "$folder/npz" -q
says "of 40 samples"
ends 0 eval "$folder/npz" --json
says_json 'data["samples"] == 40 and data["part"] == "test"'
ends 0 run "$folder/npz" "$folder/flowers.npz" --top 1
[ "$(wc -l <"$folder/out")" -eq 200 ] || complain "a line for each of x_train"

# ---- WAV ----
python3 "$here/make_sounds.py" "$folder/words" 12
wav=$folder/words/test/up/0.wav
ends 0 info "$here/../data/wav/pcm16.wav"
says "wav, 16-bit PCM, 2 channels, 16,000 Hz, 9 frames (0.001 s), peak 0.625"
ends 0 info "$here/../data/wav/float64.wav" --json
says_json '(data["bits"], data["floats"], data["channels"], data["rate"], data["frames"]) == (64, True, 3, 96000, 9)'
head -c 60 "$here/../data/wav/pcm16.wav" >"$folder/cut.wav"
ends 3 info "$folder/cut.wav"
complains "byte 4: wav: the file has 60 bytes, 20 short of its RIFF size"

ends 0 info "$folder/words"
says "sounds of 4 classes"
says " Hz, "
ends 0 train keywords --data "$folder/words" --epochs 30 --batch 8 --set width=24 --checkpoint "$folder/words-net" -q
no_heap_calls
says "of 12 samples"
ends 0 eval "$folder/words-net" --json
says_json 'data["samples"] == 12 and data["metrics"]["accuracy"] >= 0.9'
says_json 'data["classes"] == ["down", "pulses", "steady", "up"]'
ends 0 info "$folder/words-net"
says "mica.sound: log-mel rate=16000 seconds=1 window=480 hop=320 mels=40 low=20"
# One by one, together, as a folder and from stdin: the same answers.
ends 0 run "$folder/words-net" "$wav"
alone=$out
says "$wav  up "
ends 0 run "$folder/words-net" - <"$wav"
[ "$wav${out#0}" = "$alone" ] || complain "stdin and file differ"
ends 0 run "$folder/words-net" "$folder/words/test/pulses/1.wav" "$wav" --top 1
says "pulses/1.wav  pulses "
says "up/0.wav  up "
ends 0 run "$folder/words-net" "$folder/words/test"
[ "$(wc -l <"$folder/out")" -eq 12 ] || complain "a line for each file of the folder"
ends 3 run "$folder/words-net" "$wav" "$folder/cut.wav"
complains "20 short of its RIFF size"
ends 3 run "$folder/npz" "$wav"
complains "is a sound, but the net was not trained on sounds"

# Samples, at another rate and length; without a test part, one is split off.
cp -r "$folder/words/train" "$folder/plain"
cat >"$folder/samples.net" <<'TEXT'
let classes = 4
input x [1, 2000]
conv 8 64 stride=16 relu
conv 8 9 stride=4 relu
flatten
dense classes name=logits
loss cross_entropy
TEXT
ends 0 train "$folder/samples.net" --data "$folder/plain" --features samples --rate 4000 --seconds 0.5 --epochs 2 \
    --checkpoint "$folder/samples" -q
ends 0 info "$folder/samples"
says "mica.sound: samples rate=4000 seconds=0.5"
says "mica.sample: 1 2000"
ends 0 train --checkpoint "$folder/samples" --resume --epochs 3 -q
ends 2 train --checkpoint "$folder/samples" --resume --rate 8000 -q
complains "--resume takes --features, --rate and --seconds from the checkpoint"

# Fine-tuned: sounds are made ready as they were for the weights.
ends 0 train --weights "$folder/samples" --data "$folder/plain" --epochs 1 --checkpoint "$folder/tuned" -q
ends 0 info "$folder/tuned"
says "mica.sound: samples rate=4000 seconds=0.5"

# A checkpoint may come from anywhere.
# with_sound TEXT: the checkpoint with this as its mica.sound, in hostile.safetensors.
with_sound() {
    python3 - "$folder/words-net/checkpoint.safetensors" "$folder/hostile.safetensors" "$1" <<'TEXT'
import json, struct, sys

data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8 : 8 + length])
header["__metadata__"]["mica.sound"] = sys.argv[3]
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + data[8 + length :])
TEXT
}
for text in "" "mfcc rate=16000" "samples" "samples rate=1e9 seconds=1" "samples rate=16000 seconds=nan" \
    "samples rate=16000 seconds=1 x" "log-mel rate=16000 seconds=1"; do
    with_sound "$text"
    ends 3 run "$folder/hostile.safetensors" "$wav"
    complains 'its "mica.sound" is'
done
tail="low=20 high=7600 floor=9.99999997e-07"
with_sound "log-mel rate=16000 seconds=1 window=480 hop=320 mels=40 $tail"
ends 0 run "$folder/hostile.safetensors" "$wav"
with_sound "log-mel rate=16000 seconds=2 window=480 hop=320 mels=40 $tail"
ends 3 run "$folder/hostile.safetensors" "$wav"
complains 'its "mica.sound" makes other samples than its "mica.sample" says'
with_sound "log-mel rate=16000 seconds=1 window=99999999 hop=320 mels=40 $tail"
ends 3 run "$folder/hostile.safetensors" "$wav"
complains 'its "mica.sound": argument error: log_mel: window is'

# What cannot be.
ends 2 train keywords --data "$folder/plain" --rate 10
complains "--rate"
ends 1 train keywords --data "$folder/plain" --seconds 0.01 --checkpoint "$folder/short" -q
complains "sounds: 0.01 seconds are 160 samples: expected at least a window of 480"
ends 3 train keywords --data digits:100 --rate 8000 --checkpoint "$folder/no" -q
complains "digits:100: expected a folder of WAV files"
mkdir -p "$folder/words/test/sideways"
cp "$wav" "$folder/words/test/sideways/"
ends 3 eval "$folder/words-net"
complains "sideways"
