/* Dropout. The random numbers of a call and step can be drawn again at any time, so its gradient drops the same
 * elements of dy and no mask is kept. */
#include "node/check.h"

enum { Y, MASK };

static mica_status infer(mica_infer *i)
{
    const mica_dropout_opts *opts = i->opts;
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    if (!(opts->rate >= 0.0f && opts->rate <= 1.0f))
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "rate is %g: expected 0 to 1", (double)opts->rate);
    MICA_TRY(mica_infer_like(i, Y, 0));
    return mica_infer_out(i, MASK, MICA_U8, i->in[0]->rank, i->in[0]->dim);
}

static mica_status infer_back(mica_infer *i) { return mica_infer_like(i, 0, 0); }

/* to = from of the elements that stay, times 1 / (1 - rate), else 0 */
static mica_status drop(const mica_call *c, const mica_tensor *to, const mica_tensor *mask,
                        const mica_tensor *from)
{
    mica_dropout_opts opts = *(const mica_dropout_opts *)c->opts;
    opts.random = mica_random_stream(c->seed, c->stream);
    return mica_dropout(c->ctx, to, mask, from, &opts);
}

static mica_status run(const mica_call *c)
{
    if (c->training)
        return drop(c, c->out[Y], c->out[MASK], c->in[0]);
    if (c->out[MASK] != NULL)
        MICA_TRY(mica_ones(c->ctx, c->out[MASK]));
    return mica_copy(c->ctx, c->out[Y], c->in[0]);
}

static mica_status run_back(const mica_call *c)
{
    if (c->in[MASK] != NULL)
        return mica_dropout_backward(c->ctx, c->out[0], c->in[0], c->in[MASK],
                                     ((const mica_dropout_opts *)c->opts)->rate);
    return drop(c, c->out[0], NULL, c->in[0]);
}

static void gradient(mica_grad *g)
{
    mica_grad_give(g, 0, &mica_op_dropout_backward, &g->dout[Y], 1, g->opts);
}

static void sample(mica_op_sample *s)
{
    mica_index dims[] = {mica_op_sample_int(s, 1, 6), mica_op_sample_int(s, 1, 9)};
    mica_op_sample_shape(s, 0, 2, dims);
    ((mica_dropout_opts *)s->opts)->rate = (float)mica_op_sample_int(s, 0, 3) / 4.0f;
}

static const mica_field fields[] = {
    MICA_FIELD(mica_dropout_opts, rate, FLOAT, "probability of zeroing an element, 0 to 1")};

const mica_op mica_op_dropout = {.name = "dropout",
                                 .family = "dropout",
                                 .about = "in training, zeroes elements at random and scales the others up",
                                 .flags = MICA_OP_CHEAP | MICA_OP_RANDOM,
                                 .ins = 1,
                                 .outs = 2,
                                 .optional_outs = 1u << MASK,
                                 .names = (const char *const[]){"x", "y", "mask"},
                                 .opts_bytes = sizeof(mica_dropout_opts),
                                 MICA_FIELD_LIST(fields),
                                 .in_place = {1},
                                 .infer = infer,
                                 .run = run,
                                 .gradient = MICA_GRADIENT(gradient),
                                 .sample = MICA_SAMPLE(sample)};
/* Without a mask, the forward's random numbers are drawn again. */
const mica_op mica_op_dropout_backward = {.name = "dropout_backward",
                                          .family = "dropout",
                                          .about = "the gradient of dropout",
                                          .flags = MICA_OP_RANDOM,
                                          .ins = 1,
                                          .optional_ins = 1,
                                          .outs = 1,
                                          .names = (const char *const[]){"dy", "mask", "dx"},
                                          .opts_bytes = sizeof(mica_dropout_opts),
                                          MICA_FIELD_LIST(fields),
                                          .in_place = {1},
                                          .infer = infer_back,
                                          .run = run_back};
