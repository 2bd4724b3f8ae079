/* Recurrent networks over a sequence: LSTM, GRU and the plain RNN, with backward through time.
 *
 *     x [T, N, I]      y [T, N, H]      w_ih [G H, I]      w_hh [G H, H]      b_ih, b_hh [G H]
 *
 * T steps of N sequences; G is 4 for the LSTM (i, f, g, o), 3 for the GRU (r, z, n), 1 for the RNN. Formulas and
 * weights are PyTorch's. All tensors are f32, of any layout: a batch-first x [N, T, I] is a permuted view, as y
 * can be. T = 1 is a single step of a stream; the state is the caller's, in h_0 and h_n. All take scratch. */
#ifndef MICA_OPS_RECURRENT_H
#define MICA_OPS_RECURRENT_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_recurrent_weights {
    const mica_tensor *w_ih, *w_hh;
    const mica_tensor *b_ih, *b_hh; /* each may be NULL: none */
} mica_recurrent_weights;

/* Inputs and outputs besides x and y. Each tensor may be NULL. */
typedef struct mica_recurrent_opts {
    const mica_tensor *h_0, *c_0; /* [N, H], the state before the first step; NULL: zeros. c: LSTM only */
    const mica_tensor *h_n, *c_n; /* outputs: the state after the last step. May be exactly h_0 and c_0 */

    /* Outputs, for backward: [T, N, 4 H], what each gate let through (GRU: r, z, n and W_hn h + b_hn; the RNN keeps
     * none); and the LSTM's cells [T, N, H]. Without them backward is not possible, and less scratch is needed. */
    const mica_tensor *gates, *cells;
    bool relu; /* RNN: relu instead of tanh */
} mica_recurrent_opts;

/* y may be NULL where only h_n is wanted. Outputs must not overlap anything except where documented. */
MICA_API mica_status mica_lstm(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                               const mica_recurrent_weights *weights, const mica_recurrent_opts *opts);
MICA_API mica_status mica_gru(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                              const mica_recurrent_weights *weights, const mica_recurrent_opts *opts);
MICA_API mica_status mica_rnn(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                              const mica_recurrent_weights *weights, const mica_recurrent_opts *opts);

/* Destinations of the gradients; each may be NULL. */
typedef struct mica_recurrent_grads {
    const mica_tensor *x;
    const mica_tensor *w_ih, *w_hh, *b_ih, *b_hh;
    const mica_tensor *h_0, *c_0;
    /* [T, N, 4 H], for the RNN [T, N, H]: by what went into the gates. May be exactly the saved gates, which spares
     * scratch of that size. */
    const mica_tensor *gates;
    bool add_weights; /* add to the gradients of w and b instead of overwriting them */
} mica_recurrent_grads;

/* Incoming gradients; NULL means zeros. */
typedef struct mica_recurrent_dout {
    const mica_tensor *y;         /* [T, N, H] */
    const mica_tensor *h_n, *c_n; /* [N, H] */
} mica_recurrent_dout;

/* Inputs and outputs of the forward pass. */
typedef struct mica_recurrent_saved {
    const mica_tensor *x, *y;
    const mica_tensor *gates, *cells; /* as forward wrote them; the RNN has none, cells only the LSTM */
    const mica_tensor *h_0, *c_0;     /* NULL: zeros */
    bool relu;
} mica_recurrent_saved;

MICA_API mica_status mica_lstm_backward(mica_context *ctx, const mica_recurrent_grads *grads,
                                        const mica_recurrent_dout *dout, const mica_recurrent_saved *saved,
                                        const mica_recurrent_weights *weights);
MICA_API mica_status mica_gru_backward(mica_context *ctx, const mica_recurrent_grads *grads,
                                       const mica_recurrent_dout *dout, const mica_recurrent_saved *saved,
                                       const mica_recurrent_weights *weights);
MICA_API mica_status mica_rnn_backward(mica_context *ctx, const mica_recurrent_grads *grads,
                                       const mica_recurrent_dout *dout, const mica_recurrent_saved *saved,
                                       const mica_recurrent_weights *weights);

#ifdef __cplusplus
}
#endif
#endif
