/* Random numbers: the published answers of Philox, the shape of the distributions, and the promise that a
 * position's value depends on nothing but seed, stream and position. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "test.h"

TEST(random_philox_known_answers)
{
    /* Random123's kat_vectors for philox4x32, 10 rounds. */
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t out[4];
        mica_philox(out, known[i].counter, known[i].key);
        CHECK(memcmp(out, known[i].out, sizeof out) == 0);
    }
}

TEST(random_positions_lie_as_documented)
{
    /* Blocks 0 of stream 0 and seed 0 are Philox's first known answer: its words stand 16 positions apart. */
    static const uint32_t words[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    for (uint64_t word = 0; word < 4; word++) {
        mica_random r = {.position = 16 * word};
        CHECK(mica_random_bits(&r) == words[word]);
        CHECK(r.position == 16 * word + 1);
    }
    /* Seed, stream and block number are split into words, low first. Position 64g + 16w + b is word w of
     * block 16g + b. */
    mica_random r = {0x299f31d0a4093822u, 0x0370734413198a2eu, 0};
    const uint64_t group = 0x0123456789abcdu, block = group * 16 + 5;
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0x13198a2e, 0x03707344};
    const uint32_t key[2] = {0xa4093822, 0x299f31d0};
    uint32_t out[4];
    mica_philox(out, counter, key);
    mica_random_skip(&r, 64 * group + 16 * 3 + 5);
    CHECK(mica_random_bits(&r) == out[3]);
}

TEST(random_halves_lie_as_documented)
{
    /* Position 128g + 64h + 16w + b is half h, the lower first, of word w of block 16g + b, of the third domain. */
    const uint64_t group = 0x0123456789abcdu, block = group * 16 + 5;
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32) | 0x40000000u, 0x13198a2e,
                                 0x03707344};
    const uint32_t key[2] = {0xa4093822, 0x299f31d0};
    uint32_t out[4];
    mica_philox(out, counter, key);
    for (unsigned word = 0; word < 4; word++) {
        mica_random r = {0x299f31d0a4093822u, 0x0370734413198a2eu, 128 * group + 16 * word + 5};
        CHECK(mica_random_bits16(&r) == (out[word] & 0xffffu));
        CHECK(r.position == 128 * group + 16 * word + 6);
        mica_random_skip(&r, 63);
        CHECK(mica_random_bits16(&r) == out[word] >> 16);
    }
}

TEST(random_streams_and_splits_differ)
{
    mica_random a = mica_random_stream(1, 0), b = mica_random_stream(1, 1), c = mica_random_stream(2, 0);
    mica_random child = mica_random_split(&a), other = mica_random_split(&a);
    CHECK(a.position == 4);
    CHECK(child.seed != other.seed && child.position == 0);
    int same = 0;
    for (int i = 0; i < 1000; i++) {
        uint32_t bits[] = {mica_random_bits(&a), mica_random_bits(&b), mica_random_bits(&c),
                           mica_random_bits(&child), mica_random_bits(&other)};
        for (int j = 0; j < 5; j++)
            for (int k = 0; k < j; k++)
                same += bits[j] == bits[k];
    }
    CHECK(same == 0);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov's distance of sorted values from a distribution, times sqrt(n): above 1.95 once in a
 * thousand seeds. */
static double ks_distance(float *values, int n, double (*cdf)(double))
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    double worst = 0.0;
    for (int i = 0; i < n; i++) {
        double expected = cdf((double)values[i]);
        double above = (i + 1.0) / n - expected, below = expected - (double)i / n;
        worst = above > worst ? above : worst;
        worst = below > worst ? below : worst;
    }
    return worst * sqrt((double)n);
}

static double uniform_cdf(double x) { return x; }
static double normal_cdf(double x) { return 0.5 * erfc(-x * 0.7071067811865476); }

#define DRAWS 50000

TEST(random_uniform_is_uniform)
{
    static float values[DRAWS];
    mica_random r = mica_random_stream(42, 7);
    double sum = 0.0, squares = 0.0, lag = 0.0;
    for (int i = 0; i < DRAWS; i++) {
        values[i] = mica_random_uniform(&r);
        double x = (double)values[i] - 0.5;
        sum += x, squares += x * x;
        CHECK(values[i] >= 0.0f && values[i] < 1.0f);
    }
    for (int i = 1; i < DRAWS; i++)
        lag += ((double)values[i] - 0.5) * ((double)values[i - 1] - 0.5);
    CHECK_MSG(fabs(sum / DRAWS) < 0.005, "mean is off by %g", sum / DRAWS);
    CHECK_MSG(fabs(squares / DRAWS - 1.0 / 12) < 0.002, "variance is %g", squares / DRAWS);
    CHECK_MSG(fabs(lag / DRAWS) < 0.002, "neighbours correlate: %g", lag / DRAWS);
    CHECK(ks_distance(values, DRAWS, uniform_cdf) < 1.95);
}

