# ./dev demo: builds, and shows what there is.
# shellcheck shell=bash

demo() {
    need build
    say "building"
    configure build && compile build
    say "the program of the README, examples/hello.c"
    build/examples/hello
    say "a net that learns XOR, and how many bytes that takes: examples/xor.c"
    build/examples/xor
    say "a convolutional net that learns to tell signals apart, with validation: examples/signal.c"
    build/examples/signal
    say "a small GPT that learns a paragraph and continues it: examples/gpt.c"
    build/examples/gpt
    say "some of what build/mica bench measures: time, share of this machine's peak, heap calls"
    build/mica bench --quick --threads 1,2 add_1m gelu_4096x512_fwd sgemm_512 sgemm_1024
    echo
    echo "build/mica bench measures the rest; build/mica ops lists the operations."
}
