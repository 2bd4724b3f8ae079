/* Writing a net as an ONNX file: which calls and values the file needs, which sizes may change, and the calls. The file
 * itself is made in write_file.c. */
#include <string.h>

#include "base/format.h"
#include "onnx/write.h"

static const char op_name[] = "onnx_write";

/* ---- What the file needs ---- */

static bool is_loss(const mica_net *net, int value)
{
    int maker = net->values[value].maker;
    return maker != NONE && (net->nodes[maker].op->flags & MICA_OP_LOSS);
}

/* What only losses read is what they judge: that is an output, too. */
static bool only_losses_read(const mica_net *net, int value)
{
    bool judged = false;
    for (int n = 0; n < net->node_count; n++)
        for (int i = 0; i < net->nodes[n].ins; i++) {
            if (net->nodes[n].in[i] != value)
                continue;
            if (!(net->nodes[n].op->flags & MICA_OP_LOSS))
                return false;
            judged = judged || i == 0;
        }
    return judged;
}

/* What is lent lies outside the block, too, but is known. */
bool mica_onnx_is_input(const mica_onnx_writer *w, int value)
{
    const mica_value_info *v = &w->net->values[value];
    return v->kind == MICA_BUFFER_INPUT && v->home != MICA_HOME_LENT;
}

bool mica_onnx_is_output(const mica_onnx_writer *w, int value)
{
    const mica_value_info *v = &w->net->values[value];
    if (is_loss(w->net, value) || v->observed || v->home == MICA_HOME_LENT)
        return false;
    return v->output || (v->maker != NONE && only_losses_read(w->net, value));
}

static void find_needed(mica_onnx_writer *w)
{
    const mica_net *net = w->net;
    for (int i = 0; i < net->built_values; i++) {
        w->same[i] = i;
        w->read[i] = mica_onnx_is_output(w, i);
        w->named[i] = w->read[i] && mica_onnx_is_input(w, i); /* it is an input all the same */
    }
    for (int n = net->node_count - 1; n >= 0; n--) {
        const mica_node *node = &net->nodes[n];
        for (int k = 0; k < node->outs; k++)
            w->needed[n] = w->needed[n] || (node->out[k] != NONE && w->read[node->out[k]]);
        for (int i = 0; i < node->ins && w->needed[n]; i++)
            if (node->in[i] != NONE)
                w->read[node->in[i]] = true;
    }
}

/* The versions that have the dtypes of all that is read. */
static void find_version(mica_onnx_writer *w)
{
    w->version = mica_onnx_version_of(MICA_F32);
    for (int i = 0; i < w->net->built_values; i++) {
        mica_onnx_version has = mica_onnx_version_of(w->net->values[i].tensor.dtype);
        if (w->read[i] && has.opset > w->version.opset)
            w->version = has;
    }
}

/* ---- Sizes ---- */

static mica_index size_in(const mica_onnx_writer *w, int trial, mica_index code)
{
    int number = mica_net_size_number(w->net, code);
    if (number != NONE)
        return w->sizes[trial][number];
    mica_index place = MICA_DIM_FIRST - code;
    return w->shapes[trial][place / MICA_MAX_RANK].dim[place % MICA_MAX_RANK];
}

static mica_status infer_call(mica_onnx_writer *w, mica_tensor *shapes, const mica_node *node)
{
    mica_infer infer = {.ctx = w->ctx, .op = node->op, .opts = node->opts, .ins = node->ins};
    for (int i = 0; i < node->ins; i++)
        infer.in[i] = node->in[i] != NONE ? &shapes[node->in[i]] : NULL;
    for (int k = 0; k < node->outs; k++)
        infer.out[k].rank = NONE;
    MICA_TRY(node->op->infer(&infer));
    for (int k = 0; k < node->outs; k++)
        if (node->out[k] != NONE && infer.out[k].rank != NONE)
            shapes[node->out[k]] = infer.out[k];
    return MICA_OK;
}

