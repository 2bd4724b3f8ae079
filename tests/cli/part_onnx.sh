# ONNX models: run, info, plan, train, check.
# shellcheck shell=bash disable=SC2154 # $folder, $out and $err are check.sh's
python3 "$(dirname "${BASH_SOURCE[0]}")/make_onnx.py" "$folder" || complain "make_onnx.py failed"

# ---- run ----
ends 0 run "$folder/mlp.onnx" --input "x=$folder/x.npy" --output "$folder/out-onnx"
says "y  f32 [5, 3]  $folder/out-onnx/y.npy"
complains "0 heap calls"
ends 0 info "$folder/out-onnx/y.npy" --json
says_json 'data["dtype"] == "f32" and data["shape"] == [5, 3]'
ends 0 run "$folder/mlp.onnx" "$folder/x.npy" --repeat 3 --json
says_json 'data["outputs"][0]["shape"] == [5, 3] and len(data["outputs"][0]["values"]) == 15 and data["heap_calls"] == 0 and data["runs"] == 3'
first=$out
ends 0 run "$folder/unnamed" "$folder/x.npy" --repeat 3 --json # told by its bytes
[ "${first%\"seconds\"*}" = "${out%\"seconds\"*}" ] || complain "a model of another name gives other values"
ends 0 run "$folder/softmax.onnx" "$folder/x.npy" --json
says_json 'all(abs(sum(data["outputs"][0]["values"][i:i + 3]) - 1) < 1e-5 for i in range(0, 15, 3))'
ends 0 run "$folder/reshape.onnx" --input "x=$folder/two.npy" --input "shape=$folder/shape.npy" --json
says_json 'data["outputs"][0]["shape"] == [3, 2, 2] and data["inputs"][1]["fixed"] and data["outputs"][0]["values"] == list(range(12))'
ends 0 run "$folder/reshape.onnx" "$folder/two.npy" --set shape=12,1
says "y  f32 [12, 1]  0 1 2 3 4 5 6 7 ..."
ends 0 run "$folder/reshape.onnx" "$folder/two.npy" --set "shape=@$folder/shape.npy"
says "[3, 2, 2]"
ends 2 run "$folder/mlp.onnx"
complains "--input x=FILE.npy   FLOAT [batch, 4]"
ends 2 run "$folder/mlp.onnx" --input "z=$folder/x.npy"
complains 'the model has no input "z": it has x'
ends 2 run "$folder/mlp.onnx" --set batches=3
complains 'the model has no input or size "batches": it has x, batch'
ends 2 run "$folder/mlp.onnx" "$folder/x.npy" "$folder/x.npy"
complains "the model has no input left for it"
ends 3 run "$folder/mlp.onnx" "$folder/wide.npy"
complains 'is f32 [5, 5]: the model'"'"'s input "x" is FLOAT [batch, 4]'
ends 3 run "$folder/reshape.onnx" "$folder/two.npy" --input "shape=$folder/x.npy"
ends 3 run "$folder/nothing.onnx" "$folder/x.npy"
head -c 100 "$folder/mlp.onnx" >"$folder/cut.onnx"
ends 3 run "$folder/cut.onnx" "$folder/x.npy"
complains "format error"
ends 1 run "$folder/odd.onnx" --set x=1,2
complains 'Frobnicate "b_node": Mica has no such operator'
complains 'Twiddle "c_node"'
ends 2 run lenet "$folder/x.npy" --set batch=3
complains "--set is for ONNX models"

