/* Positions of a sequence: a table added to it, learned or of waves, or features turned by them. */
#include <math.h>

#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"

/* dx is dy, which it may lie over. */
static mica_status pass_back(const mica_step *s)
{
    if (s->din[0] == NULL || s->din[0]->data == s->dout->data)
        return MICA_OK;
    return mica_copy(s->ctx, s->din[0], s->dout);
}

static mica_status check_sequence(mica_infer *infer)
{
    const mica_tensor *x = infer->in[0];
    if (x->dtype != MICA_F32 || x->rank < 2)
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected f32 [..., T, C] of rank 2 or more");
    return MICA_OK;
}

enum { OVER_INPUT = MICA_LAYER_IN_PLACE | MICA_LAYER_BACKWARD_IN_PLACE };

/* ---- Learned ---- */

static mica_status learned_infer(mica_infer *infer)
{
    const mica_net_positions_opts *opts = infer->opts;
    MICA_TRY(check_sequence(infer));
    const mica_tensor *x = infer->in[0];
    const mica_index *last = &x->dim[x->rank - 2]; /* [T, C] */
    mica_index weight[] = {opts->rows != 0 ? opts->rows : last[0], last[1]};
    if (weight[0] < last[0])
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected at most %td positions, got %td", weight[0],
                               last[0]);
    mica_init init = opts->weight_init.kind != MICA_INIT_DEFAULT ? opts->weight_init
                                                                 : (mica_init){MICA_INIT_NORMAL, 0.02f};
    MICA_TRY(mica_infer_parameter(infer, "weight", 2, weight, init));
    return mica_infer_output(infer, MICA_F32, x->rank, x->dim);
}

static mica_status learned_forward(const mica_step *s)
{
    mica_tensor rows = *s->param[0];
    rows.dim[0] = s->in[0]->dim[s->in[0]->rank - 2];
    return mica_add(s->ctx, s->out, s->in[0], &rows);
}

/* dweight[t] = sum of dy over all sequences at t, and 0 for positions that are not there */
static mica_status learned_backward(const mica_step *s)
{
    if (s->dparam[0] != NULL) {
        int leading = s->dout->rank - 2;
        mica_index length = s->dout->dim[leading];
        mica_tensor rows = *s->dparam[0], rest;
        MICA_TRY(mica_view_slice(s->ctx, &rest, s->dparam[0], 0, length, MICA_END, 1));
        MICA_TRY(mica_zeros(s->ctx, &rest));
        rows.dim[0] = length;
        mica_reduce_opts axes = {.count = leading, .axes = {0, 1, 2, 3, 4, 5}};
        MICA_TRY(leading > 0 ? mica_sum(s->ctx, &rows, s->dout, &axes) : mica_copy(s->ctx, &rows, s->dout));
    }
    return pass_back(s);
}

static const mica_layer learned = {"learned_positions", OVER_INPUT,      sizeof(mica_net_positions_opts),
                                   learned_infer,       learned_forward, learned_backward};

mica_value mica_net_learned_positions(mica_net *net, mica_value x, const mica_net_positions_opts *opts)
{
    return mica_net_add(net, &learned, opts, &x, 1);
}

/* ---- Tables that the first forward fills: "filled" says whether it has ---- */

static mica_status ask_table(mica_infer *infer, mica_index rows, mica_index columns)
{
    MICA_TRY(mica_infer_state(infer, "table", MICA_F32, 2, (mica_index[]){rows, columns}, 0.0f));
    return mica_infer_state(infer, "filled", MICA_U8, 0, NULL, 0.0f);
}

static bool must_fill(const mica_step *s)
{
    if (mica_step_measuring(s) || *(unsigned char *)s->state[1]->data)
        return false;
    *(unsigned char *)s->state[1]->data = 1;
    return true;
}

/* ---- Sinusoidal ---- */

static mica_status waves_infer(mica_infer *infer)
{
    MICA_TRY(check_sequence(infer));
    const mica_tensor *x = infer->in[0];
    const mica_net_positions_opts *opts = infer->opts;
    if (!(opts->base >= 0.0))
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT, "base is %g: expected more than 0", opts->base);
    MICA_TRY(ask_table(infer, x->dim[x->rank - 2], x->dim[x->rank - 1]));
    return mica_infer_output(infer, MICA_F32, x->rank, x->dim);
}

typedef struct waves {
    double base, features;
} waves;

static double wave(const mica_index *index, void *user)
{
    const waves *w = user;
    mica_index even = index[1] - index[1] % 2; /* sine and cosine share a frequency */
    double angle = (double)index[0] * pow(w->base, -(double)even / w->features);
    return index[1] % 2 == 0 ? sin(angle) : cos(angle);
}

