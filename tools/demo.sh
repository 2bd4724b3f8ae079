# ./dev demo: builds, and shows what there is.
# shellcheck shell=bash

demo() {
    need build
    say "building"
    configure build && compile build
    say "the program of the README: examples/hello.c"
    build/examples/hello
    if [ -x build/mica ]; then
        say "build/mica bench: time, share of this machine's peak, heap calls"
        build/mica bench sgemm_512
    fi
}