# A wrong input: what it is, what was expected, what to do.
ends 3 run "$folder/mlp.onnx" "$folder/bytes.npy"
complains 'is u8: the model'"'"'s input "x" is FLOAT. Save x.astype("float32")'
ends 0 run "$folder/words.onnx" "$folder/indices.npy" # i32 for i64: no value changes
ends 3 run "$folder/words.onnx" "$folder/x.npy" --set batch=5
ends 3 run "$folder/mlp.onnx" "$folder/fortran.npy"
complains "save numpy.ascontiguousarray(x)"
ends 3 run "$folder/mlp.onnx" "$folder/mlp.onnx"
complains "an input is an array of numbers, as numpy.save writes it"
ends 1 run "$folder/sum.onnx" "$folder/x.npy" "$folder/goal.npy"
complains 'The inputs disagree on a size: batch is 5 in "x", batch is 3 in "goal"'
for verb in run plan info eval; do
    ends 3 $verb "$folder/weights.pt"
    complains "torch.onnx.export"
done
ends 3 eval "$folder/mlp.onnx" --data "$folder/samples.npy,$folder/targets.npy"
complains "is an ONNX model: mica eval takes a checkpoint"

# A program of its own: the same values, the same errors.
"$(dirname "$mica")/examples/onnx" "$folder/mlp.onnx" 5 >"$folder/out" || complain "examples/onnx fails"
grep -q "^y: [-0-9.]* [-0-9.]* [-0-9.]* [-0-9.]*$" "$folder/out" || complain "examples/onnx: $(cat "$folder/out")"
"$(dirname "$mica")/examples/onnx" "$folder/odd.onnx" 2>"$folder/err" && complain "examples/onnx takes any operator"
grep -q "onnx: format error: .*2 nodes cannot be imported" "$folder/err" || complain "examples/onnx: $(cat "$folder/err")"

# ---- info, plan, ops ----
ends 0 info "$folder/mlp.onnx"
says "ONNX, IR version 8, opset 17, by tests"
says "input   x  FLOAT [batch, 4]"
says "2  MatMul"
says "all of it can be imported"
ends 0 info "$folder/odd.onnx" --json
says_json 'not data["supported"] and [p["type"] for p in data["problems"]] == ["Frobnicate", "Twiddle"]'
says_json '{o["type"]: o["supported"] for o in data["operators"]} == {"Relu": True, "Frobnicate": False, "Twiddle": False, "Add": True}'
ends 0 info "$folder/domain.onnx" --json
says_json 'data["supported"] and all(o["supported"] for o in data["operators"])'
ends 0 plan "$folder/mlp.onnx" --set batch=8 --json
says_json 'data["total"] > 0'
small=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["total"])' "$folder/out")
ends 0 plan "$folder/mlp.onnx" --set batch=8 --train --json
says_json "data['total'] > $small and data['gradients'] >= 67 * 4"
ends 0 plan "$folder/reshape.onnx" --set shape=3,4
ends 1 plan "$folder/reshape.onnx"
complains 'must be known before the net is planned: it is computed from the input "shape"'
complains "is set by --set NAME=1,2,3"
ends 0 plan "$folder/words.onnx" --quiet
says "words.onnx, inference, batch 1"
says "lent from the file"
ends 0 plan "$folder/fixed.onnx" --batch 2
ends 3 plan "$folder/fixed.onnx" --batch 4
complains "takes batches of 2, which is fixed in the model"
"$(dirname "${BASH_SOURCE[0]}")/../onnx/list.sh" "$mica" >"$folder/list" || complain "$(cat "$folder/list")"

# ---- check ----
ends 1 check "$folder/checks"
says "failed       damaged: open: format error"
says 'unsupported  odd: Frobnicate: Mica has no such operator'
says 'failed       shaped: output "y": got f32 [2], expected f32 [2, 1]'
says 'unsupported  texts: input "x" is of type STRING'
says 'failed       wrong: output "y": 1 of 2 elements differ, the first at [1]: got 2, expected 2.0999999'
says "2 passed, 3 failed, 2 unsupported"
ends 0 check "$folder/checks/passes" "$folder/checks/known/" -v
says "passed       known"
says "2 passed, 0 failed, 0 unsupported"
ends 0 check "$folder/checks/wrong" --rtol 0.1
ends 1 check "$folder/checks" --json
says_json 'data["passed"] == 2 and {t["name"]: t["status"] for t in data["tests"]}["odd"] == "unsupported" and all(t["reason"] for t in data["tests"] if t["status"] != "passed")'
ends 3 check "$folder/out-onnx"
complains "no model.onnx in it or in folders below"
ends 3 check "$folder/no-such-folder"
ends 3 check "$folder/mlp.onnx"
complains "this is a file: give a folder"
ends 2 check

