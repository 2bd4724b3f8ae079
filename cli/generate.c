/* mica generate: a trained net writes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/model/saved.h"
#include "cli/model/take.h"
#include "cli/picture/text.h"
#include "cli/text/generate.h"
#include "io/utf8.h"

static const verb_option options[] = {
    {.name = "--prompt",
     OPTION_TEXT,
     offsetof(generate_settings, prompt),
     "TEXT",
     "text to continue; for a text model - is stdin (a newline; a text model: nothing)"},
    {.name = "--tokens",
     OPTION_COUNT,
     offsetof(generate_settings, tokens),
     "N",
     "the most tokens to generate (300)"},
    {.name = "--temperature",
     OPTION_NUMBER,
     offsetof(generate_settings, temperature),
     "X",
     "sampling temperature; 0 is greedy (0.8)"},
    {.name = "--top-k",
     OPTION_COUNT,
     offsetof(generate_settings, top_k),
     "N",
     "sample from the N most likely tokens only (all)",
     .most = INT32_MAX},
    {.name = "--top-p",
     OPTION_NUMBER,
     offsetof(generate_settings, top_p),
     "P",
     "sample from the most likely tokens with this total probability (all)"},
    {.name = "--min-p",
     OPTION_NUMBER,
     offsetof(generate_settings, min_p),
     "P",
     "sample from tokens at least P times as likely as the most likely one (all)"},
    {.name = "--repeat-penalty",
     OPTION_NUMBER,
     offsetof(generate_settings, repeat_penalty),
     "X",
     "above 1 makes recent tokens less likely (1)"},
    {.name = "--presence-penalty",
     OPTION_NUMBER,
     offsetof(generate_settings, presence_penalty),
     "X",
     "subtracted from the logit of a recent token (0)"},
    {.name = "--frequency-penalty",
     OPTION_NUMBER,
     offsetof(generate_settings, frequency_penalty),
     "X",
     "subtracted from it for each time that it occurs (0)"},
    {.name = "--recent",
     OPTION_COUNT,
     offsetof(generate_settings, recent),
     "N",
     "number of tokens that count as recent (64)",
     .most = INT32_MAX},
    {.name = "--typical-p",
     OPTION_NUMBER,
     offsetof(generate_settings, typical_p),
     "P",
     "sample from the most typical tokens with this total probability (all)"},
    {.name = "--bias",
     OPTION_LIST,
     offsetof(generate_settings, bias),
     "TOKEN=X",
     "text model: add X to the logit of a token; -inf bans it"},
    {.name = "--stop",
     OPTION_LIST,
     offsetof(generate_settings, stop),
     "TEXT",
     "text model: end before this text; may be given several times"},
    {.name = "--endless",
     OPTION_FLAG,
     offsetof(generate_settings, endless),
     NULL,
     "text model: do not stop at an end token"},
    {.name = "--chat",
     OPTION_FLAG,
     offsetof(generate_settings, chat),
     NULL,
     "text model: the prompt is a message, put into the model's chat template"},
    {.name = "--system",
     OPTION_TEXT,
     offsetof(generate_settings, system),
     "TEXT",
     "with --chat: the system message"},
    {.name = "--special",
     OPTION_FLAG,
     offsetof(generate_settings, special),
     NULL,
     "text model: parse special tokens in the prompt"},
    {.name = "--likely",
     OPTION_COUNT,
     offsetof(generate_settings, likely),
     "N",
     "text model, with --json: log-probabilities of each token and the N most likely ones",
     .most = 1000},
    SESSION_OPTIONS(generate_settings, CONTEXT_TRAINED),
    {.name = "--budget",
     OPTION_BYTES,
     offsetof(generate_settings, session.budget),
     "BYTES",
     "text model: the most memory besides the weights"},
    {.name = "--save",
     OPTION_TEXT,
     offsetof(generate_settings, save),
     "FILE",
     "text model: save the prompt's cache; --tokens 0 generates nothing"},
    {.name = "--restore",
     OPTION_TEXT,
     offsetof(generate_settings, restore),
     "FILE",
     "text model: continue from a saved cache; the prompt follows it"},
};

static const char details[] =
    "FILE is a text net's checkpoint written by mica train, or its folder; or a text model:\n"
    "  FILE.gguf                                  a model in one file\n"
    "  DIR                                        with config.json, safetensors and tokenizer.json\n"
    "\n"
    "The text is streamed to stdout. The same seed gives the same text, on processors with the same\n"
    "instruction set. --json prints one\n"
    "object: for a checkpoint prompt, text, tokens (their number), seed, windows (why the net\n"
    "has to run a whole window for each token; null: it runs each once); for a text model prompt_tokens,\n"
    "tokens, text, prompt_ms, token_ms (milliseconds per token), end (why it ended: tokens, end or stop),\n"
    "bytes (of the plan), heap_calls (from the prompt to the last token).\n"
    "\n"
    "When a text model's context is full, the older half of the text is forgotten. --restore needs the\n"
    "model and the type of cache that the file was saved with.";

static const verb_example examples[] = {
    {"generate gpt-tiny-shakespeare", "300 characters"},
    {"generate gpt-tiny-shakespeare --prompt 'ROMEO:' --tokens 1000 --seed 7", "continue a prompt"},
    {"generate lstm-code --temperature 0", "greedy decoding"},
    {"generate smollm2.gguf --prompt 'Once upon a time' --tokens 200", "a public model"},
    {"generate smollm2.gguf --chat --prompt 'What is a robot?'", "an answer"},
    {"generate smollm2.gguf --prompt - --tokens 0 --save doc.cache <doc.txt", "run a long prompt once"},
    {"generate smollm2.gguf --restore doc.cache --prompt 'In short:'", "continue from it"},
    {NULL, NULL},
};

/* What is open while it runs. */
typedef struct writing {
    mica_context *ctx;
    const generate_settings *set;
    saved saved;
    mica_net *net;
    mica_netfile_info info;
    const char *windows; /* why the whole window is run for each token; NULL: it is not */
    int32_t *tokens;     /* [count] so far, with room for those to come */
    size_t count;
    char *text; /* of JSON */
    size_t text_bytes;
    bool terminal;                     /* stdout is one: it must not obey what a net says */
    char piece[MICA_UTF8_LONGEST + 1]; /* bytes of a character that is not whole yet */
    size_t piece_bytes;
} writing;

