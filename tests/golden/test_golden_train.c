/* Ten steps of every optimizer and every step of the schedules against PyTorch's numbers. */
#include <math.h>
#include <string.h>

#include <mica/train.h>

#include "golden/golden.h"
#include "layer/layer_case.h"

/* Within 1e-5 of each value, not of the largest; but no nearer than 1e-5 of `least`: what is near zero came
 * there by steps of f32. */
static void compare(const golden_case *c, const char *what, int step, const float *got, const float *want,
                    size_t n, double least)
{
    for (size_t i = 0; i < n; i++) {
        double allowed = 1e-5 * fmax(fabs((double)want[i]), least);
        if (!CHECK_MSG(fabs((double)got[i] - (double)want[i]) <= allowed,
                       "%s %s: %s[%zu] after step %d is %.9g, not %.9g", c->op, c->note, what, i, step + 1,
                       (double)got[i], (double)want[i]))
            return;
    }
}

static mica_optimizer optimizer_of(const golden_case *c)
{
    return (mica_optimizer){.kind = (mica_optimizer_kind)golden_value(c, "kind", 0, 0.0),
                            .lr = (float)golden_value(c, "lr", 0, 0.0),
                            .momentum = (float)golden_value(c, "momentum", 0, 0.0),
                            .nesterov = golden_value(c, "nesterov", 0, 0.0) != 0.0,
                            .weight_decay = (float)golden_value(c, "weight_decay", 0, 0.0),
                            .beta1 = (float)golden_value(c, "beta1", 0, 0.0),
                            .beta2 = (float)golden_value(c, "beta2", 0, 0.0),
                            .alpha = (float)golden_value(c, "alpha", 0, 0.0),
                            .eps = (float)golden_value(c, "eps", 0, 0.0),
                            .decay_all = golden_value(c, "decay_all", 0, 0.0) != 0.0,
                            .clip_norm = (float)golden_value(c, "clip_norm", 0, 0.0),
                            .clip_value = (float)golden_value(c, "clip_value", 0, 0.0)};
}

/* A net whose parameters are the case's w and b and nothing else. Their gradients are set by hand. */
static mica_net *bare_parameters(mica_context *ctx, const golden_case *c)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    const mica_tensor *w = golden_find(c, "w"), *b = golden_find(c, "b");
    layer_weighted_sum(net, layer_leaf(net, "w", w->rank, w->dim));
    layer_weighted_sum(net, layer_leaf(net, "b", b->rank, b->dim));
    mica_optimizer optimizer = optimizer_of(c);
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &optimizer}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 1));
    return net;
}

/* Copies what belongs to this step from the case's "dw" and "db" to the gradients. */
static void set_gradients(mica_net *net, const golden_case *c, int step)
{
    static const char *const parameter[] = {"w.value", "b.value"}, *const given[] = {"dw", "db"};
    for (int i = 0; i < 2; i++) {
        mica_tensor gradient;
        CHECK_OK(mica_net_context(net), mica_net_gradient(net, &gradient, parameter[i]));
        size_t n = mica_tensor_count(&gradient);
        memcpy(gradient.data, (const float *)golden_find(c, given[i])->data + (size_t)step * n,
               n * sizeof(float));
    }
}

static void ten_steps(mica_context *ctx, const golden_case *c)
{
    mica_net *net = bare_parameters(ctx, c);
    mica_tensor w, b;
    REQUIRE(net != NULL && mica_net_tensor(net, &w, "w.value") == MICA_OK &&
            mica_net_tensor(net, &b, "b.value") == MICA_OK);
    const mica_tensor *w_after = golden_find(c, "w_after"), *b_after = golden_find(c, "b_after");
    size_t w_count = mica_tensor_count(&w), b_count = mica_tensor_count(&b);
    memcpy(w.data, golden_find(c, "w")->data, w_count * sizeof(float));
    memcpy(b.data, golden_find(c, "b")->data, b_count * sizeof(float));
    for (int step = 0; step < (int)w_after->dim[0]; step++) {
        set_gradients(net, c, step);
        CHECK_OK(ctx, mica_train_update(net, MICA_OPTIMIZER_LR));
        compare(c, "w", step, w.data, (const float *)w_after->data + (size_t)step * w_count, w_count, 0.1);
        compare(c, "b", step, b.data, (const float *)b_after->data + (size_t)step * b_count, b_count, 0.1);
    }
    CHECK(mica_train_steps(net) == 10);
    mica_net_destroy(net);
}

TEST(golden_optimizer)
{
    mica_context *ctx = test_context(2);
    golden_file file = golden_load("optimizer");
    CHECK(file.count >= 20);
    for (size_t i = 0; i < file.count; i++)
        ten_steps(ctx, &file.cases[i]);
    golden_free(&file);
}

TEST(golden_schedule)
{
    golden_file file = golden_load("schedule");
    CHECK(file.count >= 10);
    for (size_t i = 0; i < file.count; i++) {
        const golden_case *c = &file.cases[i];
        mica_schedule schedule = {.kind = (mica_schedule_kind)golden_value(c, "kind", 0, 0.0),
                                  .lr = (float)golden_value(c, "peak", 0, 0.0),
                                  .min_lr = (float)golden_value(c, "min_lr", 0, 0.0),
                                  .gamma = (float)golden_value(c, "gamma", 0, 0.0),
                                  .warmup = (uint64_t)golden_value(c, "warmup", 0, 0.0),
                                  .period = (uint64_t)golden_value(c, "period", 0, 0.0),
                                  .total = (uint64_t)golden_value(c, "total", 0, 0.0)};
        const mica_tensor *lr = golden_find(c, "lr");
        for (int step = 0; step < (int)lr->dim[0]; step++) {
            float got = mica_schedule_lr(&schedule, (uint64_t)step);
            compare(c, "lr", step, &got, (const float *)lr->data + step, 1, 0.0);
        }
    }
    golden_free(&file);
}
