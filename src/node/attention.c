/* Attention over separate queries, keys and values, and over packed ones. A backward reads them, the output and
 * lse, each row's logarithm of the sum of exponentials; a mask has no gradient. */
#include "node/position.h"

enum { OUT, LSE };

/* Whether the mask, if there is one, broadcasts to [B, H, Tq, Tk]. */
static mica_status check_mask(mica_infer *i, const mica_tensor *mask, const mica_index *scores)
{
    bool fits = mask == NULL ||
                ((mask->dtype == MICA_F32 || mask->dtype == MICA_U8 || mask->dtype == MICA_BOOL) &&
                 mask->rank <= 4);
    for (int k = 0; fits && mask != NULL && k < mask->rank; k++)
        fits = mask->dim[k] == 1 || mask->dim[k] == scores[4 - mask->rank + k];
    if (fits)
        return MICA_OK;
    char text[128];
    (void)mica_tensor_print_shape(text, sizeof text, mask);
    return mica_infer_fail(i, MICA_ERR_SHAPE,
                           "expected an f32 or u8 mask that broadcasts to [%td, %td, %td, %td], got %s %s",
                           scores[0], scores[1], scores[2], scores[3], mica_dtype_name(mask->dtype), text);
}

/* A mask of fewer than 4 axes is aligned at the last: its first axis is heads or tokens. If that is as large as the
 * batch, it would be taken for samples where a batch is run in parts. */
static bool mask_mixes(const mica_infer *i, const mica_tensor *mask)
{
    return mask != NULL && mask->rank > 0 && mask->rank < 4 && mask->dim[0] > 1 &&
           mask->dim[0] == i->in[0]->dim[0];
}

/* A random u8 mask. */
static void sample_mask(mica_op_sample *s, int in, int rank, const mica_index *dims)
{
    mica_op_sample_shape(s, in, rank, dims);
    s->in[in].dtype = MICA_U8;
    s->low[in] = 0.0;
    s->high[in] = 2.0;
    s->ins = in + 1;
}

/* ---- Apart: q [B, H, Tq, D], k and v [B, Hkv, Tk, D] ---- */

enum { Q, K, V, MASK };
enum { DOUT, BACK_Q, BACK_K, BACK_V, BACK_OUT, BACK_LSE, BACK_MASK };

static mica_status infer(mica_infer *i)
{
    const mica_tensor *q = i->in[Q], *k = i->in[K];
    for (int n = Q; n <= V; n++)
        if (i->in[n]->dtype != MICA_F32 || i->in[n]->rank != 4)
            return mica_infer_fail(i, MICA_ERR_SHAPE, "expected q, k and v f32 [B, heads, T, D]");
    MICA_TRY(mica_infer_expect(i, V, 4, k->dim));
    bool divides = k->dim[1] > 0 ? q->dim[1] % k->dim[1] == 0 : q->dim[1] == 0;
    if (k->dim[0] != q->dim[0] || k->dim[3] != q->dim[3] || !divides)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "expected keys [%td, a divisor of %td, T, %td], got [%td, %td, %td, %td]",
                               q->dim[0], q->dim[1], q->dim[3], k->dim[0], k->dim[1], k->dim[2], k->dim[3]);
    MICA_TRY(check_mask(i, i->in[MASK], (mica_index[]){q->dim[0], q->dim[1], q->dim[2], k->dim[2]}));
    MICA_TRY(mica_infer_like(i, OUT, Q));
    return mica_infer_out(i, LSE, MICA_F32, 3, q->dim);
}

static mica_status infer_back(mica_infer *i)
{
    for (int n = 0; n < 3; n++)
        MICA_TRY(mica_infer_like(i, n, BACK_Q + n));
    return MICA_OK;
}

static mica_status run(const mica_call *c)
{
    mica_attention_opts opts = *(const mica_attention_opts *)c->opts;
    opts.mask = c->in[MASK];
    opts.lse = c->out[LSE];
    return mica_attention(c->ctx, c->out[OUT], c->in[Q], c->in[K], c->in[V], &opts);
}

static mica_status run_back(const mica_call *c)
{
    mica_attention_opts opts = *(const mica_attention_opts *)c->opts;
    opts.mask = c->in[BACK_MASK];
    return mica_attention_backward(c->ctx, &(mica_attention_grads){c->out[0], c->out[1], c->out[2]},
                                   c->in[DOUT],
                                   &(mica_attention_saved){c->in[BACK_Q], c->in[BACK_K], c->in[BACK_V],
                                                           c->in[BACK_OUT], c->in[BACK_LSE]},
                                   &opts);
}

