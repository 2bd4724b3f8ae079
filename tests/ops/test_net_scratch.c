/* The promise of operations' scratch as a net sees it: every smaller batch steps within what was planned, with any
 * number of threads; and plans grow slowly with threads. */
#include <string.h>

#include <mica/netfile.h>

#include "test.h"

static mica_net *build(mica_context *ctx, const char *name, mica_index batch, bool small)
{
    mica_net *net = NULL;
    mica_netfile_info info;
    mica_netfile_constant constants[] = {{"width", 16, true}, {"length", 8, true}};
    mica_netfile_opts opts = {
        .file = name, .batch = batch, .constants = constants, .constant_count = small ? 2 : 0};
    mica_optimizer adam = {.kind = MICA_ADAM};
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    CHECK_OK(ctx, mica_netfile_build(net, &info, mica_netfile_builtin(name), &opts));
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam}));
    return net;
}

static void zero_inputs(mica_net *net)
{
    for (int i = 0; i < mica_net_inputs(net); i++) {
        mica_tensor t;
        CHECK_OK(mica_net_context(net), mica_net_input_tensor(net, NULL, &t, i));
        memset(t.data, 0, mica_tensor_bytes(&t));
    }
}

TEST(net_steps_at_every_smaller_batch)
{
    enum { BATCH = 12 };
    static const int threads[] = {1, 3, 8};
    const char *name;
    for (size_t k = 0; k < sizeof threads / sizeof threads[0]; k++) {
        mica_context *ctx = test_context(threads[k]);
        for (size_t i = 0; (name = mica_netfile_builtin_name(i)) != NULL; i++) {
            mica_net *net = build(ctx, name, BATCH, true);
            CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
            CHECK_OK(ctx, mica_net_initialize(net, 1));
            for (mica_index batch = BATCH; batch > 0; batch--) {
                CHECK_OK(ctx, mica_net_resize(net, batch));
                zero_inputs(net);
                CHECK_MSG(mica_train_step(net, 1e-3f) == MICA_OK, "%s, batch %td, %d threads: %s", name,
                          batch, threads[k], mica_error(ctx));
            }
            mica_net_destroy(net);
        }
    }
}

static size_t planned(int threads, const char *name)
{
    mica_context *ctx = test_context(threads);
    mica_net *net = build(ctx, name, 32, false);
    size_t total = mica_net_plan(net)->total;
    mica_net_destroy(net);
    return total;
}

TEST(net_plans_grow_slowly_with_threads)
{
    static const char *const names[] = {"resnet-small", "lenet", "gpt-tiny"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t one = planned(1, names[i]), eight = planned(8, names[i]), many = planned(64, names[i]);
        CHECK_MSG(2 * eight <= 3 * one, "%s: %zu bytes for one thread, %zu for 8", names[i], one, eight);
        CHECK_MSG(many <= 6 * one, "%s: %zu bytes for one thread, %zu for 64", names[i], one, many);
    }
}
