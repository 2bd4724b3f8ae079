/* Public text models for the verbs: opened, and their texts made ready. */
#include "cli/text/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <mica/text.h>

#include "cli/model/take.h"
#include "cli/net/argument.h"

/* In the order of mica_cache_type. */
const char *const session_caches[] = {"f16", "f32", "q8_0", "fit", NULL};

bool is_text_model(const char *path)
{
    char config[4096], head[4] = {0};
    struct stat about;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        int length = snprintf(config, sizeof config, "%s/config.json", path);
        return length < (int)sizeof config && is_regular(config);
    }
    size_t length = strlen(path);
    if (length > 5 && strcmp(path + length - 5, ".gguf") == 0)
        return true;
    FILE *file = is_regular(path) ? fopen(path, "rb") : NULL;
    bool found = file != NULL && fread(head, 1, 4, file) == 4 && memcmp(head, "GGUF", 4) == 0;
    if (file != NULL)
        fclose(file);
    return found;
}

/* A workspace in which a token can be drawn in any way: a large vocabulary takes more than the usual one has. */
static mica_status reserve_sampling(const text_model *t)
{
    int32_t token = 0;
    mica_random dice = mica_random_stream(0, 0);
    mica_tensor logits = mica_1d(NULL, mica_model_about(t->model)->vocabulary);
    mica_sampling all = {.temperature = 1.0f,
                         .typical_p = 0.5f,
                         .top_p = 0.5f,
                         .min_p = 0.5f,
                         .repeat_penalty = 2.0f,
                         .recent = &token,
                         .recent_count = 1};
    mica_measure_begin(t->ctx);
    mica_status status = mica_sample(t->ctx, &token, &logits, &dice, &all);
    size_t bytes = mica_measure_end(t->ctx);
    return status == MICA_OK ? mica_workspace_reserve(t->ctx, bytes) : status;
}

int text_model_open(text_model *t, const verb *v, mica_context *ctx, const char *path,
                    const session_settings *set, mica_index logits)
{
    *t = (text_model){.ctx = ctx};
    if (mica_model_open(ctx, &t->model, path) != MICA_OK)
        return verb_failed(v, ctx);
    mica_session_opts opts = {.context = (mica_index)set->context,
                              .sequences = (mica_index)set->sequences,
                              .chunk = (mica_index)set->chunk,
                              .cache = set->cache >= 0 ? (mica_cache_type)set->cache : MICA_CACHE_F16,
                              .budget = set->budget,
                              .logits = logits};
    if (set->cache < 0 && set->budget > 0)
        opts.cache = MICA_CACHE_FITTING;
    if (mica_session_create(t->model, &t->session, &opts) != MICA_OK || reserve_sampling(t) != MICA_OK)
        return verb_failed(v, ctx);
    return EXIT_OK;
}

int text_model_bind(text_model *t, const verb *v)
{
    return mica_session_bind(t->session, NULL, 0) == MICA_OK ? EXIT_OK : verb_failed(v, t->ctx);
}

void text_model_close(text_model *t)
{
    mica_session_destroy(t->session);
    mica_model_close(t->model);
}

size_t text_model_tables(const text_model *t)
{
    mica_heap_stats stats = mica_context_heap(t->ctx);
    return (size_t)stats.live_bytes;
}

int32_t *text_model_encode(const text_model *t, const verb *v, const char *text, size_t bytes, text_ends ends,
                           bool special, size_t *count, int *code)
{
    const mica_tokenizer *tokenizer = mica_model_tokenizer(t->model);
    const mica_tokenizer_info *about = mica_tokenizer_about(tokenizer);
    size_t scratch_bytes = mica_encode_scratch(tokenizer, bytes), first = 0;
    void *scratch = take(scratch_bytes + 1, 1);
    mica_tokenize_opts opts = {.special = special, .ends = ends == TEXT_ENDS};
    int32_t none;
    *count = 0; /* how many there are */
    (void)mica_encode(t->ctx, tokenizer, &none, count, text, bytes, scratch, scratch_bytes, &opts);
    int32_t *tokens = take(*count + 2, sizeof *tokens);
    if (ends == TEXT_BEGIN && about->add_bos && about->bos >= 0)
        tokens[first++] = about->bos;
    mica_status status = mica_encode(t->ctx, tokenizer, tokens + first, count, text, bytes, scratch,
                                     scratch_bytes, &opts);
    free(scratch);
    *count += first;
    if (status == MICA_OK)
        return tokens;
    *code = verb_failed(v, t->ctx);
    free(tokens);
    return NULL;
}

char *text_read_all(const verb *v, const char *path, size_t *bytes, int *code)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    size_t room = 65536, length = 0, got = 0;
    char *text = file != NULL ? malloc(room + 1) : NULL;
    while (text != NULL && (got = fread(text + length, 1, room - length, file)) > 0) {
        length += got;
        if (length < room)
            continue;
        char *larger = realloc(text, 2 * room + 1);
        if (larger == NULL)
            free(text);
        text = larger;
        room *= 2;
    }
    bool failed = text == NULL || ferror(file) != 0;
    if (failed)
        *code = verb_error(v, EXIT_FILE, "cannot read %s: %s", is_stdin ? "stdin" : path, strerror(errno));
    if (file != NULL && !is_stdin)
        fclose(file);
    if (failed) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    *bytes = length;
    return text;
}
