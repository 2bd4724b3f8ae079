/* Activations. size: { rows, columns } */
#include "bench/bench.h"

static mica_status setup(bench_state *s, int tensors)
{
    for (int i = 0; i < tensors; i++)
        BENCH_TRY(BENCH_TENSOR(s, s->row->size[0], s->row->size[1]));
    return MICA_OK;
}

static mica_status forward_setup(bench_state *s) { return setup(s, 2); }  /* y, x */
static mica_status backward_setup(bench_state *s) { return setup(s, 3); } /* dx, dy, and x or y */

#define RUNS(op)                                                                                      \
    static mica_status op##_forward(bench_state *s) { return mica_##op(s->ctx, &s->t[0], &s->t[1]); } \
    static mica_status op##_backward(bench_state *s)                                                  \
    {                                                                                                 \
        return mica_##op##_backward(s->ctx, &s->t[0], &s->t[1], &s->t[2]);                            \
    }

RUNS(relu)
RUNS(sigmoid)
RUNS(tanh)
RUNS(gelu)
RUNS(gelu_tanh)
RUNS(silu)

static mica_status softmax_forward(bench_state *s) { return mica_softmax(s->ctx, &s->t[0], &s->t[1], 1); }
static mica_status softmax_backward(bench_state *s)
{
    return mica_softmax_backward(s->ctx, &s->t[0], &s->t[1], &s->t[2], 1);
}

/* clang-format off */
#define FORWARD(op, rows, columns) \
    {#op "_" #rows "x" #columns "_fwd", forward_setup, op##_forward, {(rows), (columns)}}
#define BACKWARD(op, rows, columns) \
    {#op "_" #rows "x" #columns "_bwd", backward_setup, op##_backward, {(rows), (columns)}}
/* clang-format on */

static const bench_case cases[] = {
    FORWARD(relu, 32, 512),       BACKWARD(relu, 32, 512),     FORWARD(sigmoid, 32, 512),
    BACKWARD(sigmoid, 32, 512),   FORWARD(tanh, 32, 512),      BACKWARD(tanh, 32, 512),
    FORWARD(gelu, 32, 512),       BACKWARD(gelu, 32, 512),     FORWARD(gelu, 4096, 512),
    BACKWARD(gelu, 4096, 512),    FORWARD(gelu_tanh, 32, 512), BACKWARD(gelu_tanh, 32, 512),
    FORWARD(softmax, 32, 128),    BACKWARD(softmax, 32, 128),  FORWARD(softmax, 4096, 512),
    BACKWARD(softmax, 4096, 512), FORWARD(silu, 32, 512),      BACKWARD(silu, 32, 512),
};

BENCH_FAMILY(activation, cases);
