/* Products of matrices. */
#include <string.h>

#include "node/entry.h"
#include "onnx/compose.h"

/* ---- MatMul: as numpy.matmul ---- */

/* A vector becomes a matrix; its axis is taken out of the product again. */
static void matmul(mica_onnx_importing *n)
{
    mica_onnx_ref a = n->in[0], b = n->in[1];
    bool row = mica_onnx_shape(n, a)->rank == 1, column = mica_onnx_shape(n, b)->rank == 1;
    if (mica_onnx_shape(n, a)->rank == 0 || mica_onnx_shape(n, b)->rank == 0)
        (void)mica_onnx_bad(n, "a number, expected vectors or matrices");
    a = row ? mica_onnx_add_axis(n, a, 0) : a;
    b = column ? mica_onnx_add_axis(n, b, 1) : b;
    mica_onnx_ref y = mica_onnx_typed(n, "matmul", (mica_onnx_ref[]){a, b}, 2, NULL);
    int rank = mica_onnx_shape(n, y)->rank;
    y = column ? mica_onnx_drop_axis(n, y, rank - 1) : y;
    y = row ? mica_onnx_drop_axis(n, y, rank - 2) : y;
    mica_onnx_give_like(n, 0, y, n->in[0]);
}

/* ---- Gemm: alpha A B + beta C ---- */

/* C as a bias [N] that is added within the product; 0: it has another shape. */
static mica_onnx_ref bias_of(mica_onnx_importing *n, mica_onnx_ref c, mica_index columns)
{
    const mica_tensor *t = mica_onnx_shape(n, c);
    bool is_row = t->rank > 0 && t->rank <= 2 && t->dim[t->rank - 1] == columns &&
                  (t->rank == 1 || t->dim[0] == 1);
    return !is_row ? 0 : t->rank == 1 ? c : mica_onnx_reshape(n, c, 1, &columns);
}

static mica_onnx_ref scaled(mica_onnx_importing *n, mica_onnx_ref ref, float by)
{
    if (ref == 0 || by == 1.0f)
        return ref;
    mica_onnx_ref factor = mica_onnx_scalar(n, mica_onnx_shape(n, ref)->dtype, by);
    return mica_onnx_typed(n, "mul", (mica_onnx_ref[]){ref, factor}, 2, NULL);
}

static void gemm(mica_onnx_importing *n)
{
    float alpha = mica_onnx_float(n, "alpha", 1.0f), beta = mica_onnx_float(n, "beta", 1.0f);
    mica_matmul_opts opts = {.transpose_a = mica_onnx_int(n, "transA", 0) != 0,
                             .transpose_b = mica_onnx_int(n, "transB", 0) != 0};
    mica_onnx_ref a = mica_onnx_f32(n, 0), b = mica_onnx_f32(n, 1), c = scaled(n, mica_onnx_f32(n, 2), beta);
    bool f32 = mica_onnx_shape(n, a)->dtype == MICA_F32;
    const mica_tensor *shape = mica_onnx_shape(n, b);
    if (mica_onnx_shape(n, a)->rank != 2 || shape->rank != 2) {
        (void)mica_onnx_bad(n, "inputs of ranks %d and %d, expected 2 and 2", mica_onnx_shape(n, a)->rank,
                            shape->rank);
        return;
    }
    mica_index columns = shape->dim[opts.transpose_b ? 0 : 1];
    mica_onnx_ref bias = f32 && alpha == 1.0f && c != 0 ? bias_of(n, c, columns) : 0, y;
    if (f32 && alpha == 1.0f && !opts.transpose_a && opts.transpose_b && (bias != 0 || c == 0)) {
        y = mica_onnx_call(n, &mica_op_linear, (mica_onnx_ref[]){a, b, bias}, 3, NULL);
    } else if (f32) {
        y = mica_onnx_op(n, "matmul", (mica_onnx_ref[]){a, b, bias}, 3, &opts);
    } else { /* other types know no turned inputs */
        a = opts.transpose_a ? mica_onnx_permute(n, a, (int[]){1, 0}) : a;
        b = opts.transpose_b ? mica_onnx_permute(n, b, (int[]){1, 0}) : b;
        y = mica_onnx_op2(n, "matmul", a, b, NULL);
    }
    y = scaled(n, y, alpha);
    if (c != 0 && bias == 0)
        y = mica_onnx_typed(n, "add", (mica_onnx_ref[]){y, c}, 2, NULL);
    mica_onnx_give_like(n, 0, y, n->in[0]);
}

const mica_onnx_operator mica_onnx_matmul_operators[] = {
    {"MatMul", 1, matmul}, {"Gemm", 7, gemm}, {NULL, 0, NULL}};