TEST(random_normal_is_normal)
{
    static float values[DRAWS];
    mica_random r = mica_random_stream(43, 7);
    double moment[5] = {0};
    for (int i = 0; i < DRAWS; i++) {
        values[i] = mica_random_normal(&r);
        for (int k = 1; k <= 4; k++)
            moment[k] += pow((double)values[i], k) / DRAWS;
    }
    CHECK_MSG(fabs(moment[1]) < 0.02, "mean is %g", moment[1]);
    CHECK_MSG(fabs(moment[2] - 1.0) < 0.03, "variance is %g", moment[2]);
    CHECK_MSG(fabs(moment[3]) < 0.06, "third moment is %g", moment[3]);
    CHECK_MSG(fabs(moment[4] - 3.0) < 0.2, "fourth moment is %g", moment[4]);
    CHECK(ks_distance(values, DRAWS, normal_cdf) < 1.95);
}

TEST(random_normal_shares_no_word_with_uniform)
{
    /* A pair of normals is made of two words; were those also a uniform's, the two would be bound together. */
    double correlation = 0.0;
    for (uint64_t i = 0; i < 20000; i++) {
        mica_random u = {9, 0, i}, z = {9, 0, i ^ 16};
        correlation += ((double)mica_random_uniform(&u) - 0.5) * fabs((double)mica_random_normal(&z));
    }
    CHECK_MSG(fabs(correlation / 20000) < 0.008, "correlation %g", correlation / 20000);
}

TEST(random_below_is_even)
{
    mica_random r = mica_random_stream(44, 0);
    CHECK(mica_random_below(&r, 0) == 0 && r.position == 0);
    CHECK(mica_random_below(&r, 1) == 0);
    for (uint64_t n = 2; n <= 11; n += 3) {
        int count[11] = {0};
        for (int i = 0; i < 20000; i++)
            count[mica_random_below(&r, n)]++;
        double chi = 0.0, expected = 20000.0 / (double)n;
        for (uint64_t k = 0; k < n; k++)
            chi += (count[k] - expected) * (count[k] - expected) / expected;
        CHECK_MSG(chi < (double)n + 4.5 * sqrt(2.0 * (double)n), "n = %d: chi squared %g", (int)n, chi);
    }
    /* A third of 2^32 and of 2^64 more than half: a plain remainder would favour the low ones two to one. */
    const uint64_t wide[] = {((uint64_t)3 << 30), (uint64_t)1 << 32, ((uint64_t)3 << 62), UINT64_MAX};
    for (int k = 0; k < 4; k++) {
        int low = 0;
        for (int i = 0; i < 10000; i++) {
            uint64_t x = mica_random_below(&r, wide[k]);
            CHECK(x < wide[k]);
            low += x < wide[k] / 3;
        }
        CHECK_MSG(abs(low - 3333) < 250, "below %g: %d of 10000 in the low third", (double)wide[k], low);
    }
}

TEST(random_permutations_are_permutations)
{
    mica_random r = mica_random_stream(45, 0);
    int32_t small[257];
    int64_t wide[257];
    mica_random_permutation_i32(&r, small, 0);
    mica_random_permutation_i32(&r, small, -1);
    CHECK(r.position == 0);
    for (int n = 1; n <= 257; n += 32) {
        mica_random again = r;
        mica_random_permutation_i32(&r, small, n);
        mica_random_permutation_i64(&again, wide, n);
        CHECK(again.position == r.position);
        bool seen[257] = {false};
        for (int i = 0; i < n; i++) {
            REQUIRE(small[i] >= 0 && small[i] < n);
            CHECK(!seen[small[i]]);
            CHECK(small[i] == wide[i]);
            seen[small[i]] = true;
        }
    }
}

TEST(random_permutations_are_even)
{
    /* Each of the 24 orders of four, about as often. */
    mica_random r = mica_random_stream(46, 0);
    int count[24] = {0};
    for (int i = 0; i < 24000; i++) {
        int32_t p[4];
        mica_random_permutation_i32(&r, p, 4);
        int last = p[3] - (p[3] > p[0]) - (p[3] > p[1]); /* its rank among the two that p[0] and p[1] leave */
        count[(p[0] * 3 + p[1] - (p[1] > p[0])) * 2 + last]++;
    }
    double chi = 0.0;
    for (int i = 0; i < 24; i++)
        chi += (count[i] - 1000.0) * (count[i] - 1000.0) / 1000.0;
    CHECK_MSG(chi < 49.7, "chi squared %g of 23 degrees", chi); /* once in a thousand seeds */
}
