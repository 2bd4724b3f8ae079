/* Argmax and argmin, dot products, and L2 normalization. */
#include "node/entry.h"
#include "node/sample.h"
#include "node/typed.h"
#include "ops/reduce.h"

/* ---- Positions ---- */

static mica_status infer_arg(mica_infer *i)
{
    const mica_arg_opts *opts = i->opts;
    const mica_tensor *a = i->in[0];
    int rank = 0, axis = MICA_ALL_AXES;
    mica_index dims[MICA_MAX_RANK];
    MICA_TRY(opts->axis == MICA_ALL_AXES ? mica_infer_dtype(i, 0, MICA_F32) : mica_infer_folded(i, 0));
    if (opts->axis != MICA_ALL_AXES)
        MICA_TRY(mica_infer_axis(i, 0, opts->axis, &axis));
    for (int k = 0; k < a->rank; k++) {
        bool goes = k == axis || axis == MICA_ALL_AXES;
        if (opts->keep || !goes)
            dims[rank++] = goes ? 1 : a->dim[k];
    }
    MICA_TRY(mica_infer_out(i, 0, opts->wide ? MICA_I64 : MICA_I32, rank, dims));
    if (mica_tensor_count(&i->out[0]) > 0 && mica_tensor_count(a) == 0)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "the axis is empty");
    return MICA_OK;
}

static bool mixes_arg(const mica_infer *i)
{
    int axis = ((const mica_arg_opts *)i->opts)->axis;
    return axis == 0 || axis == MICA_ALL_AXES || axis == -i->in[0]->rank;
}

static void sample_arg(mica_op_sample *s)
{
    mica_arg_opts *opts = s->opts;
    mica_sample_one(s, -1.0, 1.0);
    opts->axis = (int)mica_op_sample_int(s, -1, s->in[0].rank - 1);
    if (mica_op_sample_int(s, 0, 3) == 0)
        opts->axis = MICA_ALL_AXES;
    opts->keep = mica_sample_chance(s);
    opts->wide = mica_sample_chance(s);
}

static const mica_field arg_fields[] = {
    MICA_FIELD(mica_arg_opts, axis, INT, "the axis; negative counts from the end"),
    MICA_FIELD(mica_arg_opts, keep, BOOL, "keep the axis with size 1"),
    MICA_FIELD(mica_arg_opts, wide, BOOL, "i64 instead of i32")};

#define ARG(op, words)                                                                         \
    static mica_status run_##op(const mica_call *c)                                            \
    {                                                                                          \
        return mica_##op(c->ctx, c->out[0], c->in[0], ((const mica_arg_opts *)c->opts)->axis); \
    }                                                                                          \
    const mica_op mica_op_##op = {.name = #op,                                                 \
                                  .family = "reduce",                                          \
                                  .about = words,                                              \
                                  .ins = 1,                                                    \
                                  .outs = 1,                                                   \
                                  .opts_bytes = sizeof(mica_arg_opts),                         \
                                  MICA_FIELD_LIST(arg_fields),                                 \
                                  .infer = infer_arg,                                          \
                                  .run = run_##op,                                             \
                                  .mixes = mixes_arg,                                          \
                                  .sample = MICA_SAMPLE(sample_arg)};

/* clang-format off */
ARG(argmax, "the index of the maximum along an axis")
ARG(argmin, "the index of the minimum along an axis")
/* clang-format on */

static const mica_field axis_field[] = {
    MICA_FIELD(mica_axis_opts, axis, INT, "the axis; negative counts from the end")};

/* As a call of its own it needs the input of the forward, for its shape. */
static mica_status infer_amax_backward(mica_infer *i)
{
    int axis;
    if (i->ins < 3 || i->in[2] == NULL)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "expected x, which has the result's shape");
    MICA_TRY(mica_infer_axis(i, 2, ((const mica_axis_opts *)i->opts)->axis, &axis));
    return mica_infer_like(i, 0, 2);
}

static mica_status run_amax_backward(const mica_call *c)
{
    return mica_amax_backward(c->ctx, c->out[0], c->in[0], c->in[1], ((const mica_axis_opts *)c->opts)->axis);
}

static bool mixes_amax_backward(const mica_infer *i)
{
    int axis = ((const mica_axis_opts *)i->opts)->axis;
    return axis == 0 || (i->ins > 2 && i->in[2] != NULL && axis == -i->in[2]->rank);
}

static void sample_amax_backward(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 3, dims), axis = (int)mica_op_sample_int(s, 0, rank - 1);
    s->ins = 3;
    mica_op_sample_shape(s, 2, rank, dims);
    mica_sample_range(s, 1, 0.0, (double)dims[axis]);
    dims[axis] = 1;
    mica_op_sample_shape(s, 0, rank, dims);
    mica_op_sample_shape(s, 1, rank, dims);
    s->in[1].dtype = MICA_I32;
    ((mica_axis_opts *)s->opts)->axis = axis;
}

