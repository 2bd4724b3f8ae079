/* The file: the nodes and functions that were written, what goes in and out, and the weights.
 *
 *   ModelProto   ir_version, producer, opsets, functions
 *     GraphProto   name, nodes, inputs, outputs
 *       TensorProto   dims, type, name, [doc_string: spaces] raw_data       the bytes begin at a multiple of 64
 *       ...
 *
 * Protobuf puts lengths first. So weights are laid out twice, by the same code: to learn the length, and to write. */
#include <limits.h>
#include <string.h>

#include "io/quote.h"
#include "io/utf8.h"
#include "kernel/kernels.h"
#include "onnx/write.h"
#include "ops/move.h"

static const char op_name[] = "onnx_write";

enum { ALIGN = 64, PIECE = 8192 };
enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9, TENSOR_DOC = 12 };

/* ---- Inputs and outputs ---- */

/* The size of the step that an axis is, in all trials; NONE: none. */
static int size_of_axis(const mica_onnx_writer *w, int value, int axis)
{
    for (int s = 0; s < w->net->size_count; s++) {
        bool same = w->varies[s];
        for (int t = 0; t <= w->trials && same; t++)
            same = w->shapes[t][value].dim[axis] == w->sizes[t][s];
        if (same)
            return s;
    }
    return NONE;
}

static bool axis_varies(const mica_onnx_writer *w, int value, int axis)
{
    bool varies = false;
    for (int t = 1; t <= w->trials; t++)
        varies = varies || w->shapes[t][value].dim[axis] != w->shapes[0][value].dim[axis];
    return varies;
}

/* ValueInfoProto {name = 1, type = 2: TypeProto {tensor_type = 1: {elem_type = 1, shape = 2: {dim = 1: ...}}}} */
static void add_info(mica_onnx_writer *w, mica_onnx_bytes *graph, unsigned field, int value)
{
    mica_context *ctx = w->ctx;
    mica_onnx_bytes dim = {.ctx = ctx}, shape = {.ctx = ctx}, tensor = {.ctx = ctx}, type = {.ctx = ctx},
                    info = {.ctx = ctx};
    const mica_tensor *t = &w->shapes[0][value];
    char name[MICA_ONNX_NAME];
    mica_onnx_value_name(w, name, value);
    for (int i = 0; i < t->rank; i++) {
        int size = size_of_axis(w, value, i);
        dim.used = 0;
        if (size != NONE)
            mica_onnx_add_text(&dim, 2, w->net->size[size].name);
        else if (!axis_varies(w, value, i))
            mica_onnx_add_int(&dim, 1, t->dim[i]);
        mica_onnx_add_part(&shape, 1, &dim);
    }
    mica_onnx_add_int(&tensor, 1, mica_onnx_type_of(t->dtype));
    mica_onnx_add_part(&tensor, 2, &shape);
    mica_onnx_add_part(&type, 1, &tensor);
    mica_onnx_add_text(&info, 1, name);
    mica_onnx_add_part(&info, 2, &type);
    mica_onnx_add_part(graph, field, &info);
    mica_onnx_free(&dim);
    mica_onnx_free(&shape);
    mica_onnx_free(&tensor);
    mica_onnx_free(&type);
    mica_onnx_free(&info);
}

static mica_status check_value(const mica_onnx_writer *w, int value)
{
    char name[MICA_ONNX_NAME];
    mica_onnx_value_name(w, name, value);
    if (!mica_utf8_valid(name, strlen(name)))
        return mica_fail(w->ctx, MICA_ERR_ARGUMENT, "%s: the name %s is not valid UTF-8", op_name,
                         MICA_QUOTE(name));
    mica_dtype dtype = w->shapes[0][value].dtype;
    if (mica_onnx_type_of(dtype) == 0)
        return mica_fail(w->ctx, MICA_ERR_DTYPE, "%s: %s is %s, which ONNX does not have", op_name,
                         MICA_QUOTE(name), mica_dtype_name(dtype));
    return MICA_OK;
}

/* ---- Weights ---- */

/* What stands before the bytes: everything of the TensorProto but raw_data. */
static void add_weight_head(mica_onnx_writer *w, mica_onnx_bytes *head, int value)
{
    const mica_tensor *t = &w->shapes[0][value];
    char name[MICA_ONNX_NAME];
    mica_onnx_weight_name(w, name, value);
    head->used = 0;
    for (int i = 0; i < t->rank; i++)
        mica_onnx_add_int(head, TENSOR_DIMS, t->dim[i]);
    mica_onnx_add_int(head, TENSOR_TYPE, mica_onnx_type_of(t->dtype));
    mica_onnx_add_text(head, TENSOR_NAME, name);
}

