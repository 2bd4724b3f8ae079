#!/usr/bin/env bash
# mica eval and mica run under mpirun print what one process prints, byte for byte, for 1 to 4 ranks; so does the last
# score of mica train; and what only one rank lacks ends all of them with a message. inference.sh MICA. Without mpirun,
# or for a build without MPI, there is nothing to check.
set -uo pipefail
mica=$(realpath "$1")
if ! command -v mpirun >/dev/null || [ ! -e "$(dirname "$mica")"/libmica_mpi.so ]; then
    echo "skipped: no mpirun, or a build without MPI"
    exit 0
fi
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_base_warn_component_unused=0 OMPI_MCA_mpi_yield_when_idle=1
export LC_ALL=C.UTF-8
data=$(cd "$(dirname "${BASH_SOURCE[0]}")/../data" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0
checked=0
lost=0

complain() {
    failures=$((failures + 1))
    printf '%s\n' "$@"
}

# What mica said on stderr, without what mpirun has to add.
said() { sed '/^-----/,$d' errors; }

# on RANKS COMMAND...: under mpirun, with its stdin.
on() {
    local ranks=$1
    shift
    timeout 120 mpirun --oversubscribe -np "$ranks" "$@"
}

# same ARGS...: mica ARGS under mpirun prints what it prints alone, of $input on stdin, for $counts of ranks.
input=/dev/null
counts="1 2 3 4"
same() {
    "$mica" "$@" <"$input" >alone 2>errors
    local code=$?
    if [ "$code" -ne 0 ] || [ ! -s alone ]; then
        complain "mica $*: ends with $code alone:" "$(said)"
        return
    fi
    for ranks in $counts; do
        on "$ranks" "$mica" "$@" <"$input" >together 2>errors
        code=$?
        # Open MPI's own processes lose each other at times, on a busy machine.
        if [ "$code" -ne 0 ] && grep -q 'PMIX ERROR' errors && [ $((lost += 1)) -le 2 ]; then
            on "$ranks" "$mica" "$@" <"$input" >together 2>errors
            code=$?
        fi
        checked=$((checked + 1))
        if [ "$code" -ne 0 ]; then
            complain "mica $*: $ranks ranks end with $code:" "$(head -n 20 errors)"
        elif ! cmp -s alone together; then
            complain "mica $*: $ranks ranks print something else:" "$(diff alone together | head -n 6)"
        fi
    done
}

# train ARGS...: a net to ask, by one process.
train() {
    timeout 120 "$mica" train "$@" -q >output 2>errors && return
    echo "mica train $*: fails: $(said)"
    exit 1
}

# ---- Pictures ----
train lenet --data digits:400 --epochs 1 --checkpoint lenet
images=$data/digits/train-images-idx3-ubyte.gz
same eval lenet
same eval lenet --json
same eval lenet --show 11 --batch 7 # the first samples come from two ranks
same eval lenet --batch 1000        # one batch, and ranks that have none
counts="2 3 4" # one rank takes the same way whatever it is asked
same eval lenet --data digits:90 --part all --json
same run lenet "$images"
same run lenet "$images" --json --batch 7 --top 10
same run lenet "$images" --batch 400 --top 1
same run lenet "$data/png/seven.png" --invert
gzip -dc "$images" >images.idx
input=images.idx
same run lenet
input=/dev/null

# ---- Tables: classes with names, numbers, a net with batch normalization ----
awk 'BEGIN {
    print "width,height,weight,kind"
    for (i = 0; i < 300; i++) {
        a = i * 7 % 31 / 31; b = i * 13 % 17 / 17; c = i * 5 % 23 / 23
        printf "%.4f,%.4f,%.4f,%s\n", a, b, c, (a > b ? "cat" : b + c > 1 ? "dog" : "bird")
    }
}' >kinds.csv
awk 'BEGIN {
    for (i = 0; i < 300; i++)
        printf "%.4f,%.4f,%.5f\n", i % 31 / 31, i % 17 / 17, 3 * (i % 31 / 31) - (i % 17 / 17) ^ 2
}' >numbers.csv
cut -d , -f 1-3 kinds.csv >inputs.csv
cut -d , -f 1-2 numbers.csv >inputs-of-numbers.csv
printf 'input x [3]\ndense 16\nbatch_norm\nrelu\ndense 3 name=y\nloss cross_entropy\n' >kinds.net
printf 'input x [2]\ndense 16 tanh\ndense 1 name=y\nloss mse\n' >numbers.net
train kinds.net --data kinds.csv --epochs 3 --checkpoint kinds
train numbers.net --data numbers.csv --epochs 3 --checkpoint numbers
for part in test all; do
    same eval kinds --part "$part" --batch 5
    same eval kinds --part "$part" --json
    same eval numbers --part "$part" --batch 5
    same eval numbers --part "$part" --batch 5 --json
done
same run kinds inputs.csv
same run kinds inputs.csv --json --batch 9
same run kinds kinds.csv
same run numbers inputs-of-numbers.csv
same run numbers inputs-of-numbers.csv --json --batch 9
input=inputs.csv
same run kinds -
input=/dev/null

# ---- Yes or no: all values of all ranks are ranked for the AUC ----
awk -F , '{ print $1 "," $2 "," $3 "," (NR == 1 ? "cat" : $4 == "cat") }' kinds.csv >cats.csv
printf 'input x [3]\ndense 8 tanh\ndense 1 name=y\nloss bce_logits\n' >cats.net
train cats.net --data cats.csv --epochs 2 --checkpoint cats
same eval cats --part all --batch 5
same eval cats --part all --batch 7 --json
same eval cats --json # more ranks than batches
same run cats inputs.csv --json --batch 9

