/* A small vsnprintf: see format.h. */
#include "base/format.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DIGITS_MOST 9 /* that a float is right to */

typedef struct sink {
    char *text;
    size_t size, length; /* length counts what did not fit, too */
} sink;

typedef struct spec {
    bool left, zero, alternate;
    char plus;            /* '+' or ' ' before numbers that are not negative; 0: nothing */
    int width, precision; /* precision: -1: none */
    char length;          /* 'h', 'l', 'L' for ll, 'z', 't', 'j'; 0: none */
} spec;

static void put(sink *s, char c, int times)
{
    for (; times > 0; times--, s->length++)
        if (s->length + 1 < s->size)
            s->text[s->length] = c;
}

static void put_text(sink *s, const char *text, int length)
{
    for (int i = 0; i < length; i++)
        put(s, text[i], 1);
}

/* A sign, then a body that is padded to the width. */
static void put_padded(sink *s, const spec *f, char sign, const char *body, int length, bool zeros)
{
    int pad = f->width - length - (sign != 0);
    if (!f->left && !zeros)
        put(s, ' ', pad);
    put(s, sign, sign != 0);
    if (!f->left && zeros)
        put(s, '0', pad);
    put_text(s, body, length);
    if (f->left)
        put(s, ' ', pad);
}

/* The digits of a number, at least `least` of them, from text on; returns how many. */
static int write_digits(char *text, uint64_t number, unsigned base, int least)
{
    char reversed[24];
    int n = 0;
    if (number <= UINT32_MAX) { /* the usual case, and 64-bit division is slow on small processors */
        for (uint32_t rest = (uint32_t)number; rest > 0; rest /= base)
            reversed[n++] = "0123456789abcdef"[rest % base];
    } else {
        for (; number > 0; number /= base)
            reversed[n++] = "0123456789abcdef"[number % base];
    }
    while (n < least && n < (int)sizeof reversed)
        reversed[n++] = '0';
    for (int i = 0; i < n; i++)
        text[i] = reversed[n - 1 - i];
    return n;
}

static void put_integer(sink *s, const spec *f, uint64_t magnitude, char sign, unsigned base)
{
    char text[24];
    int least = f->precision >= 0 ? f->precision : 1;
    int n = write_digits(text, magnitude, base, least < 20 ? least : 20);
    put_padded(s, f, sign, text, n, f->zero && f->precision < 0);
}

/* value, positive and finite, as `digits` decimal digits and the power of ten of the first. */
static uint64_t decimal(double value, int digits, int *exponent)
{
    int e = 0;
    double scaled = value;
    while (scaled >= 1e8) {
        scaled /= 1e8;
        e += 8;
    }
    while (scaled >= 10.0) {
        scaled /= 10.0;
        e++;
    }
    while (scaled < 1e-7) {
        scaled *= 1e8;
        e -= 8;
    }
    while (scaled < 1.0) {
        scaled *= 10.0;
        e--;
    }
    uint64_t limit = 10;
    for (int i = 1; i < digits; i++, limit *= 10)
        scaled *= 10.0;
    uint64_t number = (uint64_t)scaled;
    double rest = scaled - (double)number;
    if (rest > 0.5 || (rest == 0.5 && (number & 1)))
        number++;
    if (number >= limit) {
        number /= 10;
        e++;
    }
    *exponent = e;
    return number;
}

/* The digits of a positive number: d ... with the point behind the first of them at 10^exponent. */
typedef struct digits {
    char text[DIGITS_MOST + 2];
    int count, exponent;
} digits;

static digits digits_of(double value, int count)
{
    digits d = {.count = count < 1 ? 1 : count > DIGITS_MOST ? DIGITS_MOST : count};
    uint64_t number = value > 0 ? decimal(value, d.count, &d.exponent) : 0;
    (void)write_digits(d.text, number, 10, d.count);
    return d;
}

static char digit_at(const digits *d, int place)
{
    return place >= 0 && place < d->count ? d->text[place] : '0';
}

static int write_fixed(char *text, size_t room, double value, int precision, bool point)
{
    digits d = digits_of(value, DIGITS_MOST);
    int wanted = d.exponent + 1 + precision; /* digits that show */
    if (value > 0 && wanted >= 1 && wanted < DIGITS_MOST)
        d = digits_of(value, wanted);
    bool none = value > 0 && wanted < 1; /* less than half of the last place, or about it */
    if (none) {
        bool exact = true; /* half: the first digit and zeros */
        for (int i = 1; i < d.count; i++)
            exact = exact && d.text[i] == '0';
        bool up = wanted == 0 && (d.text[0] > '5' || (d.text[0] == '5' && !exact));
        d = (digits){.count = 1, .exponent = -precision, .text = {up ? '1' : '0'}};
    }
    int n = 0;
    for (int place = d.exponent > 0 ? d.exponent : 0; place >= -precision && n + 2 < (int)room; place--) {
        text[n++] = digit_at(&d, d.exponent - place);
        if (place == 0 && (precision > 0 || point))
            text[n++] = '.';
    }
    return n;
}

static int write_scientific(char *text, double value, int precision, bool point)
{
    digits d = digits_of(value, precision + 1);
    int n = 0;
    text[n++] = d.text[0];
    if (precision > 0 || point)
        text[n++] = '.';
    for (int i = 1; i <= precision; i++)
        text[n++] = digit_at(&d, i);
    text[n++] = 'e';
    text[n++] = d.exponent < 0 ? '-' : '+';
    return n + write_digits(text + n, (uint64_t)(d.exponent < 0 ? -d.exponent : d.exponent), 10, 2);
}

