/* Pooling of int8 planes: [..., H, W], and [N, C, L] where a window is one row high. */
#include "node/entry.h"
#include "node/int8.h"
#include "node/planes.h"

static bool is_flat(const mica_tensor *t, const mica_pooling_opts *o)
{
    return t->rank == 3 && o->kernel[0] == 1 && o->stride[0] <= 1 && mica_pooling_size(1, 0, o) == 1;
}

static mica_status infer_windows(mica_infer *i, const mica_pooling_opts *o)
{
    const mica_tensor *x = i->in[0];
    bool flat = is_flat(x, o);
    mica_index dims[MICA_MAX_RANK];
    MICA_TRY(mica_infer_dtype(i, 0, MICA_I8));
    if (x->rank < 2)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected i8 of rank 2 or more");
    for (int k = 0; k < x->rank; k++)
        dims[k] = x->dim[k];
    for (int axis = flat ? 1 : 0; axis < 2; axis++) {
        mica_index *dim = &dims[x->rank - 2 + axis], size = *dim;
        *dim = mica_pooling_size(size, axis, o);
        if (*dim < 1)
            return mica_infer_fail(i, MICA_ERR_SHAPE,
                                   "a window of %td does not fit into %s %td padded by %td", o->kernel[axis],
                                   mica_plane_axis(flat, axis), size, o->pad[axis]);
    }
    return mica_infer_out(i, 0, MICA_I8, x->rank, dims);
}

static bool mixes(const mica_infer *i) { return i->in[0]->rank < 3; }

static void sample_windows(mica_op_sample *s, mica_pooling_opts *o, bool maximum)
{
    mica_index dims[4] = {mica_op_sample_int(s, 1, 2), mica_op_sample_int(s, 1, 3)};
    o->ceil_mode = mica_sample_chance(s);
    for (int k = 0; k < 2; k++) {
        o->kernel[k] = mica_op_sample_int(s, 1, 3);
        o->stride[k] = mica_op_sample_int(s, 0, 3);
        o->dilation[k] = maximum ? mica_op_sample_int(s, 0, 2) : 0;
        mica_index reach = (o->kernel[k] - 1) * (o->dilation[k] > 1 ? o->dilation[k] : 1) + 1;
        o->pad[k] = mica_op_sample_int(s, 0, reach / 2);
        dims[2 + k] = reach + mica_op_sample_int(s, 0, 4);
    }
    mica_sample_bytes(s, 0, 4, dims);
}

/* ---- Maximum ---- */

static mica_status max_infer(mica_infer *i) { return infer_windows(i, i->opts); }

static mica_status max_run(const mica_call *c)
{
    if (!is_flat(c->in[0], c->opts))
        return mica_int8_max_pool2d(c->ctx, c->out[0], c->in[0], c->opts);
    mica_tensor x = mica_planes(c->in[0]), y = mica_planes(c->out[0]);
    return mica_int8_max_pool2d(c->ctx, &y, &x, c->opts);
}

static void max_sample(mica_op_sample *s) { sample_windows(s, s->opts, true); }

static const mica_field max_fields[] = {
    MICA_FIELDS(mica_pooling_opts, kernel, INDEX, "window size"),
    MICA_FIELDS(mica_pooling_opts, stride, INDEX, "0: the kernel size"),
    MICA_FIELDS(mica_pooling_opts, pad, INDEX, "padding on each side; at most half of the dilated kernel"),
    MICA_FIELDS(mica_pooling_opts, dilation, INDEX, "0: 1"),
    MICA_FIELD(mica_pooling_opts, ceil_mode, BOOL, "a last window may extend past the end"),
};

MICA_INT8_ENTRY(int8_max_pool2d, "max pooling of i8 over the last two axes", .ins = 1,
                .names = (const char *const[]){"x", "y"}, .opts_bytes = sizeof(mica_pooling_opts),
                MICA_FIELD_LIST(max_fields), .infer = max_infer, .run = max_run, .mixes = mixes,
                .passes = MICA_LAYOUTS(mica_gathering_passes), .sample = max_sample)

/* ---- Average ---- */

static mica_pooling_opts windows_of(const mica_int8_avg_pool_opts *o)
{
    return (mica_pooling_opts){.kernel = {o->kernel[0], o->kernel[1]},
                               .stride = {o->stride[0], o->stride[1]},
                               .pad = {o->pad[0], o->pad[1]},
                               .ceil_mode = o->ceil_mode};
}

static mica_status avg_infer(mica_infer *i)
{
    const mica_int8_avg_pool_opts *o = i->opts;
    mica_pooling_opts windows = windows_of(o);
    MICA_TRY(mica_infer_factor(i, o->multiplier, o->shift));
    MICA_TRY(mica_infer_limits(i, o->low, o->high));
    MICA_TRY(infer_windows(i, &windows));
    if ((double)o->kernel[0] * (double)o->kernel[1] > MICA_INT8_PRODUCTS)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "windows of %td x %td: expected at most %d values",
                               o->kernel[0], o->kernel[1], MICA_INT8_PRODUCTS);
    return MICA_OK;
}

