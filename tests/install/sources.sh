#!/usr/bin/env bash
# Mica without installing it: its sources among those of a program, by one call of a compiler as in docs/install.md, and
# as a folder of another CMake project. sources.sh WORK
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
work=$(cd "$1" && pwd)

# What the document says, but for -O2: nobody waits for this.
command=$(sed -n 's/^    cc /cc /p' "$root/docs/install.md")
if [ "$(grep -c '^cc ' <<<"$command")" -ne 1 ]; then
    echo "docs/install.md should have one cc command"
    exit 1
fi
ln -sfn "$root" "$work/mica"
cp "$root/examples/xor.c" "$work/program.c"
(cd "$work" && bash -c "${command/-O2/-O0}" && ./program)

cat >"$work/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.18)
project(program LANGUAGES C)
add_subdirectory(mica EXCLUDE_FROM_ALL)
add_executable(with-folder program.c)
target_link_libraries(with-folder PRIVATE mica::mica_static)
TEXT
cmake -S "$work" -B "$work/build" -G Ninja -DMICA_ONLY_ISAS=scalar -DCMAKE_BUILD_TYPE=Debug >/dev/null
ninja -C "$work/build" --quiet
"$work/build/with-folder"
[ ! -e "$work/build/mica/tests" ] || { echo "the tests of Mica are part of another project" && exit 1; }