/* To a terminal, a byte at a time: whole characters, and escaped what is not printable. */
static void put_byte(writing *w, char byte)
{
    uint32_t code;
    if (byte == '\0') { /* ends what was begun */
        put_message(stdout, w->piece);
        w->piece_bytes = 0;
        fputs("\\x00", stdout);
        return;
    }
    w->piece[w->piece_bytes++] = byte;
    w->piece[w->piece_bytes] = '\0';
    unsigned char first = (unsigned char)w->piece[0];
    size_t whole = first < 0xc2 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 1;
    bool continues = w->piece_bytes == 1 || ((unsigned char)byte & 0xc0) == 0x80;
    if (w->piece_bytes < whole && continues)
        return;
    /* A character, or bytes that are none: then the last one may begin another. */
    bool again = mica_utf8_decode(&code, w->piece, w->piece_bytes) == 0 && w->piece_bytes > 1 && !continues;
    if (again)
        w->piece[--w->piece_bytes] = '\0';
    put_message(stdout, w->piece);
    w->piece_bytes = 0;
    w->piece[0] = '\0';
    if (again)
        put_byte(w, byte);
}

mica_sampling generate_sampling(const generate_settings *set)
{
    return (mica_sampling){.temperature = (float)set->temperature,
                           .top_k = (int32_t)set->top_k,
                           .top_p = (float)set->top_p,
                           .min_p = (float)set->min_p,
                           .typical_p = (float)set->typical_p,
                           .repeat_penalty = (float)set->repeat_penalty,
                           .presence_penalty = (float)set->presence_penalty,
                           .frequency_penalty = (float)set->frequency_penalty};
}

static int encode_prompt(writing *w)
{
    const mica_vocabulary *v = &w->saved.meaning.vocabulary;
    const char *prompt = w->set->prompt != NULL ? w->set->prompt : "\n";
    size_t room = strlen(prompt) + 1;
    w->tokens = take(room + (size_t)w->set->tokens, sizeof *w->tokens);
    w->count = room;
    if (mica_text_encode(w->ctx, w->tokens, &w->count, v, prompt) != MICA_OK) {
        if (w->set->prompt != NULL)
            return verb_error(&verb_generate, EXIT_USAGE,
                              "%s (the net only knows the characters it was trained on)", mica_error(w->ctx));
        w->count = 0;
    }
    if (w->count == 0) /* nothing to begin with: the first token there is */
        w->tokens[w->count++] = 0;
    return EXIT_OK;
}

/* To stdout as it comes; for JSON, kept. */
static mica_status put_token(writing *w, int32_t token)
{
    char piece[8];
    mica_tensor one = {.data = &token, .dtype = MICA_I32, .rank = 1, .dim = {1}, .stride = {1}};
    mica_status status = mica_text_decode(w->ctx, piece, sizeof piece, &w->saved.meaning.vocabulary, &one);
    if (status != MICA_OK)
        return status;
    size_t length = w->saved.meaning.vocabulary.characters == NULL ? 1 : strlen(piece); /* a byte may be 0 */
    if (w->set->shared.json) {
        memcpy(w->text + w->text_bytes, piece, length);
        w->text_bytes += length;
    } else {
        for (size_t i = 0; w->terminal && i < length; i++)
            put_byte(w, piece[i]);
        if (!w->terminal)
            (void)fwrite(piece, 1, length, stdout);
        (void)fflush(stdout);
    }
    return MICA_OK;
}

