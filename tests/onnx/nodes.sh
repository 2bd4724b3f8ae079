#!/usr/bin/env bash
# ONNX's own tests of its operators: none fails, at least so many pass, and the rest says why it does not.
# nodes.sh MICA FOLDER LEAST: LEAST is a number, or a share of all: 82%.
set -uo pipefail
mica=$1 folder=$2 least=$3
log=$(mktemp)
trap 'rm -f "$log"' EXIT

"$mica" check "$folder" >"$log"
code=$?
sum=$(tail -n 1 "$log")
grep '^failed' "$log"
grep -E '^unsupported +[^ ]+: *$' "$log" && echo "no reason is given" && exit 1
echo "$folder: $sum"
[[ $sum =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ unsupported$ ]] || exit 1
all=$((BASH_REMATCH[1] + BASH_REMATCH[2] + BASH_REMATCH[3]))
case $least in *%) least=$(((all * ${least%\%} + 99) / 100)) ;; esac
[ "$code" -eq 0 ] && [ "${BASH_REMATCH[1]}" -ge "$least" ] && exit
echo "expected at least $least passed, and none failed"
exit 1
