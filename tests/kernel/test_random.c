/* Random kernels of every instruction set against the library's own numbers one at a time. */
#include <math.h>
#include <string.h>

#include "base/context.h"
#include "kernel/kernels.h"
#include "test.h"

static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};

/* The kernels of every set that runs here. */
#define EACH_KERNELS(k)                                                                                      \
    for (size_t isa_ = 0; isa_ < sizeof isas / sizeof isas[0]; isa_++)                                       \
        for (const mica_kernels *chosen_ = mica_kernels_choose(isas[isa_]); chosen_ != NULL; chosen_ = NULL) \
            for (const mica_random_kernels *k = chosen_->random; k != NULL; k = NULL)

#define MOST 300

static const size_t sizes[] = {0, 1, 2, 7, 8, 15, 16, 17, 63, 64, 65, 127, 128, 200, MOST};
/* The last two cross from one word of the block number to the next, of whole words and of halves. */
static const uint64_t starts[] = {
    0, 1, 15, 16, 40, 63, 64, 100, 1000, ((uint64_t)1 << 34) - 70, ((uint64_t)1 << 35) - 140};

typedef void check_fn(const mica_random_kernels *k, size_t n, const mica_random *from);

static void each_case(check_fn *check)
{
    EACH_KERNELS(k)
    {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (size_t j = 0; j < sizeof starts / sizeof starts[0]; j++) {
                mica_random from = {0x123456789abcdef0u + i, 0xfedcba9876543210u + j, starts[j]};
                check(k, sizes[i], &from);
            }
        }
    }
}

static void check_uniform(const mica_random_kernels *k, size_t n, const mica_random *from)
{
    float got[MOST + 1];
    got[n] = -1.0f;
    k->uniform(got, n, from);
    CHECK(got[n] == -1.0f);
    mica_random r = *from;
    for (size_t i = 0; i < n; i++)
        CHECK(got[i] == mica_random_uniform(&r));
}

TEST(kernel_random_uniform) { each_case(check_uniform); }

static void check_normal(const mica_random_kernels *k, size_t n, const mica_random *from)
{
    float got[MOST + 1];
    got[n] = -1.0f;
    k->normal(got, n, from);
    CHECK(got[n] == -1.0f);
    mica_random r = *from;
    for (size_t i = 0; i < n; i++) {
        float want = mica_random_normal(&r);
        CHECK_MSG(fabsf(got[i] - want) <= 1e-6f * fmaxf(1.0f, fabsf(want)), "%g, wanted %g", (double)got[i],
                  (double)want);
    }
}

TEST(kernel_random_normal) { each_case(check_normal); }

static void check_dropout(const mica_random_kernels *k, size_t n, const mica_random *from)
{
    static const int32_t all_kept[] = {65536, 65535, 32768, 58982, 21843, 1, 0};
    for (size_t j = 0; j < sizeof all_kept / sizeof all_kept[0]; j++) {
        int32_t kept = all_kept[j];
        float x[MOST], y[MOST + 1], in_place[MOST], back[MOST + 1];
        uint8_t mask[MOST + 1];
        mica_random r = {1, 2, 3};
        for (size_t i = 0; i < n; i++)
            in_place[i] = x[i] = mica_random_normal(&r);
        y[n] = back[n] = -1.0f;
        mask[n] = 99;
        k->dropout(y, mask, x, n, kept, from);
        k->dropout(in_place, NULL, in_place, n, kept, from);
        k->dropout_backward(back, x, mask, n, kept);
        CHECK(y[n] == -1.0f && mask[n] == 99 && back[n] == -1.0f);
        r = *from;
        for (size_t i = 0; i < n; i++) {
            bool keep = (int32_t)mica_random_bits16(&r) < kept;
            CHECK(mask[i] == keep);
            CHECK(y[i] == (keep ? x[i] * (65536.0f / (float)kept) : 0.0f));
            CHECK(in_place[i] == y[i] && back[i] == y[i]);
        }
    }
}

TEST(kernel_random_dropout) { each_case(check_dropout); }

TEST(kernel_random_fills_may_be_cut_anywhere)
{
    EACH_KERNELS(k)
    {
        static float whole[2][5000], parts[2][5000];
        mica_random from = {5, 6, 11};
        k->uniform(whole[0], 5000, &from);
        k->normal(whole[1], 5000, &from);
        test_random t = test_seed(1);
        for (size_t at = 0, n; at < 5000; at += n) {
            n = (size_t)test_int(&t, 1, 400);
            n = n < 5000 - at ? n : 5000 - at;
            mica_random here = from;
            mica_random_skip(&here, at);
            k->uniform(parts[0] + at, n, &here);
            k->normal(parts[1] + at, n, &here);
        }
        CHECK(memcmp(whole, parts, sizeof whole) == 0);
    }
}
