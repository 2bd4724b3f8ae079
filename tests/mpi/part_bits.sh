# The same bits for any number of ranks.
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2317 # check.sh has the variables; told calls the functions

# ---- Any number, from the start to the end ----

# same NAME RANKS ARGS...: as without mpirun, for each number of RANKS: checkpoint, losses, no heap call in a step.
number=0
same() {
    local name=$1 numbers n
    read -ra numbers <<<"$2"
    shift 2
    number=$((number + 1))
    if ! train 0 "$number-alone" "$@"; then
        told "$name" false
        return
    fi
    cp "$folder/out" "$folder/alone"
    for n in "${numbers[@]}"; do
        told "$name, $n ranks" same_as_alone "$n" "$@"
    done
}

same_as_alone() {
    local n=$1
    shift
    train "$n" "$number-$n" "$@" || return
    [ "$(sum_of "$number-$n")" = "$(sum_of "$number-alone")" ] || { echo "  another checkpoint" && return 1; }
    cmp <(steps_of "$folder/alone") <(steps_of "$folder/out") || return
    done_says '"heap_calls": (0|null),' # null: not counted in this build
}

# 107 samples in batches of 50: the last has 7, in shares of one row and of none.
cnn=(resnet-small --data digits:107 --validation 0 --batch 50 --epochs 2)
lstm=(lstm --data "$text" --set width=24 --set length=16 --batch 26 --epochs 1)
gpt=(gpt-tiny --data "$text" --set width=32 --set layers=2 --set heads=2 --set length=16 --set dropout=0.1 --batch 26
    --epochs 1)
same "cnn with batch norm, 12 shares" "1 2 3 4" "${cnn[@]}" --shares 12
same "cnn, 4 shares, sgd, sharded" "2 4" "${cnn[@]}" --shares 4 --optimizer sgd --shard
same "lstm, 12 shares" "1 2 3 4" "${lstm[@]}" --shares 12
same "lstm, 6 shares, sharded" "2 3" "${lstm[@]}" --shares 6 --shard
same "gpt with dropout, 12 shares" "1 2 3 4" "${gpt[@]}" --shares 12
same "gpt, 12 shares, sharded" "1 2 3 4" "${gpt[@]}" --shares 12 --shard
same "gpt, 4 shares, two threads" "2 4" "${gpt[@]}" --shares 4 --threads 2
same "one row a batch, 12 shares" "3" "$folder/line.net" --data "$folder/x.npy,$folder/y.npy" --batch 1 --epochs 1 --shares 12

# A budget that the shares' net only keeps to by computing parts of it twice, or rows in parts.
plan_bytes() { train 0 "$1" "${@:2}" && tail -n 1 "$folder/out" | sed -E 's/.*"bytes": ([0-9]+).*/\1/'; }
budget=$(($(plan_bytes budget "${gpt[@]}" --shares 2) * 3 / 4))
same "gpt, 2 shares, $budget bytes" "1 2" "${gpt[@]}" --shares 2 --budget "$budget"

# ---- Another number of ranks ----

# resumed NAME BEFORE AFTER ARGS...: half by so many ranks, the rest by others.
resumed() {
    local name=$1 before=$2 after=$3 way=resumed-$2-$3
    shift 3
    told "$name: $after ranks continue what $before began" resumed_alike "$before" "$after" "$way" "$@"
}

resumed_alike() {
    local before=$1 after=$2 way=$3
    shift 3
    rm -rf "${folder:?}/$way" "$folder/whole"
    train 0 whole "$@" --epochs 4 || return
    # stops as a signal would have stopped it: after some step, in the middle of an epoch
    interrupted_train "$before" "$way" "$@" --epochs 4 --checkpoint-steps 0 || return
    train "$after" "$way" "$@" --epochs 4 --resume || return
    [ "$(sum_of "$way")" = "$(sum_of whole)" ]
}

# A rank of the job is told to stop after a few steps, and all of them do.
interrupted_train() {
    local ranks=$1 checkpoint=$2 job line
    shift 2
    mkfifo "$folder/pipe"
    timeout -k 5 "$most_seconds" "$launcher" -np "$ranks" "$mica" train "$@" --checkpoint "$folder/$checkpoint" --quiet --json \
        >"$folder/pipe" 2>"$folder/err" </dev/null &
    job=$!
    while read -r line; do
        case $line in
        *'"step": 3,'*) kill -INT "$(ranks_in "$folder/$checkpoint" | shuf -n 1)" ;;
        esac
    done <"$folder/pipe"
    rm "$folder/pipe"
    wait "$job"
    [ $? -eq 130 ] && says "interrupted after step"
}

small=(resnet-small --data digits:200 --validation 0 --batch 24 --shares 12)
resumed "cnn" 4 3 "${small[@]}"
resumed "cnn" 1 4 "${small[@]}"
resumed "cnn, sharded" 3 2 "${small[@]}" --shard

# ---- As fast as MPI adds ----

learns() {
    train "$1" "fast-$1" lenet --data digits:1000 --epochs 3 "${@:2}" && done_says '"accuracy": 0\.[6-9].*"heap_calls": (0|null),'
}
told "lenet learns without --shares, 2 ranks" learns 2
told "lenet learns without --shares, sharded, 3 ranks" learns 3 --shard
told "of three ranks, one tells" test "$(grep -c '"event": "done"' "$folder/out")" -eq 1
