/* The table of layer words. A new layer is a row here, its options above, and its builder in layers.c; the parser,
 * its messages and docs/net-files.md follow. */
#include <string.h>

#include "netfile/words.h"

const char *const mica_netfile_activations[] = {
#define ACTIVATION_NAME(CODE, name) #name,
    MICA_ACTIVATION_LIST(ACTIVATION_NAME) NULL};

const char *const mica_netfile_dtypes[] = {
#define DTYPE_NAME(code, name, bytes, block, type) name,
    MICA_DTYPE_PLAIN_LIST(DTYPE_NAME) NULL};

/* In the order of mica_init_kind, from MICA_INIT_CONSTANT on. */
const char *const mica_netfile_inits[] = {"constant",      "uniform",    "normal",    "xavier_uniform",
                                          "xavier_normal", "he_uniform", "he_normal", NULL};

const char *const mica_netfile_losses[] = {"cross_entropy", "cross_entropy_probs", "mse", "l1", "huber",
                                           "bce",           "bce_logits",          NULL};

/* ---- Options: name, kind, field, flags, help ---- */

#define FIELD(type, field) (unsigned)offsetof(type, field)
#define PLACED             (IN_PLACE | REQUIRED)

#define INPUT(field) FIELD(input_line, field)
static const word_option input_options[] = {
    {"name", VALUE_NAME, INPUT(name), PLACED, "its name", NULL},
    {"shape", VALUE_LIST, INPUT(shape), PLACED, "of one sample, without the batch axis", NULL},
    {"dtype", VALUE_CHOICE, INPUT(dtype), IN_PLACE, "element type (f32)", mica_netfile_dtypes},
};

static const word_option output_options[] = {
    {"name", VALUE_NAME, FIELD(output_line, name), PLACED, "its name", NULL},
};

#define LOSS(field) FIELD(loss_line, field)
static const word_option loss_options[] = {
    {"kind", VALUE_CHOICE, LOSS(kind), PLACED, "the loss function", mica_netfile_losses},
    {"target", VALUE_VALUE, LOSS(target), 0, "the target for x (a new input \"target\")", NULL},
    {"weight", VALUE_FLOAT, LOSS(loss.weight), 0, "weight of this loss if there are several (1)", NULL},
    {"smoothing", VALUE_FLOAT, LOSS(loss.smoothing), 0, "cross-entropy: label smoothing (0)", NULL},
    {"ignore", VALUE_OFFSET, LOSS(ignore), 0, "cross-entropy: ignore rows of this class", NULL},
    {"one_hot", VALUE_FLAG, LOSS(one_hot), 0, "cross-entropy: targets are class probabilities", NULL},
    {"delta", VALUE_FLOAT, LOSS(loss.delta), 0, "huber: where the loss turns linear (1)", NULL},
};

#define DENSE(field) FIELD(mica_net_dense_opts, field)
static const word_option dense_options[] = {
    {"units", VALUE_SIZE, DENSE(units), PLACED, "output features", NULL},
    {"no_bias", VALUE_FLAG, DENSE(no_bias), 0, "without bias", NULL},
    {"init", VALUE_INIT, DENSE(weight_init), 0, "weight initializer (uniform in +-1 / sqrt(inputs))", NULL},
    {"bias_init", VALUE_INIT, DENSE(bias_init), 0, "bias initializer (the same)", NULL},
    {"share", VALUE_PARAMETER, DENSE(share_weight), 0, "use another layer's weight instead of its own", NULL},
};

#define CONV(field) FIELD(conv_line, conv.field)
#define CONV_OPTIONS                                                                                         \
    {"stride", VALUE_PAIR, CONV(stride), 0, "stride (1)", NULL},                                             \
        {"pad", VALUE_PAIR, CONV(pad), 0, "zero padding on each side (0)", NULL},                            \
        {"dilation", VALUE_PAIR, CONV(dilation), 0, "spacing of the kernel's elements (1)", NULL},           \
        {"no_bias", VALUE_FLAG, CONV(no_bias), 0, "without bias", NULL},                                     \
    {                                                                                                        \
        "init", VALUE_INIT, CONV(weight_init), 0, "weight initializer (uniform in +-1 / sqrt(inputs))", NULL \
    }
