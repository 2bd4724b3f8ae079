/* Shared by the norms. A backward reads x, and the mean and rstd that the forward wrote; dx may overwrite dy or
 * x. */
#ifndef MICA_SRC_NODE_NORM_H
#define MICA_SRC_NODE_NORM_H

#include "node/check.h"

/* What a forward takes and makes, and its backward. */
enum { X, GAMMA, BETA, RUNNING_MEAN, RUNNING_VAR };
enum { Y, MEAN, RSTD };
enum { DY, BACK_X, SAVED_MEAN, SAVED_RSTD, BACK_GAMMA };
enum { DX, DGAMMA, DBETA };

#define NORM_NAMES      ((const char *const[]){"x", "gamma", "beta", "y", "mean", "rstd"})
#define NORM_BACK_NAMES ((const char *const[]){"dy", "x", "mean", "rstd", "gamma", "dx", "dgamma", "dbeta"})

/* y is like x; gamma and beta are [dims], mean and rstd [outer]. */
static inline mica_status infer_norm(mica_infer *i, int rank, const mica_index *dims, int outer_rank,
                                     const mica_index *outer)
{
    MICA_TRY(mica_infer_expect(i, GAMMA, rank, dims));
    MICA_TRY(mica_infer_expect(i, BETA, rank, dims));
    MICA_TRY(mica_infer_like(i, Y, X));
    MICA_TRY(mica_infer_out(i, MEAN, MICA_F32, outer_rank, outer));
    return mica_infer_out(i, RSTD, MICA_F32, outer_rank, outer);
}

static inline mica_status infer_norm_back(mica_infer *i, int rank, const mica_index *dims)
{
    MICA_TRY(mica_infer_like(i, DX, BACK_X));
    MICA_TRY(mica_infer_out(i, DGAMMA, MICA_F32, rank, dims));
    return mica_infer_out(i, DBETA, MICA_F32, rank, dims);
}

typedef mica_status norm_backward_fn(mica_context *ctx, const mica_norm_grads *grads, const mica_tensor *dy,
                                     const mica_tensor *x, const mica_tensor *gamma,
                                     const mica_norm_saved *saved);

static inline mica_status run_norm_back(const mica_call *c, norm_backward_fn *backward, bool inference)
{
    return backward(
        c->ctx, &(mica_norm_grads){c->out[DX], c->out[DGAMMA], c->out[DBETA]}, c->in[DY], c->in[BACK_X],
        c->in[BACK_GAMMA],
        &(mica_norm_saved){.mean = c->in[SAVED_MEAN], .rstd = c->in[SAVED_RSTD], .inference = inference});
}

static inline void give_norm(mica_grad *g, const mica_op *backward, const void *opts)
{
    mica_value in[] = {g->dout[Y], g->in[X], g->out[MEAN], g->out[RSTD], g->in[GAMMA]};
    if (g->dout[Y] != 0)
        mica_grad_give_all(g, (int[]){X, GAMMA, BETA}, 3, backward, in, 5, opts);
}

#endif
