/* Attention over a cache: a row's bits follow from its own sequence alone, whatever else runs; and what is wrong is
 * found before anything is written. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/isa_context.h"

enum { SEQUENCES = 3, LENGTH = 640, PAGES = LENGTH / MICA_CACHE_PAGE, POOL = SEQUENCES * PAGES + 1 };

/* Texts of LENGTH tokens each: what is asked of every token, and the answers when each ran alone. */
typedef struct texts {
    mica_cached_attention_opts opts;
    mica_index widths[4]; /* of rows of q, k, v, y */
    float *rows[4];       /* [SEQUENCES][LENGTH][width] */
    int32_t first[SEQUENCES], table[SEQUENCES * PAGES];
    uint8_t *keys, *values;
} texts;

static void new_cache(texts *x, test_random *r)
{
    size_t key_bytes = mica_cache_page_bytes(&x->opts, false),
           value_bytes = mica_cache_page_bytes(&x->opts, true);
    memset(x->keys, 255, POOL * key_bytes); /* no numbers in any type */
    memset(x->values, 255, POOL * value_bytes);
    for (int32_t i = 0; i < SEQUENCES * PAGES; i++) {
        int32_t other = test_int(r, 0, i);
        x->table[i] = x->table[other];
        x->table[other] = i;
    }
}

static texts make(const mica_cached_attention_opts *opts, test_random *r)
{
    mica_index value_width = opts->value_width != 0 ? opts->value_width : opts->width;
    texts x = {.opts = *opts,
               .widths = {opts->heads * opts->width, opts->kv_heads * opts->width,
                          opts->kv_heads * value_width, opts->heads * value_width},
               .keys = malloc(POOL * mica_cache_page_bytes(opts, false)),
               .values = malloc(POOL * mica_cache_page_bytes(opts, true))};
    for (int k = 0; k < 4; k++) {
        size_t count = (size_t)(SEQUENCES * LENGTH * x.widths[k]);
        x.rows[k] = malloc(count * sizeof(float));
        for (size_t i = 0; i < count; i++)
            x.rows[k][i] = (float)test_normal(r);
    }
    new_cache(&x, r);
    return x;
}

static void release(texts *x)
{
    for (int k = 0; k < 4; k++)
        free(x->rows[k]);
    free(x->keys);
    free(x->values);
}

/* A call of up to LENGTH rows, gathered from the texts. */
typedef struct batch {
    int count;
    int32_t sequence[LENGTH], place[LENGTH];
    float *y; /* as it came out, or NULL */
} batch;

static mica_status call(mica_context *ctx, texts *x, const batch *b, float *y)
{
    mica_index count = b->count, sequences = SEQUENCES;
    float *rows[4] = {0};
    mica_tensor t[4], keys, values, table, first, sequence, place;
    for (int k = 0; k < 4; k++) {
        size_t width = (size_t)x->widths[k];
        rows[k] = calloc((size_t)count * width + 1, sizeof(float));
        for (int i = 0; i < count && k < 3; i++)
            if (b->sequence[i] >= 0 && b->place[i] >= 0 && b->sequence[i] < SEQUENCES && b->place[i] < LENGTH)
                memcpy(rows[k] + (size_t)i * width,
                       x->rows[k] + (size_t)(b->sequence[i] * LENGTH + b->place[i]) * width,
                       width * sizeof(float));
        t[k] = mica_2d(k < 3 ? rows[k] : y, count, x->widths[k]);
    }
    mica_index key_page = (mica_index)mica_cache_page_bytes(&x->opts, false),
               value_page = (mica_index)mica_cache_page_bytes(&x->opts, true);
    CHECK_OK(ctx, mica_tensor_init(ctx, &keys, x->keys, MICA_U8, 2, (mica_index[]){POOL, key_page}));
    CHECK_OK(ctx, mica_tensor_init(ctx, &values, x->values, MICA_U8, 2, (mica_index[]){POOL, value_page}));
    CHECK_OK(ctx, mica_tensor_init(ctx, &table, x->table, MICA_I32, 2, (mica_index[]){sequences, PAGES}));
    CHECK_OK(ctx, mica_tensor_init(ctx, &first, x->first, MICA_I32, 1, &sequences));
    CHECK_OK(ctx, mica_tensor_init(ctx, &sequence, (void *)b->sequence, MICA_I32, 1, &count));
    CHECK_OK(ctx, mica_tensor_init(ctx, &place, (void *)b->place, MICA_I32, 1, &count));
    mica_cached_attention_args args = {&t[0],  &t[1],  &t[2],     &keys, &values,
                                       &table, &first, &sequence, &place};
    mica_status status = mica_cached_attention(ctx, &t[3], &args, &x->opts);
    for (int k = 0; k < 4; k++)
        free(rows[k]);
    return status;
}

