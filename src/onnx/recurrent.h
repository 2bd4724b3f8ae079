/* RNN, LSTM and GRU of ONNX: what recurrent.c reads from a node, for what carries it out. */
#ifndef MICA_SRC_ONNX_RECURRENT_H
#define MICA_SRC_ONNX_RECURRENT_H

#include "onnx/compose.h"

/* Blocks of the weights: LSTM i, o, f, c; GRU z, r, h. */
typedef enum mica_onnx_cell { MICA_ONNX_RNN, MICA_ONNX_LSTM, MICA_ONNX_GRU } mica_onnx_cell;

/* An activation by name, with its alpha and beta. */
typedef struct mica_onnx_activation {
    const char *name;
    float alpha, beta;
} mica_onnx_activation;

/* A node's options. */
typedef struct mica_onnx_recurrent {
    mica_onnx_cell cell;
    int blocks; /* of the weights */
    int directions;
    bool batch_first;
    bool linear_before_reset, input_forget;
    float clip; /* 0: none */
    mica_index time, batch, inputs, hidden;
    mica_onnx_ref x;       /* as the node has it: [T, N, I] or [N, T, I], f32 */
    mica_onnx_ref lengths; /* [N, 1] f32; 0: all sequences are as long as x */
} mica_onnx_recurrent;

/* One direction: its weights, what it starts from, and what it gives. */
typedef struct mica_onnx_direction {
    bool reverse;
    mica_onnx_activation f, g, h;
    mica_onnx_ref w, r;        /* [blocks H, I] and [blocks H, H] */
    mica_onnx_ref w_bias;      /* [blocks H]; 0: none */
    mica_onnx_ref r_bias;      /* the same */
    mica_onnx_ref peepholes;   /* [3 H]; 0: none */
    mica_onnx_ref h_0, c_0;    /* [N, H]; 0: zeros */
    mica_onnx_ref y, h_n, c_n; /* y as x; 0: not wanted */
    bool wants_y;
} mica_onnx_direction;

#define MICA_ONNX_MOST_STEPS 2048

/* Step by step: any options, but no more steps than that. */
void mica_onnx_unroll(mica_onnx_importing *n, const mica_onnx_recurrent *r, mica_onnx_direction *d);

#endif
