/* Models that are damaged, absurd or meant to do harm: each is refused with a message, or runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/attack.h"

/* ---- Damage ---- */

TEST(onnx_hostile_cut_at_every_byte)
{
    mica_context *ctx = attack_context();
    for (const proto_sample *s = proto_samples; s->name != NULL; s++) {
        proto whole = s->make();
        for (size_t size = 0; size < whole.size; size++)
            (void)attack(ctx, whole.bytes, size);
        proto_free(&whole);
    }
    mica_context_destroy(ctx);
}

/* Bytes that change the meaning most: lengths, ends of varints, other kinds of fields. */
static void mutate(test_random *r, proto *p)
{
    static const unsigned char special[] = {0, 1, 2, 7, 8, 9, 0x0a, 0x12, 0x7f, 0x80, 0xff, 0xfe};
    for (int k = test_int(r, 1, 4); k > 0 && p->size > 2; k--) {
        size_t at = (size_t)test_next(r) % p->size;
        switch (test_int(r, 0, 4)) {
        case 0:
            p->bytes[at] ^= (unsigned char)(1u << test_int(r, 0, 7));
            break;
        case 1:
            p->bytes[at] = special[test_next(r) % sizeof special];
            break;
        case 2: /* one is left out */
            memmove(p->bytes + at, p->bytes + at + 1, p->size - at - 1);
            p->size--;
            break;
        case 3: /* one is twice there */
            proto_put(p, "", 1);
            memmove(p->bytes + at + 1, p->bytes + at, p->size - at - 1);
            break;
        default: { /* a part is copied to another place */
            size_t from = (size_t)test_next(r) % p->size, most = p->size - (at > from ? at : from);
            memmove(p->bytes + at, p->bytes + from, (size_t)test_next(r) % (most + 1));
        }
        }
    }
}

TEST(onnx_hostile_mutations)
{
    mica_context *ctx = attack_context();
    test_random r = test_seed(15);
    for (int i = 0; i < test_effort(2000); i++)
        for (const proto_sample *s = proto_samples; s->name != NULL; s++) {
            proto p = s->make();
            mutate(&r, &p);
            (void)attack_with(ctx, p);
        }
    mica_context_destroy(ctx);
}

TEST(onnx_hostile_bytes_that_are_no_model)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {{"", 0},
                 {"\x08", 1},                                              /* a tag without a value */
                 {"\x3a\x00", 2},                                          /* an empty graph */
                 {"\x3a\xff\xff\xff\xff\x0f", 6},                          /* longer than the file */
                 {"\x00\x00", 2},                                          /* field 0 */
                 {"\x0b\x0c", 2},                                          /* a group */
                 {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* a varint of 11 bytes */
                 {"\x3a\x00\x3a\x00", 4},                                  /* two graphs */
                 {"\x93NUMPY\x01\x00", 8},
                 {"GGUF\x03\x00\x00\x00", 8}};
    mica_context *ctx = attack_context();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        (void)attack(ctx, (const unsigned char *)cases[i].bytes, cases[i].size);
    mica_context_destroy(ctx);
}

/* ---- Sizes ---- */

static proto relu_of(proto input, proto initializer)
{
    proto g = {0};
    proto_message(&g, GRAPH_NODE, proto_node("Relu", "x", "y"));
    if (input.size > 0)
        proto_message(&g, GRAPH_INPUT, input);
    if (initializer.size > 0)
        proto_message(&g, GRAPH_INITIALIZER, initializer);
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 0, NULL));
    return proto_model(g, 17);
}

TEST(onnx_hostile_absurd_sizes)
{
    static const int64_t sizes[][4] = {{INT64_MAX, 1, 1, 1},
                                       {INT64_MIN, 1, 1, 1},
                                       {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX},
                                       {(int64_t)1 << 32, (int64_t)1 << 32, 1, 1},
                                       {(int64_t)1 << 40, 1, 1, 0},
                                       {(int64_t)1 << 31, (int64_t)1 << 31, 2, 2},
                                       {0, INT64_MAX, INT64_MAX, 2}};
    mica_context *ctx = attack_context();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int rank = 1; rank <= 4; rank++) {
            attack_end input = attack_with(ctx,
                                           relu_of(proto_value("x", ONNX_FLOAT, rank, sizes[i]), (proto){0}));
            attack_end constant = attack_with(
                ctx, relu_of((proto){0}, proto_tensor("x", ONNX_FLOAT, rank, sizes[i], "1234", 4)));
            bool empty = sizes[i][0] == 0 || (sizes[i][3] == 0 && rank == 4), negative = sizes[i][0] < 0;
            CHECK(input != ATTACK_RAN || empty || negative); /* a negative size is one that is not said */
            CHECK(constant < ATTACK_BUILT);
        }
    mica_context_destroy(ctx);
}

