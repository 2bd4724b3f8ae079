/* Operations without inputs, or with one that only gives the shape. No gradients. */
#include "node/entry.h"
#include "node/sample.h"

static mica_status infer(mica_infer *i)
{
    const mica_make_opts *opts = i->opts;
    const mica_tensor *like = i->in[0];
    if (i->ins > 0 && like != NULL)
        return mica_infer_out(i, 0, opts->dtype, like->rank, like->dim);
    if (opts->rank < 0 || opts->rank > MICA_MAX_RANK)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "rank is %d: expected 0 to %d", opts->rank,
                               MICA_MAX_RANK);
    return mica_infer_out(i, 0, opts->dtype, opts->rank, opts->dims);
}

/* Weights [out, in, kernel...] */
static mica_status infer_weights(mica_infer *i)
{
    MICA_TRY(infer(i));
    if (i->out[0].rank < 2)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected weights [out, in, kernel...], got rank %d",
                               i->out[0].rank);
    return MICA_OK;
}

static mica_status infer_generate(mica_infer *i)
{
    if (((const mica_make_opts *)i->opts)->function == NULL)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "the function is NULL");
    return infer(i);
}

/* What stands at a position depends on the whole: in the shape of an input, on all of its samples. */
static bool counts(const mica_infer *i) { return i->ins > 0 && i->in[0] != NULL; }

/* ---- Runs ---- */

static mica_status zeros_run(const mica_call *c) { return mica_zeros(c->ctx, c->out[0]); }
static mica_status ones_run(const mica_call *c) { return mica_ones(c->ctx, c->out[0]); }

static mica_status fill_run(const mica_call *c)
{
    return mica_fill(c->ctx, c->out[0], ((const mica_make_opts *)c->opts)->value);
}

static mica_status range_run(const mica_call *c)
{
    const mica_make_opts *opts = c->opts;
    return mica_range(c->ctx, c->out[0], opts->start, opts->step != 0.0 ? opts->step : 1.0);
}

static mica_status generate_run(const mica_call *c)
{
    const mica_make_opts *opts = c->opts;
    return mica_generate(c->ctx, c->out[0], opts->function, opts->user);
}

static mica_random stream_of(const mica_call *c)
{
    mica_index seed = ((const mica_make_opts *)c->opts)->seed;
    return seed != 0 ? mica_random_stream((uint64_t)seed, 0) : mica_random_stream(c->seed, c->stream);
}

static mica_status uniform_run(const mica_call *c)
{
    const mica_make_opts *opts = c->opts;
    mica_random from = stream_of(c);
    bool unset = opts->low == 0.0f && opts->high == 0.0f;
    return mica_uniform(c->ctx, c->out[0], &from, opts->low, unset ? 1.0f : opts->high);
}

static mica_status normal_run(const mica_call *c)
{
    const mica_make_opts *opts = c->opts;
    mica_random from = stream_of(c);
    return mica_normal(c->ctx, c->out[0], &from, opts->mean,
                       opts->deviation != 0.0f ? opts->deviation : 1.0f);
}

#define WEIGHTS_RUN(op)                                                         \
    static mica_status op##_run(const mica_call *c)                             \
    {                                                                           \
        float gain = ((const mica_make_opts *)c->opts)->gain;                   \
        mica_random from = stream_of(c);                                        \
        return mica_##op(c->ctx, c->out[0], &from, gain != 0.0f ? gain : 1.0f); \
    }
WEIGHTS_RUN(xavier_uniform)
WEIGHTS_RUN(xavier_normal)
WEIGHTS_RUN(he_uniform)
WEIGHTS_RUN(he_normal)

/* ---- Samples ---- */

static void shape(mica_op_sample *s, int low_rank)
{
    mica_make_opts *opts = s->opts;
    opts->rank = mica_sample_dims(s, low_rank, 4, opts->dims);
    if (!mica_sample_chance(s))
        return;
    s->ins = 1;
    mica_op_sample_shape(s, 0, opts->rank, opts->dims);
    opts->rank = 0;
}

static void sample(mica_op_sample *s)
{
    mica_make_opts *opts = s->opts;
    shape(s, 0);
    opts->dtype = (mica_dtype[]){MICA_F32, MICA_F32, MICA_F16, MICA_I32}[mica_op_sample_int(s, 0, 3)];
    opts->value = opts->start = (double)mica_op_sample_int(s, -3, 3);
    opts->step = 0.5 * (double)mica_op_sample_int(s, -2, 2);
}

