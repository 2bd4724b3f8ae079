# Files that broke something once (tests/data/hostile), and a system that refuses. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

files=$(cd "$(dirname "${BASH_SOURCE[0]}")/../data/hostile" && pwd)
mica=$(realpath "$mica")
hostile=$folder/hostile
mkdir -p "$hostile"
cp -r "$files/." "$hostile"
pushd "$hostile" >/dev/null || exit 1

# What no run may leave behind: a word of a sanitizer, or a death by a signal.
sound() {
    [ "$code" -lt 128 ] || complain "ended by a signal"
    [[ $err != *"runtime error"* && $err != *Sanitizer* ]] || complain "undefined behaviour"
}

# refused CODE TEXT ARGS...: ends so, with the text on stderr, and without a word on stdout.
refused() {
    local wanted=$1 text=$2
    shift 2
    ends "$wanted" "$@"
    sound
    silent
    complains "$text"
}

# done_with TEXT ARGS...: ends well, with the text on stdout.
done_with() {
    local text=$1
    shift
    ends 0 "$@"
    sound
    says "$text"
}

printf 'let vocabulary = 256\ninput text [8] i32\nembedding 256 4\ndense 256 name=logits\nloss cross_entropy\n' >bytes.net
printf '1,2\n' >two.csv

# npy FILE SIZES <NUMBERS: an array of f32, such as npy x.npy '3, 2'
npy() {
    python3 -c 'import struct, sys
header = b"{\x27descr\x27: \x27<f4\x27, \x27fortran_order\x27: False, \x27shape\x27: (%s,), }" % sys.argv[2].encode()
header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
numbers = [float(word) for word in sys.stdin.read().split()]
with open(sys.argv[1], "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<%df" % len(numbers), *numbers))' "$@"
}
tail -n +2 flowers.csv | tr ',' ' ' | awk '{ print $1, $2 }' | npy flowers_x.npy '120, 2'
tail -n +2 flowers.csv | awk -F , '{ print ($3 == "rose") + 2 * ($3 == "tulip") }' | npy flowers_y.npy 120
echo 1 2 | npy two.npy '1, 2'
echo 1 2 3 4 5 6 7 8 | npy four.npy '2, 4'

# printable FILE: nothing in it that a terminal would obey: no control but line ends and tabs, of C0 or C1.
printable() {
    python3 - "$1" <<'PYTHON' || complain "$1 has what a terminal obeys"
import sys
text = open(sys.argv[1], "rb").read().decode("utf-8")  # bytes that are no UTF-8 fail here
sys.exit(any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in text))
PYTHON
}

# ---- Targets go where the loss reads them ----
refused 3 'its output "slice1" is f32 [1, 3]: expected f32, 32 samples along axis 0' \
    train targets_overflow.net --data flowers.csv --checkpoint a -q
for net in oneinput twoinputs; do # the second has an input that nobody reads
    done_with "" train $net.net --data flowers.csv --checkpoint $net --epochs 100 --lr 0.05 -q --json
    tail -1 "$folder/out" | grep -qE '"accuracy": (1|0\.9)' || complain "$net.net does not learn"
done
printf 'input x [2]\ninput more [2]\nadd x more\ndense 3 name=logits\nloss cross_entropy\n' >more.net
refused 3 'besides "x", the net reads an input "more" that no data provides' \
    train more.net --data flowers.csv --checkpoint b -q
printf 'input x [2]\ndense 3 name=a\nloss cross_entropy\ndense 3 name=b from=x\nloss cross_entropy\n' >losses.net
refused 3 'the net reads an input "target2"' train losses.net --data flowers.csv --checkpoint b -q
printf 'input x [2]\ndense 3 name=logits\nloss cross_entropy one_hot\n' >onehot.net
refused 3 'expected class indices' train onehot.net --data flowers.csv --checkpoint b -q
printf 'input x [2]\ndense 5 name=y\nloss mse\n' >five.net
refused 3 'expects 5 target values per sample, flowers_x.npy,flowers_y.npy has 1' \
    train five.net --data flowers_x.npy,flowers_y.npy --checkpoint b -q
refused 3 'flowers.csv: column "species" is not numbers, which a regression needs' \
    train five.net --data flowers.csv --checkpoint b -q