const mica_op mica_op_amax_backward = {.name = "amax_backward",
                                       .family = "reduce",
                                       .about = "the gradient of amax and amin along one axis",
                                       .ins = 2,
                                       .optional_ins = 1,
                                       .outs = 1,
                                       .names = (const char *const[]){"dy", "index", "x", "dx"},
                                       .opts_bytes = sizeof(mica_axis_opts),
                                       MICA_FIELD_LIST(axis_field),
                                       .infer = infer_amax_backward,
                                       .run = run_amax_backward,
                                       .mixes = mixes_amax_backward,
                                       .sample = MICA_SAMPLE(sample_amax_backward)};

/* ---- Dot ---- */

static mica_status infer_dot(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_F32));
    if (!mica_tensor_same_shape(i->in[0], i->in[1]))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected the same shape, got %s", MICA_SHAPE(i->in[1]));
    return mica_infer_out(i, 0, MICA_F32, 0, NULL);
}

static mica_status run_dot(const mica_call *c) { return mica_dot(c->ctx, c->out[0], c->in[0], c->in[1]); }

/* da = dy b, db = dy a */
static void gradient_dot(mica_grad *g)
{
    mica_grad_give(g, 1, &mica_op_mul, (mica_value[]){g->in[0], g->dout[0]}, 2, NULL);
    mica_grad_give(g, 0, &mica_op_mul, (mica_value[]){g->in[1], g->dout[0]}, 2, NULL);
}

static bool mixes_dot(const mica_infer *i) { return i->in[0]->rank > 0; }

const mica_op mica_op_dot = {.name = "dot",
                             .family = "reduce",
                             .about = "the sum of a * b",
                             .ins = 2,
                             .outs = 1,
                             .infer = infer_dot,
                             .run = run_dot,
                             .gradient = MICA_GRADIENT(gradient_dot),
                             .mixes = mixes_dot};

/* ---- L2 normalize ---- */

static const mica_field l2_fields[] = {
    MICA_FIELD(mica_l2_normalize_opts, axis, INT, "the axis; negative counts from the end"),
    MICA_FIELD(mica_l2_normalize_opts, eps, FLOAT, "the smallest norm to divide by; 0: 1e-12")};

static mica_status infer_l2(mica_infer *i)
{
    const mica_l2_normalize_opts *opts = i->opts;
    int axis;
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(mica_infer_axis(i, 0, opts->axis, &axis));
    if (!(opts->eps >= 0.0f))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "eps is %g: expected 0 or more", (double)opts->eps);
    return mica_infer_like(i, 0, 0);
}

static mica_status run_l2(const mica_call *c)
{
    return mica_l2_normalize(c->ctx, c->out[0], c->in[0], c->opts);
}

static mica_status run_l2_backward(const mica_call *c)
{
    return mica_l2_normalize_backward(c->ctx, c->out[0], c->in[0], c->in[1], c->opts);
}

static void gradient_l2(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_l2_normalize_backward, (mica_value[]){g->dout[0], g->in[0]}, 2, g->opts);
}

static bool mixes_l2(const mica_infer *i)
{
    int axis = ((const mica_l2_normalize_opts *)i->opts)->axis;
    return axis == 0 || axis == -i->in[0]->rank;
}

static void sample_l2(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 3, dims);
    for (int k = 0; k < s->ins; k++)
        mica_op_sample_shape(s, k, rank, dims);
    mica_sample_range(s, s->ins - 1, 0.2, 1.0);
    ((mica_l2_normalize_opts *)s->opts)->axis = (int)mica_op_sample_int(s, -1, rank - 1);
}

const mica_op mica_op_l2_normalize = {.name = "l2_normalize",
                                      .family = "reduce",
                                      .about = "x / its L2 norm along an axis",
                                      .flags = MICA_OP_CHEAP,
                                      .ins = 1,
                                      .outs = 1,
                                      .names = (const char *const[]){"x", "y"},
                                      .opts_bytes = sizeof(mica_l2_normalize_opts),
                                      MICA_FIELD_LIST(l2_fields),
                                      .in_place = {1},
                                      .infer = infer_l2,
                                      .run = run_l2,
                                      .gradient = MICA_GRADIENT(gradient_l2),
                                      .mixes = mixes_l2,
                                      .sample = MICA_SAMPLE(sample_l2)};

const mica_op mica_op_l2_normalize_backward = {.name = "l2_normalize_backward",
                                               .family = "reduce",
                                               .about = "the gradient of l2_normalize",
                                               .ins = 2,
                                               .outs = 1,
                                               .names = (const char *const[]){"dy", "x", "dx"},
                                               .opts_bytes = sizeof(mica_l2_normalize_opts),
                                               MICA_FIELD_LIST(l2_fields),
                                               .in_place = {3},
                                               .infer = infer_l2,
                                               .run = run_l2_backward,
                                               .mixes = mixes_l2,
                                               .sample = MICA_SAMPLE(sample_l2)};
