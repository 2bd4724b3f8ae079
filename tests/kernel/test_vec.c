/* The vector backends: every primitive against scalar, every tail against a page that cannot be touched. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/kernels.h"
#include "kernel/isa/probe.h"
#include "test.h"

extern const probe_table probe_table_scalar, probe_table_avx2, probe_table_avx512, probe_table_neon;

size_t probe_tables(const probe_table *tables[PROBE_MAX])
{
    const probe_table *built[] = {
        &probe_table_scalar,
#if defined(MICA_WITH_AVX2)
        &probe_table_avx2,
#endif
#if defined(MICA_WITH_AVX512)
        &probe_table_avx512,
#endif
#if defined(MICA_WITH_NEON)
        &probe_table_neon,
#endif
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof built / sizeof *built; i++)
        if (mica_kernels_choose(built[i]->isa) != NULL)
            tables[count++] = built[i];
    return count;
}

#define MAX_LANES 64

static float of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static uint32_t to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static bool is_nan_bits(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }
static bool same_bits(uint32_t a, uint32_t b) { return a == b || (is_nan_bits(a) && is_nan_bits(b)); }

/* Words that make trouble: specials, halfway cases of rounding, the ends of the integers. */
static uint32_t awkward_word(test_random *r, probe_kind kind)
{
    static const uint32_t words[] = {
        0,           0x80000000u, 0x3f800000u, 0xbf800000u, 0x7f800000u, 0xff800000u, 0x7fc00000u,
        0xffc00001u, 1,           0x80000001u, 0x007fffffu, 0x00800000u, 0x7f7fffffu, 0xff7fffffu,
        0x3f000000u, 0xbf000000u, 0x3fc00000u, 0x40200000u, 0xc0200000u, 0x4affffffu, 0x4b000000u,
        0x4b000001u, 0xcb000000u, 0x7fffffffu, 0xffffffffu, 0x4effffffu, 0xcf000000u, 0x0000ffffu,
        0xffff0000u, 0x3effffffu, 0x3f7fffffu, 0x4a800001u,
    };
    if (kind == PROBE_EXPONENT)
        return (uint32_t)test_int(r, -126, 127);
    if (kind == PROBE_MODERATE)
        return ((uint32_t)test_next(r) & 0x807fffffu) | (uint32_t)test_int(r, 90, 160) << 23;
    uint32_t word = (uint32_t)(test_next(r) >> 16);
    switch (test_int(r, 0, 2)) {
    case 0:
        word = words[word % (sizeof words / sizeof *words)];
        break;
    case 1:
        word = (word & 0x807fffffu) | (uint32_t)test_int(r, 115, 155) << 23; /* of ordinary size */
        break;
    default:
        break;
    }
    if (kind == PROBE_FITS_INT && !(fabsf(of_bits(word)) < 0x1p31f))
        word = 0x40490fdbu;
    return word;
}

static bool lane_is_right(const probe_table *table, const probe_entry *entry, uint32_t got, uint32_t want,
                          uint32_t a, uint32_t b, uint32_t c)
{
    if (table->has_fma && entry->kind == PROBE_FUSED)
        want = to_bits(fmaf(of_bits(a), of_bits(b), of_bits(c)));
    if (table->has_fma && entry->kind == PROBE_FUSED_MINUS)
        want = to_bits(fmaf(-of_bits(a), of_bits(b), of_bits(c)));
    if (entry->kind == PROBE_NAN_IN_B && is_nan_bits(a) && !is_nan_bits(b))
        return true;
    if ((entry->kind == PROBE_ORDER || entry->kind == PROBE_NAN_IN_B) && of_bits(got) == of_bits(want))
        return true;
    return same_bits(got, want);
}

static void check_primitive(const probe_table *table, const probe_entry *entry, const probe_entry *scalar)
{
    test_random r = test_seed(7);
    for (int round = 0; round < 2000; round++) {
        uint32_t a[MAX_LANES], b[MAX_LANES], c[MAX_LANES], got[MAX_LANES];
        for (size_t i = 0; i < table->lanes; i++) {
            a[i] = awkward_word(&r, entry->kind);
            b[i] = test_chance(&r, 10) ? a[i] : awkward_word(&r, entry->kind);
            c[i] = awkward_word(&r, entry->kind);
        }
        entry->run(got, a, b, c);
        for (size_t i = 0; i < table->lanes; i++) {
            uint32_t want;
            scalar->run(&want, &a[i], &b[i], &c[i]);
            if (!CHECK_MSG(lane_is_right(table, entry, got[i], want, a[i], b[i], c[i]),
                           "%s %s: lane %zu of (0x%08x, 0x%08x, 0x%08x) is 0x%08x, scalar 0x%08x", table->isa,
                           entry->name, i, (unsigned)a[i], (unsigned)b[i], (unsigned)c[i], (unsigned)got[i],
                           (unsigned)want))
                return;
        }
    }
}

