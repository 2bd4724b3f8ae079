/* Einsum in nets of two sizes that may be smaller. */
#include <string.h>

#include <mica/mica.h>

#include "onnx/proto.h"
#include "onnx/sized.h"
#include "test.h"

enum { BATCH = 4, LENGTH = 6, DEPTH = 3 };

static mica_net *built_of_two(mica_context *ctx, mica_onnx *model, mica_index batch, mica_index length)
{
    mica_net *net;
    const mica_onnx_set sets[] = {{.name = "n", .size = batch}, {.name = "m", .size = length}};
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    if (CHECK_OK(ctx, mica_onnx_build(model, net, &(mica_onnx_opts){.sets = sets, .count = 2})) &&
        CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0})) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0)))
        return net;
    mica_net_destroy(net);
    return NULL;
}

/* y of x [n, m, 3] and w, by such an equation. */
static proto einsum_model(const char *equation, const char *ins, const int64_t *w, int rank)
{
    static const float numbers[] = {0.5f, -1.0f, 2.0f, 0.25f, 1.5f, -0.75f};
    proto graph = {0}, node = proto_node("Einsum", ins, "y");
    proto_string(&node, "equation", equation);
    proto_message(&graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 3, (int64_t[]){-1, -2, DEPTH}));
    proto_message(&graph, GRAPH_INITIALIZER, proto_tensor("w", ONNX_FLOAT, rank, w, numbers, sizeof numbers));
    proto_message(&graph, GRAPH_NODE, node);
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 3, (int64_t[]){-1, -2, PROTO_OPEN}));
    return proto_model(graph, 17);
}

/* As a linear layer, and as attention has it: a batch and a length that both may be smaller. */
TEST(onnx_einsum_follows_two_sizes)
{
    static const struct {
        const char *equation, *ins;
    } cases[] = {
        {"bte,ef->btf", "x w"}, {"bte,bse->bts", "x x"}, {"ef,bte->btf", "w x"}, {"bte,ef->fbt", "x w"}};
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        proto bytes = einsum_model(cases[i].equation, cases[i].ins, (int64_t[]){DEPTH, 2}, 2);
        mica_onnx *model;
        REQUIRE(mica_onnx_over(ctx, &model, bytes.bytes, bytes.size, "einsum") == MICA_OK);
        mica_net *most = built_of_two(ctx, model, BATCH, LENGTH);
        for (mica_index batch = BATCH; most != NULL && batch > 0; batch--)
            for (mica_index length = LENGTH; length > 0; length--) {
                float got[BATCH * LENGTH * LENGTH] = {0}, want[BATCH * LENGTH * LENGTH] = {0};
                mica_net *exact = built_of_two(ctx, model, batch, length);
                if (exact != NULL && CHECK_OK(ctx, mica_net_set_size(most, "batch", batch)) &&
                    CHECK_OK(ctx, mica_net_set_size(most, "m", length))) {
                    sized_run(ctx, most, got);
                    sized_run(ctx, exact, want);
                    CHECK_MSG(memcmp(got, want, sizeof got) == 0, "%s: %td by %td", cases[i].equation, batch,
                              length);
                }
                mica_net_destroy(exact);
            }
        mica_net_destroy(most);
        mica_onnx_close(model);
        proto_free(&bytes);
    }
}
