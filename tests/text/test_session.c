/* Sessions: the same bits however tokens are run, sequences that share, are cut, dropped, saved; errors and memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/scratch.h"
#include "oom.h"
#include "text/small_model.h"

enum { TOKENS = 75 };

/* ---- A model in a file ---- */

typedef struct fixture {
    scratch files;
    char path[300];
    int32_t tokens[400];
} fixture;

/* Contexts by their number of threads, as many as a test needs. */
static mica_context *with_threads(int threads)
{
    mica_context *ctx;
    if (mica_context_create(&ctx, &(mica_context_opts){.threads = threads}) !=
        MICA_OK) /* built without threads */
        (void)mica_context_create(&ctx, NULL);
    return ctx;
}

static fixture make(const small_model *model)
{
    fixture f = {.files = scratch_make()};
    test_random random = test_seed(model->seed + 7);
    mica_context *ctx = with_threads(1);
    snprintf(f.path, sizeof f.path, "%s", scratch_path(&f.files, "model.gguf"));
    CHECK_OK(ctx, small_model_write(ctx, f.path, model));
    for (int i = 0; i < 400; i++)
        f.tokens[i] = test_int(&random, 0, SMALL_VOCABULARY - 1);
    mica_context_destroy(ctx);
    return f;
}

typedef struct opened {
    mica_model *model;
    mica_session *session;
} opened;

static opened open_model(mica_context *ctx, const char *path, mica_session_opts opts)
{
    opened o = {0};
    if (CHECK_OK(ctx, mica_model_open(ctx, &o.model, path)) &&
        CHECK_OK(ctx, mica_session_create(o.model, &o.session, &opts)))
        CHECK_OK(ctx, mica_session_bind(o.session, NULL, 0));
    return o;
}

static void close_model(opened *o)
{
    mica_session_destroy(o->session);
    mica_model_close(o->model);
}

static void run(mica_context *ctx, opened *o, int sequence, const int32_t *tokens, int count, int logits)
{
    mica_session_piece piece = {.sequence = sequence, .tokens = tokens, .count = count, .logits = logits};
    CHECK_OK(ctx, mica_session_run(o->session, &piece, 1));
}

/* The logits of the last run, row by row, at `out`. */
static void take_logits(mica_context *ctx, opened *o, float *out)
{
    mica_tensor t;
    if (CHECK_OK(ctx, mica_session_logits(o->session, &t)))
        memcpy(out, t.data, mica_tensor_bytes(&t));
}

static bool same(const float *a, const float *b, int rows)
{
    return memcmp(a, b, (size_t)rows * SMALL_VOCABULARY * sizeof *a) == 0;
}

static float *rows_of(int rows) { return calloc((size_t)rows * SMALL_VOCABULARY, sizeof(float)); }

/* ---- The same bits ---- */

/* Logits of all tokens, one at a time or in chunks, with so many threads. */
static void logits_of_all(const fixture *f, float *out, int threads, int chunk, mica_cache_type cache)
{
    mica_context *ctx = with_threads(threads);
    opened o = open_model(
        ctx, f->path, (mica_session_opts){.context = 128, .chunk = chunk, .logits = chunk, .cache = cache});
    for (int first = 0; o.session != NULL && first < TOKENS; first += chunk) {
        int count = TOKENS - first < chunk ? TOKENS - first : chunk;
        run(ctx, &o, 0, f->tokens + first, count, count);
        take_logits(ctx, &o, out + first * SMALL_VOCABULARY);
    }
    close_model(&o);
    mica_context_destroy(ctx);
}

static void check_same_bits(const small_model *model, mica_cache_type cache)
{
    static const struct {
        int threads, chunk;
    } how[] = {{1, 1}, {1, 7}, {1, 32}, {2, TOKENS}, {2, 50}, {2, 1}, {3, 7}, {3, TOKENS}};
    fixture f = make(model);
    float *want = rows_of(TOKENS), *got = rows_of(TOKENS);
    logits_of_all(&f, want, 1, TOKENS, cache);
    for (int i = 0; i < test_effort(8); i++) {
        logits_of_all(&f, got, how[i].threads, how[i].chunk, cache);
        CHECK_MSG(same(want, got, TOKENS), "%s weights, cache %d: other bits with %d threads, chunks of %d",
                  mica_dtype_name(model->weights), (int)cache, how[i].threads, how[i].chunk);
    }
    free(want);
    free(got);
    scratch_remove(&f.files);
}

