/* What the recurrent operations share: cells, sizes, and the products of a step. */
#ifndef MICA_SRC_OPS_RECURRENT_H
#define MICA_SRC_OPS_RECURRENT_H

#include <mica/ops/recurrent.h>

#include "ops/check.h"
#include "ops/gemm.h"

typedef enum mica_cell { MICA_CELL_LSTM, MICA_CELL_GRU, MICA_CELL_RNN } mica_cell;

typedef struct mica_recurrent {
    mica_cell cell;
    size_t steps, batch, inputs, hidden;
    size_t gates; /* rows of the weights: 4 H, 3 H, H */
    size_t kept;  /* columns of the gates tensor: 4 H, 4 H, H */
} mica_recurrent;

/* Fills *r from x [T, N, I] and the weights, and checks these and y [T, N, H], which may be NULL. */
mica_status mica_recurrent_check(mica_context *ctx, const char *op, mica_recurrent *r, mica_cell cell,
                                 const mica_tensor *x, const mica_tensor *y,
                                 const mica_recurrent_weights *weights);

/* args[i] is one of N rows of the state, [N, H]; or of something for every step, [T, N, columns]. */
mica_status mica_recurrent_check_state(mica_context *ctx, const char *op, const mica_recurrent *r,
                                       const mica_arg *arg, const mica_arg *x);
mica_status mica_recurrent_check_steps(mica_context *ctx, const char *op, const mica_recurrent *r,
                                       const mica_arg *arg, size_t columns, const mica_arg *x);

/* Whether the panels of W_hh are packed once for all steps. A vector's product needs none. */
static inline bool mica_recurrent_packs(const mica_recurrent *r) { return r->steps > 1 && r->batch > 1; }

/* The arithmetic of the products of all gates with `columns` columns. Forward has one with the inputs and one with
 * the state; backward two of each, by what went in and by the weights. */
static inline double mica_recurrent_flops(const mica_recurrent *r, size_t columns)
{
    return 2.0 * (double)(r->steps * r->batch) * (double)r->gates * (double)columns;
}

/* Row 0 of step t of a [T, N, columns] tensor whose rows are contiguous. */
static inline mica_cell_rows mica_recurrent_step(const mica_tensor *t, size_t step)
{
    return (mica_cell_rows){(float *)t->data + (mica_index)step * t->stride[0], t->stride[1]};
}

/* Rows in one block of parallel work. */
static inline size_t mica_recurrent_block(const mica_recurrent *r)
{
    return r->hidden < 2048 ? 2048 / (r->hidden + 1) + 1 : 1;
}

/* The scratch of an operation, handed out piece by piece; with base NULL, only measured. */
typedef struct mica_pieces {
    char *base;
    size_t used;
} mica_pieces;

static inline float *mica_piece(mica_pieces *p, size_t floats)
{
    float *piece = p->base != NULL ? (float *)(void *)(p->base + p->used) : NULL;
    p->used += mica_align_up(floats * sizeof(float));
    return piece;
}

#endif
