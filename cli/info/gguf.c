/* mica info of GGUF files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/gguf.h>

#include "cli/info/info.h"
#include "cli/picture/text.h"

#define TEXT_SHOWN     72 /* characters of a text */
#define ELEMENT_SHOWN  24 /* of one within an array */
#define ELEMENTS_SHOWN 4
#define ELEMENTS_WHOLE 16 /* arrays up to here are given whole in JSON */

/* ---- Values ---- */

/* Texts in files do not end with a zero. */
static void put_plain_text(mica_gguf_text text, size_t characters)
{
    char *copy = malloc(text.length + 1);
    if (copy == NULL)
        return;
    memcpy(copy, text.bytes, text.length);
    copy[text.length] = '\0';
    put_plain_up_to(stdout, copy, characters);
    free(copy);
}

/* A number as the file has it: whole ones exactly. */
static void put_number(const mica_gguf_value *value, size_t number, bool json)
{
    mica_gguf_kind kind = value->kind == MICA_GGUF_ARRAY ? value->array.kind : value->kind;
    int64_t whole;
    double real;
    if (kind == MICA_GGUF_BOOL && mica_gguf_integer_at(value, &whole, number))
        printf("%s", whole != 0 ? "true" : "false");
    else if (mica_gguf_integer_at(value, &whole, number))
        printf("%lld", (long long)whole);
    else if (kind == MICA_GGUF_U64 && value->kind == kind)
        printf("%llu", (unsigned long long)value->u);
    else if (mica_gguf_number_at(value, &real, number) && json)
        put_json_number(stdout, real);
    else if (mica_gguf_number_at(value, &real, number))
        printf(kind == MICA_GGUF_F32 ? "%.7g" : "%.15g", real);
}

static void put_elements(const mica_gguf_value *value, size_t count, bool json)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        printf("%s", i > 0 ? ", " : "");
        mica_gguf_text text;
        if (!mica_gguf_next_text(value, &text, &at)) {
            put_number(value, i, json);
        } else if (json) {
            put_json_bytes(stdout, text.bytes, text.length);
        } else {
            printf("\"");
            put_plain_text(text, ELEMENT_SHOWN);
            printf("\"");
        }
    }
}

static void put_value(const mica_gguf_value *value)
{
    if (value->kind == MICA_GGUF_STRING) {
        put_plain_text(value->text, TEXT_SHOWN);
    } else if (value->kind == MICA_GGUF_ARRAY) {
        size_t count = value->array.count;
        printf("%s x %s: ", count_text((double)count).text, mica_gguf_kind_name(value->array.kind));
        put_elements(value, count < ELEMENTS_SHOWN ? count : ELEMENTS_SHOWN, false);
        printf("%s", count > ELEMENTS_SHOWN ? ", ..." : "");
    } else {
        put_number(value, 0, false);
    }
}

static void put_value_json(const mica_gguf_value *value)
{
    if (value->kind == MICA_GGUF_STRING) {
        put_json_bytes(stdout, value->text.bytes, value->text.length);
    } else if (value->kind == MICA_GGUF_ARRAY && value->array.count > ELEMENTS_WHOLE) {
        printf("{\"of\": \"%s\", \"count\": %zu, \"first\": [", mica_gguf_kind_name(value->array.kind),
               value->array.count);
        put_elements(value, ELEMENTS_SHOWN, true);
        printf("]}");
    } else if (value->kind == MICA_GGUF_ARRAY) {
        printf("[");
        put_elements(value, value->array.count, true);
        printf("]");
    } else {
        put_number(value, 0, true);
    }
}

/* ---- The file ---- */

static void put_shape(const mica_tensor *t)
{
    printf("[");
    for (int i = 0; i < t->rank; i++)
        printf("%s%td", i > 0 ? ", " : "", t->dim[i]);
    printf("]");
}

