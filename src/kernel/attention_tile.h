/* Building blocks of attention's forward and backward; part of attention.c.
 *
 * Scores are transposed: a row per key, a lane per query. So the softmax needs no cross-lane operations, and the
 * queries of a block, which are transposed for that, are transposed once for all keys. Queries come in groups of GROUP
 * lanes; a causal group ends at the last key that its last query attends to. */
#ifndef MICA_SRC_KERNEL_ATTENTION_TILE_H
#define MICA_SRC_KERNEL_ATTENTION_TILE_H

#include "kernel/attention.h"
#include "kernel/lines.h"
#include "kernel/vmath.h"

#define QUERIES MICA_ATTENTION_QUERIES
#define KEYS    MICA_ATTENTION_KEYS

/* The register tile: ROWS x 2 accumulators, with room for two vectors of b and a broadcast of a. */
#if VF_REGISTERS >= 32
#define ROWS 12
#else
#define ROWS 6
#endif
#define GROUP ((size_t)2 * VF_LANES)

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* ---- Products ---- */

/* c [m, n] = scale (a [m, k] b [k, n] + keep c). Row i sums the terms from begin + i * begin_step to
 * end + i * end_step, and may sum others, which are zeros in a. */
typedef struct product {
    float *c;
    ptrdiff_t c_stride;
    const float *a;
    ptrdiff_t a_row, a_column;
    const float *b; /* its columns lie one behind the other */
    ptrdiff_t b_stride;
    size_t m, n, k;
    ptrdiff_t begin, begin_step, end, end_step;
    bool add;           /* else keep is 0 */
    const float *keep;  /* [m]; NULL: 1 */
    const float *scale; /* [m]; NULL: 1 */
} product;

static size_t clamp(ptrdiff_t x, size_t most) { return x < 0 ? 0 : least((size_t)x, most); }

/* What becomes of the sums: constants where a tile is inlined. */
typedef enum store { SET, ADD, SCALE } store; /* c = sum; sum + c; scale (sum + keep c) */

VF_INLINE void store_rows(const product *p, size_t row, size_t column, vf sum[ROWS][4], size_t rows,
                          size_t vectors, size_t lanes, store kind)
{
    float *c = p->c + (ptrdiff_t)row * p->c_stride + column;
    bool whole = lanes == VF_LANES;
#pragma GCC unroll 12
    for (size_t i = 0; i < rows; i++, c += p->c_stride) {
        vf keep = vf_set1(kind == SCALE && p->keep != NULL ? p->keep[row + i] : 1.0f);
        vf scale = vf_set1(kind == SCALE && p->scale != NULL ? p->scale[row + i] : 1.0f);
#pragma GCC unroll 4
        for (size_t j = 0; j < vectors; j++) {
            float *to = c + j * VF_LANES;
            vf value = sum[i][j];
            if (kind == ADD)
                value = vf_add(value, whole ? vf_load(to) : vf_load_tail(to, lanes));
            if (kind == SCALE && p->add)
                value = vf_fma(keep, whole ? vf_load(to) : vf_load_tail(to, lanes), value);
            if (kind == SCALE)
                value = vf_mul(value, scale);
            if (whole)
                vf_store(to, value);
            else
                vf_store_tail(to, value, lanes);
        }
    }
}

/* Where nothing else makes vectors of a tile's loop gcc does (seen with 12.2), which then read two floats of the row
 * behind the last one. It makes none of rows that it does not know. */
#if VF_LANES == 1
#define ROW_OPAQUE(b) __asm__("" : "+r"(b))
#else
#define ROW_OPAQUE(b) ((void)(b))
#endif

