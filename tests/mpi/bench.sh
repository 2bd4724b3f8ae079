#!/usr/bin/env bash
# mica bench under mpirun: --ranks measures all ranks together, and everything else runs once. bench.sh MICA
set -euo pipefail
mica=$1
if ! command -v mpirun >/dev/null || [ ! -e "$(dirname "$mica")"/libmica_mpi.so ]; then
    echo "skipped: no mpirun, or a build without MPI"
    exit 0
fi
[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
    echo "$1"
    cat "$folder/out"
    exit 1
}

# job RANKS ARGS...
job() {
    local ranks=$1
    shift
    timeout 300 mpirun --oversubscribe -np "$ranks" "$mica" "$@" >"$folder/out" 2>&1
}

job 3 bench --ranks --quick --check --json "$folder/json" || fail "mica bench --ranks fails under three ranks"
python3 - "$folder/json" <<'PYTHON' || fail "the JSON is not as expected"
import json, sys
cases = json.load(open(sys.argv[1]))["cases"]
assert [(c["name"][:3], c["order"]) for c in cases] == [("gpt", "fixed"), ("gpt", "any"), ("cnn", "fixed"), ("cnn", "any")]
for c in cases:
    assert c["ranks"] == 3 and c["threads"] == 1 and c["allocs"] == 0, c
    assert 0 < c["step_ns_min"] <= c["step_ns"] and c["rows_per_second"] > 0, c
    assert c["exchange_ns"] > 0 and c["waited_ns"] > 0 and c["hidden"] <= 1, c
    assert c["sent"] > 0 and c["messages"] > 0, c
PYTHON
[ "$(grep -c '^gpt_step' "$folder/out")" -eq 2 ] || fail "rank 0 alone prints"
job 2 bench dense_32x256 --quick || fail "mica bench fails under two ranks"
[ "$(grep -c '^case ' "$folder/out")" -eq 1 ] || fail "other benchmarks run on one rank"
! job 2 bench --ranks sgemm || fail "--ranks has no such case"
[ "$(grep -c 'no case with' "$folder/out")" -eq 1 ] || fail "that is said once"
echo "mica bench --ranks behaves"
