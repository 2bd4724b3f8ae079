/* A text model as a net over rows of tokens.
 *
 *     tokens [T] ─ embedding ─┬─ norm ─ q, k, v ─ rotary ─ attention ─ out ─┬─ norm ─ feed-forward ─┬─ ... ─ head
 *                             └──────────────────────────────────────── add ┴────────────────── add ┘
 *
 * Which norms a layer must have is the architecture's; what else it has is seen from the tensors that are there:
 * biases, further norms, a gate. Only the rows whose logits are wanted go through the end of the last layer and the
 * head. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <mica/layers.h>

#include "base/format.h"
#include "node/entry.h"
#include "tensor/tensor.h"
#include "text/model.h"

typedef struct building {
    const mica_model *model;
    mica_net *net;
    const mica_text_net_opts *opts;
    mica_index layer; /* that is being built; -1: none */
    mica_value tokens, positions, sequence, place, rows, table, first;
    mica_value angles, local_angles; /* of RoPE: for layers that see all, and for those with a window */
    mica_value embedding;            /* the table of tokens, which the head may be, too */
} building;

/* ---- Weights ---- */

#define NAME_BYTES 96

/* "blk.3.attn_q.weight", or "output_norm.weight" outside of the layers. */
static void full_name(const building *b, char *name, const char *part, const char *kind)
{
    if (b->layer >= 0)
        mica_format(name, NAME_BYTES, "blk.%td.%s%s", b->layer, part, kind);
    else
        mica_format(name, NAME_BYTES, "%s%s", part, kind);
}

static bool find(const building *b, mica_tensor *out, const char *part, const char *kind)
{
    char name[NAME_BYTES];
    full_name(b, name, part, kind);
    return mica_source_tensor(&b->model->source, out, name);
}

static bool has(const building *b, const char *part)
{
    mica_tensor t;
    return find(b, &t, part, ".weight");
}

