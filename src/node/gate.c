/* The gate of a feed-forward layer. */
#include "node/entry.h"
#include "node/sample.h"

static mica_status infer(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(mica_infer_dtype(i, 1, MICA_F32));
    if (!mica_tensor_same_shape(i->in[0], i->in[1]))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected a and b of the same shape");
    return mica_infer_like(i, 0, 0);
}

static mica_status run(const mica_call *c)
{
    return mica_gate(c->ctx, c->out[0], c->in[0], c->in[1], c->opts);
}

static void sample(mica_op_sample *s)
{
    static const mica_activation kinds[] = {MICA_NO_ACTIVATION, MICA_SILU, MICA_GELU, MICA_GELU_TANH};
    mica_index dims[] = {mica_op_sample_int(s, 1, 5), mica_op_sample_int(s, 1, 40)};
    mica_op_sample_shape(s, 0, 2, dims);
    mica_op_sample_shape(s, 1, 2, dims);
    ((mica_gate_opts *)s->opts)->activation = kinds[mica_op_sample_int(s, 0, 3)];
}

static const mica_field fields[] = {
    MICA_FIELD(mica_gate_opts, activation, ACTIVATION, "silu, gelu or gelu_tanh; none: silu")};

const mica_op mica_op_gate = {.name = "gate",
                              .family = "text",
                              .about = "act(a) * b: the gate of a feed-forward layer",
                              .flags = MICA_OP_CHEAP,
                              .ins = 2,
                              .outs = 1,
                              .names = (const char *const[]){"a", "b", "y"},
                              .opts_bytes = sizeof(mica_gate_opts),
                              .fields = fields,
                              .field_count = 1,
                              .in_place = {3},
                              .fixed_ins = 3,
                              .infer = infer,
                              .run = run,
                              .sample = MICA_SAMPLE(sample)};
