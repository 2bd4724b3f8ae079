/* What the recurrent operations share: cells, sizes, and the products of a step. */
#ifndef MICA_SRC_OPS_RECURRENT_H
#define MICA_SRC_OPS_RECURRENT_H

#include <mica/ops/recurrent.h>

#include "base/size.h"
#include "ops/check.h"
#include "ops/gemm.h"

typedef enum mica_cell { MICA_CELL_LSTM, MICA_CELL_GRU, MICA_CELL_RNN } mica_cell;

typedef struct mica_recurrent {
    mica_cell cell;
    size_t steps, batch, inputs, hidden;
    size_t blocks; /* of gates: 4, 3, 1 */
    size_t gates;  /* rows of the weights: blocks * H */
    size_t kept;   /* columns of the gates tensor: 4 H, 4 H, H */
#if !defined(MICA_SMALL)
    bool dots; /* forward: the weights, whose rows are contiguous, are read as they lie */
#endif
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

/* The arithmetic of the products of all gates with `columns` columns. Forward has one with the inputs and one with
 * the state; backward two of each, by what went in and by the weights. */
static inline double mica_recurrent_flops(const mica_recurrent *r, size_t columns)
{
    return 2.0 * (double)(r->steps * r->batch) * (double)r->gates * (double)columns;
}

/* Row 0 of step t of a [T, N, columns] tensor whose rows are contiguous. */
static inline mica_cell_rows mica_recurrent_rows(const mica_tensor *t, size_t step)
{
    return (mica_cell_rows){(float *)t->data + (mica_index)step * t->stride[0], t->stride[1]};
}

/* ---- A step: forward and backward, the product with W_hh of what the step next to it left, then the cell ---- */

/* to = from W + beta to + bias. W is W_hh or its transpose: a vector for every unit of every run, which are the gates
 * forward, and one backward. */
typedef struct mica_recurrent_product {
    mica_gemm_operand weights;
    size_t runs, k;
    float *panels;       /* the weights packed; NULL: they are read as they lie */
    mica_cell_rows from; /* [N, k]; data NULL: zeros */
    mica_cell_rows to;   /* [N, runs * H]; data NULL: there is no product */
    float beta;
    const float *bias; /* or NULL */
#if !defined(MICA_SMALL)
    /* Where the inputs are joined to the state, W is [W_ih W_hh], and `from` is [x h']. */
    mica_gemm_operand input_weights;
    size_t inputs;
    bool inputs_alone; /* h' is zeros */
    /* Or each lies where it is, x here, and the weights, whose rows are contiguous, too. */
    bool dots;
    mica_cell_rows x;
#endif
} mica_recurrent_product;

typedef struct mica_recurrent_step {
    mica_recurrent_product product;
    mica_cell_step cell;
    mica_cell_fn *kernel; /* NULL: the product alone */
    size_t row, rows;     /* the sequences that are meant */
    size_t kept;          /* columns of the gates */
#if !defined(MICA_SMALL)
    /* Where the inputs are joined: those of the next step, and its [x h']. The cell puts h there. */
    mica_cell_rows next_x, next;
#endif
    void *gemm_scratch;
    const mica_gemm_kernels *gemm;
} mica_recurrent_step;

/* What computes the cells of a step. */
static inline mica_cell_fn *mica_recurrent_kernel(const mica_context *ctx, mica_cell cell)
{
    const mica_recurrent_kernels *kernels = MICA_FAMILY(ctx->kernels, recurrent);
    return cell == MICA_CELL_LSTM ? kernels->lstm : cell == MICA_CELL_GRU ? kernels->gru : kernels->rnn;
}

/* Built small, a constant. */
static inline bool mica_recurrent_dots(const mica_recurrent *r)
{
#if defined(MICA_SMALL)
    (void)r;
    return false;
#else
    return r->dots;
#endif
}

/* Whether W_hh is packed once, since it is used often enough; and the floats that takes, with so many columns of W_ih
 * beside it. */
static inline bool mica_recurrent_packs(const mica_recurrent *r)
{
    return r->steps > 1 && r->batch > 1 && !mica_recurrent_dots(r);
}
size_t mica_recurrent_panels(mica_context *ctx, const mica_recurrent *r, size_t inputs);

/* Sets what is the same for all steps besides the product, and packs W_hh where there are panels for it; without its
 * data they are packed already. */
void mica_recurrent_start(mica_context *ctx, const mica_recurrent *r, mica_recurrent_step *s);

/* Sequences that a thread takes through all steps at once, at most: their states stay in the first cache. */
#define MICA_RECURRENT_MOST_ROWS 16

/* Whether so many sequences are enough for a thread of their own, where `least` are with weights that do not stay in
 * each core's second cache: with those that do, few are. */
static inline bool mica_recurrent_enough(const mica_recurrent *r, size_t share, size_t least)
{
#if !defined(MICA_SMALL)
    enum { NEAR_BYTES = 512 << 10, NEAR_ROWS = 3 };
    if (r->gates * r->hidden * sizeof(float) <= NEAR_BYTES)
        least = mica_least(least, NEAR_ROWS);
#endif
    (void)r;
    return share >= least;
}

/* Takes sequences row .. row + rows - 1 through all steps, with the threads of ctx; NULL: with this one. */
typedef void mica_recurrent_fn(mica_context *ctx, const void *job, size_t row, size_t rows);

/* Takes all sequences through all steps: each thread its own, if it has `least` of them, or all threads together. */
void mica_recurrent_each(mica_context *ctx, const mica_recurrent *r, size_t least, mica_recurrent_fn *fn,
                         const void *job);

/* Does one step. With ctx NULL there must be panels. */
void mica_recurrent_run(mica_context *ctx, mica_recurrent_step *s);

/* Multiply-adds of a step that threads share: below, what they would tell each other takes longer. The same of one
 * sequence alone, whose sums wait for the weights. And a unit's cell, in multiply-adds of the same time. */
#define MICA_RECURRENT_SHARED     1.5e5
#define MICA_RECURRENT_SHARED_ONE 2.5e5
#define MICA_CELL_SUMS            150.0

/* Whether threads share such a step. */
static inline bool mica_recurrent_shares(const mica_recurrent_step *s)
{
    const mica_recurrent_product *p = &s->product;
    double sums = (double)(s->rows * s->cell.hidden) * ((double)(p->runs * p->k) + MICA_CELL_SUMS);
#if !defined(MICA_SMALL)
    if (s->rows == 1)
        return sums >= MICA_RECURRENT_SHARED_ONE;
#endif
    return sums >= MICA_RECURRENT_SHARED;
}

#if !defined(MICA_SMALL)
/* ---- Weights that are prepared once, for inference: recurrent_prepared.c ---- */

/* One direction over x: what it starts from, and what it gives. Each but the weights may be NULL. y is as x, with H for
 * I; it may have any strides but that of its last axis, which is 1. All other tensors are contiguous. */
typedef struct mica_recurrent_way {
    const mica_tensor *w_ih, *w_hh; /* as they lie: of w_hh the shape alone */
    const mica_tensor *prepared;    /* from mica_recurrent_prepare */
    const mica_tensor *h_0, *c_0, *y, *h_n, *c_n;
    bool reverse; /* from the last time step to the first */
} mica_recurrent_way;

#define MICA_RECURRENT_WAYS 2

typedef struct mica_recurrent_prepared_opts {
    mica_cell cell;
    bool relu;       /* RNN */
    bool time_first; /* x is [T, N, I], not [N, T, I] */
} mica_recurrent_prepared_opts;

size_t mica_recurrent_prepared_floats(const mica_context *ctx, mica_cell cell, size_t inputs, size_t hidden);
/* Both weights, packed, and their biases, into f32 [mica_recurrent_prepared_floats]. */
mica_status mica_recurrent_prepare(mica_context *ctx, const mica_tensor *prepared, mica_cell cell,
                                   const mica_recurrent_weights *weights);
/* One direction or two at once, of the same sizes: the same bits however many there are, and for any number of threads.
 * Gates and cells are not kept. */
mica_status mica_recurrent_prepared(mica_context *ctx, const mica_tensor *x, const mica_recurrent_way *ways,
                                    int count, const mica_recurrent_prepared_opts *opts);
#endif

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
