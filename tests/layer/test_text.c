/* Layers for text: what gradient checks do not show. */
#include <math.h>
#include <string.h>

#include <mica/train.h>

#include "layer/layer_case.h"

/* tokens [2, 3] of 100 rows, embedded and summed with weights. */
static mica_net *embedder(mica_context *ctx, mica_dtype dtype)
{
    mica_net *net;
    mica_net_create(ctx, &net);
    mica_value x = mica_net_input(net, "tokens", dtype, 2, (mica_index[]){2, 3});
    x = mica_net_embedding(net, x, &(mica_net_embedding_opts){.name = "embed", .rows = 100, .width = 5});
    layer_weighted_sum(net, x);
    mica_compile_opts opts = {.train = true, .optimizer = &(mica_optimizer){.kind = MICA_SGD}};
    CHECK_OK(ctx, mica_net_compile(net, &opts));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 1));
    return net;
}

static void set_tokens(mica_net *net, const int *tokens)
{
    mica_tensor t;
    mica_net_tensor(net, &t, "tokens");
    for (mica_index i = 0; i < 6; i++)
        mica_set_at(mica_net_context(net), &t, (mica_index[]){i / 3, i % 3}, tokens[i]);
}

/* Whether exactly the rows of these tokens have a gradient. */
static void check_rows(mica_net *net, const int *tokens, int count)
{
    mica_tensor g;
    REQUIRE(mica_net_gradient(net, &g, "embed.weight") == MICA_OK);
    for (int row = 0; row < 100; row++) {
        bool used = false, there = false;
        for (int i = 0; i < count; i++)
            used = used || tokens[i] == row;
        for (int i = 0; i < 5; i++)
            there = there || ((float *)g.data)[row * 5 + i] != 0.0f;
        CHECK_MSG(used == there, "row %d", row);
    }
}

TEST(embedding_gradient_touches_only_the_rows_used)
{
    static const int steps[][6] = {{3, 99, 3, 0, 7, 8}, {1, 2, 4, 5, 6, 99}, {50, 50, 50, 50, 50, 50}};
    mica_context *ctx = test_context(1);
    mica_net *net = embedder(ctx, MICA_I64);
    mica_tensor g;
    REQUIRE(mica_net_gradient(net, &g, "embed.weight") == MICA_OK);
    memset(g.data, 0xff, mica_tensor_bytes(&g)); /* the first step takes whatever is there */
    for (int i = 0; i < 3; i++) {
        set_tokens(net, steps[i]);
        CHECK_OK(ctx, mica_train_step(net, 0.1f));
        check_rows(net, steps[i], 6);
    }
    /* Accumulation: the rows of both parts; the next step clears them all. */
    for (int part = 0; part < 2; part++) {
        set_tokens(net, steps[part]);
        CHECK_OK(ctx, mica_train_accumulate(net, part, 2));
    }
    check_rows(net, steps[0], 12);
    CHECK_OK(ctx, mica_train_update(net, 0.1f));
    set_tokens(net, steps[2]);
    CHECK_OK(ctx, mica_train_step(net, 0.1f));
    check_rows(net, steps[2], 6);
    mica_net_destroy(net);
}

TEST(embedding_index_out_of_range_is_an_error_of_the_step)
{
    mica_context *ctx = test_context(1);
    mica_net *net = embedder(ctx, MICA_I32);
    set_tokens(net, (const int[]){1, 2, 3, 100, 5, 6});
    CHECK_ERROR(
        ctx, mica_train_step(net, 0.1f), MICA_ERR_INDEX,
        "index error: take: index [2, 3] holds 100 at element 3; axis 0 of src [100, 5] has size 100");
    set_tokens(net, (const int[]){1, 2, 3, -1, 5, 6});
    CHECK(mica_net_forward(net) == MICA_ERR_INDEX);
    set_tokens(net, (const int[]){1, 2, 3, 4, 5, 6});
    CHECK_OK(ctx, mica_train_step(net, 0.1f));
    mica_net_destroy(net);
}

