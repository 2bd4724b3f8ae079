/* The table of example nets. A new net is one line in it. */
#include "net/example_nets.h"

#define DIMS(...) \
    (int)(sizeof((mica_index[]){__VA_ARGS__}) / sizeof(mica_index)), (mica_index[]) { __VA_ARGS__ }

static void build_xor(mica_net *net, mica_index batch)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(batch, 2));
    mica_value target = mica_net_input(net, "target", MICA_F32, DIMS(batch, 1));
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 8, .activation = MICA_TANH});
    mica_value y = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 1});
    mica_net_output(net, "y", y);
    mica_net_bce_logits(net, y, target, NULL);
}

static void build_mlp(mica_net *net, mica_index batch)
{
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(batch, 784));
    mica_value label = mica_net_input(net, "label", MICA_I32, DIMS(batch));
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 128, .activation = MICA_RELU});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 64, .activation = MICA_GELU});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 10});
    mica_net_output(net, "logits", h);
    mica_net_cross_entropy(net, h, label, NULL);
}

const example_net example_nets[] = {
    {"xor", 4, 2, {.kind = MICA_ADAM, .lr = 0.05f}, build_xor},
    {"mlp", 32, 10, {.kind = MICA_SGD, .momentum = 0.9f, .nesterov = true}, build_mlp},
};

const int example_net_count = (int)(sizeof example_nets / sizeof example_nets[0]);

/* ---- What all of them share ---- */

mica_net *example_net_make(mica_context *ctx, const example_net *example, mica_index batch,
                           const mica_compile_opts *opts)
{
    mica_net *net;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    example->build(net, batch > 0 ? batch : example->batch);
    mica_compile_opts usual = {.train = true, .optimizer = &example->optimizer};
    if (CHECK_MSG(mica_net_compile(net, opts != NULL ? opts : &usual) == MICA_OK, "%s: %s", example->name,
                  mica_error(ctx)) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(net, 7)))
        return net;
    mica_net_destroy(net);
    return NULL;
}

void example_net_fill(mica_net *net, const example_net *example, uint64_t seed)
{
    test_random r = test_seed(seed);
    for (int i = 0; i < mica_net_inputs(net); i++) {
        mica_tensor t;
        CHECK_OK(mica_net_context(net), mica_net_input_tensor(net, i, NULL, &t));
        for (size_t j = 0; j < mica_tensor_count(&t); j++) {
            if (t.dtype == MICA_F32)
                ((float *)t.data)[j] = (float)test_uniform(&r, 0.0, 1.0);
            else
                ((int32_t *)t.data)[j] = test_int(&r, 0, example->below - 1);
        }
    }
}

void check_plan(const mica_plan *plan)
{
    size_t end = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const mica_plan_buffer *a = &plan->buffers[i];
        end = a->offset + a->bytes > end ? a->offset + a->bytes : end;
        for (size_t j = 0; j < i; j++) {
            const mica_plan_buffer *b = &plan->buffers[j];
            bool in_time = a->first <= b->last && b->first <= a->last;
            bool in_space = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
            CHECK_MSG(!(in_time && in_space), "%s and %s overlap", a->name, b->name);
        }
    }
    CHECK(end == plan->total);
    CHECK(plan->lower_bound <= plan->total);
}
