/* Convolution of integers, as imported nets have it; and what rounding to bytes does, for training with it. Family
 * "composed": callers of operations have no use for them. */
#include "ops/integer.h"
#include "node/check.h"
#include "node/planes.h"

enum { X, W };

static mica_status infer(mica_infer *i)
{
    const mica_integer_conv_opts *o = i->opts;
    const mica_tensor *x = i->in[X], *w = i->in[W];
    MICA_TRY(mica_infer_dtype(i, X, MICA_I32));
    MICA_TRY(mica_infer_dtype(i, W, MICA_I32));
    if ((x->rank != 3 && x->rank != 4) || w->rank != x->rank)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "expected x [N, C, H, W] or [N, C, L] and w of its rank, got %s, %s",
                               MICA_SHAPE(x), MICA_SHAPE(w));
    mica_index groups = o->groups != 0 ? o->groups : 1, sizes[2] = {0};
    if (groups < 1 || w->dim[0] % groups != 0 || x->dim[1] % groups != 0 || x->dim[1] / groups != w->dim[1])
        return mica_infer_fail(
            i, MICA_ERR_SHAPE,
            "%td channels in dimension 1 do not match weights [%td, %td, ...] in %td groups", x->dim[1],
            w->dim[0], w->dim[1], groups);
    mica_conv2d_opts sizing = {.stride = {o->stride[0], o->stride[1]},
                               .dilation = {o->dilation[0], o->dilation[1]}};
    char reason[MICA_REASON];
    mica_tensor taps = mica_planes(w);
    mica_status status = mica_conv_sizes(sizes, reason, x, &taps.dim[2], &sizing, false);
    if (status != MICA_OK)
        return mica_infer_fail(i, status, "%s", reason);
    bool flat = x->rank == 3;
    return mica_infer_out(i, 0, MICA_I32, x->rank,
                          (mica_index[]){x->dim[0], w->dim[0], flat ? sizes[1] : sizes[0], sizes[1]});
}

static mica_status run(const mica_call *c)
{
    mica_tensor x = mica_planes(c->in[X]), y = mica_planes(c->out[0]), w = mica_planes(c->in[W]);
    return mica_integer_conv(c->ctx, &y, &x, &w, c->opts);
}

static void sample(mica_op_sample *s)
{
    mica_integer_conv_opts *o = s->opts;
    mica_index groups = mica_op_sample_int(s, 1, 2), in = mica_op_sample_int(s, 1, 3);
    mica_index x[4] = {mica_op_sample_int(s, 1, 2), groups * in},
               w[4] = {groups * mica_op_sample_int(s, 1, 3), in};
    o->groups = groups;
    for (int k = 0; k < 2; k++) {
        w[2 + k] = mica_op_sample_int(s, 1, 3);
        o->stride[k] = mica_op_sample_int(s, 1, 2);
        o->dilation[k] = mica_op_sample_int(s, 1, 2);
        x[2 + k] = mica_op_sample_int(s, 0, 4) + o->dilation[k] * (w[2 + k] - 1) + 1;
    }
    for (int k = 0; k < 2; k++) {
        mica_op_sample_shape(s, k, 4, k == X ? x : w);
        s->in[k].dtype = MICA_I32;
        mica_sample_range(s, k, -300.0, 300.0);
    }
}

static const mica_field fields[] = {
    MICA_FIELDS(mica_integer_conv_opts, stride, INDEX, "0: 1"),
    MICA_FIELDS(mica_integer_conv_opts, dilation, INDEX, "0: 1"),
    MICA_FIELD(mica_integer_conv_opts, groups, INDEX, "0: 1"),
};

const mica_op mica_op_integer_conv = {.name = "integer_conv",
                                      .family = "composed",
                                      .about = "convolution of i32 images, without padding; sums wrap",
                                      .ins = 2,
                                      .outs = 1,
                                      .names = (const char *const[]){"x", "w", "y"},
                                      .opts_bytes = sizeof(mica_integer_conv_opts),
                                      MICA_FIELD_LIST(fields),
                                      .infer = infer,
                                      .run = run,
                                      .sample = MICA_SAMPLE(sample)};

/* ---- Rounding ---- */

static mica_status error_infer(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    return mica_infer_like(i, 0, 0);
}

static mica_status error_run(const mica_call *c)
{
    return mica_quantize_error(c->ctx, c->out[0], c->in[0], c->opts);
}

/* Each index of the first axis by itself, or all elements are. */
static void error_sample(mica_op_sample *s)
{
    mica_op_sample_shape(s, 0, 2, (mica_index[]){mica_op_sample_int(s, 1, 5), mica_op_sample_int(s, 1, 5)});
    ((mica_quantize_error_opts *)s->opts)->scale = (float)mica_op_sample_int(s, 0, 2) * 0.01f;
}

static const mica_field error_fields[] = {MICA_FIELD(
    mica_quantize_error_opts, scale, FLOAT, "0: for each index of the first axis, its largest / 127")};

/* No gradient: x plus this is what bytes stand for, and its gradient goes straight to x. */
const mica_op mica_op_quantize_error = {
    .name = "quantize_error",
    .family = "composed",
    .about = "what bytes of x stand for, less x: add it to train with rounding",
    .ins = 1,
    .outs = 1,
    .names = (const char *const[]){"x", "y"},
    .opts_bytes = sizeof(mica_quantize_error_opts),
    MICA_FIELD_LIST(error_fields),
    .infer = error_infer,
    .run = error_run,
    .sample = MICA_SAMPLE(error_sample)};