#define CONV_SAME                                                                                  \
    {                                                                                              \
        "same", VALUE_FLAG, FIELD(conv_line, same), 0, "pad so that stride 1 keeps the size", NULL \
    }
static const word_option conv_options[] = {
    {"channels", VALUE_SIZE, CONV(out_channels), PLACED, "output channels", NULL},
    {"kernel", VALUE_PAIR, CONV(kernel), PLACED, "kernel size", NULL},
    CONV_OPTIONS,
    CONV_SAME,
    {"groups", VALUE_SIZE, CONV(groups), 0, "number of channel groups (1)", NULL},
};
static const word_option depthwise_options[] = {
    {"kernel", VALUE_PAIR, CONV(kernel), PLACED, "kernel size", NULL},
    {"channels", VALUE_SIZE, CONV(out_channels), 0, "output channels, a multiple of x's (those of x)", NULL},
    CONV_OPTIONS,
    CONV_SAME,
};
static const word_option conv_transpose_options[] = {
    {"channels", VALUE_SIZE, CONV(out_channels), PLACED, "output channels", NULL},
    {"kernel", VALUE_PAIR, CONV(kernel), PLACED, "kernel size", NULL},
    CONV_OPTIONS,
    {"groups", VALUE_SIZE, CONV(groups), 0, "number of channel groups (1)", NULL},
    {"output_pad", VALUE_PAIR, CONV(output_pad), 0, "extra rows and columns at the end (0)", NULL},
};

#define POOL(field) FIELD(mica_net_pool_opts, field)
#define POOL_OPTIONS                                                                                \
    {"kernel", VALUE_PAIR, POOL(kernel), PLACED, "kernel size", NULL},                              \
        {"stride", VALUE_PAIR, POOL(stride), 0, "stride (the kernel size)", NULL},                  \
        {"pad", VALUE_PAIR, POOL(pad), 0, "padding on each side, at most half a kernel (0)", NULL}, \
    {                                                                                               \
        "ceil", VALUE_FLAG, POOL(ceil_mode), 0, "include a last, partial window", NULL              \
    }
static const word_option max_pool_options[] = {
    POOL_OPTIONS,
    {"dilation", VALUE_PAIR, POOL(dilation), 0, "spacing of the kernel's elements (1)", NULL},
};
static const word_option avg_pool_options[] = {
    POOL_OPTIONS,
    {"exclude_pad", VALUE_FLAG, POOL(exclude_pad), 0, "exclude padding from the mean", NULL},
};
static const word_option adaptive_options[] = {
    {"size", VALUE_PAIR, FIELD(mica_net_adaptive_pool_opts, size), PLACED, "output size", NULL},
};
static const word_option global_options[] = {
    {"keep", VALUE_FLAG, FIELD(mica_net_global_pool_opts, keep), 0, "output [C, 1, 1] instead of [C]", NULL},
};

static const word_option batch_norm_options[] = {
    {"eps", VALUE_FLOAT, FIELD(mica_net_batch_norm_opts, eps), 0, "(1e-5)", NULL},
    {"momentum", VALUE_FLOAT, FIELD(mica_net_batch_norm_opts, momentum), 0,
     "momentum of the running statistics (0.1)", NULL},
    {"no_affine", VALUE_FLAG, FIELD(mica_net_batch_norm_opts, no_affine), 0, "without weight and bias", NULL},
};
#define ROW_NORM(field) FIELD(mica_net_layer_norm_opts, field)
#define ROW_NORM_OPTIONS                                                                 \
    {"axes", VALUE_INT, ROW_NORM(axes), 0, "number of trailing axes (1)", NULL},         \
        {"eps", VALUE_FLOAT, ROW_NORM(eps), 0, "(1e-5; rms_norm 1.19e-7)", NULL},        \
    {                                                                                    \
        "no_affine", VALUE_FLAG, ROW_NORM(no_affine), 0, "without weight and bias", NULL \
    }
