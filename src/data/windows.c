/* Windows of tokens, and the same windows shifted by one token. */
#include <mica/data.h>

#include "ops/check.h"
#include "ops/move.h"
#include "kernel/kernels.h"

mica_index mica_windows_count(const mica_tensor *tokens, mica_index length)
{
    if (tokens == NULL || tokens->rank != 1 || tokens->dim[0] < 1 || length < 1)
        return 0;
    return (tokens->dim[0] - 1) / length;
}

static mica_status check(mica_context *ctx, const char *op, const mica_tensor *inputs,
                         const mica_tensor *targets, const mica_tensor *tokens)
{
    mica_arg args[] = {{"inputs", inputs, MICA_ARG_OUT, MICA_DTYPES_ANY},
                       {"targets", targets, MICA_ARG_OUT, MICA_DTYPES_ANY},
                       {"tokens", tokens, 0, MICA_DTYPES_ANY}};
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    MICA_TRY(mica_check_rank(ctx, op, "inputs", inputs, 2, 2));
    MICA_TRY(mica_check_rank(ctx, op, "tokens", tokens, 1, 1));
    MICA_TRY(mica_check_same_shape(ctx, op, "targets", targets, "inputs", inputs));
    if (inputs->dim[0] > 0 && tokens->dim[0] - 1 < inputs->dim[1])
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: tokens %s are too few for inputs %s and one more", op,
                         MICA_SHAPE(tokens), MICA_SHAPE(inputs));
    return MICA_OK;
}

static void copy_window(mica_context *ctx, const mica_tensor *dst, mica_index row, const mica_tensor *tokens,
                        mica_index start)
{
    mica_line to = {mica_element(dst, row * dst->stride[0]), dst->dtype, dst->stride[1]};
    mica_line from = {mica_element(tokens, start * tokens->stride[0]), tokens->dtype, tokens->stride[0]};
    mica_move_line(ctx->kernels->convert, to, from, dst->dim[1]);
}

mica_status mica_windows_random(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                                const mica_tensor *tokens, mica_random at)
{
    static const char op[] = "windows_random";
    MICA_TRY(check(ctx, op, inputs, targets, tokens));
    MICA_START(ctx, op, 0, NULL);
    for (mica_index row = 0; row < inputs->dim[0]; row++) {
        mica_index start = (mica_index)mica_random_below(&at, (uint64_t)(tokens->dim[0] - inputs->dim[1]));
        copy_window(ctx, inputs, row, tokens, start);
        copy_window(ctx, targets, row, tokens, start + 1);
    }
    return MICA_OK;
}

mica_status mica_windows_in_order(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                                  const mica_tensor *tokens, mica_index first)
{
    static const char op[] = "windows_in_order";
    MICA_TRY(check(ctx, op, inputs, targets, tokens));
    mica_index windows = mica_windows_count(tokens, inputs->dim[1]);
    if (first < 0 || inputs->dim[0] > windows || first > windows - inputs->dim[0])
        return mica_fail(ctx, MICA_ERR_INDEX,
                         "%s: windows %td to %td for inputs %s, but tokens %s only have %td", op, first,
                         first + inputs->dim[0] - 1, MICA_SHAPE(inputs), MICA_SHAPE(tokens), windows);
    MICA_START(ctx, op, 0, NULL);
    for (mica_index row = 0; row < inputs->dim[0]; row++) {
        mica_index start = (first + row) * inputs->dim[1];
        copy_window(ctx, inputs, row, tokens, start);
        copy_window(ctx, targets, row, tokens, start + 1);
    }
    return MICA_OK;
}
