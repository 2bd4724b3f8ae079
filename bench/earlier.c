#include "bench/earlier.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "io/number.h"

/* What a case must have besides its name. */
enum { THREADS, NS, NS_MIN, PERCENT, ALLOCS, BYTES, NUMBERS };

static const char *const number_keys[NUMBERS] = {"threads",         "ns",     "ns_min",
                                                 "percent_of_peak", "allocs", "bytes"};

typedef struct reader {
    mica_json json;
    char *text;
    bench_earlier *out;
    size_t room; /* for results */
} reader;

__attribute__((format(printf, 3, 4))) static bool fail(reader *r, size_t at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->out->error, sizeof r->out->error, format, arguments);
    va_end(arguments);
    r->out->error_at = at;
    return false;
}

static bool next(reader *r, mica_json_token *token)
{
    return mica_json_next(&r->json, token) || fail(r, r->json.at, "%s", r->json.error);
}

static bool skip(reader *r, const mica_json_token *token)
{
    return mica_json_skip(&r->json, token) || fail(r, r->json.at, "%s", r->json.error);
}

/* The text of a key or string, decoded where it stands and terminated, at the latest over its closing quote. NULL, with
 * the error set, if it holds a zero byte. */
static const char *decode(reader *r, const mica_json_token *token)
{
    char *start = r->text + (token->text - r->text);
    size_t length = mica_json_decode(start, token);
    start[length] = '\0';
    if (strlen(start) == length)
        return start;
    fail(r, token->offset, "a string may not hold a zero byte");
    return NULL;
}

static bool expect(reader *r, mica_json_token *token, const char *key, mica_json_kind kind)
{
    if (!next(r, token))
        return false;
    return token->kind == kind || fail(r, token->offset, "\"%s\" is %s, not %s", key,
                                       mica_json_kind_name(token->kind), mica_json_kind_name(kind));
}

/* A case while it is read. */
typedef struct fields {
    const char *name;
    double number[NUMBERS];
    size_t at[NUMBERS]; /* offset of the value; 0: not there yet, as no value stands first in the text */
} fields;

static bool read_name(reader *r, fields *f, const mica_json_token *key)
{
    mica_json_token token;
    if (f->name != NULL)
        return fail(r, key->offset, "a key given twice");
    if (!expect(r, &token, "name", MICA_JSON_STRING))
        return false;
    f->name = decode(r, &token);
    return f->name != NULL;
}

static bool read_number(reader *r, fields *f, int which, const mica_json_token *key)
{
    mica_json_token token;
    if (f->at[which] != 0)
        return fail(r, key->offset, "a key given twice");
    if (!expect(r, &token, number_keys[which], MICA_JSON_NUMBER))
        return false;
    double value;
    if (!mica_parse_number(&value, token.text, token.length) || !isfinite(value))
        return fail(r, token.offset, "a number is out of range");
    if (value < 0.0)
        return fail(r, token.offset, "a number below zero");
    f->number[which] = value;
    f->at[which] = token.offset;
    return true;
}

static bool read_field(reader *r, fields *f, const mica_json_token *key)
{
    const char *name = decode(r, key);
    if (name == NULL)
        return false;
    if (strcmp(name, "name") == 0)
        return read_name(r, f, key);
    for (int i = 0; i < NUMBERS; i++)
        if (strcmp(name, number_keys[i]) == 0)
            return read_number(r, f, i, key);
    mica_json_token value;
    return next(r, &value) && skip(r, &value);
}

static bool keep(reader *r, const fields *f)
{
    bench_earlier *out = r->out;
    if (out->count == r->room) {
        size_t room = r->room > 0 ? 2 * r->room : 64;
        bench_result *grown = realloc(out->results, room * sizeof *grown);
        if (grown == NULL)
            return fail(r, 0, "out of memory");
        out->results = grown;
        r->room = room;
    }
    out->results[out->count++] = (bench_result){.name = f->name,
                                                .threads = (int)f->number[THREADS],
                                                .ns = f->number[NS],
                                                .ns_min = f->number[NS_MIN],
                                                .percent = f->number[PERCENT],
                                                .allocs = f->number[ALLOCS],
                                                .bytes = f->number[BYTES]};
    return true;
}

static bool read_case(reader *r, const mica_json_token *object)
{
    fields f = {0};
    mica_json_token token;
    if (object->kind != MICA_JSON_OBJECT)
        return fail(r, object->offset, "a case is %s, not an object", mica_json_kind_name(object->kind));
    do {
        if (!next(r, &token) || (token.kind == MICA_JSON_KEY && !read_field(r, &f, &token)))
            return false;
    } while (token.kind != MICA_JSON_OBJECT_END);
    if (f.name == NULL)
        return fail(r, object->offset, "no \"name\" in a case");
    for (int i = 0; i < NUMBERS; i++)
        if (f.at[i] == 0)
            return fail(r, object->offset, "no \"%s\" in a case", number_keys[i]);
    if (f.number[THREADS] < 1.0 || f.number[THREADS] > MICA_MAX_THREADS)
        return fail(r, f.at[THREADS], "no such number of threads");
    return keep(r, &f);
}

static bool read_cases(reader *r)
{
    mica_json_token token;
    if (!expect(r, &token, "cases", MICA_JSON_ARRAY))
        return false;
    for (;;) {
        if (!next(r, &token))
            return false;
        if (token.kind == MICA_JSON_ARRAY_END)
            return true;
        if (!read_case(r, &token))
            return false;
    }
}

static bool read_run(reader *r)
{
    mica_json_token token, value;
    bool found = false;
    if (!next(r, &token))
        return false;
    size_t start = token.offset;
    if (token.kind != MICA_JSON_OBJECT)
        return fail(r, start, "no \"cases\" in %s", mica_json_kind_name(token.kind));
    while (next(r, &token) && token.kind == MICA_JSON_KEY) {
        const char *key = decode(r, &token);
        if (key == NULL)
            return false;
        if (strcmp(key, "cases") != 0) {
            if (!next(r, &value) || !skip(r, &value))
                return false;
            continue;
        }
        if (found)
            return fail(r, token.offset, "a key given twice");
        if (!read_cases(r))
            return false;
        found = true;
    }
    if (r->json.error != NULL || !next(r, &token)) /* nothing may follow the object */
        return false;
    return found || fail(r, start, "no \"cases\" in an object");
}

bool earlier_read(bench_earlier *out, char *text, size_t length)
{
    *out = (bench_earlier){0};
    reader r = {.json = mica_json_over(text, length), .text = text, .out = out};
    if (read_run(&r))
        return true;
    free(out->results);
    out->results = NULL;
    out->count = 0;
    return false;
}

void earlier_release(bench_earlier *earlier) { free(earlier->results); }
