/* Every word of net files builds its layer, with every one of its options. */
#include <stdio.h>
#include <string.h>

#include "netfile/reader.h"
#include "test.h"

#define IMAGE  "input x [4, 8, 8]\n"
#define SIGNAL "input x [4, 8]\n"
#define ROWS   "input x [6]\n"
#define TOKENS "input x [5] i32\n"

/* A line for each word, and the kind of the last layer that it builds. */
static const struct {
    const char *word, *before, *line, *kind;
} lines[] = {
    {"input", "", "input x [3]\nrelu", "relu"},
    {"output", ROWS "dense 3 relu\n", "output y", "relu"},
    {"loss", ROWS "dense 3\n", "loss cross_entropy smoothing=0.1 ignore=-1", "cross_entropy"},
    {"loss", ROWS "dense 3\n", "loss cross_entropy one_hot", "cross_entropy"},
    {"loss", ROWS "softmax\n", "loss cross_entropy_probs", "cross_entropy_probs"},
    {"loss", ROWS "dense 6\n", "loss mse target=x", "mse"},
    {"loss", ROWS "dense 3\n", "loss l1", "l1"},
    {"loss", ROWS "dense 3\n", "loss huber delta=2", "huber"},
    {"loss", ROWS "sigmoid\n", "loss bce", "bce"},
    {"loss", ROWS "dense 3\n", "loss bce_logits weight=2", "bce_logits"},
    {"repeat", ROWS, "repeat 2 {\ndense 6\n}", "dense"},
    {"residual", ROWS, "residual {\ndense 6\n}", "add"},
    {"residual", IMAGE, "residual project relu {\nconv 8 3x3 stride=2 pad=1\n}", "relu"},
    {"block", ROWS, "block {\ndense 6\n}", "dense"},
    {"dense", ROWS, "dense 3", "dense"},
    {"dense", ROWS, "dense 3 relu", "relu"},
    {"conv", IMAGE, "conv 8 3x3", "conv2d"},
    {"conv", SIGNAL, "conv 8 3", "conv1d"},
    {"depthwise_conv", IMAGE, "depthwise_conv 3x3", "depthwise_conv2d"},
    {"conv_transpose", IMAGE, "conv_transpose 2 3x3", "conv_transpose2d"},
    {"conv_transpose", SIGNAL, "conv_transpose 2 3", "conv_transpose1d"},
    {"max_pool", IMAGE, "max_pool 2", "max_pool2d"},
    {"max_pool", SIGNAL, "max_pool 2", "max_pool1d"},
    {"avg_pool", IMAGE, "avg_pool 2", "avg_pool2d"},
    {"avg_pool", SIGNAL, "avg_pool 2", "avg_pool1d"},
    {"adaptive_avg_pool", IMAGE, "adaptive_avg_pool 2x3", "adaptive_avg_pool2d"},
    {"adaptive_avg_pool", SIGNAL, "adaptive_avg_pool 2", "adaptive_avg_pool1d"},
    {"global_avg_pool", IMAGE, "global_avg_pool", "global_avg_pool"},
    {"batch_norm", IMAGE, "batch_norm", "batch_norm"},
    {"layer_norm", ROWS, "layer_norm", "layer_norm"},
    {"rms_norm", ROWS, "rms_norm", "rms_norm"},
    {"group_norm", IMAGE, "group_norm 2", "group_norm"},
    {"instance_norm", IMAGE, "instance_norm", "instance_norm"},
    {"softmax", ROWS, "softmax", "softmax"},
    {"log_softmax", ROWS, "log_softmax", "log_softmax"},
    {"dropout", ROWS, "dropout 0.5", "dropout"},
    {"flatten", IMAGE, "flatten", "flatten"},
    {"reshape", IMAGE, "reshape [2, -1]", "reshape"},
    {"squeeze", "input x [1, 3]\n", "squeeze 1", "squeeze"},
    {"unsqueeze", ROWS, "unsqueeze -1", "unsqueeze"},
    {"permute", SIGNAL, "permute [0, 2, 1]", "permute"},
    {"transpose", SIGNAL, "transpose", "transpose"},
    {"pad", IMAGE, "pad 1x2", "pad"},
    {"slice", SIGNAL, "slice 1", "slice"},
    {"concat", ROWS "relu\n", "concat x", "concat"},
    {"add", ROWS "relu\n", "add x x", "add"},
    {"multiply", ROWS "relu\n", "multiply x", "multiply"},
    {"embedding", TOKENS, "embedding 9 4", "embedding"},
    {"learned_positions", SIGNAL, "learned_positions", "learned_positions"},
    {"sinusoidal_positions", SIGNAL, "sinusoidal_positions", "sinusoidal_positions"},
    {"rotary", SIGNAL, "rotary 2", "rotary"},
    {"lstm", SIGNAL, "lstm 3", "lstm"},
    {"gru", SIGNAL, "gru 3", "gru"},
    {"rnn", SIGNAL, "rnn 3", "rnn"},
    {"attention", "input x [4, 12]\n", "attention 2", "attention"},
    {"multi_head_attention", SIGNAL, "multi_head_attention 2", "dense"},
    {"swiglu", SIGNAL, "swiglu", "swiglu"},
    {"mlp", SIGNAL, "mlp", "dense"},
    {"transformer", SIGNAL, "transformer 2 causal", "add"},
    {"gpt", TOKENS, "gpt 9 8 1 2", "dense"},
    {"squeeze_excite", IMAGE, "squeeze_excite 2", "multiply"},
};

