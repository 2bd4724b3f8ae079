# ./dev demo: builds the command and trains a net with it.
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

    say "a net and all the memory that training needs, before any of it is allocated"
    show build/mica plan lenet --train --quiet

    say "training it to read synthetic digits, in that memory; no step allocates"
    show build/mica train lenet --data digits --epochs 4 --checkpoint "$folder/lenet" --overwrite \
        --report "$folder/report.html"

    say "predictions on digits it has never seen"
    show build/mica eval "$folder/lenet" --show 10

    echo
    echo "The report, with learning curves, the worst mistakes and the memory plan, opens in any browser:"
    echo "  file://$PWD/$folder/report.html"
    echo "Next: build/mica help, examples/ for C, docs/ for the rest."
}
