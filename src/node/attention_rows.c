/* Attention over rows of tokens: q [N, Tq, heads * D], k and v [N, Tk, kv_heads * D], each of which holds its heads
 * side by side, as projections make them. Heads are views, so that nothing is copied. */
#include "node/position.h"

enum { Q, K, V, MASK };
enum { OUT, LSE };
enum { DOUT, BACK_Q, BACK_K, BACK_V, BACK_OUT, BACK_LSE, BACK_MASK };

static mica_index heads_of(const mica_attention_packed_opts *opts)
{
    return opts->heads != 0 ? opts->heads : 1;
}

static mica_index kv_of(const mica_attention_packed_opts *opts)
{
    return opts->kv_heads != 0 ? opts->kv_heads : heads_of(opts);
}

static mica_status infer(mica_infer *i)
{
    const mica_tensor *q = i->in[Q], *k = i->in[K], *mask = i->in[MASK];
    mica_index heads = heads_of(i->opts), kv = kv_of(i->opts);
    for (int n = Q; n <= V; n++)
        if (i->in[n]->dtype != MICA_F32 || i->in[n]->rank != 3)
            return mica_infer_fail(i, MICA_ERR_SHAPE, "expected q, k and v f32 [N, T, features]");
    if (heads < 1 || kv < 1 || heads % kv != 0 || q->dim[2] % heads != 0)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT,
                               "%td heads, %td of keys, in %td features: they do not divide", heads, kv,
                               q->dim[2]);
    mica_index keys[] = {q->dim[0], k->dim[1], q->dim[2] / heads * kv},
               scores[] = {q->dim[0], heads, q->dim[1], k->dim[1]};
    MICA_TRY(mica_infer_expect(i, K, 3, keys));
    MICA_TRY(mica_infer_expect(i, V, 3, keys));
    bool fits = mask == NULL || ((mask->dtype == MICA_F32 || mask->dtype == MICA_U8) && mask->rank <= 4);
    for (int n = 0; fits && mask != NULL && n < mask->rank; n++)
        fits = mask->dim[n] == 1 || mask->dim[n] == scores[4 - mask->rank + n];
    if (!fits)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "expected an f32 or u8 mask that broadcasts to [%td, %td, %td, %td]",
                               scores[0], scores[1], scores[2], scores[3]);
    MICA_TRY(mica_infer_like(i, OUT, Q));
    return mica_infer_out(i, LSE, MICA_F32, 3, scores);
}

/* t [N, T, heads * D] as [N, heads, T, D]. */
static mica_tensor by_heads(const mica_tensor *t, mica_index heads)
{
    mica_index features = t->dim[2] / heads;
    mica_tensor view = mica_4d(t->data, t->dim[0], heads, t->dim[1], features);
    view.stride[0] = t->stride[0];
    view.stride[1] = features * t->stride[2];
    view.stride[2] = t->stride[1];
    view.stride[3] = t->stride[2];
    return view;
}

static mica_status run(const mica_call *c)
{
    const mica_attention_packed_opts *opts = c->opts;
    mica_index heads = heads_of(opts), kv = kv_of(opts);
    mica_tensor q = by_heads(c->in[Q], heads), k = by_heads(c->in[K], kv), v = by_heads(c->in[V], kv),
                out = by_heads(c->out[OUT], heads);
    return mica_attention(
        c->ctx, &out, &q, &k, &v,
        &(mica_attention_opts){
            .scale = opts->scale, .causal = opts->causal, .mask = c->in[MASK], .lse = c->out[LSE]});
}

static mica_status run_back(const mica_call *c)
{
    const mica_attention_packed_opts *opts = c->opts;
    mica_index heads = heads_of(opts), kv = kv_of(opts);
    mica_tensor q = by_heads(c->in[BACK_Q], heads), k = by_heads(c->in[BACK_K], kv),
                v = by_heads(c->in[BACK_V], kv), out = by_heads(c->in[BACK_OUT], heads),
                dout = by_heads(c->in[DOUT], heads), dq = by_heads(c->out[0], heads),
                dk = by_heads(c->out[1], kv), dv = by_heads(c->out[2], kv);
    return mica_attention_backward(
        c->ctx, &(mica_attention_grads){&dq, &dk, &dv}, &dout,
        &(mica_attention_saved){&q, &k, &v, &out, c->in[BACK_LSE]},
        &(mica_attention_opts){.scale = opts->scale, .causal = opts->causal, .mask = c->in[BACK_MASK]});
}

static mica_status infer_back(mica_infer *i)
{
    for (int n = 0; n < 3; n++)
        MICA_TRY(mica_infer_like(i, n, BACK_Q + n));
    return MICA_OK;
}

static const mica_field fields[] = {
    MICA_FIELD(mica_attention_packed_opts, heads, INT, "query heads; 0: 1"),
    MICA_FIELD(mica_attention_packed_opts, kv_heads, INT, "key/value heads: a divisor of heads; 0: heads"),
    MICA_FIELD(mica_attention_packed_opts, causal, BOOL, "a token attends only to itself and earlier ones"),
    MICA_FIELD(mica_attention_packed_opts, scale, FLOAT, "scale of the scores; 0: 1 / sqrt(D)"),
};

/* Writes all three gradients, or none. */
static const mica_op backward = {
    .name = "attention_rows_backward",
    .about = "the gradients of attention_rows",
    .ins = 6,
    .optional_ins = 1,
    .outs = 3,
    .names = (const char *const[]){"dy", "q", "k", "v", "y", "lse", "mask", "dq", "dk", "dv"},
    .opts_bytes = sizeof(mica_attention_packed_opts),
    MICA_FIELD_LIST(fields),
    .infer = infer_back,
    .run = run_back};

static void gradient(mica_grad *g)
{
    mica_value in[] = {g->dout[OUT], g->in[Q], g->in[K], g->in[V], g->out[OUT], g->out[LSE], g->in[MASK]};
    if (g->dout[OUT] != 0)
        mica_grad_give_all(g, (int[]){Q, K, V}, 3, &backward, in, 7, g->opts);
}

const mica_op mica_op_attention_rows = {
    .name = "attention_rows",
    .family = "attention",
    .about = "attention over queries, keys and values whose heads lie side by side",
    .ins = 3,
    .optional_ins = 1,
    .outs = 2,
    .optional_outs = 1u << LSE,
    .fixed_ins = 1u << MASK,
    .fixed_outs = 1u << LSE,
    .names = (const char *const[]){"q", "k", "v", "mask", "y", "lse"},
    .opts_bytes = sizeof(mica_attention_packed_opts),
    MICA_FIELD_LIST(fields),
    .infer = infer,
    .run = run,
    .gradient = MICA_GRADIENT(gradient)};
