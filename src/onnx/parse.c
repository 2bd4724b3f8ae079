/* From the bytes of a model to structs. Messages nest, so do these functions; the numbers are those of the fields in
 * onnx.proto. Fields that are not named here are skipped: documentation, metadata, what newer versions add. */
#include <string.h>

#include "io/quote.h"
#include "onnx/model.h"
#include "onnx/wire.h"

/* Subgraphs within subgraphs: more than a real model has, less than the stack has room for. */
#define DEEPEST 32

typedef struct parser {
    mica_onnx *model;
    int depth; /* of graphs */
} parser;

typedef struct span {
    const unsigned char *bytes;
    size_t size;
} span;

static mica_status bad_at(const parser *p, const unsigned char *where, const char *what)
{
    return mica_fail(p->model->ctx, MICA_ERR_FORMAT, "%s: byte %zu: %s", MICA_QUOTE(p->model->path),
                     (size_t)(where - p->model->bytes), what);
}

static mica_status end_of(const parser *p, const mica_wire *w)
{
    return w->bad ? bad_at(p, w->bytes + w->at,
                           "no field of a protocol buffer: the file is damaged or no ONNX model")
                  : MICA_OK;
}

static span span_of(const mica_wire_field *f) { return (span){f->bytes, f->size}; }

/* The field is a message or bytes: otherwise it is none of ours, and skipped. */
static bool is_bytes(const mica_wire_field *f, uint32_t number)
{
    return f->number == number && f->kind == MICA_WIRE_BYTES;
}

static bool is_number(const mica_wire_field *f, uint32_t number)
{
    return f->number == number && f->kind == MICA_WIRE_VARINT;
}

/* How often a field is there, up to INT32_MAX: what is read then is no more than this. */
static int count_of(span message, uint32_t number)
{
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    int count = 0;
    while (mica_wire_next(&w, &f))
        count += is_bytes(&f, number) && count < INT32_MAX;
    return count;
}

/* Zeroed room for so many. */
static mica_status room_for(const parser *p, void *out, int count, size_t bytes)
{
    void *room = NULL;
    if (count > 0) {
        room = mica_onnx_memory(p->model, (size_t)count * bytes);
        if (room == NULL)
            return p->model->ctx->status;
        memset(room, 0, (size_t)count * bytes);
    }
    memcpy(out, &room, sizeof room);
    return MICA_OK;
}

static mica_status text_of(const parser *p, const char **out, const mica_wire_field *f)
{
    if (f->size > 0 && memchr(f->bytes, 0, f->size) != NULL)
        return bad_at(p, f->bytes, "a name holds a NUL");
    *out = mica_onnx_intern(p->model, (const char *)f->bytes, f->size);
    return *out != NULL ? MICA_OK : p->model->ctx->status;
}

/* ---- Tensors ---- */

static mica_status external_entry(const parser *p, mica_onnx_tensor *t, span message)
{
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    const char *key = "", *value = "";
    while (mica_wire_next(&w, &f)) {
        if (is_bytes(&f, 1))
            MICA_TRY(text_of(p, &key, &f));
        else if (is_bytes(&f, 2))
            MICA_TRY(text_of(p, &value, &f));
    }
    MICA_TRY(end_of(p, &w));
    bool offset = strcmp(key, "offset") == 0, length = strcmp(key, "length") == 0;
    if (strcmp(key, "location") == 0)
        t->external = value;
    if (!offset && !length)
        return MICA_OK;
    uint64_t number = 0;
    for (const char *c = value; *c != '\0'; c++) {
        if (*c < '0' || *c > '9' || number > (UINT64_MAX - 9) / 10)
            return bad_at(p, message.bytes, "external data whose offset or length is no number");
        number = number * 10 + (uint64_t)(*c - '0');
    }
    *(offset ? &t->external_offset : &t->external_bytes) = number;
    return MICA_OK;
}

