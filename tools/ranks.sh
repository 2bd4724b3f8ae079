# ./dev bench --ranks: one process with two threads against two ranks with one thread each, on the GPT step of the same
# batch, by turns. Speed changes from second to second, so the ratio is that of the best steps of many rounds.
# shellcheck shell=bash

ranks_help() {
    cat <<'TEXT'
./dev bench --ranks [--rounds N] [--seconds S]

  --rounds N     turns of both (10)
  --seconds S    measure each for S seconds a turn (1)

Prints the throughput of two ranks with one thread each as a share of that of one rank with two threads.
TEXT
}

# number NAME ORDER FILE: of the case that sums in this order.
number() {
    grep "\"order\": \"$2\"" "$3" | sed -n "s/.*\"$1\": \([-0-9.]*\).*/\1/p"
}

# least A B
least() { awk -v a="$1" -v b="$2" 'BEGIN { print a == "" || b < a ? b : a }'; }

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", a / b }'; }

ms() { awk -v ns="$1" 'BEGIN { printf "%.2f ms", ns / 1e6 }'; }

run_ranks() {
    local rounds=10 seconds=1 case=gpt_step_16x64_d128_h4_l4 order
    while [ $# -gt 0 ]; do
        case $1 in
        --ranks) ;;
        --rounds) rounds=$2 && shift ;;
        --seconds) seconds=$2 && shift ;;
        -h | --help) ranks_help && exit ;;
        *) ranks_help >&2 && die "bench --ranks: unexpected $1" ;;
        esac
        shift
    done
    need build
    configure build && compile build
    [ "$(nproc)" -ge 2 ] || die "bench --ranks: two free processors are needed"
    [ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

    local folder measure=(build/mica bench "$case" --ranks --seconds "$seconds" --json)
    folder=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$folder'" EXIT
    local one='' round
    declare -A two=() hidden=()
    printf '%-6s %22s %24s %24s\n' round '1 rank, 2 threads' '2 ranks, fixed order' '2 ranks, any order'
    for ((round = 1; round <= rounds; round++)); do
        "${measure[@]}" "$folder/one" --threads 2 >/dev/null
        timeout 600 mpirun --bind-to core -np 2 "${measure[@]}" "$folder/two" --threads 1 >/dev/null
        local now_one now_two line
        now_one=$(number step_ns_min fixed "$folder/one")
        one=$(least "$one" "$now_one")
        printf -v line '%-6d %22s' "$round" "$(ms "$now_one")"
        for order in fixed any; do
            now_two=$(number step_ns_min "$order" "$folder/two")
            two[$order]=$(least "${two[$order]-}" "$now_two")
            [ "${two[$order]}" != "$now_two" ] || hidden[$order]=$(number hidden "$order" "$folder/two")
            line+=$(printf ' %12s (%s x)' "$(ms "$now_two")" "$(ratio "$now_one" "$now_two")")
        done
        echo "$line"
    done
    printf '%-6s %22s' best "$(ms "$one")"
    for order in fixed any; do
        printf ' %12s (%s x)' "$(ms "${two[$order]}")" "$(ratio "$one" "${two[$order]}")"
    done
    echo
    for order in fixed any; do
        awk -v order="$order" -v hidden="${hidden[$order]}" \
            'BEGIN { printf "hidden behind backward, %s order: %.0f %% (in the best round)\n", order, 100 * hidden }'
    done
}
