#include "onnx/quantized.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Parts of models ---- */

typedef struct maker {
    proto graph;
    test_random random;
} maker;

static void put(maker *m, const char *name, int type, int rank, const int64_t *dims, const void *data,
                size_t bytes)
{
    proto_message(&m->graph, GRAPH_INITIALIZER, proto_tensor(name, type, rank, dims, data, bytes));
}

static const char *with(char room[64], const char *name, const char *more)
{
    snprintf(room, 64, "%s%s", name, more);
    return room;
}

/* NAME_s and NAME_z: a scale and a zero point. */
static void put_affine(maker *m, const char *name, int type, float scale, int zero)
{
    char room[64];
    uint8_t byte = (uint8_t)zero;
    put(m, with(room, name, "_s"), ONNX_FLOAT, 0, NULL, &scale, sizeof scale);
    put(m, with(room, name, "_z"), type, 0, NULL, &byte, 1);
}

static void put_node(maker *m, const char *type, const char *ins, const char *outs, int64_t axis)
{
    proto n = proto_node(type, ins, outs);
    if (axis >= 0)
        proto_int(&n, "axis", axis);
    proto_message(&m->graph, GRAPH_NODE, n);
}

/* QuantizeLinear of `from` to NAME_q, and DequantizeLinear of that to NAME, by the scale of `by`. */
static void put_pair(maker *m, const char *from, const char *name, const char *by)
{
    char ins[64], q[64];
    snprintf(ins, sizeof ins, "%s %s_s %s_z", from, by, by);
    put_node(m, "QuantizeLinear", ins, with(q, name, "_q"), -1);
    snprintf(ins, sizeof ins, "%s_q %s_s %s_z", name, by, by);
    put_node(m, "DequantizeLinear", ins, name, -1);
}

/* i8 weights NAME_c, with scales around `scale` along the axis: NAME. */
static void put_weights(maker *m, const char *name, int rank, const int64_t *dims, int axis, float scale,
                        float *scales)
{
    static int8_t values[1 << 14];
    int8_t zeros[64] = {0};
    size_t count = 1;
    for (int k = 0; k < rank; k++)
        count *= (size_t)dims[k];
    for (size_t i = 0; i < count; i++)
        values[i] = (int8_t)test_int(&m->random, -127, 127);
    for (int64_t i = 0; i < dims[axis]; i++)
        scales[i] = scale * (float)test_uniform(&m->random, 0.5, 1.5);
    char room[64], ins[64];
    put(m, with(room, name, "_c"), ONNX_INT8, rank, dims, values, count);
    put(m, with(room, name, "_s"), ONNX_FLOAT, 1, &dims[axis], scales, (size_t)dims[axis] * sizeof *scales);
    put(m, with(room, name, "_z"), ONNX_INT8, 1, &dims[axis], zeros, (size_t)dims[axis]);
    snprintf(ins, sizeof ins, "%s_c %s_s %s_z", name, name, name);
    put_node(m, "DequantizeLinear", ins, name, axis);
}

/* i32 NAME_c in steps of x_scale scales[]: NAME. */
static void put_bias(maker *m, const char *name, int64_t count, float x_scale, const float *scales)
{
    int32_t values[64], zeros[64] = {0};
    float steps[64];
    char room[64], ins[64];
    for (int64_t i = 0; i < count; i++) {
        values[i] = test_int(&m->random, -20000, 20000);
        steps[i] = x_scale * scales[i];
    }
    put(m, with(room, name, "_c"), ONNX_INT32, 1, &count, values, (size_t)count * sizeof *values);
    put(m, with(room, name, "_s"), ONNX_FLOAT, 1, &count, steps, (size_t)count * sizeof *steps);
    put(m, with(room, name, "_z"), ONNX_INT32, 1, &count, zeros, (size_t)count * sizeof *zeros);
    snprintf(ins, sizeof ins, "%s_c %s_s %s_z", name, name, name);
    put_node(m, "DequantizeLinear", ins, name, 0);
}

static int zero_of(maker *m, int type)
{
    return type == ONNX_UINT8 ? test_int(&m->random, 0, 255) : test_int(&m->random, -128, 127);
}

