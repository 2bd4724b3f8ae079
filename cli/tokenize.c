/* mica tokenize: text as the tokens of a model, and back. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mica/tokenizer.h>

#include "cli/model/take.h"
#include "cli/picture/text.h"
#include "cli/text/model.h"
#include "io/file.h"

typedef struct settings {
    shared_settings shared;
    bool special, decode, count;
} settings;

static const verb_option options[] = {
    {.name = "--special",
     OPTION_FLAG,
     offsetof(settings, special),
     NULL,
     "parse special tokens in the text; with --decode, print them too"},
    {.name = "--decode",
     OPTION_FLAG,
     offsetof(settings, decode),
     NULL,
     "the other way: numbers of tokens to text"},
    {.name = "--count",
     OPTION_FLAG,
     offsetof(settings, count),
     NULL,
     "print only how many tokens the text has"},
};

static const char details[] =
    "Reads text from stdin and prints its tokens, one per line: the number, and the text that the\n"
    "token adds. A token that ends inside a character adds nothing; the one that completes it adds it\n"
    "all. Bytes that are not UTF-8 count as U+FFFD. No bos or eos is added.\n"
    "\n"
    "MODEL is a GGUF file, a tokenizer.json of Hugging Face, or a folder with one.\n"
    "\n"
    "--json prints {\"tokens\": [...], \"pieces\": [...]}, with --count {\"count\": N}. --decode reads\n"
    "numbers, separated by white space or commas (brackets are ignored), and prints the text; with\n"
    "--json {\"text\": \"...\"}.";

static const verb_example examples[] = {
    {"tokenize model.gguf <poem.txt", "the tokens of a text"},
    {"tokenize model.gguf --json <poem.txt", "the same as JSON"},
    {"tokenize model.gguf --count <poem.txt", "how many there are"},
    {"tokenize model.gguf --decode <<<'19556 28 905'", "text of tokens"},
    {NULL, NULL},
};

/* What is open while it runs. */
typedef struct work {
    mica_context *ctx;
    const settings *set;
    mica_gguf *file;
    mica_tokenizer *tokenizer;
    char *input;
    size_t input_bytes;
    int32_t *tokens;
    size_t count;
    void *scratch;
    char *text; /* of tokens */
    size_t room;
} work;

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), ending = strlen(end);
    return length >= ending && strcmp(text + length - ending, end) == 0;
}

static int open_model(work *w, const char *model)
{
    mica_status status;
    if (mica_file_type_of(model) == MICA_FILE_FOLDER || mica_file_type_of(model) == MICA_FILE_FOLDER_LINK) {
        size_t room = strlen(model) + sizeof "/tokenizer.json";
        char *path = take(room, 1);
        snprintf(path, room, "%s/tokenizer.json", model);
        status = mica_tokenizer_of_json(w->ctx, &w->tokenizer, path);
        free(path);
    } else if (ends_with(model, ".json")) {
        status = mica_tokenizer_of_json(w->ctx, &w->tokenizer, model);
    } else {
        status = mica_gguf_open(w->ctx, &w->file, model);
        if (status == MICA_OK)
            status = mica_tokenizer_of_gguf(w->ctx, &w->tokenizer, w->file);
    }
    return status == MICA_OK ? EXIT_OK : verb_failed(&verb_tokenize, w->ctx);
}

/* ---- Decoding ---- */

static int read_numbers(work *w)
{
    int32_t most = mica_tokenizer_about(w->tokenizer)->count;
    w->tokens = take(w->input_bytes / 2 + 1, sizeof *w->tokens);
    for (char *at = w->input; *at != '\0';) {
        if (strchr(" \t\r\n,[]", *at) != NULL) {
            at++;
            continue;
        }
        char *end = at;
        long number = isdigit((unsigned char)*at) ? strtol(at, &end, 10) : -1;
        if (number < 0 || number >= most)
            return verb_error(&verb_tokenize, EXIT_USAGE,
                              "byte %zu of stdin: expected the number of a token, less than %d",
                              (size_t)(at - w->input), (int)most);
        w->tokens[w->count++] = (int32_t)number;
        at = end;
    }
    return EXIT_OK;
}

/* The text that a token adds (-1: the end), in w->text. */
static size_t piece_of(work *w, mica_decoder *decoder, int32_t token)
{
    for (;;) {
        size_t length = token >= 0 ? mica_decode_next(decoder, w->text, w->room, token)
                                   : mica_decode_end(decoder, w->text, w->room);
        if (length <= w->room)
            return length;
        free(w->text);
        w->room = length;
        w->text = take(w->room + 1, 1); /* and a zero */
    }
}

