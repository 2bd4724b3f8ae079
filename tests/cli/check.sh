#!/usr/bin/env bash
# The mica command as a user meets it. check.sh MICA [full]: with "full" every benchmark row is run, and none
# may make a heap call.
set -uo pipefail
mica=$(realpath "$1") # parts change folders
full=${2:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

# run ARGS...: leaves stdout, stderr and the exit code in $out, $err and $code.
run() {
    "$mica" "$@" >"$folder/out" 2>"$folder/err"
    code=$?
    out=$(cat "$folder/out")
    err=$(cat "$folder/err")
}

complain() {
    failures=$((failures + 1))
    printf '%s\n' "$1" "  code $code" "  stdout: $out" "  stderr: $err"
}

# ends CODE ARGS...
ends() {
    local wanted=$1
    shift
    run "$@"
    [ "$code" -eq "$wanted" ] || complain "mica $*: should end with $wanted"
}

says() { [[ $out == *"$1"* ]] || complain "stdout should say: $1"; }
complains() { [[ $err == *"$1"* ]] || complain "stderr should say: $1"; }
# shellcheck disable=SC2317 # the parts call it
no_heap_calls() { # in the steps of the training that has just ended; a sanitized build does not count them
    [[ $out == *"heap    0 calls in "* || $out == *"heap    not counted"* ]] || complain "a step makes heap calls"
}
silent() { [ -z "$out" ] || complain "stdout should be empty"; }

# says_json FILTER: the JSON on stdout fulfils the filter.
# shellcheck disable=SC2317 # the parts call it
says_json() {
    python3 -c 'import json, sys
data = json.load(open(sys.argv[1]))
assert eval(sys.argv[2]), "does not hold: " + sys.argv[2]' "$folder/out" "$1" 2>"$folder/python" ||
        complain "$(tail -1 "$folder/python")"
}

# await_lines LINES FILE: the file has at least so many lines, within ten seconds.
# shellcheck disable=SC2317 # the parts call it
await_lines() {
    for _ in $(seq 1000); do
        [ "$(wc -l <"$2")" -ge "$1" ] && return 0
        sleep 0.01
    done
    return 1
}

# ---- Help and usage ----
ends 0 --version
says "mica 0."
ends 0 help
says "bench"
says "ops"
ends 0 help bench
says "--compare FILE"
ends 0 bench --help
says "usage: mica bench"
ends 2
silent
complains "usage: mica VERB"
ends 2 bnech
silent
complains 'unknown verb "bnech"; did you mean "bench"?'
ends 2 help bnch
complains 'did you mean "bench"?'
ends 2 zzzzzzzz
complains 'unknown verb "zzzzzzzz"'
[[ $err != *"did you mean"* ]] || complain "nothing is near zzzzzzzz"
ends 2 bench --thread 2
complains "unknown option --thread; did you mean --threads?"
ends 2 bench --threads
complains "--threads needs a value: --threads N[,N...]"
ends 2 bench --threads 0
complains 'not "0"'
ends 2 bench --threads 1,x
complains 'not "1,x"'
ends 2 bench --seconds soon
complains '--seconds takes a number, not "soon"'
ends 2 bench --ranks sgemm
complains '--ranks has no case with "sgemm" in its name'
ends 0 bench --ranks cnn --quick
says "cnn_step_32 "
ends 2 bench --quick=yes
complains "--quick takes no value"
ends 0 help bench
[[ ${out%%options:*} == *"mica bench sgemm"* ]] || complain "examples come before options"
ends 0 help --table
says $'option\tbench\t--seconds\t\tnumber\tS\t'
says $'exit\t130\t'
ends 2 bench -z
complains "unknown option -z"
ends 0 ops -- add
says "add: a + b"
ends 1 ops -- --quick
complains "no matching operation or family"
"$mica" ops >/dev/full 2>"$folder/err"
code=$? err=$(cat "$folder/err")
[ "$code" -eq 1 ] || complain "a full disk should end with 1"
complains "cannot write the output"
{
    "$mica" ops 2>"$folder/err"
    echo $? >"$folder/code"
} | true
code=$(cat "$folder/code") err=$(cat "$folder/err")
[ "$code$err" = 0 ] || complain "a reader that left should be no error"
ends 2 bench no_such_case
silent
complains 'no case has "no_such_case" in its name'

# ---- Operations ----
ends 0 ops
says "matmul"
ends 0 ops elementwise
says "add "
[[ $out != *matmul* ]] || complain "matmul is not element-wise"
ends 1 ops no_such_operation
ends 0 ops matmul
says "a b [bias] -> y"
says "transpose_b"
says "gradient     yes"
ends 0 ops argmax
says "gradient     none"
ends 0 ops max_pool2d
says "x -> y [indices]"
ends 0 ops --json
python3 - "$folder/out" <<'END' || complain "the list of operations is not as it should be"
import json, sys
ops = {op["name"]: op for op in json.load(open(sys.argv[1]))}
assert all(sorted(op) == ["about", "family", "gradient", "inputs", "name", "net_file", "options", "outputs"] for op in ops.values())
assert [i["optional"] for i in ops["matmul"]["inputs"]] == [False, False, True]
assert ops["sub"]["net_file"] and ops["sub"]["gradient"] and not ops["relu_backward"]["net_file"] and not ops["apply1"]["net_file"]
END
ends 0 ops softmax --json
python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))) == 1' "$folder/out" || complain "one operation is one object"

