# The best weights, fine-tuning, class weights, folds, and hints for those who come from elsewhere. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

mica=$(realpath "$mica")
l=$folder/learning
mkdir -p "$l"
pushd "$l" >/dev/null || exit 1

# Points of two classes, one of them rare, which overlap: what is learned for long is learned by heart.
awk 'BEGIN {
    srand(7)
    print "x,y,kind"
    for (i = 0; i < 400; i++) {
        rare = i % 16 == 0
        x = rand() + rand() + rand() + 0.8 * rare
        y = rand() + rand() + rand() - 0.4 * rare
        printf "%.3f,%.3f,%s\n", x, y, rare ? "rare" : "common"
    }
}' >kinds.csv

# field NAME: of the last line of JSON on stdout.
field() { tail -n 1 "$folder/out" | grep -o "\"$1\": [^,}]*" | head -n 1 | cut -d ' ' -f 2; }

# tensors FILE: their names; metadata are not among them.
tensors() { "$mica" info "$1" | awk '/^tensor/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'; }

# ---- The best weights ----
ends 0 train mlp --data kinds.csv --epochs 30 --lr 0.02 --json -q --checkpoint best
least=$(grep -o '"validation_loss": [0-9.]*' "$folder/out" | cut -d ' ' -f 2 | sort -g | head -n 1)
number=$(grep -o '"validation_loss": [0-9.]*' "$folder/out" | cut -d ' ' -f 2 | grep -nx "$least" | head -n 1 | cut -d : -f 1)
[ "$(field best_epoch)" = "$number" ] || complain "the best epoch is $number, not $(field best_epoch)"
[ "$number" -lt 30 ] || complain "the best epoch is the last: a test of nothing"
[ "$(tensors best | grep -c '^best\.')" = 0 ] || complain "a training that ended has best weights beside its own"
ends 0 eval best --part validation --json
awk -v a="$(field loss)" -v b="$least" 'BEGIN { exit !(a - b < 1e-5 && b - a < 1e-5) }' ||
    complain "the loss of what was saved is $(field loss), not $least"
ends 0 train mlp --data kinds.csv --epochs 30 --lr 0.02 -q --overwrite --checkpoint early --patience 2
says "stopped early after epoch "
says ", best epoch "
ends 0 train mlp --data kinds.csv --epochs 30 --lr 0.02 -q --overwrite --checkpoint early
says "best epoch $number of 30"
says "for the best weights"

# Interrupted: both weights are there, and those who use it take the best; resumed: the same bytes.
: >part.json
"$mica" train mlp --data kinds.csv --epochs 30 --lr 0.02 --json -q --checkpoint part >part.json 2>"$folder/err" &
process=$!
for _ in $(seq 1000); do
    [ "$(grep -c '"event": "epoch"' part.json)" -ge 3 ] && break
    sleep 0.002
done
kill -INT "$process"
wait "$process"
code=$? err=$(cat "$folder/err")
if [ "$code" -eq 130 ]; then
    [ "$(tensors part | grep -c '^best\.')" = 6 ] || complain "an interrupted training has no best weights"
    ends 0 eval part --part validation --json
    least=$(grep -o '"validation_loss": [0-9.]*' part.json | cut -d ' ' -f 2 | sort -g | head -n 1)
    awk -v a="$(field loss)" -v b="$least" 'BEGIN { exit !(a - b < 1e-5 && b - a < 1e-5) }' ||
        complain "eval of an interrupted training: $(field loss), not the best so far, $least"
    ends 0 train --checkpoint part --resume -q
elif [ "$code" -ne 0 ]; then
    complain "an interrupted training should end with 130"
fi
cmp -s part/checkpoint.safetensors best/checkpoint.safetensors ||
    complain "a resumed training does not end with the same bytes"

# ---- Resumed when it had ended ----
cp best/checkpoint.safetensors before.safetensors
ends 0 train --checkpoint best --resume
says "already 30 of 30 epochs; --epochs N goes on"
ends 0 train --checkpoint best --resume --json
says_json 'data["event"] == "already done" and data["epochs"] == 30'
cmp -s best/checkpoint.safetensors before.safetensors || complain "a training that had ended was written again"
ends 0 train mlp --data kinds.csv --epochs 30 -q --overwrite --checkpoint early --patience 1 --lr 0.02
ends 0 train --checkpoint early --resume
says "already stopped early after epoch "
ends 0 train --checkpoint best --resume --epochs 31 -q
no_heap_calls

