#!/usr/bin/env bash
# build.sh FOLDER BOARD: from readings of the sensor to a program for the board, FOLDER/vibration.elf
set -euo pipefail
out=$1 board=$2
cd "$(dirname "$0")"
mica=${MICA_TOOL:-../../../build/mica}
mkdir -p "$out"

# Readings of the states that are known, and a net that tells them apart.
cc -O2 make_data.c sensor.c -lm -o "$out/make_data"
"$out/make_data" "$out"
"$mica" train vibration.net --data "$out/x.npy,$out/y.npy" --epochs 20 --checkpoint "$out/trained" --overwrite --quiet

# As C: the convolutions stay as they are, in flash; the last layer goes on learning.
"$mica" export "$out/trained" -o "$out" --name vibration --train --freeze conv --freeze layer_norm

../../../mcu/build "$board" "$out/vibration.elf" main.c sensor.c "$out/vibration.c" "-I$out" -I.
