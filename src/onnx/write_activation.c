/* Activations, as operations and as the ends of others. */
#include "onnx/write.h"

static mica_onnx_term silu_of(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x)
{
    return mica_onnx_node2(c, out, "Mul", x, mica_onnx_node1(c, NEW, "Sigmoid", x, NO_ATTRS));
}

/* x (1 + erf(x / sqrt 2)) / 2 */
static mica_onnx_term gelu_of(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x)
{
    mica_onnx_term t = mica_onnx_node2(c, NEW, "Div", x, mica_onnx_put_number(c, 1.41421356237f));
    t = mica_onnx_node1(c, NEW, "Erf", t, NO_ATTRS);
    t = mica_onnx_node2(c, NEW, "Add", t, mica_onnx_put_number(c, 1.0f));
    t = mica_onnx_node2(c, NEW, "Mul", x, t);
    return mica_onnx_node2(c, out, "Mul", t, mica_onnx_put_number(c, 0.5f));
}

/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 */
static mica_onnx_term gelu_tanh_of(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x)
{
    mica_onnx_term t = mica_onnx_node2(c, NEW, "Mul", x, x);
    t = mica_onnx_node2(c, NEW, "Mul", t, x);
    t = mica_onnx_node2(c, NEW, "Mul", t, mica_onnx_put_number(c, 0.044715f));
    t = mica_onnx_node2(c, NEW, "Add", x, t);
    t = mica_onnx_node2(c, NEW, "Mul", t, mica_onnx_put_number(c, 0.7978845608f));
    t = mica_onnx_node1(c, NEW, "Tanh", t, NO_ATTRS);
    t = mica_onnx_node2(c, NEW, "Add", t, mica_onnx_put_number(c, 1.0f));
    t = mica_onnx_node2(c, NEW, "Mul", x, t);
    return mica_onnx_node2(c, out, "Mul", t, mica_onnx_put_number(c, 0.5f));
}

static mica_onnx_term relu6_of(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x)
{
    mica_onnx_term low = mica_onnx_put_number(c, 0.0f), high = mica_onnx_put_number(c, 6.0f);
    return mica_onnx_put(c, out, "Clip", TERMS(x, low, high), NO_ATTRS);
}

mica_onnx_term mica_onnx_put_activation(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x,
                                        mica_activation act, float slope)
{
    switch (act) {
    case MICA_RELU:
        return mica_onnx_node1(c, out, "Relu", x, NO_ATTRS);
    case MICA_RELU6:
        return relu6_of(c, out, x);
    case MICA_LEAKY_RELU:
        return mica_onnx_node1(c, out, "LeakyRelu", x, ATTRS(mica_onnx_float_attr("alpha", slope)));
    case MICA_ELU:
        return mica_onnx_node1(c, out, "Elu", x, ATTRS(mica_onnx_float_attr("alpha", slope)));
    case MICA_SIGMOID:
        return mica_onnx_node1(c, out, "Sigmoid", x, NO_ATTRS);
    case MICA_TANH:
        return mica_onnx_node1(c, out, "Tanh", x, NO_ATTRS);
    case MICA_SOFTPLUS:
        return mica_onnx_node1(c, out, "Softplus", x, NO_ATTRS);
    case MICA_SILU:
        return silu_of(c, out, x);
    case MICA_GELU:
        return gelu_of(c, out, x);
    case MICA_GELU_TANH:
        return gelu_tanh_of(c, out, x);
    case MICA_HARD_SWISH:
        return mica_onnx_node1(c, out, "HardSwish", x, NO_ATTRS);
    default:
        return mica_onnx_node1(c, out, "Identity", x, NO_ATTRS);
    }
}

/* ---- Operations ---- */

static void activation(mica_onnx_writing *c)
{
    const mica_op *op = c->node->op;
    float slope = op->opts_bytes > 0 ? ((const mica_scalar_opts *)c->opts)->s : 0.0f;
    mica_onnx_put_activation(c, OUT(0), IN(0), op->activation, slope);
}

static void softmax(mica_onnx_writing *c)
{
    int axis = ((const mica_axis_opts *)c->opts)->axis;
    mica_onnx_node1(c, OUT(0), c->node->op == &mica_op_softmax ? "Softmax" : "LogSoftmax", IN(0),
                    ATTRS(mica_onnx_int_attr("axis", axis)));
}

