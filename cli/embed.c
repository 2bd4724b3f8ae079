/* mica embed: texts as vectors. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/take.h"
#include "cli/picture/text.h"
#include "cli/text/model.h"

typedef struct settings {
    shared_settings shared;
} settings;

static const char details[] = MODEL_HELP
    "It must be an embedding model: bert.\n"
    "\n"
    "Each line of stdin is a text. Its vector is printed on one line: unit length, numbers separated by spaces.\n"
    "A text with more tokens than the model takes is truncated, with a warning. The cosine similarity of two texts is\n"
    "the dot product of their vectors.\n"
    "\n"
    "--json prints one object: vectors, a list of lists, and tokens, the number of tokens of each text.";

typedef struct embedding {
    const settings *set;
    text_model model;
    size_t line;
} embedding;

static void print_vector(const embedding *e, const float *vector, mica_index width)
{
    bool json = e->set->shared.json;
    if (json)
        printf("%s[", e->line > 0 ? ",\n" : "");
    for (mica_index i = 0; i < width; i++)
        printf("%s%.9g", i == 0 ? "" : json ? ", " : " ", (double)vector[i]);
    printf(json ? "]" : "\n");
}

static int embed_line(embedding *e, const char *text, size_t bytes, size_t *tokens_of)
{
    mica_session *session = e->model.session;
    mica_index most = mica_session_about(session).chunk;
    int code = EXIT_OK;
    size_t count;
    int32_t *tokens = text_model_encode(&e->model, &verb_embed, text, bytes, TEXT_ENDS, false, &count, &code);
    if (tokens == NULL)
        return code;
    if (count > (size_t)most) {
        if (!e->set->shared.quiet)
            fprintf(stderr,
                    "mica embed: line %zu has %zu tokens: truncated to the %td that the model takes\n",
                    e->line + 1, count, most);
        tokens[most - 1] = tokens[count - 1]; /* its end stays */
        count = (size_t)most;
    }
    *tokens_of = count;
    mica_tensor vector;
    mica_session_piece piece = {.tokens = tokens, .count = (mica_index)count};
    if (mica_session_run(session, &piece, 1) != MICA_OK || mica_session_logits(session, &vector) != MICA_OK)
        code = verb_failed(&verb_embed, e->model.ctx);
    else
        print_vector(e, vector.data, vector.dim[1]);
    free(tokens);
    return code;
}

static int embed_all(embedding *e)
{
    char *line = NULL;
    size_t room = 0, *counts = NULL, counts_room = 0;
    ssize_t length;
    int code = EXIT_OK;
    if (e->set->shared.json)
        printf("{\"vectors\": [");
    while (code == EXIT_OK && !output_failed() && (length = getline(&line, &room, stdin)) >= 0) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            length--;
        if (e->line == counts_room) {
            size_t larger = counts_room > 0 ? 2 * counts_room : 256, *moved = take(larger, sizeof *moved);
            if (counts != NULL)
                memcpy(moved, counts, counts_room * sizeof *counts);
            free(counts);
            counts = moved;
            counts_room = larger;
        }
        code = embed_line(e, line, (size_t)length, &counts[e->line]);
        e->line++;
    }
    if (code == EXIT_OK && ferror(stdin) != 0)
        code = verb_error(&verb_embed, EXIT_FILE, "cannot read stdin: %s", strerror(errno));
    if (e->set->shared.json && code == EXIT_OK) {
        printf("], \"tokens\": [");
        for (size_t i = 0; i < e->line; i++)
            printf("%s%zu", i > 0 ? ", " : "", counts[i]);
        printf("]}\n");
    }
    free(line);
    free(counts);
    return code;
}

static int run(int argc, char **argv)
{
    settings set = {.shared = SHARED_DEFAULTS};
    session_settings session = {
        .cache = MICA_CACHE_F32}; /* a text is in it for one step: there is no need to save */
    int count = options_read(&verb_embed, &set, argc, argv);
    if (count < 0)
        return EXIT_USAGE;
    if (count != 1)
        return usage_error(&verb_embed,
                           count == 0 ? "which model? The MODEL argument is missing" : "one model at a time");
    mica_context *ctx = verb_context(&verb_embed, &set.shared);
    if (ctx == NULL)
        return EXIT_FAILED;
    embedding e = {.set = &set};
    int code = text_model_open(&e.model, &verb_embed, ctx, argv[0], &session, 0);
    if (code == EXIT_OK && !mica_model_about(e.model.model)->embeds)
        code = verb_error(&verb_embed, EXIT_USAGE,
                          "%s: a model that gives text, not vectors: see mica help generate", argv[0]);
    if (code == EXIT_OK)
        code = text_model_bind(&e.model, &verb_embed);
    if (code == EXIT_OK)
        code = embed_all(&e);
    text_model_close(&e.model);
    mica_context_destroy(ctx);
    return code;
}

const verb verb_embed = {
    .name = "embed",
    .arguments = "MODEL [OPTIONS] < TEXTS",
    .summary = "turn texts into vectors",
    .details = details,
    .run = run,
    .shared = SHARED_JSON | SHARED_THREADS | SHARED_QUIET,
    .examples =
        (const verb_example[]){
            {"embed minilm < sentences.txt", "a vector for each line"},
            {NULL, NULL},
        },
};
