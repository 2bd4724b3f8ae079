/* Attention and rotary positions. Mica's own attention runs where it can; where scores are read, capped, or values have
 * another width than keys, it is two products and a softmax. */
#include <math.h>
#include <string.h>

#include "onnx/compose.h"

enum { Q, K, V };
enum { RAW, MASKED, CAPPED, WEIGHTS }; /* what qk_matmul_output is, by its mode */

/* Queries [B, heads, queries, width], keys [B, kv, keys, width] and values [B, kv, keys, value_width]. */
typedef struct attending {
    mica_onnx_ref q, k, v;
    mica_index batch, heads, kv, queries, keys, width, value_width;
    mica_index past;    /* of the keys, those that came before */
    mica_onnx_ref keep; /* u8, 0 hides a key; broadcasts to the scores [B, heads, queries, keys]; 0: none */
    mica_onnx_ref bias; /* f32, added to the scores, the same */
    float scale, cap;   /* 0: 1 / sqrt(width); 0: none */
    bool causal;
    bool wants_scores;
    int mode;             /* of the scores */
    mica_onnx_ref scores; /* as wanted */
} attending;

/* ---- Inputs ---- */

/* [B, T, heads width] as [B, heads, T, width]; with four axes it is that already. */
static mica_onnx_ref split_heads(mica_onnx_importing *n, mica_onnx_ref ref, int64_t heads)
{
    mica_tensor t = *mica_onnx_shape(n, ref);
    if (t.rank == 4 || n->failed)
        return ref;
    if (t.rank != 3 || heads < 1 || t.dim[2] % heads != 0)
        return mica_onnx_bad(n, "%lld heads of %s", (long long)heads, MICA_SHAPE(&t));
    ref = mica_onnx_reshape(
        n, ref, 4, (mica_index[]){t.dim[0], t.dim[1], (mica_index)heads, t.dim[2] / (mica_index)heads});
    return mica_onnx_permute(n, ref, (int[]){0, 2, 1, 3});
}

static mica_onnx_ref merge_heads(mica_onnx_importing *n, mica_onnx_ref ref)
{
    ref = mica_onnx_permute(n, ref, (int[]){0, 2, 1, 3});
    mica_tensor t = *mica_onnx_shape(n, ref);
    return n->failed ? 0
                     : mica_onnx_reshape(n, ref, 3, (mica_index[]){t.dim[0], t.dim[1], t.dim[2] * t.dim[3]});
}

static mica_onnx_ref behind(mica_onnx_importing *n, mica_onnx_ref past, mica_onnx_ref ref)
{
    return past != 0 ? mica_onnx_join(n, (mica_onnx_ref[]){past, ref}, 2, 2) : ref;
}

static bool read_sizes(mica_onnx_importing *n, attending *a)
{
    mica_tensor q = *mica_onnx_shape(n, a->q), k = *mica_onnx_shape(n, a->k), v = *mica_onnx_shape(n, a->v);
    if (n->failed)
        return false;
    a->batch = q.dim[0], a->heads = q.dim[1], a->queries = q.dim[2], a->width = q.dim[3];
    a->kv = k.dim[1], a->keys = k.dim[2], a->value_width = v.dim[3];
    bool fits = q.rank == 4 && k.rank == 4 && v.rank == 4 && k.dim[0] == a->batch && v.dim[0] == a->batch &&
                v.dim[1] == a->kv && v.dim[2] == a->keys && k.dim[3] == a->width && a->kv > 0 &&
                a->heads % a->kv == 0;
    if (!fits)
        (void)mica_onnx_bad(n, "queries %s, keys %s, values %s", MICA_SHAPE(&q), MICA_SHAPE(&k),
                            MICA_SHAPE(&v));
    return fits;
}

/* ---- Masks ---- */

static mica_onnx_ref minus_infinity(mica_onnx_importing *n)
{
    return mica_onnx_scalar(n, MICA_F32, -INFINITY);
}

/* What is hidden, as what is added: -infinity. */
static mica_onnx_ref as_bias(mica_onnx_importing *n, mica_onnx_ref keep)
{
    return mica_onnx_choose(n, keep, mica_onnx_scalar(n, MICA_F32, 0.0), minus_infinity(n));
}