TEST(session_bits_do_not_depend_on_chunks_or_threads)
{
    static const mica_dtype types[] = {MICA_F32, MICA_F16, MICA_Q4_0, MICA_Q8_0, MICA_Q5_1};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        check_same_bits(&(small_model){.weights = types[i], .seed = i}, (mica_cache_type)(i % 3));
    check_same_bits(&(small_model){.architecture = "qwen3", .weights = MICA_Q4_1, .qk_norm = true},
                    MICA_CACHE_F16);
    check_same_bits(&(small_model){.weights = MICA_Q8_0, .window = 20}, MICA_CACHE_Q8_0);
}

/* ---- What a model is made of ---- */

/* Whether two models give the same logits. */
static bool alike(const small_model *a, const small_model *b)
{
    fixture f[] = {make(a), make(b)};
    float *rows[] = {rows_of(TOKENS), rows_of(TOKENS)};
    for (int i = 0; i < 2; i++) {
        logits_of_all(&f[i], rows[i], 1, TOKENS, MICA_CACHE_F32);
        scratch_remove(&f[i].files);
    }
    bool equal = same(rows[0], rows[1], TOKENS);
    free(rows[0]);
    free(rows[1]);
    return equal;
}

TEST(session_windows_layer_by_layer)
{
    small_model all = {.seed = 8}, windows = {.seed = 8, .window = 20};
    small_model none = windows, every = windows, first = windows, second = windows;
    none.windows = "aa", every.windows = "ww", first.windows = "wa", second.windows = "aw";
    CHECK(alike(&none, &all) && alike(&every, &windows));
    CHECK(!alike(&none, &every) && !alike(&first, &second) && !alike(&first, &every) &&
          !alike(&first, &none));
    fixture f = make(&(small_model){.window = 20, .windows = "w"});
    mica_model *model;
    mica_context *ctx = test_context(1);
    char error[512];
    snprintf(
        error, sizeof error,
        "format error: %s: setting \"llama.attention.sliding_window_pattern\" has fewer entries than there "
        "are layers",
        f.path);
    CHECK_ERROR(ctx, mica_model_open(ctx, &model, f.path), MICA_ERR_FORMAT, error);
    scratch_remove(&f.files);
}

TEST(session_one_matrix_of_queries_keys_and_values)
{
    small_model apart = {.seed = 9}, fused = {.seed = 9, .fused = true};
    CHECK(alike(&apart, &fused));
    apart.biases = true;
    CHECK(!alike(&apart, &fused));
    fused.biases = true;
    CHECK(alike(&apart, &fused));
}

/* Three sequences, each in pieces of its own, in steps that hold some of each. */
TEST(session_bits_do_not_depend_on_other_sequences)
{
    fixture f = make(&(small_model){.weights = MICA_Q4_0});
    float *want = rows_of(3), *got = rows_of(3);
    mica_context *ctx = test_context(2);
    const int starts[] = {0, 100, 200}, lengths[] = {40, 70, 55};
    opened alone = open_model(ctx, f.path, (mica_session_opts){.context = 96});
    for (int i = 0; i < 3; i++) {
        CHECK_OK(ctx, mica_session_cut(alone.session, 0, 0));
        run(ctx, &alone, 0, f.tokens + starts[i], lengths[i], 1);
        take_logits(ctx, &alone, want + i * SMALL_VOCABULARY);
    }
    close_model(&alone);
    opened all = open_model(ctx, f.path, (mica_session_opts){.context = 96, .sequences = 3, .chunk = 16});
    mica_session_piece pieces[3];
    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < 3; i++) {
            int first = half * 20, count = half == 0 ? 20 : lengths[i] - 20;
            pieces[i] = (mica_session_piece){i, f.tokens + starts[i] + first, count, half};
        }
        CHECK_OK(ctx, mica_session_run(all.session, pieces, 3));
    }
    take_logits(ctx, &all, got);
    CHECK(same(want, got, 3));
    close_model(&all);
    free(want);
    free(got);
    scratch_remove(&f.files);
}