/* How many bytes of doc_string, with its tag and length, let raw_data begin at a multiple of 64. */
static uint64_t padding_at(uint64_t at, uint64_t head, uint64_t raw)
{
    for (uint64_t pad = 0; raw > 0 && pad < 2 + 2 * ALIGN; pad += pad == 0 ? 2 : 1) {
        uint64_t length = head + pad + 1 + mica_onnx_varint_size(raw) + raw;
        if ((at + 1 + mica_onnx_varint_size(length) + (length - raw)) % ALIGN == 0)
            return pad;
    }
    return 0;
}

static mica_status write_elements(mica_context *ctx, mica_new_file *file, const mica_tensor *t)
{
    if (MICA_LITTLE_ENDIAN && mica_tensor_contiguous(t) && mica_onnx_raw_bytes(t) == mica_tensor_bytes(t))
        return mica_new_file_write(ctx, file, t->data, mica_tensor_bytes(t));
    double piece[PIECE / sizeof(double)];
    size_t size = mica_dtype_bytes(t->dtype);
    mica_index left = (mica_index)mica_tensor_count(t), position = 0;
    mica_tensor joined = mica_join_axes(t);
    for (mica_index run; left > 0; left -= run, position += run) {
        run = (mica_index)(PIECE / size) < left ? (mica_index)(PIECE / size) : left;
        mica_fetch_run(ctx->kernels->convert, (mica_line){piece, t->dtype, 1}, &joined, position, run);
        if (!MICA_LITTLE_ENDIAN)
            mica_reverse_bytes(piece, (size_t)run, size);
        MICA_TRY(mica_new_file_write(ctx, file, piece, mica_onnx_pack(piece, (size_t)run * size, t->dtype)));
    }
    return MICA_OK;
}

/* What a call without inputs makes. */
static mica_status write_computed(mica_onnx_writer *w, mica_new_file *file, int value)
{
    const mica_node *node = &w->net->nodes[w->net->values[value].maker];
    mica_tensor t = w->shapes[0][value];
    size_t bytes = mica_tensor_bytes(&t);
    t.data = mica_allocate(w->ctx, bytes);
    if (t.data == NULL)
        return mica_context_status(w->ctx);
    mica_call call = {
        .ctx = w->ctx, .op = node->op, .opts = node->opts, .ins = node->ins, .outs = 1, .out = {&t}};
    mica_status status = node->op->run(&call);
    if (status == MICA_OK)
        status = write_elements(w->ctx, file, &t);
    mica_release(w->ctx, t.data, bytes);
    return status;
}

static mica_status write_weight(mica_onnx_writer *w, mica_new_file *file, int value, uint64_t padding)
{
    static const char spaces[2 * ALIGN + 1] =
        "                                                                "
        "                                                                ";
    const mica_value_info *v = &w->net->values[value];
    mica_onnx_bytes *head = &w->scratch;
    uint64_t raw = mica_onnx_raw_bytes(&w->shapes[0][value]);
    size_t before = head->used;
    if (padding > 0) {
        mica_onnx_add_head(head, TENSOR_DOC, padding - 2);
        mica_onnx_add(head, spaces, (size_t)padding - 2);
    }
    mica_onnx_add_head(head, TENSOR_RAW, raw);
    w->part.used = 0;
    mica_onnx_add_head(&w->part, GRAPH_INITIALIZER, (uint64_t)head->used + raw);
    if (head->status != MICA_OK || w->part.status != MICA_OK || before == 0)
        return head->status != MICA_OK ? head->status : w->part.status;
    MICA_TRY(mica_new_file_write(w->ctx, file, w->part.data, w->part.used));
    MICA_TRY(mica_new_file_write(w->ctx, file, head->data, head->used));
    if (raw == 0)
        return MICA_OK;
    if (v->home == MICA_HOME_PLANNED)
        return write_computed(w, file, value);
    mica_tensor t = v->home == MICA_HOME_LENT ? v->tensor : mica_net_built_tensor(w->net, v);
    return write_elements(w->ctx, file, &t);
}

/* All weights, from byte `at` of the file on; only counted if there is no file. */
static mica_status lay_out_weights(mica_onnx_writer *w, mica_new_file *file, uint64_t at, uint64_t *bytes)
{
    uint64_t start = at;
    for (int i = 0; i < w->net->built_values; i++) {
        if (!mica_onnx_is_weight(w, i))
            continue;
        add_weight_head(w, &w->scratch, i);
        uint64_t head = w->scratch.used, raw = mica_onnx_raw_bytes(&w->shapes[0][i]),
                 padding = padding_at(at, head, raw);
        uint64_t length = head + padding + 1 + mica_onnx_varint_size(raw) + raw;
        at += 1 + mica_onnx_varint_size(length) + length;
        if (file != NULL)
            MICA_TRY(write_weight(w, file, i, padding));
    }
    *bytes = at - start;
    return w->scratch.status;
}