static const word_option layer_norm_options[] = {
    ROW_NORM_OPTIONS,
    {"no_bias", VALUE_FLAG, ROW_NORM(no_bias), 0, "without bias", NULL},
};
static const word_option rms_norm_options[] = {ROW_NORM_OPTIONS};
static const word_option group_norm_options[] = {
    {"groups", VALUE_INT, FIELD(mica_net_group_norm_opts, groups), PLACED, "number of channel groups", NULL},
    {"eps", VALUE_FLOAT, FIELD(mica_net_group_norm_opts, eps), 0, "(1e-5)", NULL},
    {"no_affine", VALUE_FLAG, FIELD(mica_net_group_norm_opts, no_affine), 0, "without weight and bias", NULL},
};
static const word_option instance_norm_options[] = {
    {"eps", VALUE_FLOAT, FIELD(mica_net_group_norm_opts, eps), 0, "(1e-5)", NULL},
    {"affine", VALUE_FLAG, FIELD(mica_net_group_norm_opts, affine), 0, "with weight and bias", NULL},
};
static const word_option softmax_options[] = {
    {"axis", VALUE_INT, FIELD(mica_net_softmax_opts, axis), 0, "axis (-1)", NULL},
};
static const word_option dropout_options[] = {
    {"rate", VALUE_FLOAT, FIELD(mica_net_dropout_opts, rate), PLACED, "probability of zeroing an element",
     NULL},
};

static const word_option flatten_options[] = {
    {"first", VALUE_INT, FIELD(mica_net_flatten_opts, first), 0, "first axis to merge (1)", NULL},
    {"last", VALUE_INT, FIELD(mica_net_flatten_opts, last), 0, "last axis to merge (-1)", NULL},
};
static const word_option reshape_options[] = {
    {"shape", VALUE_LIST, FIELD(reshape_line, shape), PLACED,
     "of one sample; one size may be -1, to be inferred", NULL},
};
static const word_option axis_options[] = {
    {"axis", VALUE_INT, FIELD(mica_net_axis_opts, axis), PLACED, "the axis", NULL},
};
static const word_option permute_options[] = {
    {"axes", VALUE_LIST, FIELD(reshape_line, shape), PLACED, "axes of x in the new order, such as [0, 2, 1]",
     NULL},
};
static const word_option transpose_options[] = {
    {"a", VALUE_INT, FIELD(mica_net_transpose_opts, a), IN_PLACE, "first axis (-2)", NULL},
    {"b", VALUE_INT, FIELD(mica_net_transpose_opts, b), IN_PLACE, "second axis (-1)", NULL},
};
static const word_option pad_options[] = {
    {"before", VALUE_LIST, FIELD(pad_line, before), PLACED, "elements before the trailing axes, such as 2x2",
     NULL},
    {"after", VALUE_LIST, FIELD(pad_line, after), 0, "elements after them (same as before)", NULL},
    {"value", VALUE_DOUBLE, FIELD(pad_line, value), 0, "fill value (0)", NULL},
    {"reflect", VALUE_FLAG, FIELD(pad_line, reflect), 0, "reflect x at its edges instead", NULL},
};
static const word_option slice_options[] = {
    {"axis", VALUE_INT, FIELD(mica_net_slice_opts, axis), PLACED, "the axis", NULL},
    {"start", VALUE_OFFSET, FIELD(mica_net_slice_opts, start), 0, "the first element (0)", NULL},
    {"stop", VALUE_OFFSET, FIELD(mica_net_slice_opts, stop), 0, "one past the last element (all)", NULL},
    {"step", VALUE_OFFSET, FIELD(mica_net_slice_opts, step), 0, "(1)", NULL},
};
#define OTHERS                                                                                  \
    {                                                                                           \
        "others", VALUE_VALUES, FIELD(join_line, others), PLACED, "names of layers above", NULL \
    }
static const word_option concat_options[] = {
    OTHERS,
    {"axis", VALUE_INT, FIELD(join_line, axis), 0, "axis (1)", NULL},
};
static const word_option pair_options[] = {OTHERS};

