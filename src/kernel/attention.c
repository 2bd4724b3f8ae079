/* Attention kernels; compiled once per instruction set. */
#include "kernel/attention.h"
#include "kernel/attention_backward.h"
#include "kernel/attention_tile.h"
#include "kernel/vmath.h"

/* ---- A block of queries: the softmax is kept up to date from keys to keys ---- */

/* Of each query of a group, over the keys so far. */
typedef struct softmax {
    float largest[GROUP], sum[GROUP];
    float keep[GROUP]; /* what sums made before the last keys are to be scaled by */
} softmax;

/* With the new largest score m of each query, s = e^(s - m). */
static void softmax_step(softmax *state, const group *g)
{
    for (size_t v = 0; v < g->width; v += VF_LANES) {
        float *s = g->s + v;
        vf before = vf_load(state->largest + v), most = before, other = before;
        size_t j = 0;
        for (; j + 2 <= g->n; j += 2) {
            most = vf_max(most, vf_load(s + j * GROUP));
            other = vf_max(other, vf_load(s + (j + 1) * GROUP));
        }
        if (j < g->n)
            most = vf_max(most, vf_load(s + j * GROUP));
        most = vf_max(most, other);
        vf_store(state->largest + v, most);
        /* Where no key was seen so far, e^(-infinity - 0) is 0. A NaN that was lost above shows in the sum. */
        vf m = vf_select(vf_eq(most, vf_set1(-INFINITY)), vf_zero(), most);
        vf keep = vf_exp_down(vf_sub(before, m)), sum = vf_mul(vf_load(state->sum + v), keep);
        for (j = 0; j < g->n; j++) {
            vf e = vf_exp_down(vf_sub(vf_load(s + j * GROUP), m));
            vf_store(s + j * GROUP, e);
            sum = vf_add(sum, e);
        }
        vf_store(state->keep + v, keep);
        vf_store(state->sum + v, sum);
    }
}

/* keep becomes 1 / sum, or 0 where no key was seen; lse = largest + log(sum). */
static void softmax_end(softmax *state, float *lse, ptrdiff_t lse_stride, size_t count)
{
    float logs[GROUP];
    for (size_t v = 0; v < GROUP; v += VF_LANES) {
        vf sum = vf_load(state->sum + v);
        vm none = vf_eq(sum, vf_zero());
        vf_store(state->sum + v, vf_select(none, vf_zero(), vf_div(vf_set1(1.0f), sum)));
        vf_store(logs + v,
                 vf_select(none, vf_set1(-INFINITY), vf_add(vf_load(state->largest + v), vf_log(sum))));
    }
    for (size_t i = 0; i < count && lse != NULL; i++)
        lse[(ptrdiff_t)i * lse_stride] = logs[i];
}

static void forward_group(const mica_attention_block *b, const float *turned, group *g)
{
    softmax state;
    for (size_t i = 0; i < GROUP; i++) {
        state.largest[i] = -INFINITY;
        state.sum[i] = 0.0f;
    }
    size_t reach = seen(&b->rule, g->query + g->count - 1, 0, b->keys);
    mica_rows out = {b->out.data + (ptrdiff_t)g->query * b->out.stride, b->out.stride};
    float *lse = b->lse != NULL ? b->lse + (ptrdiff_t)g->query * b->lse_stride : NULL;
    for (g->key = 0; g->key < reach; g->key += KEYS) {
        g->n = least(KEYS, reach - g->key);
        group_scores(g, &b->k, turned, b->d, &b->rule);
        softmax_step(&state, g);
        bool last = g->key + g->n == reach;
        if (last)
            softmax_end(&state, lse, b->lse_stride, g->count);
        multiply(&(product){
            .c = out.data,
            .c_stride = out.stride,
            .a = g->s,
            .a_row = 1,
            .a_column = (ptrdiff_t)GROUP,
            .b = b->v.data + (ptrdiff_t)g->key * b->v.stride,
            .b_stride = b->v.stride,
            .m = g->count,
            .n = b->d,
            .k = g->n,
            .end = b->rule.visible + (ptrdiff_t)g->query * b->rule.step - (ptrdiff_t)g->key,
            .end_step = b->rule.step,
            .add = g->key > 0,
            .keep = g->key > 0 ? state.keep : NULL,
            .scale = last ? state.sum : NULL,
        });
    }
    if (reach == 0) {
        softmax_end(&state, lse, b->lse_stride, g->count);
        for (size_t i = 0; i < g->count; i++)
            memset(out.data + (ptrdiff_t)i * out.stride, 0, b->d * sizeof(float));
    }
}

