/* The structs that lines are parsed into, if the layer's options struct is not enough. Each starts with the name. */
#ifndef MICA_SRC_NETFILE_WORDS_H
#define MICA_SRC_NETFILE_WORDS_H

#include "netfile/reader.h"

typedef struct input_line {
    const char *name;
    size_list shape;
    int dtype;
} input_line;

typedef struct output_line {
    const char *name;
} output_line;

typedef struct loss_line {
    mica_net_loss_opts loss;
    int kind; /* in mica_netfile_losses */
    mica_value target;
    bool one_hot;
    mica_index ignore;
    bool has_ignore;
} loss_line;

typedef struct conv_line {
    mica_net_conv_opts conv;
    bool same;
} conv_line;

typedef struct reshape_line {
    const char *name;
    size_list shape;
} reshape_line;

typedef struct pad_line {
    const char *name;
    size_list before, after;
    double value;
    bool reflect;
} pad_line;

typedef struct join_line {
    const char *name;
    value_list others;
    int axis;
} join_line;

typedef struct transformer_line {
    mica_net_transformer_block_opts block;
    bool no_bias;
    mica_init init, out_init;
} transformer_line;

typedef struct gpt_line {
    mica_net_gpt_opts gpt;
    bool llama;
} gpt_line;

typedef struct repeat_line {
    const char *name;
    mica_index count;
    const char *index;
} repeat_line;

typedef struct residual_line {
    const char *name;
    bool project;
} residual_line;

/* The builders: layers.c. Those of activations share one. */
line_builder mica_line_activation;
/* clang-format off */
#define LINE_BUILDERS(X)                                                                    \
    X(input) X(output) X(loss) X(dense) X(conv) X(depthwise_conv) X(conv_transpose)         \
    X(max_pool) X(avg_pool) X(adaptive_avg_pool) X(global_avg_pool) X(batch_norm)           \
    X(layer_norm) X(rms_norm) X(group_norm) X(instance_norm) X(softmax) X(log_softmax)      \
    X(dropout) X(flatten) X(reshape) X(squeeze) X(unsqueeze) X(permute) X(transpose) X(pad) \
    X(slice) X(concat) X(add) X(multiply) X(embedding) X(learned_positions)                 \
    X(sinusoidal_positions) X(rotary) X(lstm) X(gru) X(rnn) X(attention)                    \
    X(multi_head_attention) X(swiglu) X(mlp) X(transformer) X(gpt) X(squeeze_excite)
/* clang-format on */
#define LINE_BUILDER_DECLARE(name) line_builder mica_line_##name;
LINE_BUILDERS(LINE_BUILDER_DECLARE)
#undef LINE_BUILDER_DECLARE

#endif
