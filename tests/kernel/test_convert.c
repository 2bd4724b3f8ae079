/* Conversions on every instruction set that runs here: all f16 and bf16 values, every rounding boundary, and
 * all pairs of types against arithmetic wide enough to hold any of them. */
#include <math.h>
#include <string.h>

#include "base/context.h"
#include "kernel/kernels.h"
#include "test.h"

static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};

/* Runs `check` with the kernels of every set that this machine has. */
static void on_each_isa(void (*check)(const mica_convert_kernels *kernels))
{
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        mica_context *ctx;
        if (mica_context_create(&ctx, &(mica_context_opts){.isa = isas[i]}) != MICA_OK)
            continue;
        check(ctx->kernels->convert);
        mica_context_destroy(ctx);
    }
}

/* ---- A small float format, by its bits ---- */

typedef struct format {
    mica_dtype dtype;
    int fraction; /* bits */
    int bias;
    uint16_t infinity;
} format;

static const format formats[] = {{MICA_F16, 10, 15, 0x7c00}, {MICA_BF16, 7, 127, 0x7f80}};

/* Infinity reads as what the next value would be: roundings to it are then decided like all others. */
static double value_of(const format *f, uint16_t bits)
{
    int exponent = (bits & 0x7fff) >> f->fraction, fraction = bits & ((1 << f->fraction) - 1);
    double size = exponent == 0 ? ldexp(fraction, 1 - f->bias - f->fraction)
                                : ldexp(fraction + (1 << f->fraction), exponent - f->bias - f->fraction);
    return bits & 0x8000 ? -size : size;
}

static uint16_t nearest(const format *f, long double x)
{
    uint16_t sign = signbit(x) ? 0x8000 : 0, low = 0, high = f->infinity;
    long double size = fabsl(x);
    if (size >= (long double)value_of(f, high))
        return sign | high;
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        if ((long double)value_of(f, middle) <= size)
            low = middle;
        else
            high = middle;
    }
    long double below = size - (long double)value_of(f, low), above = (long double)value_of(f, high) - size;
    bool up = below > above || (below == above && (low & 1));
    return sign | (up ? high : low);
}

static void check_all_values(const mica_convert_kernels *kernels)
{
    static uint16_t bits[65536], back[65536];
    static float floats[65536];
    static double doubles[65536];
    for (int i = 0; i < 65536; i++)
        bits[i] = (uint16_t)i;
    for (int k = 0; k < 2; k++) {
        const format *f = &formats[k];
        kernels->run(floats, MICA_F32, bits, f->dtype, 65536);
        kernels->run(doubles, MICA_F64, bits, f->dtype, 65536);
        for (int i = 0; i < 65536; i++) {
            uint16_t rest = bits[i] & 0x7fff;
            double want = rest == f->infinity ? (bits[i] & 0x8000 ? -INFINITY : INFINITY)
                                              : value_of(f, bits[i]);
            bool same = rest > f->infinity ? isnan(floats[i]) && isnan(doubles[i])
                                           : (double)floats[i] == want && doubles[i] == want;
            CHECK_MSG(same && (signbit(floats[i]) != 0) == (bits[i] >> 15), "%04x reads as %g", bits[i],
                      doubles[i]);
        }
        for (int wide = 0; wide < 2; wide++) {
            kernels->run(back, f->dtype, wide ? (void *)doubles : floats, wide ? MICA_F64 : MICA_F32, 65536);
            for (int i = 0; i < 65536; i++) {
                bool nan = (bits[i] & 0x7fff) > f->infinity;
                CHECK_MSG(nan ? (back[i] & 0x7fff) > f->infinity : back[i] == bits[i],
                          "%04x came back as %04x", bits[i], back[i]);
            }
        }
    }
}

TEST(convert_half_floats_both_ways) { on_each_isa(check_all_values); }

