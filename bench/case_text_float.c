/* Rows of a text model times its weights. size: { rows, units, width, dtype } */
#include "bench/bench.h"

enum { Y, X, W };

static mica_status rows_setup(bench_state *s)
{
    const mica_index *size = s->row->size;
    BENCH_TRY(BENCH_TENSOR(s, size[0], size[1]));
    BENCH_TRY(BENCH_TENSOR(s, size[0], size[2]));
    BENCH_TRY(bench_tensor(s, (mica_dtype)size[3], 2, (mica_index[]){size[1], size[2]}));
    if (size[0] > 1)
        s->flops = 2.0 * (double)size[0] * (double)size[1] * (double)size[2];
    return MICA_OK;
}

static mica_status rows_run(bench_state *s)
{
    return mica_linear_rows(s->ctx, &s->t[Y], &s->t[X], &s->t[W], NULL);
}

static const bench_case cases[] = {
    {"linear_rows_1x576x49152_f32", rows_setup, rows_run, {1, 49152, 576, MICA_F32}},
    {"linear_rows_1x576x49152_f16", rows_setup, rows_run, {1, 49152, 576, MICA_F16}},
    {"linear_rows_1x576x49152_bf16", rows_setup, rows_run, {1, 49152, 576, MICA_BF16}},
    {"linear_rows_4x576x49152_f16", rows_setup, rows_run, {4, 49152, 576, MICA_F16}},
    {"linear_rows_128x576x1536_f32", rows_setup, rows_run, {128, 1536, 576, MICA_F32}},
    {"linear_rows_128x576x1536_f16", rows_setup, rows_run, {128, 1536, 576, MICA_F16}},
    {"linear_rows_128x576x1536_bf16", rows_setup, rows_run, {128, 1536, 576, MICA_BF16}},
    {"linear_rows_128x1536x576_f16", rows_setup, rows_run, {128, 576, 1536, MICA_F16}},
    {"linear_rows_512x576x1536_f16", rows_setup, rows_run, {512, 1536, 576, MICA_F16}},
    {"linear_rows_512x1536x576_f16", rows_setup, rows_run, {512, 576, 1536, MICA_F16}},
};

BENCH_FAMILY(text_float, cases);
