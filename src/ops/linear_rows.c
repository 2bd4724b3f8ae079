/* Rows times weights of any type: checks, and the way for each kind of weights. */
#include <mica/ops/text.h>

#include "ops/check.h"
#include "ops/contiguous.h"
#include "ops/linear_rows.h"

#define WEIGHTS \
    (MICA_DTYPE_BIT(MICA_F32) | MICA_DTYPE_BIT(MICA_F16) | MICA_DTYPE_BIT(MICA_BF16) | MICA_DTYPES_BLOCKS)

static mica_status check(mica_context *ctx, const mica_tensor *y, const mica_tensor *x, const mica_tensor *w,
                         const mica_tensor *bias)
{
    const char *op = "linear_rows";
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, 0},
                       {"x", x, 0, 0},
                       {"w", w, 0, WEIGHTS},
                       {"bias", bias, MICA_ARG_OPTIONAL, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 4));
    MICA_TRY(mica_check_rank(ctx, op, "x", x, 2, 2));
    MICA_TRY(mica_check_rank(ctx, op, "w", w, 2, 2));
    if (w->dim[1] != x->dim[1])
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: x is %s, w is %s: rows of %td values against rows of %td",
                         op, MICA_SHAPE(x), MICA_SHAPE(w), x->dim[1], w->dim[1]);
    MICA_TRY(mica_check_shape(ctx, op, "y", y, 2, (mica_index[]){x->dim[0], w->dim[0]}, "w", w));
    if (bias != NULL)
        MICA_TRY(mica_check_shape(ctx, op, "bias", bias, 1, &w->dim[0], "w", w));
    if (w->dim[1] > 1 && w->stride[1] != 1)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: w is %s with a stride of %td within its rows: expected 1",
                         op, MICA_SHAPE(w), w->stride[1]);
    return MICA_OK;
}

mica_status mica_linear_rows(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                             const mica_tensor *w, const mica_tensor *bias)
{
    MICA_TRY(check(ctx, y, x, w, bias));
    mica_linear_rows_call call = {.rows = (size_t)x->dim[0],
                                  .units = (size_t)w->dim[0],
                                  .width = (size_t)w->dim[1],
                                  .w = w->data,
                                  .w_dtype = w->dtype,
                                  .w_stride = w->stride[0]};
    mica_count_flops(ctx, 2.0 * (double)call.rows * (double)call.units * (double)call.width);
    mica_arg rows[] = {{"y", y, MICA_ARG_OUT, 0}, {"x", x, 0, 0}, {"bias", bias, 0, 0}};
    mica_contiguous dense;
    mica_tensor dense_copies[3];
    mica_contiguous_plan_rows(&dense, dense_copies, rows, 3);
    bool blocks = mica_in_blocks(w->dtype);
    void *scratch;
    MICA_START(ctx, "linear_rows",
               dense.bytes + (blocks ? mica_linear_rows_quant_scratch(ctx, &call)
                                     : mica_linear_rows_float_scratch(ctx, &call)),
               &scratch);
    if (call.rows == 0 || call.units == 0)
        return MICA_OK;
    scratch = mica_contiguous_load(&dense, scratch);
    call.y = dense.data[0];
    call.x = dense.data[1];
    call.bias = dense.data[2];
    call.y_stride = mica_contiguous_tensor(&dense, 0)->stride[0];
    call.x_stride = mica_contiguous_tensor(&dense, 1)->stride[0];
    if (blocks)
        mica_linear_rows_quant(ctx, &call, scratch);
    else
        mica_linear_rows_float(ctx, &call, scratch);
    mica_contiguous_store(&dense);
    return MICA_OK;
}
