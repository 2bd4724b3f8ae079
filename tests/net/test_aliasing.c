/* What shares memory, or must not: gradients of values that are read more than once, outputs beside calls that run in
 * place, losses that something reads. */
#include <math.h>
#include <string.h>

#include <mica/layers.h>
#include <mica/op.h>

#include "layer/layer_case.h"

static mica_net *new_net(mica_context *ctx)
{
    mica_net *net = NULL;
    (void)mica_net_create(ctx, &net);
    return net;
}

static bool start(mica_context *ctx, mica_net *net, const mica_compile_opts *opts)
{
    return CHECK_OK(ctx, mica_net_compile(net, opts)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
           CHECK_OK(ctx, mica_net_initialize(net, 1));
}

static void fill(mica_net *net, const char *name)
{
    mica_tensor x;
    CHECK_OK(mica_net_context(net), mica_net_tensor(net, &x, name));
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)(i % 7) / 3.5f - 0.9f;
}

/* attention(x, x, x) + x: the addition passes a gradient on to x, which is not its own; then one call has three parts
 * of it. */
static mica_value attention_beside_itself(mica_net *net, test_random *r)
{
    mica_index dims[] = {test_int(r, 1, 2), test_int(r, 1, 3), test_int(r, 1, 4), test_int(r, 1, 4)};
    mica_value x = layer_leaf(net, "x", 4, dims),
               copy = mica_net_op(net, NULL, "scale", &x, 1, &(mica_scalar_opts){0.7f});
    mica_value y = mica_net_call(net, NULL, mica_op_find("attention"), (mica_value[]){copy, copy, copy}, 3,
                                 NULL);
    return mica_net_plus(net, y, copy, NULL);
}
LAYER_CASE(attention_beside_itself) = {.build = attention_beside_itself};

TEST(net_an_output_is_not_overwritten_by_the_last_call)
{
    mica_context *ctx = test_context(1);
    mica_net *net = new_net(ctx);
    REQUIRE(net != NULL);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){3, 4});
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 4});
    mica_net_output(net, "logits", h);
    mica_net_output(net, "y", mica_net_op(net, NULL, "neg", &h, 1, NULL));
    if (start(ctx, net, NULL)) {
        mica_tensor logits, y;
        fill(net, "x");
        CHECK_OK(ctx, mica_net_forward(net));
        CHECK_OK(ctx, mica_net_tensor(net, &logits, "logits"));
        CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
        CHECK(logits.data != y.data);
        for (int i = 0; i < 12; i++)
            CHECK(((float *)logits.data)[i] == -((float *)y.data)[i]);
    }
    mica_net_destroy(net);
}

/* l = mse(x p, t) / 2, and then perhaps the loss l^2. Returns l, and the gradient of p. */
static float loss_of_a_loss(mica_context *ctx, bool squared, float *gradient)
{
    mica_net *net = new_net(ctx);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){4, 3});
    mica_value t = mica_net_input(net, "t", MICA_F32, 2, (mica_index[]){4, 3});
    mica_value p = mica_net_learned(net, "p", 1, (mica_index[]){3}, (mica_init){MICA_INIT_CONSTANT, 2.0f});
    mica_value y = mica_net_op(net, NULL, "mul", (mica_value[]){x, p}, 2, NULL);
    mica_value l = mica_net_mse(net, y, t, &(mica_net_loss_opts){.weight = 0.5f});
    mica_net_output(net, "l", l);
    mica_value zero = mica_net_op(net, NULL, "zeros", NULL, 0, NULL);
    if (squared)
        mica_net_mse(net, l, zero, NULL);
    float loss = 0.0f;
    if (start(ctx, net, &(mica_compile_opts){.train = true})) {
        mica_tensor result, dp;
        fill(net, "x");
        fill(net, "t");
        CHECK_OK(ctx, mica_net_gradients(net, NULL));
        CHECK_OK(ctx, mica_net_tensor(net, &result, "l"));
        CHECK_OK(ctx, mica_net_gradient(net, &dp, "p"));
        loss = *(float *)result.data;
        memcpy(gradient, dp.data, 3 * sizeof(float));
    }
    mica_net_destroy(net);
    return loss;
}

TEST(net_a_loss_of_a_loss_has_its_share_of_the_gradient)
{
    mica_context *ctx = test_context(1);
    float alone[3] = {0}, both[3] = {0};
    float l = loss_of_a_loss(ctx, false, alone);
    CHECK(loss_of_a_loss(ctx, true, both) == l);
    for (int i = 0; i < 3; i++) {
        CHECK(alone[i] != 0.0f);
        CHECK(fabsf(both[i] - (1.0f + 2.0f * l) * alone[i]) < 1e-5f * fabsf(both[i]));
    }
}

