/* Functions of the file's own, in the domain "mica": an operation by its name, its options as attributes, and nodes of
 * the standard's operators as its body. Calls whose bodies are the same share a function. */
#include <string.h>

#include "base/format.h"
#include "onnx/model.h"
#include "onnx/write.h"

enum {
    MODEL_FUNCTIONS = 25,
    FUNCTION_NAME = 1,
    FUNCTION_IN = 4,
    FUNCTION_OUT = 5,
    FUNCTION_ATTRIBUTE = 6,
    FUNCTION_OPSET = 9,
    FUNCTION_DOMAIN = 10
};

/* A function that was written: its body lies in w->functions. */
struct mica_onnx_own {
    const mica_op *op;
    size_t start, bytes; /* of all but its name */
    int number;          /* among those of its operation, from 1 */
};

/* ---- Options as attributes ---- */

enum { MOST_FIELDS = 24 };

typedef struct attribute_list {
    mica_onnx_attr attr[MOST_FIELDS];
    int64_t ints[MOST_FIELDS][MICA_MAX_RANK];
    float floats[MOST_FIELDS][MICA_MAX_RANK];
    int count;
    bool fits;
} attribute_list;

static int64_t whole_at(const mica_field *f, const char *at, int i)
{
    switch (f->kind) {
    case MICA_FIELD_INDEX:
        return (int64_t)((const mica_index *)(const void *)at)[i];
    case MICA_FIELD_BOOL:
        return ((const bool *)(const void *)at)[i];
    default: /* int and enums */
        return ((const int *)(const void *)at)[i];
    }
}

static const char *activation_name(int64_t number)
{
    static const char *const names[MICA_ACTIVATION_COUNT] = {"none",
#define ACTIVATION_NAME(CODE, name) #name,
                                                             MICA_ACTIVATION_LIST(ACTIVATION_NAME)
#undef ACTIVATION_NAME
    };
    return number >= 0 && number < MICA_ACTIVATION_COUNT ? names[number] : names[0];
}

static void add_field(attribute_list *list, const mica_field *f, const void *opts)
{
    const char *at = (const char *)opts + f->offset;
    mica_onnx_attr *a = &list->attr[list->count];
    int count = f->count > 0 ? f->count : 1;
    if (list->count == MOST_FIELDS || count > MICA_MAX_RANK || f->kind == MICA_FIELD_DOUBLE) {
        list->fits = false;
        return;
    }
    bool zero = true, real = f->kind == MICA_FIELD_FLOAT;
    int64_t *ints = list->ints[list->count];
    float *floats = list->floats[list->count];
    for (int i = 0; i < count; i++) {
        floats[i] = real ? ((const float *)(const void *)at)[i] : 0.0f;
        ints[i] = real ? 0 : whole_at(f, at, i);
        zero = zero && ints[i] == 0 && floats[i] == 0.0f;
    }
    if (zero)
        return;
    if (f->kind == MICA_FIELD_ACTIVATION)
        *a = mica_onnx_text_attr(f->name, activation_name(ints[0]));
    else if (f->kind == MICA_FIELD_DTYPE)
        *a = mica_onnx_text_attr(f->name, mica_dtype_name((mica_dtype)ints[0]));
    else if (f->count == 0)
        *a = real ? mica_onnx_float_attr(f->name, floats[0]) : mica_onnx_int_attr(f->name, ints[0]);
    else
        *a = (mica_onnx_attr){.name = f->name,
                              .kind = real ? MICA_ONNX_ATTR_FLOATS : MICA_ONNX_ATTR_INTS,
                              .ints = ints,
                              .floats = floats,
                              .count = count};
    list->count++;
}

static void list_options(attribute_list *list, const mica_node *node)
{
    list->count = 0;
    list->fits = true;
    for (int i = 0; i < node->op->field_count; i++)
        add_field(list, &node->op->fields[i], node->opts);
}

/* ---- The function ---- */

static mica_status add_own(mica_onnx_writer *w, struct mica_onnx_own **out)
{
    MICA_TRY(mica_onnx_grow(w->ctx, &w->own, w->own_count, &w->own_room, sizeof *w->own));
    *out = &w->own[w->own_count++];
    return MICA_OK;
}

void mica_onnx_free_own(mica_onnx_writer *w)
{
    mica_release(w->ctx, w->own, (size_t)w->own_room * sizeof *w->own);
    w->own = NULL;
    w->own_count = w->own_room = 0;
}

static int last_output(mica_onnx_writing *c)
{
    int last = 0;
    for (int k = 1; k < c->node->outs; k++)
        if (mica_onnx_is_read(c, k))
            last = k;
    return last;
}

