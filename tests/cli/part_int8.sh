# Trained nets in bytes: mica quantize --int8. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

net=$folder/int8-net
small=$folder/int8.safetensors
ends 0 train lenet --data digits:4000 --epochs 2 --checkpoint "$net" -q
ends 0 quantize "$net" "$small" --int8 --data digits:4000
says "conv1                    int8_conv2d"
says "logits                   int8_linear"
says "float: "
says "int8:  "
ends 0 quantize "$net" "$small" --int8 --data digits:4000 --json
says_json 'data["calibration"] == "minmax" and data["weights"] == "channel" and len(data["layers"]) == 6'
says_json 'data["int8"]["accuracy"] > data["float"]["accuracy"] - 0.01 and data["bytes"] * 3.9 < data["bytes_before"]'
says_json 'all(layer["snr_db"] > 20 and layer["scale"] > 0 for layer in data["layers"])'
scored=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["int8"]["accuracy"])' "$folder/out")

# Trained some more with the roundings, it is no worse.
ends 0 quantize "$net" "$folder/qat.safetensors" --int8 --data digits:4000 --qat 1 --per-channel --json
says_json 'data["qat_epochs"] == 1 and data["int8"]["accuracy"] > data["float"]["accuracy"] - 0.01'
ends 2 quantize "$net" "$folder/qat.safetensors" --int8 --data digits:4000 --qat 1 --per-tensor
complains "--qat does not go with --per-tensor"
ends 2 quantize "$net" "$folder/qat.safetensors" --int8 --data digits:4000 --per-channel --per-tensor
complains "exclude each other"

# What is loaded gives the score of what was made, on every instruction set.
for isa in "" scalar; do
    MICA_ISA=$isa ends 0 eval "$small" --data digits:4000 --json
    says_json "data['metrics']['accuracy'] == $scored"
done
ends 0 eval "$small" --part train
ends 0 plan "$small" --program
says "int8_conv2d"
says "dequantize"
ends 0 info "$small"
says "conv1.multiplier"
python3 -c 'import sys
open(sys.argv[1], "wb").write(b"P5 28 28 255\n" + bytes(784))' "$folder/black.pgm"
ends 0 run "$small" "$folder/black.pgm" --top 1
for how in "--calibrate percentile" "--calibrate kl" "--per-tensor"; do
    # shellcheck disable=SC2086 # several words
    ends 0 quantize "$net" "$small" --int8 --data digits:4000 --json $how
    says_json 'data["int8"]["accuracy"] > data["float"]["accuracy"] - 0.02'
done
ends 0 plan "$small" --json

# As ONNX, and with standard operators only, which are read as bytes and stay bytes
ends 0 convert "$small" "$folder/int8.onnx"
ends 0 info "$folder/int8.onnx"
says "mica:int8_conv2d"
ends 0 plan "$folder/int8.onnx" --program
says "int8_linear"
ends 0 convert "$small" "$folder/int8-plain.onnx" --plain
ends 0 info "$folder/int8-plain.onnx"
says "QLinearConv"
ends 0 convert "$folder/int8-plain.onnx" "$folder/int8-again.onnx"
ends 0 info "$folder/int8-again.onnx"
says "mica:affine_conv2d"

# A folder
mkdir "$folder/int8-folder"
ends 0 quantize "$net" "$folder/int8-folder" --int8 --data digits:4000
ends 0 eval "$folder/int8-folder" --data digits:4000

# What cannot be
ends 2 quantize "$net" --int8
complains "which checkpoint or ONNX model, and where to?"
ends 2 quantize "$net" "$net" --int8
complains "is the file to read"
ends 2 quantize "$net" "$small" --int8 --type Q4_K_M
complains "are for GGUF files"
ends 2 quantize "$folder/small.gguf" "$folder/x.gguf" --type Q4_K_M --data digits
complains "need --int8"
ends 3 quantize "$small" "$folder/twice.safetensors" --int8 --data digits:4000
complains "is an int8 net already"
ends 3 quantize lenet "$folder/x.safetensors" --int8 --data digits:4000
complains "lenet is a net without weights"
ends 3 train --weights "$small" --data digits:4000 --epochs 2 --checkpoint "$folder/trained"
complains "is an int8 net, which cannot be trained"

# Metadata that someone changed
python3 - "$folder" <<'PYTHON'
import json, struct, sys
raw = open(f"{sys.argv[1]}/int8.safetensors", "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
for name, change in {"word": lambda t: "row\n" + t, "nan": lambda t: t.replace("image ", "image nan\n"),
                     "zero": lambda t: "tensor\nimage 0\n",
                     "other": lambda t: t.replace("image ", "picture "), "none": lambda t: "tensor\n"}.items():
    head = json.loads(raw[8:8 + size])
    head["__metadata__"]["mica.int8"] = change(head["__metadata__"]["mica.int8"])
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    open(f"{sys.argv[1]}/int8-{name}.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + raw[8 + size:])
PYTHON
for name in word nan zero other none; do
    ends 3 eval "$folder/int8-$name.safetensors" --data digits:4000
    ends 3 plan "$folder/int8-$name.safetensors"
done
ends 3 eval "$folder/int8-word.safetensors" --data digits:4000
complains 'begins with neither "channel" nor "tensor"'
ends 3 eval "$folder/int8-none.safetensors" --data digits:4000
complains "no dense layer or convolution whose range is known"
ends 3 eval "$folder/int8-other.safetensors" --data digits:4000
complains 'its "mica.int8" does not go with its tensors: "conv1.bias" is I32, expected f32'
