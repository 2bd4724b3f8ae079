/* Transformer blocks, and decoders made of them. */
#include <math.h>

#include <mica/layers.h>

#include "base/format.h"
#include "layer/scope.h"

/* ---- Blocks ---- */

static mica_value norm(mica_net *net, mica_value x, const char *name, bool rms, bool no_bias, float eps)
{
    mica_net_layer_norm_opts opts = {.name = name, .eps = eps, .no_bias = no_bias};
    return rms ? mica_net_rms_norm(net, x, &opts) : mica_net_layer_norm(net, x, &opts);
}

/* x + dropout(change) */
static mica_value residual(mica_net *net, mica_value x, mica_value change, float dropout, const char *drop,
                           const char *sum)
{
    if (dropout != 0.0f)
        change = mica_net_dropout(net, change, &(mica_net_dropout_opts){.name = drop, .rate = dropout});
    return mica_net_plus(net, change, x, &(mica_net_pair_opts){.name = sum});
}

mica_value mica_net_transformer_block(mica_net *net, mica_value x,
                                      const mica_net_transformer_block_opts *opts)
{
    static const mica_net_transformer_block_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_net_multi_head_attention_opts attention = opts->attention;
    mica_net_mlp_opts mlp = opts->mlp;
    attention.name = attention.name != NULL ? attention.name : "attention";
    mlp.name = mlp.name != NULL ? mlp.name : "mlp";
    mica_enter_block(net, opts->name, "transformer");
    mica_value y = norm(net, x, "norm1", opts->rms_norm, mlp.no_bias, opts->eps);
    y = mica_net_multi_head_attention(net, y, &attention);
    mica_value h = residual(net, x, y, opts->dropout, "dropout1", "add1");
    y = norm(net, h, "norm2", opts->rms_norm, mlp.no_bias, opts->eps);
    y = mica_net_mlp(net, y, &mlp);
    y = residual(net, h, y, opts->dropout, "dropout2", "add2");
    mica_net_leave(net);
    return y;
}

/* ---- GPT ---- */

static mica_net_transformer_block_opts gpt_block(const mica_net_gpt_opts *o)
{
    bool llama = o->kind == MICA_LLAMA;
    mica_init weight = {MICA_INIT_NORMAL, 0.02f};
    mica_init out = {MICA_INIT_NORMAL, 0.02f / sqrtf(2.0f * (float)o->layers)};
    return (mica_net_transformer_block_opts){.attention = {.heads = o->heads,
                                                           .kv_heads = o->kv_heads,
                                                           .causal = true,
                                                           .no_bias = o->no_bias || llama,
                                                           .rotary = llama,
                                                           .rotary_base = o->rotary_base,
                                                           .weight_init = weight,
                                                           .out_init = out},
                                             .mlp = {.hidden = o->hidden,
                                                     .activation = MICA_GELU_TANH,
                                                     .swiglu = llama,
                                                     .no_bias = o->no_bias || llama,
                                                     .weight_init = weight,
                                                     .out_init = out},
                                             .rms_norm = llama,
                                             .eps = o->eps != 0.0f ? o->eps : 1e-5f,
                                             .dropout = o->dropout};
}

static mica_value embed(mica_net *net, mica_value tokens, const mica_net_gpt_opts *o, mica_init init)
{
    mica_value x = mica_net_embedding(
        net, tokens,
        &(mica_net_embedding_opts){
            .name = "tokens", .rows = o->vocabulary, .width = o->width, .weight_init = init});
    if (o->kind == MICA_GPT2)
        x = mica_net_learned_positions(net, x,
                                       &(mica_net_positions_opts){.name = "positions", .rows = o->positions});
    if (o->dropout != 0.0f)
        x = mica_net_dropout(net, x, &(mica_net_dropout_opts){.name = "dropout", .rate = o->dropout});
    return x;
}

static mica_value gpt(mica_net *net, mica_value tokens, const mica_net_gpt_opts *o)
{
    mica_init init = {MICA_INIT_NORMAL, 0.02f};
    int embedding = mica_net_layers(net);
    mica_value x = embed(net, tokens, o, init);
    mica_net_transformer_block_opts block = gpt_block(o);
    for (int i = 0; i < o->layers; i++) {
        char name[32];
        mica_format(name, sizeof name, "block%d", i);
        block.name = name;
        x = mica_net_transformer_block(net, x, &block);
    }
    x = norm(net, x, "norm", block.rms_norm, block.mlp.no_bias, block.eps);
    const char *layer = "";
    char shared[512]; /* the longest name, and what belongs to it */
    if (mica_net_status(net) == MICA_OK)
        (void)mica_net_layer(net, &layer, NULL, NULL, embedding);
    mica_format(shared, sizeof shared, "%s.weight", layer);
    return mica_net_dense(net, x,
                          &(mica_net_dense_opts){.name = "head",
                                                 .units = o->vocabulary,
                                                 .no_bias = true,
                                                 .weight_init = init,
                                                 .share_weight = o->tied ? shared : NULL});
}

mica_value mica_net_gpt(mica_net *net, mica_value tokens, const mica_net_gpt_opts *opts)
{
    if (opts == NULL || opts->layers < 1 || opts->heads < 1 || opts->width < 1 || opts->vocabulary < 1)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT,
                               "a gpt needs layers, heads, width and vocabulary of at least 1");
    if (opts->kind != MICA_GPT2 && opts->kind != MICA_LLAMA)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "unknown gpt kind %d", (int)opts->kind);
    if (opts->name != NULL)
        mica_net_enter(net, opts->name);
    mica_value logits = gpt(net, tokens, opts);
    if (opts->name != NULL)
        mica_net_leave(net);
    return logits;
}
