/* The built-in nets. */
#include <mica/netfile.h>

#include <string.h>

/* The constants and the ends of nets that can be had for several tasks. */
#define LET_CLASSES    "let classes = 10\n"
#define LET_OUTPUTS    "let outputs = 1\n"
#define END_CLASSES    "dense    classes name=logits\nloss     cross_entropy\n"
#define END_REGRESSION "dense    outputs name=numbers\nloss     mse\n"
#define END_BINARY     "dense    outputs name=logits\nloss     bce_logits\n"

#define MLP(let, end)                                              \
    "# A multilayer perceptron, for pictures or rows of numbers\n" \
    "let hidden  = 128\n" let                                      \
    "\n"                                                           \
    "input    x [784]\n"                                           \
    "dense    hidden relu\n"                                       \
    "dense    hidden relu\n" end

#define LENET(let, end)                                                           \
    "# A small convolutional net in the manner of LeNet, for grey pictures\n" let \
    "\n"                                                                          \
    "input    image [1, 28, 28]\n"                                                \
    "conv     8 3x3 pad=1 relu\n"                                                 \
    "max_pool 2x2\n"                                                              \
    "conv     16 3x3 pad=1 relu\n"                                                \
    "max_pool 2x2\n"                                                              \
    "flatten\n"                                                                   \
    "dense    128 relu\n" end

static const char resnet_small[] =
    "# A residual net of three stages, each with half the size and twice the channels\n"
    "let width   = 16\n"
    "let blocks  = 1  # more of them in each stage\n"
    "let classes = 10\n"
    "\n"
    "input image [1, 28, 28]\n"
    "conv  width 3x3 pad=1 no_bias\n"
    "batch_norm relu\n"
    "repeat 3 index=stage {\n"
    "    residual project relu {\n"
    "        conv width*2^stage 3x3 pad=1 stride=2 no_bias\n"
    "        batch_norm relu\n"
    "        conv width*2^stage 3x3 pad=1 no_bias\n"
    "        batch_norm\n"
    "    }\n"
    "    repeat blocks-1 {\n"
    "        residual relu {\n"
    "            conv width*2^stage 3x3 pad=1 no_bias\n"
    "            batch_norm relu\n"
    "            conv width*2^stage 3x3 pad=1 no_bias\n"
    "            batch_norm\n"
    "        }\n"
    "    }\n"
    "}\n"
    "global_avg_pool\n"
    "dense classes name=logits\n"
    "loss  cross_entropy\n";

static const char lstm[] =
    "# A recurrent net that reads text, one character or byte a step, and guesses the next\n"
    "let vocabulary = 256\n"
    "let length     = 64\n"
    "let width      = 128\n"
    "\n"
    "input     text [length] i32\n"
    "embedding vocabulary width init=normal(0.02) name=tokens\n"
    "lstm      width layers=2\n"
    "dense     vocabulary name=logits\n"
    "loss      cross_entropy\n";

static const char gpt_tiny[] =
    "# A GPT: a decoder of the GPT-2 kind over characters or bytes\n"
    "let vocabulary = 256\n"
    "let length     = 64\n"
    "let width      = 128\n"
    "let layers     = 4\n"
    "let heads      = 4\n"
    "let dropout    = 0\n"
    "\n"
    "input     text [length] i32\n"
    "embedding vocabulary width init=normal(0.02) name=tokens\n"
    "learned_positions name=positions\n"
    "dropout   dropout\n"
    "repeat layers {\n"
    "    transformer heads causal gelu_tanh dropout=dropout init=normal(0.02) out_init=normal(0.02/(2*layers)^0.5)\n"
    "}\n"
    "layer_norm name=norm\n"
    "dense     vocabulary no_bias init=normal(0.02) name=logits\n"
    "loss      cross_entropy\n";

static const char keywords[] =
    "# Spoken words, from log-mel features: a small convolution, then depthwise-separable ones\n"
    "let width   = 64\n"
    "let blocks  = 4\n"
    "let classes = 10\n"
    "\n"
    "input sound [1, 49, 40]  # frames of 20 ms, mels\n"
    "conv  width 9x3 pad=4x1 stride=2 no_bias\n"
    "batch_norm relu\n"
    "repeat blocks {\n"
    "    depthwise_conv 3x3 pad=1 no_bias\n"
    "    batch_norm relu\n"
    "    conv width 1x1 no_bias\n"
    "    batch_norm relu\n"
    "}\n"
    "global_avg_pool\n"
    "dense classes name=logits\n"
    "loss  cross_entropy\n";

static const struct {
    const char *name, *text, *regression, *binary; /* NULL: there is none for that task */
} nets[] = {
    {"mlp", MLP(LET_CLASSES, END_CLASSES), MLP(LET_OUTPUTS, END_REGRESSION), MLP(LET_OUTPUTS, END_BINARY)},
    {"lenet", LENET(LET_CLASSES, END_CLASSES), LENET(LET_OUTPUTS, END_REGRESSION),
     LENET(LET_OUTPUTS, END_BINARY)},
    {"resnet-small", resnet_small, NULL, NULL},
    {"lstm", lstm, NULL, NULL},
    {"gpt-tiny", gpt_tiny, NULL, NULL},
    {"keywords", keywords, NULL, NULL},
};

#define NET_COUNT (sizeof nets / sizeof nets[0])

const char *mica_netfile_builtin(const char *name)
{
    for (size_t i = 0; i < NET_COUNT; i++)
        if (strcmp(nets[i].name, name) == 0)
            return nets[i].text;
    return NULL;
}

const char *mica_netfile_builtin_for(const char *name, mica_task task)
{
    for (size_t i = 0; i < NET_COUNT; i++)
        if (strcmp(nets[i].name, name) == 0)
            return task == MICA_TASK_REGRESSION ? nets[i].regression
                   : task == MICA_TASK_BINARY   ? nets[i].binary
                                                : nets[i].text;
    return NULL;
}

const char *mica_netfile_builtin_name(size_t number) { return number < NET_COUNT ? nets[number].name : NULL; }

const char *mica_task_text(mica_task task)
{
    static const char *const texts[] = {"none", "classes", "text", "regression", "binary"};
    return (unsigned)task < sizeof texts / sizeof texts[0] ? texts[task] : "none";
}
