# ./dev fuzz: every target of tests/fuzz with libFuzzer and the sanitizers. What a target finds is kept as
# build/fuzz/NAME/crash-*; run build/variant/fuzz/tests/fuzz/NAME on it to see it again. Then the mica command on files
# that were changed at random (tests/fuzz/command.py): what that finds is in build/fuzz/command/found.
# shellcheck shell=bash

run_fuzz() {
    local seconds=$1 target name corpus seeds
    [[ $seconds =~ ^[0-9]+$ ]] || die "fuzz takes a number of seconds, not \"$seconds\""
    need build clang
    say "fuzz"
    configure build/variant/fuzz -DCMAKE_C_COMPILER=clang -DMICA_FUZZ=ON -DMICA_TOOL=OFF -DMICA_TESTS=OFF \
        -DMICA_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG='-O1 -g1'
    compile build/variant/fuzz
    for target in tests/fuzz/*.c; do
        name=$(basename "$target" .c)
        corpus=build/fuzz/$name
        mkdir -p "$corpus/corpus"
        seeds=()
        [ ! -d "tests/fuzz/seeds/$name" ] || seeds=("tests/fuzz/seeds/$name")
        check "$name, $seconds s" "build/variant/fuzz/tests/fuzz/$name" -max_total_time="$seconds" \
            -max_len=512 -artifact_prefix="$corpus/" "$corpus/corpus" "${seeds[@]}"
    done
    configure build/variant/asan -DMICA_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_C_FLAGS_DEBUG='-O1 -g1'
    compile build/variant/asan mica-tool
    mkdir -p build/fuzz/command
    check "the command on changed files, $seconds s" env -C build/fuzz/command \
        python3 -B "$PWD/tests/fuzz/command.py" "$PWD/build/variant/asan/mica" "$seconds"
    finish
}
