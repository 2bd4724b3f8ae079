/* Copies from and into block-quantized tensors, in every layout, against block after block by the kernels. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernels.h"
#include "base/context.h"
#include "test.h"

enum { MOST = 1 << 17 };

/* Room for any of these tensors, with what must not be written around it. */
static uint8_t blocks[MOST * 2], others[MOST * 2];
static float values[MOST], wanted[MOST], room[4 * MOST];

/* Random bytes; their scales are made finite by clearing bits of what might be exponents. */
static void fill_blocks(test_random *r, uint8_t *out, mica_dtype dtype, size_t count)
{
    for (size_t i = 0; i < count * mica_dtype_bytes(dtype); i++)
        out[i] = (uint8_t)test_next(r) & 0xb7;
}

static mica_tensor tensor(mica_context *ctx, void *data, mica_dtype dtype, int rank, const mica_index *dims)
{
    mica_tensor t = {0};
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, data, dtype, rank, dims));
    return t;
}

/* A shape of up to four axes; about `large` elements, or few. */
static int random_shape(test_random *r, mica_dtype dtype, bool large, mica_index *dims)
{
    int rank = test_int(r, 1, 4), block = (int)mica_dtype_block(dtype);
    for (int k = 0; k < rank - 1; k++)
        dims[k] = test_int(r, test_chance(r, 4) ? 0 : 1, 3);
    dims[rank - 1] = block * (large ? test_int(r, 1, 2000 / block) : test_int(r, 0, 3));
    if (large && rank > 1)
        dims[0] = test_int(r, 1, 3);
    return rank;
}

/* Values of t, row-major, by the kernels and one block after another. */
static void decode(mica_context *ctx, float *out, const mica_tensor *t)
{
    size_t block = mica_dtype_block(t->dtype), at = 0;
    for (mica_iter it = mica_iter_begin(t, 0, NULL); it.valid; mica_iter_next(&it), at++)
        if (it.index[t->rank - 1] % (mica_index)block == 0)
            ctx->kernels->block->decode[t->dtype](out + at, it.element, 1);
}

/* Rows in another order, backwards, with gaps: what a view of blocks may do. */
static void shuffle_rows(mica_context *ctx, mica_tensor *t, test_random *r)
{
    for (int k = 0; k < t->rank - 1; k++) {
        if (test_chance(r, 30))
            CHECK_OK(ctx, mica_view_flip(ctx, t, t, k));
        if (test_chance(r, 30))
            CHECK_OK(ctx, mica_view_slice(ctx, t, t, k, test_int(r, 0, 1), MICA_END, test_int(r, 1, 2)));
        if (test_chance(r, 30))
            CHECK_OK(ctx, mica_view_transpose(ctx, t, t, k, test_int(r, 0, t->rank - 2)));
    }
    if (test_chance(r, 30))
        CHECK_OK(ctx, mica_view_slice(ctx, t, t, -1, (mica_index)mica_dtype_block(t->dtype), MICA_END, 1));
}

/* A plain tensor of t's shape within `room`: axes in any order, with a gap or a step. */
static mica_tensor plain_like(const mica_tensor *t, mica_dtype dtype, test_random *r)
{
    mica_tensor out = mica_tensor_like(t, room);
    out.dtype = dtype;
    mica_index stride = test_chance(r, 30) ? 2 : 1;
    bool turned = test_chance(r, 40);
    for (int i = 0; i < t->rank; i++) {
        int k = turned ? i : t->rank - 1 - i;
        out.stride[k] = stride;
        stride *= out.dim[k];
        stride += test_chance(r, 20);
    }
    return out;
}

static bool holds(mica_context *ctx, const mica_tensor *t, mica_dtype dtype, const float *want)
{
    size_t at = 0;
    bool same = true;
    for (mica_iter it = mica_iter_begin(t, 0, NULL); it.valid && same; mica_iter_next(&it), at++) {
        char expected[8];
        ctx->kernels->convert->run(expected, dtype, &want[at], MICA_F32, 1);
        same = memcmp(expected, it.element, mica_dtype_bytes(dtype)) == 0;
    }
    return same;
}

