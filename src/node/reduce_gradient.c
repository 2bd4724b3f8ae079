/* Gradients of reductions: dy is broadcast over the reduced axes. */
#include "node/gradient.h"
#include "node/reduce.h"

mica_tensor mica_reduction_kept(const mica_tensor *t, int rank, unsigned mask)
{
    if (t->rank == rank)
        return *t;
    mica_tensor kept = *t;
    kept.rank = rank;
    for (int k = 0, own = 0; k < rank; k++) {
        bool reduced = (mask & (1u << k)) != 0;
        kept.dim[k] = reduced ? 1 : t->dim[own];
        kept.stride[k] = reduced ? 0 : t->stride[own];
        own += reduced ? 0 : 1;
    }
    return kept;
}

/* Input `in`, one number for each result of the reduction, as what is broadcast to out[0]. */
static mica_tensor spread_input(const mica_call *c, int in)
{
    int rank = c->out[0]->rank;
    return mica_reduction_kept(c->in[in], rank, mica_reduction_mask(c->opts, rank));
}

/* How many elements each result was made of. */
static double elements(const mica_call *c, const mica_tensor *results)
{
    size_t all = mica_tensor_count(c->out[0]), each = mica_tensor_count(results);
    return each > 0 ? (double)all / (double)each : 0.0;
}

static mica_status run_spread(const mica_call *c)
{
    mica_tensor dy = spread_input(c, 0);
    return mica_copy(c->ctx, c->out[0], &dy);
}

static mica_status run_spread_mean(const mica_call *c)
{
    mica_tensor dy = spread_input(c, 0);
    return mica_scale(c->ctx, c->out[0], &dy, (float)(1.0 / elements(c, &dy)));
}

static mica_status run_times(const mica_call *c)
{
    mica_tensor dy = spread_input(c, 1);
    return mica_mul(c->ctx, c->out[0], c->in[0], &dy);
}

static mica_status run_times_variance(const mica_call *c)
{
    mica_tensor dy = spread_input(c, 1);
    double degrees = elements(c, &dy) - ((const mica_reduction_opts *)c->opts)->correction;
    MICA_TRY(mica_mul(c->ctx, c->out[0], c->in[0], &dy));
    return mica_scale(c->ctx, c->out[0], c->out[0], (float)(2.0 / degrees));
}

