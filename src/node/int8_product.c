/* Int8 products: linear, convolution. */
#include <string.h>

#include "net/net.h"
#include "node/entry.h"
#include "node/int8.h"
#include "node/planes.h"
#include "ops/int8_conv.h"

#define NAMES \
    (const char *const[]) { "x", "w", "bias", "multiplier", "shift", "packed", "y" }

/* ---- Weights ---- */

static mica_status pack_infer(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_I8));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_I32));
    if (i->in[1]->rank != 1 || i->in[0]->rank < 1 || i->in[1]->dim[0] != i->in[0]->dim[0])
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected w [M, ...] and bias [M], got %s and %s",
                               MICA_SHAPE(i->in[0]), MICA_SHAPE(i->in[1]));
    MICA_TRY(mica_infer_zero(i, ((const mica_int8_pack_opts *)i->opts)->zero));
    mica_index bytes = mica_int8_packed_bytes(i->ctx, i->in[0], i->opts);
    if (bytes < 0)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "w %s does not fall into groups of at most %d products",
                               MICA_SHAPE(i->in[0]), MICA_INT8_PRODUCTS);
    return mica_infer_out(i, 0, MICA_U8, 1, &bytes);
}

static mica_status pack_run(const mica_call *c)
{
    return mica_int8_pack(c->ctx, c->out[0], c->in[0], c->in[1], c->opts);
}

/* Weights are no samples. */
static bool pack_mixes(const mica_infer *i)
{
    (void)i;
    return true;
}

static void pack_sample(mica_op_sample *s)
{
    mica_int8_pack_opts *o = s->opts;
    mica_index dims[4];
    int rank = (int)mica_op_sample_int(s, 2, 4);
    for (int k = 0; k < rank; k++)
        dims[k] = mica_op_sample_int(s, 1, 6);
    o->groups = rank > 2 ? mica_op_sample_int(s, 0, 2) : 0;
    dims[0] *= o->groups > 0 ? o->groups : 1;
    mica_sample_bytes(s, 0, rank, dims);
    mica_op_sample_shape(s, 1, 1, dims);
    s->in[1].dtype = MICA_I32;
    mica_sample_range(s, 1, 0.0, 20000.0);
}

static const mica_field pack_fields[] = {
    MICA_FIELD(mica_int8_pack_opts, groups, INDEX, "of the convolution; 0: 1"),
    MICA_FIELD(mica_int8_pack_opts, zero, INT, "the zero point of x"),
    MICA_FIELD(mica_int8_pack_opts, tiled, BOOL, "also packed for tiles of 4 x 4 results of 3 x 3 kernels")};

const mica_op mica_op_int8_pack = {.name = "int8_pack",
                                   .family = "composed", /* its result depends on the instruction set */
                                   .about = "weights and bias as products of this instruction set read them",
                                   .ins = 2,
                                   .outs = 1,
                                   .names = (const char *const[]){"w", "bias", "packed"},
                                   .opts_bytes = sizeof(mica_int8_pack_opts),
                                   MICA_FIELD_LIST(pack_fields),
                                   .infer = pack_infer,
                                   .run = pack_run,
                                   .mixes = pack_mixes,
                                   .sample = MICA_SAMPLE(pack_sample)};

/* ---- Linear ---- */

/* y of this type, from x and w. */
static mica_status infer_rows(mica_infer *i, mica_dtype to)
{
    const mica_tensor *x = i->in[INT8_X], *w = i->in[INT8_W];
    MICA_TRY(mica_infer_dtype(i, INT8_X, MICA_I8));
    MICA_TRY(mica_infer_dtype(i, INT8_W, MICA_I8));
    if (x->rank < 1 || w->rank != 2 || w->dim[1] != x->dim[x->rank - 1])
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected x [..., K] and w [M, K], got %s and %s",
                               MICA_SHAPE(x), MICA_SHAPE(w));
    mica_index dims[MICA_MAX_RANK];
    memcpy(dims, x->dim, sizeof dims);
    dims[x->rank - 1] = w->dim[0];
    return mica_infer_out(i, 0, to, x->rank, dims);
}