# ---- train, then eval and run ----
ends 0 train "$folder/softmax.onnx" --data "$folder/samples.npy,$folder/labels.npy" --checkpoint "$folder/trained" --epochs 20 --lr 0.02 -q
no_heap_calls
[ -e "$folder/trained/source.onnx" ] || complain "no copy of the model"
mv "$folder/softmax.onnx" "$folder/moved.onnx"
ends 0 eval "$folder/trained" --data "$folder/samples.npy,$folder/labels.npy" --json
says_json 'data["metrics"]["accuracy"] > 0.9'
ends 0 run "$folder/trained" "$folder/samples.npy" --top 1
ends 0 train --checkpoint "$folder/trained" --resume --epochs 22 -q
ends 0 train "$folder/mlp.onnx" --data "$folder/samples.npy,$folder/targets.npy" --checkpoint "$folder/regressed" --epochs 3 -q
ends 0 eval "$folder/regressed" --data "$folder/samples.npy,$folder/targets.npy"
ends 3 train "$folder/fixed.onnx" --data "$folder/samples.npy,$folder/labels.npy" --checkpoint "$folder/fixed" -q
complains "takes batches of 2, which is fixed in the model"

# Samples of another shape, or in another order; labels that there are no classes for.
planes=$folder/planes.npy
ends 0 train "$folder/planes.onnx" --data "$planes,$folder/planes-labels.npy" --checkpoint "$folder/planes" --epochs 1 -q
ends 3 train "$folder/planes.onnx" --data "$folder/planes-last.npy,$folder/planes-labels.npy" --checkpoint "$folder/last" -q
complains "is f32 [2, 4, 4], a sample of"
complains "is f32 [4, 4, 2]: put the channels first, x.transpose(0, 3, 1, 2) in NumPy"
ends 3 run "$folder/planes" "$folder/planes-last.npy"
complains "put the channels first"
ends 0 run "$folder/planes" "$planes" --top 1
ends 3 train "$folder/planes.onnx" --data "$folder/samples.npy,$folder/labels.npy" --checkpoint "$folder/last" -q
complains "takes 32 values, a sample of"
complains "f32 [2, 4, 4] and f32 [4]"
ends 3 train "$folder/planes.onnx" --data "$planes,$folder/planes-from-one.npy" --checkpoint "$folder/last" -q
complains "has 4: its largest label plus 1, since labels start at 0"
ends 3 train "$folder/planes.onnx" --data "$planes,$folder/planes-floats.npy" --checkpoint "$folder/last" -q
complains "class labels must be integers"
numbers=$folder/samples.npy,$folder/targets.npy
ends 3 train "$folder/biased.onnx" --data "$numbers" --checkpoint "$folder/last" -q
complains 'reads an input "shift" that no data provides: --set shift=@FILE.npy gives it'
# What is written does not normalize as the training did: that is said, with the numbers.
ends 0 train "$folder/planes.onnx" --data "$folder/planes-bytes.npy,$folder/planes-labels.npy" --checkpoint "$folder/planes-bytes" --epochs 1 -q
ends 0 convert "$folder/planes-bytes" "$folder/written.onnx"
complains "(x * 0.00392157 - mean) / deviation, mean 0."
ends 0 convert "$folder/planes" "$folder/written.onnx"
[ -z "$err" ] || complain "nothing was normalized"

# What is written gives the same bits, also where a mask is a weight, and attention could not be trained.
ends 0 convert "$folder/attention.onnx" "$folder/attention-again.onnx"
ends 0 info "$folder/attention-again.onnx"
says "mica:attention"
for name in attention attention-again; do
    ends 0 run "$folder/$name.onnx" "$folder/sequences.npy" --output "$folder/out-$name"