static proto finished(maker *m, int rank, const int64_t *dims, int out_type, int out_rank)
{
    int64_t any[] = {-1, -1, -1, -1};
    proto_message(&m->graph, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, rank, dims));
    proto_message(&m->graph, GRAPH_OUTPUT, proto_value("y", out_type, out_rank, any));
    return proto_model(m->graph, 17);
}

/* ---- Models ---- */

quantized_conv quantized_draw_conv(test_random *r)
{
    quantized_conv c = {.groups = test_chance(r, 60) ? 1 : test_int(r, 2, 4),
                        .type = test_chance(r, 50) ? ONNX_UINT8 : ONNX_INT8,
                        .relu = test_chance(r, 40),
                        .quantized = !test_chance(r, 20)};
    bool depthwise = c.groups > 1 && test_chance(r, 50);
    c.in = c.groups * (depthwise ? 1 : test_int(r, 1, 5));
    c.out = c.groups * (depthwise ? 1 : test_int(r, 1, 11));
    for (int k = 0; k < 2; k++) {
        c.taps[k] = test_int(r, 1, 4);
        c.stride[k] = test_int(r, 1, 2);
        c.pads[k] = test_int(r, 0, 2);
        c.pads[2 + k] = test_chance(r, 60) ? c.pads[k] : test_int(r, 0, 2);
        c.side[k] = test_int(r, 4, 9);
    }
    return c;
}

proto quantized_conv_model(const quantized_conv *c, uint64_t seed, float *y_scale)
{
    maker m = {.random = test_seed(seed)};
    float scales[64], x_scale = 4.0f / 255.0f;
    int64_t values = c->in / c->groups * c->taps[0] * c->taps[1];
    *y_scale = x_scale * 0.01f * 60.0f * 60.0f * (float)sqrt((double)values) * 6.0f / 255.0f;
    put_affine(&m, "a", c->type, x_scale, zero_of(&m, c->type));
    put_affine(&m, "o", c->type, *y_scale, zero_of(&m, c->type));
    put_pair(&m, "x", "a", "a");
    put_weights(&m, "w", 4, (int64_t[]){c->out, c->in / c->groups, c->taps[0], c->taps[1]}, 0, 0.01f, scales);
    put_bias(&m, "b", c->out, x_scale, scales);
    proto conv = proto_node("Conv", "a w b", c->relu ? "c" : c->quantized ? "d" : "y");
    proto_int(&conv, "group", c->groups);
    proto_ints(&conv, "strides", c->stride, 2);
    proto_ints(&conv, "pads", c->pads, 4);
    proto_message(&m.graph, GRAPH_NODE, conv);
    if (c->relu)
        put_node(&m, "Relu", "c", c->quantized ? "d" : "y", -1);
    if (c->quantized)
        put_pair(&m, "d", "y", "o");
    return finished(&m, 4, (int64_t[]){-1, c->in, c->side[0], c->side[1]}, ONNX_FLOAT, 4);
}

proto quantized_rows_model(bool gemm, bool turned, bool quantized, float *y_scale)
{
    enum { IN = 37, OUT = 21 };
    maker m = {.random = test_seed(3)};
    float scales[64], x_scale = 4.0f / 255.0f;
    *y_scale = x_scale * 0.01f * 60.0f * 60.0f * 6.0f * 6.0f / 255.0f;
    put_affine(&m, "a", ONNX_UINT8, x_scale, 131);
    put_affine(&m, "o", ONNX_UINT8, *y_scale, 120);
    put_pair(&m, "x", "a", "a");
    put_weights(&m, "w", 2, turned ? (int64_t[]){OUT, IN} : (int64_t[]){IN, OUT}, turned ? 0 : 1, 0.01f,
                scales);
    put_bias(&m, "b", OUT, x_scale, scales);
    proto node = proto_node(gemm ? "Gemm" : "MatMul", gemm ? "a w b" : "a w", quantized ? "d" : "y");
    if (gemm)
        proto_int(&node, "transB", turned);
    proto_message(&m.graph, GRAPH_NODE, node);
    if (quantized)
        put_pair(&m, "d", "y", "o");
    return finished(&m, 2, (int64_t[]){-1, IN}, ONNX_FLOAT, 2);
}