/* Fails the build: a tensor is missing or of the wrong shape. */
static mica_value refuse(const building *b, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static mica_value refuse(const building *b, const char *name, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    mica_vformat(text, sizeof text, format, args);
    va_end(args);
    return mica_net_refuse(b->net, MICA_ERR_FORMAT, "%s: tensor \"%s\" %s", b->model->source.path, name,
                           text);
}

/* What a weight is made from when the net is bound: a copy that lies in order, of this dtype. */
static mica_value derived_copy(const building *b, mica_value from, const char *name, const mica_tensor *t,
                               mica_dtype dtype)
{
    char made[NAME_BYTES + 8];
    mica_format(made, sizeof made, "%s.copy", name);
    return mica_net_derived(b->net, made, dtype, t->rank, t->dim, &mica_op_copy, &from, 1,
                            &(mica_copy_opts){.cast = true, .dtype = dtype});
}

/* Elements first to first + size - 1 of a vector of `total`, as f32: of a norm, or a bias. 0: there is none. */
static mica_value vector_part(const building *b, const char *part, const char *kind, mica_index first,
                              mica_index size, mica_index total)
{
    char name[NAME_BYTES];
    mica_tensor t;
    full_name(b, name, part, kind);
    if (!find(b, &t, part, kind))
        return 0;
    if (t.rank != 1 || t.dim[0] != total)
        return refuse(b, name, "is %s: expected [%td]", MICA_SHAPE(&t), total);
    if (mica_in_blocks(t.dtype))
        return refuse(b, name, "is %s: expected floating-point numbers", mica_dtype_name(t.dtype));
    t.data = (char *)t.data + (size_t)first * mica_dtype_bytes(t.dtype);
    t.dim[0] = size;
    if (first > 0)
        mica_format(name + strlen(name), sizeof name - strlen(name), "[%td]", first);
    mica_value lent = mica_net_lent(b->net, name, &t);
    return t.dtype == MICA_F32 ? lent : derived_copy(b, lent, name, &t, MICA_F32);
}

static mica_value vector(const building *b, const char *part, const char *kind, mica_index size)
{
    return vector_part(b, part, kind, 0, size, size);
}

/* Rows first to first + rows - 1 of a matrix of `total` rows, each of `columns`. */
static mica_value matrix(const building *b, const char *part, mica_index first, mica_index rows,
                         mica_index total, mica_index columns)
{
    char name[NAME_BYTES];
    mica_tensor t;
    full_name(b, name, part, ".weight");
    if (!find(b, &t, part, ".weight"))
        return refuse(b, name, "is missing");
    if (t.rank != 2 || t.dim[0] != total || t.dim[1] != columns)
        return refuse(b, name, "is %s: expected [%td, %td]", MICA_SHAPE(&t), total, columns);
    if (rows != total) {
        if (mica_view_slice(b->model->ctx, &t, &t, 0, first, first + rows, 1) != MICA_OK)
            return refuse(b, name, "cannot be cut into rows");
        mica_format(name + strlen(name), sizeof name - strlen(name), "[%td]", first);
    }
    mica_value lent = mica_net_lent(b->net, name, &t);
    return t.stride[1] == 1 ? lent : derived_copy(b, lent, name, &t, t.dtype);
}

/* ---- Layers ---- */

static mica_value call(const building *b, const char *part, const char *op, const mica_value *in, int count,
                       const void *opts)
{
    char name[NAME_BYTES];
    full_name(b, name, part, "");
    return mica_net_op(b->net, name, op, in, count, opts);
}

/* x times rows of a matrix, plus their part of the bias, if there is one. */
static mica_value linear_part(const building *b, mica_value x, const char *label, const char *part,
                              mica_index first, mica_index rows, mica_index total, mica_index columns)
{
    mica_value in[] = {x, matrix(b, part, first, rows, total, columns),
                       vector_part(b, part, ".bias", first, rows, total)};
    if (in[2] == 0 && strcmp(label, part) != 0) /* one matrix may have biases apart */
        in[2] = vector(b, label, ".bias", rows);
    return call(b, label, "linear_rows", in, 3, NULL);
}

static mica_value linear(const building *b, mica_value x, const char *part, mica_index rows,
                         mica_index columns)
{
    return linear_part(b, x, part, part, 0, rows, rows, columns);
}

static mica_value norm(const building *b, mica_value x, const char *part, mica_index size)
{
    char name[NAME_BYTES];
    full_name(b, name, part, ".weight");
    mica_value in[] = {x, has(b, part) ? vector(b, part, ".weight", size) : refuse(b, name, "is missing"), 0};
    mica_norm_opts opts = {.eps = b->model->eps};
    if (!b->model->architecture->layer_norm)
        return call(b, part, "rms_norm", in, 2, &opts);
    in[2] = vector(b, part, ".bias", size);
    return call(b, part, "layer_norm", in, 3, &opts);
}

/* The same where the architecture has it, or the file does. */
static mica_value norm_if(const building *b, mica_value x, const char *part, mica_index size, bool required)
{
    return required || has(b, part) ? norm(b, x, part, size) : x;
}

static mica_value add(const building *b, const char *name, mica_value x, mica_value change)
{
    return call(b, name, "add", (mica_value[]){change, x}, 2, NULL);
}

/* The norm of each head on its own. */
static mica_value head_norm(const building *b, mica_value x, const char *part, mica_index heads)
{
    mica_index width = b->model->info.head_width;
    char apart[48], joined[48];
    mica_format(apart, sizeof apart, "%s.heads", part);
    mica_format(joined, sizeof joined, "%s.joined", part);
    x = call(b, apart, "reshape", &x, 1, &(mica_shape_opts){.rank = 3, .dims = {0, heads, width}});
    x = norm(b, x, part, width);
    return call(b, joined, "reshape", &x, 1, &(mica_shape_opts){.rank = 2, .dims = {0, heads * width}});
}

static mica_value turn(const building *b, mica_value x, const char *part, mica_index heads, mica_value angles)
{
    if (angles == 0)
        return x;
    return call(
        b, part, "rotary_rows", (mica_value[]){x, angles}, 2,
        &(mica_rotary_rows_opts){.heads = (int)heads, .interleaved = b->model->rope_kind == MICA_ROPE_PAIRS});
}

static mica_value cache(const building *b, const char *part, const mica_cached_attention_opts *opts,
                        bool values)
{
    char name[NAME_BYTES];
    full_name(b, name, part, "");
    mica_index dims[] = {b->opts->pages, (mica_index)mica_cache_page_bytes(opts, values)};
    return mica_net_kept(b->net, name, MICA_KEPT_PRIVATE, MICA_U8, 2, dims, 0.0f);
}

/* Queries, keys and values, from three matrices or from one that has them one below the other. */
static void project(const building *b, mica_value x, mica_value *q, mica_value *k, mica_value *v)
{
    const mica_model_info *info = &b->model->info;
    mica_index queries = info->heads * info->head_width, keys = info->kv_heads * info->head_width;
    mica_index values = info->kv_heads * info->value_width, total = queries + keys + values;
    bool joined = has(b, "attn_qkv");
    const char *from = "attn_qkv";
    *q = linear_part(b, x, "attn_q", joined ? from : "attn_q", 0, queries, joined ? total : queries,
                     info->width);
    *k = linear_part(b, x, "attn_k", joined ? from : "attn_k", joined ? queries : 0, keys,
                     joined ? total : keys, info->width);
    *v = linear_part(b, x, "attn_v", joined ? from : "attn_v", joined ? queries + keys : 0, values,
                     joined ? total : values, info->width);
}

static mica_value attention(const building *b, mica_value x)
{
    const mica_model *model = b->model;
    const mica_model_info *info = &model->info;
    mica_index window = mica_model_window(model, b->layer);
    mica_value angles = window > 0 && b->local_angles != 0 ? b->local_angles : b->angles, q, k, v;
    project(b, x, &q, &k, &v);
    if (model->architecture->head_norms || has(b, "attn_q_norm"))
        q = head_norm(b, q, "attn_q_norm", info->heads);
    if (model->architecture->head_norms || has(b, "attn_k_norm"))
        k = head_norm(b, k, "attn_k_norm", info->kv_heads);
    q = turn(b, q, "attn_q_rope", info->heads, angles);
    k = turn(b, k, "attn_k_rope", info->kv_heads, angles);
    mica_cached_attention_opts opts = {.heads = (int)info->heads,
                                       .kv_heads = (int)info->kv_heads,
                                       .width = info->head_width,
                                       .value_width = info->value_width,
                                       .type = (int)b->opts->cache,
                                       .scale = model->attention_scale,
                                       .cap = model->attention_cap,
                                       .window = window,
                                       .both_ways = info->embeds};
    mica_value keys = cache(b, "cache_k", &opts, false), values = cache(b, "cache_v", &opts, true);
    return call(b, "attn", "cached_attention",
                (mica_value[]){q, k, v, keys, values, b->table, b->first, b->sequence, b->place}, 9, &opts);
}

static mica_value feed_forward(const building *b, mica_value x)
{
    const mica_model_info *info = &b->model->info;
    mica_tensor up;
    mica_value h;
    bool gate_within = find(b, &up, "ffn_up", ".weight") && up.rank == 2 && up.dim[0] == 2 * info->hidden;
    mica_gate_opts gate = {.activation = b->model->architecture->activation};
    if (has(b, "ffn_gate")) {
        mica_value a = linear(b, x, "ffn_gate", info->hidden, info->width);
        h = linear(b, x, "ffn_up", info->hidden, info->width);
        h = call(b, "ffn_act", "gate", (mica_value[]){a, h}, 2, &gate);
    } else if (gate_within) {
        mica_value a = linear_part(b, x, "ffn_gate", "ffn_up", 0, info->hidden, 2 * info->hidden,
                                   info->width);
        h = linear_part(b, x, "ffn_up", "ffn_up", info->hidden, info->hidden, 2 * info->hidden, info->width);
        h = call(b, "ffn_act", "gate", (mica_value[]){a, h}, 2, &gate);
    } else {
        h = linear(b, x, "ffn_up", info->hidden, info->width);
        char name[NAME_BYTES];
        full_name(b, name, "ffn_act", "");
        h = mica_net_call(b->net, name, mica_activation_ops[b->model->architecture->activation], &h, 1, NULL);
    }
    return linear(b, h, "ffn_down", info->width, info->hidden);
}

/* The rows whose logits are wanted. */
static mica_value wanted_rows(const building *b, mica_value x, const char *name)
{
    return call(b, name, "take", (mica_value[]){x, b->rows}, 2, &(mica_axis_opts){0});
}

static mica_value block(const building *b, mica_value x)
{
    const mica_model_info *info = &b->model->info;
    const mica_architecture *a = b->model->architecture;
    mica_index width = info->width, values = info->heads * info->value_width;
    bool last = b->layer == info->layers - 1 && !info->embeds;
    mica_value y = attention(b, norm_if(b, x, "attn_norm", width, !a->norms_last));
    if (last) {
        y = wanted_rows(b, y, "attn_rows");
        x = wanted_rows(b, x, "rows");
    }
    y = linear(b, y, "attn_output", width, values);
    y = norm_if(b, y, "post_attention_norm", width, a->part_norms);
    x = add(b, "attn_add", x, y);
    x = norm_if(b, x, "attn_output_norm", width, a->norms_last);
    y = feed_forward(b, norm_if(b, x, "ffn_norm", width, !a->norms_last));
    y = norm_if(b, y, "post_ffw_norm", width, a->part_norms);
    x = add(b, "ffn_add", x, y);
    return norm_if(b, x, "layer_output_norm", width, a->norms_last);
}

/* ---- Beginning and end ---- */

static void inputs(building *b)
{
    mica_net *net = b->net;
    mica_index rows = mica_net_size(net, "batch", b->opts->chunk);
    b->tokens = mica_net_input(net, MICA_TEXT_TOKENS, MICA_I32, 1, &rows);
    b->positions = mica_net_input(net, MICA_TEXT_POSITIONS, MICA_I32, 1, &rows);
    b->sequence = mica_net_input(net, MICA_TEXT_SEQUENCE, MICA_I32, 1, &rows);
    b->place = mica_net_input(net, MICA_TEXT_PLACE, MICA_I32, 1, &rows);
    if (!b->model->info.embeds) {
        mica_index outputs = mica_net_size(net, MICA_TEXT_OUTPUTS, b->opts->logits);
        b->rows = mica_net_input(net, MICA_TEXT_ROWS, MICA_I32, 1, &outputs);
    }
    b->table = mica_net_kept(net, MICA_TEXT_TABLE, MICA_KEPT_PRIVATE, MICA_I32, 2,
                             (mica_index[]){b->opts->sequences, b->opts->pages_each}, 0.0f);
    b->first = mica_net_kept(net, MICA_TEXT_FIRST, MICA_KEPT_PRIVATE, MICA_I32, 1, &b->opts->sequences, 0.0f);
}

/* The angles of this step's rows, for all layers that turn alike. */
static mica_value turning(const building *b, const mica_rope *rope, const char *name)
{
    if (rope == NULL)
        return 0;
    char lent[NAME_BYTES];
    mica_format(lent, sizeof lent, "%s.frequency", name);
    mica_tensor t = mica_1d(rope->frequency, b->model->turned / 2);
    mica_value in[] = {b->positions, mica_net_lent(b->net, lent, &t)};
    return mica_net_op(b->net, name, "rotary_angles", in, 2,
                       &(mica_rotary_angles_opts){.magnitude = rope->magnitude});
}

static mica_value embed(building *b)
{
    const mica_model *model = b->model;
    const mica_model_info *info = &model->info;
    b->embedding = matrix(b, "token_embd", 0, info->vocabulary, info->vocabulary, info->width);
    mica_value x = mica_net_call(b->net, "embedding", &mica_op_embedding,
                                 (mica_value[]){b->embedding, b->tokens}, 2, NULL);
    if (model->embedding_scale != 0.0f)
        x = mica_net_op(b->net, "embedding.scale", "scale", &x, 1,
                        &(mica_scalar_opts){model->embedding_scale});
    if (model->positions > 0) {
        mica_value at[] = {matrix(b, "position_embd", 0, model->positions, model->positions, info->width),
                           b->positions};
        x = add(b, "embedding.positions", x,
                mica_net_call(b->net, "position_rows", &mica_op_embedding, at, 2, NULL));
    }
    mica_tensor types;
    if (find(b, &types, "token_types", ".weight") && types.rank == 2 && types.dim[0] > 0) {
        /* All tokens are of the first type, "sentence A". */
        mica_value w = matrix(b, "token_types", 0, types.dim[0], types.dim[0], info->width);
        w = mica_net_derived(b->net, "token_type", MICA_F32, 2, (mica_index[]){1, info->width},
                             mica_op_find("slice"), &w, 1, &(mica_slice_range_opts){.stop = 1});
        x = add(b, "embedding.types", x, w);
    }
    return norm_if(b, x, "token_embd_norm", info->width, model->architecture->norms_last);
}

static void head(const building *b, mica_value x)
{
    const mica_model *model = b->model;
    const mica_model_info *info = &model->info;
    x = norm(b, x, "output_norm", info->width);
    /* Files of some architectures never have a matrix of their own; of a folder its configuration decides. */
    bool own = has(b, "output") && (!model->architecture->tied || model->source.folder != NULL);
    mica_value in[] = {
        x, own ? matrix(b, "output", 0, info->vocabulary, info->vocabulary, info->width) : b->embedding,
        vector(b, "output", ".bias", info->vocabulary)};
    x = call(b, "head", "linear_rows", in, 3, NULL);
    if (model->logit_cap > 0.0f) {
        x = call(b, "head.scaled", "scale", &x, 1, &(mica_scalar_opts){1.0f / model->logit_cap});
        x = call(b, "head.tanh", "tanh", &x, 1, NULL);
        x = call(b, "head.capped", "scale", &x, 1, &(mica_scalar_opts){model->logit_cap});
    }
    mica_net_output(b->net, MICA_TEXT_LOGITS, x);
}

mica_status mica_model_build(const mica_model *model, mica_net *net, const mica_text_net_opts *opts)
{
    building b = {.model = model, .net = net, .opts = opts, .layer = -1};
    inputs(&b);
    b.angles = turning(&b, opts->rope, "rope");
    b.local_angles = turning(&b, opts->local_rope, "rope_local");
    mica_value x = embed(&b);
    for (b.layer = 0; b.layer < model->info.layers && mica_net_status(net) == MICA_OK; b.layer++)
        x = block(&b, x);
    b.layer = -1;
    if (model->info.embeds)
        mica_net_output(net, MICA_TEXT_HIDDEN, x);
    else
        head(&b, x);
    return mica_net_status(net);
}