static void add_bias(mica_onnx_importing *n, attending *a, mica_onnx_ref bias)
{
    a->bias = a->bias != 0 ? mica_onnx_add(n, a->bias, bias) : bias;
}

/* A mask that ends before the keys do hides those behind its end. */
static mica_onnx_ref pad_mask(mica_onnx_importing *n, const attending *a, mica_onnx_ref mask, double value)
{
    mica_tensor t = *mica_onnx_shape(n, mask);
    if (t.rank < 1 || n->opset < 24 || t.dim[t.rank - 1] >= a->keys)
        return mask;
    mica_make_opts opts = {.rank = t.rank, .dtype = t.dtype, .value = value};
    memcpy(opts.dims, t.dim, sizeof opts.dims);
    opts.dims[t.rank - 1] = a->keys - t.dim[t.rank - 1];
    mica_onnx_ref rest = mica_onnx_op(n, "fill", NULL, 0, &opts);
    return mica_onnx_join(n, (mica_onnx_ref[]){mask, rest}, 2, t.rank - 1);
}

static bool is_float(mica_dtype dtype)
{
    return dtype == MICA_F32 || dtype == MICA_F16 || dtype == MICA_BF16 || dtype == MICA_F64;
}

static void read_mask(mica_onnx_importing *n, attending *a, mica_onnx_ref mask)
{
    if (mask == 0)
        return;
    if (is_float(mica_onnx_shape(n, mask)->dtype))
        a->bias = pad_mask(n, a, mica_onnx_cast(n, mask, MICA_F32), -INFINITY);
    else
        a->keep = pad_mask(n, a, mica_onnx_cast(n, mask, MICA_U8), 0.0);
}

/* Keys of sequence b from lengths[b] on are padding. */
static void read_lengths(mica_onnx_importing *n, attending *a, mica_onnx_ref lengths)
{
    if (lengths == 0)
        return;
    mica_make_opts places = {.rank = 1, .dims = {a->keys}, .dtype = MICA_F32};
    mica_onnx_ref each = mica_onnx_reshape(n, mica_onnx_cast(n, lengths, MICA_F32), 4,
                                           (mica_index[]){a->batch, 1, 1, 1});
    mica_onnx_ref within = mica_onnx_op2(n, "lt", mica_onnx_op(n, "range", NULL, 0, &places), each,
                                         &(mica_compare_opts){.mask = true});
    if (a->keep == 0)
        a->keep = within;
    else
        add_bias(n, a, as_bias(n, within));
}

/* Query i sees the keys before it and itself: 0 to past + i. As numbers [queries, keys]. */
static mica_onnx_ref causal_bias(mica_onnx_importing *n, const attending *a)
{
    mica_make_opts rows = {.rank = 1, .dims = {a->queries}, .dtype = MICA_F32, .start = (double)a->past};
    mica_make_opts columns = {.rank = 1, .dims = {a->keys}, .dtype = MICA_F32};
    mica_onnx_ref row = mica_onnx_reshape(n, mica_onnx_op(n, "range", NULL, 0, &rows), 2,
                                          (mica_index[]){a->queries, 1});
    mica_onnx_ref column = mica_onnx_op(n, "range", NULL, 0, &columns);
    return as_bias(n, mica_onnx_op2(n, "le", column, row, NULL));
}

/* ---- Scores ---- */

/* Mica's own masks have no gradient, and there is one of them. Its causal queries end where the keys end. */
static bool has_own(mica_onnx_importing *n, const attending *a)
{
    bool learned = a->bias != 0 && mica_onnx_may_train(n) && !mica_onnx_is_known(n, a->bias);
    return !a->wants_scores && a->cap == 0.0f && a->width == a->value_width && !learned &&
           (a->bias == 0 || a->keep == 0) && (!a->causal || a->keys - a->queries == a->past);
}

/* [B, kv, T, D] so that it meets [B, kv, heads / kv, T, D]. */
static mica_onnx_ref for_groups(mica_onnx_importing *n, const attending *a, mica_onnx_ref ref)
{
    return a->kv == a->heads ? ref : mica_onnx_add_axis(n, ref, 2);
}

static mica_onnx_ref in_groups(mica_onnx_importing *n, const attending *a, mica_onnx_ref ref,
                               mica_index width)
{
    if (a->kv == a->heads)
        return ref;
    return mica_onnx_reshape(n, ref, 5, (mica_index[]){a->batch, a->kv, a->heads / a->kv, a->queries, width});
}

