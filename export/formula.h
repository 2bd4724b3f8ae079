/* Expressions of single elements, by the name of their operation. */
#ifndef MICA_EXPORT_FORMULA_H
#define MICA_EXPORT_FORMULA_H

#include "export/emit.h"

typedef struct formula {
    const char *name, *expression, *kernel;
} formula;

typedef struct formula_text {
    char text[1024];
} formula_text;

/* NULL: none of that name. */
const formula *find_formula(const char *name);
/* With elements and numbers in place of @a, @b, @c and @s, @t. Notes the kernel that it calls. */
formula_text expand_formula(emitter *e, const formula *f, const char *const operand[3],
                            const double number[2]);

/* The activation at the end of another operation, in place. */
void emit_finish(emitter *e, const char *name, size_t count, mica_activation activation, double slope);

/* Why an operation whose option `position` names a size of the step cannot be exported; NULL: it names none. */
const char *refuse_position(const graph *g, const call *c);

#endif
