/* Block-quantized values, bit for bit what the `gguf` package makes of them: tests/golden/make_golden_blocks.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernels.h"
#include "base/context.h"
#include "test.h"

enum { DIGITS = 8 * MICA_MAX_BLOCK + 1, MOST_BYTES = 256, MOST_LINES = 64 };

typedef struct conversion {
    mica_dtype dtype;
    bool decode;
    uint8_t block[MOST_BYTES];
    uint32_t values[MICA_MAX_BLOCK]; /* bits */
} conversion;

/* Numbers of `digits` hexadecimal digits each; how many there are. */
static size_t read_digits(const char *text, size_t digits, uint32_t *out, size_t most)
{
    size_t count = strlen(text) / digits;
    for (size_t i = 0; i < count && i < most; i++) {
        char word[9] = "";
        memcpy(word, text + i * digits, digits);
        out[i] = (uint32_t)strtoul(word, NULL, 16);
    }
    return count;
}

static bool read_line(conversion *c, FILE *file)
{
    static char words[2][16], fields[2][DIGITS];
    if (fscanf(file, "%15s %15s %2048s %2048s", words[0], words[1], fields[0], fields[1]) != 4)
        return false;
    c->decode = strcmp(words[0], "decode") == 0;
    for (c->dtype = 0; c->dtype < MICA_DTYPE_COUNT && strcmp(mica_dtype_name(c->dtype), words[1]) != 0;)
        c->dtype++;
    uint32_t bytes[MOST_BYTES];
    size_t count = read_digits(fields[!c->decode], 2, bytes, MOST_BYTES);
    bool right = CHECK_MSG(c->dtype < MICA_DTYPE_COUNT && count == mica_dtype_bytes(c->dtype) &&
                               read_digits(fields[c->decode], 8, c->values, MICA_MAX_BLOCK) ==
                                   mica_dtype_block(c->dtype),
                           "a line of %s is malformed", words[1]);
    for (size_t i = 0; i < count && i < MOST_BYTES; i++)
        c->block[i] = (uint8_t)bytes[i];
    return right;
}

static conversion *read_all(size_t *count)
{
    FILE *file = fopen(MICA_TEST_DATA "/golden/blocks.txt", "r");
    conversion *all = NULL;
    *count = 0;
    if (!CHECK(file != NULL))
        return NULL;
    for (conversion c; read_line(&c, file); (*count)++) {
        all = realloc(all, (*count + 1) * sizeof *all);
        all[*count] = c;
    }
    fclose(file);
    return all;
}

/* All lines of a type and direction through one call, as they would be neighbours in a row. */
static void check_type(const mica_kernels *kernels, const conversion *all, size_t count, mica_dtype dtype,
                       bool decode)
{
    static uint8_t blocks[MOST_LINES * MOST_BYTES + 1], made[MOST_LINES * MOST_BYTES];
    static float values[MOST_LINES * MICA_MAX_BLOCK], got[MOST_LINES * MICA_MAX_BLOCK];
    size_t bytes = mica_dtype_bytes(dtype), block = mica_dtype_block(dtype), n = 0;
    uint8_t *first = blocks + 1; /* blocks lie at any address */
    for (size_t i = 0; i < count; i++) {
        if (all[i].dtype != dtype || all[i].decode != decode || n == MOST_LINES)
            continue;
        memcpy(first + n * bytes, all[i].block, bytes);
        memcpy(values + n * block, all[i].values, block * sizeof(float));
        n++;
    }
    CHECK_MSG(n >= 6, "%s: %zu lines", mica_dtype_name(dtype), n);
    if (decode)
        kernels->convert->run(got, MICA_F32, first, dtype, n * block);
    else
        kernels->convert->run(made, dtype, values, MICA_F32, n * block);
    for (size_t i = 0; i < n; i++) {
        bool same = decode ? memcmp(got + i * block, values + i * block, block * sizeof(float)) == 0
                           : memcmp(made + i * bytes, first + i * bytes, bytes) == 0;
        CHECK_MSG(same, "%s: %s block %zu differs", kernels->isa, mica_dtype_name(dtype), i);
    }
}

TEST(golden_blocks)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    size_t count;
    conversion *all = read_all(&count);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        mica_context *ctx;
        if (mica_context_create(&ctx, &(mica_context_opts){.isa = isas[i]}) != MICA_OK)
            continue;
        for (mica_dtype d = 0; d < MICA_DTYPE_COUNT; d++) {
            bool blocks = mica_dtype_block(d) > 1;
            CHECK((ctx->kernels->block->decode[d] != NULL) == blocks);
            CHECK((ctx->kernels->block->encode[d] != NULL) == blocks);
            if (blocks)
                check_type(ctx->kernels, all, count, d, true);
            if (d >= MICA_Q4_0 && d <= MICA_Q8_0)
                check_type(ctx->kernels, all, count, d, false);
        }
        mica_context_destroy(ctx);
    }
    free(all);
}
