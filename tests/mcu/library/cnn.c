/* The small convolutional net, built with the library on a board without a heap: inference, and with TRAINING some
 * steps of it. The same source runs on a host, whose numbers are compared (check.py).
 *
 *   1 x 12 x 12 -> conv 8, 3x3, relu -> pool -> conv 16, 3x3, relu -> pool -> dense 10
 *
 * With FLASH the weights are constants that are lent to the net and stay where they are. */
#include <string.h>

#include <mica/layers.h>
#include <mica/train.h>

#include "board.h"

enum { SIDE = 12, CLASSES = 10, STEPS = 5 };

#if defined(ON_HOST) /* where pointers are wide, and nothing is built small */
#define BLOCK_BYTES   131072
#define CONTEXT_BYTES 262144
#elif defined(TRAINING)
#define BLOCK_BYTES   49152
#define CONTEXT_BYTES 57344
#else
#define BLOCK_BYTES   18432
#define CONTEXT_BYTES 15360
#endif

static _Alignas(64) char block[BLOCK_BYTES], place[CONTEXT_BYTES];

#if defined(FLASH)
#include "weights.h" /* made by check.py: conv1_weight and so on */
#endif

static float pixel(int image, int i) { return (float)((i * 7 + image * 13) % 23) / 23.0f - 0.3f; }

static mica_value build(mica_net *net)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, 4, (mica_index[]){1, 1, SIDE, SIDE});
    mica_value h = mica_net_conv2d(
        net, x,
        &(mica_net_conv_opts){
            .name = "conv1", .out_channels = 8, .kernel = {3, 3}, .pad = {1, 1}, .activation = MICA_RELU});
    h = mica_net_max_pool2d(net, h, &(mica_net_pool_opts){.kernel = {2, 2}});
    h = mica_net_conv2d(
        net, h,
        &(mica_net_conv_opts){
            .name = "conv2", .out_channels = 16, .kernel = {3, 3}, .pad = {1, 1}, .activation = MICA_RELU});
    h = mica_net_max_pool2d(net, h, &(mica_net_pool_opts){.kernel = {2, 2}});
    h = mica_net_flatten(net, h, NULL);
    mica_value y = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "dense", .units = CLASSES});
    mica_net_output(net, "y", y);
#if defined(TRAINING)
    mica_value label = mica_net_input(net, "label", MICA_I32, 1, (mica_index[]){1});
    mica_net_cross_entropy(net, y, label, NULL);
#endif
    return y;
}

/* Deterministic numbers, the same on every machine: what is drawn by mica_net_initialize is not needed here. */
static void set_weights(mica_net *net)
{
    uint32_t state = 12345;
    for (int p = 0; p < mica_net_parameters(net); p++) {
        const char *name;
        mica_tensor t;
        (void)mica_net_parameter(net, &name, &t, p);
        size_t count = 1;
        for (int k = 0; k < t.rank; k++)
            count *= (size_t)t.dim[k];
        for (size_t i = 0; i < count; i++) {
            state = state * 1664525u + 1013904223u;
            ((float *)t.data)[i] = ((float)(state >> 8) / 16777216.0f - 0.5f) * 0.4f;
        }
    }
}

static void set_input(mica_net *net, int image)
{
    mica_tensor x;
    (void)mica_net_tensor(net, &x, "x");
    for (int i = 0; i < SIDE * SIDE; i++)
        ((float *)x.data)[i] = pixel(image, i);
#if defined(TRAINING)
    (void)mica_net_tensor(net, &x, "label");
    *(int32_t *)x.data = image % CLASSES;
#endif
}

static int failed(mica_context *ctx, const char *what)
{
    put_text(what);
    put_text(": ");
    put_text(mica_error(ctx));
    put_text("\n");
    return 1;
}

static void report_outputs(mica_net *net)
{
    static const char *const names[CLASSES] = {"y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7", "y8", "y9"};
    mica_tensor y;
    (void)mica_net_tensor(net, &y, "y");
    for (int i = 0; i < CLASSES; i++)
        report_float(names[i], ((const float *)y.data)[i]);
}

#if defined(FLASH)
static void lend(mica_net *net, const char *name, const float *data, int rank, const mica_index *dims)
{
    mica_tensor t;
    (void)mica_tensor_init(mica_net_context(net), &t, (void *)(uintptr_t)data, MICA_F32, rank, dims);
    (void)mica_net_lend(net, name, &t);
}

static void lend_weights(mica_net *net)
{
    lend(net, "conv1.weight", conv1_weight, 4, (mica_index[]){8, 1, 3, 3});
    lend(net, "conv1.bias", conv1_bias, 1, (mica_index[]){8});
    lend(net, "conv2.weight", conv2_weight, 4, (mica_index[]){16, 8, 3, 3});
    lend(net, "conv2.bias", conv2_bias, 1, (mica_index[]){16});
    lend(net, "dense.weight", dense_weight, 2, (mica_index[]){10, 144});
    lend(net, "dense.bias", dense_bias, 1, (mica_index[]){10});
}
#endif

int main(void)
{
    mica_context *ctx;
    size_t bytes = sizeof place;
    if (mica_context_place(&ctx, place, &bytes, &(mica_context_opts){.workspace_bytes = 64}) != MICA_OK) {
        put_text("no context\n");
        return 1;
    }
    mica_net *net;
    stack_paint();
    if (mica_net_create(ctx, &net) != MICA_OK)
        return failed(ctx, "create");
    build(net);
#if defined(FLASH)
    lend_weights(net);
#endif
    report("built bytes", (uint32_t)mica_context_heap(ctx).live_bytes);
#if defined(TRAINING)
    mica_optimizer sgd = {.kind = MICA_SGD, .lr = 0.05f, .momentum = 0.9f};
    mica_compile_opts opts = {.train = true, .optimizer = &sgd};
#else
    mica_compile_opts opts = {.train = false};
#endif
    if (mica_net_compile(net, &opts) != MICA_OK)
        return failed(ctx, "compile");
    if (mica_net_bind(net, block, sizeof block) != MICA_OK)
        return failed(ctx, "bind");
    report("build stack", stack_used());
    mica_heap_stats heap = mica_context_heap(ctx);
    report("builder bytes", (uint32_t)heap.live_bytes);
    report("builder peak", (uint32_t)heap.peak_bytes);
    report("block bytes", (uint32_t)mica_net_plan(net)->total);
    memset(block, 0, mica_net_plan(net)->total);
    set_weights(net);

    set_input(net, 1);
    stack_paint();
    count_begin("inference");
    mica_status status = mica_net_forward(net);
    count_end();
    report("inference stack", stack_used());
    if (status != MICA_OK)
        return failed(ctx, "forward");
    report_outputs(net);
#if defined(TRAINING)
    static const char *const names[STEPS] = {"loss0", "loss1", "loss2", "loss3", "loss4"};
    stack_paint();
    for (int step = 0; step < STEPS; step++) {
        set_input(net, step);
        if (step == 0)
            count_begin("training");
        status = mica_train_step(net, MICA_OPTIMIZER_LR);
        if (step == 0)
            count_end();
        if (status != MICA_OK)
            return failed(ctx, "step");
        report_float(names[step], mica_net_loss(net));
    }
    report("training stack", stack_used());
    set_input(net, 1);
    (void)mica_net_forward(net);
    report_outputs(net);
#endif
    report("heap calls in steps", (uint32_t)(mica_context_heap(ctx).allocations - heap.allocations));
    report("malloc bytes", heap_used());
    return 0;
}