static float *answer(const texts *x, int sequence, int place)
{
    return x->rows[3] + (size_t)((sequence * LENGTH + place) * x->widths[3]);
}

/* Runs a batch; its answers become those of the texts, or are held against them. */
static void check(mica_context *ctx, texts *x, const batch *b, bool first_time, const char *how)
{
    size_t width = (size_t)x->widths[3];
    float *y = malloc(((size_t)b->count * width + 1) * sizeof *y);
    if (!CHECK_OK(ctx, call(ctx, x, b, y))) {
        free(y);
        return;
    }
    for (int i = 0; i < b->count; i++) {
        const float *got = y + (size_t)i * width;
        float *want = answer(x, b->sequence[i] < 0 ? 0 : b->sequence[i],
                             b->sequence[i] < 0 ? 0 : b->place[i]);
        if (b->sequence[i] < 0)
            for (size_t k = 0; k < width; k++)
                CHECK(got[k] == 0.0f);
        else if (first_time)
            memcpy(want, got, width * sizeof *want);
        else if (!CHECK_MSG(memcmp(got, want, width * sizeof *want) == 0,
                            "%s, %s: place %d of text %d, row %d of %d: other bits", how,
                            mica_dtype_name((mica_dtype)x->opts.type), b->place[i], b->sequence[i], i,
                            b->count))
            break;
    }
    free(y);
}

/* Tokens of one text, `count` at a time. */
static void run_alone(mica_context *ctx, texts *x, int sequence, int count, bool first_time, const char *how)
{
    batch b = {0};
    for (int place = 0; place < LENGTH; place++) {
        b.sequence[b.count] = sequence;
        b.place[b.count++] = place;
        if (b.count < count && place + 1 < LENGTH)
            continue;
        check(ctx, x, &b, first_time, how);
        b.count = 0;
    }
}

/* Tokens of all texts in turns, with rows that are left out, in calls of any size. */
static void run_mixed(mica_context *ctx, texts *x, test_random *r, const char *how)
{
    int next[SEQUENCES] = {0}, left = SEQUENCES * LENGTH;
    while (left > 0) {
        batch b = {0};
        int count = test_chance(r, 20) ? test_int(r, 1, 9) : test_int(r, 1, LENGTH);
        while (b.count < count) {
            int s = test_int(r, -1, SEQUENCES - 1), some = test_int(r, 1, 50);
            for (; some > 0 && b.count < count && (s < 0 || next[s] < LENGTH); some -= s < 0 ? 50 : 1) {
                b.sequence[b.count] = s;
                b.place[b.count++] = s < 0 ? 0 : next[s]++;
                left -= s >= 0;
            }
            if (left == 0)
                break;
        }
        check(ctx, x, &b, false, how);
    }
}

