/* A strict JSON reader, token by token. */
#include "io/json.h"

#include <string.h>

#include "io/number.h"
#include "io/utf8.h"

/* What may come next. */
enum {
    VALUE,        /* a value */
    VALUE_OR_END, /* the first element of an array, or its end */
    KEY,          /* a key, after a comma */
    KEY_OR_END,   /* the first key of an object, or its end */
    COMMA_OR_END, /* after an element or a member */
    NOTHING,      /* the value is complete */
};

mica_json mica_json_over(const char *text, size_t length)
{
    return (mica_json){.text = text, .length = length, .expect = VALUE};
}

const char *mica_json_kind_name(mica_json_kind kind)
{
    static const char *const names[] = {"null",
                                        "false",
                                        "true",
                                        "a number",
                                        "a string",
                                        "a key",
                                        "an array",
                                        "the end of an array",
                                        "an object",
                                        "the end of an object",
                                        "the end of the text"};
    return names[kind];
}

static bool fail(mica_json *json, size_t at, const char *error)
{
    json->at = at;
    json->error = error;
    return false;
}

/* The next byte; -1 at the end. */
static int peek(const mica_json *json)
{
    return json->at < json->length ? (unsigned char)json->text[json->at] : -1;
}

static bool is_digit(int c) { return c >= '0' && c <= '9'; }

static void skip_blanks(mica_json *json)
{
    for (int c = peek(json); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(json))
        json->at++;
}

static bool in_object(const mica_json *json) { return json->objects >> (json->depth - 1) & 1; }

static void after_value(mica_json *json) { json->expect = json->depth > 0 ? COMMA_OR_END : NOTHING; }

/* ---- Numbers and words ---- */

static bool digits(mica_json *json)
{
    if (!is_digit(peek(json)))
        return fail(json, json->at, "expected a digit");
    while (is_digit(peek(json)))
        json->at++;
    return true;
}

static bool number(mica_json *json, mica_json_token *token)
{
    token->kind = MICA_JSON_NUMBER;
    if (peek(json) == '-')
        json->at++;
    size_t first = json->at;
    if (!digits(json))
        return false;
    if (json->text[first] == '0' && json->at > first + 1)
        return fail(json, first, "a number may not start with 0");
    if (peek(json) == '.') {
        json->at++;
        if (!digits(json))
            return false;
    }
    if (peek(json) == 'e' || peek(json) == 'E') {
        json->at++;
        if (peek(json) == '-' || peek(json) == '+')
            json->at++;
        if (!digits(json))
            return false;
    }
    token->text = json->text + token->offset;
    token->length = json->at - token->offset;
    return true;
}

static bool word(mica_json *json, mica_json_token *token, const char *text, mica_json_kind kind)
{
    size_t n = strlen(text);
    if (json->length - json->at < n || memcmp(json->text + json->at, text, n) != 0)
        return fail(json, json->at, "expected a value");
    json->at += n;
    token->kind = kind;
    return true;
}

