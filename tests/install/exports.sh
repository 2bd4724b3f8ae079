#!/usr/bin/env bash
# The shared library exports what the public headers declare: all of it, and nothing else.
# exports.sh LIBRARY INCLUDE_DIRECTORY
set -euo pipefail
exported=$(nm -D --defined-only "$1" | awk '{ print $3 }' | sort)
declared=$(find "$2" -name '*.h' -exec cat {} + | tr '\n' ' ' | grep -oE 'MICA_API [^;{(]*\(' |
    grep -oE '\bmica_[a-z0-9_]+\($' | tr -d '(' | sort -u)
difference=$(diff <(echo "$declared") <(echo "$exported") || true)
if [ -n "$difference" ]; then
    echo "declared but not exported (<), exported but not declared (>):"
    grep '^[<>]' <<<"$difference"
    exit 1
fi