TEST(copy_converts_from_every_block_type)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(21);
    for (mica_dtype d = MICA_Q4_0; d < MICA_DTYPE_COUNT; d++) {
        for (int n = 0; n < test_effort(120); n++) {
            mica_index dims[MICA_MAX_RANK];
            int rank = random_shape(&r, d, false, dims);
            mica_tensor src = tensor(ctx, blocks, d, rank, dims);
            fill_blocks(&r, blocks, d, mica_tensor_count(&src) / mica_dtype_block(d));
            shuffle_rows(ctx, &src, &r);
            decode(ctx, wanted, &src);
            mica_dtype to = test_chance(&r, 40) ? MICA_F32 : (mica_dtype)test_int(&r, 0, MICA_U8);
            mica_tensor dst = plain_like(&src, to, &r);
            test_heap heap = test_heap_now();
            CHECK_OK(ctx, mica_copy(ctx, &dst, &src));
            CHECK(test_heap_now().calls == heap.calls);
            if (!CHECK_MSG(holds(ctx, &dst, to, wanted), "%s to %s, case %d", mica_dtype_name(d),
                           mica_dtype_name(to), n))
                return;
        }
    }
}

TEST(copy_repeats_rows_of_blocks)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(22);
    mica_tensor row = tensor(ctx, blocks, MICA_Q4_K, 1, (mica_index[]){512});
    fill_blocks(&r, blocks, MICA_Q4_K, 2);
    decode(ctx, wanted, &row);
    mica_tensor dst = mica_3d(room, 2, 3, 512);
    CHECK_OK(ctx, mica_copy(ctx, &dst, &row));
    for (int i = 0; i < 6; i++)
        CHECK(memcmp(room + (ptrdiff_t)i * 512, wanted, 512 * sizeof(float)) == 0);
    /* And as blocks, into rows with gaps; a copy of a tensor onto itself changes nothing. */
    memset(others, 0x5a, sizeof others);
    mica_tensor same = tensor(ctx, others, MICA_Q4_K, 2, (mica_index[]){3, 768});
    CHECK_OK(ctx, mica_view_slice(ctx, &same, &same, 1, 256, MICA_END, 1));
    CHECK_OK(ctx, mica_copy(ctx, &same, &row));
    CHECK_OK(ctx, mica_copy(ctx, &same, &same));
    for (int i = 0; i < 3; i++)
        CHECK(memcmp(others + i * 432 + 144, blocks, 288) == 0 && others[i * 432] == 0x5a &&
              others[i * 432 + 143] == 0x5a);
    CHECK(others[3 * 432] == 0x5a);
}

