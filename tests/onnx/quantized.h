/* Quantized models, built by hand, and what comes out of them. */
#ifndef MICA_TESTS_ONNX_QUANTIZED_H
#define MICA_TESTS_ONNX_QUANTIZED_H

#include <mica/onnx.h>

#include "onnx/proto.h"
#include "test.h"

/* ---- Models, whose input is "x" and output "y"; the batch is "n" ---- */

typedef struct quantized_conv {
    int64_t groups, in, out, taps[2], stride[2], pads[4], side[2];
    int type;
    bool relu, quantized;
} quantized_conv;

quantized_conv quantized_draw_conv(test_random *r);
/* A convolution between pairs of QuantizeLinear and DequantizeLinear. */
proto quantized_conv_model(const quantized_conv *c, uint64_t seed, float *y_scale);
/* Gemm and MatMul, [K, N] and [N, K]. */
proto quantized_rows_model(bool gemm, bool turned, bool quantized, float *y_scale);
/* A net that stays in bytes. */
proto quantized_net_model(void);
/* Moves by the same scale; by another one they are floats. */
proto quantized_moves_model(bool same);
/* A product of two activations. */
proto quantized_two_model(int type, bool quantized);
/* An operator of integers: "QLinearConv", "MatMulInteger" and the like. */
proto quantized_integer_model(const char *type, bool dynamic);

/* ---- Running ---- */

#define QUANTIZED_MOST 8192 /* numbers of y */

typedef struct quantized_ran {
    double y[QUANTIZED_MOST];
    size_t count;
    char calls[1024];
    uint64_t heap;
} quantized_ran;

/* Adds the names of the net's calls. */
void quantized_list_calls(quantized_ran *r, mica_net *net);
/* One step, of an x that is always the same. */
void quantized_step(mica_context *ctx, mica_net *net, quantized_ran *r);
/* With sizes `name` of at most `most`, then of `rows`. */
bool quantized_run_sized(mica_context *ctx, quantized_ran *r, const proto *bytes, bool rounded,
                         const char *name, mica_index most, mica_index rows);
/* The same of "n". */
bool quantized_run(mica_context *ctx, quantized_ran *r, const proto *bytes, bool rounded, mica_index most,
                   mica_index rows);

#endif
