#!/usr/bin/env bash
# build.sh FOLDER BOARD: from made-up words to a program for the board, FOLDER/keywords.elf
set -euo pipefail
out=$1 board=$2
cd "$(dirname "$0")"
mica=${MICA_TOOL:-../../../build/mica}
mkdir -p "$out"

# Words as the net sees them, and a net that tells them apart.
cc -O2 make_data.c microphone.c features.c -lm -o "$out/make_data"
"$out/make_data" "$out"
"$mica" train keywords.net --data "$out/x.npy,$out/y.npy" --epochs 15 --lr 0.005 --checkpoint "$out/trained" \
    --overwrite --quiet

# As C: the net in bytes, which the data gives its ranges; and the layer that learns.
"$mica" export "$out/trained" -o "$out" --name keywords --int8 --data "$out/x.npy,$out/y.npy"
"$mica" export teacher.net -o "$out" --name teacher --train

../../../mcu/build "$board" "$out/keywords.elf" main.c microphone.c features.c "$out/keywords.c" "$out/teacher.c" \
    "-I$out" -I.