static const word_option embedding_options[] = {
    {"rows", VALUE_SIZE, FIELD(mica_net_embedding_opts, rows), PLACED, "number of indices: the vocabulary",
     NULL},
    {"width", VALUE_SIZE, FIELD(mica_net_embedding_opts, width), PLACED, "features per row", NULL},
    {"init", VALUE_INIT, FIELD(mica_net_embedding_opts, weight_init), 0, "weight initializer (normal(1))",
     NULL},
};
static const word_option learned_options[] = {
    {"rows", VALUE_SIZE, FIELD(mica_net_positions_opts, rows), 0, "number of positions (as in x)", NULL},
    {"init", VALUE_INIT, FIELD(mica_net_positions_opts, weight_init), 0, "weight initializer (normal(0.02))",
     NULL},
};
static const word_option sinusoidal_options[] = {
    {"base", VALUE_DOUBLE, FIELD(mica_net_positions_opts, base), 0, "base of the wavelengths (10000)", NULL},
};
#define ROTARY(field) FIELD(mica_net_rotary_opts, field)
static const word_option rotary_options[] = {
    {"heads", VALUE_INT, ROTARY(heads), IN_PLACE, "number of heads (1)", NULL},
    {"turned", VALUE_INT, ROTARY(turned), 0, "heads to rotate (all)", NULL},
    {"width", VALUE_SIZE, ROTARY(width), 0, "features of each head to rotate (all)", NULL},
    {"base", VALUE_DOUBLE, ROTARY(base), 0, "base of the wavelengths (10000)", NULL},
    {"interleaved", VALUE_FLAG, ROTARY(interleaved), 0, "pair adjacent features", NULL},
};

#define RECURRENT(field) FIELD(mica_net_recurrent_opts, field)
#define RECURRENT_OPTIONS                                                                                    \
    {"units", VALUE_SIZE, RECURRENT(units), PLACED, "output features", NULL},                                \
        {"layers", VALUE_COUNT, RECURRENT(layers), 0, "number of stacked layers (1)", NULL},                 \
        {"last", VALUE_FLAG, RECURRENT(last), 0, "output only the last time step", NULL},                    \
        {"keep_state", VALUE_FLAG, RECURRENT(keep_state), 0, "carry the state over to the next step", NULL}, \
    {                                                                                                        \
        "no_bias", VALUE_FLAG, RECURRENT(no_bias), 0, "without biases", NULL                                 \
    }
static const word_option recurrent_options[] = {RECURRENT_OPTIONS};
static const word_option rnn_options[] = {
    RECURRENT_OPTIONS,
    {"relu", VALUE_FLAG, RECURRENT(relu), 0, "relu instead of tanh", NULL},
};

