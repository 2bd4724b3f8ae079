/* The loops that all element-wise kernels share, one per number of sources.
 *
 * `f` gets a vector of each source and the kernel's params, each in all lanes of a vector. It is a constant
 * where these are used, so it is inlined. Lanes past the end compute on zeros and are not stored. */
#ifndef MICA_SRC_KERNEL_MAP_LOOP_H
#define MICA_SRC_KERNEL_MAP_LOOP_H

#include "kernel/vec_run.h"

#define MAP_PARAMS 2 /* the most that a kernel takes */

typedef vf map1_fn(vf a, const vf *p);
typedef vf map2_fn(vf a, vf b, const vf *p);
typedef vf map3_fn(vf a, vf b, vf c, const vf *p);

VF_INLINE void map_params(vf *p, const float *params, size_t count)
{
    for (size_t k = 0; k < count; k++)
        p[k] = vf_set1(params[k]);
}

/* How a run goes through memory, two vectors at a time. */
typedef enum map_way {
    MAP_HALVES, /* sources by halves of vectors (vec_run.h) */
    MAP_ASKING, /* the same, asking ahead */
    MAP_USUAL   /* whole vectors, asking ahead for the result */
} map_way;

/* Where a vector is a line and there is little to do, runs that the third cache may hold are asked for ahead: results
 * are not foreseen by the hardware, and without asking an addition takes as long or a fifth more, by where memory lies
 * and by what else uses that cache. Up to the second cache this would gain nothing. From memory, whole lines can be
 * written unread: asking takes a tenth longer. `arrays`: sources and the result. */
#define MAP_SECOND 65536
#define MAP_THIRD  ((size_t)1 << 22)

VF_INLINE map_way map_way_of(size_t n, size_t arrays, bool light)
{
#if defined(VF_HALVES)
    if (light)
        return n > MAP_SECOND && n * arrays <= MAP_THIRD ? MAP_ASKING : MAP_HALVES;
#endif
    (void)n, (void)arrays, (void)light;
    return MAP_USUAL;
}

/* Asks for what a turn of two vectors will read or write some turns on. */
VF_INLINE void map_ask(const float *p)
{
    const size_t line = 64 / sizeof(float), ahead = 512, turn = 2 * VF_LANES;
    for (size_t k = 0; k + line <= turn; k += line)
        __builtin_prefetch(p + ahead + k);
}

VF_INLINE vf map_load(const float *p, map_way way) { return way == MAP_USUAL ? vf_load(p) : run_load(p); }

/* By two, as far as that goes: 0.64 ns a vector of relu, not 1.06. `way` is a constant. */
VF_INLINE size_t map1_pairs(float *dst, const float *a, size_t n, const vf *p, map1_fn *f, map_way way)
{
    size_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        if (way == MAP_ASKING)
            map_ask(a + i);
        if (way != MAP_HALVES)
            map_ask(dst + i);
        vf first = f(map_load(a + i, way), p), second = f(map_load(a + i + VF_LANES, way), p);
        vf_store(dst + i, first);
        vf_store(dst + i + VF_LANES, second);
    }
    return i;
}

/* `light`, a constant: f takes less time than memory does. */
VF_INLINE void map1(float *dst, const float *const *src, size_t n, const float *params, size_t count,
                    map1_fn *f, bool light)
{
    const float *a = src[0];
    vf p[MAP_PARAMS];
    map_params(p, params, count);
    const map_way way = map_way_of(n, 2, light);
    size_t i = way == MAP_HALVES   ? map1_pairs(dst, a, n, p, f, MAP_HALVES)
               : way == MAP_ASKING ? map1_pairs(dst, a, n, p, f, MAP_ASKING)
                                   : map1_pairs(dst, a, n, p, f, MAP_USUAL);
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(dst + i, f(vf_load(a + i), p));
    if (i < n)
        vf_store_tail(dst + i, f(run_load_tail(a + i, n - i), p), n - i);
}

/* As map1_pairs, but sources are not asked for: with three runs whole pages apart that takes a tenth longer. */
VF_INLINE size_t map2_pairs(float *dst, const float *a, const float *b, size_t n, const vf *p, map2_fn *f,
                            map_way way)
{
    size_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        if (way != MAP_HALVES)
            map_ask(dst + i);
        vf first = f(map_load(a + i, way), map_load(b + i, way), p);
        vf second = f(map_load(a + i + VF_LANES, way), map_load(b + i + VF_LANES, way), p);
        vf_store(dst + i, first);
        vf_store(dst + i + VF_LANES, second);
    }
    return i;
}

/* Where a vector is a line, and a run short: several lines of one source and of the other, then those of the results.
 * It takes half the time of halves in the first cache, and 7 % less where many such runs come from the third. Returns
 * how far this came. */
