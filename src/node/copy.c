/* A copy, or a cast to another dtype. */
#include "node/entry.h"
#include "node/sample.h"
#include "tensor/tensor.h"

static const mica_field fields[] = {
    MICA_FIELD(mica_copy_opts, cast, BOOL, "convert to the dtype below"),
    MICA_FIELD(mica_copy_opts, dtype, DTYPE, "target dtype of a cast"),
    MICA_FIELD(mica_copy_opts, wrap, BOOL, "integers wrap instead of saturating"),
    MICA_FIELD(mica_copy_opts, overflow, BOOL, "8-bit floats do not saturate"),
    MICA_FIELD(mica_copy_opts, round, CHOICE, "up|down|nearest")};

static mica_status infer(mica_infer *i)
{
    const mica_copy_opts *opts = i->opts;
    const mica_tensor *a = i->in[0];
    return mica_infer_out(i, 0, opts->cast ? opts->dtype : a->dtype, a->rank, a->dim);
}

static mica_status run(const mica_call *c)
{
    const mica_copy_opts *opts = c->opts;
    if (!opts->wrap && !opts->overflow && opts->round == MICA_ROUND_UP)
        return mica_copy(c->ctx, c->out[0], c->in[0]);
    return mica_cast(c->ctx, c->out[0], c->in[0], &(mica_cast_opts){opts->wrap, opts->overflow, opts->round});
}

/* dx = dy: gradients are f32, whatever floats they belong to */
static void gradient(mica_grad *g)
{
    mica_dtype from = mica_grad_shape(g, g->in[0]).dtype, to = mica_grad_shape(g, g->out[0]).dtype;
    if (mica_is_float(from) && mica_is_float(to))
        mica_grad_pass(g, 0, g->dout[0]);
}

static void sample(mica_op_sample *s)
{
    mica_copy_opts *opts = s->opts;
    mica_sample_one(s, -2.0, 2.0);
    opts->cast = mica_sample_chance(s);
    opts->dtype = (mica_dtype[]){MICA_F32, MICA_F64, MICA_BF16, MICA_I32}[mica_op_sample_int(s, 0, 3)];
}

const mica_op mica_op_copy = {.name = "copy",
                              .family = "copy",
                              .about = "a copy of a, or a cast to another dtype",
                              .flags = MICA_OP_CHEAP,
                              .ins = 1,
                              .outs = 1,
                              .opts_bytes = sizeof(mica_copy_opts),
                              MICA_FIELD_LIST(fields),
                              .in_place = {1},
                              .infer = infer,
                              .run = run,
                              .gradient = MICA_GRADIENT(gradient),
                              .sample = MICA_SAMPLE(sample)};
