/* Quantizers that search: the squared error is no larger than llama.cpp's (make_golden_block_errors.py), the bits are
 * the same for every instruction set, and nothing of any size upsets them. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernel/kernels.h"
#include "base/context.h"
#include "test.h"

enum { COUNT = 64 * 256, MOST_BYTES = 2 * COUNT };

static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};

static float values[COUNT], back[COUNT];
static uint8_t blocks[MOST_BYTES], other[MOST_BYTES];

/* As rows_of in the script. */
static float value_of(uint32_t number, bool heavy)
{
    uint32_t x = number;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    x ^= x >> 16;
    int total = (int)((x & 255) + (x >> 8 & 255) + (x >> 16 & 255) + (x >> 24));
    float value = (float)(total - 510) / 512.0f;
    return heavy ? value * value * value : value;
}

static void fill(bool heavy)
{
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = value_of(i, heavy);
}

static double error_of(const mica_kernels *kernels, mica_dtype dtype)
{
    kernels->convert->run(blocks, dtype, values, MICA_F32, COUNT);
    kernels->convert->run(back, MICA_F32, blocks, dtype, COUNT);
    double error = 0.0;
    for (int i = 0; i < COUNT; i++)
        error += ((double)back[i] - (double)values[i]) * ((double)back[i] - (double)values[i]);
    return error;
}

TEST(golden_block_errors)
{
    FILE *file = fopen(MICA_TEST_DATA "/golden/block_errors.txt", "r");
    if (!CHECK(file != NULL))
        return;
    mica_context *ctx = test_context(1);
    char name[16], kind[16];
    double theirs;
    int lines = 0;
    for (; fscanf(file, "%15s %15s %lf", name, kind, &theirs) == 3; lines++) {
        mica_dtype dtype = 0;
        while (dtype < MICA_DTYPE_COUNT && strcmp(mica_dtype_name(dtype), name) != 0)
            dtype++;
        if (!CHECK_MSG(dtype < MICA_DTYPE_COUNT, "%s", name))
            continue;
        fill(strcmp(kind, "heavy") == 0);
        double ours = error_of(ctx->kernels, dtype);
        CHECK_MSG(ours <= theirs && ours > 0.25 * theirs, "%s %s: %g, llama.cpp %g", name, kind, ours,
                  theirs);
    }
    CHECK(lines == 14);
    fclose(file);
}

TEST(blocks_that_are_searched_for_are_the_same_on_every_instruction_set)
{
    mica_context *first = NULL, *next;
    CHECK(mica_context_create(&first, &(mica_context_opts){.isa = "scalar"}) == MICA_OK);
    for (size_t i = 1; i < sizeof isas / sizeof *isas; i++) {
        if (mica_context_create(&next, &(mica_context_opts){.isa = isas[i]}) != MICA_OK)
            continue;
        for (mica_dtype d = MICA_Q2_K; d < MICA_DTYPE_COUNT; d++) {
            size_t size = COUNT / mica_dtype_block(d) * mica_dtype_bytes(d);
            fill(d % 2 == 0);
            first->kernels->convert->run(blocks, d, values, MICA_F32, COUNT);
            next->kernels->convert->run(other, d, values, MICA_F32, COUNT);
            CHECK_MSG(memcmp(blocks, other, size) == 0, "%s: %s differs", isas[i], mica_dtype_name(d));
            /* A block does not depend on its neighbours. */
            for (size_t k = 0; k < COUNT / 256; k += 7) {
                size_t bytes = 256 / mica_dtype_block(d) * mica_dtype_bytes(d);
                next->kernels->convert->run(other, d, values + k * 256, MICA_F32, 256);
                CHECK(memcmp(blocks + k * bytes, other, bytes) == 0);
            }
        }
        mica_context_destroy(next);
    }
    mica_context_destroy(first);
}

/* Rows of one size after another, up to what no scale can hold; within f16's reach the error stays small. */
TEST(blocks_of_any_size_of_values)
{
    mica_context *ctx = test_context(1);
    for (mica_dtype d = MICA_Q2_K; d < MICA_DTYPE_COUNT; d++) {
        for (int exponent = -149; exponent <= 126; exponent += exponent < -30 || exponent > 20 ? 7 : 1) {
            fill(false);
            double total = 0.0;
            for (int i = 0; i < COUNT; i++) {
                values[i] = i < COUNT / 2 ? ldexpf(values[i], exponent) : exponent == 126 ? -FLT_MAX : 0.0f;
                total += (double)values[i] * (double)values[i];
            }
            double error = error_of(ctx->kernels, d);
            if (exponent >= -6 && exponent <= 15)
                CHECK_MSG(error < 0.1 * total, "%s, 2^%d: %g of %g", mica_dtype_name(d), exponent, error,
                          total);
            else if (exponent < -6)
                CHECK_MSG(error <= 1.0001 * total, "%s, 2^%d: %g of %g", mica_dtype_name(d), exponent, error,
                          total);
            bool zeros = true;
            for (int i = COUNT / 2; i < COUNT; i++)
                zeros = zeros && (exponent < 126 ? back[i] == 0.0f : !isfinite(back[i]));
            CHECK_MSG(zeros, "%s, 2^%d", mica_dtype_name(d), exponent);
        }
    }
}