static mica_status add_dim(const parser *p, mica_onnx_tensor *t, uint64_t value, const unsigned char *where)
{
    if (t->rank == MICA_MAX_RANK)
        return bad_at(p, where, "a tensor of more than 8 dimensions, which Mica does not have");
    if (value > PTRDIFF_MAX)
        return bad_at(p, where, "a tensor with a negative size");
    t->dim[t->rank++] = (mica_index)value;
    return MICA_OK;
}

static mica_status dims_of(const parser *p, mica_onnx_tensor *t, const mica_wire_field *f,
                           const unsigned char *where)
{
    if (f->kind == MICA_WIRE_VARINT)
        return add_dim(p, t, f->value, where);
    mica_wire list = mica_wire_over(f->bytes, f->size);
    uint64_t value;
    while (list.at < list.size) {
        if (!mica_wire_varint(&list, &value))
            return bad_at(p, f->bytes + list.at, "sizes of a tensor that end in the middle of a number");
        MICA_TRY(add_dim(p, t, value, f->bytes));
    }
    return MICA_OK;
}

static mica_status tensor(const parser *p, mica_onnx_tensor *t, span message)
{
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    bool outside = false;
    *t = (mica_onnx_tensor){.name = "", .packed = message.bytes, .packed_bytes = message.size};
    while (mica_wire_next(&w, &f)) {
        if (f.number == 1 && (f.kind == MICA_WIRE_VARINT || f.kind == MICA_WIRE_BYTES)) {
            MICA_TRY(dims_of(p, t, &f, w.bytes + w.at));
        } else if (is_number(&f, 2)) {
            t->type = f.value < 1000 ? (int)f.value : -1;
        } else if (is_bytes(&f, 8)) {
            MICA_TRY(text_of(p, &t->name, &f));
        } else if (is_bytes(&f, 9)) {
            t->raw = f.size > 0 ? f.bytes : (const unsigned char *)"";
            t->raw_bytes = f.size;
        } else if (is_bytes(&f, 13)) {
            MICA_TRY(external_entry(p, t, span_of(&f)));
        } else if (is_number(&f, 14)) {
            outside = f.value == 1;
        }
    }
    if (!outside)
        t->external = NULL;
    else if (t->external == NULL)
        return bad_at(p, message.bytes, "a tensor with external data that does not say where");
    return end_of(p, &w);
}

mica_status mica_onnx_parse_tensor(mica_onnx *model, mica_onnx_tensor *out, const unsigned char *bytes,
                                   size_t size)
{
    return tensor(&(parser){.model = model}, out, (span){bytes, size});
}

/* ---- Attributes ---- */

static mica_status graph(parser *p, mica_onnx_graph *g, span message);

/* Numbers that may be packed or not: field `number`, as many as there are. */
static mica_status numbers(const parser *p, span message, uint32_t number, bool floats, void *out,
                           size_t *count)
{
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    size_t room = 0, at = 0;
    while (mica_wire_next(&w, &f))
        if (f.number == number)
            room += f.kind != MICA_WIRE_BYTES ? 1 : floats ? f.size / 4 : f.size;
    if (room > PTRDIFF_MAX / 8)
        return bad_at(p, message.bytes, "a list with more numbers than there can be");
    void *list = mica_onnx_memory(p->model, room * 8);
    if (list == NULL)
        return p->model->ctx->status;
    w = mica_wire_over(message.bytes, message.size);
    while (mica_wire_next(&w, &f)) {
        if (f.number != number)
            continue;
        if (floats && f.kind == MICA_WIRE_32) {
            memcpy((float *)list + at++, &(uint32_t){(uint32_t)f.value}, 4);
        } else if (floats && f.kind == MICA_WIRE_BYTES) {
            for (size_t i = 0; i + 4 <= f.size; i += 4) {
                uint32_t bits = (uint32_t)f.bytes[i] | (uint32_t)f.bytes[i + 1] << 8 |
                                (uint32_t)f.bytes[i + 2] << 16 | (uint32_t)f.bytes[i + 3] << 24;
                memcpy((float *)list + at++, &bits, 4);
            }
        } else if (!floats && f.kind == MICA_WIRE_VARINT) {
            ((int64_t *)list)[at++] = (int64_t)f.value;
        } else if (!floats && f.kind == MICA_WIRE_BYTES) {
            mica_wire packed = mica_wire_over(f.bytes, f.size);
            uint64_t value;
            while (packed.at < packed.size) {
                if (!mica_wire_varint(&packed, &value))
                    return bad_at(p, f.bytes + packed.at, "a list that ends in the middle of a number");
                ((int64_t *)list)[at++] = (int64_t)value;
            }
        }
    }
    memcpy(out, &list, sizeof list);
    *count = at;
    return MICA_OK;
}