/* ---- Sequences ---- */

/* Shares a beginning that ends within a page; both go on differently, and both are as if run alone. */
TEST(session_sequences_share_beginnings)
{
    fixture f = make(&(small_model){.weights = MICA_Q8_0, .seed = 3});
    float *want = rows_of(2), *got = rows_of(2);
    mica_context *ctx = test_context(1);
    mica_session_opts opts = {.context = 128, .sequences = 2, .tokens = 160};
    opened o = open_model(ctx, f.path, opts);
    run(ctx, &o, 0, f.tokens, 45, 0);
    CHECK_OK(ctx, mica_session_share(o.session, 1, 0, 45));
    CHECK(mica_session_length(o.session, 1) == 45);
    run(ctx, &o, 0, f.tokens + 45, 10, 1);
    take_logits(ctx, &o, got);
    run(ctx, &o, 1, f.tokens + 200, 10, 1);
    take_logits(ctx, &o, got + SMALL_VOCABULARY);
    CHECK_OK(ctx, mica_session_cut(o.session, 0, 0));
    CHECK_OK(ctx, mica_session_cut(o.session, 1, 0));
    for (int i = 0; i < 2; i++) {
        run(ctx, &o, i, f.tokens, 45, 0);
        run(ctx, &o, i, f.tokens + (i == 0 ? 45 : 200), 10, 1);
        take_logits(ctx, &o, want + i * SMALL_VOCABULARY);
    }
    CHECK(same(want, got, 2));
    close_model(&o);
    free(want);
    free(got);
    scratch_remove(&f.files);
}

TEST(session_cut_takes_back)
{
    fixture f = make(&(small_model){.weights = MICA_F16, .seed = 4});
    float *want = rows_of(1), *got = rows_of(1);
    mica_context *ctx = test_context(1);
    opened o = open_model(ctx, f.path, (mica_session_opts){.context = 128});
    run(ctx, &o, 0, f.tokens, 50, 1);
    take_logits(ctx, &o, want);
    run(ctx, &o, 0, f.tokens + 90, 60, 0);
    CHECK_OK(ctx, mica_session_cut(o.session, 0, 30));
    const int32_t *history;
    mica_index count;
    CHECK_OK(ctx, mica_session_history(o.session, 0, &history, &count));
    CHECK(count == 30 && memcmp(history, f.tokens, 30 * sizeof *history) == 0);
    run(ctx, &o, 0, f.tokens + 30, 20, 1);
    take_logits(ctx, &o, got);
    CHECK(same(want, got, 1));
    close_model(&o);
    free(want);
    free(got);
    scratch_remove(&f.files);
}

/* Dropping goes on for ever, and its bits do not depend on chunks either. */
TEST(session_drops_from_the_front)
{
    fixture f = make(&(small_model){.weights = MICA_Q4_0, .seed = 5});
    float *want = rows_of(1), *got = rows_of(1);
    mica_context *ctx = test_context(1);
    for (int chunk = 1; chunk <= 13; chunk += 12) {
        opened o = open_model(ctx, f.path, (mica_session_opts){.context = 64, .chunk = chunk});
        for (int first = 0; first < 390; first += 13) {
            if (mica_session_length(o.session, 0) + 13 > 64)
                CHECK_OK(ctx, mica_session_drop(o.session, 0, 29));
            run(ctx, &o, 0, f.tokens + first, 13, 1);
        }
        take_logits(ctx, &o, chunk == 1 ? want : got);
        const int32_t *history;
        mica_index count;
        CHECK_OK(ctx, mica_session_history(o.session, 0, &history, &count));
        CHECK(count <= 64 && memcmp(history, f.tokens + 390 - count, (size_t)count * sizeof *history) == 0);
        close_model(&o);
    }
    CHECK(same(want, got, 1));
    free(want);
    free(got);
    scratch_remove(&f.files);
}

/* ---- Files ---- */

