/* From a line's options to the builders of mica/layers.h. */
#include <string.h>

#include <mica/op.h>

#include "base/format.h"
#include "netfile/words.h"

/* ---- Words whose options are the layer's own ---- */

#define PLAIN(word, builder) \
    mica_value mica_line_##word(reader *r, const line *l) { return builder(r->net, l->x, l->opts); }

PLAIN(dense, mica_net_dense)
PLAIN(batch_norm, mica_net_batch_norm)
PLAIN(layer_norm, mica_net_layer_norm)
PLAIN(rms_norm, mica_net_rms_norm)
PLAIN(group_norm, mica_net_group_norm)
PLAIN(instance_norm, mica_net_instance_norm)
PLAIN(softmax, mica_net_softmax)
PLAIN(log_softmax, mica_net_log_softmax)
PLAIN(flatten, mica_net_flatten)
PLAIN(squeeze, mica_net_squeeze)
PLAIN(unsqueeze, mica_net_unsqueeze)
PLAIN(transpose, mica_net_transpose)
PLAIN(slice, mica_net_slice)
PLAIN(global_avg_pool, mica_net_global_avg_pool)
PLAIN(embedding, mica_net_embedding)
PLAIN(learned_positions, mica_net_learned_positions)
PLAIN(sinusoidal_positions, mica_net_sinusoidal_positions)
PLAIN(rotary, mica_net_rotary)
PLAIN(lstm, mica_net_lstm)
PLAIN(gru, mica_net_gru)
PLAIN(rnn, mica_net_rnn)
PLAIN(attention, mica_net_attention)
PLAIN(multi_head_attention, mica_net_multi_head_attention)
PLAIN(swiglu, mica_net_swiglu)
PLAIN(mlp, mica_net_mlp)
PLAIN(squeeze_excite, mica_net_squeeze_excite)

/* A rate of 0, as a text may let it be, is no layer. */
mica_value mica_line_dropout(reader *r, const line *l)
{
    const mica_net_dropout_opts *opts = l->opts;
    return opts->rate == 0.0f ? l->x : mica_net_dropout(r->net, l->x, opts);
}

mica_value mica_line_activation(reader *r, const line *l)
{
    mica_net_activation_opts *opts = l->opts;
    for (int i = 0; mica_netfile_activations[i] != NULL; i++)
        if (strcmp(mica_netfile_activations[i], l->word->name) == 0)
            opts->kind = (mica_activation)(i + 1);
    return mica_net_activation(r->net, l->x, opts);
}

/* ---- Signals or images, by x's axes ---- */

/* [N, C, L] rather than [N, C, H, W] */
static bool is_flat(const reader *r, mica_value x)
{
    mica_tensor shape;
    return mica_net_shape(r->net, &shape, x) == MICA_OK && shape.rank == 3;
}

/* Padding that keeps the size. Refused where it would not be the same on both sides. */
static bool pad_same(reader *r, conv_line *c)
{
    for (int i = 0; i < 2 && c->same; i++) {
        mica_index reach = (c->conv.dilation[i] > 0 ? c->conv.dilation[i] : 1) * (c->conv.kernel[i] - 1);
        if (reach < 0 || reach % 2 != 0) {
            (void)mica_net_refuse(r->net, MICA_ERR_ARGUMENT, "\"same\" needs a kernel of odd size, not %td",
                                  c->conv.kernel[i]);
            return false;
        }
        c->conv.pad[i] = reach / 2;
    }
    return true;
}

mica_value mica_line_conv(reader *r, const line *l)
{
    conv_line *c = l->opts;
    if (!pad_same(r, c))
        return 0;
    return is_flat(r, l->x) ? mica_net_conv1d(r->net, l->x, &c->conv)
                            : mica_net_conv2d(r->net, l->x, &c->conv);
}

mica_value mica_line_depthwise_conv(reader *r, const line *l)
{
    conv_line *c = l->opts;
    return pad_same(r, c) ? mica_net_depthwise_conv2d(r->net, l->x, &c->conv) : 0;
}

#define BY_AXES(word, builder)                                                                             \
    mica_value mica_line_##word(reader *r, const line *l)                                                  \
    {                                                                                                      \
        return is_flat(r, l->x) ? builder##1d(r->net, l->x, l->opts) : builder##2d(r->net, l->x, l->opts); \
    }

