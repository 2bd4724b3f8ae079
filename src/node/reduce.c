/* Reductions over any set of axes. */
#include "node/reduce.h"

#include "node/sample.h"
#include "node/typed.h"
#include "ops/reduce.h"

static mica_status infer_typed(mica_infer *i)
{
    const mica_reduction_opts *opts = i->opts;
    const mica_tensor *a = i->in[0];
    unsigned mask;
    MICA_TRY(mica_infer_folded(i, 0));
    mica_status status = mica_reduce_axes(i->ctx, i->op->name, a, opts->axes, opts->count, &mask);
    if (status != MICA_OK)
        return mica_infer_pass_on(i, status);
    int rank = 0;
    mica_index dims[MICA_MAX_RANK];
    for (int k = 0; k < a->rank; k++)
        if (opts->keep || !(mask & (1u << k)))
            dims[rank++] = mask & (1u << k) ? 1 : a->dim[k];
    return mica_infer_out(i, 0, a->dtype, rank, dims);
}

static mica_status infer(mica_infer *i)
{
    MICA_TRY(mica_infer_dtype(i, 0, MICA_F32));
    return infer_typed(i);
}

/* There must be an element to choose. */
static mica_status infer_choice(mica_infer *i)
{
    MICA_TRY(infer_typed(i));
    if (mica_tensor_count(&i->out[0]) > 0 && mica_tensor_count(i->in[0]) == 0)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "the axis is empty");
    return MICA_OK;
}

static mica_status infer_norm(mica_infer *i)
{
    mica_norm_kind kind = ((const mica_reduction_opts *)i->opts)->kind;
    if ((unsigned)kind > MICA_NORM_INF)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "unknown kind %d", (int)kind);
    return infer(i);
}

static mica_reduce_opts axes_of(const mica_reduction_opts *opts)
{
    mica_reduce_opts axes = {.count = opts->count, .correction = opts->correction};
    for (int k = 0; k < MICA_MAX_RANK; k++)
        axes.axes[k] = opts->axes[k];
    return axes;
}

static mica_status run_norm(const mica_call *c)
{
    mica_reduce_opts axes = axes_of(c->opts);
    return mica_norm(c->ctx, c->out[0], c->in[0], ((const mica_reduction_opts *)c->opts)->kind, &axes);
}

unsigned mica_reduction_mask(const mica_reduction_opts *opts, int rank)
{
    if (opts->count == 0)
        return (1u << rank) - 1u;
    unsigned mask = 0;
    for (int k = 0; k < opts->count; k++)
        mask |= 1u << (opts->axes[k] < 0 ? opts->axes[k] + rank : opts->axes[k]);
    return mask;
}

/* The batch is reduced. */
static bool mixes(const mica_infer *i)
{
    return i->in[0]->rank > 0 && (mica_reduction_mask(i->opts, i->in[0]->rank) & 1u);
}

/* ---- Samples ---- */

static void sample_axes(mica_op_sample *s)
{
    mica_reduction_opts *opts = s->opts;
    mica_index dims[MICA_MAX_RANK];
    int rank = mica_sample_dims(s, 1, 4, dims);
    mica_op_sample_shape(s, 0, rank, dims);
    for (int k = 0; k < rank; k++)
        if (mica_sample_chance(s))
            opts->axes[opts->count++] = mica_sample_chance(s) ? k : k - rank;
    opts->keep = mica_sample_chance(s);
}

static void sample_spread(mica_op_sample *s) /* the largest is seldom the largest by little */
{
    sample_axes(s);
    mica_sample_range(s, 0, -50.0, 50.0);
}

static void sample_prod(mica_op_sample *s) /* sometimes with zeros */
{
    sample_axes(s);
    int kind = (int)mica_op_sample_int(s, 0, 3);
    mica_sample_range(s, 0, kind == 0 ? 0.0 : 0.5, kind == 0 ? 0.0 : 1.5);
}

static void sample_variance(mica_op_sample *s)
{
    sample_axes(s);
    ((mica_reduction_opts *)s->opts)->correction = (int)mica_op_sample_int(s, -1, 0);
}

static void sample_norm(mica_op_sample *s)
{
    sample_axes(s);
    mica_norm_kind kind = (mica_norm_kind)mica_op_sample_int(s, MICA_NORM_L2, MICA_NORM_INF);
    ((mica_reduction_opts *)s->opts)->kind = kind;
    if (kind == MICA_NORM_INF)
        mica_sample_range(s, 0, -50.0, 50.0);
    else
        mica_sample_range(s, 0, 0.2, 1.0);
}

/* ---- Entries ---- */

#define COMMON                                                                                         \
    MICA_FIELD(mica_reduction_opts, count, LENGTH, "number of axes; 0: all"),                          \
        MICA_FIELDS(mica_reduction_opts, axes, INT, "that are reduced; may count from the end (all)"), \
        MICA_FIELD(mica_reduction_opts, keep, BOOL, "keep the axes with size 1")

const mica_field mica_reduction_fields[MICA_REDUCTION_FIELDS] = {COMMON};
static const mica_field variance_fields[] = {
    COMMON, MICA_FIELD(mica_reduction_opts, correction, INT, "divides by n - correction")};
static const mica_field norm_fields[] = {COMMON, MICA_FIELD(mica_reduction_opts, kind, CHOICE, "l2|l1|inf")};

#define RUN(op)                                               \
    static mica_status run_##op(const mica_call *c)           \
    {                                                         \
        mica_reduce_opts axes = axes_of(c->opts);             \
        return mica_##op(c->ctx, c->out[0], c->in[0], &axes); \
    }
#define ENTRY(op, words, list, infers, samples)                              \
    static void gradient_##op(mica_grad *g)                                  \
    {                                                                        \
        if (mica_grad_in_f32(g))                                             \
            mica_##op##_gradient(g);                                         \
    }                                                                        \
    const mica_op mica_op_##op = {.name = #op,                               \
                                  .family = "reduce",                        \
                                  .about = words,                            \
                                  .ins = 1,                                  \
                                  .outs = 1,                                 \
                                  .opts_bytes = sizeof(mica_reduction_opts), \
                                  MICA_FIELD_LIST(list),                     \
                                  .infer = infers,                           \
                                  .run = run_##op,                           \
                                  .gradient = MICA_GRADIENT(gradient_##op),  \
                                  .mixes = mixes,                            \
                                  .sample = MICA_SAMPLE(samples)};
#define REDUCE(op, words, list, infers, samples) RUN(op) ENTRY(op, words, list, infers, samples)

/* clang-format off */
REDUCE(sum, "the sum over axes", mica_reduction_fields, infer_typed, sample_axes)
REDUCE(mean, "the mean over axes", mica_reduction_fields, infer_typed, sample_axes)
REDUCE(prod, "the product over axes", mica_reduction_fields, infer_typed, sample_prod)
REDUCE(amax, "the maximum over axes", mica_reduction_fields, infer_choice, sample_spread)
REDUCE(amin, "the minimum over axes", mica_reduction_fields, infer_choice, sample_spread)
REDUCE(variance, "the variance over axes", variance_fields, infer, sample_variance)
ENTRY(norm, "a norm over axes: L2, L1 or the largest magnitude", norm_fields, infer_norm, sample_norm)
/* clang-format on */
