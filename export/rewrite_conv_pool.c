/* Convolution with stride 1, relu and max pooling over windows that do not overlap: one call over planes with a
 * border, which keeps where each maximum was in a byte. Its backward sends gradients there alone: a quarter of the work
 * for 2 x 2.
 *
 *     conv2d_max_pool                                     conv_pool
 *     relu_backward, max_pool2d_backward,                 conv_pool_backward
 *         conv2d_backward_weight, _bias, _input
 */
#include <string.h>

#include "export/rewrite.h"

/* numbers[] of both calls. */
enum { KERNEL, PAD, WINDOW };

static bool is_named(const call *c, const char *name) { return strcmp(c->name, name) == 0; }

/* Whether both axes have the same option, which is then *size. */
static bool is_square(const call *c, const char *field, int least, int *size)
{
    int a = call_int(c, field, 0), b = call_int(c, field, 1);
    *size = a > least ? a : least;
    return *size == (b > least ? b : least);
}

static bool fits(const graph *g, const call *c, int numbers[3])
{
    const value *x = &g->values[c->in[0]], *w = &g->values[c->in[1]];
    int stride, dilation, step, pool_pad, pool_dilation, activation = call_int(c, "conv.activation", 0);
    if (!is_named(c, "conv2d_max_pool") || x->rank != 4 || x->dim[0] != 1 || w->rank != 4 ||
        w->dim[2] != w->dim[3])
        return false;
    if (!is_square(c, "conv.stride", 1, &stride) || !is_square(c, "conv.dilation", 1, &dilation) ||
        !is_square(c, "conv.pad", 0, &numbers[PAD]) || !is_square(c, "pool.kernel", 1, &numbers[WINDOW]) ||
        !is_square(c, "pool.stride", 0, &step) || !is_square(c, "pool.pad", 0, &pool_pad) ||
        !is_square(c, "pool.dilation", 1, &pool_dilation))
        return false;
    numbers[KERNEL] = (int)w->dim[2];
    return stride == 1 && dilation == 1 && call_size(c, "conv.groups", 0) == 1 && pool_pad == 0 &&
           pool_dilation == 1 && (step == 0 || step == numbers[WINDOW]) &&
           !call_int(c, "pool.ceil_mode", 0) && numbers[WINDOW] < 16 &&
           (activation == MICA_NO_ACTIVATION || activation == MICA_RELU);
}

/* ---- Backward ---- */

/* The calls that become one. */
typedef struct backward {
    int relu, pool;                /* NONE: there is none */
    int weight, bias, input, last; /* of the convolution */
} backward;

/* What reads the gradient of the image between: nothing but gradients of the convolution. */
static bool find_conv_calls(const graph *g, int gradient, backward *b)
{
    b->weight = b->bias = b->input = b->last = NONE;
    for (int n = 0; n < g->call_count; n++) {
        const call *c = &g->calls[n];
        for (int i = 0; i < c->ins; i++) {
            if (c->in[i] == NONE || g->values[c->in[i]].root != g->values[gradient].root)
                continue;
            int *found = is_named(c, "conv2d_backward_weight")  ? &b->weight
                         : is_named(c, "conv2d_backward_bias")  ? &b->bias
                         : is_named(c, "conv2d_backward_input") ? &b->input
                                                                : NULL;
            if (found == NULL || *found != NONE || i != 0)
                return false;
            *found = n;
            b->last = n;
        }
    }
    return b->last != NONE && b->weight != NONE; /* it takes the image from there */
}

static bool find_backward(const graph *g, const call *forward, backward *b)
{
    b->pool = graph_only_reader(g, forward->out[1]);
    if (b->pool == NONE || !is_named(&g->calls[b->pool], "max_pool2d_backward"))
        return false;
    const call *pool = &g->calls[b->pool];
    b->relu = NONE;
    if (call_int(forward, "conv.activation", 0) == MICA_RELU) {
        b->relu = graph_writer(g, pool->in[0]);
        if (b->relu == NONE)
            return false;
        const call *relu = &g->calls[b->relu];
        if (!is_named(relu, "relu_backward") || graph_only_reader(g, relu->out[0]) != b->pool ||
            (relu->add & 1u) || g->values[relu->in[1]].root != g->values[forward->out[0]].root)
            return false;
    }
    return !(pool->add & 1u) && find_conv_calls(g, pool->out[0], b);
}

static bool replace_backward(graph *g, int at, const backward *b, const int numbers[3])
{
    const call *forward = &g->calls[at], *pool = &g->calls[b->pool], *weight = &g->calls[b->weight];
    call c = {.name = "conv_pool_backward",
              .phase = MICA_PHASE_BACKWARD,
              .layer = forward->layer,
              .kind = forward->kind,
              .ins = 4,
              .outs = 3,
              .scratch = NONE};
    c.in[0] = b->relu != NONE ? g->calls[b->relu].in[0] : pool->in[0];
    c.in[1] = forward->out[1];
    c.in[2] = weight->in[1];
    c.in[3] = forward->in[1];
    c.out[0] = weight->out[0];
    c.out[1] = b->bias != NONE ? g->calls[b->bias].out[0] : NONE;
    c.out[2] = b->input != NONE ? g->calls[b->input].out[0] : NONE;
    c.add = (weight->add & 1u) | (b->bias != NONE && (g->calls[b->bias].add & 1u) ? 2u : 0u) |
            (b->input != NONE && (g->calls[b->input].add & 1u) ? 4u : 0u);
    memcpy(c.numbers, numbers, 3 * sizeof numbers[0]);
    g->calls[b->last] = c;
    int gone[] = {b->relu, b->pool, b->weight, b->bias, b->input};
    for (int i = 0; i < 5; i++)
        if (gone[i] != NONE && gone[i] != b->last)
            g->calls[gone[i]].name = NULL; /* dropped below */
    for (int n = g->call_count - 1; n >= 0; n--)
        if (g->calls[n].name == NULL)
            graph_drop_call(g, n);
    return true;
}