# ---- Fine-tuning ----
ends 2 train best --data kinds.csv
complains "best is a checkpoint"
complains "--weights best trains on from them"
complains "--resume continues"
[ ! -e best-kinds ] || complain "a refused training left a folder"
ends 0 train best --weights best --data kinds.csv --epochs 1 --lr 1e-6 --checkpoint tuned
complains "weights best/checkpoint.safetensors: 6 of 6 tensors fit"
ends 0 eval tuned --part validation --json
awk -v a="$(field loss)" 'BEGIN { exit !(a < 0.4) }' || complain "a fine-tuned net begins with $(field loss)"
ends 0 train --weights best/checkpoint.safetensors --data kinds.csv --epochs 1 -q --checkpoint tuned-too
ends 0 train best --weights none --data kinds.csv --epochs 1 --lr 1e-6 -q --checkpoint fresh
ends 0 eval fresh --part validation --json
awk -v a="$(field loss)" 'BEGIN { exit !(a > 0.5) }' || complain "--weights none begins with $(field loss)"
sed 's/common$/usual/; s/\(7,[0-9.]*\),usual$/\1,other/' kinds.csv >three.csv
ends 0 train mlp --weights best --data three.csv --epochs 1 --checkpoint three --freeze dense1 --freeze dense2.bias
complains "4 of 6 tensors fit; initialized: logits.weight (there [2, "
complains "logits.bias (there [2])"
tensors three | grep -q '^optimizer.0.dense2.weight' || complain "dense2.weight should learn"
tensors three | grep -q '^optimizer.0.dense1' && complain "dense1 is frozen"
tensors three | grep -q '^optimizer.0.dense2.bias' && complain "dense2.bias is frozen"
ends 0 train --checkpoint three --resume --epochs 2 -q
ends 2 train --checkpoint three --resume --epochs 3 --freeze dense2
complains "--freeze is for a new training"
ends 2 train mlp --weights best --data kinds.csv --freeze logit5 --checkpoint no
complains 'did you mean "logits"?'
ends 2 train mlp --data kinds.csv --freeze zzzzzzzz --checkpoint no
complains "the layers with parameters are dense1, dense2, logits"
printf 'input x [2]\ndense 8 tanh name=other\ndense 2 name=y\nloss cross_entropy\n' >other.net
ends 3 train other.net --weights best --data kinds.csv --checkpoint no
complains "has the name and shape of one of the net's"
ends 3 train mlp --weights missing.safetensors --data kinds.csv --checkpoint no
complains "missing.safetensors"
[ ! -e no ] || complain "a refused training left a folder"

# The same classes in another order, and fewer: those of the weights.
{ head -n 1 kinds.csv; tail -n +2 kinds.csv | tac; } >turned.csv
ends 0 train --weights best --data turned.csv --epochs 1 --lr 1e-6 -q --checkpoint turned
ends 0 eval turned --part all --data kinds.csv --json
awk -v a="$(field loss)" 'BEGIN { exit !(a < 0.4) }' || complain "classes in another order begin with $(field loss)"

# Columns in another order are matched by their names; other columns are told of.
awk -F , '{ print $2 "," $3 "," $1 }' kinds.csv >moved.csv
ends 0 train --weights best --data moved.csv --label kind --epochs 1 --lr 1e-6 --checkpoint moved
[[ $err != *"other columns"* ]] || complain "the same columns in another order"
loss_of() { "$mica" eval "$@" --part all --json | grep -o '"loss": [0-9.]*' | cut -d ' ' -f 2; }
awk -F , -v OFS=, '{ print $2, $1, $3 }' kinds.csv | sed '1s/.*/x,y,kind/' >swapped.csv
awk -v same="$(loss_of best)" -v moved="$(loss_of moved)" -v swapped="$(loss_of best --data swapped.csv)" '
    BEGIN { d = moved - same; exit !(d < 0.005 && d > -0.005 && swapped > same + 0.05) }' ||
    complain "columns in another order: $(loss_of moved), not $(loss_of best) (swapped: $(loss_of best --data swapped.csv))"
sed '1s/x/z/' kinds.csv >renamed.csv
ends 0 train --weights best --data renamed.csv --epochs 1 --checkpoint renamed
complains "was trained on other columns or classes"

# ---- Class weights ----
recall() { "$mica" eval "$1" --part all | awk '$1 == "rare" { print $(NF - 4) }'; }
plain=(--data kinds.csv --epochs 15 --seed 3)
ends 0 train mlp "${plain[@]}" -q --checkpoint plain
ends 0 train mlp "${plain[@]}" --balance --checkpoint balanced
complains "class weights: rare 8"
no_heap_calls
awk -v a="$(recall plain)" -v b="$(recall balanced)" 'BEGIN { exit !(b > a + 20) }' ||
    complain "balanced, $(recall balanced) % of the rare are found; otherwise $(recall plain) %"
