/* What a field of a table says: nothing, a number, a date or a word. */
#include <math.h>
#include <string.h>

#include "data/table/table.h"
#include "io/number.h"

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

static bool is_missing(const char *text, size_t length)
{
    static const char *const words[] = {"na", "n/a", "#n/a", "nan", "null", "none", "?", "-"};
    if (length == 0)
        return true;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t k = 0;
        while (k < length && words[i][k] != '\0' && lower(text[k]) == words[i][k])
            k++;
        if (k == length && words[i][k] == '\0')
            return true;
    }
    return false;
}

/* ---- Dates ---- */

/* Digits of a number, `least` to `most` of them. */
static bool digits(const char **at, const char *end, int least, int most, int *out)
{
    int count = 0;
    for (*out = 0; count < most && *at < end && **at >= '0' && **at <= '9'; count++)
        *out = *out * 10 + (*(*at)++ - '0');
    return count >= least;
}

static bool byte(const char **at, const char *end, char wanted)
{
    if (*at == end || **at != wanted)
        return false;
    (*at)++;
    return true;
}

static bool is_leap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

/* Of months 1 to 12; 13: the days of the year. */
static int days_before_month(int year, int month)
{
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    return before[month - 1] + (month > 2 && is_leap(year));
}

/* Since 1970-01-01, in the calendar of today. */
static bool days_of(int year, int month, int day, double *out)
{
    if (year < 1 || month < 1 || month > 12 || day < 1)
        return false;
    if (day > days_before_month(year, month + 1) - days_before_month(year, month))
        return false;
    enum { LEAPS_BEFORE_1970 = 477 };
    int y = year - 1, leaps = y / 4 - y / 100 + y / 400;
    *out = 365.0 * (year - 1970) + (leaps - LEAPS_BEFORE_1970) + days_before_month(year, month) + day - 1;
    return true;
}

/* 12:30, 12:30:59, 12:30:59.25, each with or without Z or +02:00; seconds of the day. */
static bool read_time(const char *at, const char *end, double *out)
{
    int hour, minute, second = 0;
    double fraction = 0, offset = 0;
    if (!digits(&at, end, 1, 2, &hour) || !byte(&at, end, ':') || !digits(&at, end, 2, 2, &minute))
        return false;
    if (byte(&at, end, ':')) {
        if (!digits(&at, end, 2, 2, &second))
            return false;
        if (byte(&at, end, '.')) {
            const char *from = at;
            for (double place = 0.1; at < end && *at >= '0' && *at <= '9'; at++, place /= 10)
                fraction += place * (*at - '0');
            if (at == from)
                return false;
        }
    }
    if (at < end && (*at == '+' || *at == '-')) {
        double sign = *at++ == '-' ? -1 : 1;
        int hours, minutes = 0;
        if (!digits(&at, end, 2, 2, &hours))
            return false;
        (void)byte(&at, end, ':');
        if (at < end && !digits(&at, end, 2, 2, &minutes))
            return false;
        offset = sign * (hours * 3600.0 + minutes * 60.0);
    } else {
        (void)byte(&at, end, 'Z');
    }
    *out = hour * 3600.0 + minute * 60.0 + second + fraction - offset;
    return at == end && hour < 24 && minute < 60 && second <= 60;
}

static bool read_date(mica_field *out, const char *text, size_t length)
{
    const char *at = text, *end = text + length;
    int first, month, last;
    double days, seconds = 0;
    if (!digits(&at, end, 1, 4, &first))
        return false;
    bool year_first = at - text == 4;
    char between = at < end ? *at : '\0';
    if (year_first ? between != '-' && between != '/' : between != '.')
        return false;
    at++;
    if (!digits(&at, end, 1, 2, &month) || !byte(&at, end, between) ||
        !digits(&at, end, year_first ? 1 : 4, year_first ? 2 : 4, &last))
        return false;
    if (!(year_first ? days_of(first, month, last, &days) : days_of(last, month, first, &days)))
        return false;
    out->has_time = at < end;
    if (at < end && (!(*at == 'T' || *at == ' ') || !read_time(at + 1, end, &seconds)))
        return false;
    out->kind = MICA_FIELD_DATE;
    out->value = days * 86400 + seconds;
    return true;
}

