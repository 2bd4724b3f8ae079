# Which part may use which: each only itself and those above it in this table, by what it includes and by what it links
# to. Beside each part stand the public headers, or folders of them, that are its own: NAME is mica/NAME.h and
# mica/NAME/.
# shellcheck shell=bash

layers='
base        base random
tensor      tensor
memory      memory
kernel
ops         ops
net         net op optimizer
node
layer       layers
io          io
int8        int8
data        data table augment sound
train       train fit checkpoint ranks
gguf        gguf
text        text tokenizer model
onnx        onnx
netfile     netfile mica
mpi         mpi
host
export
bench
cli
'

# Exceptions: FROM TO, and why. One that nothing needs any more is an error too.
layer_exceptions='
net node    passes rewrite calls of operations that they know, sum gradients, and look operations up by name
'

# "FILE INCLUDED" for every #include of a file of ours.
included_files() {
    git grep -oE '^[[:space:]]*#[[:space:]]*include[[:space:]]*("[^"]+"|<mica/[^>]+>)' -- \
        'src/*.[ch]' 'include/*.h' 'host/*.[ch]' 'bench/*.[ch]' 'export/*.[ch]' 'cli/*.[ch]' 'mpi/*.[ch]' \
        'examples/*.c' ':!*/mcu/*' |
        sed -E 's/^([^:]+):[[:space:]]*#[[:space:]]*include[[:space:]]*["<]([^">]+)[">]/\1 \2/'
}

# "FILE SYMBOL KIND" for every symbol of ours in the objects of build/; one vector set stands for all.
linked_symbols() {
    local object source
    while read -r object; do
        source=${object##*.dir/}
        source=${source%.o}
        [ ! -e "$source" ] || nm "$object" | awk -v file="$source" '$NF ~ /^mica_/ { print file, $NF, $(NF - 1) }'
    done < <(find build/CMakeFiles/mica_core.dir build/CMakeFiles/mica_kernel_scalar.dir -name '*.o')
}

# What is used, "FROM TO TEXT" a line; "- - TEXT" for what can have no place at all.
# shellcheck disable=SC2016 # for awk
uses_by_include='
    function say(text) { print "-", "-", text }

    # The part that a public header belongs to: mica/ops/conv.h to that of "ops".
    function part_of_header(path,    name) {
        name = path
        sub(/^mica\//, "", name)
        sub(/[.\/].*/, "", name)
        return name in owner ? owner[name] : ""
    }
    BEGIN {
        lines = split(layers, line, "\n")
        for (i = 1; i <= lines; i++) {
            words = split(line[i], word, " ")
            for (k = 2; k <= words; k++)
                owner[word[k]] = word[1]
        }
    }
    {
        public = $2 ~ /^mica\//
        header = $1 ~ /^include\//
        split($1, folder, "/")
        from = folder[1] == "src" ? folder[2] : folder[1]
        if (header)
            from = part_of_header(substr($1, length("include/") + 1))
        to = public ? part_of_header($2) : split($2, folder, "/") > 1 ? folder[1] : from
        if (from == "" || to == "")
            say($1 " includes " $2 ": one of them belongs to no part")
        else if (header && !public)
            say($1 " includes " $2 ", which is not installed")
        else if (from == "examples" && !public)
            say($1 " includes " $2 ": examples use public headers only")
        else if (from != "examples")
            print from, to, $1 " includes " $2
    }'

# shellcheck disable=SC2016 # for awk
uses_by_link='
    { split($1, folder, "/") }
    $3 == "U" { user[++uses] = $1; part[uses] = folder[2]; wanted[uses] = $2; next }
    $3 ~ /[A-Z]/ { definer[$2] = folder[2] }
    END {
        for (i = 1; i <= uses; i++)
            if (wanted[i] in definer)
                print part[i], definer[wanted[i]], user[i] " calls " wanted[i]
    }'

# shellcheck disable=SC2016 # for awk
judge_uses='
    function fail(text) { print text; failed = 1 }
    BEGIN {
        lines = split(layers, line, "\n")
        for (i = 1; i <= lines; i++)
            if (split(line[i], word, " ") > 0)
                place[word[1]] = i
        lines = split(exceptions, line, "\n")
        for (i = 1; i <= lines; i++)
            if (split(line[i], word, " ") > 0)
                excepted[word[1] " " word[2]] = 1
    }
    {
        pair = $1 " " $2
        text = substr($0, length(pair) + 2)
        if ($1 == "-")
            fail(text)
        else if (!($1 in place) || !($2 in place))
            fail(text ": \"" ($1 in place ? $2 : $1) "\" has no place in tools/layers.sh")
        else if (place[$2] <= place[$1])
            next
        else if (pair in excepted)
            needed[pair] = 1
        else
            fail(text ": " $1 " may not use " $2)
    }
    END {
        for (pair in excepted)
            if (!(pair in needed))
                fail("nothing needs the exception \"" pair "\" in tools/layers.sh any more")
        exit failed
    }'

layers_kept() {
    {
        included_files | awk -v layers="$layers" "$uses_by_include"
        linked_symbols | awk "$uses_by_link"
    } | awk -v layers="$layers" -v exceptions="$layer_exceptions" "$judge_uses"
}

# The table of parts in docs/architecture.md has the same parts in the same order.
layers_documented() {
    local said wanted
    # shellcheck disable=SC2016 # the backquotes are text
    said=$(sed -nE 's/^\|.*\| `(src\/)?([a-z0-9]+)\/` \|$/\2/p' docs/architecture.md)
    wanted=$(awk 'NF > 0 { print $1 }' <<<"$layers")
    diff <(echo "$said") <(echo "$wanted") || {
        echo "the parts in docs/architecture.md (<) are not those of tools/layers.sh (>)"
        return 1
    }
}
