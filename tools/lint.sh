# ./dev lint: what is wrong before anything runs. One check a line, one sum at the end.
# shellcheck shell=bash

most_lines=600 # of a file of the core
# What a program with strict flags of its own may be compiled with.
rules='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror -fsyntax-only'

c_files() { git ls-files '*.c' '*.h' '*.cpp'; }
scripts() { git ls-files '*.sh' '*.bash' dev .ci/run mpi/mica-mpirun; }
jobs_here=$(nproc)

formatted() { c_files | xargs clang-format --dry-run -Werror; }

# A configured folder is enough: it says how each file is compiled. One vector set stands for all; with assertions, which
# say what cannot be.
tidy() {
    local isa=scalar
    [ "$(uname -m)" != x86_64 ] || isa=avx2
    configure build/variant/tidy -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=clang -DMICA_ONLY_ISAS=$isa || return 1
    git ls-files 'src/*.c' 'cli/*.c' 'bench/*.c' 'host/*.c' 'export/*.c' 'mpi/*.c' 'examples/*.c' 'tests/*.c' \
        ':!export/kernels' ':!tests/fuzz' ':!tests/install' ':!*/mcu/*' | # what is for other processors: tests/mcu compiles it
        xargs -P "$jobs_here" -n 1 clang-tidy --quiet -p build/variant/tidy 2>/dev/null
}

# Left out: what it says of uninitialised variables and null pointers, since it does not see that a function pointer
# fills an array, nor that a flag says which pointers there are (the sanitizers do); and its trouble with the address
# of a compound literal among arguments, which both compilers can read. And export/kernels, whose hexadecimal floats it
# takes for 0.
cpp_check() {
    local folder folders=(src include)
    for folder in cli bench host export mpi; do
        [ ! -d $folder ] || folders+=("$folder")
    done
    mkdir -p build/variant/cppcheck
    cppcheck --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 --quiet \
        --cppcheck-build-dir=build/variant/cppcheck -j "$jobs_here" \
        --suppress=missingIncludeSystem --suppress=uninitvar --suppress=legacyUninitvar \
        --suppress=nullPointerArithmetic --suppress=internalAstError -i export/kernels -i bench/mcu -Iinclude -Isrc \
        -DMICA_WITH_SCALAR "${folders[@]}"
}

# Every public header alone, for both languages and both compilers.
headers_alone() {
    local header status=0
    for header in $(git ls-files include); do
        # shellcheck disable=SC2086
        for compiler in gcc clang; do
            $compiler -x c -std=c11 $rules -Iinclude "$header" || status=1
            $compiler -x c++ -std=c++17 -Wold-style-cast $rules -Iinclude "$header" || status=1
        done
    done
    return $status
}

warnings() { configure "$@" && compile "$1"; }

short_files() {
    ! git ls-files include src export | xargs wc -l | awk -v most="$most_lines" '$2 != "total" && $1 > most' | grep .
}

# Intrinsics stay in the vector headers, so that a new processor is one new file.
intrinsics_in_place() {
    ! git grep -nE '#include +<([a-z0-9]*intrin|arm_neon|arm_sve|simde/.*)\.h>' -- \
        include src cli bench host export mpi ':!src/kernel/vec_*.h'
}

no_loose_ends() { ! git grep -nE '\b(TODO|FIXME|XXX)\b' -- ':!tools/lint.sh'; }

# clang-format leaves comments alone, and strings (of messages) are not cut.
no_long_lines() { ! git grep -nE '^[^"]{121,}$' -- '*.c' '*.h'; }

no_trailing_blanks() { ! git grep -nIE '[[:space:]]+$' -- ':!*.md' ':!tests/data'; }

# shellcheck disable=SC2046
shell_checked() { shellcheck --external-sources $(scripts); }

# shellcheck source=tools/layers.sh
source tools/layers.sh

run_lint() {
    need build clang lint
    say "lint"
    check "clang-format" formatted
    check "headers alone: C11 and C++17, gcc and clang" headers_alone
    check "no file of the core over $most_lines lines" short_files
    check "intrinsics only in src/kernel/vec_*.h" intrinsics_in_place
    check "no TODO, FIXME, XXX" no_loose_ends
    check "no line over 120 columns" no_long_lines
    check "no blanks at line ends" no_trailing_blanks
    check "shellcheck" shell_checked
    check "gcc, warnings as errors" warnings build
    check "each part uses only those above it" layers_kept # reads what was just built
    check "the parts are those of docs/architecture.md" layers_documented
    # Not optimised: clang warns all the same, in half the time.
    check "clang, warnings as errors" warnings build/variant/warnings -DCMAKE_C_COMPILER=clang \
        -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0
    check "cppcheck" cpp_check
    check "clang-tidy" tidy
    finish
}
