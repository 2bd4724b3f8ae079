#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/model/take.h"
#include "cli/net/argument.h"
#include "cli/onnx/given.h"
#include "cli/onnx/onnx.h"
#include "io/quote.h"

/* A ModelProto begins with ir_version, a small number, in all files that are written in the order of its fields. What
 * follows is another of its fields: texts (2, 3, 4, 6), model_version (5), the graph (7) or opsets (8). */
bool is_onnx(const char *path)
{
    unsigned char head[3] = {0};
    size_t length = strlen(path);
    if (length > 5 && strcasecmp(path + length - 5, ".onnx") == 0)
        return true;
    FILE *file = is_regular(path) ? fopen(path, "rb") : NULL;
    size_t got = file != NULL ? fread(head, 1, sizeof head, file) : 0;
    if (file != NULL)
        fclose(file);
    static const unsigned char next[] = {0x12, 0x1a, 0x22, 0x28, 0x32, 0x3a, 0x42};
    return got == 3 && head[0] == 0x08 && head[1] >= 1 && head[1] < 64 &&
           memchr(next, head[2], sizeof next) != NULL;
}

struct onnx_built {
    given given;
};

int onnx_build(onnx_built **out, mica_net **net, mica_context *ctx, const verb *v, const option_list *set,
               const char *path, mica_index batch)
{
    onnx_built *built = *out = take(1, sizeof *built);
    if (given_open(&built->given, ctx, path) != MICA_OK)
        return verb_failed(v, ctx);
    int code = given_sets(&built->given, v, set);
    if (code != EXIT_OK)
        return code;
    given_fill_sizes(&built->given, batch, 0);
    return given_build(&built->given, net, false) == MICA_OK ? EXIT_OK
                                                             : given_build_failed(&built->given, v, path);
}

void onnx_sizes(char *text, size_t size, const onnx_built *built)
{
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < built->given.symbols && at < size; i++) {
        const mica_onnx_set *s = &built->given.symbol[i];
        mica_quote name = mica_quote_string(s->name); /* a name of a file, in quotes only if it needs them */
        bool plain = strlen(name.text) == strlen(s->name) + 2;
        if (strcmp(s->name, "batch") != 0)
            at += (size_t)snprintf(text + at, size - at, ", %.40s %td", plain ? s->name : name.text, s->size);
    }
}

size_t onnx_weight_bytes(const onnx_built *built)
{
    return mica_onnx_describe(built->given.model).weight_bytes;
}

void onnx_release(onnx_built *built)
{
    if (built != NULL)
        given_close(&built->given);
    free(built);
}
