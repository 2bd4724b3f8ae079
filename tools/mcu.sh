# ./dev test --mcu and ./dev bench --mcu: microcontrollers, emulated by QEMU.
# shellcheck shell=bash

emlearn=0.23.2 # a peer: its package on PyPI has C headers

# test_mcu MICA FOLDER [FILTER...]: the last line is the sum.
test_mcu() {
    /usr/bin/python3 -B tests/mcu/check.py "$@"
}

bench_mcu_help() {
    cat <<'TEXT'
./dev bench --mcu [--json FILE] [--boards LIST] [--no-peers]

  --json FILE      also write all figures to FILE
  --boards LIST    of mps2-an386, lm3s6965evb, mps3-an547 and virt, separated by commas (all)
  --no-peers       exported nets alone

Exports nets, builds them with -O2 for each board, runs them under QEMU, and prints code, flash, RAM, stack, instructions
and modelled cycles: see docs/microcontrollers.md. Fetches emlearn from PyPI.
TEXT
}

# The headers of emlearn, in build/mcu/emlearn; without a network, a line that says so, and no such folder.
fetch_emlearn() {
    local folder=build/mcu/peers
    [ ! -d build/mcu/emlearn ] || return 0
    mkdir -p "$folder"
    [ -x "$folder/python/bin/python" ] || /usr/bin/python3 -m venv "$folder/python"
    "$folder/python/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --dest "$folder" "emlearn==$emlearn" >"$folder/pip.log" 2>&1 || {
        echo "emlearn cannot be fetched from PyPI ($folder/pip.log): its rows are left out" >&2
        return 0
    }
    /usr/bin/python3 -m zipfile -e "$folder"/emlearn-"$emlearn"-*.whl "$folder/unpacked"
    mv "$folder/unpacked/emlearn" build/mcu/emlearn
}

bench_mcu() {
    local peers=yes argument
    for argument in "$@"; do
        case $argument in
        -h | --help) bench_mcu_help && return ;;
        --no-peers) peers='' ;;
        esac
    done
    need build mcu
    configure build && compile build mica-tool mica_static
    if [ -n "$peers" ]; then
        need text # for python3-venv
        fetch_emlearn
    fi
    /usr/bin/python3 -B bench/mcu/bench.py build/mica build/mcu/bench "$@"
}
