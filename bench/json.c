/* Recursive descent over the text; every value is one node on the heap. */
#include "bench/json.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEEPEST        64
#define LONGEST_NUMBER 63

typedef struct reader {
    const char *text;
    size_t at, length;
    int depth;
    json_error *error;
} reader;

const char *json_kind_name(json_kind kind)
{
    static const char *const names[] = {"null",     "false",    "true",     "a number",
                                        "a string", "an array", "an object"};
    return names[kind];
}

static bool fail(reader *r, size_t offset, const char *text)
{
    r->error->offset = offset;
    snprintf(r->error->text, sizeof r->error->text, "%s", text);
    return false;
}

/* The next byte; -1 at the end. */
static int peek(const reader *r) { return r->at < r->length ? (unsigned char)r->text[r->at] : -1; }

static bool is_digit(int c) { return c >= '0' && c <= '9'; }

static void skip_blanks(reader *r)
{
    for (int c = peek(r); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(r))
        r->at++;
}

static bool literal(reader *r, const char *word)
{
    size_t n = strlen(word);
    if (r->length - r->at < n || memcmp(r->text + r->at, word, n) != 0)
        return fail(r, r->at, "expected a value");
    r->at += n;
    return true;
}

/* ---- Numbers ---- */

static bool digits(reader *r)
{
    if (!is_digit(peek(r)))
        return fail(r, r->at, "expected a digit");
    while (is_digit(peek(r)))
        r->at++;
    return true;
}

static bool number(reader *r, double *out)
{
    size_t start = r->at;
    if (peek(r) == '-')
        r->at++;
    bool zero = peek(r) == '0';
    size_t first = r->at;
    if (!digits(r))
        return false;
    if (zero && r->at > first + 1)
        return fail(r, first, "a number may not begin with 0");
    if (peek(r) == '.') {
        r->at++;
        if (!digits(r))
            return false;
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->at++;
        if (peek(r) == '+' || peek(r) == '-')
            r->at++;
        if (!digits(r))
            return false;
    }
    char copy[LONGEST_NUMBER + 1];
    size_t n = r->at - start;
    if (n > LONGEST_NUMBER)
        return fail(r, start, "a number is too long");
    memcpy(copy, r->text + start, n);
    copy[n] = '\0';
    *out = strtod(copy, NULL);
    return isfinite(*out) ? true : fail(r, start, "a number is out of range");
}

/* ---- Strings ---- */

static bool hex4(reader *r, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        int c = peek(r);
        int lower = c | 0x20;
        if (is_digit(c))
            *out = *out * 16 + (uint32_t)(c - '0');
        else if (c >= 0 && lower >= 'a' && lower <= 'f')
            *out = *out * 16 + (uint32_t)(lower - 'a' + 10);
        else
            return fail(r, r->at, "expected four hexadecimal digits after \\u");
    }
    return true;
}

static size_t utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint32_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead[more] | code >> (6 * more));
    for (int i = 1; i <= more; i++)
        out[i] = (char)(0x80 | (code >> (6 * (more - i)) & 0x3f));
    return (size_t)more + 1;
}

/* After \u. A character beyond 16 bits is written as two halves. */
static bool unicode(reader *r, char *out, size_t *length)
{
    size_t start = r->at - 2;
    uint32_t code, low;
    if (!hex4(r, &code))
        return false;
    if (code == 0)
        return fail(r, start, "a string may not hold a zero byte");
    if (code >= 0xd800 && code < 0xe000) {
        bool pair = code < 0xdc00 && r->length - r->at >= 2 && memcmp(r->text + r->at, "\\u", 2) == 0;
        if (!pair)
            return fail(r, start, "half of a surrogate pair");
        r->at += 2;
        if (!hex4(r, &low))
            return false;
        if (low < 0xdc00 || low >= 0xe000)
            return fail(r, start, "half of a surrogate pair");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    *length += utf8(out + *length, code);
    return true;
}

static bool escape(reader *r, char *out, size_t *length)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int c = peek(r);
    if (c == 'u') {
        r->at++;
        return unicode(r, out, length);
    }
    const char *found = c > 0 ? strchr(from, c) : NULL;
    if (found == NULL)
        return fail(r, r->at - 1, "an unknown escape");
    r->at++;
    out[(*length)++] = to[found - from];
    return true;
}

static bool string_body(reader *r, char *out)
{
    size_t start = r->at++, length = 0;
    for (;;) {
        int c = peek(r);
        if (c < 0)
            return fail(r, start, "a string that does not end");
        if (c < 0x20)
            return fail(r, r->at, "a control character in a string");
        r->at++;
        if (c == '"')
            break;
        if (c != '\\')
            out[length++] = (char)c;
        else if (!escape(r, out, &length))
            return false;
    }
    out[length] = '\0';
    return true;
}

