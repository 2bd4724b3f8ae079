# Public text models: mica generate, plan, perplexity, embed. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

for kind in llama gpt2 bert; do
    python3 "$(dirname "${BASH_SOURCE[0]}")/make_model.py" "$kind" "$folder/$kind.gguf"
done
python3 "$(dirname "${BASH_SOURCE[0]}")/make_model.py" llama "$folder/other.gguf" 2
model=$folder/llama.gguf

# ---- Generate ----
ends 0 generate "$model" --prompt "hello world" --tokens 40 --json
says_json 'set(data) >= {"prompt_tokens", "tokens", "text", "prompt_ms", "token_ms"}'
says_json 'len(data["tokens"]) == 40 and data["end"] == "tokens"'
says_json 'data["prompt_tokens"][0] == 1 and len(data["prompt_tokens"]) == 13'
says_json 'data.get("heap_calls", 0) == 0' # a sanitized build does not count them
# The same tokens for any number of threads and any chunk.
tokens=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["tokens"])' "$folder/out")
for how in "--threads 1" "--threads 3" "--chunk 1" "--chunk 5"; do
    # shellcheck disable=SC2086 # two words
    ends 0 generate "$model" --prompt "hello world" --tokens 40 --json $how
    says_json "data['tokens'] == $tokens"
done
# As text, the prompt comes first.
ends 0 generate "$model" --prompt "hello world" --tokens 3 --temperature 0
[[ $out == "hello world"?* ]] || complain "the text should follow the prompt"
printf 'hello world' | "$mica" generate "$model" --prompt - --tokens 3 --temperature 0 --json >"$folder/out"
says_json 'len(data["prompt_tokens"]) == 13'
# A context that is full: the older half goes, also where positions are learned.
for kind in llama gpt2; do
    ends 0 generate "$folder/$kind.gguf" --prompt abc --tokens 200 --context 24 --endless --json
    says_json 'len(data["tokens"]) == 200 and data.get("heap_calls", 0) == 0'
done
# Sampling.
ends 0 generate "$model" --prompt abc --tokens 4 --temperature 0 --json --likely 3
says_json 'all(len(t["likely"]) == 3 and t["likely"][0][0] == n for t, n in zip(data["log_probabilities"], data["tokens"]))'
first=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["tokens"][0])' "$folder/out")
ends 0 generate "$model" --prompt abc --tokens 4 --temperature 0 --json --bias "$first=-inf"
says_json "$first not in data['tokens']"
ends 0 generate "$model" --prompt abc --tokens 9 --temperature 0 --json --bias 262=1000 --stop cc
says_json 'data["text"] == "" and data["end"] == "stop" and data["tokens"] == [262, 262]'
ends 0 generate "$model" --prompt abc --tokens 9 --temperature 0 --json --bias 2=1000
says_json 'data["tokens"] == [2] and data["end"] == "end" and data["text"] == ""'
# Saved after the prompt, and taken up again.
ends 0 generate "$model" --prompt "hello world" --tokens 20 --temperature 0 --json --save "$folder/kept"
tokens=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["tokens"])' "$folder/out")
# With nothing behind it, the last token is run once more.
ends 0 generate "$model" --prompt "" --restore "$folder/kept" --tokens 20 --temperature 0 --json
says_json "data['tokens'] == $tokens"
ends 3 generate "$folder/other.gguf" --prompt abc --restore "$folder/kept" --tokens 2
complains "saved with another model"
ends 3 generate "$model" --prompt "" --restore "$folder/kept" --context 4 --tokens 2
complains "tokens, the context of this session is 4"
ends 2 generate "$model" --chat
complains "--chat answers one message"
ends 2 generate "$model" --system abc --prompt abc
complains "--system is part of a chat"
# What was restored counts when the context is full, also where it is run anew.
ends 0 generate "$folder/gpt2.gguf" --prompt "twenty letters of it" --context 24 --tokens 1 --save "$folder/kept"
ends 0 generate "$folder/gpt2.gguf" --prompt a --restore "$folder/kept" --context 24 --tokens 60 --endless --json
says_json 'len(data["tokens"]) == 60'
# Where positions are learned, what was restored is among what is run anew when the context is full.
ends 0 generate "$folder/gpt2.gguf" --prompt "abcdefghijklmnopqr" --tokens 60 --context 24 --endless --temperature 0 --json --save "$folder/kept"
tokens=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["tokens"])' "$folder/out")
ends 0 generate "$folder/gpt2.gguf" --prompt "" --restore "$folder/kept" --tokens 60 --context 24 --endless --temperature 0 --json
says_json "data['tokens'] == $tokens"