static mica_status linear_infer(mica_infer *i)
{
    const mica_int8_limits *o = i->opts;
    MICA_TRY(infer_rows(i, MICA_I8));
    MICA_TRY(mica_infer_int8_weights(i, (double)i->in[INT8_W]->dim[1]));
    return mica_infer_limits(i, o->low, o->high);
}

static mica_status linear_run(const mica_call *c)
{
    mica_int8_weights weights = mica_int8_weights_of(c, c->in[INT8_W]);
    return mica_int8_linear(c->ctx, c->out[0], c->in[INT8_X], &weights, c->opts);
}

/* Rows are samples unless there is one axis. */
static bool linear_mixes(const mica_infer *i) { return i->in[INT8_X]->rank < 2; }

static void linear_sample(mica_op_sample *s)
{
    mica_int8_limits *o = s->opts;
    mica_index dims[MICA_MAX_RANK], units = mica_op_sample_int(s, 1, 6);
    int rank = mica_sample_dims(s, 1, 3, dims);
    mica_sample_bytes(s, INT8_X, rank, dims);
    mica_sample_bytes(s, INT8_W, 2, (mica_index[]){units, dims[rank - 1]});
    mica_sample_int8_weights(s, units);
    mica_sample_limits(s, &o->low, &o->high);
}

static const mica_field linear_fields[] = {MICA_INT8_LIMIT_FIELDS(mica_int8_limits)};

MICA_INT8_ENTRY(int8_linear, "x times w transposed plus bias, by multiplier / 2^shift, rounded and limited",
                .ins = INT8_INS, .optional_ins = 1, .names = NAMES, .opts_bytes = sizeof(mica_int8_limits),
                MICA_FIELD_LIST(linear_fields), .infer = linear_infer, .run = linear_run,
                .mixes = linear_mixes, .sample = linear_sample)

/* ---- Convolution ---- */

/* The planes that x and w make, and how many products a sum has. */
static mica_status infer_planes(mica_infer *i, const mica_int8_conv_opts *o, mica_index sizes[2],
                                double *products)
{
    const mica_tensor *x = i->in[INT8_X], *w = i->in[INT8_W];
    MICA_TRY(mica_infer_dtype(i, INT8_X, MICA_I8));
    MICA_TRY(mica_infer_dtype(i, INT8_W, MICA_I8));
    if ((x->rank != 3 && x->rank != 4) || w->rank != x->rank)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "expected x [N, C, H, W] or [N, C, L] and w of its rank, got %s, %s",
                               MICA_SHAPE(x), MICA_SHAPE(w));
    mica_index groups = o->groups != 0 ? o->groups : 1;
    if (groups < 1 || w->dim[0] % groups != 0 || x->dim[1] % groups != 0 || x->dim[1] / groups != w->dim[1])
        return mica_infer_fail(
            i, MICA_ERR_SHAPE,
            "%td channels in dimension 1 do not match weights [%td, %td, ...] in %td groups", x->dim[1],
            w->dim[0], w->dim[1], groups);
    mica_conv2d_opts sizing = {.stride = {o->stride[0], o->stride[1]},
                               .pad = {o->pad[0], o->pad[1]},
                               .dilation = {o->dilation[0], o->dilation[1]}};
    char reason[MICA_REASON];
    mica_tensor taps = mica_planes(w);
    mica_status status = mica_conv_sizes(sizes, reason, x, &taps.dim[2], &sizing, false);
    *products = (double)w->dim[1] * (double)taps.dim[2] * (double)taps.dim[3];
    return status == MICA_OK ? MICA_OK : mica_infer_fail(i, status, "%s", reason);
}