ends 0 train mlp "${plain[@]}" --class-weight rare=6.5 --class-weight common=0.5 --checkpoint by-hand
complains "class weights: rare 6.5, common 0.5"
ends 0 train --checkpoint by-hand --resume --epochs 16
complains "class weights: rare 6.5, common 0.5"
ends 2 train --checkpoint by-hand --resume --epochs 17 --balance
complains "was trained with other class weights"
ends 2 train --checkpoint plain --resume --epochs 17 --balance
ends 2 train mlp "${plain[@]}" --class-weight rar=2 --checkpoint no
complains 'unknown class "rar"; did you mean "rare"?'
ends 2 train mlp "${plain[@]}" --class-weight rare=0 --checkpoint no
ends 2 train mlp "${plain[@]}" --class-weight rare --checkpoint no
complains "NAME=W"
printf 'input x [1]\ndense 8 tanh\ndense 1 name=y\nloss mse\n' >line.net
seq 60 | awk '{ print $1 "," 2 * $1 }' >double.csv
ends 2 train line.net --data double.csv --balance --checkpoint no
complains "--balance is for nets that tell classes apart"

# ---- Folds ----
ends 0 train mlp --data kinds.csv --epochs 3 --folds 4 -q
[ "$(grep -c '^fold [1-4]/4 .* 100 samples' "$folder/out")" -eq 4 ] || complain "a line for each fold"
says "mean "
says "±"
[ ! -e mlp-kinds ] || complain "--folds saves nothing"
ends 0 train mlp --data kinds.csv --epochs 3 --folds 4 -q --json
grep '"event": "fold"\|"event": "done"' "$folder/out" | python3 -c '
import json, statistics, sys
lines = [json.loads(line) for line in sys.stdin]
folds, done = lines[:-1], lines[-1]
assert len(folds) == 4 and sum(f["samples"] for f in folds) == 400
for name in ("loss", "accuracy"):
    values = [f[name] for f in folds]
    assert abs(done[name]["mean"] - statistics.mean(values)) < 1e-6
    assert abs(done[name]["deviation"] - statistics.stdev(values)) < 1e-6
assert done["rmse"]["mean"] is None' 2>"$folder/err" || complain "folds as JSON: $(tail -n 1 "$folder/err")"
ends 0 train line.net --data double.csv --epochs 3 --folds 3 -q
says "RMSE "
ends 0 train mlp --data kinds.csv --epochs 2 --folds 3 -q --balance
ends 2 train mlp --data kinds.csv --folds 1
ends 2 train mlp --data kinds.csv --folds 3 --checkpoint x
complains "without --checkpoint"
ends 2 train mlp --data kinds.csv --folds 3 --patience 3
printf 'to be or not to be, that is the question: %.0s' $(seq 60) >words.txt
ends 2 train gpt-tiny --data words.txt --folds 3
complains "--folds is for samples"
seq 200 | awk '{ print sin($1 / 5) }' >waves.csv
ends 2 train mlp --data waves.csv --window 8 --horizon 1 --folds 3
complains "--folds is for samples"

# ---- What all verbs take ----
for verb in "eval best" "run best kinds.csv" "info best" "plan mlp" "ops add" "generate best"; do
    # shellcheck disable=SC2086 # several words
    run $verb --threads 1 --seed 5 -q -v
    [[ $err != *"unknown option"* ]] || complain "$verb refuses what all verbs take"
done
ends 2 ops --threads none
complains "--threads takes an integer"

# ---- Hints ----
for pair in predict:run infer:run test:eval score:eval fit:train benchmark:bench sample:generate; do
    ends 2 "${pair%:*}"
    complains "unknown verb \"${pair%:*}\"; did you mean \"${pair#*:}\"?"
done
ends 0 help dense
says "dense units [ACTIVATION]"
[[ $out != *"conv channels"* ]] || complain "help dense shows other layers"
ends 0 help matmul
says "the matrix product"
ends 0 help lenet
says "loss     cross_entropy"
ends 2 help desne
complains 'did you mean "dense"?'
ends 2 help zzzzzzzz
complains "is no verb, layer, operation or net"
printf 'input x [4]\ndense 16 activation=relu\n' >keras.net
ends 3 info keras.net
complains 'an activation is a word of its own: "relu"'

# ---- All classes ----
awk 'BEGIN { for (i = 0; i < 100; i++) print i % 5 ",1,c" i % 5 }' >five.csv
ends 0 train mlp --data five.csv --epochs 1 -q
ends 0 run mlp-five - --json < <(echo 3,1)
says_json 'len(data["classes"]) == 5 and abs(sum(c["probability"] for c in data["classes"]) - 1) < 1e-4'
ends 0 run mlp-five - --json --top 2 < <(echo 3,1)
says_json 'len(data["classes"]) == 2'
ends 0 run mlp-five - --json < <(echo 1e38,1e38)
says_json 'len(data["classes"]) == 5'
ends 0 run mlp-five - < <(echo 3,1)
[ "$(grep -o '%' "$folder/out" | wc -l)" -eq 3 ] || complain "the three likeliest"

popd >/dev/null || exit 1