/* The middle between each value and the next, and its neighbours on both sides, from f32 and from f64. */
static void check_boundaries(const mica_convert_kernels *kernels)
{
    for (int k = 0; k < 2; k++) {
        const format *f = &formats[k];
        for (uint16_t bits = 0; bits < f->infinity; bits++) {
            double middle = (value_of(f, bits) + value_of(f, (uint16_t)(bits + 1))) / 2;
            float single = (float)middle;
            double wide[] = {middle,  nextafter(middle, 0),  nextafter(middle, INFINITY),
                             -middle, -nextafter(middle, 0), -nextafter(middle, INFINITY)};
            float narrow[] = {single, nextafterf(single, 0), nextafterf(single, INFINITY)};
            uint16_t got[6];
            kernels->run(got, f->dtype, wide, MICA_F64, 6);
            for (int i = 0; i < 6; i++)
                CHECK_MSG(got[i] == nearest(f, (long double)wide[i]), "f64 %a became %04x", wide[i], got[i]);
            kernels->run(got, f->dtype, narrow, MICA_F32, 3);
            for (int i = 0; i < 3; i++)
                CHECK_MSG(got[i] == nearest(f, (long double)narrow[i]), "f32 %a became %04x",
                          (double)narrow[i], got[i]);
        }
    }
}

TEST(convert_rounds_to_nearest_even_at_every_boundary) { on_each_isa(check_boundaries); }

static void check_integers(const mica_convert_kernels *kernels)
{
    test_random r = test_seed(3);
    for (int n = 0; n < 20000; n++) {
        /* Near a half of some precision: few bits, a tie below them, and sometimes one far away. */
        int shift = test_int(&r, 0, 62);
        int64_t x = (int64_t)((test_next(&r) >> test_int(&r, 45, 62)) << shift) ^
                    (test_chance(&r, 50) ? 1 : 0);
        if (test_chance(&r, 30))
            x = (int64_t)test_next(&r);
        int64_t value = test_chance(&r, 50) ? x : -(x >> 1);
        float f32;
        double f64;
        uint16_t half[2];
        kernels->run(&f32, MICA_F32, &value, MICA_I64, 1);
        kernels->run(&f64, MICA_F64, &value, MICA_I64, 1);
        CHECK(f32 == (float)(long double)value && f64 == (double)(long double)value);
        for (int k = 0; k < 2; k++) {
            kernels->run(&half[k], formats[k].dtype, &value, MICA_I64, 1);
            uint16_t want = nearest(&formats[k], (long double)value);
            CHECK_MSG(half[k] == want, "%lld became %04x, not %04x", (long long)value, half[k], want);
        }
        int32_t small = (int32_t)(value >> 33);
        for (int k = 0; k < 2; k++) {
            kernels->run(&half[k], formats[k].dtype, &small, MICA_I32, 1);
            CHECK(half[k] == nearest(&formats[k], (long double)small));
        }
    }
}

TEST(convert_rounds_integers_once) { on_each_isa(check_integers); }

/* ---- All pairs ---- */

typedef struct byte_format {
    mica_dtype dtype;
    int fraction, bias;
    uint8_t sign, infinity,
        nan; /* codes; 0: none. Every code above `infinity`, or the one code `nan`, is NaN */
} byte_format;

static const byte_format byte_formats[] = {{MICA_F8E4M3FN, 3, 7, 0x80, 0, 0x7f},
                                           {MICA_F8E4M3FNUZ, 3, 8, 0x80, 0, 0x80},
                                           {MICA_F8E5M2, 2, 15, 0x80, 0x7c, 0x7f},
                                           {MICA_F8E5M2FNUZ, 2, 16, 0x80, 0, 0x80},
                                           {MICA_F4E2M1, 1, 1, 0x08, 0, 0}};

static const byte_format *byte_format_of(mica_dtype dtype)
{
    for (size_t i = 0; i < sizeof byte_formats / sizeof *byte_formats; i++)
        if (byte_formats[i].dtype == dtype)
            return &byte_formats[i];
    return NULL;
}

static long double byte_value(mica_dtype dtype, uint8_t code)
{
    const byte_format *f = byte_format_of(dtype);
    if (f == NULL) /* f8e8m0 */
        return code == 0xff ? (long double)NAN : ldexpl(1, code - 127);
    int size = code & (f->sign - 1), exponent = size >> f->fraction, rest = size & ((1 << f->fraction) - 1);
    if ((f->nan == 0x80 && code == 0x80) || (f->nan == 0x7f && size == 0x7f) ||
        (f->infinity != 0 && size > f->infinity))
        return (long double)NAN;
    long double value = f->infinity != 0 && size == f->infinity ? (long double)INFINITY
                        : exponent == 0                         ? ldexpl(rest, 1 - f->bias - f->fraction)
                                        : ldexpl(rest + (1 << f->fraction), exponent - f->bias - f->fraction);
    return code & f->sign ? -value : value;
}

