/* Sums and products of two values, with broadcasting. */
#include <mica/layers.h>

#include "node/gradient.h"
#include "tensor/tensor.h"

/* Puts a value that has the result's shape first, where it can be written over. */
static mica_value add_pair(mica_net *net, const char *kind, const mica_op *op, mica_value a, mica_value b,
                           const mica_net_pair_opts *opts)
{
    mica_tensor ta, tb, swap;
    bool known = mica_net_shape(net, &ta, a) == MICA_OK && mica_net_shape(net, &tb, b) == MICA_OK;
    mica_value in[] = {a, b};
    if (known && mica_tensor_count(&tb) > mica_tensor_count(&ta)) {
        in[0] = b, in[1] = a;
        swap = ta, ta = tb, tb = swap;
    }
    int rank;
    mica_index dims[MICA_MAX_RANK];
    mica_net_layer_begin(net, kind, opts != NULL ? opts->name : NULL, in[0]);
    if (known && (ta.dtype != MICA_F32 || tb.dtype != MICA_F32))
        return mica_net_layer_fail(net, MICA_ERR_DTYPE, "expected f32 and f32, got %s and %s",
                                   mica_dtype_name(ta.dtype), mica_dtype_name(tb.dtype));
    if (known && !mica_common_shape(&ta, &tb, &rank, dims))
        return mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected a shape that broadcasts with it, got %s",
                                   MICA_SHAPE(&tb));
    /* If something is not known, this says what. */
    return mica_net_layer_end(net, mica_net_call(net, NULL, op, in, 2, NULL));
}

mica_value mica_net_plus(mica_net *net, mica_value a, mica_value b, const mica_net_pair_opts *opts)
{
    return add_pair(net, "add", &mica_op_add, a, b, opts);
}

mica_value mica_net_times(mica_net *net, mica_value a, mica_value b, const mica_net_pair_opts *opts)
{
    return add_pair(net, "multiply", &mica_op_mul, a, b, opts);
}
