/* Attributes of the node that is being imported, and its failures. */
#include <stdarg.h>
#include <string.h>

#include "base/format.h"
#include "io/quote.h"
#include "onnx/state.h"

/* ---- Attributes ---- */

static const mica_onnx_attribute *among(const mica_onnx_attribute *list, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    return NULL;
}

/* In a function an attribute may stand for one of the call, which may be in a function itself. */
const mica_onnx_attribute *mica_onnx_find(const mica_onnx_importing *n, const char *name)
{
    const mica_onnx_attribute *found = among(n->node->attributes, n->node->attribute_count, name);
    for (const mica_onnx_frame *f = n->import->frame; found != NULL && found->reference != NULL && f != NULL;
         f = f->caller) {
        const char *wanted = found->reference;
        found = among(f->call->attributes, f->call->attribute_count, wanted);
        if (found == NULL)
            found = among(f->function->defaults, f->function->default_count, wanted);
    }
    return found != NULL && found->reference == NULL ? found : NULL;
}

/* The attribute, if it is there and of this kind; of another kind, the node fails. */
static const mica_onnx_attribute *of_kind(mica_onnx_importing *n, const char *name, mica_onnx_kind kind,
                                          const char *what)
{
    const mica_onnx_attribute *a = mica_onnx_find(n, name);
    if (a != NULL && a->kind != kind) {
        (void)mica_onnx_bad(n, "attribute \"%s\" is no %s", name, what);
        return NULL;
    }
    return a;
}

int64_t mica_onnx_int(mica_onnx_importing *n, const char *name, int64_t otherwise)
{
    const mica_onnx_attribute *a = of_kind(n, name, MICA_ONNX_INT, "integer");
    return a != NULL ? a->i : otherwise;
}

float mica_onnx_float(mica_onnx_importing *n, const char *name, float otherwise)
{
    const mica_onnx_attribute *a = of_kind(n, name, MICA_ONNX_FLOAT, "float");
    return a != NULL ? a->f : otherwise;
}

const char *mica_onnx_text(mica_onnx_importing *n, const char *name, const char *otherwise)
{
    const mica_onnx_attribute *a = of_kind(n, name, MICA_ONNX_STRING, "string");
    return a != NULL ? a->s : otherwise;
}

static int fits(mica_onnx_importing *n, const mica_onnx_attribute *a, int most)
{
    if (a == NULL)
        return -1;
    if (a->count > (size_t)most) {
        (void)mica_onnx_bad(n, "attribute \"%s\" has %zu numbers, expected at most %d", a->name, a->count,
                            most);
        return -1;
    }
    return (int)a->count;
}

static int take_list(mica_onnx_importing *n, const mica_onnx_attribute *a, const void *from, size_t bytes,
                     void *out, int most)
{
    int count = fits(n, a, most);
    if (count > 0)
        memcpy(out, from, (size_t)count * bytes);
    return count;
}

int mica_onnx_int_list(mica_onnx_importing *n, const char *name, int64_t *out, int most)
{
    const mica_onnx_attribute *a = of_kind(n, name, MICA_ONNX_INTS, "list of integers");
    return take_list(n, a, a != NULL ? a->ints : NULL, sizeof *out, out, most);
}

int mica_onnx_float_list(mica_onnx_importing *n, const char *name, float *out, int most)
{
    const mica_onnx_attribute *a = of_kind(n, name, MICA_ONNX_FLOATS, "list of floats");
    return take_list(n, a, a != NULL ? a->floats : NULL, sizeof *out, out, most);
}

int mica_onnx_axis(mica_onnx_importing *n, int64_t axis, mica_onnx_ref ref)
{
    int rank = mica_onnx_shape(n, ref)->rank;
    if (axis < -rank || axis >= rank) {
        (void)mica_onnx_bad(n, "axis %lld of a tensor of rank %d", (long long)axis, rank);
        return 0;
    }
    return (int)(axis < 0 ? axis + rank : axis);
}

mica_dtype mica_onnx_dtype_of(mica_onnx_importing *n, int64_t type)
{
    mica_dtype dtype = mica_onnx_dtype(type);
    if (dtype == MICA_DTYPE_COUNT)
        (void)mica_onnx_unsupported(n, "elements of type %s", mica_onnx_type_name(type));
    return dtype;
}

/* ---- Failing ---- */

void mica_onnx_add_problem(mica_onnx_import *im, const mica_onnx_node *node, const char *reason,
                           uint64_t needs)
{
    mica_onnx *m = im->model;
    if (im->status != MICA_OK) /* the import has ended for another reason, and this follows from it */
        return;
    mica_status status = mica_onnx_grow(im->ctx, &m->problems, m->problem_count, &m->problem_room,
                                        sizeof *m->problems);
    if (status != MICA_OK) {
        im->status = status;
        return;
    }
    const char *kept = mica_onnx_intern(m, reason, strlen(reason));
    if (kept == NULL)
        im->status = im->ctx->status;
    m->problems[m->problem_count++] = (mica_onnx_problem){node->name, node->type, kept != NULL ? kept : "",
                                                          needs};
}

static mica_onnx_ref fail_node(mica_onnx_importing *n, const char *format, va_list args)
{
    char reason[MICA_ERROR_TEXT];
    if (n->failed)
        return 0;
    n->failed = true;
    (void)mica_vformat(reason, sizeof reason, format, args);
    mica_onnx_add_problem(n->import, n->node, reason, 0);
    return 0;
}

mica_onnx_ref mica_onnx_unsupported(mica_onnx_importing *n, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mica_onnx_ref none = fail_node(n, format, args);
    va_end(args);
    return none;
}

mica_onnx_ref mica_onnx_bad(mica_onnx_importing *n, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mica_onnx_ref none = fail_node(n, format, args);
    va_end(args);
    return none;
}
