/* What attention's forward and backward share: shapes and options. */
#ifndef MICA_SRC_OPS_ATTENTION_H
#define MICA_SRC_OPS_ATTENTION_H

#include <mica/ops/attention.h>

#include "ops/contiguous.h"

typedef struct mica_attention_shape {
    size_t batch, heads, kv_heads, queries, keys, d;
    size_t group; /* query heads that share a key head */
    float scale;
    bool causal;
    mica_tensor mask; /* as [B, H, Tq, Tk]; data NULL: none */
} mica_attention_shape;

/* Checks q, k, v and the options, and fills in *s. */
mica_status mica_attention_check(mica_context *ctx, const char *op, mica_attention_shape *s,
                                 const mica_tensor *q, const mica_tensor *k, const mica_tensor *v,
                                 const mica_attention_opts *opts);

/* How many keys, from the first, the last of the queries up to `end` sees. */
static inline size_t mica_attention_reach(const mica_attention_shape *s, size_t end)
{
    if (!s->causal)
        return s->keys;
    return s->keys + end > s->queries
               ? (s->keys + end - s->queries < s->keys ? s->keys + end - s->queries : s->keys)
               : 0;
}

/* The arithmetic of one product over all pairs of a query and a key that it sees. Forward has two (scores, sums of
 * values), backward five. */
static inline double mica_attention_flops(const mica_attention_shape *s)
{
    double keys = (double)s->keys, queries = (double)s->queries, pairs = queries * keys;
    if (s->causal) /* the last query sees all keys, each before it one less */
        pairs = queries <= keys ? pairs - 0.5 * queries * (queries - 1.0) : 0.5 * keys * (keys + 1.0);
    return 2.0 * pairs * (double)(s->batch * s->heads) * (double)s->d;
}

/* The rule for queries from `query` on. */
mica_score_rule mica_attention_rule(const mica_attention_shape *s, size_t b, size_t h, size_t query);

/* The element of row `row` of head h of sequence b. */
static inline float *mica_attention_row(const mica_tensor *t, size_t b, size_t h, size_t row)
{
    return (float *)t->data + (mica_index)b * t->stride[0] + (mica_index)h * t->stride[1] +
           (mica_index)row * t->stride[2];
}

/* The rows from there on. */
static inline mica_rows mica_attention_rows(const mica_tensor *t, size_t b, size_t h, size_t row)
{
    return (mica_rows){mica_attention_row(t, b, h, row), t->stride[2]};
}

#endif
