/* What a smaller step needs is never more than what was planned: every built-in net at every batch and many lengths,
 * with one to eight threads, on every instruction set that is here. */
#include <stdlib.h>
#include <string.h>

#include <mica/netfile.h>

#include "net/net.h"
#include "test.h"

enum { BATCH = 32 };

static mica_net *builtin_net(mica_context *ctx, const char *name)
{
    mica_net *net;
    mica_netfile_info info;
    mica_optimizer adam = {.kind = MICA_ADAM};
    if (mica_net_create(ctx, &net) == MICA_OK &&
        mica_netfile_build(net, &info, mica_netfile_builtin(name), &(mica_netfile_opts){.batch = BATCH}) ==
            MICA_OK &&
        mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam}) == MICA_OK)
        return net;
    test_check(false, __FILE__, __LINE__, "%s: %s", name, mica_error(ctx));
    mica_net_destroy(net);
    return NULL;
}

/* Asks every call of the program, at the sizes of now, how much scratch it takes. */
static void check_sizes(mica_net *net, const char *name)
{
    for (int e = 0; e < net->entry_count; e++) {
        mica_entry *entry = &net->entries[e];
        for (int training = 0; training < 2; training++) {
            if (!training && entry->phase != MICA_PHASE_FORWARD)
                continue;
            mica_measure_begin(net->ctx);
            mica_status status = mica_net_run_entry(net, entry,
                                                    &(mica_mode){.training = training == 1, .scale = 1.0f});
            size_t bytes = mica_measure_end(net->ctx);
            CHECK_MSG(status == MICA_OK && bytes <= entry->workspace_bytes,
                      "%s, %d threads, %s, batch %td: %s of %s takes %zu bytes, %zu were planned (%s)", name,
                      mica_context_threads(net->ctx), mica_context_isa(net->ctx), net->size[0].now,
                      entry->node.op->name, net->layers[entry->node.layer].name, bytes,
                      entry->workspace_bytes, status == MICA_OK ? "" : mica_error(net->ctx));
        }
    }
}

static void check_every_size(mica_context *ctx, const char *name)
{
    mica_net *net = builtin_net(ctx, name);
    REQUIRE(net != NULL);
    for (mica_index batch = 1; batch <= BATCH; batch++) {
        CHECK_OK(ctx, mica_net_resize(net, batch));
        check_sizes(net, name);
        for (int s = 1; s < mica_net_sizes(net); s++) { /* lengths: short ones, odd ones, some others */
            const char *size;
            mica_index most;
            CHECK_OK(ctx, mica_net_size_at(net, &size, NULL, &most, s));
            for (mica_index length = 1; length < most; length += 1 + length * batch / 8) {
                CHECK_OK(ctx, mica_net_set_size(net, size, length));
                check_sizes(net, name);
            }
            CHECK_OK(ctx, mica_net_set_size(net, size, most));
        }
    }
    mica_net_destroy(net);
}

TEST(smaller_steps_need_no_more_than_was_planned)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        for (int threads = 1; threads <= 8; threads++) {
            mica_context *ctx;
            if (mica_context_create(&ctx, &(mica_context_opts){.threads = threads, .isa = isas[i]}) !=
                MICA_OK)
                break; /* not on this processor */
            for (size_t n = 0; mica_netfile_builtin_name(n) != NULL; n++)
                check_every_size(ctx, mica_netfile_builtin_name(n));
            mica_context_destroy(ctx);
        }
}

/* The same, run: a training step, then the loss alone. */
TEST(smaller_steps_run)
{
    for (size_t n = 0; mica_netfile_builtin_name(n) != NULL; n++) {
        const char *name = mica_netfile_builtin_name(n);
        mica_context *ctx = test_context(1 + (int)n % 3);
        mica_net *net = builtin_net(ctx, name);
        REQUIRE(net != NULL && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
                CHECK_OK(ctx, mica_net_initialize(net, 1)));
        test_random r = test_seed(n);
        test_heap heap = test_heap_now();
        for (int step = 0; step < test_effort(12); step++) {
            CHECK_OK(ctx, mica_net_resize(net, test_int(&r, 1, BATCH)));
            if (mica_net_sizes(net) > 1)
                CHECK_OK(ctx, mica_net_set_size(net, "length", test_int(&r, 1, 64)));
            for (int i = 0; i < mica_net_inputs(net); i++) {
                mica_tensor t;
                CHECK_OK(ctx, mica_net_input_tensor(net, NULL, &t, i));
                memset(t.data, 0, mica_tensor_bytes(&t));
            }
            CHECK_MSG(mica_train_step(net, 0.001f) == MICA_OK, "%s: %s", name, mica_error(ctx));
        }
        CHECK(test_heap_now().calls == heap.calls);
        mica_net_destroy(net);
    }
}