/* The nearest of all values, the one with an even code if there are two, saturated: by trying all of them. */
static long double byte_nearest(mica_dtype dtype, long double x)
{
    const byte_format *f = byte_format_of(dtype);
    if (isnan(x))
        return f != NULL && f->nan == 0 ? 0 : x;
    long double best = 0, distance = (long double)INFINITY;
    uint8_t best_code = 0;
    x = f == NULL ? fabsl(x) : fminl(fmaxl(x, -1e6L), 1e6L); /* beyond all, yet distances are exact */
    for (int code = 0; code < (f != NULL ? 2 * f->sign : 256); code++) {
        long double value = byte_value(dtype, (uint8_t)code), away = fabsl(value - x);
        if (isinf(x))
            away = x > 0 ? -value : value;
        if (isnan(value) || isinf(value) || (f == NULL && code < 254 && value < x))
            continue;
        if (f == NULL && (distance < (long double)INFINITY)) /* rounded up: the first is it */
            continue;
        if (away < distance || (away == distance && (best_code & 1) && !(code & 1)))
            best = value, distance = away, best_code = (uint8_t)code;
    }
    return best;
}

static long double read_as_wide(mica_dtype dtype, const void *p)
{
    switch (dtype) {
#define READ(code, type)         \
    case MICA_##code: {          \
        type v;                  \
        memcpy(&v, p, sizeof v); \
        return (long double)v;   \
    }
        READ(F32, float)
        READ(F64, double)
        READ(I64, int64_t)
        READ(I32, int32_t)
        READ(I16, int16_t)
        READ(I8, int8_t)
        READ(U8, uint8_t)
        READ(U16, uint16_t)
        READ(U32, uint32_t)
        READ(U64, uint64_t)
        READ(I4, int8_t)
        READ(U4, uint8_t)
        READ(I2, int8_t)
        READ(U2, uint8_t)
        READ(BOOL, uint8_t)
    case MICA_F8E4M3FN:
    case MICA_F8E4M3FNUZ:
    case MICA_F8E5M2:
    case MICA_F8E5M2FNUZ:
    case MICA_F8E8M0:
    case MICA_F4E2M1:
        return byte_value(dtype, *(const uint8_t *)p);
#undef READ
    default: {
        const format *f = &formats[dtype == MICA_BF16];
        uint16_t bits;
        memcpy(&bits, p, sizeof bits);
        if ((bits & 0x7fff) > f->infinity)
            return (long double)NAN;
        if ((bits & 0x7fff) == f->infinity)
            return bits & 0x8000 ? -(long double)INFINITY : (long double)INFINITY;
        return (long double)value_of(f, bits);
    }
    }
}

/* What x becomes in a type, as a wide value. */
static long double expected(mica_dtype to, long double x)
{
    static const struct {
        mica_dtype dtype;
        long double low, high;
    } whole[] = {{MICA_I64, INT64_MIN, INT64_MAX},
                 {MICA_I32, INT32_MIN, INT32_MAX},
                 {MICA_I16, INT16_MIN, INT16_MAX},
                 {MICA_I8, INT8_MIN, INT8_MAX},
                 {MICA_U8, 0, UINT8_MAX},
                 {MICA_U16, 0, UINT16_MAX},
                 {MICA_U32, 0, UINT32_MAX},
                 {MICA_U64, 0, UINT64_MAX},
                 {MICA_I4, -8, 7},
                 {MICA_U4, 0, 15},
                 {MICA_I2, -2, 1},
                 {MICA_U2, 0, 3}};
    if (to == MICA_BOOL)
        return x != 0;
    if (to > MICA_BOOL)
        return byte_nearest(to, x);
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (whole[i].dtype == to)
            return isnan(x)            ? 0
                   : x < whole[i].low  ? whole[i].low
                   : x > whole[i].high ? whole[i].high
                                       : truncl(x);
    if (isnan(x) || isinf(x))
        return x;
    if (to == MICA_F32)
        return (long double)(float)x;
    if (to == MICA_F64)
        return (long double)(double)x;
    uint16_t bits = nearest(&formats[to == MICA_BF16], x);
    return read_as_wide(to, &bits);
}

