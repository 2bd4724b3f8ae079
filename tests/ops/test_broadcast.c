/* Operands that are met again and again: numbers, rows, columns and planes of broadcast sources, in every layout,
 * against plain loops, to the bit. */
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { RANK = 3, SOURCES = 3, MOST = 20000 };

typedef struct operands {
    mica_tensor t[SOURCES + 1]; /* dst first */
    void *memory[SOURCES + 1];
} operands;

/* A tensor of these dims, each the whole or (a source's) 1, which now and then is part of a larger one. */
static mica_tensor draw_tensor(test_random *r, mica_dtype dtype, const mica_index *dims, bool source,
                               void **memory)
{
    mica_index own[RANK], stride[RANK], step = 1;
    mica_tensor t = {.dtype = dtype, .rank = RANK};
    for (int k = RANK - 1; k >= 0; k--) {
        own[k] = source && test_chance(r, 45) ? 1 : dims[k];
        stride[k] = step * (test_chance(r, 10) ? 2 : 1);
        step = stride[k] * own[k] + (test_chance(r, 10) ? 3 : 0);
        t.dim[k] = own[k];
        t.stride[k] = stride[k];
    }
    size_t bytes = (size_t)step * mica_dtype_bytes(dtype);
    unsigned char *p = *memory = malloc(bytes);
    for (mica_index i = 0; i < step; i++)
        if (dtype == MICA_F32)
            ((float *)(void *)p)[i] = (float)test_normal(r);
        else if (dtype == MICA_I64)
            ((int64_t *)(void *)p)[i] = test_int(r, -3, 3);
        else if (dtype == MICA_I32)
            ((int32_t *)(void *)p)[i] = test_int(r, -3, 3);
        else
            p[i] = (unsigned char)test_int(r, 0, 1);
    t.data = p;
    return t;
}

static const void *at(const mica_tensor *t, const mica_index *index)
{
    mica_index offset = 0;
    for (int k = 0; k < RANK; k++)
        offset += t->dim[k] == 1 ? 0 : index[k] * t->stride[k];
    return (const char *)t->data + offset * (mica_index)mica_dtype_bytes(t->dtype);
}

static float f32(const operands *o, int k, const mica_index *i) { return *(const float *)at(&o->t[k], i); }
static int64_t integer(const operands *o, int k, const mica_index *i)
{
    const void *p = at(&o->t[k], i);
    return o->t[k].dtype == MICA_I64   ? *(const int64_t *)p
           : o->t[k].dtype == MICA_I32 ? *(const int32_t *)p
                                       : *(const unsigned char *)p;
}

enum { MUL, WHERE, LESS, EQUAL_INTEGERS, SUB_INTEGERS, KINDS };

static mica_status call(mica_context *ctx, const operands *o, int kind)
{
    const mica_tensor *t = o->t;
    return kind == MUL              ? mica_mul(ctx, &t[0], &t[1], &t[2])
           : kind == WHERE          ? mica_where(ctx, &t[0], &t[1], &t[2], &t[3])
           : kind == LESS           ? mica_lt(ctx, &t[0], &t[1], &t[2])
           : kind == EQUAL_INTEGERS ? mica_eq(ctx, &t[0], &t[1], &t[2])
                                    : mica_sub(ctx, &t[0], &t[1], &t[2]);
}

static bool right(const operands *o, int kind, const mica_index *i)
{
    if (kind == MUL)
        return f32(o, 0, i) == f32(o, 1, i) * f32(o, 2, i);
    if (kind == WHERE)
        return f32(o, 0, i) == f32(o, integer(o, 1, i) != 0 ? 2 : 3, i);
    if (kind == LESS)
        return integer(o, 0, i) == (f32(o, 1, i) < f32(o, 2, i));
    int64_t a = integer(o, 1, i), b = integer(o, 2, i);
    return integer(o, 0, i) == (kind == EQUAL_INTEGERS ? a == b : a - b);
}

static void check(mica_context *ctx, test_random *r, int kind)
{
    mica_index rows = test_int(r, 1, 300),
               row = test_chance(r, 60) ? test_int(r, 1, 80) : test_int(r, 81, 1300);
    mica_index dims[RANK] = {test_int(r, 1, 3), rows * row > MOST ? MOST / row : rows, row};
    mica_dtype whole = test_chance(r, 50) ? MICA_I64 : MICA_I32;
    mica_dtype from = kind == MUL || kind == LESS || kind == WHERE ? MICA_F32 : whole;
    mica_dtype to = kind == LESS || kind == EQUAL_INTEGERS ? MICA_BOOL : from;
    operands o;
    int count = kind == WHERE ? 4 : 3;
    for (int k = 0; k < count; k++)
        o.t[k] = draw_tensor(r,
                             k == 0                    ? to
                             : kind == WHERE && k == 1 ? MICA_BOOL
                                                       : from,
                             dims, k > 0, &o.memory[k]);
    CHECK_OK(ctx, call(ctx, &o, kind));
    bool good = true;
    for (mica_index i = 0; i < dims[0]; i++)
        for (mica_index j = 0; j < dims[1]; j++)
            for (mica_index k = 0; k < dims[2]; k++)
                good = good && right(&o, kind, (mica_index[]){i, j, k});
    CHECK_MSG(good, "kind %d of %td x %td x %td, %s, %d threads", kind, dims[0], dims[1], dims[2],
              mica_context_isa(ctx), mica_context_threads(ctx));
    for (int k = 0; k < count; k++)
        free(o.memory[k]);
}

TEST(broadcast_sources_of_every_layout)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        for (int threads = 1; threads <= 3; threads += 2) {
            mica_context *ctx;
            mica_context_opts opts = {.threads = threads, .isa = isas[i]};
            if (mica_context_create(&ctx, &opts) != MICA_OK)
                continue;
            test_random r = test_seed(i * 10 + (uint64_t)threads);
            for (int k = 0; k < test_effort(60); k++)
                check(ctx, &r, k % KINDS);
            mica_context_destroy(ctx);
        }
}