proto quantized_net_model(void)
{
    maker m = {.random = test_seed(11)};
    float scales[64], x_scale = 4.0f / 255.0f, wide = 0.06f;
    put_affine(&m, "a", ONNX_UINT8, x_scale, 128);
    put_affine(&m, "c", ONNX_UINT8, wide, 0);
    put_affine(&m, "s", ONNX_UINT8, wide, 90);
    put_pair(&m, "x", "a", "a");
    put_weights(&m, "v", 4, (int64_t[]){6, 3, 3, 3}, 0, 0.01f, scales);
    proto conv = proto_node("Conv", "a v", "k");
    proto_ints(&conv, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    proto_message(&m.graph, GRAPH_NODE, conv);
    put_node(&m, "Relu", "k", "l", -1);
    put_pair(&m, "l", "c", "c");
    proto pool = proto_node("MaxPool", "c", "p");
    proto_ints(&pool, "kernel_shape", (int64_t[]){3, 3}, 2);
    proto_ints(&pool, "strides", (int64_t[]){2, 2}, 2);
    proto_ints(&pool, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    proto_message(&m.graph, GRAPH_NODE, pool);
    put_pair(&m, "p", "e", "c");
    put_weights(&m, "w", 4, (int64_t[]){6, 1, 3, 3}, 0, 0.003f, scales);
    conv = proto_node("Conv", "e w", "f");
    proto_ints(&conv, "pads", (int64_t[]){1, 1, 1, 1}, 4);
    proto_int(&conv, "group", 6);
    proto_message(&m.graph, GRAPH_NODE, conv);
    put_pair(&m, "f", "g", "s");
    put_node(&m, "Add", "e g", "h", -1);
    put_pair(&m, "h", "i", "s");
    put_node(&m, "GlobalAveragePool", "i", "j", -1);
    put_pair(&m, "j", "n", "s");
    put_node(&m, "Flatten", "n", "o", 1);
    put_pair(&m, "o", "q", "s");
    put_weights(&m, "u", 2, (int64_t[]){5, 6}, 0, 0.01f, scales);
    put_bias(&m, "b", 5, wide, scales);
    proto gemm = proto_node("Gemm", "q u b", "r");
    proto_int(&gemm, "transB", 1);
    proto_message(&m.graph, GRAPH_NODE, gemm);
    put_pair(&m, "r", "y", "s");
    return finished(&m, 4, (int64_t[]){-1, 3, 12, 10}, ONNX_FLOAT, 2);
}

proto quantized_moves_model(bool same)
{
    maker m = {.random = test_seed(1)};
    put_affine(&m, "a", ONNX_UINT8, 4.0f / 255.0f, 120);
    put_affine(&m, "c", ONNX_UINT8, 5.0f / 255.0f, 120);
    put_pair(&m, "x", "a", "a");
    proto turn = proto_node("Transpose", "a", "t");
    proto_ints(&turn, "perm", (int64_t[]){0, 1, 3, 2}, 4);
    proto_message(&m.graph, GRAPH_NODE, turn);
    put_pair(&m, "t", "b", "a");
    put_node(&m, "Concat", "a b", "d", 1);
    put_pair(&m, "d", "y", same ? "a" : "c");
    return finished(&m, 4, (int64_t[]){-1, 3, 5, 5}, ONNX_FLOAT, 4);
}

proto quantized_two_model(int type, bool quantized)
{
    maker m = {.random = test_seed(3)};
    put_affine(&m, "a", type, 4.0f / 255.0f, zero_of(&m, type));
    put_affine(&m, "b", type, 3.0f / 255.0f, zero_of(&m, type));
    put_affine(&m, "s", type, 0.12f, type == ONNX_UINT8 ? 128 : 0);
    proto turn = proto_node("Transpose", "x", "t");
    proto_ints(&turn, "perm", (int64_t[]){0, 1, 3, 2}, 4);
    proto_message(&m.graph, GRAPH_NODE, turn);
    put_pair(&m, "x", "a", "a");
    put_pair(&m, "t", "b", "b");
    put_node(&m, "MatMul", "a b", quantized ? "c" : "y", -1);
    if (quantized)
        put_pair(&m, "c", "y", "s");
    return finished(&m, 4, (int64_t[]){-1, 3, 7, 13}, ONNX_FLOAT, 4);
}

proto quantized_integer_model(const char *type, bool dynamic)
{
    maker m = {.random = test_seed(21)};
    float scales[64];
    bool conv = strncmp(type, "Conv", 4) == 0 || strcmp(type, "QLinearConv") == 0;
    bool linear = type[0] == 'Q';
    put_affine(&m, "a", ONNX_UINT8, 4.0f / 255.0f, 120);
    put_affine(&m, "o", ONNX_UINT8, 0.3f, 100);
    if (conv)
        put_weights(&m, "w", 4, (int64_t[]){5, 3, 3, 3}, 0, 0.01f, scales);
    else
        put_weights(&m, "w", 2, (int64_t[]){19, 7}, 1, 0.01f, scales);
    if (dynamic)
        put_node(&m, "DynamicQuantizeLinear", "x", "d_q d_s d_z", -1);
    else
        put_node(&m, "QuantizeLinear", "x a_s a_z", "d_q", -1);
    proto node = linear ? proto_node(type, "d_q a_s a_z w_c w_s w_z o_s o_z", "y")
                        : proto_node(type, dynamic ? "d_q w_c d_z" : "d_q w_c a_z", "y");
    if (conv)
        proto_ints(&node, "pads", (int64_t[]){1, 0, 1, 2}, 4);
    proto_message(&m.graph, GRAPH_NODE, node);
    int out = linear ? ONNX_UINT8 : ONNX_INT32;
    return conv ? finished(&m, 4, (int64_t[]){-1, 3, 6, 7}, out, 4)
                : finished(&m, 2, (int64_t[]){-1, 19}, out, 2);
}

/* ---- Running ---- */

void quantized_list_calls(quantized_ran *r, mica_net *net)
{
    for (int i = 0; i < mica_net_program(net); i++) {
        mica_program_call call;
        size_t used = strlen(r->calls);
        if (mica_net_program_call(net, &call, i) == MICA_OK)
            snprintf(r->calls + used, sizeof r->calls - used, "%s%s", used > 0 ? " " : "", call.op->name);
    }
}

void quantized_step(mica_context *ctx, mica_net *net, quantized_ran *r)
{
    mica_tensor x, y;
    test_random random = test_seed(5);
    if (!CHECK_OK(ctx, mica_net_tensor(net, &x, "x")))
        return;
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)test_uniform(&random, -2, 2);
    uint64_t before = test_heap_now().calls;
    if (!CHECK_OK(ctx, mica_net_forward(net)))
        return;
    r->heap += test_heap_now().calls - before;
    if (!CHECK_OK(ctx, mica_net_tensor(net, &y, "y")) || !CHECK(mica_tensor_count(&y) <= QUANTIZED_MOST))
        return;
    r->count = mica_tensor_count(&y);
    mica_tensor wide = {0};
    CHECK_OK(ctx, mica_tensor_init(ctx, &wide, r->y, MICA_F64, y.rank, y.dim));
    CHECK_OK(ctx, mica_copy(ctx, &wide, &y));
}

bool quantized_run_sized(mica_context *ctx, quantized_ran *r, const proto *bytes, bool rounded,
                         const char *name, mica_index most, mica_index rows)
{
    mica_onnx *model = NULL;
    mica_net *net = NULL;
    mica_onnx_set set = {.name = name, .size = most};
    *r = (quantized_ran){.count = 0};
    bool made = CHECK_OK(ctx, mica_onnx_over(ctx, &model, bytes->bytes, bytes->size, "a test")) &&
                CHECK_OK(ctx, mica_net_create(ctx, &net)) &&
                CHECK_OK(ctx,
                         mica_onnx_build(model, net,
                                         &(mica_onnx_opts){.sets = &set, .count = 1, .rounded = rounded})) &&
                CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){0})) &&
                CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
                (rows == most || CHECK_OK(ctx, mica_net_resize(net, rows)));
    if (made) {
        quantized_list_calls(r, net);
        quantized_step(ctx, net, r);
    }
    mica_net_destroy(net);
    mica_onnx_close(model);
    return made && r->count > 0;
}

bool quantized_run(mica_context *ctx, quantized_ran *r, const proto *bytes, bool rounded, mica_index most,
                   mica_index rows)
{
    return quantized_run_sized(ctx, r, bytes, rounded, "n", most, rows);
}
