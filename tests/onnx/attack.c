#include "onnx/attack.h"

#include <stdlib.h>
#include <string.h>

#define MOST_INPUTS 16
#define MOST_BYTES  ((size_t)1 << 20) /* of a plan that is run */
#define MOST_BLOCK  ((size_t)64 << 20)

static void *small_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    return bytes <= MOST_BLOCK ? aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1)) : NULL;
}

static void small_release(void *user, void *block, size_t bytes, size_t alignment)
{
    (void)user;
    (void)bytes;
    (void)alignment;
    free(block);
}

mica_context *attack_context(void)
{
    static const mica_allocator small = {small_allocate, small_release, NULL};
    mica_context *ctx = NULL;
    CHECK(mica_context_create(&ctx, &(mica_context_opts){.allocator = &small}) == MICA_OK);
    return ctx;
}

static int shapes_of(mica_context *ctx, const mica_onnx *model, mica_onnx_set *sets, mica_tensor *shapes)
{
    int count = 0;
    for (int i = 0; i < mica_onnx_inputs(model) && i < MOST_INPUTS; i++) {
        mica_onnx_value v;
        mica_index dims[MICA_MAX_RANK];
        CHECK(mica_onnx_input(model, &v, i) == MICA_OK && v.name != NULL && v.type != NULL);
        if (v.dtype == MICA_DTYPE_COUNT || v.rank < 0)
            continue;
        for (int k = 0; k < v.rank; k++)
            dims[k] = v.dim[k] >= 0 ? v.dim[k] : 2;
        if (mica_tensor_init(ctx, &shapes[count], NULL, v.dtype, v.rank, dims) != MICA_OK)
            continue;
        sets[count] = (mica_onnx_set){.name = v.name, .value = &shapes[count]};
        count++;
    }
    return count;
}

static attack_end run(mica_onnx *model, mica_net *net)
{
    if (mica_net_compile(net, &(mica_compile_opts){0}) != MICA_OK || mica_net_plan(net)->total > MOST_BYTES)
        return ATTACK_BUILT;
    if (mica_net_bind(net, NULL, 0) != MICA_OK)
        return ATTACK_BUILT;
    for (int i = 0; i < mica_net_inputs(net); i++) {
        const char *name;
        mica_tensor t;
        if (CHECK(mica_net_input_tensor(net, &name, &t, i) == MICA_OK))
            memset(t.data, 0, mica_tensor_bytes(&t));
    }
    test_heap before = test_heap_now();
    mica_status status = mica_net_forward(net);
    CHECK(test_heap_now().calls == before.calls);
    if (status != MICA_OK)
        return ATTACK_BUILT;
    for (int i = 0; i < mica_onnx_outputs(model); i++) {
        mica_onnx_value v;
        mica_tensor t;
        uint64_t sum = 0; /* all of it is read, for sanitizers */
        CHECK(mica_onnx_output(model, &v, i) == MICA_OK && mica_net_tensor(net, &t, v.name) == MICA_OK);
        for (mica_iter it = mica_iter_begin(&t, 0, NULL); it.valid; mica_iter_next(&it))
            sum += *(const unsigned char *)it.element;
        CHECK(sum <= 255 * (uint64_t)mica_tensor_count(&t));
    }
    return ATTACK_RAN;
}

static attack_end build(mica_context *ctx, mica_onnx *model, bool train)
{
    mica_onnx_set sets[MOST_INPUTS];
    mica_tensor shapes[MOST_INPUTS];
    mica_net *net;
    attack_end end = ATTACK_UNSUPPORTED;
    (void)mica_onnx_describe(model);
    int count = shapes_of(ctx, model, sets, shapes);
    CHECK(mica_net_create(ctx, &net) == MICA_OK);
    if (mica_onnx_build(model, net, &(mica_onnx_opts){.sets = sets, .count = count, .train = train}) ==
        MICA_OK)
        end = train ? ATTACK_BUILT : run(model, net);
    for (int i = 0; i < mica_onnx_problems(model); i++) {
        mica_onnx_problem p;
        CHECK(mica_onnx_problem_at(model, &p, i) == MICA_OK && p.node != NULL && p.type != NULL &&
              p.reason != NULL && strlen(p.reason) > 0);
    }
    mica_net_destroy(net);
    return end;
}

attack_end attack(mica_context *ctx, const unsigned char *bytes, size_t size)
{
    /* A copy of exactly this size, so that a sanitizer sees a step past its end. */
    unsigned char *copy = malloc(size > 0 ? size : 1);
    size_t live = mica_context_heap(ctx).live_bytes, workspace = mica_workspace_bytes(ctx);
    mica_onnx *model = NULL;
    attack_end end = ATTACK_REFUSED;
    if (copy == NULL)
        abort();
    if (size > 0)
        memcpy(copy, bytes, size);
    mica_status status = mica_onnx_over(ctx, &model, copy, size, "attack");
    CHECK((status == MICA_OK) == (model != NULL));
    if (model != NULL)
        end = build(ctx, model, false);
    if (model != NULL)
        (void)build(ctx, model, true);
    mica_onnx_close(model);
    if (workspace == mica_workspace_bytes(ctx)) /* folding may have let it grow */
        CHECK(mica_context_heap(ctx).live_bytes == live);
    free(copy);
    return end;
}

attack_end attack_with(mica_context *ctx, proto model)
{
    attack_end end = attack(ctx, model.bytes, model.size);
    proto_free(&model);
    return end;
}
