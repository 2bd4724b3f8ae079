/* The nodes of one call: what they are named, their attributes, and constants and shapes among them. */
#include <string.h>

#include "base/format.h"
#include "onnx/write.h"

enum { FIRST_NEW = 200 };

/* ---- Names ---- */

void mica_onnx_formal_name(char *text, size_t size, const mica_op *op, int number)
{
    int ins = op->ins + op->optional_ins;
    if (op->names != NULL)
        (void)mica_format(text, size, "%s", op->names[number]);
    else if (number < ins)
        (void)mica_format(text, size, "%c", 'a' + number);
    else
        (void)mica_format(text, size, number == ins ? "y" : "y%d", number - ins);
}

static void term_name(const mica_onnx_writing *c, char *text, mica_onnx_term term)
{
    const mica_op *op = c->node->op;
    bool is_in = term < OUT(0);
    text[0] = '\0';
    if (term == 0 || (is_in && c->node->in[term - IN(0)] == NONE))
        return;
    if (term < FIRST_NEW && c->own)
        mica_onnx_formal_name(text, MICA_ONNX_NAME, op,
                              is_in ? term - IN(0) : op->ins + op->optional_ins + term - OUT(0));
    else if (term < FIRST_NEW)
        mica_onnx_use_value(c->w, text, is_in ? c->node->in[term - IN(0)] : c->node->out[term - OUT(0)]);
    else if (c->own)
        (void)mica_format(text, MICA_ONNX_NAME, "t%d", term - FIRST_NEW + 1);
    else {
        mica_onnx_value_name(c->w, text, c->node->out[0]);
        size_t length = strlen(text);
        (void)mica_format(text + length, MICA_ONNX_NAME - length, "/t%d", term - FIRST_NEW + 1);
        while (mica_net_name_taken(c->w->net, text) && strlen(text) + 1 < MICA_ONNX_NAME)
            memcpy(text + strlen(text), "_", 2);
    }
}

/* ---- Nodes ---- */

enum {
    ATTR_NAME = 1,
    ATTR_F = 2,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_T = 5,
    ATTR_FLOATS = 7,
    ATTR_INTS = 8,
    ATTR_STRINGS = 9,
    ATTR_TYPE = 20
};
enum {
    TYPE_FLOAT = 1,
    TYPE_INT = 2,
    TYPE_STRING = 3,
    TYPE_TENSOR = 4,
    TYPE_FLOATS = 6,
    TYPE_INTS = 7,
    TYPE_STRINGS = 8
};
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_RAW = 9 };

static void add_attr(mica_onnx_bytes *to, const mica_onnx_attr *a)
{
    mica_onnx_add_text(to, ATTR_NAME, a->name);
    switch (a->kind) {
    case MICA_ONNX_ATTR_INT:
        mica_onnx_add_int(to, ATTR_I, a->i);
        mica_onnx_add_int(to, ATTR_TYPE, TYPE_INT);
        break;
    case MICA_ONNX_ATTR_FLOAT:
        mica_onnx_add_float(to, ATTR_F, a->f);
        mica_onnx_add_int(to, ATTR_TYPE, TYPE_FLOAT);
        break;
    case MICA_ONNX_ATTR_TEXT:
        mica_onnx_add_text(to, ATTR_S, a->s);
        mica_onnx_add_int(to, ATTR_TYPE, TYPE_STRING);
        break;
    case MICA_ONNX_ATTR_TEXTS:
        mica_onnx_add_text(to, ATTR_STRINGS, a->s);
        mica_onnx_add_int(to, ATTR_TYPE, TYPE_STRINGS);
        break;
    case MICA_ONNX_ATTR_INTS:
        for (int i = 0; i < a->count; i++)
            mica_onnx_add_int(to, ATTR_INTS, a->ints[i]);
        mica_onnx_add_int(to, ATTR_TYPE, TYPE_INTS);
        break;
    case MICA_ONNX_ATTR_FLOATS:
        for (int i = 0; i < a->count; i++)
            mica_onnx_add_float(to, ATTR_FLOATS, a->floats[i]);
        mica_onnx_add_int(to, ATTR_TYPE, TYPE_FLOATS);
        break;
    }
}

void mica_onnx_add_attrs(mica_onnx_writer *w, mica_onnx_bytes *node, const mica_onnx_attr *attrs, int count)
{
    for (int i = 0; i < count; i++) {
        w->part.used = 0;
        add_attr(&w->part, &attrs[i]);
        mica_onnx_add_part(node, NODE_ATTRIBUTE, &w->part);
    }
}