TEST(onnx_hostile_huge_ranks)
{
    mica_context *ctx = attack_context();
    int64_t *ones = malloc(1000 * sizeof *ones);
    REQUIRE(ones != NULL);
    for (int i = 0; i < 1000; i++)
        ones[i] = 1;
    for (int rank = 8; rank <= 1000; rank += rank < 12 ? 1 : 988) {
        attack_end input = attack_with(ctx, relu_of(proto_value("x", ONNX_FLOAT, rank, ones), (proto){0})),
                   constant = attack_with(
                       ctx, relu_of((proto){0}, proto_tensor("x", ONNX_FLOAT, rank, ones, "1234", 4)));
        CHECK((input == ATTACK_RAN) == (rank == 8));
        CHECK((constant == ATTACK_RAN) == (rank == 8));
    }
    free(ones);
    mica_context_destroy(ctx);
}

/* A few bytes of a model that ask for gigabytes. */
TEST(onnx_hostile_large_from_small)
{
    mica_context *ctx = attack_context();
    static const int64_t sizes[] = {1000000000, INT64_MAX, -1, (int64_t)1 << 33};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const char *const types[] = {"ConstantOfShape", "Range", "Tile", "Expand", "Pad",
                                     "EyeLike",         "OneHot"};
        for (size_t k = 0; k < sizeof types / sizeof types[0]; k++) {
            proto g = {0};
            int64_t s[2] = {sizes[i], sizes[i]};
            proto_message(&g, GRAPH_INITIALIZER,
                          proto_tensor("s", ONNX_INT64, 1, (int64_t[]){2}, s, sizeof s));
            proto_message(&g, GRAPH_INITIALIZER, proto_tensor("n", ONNX_INT64, 0, NULL, s, 8));
            proto_message(&g, GRAPH_INITIALIZER,
                          proto_tensor("c", ONNX_FLOAT, 2, (int64_t[]){1, 1}, "\0\0\x80\x3f", 4));
            proto_message(&g, GRAPH_NODE,
                          proto_node(types[k],
                                     k == 0   ? "s"
                                     : k == 1 ? "n n n"
                                     : k == 6 ? "s n s"
                                              : "c s",
                                     "y"));
            proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 0, NULL));
            CHECK(attack_with(ctx, proto_model(g, 17)) < ATTACK_RAN || k == 1 || k == 5);
        }
    }
    mica_context_destroy(ctx);
}

/* Pads below 0 drop elements: as many as there are, and no more. */
TEST(onnx_hostile_pads)
{
    static const struct {
        int64_t pads[2];
        bool fits;
    } cases[] = {{{-1, -2}, true},        {{-4, 0}, true},         {{-2, -2}, true},        {{-4, 3}, true},
                 {{-5, 0}, false},        {{0, -5}, false},        {{-3, -2}, false},       {{-5, 3}, false},
                 {{INT64_MIN, 1}, false}, {{1, INT64_MIN}, false}, {{-4, INT64_MIN}, false}};
    mica_context *ctx = attack_context();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        proto g = {0};
        proto_message(&g, GRAPH_NODE, proto_node("Pad", "x pads", "y"));
        proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, (int64_t[]){4}));
        proto_message(
            &g, GRAPH_INITIALIZER,
            proto_tensor("pads", ONNX_INT64, 1, (int64_t[]){2}, cases[i].pads, sizeof cases[i].pads));
        proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 0, NULL));
        attack_end end = attack_with(ctx, proto_model(g, 17));
        CHECK_MSG(end == (cases[i].fits ? ATTACK_RAN : ATTACK_UNSUPPORTED), "case %zu", i);
        if (!cases[i].fits)
            CHECK_MSG(strstr(mica_error(ctx), "drop more than the 4 elements of axis 0") != NULL, "%s",
                      mica_error(ctx));
    }
    mica_context_destroy(ctx);
}

