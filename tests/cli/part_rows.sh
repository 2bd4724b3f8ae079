# Tables in memory and in blocks: no heap call in a step, and how a long training is told. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

mica=$(realpath "$mica")
mkdir -p "$folder/rows"
pushd "$folder/rows" >/dev/null || exit 1

# A category, a date, values that are missing, and a number to learn.
awk 'BEGIN {
    print "size,town,built,price"
    split("Oslo Bergen Bodo Alta", town)
    for (i = 0; i < 900; i++) {
        size = i * 37 % 101
        printf "%s,%s,20%02d-0%d-11,%d\n", i % 17 == 0 ? "" : size, i % 23 == 0 ? "NA" : town[i % 4 + 1],
            i % 25, i % 9 + 1, 300000 + 2000 * size + 50000 * (i % 4)
    }
}' >homes.csv
for memory in 256MiB 1K; do
    ends 0 train mlp --data homes.csv --epochs 3 --checkpoint "homes-$memory" --memory "$memory"
    no_heap_calls
    [[ $memory != 1K || $err$out == *block* ]] || complain "--memory 1K: rows should be read in blocks"
done

# ---- Many epochs: a line for some of them, an event for each ----
ends 0 train mlp --data homes.csv --epochs 60 --checkpoint calm
lines=$(grep -c '^epoch ' <<<"$err")
((lines >= 15 && lines <= 25)) || complain "60 epochs: $lines lines, expected about 20"
complains "epoch  1/60 "
complains "epoch 60/60 "
[[ $out$err != *e+0* ]] || complain "an RMSE of many thousands has no exponent"
ends 0 train mlp --data homes.csv --epochs 60 --checkpoint calm --overwrite --json -q
[ "$(grep -c '"event": "epoch"' <<<"$out")" -eq 60 ] || complain "an event for each of 60 epochs"
popd >/dev/null || exit 1
