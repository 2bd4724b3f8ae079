/* The product of rows with weights, as its parts for each kind of weights see it. */
#ifndef MICA_SRC_OPS_LINEAR_ROWS_H
#define MICA_SRC_OPS_LINEAR_ROWS_H

#include <mica/tensor.h>

#include "base/context.h"

/* y [rows, units] = x [rows, width] times the transposed w [units, width], plus bias. Columns have stride 1. */
typedef struct mica_linear_rows_call {
    size_t rows, units, width;
    const float *x;
    const void *w; /* NULL while measuring, as the other pointers */
    mica_dtype w_dtype;
    const float *bias; /* NULL: none */
    float *y;
    mica_index x_stride, w_stride, y_stride; /* from row to row, in values */
} mica_linear_rows_call;

/* w is f32, f16 or bf16. What a call with fewer rows needs is never more. */
size_t mica_linear_rows_float_scratch(const mica_context *ctx, const mica_linear_rows_call *call);
void mica_linear_rows_float(mica_context *ctx, const mica_linear_rows_call *call, void *scratch);

/* w is block-quantized. */
size_t mica_linear_rows_quant_scratch(const mica_context *ctx, const mica_linear_rows_call *call);
void mica_linear_rows_quant(mica_context *ctx, const mica_linear_rows_call *call, void *scratch);

#endif
