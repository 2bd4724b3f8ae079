/* mica generate with a public text model: a prompt in, text out as it comes. */
#include "cli/text/generate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/model/take.h"
#include "cli/picture/text.h"
#include "host/clock.h"
#include "host/heap.h"

typedef struct writing {
    const generate_settings *set;
    text_model model;
    const mica_tokenizer *tokenizer;
    int32_t *tokens; /* [count]: the prompt and what was written so far, with room for what is to come */
    size_t count, prompt_count;
    int32_t *rerun; /* [context]: tokens of a full context that are run anew */
    mica_logit_bias *bias;
    mica_decoder decoder;
    mica_stop stop;
    char *piece, *shown; /* of one token, and what of it may be shown */
    size_t piece_room;
    char *text; /* all of it, for JSON */
    size_t text_bytes;
    float *log_probabilities; /* [tokens], for JSON */
    mica_likely *likely;      /* [tokens][set->likely] */
    double prompt_seconds, token_seconds;
    const char *end;     /* why it ended */
    uint64_t heap_calls; /* from the prompt's first token to the last one written */
} writing;

/* ---- The prompt ---- */

static int chat_prompt(writing *w, const char *prompt)
{
    const generate_settings *set = w->set;
    mica_chat_message messages[2];
    int count = 0;
    if (set->system != NULL)
        messages[count++] = (mica_chat_message){"system", set->system};
    messages[count++] = (mica_chat_message){"user", prompt};
    size_t scratch_bytes = mica_chat_scratch(w->tokenizer, messages, count);
    if (scratch_bytes == SIZE_MAX)
        return verb_error(&verb_generate, EXIT_USAGE, "the prompt is too long: %zu bytes", strlen(prompt));
    void *scratch = take(scratch_bytes, 1);
    mica_status status = MICA_ERR_MEMORY;
    w->count = 0; /* how many there are, first */
    for (int i = 0; i < 2 && status == MICA_ERR_MEMORY; i++) {
        free(w->tokens);
        w->tokens = take(w->count + (size_t)set->tokens + 1, sizeof *w->tokens);
        status = mica_chat_encode(w->model.ctx, w->tokenizer, w->tokens, &w->count, messages, count, scratch,
                                  scratch_bytes);
    }
    free(scratch);
    return status == MICA_OK ? EXIT_OK : verb_failed(&verb_generate, w->model.ctx);
}

static int plain_prompt(writing *w, const char *prompt, size_t bytes)
{
    int code = EXIT_OK;
    int32_t *tokens = text_model_encode(&w->model, &verb_generate, prompt, bytes,
                                        w->set->restore == NULL ? TEXT_BEGIN : TEXT_PLAIN, w->set->special,
                                        &w->count, &code);
    if (tokens == NULL)
        return code;
    w->tokens = take(w->count + (size_t)w->set->tokens + 1, sizeof *w->tokens);
    memcpy(w->tokens, tokens, w->count * sizeof *tokens);
    free(tokens);
    return EXIT_OK;
}

static int read_prompt(writing *w)
{
    const generate_settings *set = w->set;
    const mica_tokenizer_info *about = mica_tokenizer_about(w->tokenizer);
    const char *prompt = set->prompt != NULL ? set->prompt : "";
    size_t bytes = strlen(prompt);
    char *read = NULL;
    int code = EXIT_OK;
    if (strcmp(prompt, "-") == 0) {
        prompt = read = text_read_all(&verb_generate, "-", &bytes, &code);
        if (read == NULL)
            return code;
    }
    code = set->chat ? chat_prompt(w, prompt) : plain_prompt(w, prompt, bytes);
    free(read);
    if (code == EXIT_OK && w->count == 0 && set->restore == NULL) {
        if (about->bos < 0 && about->eos < 0)
            return usage_error(&verb_generate, "nothing to begin with: --prompt TEXT");
        w->tokens[w->count++] = about->bos >= 0 ? about->bos : about->eos;
    }
    w->prompt_count = w->count;
    return code;
}