static int decode(work *w)
{
    int code = read_numbers(w);
    if (code != EXIT_OK)
        return code;
    mica_decoder decoder;
    size_t length = 0, room = 64;
    char *all = take(room, 1);
    mica_decode_begin(&decoder, w->tokenizer, w->set->special);
    for (size_t i = 0; i <= w->count; i++) {
        size_t piece = piece_of(w, &decoder, i < w->count ? w->tokens[i] : -1);
        while (room - length < piece) {
            char *larger = take(2 * room, 1);
            memcpy(larger, all, length);
            free(all);
            all = larger;
            room *= 2;
        }
        if (piece > 0)
            memcpy(all + length, w->text, piece);
        length += piece;
    }
    if (w->set->shared.json) {
        printf("{\"text\": ");
        put_json_bytes(stdout, all, length);
        printf("}\n");
    } else if (terminal_of(STDOUT_FILENO).is_terminal) {
        put_json_bytes(stdout, all, length); /* which no terminal obeys */
        putchar('\n');
    } else {
        fwrite(all, 1, length, stdout);
    }
    free(all);
    return EXIT_OK;
}

/* ---- Encoding ---- */

/* In quotes, with nothing that a terminal would obey. */
static void put_quoted(work *w, size_t length)
{
    putchar('"');
    for (size_t at = 0; at < length; at += strlen(w->text + at) + 1) {
        if (at > 0)
            fputs("\\x00", stdout);
        put_plain(stdout, w->text + at);
    }
    putchar('"');
}

/* Those of JSON in one line; else number and text, a line each. */
static void print_pieces(work *w)
{
    mica_decoder decoder;
    mica_decode_begin(&decoder, w->tokenizer, true);
    for (size_t i = 0; i < w->count; i++) {
        size_t length = piece_of(w, &decoder, w->tokens[i]);
        if (w->set->shared.json) {
            fputs(i > 0 ? ", " : "", stdout);
            put_json_bytes(stdout, w->text, length);
        } else {
            printf("%d\t", (int)w->tokens[i]);
            w->text[length] = '\0';
            put_quoted(w, length);
            putchar('\n');
        }
    }
}

static int encode(work *w)
{
    size_t scratch_bytes = mica_encode_scratch(w->tokenizer, w->input_bytes);
    w->scratch = malloc(scratch_bytes); /* most of which only invalid text would use: not cleared */
    w->count = 3 * w->input_bytes + 16;
    w->tokens = malloc(w->count * sizeof *w->tokens);
    if (w->scratch == NULL || w->tokens == NULL)
        return verb_error(&verb_tokenize, EXIT_FAILED, "no memory for %zu bytes of text", w->input_bytes);
    mica_tokenize_opts opts = {.special = w->set->special};
    if (mica_encode(w->ctx, w->tokenizer, w->tokens, &w->count, w->input, w->input_bytes, w->scratch,
                    scratch_bytes, &opts) != MICA_OK)
        return verb_failed(&verb_tokenize, w->ctx);
    if (w->set->count) {
        printf(w->set->shared.json ? "{\"count\": %zu}\n" : "%zu\n", w->count);
        return EXIT_OK;
    }
    if (!w->set->shared.json) {
        print_pieces(w);
        return EXIT_OK;
    }
    printf("{\"tokens\": [");
    for (size_t i = 0; i < w->count; i++)
        printf("%s%d", i > 0 ? ", " : "", (int)w->tokens[i]);
    printf("], \"pieces\": [");
    print_pieces(w);
    printf("]}\n");
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    settings set = {.shared = SHARED_DEFAULTS};
    int count = options_read(&verb_tokenize, &set, argc, argv);
    if (count < 0)
        return EXIT_USAGE;
    if (count != 1)
        return usage_error(&verb_tokenize, count == 0 ? "whose tokens? The MODEL argument is missing"
                                                      : "one model at a time; the text comes from stdin");
    if (set.decode && set.count)
        return usage_error(&verb_tokenize, "--count is about text, not about --decode");
    set.shared.threads = 1;
    work w = {.ctx = verb_context(&verb_tokenize, &set.shared), .set = &set};
    if (w.ctx == NULL)
        return EXIT_FAILED;
    w.room = 64;
    w.text = take(w.room + 1, 1);
    int code = open_model(&w, argv[0]);
    if (code == EXIT_OK)
        w.input = text_read_all(&verb_tokenize, "-", &w.input_bytes, &code);
    if (code == EXIT_OK)
        code = set.decode ? decode(&w) : encode(&w);
    mica_tokenizer_close(w.tokenizer);
    mica_gguf_close(w.file);
    mica_context_destroy(w.ctx);
    free(w.input);
    free(w.tokens);
    free(w.scratch);
    free(w.text);
    return code;
}

const verb verb_tokenize = {
    .name = "tokenize",
    .arguments = "MODEL [--decode] [OPTIONS] <TEXT",
    .summary = "print the tokens of a text, or the text of tokens",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_JSON,
    .examples = examples,
};
