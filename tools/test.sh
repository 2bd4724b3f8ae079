# ./dev test: suites of runs, and one sum at the end. Every build has its own folder under build/variant.
# shellcheck shell=bash

coverage_wanted=90 # percent of the lines of src/
# The node tests of ONNX 1.12, 932 of them: as many pass as passed before.
onnx_debian=/usr/share/libonnx-testdata/data/node
onnx_debian_least=875
filters=()
# For all but the native runs, which are for the results: percent of the random cases, and no exported C.
less=(MICA_TEST_EFFORT=15 MICA_TEST_COMPILED=no)

# Test programs run in the background, as many at once as there are processors, while the next one is built.
# run_program NAME COMMAND... starts one; its result is told, and counted, when it has ended.
running=() # "process id, log, name" in the order of starting

run_program() {
    local name=$1 log
    shift
    log=build/log-${name//[^a-z0-9]/-}.txt
    [ ${#running[@]} -lt "$(nproc)" ] || await_one
    (
        start=$SECONDS
        "$@" "${filters[@]}" >"$log" 2>&1 || true # its last line tells, and its time is wanted in any case
        echo $((SECONDS - start)) >"$log.seconds"
    ) &
    running+=("$! $log $name")
}

# Waits for the program that ends first, shows what did not pass, and adds its counts.
await_one() {
    local process log name sum entry others=()
    wait -n -p process "${running[@]%% *}" || true
    for entry in "${running[@]}"; do
        if [ "${entry%% *}" = "$process" ]; then
            read -r _ log name <<<"$entry"
        else
            others+=("$entry")
        fi
    done
    running=("${others[@]}")
    sum=$(tail -n 1 "$log")
    if [[ $sum =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
        skipped=$((skipped + BASH_REMATCH[3]))
        grep -B 25 '^FAIL' "$log" | grep -v '^ok' || true
        grep '^skip' "$log" | sed 's/^/  /' || true
    else
        failed=$((failed + 1))
        tail -n 60 "$log"
        sum="ended without a summary"
    fi
    printf '%-30s %s (%d s, %s)\n' "$name" "$sum" "$(cat "$log.seconds")" "$log"
}

await_all() {
    while [ ${#running[@]} -gt 0 ]; do
        await_one
    done
}

# A build that fails is one failed check, and its suite ends there. build_in DIRECTORY CMAKE...
build_in() {
    local before=$failed
    check "build $1" configure_and_compile "$@"
    [ "$failed" -eq "$before" ]
}

configure_and_compile() {
    mkdir -p "$1"
    configure "$@" && compile "$1"
}

# The instruction sets that this processor runs.
native_isas() {
    local isas=(scalar)
    case $(uname -m) in
    x86_64)
        ! grep -qw avx2 /proc/cpuinfo || isas+=(avx2)
        ! grep -qw avx512vl /proc/cpuinfo || isas+=(avx512)
        ;;
    aarch64) isas+=(neon) ;;
    esac
    echo "${isas[@]}"
}

# only_isas ISA...: builds these, and not kernels that the suite would never call.
only_isas() {
    local IFS=';'
    echo "-DMICA_ONLY_ISAS=$*"
}

suite_native() {
    say "native"
    need build test
    build_in build || return 0
    local isa isas example compiled=no effort=40 # percent: of scalar code much is run again below, as "plain"
    read -ra isas <<<"$(native_isas)"
    for isa in "${isas[@]}"; do
        [ "$isa" = scalar ] || effort=100
        # Exported C is compiled in one run; where nothing was named, the command's test has to do.
        if [ "$isa" = "${isas[-1]}" ] && { [ -z "$brief" ] || [ ${#filters[@]} -gt 0 ]; }; then
            compiled=yes
        fi
        run_program "native $isa" env MICA_TEST_EFFORT="${MICA_TEST_EFFORT-$effort}" MICA_TEST_COMPILED=$compiled \
            MICA_ISA="$isa" build/tests/mica-test
    done
    [ ${#filters[@]} -eq 0 ] || return 0
    for example in build/examples/*; do
        if [ -f "$example" ] && [ -x "$example" ]; then
            check "example $(basename "$example")" run_example "$example"
        fi
    done
    check "mica: usage, files, no heap call in any benchmark" tests/cli/check.sh build/mica full
    check "mica plan --ranks, against what training takes" tests/mpi/plan.sh build/mica
    check "mica bench --ranks" tests/mpi/bench.sh build/mica
    [ ! -x /usr/bin/python3 ] ||
        check "bench --peers, against made-up peers" /usr/bin/python3 -B tests/bench/test_peers.py build/mica
    [ ! -x /usr/bin/python3 ] ||
        check "bench --peers known, the same" /usr/bin/python3 -B tests/bench/test_known.py build/mica
    need onnx
    check "ONNX: the node tests of libonnx-testdata" tests/onnx/nodes.sh build/mica "$onnx_debian" "$onnx_debian_least"
    [ -z "${MICA_LONG-}" ] || check_newest_onnx
    [ -z "${MICA_LONG-}" ] || learn_fashion
    [ -z "${MICA_LONG-}" ] || check_int8
    [ -z "${MICA_LONG-}" ] || train_large
}

# Those of the newest ONNX, which PyPI has. The figures are told, too.
check_newest_onnx() {
    # shellcheck disable=SC2016 # for the other shell
    check "ONNX: the node tests of PyPI's onnx" bash -c 'set -eo pipefail; source tools/common.sh; source tools/onnx.sh; fetch_onnx_tests; tests/onnx/nodes.sh build/mica "$onnx_tests/node" 82% | tee build/log-onnx.txt'
    [ ! -e build/log-onnx.txt ] || tail -n 1 build/log-onnx.txt
}

# The figures are told, too.
train_large() {
    check "ResNet-18 and GPT-2 under two ranks, in planned memory" bash -c 'set -o pipefail; tests/mpi/large.sh build/mica | tee build/log-large.txt'
    cat build/log-large.txt
}

# The result is told, not only whether it is good enough.
learn_fashion() {
    need fashion
    check "lenet learns Fashion-MNIST to 91 %" bash -c 'set -o pipefail; tests/cli/fashion.sh build/mica build/fashion | tee build/log-fashion.txt'
    cat build/log-fashion.txt
}

# copied LOG COMMAND...: with what it says in a file, too.
copied() { "${@:2}" | tee "$1"; }

# int8_net NAME NET DATA EPOCHS QAT: trained here, quantized, and scored. The figures are told, too.
int8_net() {
    check "$1" copied "build/log-int8-$2.txt" tests/cli/int8.sh build/mica build/int8 "${@:2}"
    cat "build/log-int8-$2.txt"
}

# int8 against float: accuracy, size and, where the processor multiplies bytes, time. MNIST is no Debian package: it is
# where the other tests look for it.
check_int8() {
    local mnist=${MICA_DATA-../shared/data}/mnist
    need fashion test
    if [ -e "$mnist/train-images-idx3-ubyte.gz" ] || [ -e "$mnist/train-images-idx3-ubyte" ]; then
        int8_net "lenet on MNIST in int8: accuracy and size" lenet "$mnist" 3 1
    else
        echo "skip lenet on MNIST in int8: no MNIST in \$MICA_DATA or ../shared/data"
        skipped=$((skipped + 1))
    fi
    int8_net "resnet-small on Fashion-MNIST in int8: accuracy and size" resnet-small fashion-mnist 5 1
    await_all # times are not to be shared
    check "int8 is twice as fast as float, or more" copied build/log-int8-speed.txt build/mica bench --int8 --seconds 1
    cat build/log-int8-speed.txt
}

suite_int8() {
    say "int8 against float"
    need build
    build_in build || return 0
    check_int8
}

# mpirun asks root twice whether that is meant.
two_ranks() { OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 mpirun --oversubscribe -np 2 "$@"; }

# An example by itself; on a small set of digits, for the one that wants files; by one and by two ranks, which print the
# same, for the one that is made for it.
run_example() {
    local one two
    case $(basename "$1") in
    mnist) "$1" tests/data/digits 20 ;;
    ranks) one=$("$1") && two=$(two_ranks "$1") && diff <(echo "$one") <(echo "$two") ;;
    *) "$1" ;;
    esac
}

suite_package() {
    say "package"
    need build package
    build_in build || return 0
    check "exports: what the headers declare, and the list" tests/install/exports.sh build/libmica.so include
    check "install, and use by pkg-config and by find_package" tests/install/check.sh build
    check "sources among those of another program" tests/install/sources.sh build/sources-check
}

# Under Open MPI, with more ranks than there may be processors. A FILTER chooses parts: bits, faults, restart.
suite_mpi() {
    say "ranks, under MPI"
    need build test
    build_in build || return 0
    run_program "mpi" tests/mpi/check.sh build/mica
    [ ${#filters[@]} -eq 0 ] || return 0
    check "eval and run, under MPI" tests/mpi/inference.sh build/mica
}

# The same bits under another MPI, which has sums that are made once and started again.
suite_mpich() {
    say "ranks, under MPICH"
    need build test mpich
    local isas
    read -ra isas <<<"$(native_isas)"
    build_in build/variant/mpich "$(only_isas "${isas[@]}")" -DMICA_TESTS=OFF -DMPI_C_COMPILER=mpicc.mpich || return 0
    run_program "mpich" env MPIRUN=mpirun.mpich MICA_KILLS=8 tests/mpi/check.sh build/variant/mpich/mica
}

suite_browser() {
    say "pages, in Chromium"
    need build browser
    build_in build || return 0
    check "what pages draw is what mica plan --json says" env PYTHONDONTWRITEBYTECODE=1 python3 tests/browser/check.py build/mica
}

suite_plain() {
    say "plain C: no threads, no vectors"
    need build
    local plain=(-DMICA_THREADS=OFF -DMICA_ONLY_ISAS=scalar)
    build_in build/variant/plain "${plain[@]}" || return 0
    run_program "plain" env "${less[@]}" build/variant/plain/tests/mica-test
    check "the library's undefined symbols" tests/install/symbols.sh build/variant/plain/libmica.a
    build_in build/variant/nofiles "${plain[@]}" -DMICA_IO=OFF -DMICA_ZLIB=OFF -DMICA_JPEG=OFF -DMICA_TOOL=OFF -DMICA_TESTS=OFF || return 0
    check "the same without files" tests/install/symbols.sh build/variant/nofiles/libmica.a nofiles
}

# Asserts and frame pointers in, optimised just enough to be bearable: what the tests run, not what users do.
checked=(-DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG='-O1 -g1')

suite_sanitize() {
    say "sanitizers"
    need build test
    local isas
    read -ra isas <<<"$(native_isas)"
    local sanitized=("${checked[@]}" "$(only_isas "${isas[@]}")")
    if build_in build/variant/asan "${sanitized[@]}" -DMICA_SANITIZE=address,undefined; then
        run_program "address and undefined" env "${less[@]}" ASAN_OPTIONS=detect_stack_use_after_return=1 \
            UBSAN_OPTIONS=print_stacktrace=1 build/variant/asan/tests/mica-test
        [ ${#filters[@]} -gt 0 ] || [ -n "$brief" ] || check "mica, sanitized" tests/cli/check.sh build/variant/asan/mica
    fi
    if build_in build/variant/tsan "${sanitized[@]}" -DMICA_TOOL=OFF -DMICA_SANITIZE=thread; then
        local chosen=("${filters[@]}")
        [ ${#filters[@]} -gt 0 ] || filters=(parallel pool scope thread measure layers_ net_ lanes_ fit_ ranks_ large)
        run_program "thread" env MICA_TEST_EFFORT=8 TSAN_OPTIONS=halt_on_error=1 build/variant/tsan/tests/mica-test
        filters=("${chosen[@]}")
    fi
}

suite_clang() {
    say "clang"
    need build clang
    build_in build/variant/clang -DCMAKE_C_COMPILER=clang || return 0
    run_program "clang" env "${less[@]}" build/variant/clang/tests/mica-test
}

suite_cross() {
    say "64-bit ARM under qemu"
    need build cross
    build_in build/variant/aarch64 -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/aarch64-linux-gnu.cmake" || return 0
    run_program "aarch64 neon" qemu-aarch64 -L /usr/aarch64-linux-gnu -E MICA_TEST_EFFORT=3 -E MICA_TEST_COMPILED=no -E MICA_ISA=neon \
        build/variant/aarch64/tests/mica-test
}

# Boards under QEMU: the harness of mcu/, exported nets, the examples of examples/mcu/.
suite_mcu() {
    source tools/mcu.sh
    say "microcontrollers, under qemu"
    need build mcu
    build_in build || return 0
    run_program "mcu" test_mcu build/mica build/mcu
    [ ${#filters[@]} -gt 0 ] || check "the library itself on a Cortex-M4" tests/mcu/library/check.py mps2-an386
}

suite_emulate() {
    say "AVX-512, emulated"
    need build emulate
    build_in build/variant/avx512 "${checked[@]}" "$(only_isas scalar avx512)" -DMICA_AVX512_EMULATE=ON \
        -DMICA_TOOL=OFF || return 0
    run_program "emulated avx512" env "${less[@]}" MICA_ISA=avx512 build/variant/avx512/tests/mica-test
}

suite_coverage() {
    say "coverage"
    need build coverage
    local isas isa
    read -ra isas <<<"$(native_isas)" # lines for a processor that is not here cannot run
    # In counted code gcc 12 warns of loops that run for ever, which those without counters do not.
    build_in build/variant/coverage "$(only_isas "${isas[@]}")" -DMICA_TOOL=OFF -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_C_FLAGS_DEBUG='-O1 -g1 --coverage -fprofile-update=atomic -Wno-aggressive-loop-optimizations' || return 0
    find build/variant/coverage -name '*.gcda' -delete
    for isa in "${isas[@]}"; do
        run_program "coverage $isa" env MICA_TEST_EFFORT=5 MICA_TEST_COMPILED=no MICA_ISA="$isa" build/variant/coverage/tests/mica-test
    done
    await_all
    gcovr --root . --filter src/ --sort-uncovered --txt build/coverage.txt build/variant/coverage
    tail -n +5 build/coverage.txt | cut -c 1-110
    check "lines of src/ covered: at least $coverage_wanted %" covered_enough
}

covered_enough() {
    awk -v wanted="$coverage_wanted" '$1 == "TOTAL" { exit !($4 + 0 >= wanted) }' build/coverage.txt
}

run_tests() {
    local suites=() argument
    for argument in "$@"; do
        case $argument in
        --long) export MICA_LONG=1 ;;
        --all) suites+=(native package mpi mpich browser plain sanitize clang cross emulate mcu coverage) ;;
        --native | --int8 | --package | --mpi | --mpich | --browser | --plain | --sanitize | --clang | --cross | \
            --emulate | --mcu | --coverage)
            suites+=("${argument#--}")
            ;;
        --onnx)
            source tools/onnx.sh
            suites+=(onnx)
            ;;
        --text)
            source tools/text.sh
            suites+=(text)
            ;;
        -*) die "test has no option $argument (see ./dev help)" ;;
        *) filters+=("$argument") ;;
        esac
    done
    brief='' # without suites by name: what finds most within ten minutes
    if [ ${#suites[@]} -eq 0 ]; then
        brief=yes
        suites=(native)
        [ ${#filters[@]} -gt 0 ] || [ -n "${MICA_LONG-}" ] || suites+=(package plain sanitize)
    fi
    mkdir -p build
    trap 'kill $(jobs -p) 2>/dev/null || true' EXIT # nothing goes on after an interrupt
    local suite
    for suite in "${suites[@]}"; do
        "suite_$suite"
    done
    await_all
    finish
}
