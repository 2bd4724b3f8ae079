# mica export with odd names, wild labels, options that do nothing, full disks. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

rm -rf "$folder/c"
small="$folder/small.net"
printf 'input x [4]\ndense 3\nloss cross_entropy\n' >"$small"

# compiles NAME [SOURCE...]: what was exported to $folder/c, without a warning, and run with the address sanitizer
compiles() {
    local name=$1
    shift
    [ $# -gt 0 ] || set -- "$folder/c/${name}_test.c"
    if ! "${CC:-cc}" -std=c99 -O1 -Wall -Wextra -Werror -pedantic -fsanitize=address,undefined \
        -fno-sanitize-recover=undefined "-I$folder/c" "$folder/c/$name.c" "$@" -o "$folder/c/program" 2>"$folder/err" ||
        ! "$folder/c/program" >"$folder/out" 2>>"$folder/err"; then
        out=$(cat "$folder/out") err=$(head -c 2000 "$folder/err")
        complain "$name as C should compile and run"
    fi
}

# Options that would do nothing
ends 2 export "$small" -o "$folder/c" --optimizer adam
complains "--optimizer needs --train"
ends 2 export "$small" -o "$folder/c" --samples 3
complains "--per-tensor and --qat need --int8"
[ ! -e "$folder/c" ] || complain "a usage error should make no folder"

# Nothing learns
ends 1 export "$small" -o "$folder/c" --train --freeze dense
complains "nothing in it learns"
[ ! -e "$folder/c" ] || complain "a net that cannot be exported should make no folder"

# Targets whose names mean something in C, in a kernel, in NAME.c or in NAME_test.c
for target in extern restrict NULL memset int32_t mse_loss adam way start draw fill state expected worst d main printf; do
    printf 'input %s [2]\ninput x [4]\ndense 2\nloss mse target=%s\n' "$target" "$target" >"$folder/named.net"
    ends 0 export "$folder/named.net" -o "$folder/c" --name named --train --optimizer adam -q
    compiles named
done

# An autoencoder: no target but its input
printf 'input x [5]\ndense 2 tanh\ndense 5\nloss mse target=x\n' >"$folder/auto.net"
ends 0 export "$folder/auto.net" -o "$folder/c" --name same --train --batch 2 -q
compiles same

# A path that would end a comment
mkdir -p "$folder/odd*"
cp "$small" "$folder/odd*/small.net"
ends 0 export "$folder/odd*/small.net" -o "$folder/c" --name odd -q
compiles odd

# Labels and indices out of range: no other memory is touched, nothing is learned, the loss says so
printf 'input x [2] i32\nembedding 5 3\nflatten\ndense 3\nloss cross_entropy\n' >"$folder/wild.net"
for smoothing in '' ' smoothing=0.1'; do
    sed -i "s/cross_entropy.*/cross_entropy$smoothing/" "$folder/wild.net"
    ends 0 export "$folder/wild.net" -o "$folder/c" --name wild --train -q
    cat >"$folder/c/program.c" <<'END'
#include <string.h>
#include "wild.h"
int main(void)
{
    static const int32_t wild[] = {-1, 3, 1000000000, INT32_MIN, INT32_MAX};
    static char before[WILD_SAVE_BYTES], after[WILD_SAVE_BYTES];
    wild_init();
    wild_save(before);
    for (int i = 0; i < 5; i++) {
        wild_input()[0] = wild[i] == 3 ? 5 : wild[i];
        wild_input()[1] = 4;
        float loss = wild_train_step(&wild[i], 0.1f);
        wild_save(after);
        if (loss == loss || memcmp(before, after, sizeof before) != 0)
            return 1;
    }
    wild_input()[0] = -7;
    wild_input()[1] = 4;
    float loss = wild_train_step(&(int32_t){1}, 0.1f);
    return !(loss > 0.0f);
}
END
    compiles wild "$folder/c/program.c"
done

# A file that cannot be written whole is not left behind
printf 'input x [400]\ndense 90\n' >"$folder/large.net"
rm -rf "$folder/c"
(
    trap '' XFSZ
    ulimit -f 40
    "$mica" export "$folder/large.net" -o "$folder/c" --name large
) >"$folder/out" 2>"$folder/err"
code=$? out=$(cat "$folder/out") err=$(cat "$folder/err")
[ "$code" -eq 1 ] || complain "a file that is too large should end with 1"
complains "cannot write"
[ -z "$(ls "$folder/c")" ] || complain "half a file should not be left: $(ls "$folder/c")"