static mica_status waves_forward(const mica_step *s)
{
    const mica_net_positions_opts *opts = s->opts;
    waves w = {opts->base != 0.0 ? opts->base : 10000.0, (double)s->state[0]->dim[1]};
    if (must_fill(s))
        MICA_TRY(mica_generate(s->ctx, s->state[0], wave, &w));
    return mica_add(s->ctx, s->out, s->in[0], s->state[0]);
}

static const mica_layer sinusoidal = {
    "sinusoidal_positions", OVER_INPUT, sizeof(mica_net_positions_opts), waves_infer,
    waves_forward,          pass_back};

mica_value mica_net_sinusoidal_positions(mica_net *net, mica_value x, const mica_net_positions_opts *opts)
{
    return mica_net_add(net, &sinusoidal, opts, &x, 1);
}

/* ---- Rotary ---- */

/* How x [..., T, heads * D] falls into heads. */
typedef struct head_shape {
    mica_index heads, turned, features;
} head_shape;

static head_shape heads_of(const mica_net_rotary_opts *opts, const mica_tensor *x)
{
    head_shape h = {.heads = opts->heads != 0 ? opts->heads : 1};
    h.turned = opts->turned != 0 ? opts->turned : h.heads;
    h.features = h.heads > 0 ? x->dim[x->rank - 1] / h.heads : 0;
    return h;
}

static mica_status rotary_infer(mica_infer *infer)
{
    const mica_net_rotary_opts *opts = infer->opts;
    MICA_TRY(check_sequence(infer));
    const mica_tensor *x = infer->in[0];
    head_shape h = heads_of(opts, x);
    mica_index width = opts->width != 0 ? opts->width : h.features;
    if (h.heads < 1 || h.turned < 1 || h.turned > h.heads || x->dim[x->rank - 1] % h.heads != 0 ||
        x->rank >= MICA_MAX_RANK)
        return mica_infer_fail(infer, MICA_ERR_SHAPE,
                               "expected features for %td heads of one size, of which %td are turned",
                               h.heads, h.turned);
    if (width < 0 || width % 2 != 0 || width > h.features)
        return mica_infer_fail(
            infer, MICA_ERR_ARGUMENT,
            "%td features of each head are to be turned: expected an even number of at most %td", width,
            h.features);
    MICA_TRY(ask_table(infer, x->dim[x->rank - 2], width));
    return mica_infer_output(infer, MICA_F32, x->rank, x->dim);
}

/* Heads from `first` on of t [..., T, heads * D], as a view [..., count, T, D]. */
static mica_tensor some_heads(const mica_tensor *t, const head_shape *h, mica_index first, mica_index count)
{
    mica_tensor view = *t;
    int last = t->rank; /* the view's last axis */
    view.rank = t->rank + 1;
    view.dim[last] = h->features;
    view.stride[last] = 1;
    view.dim[last - 1] = t->dim[last - 2];
    view.stride[last - 1] = t->stride[last - 2];
    view.dim[last - 2] = count;
    view.stride[last - 2] = h->features;
    if (t->data != NULL)
        view.data = (float *)t->data + first * h->features;
    return view;
}

typedef mica_status rotary_fn(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                              const mica_tensor *table, const mica_rotary_opts *opts);

static mica_status turn(const mica_step *s, rotary_fn *op, const mica_tensor *to, const mica_tensor *from)
{
    const mica_net_rotary_opts *opts = s->opts;
    head_shape h = heads_of(opts, from);
    mica_tensor y = some_heads(to, &h, 0, h.turned), x = some_heads(from, &h, 0, h.turned);
    MICA_TRY(op(s->ctx, &y, &x, s->state[0], &(mica_rotary_opts){.interleaved = opts->interleaved}));
    if (h.turned == h.heads || (to->data == from->data && !mica_step_measuring(s)))
        return MICA_OK;
    y = some_heads(to, &h, h.turned, h.heads - h.turned);
    x = some_heads(from, &h, h.turned, h.heads - h.turned);
    return mica_copy(s->ctx, &y, &x);
}

static mica_status rotary_forward(const mica_step *s)
{
    const mica_net_rotary_opts *opts = s->opts;
    if (must_fill(s))
        MICA_TRY(mica_rotary_table(s->ctx, s->state[0], opts->base));
    return turn(s, mica_rotary, s->out, s->in[0]);
}

static mica_status rotary_backward(const mica_step *s)
{
    return s->din[0] != NULL ? turn(s, mica_rotary_backward, s->din[0], s->dout) : MICA_OK;
}

static const mica_layer rotary = {"rotary",     OVER_INPUT,     sizeof(mica_net_rotary_opts),
                                  rotary_infer, rotary_forward, rotary_backward};

mica_value mica_net_rotary(mica_net *net, mica_value x, const mica_net_rotary_opts *opts)
{
    return mica_net_add(net, &rotary, opts, &x, 1);
}