static const mica_cached_attention_opts shapes[] = {
    {.heads = 6, .kv_heads = 2, .width = 32, .type = MICA_F32},
    {.heads = 4, .kv_heads = 1, .width = 64, .type = MICA_F16},
    {.heads = 2, .kv_heads = 2, .width = 32, .value_width = 64, .type = MICA_Q8_0},
    {.heads = 7, .kv_heads = 1, .width = 24, .value_width = 9, .type = MICA_F16, .window = 70},
    {.heads = 13, .kv_heads = 1, .width = 8, .type = MICA_F32, .window = 300, .cap = 2.0f},
    {.heads = 1, .kv_heads = 1, .width = 80, .type = MICA_F32, .scale = 0.3f},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

TEST(cached_rows_follow_from_their_own_sequence)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    for (int i = 0; i < 4; i++) {
        mica_context *ctx[] = {isa_context(isas[i], 1), isa_context(isas[i], 2), isa_context(isas[i], 3)};
        for (int n = 0; n < SHAPES && ctx[0] != NULL; n += i == 0 ? 2 : 1) {
            test_random r = test_seed(500 + (uint64_t)n);
            texts x = make(&shapes[n], &r);
            x.first[1] = 45;
            for (int s = 0; s < SEQUENCES; s++)
                run_alone(ctx[s], &x, s, 1, true, "token by token");
            for (int k = 0; k < 3; k++) {
                new_cache(&x, &r);
                run_alone(ctx[k], &x, k, LENGTH, false, "all at once");
                new_cache(&x, &r);
                run_alone(ctx[2 - k], &x, k, (int[]){2, 50, 127}[k], false, "in chunks");
                new_cache(&x, &r);
                run_mixed(ctx[k], &x, &r, "mixed");
            }
            release(&x);
        }
        for (int k = 0; k < 3; k++)
            if (ctx[k] != NULL)
                mica_context_destroy(ctx[k]);
    }
}

/* Both ways: what a call has of a text is a whole. */
TEST(cached_rows_see_both_ways_within_a_call)
{
    mica_context *ctx[] = {isa_context(NULL, 1), isa_context(NULL, 2)};
    mica_cached_attention_opts opts = {
        .heads = 4, .kv_heads = 2, .width = 32, .type = MICA_F32, .both_ways = true};
    test_random r = test_seed(510);
    texts x = make(&opts, &r);
    batch b = {0};
    for (int s = 0; s < SEQUENCES; s++) { /* texts of 100 tokens */
        b.count = 100;
        for (int i = 0; i < b.count; i++)
            b.sequence[i] = s, b.place[i] = i;
        check(ctx[0], &x, &b, true, "alone");
    }
    new_cache(&x, &r);
    for (b.count = 0; b.count < 300; b.count++) {
        b.sequence[b.count] = b.count % 3;
        b.place[b.count] = b.count / 3;
    }
    check(ctx[1], &x, &b, false, "row by row in turns");
    release(&x);
    mica_context_destroy(ctx[0]);
    mica_context_destroy(ctx[1]);
}

/* A text that begins as another shares its pages, and goes on in pages of its own. */
TEST(cached_texts_share_pages)
{
    mica_context *ctx = isa_context(NULL, 1);
    test_random r = test_seed(520);
    texts x = make(&shapes[0], &r);
    enum { SHARED = 2 * MICA_CACHE_PAGE };
    for (int k = 0; k < 3; k++) /* text 1 has text 0's first tokens */
        memcpy(x.rows[k] + LENGTH * x.widths[k], x.rows[k], (size_t)(SHARED * x.widths[k]) * sizeof(float));
    run_alone(ctx, &x, 1, 100, true, "of its own");
    new_cache(&x, &r);
    run_alone(ctx, &x, 0, 64, true, "");
    x.table[PAGES] = x.table[0];
    x.table[PAGES + 1] = x.table[1];
    batch b = {0};
    for (int place = SHARED; place < LENGTH; place++)
        b.sequence[b.count] = 1, b.place[b.count++] = place;
    check(ctx, &x, &b, false, "in shared pages");
    release(&x);
    mica_context_destroy(ctx);
}