/* ---- Strings ---- */

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits of \uXXXX; -1 if they are not there. */
static int32_t code_unit(const char *text, size_t length)
{
    int32_t value = 0;
    if (length < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(text[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* The escape that begins with the backslash at text[0]: its length, 0 if it is none, and what it stands for. */
static size_t escape(uint32_t *code, const char *text, size_t length)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (length < 2)
        return 0;
    if (text[1] != 'u') {
        const char *letter = memchr(letters, text[1], sizeof letters - 1);
        if (letter == NULL)
            return 0;
        *code = (unsigned char)meanings[letter - letters];
        return 2;
    }
    int32_t unit = code_unit(text + 2, length - 2);
    if (unit < 0 || (unit >= 0xdc00 && unit < 0xe000))
        return 0;
    if (unit < 0xd800 || unit >= 0xe000) {
        *code = (uint32_t)unit;
        return 6;
    }
    int32_t low = length >= 12 && text[6] == '\\' && text[7] == 'u' ? code_unit(text + 8, 4) : -1;
    if (low < 0xdc00 || low >= 0xe000)
        return 0;
    *code = 0x10000u + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    return 12;
}

static bool string(mica_json *json, mica_json_token *token)
{
    size_t start = ++json->at;
    for (int c; (c = peek(json)) != '"';) {
        uint32_t code = 0;
        const char *here = json->text + json->at;
        size_t left = json->length - json->at;
        if (c < 0)
            return fail(json, json->length, "the text ends inside a string");
        if (c < 0x20)
            return fail(json, json->at, "a control character in a string");
        size_t size = c == '\\' ? escape(&code, here, left) : mica_utf8_decode(&code, here, left);
        if (size == 0)
            return fail(json, json->at, c == '\\' ? "invalid escape sequence" : "not UTF-8");
        json->at += size;
    }
    token->kind = MICA_JSON_STRING;
    token->text = json->text + start;
    token->length = json->at - start;
    json->at++;
    return true;
}

size_t mica_json_decode(char *out, const mica_json_token *token)
{
    size_t used = 0;
    for (size_t at = 0, size; at < token->length; at += size) {
        if (token->text[at] != '\\') {
            out[used++] = token->text[at];
            size = 1;
            continue;
        }
        uint32_t code = 0;
        char bytes[MICA_UTF8_LONGEST]; /* apart: `out` may be what is read */
        size = escape(&code, token->text + at, token->length - at);
        size_t length = mica_utf8_encode(bytes, code);
        memcpy(out + used, bytes, length);
        used += length;
    }
    return used;
}

bool mica_json_says(const mica_json_token *token, const char *word)
{
    char text[256];
    bool is_text = token->kind == MICA_JSON_KEY || token->kind == MICA_JSON_STRING;
    if (!is_text || token->length > sizeof text)
        return false;
    size_t length = mica_json_decode(text, token);
    return length == strlen(word) && memcmp(text, word, length) == 0;
}

bool mica_json_unsigned(uint64_t *out, const mica_json_token *token)
{
    return token->kind == MICA_JSON_NUMBER && mica_parse_unsigned(out, token->text, token->length);
}

/* ---- Structure ---- */

static bool nest(mica_json *json, mica_json_token *token, bool object)
{
    if (json->depth == MICA_JSON_DEEPEST)
        return fail(json, json->at, "nested too deeply");
    uint64_t bit = (uint64_t)1 << json->depth++;
    json->objects = object ? json->objects | bit : json->objects & ~bit;
    json->expect = object ? KEY_OR_END : VALUE_OR_END;
    json->at++;
    token->kind = object ? MICA_JSON_OBJECT : MICA_JSON_ARRAY;
    return true;
}

static bool unnest(mica_json *json, mica_json_token *token)
{
    token->kind = in_object(json) ? MICA_JSON_OBJECT_END : MICA_JSON_ARRAY_END;
    json->at++;
    json->depth--;
    after_value(json);
    return true;
}

static bool value(mica_json *json, mica_json_token *token)
{
    bool ok;
    switch (peek(json)) {
    case '{':
        return nest(json, token, true);
    case '[':
        return nest(json, token, false);
    case '"':
        ok = string(json, token);
        break;
    case 'n':
        ok = word(json, token, "null", MICA_JSON_NULL);
        break;
    case 'f':
        ok = word(json, token, "false", MICA_JSON_FALSE);
        break;
    case 't':
        ok = word(json, token, "true", MICA_JSON_TRUE);
        break;
    default:
        if (peek(json) != '-' && !is_digit(peek(json)))
            return fail(json, json->at, peek(json) < 0 ? "the text ends too early" : "expected a value");
        ok = number(json, token);
    }
    if (ok)
        after_value(json);
    return ok;
}

static bool key(mica_json *json, mica_json_token *token)
{
    if (peek(json) != '"')
        return fail(json, json->at, "expected a key in quotes");
    if (!string(json, token))
        return false;
    token->kind = MICA_JSON_KEY;
    skip_blanks(json);
    if (peek(json) != ':')
        return fail(json, json->at, "expected a colon");
    json->at++;
    json->expect = VALUE;
    return true;
}

bool mica_json_next(mica_json *json, mica_json_token *token)
{
    if (json->error != NULL)
        return false;
    skip_blanks(json);
    int end = json->depth == 0 ? -1 : in_object(json) ? '}' : ']';
    if (json->expect == COMMA_OR_END && peek(json) == ',') {
        json->at++;
        skip_blanks(json);
        json->expect = in_object(json) ? KEY : VALUE;
    }
    *token = (mica_json_token){.kind = MICA_JSON_DONE, .offset = json->at};
    switch (json->expect) {
    case NOTHING:
        return json->at == json->length || fail(json, json->at, "bytes after the value");
    case COMMA_OR_END:
        if (peek(json) != end)
            return fail(json, json->at, "expected a comma or the end");
        return unnest(json, token);
    case KEY_OR_END:
        return peek(json) == end ? unnest(json, token) : key(json, token);
    case KEY:
        return key(json, token);
    case VALUE_OR_END:
        return peek(json) == end ? unnest(json, token) : value(json, token);
    default:
        return value(json, token);
    }
}

bool mica_json_skip(mica_json *json, const mica_json_token *token)
{
    if (token->kind != MICA_JSON_OBJECT && token->kind != MICA_JSON_ARRAY)
        return true;
    mica_json_token inner;
    for (int outside = json->depth - 1; json->depth > outside;)
        if (!mica_json_next(json, &inner))
            return false;
    return true;
}
