# ./dev demo: builds the command, and trains a net with it before the visitor's eyes.
# shellcheck shell=bash

# Shows a command, then runs it.
show() {
    printf '\n$ %s\n' "$*"
    "$@"
}

demo() {
    local folder=build/demo
    need build
    say "building build/mica"
    configure build && compile build mica-tool
    mkdir -p "$folder"

    say "a net, and all the memory that training it will take: known before a byte of it is taken"
    show build/mica plan lenet --train --quiet

    say "it learns to read digits that mica draws itself, in that memory; no step may allocate"
    show build/mica train lenet --data digits --epochs 4 --checkpoint "$folder/lenet" --overwrite \
        --report "$folder/report.html"

    say "digits that it has never seen, and what it takes them for"
    show build/mica eval "$folder/lenet" --show 10

    echo
    echo "The report, with the curves, the worst mistakes and the memory plan, is a page for any browser:"
    echo "  file://$PWD/$folder/report.html"
    echo "Next: build/mica help, examples/ for C, docs/ for the rest."
}
