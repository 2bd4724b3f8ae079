/* The search for the numbers of a block: scales and minima whose squared error is small; included by block.c alone.
 *
 * Groups of values lie side by side, one in each lane of a vector, so that every lane searches for itself and sums
 * need no order: all instruction sets find the same numbers. (vf_fma would spoil that: some fuse it, some do not.)
 *
 * A group's best scale and minimum are found first, as plain floats: from several starting points values are rounded
 * to levels, and least squares gives the scale and minimum that suit these levels best. Then a block's common factors
 * are taken from the largest, and improved in turn: each group takes the best of the neighbouring whole numbers, and
 * least squares over the block gives better factors. */
#ifndef MICA_SRC_KERNEL_BLOCK_FIT_H
#define MICA_SRC_KERNEL_BLOCK_FIT_H

enum { GROUPS = 16, LENGTH_MOST = 32, TURNS = 4 };

_Static_assert(GROUPS % VF_LANES == 0, "lanes without a group");

/* What a value is: scale * level - least, where a group's scale and least are whole numbers times d and dmin. */
typedef struct format {
    int groups, length;         /* groups of a block, values of a group */
    bool uneven;                /* levels are those of the table; else all whole numbers from low to top */
    float low, top;             /* levels */
    bool has_least;             /* else it is 0 */
    float scale_low, scale_top; /* whole numbers that a scale may be; a least is from 0 to scale_top */
    float first, step; /* starting points: the largest value is at top + first, + first + step, ... */
    int starts;
} format;

/* Values, divided by a power of two so that no sum of squares overflows: value j of group g at j * GROUPS + g. */
typedef struct groups {
    float x[LENGTH_MOST * GROUPS];
    float unit; /* that power */
} groups;

/* The numbers of a block, d and dmin in `unit`. */
typedef struct found {
    float d, dmin;
    float scale[GROUPS], least[GROUPS]; /* whole numbers */
    double error;
} found;

/* What least squares needs of a lane. */
typedef struct sums {
    vf error, q, qq, xq;
} sums;

/* ---- Lanes ---- */

VF_INLINE vf ratio(vf a, vf b)
{
    vm none = vf_eq(b, vf_zero());
    return vf_select(none, vf_zero(), vf_div(a, vf_select(none, vf_set1(1.0f), b)));
}

VF_INLINE vf clip(vf v, float low, float top) { return vf_min(vf_max(v, vf_set1(low)), vf_set1(top)); }

/* The value of the uneven table next to v: the distances between them, added up as far as v goes. */
VF_INLINE vf uneven_level(vf v)
{
    vf level = vf_set1(uneven[0]);
    for (int k = 1; k < 16; k++) {
        vm beyond = vf_gt(v, vf_set1(0.5f * (float)(uneven[k - 1] + uneven[k])));
        level = vf_add(level, vf_select(beyond, vf_set1((float)(uneven[k] - uneven[k - 1])), vf_zero()));
    }
    return level;
}

VF_INLINE vf level_of(const format *f, vf v)
{
    return f->uneven ? uneven_level(v) : clip(vf_round(v), f->low, f->top);
}

/* Rounds the values of a lane to levels: the error of that, and the sums. */
VF_INLINE sums sums_at(const format *f, const float *x, vf scale, vf least)
{
    sums s = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    vf inverse = ratio(vf_set1(1.0f), scale);
    for (int j = 0; j < f->length; j++) {
        vf value = vf_load(x + j * GROUPS), raised = f->has_least ? vf_add(value, least) : value;
        vf q = level_of(f, vf_mul(raised, inverse));
        vf off = vf_sub(vf_mul(scale, q), raised);
        s.error = vf_add(s.error, vf_mul(off, off));
        s.q = f->has_least ? vf_add(s.q, q) : s.q;
        s.qq = vf_add(s.qq, vf_mul(q, q));
        s.xq = vf_add(s.xq, vf_mul(value, q));
    }
    return s;
}