/* A text whose beginning is no longer seen: its pages may be gone. So may those before a window. */
TEST(cached_texts_forget_their_beginning)
{
    mica_context *ctx = isa_context(NULL, 1);
    for (int windowed = 0; windowed < 2; windowed++) {
        test_random r = test_seed(530);
        mica_cached_attention_opts opts = shapes[0];
        opts.window = windowed ? 40 : 0;
        texts x = make(&opts, &r);
        run_alone(ctx, &x, 0, 300, true, "");
        batch b = {.count = 5}, last = {.count = 1, .place = {LENGTH - 1}};
        for (int i = 0; i < b.count; i++)
            b.place[i] = LENGTH - 5 + i;
        x.table[0] = x.table[1] = -1;
        x.first[0] = windowed ? 0 : 2 * MICA_CACHE_PAGE;
        check(ctx, &x, &b, !windowed, "without its first pages");
        check(ctx, &x, &last, false, "without its first pages");
        x.first[0] = LENGTH; /* nothing is seen */
        float *y = calloc((size_t)x.widths[3], sizeof *y);
        y[0] = 1.0f;
        CHECK_OK(ctx, call(ctx, &x, &last, y));
        for (mica_index i = 0; i < x.widths[3]; i++)
            CHECK(y[i] == 0.0f);
        free(y);
        release(&x);
    }
    mica_context_destroy(ctx);
}

/* Numbers that are none spoil the rows that see them, and no other. */
TEST(cached_rows_are_spoiled_by_what_they_see)
{
    mica_context *ctx = isa_context(NULL, 1);
    for (int n = 0; n < 3; n++) {
        test_random r = test_seed(540);
        texts x = make(&shapes[n], &r), spoiled = make(&shapes[n], &r);
        batch b = {.count = 90};
        for (int i = 0; i < b.count; i++)
            b.place[i] = i;
        for (int k = 0; k < 3; k++)
            memcpy(spoiled.rows[k], x.rows[k], (size_t)(b.count * x.widths[k]) * sizeof(float));
        spoiled.rows[1][40 * x.widths[1]] = NAN;
        spoiled.rows[2][50 * x.widths[2]] = INFINITY;
        float *y = malloc((size_t)(b.count * x.widths[3]) * sizeof *y);
        check(ctx, &x, &b, true, "");
        CHECK_OK(ctx, call(ctx, &spoiled, &b, y));
        CHECK(memcmp(y, answer(&x, 0, 0), (size_t)(40 * x.widths[3]) * sizeof *y) == 0);
        for (int i = 40; i < b.count; i++)
            CHECK(!isfinite(y[i * x.widths[3]]));
        free(y);
        release(&x);
        release(&spoiled);
    }
    mica_context_destroy(ctx);
}

/* ---- What is wrong ---- */

static void check_refused(mica_context *ctx, texts *x, const batch *b, const char *text)
{
    size_t key_bytes = POOL * mica_cache_page_bytes(&x->opts, false);
    size_t y_bytes = (size_t)(b->count * x->widths[3]) * sizeof(float);
    uint8_t *before = malloc(key_bytes);
    float *y = malloc(y_bytes), *y_before = malloc(y_bytes);
    memcpy(before, x->keys, key_bytes);
    memset(y, 1, y_bytes);
    memset(y_before, 1, y_bytes);
    CHECK_ERROR(ctx, call(ctx, x, b, y), MICA_ERR_INDEX, text);
    CHECK(memcmp(before, x->keys, key_bytes) == 0);
    CHECK(memcmp(y_before, y, y_bytes) == 0);
    free(before);
    free(y);
    free(y_before);
}

