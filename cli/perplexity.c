/* mica perplexity: how well a text model foresees a text. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/take.h"
#include "cli/picture/text.h"
#include "cli/text/model.h"

typedef struct settings {
    shared_settings shared;
    session_settings session;
    const char *data, *tokens, *logits;
} settings;

static const verb_option options[] = {
    {.name = "--data", OPTION_TEXT, offsetof(settings, data), "FILE", "the text; - is stdin"},
    {.name = "--tokens",
     OPTION_TEXT,
     offsetof(settings, tokens),
     "FILE",
     "token numbers instead of text, separated by white space or commas"},
    {.name = "--logits",
     OPTION_TEXT,
     offsetof(settings, logits),
     "FILE",
     "write the logits of every token, f32 [tokens, vocabulary], as a .npy file"},
    SESSION_OPTIONS(settings, "512"),
};

static const char details[] = MODEL_HELP
    "\n"
    "The text is cut into pieces of --context tokens (512), the last one left out if it is shorter. Each begins anew,\n"
    "with bos in place of its first token if the model wants one. Only predictions of tokens in the second half of each\n"
    "piece count, as in llama.cpp.\n"
    "\n"
    "--json prints one object: perplexity, tokens (how many were counted).";

enum { ROWS = 128, USUAL_CONTEXT = 512 };

typedef struct counting {
    const settings *set;
    text_model model;
    int32_t *tokens;
    size_t count;
    FILE *out;  /* of logits; NULL: none */
    double sum; /* of -log p */
    size_t counted;
} counting;

/* ---- Tokens ---- */

static int read_numbers(counting *c)
{
    int code = EXIT_OK;
    size_t bytes;
    char *text = text_read_all(&verb_perplexity, c->set->tokens, &bytes, &code), *at = text, *end;
    if (text == NULL)
        return code;
    c->tokens = take(bytes / 2 + 2, sizeof *c->tokens);
    for (;; at = end) {
        while (*at != '\0' && strchr(" \t\r\n,", *at) != NULL)
            at++;
        errno = 0;
        long token = strtol(at, &end, 10);
        if (end == at)
            break;
        if (errno != 0 || token < 0 || token > INT32_MAX) {
            code = verb_error(&verb_perplexity, EXIT_FILE, "%s: number %zu is not a token", c->set->tokens,
                              c->count);
            break;
        }
        c->tokens[c->count++] = (int32_t)token;
    }
    if (code == EXIT_OK && *at != '\0')
        code = verb_error(&verb_perplexity, EXIT_FILE, "%s: expected numbers, got '%.8s' at byte %td",
                          c->set->tokens, at, at - text);
    free(text);
    return code;
}

static int read_tokens(counting *c)
{
    if (c->set->tokens != NULL)
        return read_numbers(c);
    int code = EXIT_OK;
    size_t bytes;
    char *text = text_read_all(&verb_perplexity, c->set->data, &bytes, &code);
    if (text == NULL)
        return code;
    c->tokens = text_model_encode(&c->model, &verb_perplexity, text, bytes, TEXT_BEGIN, false, &c->count,
                                  &code);
    free(text);
    return code;
}

/* ---- Counting ---- */

/* -log p of a token, in double. */
static double surprise(const float *logits, mica_index vocabulary, int32_t token)
{
    double top = (double)logits[0];
    for (mica_index i = 1; i < vocabulary; i++)
        top = (double)logits[i] > top ? (double)logits[i] : top;
    double sum = exp((double)logits[0] - top);
    for (mica_index i = 1; i < vocabulary; i++)
        sum += exp((double)logits[i] - top);
    return log(sum) + top - (double)logits[token];
}

/* Runs a piece of `context` tokens. */
static int run_piece(counting *c, const int32_t *tokens, size_t context)
{
    mica_session *session = c->model.session;
    mica_context *ctx = c->model.ctx;
    mica_index vocabulary = mica_model_about(c->model.model)->vocabulary;
    if (mica_session_cut(session, 0, 0) != MICA_OK)
        return verb_failed(&verb_perplexity, ctx);
    for (size_t first = 0; first < context; first += ROWS) {
        size_t rows = context - first < ROWS ? context - first : ROWS;
        mica_session_piece piece = {
            .tokens = tokens + first, .count = (mica_index)rows, .logits = (mica_index)rows};
        mica_tensor logits;
        if (mica_session_run(session, &piece, 1) != MICA_OK ||
            mica_session_logits(session, &logits) != MICA_OK)
            return verb_failed(&verb_perplexity, ctx);
        size_t numbers = rows * (size_t)vocabulary;
        if (c->out != NULL && fwrite(logits.data, sizeof(float), numbers, c->out) != numbers)
            return verb_error(&verb_perplexity, EXIT_FAILED, "cannot write %s: %s", c->set->logits,
                              strerror(errno));
        for (size_t i = 0; i < rows; i++) {
            size_t at = first + i;
            if (at + 1 >= context || at < context / 2)
                continue;
            c->sum += surprise((const float *)logits.data + i * (size_t)vocabulary, vocabulary,
                               tokens[at + 1]);
            c->counted++;
        }
    }
    return EXIT_OK;
}

