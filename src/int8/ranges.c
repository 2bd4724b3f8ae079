/* What values were, and the scales that follow. */
#include <math.h>
#include <string.h>

#include "base/allocate.h"
#include "int8/convert.h"

/* ---- The conversion ---- */

static void *take(mica_int8 *q, size_t count, size_t bytes)
{
    size_t all = (count + 1) * bytes;
    void *block = mica_allocate(q->ctx, all);
    if (block != NULL)
        memset(block, 0, all);
    return block;
}

static void give(mica_int8 *q, void *block, size_t count, size_t bytes)
{
    if (block != NULL)
        mica_release(q->ctx, block, (count + 1) * bytes);
}

/* Values of floats that calls make, or the caller gives. */
static bool has_range(const mica_value_info *v)
{
    return v->home == MICA_HOME_PLANNED && v->tensor.dtype == MICA_F32;
}

mica_status mica_int8_create(mica_net *net, mica_int8 **out)
{
    if (net == NULL || out == NULL)
        return MICA_ERR_ARGUMENT;
    *out = NULL;
    if (net->status != MICA_OK)
        return net->status;
    if (net->continues)
        return mica_fail(net->ctx, MICA_ERR_STATE, "int8: steps of the net continue one another");
    mica_int8 *q = mica_allocate(net->ctx, sizeof *q);
    if (q == NULL)
        return net->ctx->status;
    *q = (mica_int8){.ctx = net->ctx, .net = net, .values = net->built_values, .nodes = net->node_count};
    size_t values = (size_t)q->values, nodes = (size_t)q->nodes;
    q->range = take(q, values, sizeof *q->range);
    q->scale = take(q, values, sizeof *q->scale);
    q->used = take(q, values, sizeof *q->used);
    q->bytes = take(q, values, sizeof *q->bytes);
    q->readers = take(q, values, sizeof *q->readers);
    q->last_reader = take(q, values, sizeof *q->last_reader);
    q->as_bytes = take(q, values, sizeof *q->as_bytes);
    q->as_floats = take(q, values, sizeof *q->as_floats);
    q->step = take(q, nodes, sizeof *q->step);
    q->row = take(q, nodes, sizeof *q->row);
    if (q->range == NULL || q->scale == NULL || q->used == NULL || q->bytes == NULL || q->readers == NULL ||
        q->last_reader == NULL || q->as_bytes == NULL || q->as_floats == NULL || q->step == NULL ||
        q->row == NULL) {
        mica_int8_destroy(q);
        return net->ctx->status;
    }
    q->observed = !net->compiled && net->entry_count == 0;
    for (int i = 0; q->observed && i < q->values; i++) {
        mica_value_info *v = &net->values[i];
        v->observed = v->observed || (has_range(v) && v->root == i && !v->output);
        v->output = v->output || v->observed;
    }
    *out = q;
    return MICA_OK;
}

void mica_int8_destroy(mica_int8 *q)
{
    if (q == NULL)
        return;
    size_t values = (size_t)q->values, nodes = (size_t)q->nodes;
    for (size_t i = 0; q->range != NULL && i < values; i++)
        give(q, q->range[i].count, MICA_INT8_BINS, sizeof *q->range[i].count);
    give(q, q->range, values, sizeof *q->range);
    give(q, q->scale, values, sizeof *q->scale);
    give(q, q->used, values, sizeof *q->used);
    give(q, q->bytes, values, sizeof *q->bytes);
    give(q, q->readers, values, sizeof *q->readers);
    give(q, q->last_reader, values, sizeof *q->last_reader);
    give(q, q->as_bytes, values, sizeof *q->as_bytes);
    give(q, q->as_floats, values, sizeof *q->as_floats);
    give(q, q->step, nodes, sizeof *q->step);
    give(q, q->row, nodes, sizeof *q->row);
    mica_release(q->ctx, q, sizeof *q);
}

/* ---- Collecting ---- */

/* Makes room for sizes up to `most`: two parts become one until they fit. */
static void widen(mica_int8_range *r, double most)
{
    if (r->top == 0.0) {
        int exponent;
        (void)frexp(most, &exponent); /* most is half of 2^exponent or more, and less than it */
        r->top = ldexp(1.0, exponent);
    }
    while (most >= r->top) {
        for (int i = 0; i < MICA_INT8_BINS / 2; i++)
            r->count[i] = r->count[2 * i] + r->count[2 * i + 1];
        memset(r->count + MICA_INT8_BINS / 2, 0, MICA_INT8_BINS / 2 * sizeof *r->count);
        r->top *= 2.0;
    }
}

static void collect_values(mica_int8_range *r, const float *x, size_t count)
{
    double most = 0.0;
    for (size_t i = 0; i < count; i++) {
        double size = fabs((double)x[i]);
        most = isfinite(size) && size > most ? size : most;
    }
    r->most = most > r->most ? most : r->most;
    if (most > 0.0)
        widen(r, most);
    double bins = r->top > 0.0 ? MICA_INT8_BINS / r->top : 0.0;
    for (size_t i = 0; i < count; i++) {
        double size = fabs((double)x[i]);
        if (isfinite(size))
            r->count[(size_t)(size * bins)]++;
    }
}

