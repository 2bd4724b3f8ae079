/* Comparisons, which have no gradient, and selection. */
#include "node/gradient.h"
#include "node/sample.h"
#include "node/typed.h"

#include "tensor/tensor.h"

static const mica_field fields[] = {MICA_FIELD(mica_compare_opts, mask, BOOL, "u8 instead of f32"),
                                    MICA_FIELD(mica_compare_opts, truth, BOOL, "bool instead of f32")};

static mica_dtype result_dtype(const mica_infer *i)
{
    const mica_compare_opts *opts = i->opts;
    return opts->truth ? MICA_BOOL : opts->mask ? MICA_U8 : MICA_F32;
}

static mica_status infer_compare(mica_infer *i)
{
    MICA_TRY(mica_infer_computed(i, 0, MICA_TYPED_eq));
    MICA_TRY(mica_infer_broadcast(i, 0, 0, 1));
    if (i->in[0]->dtype != MICA_F32 && result_dtype(i) == MICA_F32)
        return mica_infer_fail(i, MICA_ERR_DTYPE,
                               "of %s the result is u8 or bool: expected the option mask or truth",
                               mica_dtype_name(i->in[0]->dtype));
    return mica_infer_out(i, 0, result_dtype(i), i->out[0].rank, i->out[0].dim);
}

static mica_status infer_classify(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    return mica_infer_out(i, 0, result_dtype(i), i->in[0]->rank, i->in[0]->dim);
}

static void sample(mica_op_sample *s)
{
    mica_sample_broadcast(s);
    ((mica_compare_opts *)s->opts)->mask = mica_sample_chance(s);
    ((mica_compare_opts *)s->opts)->truth = mica_sample_chance(s);
}

#define ENTRY(op, words, inputs, infers)                                   \
    const mica_op mica_op_##op = {.name = #op,                             \
                                  .family = "compare",                     \
                                  .about = words,                          \
                                  .flags = MICA_OP_CHEAP,                  \
                                  .ins = inputs,                           \
                                  .outs = 1,                               \
                                  .opts_bytes = sizeof(mica_compare_opts), \
                                  MICA_FIELD_LIST(fields),                 \
                                  .in_place = {(1u << (inputs)) - 1u},     \
                                  .infer = infers,                         \
                                  .run = op##_run,                         \
                                  .sample = MICA_SAMPLE(sample)};

#define COMPARE(op, words)                                       \
    static mica_status op##_run(const mica_call *c)              \
    {                                                            \
        return mica_##op(c->ctx, c->out[0], c->in[0], c->in[1]); \
    }                                                            \
    ENTRY(op, words, 2, infer_compare)

#define CLASSIFY(op, words)                                                                            \
    static mica_status op##_run(const mica_call *c) { return mica_##op(c->ctx, c->out[0], c->in[0]); } \
    ENTRY(op, words, 1, infer_classify)

/* clang-format off */
COMPARE(eq, "1 where a == b, else 0")
COMPARE(ne, "1 where a != b, else 0")
COMPARE(lt, "1 where a < b, else 0")
COMPARE(le, "1 where a <= b, else 0")
COMPARE(gt, "1 where a > b, else 0")
COMPARE(ge, "1 where a >= b, else 0")
CLASSIFY(isnan, "1 where a is NaN, else 0")
CLASSIFY(isfinite, "1 where a is neither infinite nor NaN, else 0")
/* clang-format on */

/* ---- Choices ---- */

static mica_status check_condition(mica_infer *i, int in)
{
    mica_dtype dtype = i->in[in]->dtype;
    if (dtype != MICA_F32 && dtype != MICA_U8 && dtype != MICA_BOOL)
        return mica_infer_fail(i, MICA_ERR_DTYPE, "expected an f32, u8 or bool condition, got %s",
                               mica_dtype_name(dtype));
    return MICA_OK;
}

static mica_status infer_where(mica_infer *i)
{
    MICA_TRY(check_condition(i, 0));
    if (mica_in_blocks(i->in[1]->dtype))
        return mica_infer_fail(i, MICA_ERR_DTYPE, "expected a plain type, got %s",
                               mica_dtype_name(i->in[1]->dtype));
    MICA_TRY(mica_infer_broadcast(i, 0, 1, 2));
    int rank;
    mica_index dims[MICA_MAX_RANK];
    if (!mica_common_shape(i->in[0], &i->out[0], &rank, dims))
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "the condition does not broadcast to the operands' shape %s",
                               MICA_SHAPE(&i->out[0]));
    return mica_infer_out(i, 0, i->in[1]->dtype, rank, dims);
}

static mica_status run_where(const mica_call *c)
{
    return mica_where(c->ctx, c->out[0], c->in[0], c->in[1], c->in[2]);
}

/* da = dy where the condition holds, db = dy where it does not */
static void gradient_where(mica_grad *g)
{
    if (mica_grad_in_f32(g))
        mica_grad_give_choice(g, 1, 2, g->in[0]);
}

/* Conditions 0 and 1: numbers of u8, or of f32 that are one or the other throughout. */
static void sample_condition(mica_op_sample *s, int in)
{
    bool mask = mica_sample_chance(s);
    double truth = mask || mica_sample_chance(s) ? 1.0 : 0.0;
    s->in[in].dtype = mask ? MICA_U8 : MICA_F32;
    mica_sample_range(s, in, mask ? 0.0 : truth, mask ? 2.0 : truth);
}

static void sample_where(mica_op_sample *s)
{
    mica_sample_broadcast(s);
    sample_condition(s, 0);
}

const mica_op mica_op_where = {.name = "where",
                               .family = "compare",
                               .about = "a where the condition is not 0, else b",
                               .flags = MICA_OP_CHEAP,
                               .ins = 3,
                               .outs = 1,
                               .names = (const char *const[]){"cond", "a", "b", "y"},
                               .in_place = {7},
                               .infer = infer_where,
                               .run = run_where,
                               .gradient = MICA_GRADIENT(gradient_where),
                               .sample = MICA_SAMPLE(sample_where)};

static mica_status infer_where_backward(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    MICA_TRY(check_condition(i, 1));
    MICA_TRY(mica_infer_like(i, 0, 0));
    return mica_infer_like(i, 1, 0);
}

static mica_status run_where_backward(const mica_call *c)
{
    return mica_where_backward(c->ctx, c->out[0], c->out[1], c->in[0], c->in[1]);
}

static void sample_where_backward(mica_op_sample *s)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 3, dims);
    mica_op_sample_shape(s, 0, rank, dims);
    mica_sample_repeated(s, 1, rank, dims);
    sample_condition(s, 1);
}

const mica_op mica_op_where_backward = {.name = "where_backward",
                                        .family = "compare",
                                        .about = "the gradients of where",
                                        .ins = 2,
                                        .outs = 2,
                                        .optional_outs = 3,
                                        .names = (const char *const[]){"dy", "cond", "da", "db"},
                                        .in_place = {1},
                                        .infer = infer_where_backward,
                                        .run = run_where_backward,
                                        .sample = MICA_SAMPLE(sample_where_backward)};
