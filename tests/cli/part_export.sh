# mica export: files that compile by themselves and do what the net did. Sourced by check.sh.
# shellcheck shell=bash disable=SC2154,SC2034 # check.sh has the functions and sets what they leave

# ---- Usage ----
ends 2 export
complains "which net? Try: mica export lenet -o lenet-c"
ends 2 export lenet
complains "where to? Use -o DIR"
ends 2 export lenet -o "$folder/c" --name 3d
complains "--name 3d: expected a C identifier"
ends 2 export lenet -o "$folder/c" --freeze conv1
complains "--freeze needs --train"
ends 3 export lnet -o "$folder/c"
complains 'did you mean "lenet"?'
[ ! -e "$folder/c" ] || complain "an export that failed has made a folder"
ends 1 export lenet --train -o "$folder/c" --freeze cvon
complains 'no parameter'

# ---- Files ----
printf 'input image [1, 12, 12]\nconv 8 3x3 pad=1 relu\nmax_pool 2x2\nconv 16 3x3 pad=1 relu\nmax_pool 2x2\nflatten\ndense 10 name=logits\nloss cross_entropy\n' >"$folder/small.net"
printf 'input x [2]\ndense 8 tanh\ndense 1 name=y\nloss bce_logits\n' >"$folder/xor.net"
printf 'input x [4]\ncopy cast dtype=f16\ncopy cast dtype=f32\ndense 3\n' >"$folder/half.net"
ends 1 export "$folder/half.net" -o "$folder/half"
complains "half.net cannot be exported"
complains "f16"
[ ! -e "$folder/half" ] || complain "what cannot be exported has made a folder"
ends 1 export "$folder/small.net" -o "$folder/c" --train --budget 20000
complains "needs at least "
ends 0 export "$folder/small.net" -o "$folder/c" --json
says_json 'data["ram"] < 3000 and data["flash"] == 10792 and data["files"] == ["small.c", "small.h", "small_test.c", "small.md"]'
printf 'x\n' >"$folder/file"
ends 1 export lenet -o "$folder/file"
complains "cannot create the folder"

# ---- Compiled ----
compilers=()
for compiler in gcc clang; do
    ! command -v $compiler >/dev/null || compilers+=("$compiler")
done

# exports_right NAME ARGS...: the export compiles without a warning and passes its test, in its own memory and in the
# caller's; its RAM is what the header says.
exports_right() {
    local name=$1 compiler own constant measured
    shift
    ends 0 export "$@" -o "$folder/c" --name "$name" -q
    for compiler in "${compilers[@]}"; do
        for own in "" "-D${name^^}_OWN_ARENA"; do
            # shellcheck disable=SC2086 # none or one
            if ! $compiler -std=c99 -Wall -Wextra -Wshadow -Werror -pedantic -O1 -fsanitize=address,undefined -fno-sanitize-recover=all $own \
                "$folder/c/$name.c" "$folder/c/${name}_test.c" -o "$folder/c/test" >"$folder/said" 2>&1 ||
                ! "$folder/c/test" >"$folder/said" 2>&1; then
                complain "mica export $*, $compiler $own: $(head -5 "$folder/said")"
            fi
        done
    done
    [ ${#compilers[@]} -gt 0 ] || return 0
    "${compilers[0]}" -std=c99 -O2 -c "$folder/c/$name.c" -o "$folder/c/$name.o"
    constant=$(sed -nE "s/^#define ${name^^}_RAM_BYTES +([0-9]+).*/\1/p" "$folder/c/$name.h")
    measured=$(size "$folder/c/$name.o" | awk 'NR == 2 { print $2 + $3 }')
    [ "$constant" = "$measured" ] || complain "$name: RAM_BYTES is $constant, the object has $measured"
}

exports_right small "$folder/small.net"
exports_right small "$folder/small.net" --batch 3
exports_right small "$folder/small.net" --train
exports_right small "$folder/small.net" --train --freeze conv --optimizer adamw --weight-decay 0.01 --batch 2
exports_right xor "$folder/xor.net" --train --batch 4
exports_right lenet lenet --train --optimizer sgd
exports_right net gpt-tiny --set width=16 --set layers=1 --set heads=2 --set length=8 --train
exports_right net lstm --set width=8 --set length=8
exports_right net resnet-small --set width=4 --train --batch 2

# ---- A checkpoint ----
ends 0 train "$folder/small.net" --data digits:100 --epochs 1 --checkpoint "$folder/learned" -q
exports_right trained "$folder/learned"
exports_right trained "$folder/learned" --train --freeze conv1

# ---- In bytes: the test compares all of them ----
ends 2 export lenet -o "$folder/c" --data digits
complains "--samples, --per-channel, --per-tensor and --qat need --int8"
ends 3 export lenet -o "$folder/c" --int8 --data digits:100
complains "--int8 is for checkpoints and ONNX models: lenet has no trained weights to quantize"
ends 2 export "$folder/learned" -o "$folder/c" --int8 --train
complains "--int8 --train needs --freeze PREFIX"
for target in generic m4 m55; do
    exports_right bytes "$folder/learned" --int8 --target $target
done
exports_right bytes "$folder/learned" --int8 --data digits:50 --calibrate percentile --per-tensor --batch 2
exports_right bytes "$folder/learned" --int8 --train --freeze conv --target m4
ends 0 export "$folder/learned" -o "$folder/c" --int8 --name bytes -q
ends 0 eval "$folder/c/bytes.safetensors" -q
ends 0 quantize "$folder/learned" "$folder/bytes.safetensors" --int8 -q
exports_right again "$folder/bytes.safetensors" --target m4
cmp -s <(sed 's/again/bytes/g; s/AGAIN/BYTES/g' "$folder/c/again_test.c") <("$mica" export "$folder/learned" -o "$folder/d" --int8 --name bytes --target m4 -q && cat "$folder/d/bytes_test.c") ||
    complain "exporting a quantized net should be the same as --int8"
