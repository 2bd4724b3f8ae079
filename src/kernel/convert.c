/* Conversions; compiled once per instruction set.
 *
 * Every value passes through the widest type that holds it exactly: f32 (for f16, bf16 and small integers),
 * f64 or i64. That takes a loop out of each of these three into every type, and one into them from every
 * type, in place of eighty-one. */
#include "kernel/convert.h"
#include "kernel/vec.h"

/* Values converted at a time where neither side has the type in between: stays in the first cache. */
#define STAGE 256

typedef void convert_fn(void *dst, const void *src, size_t n);

/* ---- The nearest float above or below in magnitude, made odd ---- */

/* Rounding a second time, to at least two bits fewer, then gives what one rounding would have: an odd last
 * bit keeps the value off the second rounding's ties and exact points. */
VF_INLINE float odd_from_double(double x)
{
    float near = (float)x;
    if ((double)near == x || x != x)
        return near;
    uint32_t bits;
    memcpy(&bits, &near, sizeof bits);
    if (fabs((double)near) > fabs(x))
        bits--; /* toward zero; from infinity to the largest */
    bits |= 1u;
    memcpy(&near, &bits, sizeof near);
    return near;
}

/* A double from an integer in the same manner: beyond 53 bits the last twelve become one odd bit above them.
 */
VF_INLINE double odd_from_integer(int64_t x)
{
    uint64_t size = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    if (size >> 53 != 0)
        size = (size | ((size & 0xfffu) != 0 ? 0x1000u : 0u)) & ~(uint64_t)0xfffu;
    return x < 0 ? -(double)size : (double)size;
}

/* ---- f16 and bf16 ---- */

