/* Matrix products. Their gradients are matrix products as well. */
#include "node/finish.h"
#include "node/gradient.h"
#include "node/sample.h"
#include "node/typed.h"

#include "tensor/tensor.h"

/* Sizes of the product of a and b. */
typedef struct product {
    mica_index m, n, k, b_k;
} product;

static product sizes(const mica_tensor *a, const mica_tensor *b, const mica_matmul_opts *opts)
{
    return (product){.m = a->dim[a->rank - (opts->transpose_a ? 1 : 2)],
                     .k = a->dim[a->rank - (opts->transpose_a ? 2 : 1)],
                     .n = b->dim[b->rank - (opts->transpose_b ? 2 : 1)],
                     .b_k = b->dim[b->rank - (opts->transpose_b ? 1 : 2)]};
}

static mica_status check_options(mica_infer *i, const mica_matmul_opts *opts)
{
    if ((unsigned)opts->activation >= MICA_ACTIVATION_COUNT)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "unknown activation %d", (int)opts->activation);
    if (opts->beta != 0.0f || opts->bias != NULL || opts->residual != NULL)
        return mica_infer_fail(
            i, MICA_ERR_ARGUMENT,
            "beta, bias and residual are not supported here: pass the bias as an input, and add with an operation of its own");
    return MICA_OK;
}

static mica_status infer(mica_infer *i)
{
    const mica_matmul_opts *opts = i->opts;
    const mica_tensor *a = i->in[0], *b = i->in[1], *bias = i->ins > 2 ? i->in[2] : NULL;
    MICA_TRY(check_options(i, opts));
    MICA_TRY(mica_infer_folded(i, 0));
    MICA_TRY(mica_infer_dtype(i, 1, a->dtype));
    if (a->rank < 2 || b->rank < 2)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected matrices, got %s and %s", MICA_SHAPE(a),
                               MICA_SHAPE(b));
    product p = sizes(a, b, opts);
    if (p.k != p.b_k)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "a is %s%s, b is %s%s: %td columns of a against %td rows of b", MICA_SHAPE(a),
                               opts->transpose_a ? " transposed" : "", MICA_SHAPE(b),
                               opts->transpose_b ? " transposed" : "", p.k, p.b_k);
    if (bias != NULL && (bias->dtype != MICA_F32 || bias->rank != 1 || bias->dim[0] != p.n))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected a bias of f32 [%td], got %s %s", p.n,
                               mica_dtype_name(bias->dtype), MICA_SHAPE(bias));
    mica_tensor batch_a = *a, batch_b = *b;
    batch_a.rank -= 2, batch_b.rank -= 2;
    int rank;
    mica_index dims[MICA_MAX_RANK];
    if (!mica_common_shape(&batch_a, &batch_b, &rank, dims))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "the batch of a is %s, that of b %s: they do not broadcast",
                               MICA_SHAPE(&batch_a), MICA_SHAPE(&batch_b));
    dims[rank] = p.m, dims[rank + 1] = p.n;
    return mica_infer_out(i, 0, a->dtype, rank + 2, dims);
}

static mica_status run(const mica_call *c)
{
    mica_matmul_opts opts = *(const mica_matmul_opts *)c->opts;
    opts.bias = c->ins > 2 ? c->in[2] : NULL;
    opts.beta = (c->add & 1u) ? 1.0f : 0.0f;
    return mica_matmul(c->ctx, c->out[0], c->in[0], c->in[1], &opts);
}

/* ---- Gradients ---- */

/* dw [K, N] or, with transpose_b, [N, K]: a product of a [..., K] and dc [..., N] over all their rows, in one piece
 * where a's rows follow one another, else matrix by matrix. */
static mica_status run_shared(const mica_call *c)
{
    const mica_matmul_opts *opts = c->opts;
    const mica_tensor *a = c->in[0], *dc = c->in[1];
    bool swap = opts->transpose_b;
    mica_matmul_opts how = {.transpose_a = true, .alpha = opts->alpha, .beta = (c->add & 1u) ? 1.0f : 0.0f};
    mica_index k = a->dim[a->rank - 1], n = dc->dim[dc->rank - 1], rows = 1, matrices = 1;
    for (int i = 0; i < a->rank - 1; i++)
        rows *= a->dim[i];
    mica_tensor flat_a, flat_dc;
    if (mica_tensor_refit(&flat_a, a, 2, (mica_index[]){rows, k}) &&
        mica_tensor_refit(&flat_dc, dc, 2, (mica_index[]){rows, n}))
        return mica_matmul(c->ctx, c->out[0], swap ? &flat_dc : &flat_a, swap ? &flat_a : &flat_dc, &how);
    for (int i = 0; i < a->rank - 2; i++)
        matrices *= a->dim[i];
    for (mica_index at = 0; at < matrices; at++, how.beta = 1.0f) {
        mica_tensor one_a = *a, one_dc = *dc;
        mica_index rest = at;
        while (one_a.rank > 2) { /* the position along the last of the leading axes, which then goes away */
            int last = one_a.rank - 3;
            mica_index position = rest % a->dim[last];
            rest /= a->dim[last];
            MICA_TRY(mica_view_select(c->ctx, &one_a, &one_a, last, position));
            MICA_TRY(mica_view_select(c->ctx, &one_dc, &one_dc, last, position));
        }
        MICA_TRY(mica_matmul(c->ctx, c->out[0], swap ? &one_dc : &one_a, swap ? &one_a : &one_dc, &how));
    }
    return MICA_OK;
}

