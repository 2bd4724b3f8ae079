/* Net files: a network as text, one layer per line (docs/net-files.md has the language).
 *
 *     # LeNet for grey pictures
 *     let classes = 10
 *     input    image [1, 28, 28]
 *     conv     8 3x3 pad=1 relu
 *     max_pool 2x2
 *     flatten
 *     dense    classes name=logits
 *     loss     cross_entropy
 *
 * A text builds into a mica_net, which is then compiled, bound and trained like any other:
 *
 *     mica_netfile_info info;
 *     mica_net_create(ctx, &net);
 *     mica_netfile_build(net, &info, mica_netfile_builtin("lenet"), NULL);
 *     mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam});
 *
 * Text is hostile until checked: a bad one is an error that gives file, line and column, what was found there and
 * what was expected. */
#ifndef MICA_NETFILE_H
#define MICA_NETFILE_H

#include <mica/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A constant of the text ("let width = 128") with another value. */
typedef struct mica_netfile_constant {
    const char *name;
    double value;
    bool optional; /* no error if the text has no such constant: set from the data, not by the user */
} mica_netfile_constant;

typedef struct mica_netfile_opts {
    const char *file; /* its name in messages; NULL: "net" */
    mica_index batch; /* batch size, axis 0 of every input; 0: 1 */
    bool inference;   /* leave out losses and what only they read */
    const mica_netfile_constant *constants;
    size_t constant_count;
    /* The shape of one sample of the data, without the batch. The first input adopts it if the text gives another
     * shape that is compatible: the same number of axes, or [H, W] for [1, 28, 28], or any for a flat [784]. If the
     * text's input has as many elements, it is kept: samples fill rows of any shape. */
    int sample_rank; /* 0: the input is as the text says */
    mica_index sample[MICA_MAX_RANK];
    /* A weight for each class of the first loss, which is then a cross-entropy: see mica_net_loss_opts. NULL: none */
    const float *class_weights;
    mica_index class_weight_count;
} mica_netfile_opts;

/* What a net is for, by its first loss. */
typedef enum mica_task {
    MICA_TASK_NONE,       /* no loss */
    MICA_TASK_CLASSES,    /* one of `classes`: cross-entropy with class indices [N] */
    MICA_TASK_TEXT,       /* the next token: the same for [N, T] tokens at once */
    MICA_TASK_REGRESSION, /* numbers: mse, l1, huber */
    MICA_TASK_BINARY,     /* yes or no, for each output: bce, bce_logits */
} mica_task;

MICA_API const char *mica_task_text(mica_task task);

/* All strings are valid as long as the net. */
typedef struct mica_netfile_info {
    const char *input;  /* the first input, for the data. NULL: none */
    const char *target; /* target of the first loss. NULL: no loss, inference, or an input again */
    const char
        *output; /* what that loss scores (logits), or the last layer's. Kept until the end of a step */
    mica_value output_value;
    mica_task task;     /* that of training, with .inference too */
    mica_index classes; /* the last axis of the output: classes, tokens of the vocabulary, or numbers */
    mica_index length;  /* MICA_TASK_TEXT: tokens of a sequence */
    bool logits; /* the output needs a softmax (classes, text) or sigmoid (binary) to become probabilities */
    /* The text with the given constants and sample shape filled in: enough to rebuild this net without options.
     * Checkpoints store it as metadata MICA_NETFILE_KEY. */
    const char *text;
    const mica_netfile_constant *constants; /* those of the text, with the values used */
    size_t constant_count;
    const char *
        other_input; /* one that layers read besides `input` and `target`, which must be filled too. NULL: none */
} mica_netfile_info;

#define MICA_NETFILE_KEY "mica.net"

/* Limits of a text. */
#define MICA_NETFILE_MOST_BYTES  ((size_t)1 << 20)
#define MICA_NETFILE_MOST_LINES  10000 /* counting every repetition */
#define MICA_NETFILE_MOST_LAYERS 4096
#define MICA_NETFILE_MOST_DEPTH  16 /* of braces */

/* Builds a terminated text into an empty net. `info` may be NULL. Fails with MICA_ERR_FORMAT for an invalid net
 * file, and with the layer's own status if a layer is invalid. */
MICA_API mica_status mica_netfile_build(mica_net *net, mica_netfile_info *info, const char *text,
                                        const mica_netfile_opts *opts);

/* The same from a file. opts->file is the path where it is NULL. */
MICA_API mica_status mica_netfile_load(mica_net *net, mica_netfile_info *info, const char *path,
                                       const mica_netfile_opts *opts);

/* ---- Built-in nets: "mlp", "lenet", "resnet-small", "lstm", "gpt-tiny" ---- */

/* Its text; NULL if there is none of this name. */
MICA_API const char *mica_netfile_builtin(const char *name);
/* The same net with another end: MICA_TASK_REGRESSION predicts `outputs` numbers, MICA_TASK_BINARY as many yes or no.
 * NULL also if there is none for the task. */
MICA_API const char *mica_netfile_builtin_for(const char *name, mica_task task);
/* Names by number; NULL after the last. */
MICA_API const char *mica_netfile_builtin_name(size_t number);

#ifdef __cplusplus
}
#endif
#endif
