/* Learns XOR in memory that the program has from the start: not one heap call, as on a machine that has no heap. */
#include <mica/mica.h>
#include <stdio.h>
#include <string.h>

/* The context; what describes the net; the net's own block. Too small a one is an error that says by how much. */
static _Alignas(64) char context_memory[16 << 10], building_memory[64 << 10], net_memory[4 << 10];

/* An allocator that only goes forward: a net is built once, and that takes little. */
static void *take(void *user, size_t bytes, size_t alignment)
{
    size_t *used = user, at = (*used + alignment - 1) & ~(alignment - 1);
    if (bytes > sizeof building_memory - at)
        return NULL;
    *used = at + bytes;
    return building_memory + at;
}

static void give_back(void *user, void *block, size_t bytes, size_t alignment)
{
    (void)user, (void)block, (void)bytes, (void)alignment;
}

static mica_status build(mica_net *net)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){4, 2});
    mica_value target = mica_net_input(net, "target", MICA_F32, 2, (mica_index[]){4, 1});
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 8, .activation = MICA_TANH});
    mica_value y = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 1});
    mica_net_bce_logits(net, y, target, NULL);

    mica_optimizer sgd = {.kind = MICA_SGD, .lr = 0.5f, .momentum = 0.9f};
    mica_status status = mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &sgd});
    if (status == MICA_OK)
        status = mica_net_bind(net, net_memory, sizeof net_memory);
    return status == MICA_OK ? mica_net_initialize(net, 42) : status;
}

static mica_status train(mica_net *net)
{
    static const float inputs[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, targets[4] = {0, 1, 1, 0};
    mica_tensor x, target;
    mica_status status = mica_net_tensor(net, &x, "x");
    if (status == MICA_OK)
        status = mica_net_tensor(net, &target, "target");
    for (int step = 0; step < 300 && status == MICA_OK; step++) {
        memcpy(x.data, inputs, sizeof inputs);
        memcpy(target.data, targets, sizeof targets);
        status = mica_train_step(net, MICA_OPTIMIZER_LR);
    }
    return status;
}

int main(void)
{
    size_t used = 0, bytes = sizeof context_memory;
    mica_allocator allocator = {take, give_back, &used};
    mica_context_opts opts = {.workspace_bytes = 4096, .allocator = &allocator};
    mica_context *ctx;
    mica_net *net;
    if (mica_context_place(&ctx, context_memory, &bytes, &opts) != MICA_OK)
        return 1;
    mica_status status = mica_net_create(ctx, &net);
    if (status == MICA_OK)
        status = build(net);
    if (status == MICA_OK)
        status = train(net);
    if (status != MICA_OK)
        return fprintf(stderr, "%s\n", mica_error(ctx)), 1;
    printf("the net takes %zu of %zu bytes, its description %zu of %zu; the loss is %.4f\n",
           mica_net_plan(net)->total, sizeof net_memory, used, sizeof building_memory, mica_net_loss(net));
    return mica_net_loss(net) < 0.05f ? 0 : 1;
}
