/* The gate of a feed-forward layer: act(a) * b in one pass. */
#include <mica/ops/activation.h>
#include <mica/ops/text.h>

#include "ops/check.h"
#include "ops/walk.h"

#define PIECE ((size_t)256) /* elements at a time, on the stack */

typedef struct gate_kernels {
    mica_map_fn *activation, *mul;
} gate_kernels;

/* An element-wise kernel made of two: as dst may be a or b, what lies between has a place of its own. */
static void gate(float *dst, const float *const *src, size_t n, const void *params)
{
    const gate_kernels *k = params;
    float between[PIECE];
    for (size_t i = 0; i < n; i += PIECE) {
        size_t count = n - i < PIECE ? n - i : PIECE;
        k->activation(between, (const float *const[]){src[0] + i}, count, NULL);
        k->mul(dst + i, (const float *const[]){between, src[1] + i}, count, NULL);
    }
}

mica_status mica_gate(mica_context *ctx, const mica_tensor *y, const mica_tensor *a, const mica_tensor *b,
                      const mica_gate_opts *opts)
{
    mica_activation kind = opts != NULL ? opts->activation : MICA_NO_ACTIVATION;
    gate_kernels k = {.activation = kind == MICA_GELU ? MICA_KERNEL(ctx->kernels, activation, gelu)
                                    : kind == MICA_GELU_TANH
                                        ? MICA_KERNEL(ctx->kernels, activation, gelu_tanh)
                                        : MICA_KERNEL(ctx->kernels, activation, silu),
                      .mul = MICA_KERNEL(ctx->kernels, map, mul)};
    if (kind != MICA_NO_ACTIVATION && kind != MICA_SILU && kind != MICA_GELU && kind != MICA_GELU_TANH)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "gate: activation %d: expected silu, gelu or gelu_tanh",
                         (int)kind);
    mica_arg args[] = {
        {"y", y, MICA_ARG_OUT, 0}, {"a", a, MICA_ARG_IN_PLACE, 0}, {"b", b, MICA_ARG_IN_PLACE, 0}};
    MICA_TRY(mica_check_args(ctx, "gate", args,
                             3)); /* the shapes are compared before they could be repeated to fit */
    MICA_TRY(mica_check_same_shape(ctx, "gate", "a", a, "y", y));
    MICA_TRY(mica_check_same_shape(ctx, "gate", "b", b, "y", y));
    return mica_map_op_much(ctx, "gate", gate, &k, args, 3);
}
