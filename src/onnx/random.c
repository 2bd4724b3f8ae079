/* Random numbers: other ones than those of other runtimes, whose generators the standard does not fix. A seed gives
 * the same numbers in every step. */
#include <string.h>

#include "onnx/import.h"

static mica_make_opts drawn(mica_onnx_importing *n, mica_dtype dtype)
{
    mica_make_opts opts = {.dtype = dtype};
    float seed = mica_onnx_float(n, "seed", 0.0f);
    memcpy(&opts.seed, &seed, sizeof seed < sizeof opts.seed ? sizeof seed : sizeof opts.seed);
    return opts;
}

/* The dtype that the attribute names, or that of the input, if there is one. */
static mica_dtype dtype_of(mica_onnx_importing *n)
{
    mica_dtype own = n->ins > 0 ? mica_onnx_shape(n, n->in[0])->dtype : MICA_F32;
    return mica_onnx_find(n, "dtype") != NULL ? mica_onnx_dtype_of(n, mica_onnx_int(n, "dtype", 1)) : own;
}

static void give(mica_onnx_importing *n, const char *op, mica_make_opts *opts)
{
    int64_t shape[MICA_MAX_RANK];
    if (n->ins > 0) { /* as the input is */
        mica_onnx_give(n, 0, mica_onnx_op(n, op, n->in, 1, opts));
        return;
    }
    opts->rank = mica_onnx_int_list(n, "shape", shape, MICA_MAX_RANK);
    if (opts->rank < 0)
        (void)mica_onnx_bad(n, "no shape");
    for (int k = 0; k < opts->rank; k++)
        opts->dims[k] = (mica_index)shape[k];
    mica_onnx_give(n, 0, mica_onnx_op(n, op, NULL, 0, opts));
}

static void uniform(mica_onnx_importing *n)
{
    mica_make_opts opts = drawn(n, dtype_of(n));
    opts.low = mica_onnx_float(n, "low", 0.0f);
    opts.high = mica_onnx_float(n, "high", 1.0f);
    give(n, "uniform", &opts);
}

static void normal(mica_onnx_importing *n)
{
    mica_make_opts opts = drawn(n, dtype_of(n));
    opts.mean = mica_onnx_float(n, "mean", 0.0f);
    opts.deviation = mica_onnx_float(n, "scale", 1.0f);
    if (opts.deviation == 0.0f)
        (void)mica_onnx_unsupported(n, "a scale of 0");
    give(n, "normal", &opts);
}

/* 1 with the probability that the input has there */
static void bernoulli(mica_onnx_importing *n)
{
    mica_make_opts opts = drawn(n, MICA_F32);
    mica_onnx_ref x = mica_onnx_f32(n, 0), drawn_below = mica_onnx_op(n, "uniform", &x, 1, &opts);
    mica_onnx_ref hit = mica_onnx_op2(n, "lt", drawn_below, x, &(mica_compare_opts){.truth = true});
    mica_onnx_give(n, 0, mica_onnx_cast(n, hit, dtype_of(n)));
}

const mica_onnx_operator mica_onnx_random_operators[] = {
    {"RandomUniform", 1, uniform},   {"RandomUniformLike", 1, uniform}, {"RandomNormal", 1, normal},
    {"RandomNormalLike", 1, normal}, {"Bernoulli", 15, bernoulli},      {NULL, 0, NULL}};
