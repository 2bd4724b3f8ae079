# Nets at the command line: mica info, mica plan, net files. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

# ---- Info ----
for net in mlp lenet resnet-small lstm gpt-tiny; do
    ends 0 info "$net"
    says "$net: "
    says " parameters, "
    ends 0 info "$net" --json
    says_json 'sum(layer["parameters"] for layer in data["layers"]) == data["parameters"] > 50000'
    ends 0 info "$net" --text
    cp "$folder/out" "$folder/copy.net"
    ends 0 info "$folder/copy.net" --text
    cmp -s "$folder/out" "$folder/copy.net" || complain "the text of $net changes"
    ends 0 plan "$net" --train --batch 2 -q
    says "$net, training, batch 2, adamw"
    ends 0 plan "$net" --json
    says_json 'sorted(data) == sorted(["total", "parameters", "gradients", "optimizer", "activations", "scratch", "lower_bound", "parts", "lanes", "buffers"])'
done
ends 0 info lenet
says "logits"
says "103,018 parameters"
ends 0 info lenet --batch 7 --set classes=3
says "f32 [7, 3]"
ends 0 info lenet --set classes=3 --text
says "let classes = 3"
ends 2 info
complains "which net or file? Try: mica info lenet"
ends 2 info lenet mlp
complains "one net or file at a time"
ends 3 info lnet
complains 'unknown net "lnet"; did you mean "lenet"?'
mkdir "$folder/empty"
ends 3 info "$folder/empty"
complains "$folder/empty: "
data=$(dirname "${BASH_SOURCE[0]}")/../data
ends 0 info "$data/digits/train-images-idx3-ubyte.gz"
says "idx, u8 [400, 28, 28]"
ends 0 info "$data/digits/train-images-idx3-ubyte.gz" --json
says_json 'data == {"kind": "idx", "dtype": "u8", "shape": [400, 28, 28], "bytes": 313600}'
printf 'a,b\n1,2\n3,4\n' >"$folder/data.csv"
ends 0 info "$folder/data.csv"
says "a table of 2 rows and 2 columns"
printf '\x00\x00\x08\x01\x00\x00\x00\x09ab' >"$folder/short.idx"
ends 3 info "$folder/short.idx"
complains "short.idx"
silent
header='{"__metadata__":{"made":"by hand\n","mica.net":"input x [2]\ndense 3\n"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
# shellcheck disable=SC2059 # the length as bytes
{
    printf "\\x$(printf %02x ${#header})\0\0\0\0\0\0\0"
    printf '%s12345678' "$header"
} >"$folder/weights.safetensors"
ends 0 info "$folder/weights.safetensors"
says "safetensors, 1 tensors"
says "made: by hand"
ends 0 info "$folder/weights.safetensors" --json
says_json 'data["tensors"] == [{"name": "w", "dtype": "F32", "shape": [2], "offset": 134, "bytes": 8}] and data["metadata"]["made"] == "by hand\n"'
ends 0 info "$folder/weights.safetensors" --text
says "dense 3"
ends 0 plan "$folder/weights.safetensors"
says "inference, batch 1"
head -c 100 "$folder/weights.safetensors" >"$folder/cut.safetensors"
ends 3 info "$folder/cut.safetensors"
complains "cut.safetensors"
cp "$(dirname "${BASH_SOURCE[0]}")/../fuzz/seeds/gguf/sound" "$folder/small.gguf"
ends 0 info "$folder/small.gguf"
says "GGUF, 16 settings, 4 tensors"
says "a.i32                      -2000000000"
says '3 x string: "<s>", "", "▁the"'
says "token_embd.weight    q8_0              102  [3, 32]"
says "171 parameters, 174 B"
ends 0 info "$folder/small.gguf" --json
says_json 'data["settings"]["a.u64"] == 2**64 - 1 and data["settings"]["a.windows"] == [True, False]'
says_json 'data["tensors"][3] == {"name": "output_norm.weight", "dtype": "f32", "shape": [5], "bytes": 20}'
head -c 700 "$folder/small.gguf" >"$folder/cut.gguf"
ends 3 info "$folder/cut.gguf"
complains "cut.gguf"
printf 'FUGG' >"$folder/big.gguf"
ends 3 info "$folder/big.gguf"
complains "the start of a GGUF file takes 24 bytes, 4 are left"
silent

# ---- Net files ----
printf 'input x [4]\ndense 3 rellu\n' >"$folder/bad.net"
ends 3 plan "$folder/bad.net"
silent
complains "bad.net:2:9: dense takes no \"rellu\"; did you mean \"relu\"?"
complains "     2 | dense 3 rellu"
printf 'input x [4]\ndense 3 relu\n' | "$mica" info - >"$folder/out" 2>&1
out=$(cat "$folder/out")
says "dense1.relu"
printf 'input x [4]\0\n' >"$folder/zero.net"
ends 3 info "$folder/zero.net"
complains "not a text file, so not a net file"
ends 2 plan lenet --set classes
complains '--set takes NAME=NUMBER, such as width=64, not "classes"'
ends 3 plan lenet --set clases=3
complains 'lenet has no constant "clases"; did you mean "classes"?'

