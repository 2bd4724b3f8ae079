# Training at the command line, and what is done with what it leaves: train, eval, run, generate. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
heap_line="heap    0 calls in "
export LC_ALL=C.UTF-8
mica=$(realpath "$mica")
t=$folder/train
mkdir -p "$t"
pushd "$t" >/dev/null || exit 1

# ---- Wrong usage ----
ends 2 train
complains "which net, and on what data?"
ends 2 train lenet
ends 2 train lenet mlp --data digits
complains "one net at a time"
ends 2 train lenet --data digits --epoch 3
complains "did you mean --epochs?"
ends 2 train lenet --data digits --optimizer adm
complains "adam"
ends 2 train lenet --data digits --lr fast
ends 2 train lenet --data digits --batch 0
ends 2 train lenet --data digits --validation 2
ends 2 train lenet --data digits --set classes
complains "NAME=NUMBER"
ends 2 train lenet --data digits:7
complains "from 10 to 10000000"
ends 2 train --resume
ends 2 train --resume --checkpoint nothing-here
complains "has no checkpoint to resume"
ends 2 eval
ends 2 run
ends 2 generate a b
ends 2 generate a --top-p 3

# ---- Missing and broken files ----
ends 3 train lenett --data digits
complains 'did you mean "lenet"?'
ends 3 train lenet --data digts
complains 'unknown data "digts"; did you mean "digits"?'
ends 3 train lenet --data missing.csv
complains "missing.csv"
ends 3 train lenet --data "$t"
complains "the folder has no files named *.png, "
printf 'a,b,kind\n1,2,cat\n3,dog\n' >broken.csv
ends 3 train mlp --data broken.csv
complains '"broken.csv": line 3'
printf '\0\0\x8\3\0\0\0\2' >short.idx
ends 3 train mlp --data short.idx,short.idx
complains "byte 8"
ends 3 train mlp --data "$here/data/npy/big_endian.npy,$here/data/npy/labels.npy"
complains "npy header"
printf 'to be or not to be, that is the question: %.0s' $(seq 60) >words.txt
ends 3 train lenet --data words.txt
complains "does not take text"
ends 3 train gpt-tiny --data digits:100
complains "takes text, but"
ends 3 eval missing
complains "cannot open"
ends 3 eval words.txt
ends 3 run "$here/data/safetensors/layers.safetensors" x.png
complains "was not written by mica train"
ends 1 train lenet --data digits:100 --budget 100K --checkpoint small
complains "needs at least"

# ---- A training ----
ends 0 train lenet --data digits:3000 --epochs 4 --report page.html --trace trace.json
says "test    "
says " bytes), planned before the first step"
says "saved   lenet-digits/checkpoint.safetensors"
says "wrote   page.html"
[[ $out == *"$heap_line"* || $out == *"not counted"* ]] || complain "a step makes heap calls"
complains "epoch 4/4"
grep -q "lenet on digits" page.html || complain "the report has no title"
grep -q '"ph"' trace.json || complain "the trace has no events"
ends 2 train lenet --data digits:3000
complains "--resume continues it, --overwrite replaces it"
ends 0 train lenet --data digits:100 --epochs 1 --checkpoint lenet-again -q
[ -z "$err" ] || complain "-q prints progress"
ends 0 train lenet --data digits:100 --epochs 1 --checkpoint lenet-again --overwrite --threads 1
ends 3 train mlp --data digits:100 --checkpoint lenet-again --resume
complains "belongs to a different net"
ends 4 train lenet --data digits:200 --checkpoint wild --optimizer sgd --lr 1e30
complains "training diverged"
ends 1 train lenet --data digits:100 --checkpoint words.txt
ends 1 train lenet --data digits:100 --epochs 1 --checkpoint nopage --report no/such/page.html
complains "cannot write no/such/page.html"