TEST(copy_quantizes_any_layout)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(23);
    for (mica_dtype d = MICA_Q4_0; d < MICA_DTYPE_COUNT; d++) {
        size_t bytes = mica_dtype_bytes(d);
        for (int n = 0; n < test_effort(d <= MICA_Q8_0 ? 120 : 30); n++) {
            mica_index dims[MICA_MAX_RANK];
            int rank = random_shape(&r, d, false, dims);
            mica_tensor dst = tensor(ctx, blocks, d, rank, dims);
            shuffle_rows(ctx, &dst, &r);
            mica_dtype from = test_chance(&r, 50) ? MICA_F32 : (mica_dtype)test_int(&r, 0, MICA_U8);
            mica_tensor src = plain_like(&dst, from, &r);
            size_t count = 0;
            for (mica_iter it = mica_iter_begin(&src, 0, NULL); it.valid; mica_iter_next(&it), count++) {
                double x = test_normal(&r) * (from == MICA_F32 ? 1.0 : 40.0);
                ctx->kernels->convert->run(it.element, from, &x, MICA_F64, 1);
                ctx->kernels->convert->run(&values[count], MICA_F32, it.element, from, 1);
            }
            memset(blocks, 0x5a, 65536);
            test_heap heap = test_heap_now();
            CHECK_OK(ctx, mica_copy(ctx, &dst, &src));
            CHECK(test_heap_now().calls == heap.calls);
            size_t at = 0, written = 0, touched = 0;
            bool same = true;
            for (mica_iter it = mica_iter_begin(&dst, 0, NULL); it.valid; mica_iter_next(&it), at++) {
                uint8_t want[256];
                if (it.index[dst.rank - 1] % (mica_index)mica_dtype_block(d) != 0)
                    continue;
                ctx->kernels->block->encode[d](want, values + at, 1);
                same = same && memcmp(want, it.element, bytes) == 0;
                for (size_t k = 0; k < bytes; k++)
                    written += want[k] != 0x5a;
            }
            for (size_t k = 0; k < 65536; k++)
                touched += blocks[k] != 0x5a;
            if (!CHECK_MSG(same && written == touched, "%s from %s, case %d", mica_dtype_name(d),
                           mica_dtype_name(from), n))
                return;
        }
    }
    /* One value for all, and from blocks of another kind. */
    float one[] = {1.5f, -2.0f};
    mica_tensor column = mica_2d(one, 2, 1), rows = tensor(ctx, blocks, MICA_Q8_0, 2, (mica_index[]){2, 64});
    CHECK_OK(ctx, mica_copy(ctx, &rows, &column));
    mica_tensor nibbles = tensor(ctx, others, MICA_Q4_1, 2, (mica_index[]){2, 64});
    CHECK_OK(ctx, mica_copy(ctx, &nibbles, &rows));
    mica_tensor back = mica_2d(room, 2, 64);
    CHECK_OK(ctx, mica_copy(ctx, &back, &nibbles));
    for (int i = 0; i < 128; i++)
        CHECK(fabsf(room[i] - one[i / 64]) < 1e-3f);
}

TEST(copy_spoils_blocks_with_nan_and_infinity)
{
    mica_context *ctx = test_context(1);
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (mica_dtype d = MICA_Q4_0; d < MICA_DTYPE_COUNT; d++) {
        int block = (int)mica_dtype_block(d), count = 3 * block;
        for (int n = 0; n < 4; n++) {
            for (int i = 0; i < count; i++)
                values[i] = (float)(i % 7) - 2.0f;
            values[block + 9] = bad[n];
            mica_tensor src = mica_1d(values, count), dst = tensor(ctx, blocks, d, 1, src.dim),
                        back = mica_1d(room, count);
            CHECK_OK(ctx, mica_copy(ctx, &dst, &src));
            CHECK_OK(ctx, mica_copy(ctx, &back, &dst));
            for (int i = 0; i < count; i++) {
                bool spoilt = i >= block && i < 2 * block;
                CHECK_MSG(spoilt ? !isfinite(room[i]) : fabsf(room[i] - values[i]) < 1.1f, "%s: %g became %g",
                          mica_dtype_name(d), (double)values[i], (double)room[i]);
            }
        }
    }
}

