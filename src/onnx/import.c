/* Building a net from a model: its inputs, then its nodes in order, then its outputs. */
#include <string.h>

#include "base/format.h"
#include "io/quote.h"
#include "net/net.h"
#include "onnx/state.h"

#define DEEPEST 32 /* functions and subgraphs within one another */
#define MOST_NODES \
    1000000 /* of all of them: functions that call functions multiply, and so do loops in loops */

/* What a learned or kept value starts as. */
typedef struct mica_onnx_start {
    struct mica_onnx_start *next;
    const char *name;
    mica_tensor tensor;
} mica_onnx_start;

/* ---- Nodes ---- */

static int opset_of(const mica_onnx_import *im, const char *domain)
{
    for (int i = 0; i < im->opset_count; i++)
        if (strcmp(im->opsets[i].domain, domain) == 0)
            return im->opsets[i].version < INT32_MAX ? (int)im->opsets[i].version : INT32_MAX;
    return 1;
}

static const mica_onnx_function *function_of(const mica_onnx_import *im, const mica_onnx_node *node)
{
    for (int i = 0; i < im->model->function_count; i++) {
        const mica_onnx_function *f = &im->model->functions[i];
        if (f->name == node->type && f->domain == node->domain && strcmp(f->overload, node->overload) == 0)
            return f;
    }
    return NULL;
}

/* One more node. False: there are too many. */
static bool count_node(mica_onnx_import *im)
{
    if (im->status == MICA_OK && ++im->nodes > MOST_NODES)
        im->status = mica_fail(
            im->ctx, MICA_ERR_FORMAT,
            "%s: more than %d nodes, including those of its functions and the turns of its loops",
            MICA_QUOTE(im->model->path), MOST_NODES);
    return im->status == MICA_OK;
}

/* Binds the names of what a node makes; what it could not make is broken. */
static void bind_outputs(mica_onnx_importing *n)
{
    mica_onnx_import *im = n->import;
    for (int k = 0; k < n->outs && im->status == MICA_OK; k++) {
        if (n->node->out[k][0] == '\0')
            continue;
        mica_onnx_ref ref = n->failed ? 0 : n->out[k];
        if (ref == 0 && !n->failed)
            (void)mica_onnx_unsupported(n, "output %d", k);
        if (ref == 0)
            ref = mica_onnx_hold(im, &(mica_onnx_held){.broken = true});
        (void)mica_onnx_bind_name(im, n->node->out[k], ref);
    }
}

/* What the node reads. False: something of it is broken, or not there. */
static bool take_inputs(mica_onnx_importing *n)
{
    mica_onnx_import *im = n->import;
    bool whole = true;
    for (int i = 0; i < n->ins; i++) {
        const char *name = n->node->in[i];
        if (name[0] == '\0')
            continue;
        n->in[i] = mica_onnx_look_up(im, name);
        if (n->in[i] < 0)
            (void)mica_onnx_bad(n, "its input %s is not produced by any earlier node", MICA_QUOTE(name));
        else if (n->in[i] > 0)
            whole = whole && !mica_onnx_held_at(im, n->in[i])->broken;
    }
    while (n->ins > 0 && n->in[n->ins - 1] == 0)
        n->ins--;
    return whole && !n->failed;
}

static void call_function(mica_onnx_importing *n, const mica_onnx_function *f)
{
    mica_onnx_import *im = n->import;
    mica_onnx_scope scope = {0}, *outer = im->scope;
    mica_onnx_frame frame = {im->frame, n->node, f};
    const mica_onnx_frame *caller = im->frame;
    const mica_onnx_opset *opsets = im->opsets;
    int opset_count = im->opset_count;
    im->scope = &scope;
    for (int i = 0; i < f->ins; i++)
        (void)mica_onnx_bind_name(im, f->in[i], i < n->ins ? n->in[i] : 0);
    im->frame = &frame;
    im->opsets = f->opset_count > 0 ? f->opsets : opsets;
    im->opset_count = f->opset_count > 0 ? f->opset_count : opset_count;
    int body = im->body;
    im->depth++;
    im->body = ++im->bodies;
    mica_onnx_import_nodes(im, f->nodes, f->node_count);
    im->depth--;
    im->body = body;
    for (int k = 0; k < n->outs && k < f->outs; k++)
        n->out[k] = mica_onnx_look_up(im, f->out[k]) > 0 ? mica_onnx_look_up(im, f->out[k]) : 0;
    im->scope = outer;
    im->frame = caller;
    im->opsets = opsets;
    im->opset_count = opset_count;
}

