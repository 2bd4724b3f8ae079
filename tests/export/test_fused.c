/* Random nets of the kind that rewrites are for: dense layers small and large, convolutions with relu and max pooling
 * of many sizes, with and without a border; all optimizers, frozen layers, batches. */
#include <stdio.h>
#include <string.h>

#include "export/compiled.h"

enum { NETS = 80, STEPS = 50 };

typedef struct wanted {
    const char *name, *text;
    mica_index batch;
    bool train;
    mica_optimizer optimizer;
    const char *frozen; /* prefix; NULL: none */
} wanted;

static bool build(mica_context *ctx, mica_net **net, mica_netfile_info *info, const wanted *w,
                  mica_index batch)
{
    mica_netfile_opts opts = {.batch = batch, .inference = !w->train};
    if (!CHECK_OK(ctx, mica_net_create(ctx, net)))
        return false;
    if (!CHECK_MSG(mica_netfile_build(*net, info, w->text, &opts) == MICA_OK, "%s: %s\n%s", w->name,
                   mica_error(ctx), w->text))
        return false;
    if (w->frozen != NULL && !CHECK_OK(ctx, mica_net_freeze(*net, w->frozen, true)))
        return false;
    mica_compile_opts how = {.train = w->train, .optimizer = w->train ? &w->optimizer : NULL};
    return CHECK_MSG(mica_net_compile(*net, &how) == MICA_OK, "%s: %s", w->name, mica_error(ctx));
}

static bool set_weights(mica_context *ctx, mica_net *net)
{
    return CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(net, 3));
}

/* The net of the whole batch is what the exported one is compared with. */
static void add(mica_context *ctx, compiled *all, const wanted *w)
{
    mica_net *check = NULL, *net = NULL;
    mica_netfile_info info, same;
    exported e = {0};
    text why = {0};
    if (build(ctx, &check, &info, w, w->batch)) {
        bool apart = w->batch > 1 && !mica_net_keeps_states(check) && mica_net_samples_apart(check);
        if (build(ctx, &net, &same, w, apart ? 1 : w->batch) && set_weights(ctx, net) &&
            set_weights(ctx, check)) {
            export_opts opts = {.name = w->name,
                                .source = "a test",
                                .output = same.output,
                                .train = w->train,
                                .samples = apart ? (int)w->batch : 1,
                                .batch = apart ? 1 : (int)w->batch,
                                .optimizer = &w->optimizer,
                                .steps = STEPS};
            if (CHECK_MSG(export_net(&e, net, check, &opts, &why), "%s is refused: %s", w->name, why.bytes))
                compiled_add_test(all, w->name, &e);
        }
    }
    exported_free(&e);
    text_free(&why);
    mica_net_destroy(net);
    mica_net_destroy(check);
}

/* ---- Random nets ---- */

static const char *const activations[] = {"",        "relu", "relu6", "leaky_relu", "elu",
                                          "sigmoid", "tanh", "silu",  "gelu"};

static const char *some_activation(test_random *r) { return activations[test_int(r, 0, 8)]; }

static void put_end(text *t, test_random *r)
{
    static const char *const losses[] = {
        "cross_entropy", "cross_entropy one_hot", "cross_entropy smoothing=0.1", "mse", "l1", "huber",
        "bce_logits"};
    text_put(t, "dense %d name=y\nloss %s\n", test_int(r, 1, 9), losses[test_int(r, 0, 6)]);
}

static void put_table_net(text *t, test_random *r)
{
    text_put(t, "input x [%d]\n", test_int(r, 1, 12));
    for (int n = test_int(r, 0, 3); n > 0; n--) {
        text_put(t, "dense %d %s%s\n", test_int(r, 1, 20), some_activation(r),
                 test_chance(r, 20) ? " no_bias" : "");
        if (test_chance(r, 20))
            text_put(t, "%s\n", test_chance(r, 50) ? "layer_norm" : "rms_norm");
    }
    put_end(t, r);
}

static void put_image_net(text *t, test_random *r)
{
    int size = test_int(r, 8, 17), channels = test_int(r, 1, 3);
    text_put(t, "input x [%d, %d, %d]\n", channels, size, test_chance(r, 50) ? size : size + 2);
    for (int n = test_int(r, 1, 3); n > 0 && size >= 5; n--) {
        int kernel = 1 + 2 * test_int(r, 0, 2), pad = test_int(r, 0, kernel / 2),
            stride = test_chance(r, 25) ? 2 : 1;
        bool same = test_chance(r, 60);
        channels = test_int(r, 1, 9);
        text_put(t, "conv %d %dx%d pad=%d stride=%d %s%s\n", channels, kernel, kernel,
                 same ? kernel / 2 : pad, stride, test_chance(r, 60) ? "relu" : some_activation(r),
                 test_chance(r, 20) ? " no_bias" : "");
        size = (size + 2 * (same ? kernel / 2 : pad) - kernel) / stride + 1;
        if (test_chance(r, 65) && size >= 4) {
            int window = test_int(r, 2, 3);
            text_put(t, "%s %dx%d\n", test_chance(r, 85) ? "max_pool" : "avg_pool", window, window);
            size /= window;
        }
        if (test_chance(r, 20) && size >= 1)
            text_put(t, "residual {\n    conv %d 3x3 pad=1 relu\n    conv %d 1x1\n}\n", test_int(r, 1, 5),
                     channels);
    }
    text_put(t, "%s\n", test_chance(r, 30) ? "global_avg_pool" : "flatten");
    put_end(t, r);
}

TEST(export_fused_nets)
{
    mica_context *ctx = test_context(1);
    compiled all;
    if (!compiled_start(&all, "fused"))
        return;
    int count = test_effort(NETS);
    for (int n = 0; n < count; n++) {
        test_random r = test_seed((uint64_t)n + 1);
        static const mica_optimizer ways[] = {{.kind = MICA_SGD, .momentum = 0.9f},
                                              {.kind = MICA_SGD},
                                              {.kind = MICA_ADAM},
                                              {.kind = MICA_ADAMW, .weight_decay = 0.1f},
                                              {.kind = MICA_SGD, .momentum = 0.9f, .weight_decay = 0.01f}};
        char name[32];
        text t = {0};
        snprintf(name, sizeof name, "net%d", n);
        if (test_chance(&r, 30))
            put_table_net(&t, &r);
        else
            put_image_net(&t, &r);
        wanted w = {.name = name,
                    .text = t.bytes,
                    .batch = test_chance(&r, 50) ? 1 : test_int(&r, 2, 4),
                    .train = test_chance(&r, 60),
                    .optimizer = ways[test_chance(&r, 50) ? 0 : test_int(&r, 1, 4)]};
        if (w.train && test_chance(&r, 25) && strstr(t.bytes, "\nconv ") != NULL)
            w.frozen = "conv1";
        add(ctx, &all, &w);
        text_free(&t);
    }
    compiled_run(&all);
}