/* ---- Few queries, as when text is generated: one at a time, as a lane for each would leave most empty ---- */

#define FEW 4

/* The scores of n keys from `key` on, in the lanes of s [KEYS]; those past n are -infinity. */
static void query_scores(float *s, const mica_attention_block *b, const float *q, size_t query, size_t key,
                         size_t n)
{
    const float *k = b->k.data + (ptrdiff_t)key * b->k.stride;
    for (size_t j = 0; j < n; j++)
        s[j] = b->rule.scale * dot(q, k + (ptrdiff_t)j * b->k.stride, b->d);
    for (size_t j = n; j < KEYS; j++)
        s[j] = -INFINITY;
    if (b->rule.add != NULL || b->rule.keep != NULL)
        mask_group(&(group){.query = query, .count = 1, .key = key, .n = n, .s = s, .stride = 1}, &b->rule);
}

/* As softmax_step, for one query. Returns what earlier sums are to be scaled by. */
static float query_softmax(float *s, float *largest, float *sum)
{
    vf most = vf_set1(*largest);
    for (size_t j = 0; j < KEYS; j += VF_LANES)
        most = vf_max(most, vf_load(s + j));
    float m = vf_hmax(most), keep[VF_LANES];
    vf shift = vf_set1(m == -INFINITY ? 0.0f : m), part = vf_zero();
    vf_store(keep, vf_exp_down(vf_sub(vf_set1(*largest), shift)));
    for (size_t j = 0; j < KEYS; j += VF_LANES) {
        vf e = vf_exp_down(vf_sub(vf_load(s + j), shift));
        vf_store(s + j, e);
        part = vf_add(part, e);
    }
    *largest = m;
    *sum = *sum * keep[0] + vf_sum(part);
    return keep[0];
}

static void forward_query(const mica_attention_block *b, size_t query)
{
    float *q = b->scratch, *out = b->out.data + (ptrdiff_t)query * b->out.stride, s[KEYS];
    float largest = -INFINITY, sum = 0.0f, lane[VF_LANES];
    memcpy(q, b->q.data + (ptrdiff_t)query * b->q.stride, b->d * sizeof *q); /* out may take its place */
    size_t reach = seen(&b->rule, query, 0, b->keys);
    for (size_t key = 0; key < reach; key += KEYS) {
        size_t n = least(KEYS, reach - key);
        query_scores(s, b, q, query, key, n);
        float keep = query_softmax(s, &largest, &sum), scale = sum == 0.0f ? 0.0f : 1.0f / sum;
        multiply(&(product){.c = out,
                            .a = s,
                            .a_column = 1,
                            .b = b->v.data + (ptrdiff_t)key * b->v.stride,
                            .b_stride = b->v.stride,
                            .m = 1,
                            .n = b->d,
                            .k = n,
                            .end = (ptrdiff_t)n,
                            .add = key > 0,
                            .keep = key > 0 ? &keep : NULL,
                            .scale = key + n == reach ? &scale : NULL});
    }
    if (reach == 0)
        memset(out, 0, b->d * sizeof *out);
    vf_store(lane, vf_log(vf_set1(sum)));
    if (b->lse != NULL)
        b->lse[(ptrdiff_t)query * b->lse_stride] = sum == 0.0f ? -INFINITY : largest + lane[0];
}

static void forward(const mica_attention_block *b)
{
    if (b->queries < FEW) {
        for (size_t query = 0; query < b->queries; query++)
            forward_query(b, query);
        return;
    }
    float *turned = b->scratch;
    turn(turned, &b->q, b->queries, b->d, b->rule.scale);
    for (size_t query = 0; query < b->queries; query += GROUP) {
        group g = group_at(query, b->queries, turned + QUERIES * b->d, GROUP);
        forward_group(b, turned, &g);
    }
}

const mica_attention_kernels VF_SYMBOL(mica_attention_kernels) = {.forward = forward, .backward = backward};