printf 'input x [3, 5]\nflatten\ndense 3 name=y\nloss cross_entropy\n' >fifteen.net
ends 3 train fifteen.net --data flowers.csv --checkpoint b -q
sound
if [ -e a ] || [ -e b ]; then
    complain "a training that was refused leaves a folder"
fi

# A batch in parts, and an output whose batch axis was moved: the same losses as in one part, or refused before a step.
done_with "" train parts_overflow.net --data flowers.csv --threads 1 --epochs 2 --checkpoint inone --json -q
grep '"event": "step"' "$folder/out" >inone.json
run train parts_overflow.net --data flowers.csv --threads 1 --budget 39296 --epochs 2 --checkpoint parts --json -q
sound
if [ "$code" -eq 0 ]; then
    grep '"event": "step"' "$folder/out" >parts.json
    python3 - <<'PYTHON' || complain "a batch in parts learns something else"
import json
one, parts = ([json.loads(line)["loss"] for line in open(name)] for name in ("inone.json", "parts.json"))
assert len(one) == len(parts) and all(abs(a - b) < 1e-3 for a, b in zip(one, parts)), (one, parts)
PYTHON
else
    silent
    [[ $code -le 3 && $err != *"cross_entropy: target"* ]] || complain "a batch in parts writes where it must not"
fi

# ---- More outputs than class names ----
done_with "wrote   r.html" train ten.net --data flowers.csv --report r.html --checkpoint ten --epochs 2 -q
grep -q tulip r.html || complain "the report has no class names"
done_with "" eval ten --part all
done_with "" eval ten --part all --json
done_with "" run ten flowers.csv --top 10

# ---- What a checkpoint says about itself ----
refused 3 'output "flatten1" is u8' run h_u8.safetensors u8.npy
refused 3 'expected class indices' eval h_onehot.safetensors --data two_x.npy,two_y.npy
for value in five:5 huge:1e300 nan:nan neg:-5; do
    refused 3 "its \"mica.train.validation\" is \"${value#*:}\": expected a number from 0 to 0.9" \
        eval "h_val_${value%:*}.safetensors" --part validation
done
for file in h_vocab0 h_vocab4d; do
    refused 3 'it has a "mica.vocabulary": expected none' run $file.safetensors small.txt
    refused 3 '"mica.vocabulary"' generate $file.safetensors
    refused 3 '"mica.vocabulary"' eval $file.safetensors --data small.txt
done
done_with "predicted" eval h_names.safetensors --show 5
done_with '"only"' eval h_names.safetensors --json
refused 3 'its "mica.sample" has 400 elements: expected 784' \
    eval h_sample.safetensors --show 5
refused 3 'its "mica.sample" has 400 elements' run h_sample.safetensors ok.png
refused 3 'its "mica.sample" is "-2 -3": expected up to 7 sizes' run h_sampleneg.safetensors ok.png
refused 3 'its "mica.sample" is "3 4611686018427387904 4611686018427387904"' run h_sampleovf.safetensors ok.png
refused 3 'its "mica.mean" has 2 numbers: expected 1, or the size of the first axis' \
    eval h_chan.safetensors --data c2x.npy,c2y.npy --show 5
refused 3 'its metadata has no "mica.title"' train --checkpoint r_notitle --resume
refused 3 'its "mica.train.batch" is "0": expected an integer from 1 to 1000000' \
    train --checkpoint r_batch0 --resume
refused 3 'its "mica.train.batch" is "1e300": expected an integer' train --checkpoint r_casts --resume
refused 3 'its "mica.train.optimizer" is "1e9": expected an integer from 0 to 4' \
    train --checkpoint r_optimizer --resume
refused 3 'its "mica.train.schedule" is "100000": expected an integer from 0 to 4' \
    train --checkpoint r_schedule --resume