/* One tile. rows and vectors are constants where this is inlined; of the last vector only `lanes` exist. */
VF_INLINE void tile(const product *p, size_t row, size_t column, size_t rows, size_t vectors, size_t lanes)
{
    vf sum[ROWS][4];
#pragma GCC unroll 12
    for (size_t i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (size_t j = 0; j < vectors; j++)
            sum[i][j] = vf_zero();
    size_t begin = clamp(p->begin + (ptrdiff_t)row * p->begin_step, p->k);
    size_t end = clamp(p->end + (ptrdiff_t)(row + rows - 1) * p->end_step, p->k);
    ptrdiff_t b_stride = p->b_stride;
    lines a = lines_at(p->a + (ptrdiff_t)row * p->a_row + (ptrdiff_t)begin * p->a_column, p->a_row,
                       p->a_column);
    const float *b = p->b + (ptrdiff_t)begin * b_stride + column;
    for (size_t term = begin; term < end; term++, b += b_stride) {
        vf line[4];
        lines_forget(&a);
        ROW_OPAQUE(b);
#pragma GCC unroll 4
        for (size_t j = 0; j < vectors; j++)
            line[j] = lanes == VF_LANES ? vf_load(b + j * VF_LANES) : vf_load_tail(b + j * VF_LANES, lanes);
#pragma GCC unroll 12
        for (size_t i = 0; i < rows; i++) {
            vf factor = vf_set1(lines_get(&a, i));
#pragma GCC unroll 4
            for (size_t j = 0; j < vectors; j++)
                sum[i][j] = vf_fma(factor, line[j], sum[i][j]);
        }
        lines_step(&a);
    }
    if (p->keep != NULL || p->scale != NULL)
        store_rows(p, row, column, sum, rows, vectors, lanes, SCALE);
    else if (p->add)
        store_rows(p, row, column, sum, rows, vectors, lanes, ADD);
    else
        store_rows(p, row, column, sum, rows, vectors, lanes, SET);
}

/* Some columns of c, all rows. Eight rows are two fours: two alone do not fill the multipliers. */
VF_INLINE void strip(const product *p, size_t column, size_t vectors, size_t lanes)
{
    size_t i = 0;
    for (; i + ROWS <= p->m && i + 8 != p->m; i += ROWS)
        tile(p, i, column, ROWS, vectors, lanes);
    for (; i + 4 <= p->m; i += 4)
        tile(p, i, column, 4, vectors, lanes);
    for (; i < p->m; i++)
        tile(p, i, column, 1, vectors, lanes);
}

static void multiply(const product *p)
{
    size_t j = 0;
    if (p->m == 1)
        for (; j + 4 * VF_LANES <= p->n; j += 4 * VF_LANES)
            tile(p, 0, j, 1, 4, VF_LANES);
    for (; j + 2 * VF_LANES <= p->n; j += 2 * VF_LANES)
        strip(p, j, 2, VF_LANES);
    for (; j + VF_LANES <= p->n; j += VF_LANES)
        strip(p, j, 1, VF_LANES);
    if (j < p->n)
        strip(p, j, 1, p->n - j);
}

static float dot(const float *a, const float *b, size_t n)
{
    vf sum = vf_zero(), other = vf_zero();
    size_t j = 0;
    for (; j + 2 * VF_LANES <= n; j += 2 * VF_LANES) {
        sum = vf_fma(vf_load(a + j), vf_load(b + j), sum);
        other = vf_fma(vf_load(a + j + VF_LANES), vf_load(b + j + VF_LANES), other);
    }
    for (; j < n; j += VF_LANES) {
        size_t lanes = least(VF_LANES, n - j);
        sum = vf_fma(vf_load_tail(a + j, lanes), vf_load_tail(b + j, lanes), sum);
    }
    return vf_sum(vf_add(sum, other));
}

/* turned [d, QUERIES] = scale * the transpose of rows [count, d]; lanes past count are zeros. */
static void turn(float *turned, const mica_rows *rows, size_t count, size_t d, float scale)
{
    vf by = vf_set1(scale);
    for (size_t first = 0; first < count; first += VF_LANES) {
        size_t lanes = least(VF_LANES, count - first), p = 0;
        const float *from = rows->data + (ptrdiff_t)first * rows->stride;
        for (; p + VF_LANES <= d; p += VF_LANES) {
            vf square[VF_LANES];
#pragma GCC unroll 16
            for (size_t i = 0; i < VF_LANES; i++)
                square[i] = i < lanes ? vf_load(from + (ptrdiff_t)i * rows->stride + p) : vf_zero();
            vf_transpose(square);
#pragma GCC unroll 16
            for (size_t i = 0; i < VF_LANES; i++)
                vf_store(turned + (p + i) * QUERIES + first, vf_mul(square[i], by));
        }
        for (; p < d; p++)
            for (size_t i = 0; i < VF_LANES; i++)
                turned[p * QUERIES + first + i] =
                    i < lanes ? scale * from[(ptrdiff_t)i * rows->stride + (ptrdiff_t)p] : 0.0f;
    }
}

/* ---- Scores ---- */

/* How many of the n keys from `key` on a query sees. */
static size_t seen(const mica_score_rule *rule, size_t query, size_t key, size_t n)
{
    return clamp(rule->visible + (ptrdiff_t)query * rule->step - (ptrdiff_t)key, n);
}

/* Which keys a group looks at, and where its scores go. */
typedef struct group {
    size_t query, count; /* its first, and how many there are */
    size_t width;        /* GROUP, or one vector if they fit into that */
    size_t key, n;       /* keys */
    float *s;            /* [n, width] */
    ptrdiff_t stride;
} group;

static group group_at(size_t query, size_t queries, float *s, size_t stride)
{
    size_t count = least(GROUP, queries - query);
    return (group){.query = query,
                   .count = count,
                   .width = count <= VF_LANES ? VF_LANES : GROUP,
                   .s = s,
                   .stride = (ptrdiff_t)stride};
}

static void mask_group(const group *g, const mica_score_rule *rule)
{
    for (size_t i = 0; i < g->count; i++) {
        ptrdiff_t at = (ptrdiff_t)(g->query + i) * rule->mask_row + (ptrdiff_t)g->key * rule->mask_column;
        float *s = g->s + i;
        for (size_t j = 0; j < g->n; j++, at += rule->mask_column, s += g->stride) {
            if (rule->add != NULL)
                *s += rule->add[at];
            else if (rule->keep[at] == 0)
                *s = -INFINITY;
        }
    }
}

/* -infinity for keys that come later than a query. */
VF_INLINE void hide_later(const group *g, const mica_score_rule *rule)
{
    for (size_t j = seen(rule, g->query, g->key, g->n); j < g->n; j++) {
        float *s = g->s + (ptrdiff_t)j * g->stride;
        ptrdiff_t more = rule->visible + (ptrdiff_t)g->query - (ptrdiff_t)(g->key + j);
        for (size_t v = 0; v < g->width; v += VF_LANES) {
            vi left = vi_add(vi_iota(), vi_set1((int32_t)more + (int32_t)v));
            vf_store(s + v, vf_select(vi_gt(left, vi_set1(0)), vf_load(s + v), vf_set1(-INFINITY)));
        }
    }
}

/* [n, width] = rows of a, from g->key on, times a group of turned queries */
static void group_product(const group *g, float *to, const mica_rows *a, const float *turned, size_t d)
{
    multiply(&(product){.c = to,
                        .c_stride = g->stride,
                        .a = a->data + (ptrdiff_t)g->key * a->stride,
                        .a_row = a->stride,
                        .a_column = 1,
                        .b = turned + g->query,
                        .b_stride = (ptrdiff_t)QUERIES,
                        .m = g->n,
                        .n = g->width,
                        .k = d,
                        .end = (ptrdiff_t)d});
}

/* Scores with all that the rule says, from queries that were turned and scaled. */
static void group_scores(const group *g, const mica_rows *k, const float *turned, size_t d,
                         const mica_score_rule *rule)
{
    group_product(g, g->s, k, turned, d);
    if (rule->add != NULL || rule->keep != NULL)
        mask_group(g, rule);
    if (rule->step != 0)
        hide_later(g, rule);
}

#endif
