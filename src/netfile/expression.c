/* Numbers, constants, arithmetic, lists.
 *
 *   sum      product { (+ | -) product }
 *   product  power { (* | /) power }
 *   power    atom [ ^ power ]
 *   atom     NUMBER | CONSTANT | - power | ( sum )
 *
 * Arguments are separated by spaces, so "transpose -1 -2" has two: outside of parentheses, an operator
 * after whitespace does not continue an expression. */
#include <math.h>
#include <string.h>

#include "io/number.h"
#include "io/quote.h"
#include "netfile/reader.h"

#define MOST_DEPTH 32 /* of parentheses, signs and powers */

static mica_status read_sum(reader *r, double *out, bool open);

constant *mica_find_constant(reader *r, const char *name, size_t length)
{
    for (int i = r->constant_count; i-- > 0;) {
        constant *c = &r->constants[i];
        if (strlen(c->name) == length && memcmp(c->name, name, length) == 0)
            return c;
    }
    return NULL;
}

static mica_status read_constant(reader *r, double *out)
{
    const constant *c = mica_find_constant(r, r->text + r->now.at, r->now.length);
    if (c == NULL)
        return mica_fail_at(
            r, &r->now, MICA_ERR_FORMAT, "expected a number, found %s, which is not a constant%s",
            mica_found_now(r).text,
            mica_guess_of(r, &r->now, &r->constants[0].name, (size_t)r->constant_count, sizeof(constant))
                .text);
    *out = c->value;
    return mica_next_token(r);
}

static mica_status read_power(reader *r, double *out, bool open);

static mica_status read_atom(reader *r, double *out)
{
    if (r->now.kind == TOKEN_WORD)
        return read_constant(r, out);
    if (r->now.kind == TOKEN_NUMBER) {
        if (!mica_parse_number(out, r->text + r->now.at, r->now.length) || !isfinite(*out))
            return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "expected a number, found %s",
                                mica_found_now(r).text);
        return mica_next_token(r);
    }
    if (!mica_is_sign(r, '('))
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "expected a number, found %s%s",
                            mica_found_now(r).text,
                            r->now.kind == TOKEN_SIGN && strchr("+*/^", r->now.sign) != NULL
                                ? "; an expression with spaces needs parentheses"
                                : "");
    MICA_TRY(mica_next_token(r));
    MICA_TRY(read_sum(r, out, true));
    if (!mica_is_sign(r, ')'))
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "expected \")\", found %s", mica_found_now(r).text);
    return mica_next_token(r);
}

/* Whether an operator follows. */
static bool operates(const reader *r, char sign, bool open)
{
    return mica_is_sign(r, sign) && (open || !r->now.spaced);
}

static mica_status read_power(reader *r, double *out, bool open)
{
    if (r->depth == MOST_DEPTH)
        return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "more than %d nested parentheses and signs",
                            MOST_DEPTH);
    r->depth++;
    mica_status status;
    if (mica_is_sign(r, '-')) {
        status = mica_next_token(r);
        status = status == MICA_OK ? read_power(r, out, open) : status;
        *out = -*out;
    } else {
        status = read_atom(r, out);
    }
    if (status == MICA_OK && operates(r, '^', open)) {
        double exponent = 0.0;
        status = mica_next_token(r);
        status = status == MICA_OK ? read_power(r, &exponent, open) : status;
        *out = pow(*out, exponent);
    }
    r->depth--;
    return status;
}

static mica_status read_product(reader *r, double *out, bool open)
{
    MICA_TRY(read_power(r, out, open));
    while (operates(r, '*', open) || operates(r, '/', open)) {
        bool divide = r->now.sign == '/';
        double factor = 0.0;
        MICA_TRY(mica_next_token(r));
        MICA_TRY(read_power(r, &factor, open));
        *out = divide ? *out / factor : *out * factor;
    }
    return MICA_OK;
}

static mica_status read_sum(reader *r, double *out, bool open)
{
    MICA_TRY(read_product(r, out, open));
    while (operates(r, '+', open) || operates(r, '-', open)) {
        bool minus = r->now.sign == '-';
        double term = 0.0;
        MICA_TRY(mica_next_token(r));
        MICA_TRY(read_product(r, &term, open));
        *out += minus ? -term : term;
    }
    return MICA_OK;
}

mica_status mica_read_expression(reader *r, double *out, bool open)
{
    token at = r->now;
    *out = 0.0;
    MICA_TRY(read_sum(r, out, open));
    if (!isfinite(*out))
        return mica_fail_at(r, &at, MICA_ERR_FORMAT,
                            "expected a number, found an expression that evaluates to %g", *out);
    return MICA_OK;
}

/* ---- Whole numbers and lists of them ---- */

static mica_status check_whole(reader *r, const token *at, mica_index *out, double number, const char *what,
                               mica_index least, mica_index most)
{
    if (number != floor(number))
        return mica_fail_at(r, at, MICA_ERR_FORMAT, "%s: expected an integer, found %g", what, number);
    if (number < (double)least || number > (double)most)
        return mica_fail_at(r, at, MICA_ERR_FORMAT, "%s: expected a number from %td to %td, found %.15g",
                            what, least, most, number);
    *out = (mica_index)number;
    return MICA_OK;
}

mica_status mica_read_whole(reader *r, mica_index *out, const char *what, mica_index least, mica_index most)
{
    token at = r->now;
    double number;
    MICA_TRY(mica_read_expression(r, &number, false));
    return check_whole(r, &at, out, number, what, least, most);
}

/* 3x3: digits with an x between them. */
static mica_status read_by(reader *r, mica_index *out, int *count, const char *what, mica_index least)
{
    const char *at = r->text + r->now.at, *end = at + r->now.length;
    for (; at < end; at++) {
        size_t length = 0;
        double number = 0.0;
        while (at + length < end && at[length] != 'x')
            length++;
        if (*count == MICA_MAX_RANK)
            return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "%s: more than %d sizes", what, MICA_MAX_RANK);
        (void)mica_parse_number(&number, at, length);
        MICA_TRY(check_whole(r, &r->now, &out[(*count)++], number, what, least, INT32_MAX));
        at += length;
    }
    return mica_next_token(r);
}

static mica_status read_list(reader *r, mica_index *out, int *count, const char *what, mica_index least)
{
    MICA_TRY(mica_next_token(r));
    while (!mica_is_sign(r, ']')) {
        token at = r->now;
        double number = 0.0;
        if (*count == MICA_MAX_RANK)
            return mica_fail_at(r, &at, MICA_ERR_FORMAT, "%s: more than %d sizes", what, MICA_MAX_RANK);
        MICA_TRY(mica_read_expression(r, &number, true));
        MICA_TRY(check_whole(r, &at, &out[(*count)++], number, what, least, INT32_MAX));
        if (mica_is_sign(r, ','))
            MICA_TRY(mica_next_token(r));
        else if (!mica_is_sign(r, ']'))
            return mica_fail_at(r, &r->now, MICA_ERR_FORMAT, "%s: expected \",\" or \"]\", found %s", what,
                                mica_found_now(r).text);
    }
    return mica_next_token(r);
}

mica_status mica_read_sizes(reader *r, mica_index *out, int *count, const char *what, mica_index least)
{
    *count = 0;
    if (r->now.kind == TOKEN_SIZES)
        return read_by(r, out, count, what, least);
    if (mica_is_sign(r, '['))
        return read_list(r, out, count, what, least);
    *count = 1;
    return mica_read_whole(r, out, what, least, INT32_MAX);
}