TEST(net_a_loss_that_is_read_is_still_the_loss)
{
    mica_context *ctx = test_context(1);
    mica_net *net = new_net(ctx);
    REQUIRE(net != NULL);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){3, 4});
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 4});
    mica_value loss = mica_net_mse(net, h, x, NULL);
    mica_net_output(net, "ten", mica_net_op(net, NULL, "scale", &loss, 1, &(mica_scalar_opts){10.0f}));
    if (start(ctx, net, &(mica_compile_opts){.train = true})) {
        mica_tensor ten;
        fill(net, "x");
        CHECK_OK(ctx, mica_net_gradients(net, NULL));
        CHECK_OK(ctx, mica_net_tensor(net, &ten, "ten"));
        CHECK(fabsf(*(float *)ten.data - 10.0f * mica_net_loss(net)) < 1e-5f);
    }
    mica_net_destroy(net);
}

/* Where all of a window is negative, relu makes all its elements equal, and the first is the largest. */
TEST(net_indices_of_max_pooling_that_are_read_are_those_behind_relu)
{
    mica_context *ctx = test_context(1);
    mica_net *net = new_net(ctx);
    REQUIRE(net != NULL);
    mica_value x = mica_net_input(net, "x", MICA_F32, 4, (mica_index[]){1, 1, 2, 2});
    mica_value h = mica_net_op(net, NULL, "relu", &x, 1, NULL);
    h = mica_net_call(net, NULL, mica_op_find("max_pool2d"), &h, 1, &(mica_pooling_opts){.kernel = {2, 2}});
    mica_net_output(net, "indices", mica_net_result(net, h, 1));
    if (start(ctx, net, NULL)) {
        mica_tensor t;
        CHECK_OK(ctx, mica_net_tensor(net, &t, "x"));
        memcpy(t.data, (float[]){-4, -3, -1, -2}, 4 * sizeof(float));
        CHECK_OK(ctx, mica_net_forward(net));
        CHECK_OK(ctx, mica_net_tensor(net, &t, "indices"));
        CHECK(*(int32_t *)t.data == 0);
    }
    mica_net_destroy(net);
}

/* y = x + p, where x is made of the input "x" [rows, 4] and p [rows, 4] is learned. */
static mica_value plus_rows(mica_net *net, mica_value x, mica_index rows)
{
    mica_value p = mica_net_learned(net, "p", 2, (mica_index[]){rows, 4},
                                    (mica_init){MICA_INIT_NORMAL, 1.0f});
    return mica_net_plus(net, x, p, NULL);
}

TEST(net_a_size_at_which_a_gradient_would_have_to_be_summed_is_refused)
{
    mica_context *ctx = test_context(1);
    mica_net *net = new_net(ctx);
    REQUIRE(net != NULL);
    mica_index rows = mica_net_size(net, "rows", 3);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){rows, 4});
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 4});
    mica_net_mse(net, plus_rows(net, h, 3), mica_net_input(net, "target", MICA_F32, 2, (mica_index[]){3, 4}),
                 NULL);
    if (start(ctx, net, &(mica_compile_opts){.train = true})) {
        CHECK_ERROR(
            ctx, mica_net_set_size(net, "rows", 1), MICA_ERR_SHAPE,
            "shape error: net: add of [1, 4] is [3, 4] at these sizes, but was planned to have its shape");
        fill(net, "x");
        fill(net, "target");
        CHECK_OK(ctx, mica_net_gradients(net, NULL));
    }
    mica_net_destroy(net);
}

TEST(net_a_size_at_which_a_call_in_place_would_overwrite_what_it_reads_is_refused)
{
    mica_context *ctx = test_context(1);
    mica_net *net = new_net(ctx);
    REQUIRE(net != NULL);
    mica_index rows = mica_net_size(net, "rows", 3);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){rows, 4});
    mica_value h = mica_net_op(net, NULL, "tanh", &x, 1, NULL);
    mica_net_output(net, "y", plus_rows(net, h, 3));
    if (start(ctx, net, NULL)) {
        CHECK_ERROR(
            ctx, mica_net_set_size(net, "rows", 1), MICA_ERR_SHAPE,
            "shape error: net: add of [1, 4] is [3, 4] at these sizes, but was planned to have its shape");
        fill(net, "x");
        CHECK_OK(ctx, mica_net_forward(net));
    }
    mica_net_destroy(net);
}