TEST(vec_primitives_agree_with_scalar)
{
    const probe_table *tables[PROBE_MAX];
    size_t count = probe_tables(tables);
    for (size_t t = 0; t < count; t++)
        for (size_t k = 0; k < tables[t]->entry_count; k++)
            check_primitive(tables[t], &tables[t]->entries[k], &tables[0]->entries[k]);
}

/* Two pages of which the second cannot be touched; returns its start. */
static char *guarded(void **block, size_t *size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    *size = 2 * page;
    *block = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*block == MAP_FAILED || mprotect((char *)*block + page, page, PROT_NONE) != 0)
        return NULL;
    return (char *)*block + page;
}

static void check_tail(const probe_table *table, char *end, size_t n)
{
    float lanes[MAX_LANES], in[MAX_LANES];
    int32_t int_lanes[MAX_LANES], int_in[MAX_LANES];
    float *p = (float *)(void *)end - n;
    for (size_t i = 0; i < MAX_LANES; i++) {
        in[i] = (float)(i + 1);
        int_in[i] = -(int32_t)i - 1;
    }
    p[-1] = -5.0f;
    table->store_tail(p, in, n);
    CHECK(p[-1] == -5.0f);
    table->load_tail(lanes, p, n);
    for (size_t i = 0; i < table->lanes; i++)
        CHECK_MSG(lanes[i] == (i < n ? in[i] : 0.0f), "%s: lane %zu of a tail of %zu", table->isa, i, n);

    for (size_t first = 0; first <= n; first++) {
        table->load_where(lanes, p, first, n);
        for (size_t i = 0; i < table->lanes; i++)
            CHECK_MSG(lanes[i] == (i >= first && i < n ? in[i] : 0.0f), "%s: lane %zu of %zu to %zu",
                      table->isa, i, first, n);
    }

    int32_t *q = (int32_t *)(void *)end - n;
    table->vi_store_tail(q, int_in, n);
    CHECK(p[-1] == -5.0f);
    table->vi_load_tail(int_lanes, q, n);
    for (size_t i = 0; i < table->lanes; i++)
        CHECK_MSG(int_lanes[i] == (i < n ? int_in[i] : 0), "%s: lane %zu of a tail of %zu", table->isa, i, n);

    for (size_t i = 0; i < table->lanes; i++) {
        int want = (i < n ? 1 : 0) | (n > 0 ? 2 : 0) | (n == table->lanes ? 4 : 0);
        CHECK_MSG(table->first(n, i) == want, "%s: lane %zu of vm_first(%zu)", table->isa, i, n);
    }
    /* Halves: a vector and a tail, up to the guard. */
    size_t whole = table->lanes + n;
    uint16_t *halves = (uint16_t *)(void *)end - whole;
    float floats[2 * MAX_LANES], back[2 * MAX_LANES];
    for (size_t i = 0; i < whole; i++)
        floats[i] = (float)i - 3.0f;
    table->to_f16(halves, floats, whole);
    table->from_f16(back, halves, whole);
    CHECK(memcmp(floats, back, whole * sizeof *back) == 0);
    table->to_bf16(halves, floats, whole);
    table->from_bf16(back, halves, whole);
    CHECK(memcmp(floats, back, whole * sizeof *back) == 0);
}

/* Stores leave what comes after a tail as it was: where that can be touched, unlike at the guard. */
static void check_store_keeps(const probe_table *table, size_t n)
{
    float row[MAX_LANES + 1], in[MAX_LANES] = {0};
    for (size_t i = 0; i <= MAX_LANES; i++)
        row[i] = 9.0f;
    table->store_tail(row, in, n);
    for (size_t i = 0; i <= MAX_LANES; i++)
        CHECK_MSG(row[i] == (i < n ? 0.0f : 9.0f), "%s: element %zu after a store of %zu", table->isa, i, n);
}

TEST(vec_tails_stay_inside)
{
    void *block;
    size_t size;
    char *end = guarded(&block, &size);
    REQUIRE(end != NULL);
    const probe_table *tables[PROBE_MAX];
    size_t count = probe_tables(tables);
    for (size_t t = 0; t < count; t++)
        for (size_t n = 0; n <= tables[t]->lanes; n++) {
            check_tail(tables[t], end, n);
            check_store_keeps(tables[t], n);
        }
    munmap(block, size);
}

TEST(vec_gather_scatter_stream)
{
    const probe_table *tables[PROBE_MAX];
    size_t count = probe_tables(tables);
    for (size_t t = 0; t < count; t++)
        for (ptrdiff_t stride = -3; stride <= 3; stride++) {
            ptrdiff_t lanes = (ptrdiff_t)tables[t]->lanes, middle = 3 * MAX_LANES;
            float memory[6 * MAX_LANES + 1] = {0}, in[MAX_LANES], out[MAX_LANES];
            for (ptrdiff_t i = 0; i < lanes; i++)
                in[i] = (float)i + 1.0f;
            tables[t]->scatter(memory + middle, stride, in);
            tables[t]->gather(out, memory + middle, stride);
            for (ptrdiff_t i = 0; i < lanes; i++)
                CHECK(out[i] == (stride == 0 ? in[lanes - 1] : in[i]));
            _Alignas(64) float row[MAX_LANES];
            tables[t]->stream(row, in);
            CHECK(memcmp(row, in, tables[t]->lanes * sizeof *in) == 0);
        }
}