BY_AXES(conv_transpose, mica_net_conv_transpose)
BY_AXES(max_pool, mica_net_max_pool)
BY_AXES(avg_pool, mica_net_avg_pool)
BY_AXES(adaptive_avg_pool, mica_net_adaptive_avg_pool)

/* ---- Shapes ---- */

mica_value mica_line_reshape(reader *r, const line *l)
{
    const reshape_line *o = l->opts;
    mica_net_reshape_opts opts = {.name = o->name, .rank = o->shape.count + 1};
    if (o->shape.count >= MICA_MAX_RANK)
        return mica_net_refuse(r->net, MICA_ERR_SHAPE, "a shape of more than %d axes", MICA_MAX_RANK - 1);
    for (int i = 0; i < o->shape.count; i++)
        opts.dims[i + 1] = o->shape.size[i];
    return mica_net_reshape(r->net, l->x, &opts);
}

mica_value mica_line_permute(reader *r, const line *l)
{
    const reshape_line *o = l->opts;
    mica_net_permute_opts opts = {.name = o->name};
    mica_tensor shape;
    if (mica_net_shape(r->net, &shape, l->x) == MICA_OK && shape.rank != o->shape.count)
        return mica_net_refuse(r->net, MICA_ERR_SHAPE, "expected %d axes including the batch, got %d",
                               shape.rank, o->shape.count);
    for (int i = 0; i < o->shape.count; i++)
        opts.axes[i] = (int)o->shape.size[i];
    return mica_net_permute(r->net, l->x, &opts);
}

mica_value mica_line_pad(reader *r, const line *l)
{
    const pad_line *o = l->opts;
    const size_list *after = o->after.count > 0 ? &o->after : &o->before;
    mica_net_pad_opts opts = {.name = o->name, .pad = {.value = o->value}};
    mica_tensor shape;
    if (o->reflect)
        opts.pad.mode = MICA_PAD_REFLECT;
    if (mica_net_shape(r->net, &shape, l->x) != MICA_OK || o->before.count > shape.rank ||
        after->count > shape.rank)
        return mica_net_refuse(r->net, MICA_ERR_SHAPE, "pads more axes than the input has");
    for (int i = 0; i < o->before.count; i++)
        opts.pad.before[shape.rank - o->before.count + i] = o->before.size[i];
    for (int i = 0; i < after->count; i++)
        opts.pad.after[shape.rank - after->count + i] = after->size[i];
    return mica_net_pad(r->net, l->x, &opts);
}

/* ---- Several values ---- */

mica_value mica_line_concat(reader *r, const line *l)
{
    const join_line *o = l->opts;
    mica_value all[MICA_OP_OUTS] = {l->x};
    for (int i = 0; i < o->others.count; i++)
        all[i + 1] = o->others.value[i];
    return mica_net_concat(r->net, all, o->others.count + 1,
                           &(mica_net_axis_opts){.name = o->name, .axis = o->axis != 0 ? o->axis : 1});
}

typedef mica_value pair_builder(mica_net *net, mica_value a, mica_value b, const mica_net_pair_opts *opts);

/* Two at a time; the last has the line's name. */
static mica_value fold(reader *r, const line *l, pair_builder *build)
{
    const join_line *o = l->opts;
    mica_value sum = l->x;
    for (int i = 0; i < o->others.count; i++) {
        char name[160];
        mica_format(name, sizeof name, i + 1 < o->others.count ? "%.120s.%d" : "%.120s", o->name, i);
        sum = build(r->net, sum, o->others.value[i], &(mica_net_pair_opts){.name = name});
    }
    return sum;
}

mica_value mica_line_add(reader *r, const line *l) { return fold(r, l, mica_net_plus); }
mica_value mica_line_multiply(reader *r, const line *l) { return fold(r, l, mica_net_times); }

/* ---- Transformers ---- */

mica_value mica_line_transformer(reader *r, const line *l)
{
    transformer_line *o = l->opts;
    mica_net_transformer_block_opts *block = &o->block;
    block->attention.no_bias = block->mlp.no_bias = o->no_bias;
    block->attention.weight_init = block->mlp.weight_init = o->init;
    block->attention.out_init = block->mlp.out_init = o->out_init;
    return mica_net_transformer_block(r->net, l->x, block);
}

mica_value mica_line_gpt(reader *r, const line *l)
{
    gpt_line *o = l->opts;
    o->gpt.kind = o->llama ? MICA_LLAMA : MICA_GPT2;
    return mica_net_gpt(r->net, l->x, &o->gpt);
}