static mica_status conv2d_infer(mica_infer *i)
{
    const mica_int8_conv_opts *o = i->opts;
    const mica_tensor *x = i->in[INT8_X], *w = i->in[INT8_W];
    mica_index sizes[2] = {0};
    double products;
    MICA_TRY(infer_planes(i, o, sizes, &products));
    MICA_TRY(mica_infer_int8_weights(i, products));
    MICA_TRY(mica_infer_limits(i, o->low, o->high));
    bool flat = x->rank == 3;
    if (o->pool < 0 || o->pool > 2 || (o->pool == 2 && (flat || sizes[0] < 2 || sizes[1] < 2)))
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "pool is %d, for images of %td x %td: expected at most 2, and "
                               "larger images",
                               o->pool, sizes[0], sizes[1]);
    for (int k = 0; k < 2 && o->pool == 2; k++)
        sizes[k] /= 2;
    return mica_infer_out(i, 0, MICA_I8, x->rank,
                          (mica_index[]){x->dim[0], w->dim[0], flat ? sizes[1] : sizes[0], sizes[1]});
}

static mica_status conv2d_run(const mica_call *c)
{
    mica_tensor x = mica_planes(c->in[INT8_X]), y = mica_planes(c->out[0]), w = mica_planes(c->in[INT8_W]);
    mica_int8_weights weights = mica_int8_weights_of(c, &w);
    return mica_int8_conv2d(c->ctx, &y, &x, &weights, c->opts);
}

static mica_index sample_planes(mica_op_sample *s, mica_int8_conv_opts *o)
{
    mica_index groups = mica_op_sample_int(s, 1, 3), in = mica_op_sample_int(s, 1, 3),
               out = mica_op_sample_int(s, 1, 6);
    mica_index x[4] = {mica_op_sample_int(s, 1, 2), groups * in}, w[4] = {groups * out, in};
    bool flat = mica_op_sample_int(s, 0, 3) == 0;
    o->groups = groups;
    for (int axis = flat ? 1 : 0; axis < 2; axis++) {
        int k = flat ? 2 : 2 + axis;
        w[k] = mica_op_sample_int(s, 1, 4);
        o->stride[axis] = mica_op_sample_int(s, 1, 3);
        o->dilation[axis] = mica_op_sample_int(s, 1, 2);
        mica_index reach = o->dilation[axis] * (w[k] - 1) + 1;
        o->pad[axis] = mica_op_sample_int(s, 0, (reach - 1) / 2);
        x[k] = mica_op_sample_int(s, 0, 4) + reach - 2 * o->pad[axis];
    }
    mica_sample_bytes(s, INT8_X, flat ? 3 : 4, x);
    mica_sample_bytes(s, INT8_W, flat ? 3 : 4, w);
    return groups * out;
}

static void conv2d_sample(mica_op_sample *s)
{
    mica_int8_conv_opts *o = s->opts;
    mica_sample_int8_weights(s, sample_planes(s, o));
    mica_sample_limits(s, &o->low, &o->high);
}

static const mica_field conv_fields[] = {
    MICA_FIELDS(mica_int8_conv_opts, stride, INDEX, "0: 1"),
    MICA_FIELDS(mica_int8_conv_opts, pad, INDEX, "zero padding on each side"),
    MICA_FIELDS(mica_int8_conv_opts, dilation, INDEX, "0: 1"),
    MICA_FIELD(mica_int8_conv_opts, groups, INDEX, "0: 1"),
    MICA_INT8_LIMIT_FIELDS(mica_int8_conv_opts),
    MICA_FIELD(mica_int8_conv_opts, pool, INT, "2: the largest of each 2 x 2 window; 0 or 1: all"),
};