TEST(cached_attention_finds_bad_places_before_it_writes)
{
    mica_context *ctx = isa_context(NULL, 1);
    test_random r = test_seed(550);
    texts x = make(&shapes[0], &r);
    batch good = {.count = 3, .sequence = {0, 0, 1}, .place = {0, 1, 0}}, b = good;
    b.sequence[2] = SEQUENCES;
    check_refused(ctx, &x, &b, "index error: cached_attention: sequence[2] is 3; expected -1 to 2");
    b.sequence[2] = -2;
    check_refused(ctx, &x, &b, "index error: cached_attention: sequence[2] is -2; expected -1 to 2");
    b = good;
    b.place[1] = LENGTH;
    check_refused(ctx, &x, &b,
                  "index error: cached_attention: place[1] is 640; expected 0 to 639, as table is [3, 20]");
    b.place[1] = INT32_MAX;
    check_refused(
        ctx, &x, &b,
        "index error: cached_attention: place[1] is 2147483647; expected 0 to 639, as table is [3, 20]");
    b.place[1] = -1;
    check_refused(ctx, &x, &b,
                  "index error: cached_attention: place[1] is -1; expected 0 to 639, as table is [3, 20]");
    x.first[1] = -4;
    check_refused(ctx, &x, &good, "index error: cached_attention: first[1] is -4; expected 0 or more");
    x.first[1] = 0;
    int32_t page = x.table[PAGES];
    x.table[PAGES] = POOL;
    check_refused(ctx, &x, &good, "index error: cached_attention: table[1, 0] is 61; expected 0 to 60");
    x.table[PAGES] = -1;
    check_refused(ctx, &x, &good, "index error: cached_attention: table[1, 0] is -1; expected 0 to 60");
    b = good; /* the page of an earlier place */
    b.place[2] = 40;
    check_refused(ctx, &x, &b, "index error: cached_attention: table[1, 0] is -1; expected 0 to 60");
    x.first[1] = 50; /* which is not seen, but its own page is written to */
    x.table[PAGES + 1] = -1;
    check_refused(ctx, &x, &b, "index error: cached_attention: table[1, 1] is -1; expected 0 to 60");
    x.table[PAGES] = page;
    release(&x);
    mica_context_destroy(ctx);
}

TEST(cached_attention_says_what_options_are_wrong)
{
    const mica_cached_attention_opts good = {.heads = 4, .kv_heads = 2, .width = 32, .type = MICA_F32};
    CHECK(mica_cache_page_bytes(&good, false) == 2 * 32 * 32 * 4);
    CHECK(mica_cache_page_bytes(&good, true) == 2 * 32 * 32 * 4);
    CHECK(mica_cache_page_bytes(NULL, true) == 0);
    mica_cached_attention_opts bad[9];
    for (int i = 0; i < 9; i++)
        bad[i] = good;
    bad[0].heads = 0, bad[1].kv_heads = 3, bad[2].width = 0, bad[3].value_width = -1, bad[4].type = MICA_BF16;
    bad[5].type = MICA_Q8_0, bad[5].width = 40, bad[6].type = -1, bad[7].width = PTRDIFF_MAX,
    bad[8].kv_heads = -2;
    for (int i = 0; i < 9; i++)
        CHECK(mica_cache_page_bytes(&bad[i], false) == 0);
    mica_context *ctx = test_context(1);
    mica_tensor t = mica_2d(NULL, 1, 1);
    mica_cached_attention_args args = {&t, &t, &t, &t, &t, &t, &t, &t, &t};
    CHECK_ERROR(ctx, mica_cached_attention(ctx, &t, NULL, &good), MICA_ERR_ARGUMENT,
                "argument error: cached_attention: the arguments are NULL");
    CHECK_ERROR(ctx, mica_cached_attention(ctx, &t, &args, NULL), MICA_ERR_ARGUMENT,
                "argument error: cached_attention: the options are NULL");
    CHECK_ERROR(
        ctx, mica_cached_attention(ctx, &t, &args, &bad[5]), MICA_ERR_ARGUMENT,
        "argument error: cached_attention: 4 heads that share 2, of width 40 and 0, type q8_0, window 0; "
        "expected a divisor of the heads, widths of at least 1, f32, f16 or q8_0 (widths that 32 divides), no "
        "negative window");
}