static void gradient(mica_grad *g)
{
    mica_value in[] = {g->dout[OUT], g->in[Q], g->in[K], g->in[V], g->out[OUT], g->out[LSE], g->in[MASK]};
    if (g->dout[OUT] != 0)
        mica_grad_give_all(g, (int[]){Q, K, V}, 3, &mica_op_attention_backward, in, 7, g->opts);
}

static bool mixes(const mica_infer *i) { return mask_mixes(i, i->in[MASK]); }

static void sample(mica_op_sample *s)
{
    mica_attention_opts *opts = s->opts;
    mica_index kv = mica_op_sample_int(s, 1, 2), keys = mica_op_sample_int(s, 1, 5);
    mica_index q[] = {mica_op_sample_int(s, 1, 2), kv * mica_op_sample_int(s, 1, 2),
                      mica_op_sample_int(s, 1, 5), mica_op_sample_int(s, 1, 4)};
    mica_index k[] = {q[0], kv, keys, q[3]};
    opts->causal = mica_sample_chance(s);
    opts->scale = mica_sample_chance(s) ? 0.5f : 0.0f;
    mica_op_sample_shape(s, Q, 4, q);
    mica_op_sample_shape(s, K, 4, k);
    mica_op_sample_shape(s, V, 4, k);
    if (mica_sample_chance(s))
        sample_mask(s, MASK, 2, (mica_index[]){q[2], keys});
}

static const mica_field fields[] = {
    MICA_FIELD(mica_attention_opts, scale, FLOAT, "scale of the scores; 0: 1 / sqrt(D)"),
    MICA_FIELD(mica_attention_opts, causal, BOOL,
               "the last query attends to all keys, the one before it to one less"),
};

const mica_op mica_op_attention = {.name = "attention",
                                   .family = "attention",
                                   .about = "softmax(scale q kT + mask) v, for every head",
                                   .ins = 3,
                                   .optional_ins = 1,
                                   .outs = 2,
                                   .optional_outs = 1u << LSE,
                                   .fixed_ins = 1u << MASK,
                                   .fixed_outs = 1u << LSE,
                                   .names = (const char *const[]){"q", "k", "v", "mask", "y", "lse"},
                                   .opts_bytes = sizeof(mica_attention_opts),
                                   MICA_FIELD_LIST(fields),
                                   .in_place = {1u << Q},
                                   .infer = infer,
                                   .run = run,
                                   .gradient = MICA_GRADIENT(gradient),
                                   .mixes = mixes,
                                   .sample = MICA_SAMPLE(sample)};
/* Writes all three gradients, or none. */
const mica_op mica_op_attention_backward = {
    .name = "attention_backward",
    .family = "attention",
    .about = "the gradients of attention by q, k and v",
    .ins = 6,
    .optional_ins = 1,
    .outs = 3,
    .names = (const char *const[]){"dy", "q", "k", "v", "y", "lse", "mask", "dq", "dk", "dv"},
    .opts_bytes = sizeof(mica_attention_opts),
    MICA_FIELD_LIST(fields),
    .infer = infer_back,
    .run = run_back};

/* ---- Side by side: x [N, T, (heads + 2 kv) D], whose heads are views, so that nothing is copied ---- */

typedef struct head_shape {
    mica_index heads, kv, features;
} head_shape;

static head_shape shape_of(const mica_attention_packed_opts *opts, const mica_tensor *x)
{
    head_shape h = {.heads = opts->heads != 0 ? opts->heads : 1};
    h.kv = opts->kv_heads != 0 ? opts->kv_heads : h.heads;
    mica_index all = h.heads + 2 * h.kv;
    h.features = all > 0 ? x->dim[2] / all : 0;
    return h;
}

static mica_status packed_infer_all(mica_infer *i, const mica_tensor *mask)
{
    const mica_tensor *x = i->in[0];
    if (x->dtype != MICA_F32 || x->rank != 3)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 [N, T, features]");
    head_shape h = shape_of(i->opts, x);
    if (h.heads < 1 || h.kv < 1 || h.heads % h.kv != 0)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT,
                               "%td heads share %td key/value heads: expected a divisor of the heads",
                               h.heads, h.kv);
    if (x->dim[2] % (h.heads + 2 * h.kv) != 0)
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "expected features that divide evenly among %td heads, got %td",
                               h.heads + 2 * h.kv, x->dim[2]);
    MICA_TRY(check_mask(i, mask, (mica_index[]){x->dim[0], h.heads, x->dim[1], x->dim[1]}));
    MICA_TRY(mica_infer_out(i, OUT, MICA_F32, 3, (mica_index[]){x->dim[0], x->dim[1], h.heads * h.features}));
    return mica_infer_out(i, LSE, MICA_F32, 3, (mica_index[]){x->dim[0], h.heads, x->dim[1]});
}

