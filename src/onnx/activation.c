/* Activations. They are computed in f32; Relu also takes integers. */
#include <string.h>

#include "onnx/import.h"

static void curve(mica_onnx_importing *n, const char *op, const void *opts)
{
    mica_onnx_give_like(n, 0, mica_onnx_op1(n, op, mica_onnx_f32(n, 0), opts), n->in[0]);
}

static void relu(mica_onnx_importing *n)
{
    mica_dtype dtype = mica_onnx_shape(n, n->in[0])->dtype;
    if (dtype >= MICA_I64 && dtype <= MICA_U64)
        mica_onnx_give(n, 0, mica_onnx_op2(n, "max", n->in[0], mica_onnx_scalar(n, dtype, 0.0), NULL));
    else
        curve(n, "relu", NULL);
}

static void sigmoid(mica_onnx_importing *n) { curve(n, "sigmoid", NULL); }
static void tangent(mica_onnx_importing *n) { curve(n, "tanh", NULL); }
static void softplus(mica_onnx_importing *n) { curve(n, "softplus", NULL); }
static void softsign(mica_onnx_importing *n) { curve(n, "softsign", NULL); }
static void mish(mica_onnx_importing *n) { curve(n, "mish", NULL); }
static void hard_swish(mica_onnx_importing *n) { curve(n, "hard_swish", NULL); }

static void gelu(mica_onnx_importing *n)
{
    const char *approximate = mica_onnx_text(n, "approximate", "none");
    bool by_tanh = strcmp(approximate, "tanh") == 0;
    if (!by_tanh && strcmp(approximate, "none") != 0)
        (void)mica_onnx_bad(n, "approximate is \"%s\", expected none or tanh", approximate);
    curve(n, by_tanh ? "gelu_tanh" : "gelu", NULL);
}

/* Mica's leaky_relu and elu, whose gradients follow from the output, take no negative factors. */
static void leaky_relu(mica_onnx_importing *n)
{
    float alpha = mica_onnx_float(n, "alpha", 0.01f);
    if (alpha >= 0.0f)
        curve(n, "leaky_relu", &(mica_scalar_opts){alpha});
    else
        mica_onnx_give_like(n, 0,
                            mica_onnx_op2(n, "prelu", mica_onnx_f32(n, 0),
                                          mica_onnx_scalar(n, MICA_F32, (double)alpha), NULL),
                            n->in[0]);
}

static void elu(mica_onnx_importing *n)
{
    float alpha = mica_onnx_float(n, "alpha", 1.0f);
    if (alpha >= 0.0f)
        curve(n, "elu", &(mica_scalar_opts){alpha});
    else
        curve(n, "selu", &(mica_curve_opts){alpha, 1.0f});
}

static void celu(mica_onnx_importing *n)
{
    float alpha = mica_onnx_float(n, "alpha", 1.0f);
    if (alpha == 0.0f)
        (void)mica_onnx_bad(n, "alpha is 0, which it divides by");
    curve(n, "celu", &(mica_curve_opts){.alpha = alpha});
}

static void selu(mica_onnx_importing *n)
{
    float alpha = mica_onnx_float(n, "alpha", 1.67326319217681884765625f);
    curve(n, "selu", &(mica_curve_opts){alpha, mica_onnx_float(n, "gamma", 1.05070102214813232421875f)});
}

static void hard_sigmoid(mica_onnx_importing *n)
{
    float alpha = mica_onnx_float(n, "alpha", 0.2f);
    curve(n, "hard_sigmoid", &(mica_curve_opts){alpha, mica_onnx_float(n, "beta", 0.5f)});
}

static void thresholded_relu(mica_onnx_importing *n)
{
    curve(n, "thresholded_relu", &(mica_curve_opts){.alpha = mica_onnx_float(n, "alpha", 1.0f)});
}

static void shrink(mica_onnx_importing *n)
{
    float bias = mica_onnx_float(n, "bias", 0.0f);
    curve(n, "shrink", &(mica_curve_opts){bias, mica_onnx_float(n, "lambd", 0.5f)});
}

static void swish(mica_onnx_importing *n)
{
    float alpha = mica_onnx_float(n, "alpha", 1.0f);
    if (alpha == 1.0f)
        curve(n, "silu", NULL);
    else
        curve(n, "swish", &(mica_curve_opts){.alpha = alpha});
}

static void prelu(mica_onnx_importing *n)
{
    mica_onnx_give_like(n, 0, mica_onnx_op2(n, "prelu", mica_onnx_f32(n, 0), mica_onnx_f32(n, 1), NULL),
                        n->in[0]);
}

const mica_onnx_operator mica_onnx_activation_operators[] = {{"Relu", 1, relu},
                                                             {"Sigmoid", 1, sigmoid},
                                                             {"Tanh", 1, tangent},
                                                             {"Softplus", 1, softplus},
                                                             {"Softsign", 1, softsign},
                                                             {"Mish", 18, mish},
                                                             {"HardSwish", 14, hard_swish},
                                                             {"Gelu", 20, gelu},
                                                             {"LeakyRelu", 1, leaky_relu},
                                                             {"Elu", 1, elu},
                                                             {"Celu", 12, celu},
                                                             {"Selu", 1, selu},
                                                             {"HardSigmoid", 1, hard_sigmoid},
                                                             {"ThresholdedRelu", 1, thresholded_relu},
                                                             {"Shrink", 9, shrink},
                                                             {"Swish", 24, swish},
                                                             {"PRelu", 7, prelu},
                                                             {NULL, 0, NULL}};
