/* The gates of recurrent cells, and their gradients, over the rows of one step.
 *
 * A row is one sequence of the batch, `hidden` (H) units wide. Its gates are adjacent blocks of H:
 *
 *   LSTM  i f g o     i, f, o = sigmoid, g = tanh     c = f c' + i g          h = o tanh(c)
 *   GRU   r z n m     r, z = sigmoid, m = W_hn h' + b_hn
 *                     n = tanh(x part + r m)                                  h = (1 - z) n + z h'
 *   RNN   a           one block                                               h = tanh(a) or relu(a)
 *
 * where h' and c' are those of the previous step. Blocks hold pre-activations before forward, activations after
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

/* Rows whose gradients are added up together. */
#define MICA_CELL_GROUP 4

/* One step. What a cell does not have is not read. h may not be `before`; c may be c_before. */
typedef struct mica_cell_step {
    size_t hidden;
    bool relu;                  /* RNN */
    mica_cell_rows gates;       /* forward in place; backward in */
    mica_cell_rows from_hidden; /* GRU, forward in: h' W_hhT + b_hh, [r z m] */
    mica_cell_rows before, c_before;
    mica_cell_rows h, c; /* out of forward and into backward */
#if !defined(MICA_SMALL)
    mica_cell_rows h_again; /* LSTM and RNN, out of forward: h once more; not wanted where data is NULL */
#endif
    /* Backward alone. */
    mica_cell_rows dgates;  /* out; may be gates */
    mica_cell_rows dhidden; /* out: what W_hh is multiplied by. GRU: the gradient by from_hidden; the others'
                               is dgates once more, and not wanted where data is NULL */
    mica_cell_rows dh, dc;  /* in: from the step after; out, but for dh of LSTM and RNN: what passes by the
                               products straight to the step before */
    mica_cell_rows dy;      /* of this step's h; all zeros for none */
    mica_cell_rows
        sums; /* a row for every MICA_CELL_GROUP rows: their dgates are added to it; not wanted where
                               data is NULL */
} mica_cell_step;

/* Does `units` units from `unit` on, of `rows` rows from `row` on. */
typedef void mica_cell_fn(const mica_cell_step *s, size_t row, size_t rows, size_t unit, size_t units);

typedef struct mica_recurrent_kernels {
    mica_cell_fn *lstm, *gru, *rnn;
#if !defined(MICA_SMALL)
    mica_cell_fn *lstm_plain; /* for inference: the gates are not kept, the rounding is its own */
#endif
    mica_cell_fn *lstm_backward, *gru_backward, *rnn_backward;
} mica_recurrent_kernels;

#endif
