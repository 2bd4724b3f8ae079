/* Argument checks, and the messages that go with them. */
#include "ops/check.h"
#include "base/format.h"

static mica_status check_valid(mica_context *ctx, const char *op, const mica_arg *arg)
{
    MICA_TRY(mica_tensor_check(ctx, op, arg->name, arg->tensor));
    if (arg->tensor->data == NULL && !ctx->measuring && mica_tensor_count(arg->tensor) > 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s %s has no data (NULL)", op, arg->name,
                         MICA_SHAPE(arg->tensor));
    return MICA_OK;
}

static mica_status check_dtype(mica_context *ctx, const char *op, const mica_arg *arg)
{
    uint64_t allowed = arg->dtypes != 0 ? arg->dtypes : MICA_DTYPE_BIT(MICA_F32);
    if (allowed & MICA_DTYPE_BIT(arg->tensor->dtype))
        return MICA_OK;
    char names[224] = "a plain type"; /* many with " or " between them fit */
    int used = 0;
    bool any = (allowed & MICA_DTYPES_ANY) == MICA_DTYPES_ANY;
    for (unsigned d = 0; !any && d < MICA_DTYPE_COUNT; d++) {
        if ((allowed & MICA_DTYPE_BIT(d)) && (size_t)used < sizeof names)
            used += mica_format(names + used, sizeof names - (size_t)used, "%s%s", used > 0 ? " or " : "",
                                mica_dtype_name((mica_dtype)d));
    }
    return mica_fail(ctx, MICA_ERR_DTYPE, "%s: %s %s is %s, expected %s", op, arg->name,
                     MICA_SHAPE(arg->tensor), mica_dtype_name(arg->tensor->dtype), names);
}

static mica_status check_overlap(mica_context *ctx, const char *op, const mica_arg *out,
                                 const mica_arg *other)
{
    mica_overlap overlap = mica_tensor_overlap(out->tensor, other->tensor);
    if (overlap == MICA_OVERLAP_NONE)
        return MICA_OK;
    bool in_place = (other->flags & MICA_ARG_IN_PLACE) && !(other->flags & MICA_ARG_OUT);
    if (overlap == MICA_OVERLAP_EXACT && in_place)
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_ALIAS, "%s: %s %s overlaps %s %s%s", op, out->name,
                     MICA_SHAPE(out->tensor), other->name, MICA_SHAPE(other->tensor),
                     in_place ? " without being identical to it" : "");
}

/* An output against itself and every argument; a pair of outputs is looked at once. */
static mica_status check_output(mica_context *ctx, const char *op, const mica_arg *args, int count, int out)
{
    if (mica_tensor_self_overlap(args[out].tensor))
        return mica_fail(ctx, MICA_ERR_ALIAS,
                         "%s: %s %s has several indices for the same element and cannot be written", op,
                         args[out].name, MICA_SHAPE(args[out].tensor));
    for (int i = 0; i < count; i++) {
        bool pair_is_new = i > out || (i < out && !(args[i].flags & MICA_ARG_OUT));
        if (pair_is_new && args[i].tensor != NULL)
            MICA_TRY(check_overlap(ctx, op, &args[out], &args[i]));
    }
    return MICA_OK;
}

mica_status mica_check_args(mica_context *ctx, const char *op, const mica_arg *args, int count)
{
    if (ctx->trusted && !ctx->measuring)
        return MICA_OK;
    for (int i = 0; i < count; i++) {
        if (args[i].tensor == NULL && (args[i].flags & MICA_ARG_OPTIONAL))
            continue;
        MICA_TRY(check_valid(ctx, op, &args[i]));
        MICA_TRY(check_dtype(ctx, op, &args[i]));
    }
    if (ctx->measuring)
        return MICA_OK;
    for (int i = 0; i < count; i++)
        if ((args[i].flags & MICA_ARG_OUT) && args[i].tensor != NULL)
            MICA_TRY(check_output(ctx, op, args, count, i));
    return MICA_OK;
}

mica_status mica_check_same_shape(mica_context *ctx, const char *op, const char *name, const mica_tensor *t,
                                  const char *like_name, const mica_tensor *like)
{
    if (mica_tensor_same_shape(t, like))
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s, %s is %s: expected the same shape", op, name,
                     MICA_SHAPE(t), like_name, MICA_SHAPE(like));
}

mica_status mica_check_shape(mica_context *ctx, const char *op, const char *name, const mica_tensor *t,
                             int rank, const mica_index *dims, const char *because_name,
                             const mica_tensor *because)
{
    bool same = t->rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = t->dim[i] == dims[i];
    if (same)
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s, expected %s for %s %s", op, name, MICA_SHAPE(t),
                     mica_shape_text_of(rank, dims).text, because_name, MICA_SHAPE(because));
}

mica_status mica_check_rank(mica_context *ctx, const char *op, const char *name, const mica_tensor *t,
                            int low, int high)
{
    if (t->rank >= low && t->rank <= high)
        return MICA_OK;
    if (low == high)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s of rank %d, expected rank %d", op, name,
                         MICA_SHAPE(t), t->rank, low);
    return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s of rank %d, expected rank %d to %d", op, name,
                     MICA_SHAPE(t), t->rank, low, high);
}

mica_status mica_check_broadcast(mica_context *ctx, const char *op, const char *name, const mica_tensor *t,
                                 const char *to_name, const mica_tensor *to)
{
    bool fits = t->rank <= to->rank;
    for (int i = 0; fits && i < t->rank; i++) {
        mica_index have = t->dim[t->rank - 1 - i], want = to->dim[to->rank - 1 - i];
        fits = have == want || have == 1;
    }
    if (fits)
        return MICA_OK;
    return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s, which does not broadcast to %s %s", op, name,
                     MICA_SHAPE(t), to_name, MICA_SHAPE(to));
}

mica_status mica_check_axis(mica_context *ctx, const char *op, int axis, const char *name,
                            const mica_tensor *t, int *out)
{
    if (axis < -t->rank || axis >= t->rank)
        return mica_fail(ctx, MICA_ERR_AXIS, "%s: axis %d of %s %s, which has rank %d", op, axis, name,
                         MICA_SHAPE(t), t->rank);
    *out = axis < 0 ? axis + t->rank : axis;
    return MICA_OK;
}

mica_status mica_op_start(mica_context *ctx, const char *op, size_t bytes, void **scratch)
{
    if (scratch != NULL)
        *scratch = ctx->workspace;
    if (ctx->measuring) {
        if (bytes > ctx->measured)
            ctx->measured = bytes;
        return MICA_MEASURED;
    }
    if (bytes > ctx->workspace_bytes)
        return mica_fail(ctx, MICA_ERR_WORKSPACE, "%s needs %zu bytes of scratch, the workspace has %zu", op,
                         bytes, ctx->workspace_bytes);
    return MICA_OK;
}
