/* mica_check_gradients: right ones pass, wrong ones are named, and nothing is changed. */
#include <math.h>
#include <string.h>

#include <mica/mica.h>

#include "oom.h"
#include "test.h"

/* y = x^2, with a backward that is off by a factor of the options. */
typedef struct wrong_opts {
    float factor;
} wrong_opts;

static mica_status infer(mica_infer *i) { return mica_infer_like(i, 0, 0); }
static mica_status run(const mica_call *c) { return mica_square(c->ctx, c->out[0], c->in[0]); }

static void gradient(mica_grad *g)
{
    mica_value product = mica_grad_value(g, mica_op_find("mul"), (mica_value[]){g->in[0], g->dout[0]}, 2,
                                         NULL);
    mica_grad_give(g, 0, mica_op_find("scale"), &product, 1,
                   &(mica_scalar_opts){2.0f * ((const wrong_opts *)g->opts)->factor});
}

static const mica_op square = {.name = "square",
                               .about = "x^2",
                               .ins = 1,
                               .outs = 1,
                               .opts_bytes = sizeof(wrong_opts),
                               .infer = infer,
                               .run = run,
                               .gradient = gradient};

/* dense, square, relu, dense, loss. */
static mica_net *make_net(mica_context *ctx, float factor, bool train)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){6, 4});
    mica_value target = mica_net_input(net, "target", MICA_F32, 2, (mica_index[]){6, 3});
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.name = "first", .units = 9});
    h = mica_net_call(net, "square", &square, &h, 1, &(wrong_opts){factor});
    h = mica_net_dense(net, h,
                       &(mica_net_dense_opts){.name = "second", .units = 30, .activation = MICA_RELU});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "last", .units = 3});
    (void)mica_net_mse(net, h, target, NULL);
    mica_net_freeze(net, "last.bias", true);
    if (mica_net_compile(net, &(mica_compile_opts){.train = train}) != MICA_OK ||
        mica_net_bind(net, NULL, 0) != MICA_OK || mica_net_initialize(net, 3) != MICA_OK) {
        mica_net_destroy(net);
        return NULL;
    }
    test_random r = test_seed(1);
    for (int n = 0; n < 2; n++) {
        const char *name;
        mica_tensor t;
        mica_net_input_tensor(net, &name, &t, n);
        for (size_t i = 0; i < mica_tensor_count(&t); i++)
            ((float *)t.data)[i] = (float)test_normal(&r);
    }
    return net;
}

TEST(check_gradients_passes_right_ones)
{
    mica_context *ctx = test_context(1);
    mica_net *net = make_net(ctx, 1.0f, true);
    REQUIRE(net != NULL);
    mica_tensor x, all;
    float inputs[24], parameters[512];
    REQUIRE(mica_net_tensor(net, &x, "x") == MICA_OK && mica_net_flat(net, &all, NULL) == MICA_OK);
    memcpy(inputs, x.data, sizeof inputs);
    REQUIRE(mica_tensor_bytes(&all) <= sizeof parameters);
    memcpy(parameters, all.data, mica_tensor_bytes(&all));
    size_t live = mica_context_heap(ctx).live_bytes;
    mica_gradient_check got;
    CHECK_OK(ctx, mica_check_gradients(net, &got, &(mica_gradient_check_opts){.count = 1000}));
    CHECK_MSG(got.right && got.error < 5e-3, "%s[%zu]: %g, by differences %g", got.name, got.element,
              got.gradient, got.difference);
    CHECK_MSG(got.checked == 36 + 9 + 270 + 30 + 90, "%zu", got.checked); /* last.bias is frozen */
    CHECK(memcmp(inputs, x.data, sizeof inputs) == 0);
    CHECK(memcmp(parameters, all.data, mica_tensor_bytes(&all)) == 0);
    CHECK(mica_context_heap(ctx).live_bytes == live);
    CHECK_OK(ctx, mica_check_gradients(net, &got, NULL));
    CHECK(got.right && got.checked == 36 + 9 + 64 + 30 + 64);
    mica_net_destroy(net);
}

TEST(check_gradients_names_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    static const float factors[] = {0.97f, 1.03f, -1.0f, 0.0f, NAN};
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        mica_net *net = make_net(ctx, factors[i], true);
        REQUIRE(net != NULL);
        mica_gradient_check got;
        CHECK_OK(ctx, mica_check_gradients(net, &got, &(mica_gradient_check_opts){.seed = i}));
        CHECK_MSG(!got.right, "a factor of %g was not found", (double)factors[i]);
        CHECK_MSG(strncmp(got.name, "first.", 6) == 0, "%g: %s is named", (double)factors[i], got.name);
        CHECK(!(got.error <= 5e-3));
        if (isfinite(factors[i]))
            CHECK_MSG(fabs(got.gradient - (double)factors[i] * got.difference) <
                          0.02 * fabs(got.difference) + 1e-3,
                      "%g: %g and %g", (double)factors[i], got.gradient, got.difference);
        mica_net_destroy(net);
    }
}

static double own_loss(void *user, mica_net *net)
{
    ++*(int *)user;
    return (double)mica_net_loss(net);
}

TEST(check_gradients_options_and_refusals)
{
    mica_context *ctx = test_context(1);
    mica_gradient_check got;
    mica_net *net = make_net(ctx, 1.0f, true), *inference = make_net(ctx, 1.0f, false);
    REQUIRE(net != NULL && inference != NULL);
    int calls = 0;
    mica_gradient_check_opts opts = {.count = 2, .tolerance = 1e-9, .loss = own_loss, .user = &calls};
    CHECK_OK(ctx, mica_check_gradients(net, &got, &opts));
    CHECK(!got.right && got.checked == 10 && calls >= 20); /* no difference is as exact as that */
    CHECK(mica_check_gradients(inference, &got, NULL) == MICA_ERR_STATE);
    CHECK_ERROR(ctx, mica_check_gradients(net, NULL, NULL), MICA_ERR_ARGUMENT,
                "argument error: check_gradients: out is NULL");
    CHECK(mica_check_gradients(NULL, &got, NULL) == MICA_ERR_ARGUMENT);
    mica_net_destroy(net);
    mica_net_destroy(inference);
}

static mica_status oom_work(const mica_allocator *allocator, void *argument)
{
    (void)argument;
    mica_context *ctx = NULL;
    mica_gradient_check got;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    mica_net *net = make_net(ctx, 1.0f, true);
    status = net != NULL ? mica_check_gradients(net, &got, &(mica_gradient_check_opts){.count = 1})
                         : mica_context_status(ctx);
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return status;
}

TEST(check_gradients_out_of_memory) { CHECK(test_oom(oom_work, NULL) > 5); }
