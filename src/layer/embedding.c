/* Embedding: rows of a table by index. */
#include <mica/layers.h>

#include "node/entry.h"

mica_value mica_net_embedding(mica_net *net, mica_value indices, const mica_net_embedding_opts *opts)
{
    static const mica_net_embedding_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_tensor t;
    mica_net_layer_begin(net, "embedding", opts->name, indices);
    if (mica_net_shape(net, &t, indices) != MICA_OK)
        return mica_net_layer_end(net, 0);
    if (t.dtype != MICA_I32 && t.dtype != MICA_I64)
        return mica_net_layer_fail(net, MICA_ERR_DTYPE, "expected i32 or i64 indices, got %s",
                                   mica_dtype_name(t.dtype));
    if (t.rank >= MICA_MAX_RANK)
        return mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected indices of rank %d or less, got rank %d",
                                   MICA_MAX_RANK - 1, t.rank);
    if (opts->rows < 1 || opts->width < 1)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "rows is %td, width is %td: expected 1 or more",
                                   opts->rows, opts->width);
    mica_init init = opts->weight_init.kind != MICA_INIT_DEFAULT ? opts->weight_init
                                                                 : (mica_init){MICA_INIT_NORMAL, 1.0f};
    mica_value weight = mica_net_learned(net, "weight", 2, (mica_index[]){opts->rows, opts->width}, init);
    /* At first every row counts as used, whatever the gradient holds. */
    mica_value used = mica_net_kept(net, "used", MICA_KEPT_PRIVATE, MICA_U8, 1, &opts->rows, 1.0f);
    mica_value in[] = {weight, indices, used};
    return mica_net_layer_end(net, mica_net_call(net, NULL, &mica_op_embedding, in, 3, NULL));
}
