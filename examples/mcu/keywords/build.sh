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

# As C, for this processor: bytes, whose ranges are those of the data; the last layer stays float and learns.
case $board in
mps2-an386) target='m4' ;;
lm3s6965evb) target=m3 ;;
mps3-an547) target=m55 ;;
*) target=rv32 ;;
esac
"$mica" export "$out/trained" -o "$out" --name keywords --target "$target" --int8 --data "$out/x.npy,$out/y.npy" \
    --train --freeze conv --freeze depthwise --freeze summary

../../../mcu/build "$board" "$out/keywords.elf" main.c microphone.c features.c "$out/keywords.c" "-I$out" -I.