done
cmp "$folder/out-attention/y.npy" "$folder/out-attention-again/y.npy" || complain "it gives other bits"
ends 0 convert "$folder/attention.onnx" "$folder/attention.safetensors"
ends 0 info "$folder/attention.safetensors"
says "places"

# ---- A quantized model ----
ends 0 plan "$folder/quantized.onnx" --set batch=2 --program
for word in affine_conv2d affine_add affine_global_avg_pool affine_linear; do
    says $word
done
ends 0 convert "$folder/quantized.onnx" "$folder/bytes.onnx" --set batch=2
ends 0 info "$folder/bytes.onnx"
says "mica:affine_conv2d"
[ "$(stat -c %s "$folder/bytes.onnx")" -lt 20000 ] || complain "a quantized model has become large"
exports_right quantized "$folder/quantized.onnx" --set batch=1
exports_right quantized "$folder/bytes.onnx" --set batch=1

# ---- quantize ----
data=$folder/samples.npy,$folder/labels.npy
numbers=$folder/samples.npy,$folder/targets.npy
pictures=$folder/pictures.npy,$folder/sides.npy
ends 0 convert "$folder/trained" "$folder/again.onnx"
ends 0 quantize "$folder/again.onnx" "$folder/again8.safetensors" --int8 --data "$data" --json
says_json '[layer["operation"] for layer in data["layers"]] == ["int8_linear", "int8_linear", "softmax"]'
says_json 'data["float"]["accuracy"] > 0.9 and data["int8"]["accuracy"] > 0.85'
scored=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["int8"]["accuracy"])' "$folder/out")
mv "$folder/again.onnx" "$folder/gone.onnx" # the copy beside the checkpoint is enough
ends 0 eval "$folder/again8.safetensors" --data "$data" --json
says_json "data['metrics']['accuracy'] == $scored"
ends 0 run "$folder/again8.safetensors" "$folder/samples.npy" --top 1
ends 0 info "$folder/again8.safetensors"
says ".multiplier"
ends 0 plan "$folder/again8.safetensors" --program
says "int8_linear"
ends 3 train "$folder/again8.safetensors" --weights "$folder/again8.safetensors" --data "$data" -q
complains "is an int8 net, which cannot be trained"
ends 2 plan "$folder/again8.safetensors" --set batch=3
complains "is made from an ONNX model, whose sizes and inputs were set then"
mkdir "$folder/moved8"
cp "$folder/again8.safetensors" "$folder/moved8"
ends 3 run "$folder/moved8/again8.safetensors" "$folder/samples.npy"
complains "was made from an ONNX model, which it needs: there is no $folder/moved8/again8.source.onnx"
# A checkpoint that was trained from a model, into a folder; and with everything that changes what comes out.
mkdir "$folder/trained8"
ends 0 quantize "$folder/trained" "$folder/trained8" --int8 --qat 1 --json
says_json 'data["int8"]["accuracy"] > 0.85 and data["qat_epochs"] == 1'
[ -e "$folder/trained8/source.onnx" ] || complain "no copy of the model beside the checkpoint"
ends 0 eval "$folder/trained8"
ends 0 quantize "$folder/mlp.onnx" "$folder/mlp8" --int8 --data "$numbers" --per-tensor --calibrate kl
says "float: RMSE"
ends 0 eval "$folder/mlp8" --data "$numbers"
ends 0 quantize "$folder/conv.onnx" "$folder/conv8.safetensors" --int8 --data "$pictures" --json
says_json '[layer["operation"] for layer in data["layers"]] == ["int8_conv2d", "int8_max_pool2d", "int8_linear"]'
says_json 'all(layer["snr_db"] > 20 for layer in data["layers"])'
ends 0 eval "$folder/conv8.safetensors" --data "$pictures"
# A Clip from 0 to 6 is taken into the product, also in a file that Mica wrote.
ends 0 convert "$folder/conv6.onnx" "$folder/conv6-again.onnx"
for name in conv6 conv6-again; do
    ends 0 quantize "$folder/$name.onnx" "$folder/conv8.safetensors" --int8 --data "$pictures" --json
    says_json '[layer["operation"] for layer in data["layers"]] == ["int8_conv2d", "int8_max_pool2d", "int8_linear"]'
