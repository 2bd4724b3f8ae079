/* Parts of transformers: the gate of SwiGLU, multi-head attention and MLP as builders over other builders. */
#include <limits.h>

#include <mica/layers.h>

#include "layer/scope.h"
#include "node/entry.h"

/* ---- SwiGLU ---- */

mica_value mica_net_swiglu(mica_net *net, mica_value x, const mica_net_swiglu_opts *opts)
{
    mica_tensor t;
    mica_net_layer_begin(net, "swiglu", opts != NULL ? opts->name : NULL, x);
    if (mica_net_shape(net, &t, x) != MICA_OK)
        return mica_net_layer_end(net, 0);
    if (t.dtype != MICA_F32 || t.rank < 1 || t.dim[t.rank - 1] % 2 != 0)
        return mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected f32 with an even number of features");
    return mica_net_layer_end(net, mica_net_call(net, NULL, &mica_op_swiglu, &x, 1, NULL));
}

/* ---- Shapes ---- */

/* The last size of x, which has `rank` axes, or at least one for rank 0; 0 after a refusal. */
static mica_index features_of(mica_net *net, mica_value x, const char *kind, int rank)
{
    mica_tensor t;
    if (mica_net_status(net) != MICA_OK)
        return 0;
    if (mica_net_shape(net, &t, x) != MICA_OK)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "%s: value %d does not belong to this net", kind, x);
    if (t.rank < 1 || (rank != 0 && t.rank != rank))
        return mica_net_refuse(net, MICA_ERR_SHAPE, "%s: x has rank %d: expected %s", kind, t.rank,
                               rank != 0 ? "[N, T, C]" : "[..., C]");
    return t.dim[t.rank - 1];
}

/* Biases start at 0 where the weight's start is the caller's choice. */
static mica_value projection(mica_net *net, mica_value x, const char *name, mica_index units, bool no_bias,
                             mica_init init)
{
    mica_init zero = {MICA_INIT_CONSTANT, 0.0f}, usual = {MICA_INIT_DEFAULT, 0.0f};
    return mica_net_dense(net, x,
                          &(mica_net_dense_opts){.name = name,
                                                 .units = units,
                                                 .no_bias = no_bias,
                                                 .weight_init = init,
                                                 .bias_init = init.kind != MICA_INIT_DEFAULT ? zero : usual});
}

/* ---- Attention ---- */

mica_value mica_net_multi_head_attention(mica_net *net, mica_value x,
                                         const mica_net_multi_head_attention_opts *opts)
{
    static const mica_net_multi_head_attention_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    int heads = opts->heads != 0 ? opts->heads : 1, kv = opts->kv_heads != 0 ? opts->kv_heads : heads;
    mica_index width = features_of(net, x, "attention", 3);
    const int most = INT_MAX / 4; /* so that they can be added up */
    if (width == 0 || heads < 1 || kv < 1 || heads > most || kv > most || width % heads != 0)
        return mica_net_refuse(
            net, MICA_ERR_ARGUMENT,
            "attention: %td features do not divide evenly among %d heads, or the heads among %d key/value heads",
            width, heads, kv);
    mica_index features = width / heads;
    mica_enter_block(net, opts->name, "attention");
    x = projection(net, x, "qkv", (heads + 2 * kv) * features, opts->no_bias, opts->weight_init);
    if (opts->rotary)
        x = mica_net_rotary(net, x,
                            &(mica_net_rotary_opts){.name = "rotary",
                                                    .heads = heads + 2 * kv,
                                                    .turned = heads + kv,
                                                    .base = opts->rotary_base,
                                                    .interleaved = opts->rotary_interleaved});
    x = mica_net_attention(
        net, x,
        &(mica_net_attention_opts){
            .name = "heads", .heads = heads, .kv_heads = kv, .causal = opts->causal, .mask = opts->mask});
    x = projection(net, x, "out", width, opts->no_bias, opts->out_init);
    mica_net_leave(net);
    return x;
}

/* ---- MLP ---- */

mica_value mica_net_mlp(mica_net *net, mica_value x, const mica_net_mlp_opts *opts)
{
    static const mica_net_mlp_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_index width = features_of(net, x, "mlp", 0), hidden = opts->hidden;
    if (hidden == 0 && width <= PTRDIFF_MAX / 16)
        hidden = opts->swiglu ? (width * 8 / 3 + 31) / 32 * 32 : 4 * width;
    if (hidden < 1 || hidden > PTRDIFF_MAX / 2)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "mlp: hidden is %td", hidden);
    mica_enter_block(net, opts->name, "mlp");
    x = projection(net, x, "up", opts->swiglu ? 2 * hidden : hidden, opts->no_bias, opts->weight_init);
    if (opts->swiglu)
        x = mica_net_swiglu(net, x, &(mica_net_swiglu_opts){.name = "gate"});
    else
        x = mica_net_activation(net, x,
                                &(mica_net_activation_opts){.name = "act",
                                                            .kind = opts->activation != MICA_NO_ACTIVATION
                                                                        ? opts->activation
                                                                        : MICA_GELU});
    x = projection(net, x, "down", width, opts->no_bias, opts->out_init);
    mica_net_leave(net);
    return x;
}