/* Puts a token into a saved sequence, whose sum is right after that. */
static void set_token(unsigned char *file, size_t bytes, int32_t token)
{
    uint64_t sum = 0xcbf29ce484222325u, word;
    memcpy(file + 64, &token, sizeof token);
    for (size_t at = 0; at + 8 < bytes; at += 8) {
        memcpy(&word, file + at, sizeof word);
        sum = (sum ^ word) * 0x100000001b3u;
    }
    memcpy(file + bytes - 8, &sum, sizeof sum);
}

TEST(session_sequences_are_saved_and_restored)
{
    fixture f = make(&(small_model){.weights = MICA_Q4_1, .seed = 6});
    float *want = rows_of(1), *got = rows_of(1);
    char path[320], error[512];
    mica_context *ctx = test_context(1);
    opened o = open_model(ctx, f.path, (mica_session_opts){.context = 96, .sequences = 2});
    run(ctx, &o, 0, f.tokens, 59, 0); /* an odd number */
    CHECK_OK(ctx, mica_session_drop(o.session, 0, 37));
    snprintf(path, sizeof path, "%s", scratch_path(&f.files, "sequence"));
    CHECK_OK(ctx, mica_session_save(o.session, 0, path));
    run(ctx, &o, 0, f.tokens + 59, 10, 1);
    take_logits(ctx, &o, want);
    CHECK_OK(ctx, mica_session_restore(o.session, 1, path));
    CHECK(mica_session_length(o.session, 1) == 22);
    run(ctx, &o, 1, f.tokens + 59, 10, 1);
    take_logits(ctx, &o, got);
    CHECK(same(want, got, 1));
    close_model(&o);

    /* Another type of cache, another model, a damaged byte anywhere. */
    o = open_model(ctx, f.path, (mica_session_opts){.context = 96, .cache = MICA_CACHE_F32});
    snprintf(error, sizeof error, "format error: \"%s\": saved with another type of cache", path);
    CHECK_ERROR(ctx, mica_session_restore(o.session, 0, path), MICA_ERR_FORMAT, error);
    close_model(&o);
    o = open_model(ctx, f.path, (mica_session_opts){.context = 96});
    size_t bytes;
    unsigned char *file = scratch_read(path, &bytes);
    for (size_t at = 0; at < bytes; at += at < 80 ? 1 : 997) {
        file[at] ^= 0x10;
        scratch_write(path, file, bytes);
        CHECK_MSG(mica_session_restore(o.session, 0, path) == MICA_ERR_FORMAT, "byte %zu", at);
        CHECK(mica_session_length(o.session, 0) == 0);
        file[at] ^= 0x10;
    }
    for (size_t length = 0; length < bytes; length += 1 + bytes / 50) {
        scratch_write(path, file, length);
        CHECK_MSG(mica_session_restore(o.session, 0, path) == MICA_ERR_FORMAT, "%zu bytes", length);
    }
    scratch_write(path, file, bytes);
    CHECK_OK(ctx, mica_session_restore(o.session, 0, path));
    CHECK_OK(ctx, mica_session_cut(o.session, 0, 0));
    set_token(file, bytes, SMALL_VOCABULARY);
    scratch_write(path, file, bytes);
    snprintf(error, sizeof error, "format error: \"%s\": it has a token that is not in the vocabulary", path);
    CHECK_ERROR(ctx, mica_session_restore(o.session, 0, path), MICA_ERR_FORMAT, error);
    CHECK(mica_session_length(o.session, 0) == 0);
    free(file);
    close_model(&o);
    fixture other = make(&(small_model){.weights = MICA_Q4_1, .seed = 60});
    o = open_model(ctx, other.path, (mica_session_opts){.context = 96});
    snprintf(error, sizeof error,
             "format error: \"%s\": saved with another model, or with a context that "
             "scales its positions in another way",
             path);
    CHECK_ERROR(ctx, mica_session_restore(o.session, 0, path), MICA_ERR_FORMAT, error);
    close_model(&o);
    scratch_remove(&other.files);
    free(want);
    free(got);
    scratch_remove(&f.files);
}

/* ---- Errors ---- */