#define SPREAD(variable, op, words, inputs, over)                               \
    static const mica_op variable = {.name = op,                                \
                                     .about = words,                            \
                                     .ins = inputs,                             \
                                     .outs = 1,                                 \
                                     .opts_bytes = sizeof(mica_reduction_opts), \
                                     MICA_FIELD_LIST(mica_reduction_fields),    \
                                     .in_place = {over},                        \
                                     .run = run_##variable};

/* clang-format off */
SPREAD(spread, "sum_backward", "dy, broadcast over the reduced axes", 1, 0)
SPREAD(spread_mean, "mean_backward", "dy / n, broadcast over the reduced axes", 1, 0)
SPREAD(times, "mul_spread", "a * dy, with dy broadcast over the reduced axes", 2, 1)
SPREAD(times_variance, "variance_backward", "2 / (n - correction) a * dy, with dy broadcast over the reduced axes", 2, 1)
/* clang-format on */

/* dx = dy */
void mica_sum_gradient(mica_grad *g) { mica_grad_give(g, 0, &spread, g->dout, 1, g->opts); }
/* dx = dy / n */
void mica_mean_gradient(mica_grad *g) { mica_grad_give(g, 0, &spread_mean, g->dout, 1, g->opts); }

static mica_value two(mica_grad *g, const mica_op *op, mica_value a, mica_value b)
{
    return mica_grad_value(g, op, (mica_value[]){a, b}, 2, NULL);
}

static void give_times(mica_grad *g, const mica_op *op, mica_value a, mica_value dy)
{
    mica_grad_give(g, 0, op, (mica_value[]){a, dy}, 2, g->opts);
}

/* dx = dy times the product of the others: that of all divided by a, with ones for zeros, unless another is zero */
void mica_prod_gradient(mica_grad *g)
{
    mica_reduction_opts keep = *(const mica_reduction_opts *)g->opts;
    keep.keep = true;
    mica_value a = g->in[0], zero = mica_grad_value(g, &mica_op_zeros, NULL, 0, &(mica_make_opts){.rank = 0});
    mica_value is_zero = two(g, &mica_op_eq, a, zero);
    mica_value ones = two(g, &mica_op_add, a, is_zero);
    mica_value all = mica_grad_value(g, &mica_op_prod, &ones, 1, &keep);
    mica_value zeros = mica_grad_value(g, &mica_op_sum, &is_zero, 1, &keep);
    mica_value others = two(g, &mica_op_div, all, ones), zero_others = two(g, &mica_op_sub, zeros, is_zero);
    give_times(g, &times, mica_grad_part(g, others, zero_others, true), g->dout[0]);
}

/* dx = 2 (a - mean) dy / (n - correction) */
void mica_variance_gradient(mica_grad *g)
{
    mica_reduction_opts keep = *(const mica_reduction_opts *)g->opts;
    keep.keep = true;
    mica_value mean = mica_grad_value(g, &mica_op_mean, g->in, 1, &keep);
    give_times(g, &times_variance, two(g, &mica_op_sub, g->in[0], mean), g->dout[0]);
}

/* ---- Extremes ----
 *
 * All of dy goes to the first of the largest, in row-major order. Of several axes the last is reduced first: the
 * first of the rows that hold the largest element is found in it, then the first row. */

typedef struct extreme_opts {
    mica_reduction_opts all; /* axes of the whole reduction */
    int axis;                /* of this step */
} extreme_opts;

static const mica_field extreme_fields[] = {MICA_FIELD(extreme_opts, axis, INT, "the axis of this step")};

static mica_status infer_extreme(mica_infer *i) { return mica_infer_like(i, 0, 2); }

static mica_status run_extreme(const mica_call *c)
{
    const extreme_opts *opts = c->opts;
    int rank = c->out[0]->rank;
    mica_tensor dy = mica_reduction_kept(c->in[0], rank, mica_reduction_mask(&opts->all, rank));
    return mica_amax_backward(c->ctx, c->out[0], &dy, c->in[1], opts->axis);
}

static const mica_op extreme = {.name = "extreme_backward",
                                .about = "dy where the extreme along an axis was, else 0",
                                .ins = 3,
                                .outs = 1,
                                .names = (const char *const[]){"dy", "index", "like", "dx"},
                                .opts_bytes = sizeof(extreme_opts),
                                MICA_FIELD_LIST(extreme_fields),
                                .infer = infer_extreme,
                                .run = run_extreme};

/* The gradient of the largest (smallest) elements of x, of x's shape. */
static mica_value extreme_gradient(mica_grad *g, mica_value x, const mica_op *arg, const mica_op *reduce)
{
    extreme_opts opts = {.all = *(const mica_reduction_opts *)g->opts};
    int rank = mica_grad_shape(g, x).rank, axes[MICA_MAX_RANK], count = 0;
    unsigned mask = mica_reduction_mask(&opts.all, rank);
    mica_value from[MICA_MAX_RANK], index[MICA_MAX_RANK], dy = g->dout[0];
    for (int k = rank - 1; k >= 0; k--) {
        if (!(mask & (1u << k)))
            continue;
        from[count] = x;
        index[count] = mica_grad_value(g, arg, &x, 1, &(mica_arg_opts){.axis = k, .keep = true});
        if (mask & ((1u << k) - 1u)) /* there are more */
            x = mica_grad_value(g, reduce, &x, 1,
                                &(mica_reduction_opts){.axes = {k}, .count = 1, .keep = true});
        axes[count++] = k;
    }
    for (int k = count - 1; k >= 0; k--) {
        opts.axis = axes[k];
        dy = mica_grad_value(g, &extreme, (mica_value[]){dy, index[k], from[k]}, 3, &opts);
    }
    return dy;
}

void mica_amax_gradient(mica_grad *g)
{
    mica_grad_pass(g, 0, extreme_gradient(g, g->in[0], &mica_op_argmax, &mica_op_amax));
}

void mica_amin_gradient(mica_grad *g)
{
    mica_grad_pass(g, 0, extreme_gradient(g, g->in[0], &mica_op_argmin, &mica_op_amin));
}

/* L2: dx = a dy / y, 0 where y is 0. L1: dx = sign(a) dy. Infinity: the same where the largest magnitude is. */
void mica_norm_gradient(mica_grad *g)
{
    mica_norm_kind kind = ((const mica_reduction_opts *)g->opts)->kind;
    if (kind == MICA_NORM_L2) {
        mica_value over = two(g, &mica_op_div, g->dout[0], g->out[0]);
        give_times(g, &times, g->in[0], mica_grad_part(g, over, g->out[0], false));
        return;
    }
    mica_value sign = mica_grad_value(g, &mica_op_sign, g->in, 1, NULL);
    if (kind == MICA_NORM_L1) {
        give_times(g, &times, sign, g->dout[0]);
        return;
    }
    mica_value size = mica_grad_value(g, &mica_op_abs, g->in, 1, NULL);
    mica_value dsize = extreme_gradient(g, size, &mica_op_argmax, &mica_op_amax);
    mica_grad_give(g, 0, &mica_op_mul, (mica_value[]){dsize, sign}, 2, NULL);
}
