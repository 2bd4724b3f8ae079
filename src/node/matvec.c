/* Matrix-vector and outer products. */
#include "node/entry.h"
#include "node/sample.h"

#include "tensor/tensor.h"

static mica_status check_pair(mica_infer *i, int rank_a)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_F32));
    if (i->in[0]->rank != rank_a || i->in[1]->rank != 1)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected a %s and a vector, got %s and %s",
                               rank_a == 2 ? "matrix" : "vector", MICA_SHAPE(i->in[0]), MICA_SHAPE(i->in[1]));
    return MICA_OK;
}

/* y [K] = aT x, of a [M, K] and x [M] */
static mica_status run_transposed(const mica_call *c)
{
    mica_tensor a;
    MICA_TRY(mica_view_transpose(c->ctx, &a, c->in[0], 0, 1));
    return mica_matvec(c->ctx, c->out[0], &a, c->in[1]);
}

static const mica_op transposed = {.name = "matvec_transposed",
                                   .about = "the transposed matrix a times the vector x",
                                   .ins = 2,
                                   .outs = 1,
                                   .names = (const char *const[]){"a", "x", "y"},
                                   .run = run_transposed};

/* ---- Matrix times vector ---- */

static mica_status infer_matvec(mica_infer *i)
{
    MICA_TRY(check_pair(i, 2));
    if (i->in[0]->dim[1] != i->in[1]->dim[0])
        return mica_infer_fail(i, MICA_ERR_SHAPE, "a is %s, x is %s: %td columns of a against %td rows of x",
                               MICA_SHAPE(i->in[0]), MICA_SHAPE(i->in[1]), i->in[0]->dim[1],
                               i->in[1]->dim[0]);
    return mica_infer_out(i, 0, MICA_F32, 1, i->in[0]->dim);
}

static mica_status run_matvec(const mica_call *c)
{
    return mica_matvec(c->ctx, c->out[0], c->in[0], c->in[1]);
}

/* da = dy xT, dx = aT dy */
static void gradient_matvec(mica_grad *g)
{
    mica_grad_give(g, 1, &transposed, (mica_value[]){g->in[0], g->dout[0]}, 2, NULL);
    mica_grad_give(g, 0, &mica_op_outer, (mica_value[]){g->dout[0], g->in[1]}, 2, NULL);
}

static void sample_matvec(mica_op_sample *s)
{
    mica_index dims[2] = {mica_op_sample_int(s, 1, 6), mica_op_sample_int(s, 1, 6)};
    mica_op_sample_shape(s, 0, 2, dims);
    mica_op_sample_shape(s, 1, 1, &dims[1]);
}

const mica_op mica_op_matvec = {.name = "matvec",
                                .family = "linalg",
                                .about = "the matrix a times the vector x",
                                .ins = 2,
                                .outs = 1,
                                .names = (const char *const[]){"a", "x", "y"},
                                .infer = infer_matvec,
                                .run = run_matvec,
                                .gradient = MICA_GRADIENT(gradient_matvec),
                                .sample = MICA_SAMPLE(sample_matvec)};

/* ---- Vector times vector ---- */

static mica_status infer_outer(mica_infer *i)
{
    MICA_TRY(check_pair(i, 1));
    return mica_infer_out(i, 0, MICA_F32, 2, (mica_index[]){i->in[0]->dim[0], i->in[1]->dim[0]});
}

static mica_status run_outer(const mica_call *c) { return mica_outer(c->ctx, c->out[0], c->in[0], c->in[1]); }

/* da = dy b, db = dyT a */
static void gradient_outer(mica_grad *g)
{
    mica_grad_give(g, 1, &transposed, (mica_value[]){g->dout[0], g->in[0]}, 2, NULL);
    mica_grad_give(g, 0, &mica_op_matvec, (mica_value[]){g->dout[0], g->in[1]}, 2, NULL);
}

static void sample_outer(mica_op_sample *s)
{
    for (int k = 0; k < 2; k++)
        mica_op_sample_shape(s, k, 1, (mica_index[]){mica_op_sample_int(s, 1, 6)});
}

const mica_op mica_op_outer = {.name = "outer",
                               .family = "linalg",
                               .about = "every element of the vector a times every one of b",
                               .ins = 2,
                               .outs = 1,
                               .infer = infer_outer,
                               .run = run_outer,
                               .gradient = MICA_GRADIENT(gradient_outer),
                               .sample = MICA_SAMPLE(sample_outer)};