/* Max pooling by 2, where weights are packed: there one call does both, and an exporter has its own way. */
static bool take_pool(mica_net *net, mica_node *node, const mica_node *then)
{
    mica_int8_conv_opts *o = node->opts;
    const mica_pooling_opts *p = then->opts;
    if (then->op != &mica_op_int8_max_pool2d || node->ins <= INT8_PACKED || node->in[INT8_PACKED] == NONE ||
        o->pool > 1)
        return false;
    for (int k = 0; k < 2; k++)
        if (p->kernel[k] != 2 || (p->stride[k] != 0 && p->stride[k] != 2) || p->pad[k] != 0 ||
            (p->dilation[k] != 0 && p->dilation[k] != 1))
            return false;
    if (p->ceil_mode || net->values[node->out[0]].tensor.rank != 4)
        return false;
    o->pool = 2;
    return true;
}

#if !defined(MICA_SMALL)
static double time_of(const mica_call *c, const mica_int8_conv_opts *windows)
{
    mica_tensor x = mica_planes(c->in[INT8_X]), y = mica_planes(c->out[0]), w = mica_planes(c->in[INT8_W]);
    return mica_int8_conv_time(c->ctx, &y, &x, &w, windows);
}

static double conv2d_time(const mica_call *c) { return time_of(c, c->opts); }
static const mica_op_passes conv2d_passes = {.fuse = take_pool, .time = conv2d_time};
#else
static const mica_op_passes conv2d_passes = {.fuse = take_pool};
#endif

MICA_INT8_ENTRY(int8_conv2d, "convolution of i8 images by multiplier / 2^shift, rounded and limited",
                .ins = INT8_INS, .optional_ins = 1, .names = NAMES, .opts_bytes = sizeof(mica_int8_conv_opts),
                MICA_FIELD_LIST(conv_fields), .infer = conv2d_infer, .run = conv2d_run,
                .sample = conv2d_sample, .passes = &conv2d_passes)

/* ---- With zero points ---- */

#define AFFINE_NAMES \
    (const char *const[]) { "x", "w", "bias", "factor", "packed", "y" }

static mica_status affine_linear_infer(mica_infer *i)
{
    const mica_affine_opts *o = i->opts;
    MICA_TRY(infer_rows(i, o->dtype));
    MICA_TRY(mica_infer_affine_weights(i, (double)i->in[INT8_W]->dim[1], o->dtype));
    return mica_infer_affine(i, o->x_zero, o->y_zero, o->low, o->high);
}

static mica_status affine_linear_run(const mica_call *c)
{
    mica_affine_weights weights = mica_affine_weights_of(c, c->in[INT8_W]);
    return mica_affine_linear(c->ctx, c->out[0], c->in[INT8_X], &weights, c->opts);
}

static void affine_linear_sample(mica_op_sample *s)
{
    mica_affine_opts *o = s->opts;
    mica_index dims[MICA_MAX_RANK], units = mica_op_sample_int(s, 1, 6);
    int rank = mica_sample_dims(s, 1, 3, dims);
    mica_sample_bytes(s, INT8_X, rank, dims);
    mica_sample_bytes(s, INT8_W, 2, (mica_index[]){units, dims[rank - 1]});
    mica_sample_affine_weights(s, units, &o->dtype);
    mica_sample_zeros(s, &o->x_zero, 1);
    mica_sample_zeros(s, &o->y_zero, 1);
    mica_sample_limits(s, &o->low, &o->high);
}

static const mica_field affine_linear_fields[] = {
    MICA_AFFINE_FIELDS(mica_affine_opts),
    MICA_FIELD(mica_affine_opts, dtype, DTYPE, "of y: i8, f32 (not rounded) or i32 (the sums)")};

MICA_INT8_ENTRY(affine_linear, "x - x_zero times w transposed plus bias, by factor, rounded, plus y_zero",
                .ins = AFFINE_INS, .optional_ins = 2, .names = AFFINE_NAMES,
                .opts_bytes = sizeof(mica_affine_opts), MICA_FIELD_LIST(affine_linear_fields),
                .infer = affine_linear_infer, .run = affine_linear_run, .mixes = linear_mixes,
                .sample = affine_linear_sample)

