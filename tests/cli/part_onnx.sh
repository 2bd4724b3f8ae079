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
complains 'Frobnicate "b_node": there is no such operator here'
complains 'Twiddle "c_node"'
ends 2 run lenet "$folder/x.npy" --set batch=3
complains "--set is for ONNX models"

# ---- info, plan, ops ----
ends 0 info "$folder/mlp.onnx"
says "ONNX, IR version 8, opset 17, by tests"
says "input   x  FLOAT [batch, 4]"
says "2  MatMul"
says "all of it can be imported"
ends 0 info "$folder/odd.onnx" --json
says_json 'not data["supported"] and [p["type"] for p in data["problems"]] == ["Frobnicate", "Twiddle"]'
says_json '{o["type"]: o["supported"] for o in data["operators"]} == {"Relu": True, "Frobnicate": False, "Twiddle": False, "Add": True}'
ends 0 plan "$folder/mlp.onnx" --set batch=8 --json
says_json 'data["total"] > 0'
small=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["total"])' "$folder/out")
ends 0 plan "$folder/mlp.onnx" --set batch=8 --train --json
says_json "data['total'] > $small and data['gradients'] >= 67 * 4"
ends 0 plan "$folder/reshape.onnx" --set shape=3,4
ends 1 plan "$folder/reshape.onnx"
complains "must be known before the net is planned"
"$(dirname "${BASH_SOURCE[0]}")/../onnx/list.sh" "$mica" >"$folder/list" || complain "$(cat "$folder/list")"

# ---- check ----
ends 1 check "$folder/checks"
says "failed       damaged: open: format error"
says 'unsupported  odd: Frobnicate: there is no such operator here'
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
complains "takes batches of 2, which is written into the model"