static mica_status build(mica_context *ctx, const char *text, char *kind)
{
    mica_net *net;
    const char *last = "";
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    mica_status status = mica_netfile_build(net, NULL, text, &(mica_netfile_opts){.batch = 2});
    if (status == MICA_OK) {
        CHECK_OK(ctx, mica_net_layer(net, NULL, &last, NULL, mica_net_layers(net) - 1));
        snprintf(kind, 64, "%s", last);
        status = mica_net_compile(net, NULL);
    }
    mica_net_destroy(net);
    return status;
}

TEST(netfile_words_build_their_layers)
{
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[512], kind[64] = "";
        snprintf(text, sizeof text, "%s%s\n", lines[i].before, lines[i].line);
        CHECK_MSG(build(ctx, text, kind) == MICA_OK, "%s: %s", lines[i].line, mica_error(ctx));
        CHECK_MSG(strcmp(kind, lines[i].kind) == 0, "%s: %s", lines[i].line, kind);
    }
    for (size_t w = 0; w < mica_netfile_word_count; w++) {
        const word *one = &mica_netfile_words[w];
        bool listed = false;
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
            listed = listed || strcmp(lines[i].word, one->name) == 0;
        if (!listed) { /* an activation, which is its own kind */
            char text[128], kind[64] = "";
            snprintf(text, sizeof text, ROWS "%s\ndense 3 %s", one->name, one->name);
            CHECK_MSG(build(ctx, text, kind) == MICA_OK, "%s: %s", one->name, mica_error(ctx));
            CHECK_MSG(strcmp(kind, one->name) == 0, "%s: %s", one->name, kind);
        }
    }
}

/* Something that an option may be. */
static const char *value_for(const word_option *o)
{
    switch (o->kind) {
    case VALUE_FLOAT:
    case VALUE_DOUBLE:
        return "0.5";
    case VALUE_LIST:
        return "[1, 1]";
    case VALUE_ACTIVATION:
        return "tanh";
    case VALUE_INIT:
        return "normal(0.1)";
    case VALUE_CHOICE:
        return o->choices[0];
    case VALUE_NAME:
        return "fresh";
    case VALUE_PARAMETER:
        return "w.weight";
    case VALUE_VALUE:
    case VALUE_VALUES:
        return "x";
    default:
        return "1";
    }
}

/* Each option by itself behind the word's line: it is understood, whether or not the layer then likes it. */
TEST(netfile_options_are_all_understood)
{
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const word *one = mica_find_word(lines[i].word, strlen(lines[i].word));
        for (size_t k = 0; one != NULL && one->build != NULL && k < one->option_count; k++) {
            const word_option *o = &one->options[k];
            char text[512], kind[64];
            if ((o->flags & REQUIRED) != 0 || strchr(lines[i].line, '\n') != NULL)
                continue;
            snprintf(text, sizeof text, "%sdense 3 name=w\n%s from=%s %s%s%s\n", lines[i].before,
                     lines[i].line, strstr(lines[i].before, "\nrelu") != NULL ? "relu1" : "x", o->name,
                     o->kind == VALUE_FLAG ? "" : "=", o->kind == VALUE_FLAG ? "" : value_for(o));
            mica_status status = build(ctx, text, kind);
            CHECK_MSG(status != MICA_ERR_FORMAT || strstr(mica_error(ctx), "given twice") != NULL,
                      "%s %s: %s", lines[i].line, o->name, mica_error(ctx));
        }
    }
}