# Each field in turn, in a checkpoint that is sound otherwise. change FILE KEY VALUE: without VALUE the key goes.
change() {
    python3 - "$@" <<'PYTHON'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header, tensors = json.loads(data[8:8 + size]), data[8 + size:]
header["__metadata__"].pop(sys.argv[2], None)
if len(sys.argv) > 3:
    header["__metadata__"][sys.argv[2]] = sys.argv[3].encode().decode("unicode_escape")
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open("changed.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + tensors)
PYTHON
}
done_with "" train ten.net --data flowers.csv --checkpoint table --epochs 1 -q
done_with "" train ten.net --data flowers_x.npy,flowers_y.npy --checkpoint arrays --epochs 1 -q
done_with "" train bytes.net --data small.txt --checkpoint text --epochs 1 -q
for field in "table|mica.title|" "table|mica.scale|nan|above 0" "table|mica.scale|0|above 0" "table|mica.scale|1 2|above 0" \
    "arrays|mica.mean|1 inf|finite numbers" "arrays|mica.mean|1|finite numbers above 0" "arrays|mica.mean||finite numbers" \
    "arrays|mica.mean|1  2|finite numbers" "arrays|mica.deviation|1 0|above 0" "arrays|mica.deviation|1 -1|above 0" \
    "arrays|mica.deviation|1 1e-50|above 0" "arrays|mica.deviation" "table|mica.sample|0|sizes of at least 1" \
    "table|mica.sample|2 |sizes of at least 1" "table|mica.sample|1 1 1 1 1 1 1 2|up to 7 sizes" "table|mica.sample|3|expected 2, as" \
    "arrays|mica.sample|1 2|expected 1, or the size" "table|mica.sample|99999999999999999999|sizes of at least 1" \
    "table|mica.classes|a\\nb\\nc\\nd\\ne\\nf\\ng\\nh\\ni\\nj\\nk|expected at most 10" "table|mica.vocabulary|bytes|expected none" \
    "table|mica.train.augment|flip,turn=1|a list of flip" "text|mica.vocabulary|1 2 2|ascending" "text|mica.vocabulary|55296|ascending" "text|mica.vocabulary|1114112|ascending" \
    "text|mica.vocabulary||ascending" "text|mica.vocabulary|-1 5|ascending" "text|mica.vocabulary" "text|mica.sample|8|expected none" \
    "table|mica.train.epochs|0|from 1 to" "table|mica.train.warmup|-1|from 0 to" "table|mica.train.patience|2147483648|from 0 to 2147483647" \
    "table|mica.train.lr|inf|from 0 to" "table|mica.train.momentum|1e39|from 0 to" "table|mica.train.clip|0x1p3|from 0 to" \
    "table|mica.train.seed|9223372036854775808|an integer" "table|mica.train.seed|1.5|an integer" "table|mica.train.budget|many|an integer"; do
    IFS='|' read -r from key value text <<<"$field"
    case $field in
    *"|"*"|"*) change "$from/checkpoint.safetensors" "$key" "$value" ;;
    *) change "$from/checkpoint.safetensors" "$key" ;;
    esac
    # A number of one field is held against another: the message may name either.
    [[ $key != mica.mean && $key != mica.sample ]] || key=mica.
    for verb in eval run "train --resume"; do
        case $verb in
        eval) refused 3 "\"$key" eval changed.safetensors --part all ;;
        run) refused 3 "\"$key" run changed.safetensors two.csv ;;
        *)
            mkdir -p again && cp changed.safetensors again/checkpoint.safetensors
            refused 3 "\"$key" train --checkpoint again --resume
            ;;
        esac
        complains "${text:-expected}"
    done
done

# Classes for each of two places: a softmax over each, not over both.
change oneinput/checkpoint.safetensors mica.net 'input x [2, 2]\ndense 3 name=logits\nloss cross_entropy\n'
for key in mica.sample mica.table; do
    change changed.safetensors $key
done
done_with "" run changed.safetensors four.npy --json
sed '1s/^/[/; s/$/,/; $s/,$/]/' "$folder/out" >lines.json && mv lines.json "$folder/out"
says_json '[line["input"] for line in data] == [0, 0, 1, 1]'
says_json 'all(abs(sum(c["probability"] for c in line["classes"]) - 1) < 1e-6 for line in data)'

# Inputs that are none, from a file and from stdin.
cp "$files/../npy/scalar.npy" .
refused 1 "expected samples along axis 0" run table scalar.npy
"$mica" run table <scalar.npy >"$folder/out" 2>"$folder/err"
code=$? out=$(cat "$folder/out") err=$(cat "$folder/err")
sound
complains "expected samples along axis 0"

