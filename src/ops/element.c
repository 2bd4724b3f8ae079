/* One element at a time. */
#include "ops/element.h"
#include "kernel/kernels.h"
#include "tensor/tensor.h"

/* Finds the element's offset. */
static mica_status locate(mica_context *ctx, const char *op, const mica_tensor *t, const mica_index *index,
                          mica_index *offset)
{
    MICA_TRY(mica_tensor_check(ctx, op, "t", t));
    if (index == NULL && t->rank > 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: index is NULL", op);
    *offset = 0;
    for (int k = 0; k < t->rank; k++) {
        mica_index at = index[k] < 0 ? index[k] + t->dim[k] : index[k];
        if (at < 0 || at >= t->dim[k])
            return mica_fail(ctx, MICA_ERR_INDEX, "%s: index %s is out of range for t %s", op,
                             mica_shape_text_of(t->rank, index).text, MICA_SHAPE(t));
        *offset += at * t->stride[k];
    }
    if (t->data == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: t %s has no data (NULL)", op, MICA_SHAPE(t));
    return MICA_OK;
}

double mica_element_value(const mica_convert_kernels *convert, const mica_tensor *t, mica_index offset)
{
    double values[MICA_MAX_BLOCK];
    mica_index block = (mica_index)mica_dtype_block(t->dtype), inside = offset % block;
    MICA_KERNEL_OF(convert, convert, run)(values, MICA_F64, mica_element(t, offset), t->dtype, (size_t)block);
    return values[inside < 0 ? inside + block : inside];
}

mica_status mica_at(mica_context *ctx, double *value, const mica_tensor *t, const mica_index *index)
{
    if (value == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "at: value is NULL");
    mica_index offset;
    MICA_TRY(locate(ctx, "at", t, index, &offset));
    *value = mica_element_value(ctx->kernels->convert, t, offset);
    return MICA_OK;
}

mica_status mica_set_at(mica_context *ctx, const mica_tensor *t, const mica_index *index, double value)
{
    mica_index offset;
    MICA_TRY(locate(ctx, "set_at", t, index, &offset));
    if (mica_in_blocks(t->dtype))
        return mica_fail(ctx, MICA_ERR_DTYPE,
                         "set_at: t %s is %s, where a value cannot be set without the rest of its block",
                         MICA_SHAPE(t), mica_dtype_name(t->dtype));
    MICA_KERNEL(ctx->kernels, convert, run)(mica_element(t, offset), t->dtype, &value, MICA_F64, 1);
    return MICA_OK;
}