static mica_status texts(const parser *p, span message, uint32_t number, const char *const **out, int *count)
{
    const char **list = NULL;
    *count = count_of(message, number);
    MICA_TRY(room_for(p, &list, *count, sizeof *list));
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    for (int at = 0; at < *count && mica_wire_next(&w, &f);)
        if (is_bytes(&f, number))
            MICA_TRY(text_of(p, &list[at++], &f));
    *out = list;
    return MICA_OK;
}

static mica_status subgraph(parser *p, mica_onnx_attribute *a, const mica_wire_field *f)
{
    mica_onnx_graph *g = NULL;
    if (p->depth >= DEEPEST)
        return bad_at(p, f->bytes, "graphs that are nested more than 32 deep");
    MICA_TRY(room_for(p, &g, 1, sizeof *g));
    a->g = g;
    p->depth++;
    mica_status status = graph(p, g, span_of(f));
    p->depth--;
    return status;
}

static mica_status attribute_text(const parser *p, mica_onnx_attribute *a, const mica_wire_field *f)
{
    a->length = f->size;
    char *copy = mica_onnx_memory(p->model, f->size + 1);
    if (copy == NULL)
        return p->model->ctx->status;
    if (f->size > 0)
        memcpy(copy, f->bytes, f->size);
    copy[f->size] = '\0';
    a->s = copy;
    return MICA_OK;
}

static mica_status attribute_field(parser *p, mica_onnx_attribute *a, const mica_wire_field *f)
{
    if (is_bytes(f, 1))
        return text_of(p, &a->name, f);
    if (is_bytes(f, 21))
        return text_of(p, &a->reference, f);
    if (is_bytes(f, 4))
        return attribute_text(p, a, f);
    if (is_bytes(f, 5)) {
        MICA_TRY(room_for(p, &a->t, 1, sizeof *a->t));
        return tensor(p, a->t, span_of(f));
    }
    if (is_bytes(f, 6))
        return subgraph(p, a, f);
    if (f->number == 2 && f->kind == MICA_WIRE_32)
        memcpy(&a->f, &(uint32_t){(uint32_t)f->value}, 4);
    else if (is_number(f, 3))
        a->i = (int64_t)f->value;
    else if (is_number(f, 20))
        a->kind = f->value <= MICA_ONNX_GRAPHS ? (mica_onnx_kind)f->value : MICA_ONNX_NO_KIND;
    return MICA_OK;
}

/* Files of IR version 1 need not tell the kind. */
static mica_onnx_kind kind_of(const mica_onnx_attribute *a, span message)
{
    static const struct {
        uint32_t number;
        mica_onnx_kind kind;
    } fields[] = {{2, MICA_ONNX_FLOAT}, {3, MICA_ONNX_INT},    {4, MICA_ONNX_STRING}, {5, MICA_ONNX_TENSOR},
                  {6, MICA_ONNX_GRAPH}, {7, MICA_ONNX_FLOATS}, {8, MICA_ONNX_INTS},   {9, MICA_ONNX_STRINGS}};
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    if (a->kind != MICA_ONNX_NO_KIND || a->reference != NULL)
        return a->kind;
    while (mica_wire_next(&w, &f))
        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
            if (f.number == fields[i].number)
                return fields[i].kind;
    return MICA_ONNX_NO_KIND;
}