static void sample_random(mica_op_sample *s)
{
    mica_make_opts *opts = s->opts;
    shape(s, 2);
    opts->low = opts->mean = -0.5f;
    opts->high = opts->deviation = opts->gain = 2.0f;
    opts->seed = mica_op_sample_int(s, 1, 100);
}

static double product_of(const mica_index *index, void *user)
{
    (void)user;
    return (double)(index[0] + 1) * (double)(index[1] + 2);
}

static void sample_generate(mica_op_sample *s)
{
    shape(s, 2);
    ((mica_make_opts *)s->opts)->function = product_of;
}

/* ---- Entries ---- */

#define COMMON                                                                                    \
    MICA_FIELD(mica_make_opts, rank, LENGTH, "rank of the result if there is no input"),          \
        MICA_FIELDS(mica_make_opts, dims, INDEX, "sizes of the result, where there is no input"), \
        MICA_FIELD(mica_make_opts, dtype, DTYPE, "its dtype")
#define SEED MICA_FIELD(mica_make_opts, seed, INDEX, "the same numbers in every step; 0: different in each")

static const mica_field plain_fields[] = {COMMON};
static const mica_field fill_fields[] = {COMMON,
                                         MICA_FIELD(mica_make_opts, value, DOUBLE, "value of every element")};
static const mica_field range_fields[] = {COMMON,
                                          MICA_FIELD(mica_make_opts, start, DOUBLE, "the first element"),
                                          MICA_FIELD(mica_make_opts, step, DOUBLE, "increment; 0: 1")};
static const mica_field uniform_fields[] = {
    COMMON, SEED, MICA_FIELD(mica_make_opts, low, FLOAT, "lower bound"),
    MICA_FIELD(mica_make_opts, high, FLOAT, "upper bound, exclusive")};
static const mica_field normal_fields[] = {
    COMMON, SEED, MICA_FIELD(mica_make_opts, mean, FLOAT, "mean of the distribution"),
    MICA_FIELD(mica_make_opts, deviation, FLOAT, "its standard deviation; 0: 1")};
static const mica_field weights_fields[] = {
    COMMON, SEED, MICA_FIELD(mica_make_opts, gain, FLOAT, "factor on the range or deviation; 0: 1")};

#define MAKE(op, words, list, how, infers, mixing, samples)                    \
    const mica_op mica_op_##op = {.name = #op,                                 \
                                  .family = "make",                            \
                                  .about = words,                              \
                                  .flags = MICA_OP_CHEAP | (how),              \
                                  .optional_ins = 1,                           \
                                  .outs = 1,                                   \
                                  .names = (const char *const[]){"like", "y"}, \
                                  .opts_bytes = sizeof(mica_make_opts),        \
                                  MICA_FIELD_LIST(list),                       \
                                  .infer = infers,                             \
                                  .run = op##_run,                             \
                                  .mixes = mixing,                             \
                                  .sample = MICA_SAMPLE(samples)};
#define WEIGHTS(op, words) \
    MAKE(op, words, weights_fields, MICA_OP_RANDOM, infer_weights, counts, sample_random)

/* clang-format off */
MAKE(fill, "one value everywhere", fill_fields, 0, infer, NULL, sample)
MAKE(zeros, "0 everywhere", plain_fields, 0, infer, NULL, sample)
MAKE(ones, "1 everywhere", plain_fields, 0, infer, NULL, sample)
MAKE(range, "start, start + step, ...", range_fields, 0, infer, counts, sample)
MAKE(generate, "a function of each element's index", plain_fields, MICA_OP_CALLBACK, infer_generate, counts, sample_generate)
MAKE(uniform, "random numbers from low to high", uniform_fields, MICA_OP_RANDOM, infer, NULL, sample_random)
MAKE(normal, "random numbers, normally distributed", normal_fields, MICA_OP_RANDOM, infer, NULL, sample_random)
WEIGHTS(xavier_uniform, "weight initialization, uniform, by fan-in and fan-out")
WEIGHTS(xavier_normal, "weight initialization, normal, by fan-in and fan-out")
WEIGHTS(he_uniform, "weight initialization, uniform, by fan-in")
WEIGHTS(he_normal, "weight initialization, normal, by fan-in")
/* clang-format on */