/* A weight: of the type that is learned, and not a single number, which may be a constant. */
static bool is_weight(const mica_onnx_import *im, const mica_tensor *t)
{
    return im->opts->train && t->dtype == MICA_F32 && t->rank > 0 && mica_tensor_count(t) > 1;
}

/* An initializer of a subgraph. The body of a loop is imported turn by turn, and all turns share its weights. */
static void add_inner(mica_onnx_importing *n, mica_onnx_tensor *t)
{
    mica_onnx_import *im = n->import;
    if (t->build != im->model->builds) {
        if (mica_onnx_tensor_data(im->model, t) != MICA_OK) {
            (void)mica_onnx_unsupported(n, "%s", mica_error(im->ctx));
            return;
        }
        t->ref = mica_onnx_hold(im, &(mica_onnx_held){.shape = t->tensor,
                                                      .name = t->name,
                                                      .known = true,
                                                      .inner = true,
                                                      .learned = is_weight(im, &t->tensor)});
        t->build = im->model->builds;
    }
    (void)mica_onnx_bind_name(im, t->name, t->ref);
}

bool mica_onnx_import_graph(mica_onnx_importing *n, const mica_onnx_graph *graph, const mica_onnx_ref *ins,
                            int count, mica_onnx_ref *out, int most)
{
    mica_onnx_import *im = n->import;
    mica_onnx_scope scope = {.outer = im->scope}, *outer = im->scope;
    if (n->failed || im->depth >= DEEPEST)
        return !n->failed &&
               mica_onnx_unsupported(n, "graphs that are nested more than %d deep", DEEPEST) != 0;
    im->scope = &scope;
    im->depth++;
    for (int i = 0; i < graph->initializer_count && im->status == MICA_OK; i++)
        add_inner(n, &graph->initializers[i]);
    for (int i = 0; i < graph->input_count && i < count; i++)
        (void)mica_onnx_bind_name(im, graph->inputs[i].name, ins[i]);
    if (count_node(im)) /* the graph itself, too: loops of empty ones multiply as well */
        mica_onnx_import_nodes(im, graph->nodes, graph->node_count);
    for (int k = 0; k < graph->output_count && k < most; k++) {
        out[k] = mica_onnx_look_up(im, graph->outputs[k].name);
        if (out[k] <= 0)
            (void)mica_onnx_bad(n, "its graph's output %s is not produced by any node",
                                MICA_QUOTE(graph->outputs[k].name));
    }
    im->depth--;
    im->scope = outer;
    n->failed = n->failed || im->status != MICA_OK;
    return !n->failed;
}

static void import_node(mica_onnx_import *im, const mica_onnx_node *node)
{
    mica_onnx_importing n = {.import = im, .node = node, .opset = opset_of(im, node->domain)};
    n.ins = node->ins < MICA_ONNX_INS ? node->ins : MICA_ONNX_INS;
    n.outs = node->outs < MICA_ONNX_OUTS ? node->outs : MICA_ONNX_OUTS;
    const mica_onnx_operator *own = mica_onnx_own_operator(node->domain, node->type);
    const mica_onnx_operator *op = own != NULL ? own
                                               : mica_onnx_operator_for(node->domain, node->type, n.opset);
    const mica_onnx_function *f = own == NULL && (op == NULL || node->domain[0] != '\0')
                                      ? function_of(im, node)
                                      : NULL;
    bool whole = take_inputs(&n);
    if (op == NULL && f == NULL)
        (void)mica_onnx_unsupported(&n, "Mica has no such operator (opset %d%s%.100s)", n.opset,
                                    node->domain[0] != '\0' ? " of " : "", node->domain);
    else if (node->ins > MICA_ONNX_INS || node->outs > MICA_ONNX_OUTS)
        (void)mica_onnx_unsupported(&n, "%d inputs and %d outputs, expected at most %d and %d", node->ins,
                                    node->outs, MICA_ONNX_INS, MICA_ONNX_OUTS);
    else if (f != NULL && im->depth >= DEEPEST)
        (void)mica_onnx_unsupported(&n, "function calls nested more than %d deep", DEEPEST);
    else if (whole && f != NULL)
        call_function(&n, f);
    else if (whole && (mica_onnx_is_own(im->model) || !mica_onnx_fuse(&n)))
        op->import(&n);
    n.failed = n.failed || !whole;
    mica_onnx_doubt_node(&n);
    bind_outputs(&n);
    mica_onnx_note_maker(&n);
}

void mica_onnx_import_nodes(mica_onnx_import *im, const mica_onnx_node *nodes, int count)
{
    for (int i = 0; i < count && im->status == MICA_OK; i++)
        if (count_node(im))
            import_node(im, &nodes[i]);
}