/* A product of integers is made of one for each stretch of its values: more than a net may have, of so many. */
TEST(onnx_hostile_values_of_a_product)
{
    mica_context *ctx = attack_context();
    static const int64_t values[] = {(int64_t)1 << 31, (int64_t)1 << 40};
    for (int i = 0; i < 4; i++) {
        proto g = {0};
        int64_t k = values[i / 2], rows = i % 2;
        proto_message(&g, GRAPH_NODE, proto_node("MatMulInteger", "a b", "y"));
        proto_message(&g, GRAPH_INPUT, proto_value("a", ONNX_UINT8, 2, (int64_t[]){rows, k}));
        proto_message(&g, GRAPH_INPUT, proto_value("b", ONNX_UINT8, 2, (int64_t[]){k, 1}));
        proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_INT32, 2, (int64_t[]){rows, 1}));
        CHECK(attack_with(ctx, proto_model(g, 17)) == ATTACK_UNSUPPORTED);
        CHECK_MSG(strstr(mica_error(ctx), "more than 500000 operations") != NULL, "%s", mica_error(ctx));
    }
    mica_context_destroy(ctx);
}

/* ---- Graphs ---- */

TEST(onnx_hostile_cycles)
{
    mica_context *ctx = attack_context();
    proto g = {0}, own = {0};
    proto_message(&g, GRAPH_NODE, proto_node("Add", "x b", "a"));
    proto_message(&g, GRAPH_NODE, proto_node("Relu", "a", "b"));
    proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, (int64_t[]){2}));
    proto_message(&g, GRAPH_OUTPUT, proto_value("b", ONNX_FLOAT, 1, (int64_t[]){2}));
    CHECK(attack_with(ctx, proto_model(g, 17)) == ATTACK_UNSUPPORTED);
    CHECK(strstr(mica_error(ctx), "not produced by any earlier node") != NULL);
    proto_message(&own, GRAPH_NODE, proto_node("Relu", "y", "y"));
    proto_message(&own, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, (int64_t[]){2}));
    CHECK(attack_with(ctx, proto_model(own, 17)) == ATTACK_UNSUPPORTED);
    mica_context_destroy(ctx);
}

TEST(onnx_hostile_names_twice)
{
    mica_context *ctx = attack_context();
    const char *const outs[] = {"y y", "x", "w", "y"};
    for (size_t i = 0; i < sizeof outs / sizeof outs[0]; i++) {
        proto g = {0};
        proto_message(&g, GRAPH_NODE, proto_node("Relu", "x", outs[i]));
        proto_message(&g, GRAPH_NODE, proto_node("Relu", "w", "y"));
        for (int k = 0; k < 2; k++) {
            proto_message(&g, GRAPH_INITIALIZER, proto_tensor("w", ONNX_FLOAT, 1, (int64_t[]){1}, "1234", 4));
            proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, (int64_t[]){1 + k}));
            proto_message(&g, GRAPH_INPUT, proto_value("w", ONNX_FLOAT, 1, (int64_t[]){1}));
            proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, (int64_t[]){1}));
        }
        (void)attack_with(ctx, proto_model(g, 17));
    }
    mica_context_destroy(ctx);
}

TEST(onnx_hostile_names)
{
    mica_context *ctx = attack_context();
    size_t length = (size_t)1 << 20;
    char *name = malloc(length + 1);
    REQUIRE(name != NULL);
    memset(name, 'n', length);
    name[length] = '\0';
    const struct {
        const char *bytes;
        size_t size;
    } names[] = {{"x\0y", 3},         {"\0", 1},      {"", 0},       {"\xff\xfe", 2},
                 {"\x1b[31m%s%n", 9}, {"../../x", 7}, {name, length}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        proto g = {0}, node = {0}, in = {0};
        proto_bytes(&node, 1, names[i].bytes, names[i].size);
        proto_text(&node, 2, "y");
        proto_bytes(&node, 3, names[i].bytes, names[i].size);
        proto_bytes(&node, 4, i % 2 == 0 ? "Relu" : names[i].bytes, i % 2 == 0 ? 4 : names[i].size);
        proto value = proto_value("", ONNX_FLOAT, 1, (int64_t[]){2});
        proto_bytes(&in, 1, names[i].bytes, names[i].size);
        proto_put(&in, value.bytes + 2, value.size - 2); /* its type, without its name */
        proto_free(&value);
        proto_message(&g, GRAPH_NODE, node);
        proto_message(&g, GRAPH_INPUT, in);
        proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, (int64_t[]){2}));
        (void)attack_with(ctx, proto_model(g, 17));
    }
    free(name);
    mica_context_destroy(ctx);
}