# ---- Text, also where a step goes on from the one before it ----
for ((i = 0; i < 120; i++)); do
    echo "Line $i: the quick brown fox jumps over the lazy dog, $((i * i)) times, and back again."
done >text.txt
layers='embedding vocabulary 16\nlstm 16 %s\ndense vocabulary name=logits\nloss cross_entropy\n'
# shellcheck disable=SC2059 # the layers are a format
for kind in free kept; do
    keep=$([ "$kind" = kept ] && echo keep_state)
    printf "let vocabulary = 256\nlet length = 16\ninput text [length] i32\n$layers" "$keep" >"$kind.net"
    train "$kind.net" --data text.txt --epochs 1 --batch 8 --checkpoint "$kind"
    same eval "$kind" --batch 4
    same eval "$kind" --batch 4 --part all --json
    same run "$kind" text.txt
    same run "$kind" text.txt --json --top 5
done
input=text.txt
same run free
input=/dev/null

# ---- The last score of a training, and the mistakes that its report shows ----
# score_of FILE: of the events of a training.
score_of() { grep '"event": "done"' "$1" | grep -oE '"part": "test", "samples": [^,]*, "loss": [^,]*|"metrics": .*'; }
# mistakes_of FILE: the pictures and captions of a report.
mistakes_of() { grep -o 'data:image/png[^<]*' "$1"; }
for ranks in 1 2 4; do
    on "$ranks" "$mica" train lenet --data digits:200 --epochs 1 --shares 4 --checkpoint "$ranks-ranks" --json -q \
        --report "report$ranks.html" >"events$ranks" 2>errors || complain "train: $ranks ranks fail:" "$(said)"
    [ "$(mistakes_of "report$ranks.html" | wc -l)" -ge 10 ] || complain "train: $ranks ranks report too few mistakes"
    score=$(score_of "events$ranks")
    if [ -z "$score" ] || [ "$score" != "$(score_of events1)" ]; then
        complain "train: $ranks ranks have another score: $score, not $(score_of events1)"
    fi
    [ "$(mistakes_of report1.html)" = "$(mistakes_of "report$ranks.html")" ] ||
        complain "train: $ranks ranks report other mistakes"
    checked=$((checked + 1))
done

# ---- What one rank lacks ----
# Rank 1 is given what $other says instead.
cat >odd.sh <<'END'
#!/usr/bin/env bash
[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" -ne 1 ] || eval "set -- $other"
exec "$mica" "$@"
END
chmod +x odd.sh
export mica other

# ends CODE MESSAGE OTHER ARGS...: three ranks with ARGS, and OTHER on rank 1.
ends() {
    local wanted=$1 message=$2 code
    other=$3
    shift 3
    on 3 ./odd.sh "$@" <"$input" >output 2>errors
    code=$?
    checked=$((checked + 1))
    [ "$code" -eq "$wanted" ] || complain "rank 1 with $other: ends with $code, not $wanted:" "$(said)"
    if [ "$(grep -c '^mica' errors)" -ne 1 ] || ! grep -qF "$message" errors; then
        complain "rank 1 with $other: should say once: $message" "$(said)"
    fi
    [ ! -s output ] || complain "rank 1 with $other: prints:" "$(head -n 3 output)"
}
train lenet --data digits:400 --epochs 1 --seed 7 --checkpoint other
ends 3 'mica eval: rank 1: file error: "missing": cannot open' "eval missing" eval lenet
ends 3 'mica eval: rank 1: file error: "missing.csv": cannot open' "eval kinds --data missing.csv" eval kinds
ends 3 'mica eval: rank 1 has another checkpoint in lenet/' "eval other" eval lenet
ends 3 'mica eval: rank 1 has other data in digits:400 than rank 0' "eval lenet --data digits:300 --part test" eval lenet
ends 2 'mica eval: rank 1 was given other options than rank 0' "eval lenet --batch 9" eval lenet
ends 2 'mica eval: rank 1: unknown option --bach' "eval lenet --bach 9" eval lenet
ends 3 'mica run: rank 1: file error: "missing.csv": cannot open' "run kinds missing.csv" run kinds inputs.csv
ends 3 'mica run: rank 1: file error: "missing": cannot open' "run missing inputs.csv" run kinds inputs.csv
head -n 200 inputs.csv >shorter.csv
ends 3 'mica run: rank 1 has other data in inputs.csv than rank 0' "run kinds shorter.csv" run kinds inputs.csv
ends 2 'mica run: rank 1: one table at a time' "run kinds inputs.csv inputs.csv" run kinds inputs.csv
input=inputs.csv
ends 2 'mica run: rank 1 was given other options than rank 0' "run kinds inputs.csv" run kinds
ends 2 'mica run: rank 1 was given other options than rank 0' "run kinds" run kinds inputs.csv
input=/dev/null
# What all lack is said once, for all.
for verb in "eval missing" "run missing inputs.csv"; do
    # shellcheck disable=SC2086 # words
    ends 3 "mica ${verb%% *}: file error: \"missing\": cannot open" "$verb" $verb
done

echo "$checked checked, $failures failed"
[ "$failures" -eq 0 ]
