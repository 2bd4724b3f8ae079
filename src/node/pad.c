/* Pad, unpad, tile. */
#include "node/shape.h"

static const mica_field pad_fields[] = {
    MICA_FIELDS(mica_pad_opts, before, INDEX, "elements at the start of each axis"),
    MICA_FIELDS(mica_pad_opts, after, INDEX, "elements at the end of each axis"),
    MICA_FIELD(mica_pad_opts, mode, CHOICE, "constant|reflect|edge|wrap"),
    MICA_FIELD(mica_pad_opts, value, DOUBLE, "padding value")};
static const mica_field unpad_fields[] = {
    MICA_FIELDS(mica_pad_opts, before, INDEX, "elements to drop at the beginning of each axis"),
    MICA_FIELDS(mica_pad_opts, after, INDEX, "elements to drop at the end of each axis")};

/* ---- Pad ---- */

static mica_status pad_infer(mica_infer *i)
{
    const mica_pad_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    mica_index dims[MICA_MAX_RANK];
    if ((unsigned)o->mode > MICA_PAD_WRAP)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "unknown mode %d", (int)o->mode);
    for (int k = 0; k < x->rank; k++) {
        mica_index before = o->before[k], after = o->after[k], most = PTRDIFF_MAX / 4;
        if (o->mode == MICA_PAD_REFLECT)
            most = x->dim[k] > 0 ? x->dim[k] - 1 : 0;
        else if (o->mode > MICA_PAD_REFLECT && x->dim[k] == 0)
            most = 0;
        if (before < 0 || after < 0 || before > most || after > most ||
            __builtin_add_overflow(x->dim[k], before + after, &dims[k]))
            return mica_infer_fail(i, MICA_ERR_ARGUMENT,
                                   "axis %d of size %td cannot be padded by %td before and %td after", k,
                                   x->dim[k], before, after);
    }
    return mica_infer_out(i, 0, x->dtype, x->rank, dims);
}

static mica_status pad_run(const mica_call *c) { return mica_pad(c->ctx, c->out[0], c->in[0], c->opts); }

static mica_status pad_backward_run(const mica_call *c)
{
    return mica_pad_backward(c->ctx, c->out[0], c->in[0], c->opts);
}

static void pad_gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_pad_backward, &g->dout[0], 1, g->opts);
}

static bool pad_mixes(const mica_infer *i)
{
    const mica_pad_opts *o = i->opts;
    return o->before[0] != 0 || o->after[0] != 0;
}

static void pad_sample(mica_op_sample *s)
{
    mica_pad_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 4, dims);
    o->mode = (mica_pad_mode)mica_op_sample_int(s, 0, MICA_PAD_WRAP);
    o->value = 0.5;
    for (int k = 0; k < rank; k++) {
        mica_index most = o->mode == MICA_PAD_REFLECT ? dims[k] - 1 : 3;
        o->before[k] = mica_op_sample_int(s, 0, most);
        o->after[k] = mica_op_sample_int(s, 0, most);
    }
    mica_op_sample_shape(s, 0, rank, dims);
}

/* ---- Unpad ---- */

static mica_status unpad_infer(mica_infer *i)
{
    const mica_pad_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    mica_index dims[MICA_MAX_RANK];
    for (int k = 0; k < x->rank; k++) {
        mica_index before = o->before[k], after = o->after[k];
        if (before < 0 || after < 0 || before > x->dim[k] || after > x->dim[k] - before)
            return mica_infer_fail(i, MICA_ERR_ARGUMENT,
                                   "axis %d of size %td cannot lose padding of %td before and %td after", k,
                                   x->dim[k], before, after);
        dims[k] = x->dim[k] - before - after;
    }
    return mica_infer_out(i, 0, x->dtype, x->rank, dims);
}

static mica_status unpad_run(const mica_call *c) { return mica_unpad(c->ctx, c->out[0], c->in[0], c->opts); }

/* dx = dy, and 0 around it */
static void unpad_gradient(mica_grad *g)
{
    mica_pad_opts zeros = *(const mica_pad_opts *)g->opts;
    zeros.mode = MICA_PAD_CONSTANT;
    zeros.value = 0.0;
    mica_grad_give(g, 0, &mica_op_pad, &g->dout[0], 1, &zeros);
}

