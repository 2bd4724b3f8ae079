#!/bin/sh
# Writes the manual pages, as scdoc reads them, from what the command says of itself.
# make.sh MICA FOLDER: FOLDER/mica.1.scd and FOLDER/mica-VERB.1.scd for each verb; and the page of mica-mpirun.
set -eu
mica=$1
folder=$2
version=$("$mica" --version | sed 's/,.*//')
mkdir -p "$folder"
sed "s/@VERSION@/$version/" "$(dirname "$0")/mica-mpirun.1.scd" >"$folder/mica-mpirun.1.scd"
"$mica" help --table | awk -F '\t' -v folder="$folder" -v version="$version" '
# Text as scdoc takes it for text.
function plain(text) {
    gsub(/\\/, "\\\\", text)
    gsub(/[_*#\[\]<>`~|]/, "\\\\&", text)
    sub(/^-/, "\\-", text)
    return text
}

# Paragraphs; lines that are set in stay as they are.
function prose(text, file,    lines, count, i, literal) {
    count = split(text, lines, "\\\\n")
    literal = 0
    for (i = 1; i <= count; i++) {
        if (lines[i] ~ /^ / && !literal) { print "\n```" > file; literal = 1 }
        if (lines[i] !~ /^ / && literal) { print "```\n" > file; literal = 0 }
        print (literal ? lines[i] : plain(lines[i])) > file
    }
    if (literal)
        print "```" > file
    print "" > file
}

function option_line(letter, name, value) {
    return (letter != "" ? "*-" letter "*, " : "") "*" plain(name) "*" (value != "" ? " _" plain(value) "_" : "")
}

function choices_text(choices,    list, count, i, text) {
    count = split(choices, list, " ")
    for (i = 1; i <= count; i++)
        text = text (i == 1 ? "" : i == count ? " or " : ", ") "*" plain(list[i]) "*"
    return count > 0 ? ": " text : ""
}

function header(file, name, summary) {
    print name "(1) \"" version "\" \"Mica\"\n\n# NAME\n\n" name " - " plain(summary) "\n\n# SYNOPSIS\n" > file
}

$1 == "verb" {
    verb = $2
    verbs[++verb_count] = verb
    summary[verb] = $4; arguments[verb] = $3; details[verb] = $5
}
$1 == "example" {
    example[$2, ++example_count[$2]] = $3
    example_text[$2, example_count[$2]] = toupper(substr($4, 1, 1)) substr($4, 2)
}
$1 == "option" { option[$2, ++option_count[$2]] = option_line($4, $3, $6) "\n\t" plain($7) choices_text($8) "\n" }
$1 == "exit" { exits = exits "*" $2 "*\n\t" plain($3) "\n\n" }
$1 == "variable" { variables = variables "*" plain($2) "*\n\t" plain($3) "\n\n" }

function write_verb(verb,    file, i) {
    file = folder "/mica-" verb ".1.scd"
    header(file, "mica-" verb, summary[verb])
    print "*mica " verb "* " plain(arguments[verb]) "\n" > file
    if (details[verb] != "") {
        print "# DESCRIPTION\n" > file
        prose(details[verb], file)
    }
    print "# OPTIONS\n" > file
    for (i = 1; i <= option_count[verb]; i++)
        print option[verb, i] > file
    print "*-h*, *--help*\n\tprint what the verb takes\n" > file
    if (example_count[verb] > 0)
        print "# EXAMPLES\n" > file
    for (i = 1; i <= example_count[verb]; i++)
        print plain(example_text[verb, i]) ":\n\n```\nmica " example[verb, i] "\n```\n" > file
    print "# EXIT STATUS\n\n" exits "# ENVIRONMENT\n\n" variables "# SEE ALSO\n\n*mica*(1)" > file
    close(file)
}

END {
    file = folder "/mica.1.scd"
    header(file, "mica", "train and run neural networks in memory planned before the first step")
    print "*mica* _VERB_ [ARGUMENTS]\n\n*mica* *help* [VERB]\n\n*mica* *--version*\n" > file
    print "# DESCRIPTION\n" > file
    print "*mica* trains, looks at and runs neural networks. It says how many bytes a network takes before it takes" > file
    print "one, and then never allocates again. Data goes to standard output, messages and progress to standard error.\n" > file
    print "# VERBS\n" > file
    for (i = 1; i <= verb_count; i++)
        print "*mica-" verbs[i] "*(1)\n\t" plain(summary[verbs[i]]) "\n" > file
    print "# EXAMPLES\n\n```" > file
    for (i = 1; i <= verb_count; i++)
        if (example_count[verbs[i]] > 0)
            print "mica " example[verbs[i], 1] > file
    print "```\n\n# EXIT STATUS\n\n" exits "# ENVIRONMENT\n\n" variables "# SEE ALSO\n" > file
    for (i = 1; i <= verb_count; i++)
        printf("%s*mica-%s*(1)", (i > 1 ? ", " : "\n"), verbs[i]) > file
    print ", *mica-mpirun*(1)" > file
    close(file)
    for (i = 1; i <= verb_count; i++)
        write_verb(verbs[i])
}
'
