/* Which paths read prepared weights, and the choice between them. */
#include "ops/conv/prepare.h"

#include "ops/activation.h"

#if !defined(MICA_SMALL)

/* What is prepared takes memory: it must save some of the time. */
#define GAIN 0.96

#define ROWS ((int)(sizeof rows / sizeof rows[0]))

static const struct {
    const mica_conv_path *path;
    size_t (*floats)(const mica_context *ctx, const mica_conv_product *p);
    void (*prepare)(mica_context *ctx, const mica_conv_product *p, float *to);
} rows[] = {
    {&mica_conv_packed_path, mica_conv_packed_floats, mica_conv_packed_prepare},
    {&mica_conv_deep_path, mica_conv_deep_floats, mica_conv_deep_prepare},
};

/* Where nothing is read, it counts that there are prepared weights. */
static const float somewhere[1];

static mica_status check(mica_context *ctx, mica_conv *conv, const mica_conv_tensors *t,
                         const mica_conv2d_opts *opts)
{
    mica_conv_call call = {.op = "conv2d",
                           .dims = 2,
                           .args = {{"dst", t->dst, MICA_ARG_OUT, 0},
                                    {"x", t->x, 0, 0},
                                    {"w", t->w, 0, 0},
                                    {"bias", t->bias, MICA_ARG_OPTIONAL, 0}},
                           .count = 4,
                           .wide = 1,
                           .narrow = 0,
                           .weight = 2,
                           .bias = t->bias != NULL ? 3 : 0,
                           .opts = opts};
    MICA_TRY(mica_conv_check(ctx, conv, &call));
    MICA_TRY(mica_check_activation(ctx, call.op, opts->activation));
    conv->activation = opts->activation;
    conv->finish = mica_activation_kernel(ctx, opts->activation);
    conv->slope = opts->slope;
    return MICA_OK;
}

/* The product by way of a row, planned; false if it does not fit. */
static bool plan(const mica_context *ctx, mica_conv_product *p, const mica_conv *conv, int row)
{
    *p = mica_conv_narrow_product(ctx, conv);
    p->wanted = rows[row].path;
    p->prepared = somewhere;
    mica_conv_product_plan(ctx, p);
    return p->path == rows[row].path;
}

mica_status mica_conv_prepare_choose(mica_context *ctx, int *row, size_t *floats, const mica_conv_tensors *t,
                                     const mica_conv2d_opts *opts)
{
    *row = -1;
    mica_conv conv;
    MICA_TRY(check(ctx, &conv, t, opts));
    mica_conv_product p = mica_conv_narrow_product(ctx, &conv);
    if (p.images == 0 || conv.rows.narrow * conv.columns.narrow == 0 || !mica_conv_by_cost(p.channels, p.m))
        return MICA_OK;
    mica_conv_product_plan(ctx, &p);
    double least = p.path->cost != NULL ? GAIN * p.path->cost(ctx, &p) : 0.0;
    for (int i = 0; i < ROWS; i++) {
        if (!plan(ctx, &p, &conv, i) || !(p.path->cost(ctx, &p) < least))
            continue;
        least = p.path->cost(ctx, &p);
        *row = i;
        *floats = rows[i].floats(ctx, &p);
    }
    return MICA_OK;
}

/* Called for tensors without data but the weights: as if measuring, but for the packing itself. */
mica_status mica_conv_prepare(mica_context *ctx, const mica_tensor *prepared, int row,
                              const mica_conv_tensors *t, const mica_conv2d_opts *opts)
{
    bool measuring = ctx->measuring;
    mica_conv conv;
    ctx->measuring = true; /* shapes are checked, and that alone */
    mica_status status = check(ctx, &conv, t, opts);
    ctx->measuring = measuring;
    mica_conv_product p;
    if (status != MICA_OK || measuring || !plan(ctx, &p, &conv, row))
        return status;
    rows[row].prepare(ctx, &p, prepared->data);
    return MICA_OK;
}

mica_status mica_conv_prepared(mica_context *ctx, const mica_conv_tensors *t, const mica_tensor *prepared,
                               int row, const mica_conv2d_opts *opts)
{
    mica_conv conv;
    MICA_TRY(check(ctx, &conv, t, opts));
    conv.wanted = rows[row].path;
    conv.prepared = ctx->measuring ? somewhere : prepared->data;
    return mica_conv_narrow(ctx, &conv);
}

#endif
