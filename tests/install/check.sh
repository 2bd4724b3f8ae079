#!/usr/bin/env bash
# Installs a build into a prefix of its own, then compiles and runs a C and a C++ program against it: through
# pkg-config (shared and static) and through find_package. check.sh BUILD_DIRECTORY
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
work=$build/install-check
rm -rf "$work"
mkdir -p "$work"

cmake --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix" # what is installed can be moved
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name mica.pc)")
libraries=$(dirname "$PKG_CONFIG_PATH")
export PKG_CONFIG_PATH LD_LIBRARY_PATH=$libraries

test -e "$libraries/libmica.so.0" # the soname
read -ra flags <<<"$(pkg-config --cflags --libs mica)"
gcc -std=c11 -Wall -Wextra -Werror "$here/use.c" "${flags[@]}" -o "$work/use-c"
g++ -std=c++17 -Wall -Wextra -Werror "$here/use.cpp" "${flags[@]}" -o "$work/use-cpp"
"$work/use-c"
"$work/use-cpp"

read -ra flags <<<"$(pkg-config --static --cflags --libs mica | sed 's/-lmica/-l:libmica.a/')"
gcc -std=c11 "$here/use.c" "${flags[@]}" -o "$work/use-static"
env -u LD_LIBRARY_PATH "$work/use-static"

cmake -S "$here" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
ninja -C "$work/build" --quiet
for program in use-c use-cpp use-static; do
    env -u LD_LIBRARY_PATH "$work/build/$program"
done