/* Inputs, outputs, name and type. */
static void begin_node(mica_onnx_writing *c, mica_onnx_term *outs, int out_count, const char *type,
                       const mica_onnx_term *ins, int count)
{
    mica_onnx_bytes *node = &c->w->scratch;
    char name[MICA_ONNX_NAME], first[MICA_ONNX_NAME + 64];
    node->used = 0;
    for (int i = 0; i < count; i++) {
        term_name(c, name, ins[i]);
        mica_onnx_add_text(node, NODE_IN, name);
    }
    for (int k = 0; k < out_count; k++) {
        if (outs[k] == NEW)
            outs[k] = FIRST_NEW + c->terms++;
        term_name(c, name, outs[k]);
        mica_onnx_add_text(node, NODE_OUT, name);
        if (k == 0)
            (void)mica_format(first, sizeof first, "%s/%s", name, type);
    }
    mica_onnx_add_text(node, NODE_NAME, first);
    mica_onnx_add_text(node, NODE_TYPE, type);
}

static void end_node(mica_onnx_writing *c) { mica_onnx_add_part(c->to, c->own ? 7 : 1, &c->w->scratch); }

void mica_onnx_nodes(mica_onnx_writing *c, mica_onnx_term *outs, int out_count, const char *type,
                     const mica_onnx_term *ins, int count, const mica_onnx_attr *attrs, int attr_count)
{
    while (count > 0 && ins[count - 1] == 0) /* absent at the end */
        count--;
    begin_node(c, outs, out_count, type, ins, count);
    mica_onnx_add_attrs(c->w, &c->w->scratch, attrs, attr_count);
    end_node(c);
}

mica_onnx_term mica_onnx_put(mica_onnx_writing *c, mica_onnx_term out, const char *type,
                             const mica_onnx_term *ins, int count, const mica_onnx_attr *attrs,
                             int attr_count)
{
    mica_onnx_nodes(c, &out, 1, type, ins, count, attrs, attr_count);
    return out;
}

mica_onnx_term mica_onnx_node1(mica_onnx_writing *c, mica_onnx_term out, const char *type, mica_onnx_term a,
                               const mica_onnx_attr *attrs, int attr_count)
{
    return mica_onnx_put(c, out, type, &a, 1, attrs, attr_count);
}

mica_onnx_term mica_onnx_node2(mica_onnx_writing *c, mica_onnx_term out, const char *type, mica_onnx_term a,
                               mica_onnx_term b)
{
    return mica_onnx_put(c, out, type, TERMS(a, b), NO_ATTRS);
}

/* ---- Constants ---- */

mica_onnx_term mica_onnx_put_constant(mica_onnx_writing *c, const mica_tensor *tensor)
{
    mica_onnx_term out = NEW;
    mica_onnx_bytes *node = &c->w->scratch, *part = &c->w->part, value = {.ctx = c->w->ctx};
    begin_node(c, &out, 1, "Constant", NULL, 0);
    for (int i = 0; i < tensor->rank; i++)
        mica_onnx_add_int(&value, TENSOR_DIMS, tensor->dim[i]);
    mica_onnx_add_int(&value, TENSOR_TYPE, mica_onnx_type_of(tensor->dtype));
    mica_onnx_add_head(&value, TENSOR_RAW, mica_onnx_raw_bytes(tensor));
    size_t bytes = mica_tensor_bytes(tensor);
    mica_onnx_add(&value, tensor->data, bytes);
    if (value.status == MICA_OK)
        value.used -= bytes - mica_onnx_pack(value.data + value.used - bytes, bytes, tensor->dtype);
#if !MICA_LITTLE_ENDIAN
    size_t size = mica_dtype_bytes(tensor->dtype);
    if (value.status == MICA_OK && size > 1)
        mica_reverse_bytes(value.data + value.used - bytes, bytes / size, size);
#endif
    part->used = 0;
    mica_onnx_add_text(part, ATTR_NAME, "value");
    mica_onnx_add_part(part, ATTR_T, &value);
    mica_onnx_add_int(part, ATTR_TYPE, TYPE_TENSOR);
    mica_onnx_add_part(node, NODE_ATTRIBUTE, part);
    mica_onnx_free(&value);
    end_node(c);
    return out;
}

mica_onnx_term mica_onnx_put_number(mica_onnx_writing *c, float value)
{
    mica_tensor t = {.data = &value, .dtype = MICA_F32};
    return mica_onnx_put_constant(c, &t);
}

mica_onnx_term mica_onnx_put_scalar(mica_onnx_writing *c, mica_dtype dtype, double value)
{
    double memory[2] = {0.0, 0.0};
    mica_tensor t = {.data = memory, .dtype = dtype};
    if (mica_onnx_type_of(dtype) == 0 || mica_fill(c->w->ctx, &t, value) != MICA_OK)
        mica_onnx_refuse(c, "a number of a type that ONNX does not have");
    return mica_onnx_put_constant(c, &t);
}