/* The scale and minimum that suit the levels behind the sums best; a minimum is no less than 0. */
VF_INLINE void least_squares(const format *f, sums s, vf total, vf *scale, vf *least)
{
    vf alone = ratio(s.xq, s.qq);
    *least = vf_zero();
    *scale = alone;
    if (!f->has_least)
        return;
    vf n = vf_set1((float)f->length);
    vf both = ratio(vf_sub(vf_mul(n, s.xq), vf_mul(total, s.q)), vf_sub(vf_mul(n, s.qq), vf_mul(s.q, s.q)));
    vf lowered = vf_div(vf_sub(vf_mul(both, s.q), total), n);
    vm is_lowered = vm_and(vf_gt(lowered, vf_zero()), vf_ge(both, vf_zero()));
    *scale = vf_select(is_lowered, both, alone);
    *least = vf_select(is_lowered, lowered, vf_zero());
}

/* ---- Groups by themselves ---- */

typedef struct lane {
    vf scale, least, error;
} lane;

VF_INLINE void take_better(lane *best, vf scale, vf least, vf error)
{
    vm better = vf_lt(error, best->error);
    best->scale = vf_select(better, scale, best->scale);
    best->least = vf_select(better, least, best->least);
    best->error = vf_select(better, error, best->error);
}

/* From a starting point: levels, the best scale for them, and its error. */
VF_INLINE void try_start(const format *f, const float *x, vf total, vf scale, vf least, lane *best)
{
    least_squares(f, sums_at(f, x, scale, least), total, &scale, &least);
    take_better(best, scale, least, sums_at(f, x, scale, least).error);
}

VF_INLINE lane fit_lane(const format *f, const float *x)
{
    vf low = vf_zero(), high = vf_zero(), total = vf_zero();
    for (int j = 0; j < f->length; j++) {
        vf value = vf_load(x + j * GROUPS);
        low = vf_min(low, value);
        high = vf_max(high, value);
        total = vf_add(total, value);
    }
    lane best = {vf_zero(), vf_zero(), vf_set1(INFINITY)};
    if (f->has_least) {
        vf least = vf_neg(low), range = vf_add(high, least);
        for (int k = 0; k < f->starts; k++)
            try_start(f, x, total, vf_div(range, vf_set1(f->top + f->first + (float)k * f->step)), least,
                      &best);
    } else { /* the largest value at the last level on its own side, or on the other */
        vf most = vf_select(vf_gt(high, vf_neg(low)), high, low);
        for (int k = 0; k < f->starts; k++) {
            float beyond = f->first + (float)k * f->step;
            try_start(f, x, total, vf_div(most, vf_set1(f->low * beyond)), vf_zero(), &best);
            try_start(f, x, total, vf_div(most, vf_set1(f->top * beyond)), vf_zero(), &best);
        }
    }
    try_start(f, x, total, best.scale, best.least, &best);
    return best;
}

/* ---- Blocks ---- */

/* The nearest value that is an f16 once it is multiplied by the unit. */
VF_INLINE float as_half(float value, float unit)
{
    uint8_t bytes[2];
    put_half(bytes, value * unit);
    return half_at(bytes) / unit;
}

/* Changes each group's scale and least to the best of their neighbours, or to 0, which is what is left where d is
 * hardly an f16; the error of all. */
VF_INLINE double settle(const format *f, const groups *in, found *at)
{
    float errors[GROUPS];
    int reach = f->has_least ? 1 : 0;
    vf d = vf_set1(at->d), dmin = vf_set1(at->dmin);
    for (int g = 0; g < f->groups; g += VF_LANES) {
        vf scale = vf_load(at->scale + g), least = vf_load(at->least + g);
        lane best = {scale, least, vf_set1(INFINITY)};
        for (int i = -1; i <= 1; i++) {
            vf s = clip(vf_add(scale, vf_set1((float)i)), f->scale_low, f->scale_top);
            for (int k = -reach; k <= reach; k++) {
                vf m = clip(vf_add(least, vf_set1((float)k)), 0.0f, f->scale_top);
                take_better(&best, s, m, sums_at(f, in->x + g, vf_mul(s, d), vf_mul(m, dmin)).error);
            }
        }
        if (f->has_least)
            take_better(&best, vf_zero(), vf_zero(), sums_at(f, in->x + g, vf_zero(), vf_zero()).error);
        vf_store(at->scale + g, best.scale);
        vf_store(at->least + g, best.least);
        vf_store(errors + g, best.error);
    }
    double error = 0.0;
    for (int g = 0; g < f->groups; g++)
        error += (double)errors[g];
    return error;
}

