/* The gates of recurrent cells, and their gradients, over the rows of one step.
 *
 * A row is one sequence of the batch, `hidden` (H) elements wide. Its gates lie side by side in blocks of H:
 *
 *   LSTM  i f g o     i, f, o = sigmoid, g = tanh     c = f c' + i g          h = o tanh(c)
 *   GRU   r z n m     r, z = sigmoid, m = W_hn h' + b_hn
 *                     n = tanh(x part + r m)                                  h = (1 - z) n + z h'
 *   RNN   a           one block                                               h = tanh(a) or relu(a)
 *
 * where h' and c' are those of the step before. Blocks hold pre-activations before forward, activations after
 * it, and gradients by the pre-activations after backward. */
#ifndef MICA_SRC_KERNEL_RECURRENT_H
#define MICA_SRC_KERNEL_RECURRENT_H

#include <stdbool.h>
#include <stddef.h>

/* Rows at a stride; data NULL: all zeros. */
typedef struct mica_cell_rows {
    float *data;
    ptrdiff_t stride;
} mica_cell_rows;

/* One step forward. What a cell does not have is not read. h may not be `before`; c may be c_before. */
typedef struct mica_cell_step {
    size_t hidden;
    mica_cell_rows gates;       /* in place */
    mica_cell_rows from_hidden; /* GRU: h' W_hhT + b_hh, [r z m] */
    mica_cell_rows before, c_before;
    mica_cell_rows h, c;
    bool relu; /* RNN */
} mica_cell_step;

/* One step backward. */
typedef struct mica_cell_back {
    size_t hidden;
    mica_cell_rows dgates;  /* out; may be gates */
    mica_cell_rows dhidden; /* GRU, out: the gradient by from_hidden */
    mica_cell_rows dh, dc;  /* in: from the step after; out, but for dh of LSTM and RNN: what passes by the
                                          products straight to the step before */
    mica_cell_rows dy;      /* of this step's h; all zeros for none */
    mica_cell_rows gates, h, c; /* of this step's forward */
    mica_cell_rows before, c_before;
    bool relu;
} mica_cell_back;

typedef struct mica_recurrent_kernels {
    void (*lstm)(const mica_cell_step *s, size_t begin, size_t end);
    void (*gru)(const mica_cell_step *s, size_t begin, size_t end);
    void (*rnn)(const mica_cell_step *s, size_t begin, size_t end);
    void (*lstm_backward)(const mica_cell_back *s, size_t begin, size_t end);
    void (*gru_backward)(const mica_cell_back *s, size_t begin, size_t end);
    void (*rnn_backward)(const mica_cell_back *s, size_t begin, size_t end);
} mica_recurrent_kernels;

#endif
