# ./dev docs: every relative link in the documents leads somewhere, paths in them exist, every block of C compiles, and
# every C program in them is one of examples/ word for word, which the tests run; tables that a script computes are its own;
# the commands of docs/your-data.md do what it shows.
# shellcheck shell=bash

documents() { git ls-files '*.md'; }

links_resolve() {
    local document link status=0
    for document in $(documents); do
        while read -r link; do
            [ -e "$(dirname "$document")/${link%%#*}" ] || {
                echo "$document: no $link"
                status=1
            }
        done < <(grep -oE '\]\([^)]+\)' "$document" | sed 's/^](//; s/)$//' | grep -vE '^(https?:|mailto:|#)')
    done
    return $status
}

# Paths written as code, `src/...`, exist.
paths_exist() {
    local document path status=0
    # shellcheck disable=SC2016 # the backquotes are text
    local code='`(src|include|tests|tools|cmake|examples|docs|cli|bench|host|export|mpi)/[A-Za-z0-9_./*-]*`'
    for document in $(documents); do
        while read -r path; do
            compgen -G "$path" >/dev/null || {
                echo "$document: there is no $path"
                status=1
            }
        done < <(grep -oE "$code" "$document" | tr -d '\140')
    done
    return $status
}

# A block that has a main() is a program: it must be the text of a file in examples/.
programs_are_examples() {
    local document
    for document in $(documents); do
        awk '
            /^```c$/ { inside = 1; text = ""; next }
            /^```$/ && inside {
                inside = 0
                if (text ~ /int main\(/) { file = sprintf("%s-%d.c", stem, ++n); printf "%s", text > file; close(file) }
                next
            }
            inside { text = text $0 "\n" }' stem="$1/${document//\//-}" "$document"
    done
    local program example found status=0
    for program in "$1"/*.c; do
        [ -e "$program" ] || continue
        found=no
        for example in examples/*.c; do
            cmp -s "$program" "$example" && found=yes
        done
        [ $found = yes ] || {
            echo "a program in the documents is none of examples/:"
            cat "$program"
            status=1
        }
    done
    return $status
}

# shellcheck disable=SC2046
blocks_compile() {
    local targets=(mica_static)
    configure build || return 1
    [ -z "$(ninja -C build -t targets all | sed -n '/^mica_mpi: /p')" ] || targets+=(mica_mpi)
    compile build "${targets[@]}" && python3 -B tests/docs/blocks.py build $(documents)
}

walkthroughs_work() { compile build mica-tool && python3 -B tests/docs/commands.py build docs/your-data.md; }

run_docs() {
    local folder
    need build test
    say "docs"
    folder=$(mktemp -d)
    check "relative links resolve" links_resolve
    check "paths in the text exist" paths_exist
    check "programs in the documents are examples" programs_are_examples "$folder"
    check "the scaling model's tables are what it computes" tools/cluster_model.py --check docs/cluster.md
    check "every block of C in the documents compiles" blocks_compile
    check "the walk-throughs do what they show" walkthroughs_work
    rm -rf "$folder"
    finish
}
