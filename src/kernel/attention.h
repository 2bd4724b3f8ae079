/* Attention kernels: a block of queries of one head against its keys, forward and backward. */
#ifndef MICA_SRC_KERNEL_ATTENTION_H
#define MICA_SRC_KERNEL_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block is this many queries; keys are taken this many at a time. */
#define MICA_ATTENTION_QUERIES ((size_t)64)
#define MICA_ATTENTION_KEYS    ((size_t)64)

/* Rows of d contiguous elements. */
typedef struct mica_rows {
    float *data;
    ptrdiff_t stride;
} mica_rows;

/* What becomes of the scores of a block before the softmax: they are scaled, masked and hidden. Query i sees its
 * first visible + i * step keys (none if that is negative); step is 0 or 1. */
typedef struct mica_score_rule {
    float scale;
    ptrdiff_t visible, step;
    const float *add;    /* added where given: query i, key j at [i * mask_row + j * mask_column] */
    const uint8_t *keep; /* hides where 0 */
    ptrdiff_t mask_row, mask_column;
} mica_score_rule;

typedef struct mica_attention_block {
    size_t queries, d; /* queries: at most MICA_ATTENTION_QUERIES */
    size_t keys;       /* from the first to the last that any of the queries sees */
    mica_score_rule rule;
    mica_rows out, q, k, v; /* out may be q */
    float *lse;             /* the logarithm of each query's sum of e^score; or NULL */
    ptrdiff_t lse_stride;
    float *scratch; /* mica_attention_floats(d) */
} mica_attention_block;

typedef struct mica_attention_gradient {
    size_t queries, d;
    size_t first_key, keys; /* those from first_key to keys - 1 are looked at */
    mica_score_rule rule;
    mica_rows dq;     /* written; data NULL: not wanted */
    mica_rows dk, dv; /* added to; data NULL: not wanted */
    mica_rows dout, q, k, v, out;
    const float *lse;
    ptrdiff_t lse_stride;
    float *scratch; /* mica_attention_backward_floats(d) */
} mica_attention_gradient;

/* Queries, turned: d x 64 | scores of a group of queries: 64 x 32 at most */
static inline size_t mica_attention_floats(size_t d)
{
    return MICA_ATTENTION_QUERIES * d + MICA_ATTENTION_KEYS * 32;
}

/* q, turned: d x 64 | dout, turned: d x 64 | p: 64 x 64 | ds: 64 x 64 */
static inline size_t mica_attention_backward_floats(size_t d)
{
    return MICA_ATTENTION_QUERIES * 2 * d + MICA_ATTENTION_KEYS * 2 * MICA_ATTENTION_QUERIES;
}

typedef struct mica_attention_kernels {
    void (*forward)(const mica_attention_block *block);

    /* With p = e^(score - lse) and delta = sum of dout * out of each query:
     * dv += p' dout,  ds = p (dout v' - delta) scale,  dq = ds k,  dk += ds' q */
    void (*backward)(const mica_attention_gradient *gradient);
} mica_attention_kernels;

#endif
