/* Element-wise rows. size: { elements, calls in one operation } */
#include "bench/bench.h"

static mica_status setup(bench_state *s, int tensors)
{
    s->repeats = (double)s->row->size[1];
    for (int i = 0; i < tensors; i++)
        BENCH_TRY(BENCH_TENSOR(s, s->row->size[0]));
    return MICA_OK;
}

static mica_status unary_setup(bench_state *s) { return setup(s, 2); }
static mica_status binary_setup(bench_state *s) { return setup(s, 3); }

static mica_status add_run(bench_state *s)
{
    for (mica_index i = 0; i < s->row->size[1]; i++)
        BENCH_TRY(mica_add(s->ctx, &s->t[0], &s->t[1], &s->t[2]));
    return MICA_OK;
}

static mica_status copy_run(bench_state *s) { return mica_copy(s->ctx, &s->t[0], &s->t[1]); }
static mica_status scale_run(bench_state *s) { return mica_scale(s->ctx, &s->t[0], &s->t[1], 1.5f); }
static mica_status relu_run(bench_state *s) { return mica_relu(s->ctx, &s->t[0], &s->t[1]); }
static mica_status exp_run(bench_state *s) { return mica_exp(s->ctx, &s->t[0], &s->t[1]); }

/* ---- Sources that broadcast. size: { rows, columns } ---- */

static mica_status broadcast_setup(bench_state *s, mica_dtype to, mica_dtype from, const mica_index a[2],
                                   const mica_index b[2])
{
    BENCH_TRY(bench_tensor(s, to, 2, s->row->size));
    BENCH_TRY(bench_tensor(s, from, 2, a));
    return bench_tensor(s, from, 2, b);
}

#define F32_SETUP(name, rows, columns)                                                      \
    static mica_status name##_setup(bench_state *s)                                         \
    {                                                                                       \
        const mica_index *size = s->row->size;                                              \
        return broadcast_setup(s, MICA_F32, MICA_F32, size, (mica_index[]){rows, columns}); \
    }
F32_SETUP(number, 1, 1)
F32_SETUP(row, 1, size[1])
F32_SETUP(column, size[0], 1)

static mica_status one_hot_setup(bench_state *s)
{
    const mica_index *size = s->row->size;
    return broadcast_setup(s, MICA_BOOL, MICA_I32, (mica_index[]){size[0], 1}, (mica_index[]){1, size[1]});
}

static mica_status mul_run(bench_state *s) { return mica_mul(s->ctx, &s->t[0], &s->t[1], &s->t[2]); }
static mica_status eq_run(bench_state *s) { return mica_eq(s->ctx, &s->t[0], &s->t[1], &s->t[2]); }

static const bench_case cases[] = {
    {"add_1m", binary_setup, add_run, {1 << 20, 1}},
    {"copy_1m", unary_setup, copy_run, {1 << 20, 1}},
    {"scale_1m", unary_setup, scale_run, {1 << 20, 1}},
    {"relu_1m", unary_setup, relu_run, {1 << 20, 1}},
    {"exp_1m", unary_setup, exp_run, {1 << 20, 1}},
    {"add_into_dst_1000x512", binary_setup, add_run, {512, 1000}},
    {"mul_number_512x508", number_setup, mul_run, {512, 508}},
    {"mul_row_2048x64", row_setup, mul_run, {2048, 64}},
    {"mul_column_512x508", column_setup, mul_run, {512, 508}},
    {"eq_one_hot_2048x257", one_hot_setup, eq_run, {2048, 257}},
};

BENCH_FAMILY(elementwise, cases);
