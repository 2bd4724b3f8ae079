/* Operators on bytes of the domain com.microsoft, as onnxruntime's quantize_static writes them (QOperator).
 *
 * Each stands for DequantizeLinear of its operands, an operator on floats, and QuantizeLinear of the result. It is
 * imported as these nodes, so that whatever keeps bytes as they are between such nodes (fuse_int8.c) does so here. */
#include <string.h>

#include "onnx/moves.h"
#include "onnx/state.h"

#define NAME_BYTES 16 /* names are told apart by where they are */

/* Nodes that one is replaced with. */
typedef struct expansion {
    mica_onnx_importing *n;
    mica_onnx_node *nodes;
    const char **names; /* of all operands and results, one after the other */
    char *fresh;        /* names of values between the nodes */
    int count;
} expansion;

static bool open_expansion(mica_onnx_importing *n, expansion *e, int operands)
{
    size_t most = (size_t)operands + 3;
    *e = (expansion){.n = n};
    e->nodes = mica_onnx_room(n, most, sizeof *e->nodes);
    e->names = mica_onnx_room(n, most * 5, sizeof *e->names);
    e->fresh = mica_onnx_room(n, most, NAME_BYTES);
    return !n->failed;
}

/* A node of the main domain, with room for its operands' names. Returns the name of its result. */
static const char *add_node(expansion *e, const char *type, const char *const *ins, int count)
{
    const mica_onnx_node *from = e->n->node;
    char *result = e->fresh;
    const char **names = e->names;
    memcpy(result, "-", 2);
    memcpy(names, ins, (size_t)count * sizeof *ins);
    names[count] = result;
    e->nodes[e->count++] = (mica_onnx_node){.name = from->name,
                                            .type = type,
                                            .domain = "",
                                            .overload = "",
                                            .in = names,
                                            .out = names + count,
                                            .ins = count,
                                            .outs = 1};
    e->fresh += NAME_BYTES;
    e->names += count + 1;
    return result;
}

/* Input `number` of the node by its name; "": absent. */
static const char *name_of(const expansion *e, int number)
{
    return number < e->n->node->ins ? e->n->node->in[number] : "";
}

/* DequantizeLinear or QuantizeLinear of x; its scale and zero point are inputs `at` and at + 1 of the node. */
static const char *add_linear(expansion *e, const char *type, const char *x, int at)
{
    return add_node(e, type, (const char *[]){x, name_of(e, at), name_of(e, at + 1)}, 3);
}

static const char *add_floats(expansion *e, int at)
{
    return add_linear(e, "DequantizeLinear", name_of(e, at), at + 1);
}

/* Imports the nodes; output 0 is what the last makes. */
static void import_expansion(expansion *e, const char *result)
{
    mica_onnx_info out = {.name = result};
    mica_onnx_graph graph = {
        .name = "", .nodes = e->nodes, .node_count = e->count, .outputs = &out, .output_count = 1};
    mica_onnx_ref ref = 0;
    if (mica_onnx_import_graph(e->n, &graph, NULL, 0, &ref, 1))
        mica_onnx_give(e->n, 0, ref);
}

/* The last node so far has the attributes of the node that is replaced. */
static void pass_attributes(expansion *e)
{
    e->nodes[e->count - 1].attributes = e->n->node->attributes;
    e->nodes[e->count - 1].attribute_count = e->n->node->attribute_count;
}

/* x, x_scale, x_zero, y_scale, y_zero */
static void of_one(mica_onnx_importing *n, const char *type)
{
    expansion e;
    if (!open_expansion(n, &e, 1))
        return;
    const char *y = add_node(&e, type, (const char *[]){add_floats(&e, 0)}, 1);
    pass_attributes(&e);
    import_expansion(&e, add_linear(&e, "QuantizeLinear", y, 3));
}

/* a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero */
static void of_two(mica_onnx_importing *n, const char *type)
{
    expansion e;
    if (!open_expansion(n, &e, 2))
        return;
    const char *a = add_floats(&e, 0), *b = add_floats(&e, 3);
    const char *y = add_node(&e, type, (const char *[]){a, b}, 2);
    import_expansion(&e, add_linear(&e, "QuantizeLinear", y, 6));
}

static void add(mica_onnx_importing *n) { of_two(n, "Add"); }
static void mul(mica_onnx_importing *n) { of_two(n, "Mul"); }
static void sigmoid(mica_onnx_importing *n) { of_one(n, "Sigmoid"); }
static void leaky_relu(mica_onnx_importing *n) { of_one(n, "LeakyRelu"); }

