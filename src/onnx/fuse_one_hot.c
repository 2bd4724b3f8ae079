/* Patterns of products with rows of which one element is 1: the row of the other matrix that it picks.
 *
 *   MatMul(Cast(Equal(i, [0, 1, ..., K - 1])), w [K, N])    is w[i], and zeros where i is no row's number
 *
 * So frameworks without an operation for it write an embedding. The table that is taken from has a row of zeros at
 * either end, where indices below 0 and from K on are led. */
#include <math.h>

#include "onnx/fuse.h"
#include "onnx/moves.h"

/* Whether r is 0, 1, ..., K - 1 along its last axis, of the type of i, whose last axis has one element. */
static bool counts_up(mica_onnx_importing *n, mica_onnx_ref i, mica_onnx_ref r, mica_index k)
{
    const mica_tensor *index = mica_onnx_shape(n, i), *numbers = mica_onnx_shape(n, r);
    if ((index->dtype != MICA_I32 && index->dtype != MICA_I64) || numbers->dtype != index->dtype ||
        index->rank < 2 || numbers->rank < 1 || numbers->rank > index->rank ||
        index->dim[index->rank - 1] != 1 || numbers->dim[numbers->rank - 1] != k ||
        (mica_index)mica_tensor_count(numbers) != k)
        return false;
    for (mica_index e = 0; e < k; e++)
        if ((numbers->dtype == MICA_I32 ? ((const int32_t *)numbers->data)[e]
                                        : ((const int64_t *)numbers->data)[e]) != e)
            return false;
    return true;
}

/* Zeros times anything else are no zeros. */
static bool is_finite(const mica_tensor *t)
{
    for (size_t e = 0; e < mica_tensor_count(t); e++)
        if (!isfinite(((const float *)t->data)[e]))
            return false;
    return true;
}

/* The bias as a vector; 0 if it is none that could be added to the table. */
static mica_onnx_ref bias_of(mica_onnx_importing *n, mica_onnx_ref b, int rank, mica_index columns)
{
    const mica_tensor *t = mica_onnx_shape(n, b);
    if (t->dtype != MICA_F32 || t->rank < 1 || t->rank > rank || t->dim[t->rank - 1] != columns ||
        (mica_index)mica_tensor_count(t) != columns)
        return 0;
    return mica_onnx_reshape(n, b, 1, &columns);
}

/* i in rows of the table: row 1 is w's first. */
static mica_onnx_ref rows_of(mica_onnx_importing *n, mica_onnx_ref i, mica_index k)
{
    mica_index dims[MICA_MAX_RANK] = {0};
    mica_dtype dtype = mica_onnx_shape(n, i)->dtype;
    mica_onnx_ref at = mica_onnx_reshape(n, i, mica_onnx_shape(n, i)->rank - 1, dims);
    at = mica_onnx_op2(n, "max", at, mica_onnx_scalar(n, dtype, -1), NULL);
    at = mica_onnx_op2(n, "min", at, mica_onnx_scalar(n, dtype, (double)k), NULL);
    return mica_onnx_op2(n, "add", at, mica_onnx_scalar(n, dtype, 1), NULL);
}

static bool take_rows(mica_onnx_importing *n, const mica_onnx_match *m)
{
    mica_onnx_ref i = mica_onnx_matched(m, 'i'), r = mica_onnx_matched(m, 'r'), w = mica_onnx_matched(m, 'w'),
                  b = mica_onnx_matched(m, 'b');
    mica_onnx_importing cast = mica_onnx_as_node(n, m, 'c');
    const mica_tensor *weights = mica_onnx_shape(n, w);
    enum { FLOAT = 1 };
    if (mica_onnx_int(&cast, "to", 0) != FLOAT || weights->dtype != MICA_F32 || weights->rank != 2 ||
        mica_onnx_is_known(n, i) || !counts_up(n, i, r, weights->dim[0]) || !is_finite(weights))
        return false;
    mica_index columns = weights->dim[1];
    mica_onnx_ref bias = b != 0 ? bias_of(n, b, mica_onnx_shape(n, i)->rank, columns) : 0;
    if (b != 0 && bias == 0)
        return false;
    mica_onnx_ref zeros = mica_onnx_op2(n, "mul", mica_onnx_part(n, w, 0, 0, 1),
                                        mica_onnx_scalar(n, MICA_F32, 0), NULL);
    mica_onnx_ref table = mica_onnx_op(n, "concat", (mica_onnx_ref[]){zeros, w, zeros}, 3,
                                       &(mica_axis_opts){0});
    if (bias != 0)
        table = mica_onnx_op2(n, "add", table, bias, NULL);
    mica_onnx_give(n, 0,
                   mica_onnx_op2(n, "take", table, rows_of(n, i, weights->dim[0]), &(mica_axis_opts){0}));
    return true;
}

#define ONE_HOT(equal) "MatMul(c:Cast(" equal "),#w)"

const mica_onnx_pattern mica_onnx_one_hot_patterns[] = {
    {"Add(" ONE_HOT("Equal(i,#r)") ",#b)", take_rows},
    {"Add(" ONE_HOT("Equal(#r,i)") ",#b)", take_rows},
    {ONE_HOT("Equal(i,#r)"), take_rows},
    {ONE_HOT("Equal(#r,i)"), take_rows},
    {NULL, NULL},
};