# ---- Names that cannot be saved, before the first step ----
refused 3 'latin1.csv: format error: column "species": a value is not UTF-8: "ros\xe9": it could not be saved' \
    train oneinput.net --data latin1.csv --checkpoint latin --json
refused 3 'the source of the net is not UTF-8 and could not be saved: "# r\xe9seau" (line 1, byte 4)' \
    train latin1.net --data flowers.csv --checkpoint latin --json
printf '1,2,"a\nb"\n3,4,c\n5,6,c\n' >lines.csv
refused 3 "a class name contains a newline" train oneinput.net --data lines.csv --checkpoint latin --json
[ ! -e latin ] || complain "a training that was refused leaves a folder"

# ---- Pictures and packed files that grow ----
if [[ $("$mica" info bomb.png.gz 2>&1) != *"no zlib"* ]]; then
    begun=$SECONDS
    refused 3 "pixels: expected at most 67108864 pixels in all" run img.safetensors bomb.png.gz
    [ $((SECONDS - begun)) -lt 5 ] || complain "a picture of 308 bytes takes $((SECONDS - begun)) s"
    done_with "" run img.safetensors ok.png
    python3 - <<'PYTHON'
import gzip, struct
header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % (80 << 20)
header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
with gzip.open("zeros.npy.gz", "wb") as file:
    file.write(npy + bytes(80 << 20))
with gzip.open("zeros.txt.gz", "wb") as file:
    file.write(bytes(80 << 20))
PYTHON
    refused 3 "more than the file can hold" info zeros.npy.gz
    refused 3 "decompress to more than" train gpt-tiny --data zeros.txt.gz --checkpoint zeros
fi

# ---- What a terminal would obey, and what is no JSON ----
refused 3 '\x1b]0;pwned\x07\x1b[31mred' eval h_esc.safetensors
printable "$folder/err"
done_with '\x1b]0;pwned\x07\x1b[31mred' info h_esc.safetensors
printable "$folder/out"
printf '1,2,\xc2\x9b31mred\n3,4,\x1b[32mgreen\n5,6,blue\n7,8,blue\n' >colours.csv
done_with "" train oneinput.net --data colours.csv --checkpoint colours --epochs 1 -q
for verb in eval "eval --json" "eval --show 3" "run colours.csv" "run colours.csv --json"; do
    read -ra words <<<"$verb"
    arguments=("${words[@]:1}")
    [ "${words[0]}" = run ] || arguments+=(--part all)
    done_with "" "${words[0]}" colours "${arguments[@]}"
    printable "$folder/out"
done
done_with '\xc2\x9b31m' eval colours --part all
printf '3,4,\x1b[33m\xc2\x9bbad\n' >strange.csv
refused 3 'is none of the classes of the table' eval colours --data strange.csv
printable "$folder/err"
printf 'input x [2]\n\xc2\x9b31m \x1b]0;pwned\x07\n' >escape.net
refused 3 'unexpected character' plan escape.net
printable "$folder/err"
done_with '"probability": null' run h_nan.safetensors two.npy --json
says_json 'all(c["probability"] is None for c in data["classes"])'
done_with nan run h_nan.safetensors two.npy

# A net of random weights writes any byte: a terminal gets none that it would obey, a pipe gets them as they are.
printf 'any \x1b\x9b bytes\xff and more of them, \x00 too \x07' >bytes.txt
while [ "$(wc -c <bytes.txt)" -lt 2000 ]; do
    cat bytes.txt bytes.txt >more.txt
    mv more.txt bytes.txt
done
done_with "" train bytes.net --data bytes.txt --checkpoint bytes --epochs 1 -q
python3 - "$mica" >pty.txt <<'PYTHON'
import os, pty, sys
# An empty result would end the copy after the first read.
pty.spawn([sys.argv[1], "generate", "bytes", "--tokens", "3000", "--temperature", "3"], lambda terminal: os.read(terminal, 65536))
PYTHON
sed -i 's/\r$//' pty.txt
printable pty.txt
grep -qF '\x' pty.txt || complain "nothing was escaped for a terminal"
ends 0 generate bytes --tokens 3000 --temperature 3 --json
says_json 'len(data["text"]) > 2000 and "\0" in data["text"]'
printable "$folder/out"
"$mica" generate bytes --tokens 3000 --temperature 3 >raw.txt
[ "$(wc -c <raw.txt)" -eq 3001 ] || complain "a pipe gets something else than the bytes"

