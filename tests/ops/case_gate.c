/* The case of gate. */
#include <math.h>

#include "ops/op_case.h"

static const mica_activation kinds[] = {MICA_NO_ACTIVATION, MICA_SILU, MICA_GELU, MICA_GELU_TANH};

static void draw(op_call *c, test_random *r)
{
    mica_index dims[] = {test_int(r, 0, 5), test_int(r, 0, c->large ? 3000 : 40)};
    c->i[0] = test_int(r, 0, 3);
    for (int i = 0; i < 3; i++)
        op_tensor(c, i, MICA_F32, 2, dims);
}

static mica_status run(mica_context *ctx, const op_call *c)
{
    return mica_gate(ctx, OP(c, 0), OP(c, 1), OP(c, 2), &(mica_gate_opts){kinds[c->i[0]]});
}

static double activate(mica_activation kind, double x)
{
    if (kind == MICA_GELU)
        return 0.5 * x * (1.0 + erf(x / sqrt(2.0)));
    if (kind == MICA_GELU_TANH)
        return 0.5 * x * (1.0 + tanh(sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    return x / (1.0 + exp(-x));
}

static void reference(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = activate(kinds[c->i[0]], v[1][i]) * v[2][i];
}

OP_CASE(gate) = {.names = {"y", "a", "b"},
                 .outs = 1,
                 .ins = 2,
                 .in_place = OP_BIT(1) | OP_BIT(2),
                 .draw = draw,
                 .run = run,
                 .reference = reference,
                 .tolerance = 2e-6};
