#!/usr/bin/env bash
# Training under MPI. check.sh MICA [PART...]: parts are bits, faults, restart (all of them).
# MPIRUN chooses an MPI; MICA_KILLS says how many ranks are killed at random (30).
# shellcheck disable=SC2317 # the parts call what is here
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mica=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- bits faults restart
launcher=${MPIRUN:-mpirun}
most_seconds=120 # of one job: one that hangs is a failure, not a wait
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

if [ "$(id -u)" -eq 0 ]; then # Open MPI wants to be told that this is meant
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# More ranks than processors are fine here, and none is bound to one of them.
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none

finish() {
    echo "$passed passed, $failed failed, 0 skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}

if ! command -v "$launcher" >/dev/null; then
    echo "skip: there is no $launcher here (Debian: openmpi-bin)"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

# told NAME COMMAND...: one check. Where it fails, what the last job said is shown.
told() {
    local name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok   $name"
    else
        failed=$((failed + 1))
        [ ! -s "$folder/err" ] || head -n 30 "$folder/err" | sed 's/^/  /'
        echo "FAIL $name"
    fi
}

# mpi ARGS...: one job; leaves stdout and stderr in out and err, and its exit code in $code.
mpi() {
    timeout -k 5 "$most_seconds" "$launcher" "$@" >"$folder/out" 2>"$folder/err" </dev/null
    code=$?
}

# train RANKS CHECKPOINT ARGS...: 0 ranks is the command alone, without mpirun.
train() {
    local ranks=$1 checkpoint=$2
    shift 2
    local command=("$mica" train "$@" --checkpoint "$folder/$checkpoint" --quiet --json)
    if [ "$ranks" -gt 0 ]; then
        mpi -np "$ranks" "${command[@]}"
    else
        "${command[@]}" >"$folder/out" 2>"$folder/err"
        code=$?
    fi
    [ "$code" -eq 0 ]
}

sum_of() { sha256sum <"$folder/$1/checkpoint.safetensors"; }
steps_of() { grep '"event": "step"' "$1"; }
done_says() { tail -n 1 "$folder/out" | grep -qE "\"event\": \"done\".*$1"; }
says() { grep -qE -- "$1" "$folder/err"; }

# ranks_in FOLDER: processes of the job that trains there.
ranks_in() {
    local process
    for process in /proc/[0-9]*; do
        if [ "$process/exe" -ef "$mica" ] && grep -qsF -- "$1" "$process/cmdline"; then
            echo "${process#/proc/}"
        fi
    done
}

# ---- Data and nets ----

text=$folder/book.txt
for ((i = 0; i < 40; i++)); do
    echo "$i times the quick brown fox jumps over the lazy dog, and $((i * i)) times it does not."
done >"$text"
cat >"$folder/line.net" <<'TEXT'
input x [4]
dense 8
relu
dense 1 name=y
loss mse
TEXT

# Samples of four numbers, and a target each; one target is too large for the square of its error to be a number.
python3 - "$folder" <<'TEXT'
import random, struct, sys

def write(name, shape, numbers):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    header = header.encode().ljust(117) + b"\n"
    with open(sys.argv[1] + "/" + name, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        file.write(struct.pack("<%df" % len(numbers), *numbers))

r = random.Random(1)
count = 64
write("x.npy", (count, 4), [r.random() for _ in range(4 * count)])
targets = [r.random() for _ in range(count)]
write("y.npy", (count, 1), targets)
targets[20] = 3e38
write("large.npy", (count, 1), targets)
TEXT

for part in "$@"; do
    # shellcheck source=tests/mpi/part_bits.sh
    source "$here/part_$part.sh" || exit
done
finish
