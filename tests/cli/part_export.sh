# Nets as C: mica export, and int8 nets of mica quantize. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

exports=$folder/exports
mkdir -p "$exports"
strict=(cc -std=c99 -O1 -Wall -Wextra -Wconversion -pedantic -Werror)

# passes TEXT COMMAND...
passes() {
    out=$("${@:2}" 2>&1)
    code=$?
    [ "$code" -eq 0 ] || complain "$1"
}

# passes_test NAME: the exported net is that of the library, by its own test.
passes_test() {
    passes "$1.c does not compile" "${strict[@]}" "$exports/$1.c" "$exports/$1_test.c" -o "$exports/$1_test"
    passes "$1_test fails" "$exports/$1_test"
}

# ---- Usage ----
ends 2 export
complains "which net?"
ends 2 export lenet
complains "-o DIR"
ends 2 export lenet -o "$exports" --name 1st
complains "--name 1st"
ends 2 export lenet -o "$exports" --freeze conv
complains "--freeze needs --train"
ends 2 export lenet -o "$exports" --data digits
complains "--int8"
ends 3 export lenet -o "$exports" --int8
complains "no trained weights"
ends 1 export lenet -o "$exports/no/such"
complains "cannot create the folder"
ends 1 export lenet -o "$exports" --train --budget 1KB
complains "short"

# ---- A table: raw columns in, the unit of the target out ----
python3 - "$exports" <<'PYTHON'
import random, sys
random.seed(3)
with open(sys.argv[1] + "/plants.csv", "w") as out:
    print("moisture,so*/il,state,growth", file=out)
    for _ in range(300):
        moisture, soil = random.uniform(5, 80), random.choice(["clay", "loam", "sand"])
        need = {"clay": 20, "loam": 30, "sand": 40}[soil]
        print(f"{moisture:.1f},{soil},{'dry' if moisture < need else 'wet'},{100 + 2 * (moisture - need):.1f}", file=out)
PYTHON
ends 0 train mlp --data "$exports/plants.csv" --label state --ignore growth --epochs 2 --set hidden=8 \
    --checkpoint "$exports/state" -q
ends 0 export "$exports/state" -o "$exports" --name state --json
says_json 'data["name"] == "state" and data["files"] == ["state.c", "state.h", "state_test.c", "state.md"]'
passes_test state
passes "classes are not in the header" grep -q '0 dry, 1 wet' "$exports/state.h"
ends 0 train mlp --data "$exports/plants.csv" --label growth --ignore state --epochs 2 --set hidden=8 \
    --checkpoint "$exports/growth" -q
ends 0 export "$exports/growth" -o "$exports" --name growth --train -q
passes_test growth
cat >"$exports/main.c" <<'END'
#include <stdio.h>

#include "growth.h"

int main(void)
{
    float *x = growth_input();
    growth_init();
    x[0] = 33.0f; /* moisture; loam is element 2 */
    for (int i = 1; i < GROWTH_INPUT_SIZE; i++)
        x[i] = i == 2 ? 1.0f : 0.0f;
    growth_normalize(x);
    growth_run();
    printf("%g %g\n", (double)growth_value(0), (double)(growth_target(0, growth_value(0)) - growth_output()[0]));
    return 0;
}
END
passes "a program does not compile" "${strict[@]}" -I"$exports" "$exports/main.c" "$exports/growth.c" -o "$exports/main"
printf 'moisture,so*/il,state\n33,loam,dry\n' >"$exports/one.csv"
ends 0 run "$exports/growth" "$exports/one.csv" --json
said=$out
passes "the program fails" "$exports/main"
python3 - "$said" "$out" <<'PYTHON' || complain "the exported net should predict what mica run does: $said"
import json, sys
library = json.loads(sys.argv[1])["values"][0]
device, back = map(float, sys.argv[2].split())
assert abs(device - library) < 1e-3 * abs(library) and abs(back) < 1e-5
PYTHON

# ---- int8 ----
ends 0 quantize "$exports/state" "$exports/bytes.safetensors" --int8 --data "$exports/plants.csv"
says "int8"
ends 2 quantize "$exports/state" "$exports/state" --int8
complains "give OUT another name"
ends 2 quantize "$exports/state" "$exports/bytes.safetensors" --int8 --type Q4_0
ends 0 eval "$exports/bytes.safetensors" --data "$exports/plants.csv"
ends 3 train "$exports/bytes.safetensors" --weights none --data "$exports/plants.csv" --label state
complains "cannot be trained"
ends 0 export "$exports/bytes.safetensors" -o "$exports" --name bytes -q
passes_test bytes
half=("$exports/growth" -o "$exports" --name half --int8 --data "$exports/plants.csv" --train -q)
ends 2 export "${half[@]}"
complains "--freeze PREFIX"
ends 2 export "${half[@]}" --freeze dense2
complains "layer dense1, the first, is not frozen"
ends 3 export "${half[@]}" --freeze dense9
complains 'no parameter'"'"'s name starts with "dense9"'
ends 0 export "${half[@]}" --freeze dense1
passes_test half
