/* Nets that write token by token, against the same nets run on the whole window for each token. */
#include <math.h>
#include <string.h>

#include "oom.h"

enum { V = 23, T = 12, WIDTH = 16, TOKENS = 60 };

typedef mica_value build_fn(mica_net *net, mica_value tokens);

static mica_value embed(mica_net *net, mica_value tokens)
{
    return mica_net_embedding(net, tokens, &(mica_net_embedding_opts){.rows = V, .width = WIDTH});
}

static mica_value head(mica_net *net, mica_value x)
{
    return mica_net_dense(net, x, &(mica_net_dense_opts){.name = "head", .units = V});
}

static mica_value gpt2(mica_net *net, mica_value tokens)
{
    return mica_net_gpt(net, tokens,
                        &(mica_net_gpt_opts){.kind = MICA_GPT2,
                                             .layers = 2,
                                             .heads = 4,
                                             .width = WIDTH,
                                             .vocabulary = V,
                                             .positions = T + 3,
                                             .dropout = 0.1f,
                                             .tied = true});
}

static mica_value llama(mica_net *net, mica_value tokens)
{
    return mica_net_gpt(
        net, tokens,
        &(mica_net_gpt_opts){
            .kind = MICA_LLAMA, .layers = 3, .heads = 4, .kv_heads = 2, .width = WIDTH, .vocabulary = V});
}

static mica_value one_layer(mica_net *net, mica_value tokens)
{
    mica_value x = mica_net_multi_head_attention(
        net, embed(net, tokens),
        &(mica_net_multi_head_attention_opts){
            .heads = 4, .kv_heads = 2, .causal = true, .rotary = true, .rotary_interleaved = true});
    return head(net, x);
}

static mica_value without_positions(mica_net *net, mica_value tokens)
{
    return head(
        net, mica_net_multi_head_attention(
                 net, embed(net, tokens), &(mica_net_multi_head_attention_opts){.heads = 2, .causal = true}));
}

static mica_value sinusoidal(mica_net *net, mica_value tokens)
{
    mica_value x = mica_net_sinusoidal_positions(net, embed(net, tokens), NULL);
    x = mica_net_multi_head_attention(net, x,
                                      &(mica_net_multi_head_attention_opts){.heads = 2, .causal = true});
    return head(net, mica_net_softmax(net, x, NULL));
}

static mica_value lstm(mica_net *net, mica_value tokens)
{
    return head(net,
                mica_net_lstm(net, embed(net, tokens), &(mica_net_recurrent_opts){.units = 9, .layers = 2}));
}

static mica_value gru_of_the_last(mica_net *net, mica_value tokens)
{
    return head(net,
                mica_net_gru(net, embed(net, tokens), &(mica_net_recurrent_opts){.units = 9, .last = true}));
}

static mica_value rnn_and_attention(mica_net *net, mica_value tokens)
{
    mica_value x = mica_net_rnn(net, embed(net, tokens), &(mica_net_recurrent_opts){.units = WIDTH});
    return head(
        net, mica_net_multi_head_attention(
                 net, x, &(mica_net_multi_head_attention_opts){.heads = 2, .causal = true, .rotary = true}));
}

static mica_value every_token_alone(mica_net *net, mica_value tokens)
{
    return head(net, mica_net_layer_norm(net, embed(net, tokens), NULL));
}

static mica_net *make(mica_context *ctx, build_fn *build, const mica_net *weights, const char **reason)
{
    mica_net *net;
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    mica_value x = mica_net_input(net, "x", MICA_I32, 2, (mica_index[]){1, mica_net_size(net, "length", T)});
    CHECK_OK(ctx, mica_net_output(net, "logits", build(net, x)));
    if (reason != NULL)
        CHECK_OK(ctx, mica_net_continue(net, reason));
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.weights = weights, .debug = true}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 7));
    return net;
}

static mica_tensor row_of(int32_t *tokens, mica_index count)
{
    return (mica_tensor){.data = tokens, .dtype = MICA_I32, .rank = 1, .dim = {count}, .stride = {1}};
}

/* The largest difference of the logits of the last token. */
static double difference(mica_context *ctx, mica_net *a, mica_net *b)
{
    mica_tensor x, y;
    CHECK_OK(ctx, mica_net_tensor(a, &x, "logits"));
    CHECK_OK(ctx, mica_net_tensor(b, &y, "logits"));
    const float *p = (const float *)x.data + mica_tensor_count(&x) - V,
                *q = (const float *)y.data + mica_tensor_count(&y) - V;
    double most = 0;
    for (int i = 0; i < V; i++)
        most = fmax(most, fabs((double)p[i] - (double)q[i]));
    return most;
}

