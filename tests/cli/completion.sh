#!/usr/bin/env bash
# What bash offers for the mica command. completion.sh MICA COMPLETION
set -uo pipefail
PATH=$(cd "$(dirname "$1")" && pwd):$PATH
# shellcheck source=cli/completion.bash
source "$2"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
touch my.net other.txt "with space.net"
mkdir trained
failures=0

# offers LINE WORDS...: completing the last word of LINE offers all of these. An "=" parts words, as in bash.
offers() {
    local line=$1 word
    shift
    complete_line "$line"
    for word in "$@"; do
        [[ " ${COMPREPLY[*]} " == *" $word "* ]] || complain "\"$line\" should offer $word"
    done
}

complete_line() {
    local line=${1//=/ = }
    read -ra COMP_WORDS <<<"$line"
    [[ $line != *" " ]] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _mica
}

complain() {
    failures=$((failures + 1))
    echo "$1; offers: ${COMPREPLY[*]}"
}

# only LINE WORDS: these and nothing else.
only() {
    complete_line "$1"
    [ "${COMPREPLY[*]}" = "$2" ] || complain "\"$1\" should offer only $2"
}

only "mica pl" "plan"
only "mica --ver" "--version"
only "mica help be" "bench"
offers "mica " plan bench help
offers "mica plan --" --train --budget --html --help
only "mica plan --opti" "--optimizer"
only "mica plan --optimizer ada" "adam adamw adagrad"
only "mica plan --optimizer=rm" "rmsprop"
offers "mica plan " lenet resnet-small gpt-tiny my.net "with space.net"
only "mica plan len" "lenet"
offers "mica plan lenet --html " other.txt trained
only "mica plan lenet --batch " ""
offers "mica bench sgemm_5" sgemm_512
offers "mica ops conv" conv2d
only "mica nonsense x" ""
[ "$failures" -eq 0 ]
