# Completion of the mica command, for bash. It asks the command itself, so it knows what that version takes.
# shellcheck shell=bash

# Rows of "mica help --table" that start with these fields: _mica_rows KIND [OWNER]
_mica_rows() {
    "${COMP_WORDS[0]}" help --table 2>/dev/null | awk -F '\t' -v kind="$1" -v owner="${2-}" \
        '$1 == kind && (owner == "" || $2 == owner)'
}

# Offers words that start as $1 does: _mica_words START WORDS
_mica_words() {
    local word
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(compgen -W "$2" -- "$1")
}

# Offers files, or with -d folders: _mica_files START [-d]
_mica_files() {
    local file
    compopt -o filenames 2>/dev/null
    while IFS= read -r file; do
        COMPREPLY+=("$file")
    done < <(compgen "${2:--f}" -- "$1")
}

# Offers what can stand for a placeholder of help: _mica_value START NET|DATA|FILE...|DIR|...
_mica_value() {
    case $2 in
    *NET*)
        _mica_words "$1" "$(_mica_rows net | cut -f 2)"
        _mica_files "$1"
        ;;
    DATA*)
        _mica_words "$1" digits
        _mica_files "$1"
        ;;
    *FILE* | *DATA*) _mica_files "$1" ;;
    DIR*) _mica_files "$1" -d ;;
    esac
}

_mica() {
    COMPREPLY=()
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]}
    if [ "$COMP_CWORD" -eq 1 ]; then
        _mica_words "$current" "$(_mica_rows verb | cut -f 2) help --help --version"
        return
    fi
    if [ "$verb" = help ]; then
        _mica_words "$current" "$(_mica_rows verb | cut -f 2)"
        return
    fi
    # "--option=value" comes as three words.
    if [ "$current" = = ]; then
        current=
    elif [ "$previous" = = ] && [ "$COMP_CWORD" -gt 2 ]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    local name letter kind value choices
    # A tab is a blank to read, and two blanks are one: so fields are parted by a character that is none.
    while IFS=$'\x1f' read -r _ _ name letter kind value _ choices; do
        [ "$kind" != flag ] || continue
        if [ "$previous" = "$name" ] || { [ -n "$letter" ] && [ "$previous" = "-$letter" ]; }; then
            if [ -n "$choices" ]; then
                _mica_words "$current" "$choices"
            else
                _mica_value "$current" "$value"
            fi
            return
        fi
    done < <(_mica_rows option "$verb" | tr '\t' '\037')
    if [[ $current == -* ]]; then
        _mica_words "$current" "$(_mica_rows option "$verb" | cut -f 3) --help"
        return
    fi
    case $verb in
    bench) _mica_words "$current" "$("${COMP_WORDS[0]}" bench --list 2>/dev/null)" ;;
    ops) _mica_words "$current" "$("${COMP_WORDS[0]}" ops 2>/dev/null | cut -d ' ' -f 1)" ;;
    *) _mica_value "$current" "$(_mica_rows verb "$verb" | cut -f 3)" ;;
    esac
}

complete -F _mica mica