TEST(text_layers_say_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    static const struct {
        mica_net_attention_opts opts;
        mica_index features;
        const char *text;
    } wrong[] = {
        {{.name = "a", .heads = 4}, 10, "expected features that divide evenly among 12 heads, got 10"},
        {{.name = "a", .heads = 4, .kv_heads = 3},
         10,
         "4 heads share 3 key/value heads: expected a divisor of the heads"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mica_net *net;
        mica_net_create(ctx, &net);
        mica_value x = mica_net_input(net, "x", MICA_F32, 3, (mica_index[]){1, 2, wrong[i].features});
        mica_net_attention(net, x, &wrong[i].opts);
        CHECK(mica_net_compile(net, NULL) != MICA_OK);
        CHECK_MSG(strstr(mica_error(ctx), wrong[i].text) != NULL, "%s", mica_error(ctx));
        mica_net_destroy(net);
    }
}

/* Scores of turned queries and keys depend on how far apart they are alone. */
TEST(rotary_scores_depend_on_distance)
{
    enum { P = 40, D = 8 };
    mica_context *ctx = test_context(1);
    float table_data[P * D], q[D], k[D], turned[2][D];
    mica_tensor table = mica_2d(table_data, P, D);
    CHECK_OK(ctx, mica_rotary_table(ctx, &table, 0.0));
    for (int i = 0; i < D; i++) {
        q[i] = (float)(i + 1) / D;
        k[i] = (float)(3 - i) / D;
    }
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        double first = 0.0;
        for (int at = 0; at < 30; at++) {
            mica_tensor to[2] = {mica_2d(turned[0], 1, D), mica_2d(turned[1], 1, D)};
            mica_tensor from[2] = {mica_2d(q, 1, D), mica_2d(k, 1, D)};
            for (int i = 0; i < 2; i++)
                CHECK_OK(ctx, mica_rotary(ctx, &to[i], &from[i], &table,
                                          &(mica_rotary_opts){.interleaved = interleaved != 0,
                                                              .offset = at + 7 * i}));
            double score = 0.0;
            for (int i = 0; i < D; i++)
                score += (double)turned[0][i] * (double)turned[1][i];
            first = at == 0 ? score : first;
            CHECK_MSG(fabs(score - first) < 1e-5, "%g %g", score, first);
        }
    }
}

/* ---- Tables of positions ---- */

enum { LENGTH = 8, SHORT = 3, FEATURES = 4 };

/* x [2, length, FEATURES] through a layer with a table, with the first `length` positions of one x for all. */
static void run_positions(mica_net *net, mica_index length, float *y)
{
    mica_context *ctx = mica_net_context(net);
    mica_tensor t;
    CHECK_OK(ctx, mica_net_set_size(net, "length", length));
    CHECK_OK(ctx, mica_net_tensor(net, &t, "x"));
    for (mica_index i = 0; i < (mica_index)mica_tensor_count(&t); i++)
        ((float *)t.data)[i] = sinf((float)(i % (length * FEATURES)));
    CHECK_OK(ctx, mica_net_forward(net));
    CHECK_OK(ctx, mica_net_tensor(net, &t, "y"));
    memcpy(y, t.data, mica_tensor_bytes(&t));
}

static mica_net *positions_net(mica_context *ctx, bool rotary)
{
    mica_net *net;
    mica_net_create(ctx, &net);
    mica_index dims[] = {2, mica_net_size(net, "length", LENGTH), FEATURES};
    mica_value x = mica_net_input(net, "x", MICA_F32, 3, dims);
    x = rotary ? mica_net_rotary(net, x, NULL) : mica_net_sinusoidal_positions(net, x, NULL);
    mica_net_output(net, "y", x);
    CHECK_OK(ctx, mica_net_compile(net, NULL));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 1));
    return net;
}

TEST(position_tables_hold_all_positions_after_a_short_sequence)
{
    mica_context *ctx = test_context(1);
    for (int rotary = 0; rotary < 2; rotary++) {
        float first[2 * LENGTH * FEATURES], later[2 * LENGTH * FEATURES], part[2 * SHORT * FEATURES];
        mica_net *whole = positions_net(ctx, rotary), *net = positions_net(ctx, rotary);
        run_positions(whole, LENGTH, first);
        run_positions(net, SHORT, part);
        run_positions(net, LENGTH, later);
        CHECK(memcmp(first, later, sizeof first) == 0);
        for (int n = 0; n < 2; n++) /* a position's row does not depend on how many follow it */
            CHECK(memcmp(part + n * SHORT * FEATURES, first + n * LENGTH * FEATURES,
                         SHORT * FEATURES * sizeof *part) == 0);
        for (int t = 0; t < LENGTH && !rotary; t++) {
            float x = sinf((float)(t * FEATURES));
            CHECK(fabsf(later[t * FEATURES] - (x + sinf((float)t))) < 1e-5f);
        }
        mica_net_destroy(whole);
        mica_net_destroy(net);
    }
}
