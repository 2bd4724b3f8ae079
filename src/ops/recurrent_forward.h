/* Recurrent forward: what recurrent.c shares with recurrent_joined.c. */
#ifndef MICA_SRC_OPS_RECURRENT_FORWARD_H
#define MICA_SRC_OPS_RECURRENT_FORWARD_H

#include "ops/recurrent.h"

typedef struct mica_recurrent_forward {
    mica_recurrent r;
    mica_recurrent_step step;
    const mica_tensor *y, *w_ih, *w_hh; /* y with contiguous rows; weights of any layout */
    const float *x, *b_ih, *b_hh;       /* contiguous, as all that follow */
    float *h_0, *c_0, *h_n, *c_n;
    float *gates;                         /* [T, N, kept] */
    float *cells;                         /* [T, N, H]; or, if not all are kept, [N, H] */
    float *two;                           /* [2, N, H]: the last two steps' h, where there is no y */
    bool all_steps, all_gates, all_cells; /* are kept, in the caller's memory */
    float *from_hidden;                   /* GRU: [N, 3 H] */
    float *bias;                          /* LSTM and RNN: b_ih + b_hh, [gates] */
    bool joins;                           /* inputs and state are multiplied at once */
    float *joined;                        /* [2, N, joined stride]: [x h'] of even and odd steps */
} mica_recurrent_forward;

/* ---- recurrent_joined.c: steps that multiply their inputs along with the state ----
 *
 * Otherwise the inputs of all steps are one product before the first: the gates of many sequences do not stay in the
 * second cache from there to their step. The GRU needs both products apart. Built small, no step joins. */

/* Sequences of which a step's product with the inputs runs at full speed, and the floats of both weights that it reads
 * from a near cache. */
#define MICA_RECURRENT_JOINED_ROWS   8
#define MICA_RECURRENT_JOINED_FLOATS (((size_t)2 << 20) / sizeof(float))
/* Rows of [x h'], and of gates that nobody keeps, lie a little apart: not all in the same set of the first cache. */
#define MICA_RECURRENT_APART (MICA_ALIGN / sizeof(float))

static inline size_t mica_recurrent_joined_stride(const mica_recurrent *r)
{
    return r->inputs + r->hidden + MICA_RECURRENT_APART;
}

/* Rows of all steps, and of one, up to which packing the weights does not pay; and the length from which on rows may
 * all meet in one set of the first cache. */
#define MICA_RECURRENT_DOTS_ROWS  128
#define MICA_RECURRENT_DOTS_BATCH 24
#define MICA_RECURRENT_DOTS_LONG  1024

#if !defined(MICA_SMALL)
enum { MICA_RECURRENT_CAN_JOIN = 1 };

/* Whether steps may read rows of both weights as they lie: nothing is packed, and the product runs at full speed with
 * two sequences or more. */
static inline bool mica_recurrent_may_dot(const mica_context *ctx, const mica_recurrent_forward *j)
{
    return MICA_FAMILY(ctx->kernels, gemm)->dots != NULL && j->w_ih->stride[1] == 1 &&
           j->w_hh->stride[1] == 1;
}
/* Decides whether they do. */
static inline void mica_recurrent_choose_dots(const mica_context *ctx, mica_recurrent_forward *j)
{
    mica_recurrent *r = &j->r;
    r->dots = mica_recurrent_may_dot(ctx, j) && r->batch > 1 && r->batch <= MICA_RECURRENT_DOTS_BATCH &&
              r->steps <= MICA_RECURRENT_DOTS_ROWS / r->batch && r->inputs < MICA_RECURRENT_DOTS_LONG &&
              r->hidden < MICA_RECURRENT_DOTS_LONG;
}

/* gates = [x h'] [W_ih W_hh]T + bias, where the product was gates += h' W_hhT. */
void mica_recurrent_join_product(mica_recurrent_forward *j, const float *bias);
/* [x h'] of the first step: that of every other is left by the step before it. */
void mica_recurrent_join_first(const mica_recurrent_forward *j);
/* Points step t, whose gates are set, at its [x h'] and at the next one's. */
void mica_recurrent_join_step(mica_recurrent_forward *j, size_t t);
#else
enum { MICA_RECURRENT_CAN_JOIN = 0 };

static inline void mica_recurrent_choose_dots(const mica_context *ctx, const mica_recurrent_forward *j)
{
    (void)ctx, (void)j;
}

static inline void mica_recurrent_join_product(const mica_recurrent_forward *j, const float *bias)
{
    (void)j, (void)bias;
}
static inline void mica_recurrent_join_first(const mica_recurrent_forward *j) { (void)j; }
static inline void mica_recurrent_join_step(const mica_recurrent_forward *j, size_t t) { (void)j, (void)t; }
#endif

static inline bool mica_recurrent_joins(const mica_recurrent_forward *j)
{
    return MICA_RECURRENT_CAN_JOIN && j->joins;
}

/* Whether steps join if the weights are small enough: both are packed, or both are read as they lie. */
static inline bool mica_recurrent_may_join(const mica_recurrent *r)
{
    return MICA_RECURRENT_CAN_JOIN && (mica_recurrent_packs(r) || mica_recurrent_dots(r)) &&
           r->cell != MICA_CELL_GRU &&
           (r->batch >= MICA_RECURRENT_JOINED_ROWS || (mica_recurrent_dots(r) && r->steps == 1));
}

#endif