static void softmax(mica_onnx_importing *n)
{
    int last = mica_onnx_shape(n, n->in[0])->rank - 1;
    /* Before opset 13, it is one of all axes from `axis` on: the same if that is the last. */
    if (mica_onnx_int(n, "opset", 13) < 13 &&
        mica_onnx_axis(n, mica_onnx_int(n, "axis", -1), n->in[0]) != last)
        (void)mica_onnx_unsupported(n, "several axes at once");
    else
        of_one(n, "Softmax");
}

static void pool(mica_onnx_importing *n)
{
    if (mica_onnx_int(n, "channels_last", 0) != 0)
        (void)mica_onnx_unsupported(n, "images whose channels are last");
    else
        of_one(n, n->node->type + strlen("QLinear"));
}

/* y_scale, y_zero, and three for each operand */
static void concat(mica_onnx_importing *n)
{
    expansion e;
    int count = (n->node->ins - 2) / 3;
    const char **operands = mica_onnx_room(n, (size_t)(count > 0 ? count : 1), sizeof *operands);
    if (count < 1 || n->node->ins != 2 + 3 * count)
        (void)mica_onnx_bad(n, "%d inputs, expected 2 and 3 for each operand", n->node->ins);
    if (n->failed || !open_expansion(n, &e, count))
        return;
    for (int i = 0; i < count; i++)
        operands[i] = add_floats(&e, 2 + 3 * i);
    const char *y = add_node(&e, "Concat", operands, count);
    pass_attributes(&e);
    import_expansion(&e, add_linear(&e, "QuantizeLinear", y, 0));
}

/* condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero */
static void where(mica_onnx_importing *n)
{
    expansion e;
    if (!open_expansion(n, &e, 2))
        return;
    const char *x = add_floats(&e, 1), *y = add_floats(&e, 4);
    const char *z = add_node(&e, "Where", (const char *[]){name_of(&e, 0), x, y}, 3);
    import_expansion(&e, add_linear(&e, "QuantizeLinear", z, 7));
}

/* a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero. c is i32, in steps of a_scale b_scale; without y_scale, y
 * is of floats. */
static void gemm(mica_onnx_importing *n)
{
    static const mica_onnx_attribute rows = {.name = "axis", .kind = MICA_ONNX_INT, .i = 0};
    expansion e;
    if (mica_onnx_float(n, "alpha", 1.0f) != 1.0f)
        (void)mica_onnx_unsupported(n, "alpha other than 1");
    if (n->failed || !open_expansion(n, &e, 4))
        return;
    const char *a = add_floats(&e, 0), *b = add_floats(&e, 3), *c = name_of(&e, 6);
    if (mica_onnx_int(n, "transB", 0) != 0) { /* a scale of each row of b */
        e.nodes[e.count - 1].attributes = &rows;
        e.nodes[e.count - 1].attribute_count = 1;
    }
    if (c[0] != '\0') {
        const char *step = add_node(&e, "Mul", (const char *[]){name_of(&e, 1), name_of(&e, 4)}, 2);
        c = add_node(&e, "DequantizeLinear", (const char *[]){c, step}, 2);
    }
    const char *y = add_node(&e, "Gemm", (const char *[]){a, b, c}, 3);
    pass_attributes(&e);
    import_expansion(&e, name_of(&e, 7)[0] != '\0' ? add_linear(&e, "QuantizeLinear", y, 7) : y);
}

const mica_onnx_operator mica_onnx_qlinear_operators[] = {{"com.microsoft:QGemm", 1, gemm},
                                                          {"com.microsoft:QLinearAdd", 1, add},
                                                          {"com.microsoft:QLinearAveragePool", 1, pool},
                                                          {"com.microsoft:QLinearConcat", 1, concat},
                                                          {"com.microsoft:QLinearGlobalAveragePool", 1, pool},
                                                          {"com.microsoft:QLinearLeakyRelu", 1, leaky_relu},
                                                          {"com.microsoft:QLinearMul", 1, mul},
                                                          {"com.microsoft:QLinearSigmoid", 1, sigmoid},
                                                          {"com.microsoft:QLinearSoftmax", 1, softmax},
                                                          {"com.microsoft:QLinearWhere", 1, where},
                                                          {NULL, 0, NULL}};
