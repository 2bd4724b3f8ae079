/* LSTM, GRU and RNN over sequences [N, T, F]. */
#include <math.h>

#include <mica/layers.h>

#include "base/format.h"
#include "layer/scope.h"
#include "node/entry.h"

enum { X, W_IH, W_HH, B_IH, B_HH, H, H_BEFORE, C, C_BEFORE, INPUTS };

static mica_value one_layer(mica_net *net, mica_value x, const mica_op *op,
                            const mica_net_recurrent_opts *opts)
{
    mica_tensor t;
    mica_index units = opts->units;
    mica_net_layer_begin(net, op->name, opts->name, x);
    if (mica_net_shape(net, &t, x) != MICA_OK)
        return mica_net_layer_end(net, 0);
    if (t.rank != 3 || t.dtype != MICA_F32)
        return mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected f32 [batch, time, features]");
    if (units < 1 || units > INT32_MAX)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "units is %td: expected 1 to %d", units,
                                   (int)INT32_MAX);
    bool cells = op == &mica_op_lstm; /* has a state c besides h */
    mica_index rows = (cells ? 4 : op == &mica_op_gru ? 3 : 1) * units;
    mica_init uniform = {MICA_INIT_UNIFORM, 1.0f / sqrtf((float)units)};
    mica_value in[INPUTS] = {x};
    in[W_IH] = mica_net_learned(net, "weight_ih", 2, (mica_index[]){rows, t.dim[2]}, uniform);
    in[W_HH] = mica_net_learned(net, "weight_hh", 2, (mica_index[]){rows, units}, uniform);
    if (!opts->no_bias) {
        in[B_IH] = mica_net_learned(net, "bias_ih", 1, &rows, uniform);
        in[B_HH] = mica_net_learned(net, "bias_hh", 1, &rows, uniform);
    }
    static const char *const states[] = {"h", "h_before", "c", "c_before"};
    mica_index state[] = {mica_net_dim(net, x, 0), units};
    for (int i = H; opts->keep_state && i <= (cells ? C_BEFORE : H_BEFORE); i++)
        in[i] = mica_net_kept(net, states[i - H], MICA_KEPT_STATE, MICA_F32, 2, state, 0.0f);
    mica_sequence_opts how = {.last = opts->last, .relu = opts->relu};
    return mica_net_layer_end(net, mica_net_call(net, NULL, op, in, INPUTS, &how));
}

/* One layer for each of those stacked, named "name.0", "name.1", ... where there are several. */
static mica_value build(mica_net *net, mica_value x, const mica_op *op, const mica_net_recurrent_opts *opts)
{
    static const mica_net_recurrent_opts defaults = {0};
    mica_net_recurrent_opts o = opts != NULL ? *opts : defaults;
    if (o.layers < 0)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "%s: %d layers", op->name, o.layers);
    if (o.layers <= 1)
        return one_layer(net, x, op, &o);
    mica_enter_block(net, o.name, op->name);
    for (int i = 0; i < o.layers; i++) {
        mica_net_recurrent_opts one = o;
        char name[16];
        (void)mica_format(name, sizeof name, "%d", i);
        one.name = name;
        one.last = o.last && i == o.layers - 1;
        x = one_layer(net, x, op, &one);
    }
    mica_net_leave(net);
    return x;
}

mica_value mica_net_lstm(mica_net *net, mica_value x, const mica_net_recurrent_opts *opts)
{
    return build(net, x, &mica_op_lstm, opts);
}

mica_value mica_net_gru(mica_net *net, mica_value x, const mica_net_recurrent_opts *opts)
{
    return build(net, x, &mica_op_gru, opts);
}

mica_value mica_net_rnn(mica_net *net, mica_value x, const mica_net_recurrent_opts *opts)
{
    return build(net, x, &mica_op_rnn, opts);
}
