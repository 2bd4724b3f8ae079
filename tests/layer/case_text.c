/* Cases of embeddings, positions and attention. */
#include "layer/layer_case.h"

static mica_value build_embedding(mica_net *net, test_random *r)
{
    mica_index dims[] = {test_int(r, 1, 4), test_int(r, 1, 5)}, rows = test_int(r, 1, 9);
    mica_value tokens = layer_indices(net, "tokens", test_int(r, 1, 2), dims, (int)rows);
    return mica_net_embedding(
        net, tokens, &(mica_net_embedding_opts){.name = "embed", .rows = rows, .width = test_int(r, 1, 6)});
}

LAYER_CASE(embedding) = {.build = build_embedding};

/* The head of a text model shares the embedding's weight: both add to its gradient. */
static mica_value build_tied(mica_net *net, test_random *r)
{
    mica_index dims[] = {test_int(r, 1, 3), test_int(r, 1, 5)}, rows = test_int(r, 2, 9);
    mica_value tokens = layer_indices(net, "tokens", 2, dims, (int)rows);
    mica_value x = mica_net_embedding(
        net, tokens, &(mica_net_embedding_opts){.name = "embed", .rows = rows, .width = test_int(r, 1, 6)});
    x = mica_net_activation(net, x, &(mica_net_activation_opts){.kind = MICA_TANH});
    return mica_net_dense(
        net, x, &(mica_net_dense_opts){.units = rows, .no_bias = true, .share_weight = "embed.weight"});
}

LAYER_CASE(embedding_tied) = {.build = build_tied};

static mica_value build_positions(mica_net *net, test_random *r)
{
    mica_index dims[] = {test_int(r, 1, 3), test_int(r, 1, 4), test_int(r, 1, 6)};
    int rank = test_int(r, 2, 3);
    mica_value x = layer_leaf(net, "x", rank, dims);
    mica_net_positions_opts opts = {.name = "positions", .rows = dims[rank - 2] + test_int(r, 0, 2)};
    return test_chance(r, 60) ? mica_net_learned_positions(net, x, &opts)
                              : mica_net_sinusoidal_positions(net, x, &opts);
}

LAYER_CASE(positions) = {.build = build_positions, .draws = 10};

static mica_value build_rotary(mica_net *net, test_random *r)
{
    int heads = test_int(r, 1, 3), turned = test_int(r, 1, heads), pairs = test_int(r, 1, 3);
    mica_index features = 2 * pairs + test_int(r, 0, 1), dims[] = {2, test_int(r, 1, 5), heads * features};
    mica_value x = layer_leaf(net, "x", 3, dims);
    return mica_net_rotary(net, x,
                           &(mica_net_rotary_opts){.heads = heads,
                                                   .turned = turned,
                                                   .width = 2 * test_int(r, 1, pairs),
                                                   .interleaved = test_chance(r, 50)});
}

LAYER_CASE(rotary) = {.build = build_rotary};

static mica_value build_attention(mica_net *net, test_random *r)
{
    int kv = test_int(r, 1, 2), heads = kv * test_int(r, 1, 2), features = test_int(r, 1, 5);
    mica_index dims[] = {test_int(r, 1, 2), test_int(r, 1, 6), (heads + 2 * kv) * features};
    mica_value x = layer_leaf(net, "x", 3, dims);
    return mica_net_attention(net, x,
                              &(mica_net_attention_opts){.heads = heads,
                                                         .kv_heads = kv,
                                                         .causal = test_chance(r, 50),
                                                         .scale = test_chance(r, 50) ? 0.0f : 0.7f});
}

LAYER_CASE(attention) = {.build = build_attention, .draws = 10};