static mica_status packed_infer(mica_infer *i) { return packed_infer_all(i, i->in[1]); }

/* Heads from `first` on of t [N, T, ... D], as a view [N, count, T, D]. */
static mica_tensor heads_at(const mica_tensor *t, mica_index first, mica_index count, mica_index features)
{
    mica_tensor view = mica_4d(NULL, t->dim[0], count, t->dim[1], features);
    view.stride[0] = t->stride[0];
    view.stride[1] = features * t->stride[2];
    view.stride[2] = t->stride[1];
    view.stride[3] = t->stride[2];
    if (t->data != NULL)
        view.data = (float *)t->data + first * view.stride[1];
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

static mica_status packed_run(const mica_call *c)
{
    const mica_attention_packed_opts *opts = c->opts;
    head_shape h = shape_of(opts, c->in[0]);
    qkv_views x = views_of(c->in[0], &h);
    mica_tensor out = heads_at(c->out[OUT], 0, h.heads, h.features);
    return mica_attention(
        c->ctx, &out, &x.q, &x.k, &x.v,
        &(mica_attention_opts){
            .scale = opts->scale, .causal = opts->causal, .mask = c->in[1], .lse = c->out[LSE]});
}

enum { PACKED_DY, PACKED_X, PACKED_Y, PACKED_LSE, PACKED_MASK };

static mica_status packed_run_back(const mica_call *c)
{
    const mica_attention_packed_opts *opts = c->opts;
    head_shape h = shape_of(opts, c->in[PACKED_X]);
    qkv_views x = views_of(c->in[PACKED_X], &h), dx = views_of(c->out[0], &h);
    mica_tensor out = heads_at(c->in[PACKED_Y], 0, h.heads, h.features);
    mica_tensor dout = heads_at(c->in[PACKED_DY], 0, h.heads, h.features);
    return mica_attention_backward(
        c->ctx, &(mica_attention_grads){&dx.q, &dx.k, &dx.v}, &dout,
        &(mica_attention_saved){&x.q, &x.k, &x.v, &out, c->in[PACKED_LSE]},
        &(mica_attention_opts){.scale = opts->scale, .causal = opts->causal, .mask = c->in[PACKED_MASK]});
}

static const mica_field packed_fields[] = {
    MICA_FIELD(mica_attention_packed_opts, heads, INT, "query heads; 0: 1"),
    MICA_FIELD(mica_attention_packed_opts, kv_heads, INT, "key/value heads: a divisor of heads; 0: heads"),
    MICA_FIELD(mica_attention_packed_opts, causal, BOOL, "a token attends only to itself and earlier ones"),
    MICA_FIELD(mica_attention_packed_opts, scale, FLOAT, "scale of the scores; 0: 1 / sqrt(D)"),
};

static const mica_op packed_backward = {.name = "attention_packed_backward",
                                        .about = "the gradient of attention_packed",
                                        .ins = 4,
                                        .optional_ins = 1,
                                        .outs = 1,
                                        .names = (const char *const[]){"dy", "x", "y", "lse", "mask", "dx"},
                                        .opts_bytes = sizeof(mica_attention_packed_opts),
                                        MICA_FIELD_LIST(packed_fields),
                                        .run = packed_run_back};

static void packed_gradient(mica_grad *g)
{
    mica_value in[] = {g->dout[OUT], g->in[0], g->out[OUT], g->out[LSE], g->in[1]};
    if (g->dout[OUT] != 0)
        mica_grad_give(g, 0, &packed_backward, in, 5, g->opts);
}

static void packed_sample(mica_op_sample *s)
{
    mica_attention_packed_opts *opts = s->opts;
    opts->kv_heads = (int)mica_op_sample_int(s, 1, 2);
    opts->heads = opts->kv_heads * (int)mica_op_sample_int(s, 1, 2);
    opts->causal = mica_sample_chance(s);
    mica_index length = mica_op_sample_int(s, 1, 5);
    mica_op_sample_shape(s, 0, 3,
                         (mica_index[]){mica_op_sample_int(s, 1, 3), length,
                                        (opts->heads + 2 * opts->kv_heads) * mica_op_sample_int(s, 1, 4)});
    if (mica_sample_chance(s))
        sample_mask(s, 1, 2, (mica_index[]){length, length});
}

static bool packed_mixes(const mica_infer *i) { return mask_mixes(i, i->in[1]); }

const mica_op mica_op_attention_packed = {.name = "attention_packed",
                                          .family = "attention",
                                          .about = "attention over packed queries, keys and values",
                                          .ins = 1,
                                          .optional_ins = 1,
                                          .outs = 2,
                                          .optional_outs = 1u << LSE,
                                          .fixed_ins = 1u << 1,
                                          .fixed_outs = 1u << LSE,
                                          .names = (const char *const[]){"x", "mask", "y", "lse"},
                                          .opts_bytes = sizeof(mica_attention_packed_opts),
                                          MICA_FIELD_LIST(packed_fields),
                                          .infer = packed_infer,
                                          .run = packed_run,
                                          .gradient = MICA_GRADIENT(packed_gradient),
                                          .mixes = packed_mixes,
                                          .sample = MICA_SAMPLE(packed_sample)};

/* ---- The same, of a sequence that steps continue: keys and values of the tokens so far are kept ---- */

enum { CACHED_X, CACHED_ROWS };

static mica_status cached_infer(mica_infer *i)
{
    const mica_tensor *x = i->in[CACHED_X], *rows = i->in[CACHED_ROWS];
    MICA_TRY(packed_infer_all(i, NULL));
    head_shape h = shape_of(i->opts, x);
    if (rows->dtype != MICA_F32 || rows->rank != 3 || rows->dim[0] != x->dim[0] || rows->dim[1] < x->dim[1] ||
        rows->dim[2] != 2 * h.kv * h.features)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected a cache f32 [%td, at least %td, %td]", x->dim[0],
                               x->dim[1], 2 * h.kv * h.features);
    return MICA_OK;
}