#define ATTENTION(field) FIELD(mica_net_attention_opts, field)
static const word_option attention_options[] = {
    {"heads", VALUE_INT, ATTENTION(heads), IN_PLACE, "number of heads (1)", NULL},
    {"kv_heads", VALUE_INT, ATTENTION(kv_heads), 0, "key/value heads, shared by query heads (heads)", NULL},
    {"causal", VALUE_FLAG, ATTENTION(causal), 0, "a token only sees itself and earlier ones", NULL},
    {"scale", VALUE_FLOAT, ATTENTION(scale), 0, "scale of the scores (1 / sqrt(head features))", NULL},
    {"mask", VALUE_VALUE, ATTENTION(mask), 0, "an input that masks keys or adds to the scores", NULL},
};
#define MULTI(field) FIELD(mica_net_multi_head_attention_opts, field)
static const word_option multi_options[] = {
    {"heads", VALUE_INT, MULTI(heads), PLACED, "number of heads", NULL},
    {"kv_heads", VALUE_INT, MULTI(kv_heads), 0, "key/value heads, shared by query heads (heads)", NULL},
    {"causal", VALUE_FLAG, MULTI(causal), 0, "a token only sees itself and earlier ones", NULL},
    {"no_bias", VALUE_FLAG, MULTI(no_bias), 0, "without biases", NULL},
    {"mask", VALUE_VALUE, MULTI(mask), 0, "an input that masks keys or adds to the scores", NULL},
    {"rotary", VALUE_FLAG, MULTI(rotary), 0, "rotary position embedding of queries and keys", NULL},
    {"rotary_interleaved", VALUE_FLAG, MULTI(rotary_interleaved), 0, "pair adjacent features", NULL},
    {"rotary_base", VALUE_DOUBLE, MULTI(rotary_base), 0, "(10000)", NULL},
    {"init", VALUE_INIT, MULTI(weight_init), 0, "initializer of the query, key and value weight", NULL},
    {"out_init", VALUE_INIT, MULTI(out_init), 0, "initializer of the output weight", NULL},
};
#define MLP(field) FIELD(mica_net_mlp_opts, field)
static const word_option mlp_options[] = {
    {"hidden", VALUE_SIZE, MLP(hidden), IN_PLACE, "hidden features (4 times x's; swiglu 8/3 times)", NULL},
    {"activation", VALUE_ACTIVATION, MLP(activation), 0, "(gelu)", NULL},
    {"swiglu", VALUE_FLAG, MLP(swiglu), 0, "SwiGLU instead of an activation", NULL},
    {"no_bias", VALUE_FLAG, MLP(no_bias), 0, "without biases", NULL},
    {"init", VALUE_INIT, MLP(weight_init), 0, "initializer of the first weight", NULL},
    {"out_init", VALUE_INIT, MLP(out_init), 0, "initializer of the second weight", NULL},
};
#define BLOCK(field) FIELD(transformer_line, block.field)
static const word_option transformer_options[] = {
    {"heads", VALUE_INT, BLOCK(attention.heads), PLACED, "attention heads", NULL},
    {"kv_heads", VALUE_INT, BLOCK(attention.kv_heads), 0, "key/value heads, shared by query heads (heads)",
     NULL},
    {"causal", VALUE_FLAG, BLOCK(attention.causal), 0, "a token only sees itself and earlier ones", NULL},
    {"mask", VALUE_VALUE, BLOCK(attention.mask), 0, "an input that masks keys or adds to the scores", NULL},
    {"rotary", VALUE_FLAG, BLOCK(attention.rotary), 0, "rotary position embedding of queries and keys", NULL},
    {"rotary_interleaved", VALUE_FLAG, BLOCK(attention.rotary_interleaved), 0, "pair adjacent features",
     NULL},
    {"rotary_base", VALUE_DOUBLE, BLOCK(attention.rotary_base), 0, "(10000)", NULL},
    {"hidden", VALUE_SIZE, BLOCK(mlp.hidden), 0, "hidden features (4 times x's; swiglu 8/3 times)", NULL},
    {"activation", VALUE_ACTIVATION, BLOCK(mlp.activation), 0, "(gelu)", NULL},
    {"swiglu", VALUE_FLAG, BLOCK(mlp.swiglu), 0, "SwiGLU instead of an activation", NULL},
    {"rms_norm", VALUE_FLAG, BLOCK(rms_norm), 0, "RMS norm instead of layer norm", NULL},
    {"eps", VALUE_FLOAT, BLOCK(eps), 0, "epsilon of the norms", NULL},
    {"dropout", VALUE_FLOAT, BLOCK(dropout), 0, "dropout rate before each residual add (0)", NULL},
    {"no_bias", VALUE_FLAG, FIELD(transformer_line, no_bias), 0, "without biases", NULL},
    {"init", VALUE_INIT, FIELD(transformer_line, init), 0, "weight initializer", NULL},
    {"out_init", VALUE_INIT, FIELD(transformer_line, out_init), 0,
     "initializer of the weights before a residual add", NULL},
};
#define GPT(field) FIELD(gpt_line, gpt.field)
static const word_option gpt_options[] = {
    {"vocabulary", VALUE_SIZE, GPT(vocabulary), PLACED, "number of tokens", NULL},
    {"width", VALUE_SIZE, GPT(width), PLACED, "model width", NULL},
    {"layers", VALUE_COUNT, GPT(layers), PLACED, "number of blocks", NULL},
    {"heads", VALUE_INT, GPT(heads), PLACED, "attention heads", NULL},
    {"llama", VALUE_FLAG, FIELD(gpt_line, llama), 0, "rotary positions, RMS norm, SwiGLU, no biases", NULL},
    {"kv_heads", VALUE_INT, GPT(kv_heads), 0, "key/value heads, shared by query heads (heads)", NULL},
    {"positions", VALUE_SIZE, GPT(positions), 0, "rows of the position table (as in x)", NULL},
    {"hidden", VALUE_SIZE, GPT(hidden), 0, "hidden features (4 times the width)", NULL},
    {"rotary_base", VALUE_DOUBLE, GPT(rotary_base), 0, "(10000)", NULL},
    {"eps", VALUE_FLOAT, GPT(eps), 0, "epsilon of the norms (1e-5)", NULL},
    {"dropout", VALUE_FLOAT, GPT(dropout), 0, "dropout rate (0)", NULL},
    {"tied", VALUE_FLAG, GPT(tied), 0, "share the embedding's weight with the output head", NULL},
    {"no_bias", VALUE_FLAG, GPT(no_bias), 0, "without biases", NULL},
};