/* Graphs within graphs. */
TEST(onnx_hostile_depth)
{
    mica_context *ctx = attack_context();
    for (int depth = 1; depth <= 4000; depth *= depth < 30 ? 2 : 10) {
        proto g = {0};
        proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 0, NULL));
        for (int i = 0; i < depth; i++) {
            proto outer = {0}, node = proto_node("If", "c", "y");
            proto_graph_attribute(&node, "then_branch", g);
            proto_message(&outer, GRAPH_NODE, node);
            proto_message(&outer, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 0, NULL));
            g = outer;
        }
        attack_end end = attack_with(ctx, proto_model(g, 17));
        CHECK(depth <= 32 || end == ATTACK_REFUSED);
    }
    mica_context_destroy(ctx);
}

/* The body of a loop that carries one value: `depth` more loops in one another, the innermost of which does nothing. */
static proto loop_body(int depth)
{
    proto body = {0};
    proto_message(&body, GRAPH_INPUT, proto_value("turn", ONNX_INT64, 0, NULL));
    proto_message(&body, GRAPH_INPUT, proto_value("on", ONNX_BOOL, 0, NULL));
    proto_message(&body, GRAPH_INPUT, proto_value("state", ONNX_FLOAT, 1, (int64_t[]){2}));
    if (depth > 0) {
        proto node = proto_node("Loop", "turns - state", "after");
        proto_graph_attribute(&node, "body", loop_body(depth - 1));
        proto_message(&body, GRAPH_NODE, node);
    }
    proto_message(&body, GRAPH_OUTPUT, proto_value("on", ONNX_BOOL, 0, NULL));
    proto_message(&body, GRAPH_OUTPUT,
                  proto_value(depth > 0 ? "after" : "state", ONNX_FLOAT, 1, (int64_t[]){2}));
    return body;
}

/* Loops within loops, whose turns multiply although there is nothing to do in them. */
TEST(onnx_hostile_turns)
{
    mica_context *ctx = attack_context();
    const int64_t turns = 4096;
    for (int depth = 1; depth < 4; depth++) {
        proto g = {0}, node = proto_node("Loop", "turns - x", "y");
        proto_graph_attribute(&node, "body", loop_body(depth));
        proto_message(&g, GRAPH_NODE, node);
        proto_message(&g, GRAPH_INITIALIZER,
                      proto_tensor("turns", ONNX_INT64, 0, NULL, &turns, sizeof turns));
        proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, (int64_t[]){2}));
        proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, (int64_t[]){2}));
        CHECK(attack_with(ctx, proto_model(g, 17)) == ATTACK_UNSUPPORTED);
        CHECK_MSG(strstr(mica_error(ctx), "more than 1000000 nodes") != NULL, "%s", mica_error(ctx));
    }
    mica_context_destroy(ctx);
}

static proto function(const char *name, const char *calls, int times)
{
    proto f = {0};
    proto_text(&f, 1, name);
    proto_text(&f, 4, "x");
    proto_text(&f, 5, "y");
    for (int i = 0; i < times; i++) {
        proto node = proto_node(calls, "x", "y");
        proto_text(&node, 7, "own");
        proto_message(&f, 7, node);
    }
    proto_text(&f, 10, "own");
    return f;
}

/* Functions that call themselves; and few that call one another often enough for more nodes than there are atoms. */
TEST(onnx_hostile_functions)
{
    mica_context *ctx = attack_context();
    for (int kind = 0; kind < 2; kind++) {
        proto g = {0}, node = proto_node("f0", "x", "y");
        proto_text(&node, 7, "own");
        proto_message(&g, GRAPH_NODE, node);
        proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 1, (int64_t[]){2}));
        proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, (int64_t[]){2}));
        proto model = proto_model(g, 17), opset = {0};
        proto_text(&opset, 1, "own");
        proto_number(&opset, 2, 1);
        proto_message(&model, 8, opset);
        for (int i = 0; i < (kind == 0 ? 1 : 24); i++) {
            char name[16], calls[16];
            snprintf(name, sizeof name, "f%d", i);
            snprintf(calls, sizeof calls, "f%d", kind == 0 ? 0 : i + 1);
            proto_message(&model, 25, function(name, calls, kind == 0 ? 1 : 10));
        }
        CHECK(attack_with(ctx, model) < ATTACK_BUILT);
    }
    mica_context_destroy(ctx);
}

/* ---- Elements ---- */