/* ---- Borders ---- */

/* Which tensors of these calls have the border of their padding, or may have any: x and y of the forward; dy, x and dx
 * of the backward. */
static bool wants_border(const call *c, int in)
{
    return c->numbers[PAD] > 0 && in == (is_named(c, "conv_pool") ? 0 : 2);
}

static bool is_either(const call *c) { return is_named(c, "conv_pool") || is_named(c, "conv_pool_backward"); }

static bool reads_bordered(const call *c, int in, int width)
{
    return is_either(c) && ((in == 0 && is_named(c, "conv_pool_backward")) ||
                            (wants_border(c, in) && c->numbers[PAD] == width));
}

/* Whether all that touches a value can deal with a border of this width, and it is made by one of these calls. */
static bool can_have_border(const graph *g, int v, int width)
{
    bool made = false;
    if (g->values[v].home != VALUE_ARENA || g->values[v].output || g->values[v].root != v)
        return false;
    for (int n = 0; n < g->call_count; n++) {
        const call *c = &g->calls[n];
        for (int i = 0; i < c->ins; i++)
            if (c->in[i] != NONE && g->values[c->in[i]].root == v &&
                (c->in[i] != v || !reads_bordered(c, i, width)))
                return false;
        for (int k = 0; k < c->outs; k++) {
            if (c->out[k] == NONE || g->values[c->out[k]].root != v)
                continue;
            bool fits_it = is_named(c, "conv_pool") ? k == 0 : is_named(c, "conv_pool_backward") && k == 2;
            if (c->out[k] != v || !fits_it || (c->add >> k & 1u))
                return false;
            made = true;
        }
    }
    return made;
}

/* A value like v with a border: its name, with "_bordered". */
static int bordered_like(graph *g, int v, int width)
{
    value copy = g->values[v];
    strncat(copy.name, "_bordered", sizeof copy.name - strlen(copy.name) - 1);
    copy.home = VALUE_ARENA;
    copy.border = width;
    copy.output = false;
    copy.source = 0;
    copy.root = g->value_count;
    return graph_add_value(g, &copy);
}

/* Copies v into a bordered one before call `at`, and lets all of these calls from there on read that. */
static bool insert_border(graph *g, int at, int v, int width)
{
    const call *c = &g->calls[at];
    call copy = {.name = "border",
                 .phase = c->phase,
                 .layer = c->layer,
                 .kind = c->kind,
                 .ins = 1,
                 .outs = 1,
                 .scratch = NONE,
                 .runs = c->runs,
                 .in = {v}};
    copy.out[0] = bordered_like(g, v, width);
    if (copy.out[0] == NONE || graph_add_call(g, at, &copy) == NULL)
        return false;
    for (int n = at + 1; n < g->call_count; n++)
        for (int i = 0; i < g->calls[n].ins; i++)
            if (g->calls[n].in[i] == v && is_either(&g->calls[n]) && wants_border(&g->calls[n], i) &&
                g->calls[n].numbers[PAD] == width)
                g->calls[n].in[i] = copy.out[0];
    return true;
}

/* dx is made with a border, and copied from there. */
static bool insert_unborder(graph *g, int at)
{
    call *c = &g->calls[at];
    int dx = c->out[2];
    call copy = {.name = "unborder",
                 .phase = c->phase,
                 .layer = c->layer,
                 .kind = c->kind,
                 .ins = 1,
                 .outs = 1,
                 .scratch = NONE,
                 .out = {dx},
                 .add = c->add >> 2 & 1u};
    copy.in[0] = bordered_like(g, dx, c->numbers[PAD]);
    if (copy.in[0] == NONE)
        return false;
    g->calls[at].out[2] = copy.in[0];
    g->calls[at].add &= ~4u;
    return graph_add_call(g, at + 1, &copy) != NULL;
}

static bool give_borders(graph *g)
{
    for (int n = 0; n < g->call_count; n++) {
        const call *c = &g->calls[n];
        if (!is_either(c) || c->numbers[PAD] == 0)
            continue;
        int width = c->numbers[PAD], x = c->in[is_named(c, "conv_pool") ? 0 : 2];
        if (g->values[x].border == 0 && can_have_border(g, x, width))
            g->values[x].border = width;
        else if (g->values[x].border == 0 && !insert_border(g, n++, x, width))
            return false;
        c = &g->calls[n];
        if (!is_named(c, "conv_pool_backward") || c->out[2] == NONE)
            continue;
        if (can_have_border(g, c->out[2], width))
            g->values[c->out[2]].border = width;
        else if (!insert_unborder(g, n))
            return false;
    }
    return true;
}

bool rewrite_conv_pool(graph *g)
{
    for (int n = 0; n < g->call_count; n++) {
        int numbers[3];
        backward b;
        if (!fits(g, &g->calls[n], numbers))
            continue;
        int picks = g->calls[n].out[1];
        if (picks != NONE && (!find_backward(g, &g->calls[n], &b) || !replace_backward(g, n, &b, numbers)))
            continue;
        if (picks != NONE)
            g->values[picks].dtype = MICA_U8;
        call *c = &g->calls[n];
        c->name = "conv_pool";
        memcpy(c->numbers, numbers, sizeof numbers);
    }
    return give_borders(g);
}