/* The upper half folded upon the lower, until one is left. */
static float folded_sum(const float *in, size_t lanes)
{
    float v[MAX_LANES] = {0};
    memcpy(v, in, lanes * sizeof *v);
    for (size_t half = lanes / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            v[i] += v[i + half];
    return v[0];
}

static void check_folds(const probe_table *table, test_random *r)
{
    float in[MAX_LANES], low = INFINITY, high = -INFINITY;
    bool nan = false;
    for (size_t i = 0; i < table->lanes; i++) {
        in[i] = (float)test_normal(r);
        if (test_chance(r, 5))
            in[i] = test_chance(r, 50) ? NAN : (test_chance(r, 50) ? INFINITY : -INFINITY);
        nan = nan || isnan(in[i]);
        low = in[i] < low ? in[i] : low;
        high = in[i] > high ? in[i] : high;
    }
    CHECK_MSG(same_bits(to_bits(table->sum(in)), to_bits(folded_sum(in, table->lanes))), "%s: sum",
              table->isa);
    CHECK_MSG(nan ? isnan(table->hmin(in)) : table->hmin(in) == low, "%s: hmin", table->isa);
    CHECK_MSG(nan ? isnan(table->hmax(in)) : table->hmax(in) == high, "%s: hmax", table->isa);
}

static void check_sums(const probe_table *table, test_random *r)
{
    float in[MAX_LANES * MAX_LANES], out[MAX_LANES];
    for (size_t i = 0; i < table->lanes * table->lanes; i++)
        in[i] = (float)test_normal(r);
    table->sums(out, in);
    for (size_t i = 0; i < table->lanes; i++)
        CHECK_MSG(to_bits(out[i]) == to_bits(folded_sum(in + i * table->lanes, table->lanes)),
                  "%s: sum of row %zu", table->isa, i);
}

TEST(vec_folds_in_a_fixed_order)
{
    const probe_table *tables[PROBE_MAX];
    size_t count = probe_tables(tables);
    test_random r = test_seed(3);
    for (size_t t = 0; t < count; t++)
        for (int round = 0; round < 2000; round++) {
            check_folds(tables[t], &r);
            check_sums(tables[t], &r);
        }
}

static void check_halves(const probe_table *table, const probe_table *scalar)
{
    enum { BLOCK = 256 };
    uint16_t halves[BLOCK], got16[BLOCK], want16[BLOCK];
    float got[BLOCK], want[BLOCK], in[BLOCK];
    for (uint32_t base = 0; base < 0x10000u; base += BLOCK) {
        for (uint32_t i = 0; i < BLOCK; i++) {
            halves[i] = (uint16_t)(base + i);
            /* Each f16 prefix with the fractions around a tie, and the same for bf16. */
            static const uint32_t rest[] = {0,      1,      0xfff,  0x1000, 0x1001,
                                            0x7fff, 0x8000, 0x8001, 0x1fff, 0xffff};
            in[i] = of_bits((base + i) << 16 | rest[(base / BLOCK + i) % 10]);
        }
        table->from_f16(got, halves, BLOCK);
        scalar->from_f16(want, halves, BLOCK);
        for (size_t i = 0; i < BLOCK; i++)
            CHECK_MSG(same_bits(to_bits(got[i]), to_bits(want[i])), "%s: f16 0x%04x", table->isa, halves[i]);
        table->from_bf16(got, halves, BLOCK);
        for (size_t i = 0; i < BLOCK; i++)
            CHECK(to_bits(got[i]) == (uint32_t)halves[i] << 16);
        table->to_f16(got16, in, BLOCK);
        scalar->to_f16(want16, in, BLOCK);
        for (size_t i = 0; i < BLOCK; i++)
            CHECK_MSG(got16[i] == want16[i] || isnan(in[i]), "%s: %a to f16", table->isa, (double)in[i]);
        table->to_bf16(got16, in, BLOCK);
        scalar->to_bf16(want16, in, BLOCK);
        CHECK(memcmp(got16, want16, sizeof got16) == 0);
        table->to_f16(got16, in, BLOCK);
        table->from_f16(got, got16, BLOCK);
        for (size_t i = 0; i < BLOCK; i++)
            CHECK(isnan(in[i]) == isnan(got[i]));
    }
}

TEST(vec_halves_agree_with_scalar)
{
    const probe_table *tables[PROBE_MAX];
    size_t count = probe_tables(tables);
    for (size_t t = 0; t < count; t++)
        check_halves(tables[t], tables[0]);
}
