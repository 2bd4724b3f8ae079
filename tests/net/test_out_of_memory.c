/* Memory that is refused while a net is built, planned and bound: no block is lost, and what was refused can be done
 * again. Steps, also those that are refused, ask for none. */
#include <string.h>

#include <mica/netfile.h>

#include "net/net.h"
#include "oom.h"

typedef struct oom_case {
    const char *name; /* of a built-in net */
    size_t percent;   /* of what it takes, as the budget */
    bool again;       /* after a refusal, the same once more */
} oom_case;

static mica_status compile_twice(mica_net *net, const oom_case *c, size_t budget)
{
    static const mica_optimizer adam = {.kind = MICA_ADAM};
    mica_compile_opts opts = {.train = true, .optimizer = &adam, .budget = budget};
    mica_status status = mica_net_compile(net, &opts);
    return status == MICA_ERR_MEMORY && c->again ? mica_net_compile(net, &opts) : status;
}

static mica_status step(mica_net *net)
{
    for (int i = 0; i < mica_net_inputs(net); i++) {
        mica_tensor t;
        CHECK(mica_net_input_tensor(net, NULL, &t, i) == MICA_OK);
        memset(t.data, 0, mica_tensor_bytes(&t));
    }
    return mica_train_step(net, MICA_OPTIMIZER_LR);
}

static mica_status plan_and_run(mica_net *net, const oom_case *c)
{
    mica_status status = compile_twice(net, c, 0);
    if (status == MICA_OK)
        status = compile_twice(net, c, mica_net_plan(net)->total * c->percent / 100);
    if (status == MICA_OK)
        status = mica_net_bind(net, NULL, 0);
    if (status == MICA_ERR_MEMORY && c->again && mica_net_plan(net) != NULL)
        status = mica_net_bind(net, NULL, 0);
    if (status != MICA_OK)
        return status;
    CHECK(mica_net_initialize(net, 1) == MICA_OK);
    CHECK(step(net) == MICA_OK && mica_net_resize(net, 3) == MICA_OK && step(net) == MICA_OK);
    return MICA_OK;
}

static mica_status oom_net(const mica_allocator *allocator, void *argument)
{
    const oom_case *c = argument;
    mica_context *ctx;
    mica_net *net = NULL;
    mica_netfile_info info;
    mica_netfile_constant small[] = {{"width", 16, true}, {"length", 8, true}};
    mica_netfile_opts opts = {.file = c->name, .batch = 6, .constants = small, .constant_count = 2};
    mica_status status = mica_context_create(&ctx,
                                             &(mica_context_opts){.threads = 1, .allocator = allocator});
    if (status != MICA_OK)
        return status;
    status = mica_net_create(ctx, &net);
    if (status == MICA_OK)
        status = mica_netfile_build(net, &info, mica_netfile_builtin(c->name), &opts);
    if (status == MICA_OK) {
        status = plan_and_run(net, c);
        CHECK_MSG(status == MICA_OK || !c->again, "%s: %s", c->name,
                  mica_error(ctx)); /* only one call is refused */
    }
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return status;
}

TEST(out_of_memory_while_a_net_is_made)
{
    static oom_case cases[] = {{"mlp", 100, false},   {"mlp", 100, true}, {"lenet", 94, false},
                               {"lenet", 94, true},   {"lstm", 85, true}, {"resnet-small", 85, true},
                               {"gpt-tiny", 85, true}};
    int count = test_effort((int)(sizeof cases / sizeof cases[0]));
    for (int i = 0; i < (count > 2 ? count : 2); i++)
        CHECK_MSG(test_oom(oom_net, &cases[i]) > 20, "%s", cases[i].name);
}

/* Sizes and tensors that are refused take no memory for saying so. */
TEST(out_of_memory_never_in_refused_steps)
{
    oom_heap heap = {.refuse = 0};
    mica_allocator allocator = oom_allocator(&heap);
    mica_context *ctx;
    mica_net *net;
    REQUIRE(mica_context_create(&ctx, &(mica_context_opts){.threads = 1, .allocator = &allocator}) ==
            MICA_OK);
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_input(net, "x", MICA_Q8_0, 1, (mica_index[]){64});
    mica_value y = mica_net_op(net, "parts of it", "copy", &x, 1, &(mica_copy_opts){.cast = true});
    mica_value halves = mica_net_op(net, "halves", "split", &y, 1, &(mica_split_opts){.count = 2});
    mica_value second = mica_net_result(net, halves, 1);
    mica_net_op(net, "z", "neg", &second, 1, NULL);
    CHECK_OK(ctx, mica_net_compile(net, NULL));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    int calls = heap.calls;
    for (int i = 0; i < 2000; i++) {
        mica_tensor t;
        CHECK(mica_net_resize(net, 33) == MICA_ERR_SHAPE && mica_net_resize(net, 65) == MICA_ERR_SHAPE);
        CHECK(mica_net_value_tensor(net, &t, second) == MICA_ERR_STATE);
    }
    CHECK_MSG(heap.calls == calls, "%d heap calls", heap.calls - calls);
    mica_net_destroy(net);
    mica_context_destroy(ctx);
}
