#include "onnx/proto.h"

#include <stdlib.h>
#include <string.h>

void proto_free(proto *p)
{
    free(p->bytes);
    *p = (proto){0};
}

void proto_put(proto *p, const void *bytes, size_t count)
{
    if (p->room - p->size < count) {
        p->room = 2 * (p->size + count) + 64;
        unsigned char *more = realloc(p->bytes, p->room);
        if (more == NULL)
            abort();
        p->bytes = more;
    }
    if (count > 0)
        memcpy(p->bytes + p->size, bytes, count);
    p->size += count;
}

void proto_varint(proto *p, uint64_t value)
{
    do {
        unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        proto_put(p, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

void proto_number(proto *p, unsigned field, uint64_t value)
{
    proto_varint(p, (uint64_t)field << 3);
    proto_varint(p, value);
}

void proto_float(proto *p, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    unsigned char bytes[4] = {(unsigned char)bits, (unsigned char)(bits >> 8), (unsigned char)(bits >> 16),
                              (unsigned char)(bits >> 24)};
    proto_varint(p, (uint64_t)field << 3 | 5);
    proto_put(p, bytes, sizeof bytes);
}

void proto_bytes(proto *p, unsigned field, const void *bytes, size_t count)
{
    proto_varint(p, (uint64_t)field << 3 | 2);
    proto_varint(p, count);
    proto_put(p, bytes, count);
}

void proto_text(proto *p, unsigned field, const char *text) { proto_bytes(p, field, text, strlen(text)); }

void proto_message(proto *p, unsigned field, proto message)
{
    proto_bytes(p, field, message.bytes, message.size);
    proto_free(&message);
}

proto proto_value(const char *name, int type, int rank, const int64_t *dims)
{
    proto value = {0}, is = {0}, tensor = {0}, shape = {0};
    for (int i = 0; i < rank; i++) {
        proto dim = {0};
        if (dims[i] >= 0)
            proto_number(&dim, 1, (uint64_t)dims[i]);
        else if (dims[i] != PROTO_OPEN)
            proto_text(&dim, 2, dims[i] == -1 ? "n" : "m");
        proto_message(&shape, 1, dim);
    }
    proto_number(&tensor, 1, (uint64_t)type);
    proto_message(&tensor, 2, shape);
    proto_message(&is, 1, tensor);
    proto_text(&value, 1, name);
    proto_message(&value, 2, is);
    return value;
}

proto proto_tensor(const char *name, int type, int rank, const int64_t *dims, const void *raw, size_t bytes)
{
    proto t = {0};
    for (int i = 0; i < rank; i++)
        proto_number(&t, 1, (uint64_t)dims[i]);
    proto_number(&t, 2, (uint64_t)type);
    proto_text(&t, 8, name);
    proto_bytes(&t, 9, raw, bytes);
    return t;
}

static void put_names(proto *node, unsigned field, const char *names)
{
    while (*names != '\0') {
        size_t length = strcspn(names, " ");
        proto_bytes(node, field, names, length == 1 && *names == '-' ? 0 : length);
        names += length;
        names += *names == ' ';
    }
}

proto proto_node(const char *type, const char *ins, const char *outs)
{
    proto node = {0};
    put_names(&node, 1, ins);
    put_names(&node, 2, outs);
    proto_text(&node, 4, type);
    return node;
}

/* ---- Attributes ---- */

static proto attribute(const char *name, unsigned kind)
{
    proto a = {0};
    proto_text(&a, 1, name);
    proto_number(&a, 20, kind);
    return a;
}

void proto_int(proto *node, const char *name, int64_t value)
{
    proto a = attribute(name, 2);
    proto_number(&a, 3, (uint64_t)value);
    proto_message(node, 5, a);
}

void proto_ints(proto *node, const char *name, const int64_t *values, int count)
{
    proto a = attribute(name, 7);
    for (int i = 0; i < count; i++)
        proto_number(&a, 8, (uint64_t)values[i]);
    proto_message(node, 5, a);
}

void proto_real(proto *node, const char *name, float value)
{
    proto a = attribute(name, 1);
    proto_float(&a, 2, value);
    proto_message(node, 5, a);
}

void proto_reals(proto *node, const char *name, const float *values, int count)
{
    proto a = attribute(name, 6);
    for (int i = 0; i < count; i++)
        proto_float(&a, 7, values[i]);
    proto_message(node, 5, a);
}

void proto_strings(proto *node, const char *name, const char *const *values, int count)
{
    proto a = attribute(name, 8);
    for (int i = 0; i < count; i++)
        proto_text(&a, 9, values[i]);
    proto_message(node, 5, a);
}

void proto_string(proto *node, const char *name, const char *value)
{
    proto a = attribute(name, 3);
    proto_text(&a, 4, value);
    proto_message(node, 5, a);
}

void proto_tensor_attribute(proto *node, const char *name, proto tensor)
{
    proto a = attribute(name, 4);
    proto_message(&a, 5, tensor);
    proto_message(node, 5, a);
}

void proto_graph_attribute(proto *node, const char *name, proto graph)
{
    proto a = attribute(name, 5);
    proto_message(&a, 6, graph);
    proto_message(node, 5, a);
}

proto proto_model(proto graph, int64_t opset)
{
    proto model = {0}, version = {0};
    proto_number(&model, 1, 8);
    proto_text(&model, 2, "tests");
    proto_message(&model, 7, graph);
    proto_number(&version, 2, (uint64_t)opset);
    proto_message(&model, 8, version);
    return model;
}

void proto_domain(proto *model, const char *domain, int64_t opset)
{
    proto version = {0};
    proto_text(&version, 1, domain);
    proto_number(&version, 2, (uint64_t)opset);
    proto_message(model, 8, version);
}

/* ---- Samples ---- */

static proto relu(void)
{
    proto g = {0};
    proto_message(&g, GRAPH_NODE, proto_node("Relu", "x", "y"));
    proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, (int64_t[]){-1, 3}));
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){-1, 3}));
    return proto_model(g, 17);
}

