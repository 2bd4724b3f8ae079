/* Attention over queries, keys and values that lie side by side: heads are views, so nothing is copied. */
#include <mica/layer.h>
#include <mica/layers.h>

#include "base/context.h"

/* What x [N, T, (heads + 2 kv) D] holds. */
typedef struct head_shape {
    mica_index heads, kv, features;
} head_shape;

static head_shape shape_of(const mica_net_attention_opts *opts, const mica_tensor *x)
{
    head_shape h = {.heads = opts->heads != 0 ? opts->heads : 1};
    h.kv = opts->kv_heads != 0 ? opts->kv_heads : h.heads;
    mica_index all = h.heads + 2 * h.kv;
    h.features = all > 0 ? x->dim[2] / all : 0;
    return h;
}

static mica_status infer(mica_infer *infer)
{
    const mica_net_attention_opts *opts = infer->opts;
    const mica_tensor *x = infer->in[0];
    if (x->dtype != MICA_F32 || x->rank != 3)
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected f32 [N, T, features]");
    head_shape h = shape_of(opts, x);
    if (h.heads < 1 || h.kv < 1 || h.heads % h.kv != 0)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT,
                               "%td heads share %td for keys and values: expected a divisor", h.heads, h.kv);
    if (x->dim[2] % (h.heads + 2 * h.kv) != 0)
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected features for %td heads of one size, got %td",
                               h.heads + 2 * h.kv, x->dim[2]);
    MICA_TRY(mica_infer_saved(infer, MICA_F32, 3, (mica_index[]){x->dim[0], h.heads, x->dim[1]}));
    return mica_infer_output(infer, MICA_F32, 3, (mica_index[]){x->dim[0], x->dim[1], h.heads * h.features});
}

/* Heads from `first` on of t [N, T, ... D], as a view [N, count, T, D]. */
static mica_tensor heads_at(const mica_tensor *t, mica_index first, mica_index count, mica_index features)
{
    mica_tensor view = mica_4d(NULL, t->dim[0], count, t->dim[1], features);
    view.stride[0] = t->stride[0];
    view.stride[1] = features;
    view.stride[2] = t->stride[1];
    if (t->data != NULL)
        view.data = (float *)t->data + first * features;
    return view;
}

typedef struct qkv_views {
    mica_tensor q, k, v;
} qkv_views;

static qkv_views views_of(const mica_tensor *t, const head_shape *h)
{
    return (qkv_views){.q = heads_at(t, 0, h->heads, h->features),
                       .k = heads_at(t, h->heads, h->kv, h->features),
                       .v = heads_at(t, h->heads + h->kv, h->kv, h->features)};
}

static mica_status forward(const mica_step *s)
{
    const mica_net_attention_opts *opts = s->opts;
    head_shape h = shape_of(opts, s->in[0]);
    qkv_views x = views_of(s->in[0], &h);
    mica_tensor out = heads_at(s->out, 0, h.heads, h.features);
    return mica_attention(
        s->ctx, &out, &x.q, &x.k, &x.v,
        &(mica_attention_opts){
            .scale = opts->scale, .causal = opts->causal, .mask = s->in[1], .lse = s->saved[0]});
}

static mica_status backward(const mica_step *s)
{
    if (s->din[0] == NULL)
        return MICA_OK;
    const mica_net_attention_opts *opts = s->opts;
    head_shape h = shape_of(opts, s->in[0]);
    qkv_views x = views_of(s->in[0], &h), dx = views_of(s->din[0], &h);
    mica_tensor out = heads_at(s->out, 0, h.heads, h.features);
    mica_tensor dout = heads_at(s->dout, 0, h.heads, h.features);
    return mica_attention_backward(
        s->ctx, &(mica_attention_grads){&dx.q, &dx.k, &dx.v}, &dout,
        &(mica_attention_saved){&x.q, &x.k, &x.v, &out, s->saved[0]},
        &(mica_attention_opts){.scale = opts->scale, .causal = opts->causal, .mask = s->in[1]});
}

static const mica_layer attention = {.name = "attention",
                                     .flags = MICA_LAYER_READS_INPUTS | MICA_LAYER_READS_OUTPUT |
                                              MICA_LAYER_FIRST_INPUT_ONLY,
                                     .opts_bytes = sizeof(mica_net_attention_opts),
                                     .infer = infer,
                                     .forward = forward,
                                     .backward = backward};

mica_value mica_net_attention(mica_net *net, mica_value x, const mica_net_attention_opts *opts)
{
    bool masked = opts != NULL && opts->mask != 0;
    return mica_net_add(net, &attention, opts, (mica_value[]){x, masked ? opts->mask : 0}, masked ? 2 : 1);
}
