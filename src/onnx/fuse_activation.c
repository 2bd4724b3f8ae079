/* Patterns of activations. */
#include <math.h>
#include <string.h>

#include "onnx/fuse.h"

static bool give_unary(mica_onnx_importing *n, const mica_onnx_match *m, const char *op)
{
    mica_onnx_ref x = mica_onnx_matched(m, 'x');
    if (!mica_onnx_is_f32(n, x))
        return false;
    mica_onnx_give(n, 0, mica_onnx_op1(n, op, x, NULL));
    return true;
}

static bool gelu(mica_onnx_importing *n, const mica_onnx_match *m) { return give_unary(n, m, "gelu"); }
static bool gelu_tanh(mica_onnx_importing *n, const mica_onnx_match *m)
{
    return give_unary(n, m, "gelu_tanh");
}
static bool silu(mica_onnx_importing *n, const mica_onnx_match *m) { return give_unary(n, m, "silu"); }

/* x HardSigmoid(x), whose slope is 1/6 and whose height at 0 is 1/2. */
static bool hard_swish(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_onnx_importing gate = mica_onnx_as_node(n, m, 'h');
    if (fabsf(mica_onnx_float(&gate, "alpha", 0.2f) - 1.0f / 6.0f) > 1e-6f ||
        mica_onnx_float(&gate, "beta", 0.5f) != 0.5f)
        return false;
    return give_unary(n, m, "hard_swish");
}

/* Whether the node named c clips from low to high: by inputs l and h, or by attributes in old models. */
static bool clips(mica_onnx_importing *n, const mica_onnx_match *m, double low, double high)
{
    mica_onnx_importing clip = mica_onnx_as_node(n, m, 'c');
    mica_onnx_ref l = mica_onnx_matched(m, 'l'), h = mica_onnx_matched(m, 'h');
    double from = clip.opset < 11 ? mica_onnx_float(&clip, "min", -INFINITY) : -INFINITY,
           to = clip.opset < 11 ? mica_onnx_float(&clip, "max", INFINITY) : INFINITY;
    if ((l != 0 && !mica_onnx_is_number(n, l, &from)) || (h != 0 && !mica_onnx_is_number(n, h, &to)))
        return false;
    return from == low && (isinf(high) ? to >= (double)3.4e38f : to == high);
}

/* x Clip(x + 3, 0, 6) / 6 */
static bool hard_swish_of_clip(mica_onnx_importing *n, const mica_onnx_match *m)
{
    return clips(n, m, 0, 6) && give_unary(n, m, "hard_swish");
}

static bool clip(mica_onnx_importing *n, const mica_onnx_match *m)
{
    if (clips(n, m, 0, 6))
        return give_unary(n, m, "relu6");
    return clips(n, m, 0, INFINITY) && give_unary(n, m, "relu");
}

/* clang-format off */
#define ERF_A      "Add(Erf(Div(x,1.41421356)),1)"
#define ERF_B      "Add(Erf(Mul(x,0.70710678)),1)"
#define CUBE_A     "Pow(x,3)"
#define CUBE_B     "Mul(Mul(x,x),x)"
#define SCALED(cube) "Mul(" cube ",0.044715)"
#define SCALED_X   "Mul(x,Mul(x,Mul(x,0.044715)))"
#define TANH(part) "Add(Tanh(Mul(Add(x," part "),0.79788456)),1)"
#define GATED(gate, function)               \
    {"Mul(Mul(x," gate "),0.5)", function}, \
    {"Mul(x,Mul(" gate ",0.5))", function}, \
    {"Mul(Mul(x,0.5)," gate ")", function}

const mica_onnx_pattern mica_onnx_activation_patterns[] = {
    GATED(ERF_A, gelu),
    GATED(ERF_B, gelu),
    GATED(TANH(SCALED(CUBE_A)), gelu_tanh),
    GATED(TANH(SCALED(CUBE_B)), gelu_tanh),
    GATED(TANH(SCALED_X), gelu_tanh),
    {"Mul(x,Sigmoid(x))", silu},
    {"Mul(x,h:HardSigmoid(x))", hard_swish},
    {"Div(Mul(x,c:Clip(Add(x,3),l?,h?)),6)", hard_swish_of_clip},
    {"Mul(x,Div(c:Clip(Add(x,3),l?,h?),6))", hard_swish_of_clip},
    {"c:Clip(x,l?,h?)", clip},
    {NULL, NULL},
};
/* clang-format on */