/* A tensor whose elements are in lists, too few, too many, or of another type. */
TEST(onnx_hostile_lists)
{
    mica_context *ctx = attack_context();
    for (unsigned field = 4; field <= 11; field++)
        for (int count = 0; count < 8; count++)
            for (int type = 0; type <= 27; type++) {
                proto t = {0}, list = {0};
                for (int k = 0; k < count; k++)
                    proto_varint(&list, UINT64_MAX >> (8 * k));
                proto_number(&t, 1, 4);
                proto_number(&t, 2, (uint64_t)type);
                proto_text(&t, 8, "x");
                proto_message(&t, field, list);
                (void)attack_with(ctx, relu_of((proto){0}, t));
            }
    mica_context_destroy(ctx);
}

/* Zero points of another type than what they are taken from, and of one that nothing is quantized to. */
TEST(onnx_hostile_zero_points)
{
    static const struct {
        const char *type, *ins;
        bool runs;
    } cases[] = {{"DequantizeLinear", "x s u", true},
                 {"DequantizeLinear", "x s i", false},
                 {"DequantizeLinear", "x s s", false},
                 {"QuantizeLinear", "f s u", true},
                 {"QuantizeLinear", "f s i", true},
                 {"QuantizeLinear", "f s s", false},
                 {"MatMulInteger", "x w u", true},
                 {"MatMulInteger", "x w i", false},
                 {"MatMulInteger", "x w s", false},
                 {"MatMulInteger", "x x u i", false},
                 {"QLinearMatMul", "x s u w s i s u", true},
                 {"QLinearMatMul", "x s i w s i s u", false},
                 {"QLinearMatMul", "x s u w s u s u", false},
                 {"QLinearMatMul", "x s u w s i s s", false}};
    mica_context *ctx = attack_context();
    const float huge = 1e30f;
    const int8_t weights[4] = {1, -2, 3, -4};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        proto g = {0};
        proto_message(&g, GRAPH_NODE, proto_node(cases[i].type, cases[i].ins, "y"));
        proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_UINT8, 2, (int64_t[]){2, 2}));
        proto_message(&g, GRAPH_INPUT, proto_value("f", ONNX_FLOAT, 2, (int64_t[]){2, 2}));
        proto_message(&g, GRAPH_INITIALIZER, proto_tensor("w", ONNX_INT8, 2, (int64_t[]){2, 2}, weights, 4));
        proto_message(&g, GRAPH_INITIALIZER, proto_tensor("s", ONNX_FLOAT, 0, NULL, &huge, sizeof huge));
        proto_message(&g, GRAPH_INITIALIZER, proto_tensor("u", ONNX_UINT8, 0, NULL, "\0", 1));
        proto_message(&g, GRAPH_INITIALIZER, proto_tensor("i", ONNX_INT8, 0, NULL, "\0", 1));
        proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 0, NULL));
        attack_end end = attack_with(ctx, proto_model(g, 17));
        CHECK_MSG(end == (cases[i].runs ? ATTACK_RAN : ATTACK_UNSUPPORTED), "%s of %s", cases[i].type,
                  cases[i].ins);
        if (!cases[i].runs)
            CHECK_MSG(strstr(mica_error(ctx), "a zero point of type") != NULL, "%s", mica_error(ctx));
    }
    mica_context_destroy(ctx);
}

/* ---- What the fuzzer found ---- */

/* A convolution of single elements, channel by channel, which takes no scratch at all from the scalar kernels: NULL is
 * not added to. For the undefined-behaviour sanitizer. */
TEST(onnx_hostile_no_scratch)
{
    mica_context *ctx = NULL;
    const int64_t shape[] = {2, 3, 6, 4}, weight[] = {3, 1, 1, 1};
    const float values[] = {-0.5f, 0.25f, -1.0f};
    if (!CHECK(mica_context_create(&ctx, &(mica_context_opts){.isa = "scalar"}) == MICA_OK))
        return;
    proto g = {0}, node = proto_node("Conv", "x w", "y");
    proto_int(&node, "group", 3);
    proto_message(&g, GRAPH_NODE, node);
    proto_message(&g, GRAPH_INITIALIZER, proto_tensor("w", ONNX_FLOAT, 4, weight, values, sizeof values));
    proto_message(&g, GRAPH_INPUT, proto_value("x", ONNX_FLOAT, 4, shape));
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 4, shape));
    CHECK(attack_with(ctx, proto_model(g, 17)) == ATTACK_RAN);
    mica_context_destroy(ctx);
}