/* Tokens `first` to `first + count - 1` of t [N, T, ...], from column `column` on. */
static mica_tensor tokens_at(const mica_tensor *t, mica_index first, mica_index count, mica_index column)
{
    mica_tensor view = *t;
    view.dim[1] = count;
    view.dim[2] = t->dim[2] - column;
    if (t->data != NULL)
        view.data = (float *)t->data + first * t->stride[1] + column * t->stride[2];
    return view;
}

static mica_status cached_run(const mica_call *c)
{
    const mica_attention_cached_opts *opts = c->opts;
    const mica_tensor *x = c->in[CACHED_X], *rows = c->in[CACHED_ROWS];
    head_shape h = shape_of(&opts->packed, x);
    mica_index first = 0, count = x->dim[1];
    MICA_TRY(mica_call_position(c, &first, opts->position));
    if (first < 0 || first > rows->dim[1] - count)
        return mica_fail(c->ctx, MICA_ERR_SHAPE, "%s: %td tokens behind %td, but the cache holds %td",
                         c->op->name, count, first, rows->dim[1]);
    mica_index all = mica_call_measuring(c) ? rows->dim[1] : first + count;
    mica_tensor fresh = tokens_at(x, 0, count, h.heads * h.features),
                place = tokens_at(rows, first, count, 0);
    mica_tensor seen = tokens_at(rows, 0, all, 0);
    MICA_TRY(mica_copy(c->ctx, &place, &fresh));
    mica_tensor q = heads_at(x, 0, h.heads, h.features), k = heads_at(&seen, 0, h.kv, h.features),
                v = heads_at(&seen, h.kv, h.kv, h.features),
                out = heads_at(c->out[OUT], 0, h.heads, h.features);
    return mica_attention(
        c->ctx, &out, &q, &k, &v,
        &(mica_attention_opts){.scale = opts->packed.scale, .causal = true, .lse = c->out[LSE]});
}

#define PACKED_FIELD(member, kind, about)                                                         \
    {                                                                                             \
#member, about, offsetof(mica_attention_cached_opts, packed.member), MICA_FIELD_##kind, 0 \
    }
static const mica_field cached_fields[] = {
    PACKED_FIELD(heads, INT, "query heads; 0: 1"),
    PACKED_FIELD(kv_heads, INT, "key/value heads: a divisor of heads; 0: heads"),
    PACKED_FIELD(scale, FLOAT, "scale of the scores; 0: 1 / sqrt(D)"),
    MICA_FIELD(mica_attention_cached_opts, position, INT,
               "1 + the step size that is the number of tokens before; 0: 0"),
};

const mica_op mica_op_attention_cached = {
    .name = "attention_cached",
    .family = "attention",
    .about = "causal attention_packed of tokens that follow those in a cache",
    .ins = 2,
    .outs = 2,
    .optional_outs = 1u << LSE,
    .fixed_ins = 1u << CACHED_X,
    .fixed_outs = 1u << LSE,
    .writes = 1u << CACHED_ROWS,
    .names = (const char *const[]){"x", "cache", "y", "lse"},
    .opts_bytes = sizeof(mica_attention_cached_opts),
    MICA_FIELD_LIST(cached_fields),
    .infer = cached_infer,
    .run = cached_run};
