#include "export/nest.h"

#include <stdio.h>
#include <string.h>

void strides_of(const value *v, mica_index stride[MICA_MAX_RANK])
{
    mica_index step = 1;
    for (int k = v->rank - 1; k >= 0; k--) {
        stride[k] = step;
        step *= v->dim[k];
    }
}

void nest_start(nest *n, const value *shape)
{
    memset(n, 0, sizeof *n);
    for (int k = 0; shape != NULL && k < shape->rank; k++)
        nest_axis(n, shape->dim[k]);
    n->split = n->rank;
}

void nest_axis(nest *n, mica_index size) { n->dim[n->rank++] = size; }

int nest_add(nest *n, const char *name)
{
    n->name[n->operands] = name;
    return n->operands++;
}

int nest_operand(nest *n, const char *name, const value *shape)
{
    int number = nest_add(n, name);
    strides_of(shape, n->stride[number]);
    return number;
}

int nest_broadcast(nest *n, const char *name, const value *shape)
{
    int number = nest_add(n, name), missing = n->rank - shape->rank;
    mica_index stride[MICA_MAX_RANK];
    strides_of(shape, stride);
    for (int k = 0; k < shape->rank; k++)
        if (missing + k >= 0)
            n->stride[number][missing + k] = shape->dim[k] == 1 ? 0 : stride[k];
    return number;
}

/* ---- Simpler loops ---- */

static void drop_axis(nest *n, int axis)
{
    for (int k = axis; k + 1 < n->rank; k++) {
        n->dim[k] = n->dim[k + 1];
        for (int o = 0; o < n->operands; o++)
            n->stride[o][k] = n->stride[o][k + 1];
    }
    n->rank--;
    if (axis < n->split)
        n->split--;
}

/* Whether axes k and k + 1 are one to all operands. */
static bool is_one(const nest *n, int k)
{
    for (int o = 0; o < n->operands; o++)
        if (n->stride[o][k] != n->stride[o][k + 1] * n->dim[k + 1])
            return false;
    return k + 1 != n->split;
}

static void simplify(nest *n)
{
    for (int k = n->rank - 1; k >= 0; k--)
        if (n->dim[k] == 1)
            drop_axis(n, k);
    for (int k = n->rank - 2; k >= 0; k--)
        if (is_one(n, k)) {
            for (int o = 0; o < n->operands; o++)
                n->stride[o][k] = n->stride[o][k + 1];
            mica_index size = n->dim[k] * n->dim[k + 1];
            drop_axis(n, k + 1);
            n->dim[k] = size;
        }
    n->loops = n->rank;
}

/* ---- Text ---- */

/* i0, i1, ..., or i alone. */
typedef struct loop_name {
    char text[8];
} loop_name;

static loop_name name_of(const nest *n, int k)
{
    loop_name name;
    if (n->loops == 1)
        snprintf(name.text, sizeof name.text, "i");
    else
        snprintf(name.text, sizeof name.text, "i%d", k % NEST_AXES);
    return name;
}

static void open_axis(emitter *e, nest *n, int k, bool braces)
{
    loop_name i = name_of(n, k);
    emit(e, "for (int %s = 0; %s < %td; %s++)%s", i.text, i.text, n->dim[k], i.text, braces ? " {" : "");
    e->indent++;
}

void nest_open(emitter *e, nest *n)
{
    n->split = n->rank;
    simplify(n);
    for (int k = 0; k < n->rank; k++)
        open_axis(e, n, k, false);
}

void nest_close(emitter *e, nest *n)
{
    bool braces = n->opened > 0 && n->split > 0;
    e->indent -= n->split;
    if (braces)
        emit(e, "}");
}

/* The statements of an outer loop stand in braces. */
void nest_open_outer(emitter *e, nest *n)
{
    simplify(n);
    for (int k = 0; k < n->split; k++)
        open_axis(e, n, k, k == n->split - 1);
    n->opened = n->split;
}

void nest_open_inner(emitter *e, nest *n)
{
    for (int k = n->split; k < n->rank; k++)
        open_axis(e, n, k, false);
}

void nest_close_inner(emitter *e, nest *n) { e->indent -= n->rank - n->split; }

const char *nest_index(nest *n, int operand)
{
    char *words = n->text[operand];
    size_t size = sizeof n->text[operand], at = 0;
    words[0] = '\0';
    for (int k = 0; k < n->rank; k++) {
        mica_index stride = n->stride[operand][k];
        if (stride == 0 || n->dim[k] == 0)
            continue;
        const char *sign = stride < 0 ? (at > 0 ? " - " : "-") : at > 0 ? " + " : "";
        mica_index step = stride < 0 ? -stride : stride;
        if (step == 1)
            at += (size_t)snprintf(words + at, size - at, "%s%s", sign, name_of(n, k).text);
        else
            at += (size_t)snprintf(words + at, size - at, "%s%td * %s", sign, step, name_of(n, k).text);
    }
    if (n->offset[operand] != 0 || at == 0)
        snprintf(words + at, size - at, "%s%td", at > 0 ? " + " : "", n->offset[operand]);
    return words;
}

const char *nest_at(nest *n, int operand)
{
    char index[sizeof n->text[0] - 80]; /* names are shorter than 64 */
    snprintf(index, sizeof index, "%.400s", nest_index(n, operand));
    snprintf(n->text[operand], sizeof n->text[operand], "%.64s[%s]", n->name[operand], index);
    return n->text[operand];
}