/* d and dmin by least squares over the block, for its present levels. */
VF_INLINE void adjust(const format *f, const groups *in, found *at)
{
    float q[GROUPS], qq[GROUPS], xq[GROUPS], x[GROUPS];
    for (int g = 0; g < f->groups; g += VF_LANES) {
        vf scale = vf_mul(vf_load(at->scale + g), vf_set1(at->d));
        vf least = vf_mul(vf_load(at->least + g), vf_set1(at->dmin)), total = vf_zero();
        sums s = sums_at(f, in->x + g, scale, least);
        for (int j = 0; j < f->length; j++)
            total = vf_add(total, vf_load(in->x + g + j * GROUPS));
        vf_store(q + g, s.q);
        vf_store(qq + g, s.qq);
        vf_store(xq + g, s.xq);
        vf_store(x + g, total);
    }
    double a = 0.0, b = 0.0, c = 0.0, p = 0.0, r = 0.0;
    for (int g = 0; g < f->groups; g++) {
        double scale = (double)at->scale[g], least = (double)at->least[g];
        a += scale * scale * (double)qq[g];
        b += scale * least * (double)q[g];
        c += least * least * f->length;
        p += scale * (double)xq[g];
        r += least * (double)x[g];
    }
    double both = a * c - b * b;
    if (f->has_least && both > 0.0) {
        at->d = as_half((float)((p * c - r * b) / both), in->unit);
        at->dmin = as_half((float)((p * b - r * a) / both), in->unit);
    } else if (a > 0.0) {
        at->d = as_half((float)((p + at->dmin * b) / a), in->unit);
    }
}

VF_INLINE float whole(float value, float factor, float low, float top)
{
    float number = rintf(value * inverse_of(factor));
    number = number > low ? number : low;
    return number < top ? number : top;
}

/* The best numbers of a block that were found. Their error is infinite if d or dmin would be so. */
VF_INLINE found search(const format *f, const groups *in)
{
    float scale[GROUPS], least[GROUPS], most = 0.0f, most_least = 0.0f;
    for (int g = 0; g < f->groups; g += VF_LANES) {
        lane fit = fit_lane(f, in->x + g);
        vf_store(scale + g, fit.scale);
        vf_store(least + g, fit.least);
    }
    for (int g = 0; g < f->groups; g++) {
        most = fabsf(scale[g]) > fabsf(most) ? scale[g] : most;
        most_least = least[g] > most_least ? least[g] : most_least;
    }
    found now = {0}, best = {.error = (double)INFINITY};
    float end = f->scale_low < 0.0f ? f->scale_low : f->scale_top;
    now.d = as_half(most / end, in->unit);
    now.dmin = as_half(most_least / f->scale_top, in->unit);
    if (!isfinite(now.d) || !isfinite(now.dmin))
        return best;
    for (int g = 0; g < f->groups; g++) {
        now.scale[g] = whole(scale[g], now.d, f->scale_low, f->scale_top);
        now.least[g] = f->has_least ? whole(least[g], now.dmin, 0.0f, f->scale_top) : 0.0f;
    }
    for (int turn = 0; turn < TURNS; turn++) {
        now.error = settle(f, in, &now);
        if (!(now.error < best.error))
            break;
        best = now;
        adjust(f, in, &now);
    }
    return best;
}

#endif
