/* Drawing tokens, and texts from a net. */
#include <math.h>
#include <string.h>

#include "test.h"

enum { V = 6 };

/* How often each token comes up in `draws` draws, as a share. */
static void shares(mica_context *ctx, double *out, const float *logits, const mica_sampling *s, int draws)
{
    mica_random dice = mica_random_stream(1, 2);
    mica_tensor row = mica_1d((float *)logits, V);
    memset(out, 0, V * sizeof *out);
    for (int i = 0; i < draws; i++) {
        int32_t token = -1;
        if (!CHECK_OK(ctx, mica_sample(ctx, &token, &row, &dice, s)) || !CHECK(token >= 0 && token < V))
            return;
        out[token] += 1.0 / draws;
    }
}

TEST(sample_draws_with_the_probabilities)
{
    mica_context *ctx = test_context(1);
    const float logits[V] = {1, 3, -INFINITY, 2, 0, 2.5f};
    static const struct {
        mica_sampling sampling;
        bool stays[V];
        double temperature;
    } cases[] = {
        {{.temperature = 1}, {1, 1, 0, 1, 1, 1}, 1},
        {{.temperature = 0.5f}, {1, 1, 0, 1, 1, 1}, 0.5},
        {{.temperature = 2}, {1, 1, 0, 1, 1, 1}, 2},
        {{.temperature = 1, .top_k = 2}, {0, 1, 0, 0, 0, 1}, 1},
        {{.temperature = 1, .top_k = 100}, {1, 1, 0, 1, 1, 1}, 1},
        {{.temperature = 1, .top_p = 0.6f}, {0, 1, 0, 0, 0, 1}, 1},
        {{.temperature = 1, .top_p = 1e-6f}, {0, 1, 0, 0, 0, 0}, 1},
        {{.temperature = 1, .min_p = 0.3f}, {0, 1, 0, 1, 0, 1}, 1},
        {{.temperature = 1, .min_p = 1}, {0, 1, 0, 0, 0, 0}, 1},
        {{.temperature = 1, .top_k = 3, .top_p = 0.9f, .min_p = 0.5f}, {0, 1, 0, 0, 0, 1}, 1},
        {{.temperature = 0}, {0, 1, 0, 0, 0, 0}, 1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        double seen[V], sum = 0;
        for (int i = 0; i < V; i++)
            sum += cases[k].stays[i] ? exp((double)logits[i] / cases[k].temperature) : 0;
        shares(ctx, seen, logits, &cases[k].sampling, 20000);
        for (int i = 0; i < V; i++) {
            double wanted = cases[k].stays[i] ? exp((double)logits[i] / cases[k].temperature) / sum : 0;
            CHECK_MSG(fabs(seen[i] - wanted) <= 0.02 * (wanted > 0), "case %zu, token %d: %g, wanted %g", k,
                      i, seen[i], wanted);
        }
    }
}

TEST(sample_repeats_become_less_likely)
{
    mica_context *ctx = test_context(1);
    const float logits[V] = {2, 1.9f, -1, -1.1f, -5, -5};
    const int32_t recent[] = {0, 0, 0, 2};
    mica_sampling s = {.repeat_penalty = 2, .recent = recent, .recent_count = 4};
    int32_t token;
    mica_tensor row = mica_1d((float *)logits, V);
    CHECK_OK(ctx, mica_sample(ctx, &token, &row, NULL, &s));
    CHECK(token == 1);
    s.temperature = 1;
    double seen[V];
    shares(ctx, seen, logits, &s, 20000);
    double sum = exp(1) + exp(1.9) + exp(-2) + exp(-1.1) + 2 * exp(-5); /* 2 / 2 once, and -1 * 2 */
    CHECK_MSG(fabs(seen[0] - exp(1) / sum) < 0.02 && fabs(seen[2] - exp(-2) / sum) < 0.01, "%g %g", seen[0],
              seen[2]);
}

TEST(sample_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    float logits[V] = {0};
    mica_tensor row = mica_1d(logits, V), none = mica_1d(logits, 0);
    mica_random dice = mica_random_stream(0, 0);
    int32_t token;
    CHECK_ERROR(ctx, mica_sample(ctx, NULL, &row, &dice, NULL), MICA_ERR_ARGUMENT,
                "argument error: sample: token is NULL");
    CHECK_ERROR(ctx, mica_sample(ctx, &token, &row, NULL, &(mica_sampling){.temperature = 1}),
                MICA_ERR_ARGUMENT, "argument error: sample: dice is NULL");
    CHECK_ERROR(ctx, mica_sample(ctx, &token, &none, &dice, NULL), MICA_ERR_SHAPE,
                "shape error: sample: logits are [0]: expected a contiguous row of at least 1");
    CHECK_ERROR(ctx, mica_sample(ctx, &token, &row, &dice, &(mica_sampling){.top_p = 2}), MICA_ERR_ARGUMENT,
                "argument error: sample: top_p is 2: expected 0 to 1");
    CHECK_ERROR(ctx, mica_sample(ctx, &token, &row, &dice, &(mica_sampling){.temperature = NAN}),
                MICA_ERR_ARGUMENT, "argument error: sample: temperature is nan: expected 0 or more");
    CHECK_ERROR(ctx, mica_sample(ctx, &token, &row, &dice, &(mica_sampling){.presence_penalty = INFINITY}),
                MICA_ERR_ARGUMENT,
                "argument error: sample: presence_penalty is inf: expected a finite number");
    CHECK_ERROR(ctx,
                mica_sample(ctx, &token, &row, &dice,
                            &(mica_sampling){.bias = (mica_logit_bias[]){{6, 1}}, .bias_count = 1}),
                MICA_ERR_INDEX, "index error: sample: bias[0] is for token 6, logits are [6]");
    CHECK_ERROR(ctx,
                mica_sample(ctx, &token, &row, &dice,
                            &(mica_sampling){.bias = (mica_logit_bias[]){{1, INFINITY}}, .bias_count = 1}),
                MICA_ERR_ARGUMENT, "argument error: sample: bias[0] is inf");
    CHECK_ERROR(ctx, mica_sample(ctx, &token, &row, &dice, &(mica_sampling){.bias_count = 1}),
                MICA_ERR_ARGUMENT, "argument error: sample: bias is NULL");
    CHECK_ERROR(
        ctx,
        mica_sample(ctx, &token, &row, &dice, &(mica_sampling){.recent = (int32_t[]){9}, .recent_count = 1}),
        MICA_ERR_INDEX, "index error: sample: recent[0] is token 9, logits are [6]");
    logits[2] = 3e38f;
    CHECK_ERROR(ctx,
                mica_sample(ctx, &token, &row, &dice,
                            &(mica_sampling){.bias = (mica_logit_bias[]){{2, 3e38f}}, .bias_count = 1}),
                MICA_ERR_ARGUMENT,
                "argument error: sample: the logit with bias and penalties of token 2 is inf");
    logits[3] = NAN;
    CHECK_ERROR(ctx, mica_sample(ctx, &token, &row, &dice, NULL), MICA_ERR_ARGUMENT,
                "argument error: sample: the logit of token 3 is nan");
    for (int i = 0; i < V; i++)
        logits[i] = -INFINITY;
    CHECK_ERROR(ctx, mica_sample(ctx, &token, &row, &dice, NULL), MICA_ERR_ARGUMENT,
                "argument error: sample: no token is possible: every logit is -inf");
    mica_likely likely[V];
    CHECK_ERROR(ctx, mica_log_probabilities(ctx, NULL, 0, likely, V, &row), MICA_ERR_ARGUMENT,
                "argument error: log_probabilities: no token is possible: every logit is -inf");
    CHECK_ERROR(ctx, mica_log_probabilities(ctx, NULL, 0, likely, V + 1, &row), MICA_ERR_ARGUMENT,
                "argument error: log_probabilities: the 7 most likely tokens of 6, into an array");
    CHECK_ERROR(ctx, mica_log_probabilities(ctx, (float[]){0}, V, NULL, 0, &row), MICA_ERR_INDEX,
                "index error: log_probabilities: token is 6, logits are [6]");
}

/* A net that knows nothing of time: its next token is a function of the last. */
static mica_net *follower(mica_context *ctx, bool recurrent)
{
    mica_net *net;
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    mica_value x = mica_net_input(net, "x", MICA_I32, 2, (mica_index[]){1, mica_net_size(net, "length", 4)});
    mica_value h = mica_net_embedding(net, x, &(mica_net_embedding_opts){.rows = V, .width = 8});
    if (recurrent)
        h = mica_net_lstm(net, h, &(mica_net_recurrent_opts){.units = 8});
    mica_net_output(net, "logits", mica_net_dense(net, h, &(mica_net_dense_opts){.units = V}));
    CHECK_OK(ctx, mica_net_compile(net, NULL));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 3));
    return net;
}