/* NULL on failure. What it decodes to is never longer than what is written between the quotes. */
static char *string(reader *r)
{
    if (peek(r) != '"') {
        fail(r, r->at, "expected a string");
        return NULL;
    }
    const char *end = r->text + r->at + 1;
    while (end < r->text + r->length && *end != '"')
        end += *end == '\\' && end + 1 < r->text + r->length ? 2 : 1;
    char *out = malloc((size_t)(end - (r->text + r->at)) + 1);
    if (out == NULL)
        fail(r, r->at, "out of memory");
    else if (!string_body(r, out)) {
        free(out);
        out = NULL;
    }
    return out;
}

/* ---- Values ---- */

static json_value *value(reader *r);

/* "key": of the next member. The key is the caller's; NULL on failure. */
static char *member_key(reader *r, const json_value *object)
{
    size_t start = r->at;
    char *key = string(r);
    if (key == NULL)
        return NULL;
    skip_blanks(r);
    if (json_member(object, key) != NULL)
        fail(r, start, "a key given twice");
    else if (peek(r) != ':')
        fail(r, r->at, "expected ':'");
    else {
        r->at++;
        return key;
    }
    free(key);
    return NULL;
}

/* One element or member, at *place. */
static bool child(reader *r, const json_value *parent, json_value **place)
{
    char *key = NULL;
    skip_blanks(r);
    if (parent->kind == JSON_OBJECT && (key = member_key(r, parent)) == NULL)
        return false;
    *place = value(r);
    if (*place == NULL) {
        free(key);
        return false;
    }
    (*place)->key = key;
    return true;
}

/* Elements or members up to the closing bracket, which is read too. */
static bool children(reader *r, json_value *parent, char close)
{
    json_value **place = &parent->first;
    r->at++;
    skip_blanks(r);
    while (peek(r) != close || place != &parent->first) {
        if (!child(r, parent, place))
            return false;
        place = &(*place)->next;
        skip_blanks(r);
        if (peek(r) == close)
            break;
        if (peek(r) != ',')
            return fail(r, r->at, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
        r->at++;
    }
    r->at++;
    return true;
}

static bool nested(reader *r, json_value *v, json_kind kind, char close)
{
    v->kind = kind;
    if (++r->depth > DEEPEST)
        return fail(r, r->at, "nested too deeply");
    bool ok = children(r, v, close);
    r->depth--;
    return ok;
}

static bool fill_value(reader *r, json_value *v)
{
    switch (peek(r)) {
    case '{':
        return nested(r, v, JSON_OBJECT, '}');
    case '[':
        return nested(r, v, JSON_ARRAY, ']');
    case '"':
        v->kind = JSON_STRING;
        v->string = string(r);
        return v->string != NULL;
    case 't':
        v->kind = JSON_TRUE;
        return literal(r, "true");
    case 'f':
        v->kind = JSON_FALSE;
        return literal(r, "false");
    case 'n':
        return literal(r, "null");
    case -1:
        return fail(r, r->at, "the text ends where a value should be");
    default:
        if (peek(r) != '-' && !is_digit(peek(r)))
            return fail(r, r->at, "expected a value");
        v->kind = JSON_NUMBER;
        return number(r, &v->number);
    }
}

static json_value *value(reader *r)
{
    skip_blanks(r);
    json_value *v = calloc(1, sizeof *v);
    if (v == NULL) {
        fail(r, r->at, "out of memory");
        return NULL;
    }
    v->offset = r->at;
    if (!fill_value(r, v)) {
        json_free(v);
        return NULL;
    }
    return v;
}

json_value *json_read(const char *text, size_t length, json_error *error)
{
    reader r = {.text = text, .length = length, .error = error};
    json_value *v = value(&r);
    skip_blanks(&r);
    if (v != NULL && r.at < length) {
        fail(&r, r.at, "something after the end of the value");
        json_free(v);
        return NULL;
    }
    return v;
}

void json_free(json_value *v)
{
    while (v != NULL) {
        json_value *next = v->next;
        json_free(v->first);
        free(v->string);
        free(v->key);
        free(v);
        v = next;
    }
}

const json_value *json_member(const json_value *object, const char *key)
{
    if (object == NULL || object->kind != JSON_OBJECT)
        return NULL;
    for (const json_value *member = object->first; member != NULL; member = member->next)
        if (member->key != NULL && strcmp(member->key, key) == 0)
            return member;
    return NULL;
}