mica_status mica_int8_collect(mica_int8 *q)
{
    if (!q->observed || q->net->block == NULL)
        return mica_fail(q->ctx, MICA_ERR_STATE, "int8_collect: the net %s",
                         q->observed ? "is not bound"
                                     : "was compiled before mica_int8_create, and keeps no values");
    for (int i = 0; i < q->values; i++) {
        const mica_value_info *v = &q->net->values[i];
        mica_tensor t;
        if (!has_range(v))
            continue;
        if (v->root != i)
            continue;
        if (q->range[i].count == NULL)
            q->range[i].count = take(q, MICA_INT8_BINS, sizeof *q->range[i].count);
        if (q->range[i].count == NULL)
            return q->ctx->status;
        MICA_TRY(mica_net_value_tensor(q->net, &t, i + 1));
        collect_values(&q->range[i], t.data, mica_tensor_count(&t));
    }
    return MICA_OK;
}

/* ---- Choosing ---- */

/* The end of the part that holds this share of all sizes. */
static double percentile_of(const mica_int8_range *r, double share)
{
    double all = 0.0, seen = 0.0;
    for (int i = 0; i < MICA_INT8_BINS; i++)
        all += (double)r->count[i];
    for (int i = 0; i < MICA_INT8_BINS; i++) {
        seen += (double)r->count[i];
        if (seen >= share * all)
            return (i + 1) * r->top / MICA_INT8_BINS;
    }
    return r->top;
}

#define LEVELS 128

/* How often sizes of a part were seen. Zeros, of which relu makes many, are exact at any scale: they do not count. */
static double seen_in(const mica_int8_range *r, int bin) { return (double)r->count[bin > 0 ? bin : 1]; }

/* How much is lost if sizes beyond `bins` parts become the largest, and the rest LEVELS levels. */
static double divergence(const mica_int8_range *r, int bins)
{
    double beyond = 0.0, all = 0.0, sum = 0.0, told = 0.0;
    for (int i = 0; i < MICA_INT8_BINS; i++) {
        all += seen_in(r, i);
        beyond += i >= bins ? seen_in(r, i) : 0.0;
    }
    for (int level = 0; level < LEVELS; level++) {
        int first = level * bins / LEVELS, end = (level + 1) * bins / LEVELS, used = 0;
        double mass = 0.0;
        for (int i = first; i < end; i++) {
            mass += seen_in(r, i);
            used += seen_in(r, i) > 0.0;
        }
        told += mass;
        for (int i = first; i < end; i++) {
            double p = seen_in(r, i) + (i == bins - 1 ? beyond : 0.0);
            double share = seen_in(r, i) > 0.0 ? mass / used : 0.0;
            if (p > 0.0)
                sum += p / all * log(p / (share > 0.0 ? share : 1e-6 * all));
        }
    }
    return told > 0.0 ? sum + log(told / all) : INFINITY;
}

/* The parts that hold so many of what was seen. */
static int bins_of(const mica_int8_range *r, double share)
{
    double all = 0.0, seen = 0.0;
    for (int i = 0; i < MICA_INT8_BINS; i++)
        all += seen_in(r, i);
    int bins = 0;
    while (bins < MICA_INT8_BINS && seen < share * all)
        seen += seen_in(r, bins++);
    return bins;
}

/* The divergence takes no account of how far off the rest is: where few different values are seen, as in pictures, it
 * would cut most of them off. So all but a thousandth stay within the range. */
static double kl_of(const mica_int8_range *r)
{
    int used = bins_of(r, 1.0), first = bins_of(r, 0.999), best = used;
    double least = INFINITY;
    for (int bins = first > LEVELS ? first : LEVELS; bins <= used; bins += 4) {
        double lost = divergence(r, bins);
        if (lost < least) {
            least = lost;
            best = bins;
        }
    }
    return best * r->top / MICA_INT8_BINS;
}

mica_status mica_int8_choose(mica_int8 *q, const mica_int8_opts *opts)
{
    static const mica_int8_opts none = {.method = MICA_INT8_MINMAX};
    opts = opts != NULL ? opts : &none;
    double share = (opts->percentile != 0.0 ? opts->percentile : 99.99) / 100.0;
    if ((unsigned)opts->method >= MICA_INT8_METHOD_COUNT || !(share > 0.0 && share <= 1.0))
        return mica_fail(q->ctx, MICA_ERR_ARGUMENT,
                         "int8_choose: method %d, percentile %g: expected 0 to %d, 0 to 100",
                         (int)opts->method, opts->percentile, MICA_INT8_METHOD_COUNT - 1);
    bool seen = false;
    for (int i = 0; i < q->values; i++)
        seen = seen || q->range[i].count != NULL;
    if (!seen)
        return mica_fail(q->ctx, MICA_ERR_STATE, "int8_choose: nothing was collected");
    for (int i = 0; i < q->values; i++) {
        const mica_int8_range *r = &q->range[i];
        q->scale[i] = 0.0f;
        if (r->count == NULL)
            continue;
        double top = r->most;
        if (opts->method == MICA_INT8_PERCENTILE && r->most > 0.0)
            top = fmin(percentile_of(r, share), r->most);
        if (opts->method == MICA_INT8_KL && r->most > 0.0)
            top = fmin(kl_of(r), r->most);
        q->scale[i] = (float)((top > 0x1p-60 ? top : 1.0) / 127.0);
    }
    return MICA_OK;
}

void mica_int8_per_tensor(mica_int8 *q, bool per_tensor) { q->per_tensor = per_tensor; }
