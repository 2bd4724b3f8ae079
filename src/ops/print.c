/* Tensors as text, in NumPy's manner:
 *
 *     [[ 1.50,  2.00],
 *      [-3.00,  0.25]]
 *
 * Nested brackets, columns aligned, and the middle of long axes left out of large tensors. */
#include "base/format.h"
#include "ops/element.h"
#include "tensor/tensor.h"

#include <math.h>
#include <string.h>

#include "base/writer.h"
#include "kernel/kernels.h"

enum {
    WHOLE = 1000, /* tensors with more elements are shortened */
    EDGE = 3,     /* to this many at each end of an axis */
    WIDTH = 80,   /* columns of a line */
    DIGITS = 4,   /* after the point, at most */
    NUMBER = 32,  /* room for one element's text */
};

typedef struct printer {
    mica_writer out;
    size_t line; /* where the present line begins in it */
    const mica_tensor *t;
    bool shorten, integers, exponents;
    double smallest, largest; /* magnitudes other than 0 */
    int digits;               /* after the point */
    int width;                /* of an element */
} printer;

/* ---- One element ---- */

static double value_of(const printer *p, mica_index element)
{
    return mica_element_value(mica_kernels_scalar.convert, p->t, element);
}

static void format_element(char out[NUMBER], const printer *p, mica_index element)
{
    if (p->t->dtype == MICA_BOOL) {
        mica_format(out, NUMBER, *mica_element(p->t, element) != 0 ? "true" : "false");
        return;
    }
    if (p->t->dtype == MICA_U64) {
        uint64_t value;
        memcpy(&value, mica_element(p->t, element), sizeof value);
        mica_format(out, NUMBER, "%llu", (unsigned long long)value);
        return;
    }
    if (p->integers) {
        int64_t value;
        MICA_KERNEL(&mica_kernels_scalar, convert, run)
        (&value, MICA_I64, mica_element(p->t, element), p->t->dtype, 1);
        mica_format(out, NUMBER, "%lld", (long long)value);
        return;
    }
    double value = value_of(p, element);
    if (isnan(value))
        mica_format(out, NUMBER, "nan");
    else if (isinf(value))
        mica_format(out, NUMBER, value > 0 ? "inf" : "-inf");
    else if (p->exponents)
        mica_format(out, NUMBER, "%.*e", DIGITS, value);
    else
        mica_format(out, NUMBER, "%#.*f", p->digits, value);
}

/* ---- All elements that are shown ---- */

typedef void visit_fn(printer *p, mica_index element);

static bool left_out(const printer *p, int axis, mica_index at)
{
    mica_index size = p->t->dim[axis];
    return p->shorten && size > 2 * EDGE && at >= EDGE && at < size - EDGE;
}

/* Calls visit for the offset of every element that is shown, in order. */
static void visit_all(printer *p, visit_fn *visit, int axis, mica_index at)
{
    if (axis == p->t->rank) {
        visit(p, at);
        return;
    }
    for (mica_index i = 0; i < p->t->dim[axis]; i++) {
        if (left_out(p, axis, i)) {
            i = p->t->dim[axis] - EDGE - 1;
            continue;
        }
        visit_all(p, visit, axis + 1, at + i * p->t->stride[axis]);
    }
}

/* ---- What the elements need: found before the first is put ---- */

static void see_range(printer *p, mica_index element)
{
    double size = fabs(value_of(p, element));
    if (!(size > 0) || isinf(size))
        return;
    p->largest = fmax(p->largest, size);
    p->smallest = p->smallest > 0 ? fmin(p->smallest, size) : size;
}

static void see_digits(printer *p, mica_index element)
{
    double value = value_of(p, element);
    if (!isfinite(value))
        return;
    char text[NUMBER];
    int length = mica_format(text, sizeof text, "%.*f", DIGITS, value);
    int digits = DIGITS;
    while (digits > 0 && text[--length] == '0')
        digits--;
    if (digits > p->digits)
        p->digits = digits;
}

static void see_width(printer *p, mica_index element)
{
    char text[NUMBER];
    format_element(text, p, element);
    int width = (int)strlen(text);
    if (width > p->width)
        p->width = width;
}

/* As NumPy decides: exponents where a plain point would need too many digits on either side of it. */
static void measure(printer *p)
{
    if (!p->integers) {
        visit_all(p, see_range, 0, 0);
        p->exponents = p->largest >= 1e8 || (p->smallest > 0 && p->smallest < 1e-4) ||
                       (p->smallest > 0 && p->largest / p->smallest > 1e3 && p->largest >= 1e5);
        if (!p->exponents)
            visit_all(p, see_digits, 0, 0);
    }
    visit_all(p, see_width, 0, 0);
}

/* ---- Brackets ---- */

static void put_newline(printer *p, int lines, int indent)
{
    for (int i = 0; i < lines; i++)
        mica_put(&p->out, "\n");
    p->line = p->out.length;
    mica_put(&p->out, "%*s", indent, "");
}

/* What stands between two entries of an axis. */
static void put_separator(printer *p, int axis, int next_width)
{
    int inside = p->t->rank - 1 - axis; /* axes within an entry */
    mica_put(&p->out, ",");
    if (inside > 0)
        put_newline(p, inside, axis + 1);
    else if (p->out.length - p->line + 1 + (size_t)next_width > WIDTH - 1)
        put_newline(p, 1, axis + 1);
    else
        mica_put(&p->out, " ");
}

static void put_axis(printer *p, int axis, mica_index at)
{
    if (axis == p->t->rank) {
        char text[NUMBER];
        format_element(text, p, at);
        mica_put(&p->out, "%*s", p->width, text);
        return;
    }
    mica_put(&p->out, "[");
    for (mica_index i = 0; i < p->t->dim[axis]; i++) {
        bool skip = left_out(p, axis, i);
        if (i > 0)
            put_separator(p, axis, skip ? 3 : p->width);
        if (skip) {
            mica_put(&p->out, "...");
            i = p->t->dim[axis] - EDGE - 1;
        } else {
            put_axis(p, axis + 1, at + i * p->t->stride[axis]);
        }
    }
    mica_put(&p->out, "]");
}

size_t mica_tensor_print(char *text, size_t size, const mica_tensor *t)
{
    char flaw_text[MICA_SHAPE_TEXT];
    const char *flaw = mica_tensor_flaw(t, flaw_text);
    if (flaw != NULL)
        return (size_t)mica_format(text, size, "<tensor that %s>", flaw);
    size_t count = mica_tensor_count(t);
    if (count == 0 || t->data == NULL)
        return (size_t)mica_format(text, size, "<%s %s, %s>", mica_dtype_name(t->dtype), MICA_SHAPE(t),
                                   count == 0 ? "empty" : "no data");
    printer p = {.out = {text, size, 0}, .t = t, .shorten = count > WHOLE};
    p.integers = mica_is_integer(t->dtype) || t->dtype == MICA_BOOL;
    if (size > 0)
        text[0] = '\0';
    measure(&p);
    put_axis(&p, 0, 0);
    return p.out.length;
}
