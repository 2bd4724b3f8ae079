/* What a net's node costs besides its arithmetic: chains of many nodes over next to no data.
 * size: { nodes, features } */
#include "bench/bench.h"

typedef mica_value add_fn(mica_net *net, mica_value x);

static mica_value add_tanh(mica_net *net, mica_value x)
{
    return mica_net_activation(net, x, &(mica_net_activation_opts){.kind = MICA_TANH});
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

static const bench_case cases[] = {
    {"nodes_tanh_1000_fwd", tanh_setup, forward, {1000, 8}},
    {"nodes_tanh_1000_both", tanh_train_setup, both, {1000, 8}},
    {"nodes_sum_1000_fwd", sum_setup, forward, {1000, 8}},
    {"nodes_dense_1000_fwd", dense_setup, forward, {1000, 8}},
    {"nodes_dense_1000_both", dense_train_setup, both, {1000, 8}},
};

BENCH_FAMILY(net, cases);