static void check_pairs(const mica_convert_kernels *kernels)
{
    static const double special[] = {0,
                                     -0.0,
                                     0.5,
                                     -0.5,
                                     1.5,
                                     -1.5,
                                     127,
                                     128,
                                     -128,
                                     -129,
                                     255,
                                     256,
                                     32767,
                                     32768,
                                     -32769,
                                     2147483647,
                                     2147483648,
                                     -2147483649.0,
                                     9.3e18,
                                     -9.3e18,
                                     65504,
                                     65520,
                                     1e30,
                                     -1e30,
                                     1e39,
                                     1e-30,
                                     1e-46,
                                     (double)INFINITY,
                                     -(double)INFINITY,
                                     (double)NAN,
                                     16777217,
                                     3e9};
    enum { MOST = 600 };
    test_random r = test_seed(8);
    for (mica_dtype from = 0; from < MICA_Q4_0; from++) {
        for (mica_dtype to = 0; to < MICA_Q4_0; to++) {
            double values[MOST];
            char source[MOST * 8], target[MOST * 8 + 8];
            size_t n = test_chance(&r, 50) ? (size_t)test_int(&r, 0, 40) : MOST;
            for (size_t i = 0; i < n; i++)
                values[i] = test_chance(&r, 30) ? special[test_int(&r, 0, 31)]
                                                : test_normal(&r) * pow(2, test_int(&r, -20, 66));
            kernels->run(source, from, values, MICA_F64, n);
            memset(target, 0x5a, sizeof target);
            kernels->run(target, to, source, from, n);
            size_t to_bytes = mica_dtype_bytes(to);
            for (size_t i = 0; i < n; i++) {
                long double x = read_as_wide(from, source + i * mica_dtype_bytes(from)),
                            want = expected(to, x), got = read_as_wide(to, target + i * to_bytes);
                CHECK_MSG(isnan(want) ? isnan(got) : got == want, "%s %Lg became %s %Lg, not %Lg",
                          mica_dtype_name(from), x, mica_dtype_name(to), got, want);
            }
            CHECK(target[n * to_bytes] == 0x5a);
        }
    }
}

TEST(convert_all_pairs) { on_each_isa(check_pairs); }

/* Every code of the small floats comes back from every type that holds it. */
static void check_bytes(const mica_convert_kernels *kernels)
{
    for (mica_dtype dtype = MICA_F8E4M3FN; dtype <= MICA_F4E2M1; dtype++) {
        int codes = dtype == MICA_F4E2M1 ? 16 : 256;
        for (int i = 0; i < codes; i++) {
            uint8_t code = (uint8_t)i, back = 0;
            float f32;
            double f64;
            kernels->run(&f32, MICA_F32, &code, dtype, 1);
            kernels->run(&f64, MICA_F64, &code, dtype, 1);
            long double want = byte_value(dtype, code);
            if (isnan(want)) {
                kernels->run(&back, dtype, &f32, MICA_F32, 1);
                CHECK(isnan(f32) && isnan(f64) && isnan(byte_value(dtype, back)));
                continue;
            }
            CHECK((long double)f32 == want && (long double)f64 == want);
            mica_cast_opts overflow = {.overflow = true};
            kernels->cast(&back, dtype, &f64, MICA_F64, 1, &overflow);
            CHECK_MSG(back == code, "%s %02x came back as %02x", mica_dtype_name(dtype), code, back);
        }
    }
}

TEST(convert_floats_of_a_byte_both_ways) { on_each_isa(check_bytes); }