static int write_on(writing *w)
{
    const generate_settings *set = w->set;
    mica_sampling sampling = generate_sampling(set);
    mica_random dice = mica_random_stream((uint64_t)set->shared.seed, 0);
    mica_generation writer;
    if (mica_generation_begin(&writer, w->net, w->info.output) != MICA_OK)
        return verb_failed(&verb_generate, w->ctx);
    if (!set->shared.json && set->prompt != NULL) {
        if (w->terminal)
            put_message(stdout, set->prompt);
        else
            fputs(set->prompt, stdout);
    }
    for (int64_t n = 0; n < set->tokens && !output_failed(); n++) {
        mica_tensor so_far = {
            .data = w->tokens, .dtype = MICA_I32, .rank = 1, .dim = {(mica_index)w->count}, .stride = {1}};
        size_t recent = w->count < (size_t)w->info.length ? w->count : (size_t)w->info.length;
        sampling.recent = w->tokens + w->count - recent;
        sampling.recent_count = recent;
        int32_t token;
        mica_status status = mica_generation_next(&writer, &token, &so_far, &dice, &sampling);
        if (status == MICA_OK)
            status = put_token(w, token);
        if (status != MICA_OK)
            return verb_failed(&verb_generate, w->ctx);
        w->tokens[w->count++] = token;
    }
    return EXIT_OK;
}

static void print_json(const writing *w)
{
    printf("{\"prompt\": ");
    put_json(stdout, w->set->prompt);
    printf(", \"text\": ");
    put_json_bytes(stdout, w->text, w->text_bytes);
    printf(", \"tokens\": %lld, \"seed\": %lld, \"windows\": ", (long long)w->set->tokens,
           (long long)w->set->shared.seed);
    if (w->windows != NULL)
        put_json(stdout, w->windows);
    else
        printf("null");
    printf("}\n");
}

static int generate(writing *w, const char *where)
{
    int code = saved_open(&w->saved, &verb_generate, w->ctx, where);
    if (code == EXIT_OK && w->saved.meaning.vocabulary.count == 0)
        code = verb_error(&verb_generate, EXIT_FILE, "%s: not a text net; see mica help run", w->saved.path);
    if (code == EXIT_OK)
        code = saved_build_writer(&w->net, &w->info, &verb_generate, w->ctx, &w->saved, &w->windows);
    if (code == EXIT_OK)
        code = encode_prompt(w);
    if (code != EXIT_OK)
        return code;
    if (w->set->shared.json)
        w->text = take((size_t)w->set->tokens + 1, 8);
    code = write_on(w);
    if (code == EXIT_OK && w->set->shared.json)
        print_json(w);
    else if (code == EXIT_OK)
        fputc('\n', stdout);
    return code;
}

static int run(int argc, char **argv)
{
    generate_settings set = {.shared = SHARED_DEFAULTS,
                             .session = SESSION_DEFAULTS,
                             .tokens = 300,
                             .temperature = 0.8,
                             .recent = 64};
    int count = options_read(&verb_generate, &set, argc, argv);
    if (count < 0)
        return EXIT_USAGE;
    if (count != 1)
        return usage_error(&verb_generate, count == 0 ? "which trained net? The FILE argument is missing"
                                                      : "one net at a time");
    if (set.top_p > 1 || set.min_p > 1 || set.typical_p > 1)
        return usage_error(&verb_generate, "%s is a probability and must be at most 1",
                           set.top_p > 1   ? "--top-p"
                           : set.min_p > 1 ? "--min-p"
                                           : "--typical-p");
    if (set.chat && set.prompt == NULL)
        return usage_error(&verb_generate, "--chat answers one message: give --prompt TEXT (-: from stdin)");
    if (set.system != NULL && !set.chat)
        return usage_error(&verb_generate, "--system is part of a chat: add --chat");
    writing w = {.ctx = verb_context(&verb_generate, &set.shared),
                 .set = &set,
                 .terminal = terminal_of(STDOUT_FILENO).is_terminal};
    if (w.ctx == NULL)
        return EXIT_FAILED;
    if (is_text_model(argv[0])) {
        int done = generate_with_model(w.ctx, &set, argv[0]);
        mica_context_destroy(w.ctx);
        return done;
    }
    int code = generate(&w, argv[0]);
    mica_net_destroy(w.net);
    saved_close(w.ctx, &w.saved);
    mica_context_destroy(w.ctx);
    free(w.tokens);
    free(w.text);
    return code;
}

const verb verb_generate = {
    .name = "generate",
    .arguments = "FILE|MODEL [--prompt TEXT] [OPTIONS]",
    .summary = "generate text with a trained net or a public model",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_JSON | SHARED_THREADS | SHARED_SEED | SHARED_QUIET,
    .examples = examples,
};
