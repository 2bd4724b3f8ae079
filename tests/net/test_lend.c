/* Parameters of layers that are lent: read where they lie. */
#include <string.h>

#include "test.h"

static mica_value build(mica_net *net)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, 4, (mica_index[]){2, 1, 6, 6});
    mica_value h = mica_net_conv2d(
        net, x,
        &(mica_net_conv_opts){.name = "conv", .out_channels = 3, .kernel = {3, 3}, .activation = MICA_RELU});
    h = mica_net_flatten(net, h, NULL);
    mica_value y = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "dense", .units = 4});
    mica_net_output(net, "y", y);
    return y;
}

static void run(mica_context *ctx, mica_net *net, float out[8])
{
    mica_tensor x, y;
    CHECK_OK(ctx, mica_net_tensor(net, &x, "x"));
    for (int i = 0; i < 72; i++)
        ((float *)x.data)[i] = (float)(i % 7) - 3.0f;
    CHECK_OK(ctx, mica_net_forward(net));
    CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
    memcpy(out, y.data, 8 * sizeof(float));
}

TEST(net_lend_reads_weights_where_they_lie)
{
    static const char *const names[] = {"conv.weight", "conv.bias", "dense.weight", "dense.bias"};
    mica_context *ctx = test_context(1);
    mica_net *own, *lent;
    float want[8], got[8];
    CHECK_OK(ctx, mica_net_create(ctx, &own));
    CHECK_OK(ctx, mica_net_create(ctx, &lent));
    build(own);
    build(lent);
    CHECK_OK(ctx, mica_net_compile(own, NULL));
    CHECK_OK(ctx, mica_net_bind(own, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(own, 7));
    for (int i = 0; i < 4; i++) {
        mica_tensor t;
        CHECK_OK(ctx, mica_net_tensor(own, &t, names[i]));
        CHECK_OK(ctx, mica_net_lend(lent, names[i], &t));
    }
    CHECK_OK(ctx, mica_net_compile(lent, NULL));
    CHECK(mica_net_plan(lent)->kind_bytes[MICA_BUFFER_PARAMETER] == 0);
    CHECK(mica_net_plan(lent)->total < mica_net_plan(own)->total);
    CHECK(mica_net_parameters(lent) == 0);
    CHECK_OK(ctx, mica_net_bind(lent, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(lent, 1)); /* leaves what is lent alone */
    run(ctx, own, want);
    run(ctx, lent, got);
    CHECK(memcmp(want, got, sizeof want) == 0);
    mica_net_destroy(lent);
    mica_net_destroy(own);
}

TEST(net_lend_refuses_what_does_not_fit)
{
    static float data[64];
    mica_context *ctx = test_context(1);
    mica_tensor wrong = mica_2d(data, 2, 3), right = mica_1d(data, 4), none = mica_1d(NULL, 4);
    const struct {
        const char *name;
        const mica_tensor *tensor;
        mica_status status;
        const char *text;
    } cases[] = {
        {"conv", &right, MICA_ERR_ARGUMENT, "argument error: net: net_lend: there is no parameter \"conv\""},
        {"other", &right, MICA_ERR_ARGUMENT,
         "argument error: net: net_lend: there is no parameter \"other\""},
        {"dense.bias", &wrong, MICA_ERR_SHAPE,
         "shape error: net: net_lend: \"dense.bias\" is f32 [2, 3]: expected f32 [4]"},
        {"dense.bias", &none, MICA_ERR_SHAPE,
         "shape error: net: net_lend: \"dense.bias\" is NULL [4]: expected f32 [4]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mica_net *net;
        CHECK_OK(ctx, mica_net_create(ctx, &net));
        build(net);
        CHECK_ERROR(ctx, mica_net_lend(net, cases[i].name, cases[i].tensor), cases[i].status, cases[i].text);
        CHECK(mica_net_compile(net, NULL) == cases[i].status);
        mica_net_destroy(net);
    }
}