static mica_status avg_run(const mica_call *c)
{
    mica_pooling_opts windows = windows_of(c->opts);
    if (!is_flat(c->in[0], &windows))
        return mica_int8_avg_pool2d(c->ctx, c->out[0], c->in[0], c->opts);
    mica_tensor x = mica_planes(c->in[0]), y = mica_planes(c->out[0]);
    return mica_int8_avg_pool2d(c->ctx, &y, &x, c->opts);
}

static void avg_sample(mica_op_sample *s)
{
    mica_int8_avg_pool_opts *o = s->opts;
    mica_pooling_opts windows = {.ceil_mode = false};
    sample_windows(s, &windows, false);
    for (int k = 0; k < 2; k++) {
        o->kernel[k] = windows.kernel[k];
        o->stride[k] = windows.stride[k];
        o->pad[k] = windows.pad[k];
    }
    o->ceil_mode = windows.ceil_mode;
    mica_sample_factor(s, &o->multiplier, &o->shift, 32);
    mica_sample_limits(s, &o->low, &o->high);
}

static const mica_field avg_fields[] = {
    MICA_FIELDS(mica_int8_avg_pool_opts, kernel, INDEX, "window size"),
    MICA_FIELDS(mica_int8_avg_pool_opts, stride, INDEX, "0: the kernel size"),
    MICA_FIELDS(mica_int8_avg_pool_opts, pad, INDEX, "zeros on each side; at most half of the kernel"),
    MICA_FIELD(mica_int8_avg_pool_opts, ceil_mode, BOOL, "a last window may extend past the end"),
    MICA_INT8_FACTOR_FIELDS(mica_int8_avg_pool_opts),
};

MICA_INT8_ENTRY(int8_avg_pool2d, "sums of i8 windows of the last two axes by multiplier / 2^shift", .ins = 1,
                .names = (const char *const[]){"x", "y"}, .opts_bytes = sizeof(mica_int8_avg_pool_opts),
                MICA_FIELD_LIST(avg_fields), .infer = avg_infer, .run = avg_run, .mixes = mixes,
                .passes = MICA_LAYOUTS(mica_gathering_passes), .sample = avg_sample)

/* ---- Global average ---- */

static mica_status global_infer(mica_infer *i)
{
    const mica_int8_global_pool_opts *o = i->opts;
    const mica_tensor *x = i->in[0];
    double count = 1.0;
    MICA_TRY(mica_infer_dtype(i, 0, MICA_I8));
    if (x->rank < 2)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected i8 [N, C, ...] of rank 2 or more");
    for (int k = 2; k < x->rank; k++)
        count *= (double)x->dim[k];
    if (count < 1.0 || count > MICA_INT8_PRODUCTS)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "sums of %.0f values: expected 1 to %d", count,
                               MICA_INT8_PRODUCTS);
    MICA_TRY(mica_infer_factor(i, o->multiplier, o->shift));
    MICA_TRY(mica_infer_limits(i, o->low, o->high));
    mica_index dims[MICA_MAX_RANK] = {x->dim[0], x->dim[1], 1, 1, 1, 1, 1, 1};
    return mica_infer_out(i, 0, MICA_I8, o->keep ? x->rank : 2, dims);
}

static mica_status global_run(const mica_call *c)
{
    return mica_int8_global_avg_pool(c->ctx, c->out[0], c->in[0], c->opts);
}

static void global_sample(mica_op_sample *s)
{
    mica_int8_global_pool_opts *o = s->opts;
    mica_index dims[5];
    for (int k = 0; k < 5; k++)
        dims[k] = mica_op_sample_int(s, 1, 4);
    o->keep = mica_sample_chance(s);
    mica_sample_bytes(s, 0, (int)mica_op_sample_int(s, 3, 5), dims);
    mica_sample_factor(s, &o->multiplier, &o->shift, 32);
    mica_sample_limits(s, &o->low, &o->high);
}

static const mica_field global_fields[] = {
    MICA_FIELD(mica_int8_global_pool_opts, keep, BOOL, "[N, C, 1, ...] instead of [N, C]"),
    MICA_INT8_FACTOR_FIELDS(mica_int8_global_pool_opts),
};

MICA_INT8_ENTRY(int8_global_avg_pool, "sums of channels of i8 [N, C, ...] by multiplier / 2^shift", .ins = 1,
                .names = (const char *const[]){"x", "y"}, .opts_bytes = sizeof(mica_int8_global_pool_opts),
                MICA_FIELD_LIST(global_fields), .infer = global_infer, .run = global_run,
                .passes = MICA_LAYOUTS(mica_reducing_passes), .sample = global_sample)
