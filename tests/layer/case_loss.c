/* Losses: their gradient through a dense layer, by differences of the loss itself. */
#include <math.h>
#include <string.h>

#include "layer/layer_case.h"

typedef mica_value build_loss(mica_net *net, mica_value x, mica_value target, const mica_net_loss_opts *opts);

/* Loss of a dense layer's output (through `ending`), against a target that is another leaf's sigmoid. */
static void check_loss(const char *name, build_loss *build, mica_activation ending, bool classes)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){3, 4});
    mica_value target = classes ? mica_net_input(net, "target", MICA_I32, 1, (mica_index[]){3})
                                : mica_net_input(net, "target", MICA_F32, 2, (mica_index[]){3, 5});
    mica_value y = mica_net_dense(net, x,
                                  &(mica_net_dense_opts){.name = "fc", .units = 5, .activation = ending});
    build(net, y, target, &(mica_net_loss_opts){.weight = 0.5f, .smoothing = classes ? 0.1f : 0.0f});
    if (!CHECK_MSG(mica_net_compile(net, &(mica_compile_opts){.train = true, .debug = true}) == MICA_OK,
                   "%s: %s", name, mica_error(ctx)))
        return;
    REQUIRE(mica_net_bind(net, NULL, 0) == MICA_OK && mica_net_initialize(net, 5) == MICA_OK);
    mica_tensor tx, tt, w, g;
    mica_net_tensor(net, &tx, "x");
    mica_net_tensor(net, &tt, "target");
    mica_net_tensor(net, &w, "fc.weight");
    mica_net_gradient(net, &g, "fc.weight");
    float numeric[5 * 4], *weight = w.data, largest = 1e-3f, step = 0.01f;
    for (int i = -1; i < 20; i++) {
        float loss[2];
        for (int side = 0; side < 2; side++) {
            float kept = i >= 0 ? weight[i] : 0.0f;
            if (i >= 0)
                weight[i] = kept + (side ? step : -step);
            for (size_t k = 0; k < 12; k++)
                ((float *)tx.data)[k] = sinf((float)k);
            for (size_t k = 0; k < mica_tensor_count(&tt); k++)
                if (classes)
                    ((int32_t *)tt.data)[k] = (int32_t)(k * 2 % 5);
                else
                    ((float *)tt.data)[k] = 0.5f + 0.4f * cosf((float)k);
            CHECK_OK(ctx, i < 0 ? mica_net_gradients(net, NULL) : mica_net_forward(net));
            loss[side] = mica_net_loss(net);
            if (i >= 0)
                weight[i] = kept;
        }
        if (i >= 0) {
            numeric[i] = (loss[1] - loss[0]) / (2.0f * step);
            largest = fmaxf(largest, fabsf(numeric[i]));
        }
    }
    for (int i = 0; i < 20; i++)
        CHECK_MSG(fabsf(numeric[i] - ((float *)g.data)[i]) <= 5e-3f * largest,
                  "%s: gradient %d is %g, by differences %g", name, i, (double)((float *)g.data)[i],
                  (double)numeric[i]);
    mica_net_destroy(net);
}

TEST(losses_have_the_gradient_of_their_value)
{
    check_loss("mse", mica_net_mse, MICA_NO_ACTIVATION, false);
    check_loss("l1", mica_net_l1, MICA_NO_ACTIVATION, false);
    check_loss("huber", mica_net_huber, MICA_NO_ACTIVATION, false);
    check_loss("bce", mica_net_bce, MICA_SIGMOID, false);
    check_loss("bce_logits", mica_net_bce_logits, MICA_NO_ACTIVATION, false);
    check_loss("cross_entropy", mica_net_cross_entropy, MICA_NO_ACTIVATION, true);
    check_loss("cross_entropy soft", mica_net_cross_entropy, MICA_NO_ACTIVATION, false);
    check_loss("cross_entropy_probs", mica_net_cross_entropy_probs, MICA_SIGMOID, true);
}

/* ---- Class weights ---- */

/* Weights of the classes 0 to 4, and a batch in which they differ. */
static const float class_weights[] = {0.5f, 1.0f, 2.0f, 4.0f, 0.25f};