/* "TOKEN=BIAS" each. */
static int read_biases(writing *w)
{
    const option_list *list = &w->set->bias;
    mica_index vocabulary = mica_model_about(w->model.model)->vocabulary;
    w->bias = take(list->count + 1, sizeof *w->bias);
    for (size_t i = 0; i < list->count; i++) {
        char *end, *value;
        long long token = strtoll(list->item[i], &end, 10);
        double bias = *end == '=' ? strtod(end + 1, &value) : 0;
        if (end == list->item[i] || *end != '=' || value == end + 1 || *value != '\0' || isnan(bias) ||
            token < 0 || token >= vocabulary)
            return usage_error(&verb_generate, "--bias %s: expected TOKEN=NUMBER, with a token of 0 to %td",
                               list->item[i], vocabulary - 1);
        w->bias[i] = (mica_logit_bias){(int32_t)token, (float)bias};
    }
    return EXIT_OK;
}

/* ---- Text ---- */

/* All memory that writing takes. */
static int make_room(writing *w)
{
    size_t longest = 8, tokens = (size_t)w->set->tokens;
    for (int32_t i = 0; i < mica_tokenizer_about(w->tokenizer)->count; i++) {
        mica_gguf_text text;
        if (mica_token_text(w->tokenizer, &text, NULL, i) == MICA_OK && text.length > longest)
            longest = text.length;
    }
    w->piece_room = 3 * longest + 32; /* a byte that is no UTF-8 becomes three */
    w->piece = take(w->piece_room, 1);
    w->shown = take(w->piece_room + MICA_STOP_LONGEST + 1, 1);
    w->rerun = take((size_t)mica_session_about(w->model.session).context, sizeof *w->rerun);
    if (w->set->shared.json) {
        w->text = take(tokens + MICA_STOP_LONGEST,
                       w->piece_room); /* with what was held back for a stop string */
        w->log_probabilities = take(tokens + 1, sizeof *w->log_probabilities);
        w->likely = take((tokens + 1) * ((size_t)w->set->likely + 1), sizeof *w->likely);
    }
    mica_decode_begin(&w->decoder, w->tokenizer, false);
    if (mica_stop_begin(w->model.ctx, &w->stop, w->set->stop.item, w->set->stop.count, NULL, 0) != MICA_OK)
        return verb_failed(&verb_generate, w->model.ctx);
    return EXIT_OK;
}

static void show(writing *w, const char *text, size_t bytes)
{
    if (w->set->shared.json) {
        memcpy(w->text + w->text_bytes, text, bytes);
        w->text_bytes += bytes;
        return;
    }
    if (terminal_of(STDOUT_FILENO).is_terminal) { /* it must not obey what a model says */
        w->shown[bytes] = '\0';
        put_message(stdout, text);
    } else {
        (void)fwrite(text, 1, bytes, stdout);
    }
    (void)fflush(stdout);
}

/* The text that a token completes. False: a stop string has come. */
static bool put_token(writing *w, int32_t token)
{
    size_t bytes = mica_decode_next(&w->decoder, w->piece, w->piece_room, token);
    show(w, w->shown, mica_stop_put(&w->stop, w->shown, w->piece, bytes));
    return w->stop.matched < 0;
}

static void put_end(writing *w)
{
    if (w->stop.matched >= 0)
        return;
    size_t bytes = mica_decode_end(&w->decoder, w->piece, w->piece_room);
    show(w, w->shown, mica_stop_put(&w->stop, w->shown, w->piece, bytes));
    if (w->stop.matched < 0)
        show(w, w->shown, mica_stop_end(&w->stop, w->shown));
}

/* ---- Writing ---- */

