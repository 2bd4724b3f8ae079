/* External data: files beside the model, and only those. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "onnx/attack.h"

static void put_pair(proto *t, const char *key, const char *value)
{
    proto pair = {0};
    proto_text(&pair, 1, key);
    proto_text(&pair, 2, value);
    proto_message(t, 13, pair);
}

/* y = relu(w), w being two floats in another file. */
static proto model_of(const char *location, const char *offset, const char *length)
{
    proto g = {0}, t = {0};
    proto_number(&t, 1, 2);
    proto_number(&t, 2, ONNX_FLOAT);
    proto_text(&t, 8, "w");
    if (location != NULL)
        put_pair(&t, "location", location);
    if (offset != NULL)
        put_pair(&t, "offset", offset);
    if (length != NULL)
        put_pair(&t, "length", length);
    proto_number(&t, 14, 1);
    proto_message(&g, GRAPH_NODE, proto_node("Relu", "w", "y"));
    proto_message(&g, GRAPH_INITIALIZER, t);
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 1, (int64_t[]){2}));
    return proto_model(g, 17);
}

static void write_file(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (CHECK(file != NULL)) {
        CHECK(fwrite(bytes, 1, size, file) == size);
        CHECK(fclose(file) == 0);
    }
}

/* Whether the model of a file can be built; the context has the error. */
static bool builds(mica_context *ctx, const char *folder, proto model, float *first)
{
    char path[512];
    mica_onnx *onnx = NULL;
    mica_net *net = NULL;
    mica_tensor y;
    write_file(folder, "model.onnx", model.bytes, model.size);
    proto_free(&model);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    mica_status status = mica_onnx_open(ctx, &onnx, path);
    if (status == MICA_OK)
        status = mica_net_create(ctx, &net);
    if (status == MICA_OK)
        status = mica_onnx_build(onnx, net, NULL);
    if (status == MICA_OK) {
        CHECK_OK(ctx, mica_net_compile(net, NULL));
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
        CHECK_OK(ctx, mica_net_forward(net));
        if (CHECK_OK(ctx, mica_net_tensor(net, &y, "y")))
            *first = ((const float *)y.data)[0];
    }
    mica_net_destroy(net);
    mica_onnx_close(onnx);
    return status == MICA_OK;
}

TEST(onnx_external_data)
{
    char folder[] = "/tmp/mica_onnx_XXXXXX", path[512];
    mica_context *ctx = test_context(1);
    const float values[] = {1, 2, 3, 4};
    float first = 0;
    REQUIRE(mkdtemp(folder) != NULL);
    write_file(folder, "w.bin", values, sizeof values);
    CHECK(builds(ctx, folder, model_of("w.bin", NULL, NULL), &first) && first == 1);
    CHECK(builds(ctx, folder, model_of("w.bin", "8", "8"), &first) && first == 3);
    CHECK(builds(ctx, folder, model_of("./w.bin", "4", "8"), &first) && first == 2);
    /* Not aligned: copied. */
    CHECK(builds(ctx, folder, model_of("w.bin", "1", "8"), &first));
    static const char *const bad[][4] = {
        {"../w.bin", NULL, NULL, "expected a file in the folder of the model"},
        {"../../etc/passwd", NULL, NULL, "expected a file in the folder of the model"},
        {"a/../../w.bin", NULL, NULL, "expected a file in the folder of the model"},
        {"/etc/passwd", NULL, NULL, "expected a file in the folder of the model"},
        {"..", NULL, NULL, "expected a file in the folder of the model"},
        {"", NULL, NULL, "expected a file in the folder of the model"},
        {NULL, NULL, NULL, "does not say where"},
        {"none.bin", NULL, NULL, "none.bin"},
        {".", NULL, NULL, ""},
        {"w.bin", "12", NULL, "8 bytes from byte 12"},
        {"w.bin", "16", "8", "8 bytes from byte 16"},
        {"w.bin", "18446744073709551608", "8", ""},
        {"w.bin", "99999999999999999999999", NULL, "no number"},
        {"w.bin", "-4", NULL, "no number"},
        {"w.bin", "0x4", NULL, "no number"},
        {"w.bin", "0", "4", "4 bytes of external data, expected 8"},
        {"w.bin", "0", "16", "16 bytes of external data, expected 8"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_MSG(!builds(ctx, folder, model_of(bad[i][0], bad[i][1], bad[i][2]), &first), "case %zu", i);
        CHECK_MSG(strstr(mica_error(ctx), bad[i][3]) != NULL, "case %zu: %s", i, mica_error(ctx));
    }
    /* Over memory there is no folder. */
    proto m = model_of("w.bin", NULL, NULL);
    CHECK(attack(ctx, m.bytes, m.size) < ATTACK_BUILT);
    proto_free(&m);
    const char *const files[] = {"w.bin", "model.onnx"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        CHECK(unlink(path) == 0);
    }
    CHECK(rmdir(folder) == 0);
}
