/* A tiny character GPT: learns a text, then writes on.
 *
 *     build/examples/gpt                          a few lines of its own, 250 steps
 *     build/examples/gpt shakespeare.txt 2000     yours */
#include <mica/mica.h>

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 8, LENGTH = 64, WRITE = 200 };

static const char builtin[] =
    "Mary had a little lamb, its fleece was white as snow, and everywhere that Mary went "
    "the lamb was sure to go. It followed her to school one day, which was against the "
    "rule; it made the children laugh and play to see a lamb at school.\n";

/* What to build: the same for training and for writing. */
static mica_value build(mica_net *net, mica_index batch, int vocabulary)
{
    mica_value x = mica_net_input(net, "x", MICA_I32, 2, (mica_index[]){batch, LENGTH});
    mica_value logits = mica_net_gpt(
        net, x,
        &(mica_net_gpt_opts){.vocabulary = vocabulary, .width = 64, .layers = 2, .heads = 4, .tied = true});
    mica_net_output(net, "logits", logits);
    return logits;
}

static mica_status train(mica_net *net, const mica_text *text, uint64_t steps)
{
    mica_context *ctx = mica_net_context(net);
    mica_schedule schedule = {.kind = MICA_SCHEDULE_COSINE, .lr = 3e-3f, .min_lr = 3e-4f, .total = steps};
    for (uint64_t step = 0; step < steps; step++) {
        mica_tensor x, target; /* inputs are set before every step */
        mica_net_tensor(net, &x, "x");
        mica_net_tensor(net, &target, "target");
        mica_status status = mica_windows_random(ctx, &x, &target, &text->tokens,
                                                 mica_random_stream(1, step));
        if (status == MICA_OK)
            status = mica_train_step(net, mica_schedule_lr(&schedule, step));
        if (status != MICA_OK)
            return status;
        if (step % 50 == 0 || step + 1 == steps)
            printf("step %4llu  loss %.3f\n", (unsigned long long)step, (double)mica_net_loss(net));
    }
    return MICA_OK;
}

/* The likeliest next token, again and again: the window holds the last tokens and is run as a whole. */
static mica_status write_on(mica_net *net, const mica_text *text)
{
    mica_context *ctx = mica_net_context(net);
    int32_t window[LENGTH] = {0}, filled = 1; /* begins with the text's first token */
    mica_tensor first = text->tokens,
                to = {.data = window, .dtype = MICA_I32, .rank = 1, .dim = {1}, .stride = {1}};
    first.dim[0] = 1;
    mica_status status = mica_copy(ctx, &to, &first);
    for (int n = 0; n < WRITE && status == MICA_OK; n++) {
        mica_tensor x, logits;
        char piece[8];
        status = mica_text_decode(ctx, piece, sizeof piece, &text->vocabulary, &to);
        fputs(status == MICA_OK ? piece : "", stdout);
        mica_net_tensor(net, &x, "x");
        for (int i = 0; i < LENGTH; i++)
            ((int32_t *)x.data)[i] = window[i];
        if (status == MICA_OK)
            status = mica_net_forward(net);
        mica_net_tensor(net, &logits, "logits");
        const float *row = (const float *)logits.data + (filled - 1) * logits.dim[2];
        int32_t best = 0;
        for (int32_t v = 1; v < logits.dim[2]; v++)
            best = row[v] > row[best] ? v : best;
        if (filled == LENGTH)
            for (int i = 1; i < LENGTH; i++)
                window[i - 1] = window[i];
        else
            filled++;
        window[filled - 1] = best;
        to.data = &window[filled - 1];
    }
    putchar('\n');
    return status;
}

#define TRY(call)          \
    if ((call) != MICA_OK) \
    return fprintf(stderr, "%s\n", mica_error(ctx)), 1

int main(int argc, char **argv)
{
    mica_context *ctx;
    mica_net *learner, *writer;
    mica_text text;
    mica_text_opts characters = {.characters = true};
    if (mica_context_create(&ctx, &(mica_context_opts){.threads = 2}) != MICA_OK)
        return 1;
    TRY(argc > 1 ? mica_text_load(ctx, &text, argv[1], &characters)
                 : mica_text_from_memory(ctx, &text, builtin, sizeof builtin - 1, &characters));
    TRY(mica_net_create(ctx, &learner));
    mica_value logits = build(learner, BATCH, text.vocabulary.count);
    mica_value target = mica_net_input(learner, "target", MICA_I32, 2, (mica_index[]){BATCH, LENGTH});
    mica_net_cross_entropy(learner, logits, target, NULL);
    mica_optimizer adamw = {.kind = MICA_ADAMW, .beta2 = 0.99f, .weight_decay = 0.1f, .clip_norm = 1.0f};
    TRY(mica_net_compile(learner, &(mica_compile_opts){.train = true, .optimizer = &adamw}));
    TRY(mica_net_bind(learner, NULL, 0)); /* the only memory that training takes */
    TRY(mica_net_initialize(learner, 42));
    TRY(train(learner, &text, argc > 2 ? (uint64_t)atoi(argv[2]) : 250));

    TRY(mica_net_create(ctx, &writer)); /* one sequence at a time, with the learner's weights */
    build(writer, 1, text.vocabulary.count);
    TRY(mica_net_compile(writer, &(mica_compile_opts){.weights = learner}));
    TRY(mica_net_bind(writer, NULL, 0));
    TRY(mica_net_initialize(writer, 0));
    TRY(write_on(writer, &text));
    mica_net_destroy(writer);
    mica_net_destroy(learner);
    mica_text_destroy(ctx, &text);
    mica_context_destroy(ctx);
    return 0;
}