/* A batch of two: one row of it would be broadcast. */
TEST(net_a_batch_that_could_be_broadcast_is_not_run_in_parts)
{
    mica_context *ctx = test_context(1);
    for (int learned = 0; learned < 2; learned++) {
        mica_net *net = new_net(ctx);
        REQUIRE(net != NULL);
        mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){2, 4});
        if (learned)
            x = mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 4});
        mica_value h = plus_rows(net, x, 2);
        h = mica_net_dense(net, h,
                           &(mica_net_dense_opts){.name = "wide", .units = 64, .activation = MICA_TANH});
        h = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "thin", .units = 4});
        mica_value to = mica_net_learned(net, "to", 2, (mica_index[]){2, 4},
                                         (mica_init){MICA_INIT_NORMAL, 1.0f});
        mica_net_mse(net, h, to, NULL);
        CHECK_OK(ctx, mica_net_freeze(net, "to", true)); /* a target has no gradient */
        REQUIRE(CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true})));
        size_t total = mica_net_plan(net)->total;
        for (size_t budget = total; budget > total / 2; budget -= 64)
            if (mica_net_compile(net, &(mica_compile_opts){.train = true, .budget = budget}) == MICA_OK)
                CHECK(mica_net_plan(net)->parts == 1);
        mica_net_destroy(net);
    }
}

/* [4, 3] out of [4, 6], lent. */
static mica_value lend_columns(mica_net *net, float data[24])
{
    for (int i = 0; i < 24; i++)
        data[i] = (float)i;
    mica_tensor lent = mica_2d(data, 4, 3);
    lent.stride[0] = 6;
    return mica_net_lent(net, "x", &lent);
}

TEST(net_what_is_lent_with_strides_has_no_view)
{
    mica_context *ctx = test_context(1);
    mica_net *net = new_net(ctx);
    REQUIRE(net != NULL);
    float data[24];
    mica_value x = lend_columns(net, data);
    CHECK(mica_net_unsqueeze(net, x, &(mica_net_axis_opts){.name = "view", .axis = 0}) == 0);
    CHECK_ERROR(ctx, mica_net_compile(net, NULL), MICA_ERR_SHAPE,
                "shape error: layer 0 \"view\" (unsqueeze)\n"
                "  input is [4, 3], the net's input \"x\"\n"
                "  expected a contiguous tensor, got [4, 3] with strides [6, 1]: copy it first");
    mica_net_destroy(net);
}

TEST(net_what_is_lent_with_strides_is_read_by_them)
{
    mica_context *ctx = test_context(1);
    mica_net *net = new_net(ctx);
    REQUIRE(net != NULL);
    float data[24];
    mica_value x = lend_columns(net, data);
    mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 1, .no_bias = true});
    mica_value copy = mica_net_op(net, NULL, "copy", &x, 1, NULL);
    mica_net_reshape(net, copy, &(mica_net_reshape_opts){.name = "flat", .rank = 1, .dims = {12}});
    if (start(ctx, net, NULL)) {
        mica_tensor t;
        CHECK_OK(ctx, mica_net_tensor(net, &t, "fc.weight"));
        CHECK_OK(ctx, mica_ones(ctx, &t));
        CHECK_OK(ctx, mica_net_forward(net));
        CHECK_OK(ctx, mica_net_tensor(net, &t, "fc"));
        for (int i = 0; i < 4; i++)
            CHECK(((float *)t.data)[i] == data[i * 6] + data[i * 6 + 1] + data[i * 6 + 2]);
        CHECK_OK(ctx, mica_net_tensor(net, &t, "flat"));
        for (int i = 0; i < 12; i++)
            CHECK(((float *)t.data)[i] == data[i / 3 * 6 + i % 3]);
    }
    mica_net_destroy(net);
}

/* A view of a parameter lies where the parameter does. */
TEST(net_program_tells_where_views_of_parameters_lie)
{
    mica_context *ctx = test_context(1);
    mica_net *net = new_net(ctx);
    REQUIRE(net != NULL);
    (void)mica_net_learned(net, "first", 1, (mica_index[]){64}, (mica_init){0});
    mica_value w = mica_net_learned(net, "w", 2, (mica_index[]){2, 3}, (mica_init){0});
    mica_value view = mica_net_reshape(net, w, &(mica_net_reshape_opts){.rank = 1, .dims = {6}});
    mica_net_output(net, "y", mica_net_op(net, NULL, "neg", &view, 1, NULL));
    REQUIRE(CHECK_OK(ctx, mica_net_compile(net, NULL)));
    mica_program_value seen, shown;
    CHECK_OK(ctx, mica_net_program_value(net, &seen, w));
    CHECK_OK(ctx, mica_net_program_value(net, &shown, view));
    CHECK(seen.offset == 256 && shown.offset == 256 && shown.home == MICA_HOME_LEARNED);
    mica_net_destroy(net);
}

/* ---- Gradients of a caller's own operation that are wrong ---- */

