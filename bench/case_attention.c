/* Causal attention. size: { batch, heads, tokens, channels of a head } */
#include "bench/bench.h"

enum { OUT, Q, K, V, LSE };           /* forward */
enum { DOUT = 5, DQ, DK, DV };        /* backward, besides all of forward's */
enum { BATCH, HEADS, TOKENS, WIDTH }; /* size */

static mica_status make(bench_state *s, int count)
{
    for (int i = 0; i < count; i++)
        BENCH_TRY(bench_tensor(s, MICA_F32, 4, s->row->size));
    return MICA_OK;
}

static mica_status forward_setup(bench_state *s)
{
    const mica_index *size = s->row->size;
    BENCH_TRY(make(s, 4));
    BENCH_TRY(bench_tensor(s, MICA_F32, 3, size));
    /* Two products, scores and sums of values, over the pairs of a query and a key that it sees. */
    double pairs = 0.5 * (double)size[TOKENS] * (double)(size[TOKENS] + 1);
    s->flops = 2.0 * 2.0 * pairs * (double)(size[BATCH] * size[HEADS] * size[WIDTH]);
    return MICA_OK;
}

static mica_status forward(bench_state *s)
{
    mica_attention_opts opts = {.causal = true, .lse = &s->t[LSE]};
    return mica_attention(s->ctx, &s->t[OUT], &s->t[Q], &s->t[K], &s->t[V], &opts);
}

/* Four products, one for the gradient of each factor; computing the scores again is not counted. */
static mica_status backward_setup(bench_state *s)
{
    BENCH_TRY(forward_setup(s));
    BENCH_TRY(forward(s)); /* what backward reads */
    s->flops *= 2.0;
    return make(s, 4);
}

static mica_status backward(bench_state *s)
{
    mica_attention_opts opts = {.causal = true};
    mica_attention_grads grads = {&s->t[DQ], &s->t[DK], &s->t[DV]};
    mica_attention_saved saved = {&s->t[Q], &s->t[K], &s->t[V], &s->t[OUT], &s->t[LSE]};
    return mica_attention_backward(s->ctx, &grads, &s->t[DOUT], &saved, &opts);
}

static const bench_case cases[] = {
    {"attention_1x8x64x32_fwd", forward_setup, forward, {1, 8, 64, 32}},
    {"attention_1x8x64x32_bwd", backward_setup, backward, {1, 8, 64, 32}},
    {"attention_1x8x128x64_fwd", forward_setup, forward, {1, 8, 128, 64}},
    {"attention_1x8x128x64_bwd", backward_setup, backward, {1, 8, 128, 64}},
    {"attention_16x4x64x32_fwd", forward_setup, forward, {16, 4, 64, 32}},
    {"attention_16x4x64x32_bwd", backward_setup, backward, {16, 4, 64, 32}},
    {"attention_1x8x1024x64_fwd", forward_setup, forward, {1, 8, 1024, 64}},
    {"attention_1x8x1024x64_bwd", backward_setup, backward, {1, 8, 1024, 64}},
};

BENCH_FAMILY(attention, cases);
