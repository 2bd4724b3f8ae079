#!/usr/bin/env bash
# The list of operators in docs/onnx.md is that of the program. list.sh MICA [--renew]: with that it is written anew.
set -euo pipefail
mica=$1
page=$(dirname "${BASH_SOURCE[0]}")/../../docs/onnx.md
new=$(mktemp)
trap 'rm -f "$new"' EXIT
"$mica" ops --onnx | awk '
    NR == FNR { list = list $0 "\n"; next }
    /^<!-- mica ops --onnx -->$/ { print; printf "```\n%s```\n", list; inside = 1; next }
    /^<!-- end -->$/ { inside = 0 }
    !inside' - "$page" >"$new"
if [ "${2-}" = --renew ]; then
    cat "$new" >"$page"
else
    diff "$page" "$new" || {
        echo "docs/onnx.md differs from mica ops --onnx: tests/onnx/list.sh build/mica --renew"
        exit 1
    }
fi
