/* Escaping, and numbers as people read them. */
#include "cli/picture/text.h"

#include <math.h>
#include <string.h>

#include "io/utf8.h"

#define REPLACEMENT 0xfffdu

/* The next character of the text at *at, which ends at `end`; a byte that is none stands for the replacement. */
static uint32_t next_character(const char **at, const char *end)
{
    uint32_t code = REPLACEMENT;
    size_t length = mica_utf8_decode(&code, *at, (size_t)(end - *at));
    *at += length > 0 ? length : 1;
    return code;
}

static void put_character(FILE *out, uint32_t code)
{
    char bytes[MICA_UTF8_LONGEST];
    fwrite(bytes, 1, mica_utf8_encode(bytes, code), out);
}

/* Whether XML 1.0 and HTML allow the character. */
static bool is_allowed(uint32_t code)
{
    if (code < 0x20)
        return code == '\t' || code == '\n' || code == '\r';
    return (code < 0x7f || code >= 0xa0) && code != 0xfffe && code != 0xffff;
}

static void put_escaped(FILE *out, uint32_t code)
{
    switch (code) {
    case '&':
        fputs("&amp;", out);
        break;
    case '<':
        fputs("&lt;", out);
        break;
    case '>':
        fputs("&gt;", out);
        break;
    case '"':
        fputs("&quot;", out);
        break;
    case '\'':
        fputs("&#39;", out);
        break;
    default:
        put_character(out, is_allowed(code) ? code : REPLACEMENT);
    }
}

void put_text_up_to(FILE *out, const char *text, size_t characters)
{
    const char *end = text != NULL ? text + strlen(text) : NULL;
    for (; text != NULL && text < end; characters--) {
        uint32_t code = next_character(&text, end);
        if (characters <= 1 && text < end) {
            put_character(out, 0x2026);
            return;
        }
        put_escaped(out, code);
    }
}

void put_text_end(FILE *out, const char *text, size_t characters)
{
    const char *end = text != NULL ? text + strlen(text) : NULL, *at = text;
    size_t count = 0;
    for (; at != NULL && at < end; count++)
        (void)next_character(&at, end);
    if (count > characters) {
        put_character(out, 0x2026);
        characters--;
    }
    for (; count > characters; count--)
        (void)next_character(&text, end);
    put_text(out, text);
}

void put_text(FILE *out, const char *text) { put_text_up_to(out, text, SIZE_MAX); }

void put_json(FILE *out, const char *text) { put_json_bytes(out, text, text != NULL ? strlen(text) : 0); }

void put_json_bytes(FILE *out, const char *text, size_t length)
{
    fputc('"', out);
    const char *end = text != NULL ? text + length : NULL;
    while (text != NULL && text < end) {
        uint32_t code = next_character(&text, end);
        if (code == '"' || code == '\\')
            fprintf(out, "\\%c", (char)code);
        else if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == '<' || code == '>' || code == '&' ||
                 code == 0x2028 || code == 0x2029)
            fprintf(out, "\\u%04x", (unsigned)code);
        else
            put_character(out, code);
    }
    fputc('"', out);
}

void put_json_number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, "%.9g", value);
    else
        fputs("null", out);
}

/* ---- For terminals ---- */

/* What stands for the character, or the byte that is none, at *at, which is stepped over. */
typedef struct plain_piece {
    char text[4 * MICA_UTF8_LONGEST + 1];
} plain_piece;

static plain_piece next_piece(const char **at, const char *end)
{
    uint32_t code = 0;
    plain_piece piece = {""};
    size_t length = mica_utf8_decode(&code, *at, (size_t)(end - *at));
    if (length > 0 && mica_utf8_printable(code)) {
        memcpy(piece.text, *at, length);
    } else {
        length = length > 0 ? length : 1;
        for (size_t i = 0; i < length; i++)
            (void)snprintf(piece.text + 4 * i, 5, "\\x%02x", (unsigned)(unsigned char)(*at)[i]);
    }
    *at += length;
    return piece;
}