VF_INLINE size_t map2_lines(float *dst, const float *a, const float *b, size_t n, const vf *p, map2_fn *f)
{
    size_t i = 0;
#if defined(VF_HALVES)
    enum { LINES = 8 };
    for (; i + LINES * VF_LANES <= n && n <= MAP_SECOND; i += LINES * VF_LANES) {
        vf v[LINES];
#pragma GCC unroll 8
        for (size_t k = 0; k < LINES; k++)
            v[k] = f(vf_load(a + i + k * VF_LANES), vf_load(b + i + k * VF_LANES), p);
#pragma GCC unroll 8
        for (size_t k = 0; k < LINES; k++)
            vf_store(dst + i + k * VF_LANES, v[k]);
    }
#else
    (void)dst, (void)a, (void)b, (void)n, (void)p, (void)f;
#endif
    return i;
}

VF_INLINE void map2(float *dst, const float *const *src, size_t n, const float *params, size_t count,
                    map2_fn *f, bool light)
{
    const float *a = src[0], *b = src[1];
    vf p[MAP_PARAMS];
    map_params(p, params, count);
    size_t i = 0;
#if defined(VF_HALVES)
    /* As small nets have it: sooner done than a tail of any length. */
    if (light && n == VF_LANES / 2) {
        vh_store(dst, vh_low(f(vf_of_low(vh_load(a)), vf_of_low(vh_load(b)), p)));
        return;
    }
#endif
    if (VF_LANES == 1 || n >= VF_LANES) {
        const map_way way = map_way_of(n, 3, light);
        i = light ? map2_lines(dst, a, b, n, p, f) : 0;
        i += way == MAP_HALVES   ? map2_pairs(dst + i, a + i, b + i, n - i, p, f, MAP_HALVES)
             : way == MAP_ASKING ? map2_pairs(dst + i, a + i, b + i, n - i, p, f, MAP_ASKING)
                                 : map2_pairs(dst + i, a + i, b + i, n - i, p, f, MAP_USUAL);
        for (; i + VF_LANES <= n; i += VF_LANES)
            vf_store(dst + i, f(vf_load(a + i), vf_load(b + i), p));
    }
    if (i < n)
        vf_store_tail(dst + i, f(run_load_tail(a + i, n - i), run_load_tail(b + i, n - i), p), n - i);
}

VF_INLINE void map3(float *dst, const float *const *src, size_t n, const float *params, size_t count,
                    map3_fn *f)
{
    const float *a = src[0], *b = src[1], *c = src[2];
    vf p[MAP_PARAMS];
    map_params(p, params, count);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(dst + i, f(vf_load(a + i), vf_load(b + i), vf_load(c + i), p));
    if (i < n) {
        size_t rest = n - i;
        vf_store_tail(
            dst + i, f(run_load_tail(a + i, rest), run_load_tail(b + i, rest), run_load_tail(c + i, rest), p),
            rest);
    }
}

/* A kernel from an expression in a, b, c (its sources) and p[0], p[1] (its params). */
#define MAP1(name, count, expression)       MAP1_AS(name, count, expression, false)
#define MAP2(name, count, expression)       MAP2_AS(name, count, expression, false)
#define MAP1_LIGHT(name, count, expression) MAP1_AS(name, count, expression, true)
#define MAP2_LIGHT(name, count, expression) MAP2_AS(name, count, expression, true)

#define MAP1_AS(name, count, expression, light)                                               \
    VF_INLINE vf f_##name(vf a, const vf *p)                                                  \
    {                                                                                         \
        (void)p;                                                                              \
        return expression;                                                                    \
    }                                                                                         \
    static void map_##name(float *dst, const float *const *src, size_t n, const void *params) \
    {                                                                                         \
        map1(dst, src, n, params, count, f_##name, light);                                    \
    }

#define MAP2_AS(name, count, expression, light)                                               \
    VF_INLINE vf f_##name(vf a, vf b, const vf *p)                                            \
    {                                                                                         \
        (void)p;                                                                              \
        return expression;                                                                    \
    }                                                                                         \
    static void map_##name(float *dst, const float *const *src, size_t n, const void *params) \
    {                                                                                         \
        map2(dst, src, n, params, count, f_##name, light);                                    \
    }

#define MAP3(name, count, expression)                                                         \
    VF_INLINE vf f_##name(vf a, vf b, vf c, const vf *p)                                      \
    {                                                                                         \
        (void)p;                                                                              \
        return expression;                                                                    \
    }                                                                                         \
    static void map_##name(float *dst, const float *const *src, size_t n, const void *params) \
    {                                                                                         \
        map3(dst, src, n, params, count, f_##name);                                           \
    }

#endif