static mica_status attribute(parser *p, mica_onnx_attribute *a, span message)
{
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    *a = (mica_onnx_attribute){.name = ""};
    while (mica_wire_next(&w, &f))
        MICA_TRY(attribute_field(p, a, &f));
    MICA_TRY(end_of(p, &w));
    a->kind = kind_of(a, message);
    int strings = 0;
    switch (a->kind) {
    case MICA_ONNX_FLOATS:
        return numbers(p, message, 7, true, &a->floats, &a->count);
    case MICA_ONNX_INTS:
        return numbers(p, message, 8, false, &a->ints, &a->count);
    case MICA_ONNX_STRINGS:
        MICA_TRY(texts(p, message, 9, &a->strings, &strings));
        a->count = (size_t)strings;
        return MICA_OK;
    case MICA_ONNX_STRING:
        return a->s != NULL ? MICA_OK : attribute_text(p, a, &(mica_wire_field){.bytes = message.bytes});
    case MICA_ONNX_TENSOR:
        return a->t != NULL ? MICA_OK
                            : bad_at(p, message.bytes, "an attribute of kind TENSOR without a tensor");
    case MICA_ONNX_GRAPH:
        return a->g != NULL ? MICA_OK
                            : bad_at(p, message.bytes, "an attribute of kind GRAPH without a graph");
    default:
        return MICA_OK;
    }
}

static mica_status attributes(parser *p, span message, uint32_t number, const mica_onnx_attribute **out,
                              int *count)
{
    mica_onnx_attribute *list = NULL;
    *count = count_of(message, number);
    MICA_TRY(room_for(p, &list, *count, sizeof *list));
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    for (int at = 0; at < *count && mica_wire_next(&w, &f);)
        if (is_bytes(&f, number))
            MICA_TRY(attribute(p, &list[at++], span_of(&f)));
    *out = list;
    return MICA_OK;
}

/* ---- Nodes ---- */

static mica_status node(parser *p, mica_onnx_node *n, span message)
{
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    *n = (mica_onnx_node){.name = "", .type = "", .domain = "", .overload = ""};
    while (mica_wire_next(&w, &f)) {
        if (is_bytes(&f, 3))
            MICA_TRY(text_of(p, &n->name, &f));
        else if (is_bytes(&f, 4))
            MICA_TRY(text_of(p, &n->type, &f));
        else if (is_bytes(&f, 7))
            MICA_TRY(text_of(p, &n->domain, &f));
        else if (is_bytes(&f, 8))
            MICA_TRY(text_of(p, &n->overload, &f));
    }
    MICA_TRY(end_of(p, &w));
    if (strcmp(n->domain, "ai.onnx") == 0)
        n->domain = "";
    MICA_TRY(texts(p, message, 1, &n->in, &n->ins));
    MICA_TRY(texts(p, message, 2, &n->out, &n->outs));
    return attributes(p, message, 5, &n->attributes, &n->attribute_count);
}

static mica_status nodes(parser *p, span message, uint32_t number, const mica_onnx_node **out, int *count)
{
    mica_onnx_node *list = NULL;
    *count = count_of(message, number);
    MICA_TRY(room_for(p, &list, *count, sizeof *list));
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    for (int at = 0; at < *count && mica_wire_next(&w, &f);)
        if (is_bytes(&f, number))
            MICA_TRY(node(p, &list[at++], span_of(&f)));
    *out = list;
    return MICA_OK;
}

/* ---- Inputs and outputs ---- */

static mica_status dimension(const parser *p, mica_onnx_value *v, span message)
{
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    mica_index size = -1;
    const char *symbol = NULL;
    while (mica_wire_next(&w, &f)) {
        if (is_number(&f, 1))
            size = f.value <= PTRDIFF_MAX ? (mica_index)f.value : -1; /* a negative one: not known */
        else if (is_bytes(&f, 2) && f.size > 0)
            MICA_TRY(text_of(p, &symbol, &f));
    }
    if (v->rank < MICA_MAX_RANK) {
        v->dim[v->rank] = size;
        v->symbol[v->rank] = size < 0 ? symbol : NULL;
    }
    v->rank += v->rank <= MICA_MAX_RANK;
    return end_of(p, &w);
}

