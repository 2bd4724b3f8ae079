/* Shape inference helpers for entries; running operations by their entry; samples. */
#include <stdarg.h>
#include <string.h>

#include "base/format.h"
#include "node/entry.h"
#include "tensor/tensor.h"

/* ---- Infer ---- */

mica_status mica_infer_out(mica_infer *i, int out, mica_dtype dtype, int rank, const mica_index *dims)
{
    return mica_tensor_init(i->ctx, &i->out[out], NULL, dtype, rank, dims);
}

mica_status mica_infer_like(mica_infer *i, int out, int in)
{
    return mica_infer_out(i, out, i->in[in]->dtype, i->in[in]->rank, i->in[in]->dim);
}

mica_status mica_infer_fail(mica_infer *i, mica_status status, const char *format, ...)
{
    char message[MICA_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    (void)mica_vformat(message, sizeof message, format, args);
    va_end(args);
    return mica_fail(i->ctx, status, "%s: %s", i->op->name, message);
}

mica_status mica_infer_pass_on(mica_infer *i, mica_status status)
{
    char reason[MICA_ERROR_TEXT];
    const char *from = mica_error(i->ctx);
    for (int k = 0; k < 2; k++) {
        const char *colon = strstr(from, ": ");
        from = colon != NULL ? colon + 2 : from;
    }
    (void)mica_format(reason, sizeof reason, "%s", from);
    return mica_infer_fail(i, status, "%s", reason);
}

mica_status mica_infer_dtype(mica_infer *i, int in, mica_dtype dtype)
{
    if (i->in[in]->dtype == dtype)
        return MICA_OK;
    return mica_infer_fail(i, MICA_ERR_DTYPE, "expected %s, got %s", mica_dtype_name(dtype),
                           mica_dtype_name(i->in[in]->dtype));
}

mica_status mica_infer_broadcast(mica_infer *i, int out, int a, int b)
{
    const mica_tensor *x = i->in[a], *y = i->in[b];
    int rank = x->rank > y->rank ? x->rank : y->rank;
    mica_index dims[MICA_MAX_RANK];
    if (x->dtype != y->dtype)
        return mica_infer_fail(i, MICA_ERR_DTYPE, "expected one dtype, got %s and %s",
                               mica_dtype_name(x->dtype), mica_dtype_name(y->dtype));
    for (int k = 1; k <= rank; k++) {
        mica_index dx = k <= x->rank ? x->dim[x->rank - k] : 1, dy = k <= y->rank ? y->dim[y->rank - k] : 1;
        if (dx != dy && dx != 1 && dy != 1)
            return mica_infer_fail(i, MICA_ERR_SHAPE, "expected a shape that broadcasts with it, got %s",
                                   MICA_SHAPE(y));
        dims[rank - k] = dx == 1 ? dy : dx;
    }
    return mica_infer_out(i, out, x->dtype, rank, dims);
}

mica_status mica_infer_axis(mica_infer *i, int in, int axis, int *result)
{
    *result = axis;
    if (mica_axis_resolve(result, i->in[in]->rank))
        return MICA_OK;
    return mica_infer_fail(i, MICA_ERR_AXIS, "axis %d of a tensor of rank %d", axis, i->in[in]->rank);
}

/* ---- The list ---- */

static const mica_op *const ops[] = {
#define LISTED(name, family) &mica_op_##name,
    MICA_OPS(LISTED)
#undef LISTED
};

enum { OP_COUNT = sizeof ops / sizeof ops[0] };

const mica_op *mica_op_at(int number) { return number >= 0 && number < OP_COUNT ? ops[number] : NULL; }

const mica_op *mica_op_find(const char *name)
{
    for (int i = 0; name != NULL && i < OP_COUNT; i++)
        if (strcmp(ops[i]->name, name) == 0)
            return ops[i];
    return NULL;
}

/* ---- Calls outside of nets ---- */

/* Options that were not given are zeros. */
#define MOST_OPTIONS 512
static const char no_options[MOST_OPTIONS];

static mica_status check_call(mica_context *ctx, const mica_op *op, const void *outs,
                              const mica_tensor *const *ins, int count, const void *opts)
{
    if (op == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "op: the operation is NULL");
    if (outs == NULL || (ins == NULL && count > 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: the list of its %s is NULL", op->name,
                         outs == NULL ? "outputs" : "inputs");
    if (count < op->ins || count > op->ins + op->optional_ins)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %d inputs: expected %d to %d", op->name, count, op->ins,
                         op->ins + op->optional_ins);
    for (int i = 0; i < count; i++) {
        if (i < op->ins && ins[i] == NULL)
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: input %d is NULL", op->name, i);
        if (ins[i] != NULL)
            MICA_TRY(mica_tensor_check(ctx, op->name, "an input", ins[i]));
    }
    if (opts == NULL && op->opts_bytes > MOST_OPTIONS)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: opts is NULL", op->name);
    return MICA_OK;
}

mica_status mica_op_run(mica_context *ctx, const mica_op *op, const mica_tensor *const *outs,
                        const mica_tensor *const *ins, int count, const void *opts)
{
    MICA_TRY(check_call(ctx, op, outs, ins, count, opts));
    if (op->run == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: a view has nothing to run", op->name);
    mica_call call = {.ctx = ctx,
                      .op = op,
                      .opts = opts != NULL ? opts : no_options,
                      .ins = op->ins + op->optional_ins,
                      .outs = op->outs,
                      .training = true,
                      .scale = 1.0f};
    for (int i = 0; i < count; i++)
        call.in[i] = ins[i];
    for (int k = 0; k < op->outs; k++) {
        call.out[k] = outs[k];
        if (outs[k] == NULL && !(op->optional_outs >> k & 1u))
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: output %d is NULL", op->name, k);
    }
    return op->run(&call);
}

mica_status mica_op_infer(mica_context *ctx, const mica_op *op, mica_tensor *outs,
                          const mica_tensor *const *ins, int count, const void *opts)
{
    MICA_TRY(check_call(ctx, op, outs, ins, count, opts));
    if (op->infer == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: the caller must give the shape of its output",
                         op->name);
    mica_infer infer = {
        .ctx = ctx, .op = op, .opts = opts != NULL ? opts : no_options, .ins = op->ins + op->optional_ins};
    for (int i = 0; i < count; i++)
        infer.in[i] = ins[i];
    for (int k = 0; k < op->outs; k++)
        infer.out[k].rank = -1;
    MICA_TRY(op->infer(&infer));
    memcpy(outs, infer.out, (size_t)op->outs * sizeof *outs);
    return MICA_OK;
}

/* ---- Samples ---- */

mica_index mica_op_sample_int(mica_op_sample *sample, mica_index low, mica_index high)
{
    return low + (mica_index)(sample->draw(sample) % (uint64_t)(high - low + 1));
}

void mica_op_sample_shape(mica_op_sample *sample, int in, int rank, const mica_index *dims)
{
    mica_tensor t = {.dtype = MICA_F32, .rank = rank};
    memcpy(t.dim, dims, (size_t)rank * sizeof *dims);
    sample->in[in] = mica_tensor_like(&t, NULL);
}
