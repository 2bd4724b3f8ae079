/* ONNX: any bytes are an error, or a model that can be described; its net is an error too, or it runs, and learns. */
#include <string.h>

#include "fuzz.h"

#include <mica/onnx.h>

#define MOST_INPUTS 16
#define MOST_BYTES  ((size_t)1 << 20) /* of a plan that is run */

/* A refusal of what would take more memory than a small input is worth: as on a small machine. */
static void *small_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    return bytes <= (size_t)64 << 20 ? aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1))
                                     : NULL;
}

static void small_release(void *user, void *block, size_t bytes, size_t alignment)
{
    (void)user;
    (void)bytes;
    (void)alignment;
    free(block);
}

/* Every input has the shape that the model says, sizes that it leaves open being 2. */
static int shapes_of(mica_context *ctx, const mica_onnx *model, mica_onnx_set *sets, mica_tensor *shapes)
{
    int count = 0;
    for (int i = 0; i < mica_onnx_inputs(model) && i < MOST_INPUTS; i++) {
        mica_onnx_value v;
        INSIST(mica_onnx_input(model, &v, i) == MICA_OK && v.name != NULL && v.type != NULL);
        if (v.dtype == MICA_DTYPE_COUNT || v.rank < 0)
            continue;
        mica_index dims[MICA_MAX_RANK];
        for (int k = 0; k < v.rank; k++)
            dims[k] = v.dim[k] >= 0 ? v.dim[k] : 2;
        if (mica_tensor_init(ctx, &shapes[count], NULL, v.dtype, v.rank, dims) != MICA_OK)
            continue;
        sets[count] = (mica_onnx_set){.name = v.name, .value = &shapes[count]};
        count++;
    }
    return count;
}

static void run(mica_context *ctx, mica_onnx *model, mica_net *net)
{
    if (mica_net_compile(net, &(mica_compile_opts){0}) != MICA_OK || mica_net_plan(net)->total > MOST_BYTES)
        return;
    INSIST(mica_net_bind(net, NULL, 0) == MICA_OK);
    for (int i = 0; i < mica_net_inputs(net); i++) {
        const char *name;
        mica_tensor t;
        INSIST(mica_net_input_tensor(net, &name, &t, i) == MICA_OK);
        memset(t.data, 0, mica_tensor_bytes(&t));
    }
    if (mica_net_forward(net) != MICA_OK)
        return;
    for (int i = 0; i < mica_onnx_outputs(model); i++) {
        mica_onnx_value v;
        mica_tensor t;
        volatile unsigned sum = 0;
        INSIST(mica_onnx_output(model, &v, i) == MICA_OK && mica_net_tensor(net, &t, v.name) == MICA_OK);
        for (mica_iter it = mica_iter_begin(&t, 0, NULL); it.valid; mica_iter_next(&it))
            sum += *(const unsigned char *)it.element;
        (void)sum;
    }
    (void)ctx;
}

/* Gradients of all weights, where the first output can be compared with a target. */
static void learn(mica_context *ctx, mica_onnx *model, mica_net *net)
{
    static const mica_optimizer sgd = {.kind = MICA_SGD};
    mica_onnx_value v;
    mica_tensor shape;
    (void)ctx;
    if (mica_onnx_outputs(model) == 0 || mica_onnx_output(model, &v, 0) != MICA_OK ||
        mica_net_shape(net, &shape, mica_net_named(net, v.name)) != MICA_OK || shape.dtype != MICA_F32)
        return;
    mica_value target = mica_net_input(net, "a target", MICA_F32, shape.rank, shape.dim);
    (void)mica_net_mse(net, mica_net_named(net, v.name), target, NULL);
    if (mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &sgd}) != MICA_OK ||
        mica_net_plan(net)->total > MOST_BYTES)
        return;
    INSIST(mica_net_bind(net, NULL, 0) == MICA_OK && mica_net_initialize(net, 1) == MICA_OK);
    INSIST(mica_onnx_load(model, net) == MICA_OK);
    for (int i = 0; i < mica_net_inputs(net); i++) {
        const char *name;
        mica_tensor t;
        INSIST(mica_net_input_tensor(net, &name, &t, i) == MICA_OK);
        memset(t.data, 0, mica_tensor_bytes(&t));
    }
    (void)mica_net_gradients(net, NULL);
}

static void build(mica_context *ctx, mica_onnx *model, bool train)
{
    mica_onnx_set sets[MOST_INPUTS];
    mica_tensor shapes[MOST_INPUTS];
    mica_net *net;
    int count = shapes_of(ctx, model, sets, shapes);
    INSIST(mica_net_create(ctx, &net) == MICA_OK);
    if (mica_onnx_build(model, net, &(mica_onnx_opts){.sets = sets, .count = count, .train = train}) ==
        MICA_OK)
        (train ? learn : run)(ctx, model, net);
    for (int i = 0; i < mica_onnx_problems(model); i++) {
        mica_onnx_problem p;
        INSIST(mica_onnx_problem_at(model, &p, i) == MICA_OK && p.reason != NULL && strlen(p.reason) > 0);
    }
    mica_net_destroy(net);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const mica_allocator small = {small_allocate, small_release, NULL};
    mica_context *ctx;
    INSIST(mica_context_create(&ctx, &(mica_context_opts){.allocator = &small}) == MICA_OK);
    size_t live = mica_context_heap(ctx).live_bytes;
    /* A copy of exactly this size, so that the sanitizer sees a step past the end. */
    unsigned char *copy = malloc(size > 0 ? size : 1);
    INSIST(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    mica_onnx *model = NULL;
    mica_status status = mica_onnx_over(ctx, &model, copy, size, "fuzz");
    INSIST((status == MICA_OK) == (model != NULL));
    for (int train = 0; train < 2 && model != NULL; train++)
        build(ctx, model, train != 0);
    mica_onnx_close(model);
    INSIST(mica_context_heap(ctx).live_bytes == live);
    free(copy);
    mica_context_destroy(ctx);
    return 0;
}