TEST(session_errors)
{
    fixture f = make(&(small_model){.weights = MICA_Q8_0});
    mica_context *ctx = test_context(1);
    opened o = open_model(ctx, f.path, (mica_session_opts){.context = 64, .sequences = 2, .tokens = 64});
    REQUIRE(o.session != NULL);
    mica_session *s = o.session;
    mica_tensor logits;
    int32_t bad = SMALL_VOCABULARY;
    CHECK_ERROR(ctx, mica_session_logits(s, &logits), MICA_ERR_STATE,
                "state error: session_logits: the last run was to give none");
    CHECK_ERROR(ctx, mica_session_run(s, &(mica_session_piece){.tokens = &bad, .count = 1}, 1),
                MICA_ERR_INDEX, "index error: session_run: token 300, but the vocabulary has 300");
    CHECK_ERROR(ctx,
                mica_session_run(s, &(mica_session_piece){.sequence = 2, .tokens = f.tokens, .count = 1}, 1),
                MICA_ERR_INDEX, "index error: session_run: sequence 2 of 2");
    CHECK_ERROR(
        ctx, mica_session_run(s, &(mica_session_piece){.tokens = f.tokens, .count = 65}, 1),
        MICA_ERR_ARGUMENT,
        "argument error: session_run: sequence 0 has 0 tokens, 65 more do not fit into a context of 64");
    CHECK_ERROR(ctx,
                mica_session_run(s, &(mica_session_piece){.tokens = f.tokens, .count = 5, .logits = 3}, 1),
                MICA_ERR_ARGUMENT, "argument error: session_run: 3 rows of logits, but 2 are planned");
    run(ctx, &o, 0, f.tokens, 40, 0);
    CHECK_ERROR(ctx,
                mica_session_run(s, &(mica_session_piece){.sequence = 1, .tokens = f.tokens, .count = 1}, 1),
                MICA_ERR_MEMORY,
                "memory error: session_run: 1 more pages of 32 tokens, but the cache has only 0 of 2 left");
    CHECK_ERROR(ctx, mica_session_cut(s, 0, 41), MICA_ERR_ARGUMENT,
                "argument error: session_cut: sequence 0 has 40 tokens, not 41");
    CHECK(mica_session_length(s, 0) == 40 && mica_session_length(s, 1) == 0);
    run(ctx, &o, 0, f.tokens, 24, 1);
    close_model(&o);
    scratch_remove(&f.files);
}

/* A step that fails in the middle of a run: the sequences and their pages are as before. */
TEST(session_failed_runs_leave_no_trace)
{
    fixture f = make(&(small_model){.weights = MICA_Q8_0});
    float *want = rows_of(1), *got = rows_of(1);
    mica_context *ctx = test_context(1);
    opened o = open_model(ctx, f.path, (mica_session_opts){.context = 96, .sequences = 2, .chunk = 16});
    REQUIRE(o.session != NULL);
    mica_tensor table;
    CHECK_OK(ctx, mica_net_tensor(mica_session_net(o.session), &table, "cache.table"));
    int32_t *pages = table.data, page;
    run(ctx, &o, 0, f.tokens, 40, 0);
    CHECK_OK(ctx, mica_session_share(o.session, 1, 0, 40));
    page = pages[0];
    for (int i = 0; i < 5; i++) { /* of the other one no page is to be found */
        mica_session_piece both[] = {{1, f.tokens + 40, 50, 0}, {0, f.tokens + 40, 50, 1}};
        pages[0] = 1 << 20;
        CHECK(mica_session_run(o.session, both, 2) == MICA_ERR_INDEX);
        pages[0] = page;
        CHECK(mica_session_length(o.session, 0) == 40 && mica_session_length(o.session, 1) == 40);
    }
    run(ctx, &o, 0, f.tokens + 40, 50, 1);
    take_logits(ctx, &o, want);
    run(ctx, &o, 1, f.tokens + 40, 50, 1);
    take_logits(ctx, &o, got);
    CHECK(same(want, got, 1));
    close_model(&o);
    free(want);
    free(got);
    scratch_remove(&f.files);
}

