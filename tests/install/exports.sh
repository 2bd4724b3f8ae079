#!/usr/bin/env bash
# The shared library exports what the public headers declare, all of it and nothing else, and what exports.list has: a
# name that comes or goes is seen in a change of that list. exports.sh LIBRARY INCLUDE_DIRECTORY [--renew]: with
# --renew, the list is written anew.
set -euo pipefail
export LC_ALL=C # one order everywhere
list=$(dirname "$0")/exports.list

exported=$(nm -D --defined-only "$1" | awk '{ print $3 }' | sort)
declared=$(find "$2" -name '*.h' -exec cat {} + | tr '\n' ' ' | grep -oE 'MICA_API [^;{(]*\(' |
    grep -oE '\bmica_[a-z0-9_]+\($' | tr -d '(' | sort -u)
difference=$(diff <(echo "$declared") <(echo "$exported") || true)
if [ -n "$difference" ]; then
    echo "declared but not exported (<), exported but not declared (>):"
    grep '^[<>]' <<<"$difference"
    exit 1
fi

if [ "${3-}" = --renew ]; then
    echo "$exported" >"$list"
    exit
fi
difference=$(diff "$list" <(echo "$exported") || true)
if [ -n "$difference" ]; then
    echo "no longer exported (<), new (>):"
    grep '^[<>]' <<<"$difference"
    echo "If that is meant, renew the list: tests/install/exports.sh build/libmica.so include --renew"
    exit 1
fi