done
ends 2 quantize "$folder/conv.onnx" "$folder/conv8.onnx" --int8 --data "$pictures"
complains "would be a Mica checkpoint: call it NAME.safetensors; mica convert"
[ ! -e "$folder/conv8.onnx" ] || complain "a checkpoint was written as .onnx"
ends 0 quantize "$folder/fixed.onnx" "$folder/fixed8" --int8 --data "$numbers"
ends 0 eval "$folder/fixed8" --data "$numbers" --batch 2
ends 2 quantize "$folder/mlp.onnx" "$folder/x8" --int8
complains "--data is required: an ONNX model does not say what it was trained on"
ends 3 quantize "$folder/mlp.onnx" "$folder/x8" --int8 --data "$pictures"
complains "takes 4 values, a sample of"
ends 2 quantize "$folder/trained" "$folder/x8" --int8 --set batch=3
complains "--set is for ONNX models"
ends 2 quantize "$folder/mlp.onnx" "$folder/x8" --int8 --set batches=3 --data "$data"
complains 'the model has no input or size "batches"'
ends 1 quantize "$folder/odd.onnx" "$folder/x8" --int8 --data "$data" # its batch is 2: labels do not matter before that
complains "2 nodes cannot be imported"
ends 2 quantize "$folder/mlp.onnx" "$folder/mlp.onnx" --int8 --data "$data"
complains "is the file to read"
ends 1 quantize "$folder/mlp.onnx" "$folder/no/such/folder" --int8 --data "$numbers"
complains "cannot"
[ ! -e "$folder/x8" ] || complain "a quantization that failed has written something"

# ---- export, bench ----
# model_exports NAME ARGS...: the export compiles, and computes what the net did.
model_exports() {
    local name=$1
    shift
    ends 0 export "$@" -o "$folder/onnx-c" --name "$name" -q
    if cc -std=c99 -O1 "$folder/onnx-c/$name.c" "$folder/onnx-c/${name}_test.c" -o "$folder/onnx-c/test" -lm; then
        "$folder/onnx-c/test" >"$folder/out" || complain "mica export $*: the exported net computes something else"
    else
        complain "mica export $*: does not compile"
    fi
}
model_exports mlp "$folder/mlp.onnx"
model_exports batch "$folder/mlp.onnx" --batch 4
model_exports fixed "$folder/fixed.onnx"
model_exports conv "$folder/conv.onnx"
model_exports words "$folder/words.onnx" --batch 2
model_exports trained "$folder/trained"
model_exports learns "$folder/trained" --train --freeze w1
model_exports bytes "$folder/again8.safetensors"
model_exports direct "$folder/conv.onnx" --int8 --data "$pictures"
[ -e "$folder/onnx-c/direct.source.onnx" ] || complain "no copy of the model beside the exported net"
# Of several outputs the first is exported, without the weights that only others need.
model_exports heads "$folder/heads.onnx"
ends 0 export "$folder/heads.onnx" -o "$folder/onnx-c" --name heads
complains 'heads_output() is the model'"'"'s first output, "y"; not exported: "z"'
says ", 128 of weights in flash"
ends 1 export "$folder/odd.onnx" -o "$folder/onnx-x"
complains 'Frobnicate "b_node"'
ends 3 export "$folder/mlp.onnx" -o "$folder/onnx-x" --train
complains "has no loss to train with: mica train"
ends 3 export "$folder/fixed.onnx" -o "$folder/onnx-x" --batch 3
complains "takes batches of 2, which is fixed in the model"
ends 1 export "$folder/reshape.onnx" -o "$folder/onnx-x"
complains "shape must be known before the net is planned"
[ ! -e "$folder/onnx-x" ] || complain "an export that failed has made a folder"
ends 0 bench --profile "$folder/mlp.onnx" --quick
says "mlp.onnx, inference"
ends 0 bench --profile "$folder/reshape.onnx" --set shape=3,4 --quick
ends 2 bench sgemm --set batch=3
complains "--set needs --profile NET"