TEST(session_sizes_have_limits)
{
    fixture f = make(&(small_model){.weights = MICA_Q8_0});
    mica_context *ctx = test_context(1);
    mica_model *model;
    mica_session *s;
    REQUIRE(CHECK_OK(ctx, mica_model_open(ctx, &model, f.path)));
    const mica_session_opts bad[] = {{.tokens = PTRDIFF_MAX},      {.tokens = -1},
                                     {.logits = PTRDIFF_MAX},      {.logits = -1},
                                     {.context = PTRDIFF_MAX},     {.sequences = PTRDIFF_MAX},
                                     {.chunk = (1 << 20) + 1},     {.context = 1 << 28, .sequences = 1 << 20},
                                     {.cache = (mica_cache_type)9}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_MSG(mica_session_create(model, &s, &bad[i]) == MICA_ERR_ARGUMENT && s == NULL, "case %zu", i);
    CHECK_ERROR(ctx, mica_session_create(model, &s, &bad[1]), MICA_ERR_ARGUMENT,
                "argument error: session: tokens is -1: expected 1 to 2147483615");
    mica_model_close(model);
    scratch_remove(&f.files);
}

/* ---- Memory ---- */

TEST(session_steps_take_nothing_from_the_heap)
{
    fixture f = make(&(small_model){.weights = MICA_Q4_0});
    mica_context *ctx = test_context(2);
    opened o = open_model(ctx, f.path, (mica_session_opts){.context = 128, .sequences = 2});
    test_heap before = test_heap_now();
    run(ctx, &o, 0, f.tokens, 100, 1);
    CHECK_OK(ctx, mica_session_share(o.session, 1, 0, 70));
    for (int i = 0; i < 28; i++)
        run(ctx, &o, i % 2, f.tokens + i, 1, 1);
    CHECK_OK(ctx, mica_session_drop(o.session, 0, 50));
    run(ctx, &o, 0, f.tokens, 40, 1);
    test_heap after = test_heap_now();
    if (test_heap_counted())
        CHECK(memcmp(&before, &after, sizeof before) == 0);
    close_model(&o);
    scratch_remove(&f.files);
}

TEST(session_fits_its_cache_into_a_budget)
{
    fixture f = make(&(small_model){.weights = MICA_Q4_0});
    mica_context *ctx = test_context(1);
    mica_model *model;
    REQUIRE(CHECK_OK(ctx, mica_model_open(ctx, &model, f.path)));
    static const mica_cache_type best_first[] = {MICA_CACHE_F32, MICA_CACHE_F16, MICA_CACHE_Q8_0};
    size_t total[3];
    for (int i = 0; i < 3; i++) {
        mica_session *s;
        REQUIRE(CHECK_OK(ctx, mica_session_create(model, &s, &(mica_session_opts){.cache = best_first[i]})));
        total[i] = mica_net_plan(mica_session_net(s))->total;
        mica_session_destroy(s);
    }
    CHECK(total[0] > total[1] && total[1] > total[2]);
    for (int i = 0; i < 3; i++)
        for (int less = 0; less < 2; less++) {
            mica_session *s;
            mica_session_opts opts = {.cache = MICA_CACHE_FITTING, .budget = total[i] - (size_t)less};
            mica_status status = mica_session_create(model, &s, &opts);
            if (i == 2 && less == 1) {
                CHECK(status == MICA_ERR_MEMORY && s == NULL);
                continue;
            }
            REQUIRE(status == MICA_OK);
            CHECK(mica_session_about(s).cache == best_first[i + less]);
            mica_session_destroy(s);
        }
    mica_model_close(model);
    scratch_remove(&f.files);
}

static mica_status open_and_run(const mica_allocator *allocator, void *argument)
{
    const fixture *f = argument;
    mica_context *ctx;
    mica_model *model = NULL;
    mica_session *session = NULL;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    status = mica_model_open(ctx, &model, f->path);
    if (status == MICA_OK)
        status = mica_session_create(model, &session, &(mica_session_opts){.context = 64});
    if (status == MICA_OK)
        status = mica_session_bind(session, NULL, 0);
    if (status == MICA_OK)
        status = mica_session_run(session,
                                  &(mica_session_piece){.tokens = f->tokens, .count = 9, .logits = 1}, 1);
    mica_session_destroy(session);
    mica_model_close(model);
    mica_context_destroy(ctx);
    return status;
}

TEST(session_survives_refused_memory)
{
    fixture f = make(&(small_model){.weights = MICA_Q4_0, .layers = 1});
    CHECK(test_oom(open_and_run, &f) > 5);
    scratch_remove(&f.files);
}
