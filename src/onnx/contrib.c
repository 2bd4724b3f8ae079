/* Operators of the domain com.microsoft that optimized transformers carry. */
#include "onnx/compose.h"

/* x + bias; bias absent: x */
static mica_onnx_ref with_bias(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0), bias = mica_onnx_f32(n, 1);
    return bias != 0 ? mica_onnx_add(n, x, bias) : x;
}

static void gelu(mica_onnx_importing *n)
{
    mica_onnx_give_like(n, 0, mica_onnx_op1(n, "gelu", with_bias(n), NULL), n->in[0]);
}

static void fast_gelu(mica_onnx_importing *n)
{
    mica_onnx_give_like(n, 0, mica_onnx_op1(n, "gelu_tanh", with_bias(n), NULL), n->in[0]);
}

/* x sigmoid(alpha x) */
static void quick_gelu(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0);
    mica_onnx_ref gate = mica_onnx_scale(n, x, mica_onnx_float(n, "alpha", 1.702f));
    mica_onnx_give_like(n, 0, mica_onnx_mul(n, x, mica_onnx_op1(n, "sigmoid", gate, NULL)), n->in[0]);
}

static void fused_matmul(mica_onnx_importing *n)
{
    mica_matmul_opts opts = {.transpose_a = mica_onnx_int(n, "transA", 0) != 0,
                             .transpose_b = mica_onnx_int(n, "transB", 0) != 0,
                             .alpha = mica_onnx_not_0(mica_onnx_float(n, "alpha", 1.0f))};
    mica_onnx_ref a = mica_onnx_f32(n, 0), b = mica_onnx_f32(n, 1);
    if (mica_onnx_int(n, "transBatchA", 0) != 0 || mica_onnx_int(n, "transBatchB", 0) != 0 ||
        mica_onnx_shape(n, a)->rank < 2 || mica_onnx_shape(n, b)->rank < 2)
        (void)mica_onnx_unsupported(n, "transposed batches, or vectors");
    mica_onnx_give_like(n, 0, mica_onnx_op2(n, "matmul", a, b, &opts), n->in[0]);
}

const mica_onnx_operator mica_onnx_contrib_operators[] = {{"com.microsoft:Gelu", 1, gelu},
                                                          {"com.microsoft:BiasGelu", 1, gelu},
                                                          {"com.microsoft:FastGelu", 1, fast_gelu},
                                                          {"com.microsoft:QuickGelu", 1, quick_gelu},
                                                          {"com.microsoft:FusedMatMul", 1, fused_matmul},
                                                          {NULL, 0, NULL}};