TEST(copy_of_blocks_same_bits_for_any_number_of_threads)
{
    mica_context *ctx[] = {test_context(1), test_context(2), test_context(3)};
    test_random r = test_seed(24);
    static float first[MOST];
    static uint8_t made[MOST * 2];
    for (mica_dtype d = MICA_Q4_0; d < MICA_DTYPE_COUNT; d++) {
        for (int n = 0; n < 4; n++) {
            mica_index dims[MICA_MAX_RANK];
            int rank = n == 0 ? 2 : random_shape(&r, d, true, dims);
            if (n == 0) /* one row of many pieces */
                dims[0] = 1, dims[1] = 100096;
            mica_tensor src = tensor(ctx[0], blocks, d, rank, dims);
            fill_blocks(&r, blocks, d, mica_tensor_count(&src) / mica_dtype_block(d));
            mica_tensor dst = mica_tensor_like(&src, room);
            dst.dtype = MICA_F32;
            for (int k = 0; k < 3; k++) {
                mica_tensor out = mica_tensor_like(&src, others);
                test_heap heap = test_heap_now();
                CHECK_OK(ctx[k], mica_copy(ctx[k], &dst, &src));
                CHECK_OK(ctx[k], mica_copy(ctx[k], &out, &dst));
                CHECK(test_heap_now().calls == heap.calls);
                if (k == 0) {
                    memcpy(first, room, mica_tensor_bytes(&dst));
                    memcpy(made, others, mica_tensor_bytes(&out));
                }
                CHECK_MSG(memcmp(first, room, mica_tensor_bytes(&dst)) == 0 &&
                              memcmp(made, others, mica_tensor_bytes(&out)) == 0,
                          "%s with %d threads", mica_dtype_name(d), k + 1);
            }
        }
    }
}

TEST(copy_of_blocks_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    memset(blocks, 0x5a, 4096);
    mica_tensor src = mica_2d(values, 2, 256),
                dst = tensor(ctx, blocks, MICA_Q8_0, 2, (mica_index[]){2, 128});
    CHECK_ERROR(ctx, mica_copy(ctx, &dst, &src), MICA_ERR_SHAPE,
                "shape error: copy: src is [2, 256], which does not broadcast to dst [2, 128]");
    /* The bytes of eight blocks and of the first values of another tensor. */
    mica_tensor over = mica_2d((float *)(void *)(blocks + 256), 2, 128);
    CHECK_ERROR(ctx, mica_copy(ctx, &over, &dst), MICA_ERR_ALIAS,
                "alias error: copy: dst [2, 128] overlaps src [2, 128] without being identical to it");
    over.data = blocks + 272;
    CHECK_OK(ctx, mica_copy(ctx, &over, &dst));
    for (size_t i = 0; i < 272; i++)
        CHECK(blocks[i] == 0x5a);
    mica_tensor repeated;
    dst = tensor(ctx, blocks, MICA_Q8_0, 2, (mica_index[]){1, 256});
    CHECK_OK(ctx, mica_view_broadcast(ctx, &repeated, &dst, 2, src.dim));
    CHECK(mica_copy(ctx, &repeated, &src) == MICA_ERR_ALIAS);
}

/* Rows of a table in blocks, as an embedding takes them: those that a copy of each row gives. */
TEST(take_reads_every_block_type)
{
    mica_context *ctx = test_context(2);
    test_random r = test_seed(24);
    for (mica_dtype d = MICA_Q4_0; d < MICA_DTYPE_COUNT; d++) {
        mica_index width = 2 * (mica_index)mica_dtype_block(d), rows = 7;
        fill_blocks(&r, blocks, d, (size_t)(2 * rows));
        int32_t number[6] = {6, 0, 3, 3, 5, 1};
        mica_tensor table = tensor(ctx, blocks, d, 2, (mica_index[]){rows, width});
        mica_tensor index = tensor(ctx, number, MICA_I32, 2, (mica_index[]){2, 3});
        mica_tensor dst = tensor(ctx, values, MICA_F32, 3, (mica_index[]){2, 3, width}),
                    all = mica_2d(wanted, rows, width);
        CHECK_OK(ctx, mica_copy(ctx, &all, &table));
        CHECK_OK(ctx, mica_take(ctx, &dst, &table, &index, 0));
        for (int i = 0; i < 6; i++)
            CHECK_MSG(
                memcmp(values + i * width, wanted + number[i] * width, (size_t)width * sizeof *values) == 0,
                "%s: row %d", mica_dtype_name(d), i);
        CHECK(mica_take(ctx, &dst, &table, &index, 1) == MICA_ERR_ARGUMENT);
        number[4] = 7;
        CHECK(mica_take(ctx, &dst, &table, &index, 0) != MICA_OK);
    }
}