/* `forgets`: what is kept when the window is full knows nothing of tokens that are no longer seen. */
static void write_both(mica_context *ctx, build_fn *build, mica_index prompt, bool forgets)
{
    const char *reason;
    mica_index begun = prompt > T ? prompt - T : 0; /* the first token that is seen in the beginning */
    mica_net *whole = make(ctx, build, NULL, NULL), *stepping = make(ctx, build, whole, &reason);
    int32_t tokens[TOKENS];
    mica_generation writer;
    mica_random dice = mica_random_stream(4, 0), same;
    mica_sampling s = {.temperature = 1.5f};
    CHECK_MSG(reason == NULL, "%s", reason);
    CHECK_OK(ctx, mica_generation_begin(&writer, stepping, "logits"));
    CHECK(writer.cached);
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = (5 * i + 1) % V;
    for (mica_index n = prompt; n < TOKENS; n++) {
        mica_tensor so_far = row_of(tokens, n);
        int32_t token, wanted;
        same = dice;
        test_heap before = test_heap_now();
        if (!CHECK_OK(ctx, mica_generation_next(&writer, &token, &so_far, &dice, &s)))
            break;
        if (test_heap_counted())
            CHECK(test_heap_now().calls == before.calls);
        CHECK(writer.run == n && n - writer.first <= (mica_net_sizes(stepping) > 2 ? T : n));
        if (n - writer.first <= T && (forgets || writer.first == begun)) { /* what it sees, in one window */
            so_far = row_of(tokens + writer.first, n - writer.first);
            CHECK_OK(ctx, mica_generate_next(whole, &wanted, "logits", &so_far, &same, &s));
            double most = difference(ctx, whole, stepping);
            CHECK_MSG(most < 1e-5 && token == wanted, "token %td: %g apart", n, most);
        }
        tokens[n] = token;
    }
    mica_net_destroy(stepping);
    mica_net_destroy(whole);
}

TEST(generate_token_by_token)
{
    static const struct {
        build_fn *build;
        bool forgets;
    } nets[] = {{gpt2, true},
                {llama, false},
                {one_layer, true},
                {without_positions, true},
                {sinusoidal, true},
                {lstm, false},
                {gru_of_the_last, false},
                {rnn_and_attention, false},
                {every_token_alone, true}};
    for (int threads = 1; threads <= 2; threads++) {
        mica_context *ctx = test_context(threads);
        for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++)
            for (mica_index prompt = 1; prompt <= T + 5; prompt += 4)
                write_both(ctx, nets[i].build, prompt, nets[i].forgets);
    }
}

/* ---- Nets that mix tokens in another way ---- */

static mica_value looks_ahead(mica_net *net, mica_value tokens)
{
    return head(net, mica_net_multi_head_attention(
                         net, embed(net, tokens),
                         &(mica_net_multi_head_attention_opts){.name = "both_ways", .heads = 2}));
}

static mica_value over_time(mica_net *net, mica_value tokens)
{
    return head(net, mica_net_op(net, "over_time", "softmax", (mica_value[]){embed(net, tokens)}, 1,
                                 &(mica_axis_opts){.axis = 1}));
}

static mica_value mean(mica_net *net, mica_value tokens)
{
    return head(net, mica_net_op(net, "mean", "mean", (mica_value[]){embed(net, tokens)}, 1,
                                 &(mica_reduction_opts){.count = 1, .axes = {1}}));
}

static mica_value by_a_table(mica_net *net, mica_value tokens)
{
    mica_value table = mica_net_learned(net, "table", 2, (mica_index[]){T, WIDTH}, (mica_init){0});
    return head(net, mica_net_op(net, "sum", "add", (mica_value[]){embed(net, tokens), table}, 2, NULL));
}

static mica_value reads_the_state(mica_net *net, mica_value tokens)
{
    mica_value x = embed(net, tokens);
    mica_value last = mica_net_gru(net, x, &(mica_net_recurrent_opts){.units = WIDTH, .last = true});
    return head(net, mica_net_op(net, "sum", "add", (mica_value[]){x, last}, 2, NULL));
}

