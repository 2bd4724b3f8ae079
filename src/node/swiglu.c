/* SwiGLU: the last axis in two halves a and b, as silu(a) b. */
#include "node/check.h"

static mica_status infer(mica_infer *i)
{
    const mica_tensor *x = i->in[0];
    if (x->dtype != MICA_F32 || x->rank < 1 || x->dim[x->rank - 1] % 2 != 0)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 with an even number of features");
    mica_index dims[MICA_MAX_RANK];
    memcpy(dims, x->dim, sizeof dims);
    dims[x->rank - 1] /= 2;
    return mica_infer_out(i, 0, MICA_F32, x->rank, dims);
}

/* The first or second half of t's last axis. */
static mica_tensor half_of(const mica_tensor *t, int which)
{
    mica_tensor half = *t;
    half.dim[t->rank - 1] /= 2;
    if (t->data != NULL)
        half.data = (float *)t->data + which * half.dim[t->rank - 1] * t->stride[t->rank - 1];
    return half;
}

static mica_status run(const mica_call *c)
{
    mica_tensor a = half_of(c->in[0], 0), b = half_of(c->in[0], 1);
    MICA_TRY(mica_silu(c->ctx, c->out[0], &a));
    return mica_mul(c->ctx, c->out[0], c->out[0], &b);
}

/* da = dy b silu'(a), db = dy silu(a) */
static mica_status run_back(const mica_call *c)
{
    const mica_tensor *dy = c->in[0];
    mica_tensor a = half_of(c->in[1], 0), b = half_of(c->in[1], 1);
    mica_tensor da = half_of(c->out[0], 0), db = half_of(c->out[0], 1);
    MICA_TRY(mica_mul(c->ctx, &da, dy, &b));
    MICA_TRY(mica_silu_backward(c->ctx, &da, &da, &a));
    MICA_TRY(mica_silu(c->ctx, &db, &a));
    return mica_mul(c->ctx, &db, &db, dy);
}

static const mica_op backward = {.name = "swiglu_backward",
                                 .about = "the gradient of swiglu",
                                 .ins = 2,
                                 .outs = 1,
                                 .names = (const char *const[]){"dy", "x", "dx"},
                                 .run = run_back};

static void gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &backward, (mica_value[]){g->dout[0], g->in[0]}, 2, NULL);
}

static bool mixes(const mica_infer *i) { return i->in[0]->rank == 1; }

static void sample(mica_op_sample *s)
{
    mica_op_sample_shape(s, 0, 2,
                         (mica_index[]){mica_op_sample_int(s, 1, 5), 2 * mica_op_sample_int(s, 1, 5)});
}

const mica_op mica_op_swiglu = {.name = "swiglu",
                                .family = "activation",
                                .about = "silu(a) b, where a and b are the halves of the last axis",
                                .flags = MICA_OP_CHEAP,
                                .ins = 1,
                                .outs = 1,
                                .names = (const char *const[]){"x", "y"},
                                .infer = infer,
                                .run = run,
                                .gradient = MICA_GRADIENT(gradient),
                                .mixes = mixes,
                                .sample = MICA_SAMPLE(sample)};