static void unpad_sample(mica_op_sample *s)
{
    mica_pad_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 4, dims);
    for (int k = 0; k < rank; k++) {
        o->before[k] = mica_op_sample_int(s, 0, dims[k] - 1);
        o->after[k] = mica_op_sample_int(s, 0, dims[k] - 1 - o->before[k]);
    }
    mica_op_sample_shape(s, 0, rank, dims);
}

/* ---- Tile ---- */

static mica_status tile_infer(mica_infer *i)
{
    const mica_tile_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    int rank = o->rank != 0 ? o->rank : x->rank, missing = rank - x->rank;
    mica_index dims[MICA_MAX_RANK];
    if (missing < 0 || rank > MICA_MAX_RANK)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "rank is %d: expected %d to %d", rank, x->rank,
                               MICA_MAX_RANK);
    for (int k = 0; k < rank; k++) {
        mica_index size = k < missing ? 1 : x->dim[k - missing],
                   times = o->repeats[k] != 0 ? o->repeats[k] : 1;
        if (times < 1 || __builtin_mul_overflow(size, times, &dims[k]))
            return mica_infer_fail(i, MICA_ERR_ARGUMENT,
                                   "size %td cannot be repeated %td times along axis %d", size, times, k);
    }
    return mica_infer_out(i, 0, x->dtype, rank, dims);
}

static mica_status tile_run(const mica_call *c) { return mica_tile(c->ctx, c->out[0], c->in[0]); }

static mica_status tile_backward_run(const mica_call *c)
{
    return mica_tile_backward(c->ctx, c->out[0], c->in[0]);
}

static void tile_gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_tile_backward, &g->dout[0], 1, g->opts);
}

static bool tile_mixes(const mica_infer *i)
{
    const mica_tile_opts *o = i->opts;
    return (o->rank != 0 && o->rank != i->in[0]->rank) || o->repeats[0] > 1;
}

static void tile_sample(mica_op_sample *s)
{
    mica_tile_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 3, dims);
    o->rank = (int)mica_op_sample_int(s, rank - 1, 4);
    if (o->rank < rank)
        o->rank = 0;
    for (int k = 0; k < (o->rank != 0 ? o->rank : rank); k++)
        o->repeats[k] = mica_op_sample_int(s, 0, 3);
    mica_op_sample_shape(s, 0, rank, dims);
}

static const mica_field tile_fields[] = {
    MICA_FIELD(mica_tile_opts, rank, LENGTH, "rank of the result, adding leading axes; 0: that of x"),
    MICA_FIELDS(mica_tile_opts, repeats, INDEX, "repetitions along each axis of the result; 0: 1")};

/* ---- Entries ---- */

#define ENTRY(op, some_flags, options, list, mixing, words)                 \
    const mica_op mica_op_##op = {.name = #op,                              \
                                  .family = "shape",                        \
                                  .about = words,                           \
                                  .flags = some_flags,                      \
                                  .ins = 1,                                 \
                                  .outs = 1,                                \
                                  .names = (const char *const[]){"x", "y"}, \
                                  .opts_bytes = sizeof(options),            \
                                  MICA_FIELD_LIST(list),                    \
                                  .infer = op##_infer,                      \
                                  .run = op##_run,                          \
                                  .gradient = MICA_GRADIENT(op##_gradient), \
                                  .mixes = mixing,                          \
                                  .sample = MICA_SAMPLE(op##_sample)};

#define BACKWARD(op, options, list)                                                      \
    const mica_op mica_op_##op##_backward = {.name = #op "_backward",                    \
                                             .family = "shape",                          \
                                             .about = "the gradient of " #op,            \
                                             .ins = 1,                                   \
                                             .outs = 1,                                  \
                                             .names = (const char *const[]){"dy", "dx"}, \
                                             .opts_bytes = sizeof(options),              \
                                             MICA_FIELD_LIST(list),                      \
                                             .run = op##_backward_run};

ENTRY(pad, MICA_OP_CHEAP, mica_pad_opts, pad_fields, pad_mixes, "x with padding")
BACKWARD(pad, mica_pad_opts, pad_fields)
ENTRY(unpad, MICA_OP_CHEAP, mica_pad_opts, unpad_fields, pad_mixes, "x with padding removed")
ENTRY(tile, MICA_OP_CHEAP, mica_tile_opts, tile_fields, tile_mixes, "x repeated along its axes")
BACKWARD(tile, mica_tile_opts, tile_fields)