static mica_onnx_ref from_groups(mica_onnx_importing *n, const attending *a, mica_onnx_ref ref,
                                 mica_index width)
{
    if (a->kv == a->heads)
        return ref;
    return mica_onnx_reshape(n, ref, 4, (mica_index[]){a->batch, a->heads, a->queries, width});
}

static void note(attending *a, int mode, mica_onnx_ref scores)
{
    if (a->mode == mode)
        a->scores = scores;
}

static mica_onnx_ref by_parts(mica_onnx_importing *n, attending *a)
{
    mica_matmul_opts product = {.transpose_b = true,
                                .alpha = a->scale != 0.0f ? a->scale : 1.0f / sqrtf((float)a->width)};
    mica_onnx_ref scores = mica_onnx_op2(n, "matmul", in_groups(n, a, a->q, a->width), for_groups(n, a, a->k),
                                         &product);
    scores = from_groups(n, a, scores, a->keys);
    note(a, RAW, scores);
    if (a->keep != 0)
        add_bias(n, a, as_bias(n, a->keep));
    if (a->causal)
        add_bias(n, a, causal_bias(n, a));
    scores = a->bias != 0 ? mica_onnx_add(n, scores, a->bias) : scores;
    note(a, MASKED, scores);
    if (a->cap > 0.0f) {
        scores = mica_onnx_op1(n, "tanh", mica_onnx_scale(n, scores, 1.0f / a->cap), NULL);
        scores = mica_onnx_scale(n, scores, a->cap);
    }
    note(a, CAPPED, scores);
    scores = mica_onnx_op1(n, "softmax", scores, &(mica_axis_opts){-1});
    note(a, WEIGHTS, scores);
    mica_onnx_ref y = mica_onnx_op2(n, "matmul", in_groups(n, a, scores, a->keys), for_groups(n, a, a->v),
                                    NULL);
    return from_groups(n, a, y, a->value_width);
}

static mica_onnx_ref attend(mica_onnx_importing *n, attending *a)
{
    if (a->causal && a->keys - a->queries != a->past) {
        add_bias(n, a, causal_bias(n, a));
        a->causal = false;
    }
    if (a->bias != 0 && a->keep != 0) {
        add_bias(n, a, as_bias(n, a->keep));
        a->keep = 0;
    }
    if (!has_own(n, a))
        return by_parts(n, a);
    mica_attention_opts opts = {.scale = a->scale, .causal = a->causal};
    mica_onnx_ref in[] = {a->q, a->k, a->v, a->bias != 0 ? a->bias : a->keep};
    return mica_onnx_op(n, "attention", in, 4, &opts);
}

/* ---- Attention ---- */

static void attention(mica_onnx_importing *n)
{
    enum { MASK = 3, PAST_KEY, PAST_VALUE, LENGTHS };
    attending a = {.scale = mica_onnx_float(n, "scale", 0.0f),
                   .cap = mica_onnx_float(n, "softcap", 0.0f),
                   .causal = mica_onnx_int(n, "is_causal", 0) != 0,
                   .wants_scores = mica_onnx_wants(n, 3),
                   .mode = (int)mica_onnx_int(n, "qk_matmul_output_mode", 0)};
    int64_t heads = mica_onnx_int(n, "q_num_heads", 0), kv = mica_onnx_int(n, "kv_num_heads", 0);
    bool flat = mica_onnx_shape(n, n->in[Q])->rank == 3;
    if (n->ins < 3) {
        (void)mica_onnx_bad(n, "%d inputs, expected at least 3", n->ins);
        return;
    }
    a.q = split_heads(n, mica_onnx_f32(n, Q), heads);
    a.k = behind(n, mica_onnx_f32(n, PAST_KEY), split_heads(n, mica_onnx_f32(n, K), kv));
    a.v = behind(n, mica_onnx_f32(n, PAST_VALUE), split_heads(n, mica_onnx_f32(n, V), kv));
    if (n->ins > PAST_KEY && n->in[PAST_KEY] != 0)
        a.past = mica_onnx_shape(n, n->in[PAST_KEY])->dim[2];
    if (!read_sizes(n, &a))
        return;
    read_mask(n, &a, n->ins > MASK ? n->in[MASK] : 0);
    read_lengths(n, &a, n->ins > LENGTHS ? n->in[LENGTHS] : 0);
    mica_onnx_ref y = attend(n, &a);
    mica_onnx_give_like(n, 0, flat ? merge_heads(n, y) : y, n->in[Q]);
    if (mica_onnx_wants(n, 1))
        mica_onnx_give_like(n, 1, a.k, n->in[K]);
    if (mica_onnx_wants(n, 2))
        mica_onnx_give_like(n, 2, a.v, n->in[V]);
    if (mica_onnx_wants(n, 3))
        mica_onnx_give_like(n, 3, a.scores, n->in[Q]);
}

