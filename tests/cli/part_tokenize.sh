# Tokens at the command line: mica tokenize. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

mica=$(realpath "$mica")
mkdir -p "$folder/text"
pushd "$folder/text" >/dev/null || exit 1

# ---- tokenize: a vocabulary of a few words ----
mkdir words
cat >words/tokenizer.json <<'END'
{"added_tokens": [{"id": 9, "content": "<|end|>", "special": true}],
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "\u0120ab": 4, "\u00c3": 5, "\u00a9": 6,
  "<": 7, "|": 8, "e": 10, "n": 11, "d": 12, ">": 13, "\u010a": 14}, "merges": ["a b", ["\u0120", "ab"]]}}
END

# tokens CODE TEXT ARGS...
tokens() {
    local wanted=$1 text=$2
    shift 2
    printf '%b' "$text" | "$mica" tokenize "$@" >"$folder/out" 2>"$folder/err"
    code=$?
    out=$(cat "$folder/out")
    err=$(cat "$folder/err")
    [ "$code" -eq "$wanted" ] || complain "mica tokenize $*: should end with $wanted"
}

tokens 0 'ab ab\xc3\xa9\n' words --json
says_json 'data == {"tokens": [2, 4, 5, 6, 14], "pieces": ["ab", " ab", "", "\u00e9", "\n"]}'
tokens 0 'ab<|end|>' words/tokenizer.json --json
says_json 'data["tokens"] == [2, 7, 8, 10, 11, 12, 8, 13] and "".join(data["pieces"]) == "ab<|end|>"'
tokens 0 'ab<|end|>' words --special
[ "$out" = $'2\t"ab"\n9\t"<|end|>"' ] || complain "one token on a line"
tokens 0 '\xc3\xa9\n' words
[ "$out" = $'5\t""\n6\t"\xc3\xa9"\n14\t"\\x0a"' ] || complain "half a character adds nothing"
tokens 0 'a\x00\x1b' words
[ "$out" = $'0\t"a"' ] || complain "what has no token is dropped"
tokens 0 '[2, 4,\n5 6 9]' words --decode
[ "$out" = "ab ab"$'\xc3\xa9' ] || complain "tokens as text"
tokens 0 '2 9 5' words --decode --special --json
says_json 'data == {"text": "ab<|end|>\ufffd"}'
tokens 0 'ab ab\xc3\xa9\n' words --count
[ "$out" = 5 ] || complain "the number of tokens"
tokens 0 'ab' words --count --json
says_json 'data == {"count": 1}'
tokens 2 '2' words --count --decode
tokens 0 '' words --json
says_json 'data == {"tokens": [], "pieces": []}'
tokens 2 '2 15' words --decode
complains 'byte 2 of stdin: expected the number of a token, less than 15'
tokens 2 '-1' words --decode
tokens 2 'a' words words
tokens 2 'a'
complains 'The MODEL argument is missing'
tokens 3 'a' nowhere.gguf
complains 'nowhere.gguf'
mkdir none
tokens 3 'a' none
complains 'tokenizer.json'
printf '{"model": {"type": "BPE", "vocab": {}}}' >empty.json
tokens 3 'a' empty.json
complains 'empty.json": byte 35: 0 tokens have numbers up to 0'
sed 's/"ByteLevel"/"Whitespace"/' words/tokenizer.json >other.json
tokens 3 'a' other.json
complains 'the pre-tokenizer "Whitespace" is not known'

popd >/dev/null || exit 1