/* %g: the shorter of both forms, without zeros at its end. */
static int write_shortest(char *text, size_t room, double value, int precision, bool zeros)
{
    int wanted = precision > 0 ? precision : 1;
    digits d = digits_of(value, wanted);
    bool fixed = d.exponent >= -4 && d.exponent < wanted;
    int n = fixed ? write_fixed(text, room, value, wanted - 1 - d.exponent, zeros)
                  : write_scientific(text, value, wanted - 1, zeros);
    if (zeros || memchr(text, '.', (size_t)n) == NULL)
        return n;
    const char *power = memchr(text, 'e', (size_t)n);
    int end = power != NULL ? (int)(power - text) : n, kept = end;
    while (text[kept - 1] == '0')
        kept--;
    kept -= text[kept - 1] == '.';
    memmove(text + kept, text + end, (size_t)(n - end));
    return n - (end - kept);
}

static void put_float(sink *s, const spec *f, double value, char form)
{
    char text[64], sign = f->plus;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (bits >> 63) {
        sign = '-';
        value = -value;
    }
    int precision = f->precision < 0 ? 6 : f->precision < 20 ? f->precision : 20, n;
    if ((bits >> 52 & 0x7ff) == 0x7ff) {
        put_padded(s, f, sign, bits << 12 ? "nan" : "inf", 3, false);
        return;
    }
    if (form == 'f' && value < 1e32)
        n = write_fixed(text, sizeof text, value, precision, f->alternate);
    else if (form == 'g')
        n = write_shortest(text, sizeof text, value, precision, f->alternate);
    else
        n = write_scientific(text, value, precision, f->alternate);
    put_padded(s, f, sign, text, n, f->zero);
}

static void put_string(sink *s, const spec *f, const char *text)
{
    if (text == NULL)
        text = "(null)";
    size_t most = f->precision >= 0 ? (size_t)f->precision : (size_t)INT_MAX, n = 0;
    while (n < most && text[n] != '\0')
        n++;
    put_padded(s, f, 0, text, (int)n, false);
}

/* A number, or '*' for an argument. */
static const char *read_number(const char *at, int *number, va_list *args)
{
    if (*at == '*') {
        *number = va_arg(*args, int);
        return at + 1;
    }
    for (*number = 0; *at >= '0' && *at <= '9'; at++)
        *number = *number * 10 + (*at - '0');
    return at;
}

static const char *read_spec(const char *at, spec *f, va_list *args)
{
    *f = (spec){.precision = -1};
    for (;; at++) {
        if (*at == '-')
            f->left = true;
        else if (*at == '0')
            f->zero = true;
        else if (*at == '#')
            f->alternate = true;
        else if (*at == '+' || (*at == ' ' && f->plus == 0))
            f->plus = *at;
        else if (*at != ' ')
            break;
    }
    at = read_number(at, &f->width, args);
    if (f->width < 0) {
        f->left = true;
        f->width = -f->width;
    }
    if (*at == '.')
        at = read_number(at + 1, &f->precision, args);
    for (; *at == 'h' || *at == 'l' || *at == 'z' || *at == 't' || *at == 'j'; at++)
        f->length = *at == 'l' && f->length == 'l' ? 'L' : *at;
    return at;
}

static int64_t take_signed(char length, va_list *args)
{
    switch (length) {
    case 'l':
        return va_arg(*args, long);
    case 'L':
        return va_arg(*args, long long);
    case 'j':
        return va_arg(*args, intmax_t);
    case 'z':
    case 't':
        return va_arg(*args, ptrdiff_t);
    default:
        return va_arg(*args, int);
    }
}

static uint64_t take_unsigned(char length, va_list *args)
{
    switch (length) {
    case 'l':
        return va_arg(*args, unsigned long);
    case 'L':
        return va_arg(*args, unsigned long long);
    case 'j':
        return va_arg(*args, uintmax_t);
    case 'z':
    case 't':
        return va_arg(*args, size_t);
    default:
        return va_arg(*args, unsigned);
    }
}

static void put_conversion(sink *s, const spec *f, char form, va_list *args)
{
    if (form == 'd' || form == 'i') {
        int64_t number = take_signed(f->length, args);
        uint64_t magnitude = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
        put_integer(s, f, magnitude, number < 0 ? '-' : f->plus, 10);
    } else if (form == 'u' || form == 'x') {
        put_integer(s, f, take_unsigned(f->length, args), 0, form == 'x' ? 16 : 10);
    } else if (form == 'p') {
        put_text(s, "0x", 2);
        put_integer(s, f, (uintptr_t)va_arg(*args, void *), 0, 16);
    } else if (form == 's') {
        put_string(s, f, va_arg(*args, const char *));
    } else if (form == 'c') {
        char c = (char)va_arg(*args, int);
        put_padded(s, f, 0, &c, 1, false);
    } else if (form == 'f' || form == 'e' || form == 'g') {
        put_float(s, f, va_arg(*args, double), form);
    } else {
        put(s, form, 1); /* %% */
    }
}

int mica_vformat_small(char *text, size_t size, const char *format, va_list args)
{
    sink s = {text, size, 0};
    va_list rest;
    va_copy(rest, args);
    for (const char *at = format; *at != '\0'; at++) {
        if (*at != '%') {
            put(&s, *at, 1);
            continue;
        }
        spec f;
        at = read_spec(at + 1, &f, &rest);
        if (*at == '\0')
            break;
        put_conversion(&s, &f, *at, &rest);
    }
    va_end(rest);
    if (size > 0)
        text[s.length < size ? s.length : size - 1] = '\0';
    return (int)s.length;
}

int mica_format_small(char *text, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = mica_vformat_small(text, size, format, args);
    va_end(args);
    return length;
}
