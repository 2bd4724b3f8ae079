/* Sessions used as they must not be: errors, and nothing else changes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/scratch.h"
#include "text/small_model.h"

enum { COUNT = 9 };

static const int32_t some[COUNT] = {1, 260, 261, 299, 3, 0, 77, 260, 5};

typedef struct fixture {
    scratch files;
    mica_context *ctx;
    mica_model *model;
} fixture;

static bool make(fixture *f, const small_model *about)
{
    char path[300];
    *f = (fixture){.files = scratch_make(), .ctx = test_context(1)};
    snprintf(path, sizeof path, "%s", scratch_path(&f->files, "model.gguf"));
    return CHECK_OK(f->ctx, small_model_write(f->ctx, path, about)) &&
           CHECK_OK(f->ctx, mica_model_open(f->ctx, &f->model, path));
}

static void done(fixture *f)
{
    mica_model_close(f->model);
    scratch_remove(&f->files);
}

static const mica_session_piece piece = {.tokens = some, .count = COUNT, .logits = 1};

TEST(session_sizes_are_checked)
{
    fixture f;
    REQUIRE(make(&f, &(small_model){.layers = 1}));
    static const mica_session_opts wrong[] = {
        {.context = -1},
        {.context = PTRDIFF_MAX},
        {.sequences = -1},
        {.sequences = (1 << 20) + 1},
        {.sequences = PTRDIFF_MAX},
        {.chunk = -1},
        {.chunk = PTRDIFF_MAX},
        {.logits = -1},
        {.logits = (1 << 20) + 1},
        {.logits = PTRDIFF_MAX},
        {.tokens = -1},
        {.tokens = PTRDIFF_MAX},
        {.cache = (mica_cache_type)99},
    };
    mica_session *s;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_MSG(mica_session_create(f.model, &s, &wrong[i]) == MICA_ERR_ARGUMENT && s == NULL, "case %zu",
                  i);
        mica_session_destroy(s);
    }
    /* What is only large is planned, and takes no memory before it is bound. */
    CHECK_OK(f.ctx, mica_session_create(f.model, &s,
                                        &(mica_session_opts){.context = 1 << 20, .sequences = 1 << 10}));
    CHECK(mica_net_plan(mica_session_net(s))->total > (size_t)1 << 30);
    mica_session_destroy(s);
    CHECK_ERROR(f.ctx, mica_session_create(f.model, NULL, NULL), MICA_ERR_ARGUMENT,
                "argument error: session_create: out is NULL");
    done(&f);
}