TEST(generate_says_what_mixes_tokens)
{
    static const struct {
        build_fn *build;
        const char *reason;
    } cases[] = {{looks_ahead, "attention_packed in layer \"both_ways.heads\" may mix tokens"},
                 {over_time, "softmax in layer \"over_time\" may mix tokens"},
                 {mean, "mean in layer \"mean\" may mix tokens"},
                 {by_a_table, "add in layer \"sum\" may mix tokens"},
                 {reads_the_state, "add in layer \"sum\" may mix tokens"}};
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mica_net *net;
        const char *reason = NULL;
        CHECK_OK(ctx, mica_net_create(ctx, &net));
        mica_value x = mica_net_input(net, "x", MICA_I32, 2,
                                      (mica_index[]){1, mica_net_size(net, "length", T)});
        CHECK_OK(ctx, mica_net_output(net, "logits", cases[i].build(net, x)));
        CHECK_OK(ctx, mica_net_continue(net, &reason));
        CHECK_MSG(reason != NULL && strcmp(reason, cases[i].reason) == 0, "%s: wanted %s",
                  reason != NULL ? reason : "(none)", cases[i].reason);
        CHECK_OK(ctx, mica_net_compile(net, NULL));
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
        mica_generation writer;
        CHECK_OK(ctx, mica_generation_begin(&writer, net, "logits"));
        CHECK(!writer.cached);
        mica_net_destroy(net);
    }
}

TEST(generate_wants_a_sequence)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    const char *reason;
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    mica_value x = mica_net_input(net, "x", MICA_I32, 2, (mica_index[]){1, T});
    CHECK_OK(ctx, mica_net_output(net, "logits", gpt2(net, x)));
    CHECK_OK(ctx, mica_net_continue(net, &reason));
    CHECK(reason != NULL && strstr(reason, "no single input") != NULL);
    CHECK_ERROR(ctx, mica_net_continue(net, NULL), MICA_ERR_ARGUMENT,
                "argument error: net_continue: reason is NULL");
    CHECK_OK(ctx, mica_net_compile(net, NULL));
    CHECK(mica_net_continue(net, &reason) == MICA_ERR_STATE);
    mica_net_destroy(net);
}

/* A step that continues cannot be learned from, and the cache ends where it ends. */
TEST(generate_only_infers)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    const char *reason;
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    mica_value x = mica_net_input(net, "x", MICA_I32, 2, (mica_index[]){1, mica_net_size(net, "length", T)});
    mica_value logits = llama(net, x);
    CHECK_OK(ctx, mica_net_continue(net, &reason));
    mica_index dims[] = {1, mica_net_size(net, "length", T), V};
    mica_value wanted = mica_net_input(net, "wanted", MICA_F32, 3, dims);
    mica_value loss = mica_net_op(net, "loss", "mse_loss", (mica_value[]){logits, wanted}, 2, NULL);
    CHECK_OK(ctx, mica_net_output(net, "loss", loss));
    CHECK_ERROR(
        ctx, mica_net_compile(net, &(mica_compile_opts){.train = true}), MICA_ERR_STATE,
        "state error: net_compile: steps that continue one another (mica_net_continue) cannot be trained");
    mica_net_destroy(net);
    net = make(ctx, llama, NULL, &reason);
    CHECK(reason == NULL);
    mica_tensor tokens;
    CHECK_OK(ctx, mica_net_tensor(net, &tokens, "x"));
    CHECK_OK(ctx, mica_net_set_size(net, "position", 1));
    CHECK_OK(ctx, mica_zeros(ctx, &tokens));
    CHECK(mica_net_forward(net) == MICA_ERR_SHAPE);
    CHECK_OK(ctx, mica_net_set_size(net, "position", 0));
    CHECK_OK(ctx, mica_zeros(ctx, &tokens));
    CHECK_OK(ctx, mica_net_forward(net));
    mica_net_destroy(net);
}

static mica_status continue_with(const mica_allocator *allocator, void *argument)
{
    (void)argument;
    mica_context *ctx = NULL;
    mica_net *net = NULL;
    const char *reason = NULL;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    status = mica_net_create(ctx, &net);
    if (status == MICA_OK) {
        mica_value x = mica_net_input(net, "x", MICA_I32, 2,
                                      (mica_index[]){1, mica_net_size(net, "length", T)});
        (void)mica_net_output(net, "logits", rnn_and_attention(net, x));
        status = mica_net_continue(net, &reason);
    }
    if (status == MICA_OK)
        status = mica_net_compile(net, NULL);
    if (status == MICA_OK)
        status = mica_net_bind(net, NULL, 0);
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return status;
}

TEST(generate_out_of_memory) { CHECK(test_oom(continue_with, NULL) > 5); }
