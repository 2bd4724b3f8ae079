/* Recurrent layers: LSTM, GRU and the plain RNN over sequences. mica/ops/recurrent.h says exactly how. */
#ifndef MICA_LAYERS_RECURRENT_H
#define MICA_LAYERS_RECURRENT_H

#include <mica/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* x [N, T, F] to [N, T, units], with weight_ih, weight_hh, bias_ih and bias_hh as in PyTorch. The state starts
 * at zero in every step of the net; or, with keep_state, where the step before left it (no gradient flows back
 * there), until mica_net_reset_states. With T = 1 that is a stream, one sample at a time. */
typedef struct mica_net_recurrent_opts {
    const char *name;
    mica_index units;
    int layers; /* stacked; 0: 1. Several are named name + ".0", ".1", ... */
    bool last;  /* only the last step's output: [N, units] */
    bool keep_state;
    bool no_bias;
    bool relu; /* RNN: instead of tanh */
} mica_net_recurrent_opts;
MICA_API mica_value mica_net_lstm(mica_net *net, mica_value x, const mica_net_recurrent_opts *opts);
MICA_API mica_value mica_net_gru(mica_net *net, mica_value x, const mica_net_recurrent_opts *opts);
MICA_API mica_value mica_net_rnn(mica_net *net, mica_value x, const mica_net_recurrent_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