/* Part `number` of three that lie side by side in a bias, for queries, keys or values. */
static mica_onnx_ref with_bias(mica_onnx_importing *n, mica_onnx_ref ref, mica_onnx_ref bias,
                               mica_index start)
{
    if (bias == 0)
        return ref;
    mica_tensor t = *mica_onnx_shape(n, ref);
    if (t.rank != 3)
        return mica_onnx_unsupported(n, "a bias, where keys and values have heads already");
    return mica_onnx_add(n, ref, mica_onnx_part(n, bias, 0, start, start + t.dim[2]));
}

/* 1 keeps a key [B, keys]; what is hidden gets a large negative number, not infinity. */
static void read_padding(mica_onnx_importing *n, attending *a, mica_onnx_ref mask)
{
    if (mask == 0)
        return;
    if (!mica_onnx_has_shape(n, mask, 2, (mica_index[]){a->batch, a->keys})) {
        (void)mica_onnx_unsupported(n, "a key_padding_mask that is not [batch, keys]");
        return;
    }
    float hidden = mica_onnx_float(n, "mask_filter_value", -10000.0f);
    mask = mica_onnx_reshape(n, mica_onnx_cast(n, mask, MICA_F32), 4,
                             (mica_index[]){a->batch, 1, 1, a->keys});
    add_bias(n, a, mica_onnx_scale(n, mica_onnx_minus_from(n, mask, 1.0f), hidden));
}

static void multi_head_attention(mica_onnx_importing *n)
{
    enum { BIAS = 3, PADDING, ATTENTION_BIAS, PAST_KEY, PAST_VALUE };
    attending a = {.scale = mica_onnx_float(n, "scale", 0.0f),
                   .causal = mica_onnx_int(n, "unidirectional", 0) != 0};
    int64_t heads = mica_onnx_int(n, "num_heads", 0);
    if (n->ins < 3 || n->in[K] == 0 || n->in[V] == 0 || n->ins > PAST_VALUE + 1) {
        (void)mica_onnx_unsupported(n, "packed queries, keys and values, or caches in place");
        return;
    }
    mica_onnx_ref bias = mica_onnx_f32(n, BIAS), q = mica_onnx_f32(n, Q), k = mica_onnx_f32(n, K),
                  v = mica_onnx_f32(n, V);
    mica_index width = mica_onnx_shape(n, q)->dim[2];
    a.q = split_heads(n, with_bias(n, q, bias, 0), heads);
    a.k = split_heads(n, with_bias(n, k, bias, width), heads);
    a.v = split_heads(n, with_bias(n, v, bias, 2 * width), heads);
    a.k = behind(n, mica_onnx_f32(n, PAST_KEY), a.k);
    a.v = behind(n, mica_onnx_f32(n, PAST_VALUE), a.v);
    if (n->ins > PAST_KEY && n->in[PAST_KEY] != 0)
        a.past = mica_onnx_shape(n, n->in[PAST_KEY])->dim[2];
    if (!read_sizes(n, &a))
        return;
    read_mask(n, &a, n->ins > ATTENTION_BIAS ? n->in[ATTENTION_BIAS] : 0);
    read_padding(n, &a, n->ins > PADDING ? n->in[PADDING] : 0);
    mica_onnx_give_like(n, 0, merge_heads(n, attend(n, &a)), n->in[Q]);
    if (mica_onnx_wants(n, 1))
        mica_onnx_give_like(n, 1, a.k, n->in[K]);
    if (mica_onnx_wants(n, 2))
        mica_onnx_give_like(n, 2, a.v, n->in[V]);
}

/* ---- Rotary positions ---- */