static proto dense(void)
{
    proto g = {0};
    static const float w[] = {1, 2, 3, 4, 5, 6}, b[] = {0.5f, -1};
    proto_message(&g, GRAPH_NODE, proto_node("MatMul", "x w", "h"));
    proto_message(&g, GRAPH_NODE, proto_node("Add", "h b", "s"));
    proto_message(&g, GRAPH_NODE, proto_node("Relu", "s", "y"));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("w", ONNX_FLOAT, 2, (int64_t[]){3, 2}, w, sizeof w));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("b", ONNX_FLOAT, 1, (int64_t[]){2}, b, sizeof b));
    proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, (int64_t[]){-1, 3}));
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){-1, 2}));
    return proto_model(g, 17);
}

static proto conv(void)
{
    proto g = {0}, node = proto_node("Conv", "x w", "h"), pool = proto_node("MaxPool", "h", "p"),
          flat = proto_node("Flatten", "p", "y");
    float w[2 * 1 * 3 * 3];
    for (size_t i = 0; i < sizeof w / sizeof w[0]; i++)
        w[i] = (float)i / 9;
    proto_ints(&node, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    proto_ints(&node, "kernel_shape", (int64_t[]){3, 3}, 2);
    proto_ints(&pool, "kernel_shape", (int64_t[]){2, 2}, 2);
    proto_ints(&pool, "strides", (int64_t[]){2, 2}, 2);
    proto_int(&flat, "axis", 1);
    proto_message(&g, GRAPH_NODE, node);
    proto_message(&g, GRAPH_NODE, pool);
    proto_message(&g, GRAPH_NODE, flat);
    proto_message(&g, GRAPH_INITIALIZER,
                  proto_tensor("w", ONNX_FLOAT, 4, (int64_t[]){2, 1, 3, 3}, w, sizeof w));
    proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 4, (int64_t[]){-1, 1, 6, 6}));
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){-1, 18}));
    return proto_model(g, 17);
}

/* Sizes that are computed: y = reshape(x, [shape(x)[0], 6]). */
static proto folded(void)
{
    proto g = {0}, gather = proto_node("Gather", "s zero", "n"), concat = proto_node("Concat", "n six", "to");
    static const unsigned char zero[8] = {0}, six[8] = {6};
    proto_int(&gather, "axis", 0);
    proto_int(&concat, "axis", 0);
    proto_message(&g, GRAPH_NODE, proto_node("Shape", "x", "s"));
    proto_message(&g, GRAPH_NODE, gather);
    proto_message(&g, GRAPH_NODE, concat);
    proto_message(&g, GRAPH_NODE, proto_node("Reshape", "x to", "y"));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("zero", ONNX_INT64, 1, (int64_t[]){1}, zero, 8));
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("six", ONNX_INT64, 1, (int64_t[]){1}, six, 8));
    proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 3, (int64_t[]){-1, 2, 3}));
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){-1, 6}));
    return proto_model(g, 17);
}

static proto branch_of(const char *type)
{
    proto g = {0};
    proto_message(&g, GRAPH_NODE, proto_node(type, "x", "r"));
    proto_text(&g, GRAPH_NAME, type);
    proto_message(&g, GRAPH_OUTPUT, proto_value("r", ONNX_FLOAT, 1, (int64_t[]){4}));
    return g;
}

static proto chosen(void)
{
    proto g = {0}, node = proto_node("If", "c", "y");
    proto_graph_attribute(&node, "then_branch", branch_of("Relu"));
    proto_graph_attribute(&node, "else_branch", branch_of("Neg"));
    proto_message(&g, GRAPH_NODE, node);
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("c", ONNX_BOOL, 0, NULL, "\1", 1));
    proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, (int64_t[]){4}));
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, (int64_t[]){4}));
    return proto_model(g, 17);
}

static proto normalized(void)
{
    proto g = {0}, mean = proto_node("ReduceMean", "x", "m"), softmax = proto_node("Softmax", "d", "y");
    proto_ints(&mean, "axes", (int64_t[]){-1}, 1);
    proto_int(&softmax, "axis", -1);
    proto_message(&g, GRAPH_NODE, mean);
    proto_message(&g, GRAPH_NODE, proto_node("Sub", "x m", "d"));
    proto_message(&g, GRAPH_NODE, softmax);
    proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 2, (int64_t[]){-1, 5}));
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 2, (int64_t[]){-1, 5}));
    return proto_model(g, 13);
}

const proto_sample proto_samples[] = {{"relu", relu},     {"dense", dense},   {"conv", conv},
                                      {"folded", folded}, {"chosen", chosen}, {"normalized", normalized},
                                      {NULL, NULL}};
