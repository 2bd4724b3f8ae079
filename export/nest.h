/* Loop nests written out: operations that go through their elements once, where shapes are numbers and nothing is
 * gained by a kernel. Axes of size 1 are left out, and neighbours that every operand goes through as one are joined:
 *
 *     nest n;
 *     nest_start(&n, y);                                  // the elements of y
 *     int to = nest_operand(&n, out_name(e, 0), y), from = nest_broadcast(&n, in_name(e, 0), x);
 *     nest_open(e, &n);
 *     emit(e, "%s = -%s;", nest_at(&n, to), nest_at(&n, from));
 *     nest_close(e, &n);
 */
#ifndef MICA_EXPORT_NEST_H
#define MICA_EXPORT_NEST_H

#include "export/emit.h"

#define NEST_AXES     16
#define NEST_OPERANDS 6

typedef struct nest {
    int rank, operands;
    mica_index dim[NEST_AXES];
    const char *name[NEST_OPERANDS];
    mica_index offset[NEST_OPERANDS], stride[NEST_OPERANDS][NEST_AXES];
    int split;  /* axes from this on are inner loops: those of a reduction */
    int opened; /* loops that are open */
    char var;   /* of its loops: i0, i1, ... */
    char text[NEST_OPERANDS][512];
} nest;

void nest_start(nest *n, const value *shape);
/* An axis more. Operands are added afterwards. */
void nest_axis(nest *n, mica_index size);
/* An operand at no stride along any axis, to be set by the caller. */
int nest_add(nest *n, const char *name);
/* One whose shape is the nest's, and one that is broadcast to it. */
int nest_operand(nest *n, const char *name, const value *shape);
int nest_broadcast(nest *n, const char *name, const value *shape);

/* Strides of a contiguous value. */
void strides_of(const value *v, mica_index stride[MICA_MAX_RANK]);

/* All loops; or the outer ones, then the inner ones: those of axes from n->split on. The last statement inside may be
 * several lines, in braces. */
void nest_open(emitter *e, nest *n);
void nest_open_outer(emitter *e, nest *n);
void nest_open_inner(emitter *e, nest *n);
void nest_close_inner(emitter *e, nest *n);
void nest_close(emitter *e, nest *n);

/* An element of an operand, as C: x[12 * i0 + i1]. And its index alone. */
const char *nest_at(nest *n, int operand);
const char *nest_index(nest *n, int operand);

#endif