static void gguf_json(const mica_gguf *file)
{
    mica_gguf_text name;
    mica_gguf_value value;
    mica_tensor t;
    printf("{\"kind\": \"gguf\", \"settings\": {");
    for (size_t i = 0; mica_gguf_settings(file) > i && mica_gguf_setting(file, &name, &value, i) == MICA_OK;
         i++) {
        printf("%s\n", i > 0 ? "," : "");
        put_json_bytes(stdout, name.bytes, name.length);
        printf(": ");
        put_value_json(&value);
    }
    printf("}, \"tensors\": [");
    for (size_t i = 0; mica_gguf_tensors(file) > i && mica_gguf_tensor(file, &name, &t, i) == MICA_OK; i++) {
        printf("%s\n{\"name\": ", i > 0 ? "," : "");
        put_json_bytes(stdout, name.bytes, name.length);
        printf(", \"dtype\": \"%s\", \"shape\": ", mica_dtype_name(t.dtype));
        put_shape(&t);
        printf(", \"bytes\": %zu}", mica_tensor_bytes(&t));
    }
    printf("]}\n");
}

static void put_settings(const mica_gguf *file)
{
    mica_gguf_text key;
    mica_gguf_value value;
    size_t width = 0;
    for (size_t i = 0; mica_gguf_settings(file) > i && mica_gguf_setting(file, &key, &value, i) == MICA_OK;
         i++)
        width = key.length > width && key.length < 60 ? key.length : width;
    for (size_t i = 0; mica_gguf_settings(file) > i && mica_gguf_setting(file, &key, &value, i) == MICA_OK;
         i++) {
        put_plain_text(key, 240);
        printf("%*s  ", key.length < width ? (int)(width - key.length) : 0, "");
        put_value(&value);
        printf("\n");
    }
}

/* Each tensor, then each dtype. */
static void put_tensors(const mica_gguf *file)
{
    mica_gguf_text name;
    mica_tensor t;
    size_t count = mica_gguf_tensors(file), width = 6, counts[MICA_DTYPE_COUNT] = {0};
    double bytes[MICA_DTYPE_COUNT] = {0}, values = 0.0, all = 0.0;
    for (size_t i = 0; i < count && mica_gguf_tensor(file, &name, &t, i) == MICA_OK; i++)
        width = name.length > width ? name.length : width;
    printf("\n%-*s  %-6s %14s  %s\n", (int)width, "tensor", "dtype", "bytes", "shape");
    for (size_t i = 0; i < count && mica_gguf_tensor(file, &name, &t, i) == MICA_OK; i++) {
        double size = (double)mica_tensor_bytes(&t);
        counts[t.dtype]++;
        bytes[t.dtype] += size;
        values += (double)mica_tensor_count(&t);
        all += size;
        put_plain_text(name, 240);
        printf("%*s  %-6s %14s  ", (int)(width - name.length), "", mica_dtype_name(t.dtype),
               count_text(size).text);
        put_shape(&t);
        printf("\n");
    }
    printf("\n");
    for (int k = 0; k < MICA_DTYPE_COUNT; k++)
        if (counts[k] > 0)
            printf("%-6s  %zu tensor%s, %s\n", mica_dtype_name((mica_dtype)k), counts[k],
                   counts[k] == 1 ? "" : "s", size_text(bytes[k]).text);
    printf("%s parameters, %s\n", count_text(values).text, size_text(all).text);
}

int info_gguf(mica_context *ctx, const info_settings *set, const char *path)
{
    mica_gguf *file;
    if (mica_gguf_open(ctx, &file, path) != MICA_OK)
        return verb_failed(&verb_info, ctx);
    if (set->shared.json) {
        gguf_json(file);
    } else {
        put_plain(stdout, path);
        printf(": GGUF, %zu settings, %zu tensors\n\n", mica_gguf_settings(file), mica_gguf_tensors(file));
        put_settings(file);
        if (mica_gguf_tensors(file) > 0)
            put_tensors(file);
    }
    mica_gguf_close(file);
    return EXIT_OK;
}
