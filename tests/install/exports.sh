#!/usr/bin/env bash
# The shared library exports what the public headers declare, all of it and nothing else, and what exports.list has: a
# name that comes or goes is seen in a change of that list. So does libmica_mpi, where it was built beside the library,
# with mica/mpi.h and exports_mpi.list. exports.sh LIBRARY INCLUDE_DIRECTORY [--renew]: with --renew, the lists are
# written anew.
set -euo pipefail
export LC_ALL=C # one order everywhere
lists=$(dirname "$0")

# compare LIBRARY LIST [--renew], with the headers on standard input
compare() {
    local exported declared difference
    exported=$(nm -D --defined-only "$1" | awk '{ print $3 }' | sort)
    declared=$(tr '\n' ' ' | grep -oE 'MICA_API [^;{(]*\(' | grep -oE '\bmica_[a-z0-9_]+\($' | tr -d '(' | sort -u)
    difference=$(diff <(echo "$declared") <(echo "$exported") || true)
    if [ -n "$difference" ]; then
        echo "$1: declared but not exported (<), exported but not declared (>):"
        grep '^[<>]' <<<"$difference"
        return 1
    fi
    if [ "${3-}" = --renew ]; then
        echo "$exported" >"$2"
        return
    fi
    difference=$(diff "$2" <(echo "$exported") || true)
    if [ -n "$difference" ]; then
        echo "$1: no longer exported (<), new (>):"
        grep '^[<>]' <<<"$difference"
        echo "If that is meant, renew the lists: tests/install/exports.sh build/libmica.so include --renew"
        return 1
    fi
}

find "$2" -name '*.h' ! -path '*/mica/mpi.h' -exec cat {} + | compare "$1" "$lists/exports.list" "${3-}"
with_mpi=$(dirname "$1")/libmica_mpi.so
[ ! -e "$with_mpi" ] || compare "$with_mpi" "$lists/exports_mpi.list" "${3-}" <"$2/mica/mpi.h"