# ---- Numbers that are too large ----
refused 3 "ub_conv.net:2:1" plan ub_conv.net
refused 3 "ub_heads.net:2:1" plan ub_heads.net

# ---- A pipe is read once ----
done_with "training, batch 32" plan <(cat ten.net) --train
done_with "dense1" info <(cat ten.net)
done_with "test    " train <(cat ten.net) --data flowers.csv --checkpoint piped --epochs 1 -q

# ---- One training at a time in a folder ----
mkfifo hold
"$mica" train ten.net --data flowers.csv --checkpoint held --epochs 100000 --json >hold 2>"$folder/holder" &
holder=$!
exec 9<hold
read -r _ <&9 # a step was done, and nobody reads on: it waits for us
refused 1 "held is in use by another training run, process $holder" train ten.net --data flowers.csv --checkpoint held
refused 1 "held is in use by another training run" train --checkpoint held --resume
refused 1 "held is in use by another training run" train ten.net --data flowers.csv --checkpoint held --overwrite
kill -9 "$holder"
wait "$holder" 2>/dev/null
exec 9<&-
[ -e held/checkpoint.lock ] || complain "a killed training leaves its lock"
done_with "saved   held/" train ten.net --data flowers.csv --checkpoint held --epochs 1 --overwrite -q
[ ! -e held/checkpoint.lock ] || complain "the lock stays after a training"

rm -rf notafile && mkdir -p notafile && mkfifo notafile/checkpoint.lock
refused 1 "is not a regular file" train ten.net --data flowers.csv --checkpoint notafile
rm -rf notafile && mkdir -p notafile && ln -s ../flowers.csv notafile/checkpoint.lock
refused 1 "cannot write to the folder notafile" train ten.net --data flowers.csv --checkpoint notafile
cmp -s flowers.csv "$files/flowers.csv" || complain "a link that was put in the place of a lock is followed"

# ---- A limit on the size of files ----
done_with "saved" train mlp --data flowers.csv --checkpoint limited --epochs 1 -q
cp limited/checkpoint.safetensors before.safetensors
(
    ulimit -f 8 || exit 99
    "$mica" train mlp --data flowers.csv --checkpoint limited --epochs 3 --resume -q
) >"$folder/out" 2>"$folder/err"
code=$? out=$(cat "$folder/out") err=$(cat "$folder/err")
[ "$code" -eq 1 ] || complain "a limit on the size of files should end with 1"
complains "cannot write: File too large"
sound
cmp -s limited/checkpoint.safetensors before.safetensors || complain "the old checkpoint is not what it was"
done_with "" eval limited

# ---- Seeds that no double holds ----
for checkpoint in whole stopped; do
    done_with "" train ten.net --data flowers.csv --checkpoint seed-$checkpoint --epochs 2 --json -q \
        --schedule constant --seed 9007199254740993
    grep '"event": "step"' "$folder/out" >$checkpoint.json
done
cmp -s whole.json stopped.json || complain "the same seed gives other losses"
done_with "" train ten.net --data flowers.csv --checkpoint seed-long --epochs 4 --json -q --schedule constant \
    --seed 9007199254740993
grep '"event": "step"' "$folder/out" >long.json
done_with "" train --checkpoint seed-stopped --resume --epochs 4 --json -q
grep -h '"event": "step"' "$folder/out" | cat stopped.json - | cmp -s - long.json ||
    complain "a seed above 2^53 does not resume to the same losses"
done_with '"mica.train.seed": "9007199254740993"' info seed-stopped --json
refused 2 "--lr takes a number above 0" train ten.net --data flowers.csv --lr 0
refused 2 "--lr takes a number of at most" train ten.net --data flowers.csv --lr 1e300

popd >/dev/null || exit 1
