/* One element at a time. */
#include "kernel/kernels.h"
#include "tensor/tensor.h"

/* The element's place, or NULL with the error recorded. */
static void *locate(mica_context *ctx, const char *op, const mica_tensor *t, const mica_index *index)
{
    if (mica_tensor_check(ctx, op, "t", t) != MICA_OK)
        return NULL;
    if (index == NULL && t->rank > 0) {
        (void)mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: index is NULL", op);
        return NULL;
    }
    mica_index offset = 0;
    for (int k = 0; k < t->rank; k++) {
        mica_index at = index[k] < 0 ? index[k] + t->dim[k] : index[k];
        if (at < 0 || at >= t->dim[k]) {
            (void)mica_fail(ctx, MICA_ERR_INDEX, "%s: index %s is out of range for t %s", op,
                            mica_shape_text_of(t->rank, index).text, MICA_SHAPE(t));
            return NULL;
        }
        offset += at * t->stride[k];
    }
    if (t->data == NULL) {
        (void)mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: t %s has no data (NULL)", op, MICA_SHAPE(t));
        return NULL;
    }
    return mica_element(t, offset);
}

mica_status mica_at(mica_context *ctx, double *value, const mica_tensor *t, const mica_index *index)
{
    if (value == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "at: value is NULL");
    const void *element = locate(ctx, "at", t, index);
    if (element == NULL)
        return mica_context_status(ctx);
    ctx->kernels->convert->run(value, MICA_F64, element, t->dtype, 1);
    return MICA_OK;
}

mica_status mica_set_at(mica_context *ctx, const mica_tensor *t, const mica_index *index, double value)
{
    void *element = locate(ctx, "set_at", t, index);
    if (element == NULL)
        return mica_context_status(ctx);
    ctx->kernels->convert->run(element, t->dtype, &value, MICA_F64, 1);
    return MICA_OK;
}
