# ./dev test --mcu and ./dev bench --mcu: microcontrollers, emulated by QEMU.
# shellcheck shell=bash

# test_mcu MICA FOLDER [FILTER...]: the last line is the sum.
test_mcu() {
    /usr/bin/python3 -B tests/mcu/check.py "$@"
}

# ./dev bench --mcu [--json FILE] [--boards LIST] [--no-peers]
bench_mcu() {
    need build mcu
    configure build && compile build mica-tool mica_static
    /usr/bin/python3 -B bench/mcu/bench.py build/mica build/mcu/bench "$@"
}