/* What does not fit, with and without saturation; roundings of f8e8m0; integers that wrap. */
static void check_casts(const mica_convert_kernels *kernels)
{
    static const struct {
        mica_dtype to;
        double x;
        mica_cast_opts opts;
        uint8_t want;
    } cases[] = {
        {MICA_F8E4M3FN, 448, {0}, 0x7e},
        {MICA_F8E4M3FN, 464, {.overflow = true}, 0x7e}, /* a tie, to even */
        {MICA_F8E4M3FN, 465, {.overflow = true}, 0x7f},
        {MICA_F8E4M3FN, -(double)INFINITY, {.overflow = true}, 0xff},
        {MICA_F8E4M3FN, -(double)INFINITY, {0}, 0xfe},
        {MICA_F8E4M3FNUZ, 1e6, {.overflow = true}, 0x80},
        {MICA_F8E4M3FNUZ, -0.0, {0}, 0},
        {MICA_F8E5M2, 1e6, {.overflow = true}, 0x7c},
        {MICA_F8E5M2, -1e6, {.overflow = true}, 0xfc},
        {MICA_F8E5M2, (double)INFINITY, {0}, 0x7b},
        {MICA_F8E5M2FNUZ, -1e6, {0}, 0xff},
        {MICA_F8E5M2FNUZ, (double)NAN, {0}, 0x80},
        {MICA_F4E2M1, 5, {0}, 6}, /* 4: even */
        {MICA_F4E2M1, -9, {.overflow = true}, 15},
        {MICA_F8E8M0, 1.25, {0}, 128},
        {MICA_F8E8M0, 1.25, {.round = MICA_ROUND_DOWN}, 127},
        {MICA_F8E8M0, 1.25, {.round = MICA_ROUND_NEAREST}, 127},
        {MICA_F8E8M0, 1.5, {.round = MICA_ROUND_NEAREST}, 128},
        {MICA_F8E8M0, 0, {0}, 0},
        {MICA_F8E8M0, 0, {.overflow = true, .round = MICA_ROUND_NEAREST}, 255},
        {MICA_F8E8M0, (double)INFINITY, {0}, 254},
        {MICA_F8E8M0, (double)INFINITY, {.overflow = true}, 255},
        {MICA_I8, 200, {.wrap = true}, 200},
        {MICA_I8, 200, {0}, 127},
        {MICA_U8, -1, {.wrap = true}, 255},
        {MICA_I4, -9, {.wrap = true}, 7},
        {MICA_I4, 15, {.wrap = true}, 255},
        {MICA_U4, -9, {.wrap = true}, 7},
        {MICA_BOOL, 256, {.wrap = true}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t got = 0x55;
        kernels->cast(&got, cases[i].to, &cases[i].x, MICA_F64, 1, &cases[i].opts);
        CHECK_MSG(got == cases[i].want, "%g became %s %02x, not %02x", cases[i].x,
                  mica_dtype_name(cases[i].to), got, cases[i].want);
    }
    int64_t wide = 0x1234567890, back;
    uint64_t most = UINT64_MAX;
    uint32_t low;
    int32_t minus;
    kernels->cast(&low, MICA_U32, &wide, MICA_I64, 1, &(mica_cast_opts){.wrap = true});
    kernels->cast(&minus, MICA_I32, &most, MICA_U64, 1, &(mica_cast_opts){.wrap = true});
    kernels->run(&back, MICA_I64, &most, MICA_U64, 1);
    CHECK(low == 0x34567890 && minus == -1 && back == INT64_MAX);
}

TEST(convert_casts_with_options) { on_each_isa(check_casts); }

static void check_stream(const mica_convert_kernels *kernels)
{
    static float from[300], to[300];
    for (int i = 0; i < 300; i++)
        from[i] = (float)i;
    for (size_t start = 0; start < 20; start++) {
        for (size_t n = 0; n < 100; n += 7) {
            memset(to, 0, sizeof to);
            kernels->stream(to + start, from, n);
            CHECK(memcmp(to + start, from, n * sizeof *to) == 0 && to[start + n] == 0);
        }
    }
}

TEST(convert_stream_copies) { on_each_isa(check_stream); }

static void check_transpose(const mica_convert_kernels *kernels)
{
    static uint32_t from[40 * 50], to[50 * 45];
    for (uint32_t i = 0; i < 40 * 50; i++)
        from[i] = i;
    const ptrdiff_t sizes[] = {0, 1, 7, 8, 9, 16, 33};
    for (int a = 0; a < 7; a++) {
        for (int b = 0; b < 7; b++) {
            memset(to, 0xff, sizeof to);
            kernels->transpose(to, 45, from, 50, sizes[a], sizes[b]);
            bool same = true;
            for (ptrdiff_t c = 0; c < 50; c++)
                for (ptrdiff_t r = 0; r < 45; r++)
                    same = same &&
                           to[c * 45 + r] == (r < sizes[a] && c < sizes[b] ? from[r * 50 + c] : UINT32_MAX);
            CHECK_MSG(same, "%td rows of %td", sizes[a], sizes[b]);
        }
    }
}

TEST(convert_transpose_turns_rows_into_columns) { on_each_isa(check_transpose); }
