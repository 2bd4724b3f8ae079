/* Attention over a cache, in pages. size: { rows, place of the first, heads, heads of keys, features of a head, type }
 *
 * Rows are written to the cache and see all places up to their own. */
#include "bench/bench.h"

enum { Y, Q, K, V, KEYS, VALUES, TABLE, FIRST, SEQUENCE, PLACE };
enum { ROWS, START, HEADS, KV_HEADS, WIDTH, TYPE }; /* size */

static mica_cached_attention_opts options(const bench_state *s)
{
    const mica_index *size = s->row->size;
    return (mica_cached_attention_opts){.heads = (int)size[HEADS],
                                        .kv_heads = (int)size[KV_HEADS],
                                        .width = size[WIDTH],
                                        .type = (int)size[TYPE]};
}

static mica_status run(bench_state *s)
{
    mica_cached_attention_opts opts = options(s);
    mica_tensor *t = s->t;
    mica_cached_attention_args args = {&t[Q],     &t[K],     &t[V],        &t[KEYS], &t[VALUES],
                                       &t[TABLE], &t[FIRST], &t[SEQUENCE], &t[PLACE]};
    return mica_cached_attention(s->ctx, &t[Y], &args, &opts);
}

static mica_status setup(bench_state *s)
{
    const mica_index *size = s->row->size;
    mica_cached_attention_opts opts = options(s);
    mica_index rows = size[ROWS], places = size[START] + rows, one = 1;
    mica_index pages = (places + MICA_CACHE_PAGE - 1) / MICA_CACHE_PAGE;
    mica_index key_bytes = (mica_index)mica_cache_page_bytes(&opts, false);
    mica_index value_bytes = (mica_index)mica_cache_page_bytes(&opts, true);
    mica_index queries = size[HEADS] * size[WIDTH], keys = size[KV_HEADS] * size[WIDTH];
    BENCH_TRY(BENCH_TENSOR(s, rows, queries));
    BENCH_TRY(BENCH_TENSOR(s, rows, queries));
    BENCH_TRY(BENCH_TENSOR(s, rows, keys));
    BENCH_TRY(BENCH_TENSOR(s, rows, keys));
    BENCH_TRY(bench_tensor(s, MICA_U8, 2, (mica_index[]){pages, key_bytes}));
    BENCH_TRY(bench_tensor(s, MICA_U8, 2, (mica_index[]){pages, value_bytes}));
    BENCH_TRY(bench_tensor(s, MICA_I32, 2, (mica_index[]){1, pages}));
    BENCH_TRY(bench_tensor(s, MICA_I32, 1, &one));
    BENCH_TRY(bench_tensor(s, MICA_I32, 1, &rows));
    BENCH_TRY(bench_tensor(s, MICA_I32, 1, &rows));
    for (mica_index page = 0; page < pages; page++)
        ((int32_t *)s->t[TABLE].data)[page] = (int32_t)(pages - 1 - page);
    for (mica_index row = 0; row < rows; row++)
        ((int32_t *)s->t[PLACE].data)[row] = (int32_t)(size[START] + row);
    /* Two products, scores and sums of values, over the pairs of a query and a key that it sees. One row takes as
     * long as its cache takes to read. */
    double pairs = (double)rows * ((double)size[START] + 0.5 * (double)(rows + 1));
    s->flops = rows > 1 ? 2.0 * 2.0 * pairs * (double)queries : 0.0;
    return MICA_OK;
}

static const bench_case cases[] = {
    {"cached_attention_128_at_384_f32", setup, run, {128, 384, 9, 3, 64, MICA_F32}},
    {"cached_attention_128_at_384_f16", setup, run, {128, 384, 9, 3, 64, MICA_F16}},
    {"cached_attention_128_at_384_q8_0", setup, run, {128, 384, 9, 3, 64, MICA_Q8_0}},
    {"cached_attention_512_at_0_f16", setup, run, {512, 0, 9, 3, 64, MICA_F16}},
    {"cached_attention_128_at_384_d128_f16", setup, run, {128, 384, 16, 8, 128, MICA_F16}},
    {"cached_attention_1_at_2000_f32", setup, run, {1, 2000, 9, 3, 64, MICA_F32}},
    {"cached_attention_1_at_2000_f16", setup, run, {1, 2000, 9, 3, 64, MICA_F16}},
    {"cached_attention_1_at_2000_q8_0", setup, run, {1, 2000, 9, 3, 64, MICA_Q8_0}},
    {"cached_attention_1_at_2000_d128_f16", setup, run, {1, 2000, 16, 8, 128, MICA_F16}},
    {"cached_attention_1_at_2000_heads_f16", setup, run, {1, 2000, 8, 8, 64, MICA_F16}},
    {"cached_attention_1_at_20_f16", setup, run, {1, 20, 9, 3, 64, MICA_F16}},
};

BENCH_FAMILY(cached_attention, cases);