/* All shapes where size `number` is another; false if the net does not allow it. */
static bool try_size(mica_onnx_writer *w, int number, mica_index size)
{
    const mica_net *net = w->net;
    int trial = w->trials + 1;
    memcpy(w->sizes[trial], w->sizes[0], sizeof w->sizes[0]);
    w->sizes[trial][number] = size;
    mica_tensor *shapes = w->shapes[trial];
    memcpy(shapes, w->shapes[0], (size_t)net->built_values * sizeof *shapes);
    int next = 0; /* a call's outputs come behind its inputs */
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *v = &net->values[i];
        for (int a = 0; v->source != NULL && a < v->tensor.rank; a++)
            if (v->source[a] != 0)
                shapes[i].dim[a] = size_in(w, trial, v->source[a]);
        shapes[i] = mica_tensor_like(&shapes[i], NULL);
        for (; v->maker != NONE && next <= v->maker; next++)
            if (w->needed[next] && infer_call(w, shapes, &net->nodes[next]) != MICA_OK)
                return false;
    }
    w->trials = trial;
    return true;
}

static void find_sizes(mica_onnx_writer *w)
{
    const mica_net *net = w->net;
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *v = &net->values[i];
        w->shapes[0][i] = v->tensor;
        memcpy(w->shapes[0][i].dim, v->built, sizeof v->built);
        if (v->home != MICA_HOME_LENT)
            w->shapes[0][i] = mica_tensor_like(&w->shapes[0][i], NULL);
        w->shapes[0][i].data = NULL;
    }
    for (int s = 0; s < net->size_count; s++)
        w->sizes[0][s] = net->size[s].most;
    for (int s = 0; s < net->size_count; s++) {
        mica_index most = net->size[s].most;
        bool less = most > 1 && try_size(w, s, most - 1), more = try_size(w, s, most + 1);
        w->varies[s] = less || more;
    }
}

/* ---- Names ---- */

void mica_onnx_value_name(const mica_onnx_writer *w, char *text, int value)
{
    const mica_net *net = w->net;
    while (w->same[value] != value)
        value = w->same[value];
    const mica_value_info *v = &net->values[value];
    const mica_layer_info *layer = v->layer != NONE ? &net->layers[v->layer] : NULL;
    if (v->name != NULL || (layer != NULL && layer->output == value + 1 && layer->name != NULL)) {
        (void)mica_format(text, MICA_ONNX_NAME, "%s", v->name != NULL ? v->name : layer->name);
        return;
    }
    (void)mica_format(text, MICA_ONNX_NAME, "v%d", value);
    while (mica_net_name_taken(net, text) && strlen(text) + 1 < MICA_ONNX_NAME)
        memcpy(text + strlen(text), "_", 2);
}

void mica_onnx_use_value(mica_onnx_writer *w, char *text, int value)
{
    mica_onnx_value_name(w, text, value);
    while (w->same[value] != value)
        value = w->same[value];
    w->named[value] = true;
}

/* ---- Calls ---- */

