/* Attention's gradients; part of attention.c. */
#ifndef MICA_SRC_KERNEL_ATTENTION_BACKWARD_H
#define MICA_SRC_KERNEL_ATTENTION_BACKWARD_H

#include "kernel/attention_tile.h"

/* A block of queries, and p and ds of it against some keys. */
typedef struct backward_tiles {
    float *q, *dout; /* turned: [d, QUERIES]; q scaled */
    float *p, *ds;   /* [KEYS, QUERIES] */
    float lse[QUERIES], delta[QUERIES];
} backward_tiles;

static void load_queries(backward_tiles *t, const mica_attention_gradient *g)
{
    turn(t->q, &g->q, g->queries, g->d, g->rule.scale);
    turn(t->dout, &g->dout, g->queries, g->d, 1.0f);
    for (size_t i = 0; i < QUERIES; i++)
        t->lse[i] = t->delta[i] = 0.0f;
    for (size_t i = 0; i < g->queries; i++) {
        ptrdiff_t row = (ptrdiff_t)i;
        float lse = g->lse[row * g->lse_stride];
        t->lse[i] = lse == -INFINITY ? INFINITY : lse; /* a query that sees no key: its p are 0 */
        t->delta[i] = dot(g->dout.data + row * g->dout.stride, g->out.data + row * g->out.stride, g->d);
    }
}

/* p = e^(s - lse) and ds = p (dp - delta) scale, in place of scores and dp, for a group of queries. */
static void softmax_backward(const backward_tiles *t, const group *g, float *ds, float scale)
{
    vf by = vf_set1(scale);
    for (size_t v = 0; v < g->width; v += VF_LANES) {
        vf lse = vf_load(t->lse + g->query + v), delta = vf_load(t->delta + g->query + v);
        for (size_t j = 0; j < g->n; j++) {
            float *s = g->s + j * QUERIES + v, *d = ds + j * QUERIES + v;
            vf p = vf_exp_down(vf_sub(vf_load(s), lse));
            vf_store(s, p);
            vf_store(d, vf_mul(p, vf_mul(by, vf_sub(vf_load(d), delta))));
        }
    }
}

/* p and ds of n keys from `key` on. */
static void score_tile(const backward_tiles *t, const mica_attention_gradient *a, size_t key, size_t n)
{
    for (size_t query = 0; query < a->queries; query += GROUP) {
        group g = group_at(query, a->queries, t->p + query, QUERIES);
        float *ds = t->ds + query;
        g.key = key;
        g.n = seen(&a->rule, query + g.count - 1, key, n);
        group_scores(&g, &a->k, t->q, a->d, &a->rule);
        group_product(&g, ds, &a->v, t->dout, a->d);
        softmax_backward(t, &g, ds, a->rule.scale);
        /* The tiles of the products that follow may reach this far over. */
        for (size_t j = g.n; j < least(n, g.n + ROWS); j++) {
            memset(g.s + j * QUERIES, 0, g.width * sizeof(float));
            memset(ds + j * QUERIES, 0, g.width * sizeof(float));
        }
    }
}

/* [n, d] += tile [n, queries] times rows [queries, d]: what queries give to the keys that they see */
static void give_to_keys(const mica_attention_gradient *a, const mica_rows *to, const float *tile_of_keys,
                         const mica_rows *rows, size_t key, size_t n)
{
    ptrdiff_t first = (ptrdiff_t)key - a->rule.visible + 1; /* the first query that sees key 0 of these */
    multiply(&(product){.c = to->data + (ptrdiff_t)key * to->stride,
                        .c_stride = to->stride,
                        .a = tile_of_keys,
                        .a_row = (ptrdiff_t)QUERIES,
                        .a_column = 1,
                        .b = rows->data,
                        .b_stride = rows->stride,
                        .m = n,
                        .n = a->d,
                        .k = a->queries,
                        .begin = a->rule.step != 0 ? first : 0,
                        .begin_step = a->rule.step,
                        .end = (ptrdiff_t)a->queries,
                        .add = true});
}

/* dq [queries, d] = ds' k, added to what keys before gave */
static void give_to_queries(const mica_attention_gradient *a, const backward_tiles *t, size_t key, size_t n)
{
    multiply(&(product){.c = a->dq.data,
                        .c_stride = a->dq.stride,
                        .a = t->ds,
                        .a_row = 1,
                        .a_column = (ptrdiff_t)QUERIES,
                        .b = a->k.data + (ptrdiff_t)key * a->k.stride,
                        .b_stride = a->k.stride,
                        .m = a->queries,
                        .n = a->d,
                        .k = n,
                        .end = a->rule.visible - (ptrdiff_t)key,
                        .end_step = a->rule.step,
                        .add = key > 0});
}

static void backward(const mica_attention_gradient *a)
{
    backward_tiles t = {.q = a->scratch};
    t.dout = t.q + QUERIES * a->d;
    t.p = t.dout + QUERIES * a->d;
    t.ds = t.p + KEYS * QUERIES;
    load_queries(&t, a);
    for (size_t key = a->first_key; key < a->keys; key += KEYS) {
        size_t n = least(KEYS, a->keys - key);
        score_tile(&t, a, key, n);
        if (a->dv.data != NULL)
            give_to_keys(a, &a->dv, t.p, &a->dout, key, n);
        if (a->dk.data != NULL)
            give_to_keys(a, &a->dk, t.ds, &a->q, key, n);
        if (a->dq.data != NULL)
            give_to_queries(a, &t, key, n);
    }
    for (size_t i = 0; i < a->queries && a->keys == 0 && a->dq.data != NULL; i++)
        memset(a->dq.data + (ptrdiff_t)i * a->dq.stride, 0, a->d * sizeof(float));
}

#endif
