/* What a call of a net's program costs besides its arithmetic: chains of many calls over next to no data, and a step of
 * the smallest net that learns something. size: { calls, features } */
#include <string.h>

#include "bench/bench.h"

typedef mica_value add_fn(mica_net *net, mica_value x);

static mica_value add_tanh(mica_net *net, mica_value x)
{
    return mica_net_activation(net, x, &(mica_net_activation_opts){.kind = MICA_TANH});
}

/* An operation that does nothing: what is left is the loop that runs the program. */
static mica_status nothing_infer(mica_infer *i) { return mica_infer_like(i, 0, 0); }
static mica_status nothing_run(const mica_call *c) { return c->in[0] != NULL ? MICA_OK : MICA_ERR_STATE; }
static const mica_op nothing = {
    .name = "nothing", .ins = 1, .outs = 1, .in_place = {1}, .infer = nothing_infer, .run = nothing_run};

static mica_value add_nothing(mica_net *net, mica_value x)
{
    return mica_net_call(net, NULL, &nothing, &x, 1, NULL);
}

static mica_value add_sum(mica_net *net, mica_value x) { return mica_net_plus(net, x, x, NULL); }

static mica_value add_dense(mica_net *net, mica_value x)
{
    mica_tensor shape;
    return mica_net_shape(net, &shape, x) == MICA_OK
               ? mica_net_dense(net, x, &(mica_net_dense_opts){.units = shape.dim[1]})
               : 0;
}

static mica_status chain_setup(bench_state *s, add_fn *add, bool train)
{
    mica_index dims[] = {1, s->row->size[1]};
    BENCH_TRY(mica_net_create(s->ctx, &s->net));
    mica_value h = mica_net_input(s->net, "x", MICA_F32, 2, dims);
    mica_value target = train ? mica_net_input(s->net, "target", MICA_F32, 2, dims) : 0;
    if (train) /* something to be learned, so that gradients go through all */
        h = add_dense(s->net, h);
    for (mica_index i = 0; i < s->row->size[0]; i++)
        h = add(s->net, h);
    mica_net_output(s->net, "y", h);
    if (train)
        mica_net_mse(s->net, h, target, NULL);
    BENCH_TRY(mica_net_compile(s->net, &(mica_compile_opts){.train = train}));
    BENCH_TRY(mica_net_bind(s->net, NULL, 0));
    return mica_net_initialize(s->net, 1);
}

static mica_status nothing_setup(bench_state *s) { return chain_setup(s, add_nothing, false); }
static mica_status tanh_setup(bench_state *s) { return chain_setup(s, add_tanh, false); }
static mica_status tanh_train_setup(bench_state *s) { return chain_setup(s, add_tanh, true); }
static mica_status sum_setup(bench_state *s) { return chain_setup(s, add_sum, false); }
static mica_status dense_setup(bench_state *s) { return chain_setup(s, add_dense, false); }
static mica_status dense_train_setup(bench_state *s) { return chain_setup(s, add_dense, true); }

static mica_status set_zero(bench_state *s)
{
    mica_tensor x;
    for (int i = 0; i < mica_net_inputs(s->net); i++) {
        BENCH_TRY(mica_net_input_tensor(s->net, NULL, &x, i));
        BENCH_TRY(mica_fill(s->ctx, &x, 0.0f));
    }
    return MICA_OK;
}

static mica_status forward(bench_state *s)
{
    BENCH_TRY(set_zero(s));
    return mica_net_forward(s->net);
}

static mica_status both(bench_state *s)
{
    BENCH_TRY(set_zero(s));
    return mica_net_gradients(s->net, NULL);
}

/* ---- XOR: dense 8 tanh, dense 1, mean squared error, SGD; batch 4 ---- */

static mica_status xor_setup(bench_state *s)
{
    mica_optimizer sgd = {.kind = MICA_SGD, .lr = 0.1f};
    BENCH_TRY(mica_net_create(s->ctx, &s->net));
    mica_value x = mica_net_input(s->net, "x", MICA_F32, 2, (mica_index[]){4, 2});
    mica_value y = mica_net_input(s->net, "y", MICA_F32, 2, (mica_index[]){4, 1});
    mica_value h = mica_net_dense(s->net, x, &(mica_net_dense_opts){.units = 8, .activation = MICA_TANH});
    mica_net_mse(s->net, mica_net_dense(s->net, h, &(mica_net_dense_opts){.units = 1}), y, NULL);
    BENCH_TRY(mica_net_compile(s->net, &(mica_compile_opts){.train = true, .optimizer = &sgd}));
    BENCH_TRY(mica_net_bind(s->net, NULL, 0));
    return mica_net_initialize(s->net, 1);
}

static mica_status xor_step(bench_state *s)
{
    static const float inputs[] = {0, 0, 0, 1, 1, 0, 1, 1}, targets[] = {0, 1, 1, 0};
    mica_tensor x, y;
    BENCH_TRY(mica_net_input_tensor(s->net, NULL, &x, 0));
    BENCH_TRY(mica_net_input_tensor(s->net, NULL, &y, 1));
    memcpy(x.data, inputs, sizeof inputs);
    memcpy(y.data, targets, sizeof targets);
    return mica_train_step(s->net, 0.1f);
}

static const bench_case cases[] = {
    {"xor_step", xor_setup, xor_step, {0}},
    {"nodes_nothing_1000_fwd", nothing_setup, forward, {1000, 8}},
    {"nodes_tanh_1000_fwd", tanh_setup, forward, {1000, 8}},
    {"nodes_tanh_1000_both", tanh_train_setup, both, {1000, 8}},
    {"nodes_sum_1000_fwd", sum_setup, forward, {1000, 8}},
    {"nodes_dense_1000_fwd", dense_setup, forward, {1000, 8}},
    {"nodes_dense_1000_both", dense_train_setup, both, {1000, 8}},
};

BENCH_FAMILY(net, cases);
