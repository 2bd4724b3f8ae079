/* What convolutions cost in either layout: last.h. In the manner of cost.h, fitted to the layers of MobileNetV2 and
 * ResNet-18 of one image on a Zen 4. */
#include "ops/conv/cost.h"
#include "ops/conv/product.h"

/* Nanoseconds. Of products: a multiply-add, output channels rounded up; a weight, and what it takes to pack it, from a
 * single tap and from several; a result; a number of a patch, from pixels that lie channels last and from others. Of
 * depthwise ones: a multiply-add, what is read, a result. */
typedef struct last_costs {
    double sum, weight, pack, pack_taps, out, patch, planar_patch;
    double taps_sum, taps_in, taps_out;
    /* Depthwise in planes, whose paths have no costs of their own. Strips: for each vector of a row of results, beside
     * what each tap adds, and for each row; lanes: what is read, a result. */
    double strip, strip_tap, strip_row;
    double lane_in, lane_out;
} last_costs;

static const last_costs wide = {.sum = 0.0174,
                                .weight = 0.03,
                                .pack = 0.15,
                                .pack_taps = 1.0,
                                .out = 0.04,
                                .patch = 0.055,
                                .planar_patch = 0.33,
                                .taps_sum = 0.0155,
                                .taps_in = 0.045,
                                .taps_out = 0.06,
                                .strip = 1.3,
                                .strip_tap = 0.23,
                                .strip_row = 2.6,
                                .lane_in = 0.2,
                                .lane_out = 0.24};
static const last_costs narrow = {.sum = 0.0176,
                                  .weight = 0.1,
                                  .pack = 0.15,
                                  .pack_taps = 1.0,
                                  .out = 0.04,
                                  .patch = 0.055,
                                  .planar_patch = 0.4,
                                  .taps_sum = 0.021,
                                  .taps_in = 0.05,
                                  .taps_out = 0.07,
                                  .strip = 0.5,
                                  .strip_tap = 0.23,
                                  .strip_row = 2.6,
                                  .lane_in = 0.15,
                                  .lane_out = 0.27};

static const last_costs *costs_of(const mica_context *ctx)
{
    return mica_conv_cost_lanes(ctx->kernels) == 16 ? &wide : &narrow;
}

static double results(const mica_conv_product *p)
{
    return (double)(p->images * p->pixels) * (double)(p->groups * p->m);
}

/* Numbers of the image that is read. */
static double inputs(const mica_conv_product *p)
{
    return (double)(p->images * p->groups * p->channels) * (double)(p->in.rows.image * p->in.columns.image);
}

static double last_cost(const mica_context *ctx, const mica_conv_product *p)
{
    const last_costs *c = costs_of(ctx);
    double pixels = (double)(p->images * p->pixels * p->groups);
    size_t m = mica_round_up(p->m,
                             mica_least(8, MICA_FAMILY(ctx->kernels, last)->lanes)); /* or half a vector */
    double patch = p->last.direct ? 0.0 : p->last.planar ? c->planar_patch : c->patch;
    double pack = ctx->prepares ? 0.0 : p->k > p->channels ? c->pack_taps : c->pack;
    return pixels * (double)p->k * ((double)m * c->sum + patch) + results(p) * c->out +
           (double)(p->groups * p->m * p->k) * (c->weight + pack);
}

static double taps_cost(const mica_context *ctx, const mica_conv_product *p)
{
    const last_costs *c = costs_of(ctx);
    return results(p) * ((double)p->k * c->taps_sum + c->taps_out) + inputs(p) * c->taps_in;
}

static double strips_cost(const mica_context *ctx, const mica_conv_product *p)
{
    const last_costs *c = costs_of(ctx);
    double vectors = (double)mica_div_up(p->in.columns.count, mica_conv_cost_lanes(ctx->kernels));
    double vector = c->strip + (double)p->k * c->strip_tap;
    if (p->in.columns.scale > 1)
        vector *= 2.2;
    return (double)(p->images * p->groups * p->in.rows.count) * (vectors * vector + c->strip_row);
}

static double lanes_cost(const mica_context *ctx, const mica_conv_product *p)
{
    const last_costs *c = costs_of(ctx);
    return results(p) * ((double)p->k * c->sum + c->lane_out) + inputs(p) * c->lane_in;
}

double mica_conv_cost(const mica_context *ctx, const mica_conv_product *p)
{
    static const struct {
        const mica_conv_path *path;
        double (*cost)(const mica_context *ctx, const mica_conv_product *p);
    } others[] = {{&mica_conv_last_path, last_cost},
                  {&mica_conv_last_taps_path, taps_cost},
                  {&mica_conv_strips_path, strips_cost},
                  {&mica_conv_lanes_path, lanes_cost}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (p->path == others[i].path)
            return others[i].cost(ctx, p);
    if (p->path->cost != NULL)
        return p->path->cost(ctx, p);
    return results(p) * (double)p->k * 0.06; /* a plane at a time */
}