# ---- What it left ----
ends 0 eval lenet-digits
says "digits:3000, test: "
says "predicted"
accuracy=$("$mica" eval lenet-digits --json | grep -o '"accuracy": [0-9.]*' | cut -d ' ' -f 2)
awk -v a="$accuracy" 'BEGIN { exit !(a > 0.9) }' || complain "an accuracy of $accuracy"
ends 0 eval lenet-digits --part validation --show 3
says "validation: "
ends 0 eval lenet-digits/checkpoint.safetensors --data "$here/data/digits"
ends 0 info lenet-digits/checkpoint.safetensors
says "logits"
ends 0 run lenet-digits "$here/data/png/seven.png" --invert
says "seven.png  7 "
ends 0 run lenet-digits "$here/data/png/zero.png" --top 1 --json
says '"classes": [{"class": "0", "probability": '
out=$("$mica" run lenet-digits --top 1 <"$here/data/png/zero.png") || complain "a picture from stdin"
[[ $out == "0  0 "* ]] || complain "a picture from stdin is a 0"
ends 0 run lenet-digits "$here/data/digits/t10k-images-idx3-ubyte.gz"
[ "$(wc -l <"$folder/out")" -gt 10 ] || complain "a line for each picture"
head -c 300 "$here/data/png/zero.png" >cut.png
ends 3 run lenet-digits cut.png
complains "the file ends"
ends 3 run lenet-digits words.txt
ends 3 run lenet-digits "$here/data/npy/float32.npy"
complains "an input has "
head -c 100000 lenet-digits/checkpoint.safetensors >cut.safetensors
ends 3 eval cut.safetensors
complains "cut.safetensors"
ends 3 generate lenet-digits
complains "not a text net"

# ---- A reader that leaves, a full disk ----
"$mica" train lenet --data digits:400 --epochs 2 --checkpoint piped --json 2>/dev/null | head -1 >first.json
grep -q '"event": "step"' first.json || complain "the first line is no step"
[ -s piped/checkpoint.safetensors ] || complain "a reader that leaves ends a training"
if [ -e /dev/full ]; then
    "$mica" eval lenet-digits >/dev/full 2>"$folder/err"
    code=$? err=$(cat "$folder/err")
    [ "$code" -eq 1 ] || complain "a full disk should end with 1"
    complains "cannot write the output"
fi
mkdir -p disk
if mount -t tmpfs -o size=2m tmpfs disk 2>/dev/null; then
    ends 0 train lenet --data digits:400 --epochs 1 --checkpoint disk/run -q
    cp disk/run/checkpoint.safetensors before.safetensors
    ends 1 train lenet --data digits:400 --epochs 3 --checkpoint disk/run --resume -q
    complains "No space left on device"
    cmp -s disk/run/checkpoint.safetensors before.safetensors || complain "the old checkpoint is not what it was"
    ends 0 eval disk/run
    umount disk
else
    echo "(a full disk takes root, and was left out)"
fi

# ---- Interrupted, and resumed to the bit ----
follow=(--data digits:640 --epochs 8 --json -q)
ends 0 train lenet "${follow[@]}" --checkpoint whole
grep '"event": "step"' "$folder/out" >whole.json
for signal in INT TERM; do
    : >part.json
    "$mica" train lenet "${follow[@]}" --checkpoint "$signal" >part.json 2>"$folder/err" &
    process=$!
    await_lines 12 part.json || complain "no steps before SIG$signal"
    kill -s "$signal" "$process"
    wait "$process"
    code=$? err=$(cat "$folder/err")
    [ "$code" -eq 130 ] || complain "SIG$signal should end it with 130"
    complains "--resume continues from $signal/checkpoint.safetensors"
    ends 0 train --checkpoint "$signal" --resume --json -q --threads 1
    grep -h '"event": "step"' part.json "$folder/out" | cmp -s - whole.json ||
        complain "after SIG$signal the losses are not those of a run that never stopped"
done

# Killed, which no program can prepare for: what --checkpoint-steps wrote last is there.
: >part.json
"$mica" train lenet "${follow[@]}" --checkpoint killed --checkpoint-steps 5 >part.json 2>"$folder/err" &
process=$!
await_lines 12 part.json || complain "no steps before SIGKILL"
kill -KILL "$process"
wait "$process" 2>/dev/null
ends 0 train --checkpoint killed --resume --json -q
first=0
[[ ! $(head -n 1 "$folder/out") =~ '"step": '([0-9]+) ]] || first=${BASH_REMATCH[1]}
# An epoch of 18 steps also ends with a checkpoint: a late signal finds that one.
if { [ $((first % 5)) -ne 1 ] && [ $((first % 18)) -ne 1 ]; } || [ "$first" -le 10 ]; then
    complain "after SIGKILL it should continue behind step 10, a later multiple of 5 or an epoch, not with $first"