static mica_int8_conv_opts windows_of(const mica_affine_conv_opts *o)
{
    return (mica_int8_conv_opts){.stride = {o->stride[0], o->stride[1]},
                                 .pad = {o->pad[0], o->pad[1]},
                                 .dilation = {o->dilation[0], o->dilation[1]},
                                 .groups = o->groups};
}

static mica_status affine_conv2d_infer(mica_infer *i)
{
    const mica_affine_conv_opts *o = i->opts;
    const mica_int8_conv_opts windows = windows_of(o);
    const mica_tensor *x = i->in[INT8_X], *w = i->in[INT8_W];
    mica_index sizes[2] = {0};
    double products;
    MICA_TRY(infer_planes(i, &windows, sizes, &products));
    MICA_TRY(mica_infer_affine_weights(i, products, o->dtype));
    MICA_TRY(mica_infer_affine(i, o->x_zero, o->y_zero, o->low, o->high));
    return mica_infer_out(i, 0, o->dtype, x->rank,
                          (mica_index[]){x->dim[0], w->dim[0], x->rank == 3 ? sizes[1] : sizes[0], sizes[1]});
}

static mica_status affine_conv2d_run(const mica_call *c)
{
    mica_tensor x = mica_planes(c->in[INT8_X]), y = mica_planes(c->out[0]), w = mica_planes(c->in[INT8_W]);
    mica_affine_weights weights = mica_affine_weights_of(c, &w);
    return mica_affine_conv2d(c->ctx, &y, &x, &weights, c->opts);
}

static void affine_conv2d_sample(mica_op_sample *s)
{
    mica_affine_conv_opts *o = s->opts;
    mica_int8_conv_opts windows = {.groups = 0};
    mica_index channels = sample_planes(s, &windows);
    for (int k = 0; k < 2; k++) {
        o->stride[k] = windows.stride[k];
        o->pad[k] = windows.pad[k];
        o->dilation[k] = windows.dilation[k];
    }
    o->groups = windows.groups;
    mica_sample_affine_weights(s, channels, &o->dtype);
    mica_sample_zeros(s, &o->x_zero, 1);
    mica_sample_zeros(s, &o->y_zero, 1);
    mica_sample_limits(s, &o->low, &o->high);
}

static const mica_field affine_conv_fields[] = {
    MICA_FIELDS(mica_affine_conv_opts, stride, INDEX, "0: 1"),
    MICA_FIELDS(mica_affine_conv_opts, pad, INDEX, "padding by x_zero on each side"),
    MICA_FIELDS(mica_affine_conv_opts, dilation, INDEX, "0: 1"),
    MICA_FIELD(mica_affine_conv_opts, groups, INDEX, "0: 1"),
    MICA_AFFINE_FIELDS(mica_affine_conv_opts),
    MICA_FIELD(mica_affine_conv_opts, dtype, DTYPE, "of y: i8, f32 (not rounded) or i32 (the sums)"),
};

#if !defined(MICA_SMALL)
static double affine_conv2d_time(const mica_call *c)
{
    const mica_int8_conv_opts windows = windows_of(c->opts);
    return time_of(c, &windows);
}

static const mica_op_passes affine_conv2d_passes = {.time = affine_conv2d_time};
#endif

MICA_INT8_ENTRY(affine_conv2d, "convolution of i8 images with zero points, by factor, rounded, plus y_zero",
                .ins = AFFINE_INS, .optional_ins = 2, .names = AFFINE_NAMES,
                .opts_bytes = sizeof(mica_affine_conv_opts), MICA_FIELD_LIST(affine_conv_fields),
                .infer = affine_conv2d_infer, .run = affine_conv2d_run,
                .passes = MICA_LAYOUTS(affine_conv2d_passes), .sample = affine_conv2d_sample)
