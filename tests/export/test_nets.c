/* Random nets of every layer of net files, exported for runs and for training: the same outputs, and the same
 * losses over 50 steps, as the library's. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "export/compiled.h"

enum { NETS = 200, STEPS = 50 };

/* ---- A net as text ---- */

typedef struct writer {
    test_random r;
    char text[4096];
    int channels, rows,
        columns; /* of the last layer: [channels, rows, columns], [channels, columns], [columns] */
    int rank;
    bool batch_norm; /* may be used: the batch is two or more */
} writer;

static void put(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(writer *w, const char *format, ...)
{
    va_list list;
    size_t length = strlen(w->text);
    va_start(list, format);
    vsnprintf(w->text + length, sizeof w->text - length, format, list);
    va_end(list);
}

static const char *activation(writer *w)
{
    static const char *const names[] = {"",      " relu",    " relu6",     " leaky_relu",
                                        " elu",  " sigmoid", " tanh",      " softplus",
                                        " silu", " gelu",    " gelu_tanh", " hard_swish"};
    return names[test_int(&w->r, 0, 11)];
}

static int one_of(writer *w, int a, int b, int c)
{
    int n = test_int(&w->r, 0, 2);
    return n == 0 ? a : n == 1 ? b : c;
}

/* Any layer that keeps the shape. */
static void put_plain(writer *w)
{
    switch (test_int(&w->r, 0, 8)) {
    case 0:
        put(w, "layer_norm%s\n", activation(w));
        break;
    case 1:
        put(w, "rms_norm%s\n", activation(w));
        break;
    case 2:
        put(w, w->batch_norm ? "batch_norm%s\n" : "layer_norm%s\n", activation(w));
        break;
    case 3:
        put(w, "dropout 0.%d\n", test_int(&w->r, 1, 6));
        break;
    case 4:
        put(w, "%s\n", test_chance(&w->r, 50) ? "softmax" : "log_softmax");
        break;
    case 5:
        put(w, "residual {\nlayer_norm\n%s\n}\n", activation(w)[0] != '\0' ? "tanh" : "gelu");
        break;
    case 6:
        put(w, "mlp %d\n", test_int(&w->r, 2, 9));
        break;
    default:
        put(w, "%s\n", activation(w)[0] != '\0' ? "silu" : "hard_swish");
    }
}

static void put_vector(writer *w)
{
    int units = 2 * test_int(&w->r, 1, 8);
    switch (test_int(&w->r, 0, 5)) {
    case 0:
    case 1:
        put(w, "dense %d%s%s\n", units, activation(w), test_chance(&w->r, 20) ? " no_bias" : "");
        w->columns = units;
        break;
    case 2:
        put(w, "residual {\ndense %d%s\ndense %d\n}\n", units, activation(w), w->columns);
        break;
    case 3:
        if (w->columns % 2 == 0) {
            put(w, "swiglu\n");
            w->columns /= 2;
        }
        break;
    default:
        put_plain(w);
    }
}

/* A window that fits: its size, then what is left of a side. */
static int after(int size, int kernel, int stride, int pad) { return (size + 2 * pad - kernel) / stride + 1; }

static void put_conv(writer *w)
{
    bool flat = w->rank == 2;
    int kernel = test_int(&w->r, 1, 3), stride = test_int(&w->r, 1, 2), pad = test_int(&w->r, 0, kernel / 2);
    int groups = w->channels % 2 == 0 && test_chance(&w->r, 30) ? 2 : 1,
        channels = groups * test_int(&w->r, 1, 4);
    int least = flat || w->columns < w->rows ? w->columns : w->rows;
    char size[16], step[16], border[16];
    if (kernel > least)
        kernel = 1, pad = 0;
    snprintf(size, sizeof size, flat ? "%d" : "%dx%d", kernel, kernel);
    snprintf(step, sizeof step, flat ? "%d" : "%dx%d", stride, stride);
    snprintf(border, sizeof border, flat ? "%d" : "%dx%d", pad, pad);
    switch (test_int(&w->r, 0, 7)) {
    case 0:
    case 1:
        put(w, "conv %d %s%s stride=%s pad=%s groups=%d\n", channels, size, activation(w), step, border,
            groups);
        w->channels = channels;
        break;
    case 2:
        put(w, "conv %d %s%s same dilation=%s\n", channels, flat ? "3" : "3x3", activation(w),
            flat ? "2" : "2x2");
        w->channels = channels;
        return;
    case 3:
        if (flat) /* of images only */
            put(w, "conv %d %s%s stride=%s pad=%s groups=%d\n", w->channels, size, activation(w), step,
                border, w->channels);
        else
            put(w, "depthwise_conv %s%s stride=%s pad=%s\n", size, activation(w), step, border);
        break;
    case 4:
        put(w, "conv_transpose %d %s%s stride=%s\n", channels, size, activation(w), step);
        w->channels = channels;
        w->columns = (w->columns - 1) * stride + kernel;
        w->rows = (w->rows - 1) * stride + kernel;
        return;
    case 5:
        put(w, "max_pool %s stride=%s\n", size, step);
        pad = 0;
        break;
    case 6:
        put(w, "avg_pool %s stride=%s pad=%s\n", size, step, border);
        break;
    default:
        put(w, flat ? "adaptive_avg_pool %d\n" : "adaptive_avg_pool %dx3\n", test_int(&w->r, 2, 4));
        break;
    }
    if (strstr(w->text + strlen(w->text) - 24, "adaptive") != NULL) {
        const char *number = strrchr(w->text, ' ') + 1;
        w->rows = number[0] - '0';
        w->columns = flat ? w->rows : 3;
        return;
    }
    w->columns = after(w->columns, kernel, stride, pad);
    w->rows = after(w->rows, kernel, stride, pad);
}

static void put_image(writer *w)
{
    int groups = w->channels % 2 == 0 ? 2 : 1;
    switch (test_int(&w->r, 0, 7)) {
    case 0:
        put(w, "group_norm %d%s\n", groups, activation(w));
        break;
    case 1:
        put(w, w->rank == 3 ? "squeeze_excite 2\n" : "instance_norm\n");
        break;
    case 2:
        put(w, "residual {\nconv %d %s same%s\n}\n", w->channels, w->rank == 2 ? "3" : "3x3", activation(w));
        break;
    case 3:
        put(w, w->batch_norm ? "batch_norm%s\n" : "instance_norm%s\n", activation(w));
        break;
    default:
        put_conv(w);
    }
}

/* Over [channels, columns]: time, features. */
static void put_sequence(writer *w)
{
    int units = 2 * test_int(&w->r, 1, 4);
    switch (test_int(&w->r, 0, 9)) {
    case 0:
        put(w, "lstm %d\n", units);
        w->columns = units;
        break;
    case 1:
        put(w, "gru %d\n", units);
        w->columns = units;
        break;
    case 2:
        put(w, "rnn %d\n", units);
        w->columns = units;
        break;
    case 3:
        put(w, "%s\n", test_chance(&w->r, 50) ? "learned_positions" : "sinusoidal_positions");
        break;
    case 4:
        put(w, "dense 8\ntransformer 2 causal\n");
        w->columns = 8;
        break;
    case 5:
        put(w, "dense 8\nmulti_head_attention %d%s\n", one_of(w, 1, 2, 4),
            test_chance(&w->r, 50) ? " causal" : "");
        w->columns = 8;
        break;
    case 6:
        put(w, "dense %d%s\n", units, activation(w));
        w->columns = units;
        break;
    case 7:
        put(w, "rotary\n");
        if (w->columns % 2 != 0)
            w->text[strlen(w->text) - 7] = '\0';
        break;
    default:
        put_plain(w);
    }
}

static void put_end(writer *w)
{
    static const char *const losses[] = {"cross_entropy", "cross_entropy smoothing=0.1", "mse", "huber", "l1",
                                         "bce_logits",    "cross_entropy one_hot"};
    put(w, "dense %d\nloss %s\n", test_int(&w->r, 2, 6), losses[test_int(&w->r, 0, 6)]);
}

static void write_net(writer *w, uint64_t seed)
{
    w->r = test_seed(seed);
    w->text[0] = '\0';
    int layers = test_int(&w->r, 1, 5), kind = (int)(seed % 5);
    if (kind == 0) {
        w->rank = 1, w->columns = test_int(&w->r, 2, 10);
        put(w, "input x [%d]\n", w->columns);
        for (int i = 0; i < layers; i++)
            put_vector(w);
    } else if (kind <= 2) {
        w->rank = kind == 1 ? 3 : 2;
        w->channels = test_int(&w->r, 1, 4), w->rows = test_int(&w->r, 4, 9),
        w->columns = test_int(&w->r, 4, 9);
        if (w->rank == 3)
            put(w, "input x [%d, %d, %d]\n", w->channels, w->rows, w->columns);
        else
            put(w, "input x [%d, %d]\n", w->channels, w->columns);
        for (int i = 0; i < layers; i++)
            put_image(w);
        put(w, test_chance(&w->r, 50) ? "global_avg_pool\n" : "flatten\n");
    } else {
        w->rank = 2, w->channels = test_int(&w->r, 1, 6), w->columns = test_int(&w->r, 2, 6);
        if (kind == 3)
            put(w, "input x [%d, %d]\n", w->channels, w->columns);
        else
            put(w, "input x [%d] i32\nembedding 9 %d\n", w->channels, w->columns);
        w->batch_norm = false; /* its channels would be times */
        for (int i = 0; i < layers; i++)
            put_sequence(w);
        put(w, "%s\n", test_chance(&w->r, 50) ? "flatten" : "gru 3 last");
    }
    put_end(w);
}

/* ---- Exporting it ---- */

typedef struct job {
    mica_net *net, *check;
    mica_netfile_info info;
    char name[64];
    export_opts opts;
    mica_optimizer optimizer;
} job;

static bool compile(job *j, mica_net *net, mica_context *ctx)
{
    mica_compile_opts opts = {.train = j->opts.train, .optimizer = j->opts.train ? &j->optimizer : NULL};
    return CHECK_OK(ctx, mica_net_compile(net, &opts));
}

static bool build(job *j, mica_context *ctx, const char *words, mica_index batch)
{
    mica_netfile_opts opts = {.batch = batch, .inference = !j->opts.train};
    if (!CHECK_OK(ctx, mica_net_create(ctx, &j->check)) ||
        !CHECK_MSG(mica_netfile_build(j->check, &j->info, words, &opts) == MICA_OK, "%s: %s\n%s", j->name,
                   mica_error(ctx), words) ||
        !compile(j, j->check, ctx))
        return false;
    bool apart = batch > 1 && !mica_net_keeps_states(j->check) && mica_net_samples_apart(j->check);
    opts.batch = j->opts.batch = (int)(apart ? 1 : batch);
    j->opts.samples = apart ? (int)batch : 1;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &j->net)) ||
        !CHECK_OK(ctx, mica_netfile_build(j->net, &j->info, words, &opts)) || !compile(j, j->net, ctx))
        return false;
    j->opts.output = j->info.output;
    return CHECK_OK(ctx, mica_net_bind(j->net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(j->net, 7)) &&
           CHECK_OK(ctx, mica_net_bind(j->check, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(j->check, 7));
}

static void try_net(mica_context *ctx, compiled *all, const char *name, const char *words, mica_index batch,
                    int method)
{
    job j = {.net = NULL};
    snprintf(j.name, sizeof j.name, "%s_%s", name,
             method == 0   ? "run"
             : method == 1 ? "sgd"
             : method == 2 ? "momentum"
                           : "adam");
    j.optimizer = (mica_optimizer){.kind = method == 3 ? MICA_ADAM : MICA_SGD,
                                   .momentum = method == 2 ? 0.9f : 0.0f};
    j.opts = (export_opts){
        .name = j.name, .source = name, .train = method > 0, .optimizer = &j.optimizer, .steps = STEPS};
    if (build(&j, ctx, words, batch)) {
        exported e;
        text why = {0};
        if (CHECK_MSG(export_net(&e, j.net, j.check, &j.opts, &why), "%s is refused: %s\n%s", j.name,
                      why.bytes != NULL ? why.bytes : "", words))
            compiled_add_test(all, j.name, &e);
        exported_free(&e);
        text_free(&why);
    }
    mica_net_destroy(j.net);
    mica_net_destroy(j.check);
}

TEST(export_random_nets)
{
    mica_context *ctx = test_context(1);
    compiled all;
    if (!compiled_start(&all, "nets"))
        return;
    for (int i = 0; i < test_effort(NETS); i++) {
        mica_index batch = 1 + i / 5 % 3;
        writer w = {.batch_norm = batch > 1};
        char name[32];
        write_net(&w, (uint64_t)i);
        snprintf(name, sizeof name, "net%d", i);
        try_net(ctx, &all, name, w.text, batch, i % 2 == 0 ? 0 : 1 + i / 2 % 3);
        if (i % 2 == 0)
            try_net(ctx, &all, name, w.text, batch, 1 + i / 2 % 3);
    }
    compiled_run(&all);
}

/* What random nets do not reach: options of layers, states that are kept, moves along axes. */
static const char *const fixed[] = {
    "input x [5, 3]\nlstm 4 keep_state layers=2\ndense 2\nloss mse\n",
    "input x [1, 3]\ngru 4 keep_state last\ndense 2\nloss mse\n",
    "input x [4, 3]\nrnn 5 relu keep_state no_bias\ndense 2\nloss mse\n",
    "input x [6, 3]\nlstm 4 last no_bias layers=2\ndense 3\nloss cross_entropy\n",
    "input x [6] i32\ngpt 11 8 2 2\nloss cross_entropy\n",
    "input x [6] i32\ngpt 11 8 2 4 llama kv_heads=2\nloss cross_entropy\n",
    "input x [6] i32\ngpt 11 8 1 2 dropout=0.2\nloss cross_entropy ignore=3\n",
    "input x [5, 8]\nmulti_head_attention 4 kv_heads=2 causal rotary\nmlp 9 swiglu\nflatten\ndense 3\nloss mse\n",
    "input x [5, 8]\ntransformer 2 rotary rotary_interleaved rms_norm swiglu\nflatten\ndense 3\nloss mse\n",
    "input m [5, 5]\ninput x [5, 8]\nmulti_head_attention 2 mask=m\nflatten\ndense 3\nloss mse\n",
    "input x [5, 12]\nattention 2 causal scale=0.5\nrotary 2 width=2\nflatten\ndense 3\nloss mse\n",
    "input x [2, 6, 6]\npad 1x2 reflect\nconv 3 3x3\nslice 2 start=1 stop=4 step=2\npermute [0, 2, 3, 1]\nflatten\ndense 3\n"
    "loss cross_entropy\n",
    "input x [2, 6, 6]\npad 1x2 value=0.5\nconv 3 3x3 stride=2x1 name=a\nrelu\nconcat a\ntranspose 2 3\n"
    "reshape [6, -1]\nglobal_avg_pool\ndense 3\nloss cross_entropy\n",
    "input x [3, 8, 8]\nconv 4 3x3 same name=a\nconv 4 1x1 relu\nadd a relu\nconv 4 3x3 same\nmultiply a\n"
    "max_pool 3x3 stride=2x2 pad=1x1 ceil\navg_pool 2x2 ceil pad=1x1 exclude_pad\nglobal_avg_pool keep\nflatten\n"
    "dense 3\nloss cross_entropy\n",
    "input x [4, 7, 7]\ndepthwise_conv 3x3 relu6 channels=8 same\nconv 6 1x1 no_bias\nbatch_norm relu\nsqueeze_excite 2\n"
    "residual project relu {\nconv 4 3x3 same stride=2x2\nbatch_norm\n}\nglobal_avg_pool\ndense 3\nloss cross_entropy\n",
    "input x [3, 9]\nmax_pool 3 stride=2 dilation=2\nconv_transpose 4 3 stride=2 output_pad=1 groups=1 elu\n"
    "avg_pool 3 stride=1 pad=1\nglobal_avg_pool\nunsqueeze 1\nsqueeze 1\ndense 2\nloss bce_logits\n",
    "input x [6]\ndense 8 tanh\ndense 3\nsoftmax\nloss cross_entropy_probs\n",
    "input x [6]\ndense 8 tanh\ndense 3\nsigmoid\nloss bce weight=0.5\n",
    "input x [6]\ndense 8 gelu\nl2_normalize axis=-1\ndense 3\nloss huber delta=0.5\n",
};

TEST(export_fixed_nets)
{
    mica_context *ctx = test_context(1);
    compiled all;
    if (!compiled_start(&all, "fixed"))
        return;
    for (int i = 0; i < (int)(sizeof fixed / sizeof fixed[0]); i++)
        for (int method = 0; method < 4; method++) {
            char name[32];
            snprintf(name, sizeof name, "fixed%d", i);
            try_net(ctx, &all, name, fixed[i],
                    method % 2 == 0 && strstr(fixed[i], "mask") == NULL ? 2
                    : strstr(fixed[i], "batch_norm") != NULL            ? 3
                                                                        : 1,
                    method);
        }
    compiled_run(&all);
}

/* The nets that come with Mica; the large ones smaller. */
TEST(export_builtin_nets)
{
    mica_context *ctx = test_context(1);
    compiled all;
    if (!compiled_start(&all, "builtin"))
        return;
    for (size_t i = 0; mica_netfile_builtin_name(i) != NULL; i++) {
        char name[64];
        size_t n = 0;
        for (const char *p = mica_netfile_builtin_name(i); *p != '\0' && n + 1 < sizeof name; p++)
            name[n++] = *p == '-' ? '_' : *p;
        name[n] = '\0';
        for (int method = 0; method < 3; method += 2)
            try_net(ctx, &all, name, mica_netfile_builtin(mica_netfile_builtin_name(i)), 2, method);
    }
    compiled_run(&all);
}
