/* Cases of LSTM, GRU and RNN: gradients through time, of all steps and of the last one only, stacked or not. */
#include "layer/layer_case.h"

static mica_value leaf(mica_net *net, test_random *r)
{
    return layer_leaf(net, "x", 3, (mica_index[]){test_int(r, 1, 3), test_int(r, 1, 5), test_int(r, 1, 4)});
}

static mica_net_recurrent_opts options(test_random *r)
{
    return (mica_net_recurrent_opts){.name = "cell",
                                     .units = test_chance(r, 20) ? 9 : test_int(r, 1, 4),
                                     .layers = test_int(r, 0, 2),
                                     .last = test_chance(r, 40),
                                     .no_bias = test_chance(r, 30)};
}

static mica_value build_lstm(mica_net *net, test_random *r)
{
    mica_net_recurrent_opts opts = options(r);
    return mica_net_lstm(net, leaf(net, r), &opts);
}

static mica_value build_gru(mica_net *net, test_random *r)
{
    mica_net_recurrent_opts opts = options(r);
    return mica_net_gru(net, leaf(net, r), &opts);
}

static mica_value build_rnn(mica_net *net, test_random *r)
{
    mica_net_recurrent_opts opts = options(r);
    opts.relu = test_chance(r, 30);
    return mica_net_rnn(net, leaf(net, r), &opts);
}

LAYER_CASE(lstm) = {.build = build_lstm, .draws = 10};
LAYER_CASE(gru) = {.build = build_gru, .draws = 10};
/* A corner of relu may lie within a difference: a smaller one meets fewer. */
LAYER_CASE(rnn) = {.build = build_rnn, .draws = 10, .step = 2e-3};