/* The head of a .npy file: 128 bytes. */
static int begin_logits(counting *c, size_t rows)
{
    if (c->set->logits == NULL)
        return EXIT_OK;
    char head[128] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
    c->out = fopen(c->set->logits, "wb");
    int end = 10 + snprintf(head + 10, sizeof head - 10,
                            "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %td), }", rows,
                            mica_model_about(c->model.model)->vocabulary);
    memset(head + end, ' ', sizeof head - (size_t)end);
    head[127] = '\n';
    if (c->out == NULL || fwrite(head, 1, sizeof head, c->out) != sizeof head)
        return verb_error(&verb_perplexity, EXIT_FAILED, "cannot write %s: %s", c->set->logits,
                          strerror(errno));
    return EXIT_OK;
}

static int count_text_of(counting *c)
{
    const mica_tokenizer_info *about = mica_tokenizer_about(mica_model_tokenizer(c->model.model));
    size_t context = (size_t)mica_session_about(c->model.session).context, pieces = c->count / context;
    bool is_text = c->set->tokens == NULL;
    if (pieces == 0 && is_text)
        return verb_error(&verb_perplexity, EXIT_FILE,
                          "the text has %zu tokens: expected at least one piece of %zu (--context)", c->count,
                          context);
    if (pieces == 0) { /* fewer tokens are one piece: their logits may be wanted */
        context = c->count;
        pieces = c->count > 0;
    }
    mica_index vocabulary = mica_model_about(c->model.model)->vocabulary;
    for (size_t i = 0; i < pieces * context; i++)
        if (c->tokens[i] >= vocabulary)
            return verb_error(&verb_perplexity, EXIT_FILE, "token %d, number %zu: the model has %td tokens",
                              (int)c->tokens[i], i, vocabulary);
    int code = begin_logits(c, pieces * context);
    for (size_t i = 0; i < pieces && code == EXIT_OK; i++) {
        int32_t *tokens = c->tokens + i * context;
        if (is_text && about->add_bos && about->bos >= 0)
            tokens[0] = about->bos;
        code = run_piece(c, tokens, context);
        if (!c->set->shared.quiet && terminal_of(2).is_terminal)
            fprintf(stderr, "\r%zu of %zu pieces, perplexity %.4f ", i + 1, pieces,
                    exp(c->sum / (double)c->counted));
    }
    if (!c->set->shared.quiet && terminal_of(2).is_terminal)
        fputc('\n', stderr);
    return code;
}

static int measure(counting *c, mica_context *ctx, const char *path)
{
    session_settings session = c->set->session;
    session.context = session.context > 0 ? session.context : USUAL_CONTEXT;
    int code = text_model_open(&c->model, &verb_perplexity, ctx, path, &session, ROWS);
    if (code == EXIT_OK && mica_model_about(c->model.model)->embeds)
        code = verb_error(&verb_perplexity, EXIT_USAGE, "%s: a model that gives vectors, not text", path);
    if (code == EXIT_OK)
        code = read_tokens(c);
    if (code == EXIT_OK)
        code = text_model_bind(&c->model, &verb_perplexity);
    if (code == EXIT_OK)
        code = count_text_of(c);
    if (c->out != NULL && fclose(c->out) != 0 && code == EXIT_OK)
        code = verb_error(&verb_perplexity, EXIT_FAILED, "cannot write %s: %s", c->set->logits,
                          strerror(errno));
    if (code != EXIT_OK)
        return code;
    double perplexity = c->counted > 0 ? exp(c->sum / (double)c->counted) : NAN;
    if (c->set->shared.json) {
        printf("{\"perplexity\": ");
        put_json_number(stdout, perplexity);
        printf(", \"tokens\": %zu}\n", c->counted);
    } else {
        printf("perplexity %.4f over %zu tokens\n", perplexity, c->counted);
    }
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    settings set = {.shared = SHARED_DEFAULTS, .session = SESSION_DEFAULTS};
    int count = options_read(&verb_perplexity, &set, argc, argv);
    if (count < 0)
        return EXIT_USAGE;
    if (count != 1)
        return usage_error(&verb_perplexity,
                           count == 0 ? "which model? The MODEL argument is missing" : "one model at a time");
    if ((set.data == NULL) == (set.tokens == NULL))
        return usage_error(&verb_perplexity, "which text? Expected one of --data FILE and --tokens FILE");
    mica_context *ctx = verb_context(&verb_perplexity, &set.shared);
    if (ctx == NULL)
        return EXIT_FAILED;
    counting c = {.set = &set};
    int code = measure(&c, ctx, argv[0]);
    text_model_close(&c.model);
    free(c.tokens);
    mica_context_destroy(ctx);
    return code;
}

const verb verb_perplexity = {
    .name = "perplexity",
    .arguments = "MODEL --data FILE [OPTIONS]",
    .summary = "measure how well a text model predicts a text",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_JSON | SHARED_THREADS | SHARED_QUIET,
    .examples =
        (const verb_example[]){
            {"perplexity smollm2.gguf --data novel.txt", "pieces of 512 tokens"},
            {"perplexity smollm2.gguf --data novel.txt --context 1024 --json", "longer ones, as JSON"},
            {NULL, NULL},
        },
};