/* ---- Inputs ---- */

static const mica_onnx_set *set_of(const mica_onnx_import *im, const char *name, bool input)
{
    for (int i = 0; i < im->opts->count; i++) {
        const mica_onnx_set *s = &im->opts->sets[i];
        if (s->name != NULL && strcmp(s->name, name) == 0 && (s->value != NULL) == input)
            return s;
    }
    return NULL;
}

static void take_known(mica_onnx_import *im, const char *name, const mica_tensor *value)
{
    mica_onnx_held held = {.known = true};
    size_t bytes = mica_tensor_bytes(value);
    mica_status status = mica_tensor_init(im->ctx, &held.shape, NULL, value->dtype, value->rank, value->dim);
    held.shape.data = status == MICA_OK ? mica_onnx_memory(im->model, bytes > 0 ? bytes : 1) : NULL;
    if (held.shape.data != NULL)
        status = mica_copy(im->ctx, &held.shape, value);
    else if (status == MICA_OK)
        status = im->ctx->status;
    im->status = status;
    if (status == MICA_OK)
        (void)mica_onnx_bind_name(im, name, mica_onnx_hold(im, &held));
}

/* One size of an input: what the model says, or what was set. */
static bool size_of(mica_onnx_import *im, const mica_onnx_value *v, int axis, mica_index *out)
{
    const char *symbol = v->symbol[axis];
    *out = v->dim[axis];
    if (*out >= 0 || (symbol != NULL && mica_onnx_symbol_size(im, symbol, out)))
        return im->status == MICA_OK;
    im->status = symbol != NULL
                     ? mica_fail(im->ctx, MICA_ERR_ARGUMENT, "onnx: input %s: axis %d: set the size \"%s\"",
                                 MICA_QUOTE(v->name), axis, symbol)
                     : mica_fail(im->ctx, MICA_ERR_ARGUMENT,
                                 "onnx: input %s: the size of axis %d is open: set the input's shape",
                                 MICA_QUOTE(v->name), axis);
    return false;
}

/* What was set for an input, against what the model says of it. A value that is known becomes a constant, whatever its
 * shape: a few of ONNX's own tests declare another one. */
static void check_set(mica_onnx_import *im, const mica_onnx_value *v, const mica_tensor *value)
{
    bool fits = value->data != NULL || v->rank < 0 || v->rank == value->rank;
    for (int k = 0; fits && value->data == NULL && k < v->rank; k++)
        fits = v->dim[k] < 0 || v->dim[k] == value->dim[k];
    if (!fits)
        im->status = mica_fail(im->ctx, MICA_ERR_SHAPE, "onnx: input %s is set to %s, which is not its shape",
                               MICA_QUOTE(v->name), MICA_SHAPE(value));
    else if (v->dtype != MICA_DTYPE_COUNT && v->dtype != value->dtype)
        im->status = mica_fail(im->ctx, MICA_ERR_DTYPE, "onnx: input %s is set to %s: expected %s",
                               MICA_QUOTE(v->name), mica_dtype_name(value->dtype), mica_dtype_name(v->dtype));
}

static void add_input(mica_onnx_import *im, const mica_onnx_info *info, int number)
{
    const mica_onnx_value *v = &info->is;
    const mica_onnx_set *s = set_of(im, info->name, true);
    mica_index dims[MICA_MAX_RANK];
    int rank = v->rank;
    mica_dtype dtype = v->dtype;
    if (s != NULL)
        check_set(im, v, s->value);
    if (im->status != MICA_OK)
        return;
    if (s != NULL && s->value->data != NULL) {
        take_known(im, info->name, s->value);
        return;
    }
    if (s != NULL) {
        rank = s->value->rank;
        memcpy(dims, s->value->dim, sizeof dims);
        dtype = dtype == MICA_DTYPE_COUNT ? s->value->dtype : dtype;
    }
    if (dtype == MICA_DTYPE_COUNT)
        im->status = mica_fail(im->ctx, MICA_ERR_DTYPE,
                               "onnx: input %s is of type %s, which Mica does not have",
                               MICA_QUOTE(info->name), v->type);
    else if (rank < 0)
        im->status = mica_fail(im->ctx, MICA_ERR_ARGUMENT,
                               "onnx: input %s has a shape that is not known: set it",
                               MICA_QUOTE(info->name));
    for (int k = 0; s == NULL && k < rank && im->status == MICA_OK; k++)
        if (!size_of(im, v, k, &dims[k]))
            return;
    if (im->status != MICA_OK)
        return;
    mica_onnx_held held = {.inputs = (uint64_t)1 << (number < 63 ? number : 63), .input = true};
    /* A first axis that has the name of another size, or that the model fixes, is no batch, whatever number it is. */
    held.value = (mica_onnx_may_be_batch(im, v) ? mica_net_input : mica_net_input_as_said)(
        im->net, info->name, dtype, rank, dims);
    im->status = held.value != 0 ? mica_net_shape(im->net, &held.shape, held.value)
                                 : mica_net_status(im->net);
    held.shape.data = NULL;
    if (im->status == MICA_OK)
        (void)mica_onnx_bind_name(im, info->name, mica_onnx_hold(im, &held));
}

