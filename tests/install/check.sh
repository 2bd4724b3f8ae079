#!/usr/bin/env bash
# Installs a build into a prefix of its own, then uses it as somebody else would: a C and a C++ program that train
# XOR, through pkg-config (shared and static) and through find_package; the command, its manual pages and its
# completion; where libmica_mpi was built, a program and the command as ranks of a job. check.sh BUILD_DIRECTORY [PREFIX]: with a PREFIX, what is installed there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
xor=$root/examples/xor.c
work=$build/install-check
rm -rf "$work"
mkdir -p "$work"

if [ $# -ge 2 ]; then
    prefix=$(cd "$2" && pwd)
else
    prefix=$work/prefix
    cmake --install "$build" --prefix "$work/first" >/dev/null
    mv "$work/first" "$prefix" # what is installed can be moved
fi
PKG_CONFIG_PATH=$(dirname "$(find "$prefix/lib" -name mica.pc)")
libraries=$(dirname "$PKG_CONFIG_PATH")
export PKG_CONFIG_PATH LD_LIBRARY_PATH=$libraries

number() { sed -n "s/^#define MICA_VERSION_$1 //p" "$prefix/include/mica/base.h"; }
version=$(number MAJOR).$(number MINOR).$(number PATCH)
soname=libmica.so.$(if [ "$(number MAJOR)" = 0 ]; then echo "0.$(number MINOR)"; else number MAJOR; fi)
test -e "$libraries/$soname"
readelf -d "$libraries/libmica.so" | grep -q "SONAME.*\[$soname\]" || { echo "the soname is not $soname" && exit 1; }
[ "$(pkg-config --modversion mica)" = "$version" ] || { echo "pkg-config does not say $version" && exit 1; }
read -ra flags <<<"$(pkg-config --cflags --libs mica)"
gcc -std=c11 -Wall -Wextra -Wpedantic -Werror "$xor" "${flags[@]}" -o "$work/use-c"
g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror "$here/use.cpp" "${flags[@]}" -o "$work/use-cpp"
"$work/use-c"
"$work/use-cpp"

read -ra flags <<<"$(pkg-config --static --cflags --libs mica | sed 's/-lmica/-l:libmica.a/')"
gcc -std=c11 "$xor" "${flags[@]}" -o "$work/use-static"
env -u LD_LIBRARY_PATH "$work/use-static"

ranks=
programs=(use-c use-cpp use-static)
if [ -e "$libraries/libmica_mpi.so" ]; then
    ranks=$root/examples/ranks.c
    programs+=(use-ranks)
    read -ra flags <<<"$(pkg-config --cflags --libs mica_mpi)"
    gcc -std=c11 -Wall -Wextra -Wpedantic -Werror "$ranks" "${flags[@]}" -o "$work/use-ranks"
    "$work/use-ranks"
fi

cmake -S "$here" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DXOR="$xor" -DRANKS="$ranks" >/dev/null
ninja -C "$work/build" --quiet
for program in "${programs[@]}"; do
    env -u LD_LIBRARY_PATH "$work/build/$program"
done

# ---- The command ----

mica=$prefix/bin/mica
"$mica" --version | grep "^mica $version,"
"$mica" help --table >"$work/table"
# Every verb has a page, which groff reads without a warning and which names every option.
read_page() {
    local warnings
    warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$1" 2>&1 >/dev/null)
    [ -z "$warnings" ] || { echo "$1: $warnings" && exit 1; }
    LC_ALL=C.UTF-8 MANWIDTH=200 man -l "$1" 2>/dev/null | col -bx >"$work/page"
}
while IFS=$'\x1f' read -r kind verb name _; do
    page=$(find "$prefix/share/man/man1" -name "mica-$verb.1*")
    [ -n "$page" ] || { echo "there is no page for $verb" && exit 1; }
    case $kind in
    verb) read_page "$page" ;;
    option) grep -qE -- "^ +(-., )?$name( |$)" "$work/page" || { echo "$page does not say $name" && exit 1; } ;;
    esac
done < <(grep -E '^(verb|option)' "$work/table" | tr '\t' '\037')
if [ -e "$prefix/bin/mica-mpirun" ]; then
    "$prefix/bin/mica-mpirun" --help | grep -q '^usage: mica-mpirun'
    read_page "$(find "$prefix/share/man/man1" -name "mica-mpirun.1*")"
    grep -q -- '--tries' "$work/page"
fi
"$root/tests/cli/completion.sh" "$mica" "$prefix/share/bash-completion/completions/mica"

# As ranks, for which it finds libmica_mpi by itself.
if [ -n "$ranks" ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    env -u LD_LIBRARY_PATH timeout 120 mpirun --oversubscribe -np 2 "$mica" train lenet --data digits:200 --epochs 1 \
        --shares 2 --checkpoint "$work/ranks" --quiet | grep ' for each rank, '
fi
