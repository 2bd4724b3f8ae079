#include "onnx/pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_attributes(proto *n, const char *text)
{
    char copy[256], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", text != NULL ? text : "");
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        *value++ = '\0';
        size_t length = strlen(value);
        int64_t numbers[8];
        int count = 0;
        if (*value == '\'') {
            value[length - 1] = '\0';
            proto_string(n, word, value + 1);
        } else if (value[length - 1] == 'f') {
            proto_real(n, word, strtof(value, NULL));
        } else if (strchr(value, ',') == NULL) {
            proto_int(n, word, strtol(value, NULL, 10));
        } else {
            char *more = NULL;
            for (char *part = strtok_r(value, ",", &more); part != NULL; part = strtok_r(NULL, ",", &more))
                numbers[count++] = strtol(part, NULL, 10);
            proto_ints(n, word, numbers, count);
        }
    }
}

static int rank_of(const pattern_value *g)
{
    int rank = 0;
    while (rank < 5 && g->dims[rank] != 0)
        rank++;
    return rank;
}

static void put_constant(proto *graph, const pattern_value *g, test_random *r)
{
    float values[4096];
    int64_t count = 1;
    int rank = rank_of(g);
    if (g->integer) {
        int64_t shape[] = {rank};
        proto_message(graph, GRAPH_INITIALIZER,
                      proto_tensor(g->name, ONNX_INT64, 1, shape, g->dims, (size_t)rank * sizeof g->dims[0]));
        return;
    }
    for (int k = 0; k < rank; k++)
        count *= g->dims[k];
    for (int64_t i = 0; i < count; i++)
        values[i] = isnan(g->number) ? (float)test_uniform(r, 0.2, 1.2) : g->number;
    proto_message(graph, GRAPH_INITIALIZER,
                  proto_tensor(g->name, ONNX_FLOAT, rank, g->dims, values, (size_t)count * sizeof *values));
}

proto pattern_model(const pattern_case *c, bool apart)
{
    proto graph = {0};
    test_random r = test_seed(7);
    int64_t any[] = {-1, -1, -1, -1, -1};
    for (int i = 0; c->nodes[i].type != NULL; i++) {
        proto n = proto_node(c->nodes[i].type, c->nodes[i].ins, c->nodes[i].outs);
        put_attributes(&n, c->nodes[i].attributes);
        proto_message(&graph, GRAPH_NODE, n);
    }
    for (int i = 0; c->constants[i].name != NULL; i++)
        put_constant(&graph, &c->constants[i], &r);
    proto_message(&graph, GRAPH_INPUT,
                  proto_value(c->input.name, ONNX_FLOAT, rank_of(&c->input), c->input.dims));
    proto_message(&graph, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, c->rank, any));
    for (int i = 0; apart && c->nodes[i + 1].type != NULL; i++) {
        char copy[64], *rest = NULL;
        snprintf(copy, sizeof copy, "%s", c->nodes[i].outs);
        for (char *name = strtok_r(copy, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest))
            proto_message(&graph, GRAPH_OUTPUT, proto_value(name, ONNX_FLOAT, c->rank, any));
    }
    return proto_model(graph, c->opset != 0 ? c->opset : 17);
}

static void list_calls(pattern_built *b)
{
    for (int i = 0; i < mica_net_program(b->net); i++) {
        mica_program_call call;
        if (mica_net_program_call(b->net, &call, i) != MICA_OK)
            return;
        size_t used = strlen(b->calls);
        snprintf(b->calls + used, sizeof b->calls - used, "%s%s", used > 0 ? " " : "", call.op->name);
        if (call.fused != NULL) {
            used = strlen(b->calls);
            snprintf(b->calls + used, sizeof b->calls - used, "+%s", call.fused);
        }
    }
}

bool pattern_build(mica_context *ctx, pattern_built *b, const pattern_case *c, proto bytes)
{
    mica_tensor x, y;
    test_random r = test_seed(5);
    if (!CHECK_OK(ctx, mica_onnx_over(ctx, &b->model, bytes.bytes, bytes.size, c->name)) ||
        !CHECK_OK(ctx, mica_net_create(ctx, &b->net)) ||
        !CHECK_OK(ctx, mica_onnx_build(b->model, b->net, NULL)) ||
        !CHECK_OK(ctx, mica_net_compile(b->net, &(mica_compile_opts){0})) ||
        !CHECK_OK(ctx, mica_net_bind(b->net, NULL, 0)) || !CHECK_OK(ctx, mica_onnx_load(b->model, b->net)) ||
        !CHECK_OK(ctx, mica_net_tensor(b->net, &x, c->input.name)))
        return false;
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)test_uniform(&r, -2, 2);
    if (!CHECK_OK(ctx, mica_net_forward(b->net)) || !CHECK_OK(ctx, mica_net_tensor(b->net, &y, "y")))
        return false;
    b->count = mica_tensor_count(&y);
    list_calls(b);
    if (!CHECK(b->count <= sizeof b->y / sizeof *b->y))
        return false;
    memcpy(b->y, y.data, b->count * sizeof *b->y);
    return true;
}

void pattern_drop(pattern_built *b, proto *bytes)
{
    mica_net_destroy(b->net);
    mica_onnx_close(b->model);
    proto_free(bytes);
}

void pattern_check(mica_context *ctx, const pattern_case *c)
{
    static pattern_built fused, apart;
    fused = apart = (pattern_built){0};
    proto one = pattern_model(c, false), other = pattern_model(c, true);
    if (pattern_build(ctx, &fused, c, one) && pattern_build(ctx, &apart, c, other)) {
        double worst = 0;
        CHECK_MSG(fused.count == apart.count, "%s: %zu numbers, apart %zu", c->name, fused.count,
                  apart.count);
        for (size_t i = 0; i < fused.count && i < apart.count; i++)
            worst = fmax(worst,
                         fabs((double)fused.y[i] - (double)apart.y[i]) / (1 + fabs((double)apart.y[i])));
        CHECK_MSG(worst < 2e-6, "%s: off by %g from its nodes apart", c->name, worst);
        CHECK_MSG(strcmp(fused.calls, c->calls) == 0, "%s is \"%s\", expected \"%s\"; apart \"%s\"", c->name,
                  fused.calls, c->calls, apart.calls);
    }
    pattern_drop(&fused, &one);
    pattern_drop(&apart, &other);
}