/* An input that has an initializer is that, unless its value was set. */
static void replace_initializer(mica_onnx_import *im, const mica_onnx_value *v)
{
    const mica_onnx_set *s = set_of(im, v->name, true);
    if (s == NULL || s->value->data == NULL)
        return;
    check_set(im, v, s->value);
    if (im->status == MICA_OK)
        take_known(im, v->name, s->value);
}

static void add_initializers(mica_onnx_import *im, mica_onnx_graph *g)
{
    for (int i = 0; i < g->initializer_count && im->status == MICA_OK; i++) {
        mica_onnx_tensor *t = &g->initializers[i];
        mica_status status = mica_onnx_tensor_data(im->model, t);
        mica_onnx_held held = {.name = t->name, .known = true};
        if (status == MICA_ERR_DTYPE) { /* a problem of the nodes that read it, and of no other */
            mica_onnx_add_problem(im, &(mica_onnx_node){.name = t->name, .type = "initializer"},
                                  mica_error(im->ctx), 0);
            held = (mica_onnx_held){.broken = true};
        } else if (status != MICA_OK) {
            im->status = status;
            return;
        } else {
            held.shape = t->tensor;
            held.learned = is_weight(im, &t->tensor);
        }
        (void)mica_onnx_bind_name(im, t->name, mica_onnx_hold(im, &held));
    }
}

/* What such nodes read is a weight even if it is a single number, as the bias of a head with one output. */
static void learn_single_weights(mica_onnx_import *im)
{
    static const char *const types[] = {"Conv",
                                        "ConvTranspose",
                                        "Gemm",
                                        "PRelu",
                                        "BatchNormalization",
                                        "LayerNormalization",
                                        "InstanceNormalization",
                                        "GroupNormalization"};
    const mica_onnx_graph *g = &im->model->graph;
    for (int i = 0; i < g->node_count && im->opts->train; i++) {
        bool reads = false;
        for (size_t k = 0; k < sizeof types / sizeof types[0]; k++)
            reads = reads || strcmp(g->nodes[i].type, types[k]) == 0;
        for (int k = 1; reads && k < 3 && k < g->nodes[i].ins; k++) {
            mica_onnx_ref ref = mica_onnx_look_up(im, g->nodes[i].in[k]);
            mica_onnx_held *held = ref > 0 ? mica_onnx_held_at(im, ref) : NULL;
            if (held != NULL && held->known && held->name != NULL && held->shape.dtype == MICA_F32 &&
                held->shape.rank > 0)
                held->learned = true;
        }
    }
}

static void add_inputs(mica_onnx_import *im)
{
    const mica_onnx_graph *g = &im->model->graph;
    for (int i = 0, number = 0; i < g->input_count && im->status == MICA_OK; i++) {
        if (mica_onnx_look_up(im, g->inputs[i].name) < 0)
            add_input(im, &g->inputs[i], number++);
        else if (g->inputs[i].initialized)
            replace_initializer(im, &g->inputs[i].is);
    }
    for (mica_onnx_ref ref = 1; ref < im->count && im->net->size[0].most == 0; ref++) {
        const mica_onnx_held *held = mica_onnx_held_at(im, ref);
        if (held->input && held->shape.rank > 0)
            mica_net_fix_batch(im->net, held->shape.dim[0], "the model has no size of this name");
    }
}

/* ---- Outputs ---- */

/* What a caller reads is made by a call of its own: not an input, a constant, or another output. An input or a weight
 * of the output's own name has that name in the net, and is the output itself. */
static void add_output(mica_onnx_import *im, const mica_onnx_info *info, mica_onnx_ref ref)
{
    mica_onnx_held *held = mica_onnx_held_at(im, ref);
    if (held->broken)
        return;
    mica_value value = mica_onnx_in_net(im, ref);
    bool itself = value != 0 && mica_net_named(im->net, info->name) == value;
    if (itself && held->known)
        return; /* it lasts */
    if (!itself && (held->known || held->input || held->output))
        value = mica_net_op(im->net, NULL, "copy", &value, 1, NULL);
    else
        held->output = true;
    mica_status status = value != 0 ? mica_net_output(im->net, info->name, value) : mica_net_status(im->net);
    im->status = im->status == MICA_OK ? status : im->status;
}

