/* The built-in nets: each compiles, trains, and allocates nothing on the way. */
#include <string.h>

#include <mica/netfile.h>

#include "test.h"

static void fill(mica_net *net, const mica_netfile_info *info, uint64_t seed)
{
    test_random r = test_seed(seed);
    for (int i = 0; i < mica_net_inputs(net); i++) {
        mica_tensor t;
        CHECK_OK(mica_net_context(net), mica_net_input_tensor(net, NULL, &t, i));
        for (size_t j = 0; j < mica_tensor_count(&t); j++)
            if (t.dtype == MICA_F32)
                ((float *)t.data)[j] = (float)test_uniform(&r, 0.0, 1.0);
            else
                ((int32_t *)t.data)[j] = test_int(&r, 0, (int)info->classes - 1);
    }
}

static void train(const char *name)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    mica_netfile_info info;
    mica_netfile_constant small[] = {{"width", 16, true}, {"length", 8, true}};
    mica_netfile_opts opts = {.file = name, .batch = 2, .constants = small, .constant_count = 2};
    mica_optimizer adam = {.kind = MICA_ADAM};
    REQUIRE(CHECK_OK(ctx, mica_net_create(ctx, &net)));
    if (CHECK_OK(ctx, mica_netfile_build(net, &info, mica_netfile_builtin(name), &opts)) &&
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam})) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(net, 1))) {
        float first = 0.0f;
        for (uint64_t step = 0; step < 3; step++) {
            fill(net, &info, 1);
            test_heap before = test_heap_now();
            CHECK_OK(ctx, mica_train_step(net, 1e-3f));
            if (test_heap_counted() && step > 0)
                CHECK(test_heap_now().calls == before.calls);
            first = step == 0 ? mica_net_loss(net) : first;
        }
        CHECK_MSG(mica_net_loss(net) < first, "%s: loss %g after %g", name, (double)mica_net_loss(net),
                  (double)first);
    }
    mica_net_destroy(net);
}

TEST(netfile_builtin_nets_train_without_allocating)
{
    size_t count = 0;
    for (const char *name; (name = mica_netfile_builtin_name(count)) != NULL; count++)
        train(name);
    CHECK(count == 6);
    CHECK(mica_netfile_builtin("no such") == NULL);
}