#define HALF_PAIR(name)                                                \
    static void f32_from_##name(void *dst, const void *src, size_t n)  \
    {                                                                  \
        float *out = dst;                                              \
        const uint16_t *in = src;                                      \
        size_t i = 0;                                                  \
        for (; i + VF_LANES <= n; i += VF_LANES)                       \
            vf_store(out + i, vf_load_##name(in + i));                 \
        if (i < n) {                                                   \
            uint16_t tail[VF_LANES] = {0};                             \
            memcpy(tail, in + i, (n - i) * sizeof *in);                \
            vf_store_tail(out + i, vf_load_##name(tail), n - i);       \
        }                                                              \
    }                                                                  \
    static void name##_from_f32(void *dst, const void *src, size_t n)  \
    {                                                                  \
        uint16_t *out = dst;                                           \
        const float *in = src;                                         \
        size_t i = 0;                                                  \
        for (; i + VF_LANES <= n; i += VF_LANES)                       \
            vf_store_##name(out + i, vf_load(in + i));                 \
        if (i < n) {                                                   \
            uint16_t tail[VF_LANES];                                   \
            vf_store_##name(tail, vf_load_tail(in + i, n - i));        \
            memcpy(out + i, tail, (n - i) * sizeof *out);              \
        }                                                              \
    }                                                                  \
    static void name##_from_f64(void *dst, const void *src, size_t n)  \
    {                                                                  \
        uint16_t *out = dst;                                           \
        const double *in = src;                                        \
        float odd[STAGE];                                              \
        for (size_t i = 0; i < n; i += STAGE) {                        \
            size_t some = n - i < STAGE ? n - i : STAGE;               \
            for (size_t k = 0; k < some; k++)                          \
                odd[k] = odd_from_double(in[i + k]);                   \
            name##_from_f32(out + i, odd, some);                       \
        }                                                              \
    }                                                                  \
    static void name##_from_i64(void *dst, const void *src, size_t n)  \
    {                                                                  \
        uint16_t *out = dst;                                           \
        const int64_t *in = src;                                       \
        float odd[STAGE];                                              \
        for (size_t i = 0; i < n; i += STAGE) {                        \
            size_t some = n - i < STAGE ? n - i : STAGE;               \
            for (size_t k = 0; k < some; k++)                          \
                odd[k] = odd_from_double(odd_from_integer(in[i + k])); \
            name##_from_f32(out + i, odd, some);                       \
        }                                                              \
    }

HALF_PAIR(f16)
HALF_PAIR(bf16)

/* ---- Loops of one C conversion each ---- */

/* Where the C conversion is exact or rounds as wanted. */
#define PLAIN(to, to_type, from, from_type)                            \
    static void to##_from_##from(void *dst, const void *src, size_t n) \
    {                                                                  \
        to_type *out = dst;                                            \
        const from_type *in = src;                                     \
        for (size_t i = 0; i < n; i++)                                 \
            out[i] = (to_type)in[i];                                   \
    }

PLAIN(f32, float, f64, double)
PLAIN(f32, float, i64, int64_t)
PLAIN(f32, float, i32, int32_t)
PLAIN(f32, float, i16, int16_t)
PLAIN(f32, float, i8, int8_t)
PLAIN(f32, float, u8, uint8_t)
PLAIN(f64, double, f32, float)
PLAIN(f64, double, i64, int64_t)
PLAIN(i64, int64_t, i32, int32_t)
PLAIN(i64, int64_t, i16, int16_t)
PLAIN(i64, int64_t, i8, int8_t)
PLAIN(i64, int64_t, u8, uint8_t)

/* `above` is the first value too large, a power of two and so exact. Only selections, so that it vectorises:
 * the C conversion sees a value in its range whatever comes. */
#define FROM_FLOAT(to, to_type, low, high, above, from, from_type)                 \
    static void to##_from_##from(void *dst, const void *src, size_t n)             \
    {                                                                              \
        to_type *out = dst;                                                        \
        const from_type *in = src;                                                 \
        for (size_t i = 0; i < n; i++) {                                           \
            from_type x = in[i], inside = x > (from_type)low ? x : (from_type)low; \
            inside = inside < (from_type)above ? inside : (from_type)0;            \
            inside = x == x ? inside : (from_type)0;                               \
            to_type whole = (to_type)inside;                                       \
            out[i] = x >= (from_type)above ? high : whole;                         \
        }                                                                          \
    }

#define INTEGER(to, to_type, low, high, above)            \
    FROM_FLOAT(to, to_type, low, high, above, f32, float) \
    FROM_FLOAT(to, to_type, low, high, above, f64, double)

INTEGER(i64, int64_t, INT64_MIN, INT64_MAX, 0x1p63)
INTEGER(i32, int32_t, INT32_MIN, INT32_MAX, 0x1p31)
INTEGER(i16, int16_t, INT16_MIN, INT16_MAX, 0x1p15)
INTEGER(i8, int8_t, INT8_MIN, INT8_MAX, 0x1p7)
INTEGER(u8, uint8_t, 0, UINT8_MAX, 0x1p8)

#define NARROW(to, to_type, low, high)                              \
    static void to##_from_i64(void *dst, const void *src, size_t n) \
    {                                                               \
        to_type *out = dst;                                         \
        const int64_t *in = src;                                    \
        for (size_t i = 0; i < n; i++) {                            \
            int64_t x = in[i] < (low) ? (low) : in[i];              \
            out[i] = (to_type)(x > (high) ? (high) : x);            \
        }                                                           \
    }

NARROW(i32, int32_t, INT32_MIN, INT32_MAX)
NARROW(i16, int16_t, INT16_MIN, INT16_MAX)
NARROW(i8, int8_t, INT8_MIN, INT8_MAX)
NARROW(u8, uint8_t, 0, UINT8_MAX)

/* ---- Which loops make a conversion ---- */

static convert_fn *const from_f32[MICA_DTYPE_COUNT] = {
    [MICA_F64] = f64_from_f32, [MICA_F16] = f16_from_f32, [MICA_BF16] = bf16_from_f32,
    [MICA_I64] = i64_from_f32, [MICA_I32] = i32_from_f32, [MICA_I16] = i16_from_f32,
    [MICA_I8] = i8_from_f32,   [MICA_U8] = u8_from_f32,
};
static convert_fn *const from_f64[MICA_DTYPE_COUNT] = {
    [MICA_F32] = f32_from_f64, [MICA_F16] = f16_from_f64, [MICA_BF16] = bf16_from_f64,
    [MICA_I64] = i64_from_f64, [MICA_I32] = i32_from_f64, [MICA_I16] = i16_from_f64,
    [MICA_I8] = i8_from_f64,   [MICA_U8] = u8_from_f64,
};
static convert_fn *const from_i64[MICA_DTYPE_COUNT] = {
    [MICA_F32] = f32_from_i64,   [MICA_F64] = f64_from_i64, [MICA_F16] = f16_from_i64,
    [MICA_BF16] = bf16_from_i64, [MICA_I32] = i32_from_i64, [MICA_I16] = i16_from_i64,
    [MICA_I8] = i8_from_i64,     [MICA_U8] = u8_from_i64,
};
static convert_fn *const to_f32[MICA_DTYPE_COUNT] = {
    [MICA_F16] = f32_from_f16, [MICA_BF16] = f32_from_bf16, [MICA_I32] = f32_from_i32,
    [MICA_I16] = f32_from_i16, [MICA_I8] = f32_from_i8,     [MICA_U8] = f32_from_u8,
};
static convert_fn *const to_i64[MICA_DTYPE_COUNT] = {
    [MICA_I32] = i64_from_i32, [MICA_I16] = i64_from_i16, [MICA_I8] = i64_from_i8, [MICA_U8] = i64_from_u8};

VF_INLINE bool is_float(mica_dtype dtype)
{
    return dtype == MICA_F32 || dtype == MICA_F64 || dtype == MICA_F16 || dtype == MICA_BF16;
}

/* `load` into the type in between, then `store`. */
static void staged(char *dst, size_t dst_bytes, convert_fn *store, const char *src, size_t src_bytes,
                   convert_fn *load, size_t n)
{
    union {
        float f32[STAGE];
        int64_t i64[STAGE];
    } stage;
    for (size_t i = 0; i < n; i += STAGE) {
        size_t some = n - i < STAGE ? n - i : STAGE;
        load(&stage, src + i * src_bytes, some);
        store(dst + i * dst_bytes, &stage, some);
    }
}

static void run(void *dst, mica_dtype to, const void *src, mica_dtype from, size_t n)
{
    size_t src_bytes = mica_dtype_bytes(from), dst_bytes = mica_dtype_bytes(to);
    if (from == to) {
        if (dst != src)
            memcpy(dst, src, n * dst_bytes);
        return;
    }
    /* f32 holds what comes from the small types; i32 it rounds, which is wrong before a second rounding. */
    bool through_f32 = is_float(from) || (is_float(to) && (from != MICA_I32 || to == MICA_F32));
    if (from == MICA_F32)
        from_f32[to](dst, src, n);
    else if (from == MICA_F64)
        from_f64[to](dst, src, n);
    else if (from == MICA_I64)
        from_i64[to](dst, src, n);
    else if (to == MICA_F32)
        to_f32[from](dst, src, n);
    else if (to == MICA_I64 && !through_f32)
        to_i64[from](dst, src, n);
    else if (through_f32)
        staged(dst, dst_bytes, from_f32[to], src, src_bytes, to_f32[from], n);
    else
        staged(dst, dst_bytes, from_i64[to], src, src_bytes, to_i64[from], n);
}

static void stream(float *dst, const float *src, size_t n)
{
    size_t ahead = (size_t)(-(uintptr_t)dst / sizeof *dst) % VF_LANES, i = ahead < n ? ahead : n;
    memcpy(dst, src, i * sizeof *dst);
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_stream(dst + i, vf_load(src + i));
    vf_stream_end();
    memcpy(dst + i, src + i, (n - i) * sizeof *dst);
}

const mica_convert_kernels VF_SYMBOL(mica_convert_kernels) = {.run = run, .stream = stream};
