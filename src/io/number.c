/* Decimal numbers in text. */
#include "io/number.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"

#define LONGEST 512 /* characters of a number */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool mica_parse_unsigned(uint64_t *out, const char *text, size_t length)
{
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (!is_digit(text[i]))
            return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return length > 0;
}

static bool same_word(const char *text, size_t length, const char *word)
{
    if (length != strlen(word))
        return false;
    for (size_t i = 0; i < length; i++)
        if ((text[i] | 0x20) != word[i])
            return false;
    return true;
}

static bool named(double *out, const char *text, size_t length)
{
    bool minus = length > 0 && text[0] == '-';
    if (length > 0 && (text[0] == '-' || text[0] == '+'))
        text++, length--;
    if (same_word(text, length, "nan"))
        *out = (double)NAN;
    else if (same_word(text, length, "inf") || same_word(text, length, "infinity"))
        *out = minus ? -(double)INFINITY : (double)INFINITY;
    else
        return false;
    return true;
}

/* What a number is made of: ± digits · 10^exponent. */
typedef struct decimal {
    bool minus;
    bool exact;      /* all digits are in `digits` */
    uint64_t digits; /* at most 19 of them */
    long exponent;   /* kept within ±100000 */
    size_t point;    /* where the point stands; the length if there is none */
} decimal;

/* One run of digits; `scale` is what each of them does to the exponent. */
static size_t read_digits(decimal *d, const char *text, size_t at, size_t length, int scale)
{
    for (; at < length && is_digit(text[at]); at++) {
        if (d->digits < (uint64_t)1000000000000000000) {
            d->digits = d->digits * 10 + (uint64_t)(text[at] - '0');
            d->exponent += scale;
        } else {
            d->exact = d->exact && text[at] == '0';
            d->exponent += scale + 1;
        }
    }
    return at;
}

static bool read_exponent(decimal *d, const char *text, size_t at, size_t length)
{
    bool minus = at < length && text[at] == '-';
    if (at < length && (text[at] == '-' || text[at] == '+'))
        at++;
    if (at == length)
        return false;
    long value = 0;
    for (; at < length; at++) {
        if (!is_digit(text[at]))
            return false;
        if (value < 100000)
            value = value * 10 + (text[at] - '0');
    }
    d->exponent += minus ? -value : value;
    return true;
}

static bool read_decimal(decimal *d, const char *text, size_t length)
{
    *d = (decimal){.exact = true, .point = length};
    size_t at = 0;
    if (length > 0 && (text[0] == '-' || text[0] == '+')) {
        d->minus = text[0] == '-';
        at++;
    }
    size_t start = at;
    at = read_digits(d, text, at, length, 0);
    size_t count = at - start;
    if (at < length && text[at] == '.') {
        d->point = at++;
        start = at;
        at = read_digits(d, text, at, length, -1);
        count += at - start;
    }
    if (count == 0)
        return false;
    if (at == length)
        return true;
    return (text[at] | 0x20) == 'e' && read_exponent(d, text, at + 1, length);
}

/* The C library rounds correctly, but wants its locale's point. */
static double convert_slowly(const decimal *d, const char *text, size_t length)
{
    const char *point = localeconv()->decimal_point;
    size_t width = strlen(point);
    char copy[LONGEST + 16];
    size_t used = d->point;
    memcpy(copy, text, d->point);
    if (d->point < length && width <= 8) {
        memcpy(copy + used, point, width);
        used += width;
        memcpy(copy + used, text + d->point + 1, length - d->point - 1);
        used += length - d->point - 1;
    }
    copy[used] = '\0';
    return strtod(copy, NULL);
}

bool mica_parse_number(double *out, const char *text, size_t length)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    decimal d;
    if (length > LONGEST)
        return false;
    if (!read_decimal(&d, text, length))
        return named(out, text, length);
    /* Digits below 2^53 and powers up to 10^22 are doubles themselves: one operation rounds once. */
    if (d.exact && d.digits < (uint64_t)1 << 53 && d.exponent >= -22 && d.exponent <= 22) {
        double value = (double)d.digits;
        value = d.exponent < 0 ? value / powers[-d.exponent] : value * powers[d.exponent];
        *out = d.minus ? -value : value;
    } else {
        *out = convert_slowly(&d, text, length);
    }
    return true;
}

const char *mica_print_number(char text[MICA_NUMBER_ROOM], int digits, double number)
{
    mica_format(text, MICA_NUMBER_ROOM, "%.*g", digits, number);
    const char *point = localeconv()->decimal_point;
    char *at = point[0] != '\0' ? strchr(text, point[0]) : NULL;
    if (at != NULL) {
        const char *rest = at + strlen(point);
        *at = '.';
        memmove(at + 1, rest, strlen(rest) + 1);
    }
    return text;
}
