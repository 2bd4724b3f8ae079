#!/usr/bin/env bash
# build.sh FOLDER BOARD: from the net file to a program for the board, FOLDER/pendulum.elf
set -euo pipefail
out=$1 board=$2
cd "$(dirname "$0")"
mica=${MICA_TOOL:-../../../build/mica}
mkdir -p "$out"

# Nothing is trained here: the net starts from random weights, on the device.
"$mica" export pendulum.net -o "$out" --name pendulum --train

../../../mcu/build "$board" "$out/pendulum.elf" main.c "$out/pendulum.c" "-I$out"