# ---- Plan ----
ends 0 plan "$model" --context 100 --sequences 3 --cache f32 --json
says_json 'data["model"]["context"] == 100 and data["model"]["sequences"] == 3 and data["model"]["cache"] == "f32"'
ends 1 plan "$model" --cache q8_0
complains "needs heads of a multiple of 32 features"
ends 2 plan "$model" --train
complains "--train is not for text models"
ends 0 plan "$model" --context 64 --json
total=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["total"])' "$folder/out")
ends 0 generate "$model" --context 64 --prompt abc --tokens 3 --json
says_json "data['bytes'] == $total"
ends 1 plan "$model" --budget 1000
complains "memory error"
ends 0 plan "$model" --budget "$total" --context 64 --json
says_json "data['total'] <= $total"

# ---- Perplexity ----
for _ in $(seq 40); do printf 'the quick brown fox jumps over the lazy dog '; done >"$folder/text.txt"
ends 0 perplexity "$model" --data "$folder/text.txt" --context 64 --json
says_json 'data["perplexity"] > 1 and data["tokens"] % 31 == 0'
ends 0 perplexity "$model" --data "$folder/text.txt" --context 200
says "perplexity "
ends 3 perplexity "$model" --data "$folder/text.txt" --context 100000
complains "expected at least one piece of 100000"
ends 2 perplexity "$model"
complains "--data"
printf '1 5 70 12x' >"$folder/numbers"
ends 3 perplexity "$model" --tokens "$folder/numbers"
complains "expected numbers"
{ seq 1 200 && echo 1000000; } >"$folder/numbers"
ends 3 perplexity "$model" --tokens "$folder/numbers"
complains "token 1000000, number 200: the model has 286 tokens"
if [ -c /dev/full ]; then
    ends 1 perplexity "$model" --data "$folder/text.txt" --context 64 --logits /dev/full
    complains "cannot write /dev/full"
fi

# ---- Embed ----
printf 'hello there\nan odd line\n' | "$mica" embed "$folder/bert.gguf" --json >"$folder/out"
says_json 'len(data["vectors"]) == 2 and all(abs(sum(x * x for x in v) - 1) < 1e-5 for v in data["vectors"])'
says_json 'data["tokens"][0] == 2 + len("hellothere")'
printf 'hello there\n' | "$mica" embed "$folder/bert.gguf" >"$folder/out"
[ "$(wc -w <"$folder/out")" -eq 64 ] || complain "a vector has 64 numbers"
code=0
"$mica" embed "$folder/bert.gguf" <"$folder" >"$folder/out" 2>"$folder/err" || code=$?
[ "$code" -eq 3 ] || complain "a folder cannot be read as text"
# More tokens than the model takes are cut, also where it takes more than the usual context.
sed '/^WIDTH/s/256$/8192/' "$(dirname "${BASH_SOURCE[0]}")/make_model.py" >"$folder/make_long.py"
python3 "$folder/make_long.py" bert "$folder/long.gguf"
head -c 10000 /dev/zero | tr '\0' , | "$mica" embed "$folder/long.gguf" --json >"$folder/out" 2>"$folder/err" ||
    complain "a long text should be cut"
says_json 'data["tokens"] == [4096]'
ends 2 embed "$model"
complains "gives text, not vectors"
ends 2 generate "$folder/bert.gguf" --prompt abc
complains "gives vectors, not text"

# ---- Bad files ----
head -c 300 "$model" >"$folder/short.gguf"
for verb in "info" "plan" "generate --prompt a" "perplexity --data $folder/text.txt" "embed"; do
    # shellcheck disable=SC2086 # several words
    ends 3 $verb "$folder/short.gguf"
    # shellcheck disable=SC2086
    ends 3 $verb "$folder/missing.gguf"
done