# ---- Plans ----
ends 2 plan
complains "which net? Try: mica plan lenet"
ends 0 plan lenet --train
says "lower bound"
says "activation gradient"
says "parameters"
ends 0 plan lenet --train --json
says_json 'max(b["offset"] + b["bytes"] for b in data["buffers"]) == data["total"] >= data["lower_bound"]'
says_json 'all(sorted(b) == ["bytes", "first", "kind", "lane", "last", "name", "offset"] for b in data["buffers"])'
says_json 'data["optimizer"] == 2 * data["gradients"] == 2 * data["parameters"] > 0'
total=$(sed -n 's/^{"total": \([0-9]*\),.*/\1/p' "$folder/out")
ends 0 plan lenet --train --json --optimizer sgd
says_json 'data["optimizer"] == 0'
ends 0 plan lenet --train --json --budget "$((total * 3 / 4))"
says_json "data['total'] <= $((total * 3 / 4))"
ends 1 plan lenet --train --budget 100KiB
silent
complains "needs at least"
ends 2 plan lenet --budget lots
complains '--budget takes a size in bytes, such as 65536, 64KiB or 2MiB, not "lots"'
ends 2 plan lenet --optimizer adm
complains '--optimizer takes sgd, adam, adamw, rmsprop or adagrad, not "adm"; did you mean adam?'
ends 0 plan lenet --train --ranks 4 --shares 8 --shard
says "4 ranks, 8 shares of 4 rows, the optimizer's state sharded"
ends 0 plan lenet --train --ranks 4 --json
says_json "data['ranks']['rows'] == 8 and data['ranks']['bytes'] == data['total'] + data['ranks']['buffers'] and data['ranks']['sent'] > data['parameters']"
ends 2 plan lenet --ranks 4
complains "--ranks is about training: --train"
ends 2 plan lenet --train --shard
complains "--shard is about ranks: --ranks N"
ends 2 plan lenet --train --ranks 4 --shares 6
complains "--shares 6: expected a multiple of the 4 ranks"
ends 2 plan lenet --batch 0
complains '--batch takes an integer from 1 to 16777216, not "0"'
ends 0 plan lenet --train --program
says "outputs <- inputs"
says "linear_backward_weight"
says "conv1.weight [8, 1, 3, 3] learned @0"
ends 0 plan lenet --train --program --json
says_json 'all(sorted(c) == sorted(["op", "phase", "layer", "fused", "inputs", "outputs", "adds", "options", "scratch"]) for c in data["program"])'
says_json 'all(sorted(v) == ["dtype", "home", "name", "offset", "shape"] for c in data["program"] for v in c["inputs"] + c["outputs"] if v)'
says_json '{c["phase"] for c in data["program"]} >= {"forward", "backward"}'
says_json 'all(v["offset"] < data["total"] for c in data["program"] for v in c["inputs"] + c["outputs"] if v)'
ends 0 plan gpt-tiny --train -q
says "calls run twice, to keep less: "
ends 0 plan gpt-tiny --train -q --keep-cheap
[[ $out != *"run twice"* ]] || complain "--keep-cheap computes something again"
[[ $out != *"is split into"* ]] || complain "a batch is run in parts unasked"
ends 0 plan gpt-tiny --train -q --parts
says "the batch is split into 4 parts"
ends 0 plan mlp --batch 32 -q
[[ $out == *"prepared weights"* ]] || complain "a plan for inference has no prepared weights"
ends 0 plan mlp --batch 32 -q --prepare no
[[ $out != *"prepared weights"* ]] || complain "--prepare no prepares weights"
printf 'input x [4, 6]\ninput y [4, 6]\nsub x\nsplit count=2 axis=-1 name=s\nmul s.1 from=s.0\nsum axes=[2] keep\n' >"$folder/operations.net"
ends 0 plan "$folder/operations.net" --program --batch 3
says "s.1 [3, 4, 3]"
says "axes=[2] keep"
ends 0 plan lenet --train --svg "$folder/plan.svg" --html "$folder/plan.html"
complains "wrote $folder/plan.svg"
grep -q "<svg" "$folder/plan.svg" || complain "no picture"
grep -q "<html" "$folder/plan.html" || complain "no page"
ends 0 plan lenet --svg -
says "<svg"
ends 1 plan lenet --svg "$folder/no/such/plan.svg"
complains "cannot write"

# ---- What the documents say is what the program says ----
ends 0 help layers
documents=$(dirname "${BASH_SOURCE[0]}")/../../docs
sed -n '/^<!-- mica help layers -->$/,/^<!-- end -->$/p' "$documents/net-files.md" | sed '1,2d' | sed '$d' | sed '$d' |
    cmp -s - "$folder/out" || complain "docs/net-files.md differs from mica help layers"
ends 0 help operations
sed -n '/^<!-- mica help operations -->$/,/^<!-- end -->$/p' "$documents/net-files.md" | sed '1,2d' | sed '$d' | sed '$d' |
    cmp -s - "$folder/out" || complain "docs/net-files.md differs from mica help operations"
sed -n '/^<!-- src\/node\/squared_relu.c -->$/,/^<!-- end -->$/p' "$documents/adding-an-operation.md" | sed '1,3d' | sed '$d' | sed '$d' |
    cmp -s - "$documents/../src/node/squared_relu.c" || complain "docs/adding-an-operation.md differs from src/node/squared_relu.c"
awk -v stem="$folder/document" '
    /^```/ { if (plain && text ~ /(^|\n)input/ && text !~ /external data/) { file = stem (++n) ".net"; printf "%s", text > file; close(file) }
             open = !open; plain = open && $0 == "```"; text = ""; next }
    plain { text = text $0 "\n" }' "$documents/net-files.md"
for net in "$folder"/document*.net; do
    ends 0 info "$net"
done