static void fill_batch(mica_net *net)
{
    mica_tensor x, target;
    mica_net_tensor(net, &x, "x");
    mica_net_tensor(net, &target, "target");
    for (size_t k = 0; k < mica_tensor_count(&x); k++)
        ((float *)x.data)[k] = sinf((float)k);
    for (size_t k = 0; k < mica_tensor_count(&target); k++)
        ((int32_t *)target.data)[k] = (int32_t)(k * 3 % 5);
}

static mica_net *weighed_net(mica_context *ctx, const float *weights, mica_index count)
{
    mica_net *net;
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){4, 3});
    mica_value target = mica_net_input(net, "target", MICA_I32, 1, (mica_index[]){4});
    mica_value y = mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 5});
    mica_net_output(net, "y", y);
    (void)mica_net_cross_entropy(
        net, y, target, &(mica_net_loss_opts){.class_weights = weights, .class_weight_count = count});
    return net;
}

/* The mean of -log p, over samples, or weighed by their classes. */
static double expected_loss(const float *logits, const float *weights)
{
    double sum = 0.0, all = 0.0;
    for (int i = 0; i < 4; i++) {
        double total = 0.0, w = weights != NULL ? (double)weights[i * 3 % 5] : 1.0;
        for (int j = 0; j < 5; j++)
            total += exp((double)logits[i * 5 + j]);
        sum -= w * ((double)logits[i * 5 + i * 3 % 5] - log(total));
        all += w;
    }
    return sum / all;
}

TEST(losses_with_class_weights_weigh_training_alone)
{
    mica_context *ctx = test_context(1);
    mica_net *net = weighed_net(ctx, class_weights, 5);
    mica_compile_opts compile = {.train = true, .debug = true};
    CHECK_OK(ctx, mica_net_compile(net, &compile));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 5));
    mica_tensor y, w, g;
    CHECK_OK(ctx, mica_net_tensor(net, &w, "fc.weight"));
    CHECK_OK(ctx, mica_net_gradient(net, &g, "fc.weight"));
    float *weight = w.data;
    fill_batch(net);
    CHECK_OK(ctx, mica_net_forward(net));
    CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
    CHECK(fabs((double)mica_net_loss(net) - expected_loss(y.data, NULL)) < 1e-5);
    for (int i = 0; i < 15; i++) {
        double loss[2];
        float kept = weight[i], step = 0.01f;
        for (int side = 0; side < 2; side++) {
            weight[i] = kept + (side ? step : -step);
            fill_batch(net);
            CHECK_OK(ctx, mica_net_forward_training(net, 1));
            loss[side] = (double)mica_net_loss(net);
            CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
            CHECK(fabs(loss[side] - expected_loss(y.data, class_weights)) < 1e-5);
        }
        weight[i] = kept;
        fill_batch(net);
        CHECK_OK(ctx, mica_net_gradients(net, NULL));
        double slope = (loss[1] - loss[0]) / (2.0 * (double)step);
        CHECK_MSG(fabs(slope - (double)((float *)g.data)[i]) < 1e-3, "gradient %d is %g, by differences %g",
                  i, (double)((float *)g.data)[i], slope);
    }
    mica_net_destroy(net);
}

TEST(losses_refuse_class_weights_that_cannot_be)
{
    mica_context *ctx = test_context(1);
    static const float zero[] = {1.0f, 1.0f, 0.0f, 1.0f, 1.0f}, wild[] = {1.0f, NAN, 1.0f, 1.0f, 1.0f};
    static const struct {
        const float *weights;
        mica_index count;
        const char *text;
    } cases[] = {{zero, 5, "the weight of class 2 is 0: expected one above 0"},
                 {wild, 5, "the weight of class 1 is nan: expected one above 0"},
                 {class_weights, 0, "0 class weights"},
                 {class_weights, 4, "class_weights"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mica_net *net = weighed_net(ctx, cases[i].weights, cases[i].count);
        CHECK(mica_net_compile(net, NULL) != MICA_OK);
        CHECK_MSG(strstr(mica_error(ctx), cases[i].text) != NULL, "%s", mica_error(ctx));
        mica_net_destroy(net);
    }
}