mica_onnx_term mica_onnx_put_ints(mica_onnx_writing *c, const int64_t *values, int count)
{
    mica_tensor t = {.dtype = MICA_I64, .rank = 1, .dim = {count}, .stride = {1}};
    memcpy(&t.data, &values, sizeof t.data); /* which are only read */
    return mica_onnx_put_constant(c, &t);
}

mica_onnx_term mica_onnx_put_int(mica_onnx_writing *c, int64_t value)
{
    return mica_onnx_put_ints(c, &value, 1);
}

/* ---- Shapes ---- */

bool mica_onnx_varies(mica_onnx_writing *c, int value, int axis)
{
    const mica_onnx_writer *w = c->w;
    for (int t = 1; t <= w->trials; t++)
        if (w->shapes[t][value].dim[axis] != w->shapes[0][value].dim[axis])
            return true;
    return false;
}

mica_onnx_dim mica_onnx_dim_of(mica_onnx_writing *c, int in, int axis)
{
    if (mica_onnx_varies(c, c->node->in[in], axis))
        return (mica_onnx_dim){.term = IN(in), .axis = axis};
    return (mica_onnx_dim){.size = c->in[in]->dim[axis]};
}

mica_onnx_term mica_onnx_put_dims(mica_onnx_writing *c, const mica_onnx_dim *dims, int rank)
{
    mica_onnx_term parts[MICA_MAX_RANK];
    int64_t known[MICA_MAX_RANK];
    int count = 0, run = 0;
    for (int i = 0; i <= rank; i++) {
        if (i < rank && dims[i].term == 0) {
            known[run++] = dims[i].size;
            continue;
        }
        if (run > 0)
            parts[count++] = mica_onnx_put_ints(c, known, run);
        run = 0;
        if (i == rank)
            break;
        mica_onnx_term all = mica_onnx_node1(c, NEW, "Shape", dims[i].term, NO_ATTRS);
        parts[count++] = mica_onnx_node2(c, NEW, "Gather", all, mica_onnx_put_int(c, dims[i].axis));
    }
    if (count == 0)
        return mica_onnx_put_ints(c, known, 0);
    return count == 1 ? parts[0]
                      : mica_onnx_put(c, NEW, "Concat", parts, count, ATTRS(mica_onnx_int_attr("axis", 0)));
}

mica_onnx_term mica_onnx_put_reshape(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x,
                                     const mica_onnx_dim *dims, int rank)
{
    mica_onnx_dim to[MICA_MAX_RANK];
    int unknown = 0, at = 0;
    for (int i = 0; i < rank; i++) {
        to[i] = dims[i];
        bool asks = dims[i].term != 0 || dims[i].size == -1;
        at = asks ? i : at;
        unknown += asks;
    }
    if (unknown == 1)
        to[at] = (mica_onnx_dim){.size = -1};
    return mica_onnx_node2(c, out, "Reshape", x, mica_onnx_put_dims(c, to, rank));
}

mica_onnx_term mica_onnx_put_permute(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x,
                                     const int *axes, int rank)
{
    int64_t perm[MICA_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = mica_onnx_axis_from(axes[i], rank);
    return mica_onnx_node1(c, out, "Transpose", x, ATTRS(mica_onnx_ints_attr("perm", perm, rank)));
}

mica_onnx_term mica_onnx_put_slice(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x, int axis,
                                   int64_t start, int64_t stop)
{
    mica_onnx_term from = mica_onnx_put_int(c, start), to = mica_onnx_put_int(c, stop);
    return mica_onnx_put(c, out, "Slice", TERMS(x, from, to, mica_onnx_put_int(c, axis)), NO_ATTRS);
}

mica_onnx_term mica_onnx_put_cast(mica_onnx_writing *c, mica_onnx_term out, mica_onnx_term x, int type)
{
    return mica_onnx_node1(c, out, "Cast", x, ATTRS(mica_onnx_int_attr("to", type)));
}

/* ---- The call ---- */

void mica_onnx_refuse(mica_onnx_writing *c, const char *why)
{
    if (c->refused == NULL)
        c->refused = why;
}

bool mica_onnx_is_read(mica_onnx_writing *c, int k)
{
    return k < c->node->outs && c->node->out[k] != NONE && c->w->read[c->node->out[k]];
}

int mica_onnx_count_ins(const mica_onnx_writing *c)
{
    int count = c->node->ins;
    const char *const *names = c->node->op->names;
    while (count > 0 &&
           (c->node->in[count - 1] == NONE || (names != NULL && strcmp(names[count - 1], "packed") == 0)))
        count--;
    return count;
}