static void squared_relu(mica_onnx_writing *c)
{
    float gain = *(const float *)c->opts;
    mica_onnx_term t = mica_onnx_node1(c, NEW, "Relu", IN(0), NO_ATTRS);
    t = mica_onnx_node2(c, NEW, "Mul", t, t);
    mica_onnx_node2(c, OUT(0), "Mul", t, mica_onnx_put_number(c, gain != 0.0f ? gain : 1.0f));
}

static void swiglu(mica_onnx_writing *c)
{
    int last = c->in[0]->rank - 1;
    mica_index half = c->in[0]->dim[last] / 2;
    mica_onnx_term a = mica_onnx_put_slice(c, NEW, IN(0), last, 0, half);
    mica_onnx_term b = mica_onnx_put_slice(c, NEW, IN(0), last, half, 2 * half);
    mica_onnx_node2(c, OUT(0), "Mul", silu_of(c, NEW, a), b);
}

static void gate(mica_onnx_writing *c)
{
    mica_activation act = ((const mica_gate_opts *)c->opts)->activation;
    mica_onnx_term a = mica_onnx_put_activation(c, NEW, IN(0), act != MICA_NO_ACTIVATION ? act : MICA_SILU,
                                                0.0f);
    mica_onnx_node2(c, OUT(0), "Mul", a, IN(1));
}

/* ---- Curves that come with models of others ---- */

/* One operator, with alpha, or with alpha and beta by these names; NULL: it has none. */
static void put_curve(mica_onnx_writing *c, const char *type, const char *alpha, const char *beta)
{
    const mica_curve_opts *o = c->opts;
    int count = (alpha != NULL) + (beta != NULL);
    mica_onnx_attr attrs[2] = {mica_onnx_float_attr(alpha, count > 0 ? o->alpha : 0.0f),
                               mica_onnx_float_attr(beta, count > 1 ? o->beta : 0.0f)};
    mica_onnx_node1(c, OUT(0), type, IN(0), attrs, count);
}

static void celu(mica_onnx_writing *c) { put_curve(c, "Celu", "alpha", NULL); }
static void selu(mica_onnx_writing *c) { put_curve(c, "Selu", "alpha", "gamma"); }
static void hard_sigmoid(mica_onnx_writing *c) { put_curve(c, "HardSigmoid", "alpha", "beta"); }
static void thresholded_relu(mica_onnx_writing *c) { put_curve(c, "ThresholdedRelu", "alpha", NULL); }
static void shrink(mica_onnx_writing *c) { put_curve(c, "Shrink", "bias", "lambd"); }
static void softsign(mica_onnx_writing *c) { put_curve(c, "Softsign", NULL, NULL); }
static void prelu(mica_onnx_writing *c) { mica_onnx_node2(c, OUT(0), "PRelu", IN(0), IN(1)); }

static void mish(mica_onnx_writing *c)
{
    mica_onnx_term t = mica_onnx_node1(c, NEW, "Softplus", IN(0), NO_ATTRS);
    mica_onnx_node2(c, OUT(0), "Mul", IN(0), mica_onnx_node1(c, NEW, "Tanh", t, NO_ATTRS));
}

static void swish(mica_onnx_writing *c)
{
    mica_onnx_term alpha = mica_onnx_put_number(c, ((const mica_curve_opts *)c->opts)->alpha);
    mica_onnx_term t = mica_onnx_node2(c, NEW, "Mul", IN(0), alpha);
    mica_onnx_node2(c, OUT(0), "Mul", IN(0), mica_onnx_node1(c, NEW, "Sigmoid", t, NO_ATTRS));
}

/* clang-format off */
const mica_onnx_row mica_onnx_write_activation[] = {
    PLAIN(relu, activation), PLAIN(relu6, activation), PLAIN(leaky_relu, activation), PLAIN(elu, activation),
    PLAIN(sigmoid, activation), PLAIN(tanh, activation), PLAIN(softplus, activation), OWN(silu, activation),
    OWN(gelu, activation), OWN(gelu_tanh, activation), PLAIN(hard_swish, activation), PLAIN(softmax, softmax),
    PLAIN(log_softmax, softmax), OWN(squared_relu, squared_relu), OWN(swiglu, swiglu), OWN(gate, gate),
    OWN(celu, celu), OWN(selu, selu), OWN(hard_sigmoid, hard_sigmoid), OWN(thresholded_relu, thresholded_relu),
    OWN(shrink, shrink), OWN(softsign, softsign), OWN(prelu, prelu), OWN(mish, mish), OWN(swish, swish),
    END_OF_ROWS};
/* clang-format on */