/* Everything that is said of a function but its name. */
static void write_body(mica_onnx_writer *w, mica_onnx_writing *c, const mica_onnx_row *row,
                       mica_onnx_bytes *body, const attribute_list *list)
{
    const mica_op *op = c->node->op;
    char name[MICA_ONNX_NAME];
    for (int i = 0; i < mica_onnx_count_ins(c); i++) {
        mica_onnx_formal_name(name, sizeof name, op, i);
        mica_onnx_add_text(body, FUNCTION_IN, name);
    }
    for (int k = 0; k <= last_output(c); k++) {
        mica_onnx_formal_name(name, sizeof name, op, op->ins + op->optional_ins + k);
        mica_onnx_add_text(body, FUNCTION_OUT, name);
    }
    for (int i = 0; i < list->count; i++)
        mica_onnx_add_text(body, FUNCTION_ATTRIBUTE, list->attr[i].name);
    c->own = true;
    c->to = body;
    row->write(c);
    for (int k = 1; k < last_output(c);
         k++) /* what nobody reads has a place among those that are, and so must be made */
        if (!mica_onnx_is_read(c, k))
            mica_onnx_node1(c, OUT(k), "Identity", IN(0), NO_ATTRS);
    w->part.used = 0;
    mica_onnx_add_int(&w->part, OPSET_VERSION, w->version.opset);
    mica_onnx_add_part(body, FUNCTION_OPSET, &w->part);
    mica_onnx_add_text(body, FUNCTION_DOMAIN, "mica");
}

static void own_name(char text[64], const mica_op *op, int number)
{
    (void)mica_format(text, 64, number > 1 ? "%s_%d" : "%s", op->name, number);
}

/* The number of the function with this body, written if there is none yet. 0: there is no memory. */
static int number_of(mica_onnx_writer *w, const mica_op *op, const mica_onnx_bytes *body)
{
    int number = 1;
    for (int i = 0; i < w->own_count; i++) {
        const struct mica_onnx_own *o = &w->own[i];
        if (o->op == op && o->bytes == body->used &&
            memcmp(w->functions.data + o->start, body->data, body->used) == 0)
            return o->number;
        number += o->op == op;
    }
    struct mica_onnx_own *o = NULL;
    if (body->status != MICA_OK || add_own(w, &o) != MICA_OK)
        return 0;
    char name[64];
    own_name(name, op, number);
    w->part.used = 0;
    mica_onnx_add_text(&w->part, FUNCTION_NAME, name);
    mica_onnx_add_head(&w->functions, MODEL_FUNCTIONS, w->part.used + body->used);
    mica_onnx_add(&w->functions, w->part.data, w->part.used);
    *o = (struct mica_onnx_own){.op = op, .start = w->functions.used, .bytes = body->used, .number = number};
    mica_onnx_add(&w->functions, body->data, body->used);
    return number;
}

/* ---- The call ---- */

static void write_node(mica_onnx_writer *w, mica_onnx_writing *c, int number, const attribute_list *list)
{
    mica_onnx_bytes *node = &w->scratch;
    char name[MICA_ONNX_NAME], type[64], first[MICA_ONNX_NAME + 64];
    own_name(type, c->node->op, number);
    node->used = 0;
    for (int i = 0; i < mica_onnx_count_ins(c); i++) {
        name[0] = '\0';
        if (c->node->in[i] != NONE)
            mica_onnx_use_value(w, name, c->node->in[i]);
        mica_onnx_add_text(node, NODE_IN, name);
    }
    for (int k = 0; k <= last_output(c); k++) {
        name[0] = '\0';
        if (k == 0 || mica_onnx_is_read(c, k))
            mica_onnx_value_name(w, name, c->node->out[k]);
        mica_onnx_add_text(node, NODE_OUT, name);
        if (k == 0)
            (void)mica_format(first, sizeof first, "%s/%s", name, c->node->op->name);
    }
    mica_onnx_add_text(node, NODE_NAME, first);
    mica_onnx_add_text(node, NODE_TYPE, type);
    mica_onnx_add_attrs(w, node, list->attr, list->count);
    mica_onnx_add_text(node, NODE_DOMAIN, "mica");
    mica_onnx_add_part(&w->nodes, 1, node);
}

mica_status mica_onnx_write_own(mica_onnx_writer *w, mica_onnx_writing *c, const mica_onnx_row *row)
{
    attribute_list list;
    mica_onnx_bytes body = {.ctx = w->ctx};
    list_options(&list, c->node);
    if (!list.fits)
        mica_onnx_refuse(c, "its options are no attributes");
    write_body(w, c, row, &body, &list);
    int number = c->refused == NULL ? number_of(w, c->node->op, &body) : 0;
    if (number > 0)
        write_node(w, c, number, &list);
    mica_status status = c->refused != NULL ? MICA_OK
                         : number > 0       ? body.status
                                            : mica_context_status(w->ctx);
    mica_onnx_free(&body);
    return status;
}
