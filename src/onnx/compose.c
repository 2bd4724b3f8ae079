/* Calls that several families of operators are made of. */
#include "onnx/compose.h"

#include <string.h>

mica_onnx_ref mica_onnx_part(mica_onnx_importing *n, mica_onnx_ref ref, int axis, mica_index start,
                             mica_index stop)
{
    mica_slice_range_opts opts = {.axis = axis, .start = start, .stop = stop};
    if (start == 0 && stop == mica_onnx_shape(n, ref)->dim[axis])
        return ref;
    return mica_onnx_op1(n, "slice", ref, &opts);
}

mica_onnx_ref mica_onnx_join(mica_onnx_importing *n, mica_onnx_ref *refs, int count, int axis)
{
    mica_axis_opts opts = {.axis = axis};
    while (count > 1) {
        int groups = 0;
        for (int i = 0; i < count; i += MICA_OP_INS) {
            int each = count - i < MICA_OP_INS ? count - i : MICA_OP_INS;
            refs[groups++] = each == 1 ? refs[i] : mica_onnx_op(n, "concat", refs + i, each, &opts);
        }
        count = groups;
    }
    return count == 1 ? refs[0] : 0;
}

mica_onnx_ref mica_onnx_with_axis(mica_onnx_importing *n, mica_onnx_ref ref, int axis)
{
    return mica_onnx_op1(n, "unsqueeze", ref, &(mica_axis_opts){axis});
}

mica_onnx_ref mica_onnx_without_axis(mica_onnx_importing *n, mica_onnx_ref ref, int axis)
{
    return mica_onnx_op1(n, "squeeze", ref, &(mica_axis_opts){axis});
}

mica_onnx_ref mica_onnx_by_channel(mica_onnx_importing *n, mica_onnx_ref ref, int rank)
{
    mica_index dims[MICA_MAX_RANK];
    const mica_tensor *t = mica_onnx_shape(n, ref);
    if (ref == 0 || rank <= 2)
        return ref;
    for (int k = 1; k < rank; k++)
        dims[k - 1] = 1;
    dims[0] = t->rank > 0 ? t->dim[0] : 1;
    return mica_onnx_reshape(n, ref, rank - 1, dims);
}

bool mica_onnx_has_shape(mica_onnx_importing *n, mica_onnx_ref ref, int rank, const mica_index *dims)
{
    const mica_tensor *t = mica_onnx_shape(n, ref);
    bool same = t->rank == rank;
    for (int k = 0; same && k < rank; k++)
        same = t->dim[k] == dims[k];
    return same;
}

mica_onnx_ref mica_onnx_broadcast(mica_onnx_importing *n, mica_onnx_ref ref, int rank, const mica_index *dims)
{
    mica_shape_opts opts = {.rank = rank};
    if (mica_onnx_has_shape(n, ref, rank, dims))
        return ref;
    memcpy(opts.dims, dims, (size_t)rank * sizeof *dims);
    return mica_onnx_op1(n, "broadcast_to", ref, &opts);
}