TEST(session_refuses_what_it_is_not_ready_for)
{
    fixture f;
    REQUIRE(make(&f, &(small_model){.layers = 1}));
    mica_session *s = NULL;
    mica_tensor t;
    const int32_t *tokens;
    mica_index count;
    char path[300];
    snprintf(path, sizeof path, "%s", scratch_path(&f.files, "kept"));
    REQUIRE(CHECK_OK(f.ctx, mica_session_create(f.model, &s, &(mica_session_opts){.context = 64})));
    /* Not bound. */
    CHECK(mica_session_run(s, &piece, 1) == MICA_ERR_STATE);
    CHECK(mica_session_logits(s, &t) == MICA_ERR_STATE);
    CHECK(mica_session_history(s, 0, &tokens, &count) == MICA_ERR_STATE);
    CHECK(mica_session_share(s, 0, 0, 0) == MICA_ERR_STATE && mica_session_cut(s, 0, 0) == MICA_ERR_STATE);
    CHECK(mica_session_drop(s, 0, 0) == MICA_ERR_STATE && mica_session_length(s, 0) == 0);
    CHECK(mica_session_save(s, 0, path) == MICA_ERR_STATE);
    CHECK(mica_session_restore(s, 0, path) == MICA_ERR_STATE);
    /* Blocks that do not do. */
    size_t total = mica_net_plan(mica_session_net(s))->total;
    char *block = aligned_alloc(64, (total + 127) / 64 * 64);
    CHECK(mica_session_bind(s, block, total - 1) == MICA_ERR_MEMORY);
    CHECK(mica_session_bind(s, block + 8, total) == MICA_ERR_ARGUMENT);
    CHECK_OK(f.ctx, mica_session_bind(s, block, total));
    CHECK(mica_session_bind(s, block, total) == MICA_ERR_STATE);
    /* Bound, but asked for what there is not. */
    CHECK(mica_session_run(s, NULL, 1) == MICA_ERR_ARGUMENT);
    CHECK(mica_session_run(s, &piece, -1) == MICA_ERR_ARGUMENT);
    CHECK(mica_session_run(s, &piece, 2) == MICA_ERR_ARGUMENT);
    CHECK(mica_session_run(s, &(mica_session_piece){.count = 1}, 1) == MICA_ERR_ARGUMENT);
    CHECK(mica_session_run(s, &(mica_session_piece){.tokens = some, .count = PTRDIFF_MAX}, 1) != MICA_OK);
    CHECK(mica_session_share(s, 0, 0, 0) == MICA_ERR_ARGUMENT);
    CHECK(mica_session_share(s, -1, 0, 0) == MICA_ERR_INDEX);
    CHECK(mica_session_drop(s, 0, 1) == MICA_ERR_ARGUMENT &&
          mica_session_drop(s, 0, -1) == MICA_ERR_ARGUMENT);
    CHECK(mica_session_history(s, 0, NULL, &count) == MICA_ERR_ARGUMENT);
    CHECK(mica_session_history(s, 0, &tokens, NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_session_logits(s, NULL) == MICA_ERR_ARGUMENT);
    CHECK_OK(f.ctx, mica_session_run(s, NULL, 0));
    CHECK_OK(f.ctx, mica_session_run(s, &piece, 1));
    CHECK(mica_session_length(s, 0) == COUNT);
    mica_session_destroy(s);
    free(block);
    done(&f);
}

static void logits_in(const fixture *f, float *out, void *block, size_t bytes)
{
    mica_session *s = NULL;
    mica_tensor t;
    if (CHECK_OK(f->ctx, mica_session_create(f->model, &s, &(mica_session_opts){.context = 64})) &&
        CHECK_OK(f->ctx, mica_session_bind(s, block, bytes)) &&
        CHECK_OK(f->ctx, mica_session_run(s, &piece, 1)) && CHECK_OK(f->ctx, mica_session_logits(s, &t)))
        memcpy(out, t.data, SMALL_VOCABULARY * sizeof *out);
    mica_session_destroy(s);
}

TEST(session_bits_do_not_depend_on_what_the_block_held)
{
    static const mica_dtype types[] = {MICA_F32, MICA_Q8_0, MICA_Q4_K};
    for (int i = 0; i < 3; i++) {
        fixture f;
        float wanted[SMALL_VOCABULARY], got[SMALL_VOCABULARY];
        mica_session *s = NULL;
        REQUIRE(make(&f, &(small_model){.weights = types[i], .layers = 2, .window = 4}));
        REQUIRE(CHECK_OK(f.ctx, mica_session_create(f.model, &s, &(mica_session_opts){.context = 64})));
        size_t total = mica_net_plan(mica_session_net(s))->total, room = (total + 63) / 64 * 64;
        mica_session_destroy(s);
        unsigned char *block = aligned_alloc(64, room);
        memset(block, 0, room);
        logits_in(&f, wanted, block, total);
        for (int fill = 0x3f; fill <= 0xff; fill += 0x40) {
            memset(block, fill, room);
            logits_in(&f, got, block, total);
            CHECK(memcmp(got, wanted, sizeof got) == 0);
        }
        free(block);
        done(&f);
    }
}

/* ---- Forged files ---- */

/* The sum of a saved sequence, so that only what it says is wrong. */
static void sign(unsigned char *file, size_t bytes)
{
    uint64_t sum = 0xcbf29ce484222325u, word;
    for (size_t at = 0; at + 8 < bytes; at += 8) {
        memcpy(&word, file + at, 8);
        sum = (sum ^ word) * 0x100000001b3u;
    }
    memcpy(file + bytes - 8, &sum, 8);
}

TEST(session_forged_sequences_are_refused)
{
    fixture f;
    mica_session *s = NULL;
    char path[300];
    REQUIRE(make(&f, &(small_model){.layers = 1}));
    snprintf(path, sizeof path, "%s", scratch_path(&f.files, "kept"));
    REQUIRE(CHECK_OK(f.ctx, mica_session_create(f.model, &s, &(mica_session_opts){.context = 64})) &&
            CHECK_OK(f.ctx, mica_session_bind(s, NULL, 0)) &&
            CHECK_OK(f.ctx, mica_session_run(s, &piece, 1)) &&
            CHECK_OK(f.ctx, mica_session_save(s, 0, path)));
    size_t bytes;
    unsigned char *file = scratch_read(path, &bytes);
    static const int32_t tokens[] = {-1, INT32_MIN, SMALL_VOCABULARY, INT32_MAX};
    for (int i = 0; i < 4; i++) {
        unsigned char *at = file + 64 + 4 * (i % 2 == 0 ? 0 : COUNT - 1), own[4];
        memcpy(own, at, 4);
        memcpy(at, &tokens[i], 4);
        sign(file, bytes);
        scratch_write(path, file, bytes);
        CHECK_MSG(mica_session_restore(s, 0, path) == MICA_ERR_FORMAT, "token %d", (int)tokens[i]);
        memcpy(at, own, 4);
    }
    static const uint64_t numbers[] = {0, 1, 31, 32, 63, 64, 65, 97, 1 << 30, UINT32_MAX, UINT64_MAX};
    for (size_t word = 0; word < 8; word++) /* some of them are sound: none may do harm */
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            unsigned char own[8];
            memcpy(own, file + 8 * word, 8);
            memcpy(file + 8 * word, &numbers[i], 8);
            sign(file, bytes);
            scratch_write(path, file, bytes);
            if (mica_session_restore(s, 0, path) == MICA_OK)
                CHECK_OK(f.ctx, mica_session_run(s, &piece, 1));
            memcpy(file + 8 * word, own, 8);
        }
    sign(file, bytes);
    scratch_write(path, file, bytes);
    CHECK_OK(f.ctx, mica_session_restore(s, 0, path));
    CHECK(mica_session_length(s, 0) == COUNT);
    free(file);
    mica_session_destroy(s);
    done(&f);
}

/* Without a norm that its architecture has a model would run, and write nonsense. */
TEST(session_needs_every_norm)
{
    static const struct {
        small_model model;
        const char *missing;
    } cases[] = {
        {{.layers = 1, .without = "blk.0.attn_norm.weight"}, "blk.0.attn_norm.weight"},
        {{.layers = 1, .without = "blk.0.ffn_norm.weight"}, "blk.0.ffn_norm.weight"},
        {{.layers = 1, .without = "output_norm.weight"}, "output_norm.weight"},
        {{.architecture = "qwen3", .layers = 1}, "blk.0.attn_q_norm.weight"},
        {{.architecture = "gemma2", .layers = 1}, "blk.0.post_attention_norm.weight"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture f;
        mica_session *s;
        char wanted[96];
        REQUIRE(make(&f, &cases[i].model));
        snprintf(wanted, sizeof wanted, "tensor \"%s\" is missing", cases[i].missing);
        CHECK(mica_session_create(f.model, &s, NULL) == MICA_ERR_FORMAT && s == NULL);
        CHECK_MSG(strstr(mica_error(f.ctx), wanted) != NULL, "%s", mica_error(f.ctx));
        done(&f);
    }
}
