/* Losses: their gradient through a dense layer, by differences of the loss itself. */
#include <math.h>

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
