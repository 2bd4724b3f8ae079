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
    {&mica_conv_last_path, mica_conv_last_floats, mica_conv_last_prepare},
    {&mica_conv_last_taps_path, mica_conv_last_taps_floats, mica_conv_last_taps_prepare},
    {&mica_conv_packed_path, mica_conv_packed_floats, mica_conv_packed_prepare},
    {&mica_conv_deep_path, mica_conv_deep_floats, mica_conv_deep_prepare},
};

enum { NONE = -1 };

/* Where nothing is read, it counts that there are prepared weights. */
static const float somewhere[1];

static mica_status check(mica_context *ctx, mica_conv *conv, const mica_conv_tensors *t, bool mean,
                         const mica_conv2d_opts *opts)
{
    mica_conv_call call = {.op = mean ? "conv2d_mean" : "conv2d",
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
                           .mean = mean,
                           .opts = opts};
    MICA_TRY(mica_conv_check(ctx, conv, &call));
    MICA_TRY(mica_check_activation(ctx, call.op, opts->activation));
    conv->activation = opts->activation;
    conv->finish = mica_activation_kernel(ctx, opts->activation);
    conv->slope = opts->slope;
    return MICA_OK;
}

/* The product by way of a row, planned; false if it does not fit. */
static bool plan_row(const mica_context *ctx, mica_conv_product *p, const mica_conv *conv, int row)
{
    *p = mica_conv_narrow_product(ctx, conv);
    p->wanted = rows[row].path;
    p->prepared = somewhere;
    mica_conv_product_plan(ctx, p);
    return p->path == rows[row].path;
}

/* The row of a path that is taken whatever it costs; NONE if it is not one of these. */
static int row_of(const mica_conv_path *path)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].path == path && path->cost == NULL)
            return i;
    return NONE;
}

/* The row that is worth preparing for, NONE if none is, and what the call takes then. */
static int choose(mica_context *ctx, const mica_conv *conv, double *cost)
{
    mica_conv_product p = mica_conv_narrow_product(ctx, conv);
    mica_conv_product_plan(ctx, &p);
    *cost = mica_conv_cost(ctx, &p);
    if (p.images == 0 || p.pixels == 0)
        return NONE;
    int best = row_of(p.path);
    if (best != NONE || !mica_conv_by_cost(p.channels, p.m))
        return best;
    double least = GAIN * *cost;
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].path->cost == NULL || !plan_row(ctx, &p, conv, i) || !(p.path->cost(ctx, &p) < least))
            continue;
        *cost = least = p.path->cost(ctx, &p);
        best = i;
    }
    return best;
}

double mica_conv_prepared_cost(mica_context *ctx, const mica_conv *conv)
{
    double cost;
    (void)choose(ctx, conv, &cost);
    return cost;
}

mica_status mica_conv_prepare_choose(mica_context *ctx, int *row, size_t *floats, const mica_conv_tensors *t,
                                     const mica_conv2d_opts *opts)
{
    mica_conv conv;
    double cost;
    *row = NONE;
    MICA_TRY(check(ctx, &conv, t, false, opts));
    *row = choose(ctx, &conv, &cost);
    mica_conv_product p;
    if (*row != NONE && plan_row(ctx, &p, &conv, *row))
        *floats = rows[*row].floats(ctx, &p);
    return MICA_OK;
}

/* Called for tensors without data but the weights: as if measuring, but for the packing itself. */
mica_status mica_conv_prepare(mica_context *ctx, const mica_tensor *prepared, int row,
                              const mica_conv_tensors *t, const mica_conv2d_opts *opts)
{
    bool measuring = ctx->measuring;
    double flops = ctx->flops;
    mica_conv conv;
    ctx->measuring = true; /* shapes are checked, and that alone */
    mica_status status = check(ctx, &conv, t, false, opts);
    ctx->measuring = measuring;
    ctx->flops = flops;
    mica_conv_product p;
    if (status != MICA_OK || measuring)
        return status;
    if (!plan_row(ctx, &p, &conv, row))
        return mica_fail(ctx, MICA_ERR_STATE,
                         "conv2d: weights were to be prepared for a path that does not fit");
    rows[row].prepare(ctx, &p, prepared->data);
    return MICA_OK;
}

static mica_status run(mica_context *ctx, const mica_conv_tensors *t, const mica_tensor *prepared, int row,
                       bool mean, const mica_conv2d_opts *opts)
{
    mica_conv conv;
    MICA_TRY(check(ctx, &conv, t, mean, opts));
    conv.wanted = rows[row].path;
    conv.prepared = ctx->measuring ? somewhere : prepared->data;
    return mean ? mica_conv_mean(ctx, &conv) : mica_conv_narrow(ctx, &conv);
}

mica_status mica_conv_prepared(mica_context *ctx, const mica_conv_tensors *t, const mica_tensor *prepared,
                               int row, const mica_conv2d_opts *opts)
{
    return run(ctx, t, prepared, row, false, opts);
}

mica_status mica_conv_prepared_mean(mica_context *ctx, const mica_conv_tensors *t,
                                    const mica_tensor *prepared, int row, const mica_conv2d_opts *opts)
{
    return run(ctx, t, prepared, row, true, opts);
}

#endif