/* The calls that they need enter the net, then they get their names. */
static void add_outputs(mica_onnx_import *im)
{
    const mica_onnx_graph *g = &im->model->graph;
    mica_onnx_ref *refs = mica_onnx_memory(im->model, ((size_t)g->output_count + 1) * sizeof *refs);
    if (refs == NULL) {
        im->status = im->ctx->status;
        return;
    }
    for (int i = 0; i < g->output_count && im->status == MICA_OK; i++) {
        refs[i] = mica_onnx_look_up(im, g->outputs[i].name);
        if (refs[i] <= 0)
            im->status = mica_fail(im->ctx, MICA_ERR_FORMAT, "%s: output %s is not produced by any node",
                                   MICA_QUOTE(im->model->path), MICA_QUOTE(g->outputs[i].name));
    }
    if (im->status == MICA_OK && im->model->problem_count == 0)
        mica_onnx_enter_calls(im, refs, g->output_count);
    for (int i = 0; i < g->output_count && im->status == MICA_OK && im->model->problem_count == 0; i++)
        add_output(im, &g->outputs[i], refs[i]);
}

/* ---- All ---- */

/* All that could not be imported, as far as the message has room. */
static mica_status tell_problems(mica_onnx_import *im)
{
    const mica_onnx *m = im->model;
    char text[MICA_ERROR_TEXT];
    int used = 0;
    for (int i = 0; i < m->problem_count && used < (int)sizeof text; i++)
        used += mica_format(text + used, sizeof text - (size_t)used, "\n  %s %s: %s", m->problems[i].type,
                            MICA_QUOTE(m->problems[i].node), m->problems[i].reason);
    return mica_fail(im->ctx, MICA_ERR_FORMAT, "%s: %d node%s cannot be imported:%s", MICA_QUOTE(m->path),
                     m->problem_count, m->problem_count == 1 ? "" : "s", text);
}

void mica_onnx_import_model(mica_onnx_import *im)
{
    mica_onnx *model = im->model;
    mica_onnx_scope scope = {0};
    im->names = im->scope = &scope;
    model->builds++;
    model->problem_count = 0;
    model->starts = NULL;
    add_initializers(im, &model->graph);
    learn_single_weights(im);
    add_inputs(im);
    if (im->status == MICA_OK)
        mica_onnx_check_sets(im);
    if (im->status == MICA_OK)
        mica_onnx_count_uses(im);
    if (im->status == MICA_OK)
        mica_onnx_import_nodes(im, model->graph.nodes, model->graph.node_count);
    if (im->status == MICA_OK)
        add_outputs(im);
    if (im->status == MICA_OK && model->problem_count > 0)
        im->status = tell_problems(im);
    im->names = im->scope = NULL;
}

mica_status mica_onnx_build(mica_onnx *model, mica_net *net, const mica_onnx_opts *opts)
{
    static const mica_onnx_opts none;
    if (model == NULL || net == NULL)
        return MICA_ERR_ARGUMENT;
    if (net->value_count > 0)
        return mica_fail(model->ctx, MICA_ERR_ARGUMENT, "onnx_build: expected an empty net");
    mica_onnx_import im = {.model = model,
                           .ctx = model->ctx,
                           .net = net,
                           .opts = opts != NULL ? opts : &none,
                           .opsets = model->opsets,
                           .opset_count = model->opset_count};
    mica_status status = mica_onnx_import_compared(&im);
    mica_onnx_drop_import(&im);
    return status;
}

/* ---- Weights that are learned ---- */

mica_status mica_onnx_remember(mica_onnx *model, const char *name, const mica_tensor *tensor)
{
    mica_onnx_start *start = mica_onnx_memory(model, sizeof *start);
    const char *kept = mica_onnx_intern(model, name, strlen(name));
    if (start == NULL || kept == NULL)
        return model->ctx->status;
    *start = (mica_onnx_start){model->starts, kept, *tensor};
    model->starts = start;
    return MICA_OK;
}

mica_status mica_onnx_load(mica_onnx *model, mica_net *net)
{
    if (model == NULL || net == NULL)
        return MICA_ERR_ARGUMENT;
    for (const mica_onnx_start *s = model->starts; s != NULL; s = s->next) {
        mica_tensor to;
        MICA_TRY(mica_net_tensor(net, &to, s->name));
        MICA_TRY(mica_copy(model->ctx, &to, &s->tensor));
    }
    return mica_net_derive(net);
}