const mica_onnx_row *mica_onnx_row_of(const mica_op *op)
{
#define FIND_ROW(family)                                                              \
    for (const mica_onnx_row *row = mica_onnx_write_##family; row->op != NULL; row++) \
        if (row->op == op)                                                            \
            return row;
    MICA_ONNX_WRITE_FAMILIES(FIND_ROW)
#undef FIND_ROW
    return NULL;
}

const mica_onnx_row *mica_onnx_row_named(const char *name, size_t length)
{
#define FIND_NAME(family)                                                                           \
    for (const mica_onnx_row *row = mica_onnx_write_##family; row->op != NULL; row++)               \
        if (row->own && strncmp(row->op->name, name, length) == 0 && row->op->name[length] == '\0') \
            return row;
    MICA_ONNX_WRITE_FAMILIES(FIND_NAME)
#undef FIND_NAME
    return NULL;
}

static void note_problem(mica_onnx_writer *w, const mica_node *node, const char *why)
{
    const char *layer = node->layer != NONE ? w->net->layers[node->layer].name : NULL;
    char text[MICA_NAME_BYTES + 128];
    int length = mica_format(text, sizeof text, "%s\"%s\" (%s%s%s)", w->problem_count > 0 ? ", " : "",
                             layer != NULL ? layer : "", node->op->name, why != NULL ? ": " : "",
                             why != NULL ? why : "");
    w->problem_count++;
    if (length < 0 || (size_t)length >= sizeof text ||
        w->problem_used + (size_t)length + 64 > sizeof w->problems)
        return;
    memcpy(w->problems + w->problem_used, text, (size_t)length + 1);
    w->problem_used += (size_t)length;
    w->problem_told = w->problem_count;
}

static mica_onnx_writing begin_call(mica_onnx_writer *w, const mica_node *node)
{
    mica_onnx_writing c = {.w = w, .node = node, .opts = node->opts, .to = &w->nodes};
    for (int i = 0; i < node->ins; i++)
        c.in[i] = node->in[i] != NONE ? &w->shapes[0][node->in[i]] : NULL;
    for (int k = 0; k < node->outs; k++)
        c.out[k] = node->out[k] != NONE ? &w->shapes[0][node->out[k]] : NULL;
    return c;
}

/* A kept value that it writes to, other than statistics, which inference leaves alone. */
static bool keeps_state(const mica_net *net, const mica_node *node)
{
    for (int i = 0; i < node->ins; i++) {
        const mica_value_info *v = node->in[i] != NONE ? &net->values[net->values[node->in[i]].root] : NULL;
        if (v != NULL && v->home == MICA_HOME_KEPT && v->kept == MICA_KEPT_STATE)
            return true;
    }
    return false;
}

/* Does nothing in inference: its output is its input. */
static bool does_nothing(mica_onnx_writer *w, const mica_node *node)
{
    bool copies = node->op == &mica_op_copy && !((const mica_copy_opts *)node->opts)->cast;
    if ((node->op != &mica_op_dropout && !copies) || mica_onnx_is_output(w, node->out[0]))
        return false;
    w->same[node->out[0]] = node->in[0];
    return true;
}

bool mica_onnx_is_computed(const mica_onnx_writer *w, int value)
{
    int maker = w->net->values[value].maker;
    if (maker == NONE || w->net->values[value].home != MICA_HOME_PLANNED)
        return false;
    const mica_node *node = &w->net->nodes[maker];
    bool alone = node->outs == 1 && !(node->op->flags & MICA_OP_RANDOM);
    bool shaped = node->op == &mica_op_fill || node->op == &mica_op_zeros || node->op == &mica_op_ones ||
                  node->op == &mica_op_range ||
                  node->op == &mica_op_generate; /* an input gives the shape alone */
    for (int i = 0; i < node->ins && !shaped; i++)
        alone = alone && node->in[i] == NONE;
    for (int t = 1; t <= w->trials; t++)
        alone = alone && mica_tensor_same_shape(&w->shapes[t][value], &w->shapes[0][value]);
    return alone;
}

bool mica_onnx_is_weight(const mica_onnx_writer *w, int value)
{
    const mica_value_info *v = &w->net->values[value];
    if (!w->named[value] && !mica_onnx_is_output(w, value))
        return false;
    return !mica_onnx_is_input(w, value) && (v->home != MICA_HOME_PLANNED || mica_onnx_is_computed(w, value));
}

void mica_onnx_weight_name(const mica_onnx_writer *w, char *text, int value)
{
    mica_onnx_value_name(w, text, value);
    size_t length = strlen(text);
    if (mica_onnx_is_output(w, value))
        (void)mica_format(text + length, MICA_ONNX_NAME - length, "/value");
}

/* A weight that is an output: a node gives it. */
static void write_copy(mica_onnx_writer *w, int value)
{
    char name[MICA_ONNX_NAME];
    w->scratch.used = 0;
    mica_onnx_weight_name(w, name, value);
    mica_onnx_add_text(&w->scratch, NODE_IN, name);
    mica_onnx_value_name(w, name, value);
    mica_onnx_add_text(&w->scratch, NODE_OUT, name);
    mica_onnx_add_text(&w->scratch, NODE_TYPE, "Identity");
    mica_onnx_add_part(&w->nodes, 1, &w->scratch);
}

static mica_status write_call(mica_onnx_writer *w, const mica_node *node)
{
    if (does_nothing(w, node) || mica_onnx_is_computed(w, node->out[0]))
        return MICA_OK;
    const mica_onnx_row *row = mica_onnx_row_of(node->op);
    mica_onnx_writing c = begin_call(w, node);
    if (row == NULL)
        mica_onnx_refuse(&c, node->op->flags & MICA_OP_RANDOM ? "random" : NULL);
    else if (keeps_state(w->net, node))
        mica_onnx_refuse(&c, "keeps a state from step to step");
    for (int k = 1; k < node->outs && row != NULL && !row->several; k++)
        if (mica_onnx_is_read(&c, k))
            mica_onnx_refuse(&c, "more than its first output is read");
    size_t nodes = w->nodes.used;
    if (row != NULL && c.refused == NULL) {
        bool own = row->own && !w->plain && (row->plain == NULL || !row->plain(&c));
        if (own)
            MICA_TRY(mica_onnx_write_own(w, &c, row));
        else
            row->write(&c);
    }
    if (row == NULL || c.refused != NULL) {
        w->nodes.used = nodes;
        note_problem(w, node, c.refused);
    }
    return w->nodes.status;
}

static mica_status write_calls(mica_onnx_writer *w)
{
    for (int n = 0; n < w->net->node_count; n++)
        if (w->needed[n])
            MICA_TRY(write_call(w, &w->net->nodes[n]));
    for (int i = 0; i < w->net->built_values; i++)
        if (mica_onnx_is_output(w, i) && mica_onnx_is_weight(w, i))
            write_copy(w, i);
    if (w->problem_count == 0)
        return MICA_OK;
    char more[32] = "";
    if (w->problem_told < w->problem_count)
        (void)mica_format(more, sizeof more, " and %d more", w->problem_count - w->problem_told);
    return mica_fail(w->ctx, MICA_ERR_ARGUMENT, "%s: cannot be written as ONNX: %s%s", op_name, w->problems,
                     more);
}

/* ---- The whole ---- */

static mica_status write_all(mica_onnx_writer *w, const char *path)
{
    find_needed(w);
    find_version(w);
    find_sizes(w);
    MICA_TRY(write_calls(w));
    return mica_onnx_write_file(w, path);
}

/* One piece of memory for all arrays by value and by node. */
static mica_status make_arrays(mica_onnx_writer *w, size_t *bytes, void **memory)
{
    size_t values = (size_t)w->net->built_values, nodes = (size_t)w->net->node_count,
           shapes = 1 + MICA_ONNX_MOST_TRIALS;
    *bytes = shapes * values * sizeof(mica_tensor) + values * sizeof(int) + 2 * values + nodes + 1;
    char *at = *memory = mica_allocate(w->ctx, *bytes);
    if (at == NULL)
        return mica_context_status(w->ctx);
    memset(at, 0, *bytes);
    for (size_t i = 0; i < shapes; i++, at += values * sizeof(mica_tensor))
        w->shapes[i] = (mica_tensor *)(void *)at;
    w->same = (int *)(void *)at;
    w->read = (bool *)(at + values * sizeof(int));
    w->named = w->read + values;
    w->needed = w->named + values;
    return MICA_OK;
}

mica_status mica_onnx_write(mica_net *net, const char *path, const mica_onnx_write_opts *opts)
{
    mica_context *ctx = net->ctx;
    if (path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: path is NULL", op_name);
    if (net->block == NULL)
        return mica_fail(ctx, MICA_ERR_STATE, "%s: the net is not bound, so its weights have no values",
                         op_name);
    if (net->continues)
        return mica_fail(ctx, MICA_ERR_STATE,
                         "%s: steps of this net continue one another (mica_net_continue)", op_name);
    mica_onnx_writer *w = mica_allocate(ctx, sizeof *w);
    if (w == NULL)
        return mica_context_status(ctx);
    *w = (mica_onnx_writer){.ctx = ctx, .net = net, .plain = opts != NULL && opts->plain};
    w->nodes.ctx = w->functions.ctx = w->scratch.ctx = w->part.ctx = ctx;
    size_t bytes = 0;
    void *memory = NULL;
    mica_status status = make_arrays(w, &bytes, &memory);
    if (status == MICA_OK)
        status = write_all(w, path);
    mica_onnx_free(&w->nodes);
    mica_onnx_free(&w->functions);
    mica_onnx_free(&w->scratch);
    mica_onnx_free(&w->part);
    mica_onnx_free_own(w);
    mica_release(ctx, memory, bytes);
    mica_release(ctx, w, sizeof *w);
    return status;
}