# ---- Careless use ----
ends 0 run "$folder/passing.onnx" "$folder/x.npy" --json
says_json '[output["values"][0] for output in data["outputs"]] == [-1, 0]'
ends 0 run "$folder/clash.onnx" "$folder/x.npy" --output "$folder/clash"
[ "$(ls "$folder/clash")" = "a_b.npy
output_1_a_b.npy" ] || complain "outputs overwrite each other: $(ls "$folder/clash")"
ends 3 run "$folder/inputs.onnx" "$folder/x.npy"
complains "70 inputs, expected at most 64"
ends 2 run "$folder/mlp.onnx" "$folder/x.npy" --top 1
complains "--top is for checkpoints"
ends 2 run "$folder/trained" "$folder/samples.npy" --repeat 3
complains "--repeat is for ONNX models"
ends 1 run "$folder/mlp.onnx" "$folder/x.npy" --output "$folder/x.npy"
complains "cannot "
# What --set named is found again from any folder, however long the path.
long=$(printf '%0200d' 0)
mkdir -p "$folder/$long/$long/$long"
cp "$folder/shift.npy" "$folder/$long/$long/$long"
cd "$folder/$long/$long/$long" || complain "no folder"
ends 0 train "$folder/biased.onnx" --set shift=@shift.npy --set batch=32 --data "$numbers" \
    --checkpoint "$folder/biased" --epochs 1 -q
cd - >/dev/null || complain "no folder"
ends 0 eval "$folder/biased" --data "$numbers"
ends 0 quantize "$folder/biased" "$folder/biased8.safetensors" --int8
ends 0 eval "$folder/biased8.safetensors"
# Numbers that cannot be.
ends 2 plan "$folder/mlp.onnx" --set batch=0
complains 'takes a size, such as batch=8: got "0"'
ends 2 plan "$folder/mlp.onnx" --set batch=3 --set batch=4
complains 'the size "batch" is given twice'
ends 2 run "$folder/mlp.onnx" "$folder/x.npy" --set batch=3
complains "x.npy is f32 [5, 4], but --set batch=3"
ends 2 run "$folder/reshape.onnx" "$folder/two.npy" --set shape=1.5,8
complains "--set shape: 1.5 is not a valid INT64"
ends 2 run "$folder/reshape.onnx" "$folder/two.npy" --set shape=1e30
ends 1 plan "$folder/mlp.onnx" --set batch=999999999999999999
complains "more elements than memory can hold"
: >"$folder/empty.onnx"
for verb in run info plan train bench; do
    case $verb in
    bench) ends 3 bench --profile "$folder/empty.onnx" ;;
    train) ends 3 train "$folder/empty.onnx" --data "$data" --checkpoint "$folder/empty" ;;
    *) ends 3 $verb "$folder/empty.onnx" ;;
    esac
    complains "the file is empty"
done
ends 2 quantize "$folder/conv.onnx" "$folder/x8" --int8 --data "$pictures" --set batch=7
complains "--set gives x a batch of 7, but the batch size is 32"
ends 2 train "$folder/conv.onnx" --data "$pictures" --checkpoint "$folder/seven" --set x=7x1x8x8 --batch 32
complains "--set gives x a batch of 7, but the batch size is 32"
ends 0 export "$folder/conv.onnx" -o "$folder/onnx-c" --set x=3x1x8x8 --batch 3 -q
ends 0 plan "$folder/fixed.onnx" --train
says "training, batch 2"