/* A mask of whole numbers is added to the scores. */
static mica_value build_masked(mica_net *net, test_random *r)
{
    mica_index batch = test_int(r, 1, 2), length = test_int(r, 1, 5), dims[] = {batch, length, 3 * 2 * 4};
    mica_value x = layer_leaf(net, "x", 3, dims);
    mica_value mask = layer_indices(net, "mask", 4, (mica_index[]){batch, 1, length, length}, 3);
    mask = mica_net_op(net, NULL, "copy", &mask, 1, &(mica_copy_opts){.cast = true, .dtype = MICA_F32});
    return mica_net_attention(net, x, &(mica_net_attention_opts){.heads = 2, .mask = mask});
}

LAYER_CASE(attention_masked) = {.build = build_masked};

static mica_value build_multi_head(mica_net *net, test_random *r)
{
    int kv = test_int(r, 1, 2), heads = kv * test_int(r, 1, 2);
    mica_index dims[] = {test_int(r, 1, 2), test_int(r, 1, 5), heads * 2 * test_int(r, 1, 2)};
    mica_value x = layer_leaf(net, "x", 3, dims);
    return mica_net_multi_head_attention(
        net, x,
        &(mica_net_multi_head_attention_opts){.heads = heads,
                                              .kv_heads = kv,
                                              .causal = test_chance(r, 50),
                                              .no_bias = test_chance(r, 30),
                                              .rotary = test_chance(r, 50),
                                              .rotary_interleaved = test_chance(r, 50)});
}

LAYER_CASE(multi_head_attention) = {.build = build_multi_head, .draws = 8};

static mica_value build_swiglu(mica_net *net, test_random *r)
{
    mica_index dims[] = {test_int(r, 1, 3), test_int(r, 1, 3), 2 * test_int(r, 1, 6)};
    return mica_net_swiglu(net, layer_leaf(net, "x", 3, dims), NULL);
}

LAYER_CASE(swiglu) = {.build = build_swiglu};

static mica_value build_mlp(mica_net *net, test_random *r)
{
    mica_index dims[] = {test_int(r, 1, 3), test_int(r, 1, 6)};
    mica_value x = layer_leaf(net, "x", 2, dims);
    return mica_net_mlp(net, x,
                        &(mica_net_mlp_opts){.hidden = test_int(r, 1, 5),
                                             .swiglu = test_chance(r, 50),
                                             .no_bias = test_chance(r, 30)});
}

LAYER_CASE(mlp) = {.build = build_mlp};

static mica_value build_block(mica_net *net, test_random *r)
{
    int kv = test_int(r, 1, 2), heads = kv * test_int(r, 1, 2);
    mica_index dims[] = {test_int(r, 1, 2), test_int(r, 1, 4), heads * 2 * test_int(r, 1, 2)};
    mica_value x = layer_leaf(net, "x", 3, dims);
    bool llama = test_chance(r, 50);
    mica_net_transformer_block_opts opts = {
        .attention = {.heads = heads, .kv_heads = kv, .causal = test_chance(r, 70), .rotary = llama},
        .mlp = {.hidden = test_int(r, 1, 5), .swiglu = llama, .no_bias = llama},
        .rms_norm = llama,
        .eps = 0.05f, /* tame where a row is nearly constant */
        .dropout = test_chance(r, 30) ? 0.3f : 0.0f};
    return mica_net_transformer_block(net, x, &opts);
}

LAYER_CASE(transformer_block) = {.build = build_block, .draws = 8};

static mica_value build_gpt(mica_net *net, test_random *r)
{
    mica_index dims[] = {test_int(r, 1, 2), test_int(r, 1, 4)};
    mica_value tokens = layer_indices(net, "tokens", 2, dims, 6);
    mica_net_gpt_opts opts = {.name = test_chance(r, 50) ? "gpt" : NULL,
                              .kind = test_chance(r, 50) ? MICA_LLAMA : MICA_GPT2,
                              .vocabulary = 6,
                              .width = 8,
                              .layers = 2,
                              .heads = 2,
                              .kv_heads = test_int(r, 1, 2),
                              .hidden = 6,
                              .positions = 5,
                              .eps = 0.05f,
                              .tied = test_chance(r, 50)};
    return mica_net_gpt(net, tokens, &opts);
}

LAYER_CASE(gpt) = {.build = build_gpt};
