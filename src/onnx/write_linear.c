/* Matrix products. */
#include "onnx/write.h"

/* The last two axes in each other's place. */
static mica_onnx_term transposed(mica_onnx_writing *c, mica_onnx_term x, int rank)
{
    int axes[MICA_MAX_RANK];
    for (int i = 0; i < rank; i++)
        axes[i] = i == rank - 2 ? rank - 1 : i == rank - 1 ? rank - 2 : i;
    return mica_onnx_put_permute(c, NEW, x, axes, rank);
}

/* What stands behind a product: a factor, a bias, an activation. */
static void finish(mica_onnx_writing *c, mica_onnx_term a, mica_onnx_term b, float alpha, bool bias,
                   mica_activation act, float slope)
{
    bool scaled = alpha != 0.0f && alpha != 1.0f;
    int left = scaled + bias + (act != MICA_NO_ACTIVATION);
    mica_onnx_term y = mica_onnx_node2(c, left > 0 ? NEW : OUT(0), "MatMul", a, b);
    if (scaled)
        y = mica_onnx_node2(c, --left > 0 ? NEW : OUT(0), "Mul", y, mica_onnx_put_number(c, alpha));
    if (bias)
        y = mica_onnx_node2(c, --left > 0 ? NEW : OUT(0), "Add", y, IN(2));
    if (act != MICA_NO_ACTIVATION)
        mica_onnx_put_activation(c, OUT(0), y, act, slope);
}

/* ---- Linear ---- */

static bool is_gemm(mica_onnx_writing *c)
{
    return c->in[0]->rank == 2 && ((const mica_matmul_opts *)c->opts)->activation == MICA_NO_ACTIVATION;
}

static void linear(mica_onnx_writing *c)
{
    const mica_matmul_opts *o = c->opts;
    bool bias = c->node->ins > 2 && c->node->in[2] != NONE;
    if (is_gemm(c))
        mica_onnx_put(c, OUT(0), "Gemm", TERMS(IN(0), IN(1), bias ? IN(2) : 0),
                      ATTRS(mica_onnx_int_attr("transB", 1)));
    else
        finish(c, IN(0), transposed(c, IN(1), 2), 1.0f, bias, o->activation, o->slope);
}

/* ---- Products ---- */

static bool is_product(mica_onnx_writing *c)
{
    const mica_matmul_opts *o = c->opts;
    return !o->transpose_a && !o->transpose_b && (o->alpha == 0.0f || o->alpha == 1.0f) &&
           o->activation == MICA_NO_ACTIVATION && c->node->in[2] == NONE;
}

static void matmul(mica_onnx_writing *c)
{
    const mica_matmul_opts *o = c->opts;
    mica_onnx_term a = o->transpose_a ? transposed(c, IN(0), c->in[0]->rank) : IN(0);
    mica_onnx_term b = o->transpose_b ? transposed(c, IN(1), c->in[1]->rank) : IN(1);
    finish(c, a, b, o->alpha, c->node->in[2] != NONE, o->activation, o->slope);
}

static void matvec(mica_onnx_writing *c) { mica_onnx_node2(c, OUT(0), "MatMul", IN(0), IN(1)); }

static void outer(mica_onnx_writing *c)
{
    mica_onnx_term a = mica_onnx_node2(c, NEW, "Unsqueeze", IN(0), mica_onnx_put_int(c, 1));
    mica_onnx_node2(c, OUT(0), "Mul", a, IN(1));
}

/* Weights of any float type, as f32. */
static void linear_rows(mica_onnx_writing *c)
{
    mica_onnx_term w = IN(1);
    if (mica_onnx_type_of(c->in[1]->dtype) == 0)
        mica_onnx_refuse(c, "block-quantized weights");
    if (c->in[1]->dtype != MICA_F32)
        w = mica_onnx_put_cast(c, NEW, w, 1);
    finish(c, IN(0), transposed(c, w, 2), 1.0f, c->node->in[2] != NONE, MICA_NO_ACTIVATION, 0.0f);
}

const mica_onnx_row mica_onnx_write_linear[] = {{&mica_op_linear, linear, is_gemm, true, false},
                                                {&mica_op_matmul, matmul, is_product, true, false},
                                                OWN(matvec, matvec),
                                                OWN(outer, outer),
                                                OWN(linear_rows, linear_rows),
                                                END_OF_ROWS};