/* The context is full: the older half is forgotten. Where positions are learned, the rest is run anew. */
static mica_status make_way(writing *w)
{
    mica_session *session = w->model.session;
    mica_index half = mica_session_length(session, 0) / 2;
    mica_status status = mica_session_drop(session, 0, half > 0 ? half : 1);
    if (status != MICA_ERR_STATE)
        return status;
    const int32_t *seen;
    mica_index count;
    PASS_UP(mica_session_history(session, 0, &seen, &count));
    memcpy(w->rerun, seen + count - half, (size_t)half * sizeof *seen);
    PASS_UP(mica_session_cut(session, 0, 0));
    return mica_session_run(session, &(mica_session_piece){.tokens = w->rerun, .count = half}, 1);
}

static mica_status run_prompt(writing *w)
{
    mica_session *session = w->model.session;
    double begin = clock_seconds();
    mica_session_piece piece = {.tokens = w->tokens, .count = (mica_index)w->count, .logits = 1};
    int32_t last;
    if (w->count == 0) { /* nothing behind what was restored: its last token is run again, for the logits */
        mica_index length;
        PASS_UP(mica_session_history(session, 0, &piece.tokens, &length));
        last = piece.tokens[length - 1];
        PASS_UP(mica_session_cut(session, 0, length - 1));
        piece.tokens = &last;
        piece.count = 1;
    }
    mica_status status = mica_session_run(session, &piece, 1);
    w->prompt_seconds = clock_seconds() - begin;
    return status;
}

/* Draws a token from the logits of the last run, and notes how likely it was. */
static mica_status draw(writing *w, int32_t *token, mica_random *dice, mica_sampling *sampling, size_t number)
{
    mica_tensor rows, row;
    mica_context *ctx = w->model.ctx;
    size_t recent = w->count < (size_t)w->set->recent ? w->count : (size_t)w->set->recent;
    PASS_UP(mica_session_logits(w->model.session, &rows));
    PASS_UP(mica_view_select(ctx, &row, &rows, 0, rows.dim[0] - 1));
    sampling->recent = w->tokens + w->count - recent;
    sampling->recent_count = recent;
    PASS_UP(mica_sample(ctx, token, &row, dice, sampling));
    if (w->likely == NULL || w->set->likely == 0)
        return MICA_OK;
    size_t each = (size_t)w->set->likely;
    return mica_log_probabilities(ctx, &w->log_probabilities[number], *token, w->likely + number * each, each,
                                  &row);
}

static mica_status write_on(writing *w)
{
    const generate_settings *set = w->set;
    mica_session *session = w->model.session;
    mica_sampling sampling = generate_sampling(set);
    mica_random dice = mica_random_stream((uint64_t)set->shared.seed, 0);
    mica_index context = mica_session_about(session).context;
    sampling.bias = w->bias;
    sampling.bias_count = set->bias.count;
    w->end = "tokens";
    double begin = clock_seconds();
    for (size_t n = 0; n < (size_t)set->tokens && !output_failed(); n++) {
        int32_t token;
        PASS_UP(draw(w, &token, &dice, &sampling, n));
        w->tokens[w->count++] = token;
        if (mica_token_ends(w->tokenizer, token) && !set->endless) {
            w->end = "end";
            break;
        }
        if (!put_token(w, token)) {
            w->end = "stop";
            break;
        }
        if (n + 1 == (size_t)set->tokens)
            break;
        if (mica_session_length(session, 0) == context)
            PASS_UP(make_way(w));
        PASS_UP(
            mica_session_run(session, &(mica_session_piece){.tokens = &token, .count = 1, .logits = 1}, 1));
    }
    put_end(w);
    w->token_seconds = clock_seconds() - begin;
    return MICA_OK;
}

/* ---- The end ---- */

static void print_tokens(const char *name, const int32_t *tokens, size_t count)
{
    printf("\"%s\": [", name);
    for (size_t i = 0; i < count; i++)
        printf("%s%d", i > 0 ? ", " : "", (int)tokens[i]);
    printf("]");
}

