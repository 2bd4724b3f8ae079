/* Kernels along the rows of a panel: every lane is a separate line. Part of axis.c.
 *
 * Each is written for a group of `vectors` vectors of columns, of which `lanes` lanes are used; PANEL iterates over a
 * panel in such groups. Sums over many rows use two levels to keep rounding errors small. */
#ifndef MICA_SRC_KERNEL_AXIS_PANEL_H
#define MICA_SRC_KERNEL_AXIS_PANEL_H

#include "kernel/vmath.h"

#define PANEL_VECTORS 4  /* in the widest group: two cache lines of AVX2 */
#define PANEL_ROWS    64 /* added up before they are added to the total */

typedef struct panel {
    float *dst;
    const float *a, *b; /* sources; b only where there are two */
    ptrdiff_t dst_stride, a_stride, b_stride;
    size_t n;
} panel;

VF_INLINE vf panel_load(const float *p, size_t lanes)
{
    return lanes == VF_LANES ? vf_load(p) : vf_load_tail(p, lanes);
}

VF_INLINE void panel_store(float *p, vf v, size_t lanes)
{
    if (lanes == VF_LANES)
        vf_store(p, v);
    else
        vf_store_tail(p, v, lanes);
}

/* Row i of vector v, of each operand. */
VF_INLINE vf panel_a(const panel *p, size_t i, int v, size_t lanes)
{
    return panel_load(p->a + (ptrdiff_t)i * p->a_stride + v * VF_LANES, lanes);
}
VF_INLINE vf panel_b(const panel *p, size_t i, int v, size_t lanes)
{
    return panel_load(p->b + (ptrdiff_t)i * p->b_stride + v * VF_LANES, lanes);
}
VF_INLINE float *panel_dst(const panel *p, size_t i, int v)
{
    return p->dst + (ptrdiff_t)i * p->dst_stride + v * VF_LANES;
}

/* sum[v] of f(a, b, k[v]) over the rows; with `store`, dst becomes the terms. */
VF_INLINE void panel_sum(const panel *p, vf *sum, const vf *k, int vectors, size_t lanes, bool two,
                         bool store, vf (*f)(vf a, vf b, vf k))
{
    for (int v = 0; v < vectors; v++)
        sum[v] = vf_zero();
    for (size_t base = 0; base < p->n; base += PANEL_ROWS) {
        size_t end = base + PANEL_ROWS < p->n ? base + PANEL_ROWS : p->n;
        vf part[PANEL_VECTORS];
        for (int v = 0; v < vectors; v++)
            part[v] = vf_zero();
        for (size_t i = base; i < end; i++)
            for (int v = 0; v < vectors; v++) {
                vf a = panel_a(p, i, v, lanes);
                vf term = f(a, two ? panel_b(p, i, v, lanes) : a, k[v]);
                if (store)
                    panel_store(panel_dst(p, i, v), term, lanes);
                part[v] = vf_add(part[v], term);
            }
        for (int v = 0; v < vectors; v++)
            sum[v] = vf_add(sum[v], part[v]);
    }
}

VF_INLINE void panel_max(const panel *p, vf *max, int vectors, size_t lanes)
{
    for (int v = 0; v < vectors; v++)
        max[v] = vf_set1(-INFINITY);
    for (size_t i = 0; i < p->n; i++)
        for (int v = 0; v < vectors; v++)
            max[v] = vf_max(max[v], panel_a(p, i, v, lanes));
}

VF_INLINE vf panel_exp(vf a, vf b, vf k) { return (void)b, vf_exp_down(vf_sub(a, k)); }
VF_INLINE vf panel_value(vf a, vf b, vf k) { return (void)b, (void)k, a; }
VF_INLINE vf panel_square(vf a, vf b, vf k) { return (void)a, (void)k, vf_mul(b, b); }
VF_INLINE vf panel_product(vf a, vf b, vf k) { return (void)k, vf_mul(a, b); }

VF_INLINE void softmax_group(const panel *p, int vectors, size_t lanes, float param)
{
    (void)param;
    vf max[PANEL_VECTORS], sum[PANEL_VECTORS];
    panel_max(p, max, vectors, lanes);
    panel_sum(p, sum, max, vectors, lanes, false, true, panel_exp);
    for (int v = 0; v < vectors; v++)
        sum[v] = vf_div(vf_set1(1.0f), sum[v]);
    for (size_t i = 0; i < p->n; i++)
        for (int v = 0; v < vectors; v++)
            panel_store(panel_dst(p, i, v), vf_mul(panel_load(panel_dst(p, i, v), lanes), sum[v]), lanes);
}

