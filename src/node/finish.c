#include "node/finish.h"

/* Backwards of activations, and whether they read the output; the others read the input. */
static const struct {
    const mica_op *op;
    bool from_output;
} backwards[MICA_ACTIVATION_COUNT] = {
    [MICA_RELU] = {&mica_op_relu_backward, true},
    [MICA_RELU6] = {&mica_op_relu6_backward, true},
    [MICA_LEAKY_RELU] = {&mica_op_leaky_relu_backward, true},
#if !defined(MICA_SMALL) /* no call ends with these: ops/activation.h */
    [MICA_ELU] = {&mica_op_elu_backward, true},
    [MICA_SIGMOID] = {&mica_op_sigmoid_backward, true},
    [MICA_TANH] = {&mica_op_tanh_backward, true},
    [MICA_SOFTPLUS] = {&mica_op_softplus_backward, false},
    [MICA_SILU] = {&mica_op_silu_backward, false},
    [MICA_GELU] = {&mica_op_gelu_backward, false},
    [MICA_GELU_TANH] = {&mica_op_gelu_tanh_backward, false},
    [MICA_HARD_SWISH] = {&mica_op_hard_swish_backward, false},
#endif
};

mica_value mica_grad_finish(mica_grad *g, const mica_finish *f, mica_value dy, mica_value y)
{
    if (f->activation == MICA_NO_ACTIVATION)
        return dy;
    bool from_output = backwards[f->activation].from_output;
    mica_value kept = from_output ? y : 0;
    if (kept == 0)
        kept = mica_grad_value(g, f->op, g->in, g->ins, from_output ? f->with : f->without);
    return mica_grad_value(g, backwards[f->activation].op, (mica_value[]){dy, kept}, 2,
                           &(mica_scalar_opts){f->slope});
}