/* Rows of a table for each position [B, T, R / 2], with an axis for the heads. */
static mica_onnx_ref angles(mica_onnx_importing *n, mica_onnx_ref table, mica_onnx_ref ids, int heads_axis)
{
    table = ids != 0 ? mica_onnx_op2(n, "take", table, ids, &(mica_axis_opts){0}) : table;
    return mica_onnx_add_axis(n, table, heads_axis);
}

static mica_onnx_ref every_second(mica_onnx_importing *n, mica_onnx_ref ref, int axis, mica_index start)
{
    return mica_onnx_op1(n, "slice", ref, &(mica_slice_range_opts){.axis = axis, .start = start, .step = 2});
}

/* Pairs (a, b) of the last axis, of four, turned: (a cos - b sin, a sin + b cos). */
static mica_onnx_ref turned(mica_onnx_importing *n, mica_onnx_ref x, mica_onnx_ref cosine, mica_onnx_ref sine,
                            bool interleaved)
{
    mica_tensor t = *mica_onnx_shape(n, x);
    mica_index half = t.dim[3] / 2;
    mica_onnx_ref a = interleaved ? every_second(n, x, 3, 0) : mica_onnx_part(n, x, 3, 0, half);
    mica_onnx_ref b = interleaved ? every_second(n, x, 3, 1) : mica_onnx_part(n, x, 3, half, 2 * half);
    mica_onnx_ref parts[] = {mica_onnx_sub(n, mica_onnx_mul(n, a, cosine), mica_onnx_mul(n, b, sine)),
                             mica_onnx_add(n, mica_onnx_mul(n, a, sine), mica_onnx_mul(n, b, cosine))};
    if (!interleaved)
        return mica_onnx_join(n, parts, 2, 3);
    for (int i = 0; i < 2; i++)
        parts[i] = mica_onnx_add_axis(n, parts[i], 4);
    return mica_onnx_reshape(n, mica_onnx_join(n, parts, 2, 4), 4, t.dim);
}

static void rotate(mica_onnx_importing *n, int cosines, int sines, int positions)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0), ids = positions < n->ins ? n->in[positions] : 0;
    mica_tensor shape = *mica_onnx_shape(n, x);
    int64_t heads = mica_onnx_int(n, "num_heads", 0);
    bool flat = shape.rank == 3, interleaved = mica_onnx_int(n, "interleaved", 0) != 0;
    if (flat && (heads < 1 || shape.dim[2] % heads != 0)) {
        (void)mica_onnx_bad(n, "%lld heads of %s", (long long)heads, MICA_SHAPE(&shape));
        return;
    }
    if (flat)
        x = mica_onnx_reshape(
            n, x, 4,
            (mica_index[]){shape.dim[0], shape.dim[1], (mica_index)heads, shape.dim[2] / (mica_index)heads});
    mica_index width = mica_onnx_shape(n, x)->dim[3],
               part = (mica_index)mica_onnx_int(n, "rotary_embedding_dim", 0);
    part = part > 0 ? part : width;
    if (part > width || part % 2 != 0 || mica_onnx_shape(n, x)->rank != 4) {
        (void)mica_onnx_bad(n, "%td of %td features of %s are to be turned", part, width, MICA_SHAPE(&shape));
        return;
    }
    mica_onnx_ref cosine = angles(n, mica_onnx_f32(n, cosines), ids, flat ? 2 : 1);
    mica_onnx_ref sine = angles(n, mica_onnx_f32(n, sines), ids, flat ? 2 : 1);
    mica_onnx_ref y = turned(n, mica_onnx_part(n, x, 3, 0, part), cosine, sine, interleaved);
    if (part < width)
        y = mica_onnx_join(n, (mica_onnx_ref[]){y, mica_onnx_part(n, x, 3, part, width)}, 2, 3);
    mica_onnx_give_like(n, 0, flat ? mica_onnx_reshape(n, y, 3, shape.dim) : y, n->in[0]);
}

static void rotary_embedding(mica_onnx_importing *n) { rotate(n, 1, 2, 3); }

const mica_onnx_operator mica_onnx_attention_operators[] = {
    {"Attention", 23, attention},
    {"RotaryEmbedding", 23, rotary_embedding},
    {"com.microsoft:MultiHeadAttention", 1, multi_head_attention},
    {NULL, 0, NULL}};