VF_INLINE void log_softmax_group(const panel *p, int vectors, size_t lanes, float param)
{
    (void)param;
    vf max[PANEL_VECTORS], sum[PANEL_VECTORS];
    panel_max(p, max, vectors, lanes);
    panel_sum(p, sum, max, vectors, lanes, false, false, panel_exp);
    for (int v = 0; v < vectors; v++)
        sum[v] = vf_log(sum[v]);
    for (size_t i = 0; i < p->n; i++)
        for (int v = 0; v < vectors; v++)
            panel_store(panel_dst(p, i, v), vf_sub(vf_sub(panel_a(p, i, v, lanes), max[v]), sum[v]), lanes);
}

VF_INLINE void softmax_backward_group(const panel *p, int vectors, size_t lanes, float param)
{
    (void)param;
    vf sum[PANEL_VECTORS];
    panel_sum(p, sum, sum, vectors, lanes, true, false, panel_product);
    for (size_t i = 0; i < p->n; i++)
        for (int v = 0; v < vectors; v++)
            panel_store(panel_dst(p, i, v),
                        vf_mul(panel_b(p, i, v, lanes), vf_sub(panel_a(p, i, v, lanes), sum[v])), lanes);
}

VF_INLINE void log_softmax_backward_group(const panel *p, int vectors, size_t lanes, float param)
{
    (void)param;
    vf sum[PANEL_VECTORS];
    panel_sum(p, sum, sum, vectors, lanes, false, false, panel_value);
    for (size_t i = 0; i < p->n; i++)
        for (int v = 0; v < vectors; v++)
            panel_store(panel_dst(p, i, v),
                        vf_fnma(sum[v], vf_exp(panel_b(p, i, v, lanes)), panel_a(p, i, v, lanes)), lanes);
}

VF_INLINE void l2_normalize_group(const panel *p, int vectors, size_t lanes, float least)
{
    vf sum[PANEL_VECTORS];
    panel_sum(p, sum, sum, vectors, lanes, false, false, panel_square);
    for (int v = 0; v < vectors; v++)
        sum[v] = vf_div(vf_set1(1.0f), vf_max(vf_set1(least), vf_sqrt(sum[v])));
    for (size_t i = 0; i < p->n; i++)
        for (int v = 0; v < vectors; v++)
            panel_store(panel_dst(p, i, v), vf_mul(panel_a(p, i, v, lanes), sum[v]), lanes);
}

/* As l2_normalize_backward_line. */
VF_INLINE void l2_normalize_backward_group(const panel *p, int vectors, size_t lanes, float least)
{
    vf square[PANEL_VECTORS], back[PANEL_VECTORS];
    panel_sum(p, square, square, vectors, lanes, true, false, panel_square);
    panel_sum(p, back, back, vectors, lanes, true, false, panel_product);
    for (int v = 0; v < vectors; v++) {
        vf norm = vf_sqrt(square[v]);
        vm held = vf_lt(norm, vf_set1(least));
        vf ratio = vf_select(held, vf_zero(), vf_div(back[v], square[v]));
        square[v] = vf_div(vf_set1(1.0f), vf_max(vf_set1(least), norm));
        back[v] = vf_mul(ratio, square[v]);
    }
    for (size_t i = 0; i < p->n; i++)
        for (int v = 0; v < vectors; v++)
            panel_store(panel_dst(p, i, v),
                        vf_fnma(back[v], panel_b(p, i, v, lanes), vf_mul(square[v], panel_a(p, i, v, lanes))),
                        lanes);
}

VF_INLINE panel panel_at(float *dst, const float *const *src, const ptrdiff_t *stride, size_t n,
                         size_t column, int sources)
{
    panel p = {.dst = dst + column, .a = src[0] + column, .dst_stride = stride[0], .a_stride = stride[1]};
    p.b = sources > 1 ? src[1] + column : p.a;
    p.b_stride = sources > 1 ? stride[2] : p.a_stride;
    p.n = n;
    return p;
}

#define PANEL(name, sources)                                                                         \
    static void name##_panel(float *dst, const float *const *src, const ptrdiff_t *stride, size_t n, \
                             size_t columns, float param)                                            \
    {                                                                                                \
        size_t c = 0;                                                                                \
        for (; c + PANEL_VECTORS * VF_LANES <= columns; c += PANEL_VECTORS * VF_LANES) {             \
            panel p = panel_at(dst, src, stride, n, c, sources);                                     \
            name##_group(&p, PANEL_VECTORS, VF_LANES, param);                                        \
        }                                                                                            \
        for (; c + VF_LANES <= columns; c += VF_LANES) {                                             \
            panel p = panel_at(dst, src, stride, n, c, sources);                                     \
            name##_group(&p, 1, VF_LANES, param);                                                    \
        }                                                                                            \
        if (c < columns) {                                                                           \
            panel p = panel_at(dst, src, stride, n, c, sources);                                     \
            name##_group(&p, 1, columns - c, param);                                                 \
        }                                                                                            \
    }
MICA_AXIS_KERNELS(PANEL)

#endif