static mica_status halve_infer(mica_infer *i) { return mica_infer_like(i, 0, 0); }
static mica_status halve_run(const mica_call *c) { return mica_scale(c->ctx, c->out[0], c->in[0], 0.5f); }

static void pass_a_sum(mica_grad *g)
{
    mica_value sum = mica_grad_value(g, mica_op_find("sum"), g->dout, 1, NULL);
    mica_grad_pass(g, 0, sum);
}

static mica_status two_run(const mica_call *c) { return mica_copy(c->ctx, c->out[1], c->out[0]); }
static const mica_op two_outputs = {.name = "two", .ins = 1, .outs = 2, .run = two_run};

static void forget_an_output(mica_grad *g) { mica_grad_give(g, 0, &two_outputs, g->dout, 1, NULL); }

static void check_wrong_gradient(void (*gradient)(mica_grad *), mica_status status, const char *text)
{
    mica_context *ctx = test_context(1);
    mica_net *net = new_net(ctx);
    REQUIRE(net != NULL);
    mica_op halve = {
        .name = "halve", .ins = 1, .outs = 1, .infer = halve_infer, .run = halve_run, .gradient = gradient};
    mica_value x = layer_leaf(net, "x", 2, (mica_index[]){2, 3});
    layer_weighted_sum(net, mica_net_call(net, NULL, &halve, &x, 1, NULL));
    CHECK_ERROR(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true}), status, text);
    mica_net_destroy(net);
}

TEST(net_a_gradient_of_another_shape_is_refused)
{
    check_wrong_gradient(pass_a_sum, MICA_ERR_SHAPE,
                         "shape error: net: the gradient of halve gives f32 [] for input 0, which is [2, 3]");
}

TEST(net_a_gradient_without_a_required_output_is_refused)
{
    check_wrong_gradient(forget_an_output, MICA_ERR_ARGUMENT,
                         "argument error: net: the gradient of halve takes 1 outputs of two, which has 2");
}

TEST(net_gradients_that_are_not_there_are_refused)
{
    mica_context *ctx = test_context(1);
    for (int kind = 0; kind < 2; kind++) {
        mica_net *net = new_net(ctx);
        REQUIRE(net != NULL);
        mica_value x = layer_leaf(net, "x", 3, (mica_index[]){2, 3, 6}), y;
        if (kind == 0) {
            mica_value mask = layer_leaf(net, "mask", 2, (mica_index[]){3, 3});
            y = mica_net_attention(net, x, &(mica_net_attention_opts){.mask = mask});
        } else {
            y = mica_net_result(net, mica_net_layer_norm(net, x, NULL), 1);
        }
        layer_weighted_sum(net, y);
        CHECK_ERROR(
            ctx, mica_net_compile(net, &(mica_compile_opts){.train = true}), MICA_ERR_ARGUMENT,
            kind == 0
                ? "argument error: net: \"mask\" is learned, or made of something learned, but "
                  "attention_packed has no gradient by its input 1"
                : "argument error: net: a loss depends on output 1 of layer_norm, which has no gradient");
        mica_net_destroy(net);
    }
}

/* A step touches the rows of an embedding's gradient that it used before; those that a caller wrote to are no less its
 * own. */
TEST(net_gradients_that_a_caller_wrote_to_are_written_anew)
{
    mica_context *ctx = test_context(1);
    mica_net *net = new_net(ctx);
    REQUIRE(net != NULL);
    mica_value x = mica_net_input(net, "x", MICA_I32, 1, (mica_index[]){1});
    mica_value target = mica_net_input(net, "target", MICA_F32, 2, (mica_index[]){1, 2});
    mica_net_mse(net,
                 mica_net_embedding(net, x, &(mica_net_embedding_opts){.name = "e", .rows = 4, .width = 2}),
                 target, NULL);
    bool ready = start(ctx, net, &(mica_compile_opts){.train = true});
    for (int step = 0; ready && step < 3; step++) {
        mica_tensor t, all;
        CHECK_OK(ctx, mica_net_tensor(net, &t, "x"));
        *(int32_t *)t.data = 1;
        fill(net, "target");
        CHECK_OK(ctx, mica_net_gradients(net, NULL));
        CHECK_OK(ctx, mica_net_gradient(net, &t, "e.weight"));
        CHECK_OK(ctx, mica_net_flat(net, NULL, &all));
        CHECK(((float *)t.data)[2] != 0.0f);
        CHECK(((float *)t.data)[6] == 0.0f && ((float *)t.data)[7] == 0.0f);
        ((float *)t.data)[6] += 7.0f;
        ((float *)t.data)[7] += 7.0f;
    }
    mica_net_destroy(net);
}
