/* The square of relu, made of other operations. docs/adding-an-operation.md shows this file. */
#include "node/entry.h"

typedef struct squared_relu_opts {
    float gain; /* 0: 1 */
} squared_relu_opts;

static float gain_of(const void *opts)
{
    float gain = ((const squared_relu_opts *)opts)->gain;
    return gain != 0.0f ? gain : 1.0f;
}

static mica_status infer(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    return mica_infer_like(i, 0, 0);
}

static mica_status run(const mica_call *c)
{
    const mica_tensor *y = c->out[0];
    MICA_TRY(mica_relu(c->ctx, y, c->in[0]));
    MICA_TRY(mica_square(c->ctx, y, y));
    return mica_scale(c->ctx, y, y, gain_of(c->opts));
}

/* dx = 2 gain relu(x) dy */
static void gradient(mica_grad *g)
{
    mica_value slope = mica_grad_value(g, &mica_op_relu, g->in, 1, NULL);
    mica_value product = mica_grad_value(g, &mica_op_mul, (mica_value[]){slope, g->dout[0]}, 2, NULL);
    mica_grad_give(g, 0, &mica_op_scale, &product, 1, &(mica_scalar_opts){2.0f * gain_of(g->opts)});
}

static void sample(mica_op_sample *s)
{
    mica_op_sample_shape(s, 0, 2, (mica_index[]){mica_op_sample_int(s, 1, 5), mica_op_sample_int(s, 1, 5)});
    ((squared_relu_opts *)s->opts)->gain = (float)mica_op_sample_int(s, 0, 3) * 0.5f;
}

static const mica_field fields[] = {MICA_FIELD(squared_relu_opts, gain, FLOAT, "a factor; 0: 1")};

const mica_op mica_op_squared_relu = {.name = "squared_relu",
                                      .family = "composed",
                                      .about = "gain relu(x)^2",
                                      .flags = MICA_OP_CHEAP,
                                      .ins = 1,
                                      .outs = 1,
                                      .names = (const char *const[]){"x", "y"},
                                      .opts_bytes = sizeof(squared_relu_opts),
                                      MICA_FIELD_LIST(fields),
                                      .in_place = {1},
                                      .infer = infer,
                                      .run = run,
                                      .gradient = MICA_GRADIENT(gradient),
                                      .sample = MICA_SAMPLE(sample)};