fi
grep '"event": "step"' "$folder/out" | cmp -s - <(tail -n +"$first" whole.json) ||
    complain "after SIGKILL the losses are not those of a run that never stopped"
ends 0 info killed
says "checkpoint_steps"

# ---- Where it goes ----
ends 0 train nets/lenet.net --data ./sub/digits.csv:7 --where
says "lenet-digits/checkpoint.safetensors"
ends 0 train lenet --checkpoint a/b --where
says "a/b/checkpoint.safetensors"
[ ! -e a ] || complain "--where makes no folder"
ends 2 train --where

# ---- Tables, numbers, text ----
for i in $(seq 60); do
    kinds=(cat dog eel)
    echo "$i,$((i % 3 * 10)).5,${kinds[$((i % 3))]}"
done >pets.csv
ends 0 train mlp --data pets.csv --epochs 40
ends 0 eval mlp-pets --part all
says "eel"
ends 0 run mlp-pets pets.csv --top 1
says "1  eel "
out=$(printf '5,0.5\n6,10.5\n' | "$mica" run mlp-pets - --json) || complain "numbers from stdin"
says '{"input": 1, "classes": [{"class": "'
printf '7,0.5,emu\n' >strange.csv
ends 3 eval mlp-pets --data strange.csv
complains '"emu" is none of the classes of the table'
for i in $(seq 40); do
    echo "$i,$((2 * i))"
done >double.csv
printf 'input x [1]\ndense 8 tanh\ndense 1 name=y\nloss mse\n' >line.net
ends 0 train line.net --data double.csv --epochs 5
says "RMSE "
ends 0 run line-double double.csv
[ "$(wc -l <"$folder/out")" -eq 40 ] || complain "a number for each line"
# Numbers of rows are the only input here, unless they are to be ignored.
ends 3 train line.net --data double.csv --epochs 5 --ignore 1 --checkpoint none
complains "no column is left as an input"
ends 0 train gpt-tiny --data words.txt --epochs 1 --set layers=1 --set width=16 --set length=16
says "mica generate gpt-tiny-words"
ends 0 eval gpt-tiny-words --part all
says "bits per token"
ends 0 generate gpt-tiny-words --prompt "to be" --tokens 40
says "to be"
first=$out
ends 0 generate gpt-tiny-words --prompt "to be" --tokens 40 --threads 1
[ "$out" = "$first" ] || complain "the same seed writes another text"
ends 0 generate gpt-tiny-words --temperature 0 --tokens 10 --json
says '"text": "'
says '"windows": null'
# A net that looks ahead is run on a whole window for each token, and says so.
printf 'let vocabulary = 256\ninput text [8] i32\nembedding vocabulary 8\nmulti_head_attention 2 name=both\n' >ahead.net
printf 'dense vocabulary\nloss cross_entropy\n' >>ahead.net
ends 0 train ahead.net --data words.txt --epochs 1
ends 0 generate ahead-words --tokens 20 --json
says '"windows": "attention_packed in layer \"both.heads\" may mix tokens"'
printf 'let vocabulary = 256\ninput text [8] i32\nembedding vocabulary 8\nlstm 8 layers=2\n' >cells.net
printf 'dense vocabulary\nloss cross_entropy\n' >>cells.net
ends 0 train cells.net --data words.txt --epochs 1
ends 0 generate cells-words --tokens 20 --json
says '"windows": null'
ends 2 generate gpt-tiny-words --prompt "Ω"
complains "is not in the vocabulary"
ends 2 run gpt-tiny-words words.txt words.txt
complains "one text at a time"
out=$(printf 'to be or not to b' | "$mica" run gpt-tiny-words --top 1) || complain "what comes next"
"$mica" generate gpt-tiny-words --tokens 100000 2>"$folder/err" | head -c 20 >/dev/null
[ ! -s "$folder/err" ] || complain "a reader that leaves: $(cat "$folder/err")"

popd >/dev/null || exit 1