#define EXCITE(field) FIELD(mica_net_squeeze_excite_opts, field)
static const word_option excite_options[] = {
    {"reduction", VALUE_SIZE, EXCITE(reduction), IN_PLACE, "channels per hidden unit (16)", NULL},
    {"activation", VALUE_ACTIVATION, EXCITE(activation), 0, "hidden activation (relu)", NULL},
};
static const word_option sloped_options[] = {
    {"slope", VALUE_FLOAT, FIELD(mica_net_activation_opts, slope), 0,
     "slope below 0 (leaky_relu 0.01, elu 1)", NULL},
};

static const word_option repeat_options[] = {
    {"count", VALUE_OFFSET, FIELD(repeat_line, count), PLACED, "number of repetitions", NULL},
    {"index", VALUE_NAME, FIELD(repeat_line, index), 0, "name of a constant that counts from 0", NULL},
};
static const word_option residual_options[] = {
    {"project", VALUE_FLAG, FIELD(residual_line, project), 0, "project x if the shapes differ", NULL},
};

/* ---- Words ---- */

#define WORD(name, flags, builder, options, help)                                                 \
    {                                                                                             \
        name, flags, mica_line_##builder, options, sizeof options / sizeof options[0], help, NULL \
    }
#define BRACE(name, flags, options, help)                                          \
    {                                                                              \
        name, flags, NULL, options, sizeof options / sizeof options[0], help, NULL \
    }
#define BARE(name, flags, builder, help)                      \
    {                                                         \
        name, flags, mica_line_##builder, NULL, 0, help, NULL \
    }
#define SLOPED(name, help) WORD(#name, 0, activation, sloped_options, help)

