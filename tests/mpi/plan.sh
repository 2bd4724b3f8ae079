#!/usr/bin/env bash
# What mica plan --ranks says a rank takes is what mica train takes under mpirun, for several nets and numbers of ranks.
# plan.sh MICA. Without mpirun, or for a build without MPI, there is nothing to check.
set -euo pipefail
mica=$1
if ! command -v mpirun >/dev/null || [ ! -e "$(dirname "$mica")"/libmica_mpi.so ]; then
    echo "skipped: no mpirun, or a build without MPI"
    exit 0
fi
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_btl_base_warn_component_unused=0 OMPI_MCA_mpi_yield_when_idle=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for ((i = 0; i < 40; i++)); do
    echo "Line $i: the quick brown fox jumps over the lazy dog, and back again."
done >"$folder/text.txt"
failures=0
checked=0

# number NAME FILE: that of a JSON object, wherever it is.
number() { grep -o "\"$1\": [0-9]*" "$2" | tail -n 1 | grep -o '[0-9]*$'; }

# agree RANKS NET DATA BATCH [OPTIONS...]: options for the plan alone are in $only_plan.
only_plan=()
agree() {
    local ranks=$1 net=$2 data=$3 batch=$4
    shift 4
    "$mica" plan "$net" --train --threads 1 --ranks "$ranks" --batch "$batch" --json "$@" "${only_plan[@]}" |
        grep -o '"ranks": {[^}]*}' >"$folder/plan"
    timeout 120 mpirun --oversubscribe -np "$ranks" "$mica" train "$net" --data "$data" --threads 1 --epochs 1 \
        --batch "$batch" --checkpoint "$folder/run" --overwrite --json -q "$@" | grep '"event": "done"' >"$folder/train"
    checked=$((checked + 1))
    [ "$(number bytes "$folder/plan")" -eq "$(number bytes "$folder/train")" ] && return
    failures=$((failures + 1))
    echo "$ranks ranks, $net, batch $batch $*: planned $(number bytes "$folder/plan"), took $(number bytes "$folder/train")"
}

for ranks in 2 3 4; do
    agree "$ranks" lenet digits:100 32
    agree "$ranks" lenet digits:100 32 --shares 12
    agree "$ranks" lenet digits:100 13 --shares 12 --shard
    agree "$ranks" resnet-small digits:60 8 --shard
done
agree 2 lenet digits:100 32 --shares 14 --budget 1900K
agree 3 resnet-small digits:60 9 --shares 9 --optimizer adagrad
vocabulary=$(fold -w 1 "$folder/text.txt" | sort -u | wc -l) # lines end, too: fold keeps none of them
only_plan=(--set "vocabulary=$((vocabulary + 1))")
agree 2 gpt-tiny "$folder/text.txt" 16
agree 2 gpt-tiny "$folder/text.txt" 16 --shares 6 --shard
agree 4 gpt-tiny "$folder/text.txt" 16 --shares 4 --shard
echo "$checked checked, $failures differ"
[ "$failures" -eq 0 ]