/* What follows depends on the last tokens that fit, and on nothing before; and nothing is allocated. */
TEST(generate_runs_the_window)
{
    mica_context *ctx = test_context(2);
    for (int recurrent = 0; recurrent < 2; recurrent++) {
        mica_net *net = follower(ctx, recurrent == 1);
        int32_t text[40] = {1}, again[40] = {5, 4, 3, 2};
        mica_random dice = mica_random_stream(9, 0);
        mica_sampling s = {.temperature = 1, .top_k = 4};
        mica_tensor window;
        test_heap before = test_heap_now();
        for (int n = 1; n < 40; n++) {
            window = (mica_tensor){.data = text, .dtype = MICA_I32, .rank = 1, .dim = {n}, .stride = {1}};
            CHECK_OK(ctx, mica_generate_next(net, &text[n], "logits", &window, &dice, &s));
        }
        if (test_heap_counted())
            CHECK(test_heap_now().calls == before.calls);
        memcpy(again + 4, text + 20, 16); /* another beginning, the same last four */
        window.dim[0] = 8;
        window.data = again;
        dice.position = 23;
        CHECK_OK(ctx, mica_generate_next(net, &again[8], "logits", &window, &dice, &s));
        CHECK(again[8] == text[24]);
        window.dim[0] = 0;
        CHECK_ERROR(ctx, mica_generate_next(net, &again[8], "logits", &window, &dice, &s), MICA_ERR_SHAPE,
                    "shape error: generate_next: tokens are [0]: expected a row of at least 1");
        mica_net_destroy(net);
    }
}
