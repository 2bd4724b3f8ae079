# ./dev bench --tables: Mica's defaults against scikit-learn's on real sets; --large: a CSV file of 5 GB.
# shellcheck shell=bash

tables_help() {
    cat <<'TEXT'
./dev bench --tables [ARGS...]     scikit-learn's sets, both nets with their defaults (bench/tables/sets.py --help)
./dev bench --large [BYTES]        train on a CSV file of so many bytes (5000000000), and on its first 200 MB in memory

Both end with 1 if Mica falls short: below scikit-learn on a set; above 200 MB or below half the speed.
TEXT
}

# PyPI's scikit-learn, in an environment of its own.
newest_sklearn() {
    [ -x build/sklearn/bin/python ] || /usr/bin/python3 -m venv build/sklearn
    build/sklearn/bin/python -c 'import sklearn' 2>/dev/null ||
        build/sklearn/bin/python -m pip install --quiet scikit-learn
}

run_tables() {
    case " $* " in *' --help '* | *' -h '*) tables_help && exit ;; esac
    need build newest
    configure build && compile build mica-tool
    newest_sklearn
    local args=() arg
    for arg in "$@"; do
        [ "$arg" = --tables ] || args+=("$arg")
    done
    exec build/sklearn/bin/python -B bench/tables/sets.py build/mica "${args[@]}"
}

run_large() {
    case " $* " in *' --help '* | *' -h '*) tables_help && exit ;; esac
    need build test
    configure build && compile build mica-tool
    mkdir -p build/bench
    gcc -std=c11 -O2 -Wall -Wextra bench/tables/make_large.c -o build/bench/make_large
    local bytes=5000000000 arg
    for arg in "$@"; do
        case $arg in
        --large) ;;
        *[!0-9]* | '') tables_help >&2 && die "bench --large: unexpected $arg" ;;
        *) bytes=$arg ;;
        esac
    done
    exec /usr/bin/python3 -B bench/tables/large.py build/mica build/bench/make_large "$bytes"
}
