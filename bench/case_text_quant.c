/* Rows of a text model times its block-quantized weights: one row is held against reading the weights, many against
 * products of bytes. size: { rows, units, width, dtype } */
#include "bench/bench.h"

enum { Y, X, W };

static mica_status rows_setup(bench_state *s)
{
    const mica_index *size = s->row->size;
    BENCH_TRY(BENCH_TENSOR(s, size[0], size[1]));
    BENCH_TRY(BENCH_TENSOR(s, size[0], size[2]));
    s->bytes = 0.0;
    BENCH_TRY(bench_tensor(s, (mica_dtype)size[3], 2, (mica_index[]){size[1], size[2]}));
    if (size[0] > 1)
        s->flops = 2.0 * (double)size[0] * (double)size[1] * (double)size[2];
    s->quantized = true;
    return MICA_OK;
}

static mica_status rows_run(bench_state *s)
{
    return mica_linear_rows(s->ctx, &s->t[Y], &s->t[X], &s->t[W], NULL);
}

#define ROW(rows, width, units, dtype, name)                                       \
    {                                                                              \
        "linear_rows_" #rows "x" #width "x" #units "_" name, rows_setup, rows_run, \
        {                                                                          \
            rows, units, width, dtype                                              \
        }                                                                          \
    }
#define ROWS(width, dtype, name)                                                                          \
    ROW(1, width, 576, dtype, name), ROW(1, width, 1536, dtype, name), ROW(1, width, 49152, dtype, name), \
        ROW(512, width, 576, dtype, name), ROW(512, width, 1536, dtype, name)

static const bench_case cases[] = {
    ROWS(576, MICA_Q4_0, "q4_0"), ROWS(576, MICA_Q4_1, "q4_1"), ROWS(576, MICA_Q5_0, "q5_0"),
    ROWS(576, MICA_Q5_1, "q5_1"), ROWS(576, MICA_Q8_0, "q8_0"), ROWS(576, MICA_IQ4_NL, "iq4_nl"),
    ROWS(768, MICA_Q2_K, "q2_k"), ROWS(768, MICA_Q3_K, "q3_k"), ROWS(768, MICA_Q4_K, "q4_k"),
    ROWS(768, MICA_Q5_K, "q5_k"), ROWS(768, MICA_Q6_K, "q6_k"), ROWS(768, MICA_IQ4_XS, "iq4_xs"),
};

BENCH_FAMILY(text_quant, cases);