static mica_status tensor_type(const parser *p, mica_onnx_value *v, span message)
{
    mica_wire w = mica_wire_over(message.bytes, message.size), shape;
    mica_wire_field f, dim;
    while (mica_wire_next(&w, &f)) {
        if (is_number(&f, 1)) {
            v->type = mica_onnx_type_name((int64_t)f.value);
            v->dtype = mica_onnx_dtype((int64_t)f.value);
        } else if (is_bytes(&f, 2)) {
            v->rank = 0;
            shape = mica_wire_over(f.bytes, f.size);
            while (mica_wire_next(&shape, &dim))
                if (is_bytes(&dim, 1))
                    MICA_TRY(dimension(p, v, span_of(&dim)));
            MICA_TRY(end_of(p, &shape));
        }
    }
    if (v->rank > MICA_MAX_RANK)
        return bad_at(p, message.bytes,
                      "an input or output of more than 8 dimensions, which Mica does not have");
    return end_of(p, &w);
}

static mica_status value_info(const parser *p, mica_onnx_info *info, span message)
{
    mica_wire w = mica_wire_over(message.bytes, message.size), type;
    mica_wire_field f, of;
    *info = (mica_onnx_info){.name = "", .is = {.type = "unknown", .dtype = MICA_DTYPE_COUNT, .rank = -1}};
    while (mica_wire_next(&w, &f)) {
        if (is_bytes(&f, 1))
            MICA_TRY(text_of(p, &info->name, &f));
        if (!is_bytes(&f, 2))
            continue;
        type = mica_wire_over(f.bytes, f.size);
        while (mica_wire_next(&type, &of)) {
            if (is_bytes(&of, 1))
                MICA_TRY(tensor_type(p, &info->is, span_of(&of)));
            else if (is_bytes(&of, 4) || is_bytes(&of, 5) || is_bytes(&of, 8) || is_bytes(&of, 9))
                info->is.type = of.number == 4   ? "sequence"
                                : of.number == 5 ? "map"
                                : of.number == 8 ? "sparse tensor"
                                                 : "optional";
        }
        MICA_TRY(end_of(p, &type));
    }
    info->is.name = info->name;
    return end_of(p, &w);
}

static mica_status value_infos(const parser *p, span message, uint32_t number, mica_onnx_info **out,
                               int *count)
{
    mica_onnx_info *list = NULL;
    *count = count_of(message, number);
    MICA_TRY(room_for(p, &list, *count, sizeof *list));
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    for (int at = 0; at < *count && mica_wire_next(&w, &f);)
        if (is_bytes(&f, number))
            MICA_TRY(value_info(p, &list[at++], span_of(&f)));
    *out = list;
    return MICA_OK;
}

/* ---- Graphs, functions, the model ---- */

static mica_status graph(parser *p, mica_onnx_graph *g, span message)
{
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    *g = (mica_onnx_graph){.name = "", .initializer_count = count_of(message, 5)};
    MICA_TRY(room_for(p, &g->initializers, g->initializer_count, sizeof *g->initializers));
    for (int at = 0; mica_wire_next(&w, &f);) {
        if (is_bytes(&f, 2))
            MICA_TRY(text_of(p, &g->name, &f));
        else if (is_bytes(&f, 5) && at < g->initializer_count)
            MICA_TRY(tensor(p, &g->initializers[at++], span_of(&f)));
        else if (is_bytes(&f, 15))
            return bad_at(p, f.bytes, "a sparse initializer, which Mica does not have");
    }
    MICA_TRY(end_of(p, &w));
    mica_onnx_info *inputs = NULL, *outputs = NULL;
    MICA_TRY(value_infos(p, message, 11, &inputs, &g->input_count));
    MICA_TRY(value_infos(p, message, 12, &outputs, &g->output_count));
    MICA_TRY(
        mica_onnx_mark_initialized(p->model, inputs, g->input_count, g->initializers, g->initializer_count));
    if (p->depth == 0)
        MICA_TRY(mica_onnx_name_batch(p->model, inputs, g->input_count));
    g->inputs = inputs;
    g->outputs = outputs;
    return nodes(p, message, 1, &g->nodes, &g->node_count);
}

