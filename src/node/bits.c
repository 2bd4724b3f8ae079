/* Operations on the bits of integers and on bool, which have no gradient. */
#include "node/sample.h"
#include "node/typed.h"

static mica_status infer(mica_infer *i, mica_typed_code code)
{
    if (i->in[0]->dtype == MICA_F32)
        return mica_infer_fail(i, MICA_ERR_DTYPE, "expected integers, got f32");
    MICA_TRY(mica_infer_computed(i, 0, code));
    return i->op->ins > 1 ? mica_infer_broadcast(i, 0, 0, 1) : mica_infer_like(i, 0, 0);
}

static void sample_of(mica_op_sample *s, const mica_dtype *dtypes, int count)
{
    mica_sample_broadcast(s);
    mica_dtype dtype = dtypes[mica_op_sample_int(s, 0, count - 1)];
    for (int k = 0; k < s->ins; k++) {
        s->in[k].dtype = dtype;
        mica_sample_range(s, k, 0.0, dtype == MICA_BOOL ? 2.0 : 7.0);
    }
}

static void any_sample(mica_op_sample *s)
{
    sample_of(s, (mica_dtype[]){MICA_I64, MICA_I32, MICA_U8, MICA_BOOL}, 4);
}

static void integer_sample(mica_op_sample *s)
{
    sample_of(s, (mica_dtype[]){MICA_U64, MICA_U32, MICA_U8}, 3);
}

#define ENTRY(op, words, inputs, call, samples)                                        \
    static mica_status op##_infer(mica_infer *i) { return infer(i, MICA_TYPED_##op); } \
    static mica_status op##_run(const mica_call *c) { return call; }                   \
    const mica_op mica_op_##op = {.name = #op,                                         \
                                  .family = "bits",                                    \
                                  .about = words,                                      \
                                  .flags = MICA_OP_CHEAP,                              \
                                  .ins = inputs,                                       \
                                  .outs = 1,                                           \
                                  .in_place = {(1u << (inputs)) - 1u},                 \
                                  .infer = op##_infer,                                 \
                                  .run = op##_run,                                     \
                                  .sample = MICA_SAMPLE(samples)};
#define TWO(op, words, samples) ENTRY(op, words, 2, mica_##op(c->ctx, c->out[0], c->in[0], c->in[1]), samples)

/* clang-format off */
TWO(bit_and, "the bits in both a and b", any_sample)
TWO(bit_or, "the bits in a or b", any_sample)
TWO(bit_xor, "the bits in either a or b", any_sample)
ENTRY(bit_not, "the bits not in a", 1, mica_bit_not(c->ctx, c->out[0], c->in[0]), any_sample)
TWO(shift_left, "a times 2 to the power b", integer_sample)
TWO(shift_right, "a divided by 2 to the power b", integer_sample)
/* clang-format on */