# ---- Benchmarks ----
ends 0 bench --list
says "sgemm_512"
says "add_1m"
all=$(wc -l <"$folder/out")
[ "$(sort -u "$folder/out" | wc -l)" -eq "$all" ] || complain "two cases have the same name"
says "op_matmul"
says "op_relu"
[[ $out != *op_relu_backward* ]] || complain "a backward without a sample has no row"
ends 0 bench --list relu
[[ $out == *relu_1m* && $out != *op_relu* ]] || complain "single operations are asked for by op_ or --ops"
ends 0 bench --list op_relu
[[ $out == *op_relu* && $out != *relu_1m* ]] || complain "a filter op_ picks single operations"
ends 0 bench --ops --list relu
[[ $out == *op_relu* && $out != *relu_1m* ]] || complain "--ops shows single operations only"
ends 0 bench op_sub op_lstm op_split op_gather --quick --json "$folder/ops.json"
says "op_gather"
ends 0 bench --list sgemm
[[ $out != *add_1m* ]] || complain "the filter lets add_1m through"

ends 0 bench --profile cnn_step_32 --quick
says "% of roof"
says "conv2d_0 "
says "a step that nobody watches:"
ends 0 bench --profile lenet mlp --batch 2 --quick
says "lenet, training, threads: 1"
says "mlp, training, threads: 1"
ends 3 bench --profile no_such.net --quick
run bench --int8 lenet_int8_1 --quick # as fast as it may be here
says "lenet_int8_1"
ends 2 bench --int8 no_such_case
complains "no int8 net matches"
run bench --paths dscnn_1x1_64_64_at_25x5_b1_ --quick
says "dscnn_1x1_64_64_at_25x5_b1_forward"
says "of 3 within"
ends 2 bench --paths no_such_shape --quick
ends 0 bench --latency --quick
says "2000 runs: p50 "
ends 2 bench --hop=1
run bench --growth depth_mlp nodes_plan --quick # how it ends is a matter of the machine
says "exponent"
says "depth_mlp"
says "nodes_plan"
ends 2 bench --profile sgemm_64 --quick
complains "none of these cases is a net"

# Rows for another program: a line each way, after "ready".
printf '%s\n' "sample 1000" "prepare no_such_row" "prepare add_into_dst_1000x512" "sample 1000" "limit 1000" \
    "result 0 $folder/sum" "result 99 $folder/sum" "result 0 $folder/no/file" "sing" "drop" "drop" |
    "$mica" bench --serve --quick >"$folder/out"
code=$? out=$(sed '1,/^ready$/d' "$folder/out")
grep -q '^ready$' "$folder/out" || complain "--serve should say when it is ready"
expected='^no row is prepared
no there is no such row
ok
[0-9.]+ 0.000 [01]
[0-9.]+ copy
ok
no result takes the index of a tensor, and a file
no file can be written there
no the commands are prepare, net, sample, limit, result and drop
ok
no row is prepared$'
[[ $out =~ $expected ]] || complain "--serve should answer: $expected"
[ "$(wc -c <"$folder/sum")" -eq 2048 ] || complain "a result of 512 floats should have 2048 bytes"

json=$folder/run.json
ends 0 bench add_into sgemm_64 --quick --json "$json"
says "sgemm_64"
says "of the limit"
for field in machine cpu isa threads peak_gflops copy_gbs commit cases name ns ns_min gflops gbs percent_of_peak \
    allocs bytes; do
    grep -q "\"$field\": " "$json" || complain "the JSON has no $field"
done
ends 0 bench add_into sgemm_64 --quick --compare "$json"
says "compared with the earlier run"
says "geometric mean"
# The last two columns are the changes in heap calls and bytes.
changes=$(sed -n '/compared with/,$p' "$folder/out" | awk '/^(add_into|sgemm_64)/ { print $(NF - 1), $NF }' | sort -u)
[ "$changes" = "+0 +0" ] || complain "heap calls changed: $changes"

ends 3 bench add_into --quick --compare "$folder/none.json"
silent
complains "cannot read $folder/none.json"
printf '{"cases": [{"name": "a", "threads": 1,,}]}' >"$folder/broken.json"
ends 3 bench add_into --quick --compare "$folder/broken.json"
silent
complains "broken.json: byte 38: expected a key in quotes"
printf '{"cases": [{"name": 7}]}' >"$folder/wrong.json"
ends 3 bench add_into --quick --compare "$folder/wrong.json"
complains 'wrong.json: byte 20: "name" is a number, not a string'
printf '{"cases": {}}' >"$folder/wrong.json"
ends 3 bench add_into --quick --compare "$folder/wrong.json"
complains '"cases" is an object, not an array'
head -c 200 "$json" >"$folder/cut.json"
ends 3 bench add_into --quick --compare "$folder/cut.json"
complains "cut.json: byte "
ends 3 bench add_into --quick --json "$folder/no/such/folder.json"
complains "cannot write"

if [ "$full" = full ]; then
    ends 0 bench --quick --check --seconds 0
    ran=$(tail -n +4 "$folder/out" | wc -l)
    ends 0 bench --ops --quick --check --seconds 0
    ran=$((ran + $(tail -n +4 "$folder/out" | wc -l)))
    [ "$ran" -eq "$all" ] || complain "ran $ran of $all cases"
    ends 0 bench --quick --check --seconds 0 --threads 2
fi

for part in "$(dirname "$0")"/part_*.sh; do
    # shellcheck source=/dev/null
    source "$part"
done

[ "$failures" -eq 0 ] && echo "mica behaves"
exit $((failures > 0))
