/* A JSON file by its parts. */
#include "text/json_parts.h"

#include <stdarg.h>
#include <string.h>

#include "base/format.h"
#include "io/quote.h"

mica_status mica_json_wrong(const mica_json_text *j, size_t at, const char *format, ...)
{
    char text[320];
    va_list arguments;
    va_start(arguments, format);
    mica_vformat(text, sizeof text, format, arguments);
    va_end(arguments);
    return mica_fail(j->ctx, MICA_ERR_FORMAT, "%s: byte %zu: %s", MICA_QUOTE(j->path), at, text);
}

mica_status mica_json_whole(const mica_json_text *j, mica_json_part *out)
{
    mica_json json = mica_json_over(j->text, j->length);
    mica_json_token token;
    bool first = true;
    do {
        if (!mica_json_next(&json, &token))
            return mica_json_wrong(j, json.at, "%s", json.error);
        if (first)
            *out = (mica_json_part){token.kind, token.offset, j->length};
        first = false;
    } while (token.kind != MICA_JSON_DONE);
    return MICA_OK;
}

static bool is_string(mica_json_kind kind) { return kind == MICA_JSON_STRING || kind == MICA_JSON_KEY; }

/* The token of a part, as the reader gives it. */
static mica_json_token token_of(const mica_json_text *j, const mica_json_part *part)
{
    size_t quote = is_string(part->kind) ? 1 : 0;
    return (mica_json_token){.kind = part->kind,
                             .offset = part->start,
                             .text = j->text + part->start + quote,
                             .length = part->end - part->start - 2 * quote};
}

/* The value that a token begins, all of it, which was checked before. */
static mica_json_part part_of(mica_json *json, const mica_json_token *token, size_t base)
{
    mica_json_part part = {token->kind, base + token->offset, 0};
    (void)mica_json_skip(json, token);
    part.end = base + json->at;
    return part;
}

bool mica_json_each(const mica_json_text *j, const mica_json_part *part, mica_json_part *key,
                    mica_json_part *value, size_t *at)
{
    bool object = part->kind == MICA_JSON_OBJECT;
    size_t from = *at == 0 ? part->start + 1 : *at;
    if (part->kind != MICA_JSON_ARRAY && !object)
        return false;
    /* What stands between values is white space, commas and colons: the text is known to be right. */
    while (from < part->end && strchr(" \t\r\n,", j->text[from]) != NULL)
        from++;
    if (from + 1 >= part->end)
        return false;
    mica_json_token token;
    if (object) {
        mica_json name = mica_json_over(j->text + from, part->end - from);
        if (!mica_json_next(&name, &token) || token.kind != MICA_JSON_STRING)
            return false;
        if (key != NULL)
            *key = (mica_json_part){MICA_JSON_STRING, from, from + name.at};
        from += name.at;
        while (from < part->end && strchr(" \t\r\n:", j->text[from]) != NULL)
            from++;
    }
    mica_json json = mica_json_over(j->text + from, part->end - from);
    if (!mica_json_next(&json, &token))
        return false;
    *value = part_of(&json, &token, from);
    *at = value->end;
    return true;
}

mica_status mica_json_members(const mica_json_text *j, const mica_json_part *object, const char *const *names,
                              mica_json_part *out, int count)
{
    mica_json_part key, value;
    size_t at = 0;
    for (int i = 0; i < count; i++)
        out[i] = (mica_json_part){.kind = MICA_JSON_DONE};
    if (object->kind != MICA_JSON_OBJECT)
        return mica_json_wrong(j, object->start, "expected an object");
    bool seen[16] = {false};
    while (mica_json_each(j, object, &key, &value, &at)) {
        for (int i = 0; i < count && i < 16; i++) {
            if (!mica_json_string_is(j, &key, names[i]))
                continue;
            if (seen[i])
                return mica_json_wrong(j, key.start, "\"%s\" a second time", names[i]);
            seen[i] = true;
            if (value.kind != MICA_JSON_NULL)
                out[i] = value;
        }
    }
    return MICA_OK;
}

mica_json_string mica_json_take(const mica_json_text *j, const mica_json_part *string)
{
    mica_json_token token = token_of(j, string);
    char *text = j->text + string->start + 1;
    return (mica_json_string){text, mica_json_decode(text, &token)};
}

bool mica_json_string_is(const mica_json_text *j, const mica_json_part *string, const char *text)
{
    mica_json_token token = token_of(j, string);
    return is_string(string->kind) && mica_json_says(&token, text);
}

bool mica_json_number_below(const mica_json_text *j, const mica_json_part *part, uint64_t most, uint64_t *out)
{
    mica_json_token token = token_of(j, part);
    return part->kind == MICA_JSON_NUMBER && mica_json_unsigned(out, &token) && *out < most;
}
