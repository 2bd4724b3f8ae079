/* Element-wise kernels on every instruction set that runs here, against the scalar ones: all sizes around a
 * vector's, unaligned pointers, nothing written outside, in place, and the same bits wherever a run is cut. */
#include <math.h>
#include <string.h>

#include "base/context.h"
#include "kernel/kernels.h"
#include "test.h"

typedef struct entry {
    const char *name;
    bool activation;
    size_t offset; /* of the kernel in its table */
    int sources;
} entry;

#define MAP1_ENTRY(name)                 {#name, false, offsetof(mica_map_kernels, name), 1},
#define MAP2_ENTRY(name)                 {#name, false, offsetof(mica_map_kernels, name), 2},
#define MAP_ENTRY(name, sources, params) {#name, false, offsetof(mica_map_kernels, name), sources},
#define ACTIVATION_ENTRY(name, params, reads)                  \
    {#name, true, offsetof(mica_activation_kernels, name), 1}, \
        {#name "_backward", true, offsetof(mica_activation_kernels, name##_backward), 2},

static const entry entries[] = {MICA_MAP_UNARY_TYPED(MAP1_ENTRY) MICA_MAP_UNARY(MAP1_ENTRY)
                                    MICA_MAP_BINARY(MAP2_ENTRY) MICA_MAP_SCALAR(MAP1_ENTRY)
                                        MICA_MAP_COMPARE(MAP2_ENTRY) MICA_MAP_CLASSIFY(MAP1_ENTRY)
                                            MICA_MAP_OTHER(MAP_ENTRY) MICA_ACTIVATIONS(ACTIVATION_ENTRY)};

static mica_map_fn *kernel_of(const mica_kernels *kernels, const entry *e)
{
    const char *table = e->activation ? (const char *)kernels->activation : (const char *)kernels->map;
    return *(mica_map_fn *const *)(const void *)(table + e->offset);
}

static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 31, 32, 33, 63, 65, 257};
static const float params[2] = {0.25f, 1.75f};

enum { LONGEST = 257, GUARD = 16, ROOM = LONGEST + 2 * GUARD + 4 };
static const float guard = -12345.0f;

static void fill(float *x, uint64_t seed)
{
    static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1.0f, -3.0f, 6.0f, 1e-40f, 1e30f};
    test_random r = test_seed(seed);
    for (int i = 0; i < ROOM; i++)
        x[i] = test_chance(&r, 20) ? special[test_int(&r, 0, 9)] : (float)(3.0 * test_normal(&r));
}

/* Within a few units of the last place, of `least` at least. */
static bool near(float got, float want, float least)
{
    if (isnan(want) || isinf(want))
        return (isnan(want) && isnan(got)) || got == want;
    return fabsf(got - want) <= 2e-6f * fmaxf(fabsf(want), least);
}

static bool same_bits(float a, float b) { return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b)); }

static void check_size(const entry *e, mica_map_fn *fn, mica_map_fn *scalar, size_t n, size_t shift,
                       const char *isa)
{
    float source[3][ROOM], dst[ROOM], want[ROOM], one;
    const float *at[3], *aligned[3];
    for (int k = 0; k < 3; k++) {
        fill(source[k], 17u * n + (uint64_t)k);
        at[k] = source[k] + (shift + (size_t)k) % 4;
        aligned[k] = at[k];
    }
    for (int i = 0; i < ROOM; i++)
        dst[i] = guard;
    float *out = dst + GUARD + shift;
    fn(out, at, n, params);
    scalar(want, aligned, n, params);
    for (size_t i = 0; i < n; i++) {
        /* A slope that crosses 0 has an error of its parts. */
        float least = e->activation && e->sources == 2 && isfinite(at[0][i]) ? fabsf(at[0][i]) : 1e-3f;
        CHECK_MSG(near(out[i], want[i], least), "%s %s, n %zu: element %zu is %g, scalar gives %g", isa,
                  e->name, n, i, (double)out[i], (double)want[i]);
        fn(&one, (const float *[]){at[0] + i, at[1] + i, at[2] + i}, 1, params);
        CHECK_MSG(same_bits(one, out[i]), "%s %s, n %zu: element %zu differs from itself alone", isa, e->name,
                  n, i);
    }
    bool kept = true;
    for (int i = 0; i < ROOM; i++)
        kept = kept && (dst[i] == guard || (dst + i >= out && dst + i < out + n));
    CHECK_MSG(kept, "%s %s, n %zu: wrote outside its destination", isa, e->name, n);

    for (int k = 0; k < e->sources; k++) {
        memcpy(want, at[k], n * sizeof(float));
        const float *in_place[3] = {at[0], at[1], at[2]};
        in_place[k] = want;
        fn(want, in_place, n, params);
        bool same = true;
        for (size_t i = 0; i < n; i++)
            same = same && same_bits(want[i], out[i]);
        CHECK_MSG(same, "%s %s, n %zu: differs in place of source %d", isa, e->name, n, k);
    }
}

TEST(kernel_map_matches_scalar)
{
    const mica_kernels *scalar = mica_kernels_choose("scalar");
    REQUIRE(scalar != NULL);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        const mica_kernels *kernels = mica_kernels_choose(isas[i]);
        if (kernels == NULL)
            continue;
        for (size_t e = 0; e < sizeof entries / sizeof *entries; e++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                check_size(&entries[e], kernel_of(kernels, &entries[e]), kernel_of(scalar, &entries[e]),
                           sizes[s], s % 4, isas[i]);
    }
}