static mica_status opset(const parser *p, mica_onnx_opset *o, span message)
{
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    *o = (mica_onnx_opset){.domain = ""};
    while (mica_wire_next(&w, &f)) {
        if (is_bytes(&f, 1))
            MICA_TRY(text_of(p, &o->domain, &f));
        else if (is_number(&f, 2))
            o->version = (int64_t)f.value;
    }
    if (strcmp(o->domain, "ai.onnx") == 0)
        o->domain = "";
    return end_of(p, &w);
}

static mica_status opsets(const parser *p, span message, uint32_t number, const mica_onnx_opset **out,
                          int *count)
{
    mica_onnx_opset *list = NULL;
    *count = count_of(message, number);
    MICA_TRY(room_for(p, &list, *count, sizeof *list));
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    for (int at = 0; at < *count && mica_wire_next(&w, &f);)
        if (is_bytes(&f, number))
            MICA_TRY(opset(p, &list[at++], span_of(&f)));
    *out = list;
    return MICA_OK;
}

static mica_status function(parser *p, mica_onnx_function *fn, span message)
{
    mica_wire w = mica_wire_over(message.bytes, message.size);
    mica_wire_field f;
    *fn = (mica_onnx_function){.name = "", .domain = "", .overload = ""};
    while (mica_wire_next(&w, &f)) {
        if (is_bytes(&f, 1))
            MICA_TRY(text_of(p, &fn->name, &f));
        else if (is_bytes(&f, 10))
            MICA_TRY(text_of(p, &fn->domain, &f));
        else if (is_bytes(&f, 13))
            MICA_TRY(text_of(p, &fn->overload, &f));
    }
    MICA_TRY(end_of(p, &w));
    MICA_TRY(texts(p, message, 4, &fn->in, &fn->ins));
    MICA_TRY(texts(p, message, 5, &fn->out, &fn->outs));
    MICA_TRY(attributes(p, message, 11, &fn->defaults, &fn->default_count));
    MICA_TRY(opsets(p, message, 9, &fn->opsets, &fn->opset_count));
    return nodes(p, message, 7, &fn->nodes, &fn->node_count);
}

static mica_status model_graph(parser *p, span file)
{
    mica_wire w = mica_wire_over(file.bytes, file.size);
    mica_wire_field f;
    mica_onnx_function *functions = NULL;
    bool seen = false;
    p->model->function_count = count_of(file, 25);
    MICA_TRY(room_for(p, &functions, p->model->function_count, sizeof *functions));
    p->model->functions = functions;
    for (int at = 0; mica_wire_next(&w, &f);) {
        if (is_bytes(&f, 7)) {
            if (seen)
                return bad_at(p, f.bytes, "a second graph in one model");
            seen = true;
            MICA_TRY(graph(p, &p->model->graph, span_of(&f)));
        } else if (is_bytes(&f, 25) && at < p->model->function_count) {
            MICA_TRY(function(p, &functions[at++], span_of(&f)));
        }
    }
    return seen ? MICA_OK : bad_at(p, file.bytes, "no graph: no ONNX model, or an empty one");
}

mica_status mica_onnx_parse(mica_onnx *model)
{
    parser p = {.model = model};
    span file = {model->bytes, model->size};
    mica_wire w = mica_wire_over(file.bytes, file.size);
    mica_wire_field f;
    model->producer = "";
    while (mica_wire_next(&w, &f)) {
        if (is_number(&f, 1))
            model->ir_version = (int64_t)f.value;
        else if (is_bytes(&f, 2))
            MICA_TRY(text_of(&p, &model->producer, &f));
    }
    MICA_TRY(end_of(&p, &w));
    MICA_TRY(opsets(&p, file, 8, &model->opsets, &model->opset_count));
    return model_graph(&p, file);
}
