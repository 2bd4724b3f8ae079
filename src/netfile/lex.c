/* Tokens, and error messages that point at them. */
#include <stdarg.h>
#include <string.h>

#include "base/format.h"
#include "base/nearest.h"
#include "io/quote.h"
#include "io/utf8.h"
#include "netfile/reader.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/* The byte at a place; 0 behind the text, which is no byte of a token. */
static char byte_at(const reader *r, size_t at) { return at < r->length ? r->text[at] : '\0'; }

static size_t digits_from(const reader *r, size_t at)
{
    while (is_digit(byte_at(r, at)))
        at++;
    return at;
}

/* A number: digits [. digits] [e [+-] digits]; or sizes: digits x digits [x digits ...]. */
static void lex_number(reader *r)
{
    size_t at = digits_from(r, r->now.at);
    r->now.kind = TOKEN_NUMBER;
    while (byte_at(r, at) == 'x' && is_digit(byte_at(r, at + 1))) {
        r->now.kind = TOKEN_SIZES;
        at = digits_from(r, at + 1);
    }
    if (r->now.kind == TOKEN_NUMBER) {
        if (byte_at(r, at) == '.')
            at = digits_from(r, at + 1);
        size_t sign = byte_at(r, at + 1) == '+' || byte_at(r, at + 1) == '-';
        if ((byte_at(r, at) == 'e' || byte_at(r, at) == 'E') && is_digit(byte_at(r, at + 1 + sign)))
            at = digits_from(r, at + 1 + sign);
    }
    r->now.length = at - r->now.at;
}

static void lex_word(reader *r)
{
    size_t at = r->now.at;
    char c = byte_at(r, at);
    while (is_letter(c) || is_digit(c) || c == '.')
        c = byte_at(r, ++at);
    r->now.kind = TOKEN_WORD;
    r->now.length = at - r->now.at;
}

mica_status mica_next_token(reader *r)
{
    token before = r->now;
    size_t at = before.at + before.length;
    r->before = at;
    if (before.kind == TOKEN_LINE && before.length > 0) {
        r->now.line++;
        r->now.line_at = at;
    }
    char c = byte_at(r, at);
    while (c == ' ' || c == '\t' || c == '\r')
        c = byte_at(r, ++at);
    r->now.spaced = at > before.at + before.length;
    if (c == '#')
        while (at < r->length && byte_at(r, at) != '\n')
            at++;
    c = byte_at(r, at);
    r->now = (token){
        .at = at, .length = 1, .spaced = r->now.spaced, .line = r->now.line, .line_at = r->now.line_at};
    if (at >= r->length) {
        r->now.kind = TOKEN_END;
        r->now.length = 0;
    } else if (c == '\n') {
        r->now.kind = TOKEN_LINE;
    } else if (is_digit(c) || (c == '.' && is_digit(byte_at(r, at + 1)))) {
        lex_number(r);
    } else if (is_letter(c)) {
        lex_word(r);
    } else {
        r->now.kind = TOKEN_SIGN;
        r->now.sign = c;
        if (c == '\0' || strchr("=()[]{},+-*/^", c) == NULL)
            return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "unexpected character %s in a net file",
                                MICA_QUOTE_N(r->text + at, 1));
    }
    return MICA_OK;
}

bool mica_is_sign(const reader *r, char sign) { return r->now.kind == TOKEN_SIGN && r->now.sign == sign; }

bool mica_is_word(const reader *r, const char *name)
{
    return r->now.kind == TOKEN_WORD && strlen(name) == r->now.length &&
           memcmp(r->text + r->now.at, name, r->now.length) == 0;
}

found mica_found_now(const reader *r)
{
    found f;
    if (r->now.kind == TOKEN_END)
        mica_format(f.text, sizeof f.text, "the end of the file");
    else if (r->now.kind == TOKEN_LINE)
        mica_format(f.text, sizeof f.text, "the end of the line");
    else
        mica_format(f.text, sizeof f.text, "%s", MICA_QUOTE_N(r->text + r->now.at, r->now.length));
    return f;
}

const char *mica_keep_word(reader *r, const token *name)
{
    return mica_net_text(r->net, "%.*s", (int)name->length, r->text + name->at);
}

guess mica_guess_of(const reader *r, const token *name, const void *names, size_t count, size_t stride)
{
    guess g = {""};
    const char *meant = mica_nearest(r->text + name->at, name->length, names, count, stride);
    if (meant != NULL)
        mica_format(g.text, sizeof g.text, "; did you mean \"%s\"?", meant);
    return g;
}

/* ---- Messages ---- */

#define SHOWN 72 /* columns of a line in a message */

/* "\n  12 | conv 8 3x4x4\n     |        ^", of a long line the part around the token. */
static void show_line(char *out, size_t size, const reader *r, const token *at)
{
    size_t column = at->at - at->line_at, start = at->line_at, end = at->at;
    while (end < r->length && r->text[end] != '\n' && r->text[end] != '\r')
        end++;
    if (column > SHOWN - 12) {
        start = at->at - (SHOWN - 12);
        column = SHOWN - 12;
    }
    if (end - start > SHOWN)
        end = start + SHOWN;
    char part[SHOWN + 1];
    for (size_t i = start, bytes; i < end; i += bytes) { /* one column a byte, whatever it is */
        uint32_t code;
        bytes = mica_utf8_decode(&code, r->text + i, end - i);
        bool shown = bytes > 0 && mica_utf8_printable(code);
        bytes = bytes > 0 ? bytes : 1;
        if (shown)
            memcpy(part + (i - start), r->text + i, bytes);
        else
            memset(part + (i - start), ' ', bytes);
    }
    part[end - start] = '\0';
    mica_format(out, size, "\n  %4d | %s\n       | %*s^", at->line, part, (int)column, "");
}

mica_status mica_fail_at(reader *r, const token *at, mica_status status, const char *format, ...)
{
    if (r->net->status != MICA_OK)
        return r->net->status;
    char message[MICA_ERROR_TEXT], shown[2 * SHOWN + 32];
    va_list args;
    va_start(args, format);
    (void)mica_vformat(message, sizeof message, format, args);
    va_end(args);
    show_line(shown, sizeof shown, r, at);
    const char *file = r->opts->file != NULL ? r->opts->file : "net";
    size_t length = strlen(file);
    (void)mica_fail(r->ctx, status, "%s%s:%d:%d: %s%s", length > 60 ? "..." : "",
                    length > 60 ? file + length - 60 : file, at->line, (int)(at->at - at->line_at) + 1,
                    message, shown);
    r->told = true;
    return mica_net_failed(r->net, status);
}