const word mica_netfile_words[] = {
    WORD("input", SOURCE | UNNAMED, input, input_options, "external data"),
    WORD("output", UNNAMED, output, output_options, "make x readable after a step, under this name"),
    WORD("loss", 0, loss, loss_options, "what training minimizes"),
    BRACE("repeat", OPENS, repeat_options,
          "repeat the lines up to }; with a name, in scopes NAME0, NAME1, ..."),
    BRACE("residual", OPENS | ACTIVATES, residual_options, "x + the result of the lines up to }"),
    {"block", OPENS, NULL, NULL, 0, "the lines up to }, in their own scope", NULL},

    WORD("dense", ACTIVATES, dense, dense_options, "x weight + bias"),
    WORD("conv", ACTIVATES, conv, conv_options, "convolution of [C, L] or [C, H, W]"),
    WORD("depthwise_conv", ACTIVATES, depthwise_conv, depthwise_options,
         "depthwise convolution: each channel on its own"),
    WORD("conv_transpose", ACTIVATES, conv_transpose, conv_transpose_options, "transposed convolution"),
    WORD("max_pool", 0, max_pool, max_pool_options, "the maximum of each window"),
    WORD("avg_pool", 0, avg_pool, avg_pool_options, "the mean of each window"),
    WORD("adaptive_avg_pool", 0, adaptive_avg_pool, adaptive_options, "average pooling to a given size"),
    WORD("global_avg_pool", 0, global_avg_pool, global_options, "the mean of each channel: [C, ...] to [C]"),

    WORD("batch_norm", ACTIVATES, batch_norm, batch_norm_options, "normalize each channel over the batch"),
    WORD("layer_norm", ACTIVATES, layer_norm, layer_norm_options, "normalize over the trailing axes"),
    WORD("rms_norm", ACTIVATES, rms_norm, rms_norm_options,
         "normalize over the trailing axes, without the mean"),
    WORD("group_norm", ACTIVATES, group_norm, group_norm_options, "normalize over groups of channels"),
    WORD("instance_norm", ACTIVATES, instance_norm, instance_norm_options,
         "normalize each channel of each sample"),
    WORD("softmax", 0, softmax, softmax_options, "probabilities"),
    WORD("log_softmax", 0, log_softmax, softmax_options, "log probabilities"),
    WORD("dropout", 0, dropout, dropout_options, "in training, zero elements at random"),

    BARE("relu", 0, activation, "max(x, 0)"),
    BARE("relu6", 0, activation, "min(max(x, 0), 6)"),
    SLOPED(leaky_relu, "x; below 0 slope * x"),
    SLOPED(elu, "x; below 0 slope * (exp(x) - 1)"),
    BARE("sigmoid", 0, activation, "1 / (1 + exp(-x))"),
    BARE("tanh", 0, activation, "tanh(x)"),
    BARE("softplus", 0, activation, "log(1 + exp(x))"),
    BARE("silu", 0, activation, "x sigmoid(x), also called swish"),
    BARE("gelu", 0, activation, "x Phi(x), Phi the normal distribution function"),
    BARE("gelu_tanh", 0, activation, "gelu by GPT-2's tanh approximation"),
    BARE("hard_swish", 0, activation, "x min(max(x + 3, 0), 6) / 6"),

    WORD("flatten", 0, flatten, flatten_options, "merge all axes but the batch"),
    WORD("reshape", 0, reshape, reshape_options, "the same elements in another shape"),
    WORD("squeeze", 0, squeeze, axis_options, "remove an axis of size 1"),
    WORD("unsqueeze", 0, unsqueeze, axis_options, "add an axis of size 1"),
    WORD("permute", 0, permute, permute_options, "reorder the axes; the batch is 0"),
    WORD("transpose", 0, transpose, transpose_options, "swap two axes"),
    WORD("pad", 0, pad, pad_options, "pad the trailing axes"),
    WORD("slice", 0, slice, slice_options, "a range along an axis"),
    WORD("concat", 0, concat, concat_options, "x and other layers, concatenated"),
    WORD("add", ACTIVATES, add, pair_options, "x plus other layers"),
    WORD("multiply", ACTIVATES, multiply, pair_options, "x times other layers, element-wise"),

    WORD("embedding", 0, embedding, embedding_options, "look up rows of a learned table"),
    WORD("learned_positions", 0, learned_positions, learned_options,
         "x plus a learned row for each position"),
    WORD("sinusoidal_positions", 0, sinusoidal_positions, sinusoidal_options,
         "x plus sinusoids of the position"),
    WORD("rotary", 0, rotary, rotary_options, "rotary position embedding"),
    WORD("lstm", 0, lstm, recurrent_options, "long short-term memory over [T, F]"),
    WORD("gru", 0, gru, recurrent_options, "gated recurrent unit over [T, F]"),
    WORD("rnn", 0, rnn, rnn_options, "plain recurrent layer over [T, F]"),
    WORD("attention", 0, attention, attention_options,
         "the bare operation on packed queries, keys and values"),
    WORD("multi_head_attention", 0, multi_head_attention, multi_options, "self-attention over [T, C]"),
    BARE("swiglu", 0, swiglu, "silu of one half of the features times the other half"),
    WORD("mlp", 0, mlp, mlp_options, "two dense layers, back to the width of x"),
    WORD("transformer", 0, transformer, transformer_options, "a pre-norm transformer block over [T, C]"),
    WORD("gpt", 0, gpt, gpt_options, "a complete decoder: tokens [T] to logits [T, vocabulary]"),
    WORD("squeeze_excite", 0, squeeze_excite, excite_options,
         "squeeze-and-excitation: reweight the channels"),
};
const size_t mica_netfile_word_count = sizeof mica_netfile_words / sizeof mica_netfile_words[0];

_Static_assert(sizeof mica_netfile_words / sizeof mica_netfile_words[0] <= MOST_WORDS,
               "frames count each word");

const word *mica_find_word(const char *name, size_t length)
{
    for (size_t i = 0; i < mica_netfile_word_count; i++)
        if (strlen(mica_netfile_words[i].name) == length &&
            memcmp(mica_netfile_words[i].name, name, length) == 0)
            return &mica_netfile_words[i];
    return NULL;
}

size_t mica_activation_count(void) { return MICA_ACTIVATION_COUNT - 1; }
