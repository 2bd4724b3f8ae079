/* Transformer blocks and a training step of a GPT, as nets. size:
 * { batch, tokens, channels, heads, layers, vocabulary } */
#include "bench/bench.h"

enum { BATCH, TOKENS, WIDTH, HEADS, LAYERS, VOCABULARY }; /* size */
enum { IN, TARGET };                                      /* tensors: what the net's inputs are set to */

/* One block, forward: four products of [C, C] and an MLP of eight, and causal attention's two. */
static double block_flops(const mica_index *size)
{
    double tokens = (double)size[TOKENS], width = (double)size[WIDTH];
    double attention = 2.0 * 2.0 * 0.5 * tokens * (tokens + 1.0) * width;
    return (double)size[BATCH] * (24.0 * tokens * width * width + attention);
}

/* A step's memory is used again once it has been read: inputs are set every time. */
static mica_status set_input(bench_state *s, const char *name, int from)
{
    mica_tensor t;
    BENCH_TRY(mica_net_tensor(s->net, &t, name));
    return mica_copy(s->ctx, &t, &s->t[from]);
}

static mica_status start(bench_state *s, const mica_compile_opts *opts)
{
    BENCH_TRY(mica_net_compile(s->net, opts));
    BENCH_TRY(mica_net_bind(s->net, NULL, 0));
    return mica_net_initialize(s->net, 1);
}

/* ---- One block ---- */

static mica_status block_setup(bench_state *s, bool train)
{
    const mica_index *size = s->row->size;
    BENCH_TRY(bench_tensor(s, MICA_F32, 3, size));
    BENCH_TRY(bench_tensor(s, MICA_F32, 3, size));
    BENCH_TRY(mica_net_create(s->ctx, &s->net));
    mica_value x = mica_net_input(s->net, "x", MICA_F32, 3, size);
    mica_net_transformer_block_opts opts = {.attention = {.heads = (int)size[HEADS], .causal = true}};
    mica_value y = mica_net_transformer_block(s->net, x, &opts);
    mica_net_output(s->net, "y", y);
    if (train)
        mica_net_mse(s->net, y, mica_net_input(s->net, "target", MICA_F32, 3, size), NULL);
    s->flops = block_flops(size) * (train ? 3.0 : 1.0);
    return start(s, &(mica_compile_opts){.train = train});
}

static mica_status forward_setup(bench_state *s) { return block_setup(s, false); }
static mica_status both_setup(bench_state *s) { return block_setup(s, true); }

static mica_status forward(bench_state *s)
{
    BENCH_TRY(set_input(s, "x", IN));
    return mica_net_forward(s->net);
}

static mica_status both(bench_state *s)
{
    BENCH_TRY(set_input(s, "x", IN));
    BENCH_TRY(set_input(s, "target", TARGET));
    return mica_net_gradients(s->net, NULL);
}

/* ---- GPT ---- */

static mica_status gpt_setup(bench_state *s)
{
    const mica_index *size = s->row->size;
    for (int i = 0; i < 2; i++) {
        BENCH_TRY(bench_tensor(s, MICA_I32, 2, size));
        for (mica_index j = 0; j < size[BATCH] * size[TOKENS]; j++)
            ((int32_t *)s->t[i].data)[j] = (int32_t)((7 * j + i) % size[VOCABULARY]);
    }
    BENCH_TRY(mica_net_create(s->ctx, &s->net));
    mica_value x = mica_net_input(s->net, "x", MICA_I32, 2, size);
    mica_value target = mica_net_input(s->net, "target", MICA_I32, 2, size);
    mica_net_gpt_opts opts = {.vocabulary = size[VOCABULARY],
                              .width = size[WIDTH],
                              .layers = (int)size[LAYERS],
                              .heads = (int)size[HEADS]};
    mica_net_cross_entropy(s->net, mica_net_gpt(s->net, x, &opts), target, NULL);
    double head = 2.0 * (double)(size[BATCH] * size[TOKENS] * size[WIDTH] * size[VOCABULARY]);
    s->flops = 3.0 * ((double)size[LAYERS] * block_flops(size) + head);
    mica_optimizer adamw = {.kind = MICA_ADAMW, .weight_decay = 0.1f, .clip_norm = 1.0f};
    return start(s, &(mica_compile_opts){.train = true, .optimizer = &adamw});
}

static mica_status gpt_step(bench_state *s)
{
    BENCH_TRY(set_input(s, "x", IN));
    BENCH_TRY(set_input(s, "target", TARGET));
    return mica_train_step(s->net, 1e-4f);
}

static const bench_case cases[] = {
    {"transformer_block_1x64x256_h8_fwd", forward_setup, forward, {1, 64, 256, 8}},
    {"transformer_block_1x64x256_h8_both", both_setup, both, {1, 64, 256, 8}},
    {"transformer_block_1x128x512_h8_fwd", forward_setup, forward, {1, 128, 512, 8}},
    {"transformer_block_1x128x512_h8_both", both_setup, both, {1, 128, 512, 8}},
    {"gpt_step_16x64_d128_h4_l4", gpt_setup, gpt_step, {16, 64, 128, 4, 4, 256}},
};

BENCH_FAMILY(transformer, cases);
