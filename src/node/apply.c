/* A caller's function, element-wise. It has no known gradient. */
#include "node/gradient.h"
#include "node/sample.h"

#include "tensor/tensor.h"

/* The shape that all inputs are broadcast to. */
static mica_status infer(mica_infer *i, bool function)
{
    mica_tensor all = *i->in[0];
    if (!function)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "the function is NULL");
    for (int k = 0; k < i->ins; k++) {
        mica_tensor before = all;
        MICA_TRY(mica_infer_dtype(i, k, MICA_F32));
        if (!mica_common_shape(&before, i->in[k], &all.rank, all.dim))
            return mica_infer_fail(i, MICA_ERR_SHAPE, "expected a shape that broadcasts with it, got %s",
                                   MICA_SHAPE(i->in[k]));
    }
    return mica_infer_out(i, 0, MICA_F32, all.rank, all.dim);
}

static mica_status apply1_infer(mica_infer *i)
{
    return infer(i, ((const mica_function1 *)i->opts)->call != NULL);
}
static mica_status apply2_infer(mica_infer *i)
{
    return infer(i, ((const mica_function2 *)i->opts)->call != NULL);
}
static mica_status apply3_infer(mica_infer *i)
{
    return infer(i, ((const mica_function3 *)i->opts)->call != NULL);
}
static mica_status apply_scalar_infer(mica_infer *i)
{
    return infer(i, ((const mica_apply_scalar_opts *)i->opts)->f.call != NULL);
}

static mica_status apply1_run(const mica_call *c)
{
    return mica_apply1(c->ctx, c->out[0], c->in[0], *(const mica_function1 *)c->opts);
}

static mica_status apply2_run(const mica_call *c)
{
    return mica_apply2(c->ctx, c->out[0], c->in[0], c->in[1], *(const mica_function2 *)c->opts);
}

static mica_status apply3_run(const mica_call *c)
{
    return mica_apply3(c->ctx, c->out[0], c->in[0], c->in[1], c->in[2], *(const mica_function3 *)c->opts);
}

static mica_status apply_scalar_run(const mica_call *c)
{
    const mica_apply_scalar_opts *opts = c->opts;
    return mica_apply_scalar(c->ctx, c->out[0], c->in[0], opts->s, opts->f);
}

/* ---- Samples ---- */

static float first(void *user, float a)
{
    (void)user;
    return 2.0f * a + 1.0f;
}

static float second(void *user, float a, float b)
{
    (void)user;
    return a - 3.0f * b;
}

static float third(void *user, float a, float b, float c)
{
    (void)user;
    return a + b * c;
}

static void apply1_sample(mica_op_sample *s)
{
    mica_sample_broadcast(s);
    *(mica_function1 *)s->opts = (mica_function1){.call = first};
}

static void apply2_sample(mica_op_sample *s)
{
    mica_sample_broadcast(s);
    *(mica_function2 *)s->opts = (mica_function2){.call = second};
}

static void apply3_sample(mica_op_sample *s)
{
    mica_sample_broadcast(s);
    *(mica_function3 *)s->opts = (mica_function3){.call = third};
}

static void apply_scalar_sample(mica_op_sample *s)
{
    mica_sample_broadcast(s);
    *(mica_apply_scalar_opts *)s->opts = (mica_apply_scalar_opts){.s = 0.5f, .f = {.call = second}};
}

/* ---- Entries: a function is nothing that a file could hold, so it is not among the fields ---- */

static const mica_field scalar_field[] = {MICA_FIELD(mica_apply_scalar_opts, s, FLOAT, "the scalar")};

#define APPLY(op, words, inputs, options, list, count)                 \
    const mica_op mica_op_##op = {.name = #op,                         \
                                  .family = "elementwise",             \
                                  .about = words,                      \
                                  .flags = MICA_OP_CALLBACK,           \
                                  .ins = inputs,                       \
                                  .outs = 1,                           \
                                  .opts_bytes = sizeof(options),       \
                                  .fields = list,                      \
                                  .field_count = count,                \
                                  .in_place = {(1u << (inputs)) - 1u}, \
                                  .infer = op##_infer,                 \
                                  .run = op##_run,                     \
                                  .sample = MICA_SAMPLE(op##_sample)};

/* clang-format off */
APPLY(apply1, "a function of a", 1, mica_function1, NULL, 0)
APPLY(apply2, "a function of a and b", 2, mica_function2, NULL, 0)
APPLY(apply3, "a function of a, b and c", 3, mica_function3, NULL, 0)
APPLY(apply_scalar, "a function of a and a scalar", 1, mica_apply_scalar_opts, scalar_field, 1)
/* clang-format on */