void put_plain_up_to(FILE *out, const char *text, size_t characters)
{
    const char *at = text, *end = text != NULL ? text + strlen(text) : NULL;
    for (; at != NULL && at < end && characters > 0; characters--)
        fputs(next_piece(&at, end).text, out);
    if (at != NULL && at < end)
        fprintf(out, "... (%zu bytes)", (size_t)(end - text));
}

void put_plain(FILE *out, const char *text) { put_plain_up_to(out, text, SIZE_MAX); }

char *plain_text(char *to, size_t size, const char *text)
{
    const char *end = text + strlen(text);
    size_t used = 0;
    while (text < end) {
        plain_piece piece = next_piece(&text, end);
        size_t length = strlen(piece.text);
        if (length >= size - used)
            break;
        memcpy(to + used, piece.text, length);
        used += length;
    }
    to[used] = '\0';
    return to;
}

void put_message(FILE *out, const char *text)
{
    for (const char *end = text + strlen(text); text < end;) {
        if (*text == '\n' || *text == '\t')
            fputc(*text++, out);
        else
            fputs(next_piece(&text, end).text, out);
    }
}

/* ---- Numbers ---- */

/* Bytes in the largest unit that they are at least one of. */
static double in_unit(double bytes, const char **unit)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t u = 0;
    while (bytes >= 1024.0 && u + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024.0;
        u++;
    }
    *unit = units[u];
    return bytes;
}

short_text size_text(double bytes)
{
    const char *unit;
    double value = in_unit(bytes, &unit);
    int digits = bytes < 1024.0 || value >= 100.0 ? 0 : value >= 10.0 ? 1 : 2;
    short_text out;
    (void)snprintf(out.text, sizeof out.text, "%.*f %s", digits, value, unit);
    return out;
}

short_text round_size_text(double bytes)
{
    const char *unit;
    double value = in_unit(bytes, &unit);
    short_text out;
    (void)snprintf(out.text, sizeof out.text, "%g %s", value, unit);
    return out;
}

short_text count_text(double count)
{
    char digits[40];
    int length = snprintf(digits, sizeof digits, "%.0f", fmin(fabs(count), 1e15));
    short_text out;
    char *to = out.text;
    if (count < 0.0)
        *to++ = '-';
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return out;
}

short_text number_text(double value)
{
    short_text out;
    bool large = fabs(value) >= 1e6 && fabs(value) < 1e15;
    (void)snprintf(out.text, sizeof out.text, large ? "%.0f" : "%.6g", value);
    return out;
}

short_text figure_text(double value)
{
    short_text out;
    bool large = fabs(value) >= 1e4 && fabs(value) < 1e15;
    (void)snprintf(out.text, sizeof out.text, large ? "%.0f" : "%.4g", value);
    return out;
}

short_text time_text(double seconds)
{
    static const struct {
        double scale;
        const char *unit;
    } units[] = {{1.0, "s"}, {1e3, "ms"}, {1e6, "µs"}, {1e9, "ns"}};
    size_t u = 0;
    while (u < 3 && fabs(seconds) * units[u].scale < 1.0)
        u++;
    double value = seconds * units[u].scale;
    int digits = fabs(value) >= 100.0 ? 0 : fabs(value) >= 10.0 ? 1 : 2;
    short_text out;
    (void)snprintf(out.text, sizeof out.text, "%.*f %s", seconds == 0.0 ? 0 : digits, value,
                   seconds == 0.0 ? "s" : units[u].unit);
    return out;
}

short_text shape_text(mica_dtype dtype, int rank, const mica_index *dim)
{
    short_text out;
    size_t used = (size_t)snprintf(out.text, sizeof out.text, "%s [", mica_dtype_name(dtype));
    for (int i = 0; i < rank && used < sizeof out.text; i++)
        used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s%lld", i > 0 ? ", " : "",
                                 (long long)dim[i]);
    if (used < sizeof out.text)
        (void)snprintf(out.text + used, sizeof out.text - used, "]");
    return out;
}
