/* What other frameworks call things that a net file has under another name. */
#include "netfile/hints.h"

#include <string.h>

#include "netfile/reader.h"

typedef struct alias {
    const char *theirs, *ours;
} alias;

/* In lower case. One of theirs may stand for several of ours: the first that a layer has is meant. */
static const alias layers[] = {
    {"linear", "dense"},
    {"fc", "dense"},
    {"fully_connected", "dense"},
    {"conv2d", "conv"},
    {"conv1d", "conv"},
    {"convolution", "conv"},
    {"convtranspose2d", "conv_transpose"},
    {"depthwiseconv2d", "depthwise_conv"},
    {"maxpool", "max_pool"},
    {"maxpool2d", "max_pool"},
    {"maxpooling2d", "max_pool"},
    {"avgpool", "avg_pool"},
    {"avgpool2d", "avg_pool"},
    {"averagepooling2d", "avg_pool"},
    {"globalaveragepooling2d", "global_avg_pool"},
    {"adaptiveavgpool2d", "adaptive_avg_pool"},
    {"batchnorm", "batch_norm"},
    {"batchnorm1d", "batch_norm"},
    {"batchnorm2d", "batch_norm"},
    {"batchnormalization", "batch_norm"},
    {"layernorm", "layer_norm"},
    {"layernormalization", "layer_norm"},
    {"groupnorm", "group_norm"},
    {"rmsnorm", "rms_norm"},
    {"embed", "embedding"},
    {"multiheadattention", "multi_head_attention"},
    {"view", "reshape"},
    {"concatenate", "concat"},
    {"cat", "concat"},
    {"leakyrelu", "leaky_relu"},
    {"activation", "relu"},
};

static const alias options[] = {
    {"filters", "channels"},
    {"out_channels", "channels"},
    {"units", "channels"},
    {"units", "hidden"},
    {"units", "size"},
    {"neurons", "units"},
    {"out_features", "units"},
    {"output_dim", "units"},
    {"output_dim", "width"},
    {"hidden_size", "units"},
    {"hidden_size", "hidden"},
    {"hidden_units", "units"},
    {"size", "units"},
    {"kernel_size", "kernel"},
    {"pool_size", "kernel"},
    {"padding", "pad"},
    {"strides", "stride"},
    {"dilation_rate", "dilation"},
    {"num_heads", "heads"},
    {"n_heads", "heads"},
    {"num_layers", "layers"},
    {"p", "rate"},
    {"prob", "rate"},
    {"probability", "rate"},
    {"epsilon", "eps"},
    {"label_smoothing", "smoothing"},
    {"bias", "no_bias"},
    {"use_bias", "no_bias"},
    {"affine", "no_affine"},
    {"num_groups", "groups"},
    {"kernel_initializer", "init"},
    {"vocab_size", "vocabulary"},
    {"num_embeddings", "vocabulary"},
    {"embedding_dim", "width"},
    {"dim", "axis"},
};

/* What a layer knows from the line above it. */
static const char *const known[] = {"in_features", "in_channels", "input_dim",
                                    "input_shape", "input_size",  "num_features"};

static bool is(const char *name, size_t length, const char *theirs)
{
    if (strlen(theirs) != length)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c) != theirs[i])
            return false;
    }
    return true;
}

const char *mica_layer_alias(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++)
        if (is(name, length, layers[i].theirs))
            return layers[i].ours;
    for (size_t i = 0; i < mica_netfile_word_count; i++) /* "Dense" */
        if (is(name, length, mica_netfile_words[i].name))
            return mica_netfile_words[i].name;
    return NULL;
}

bool mica_option_is_activation(const char *name, size_t length)
{
    return is(name, length, "activation") || is(name, length, "act") || is(name, length, "nonlinearity") ||
           is(name, length, "activation_fn");
}

bool mica_option_is_known(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (is(name, length, known[i]))
            return true;
    return false;
}

const char *mica_option_alias(const word *w, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        for (size_t k = 0; is(name, length, options[i].theirs) && k < w->option_count; k++)
            if (strcmp(w->options[k].name, options[i].ours) == 0)
                return options[i].ours;
    return NULL;
}