/* ---- The whole ---- */

static void add_opset(mica_onnx_writer *w, mica_onnx_bytes *model, const char *domain, int version)
{
    w->part.used = 0;
    mica_onnx_add_text(&w->part, OPSET_DOMAIN, domain);
    mica_onnx_add_int(&w->part, OPSET_VERSION, version);
    mica_onnx_add_part(model, MODEL_OPSET, &w->part);
}

/* Those whose number is the least above `last`, which is returned, or INT_MAX: several have none. */
static int add_outputs(mica_onnx_writer *w, mica_onnx_bytes *graph, int last)
{
    int next = INT_MAX;
    for (int i = 0; i < w->net->built_values; i++) {
        int number = w->net->values[i].output;
        if (number > last && number < next && mica_onnx_is_output(w, i))
            next = number;
    }
    for (int i = 0; i < w->net->built_values && next != INT_MAX; i++)
        if (w->net->values[i].output == next && mica_onnx_is_output(w, i))
            add_info(w, graph, GRAPH_OUTPUT, i);
    return next;
}

/* Inputs; and outputs in the order that they became some. */
static mica_status add_ends(mica_onnx_writer *w, mica_onnx_bytes *graph)
{
    for (int i = 0; i < w->net->built_values; i++) {
        bool in = mica_onnx_is_input(w, i) && w->named[i];
        if (in || mica_onnx_is_output(w, i) || mica_onnx_is_weight(w, i))
            MICA_TRY(check_value(w, i));
        if (in)
            add_info(w, graph, GRAPH_INPUT, i);
    }
    for (int last = -1; last != INT_MAX;)
        last = add_outputs(w, graph, last);
    return graph->status;
}

/* Writes model, the beginning of the file, then the graph: `graph` and the weights behind it. */
static mica_status write_parts(mica_onnx_writer *w, mica_new_file *file, mica_onnx_bytes *model,
                               const mica_onnx_bytes *graph)
{
    uint64_t weights = 0, rest = (uint64_t)w->nodes.used + graph->used;
    size_t width = 0;
    do { /* of the graph's length, on which it depends where weights lie, and so how long it is */
        width++;
        MICA_TRY(lay_out_weights(w, NULL, model->used + 1 + width + rest, &weights));
    } while (mica_onnx_varint_size(rest + weights) > width);
    if (rest + weights > INT32_MAX - ALIGN - model->used)
        return mica_fail(w->ctx, MICA_ERR_ARGUMENT,
                         "%s: %s would have %llu bytes, and an ONNX file holds at most 2 GiB", op_name,
                         file->path, (unsigned long long)rest + weights);
    size_t before = model->used;
    mica_onnx_add_varint(model, MODEL_GRAPH << 3 | 2, 0);
    mica_onnx_add_varint(model, rest + weights, width);
    MICA_TRY(model->status);
    MICA_TRY(mica_new_file_write(w->ctx, file, model->data, model->used));
    MICA_TRY(mica_new_file_write(w->ctx, file, w->nodes.data, w->nodes.used));
    MICA_TRY(mica_new_file_write(w->ctx, file, graph->data, graph->used));
    return lay_out_weights(w, file, before + 1 + width + rest, &weights);
}

static mica_status write_model(mica_onnx_writer *w, mica_onnx_bytes *model, mica_onnx_bytes *graph,
                               const char *path)
{
    mica_onnx_add_int(model, MODEL_IR, w->version.ir);
    mica_onnx_add_text(model, MODEL_PRODUCER, "mica");
    add_opset(w, model, "", w->version.opset);
    if (!w->plain) /* also says that nodes are as the calls were: mica_onnx_is_own */
        add_opset(w, model, "mica", 1);
    mica_onnx_add(model, w->functions.data, w->functions.used);
    mica_onnx_add_text(graph, GRAPH_NAME, "net");
    MICA_TRY(add_ends(w, graph));
    MICA_TRY(w->functions.status);
    MICA_TRY(w->nodes.status);
    mica_new_file file;
    MICA_TRY(mica_new_file_begin(w->ctx, &file, path));
    mica_status status = write_parts(w, &file, model, graph);
    if (status == MICA_OK)
        return mica_new_file_commit(w->ctx, &file);
    mica_new_file_abandon(&file);
    return status;
}

mica_status mica_onnx_write_file(mica_onnx_writer *w, const char *path)
{
    mica_onnx_bytes model = {.ctx = w->ctx}, graph = {.ctx = w->ctx};
    mica_status status = write_model(w, &model, &graph, path);
    mica_onnx_free(&model);
    mica_onnx_free(&graph);
    return status;
}