/* ---- Numbers ---- */

/* 1,5 where fields are not cut by commas. */
static bool read_decimal_comma(double *out, const char *text, size_t length)
{
    char copy[64];
    const char *comma = memchr(text, ',', length);
    if (comma == NULL || length >= sizeof copy || memchr(text, '.', length) != NULL)
        return false;
    memcpy(copy, text, length);
    copy[comma - text] = '.';
    return mica_parse_number(out, copy, length);
}

static size_t count_digits(const char *at, const char *end)
{
    size_t count = 0;
    while (at + count < end && at[count] >= '0' && at[count] <= '9')
        count++;
    return count;
}

/* 1,234.50 and 1.234,50: digits in groups of three. One group alone, 1,234, is one where fields are cut by commas, as
 * elsewhere the comma is a decimal one; 1.234 never is. */
static bool read_grouped(double *out, const char *text, size_t length, char delimiter)
{
    char copy[64];
    const char *at = text, *end = text + length;
    size_t used = 0, groups = 0, first;
    if (length >= sizeof copy)
        return false;
    if (*at == '-' || *at == '+')
        copy[used++] = *at++;
    first = count_digits(at, end);
    if (first < 1 || first > 3 || *at == '0' || at + first == end)
        return false;
    char group = at[first], point = group == ',' ? '.' : ',';
    if (group != ',' && group != '.')
        return false;
    memcpy(copy + used, at, first);
    used += first;
    for (at += first; at < end && *at == group && count_digits(at + 1, end) == 3; at += 4, groups++) {
        memcpy(copy + used, at + 1, 3);
        used += 3;
    }
    bool decimals = at < end && *at == point;
    if (groups == 0 || (at < end && !decimals) ||
        (groups == 1 && !decimals && !(group == ',' && delimiter == ',')))
        return false;
    if (decimals) {
        size_t count = count_digits(at + 1, end);
        if (count == 0 || at + 1 + count != end)
            return false;
        copy[used++] = '.';
        memcpy(copy + used, at + 1, count);
        used += count;
    }
    return mica_parse_number(out, copy, used);
}

mica_field mica_field_read(const char *text, size_t length, char delimiter)
{
    mica_field out = {MICA_FIELD_WORD, 0, false};
    /* Blanks within quotes; outside of them the reader has cut them off. */
    for (; length > 0 && is_blank(text[0]); length--)
        text++;
    while (length > 0 && is_blank(text[length - 1]))
        length--;
    if (length == 0) {
        out.kind = MICA_FIELD_MISSING;
        return out;
    }
    char first = text[0];
    bool may_be_number = (first >= '0' && first <= '9') || first == '-' || first == '+' || first == '.' ||
                         lower(first) == 'i' || first == ',';
    if (may_be_number && (mica_parse_number(&out.value, text, length) ||
                          (delimiter != ',' && read_decimal_comma(&out.value, text, length)) ||
                          read_grouped(&out.value, text, length, delimiter))) {
        out.kind = MICA_FIELD_NUMBER;
        if (isnan(out.value)) /* "-nan" */
            out.kind = MICA_FIELD_MISSING;
        return out;
    }
    if (is_missing(text, length))
        out.kind = MICA_FIELD_MISSING;
    else if (first >= '0' && first <= '9')
        (void)read_date(&out, text, length);
    return out;
}

void mica_field_show(char shown[MICA_TABLE_SHOWN], const char *text, size_t length)
{
    size_t n = length < MICA_TABLE_SHOWN ? length : MICA_TABLE_SHOWN - 1;
    while (n > 0 && n < length && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--; /* within a character of UTF-8 */
    memcpy(shown, text, n);
    shown[n] = '\0';
}
