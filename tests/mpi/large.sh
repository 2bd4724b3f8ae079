#!/usr/bin/env bash
# Nets that people know, under two ranks: plan, a few steps, and what the ranks took of memory. large.sh MICA
# For each net, with and without --shard: bytes planned for a rank, the most that was resident on each rank beyond what
# a tiny net takes, and the time of a step. Fails where a rank takes much more than was planned. Rank 0 also writes the
# checkpoint; with --shard it collects the state of all ranks for that.
# Takes some minutes, 6 GiB of memory, and 2 GiB in $TMPDIR.
set -euo pipefail
mica=$(realpath "$1")
nets=$(dirname "${BASH_SOURCE[0]}")/../../examples/nets
if ! command -v mpirun >/dev/null || [ ! -e "$(dirname "$mica")"/libmica_mpi.so ]; then
    echo "skipped: no mpirun, or a build without MPI"
    exit 0
fi
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
slack=67108864 # bytes beyond the plan that data, code and MPI may take more of than with a tiny net

# Pictures of noise, and a text.
python3 - "$folder" <<'PYTHON'
import random, struct, sys
from array import array
random.seed(1)
def write(name, dtype, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (dtype, shape)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(sys.argv[1] + "/" + name, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data.tobytes())
count = 160
write("x.npy", "<f4", (count, 3, 32, 32), array("f", (random.gauss(0, 1) for _ in range(count * 3072))))
write("y.npy", "<i4", (count,), array("i", (i % 10 for i in range(count))))
with open(sys.argv[1] + "/text.txt", "w") as out:
    out.write("".join(random.choice("etaoin shrdlu\n") for _ in range(4500)))
PYTHON

# A program that runs another, and writes the most memory that this had resident.
cat >"$folder/resident.py" <<'PYTHON'
import os, resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
with open(sys.argv[1] + os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0")), "w") as out:
    out.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024))
sys.exit(code)
PYTHON

# number NAME FILE
number() { grep -o "\"$1\": [0-9.]*" "$2" | tail -n 1 | grep -o '[0-9.]*$'; }

# train ARGS...: under two ranks; leaves the last line in $folder/done and bytes in $folder/resident0 and 1.
train() {
    timeout 1200 mpirun --oversubscribe -np 2 python3 "$folder/resident.py" "$folder/resident" "$mica" train "$@" \
        --threads 1 --epochs 1 --shares 2 --checkpoint "$folder/run" --overwrite --json -q |
        grep '"event": "done"' >"$folder/done"
}

mib() { awk -v bytes="$1" 'BEGIN { printf "%.0f MiB", bytes / 1048576 }'; }

train mlp --data digits:100 --batch 4
tiny=$(sort -n "$folder"/resident[01] | tail -n 1)
echo "a tiny net: $(mib "$tiny") resident"
printf '%-10s %-8s %6s %12s %14s %14s %12s %10s %8s\n' net '' batch planned 'rank 0' 'rank 1' 'on the wire' step heap
failures=0

# measure NET BATCH DATA [OPTIONS...]
measure() {
    local net=$1 batch=$2 data=$3 planned step more
    shift 3
    "$mica" plan "$nets/$net.net" --train --threads 1 --ranks 2 --shares 2 --batch "$batch" --json "$@" |
        grep -o '"ranks": {[^}]*}' >"$folder/plan"
    train "$nets/$net.net" --data "$data" --batch "$batch" "$@"
    planned=$(number bytes "$folder/plan")
    step=$(awk -v s="$(number seconds "$folder/done")" -v n="$(number counted_steps "$folder/done")" 'BEGIN { printf "%.2f s", s / n }')
    more=("$(($(cat "$folder/resident0") - tiny))" "$(($(cat "$folder/resident1") - tiny))")
    printf '%-10s %-8s %6d %12s %14s %14s %12s %10s %8s\n' "$net" "${*#--}" "$batch" "$(mib "$planned")" \
        "$(mib "${more[0]}")" "$(mib "${more[1]}")" "$(mib "$(number sent "$folder/plan")")" "$step" "$(number heap_calls "$folder/done")"
    if [ "$planned" -ne "$(number bytes "$folder/done")" ] || [ "${more[1]}" -gt $((planned + slack)) ] ||
        [ "$(number heap_calls "$folder/done")" -ne 0 ]; then
        echo "  planned $planned, taken $(number bytes "$folder/done"), resident ${more[1]}"
        failures=$((failures + 1))
    fi
}

measure resnet18 32 "$folder/x.npy,$folder/y.npy"
measure resnet18 32 "$folder/x.npy,$folder/y.npy" --shard
measure gpt2 4 "$folder/text.txt"
measure gpt2 4 "$folder/text.txt" --shard
[ "$failures" -eq 0 ]