static void print_likely(const writing *w, size_t written)
{
    size_t each = (size_t)w->set->likely;
    if (each == 0)
        return;
    printf(", \"log_probabilities\": [");
    for (size_t i = 0; i < written; i++) {
        printf("%s{\"log_probability\": %.6g, \"likely\": [", i > 0 ? ", " : "",
               (double)w->log_probabilities[i]);
        for (size_t k = 0; k < each; k++)
            printf("%s[%d, %.6g]", k > 0 ? ", " : "", (int)w->likely[i * each + k].token,
                   (double)w->likely[i * each + k].log_probability);
        printf("]}");
    }
    printf("]");
}

static void print_json(const writing *w)
{
    size_t written = w->count - w->prompt_count;
    const mica_plan *plan = mica_net_plan(mica_session_net(w->model.session));
    printf("{");
    print_tokens("prompt_tokens", w->tokens, w->prompt_count);
    printf(", ");
    print_tokens("tokens", w->tokens + w->prompt_count, written);
    printf(", \"text\": ");
    put_json_bytes(stdout, w->text, w->text_bytes);
    printf(", \"prompt_ms\": %.3f, \"token_ms\": %.3f, \"end\": \"%s\", \"bytes\": %zu",
           1e3 * w->prompt_seconds, written > 1 ? 1e3 * w->token_seconds / (double)(written - 1) : 0.0,
           w->end, plan->total);
    if (heap_counted())
        printf(", \"heap_calls\": %llu", (unsigned long long)w->heap_calls);
    print_likely(w, written);
    printf("}\n");
}

static void tell_speed(const writing *w)
{
    size_t written = w->count - w->prompt_count;
    if (!w->set->shared.verbose || written < 2)
        return;
    fprintf(stderr, "%zu tokens of the prompt in %s, %zu tokens written, %.1f a second\n", w->prompt_count,
            time_text(w->prompt_seconds).text, written, (double)(written - 1) / w->token_seconds);
}

static int write_text(writing *w)
{
    const generate_settings *set = w->set;
    mica_context *ctx = w->model.ctx;
    mica_session *session = w->model.session;
    int code = read_prompt(w);
    if (code == EXIT_OK)
        code = read_biases(w);
    if (code == EXIT_OK)
        code = make_room(w);
    if (code == EXIT_OK)
        code = text_model_bind(&w->model, &verb_generate);
    if (code == EXIT_OK && set->restore != NULL && mica_session_restore(session, 0, set->restore) != MICA_OK)
        code = verb_failed(&verb_generate, ctx);
    if (code == EXIT_OK && w->count == 0 && mica_session_length(session, 0) == 0)
        code = usage_error(&verb_generate, "nothing to begin with: --prompt TEXT");
    if (code != EXIT_OK)
        return code;
    if (!set->shared.json && set->prompt != NULL && strcmp(set->prompt, "-") != 0 && !set->chat)
        put_message(stdout, set->prompt);
    heap_counts before = heap_now();
    mica_status status = run_prompt(w);
    if (status == MICA_OK && set->save != NULL)
        status = mica_session_save(session, 0, set->save);
    if (status == MICA_OK)
        status = write_on(w);
    w->heap_calls = heap_now().calls - before.calls;
    if (status != MICA_OK)
        return verb_failed(&verb_generate, ctx);
    if (set->shared.json)
        print_json(w);
    else
        fputc('\n', stdout);
    tell_speed(w);
    return EXIT_OK;
}

int generate_with_model(mica_context *ctx, const generate_settings *set, const char *path)
{
    writing w = {.set = set};
    int code = text_model_open(&w.model, &verb_generate, ctx, path, &set->session, 1);
    if (code == EXIT_OK && mica_model_about(w.model.model)->embeds)
        code = verb_error(&verb_generate, EXIT_USAGE,
                          "%s: a model that gives vectors, not text: see mica help embed", path);
    if (code == EXIT_OK) {
        w.tokenizer = mica_model_tokenizer(w.model.model);
        code = write_text(&w);
    }
    text_model_close(&w.model);
    free(w.tokens);
    free(w.rerun);
    free(w.bias);
    free(w.piece);
    free(w.shown);
    free(w.text);
    free(w.log_probabilities);
    free(w.likely);
    return code;
}
