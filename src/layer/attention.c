/* Attention over packed queries, keys and values. */
#include <mica/layers.h>

#include "node/entry.h"

mica_value mica_net_attention(mica_net *net, mica_value x, const mica_net_attention_opts *opts)
{
    static const mica_net_attention_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_tensor t;
    mica_net_layer_begin(net, "attention", opts->name, x);
    if (mica_net_shape(net, &t, x) != MICA_OK)
        return mica_net_layer_end(net, 0);
    if (t.dtype != MICA_F32 || t.rank != 3)
        return mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected f32 [N, T, features]");
    mica_index heads = opts->heads != 0 ? opts->heads : 1, kv = opts->kv_heads != 0 ? opts->kv_heads : heads;
    if (heads < 1 || kv < 1 || heads % kv != 0)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT,
                                   "%td heads share %td key/value heads: expected a divisor of the heads",
                                   heads, kv);
    if (t.dim[2] % (heads + 2 * kv) != 0)
        return mica_net_layer_fail(net, MICA_ERR_SHAPE,
                                   "expected features that divide evenly among %td heads, got %td",
                                   heads + 2 * kv, t.dim[2]);
    mica_attention_packed_opts how = {
        .heads = opts->heads, .kv_heads = opts->kv_heads, .causal = opts->causal, .scale = opts->scale};
    mica_value in[] = {x, opts->mask};
    return mica_net_layer_end(net, mica_net_call(net, NULL, &mica_op_attention_packed, in, 2, &how));
}
