/* Moving elements: conversions, transposes, joins, rows by index. size: { the dims of what is read } */
#include "bench/bench.h"

/* dst and src, both of size[0] elements. */
static mica_status convert_setup(bench_state *s, mica_dtype to, mica_dtype from)
{
    BENCH_TRY(bench_tensor(s, to, 1, s->row->size));
    return bench_tensor(s, from, 1, s->row->size);
}

static mica_status f16_from_f32_setup(bench_state *s) { return convert_setup(s, MICA_F16, MICA_F32); }
static mica_status f32_from_f16_setup(bench_state *s) { return convert_setup(s, MICA_F32, MICA_F16); }
static mica_status bf16_from_f32_setup(bench_state *s) { return convert_setup(s, MICA_BF16, MICA_F32); }
static mica_status f32_from_u8_setup(bench_state *s) { return convert_setup(s, MICA_F32, MICA_U8); }
static mica_status copy_run(bench_state *s) { return mica_copy(s->ctx, &s->t[0], &s->t[1]); }

static mica_status transpose_setup(bench_state *s)
{
    BENCH_TRY(BENCH_TENSOR(s, s->row->size[1], s->row->size[0]));
    return BENCH_TENSOR(s, s->row->size[0], s->row->size[1]);
}
static mica_status transpose_run(bench_state *s) { return mica_transpose(s->ctx, &s->t[0], &s->t[1], 0, 1); }

static mica_status channels_last_setup(bench_state *s)
{
    const mica_index *n = s->row->size;
    BENCH_TRY(BENCH_TENSOR(s, n[0], n[2], n[3], n[1]));
    return BENCH_TENSOR(s, n[0], n[1], n[2], n[3]);
}
static mica_status channels_last_run(bench_state *s)
{
    return mica_permute(s->ctx, &s->t[0], &s->t[1], (const int[]){0, 2, 3, 1});
}

static mica_status concat_setup(bench_state *s)
{
    const mica_index *n = s->row->size;
    BENCH_TRY(BENCH_TENSOR(s, n[0], 2 * n[1]));
    BENCH_TRY(BENCH_TENSOR(s, n[0], n[1]));
    return BENCH_TENSOR(s, n[0], n[1]);
}
static mica_status concat_run(bench_state *s)
{
    return mica_concat(s->ctx, &s->t[0], (const mica_tensor *[]){&s->t[1], &s->t[2]}, 2, 1);
}

/* Rows of a table [size[0], size[1]] at size[2] indices. The table is read as far as there are indices. */
static mica_status take_setup(bench_state *s)
{
    const mica_index *n = s->row->size;
    BENCH_TRY(BENCH_TENSOR(s, n[2], n[1]));
    BENCH_TRY(BENCH_TENSOR(s, n[0], n[1]));
    BENCH_TRY(bench_tensor(s, MICA_I32, 1, &n[2]));
    int32_t *index = s->t[2].data;
    for (mica_index i = 0; i < n[2]; i++)
        index[i] = (int32_t)(i * 7919 % n[0]);
    s->bytes += (double)(n[2] - n[0]) * (double)n[1] * sizeof(float);
    return MICA_OK;
}
static mica_status take_run(bench_state *s) { return mica_take(s->ctx, &s->t[0], &s->t[1], &s->t[2], 0); }
static mica_status index_add_run(bench_state *s)
{
    return mica_index_add(s->ctx, &s->t[1], &s->t[0], &s->t[2], 0);
}

static mica_status fill_setup(bench_state *s) { return BENCH_TENSOR(s, s->row->size[0]); }
static mica_status fill_run(bench_state *s) { return mica_fill(s->ctx, &s->t[0], 1.5); }
static mica_status uniform_run(bench_state *s)
{
    return mica_uniform(s->ctx, &s->t[0], &(const mica_random){1, 2, 3}, -1.0f, 1.0f);
}
static mica_status normal_run(bench_state *s)
{
    return mica_normal(s->ctx, &s->t[0], &(const mica_random){1, 2, 3}, 0.0f, 1.0f);
}

static const bench_case cases[] = {
    {"f16_from_f32_1m", f16_from_f32_setup, copy_run, {1 << 20}},
    {"f32_from_f16_1m", f32_from_f16_setup, copy_run, {1 << 20}},
    {"bf16_from_f32_1m", bf16_from_f32_setup, copy_run, {1 << 20}},
    {"f32_from_u8_1m", f32_from_u8_setup, copy_run, {1 << 20}},
    {"transpose_1000x1000", transpose_setup, transpose_run, {1000, 1000}},
    {"transpose_2048x2048", transpose_setup, transpose_run, {2048, 2048}},
    {"channels_last_8x64x32x32", channels_last_setup, channels_last_run, {8, 64, 32, 32}},
    {"concat_1024x512_twice", concat_setup, concat_run, {1024, 512}},
    {"take_1024_of_1000x256", take_setup, take_run, {1000, 256, 1024}},
    {"index_add_1024_to_1000x256", take_setup, index_add_run, {1000, 256, 1024}},
    {"fill_1m", fill_setup, fill_run, {1 << 20}},
    {"uniform_1m", fill_setup, uniform_run, {1 << 20}},
    {"normal_1m", fill_setup, normal_run, {1 << 20}},
};

BENCH_FAMILY(shape, cases);