static const mica_field fields[] = {
    MICA_FIELD(mica_matmul_opts, transpose_a, BOOL, "a is given as [..., K, M]"),
    MICA_FIELD(mica_matmul_opts, transpose_b, BOOL, "b is given as [..., N, K]"),
    MICA_FIELD(mica_matmul_opts, alpha, FLOAT, "a factor of the product; 0: 1"),
    MICA_FIELD(mica_matmul_opts, activation, ACTIVATION, "fused activation"),
    MICA_FIELD(mica_matmul_opts, slope, FLOAT, "slope of leaky_relu, alpha of elu"),
};

static const mica_op shared = {.name = "matmul_backward_shared",
                               .about = "the gradient of a matrix b that was broadcast over the batch",
                               .ins = 2,
                               .outs = 1,
                               .names = (const char *const[]){"a", "dy", "db"},
                               .opts_bytes = sizeof(mica_matmul_opts),
                               MICA_FIELD_LIST(fields),
                               .adds = 1,
                               .run = run_shared};

/* The gradient of input `in`: op(x) op(y), summed over the batch axes along which the input was repeated. */
static void give_product(mica_grad *g, int in, mica_value x, bool transpose_x, mica_value y, bool transpose_y)
{
    if (!mica_grad_wants(g, in))
        return;
    mica_matmul_opts opts = {.transpose_a = transpose_x,
                             .transpose_b = transpose_y,
                             .alpha = ((const mica_matmul_opts *)g->opts)->alpha};
    mica_tensor to = mica_grad_shape(g, g->in[in]), whole = mica_grad_shape(g, g->out[0]);
    to.rank -= 2, whole.rank -= 2;
    if (mica_tensor_same_shape(&to, &whole))
        mica_grad_give(g, in, &mica_op_matmul, (mica_value[]){x, y}, 2, &opts);
    else
        mica_grad_pass_summed(g, in, mica_grad_value(g, &mica_op_matmul, (mica_value[]){x, y}, 2, &opts));
}

/* Whether b is one matrix for all rows of a. */
static bool is_shared(mica_grad *g, const mica_matmul_opts *opts)
{
    mica_tensor a = mica_grad_shape(g, g->in[0]), b = mica_grad_shape(g, g->in[1]),
                c = mica_grad_shape(g, g->out[0]);
    return !opts->transpose_a && a.rank > 2 && b.rank == 2 && a.rank == c.rank;
}

/* da = dc bT, db = aT dc; where one was given transposed, so is its gradient. */
static void gradient(mica_grad *g)
{
    const mica_matmul_opts *opts = g->opts;
    if (!mica_grad_in_f32(g))
        return;
    mica_matmul_opts bare = *opts;
    bare.activation = MICA_NO_ACTIVATION;
    mica_finish finish = {opts->activation, opts->slope, &mica_op_matmul, opts, &bare};
    mica_value a = g->in[0], b = g->in[1], dc = mica_grad_finish(g, &finish, g->dout[0], g->out[0]);
    if (g->ins > 2 && g->in[2] != 0)
        mica_grad_pass_summed(g, 2, dc);
    if (is_shared(g, opts))
        mica_grad_give(g, 1, &shared, (mica_value[]){a, dc}, 2,
                       &(mica_matmul_opts){.transpose_b = opts->transpose_b, .alpha = opts->alpha});
    else if (opts->transpose_b)
        give_product(g, 1, dc, true, a, opts->transpose_a);
    else
        give_product(g, 1, a, !opts->transpose_a, dc, false);
    if (opts->transpose_a)
        give_product(g, 0, b, opts->transpose_b, dc, true);
    else
        give_product(g, 0, dc, false, b, !opts->transpose_b);
}

/* Rows of a are the batch, unless they are columns. */
static bool mixes(const mica_infer *i)
{
    return ((const mica_matmul_opts *)i->opts)->transpose_a && i->in[0]->rank == 2 && i->in[1]->rank == 2;
}

static void sample(mica_op_sample *s)
{
    mica_matmul_opts *opts = s->opts;
    mica_index batch[MICA_MAX_RANK], m = mica_op_sample_int(s, 1, 5), n = mica_op_sample_int(s, 1, 5),
                                     k = mica_op_sample_int(s, 1, 5);
    int rank = mica_sample_dims(s, 0, 2, batch);
    opts->transpose_a = mica_sample_chance(s);
    opts->transpose_b = mica_sample_chance(s);
    opts->alpha = mica_sample_chance(s) ? 0.5f : 0.0f;
    if (mica_op_sample_int(s, 0, 3) == 0)
        opts->activation = mica_sample_chance(s) ? MICA_TANH : MICA_SILU;
    for (int in = 0; in < 2; in++) {
        mica_index dims[MICA_MAX_RANK];
        mica_sample_repeated(s, in, rank, batch);
        int own = s->in[in].rank;
        for (int axis = 0; axis < own; axis++)
            dims[axis] = s->in[in].dim[axis];
        bool swap = in == 0 ? opts->transpose_a : opts->transpose_b;
        dims[own + (swap ? 1 : 0)] = in == 0 ? m : k;
        dims[own + (swap ? 0 : 1)] = in == 0 ? k : n;
        mica_op_sample_shape(s, in, own + 2, dims);
    }
    if (mica_sample_chance(s)) {
        s->ins = 3;
        mica_op_sample_shape(s, 2, 1, &n);
    }
}

const mica_op mica_op_matmul = {.name = "matmul",
                                .family = "linalg",
                                .about = "the matrix product a b, with a bias for each column",
                                .ins = 2,
                                .optional_ins = 1,
                                .outs = 1,
                                .names = (const char *const[]){"a", "b", "bias", "y"},
                                .opts_bytes = sizeof(mica_matmul_opts),
                                MICA_FIELD_LIST(fields),
                                .adds = 1,
                                .infer = infer,
                                .run = run,
                                .gradient = MICA_GRADIENT(gradient),
                                .mixes = mixes,
                                .sample = MICA_SAMPLE(sample)};
