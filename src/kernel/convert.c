/* Conversions; compiled once per instruction set.
 *
 * Every value passes through the widest type that holds it exactly: f32 (for small floats and small integers),
 * f64 or i64. That takes a loop from each of these three to every type, and one from every type to them,
 * instead of hundreds. u64 alone fits in none of them, and goes through f64 or i64 made to fit. */
#include "kernel/block.h"
#include "kernel/convert.h"
#if !defined(MICA_SMALL)
#include "kernel/convert_small.h"
#endif
#include "kernel/kernels.h"
#include "kernel/vec.h"
#include "tensor/tensor.h"

extern const mica_block_kernels VF_SYMBOL(mica_block_kernels);

/* Values converted at a time where neither side has the type in between: stays in the first cache, and is a whole
 * number of blocks. */
#if defined(MICA_SMALL)
#define STAGE 32
#else
#define STAGE MICA_MAX_BLOCK
#endif

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

/* A double from an integer in the same manner: beyond 53 bits the last twelve become one odd bit above them. */
VF_INLINE double odd_from_unsigned(uint64_t size)
{
    if (size >> 53 != 0)
        size = (size | ((size & 0xfffu) != 0 ? 0x1000u : 0u)) & ~(uint64_t)0xfffu;
    return (double)size;
}

VF_INLINE double odd_from_integer(int64_t x)
{
    return x < 0 ? -odd_from_unsigned(0 - (uint64_t)x) : odd_from_unsigned((uint64_t)x);
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

/* ---- Floats of a byte ---- */

#if !defined(MICA_SMALL)
#define BYTE_FLOAT(name, code)                                                                             \
    static void f32_from_##name(void *dst, const void *src, size_t n) { small_to_f32(dst, src, n, code); } \
    static void name##_from_f32(void *dst, const void *src, size_t n)                                      \
    {                                                                                                      \
        small_from_f32(dst, src, n, code, &(mica_cast_opts){0});                                           \
    }                                                                                                      \
    static void name##_from_f64(void *dst, const void *src, size_t n)                                      \
    {                                                                                                      \
        const double *in = src;                                                                            \
        for (size_t i = 0; i < n; i++) {                                                                   \
            float odd = odd_from_double(in[i]);                                                            \
            name##_from_f32((uint8_t *)dst + i, &odd, 1);                                                  \
        }                                                                                                  \
    }                                                                                                      \
    static void name##_from_i64(void *dst, const void *src, size_t n)                                      \
    {                                                                                                      \
        const int64_t *in = src;                                                                           \
        for (size_t i = 0; i < n; i++) {                                                                   \
            float odd = odd_from_double(odd_from_integer(in[i]));                                          \
            name##_from_f32((uint8_t *)dst + i, &odd, 1);                                                  \
        }                                                                                                  \
    }

BYTE_FLOAT(f8e4m3fn, MICA_F8E4M3FN)
BYTE_FLOAT(f8e4m3fnuz, MICA_F8E4M3FNUZ)
BYTE_FLOAT(f8e5m2, MICA_F8E5M2)
BYTE_FLOAT(f8e5m2fnuz, MICA_F8E5M2FNUZ)
BYTE_FLOAT(f8e8m0, MICA_F8E8M0)
BYTE_FLOAT(f4e2m1, MICA_F4E2M1)
#endif

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
PLAIN(f32, float, u32, uint32_t)
PLAIN(f32, float, u64, uint64_t)
PLAIN(f64, double, f32, float)
PLAIN(f64, double, i64, int64_t)
PLAIN(f64, double, u64, uint64_t)
PLAIN(i64, int64_t, i32, int32_t)
PLAIN(i64, int64_t, i16, int16_t)
PLAIN(i64, int64_t, i8, int8_t)
PLAIN(i64, int64_t, u8, uint8_t)
PLAIN(i64, int64_t, u32, uint32_t)
#if !defined(MICA_SMALL)
PLAIN(f32, float, u16, uint16_t)
PLAIN(i64, int64_t, u16, uint16_t)
#endif

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
INTEGER(u32, uint32_t, 0, UINT32_MAX, 0x1p32)
INTEGER(u64, uint64_t, 0, UINT64_MAX, 0x1p64)
#if !defined(MICA_SMALL)
INTEGER(u16, uint16_t, 0, UINT16_MAX, 0x1p16)
INTEGER(i4, int8_t, -8, 7, 0x1p3)
INTEGER(u4, uint8_t, 0, 15, 0x1p4)
INTEGER(i2, int8_t, -2, 1, 0x1p1)
INTEGER(u2, uint8_t, 0, 3, 0x1p2)
#endif

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
NARROW(u32, uint32_t, 0, UINT32_MAX)
NARROW(u64, uint64_t, 0, INT64_MAX)
#if !defined(MICA_SMALL)
NARROW(u16, uint16_t, 0, UINT16_MAX)
NARROW(i4, int8_t, -8, 7)
NARROW(u4, uint8_t, 0, 15)
NARROW(i2, int8_t, -2, 1)
NARROW(u2, uint8_t, 0, 3)
#endif

#define IS_NOT_ZERO(from, from_type)                                   \
    static void bool_from_##from(void *dst, const void *src, size_t n) \
    {                                                                  \
        uint8_t *out = dst;                                            \
        const from_type *in = src;                                     \
        for (size_t i = 0; i < n; i++)                                 \
            out[i] = in[i] != 0;                                       \
    }

IS_NOT_ZERO(f32, float)
IS_NOT_ZERO(f64, double)
IS_NOT_ZERO(i64, int64_t)

/* u64 made to fit. */
static void i64_from_u64(void *dst, const void *src, size_t n)
{
    int64_t *out = dst;
    const uint64_t *in = src;
    for (size_t i = 0; i < n; i++)
        out[i] = in[i] > INT64_MAX ? INT64_MAX : (int64_t)in[i];
}

static void odd_f64_from_u64(void *dst, const void *src, size_t n)
{
    double *out = dst;
    const uint64_t *in = src;
    for (size_t i = 0; i < n; i++)
        out[i] = odd_from_unsigned(in[i]);
}

/* ---- Which loops make a conversion ---- */

/* Every type but the three in between; where memory is scarce, not all of those that only imported models have. */
/* clang-format off */
#define COMMON(X, from) \
    X(I32, i32, from) X(I16, i16, from) X(I8, i8, from) X(U8, u8, from) X(U32, u32, from) \
    X(U64, u64, from) X(BOOL, bool, from)
#if defined(MICA_SMALL)
#define INTEGERS(X, from) COMMON(X, from)
#define FLOATS(X, from)   X(F16, f16, from) X(BF16, bf16, from)
#else
#define INTEGERS(X, from) \
    COMMON(X, from) X(U16, u16, from) X(I4, i4, from) X(U4, u4, from) X(I2, i2, from) X(U2, u2, from)
#define FLOATS(X, from) \
    X(F16, f16, from) X(BF16, bf16, from) X(F8E4M3FN, f8e4m3fn, from) X(F8E4M3FNUZ, f8e4m3fnuz, from) \
    X(F8E5M2, f8e5m2, from) X(F8E5M2FNUZ, f8e5m2fnuz, from) X(F8E8M0, f8e8m0, from) X(F4E2M1, f4e2m1, from)
#endif
/* clang-format on */
#define STORE(code, to, from) [MICA_##code] = to##_from_##from,
#define LOAD(code, from, to)  [MICA_##code] = to##_from_##from,

static convert_fn *const from_f32[MICA_DTYPE_COUNT] = {
    [MICA_F64] = f64_from_f32, [MICA_I64] = i64_from_f32, FLOATS(STORE, f32) INTEGERS(STORE, f32)};
static convert_fn *const from_f64[MICA_DTYPE_COUNT] = {
    [MICA_F32] = f32_from_f64, [MICA_I64] = i64_from_f64, FLOATS(STORE, f64) INTEGERS(STORE, f64)};
static convert_fn *const from_i64[MICA_DTYPE_COUNT] = {
    [MICA_F32] = f32_from_i64, [MICA_F64] = f64_from_i64, FLOATS(STORE, i64) INTEGERS(STORE, i64)};

/* The values of a byte are those of i8 or u8, whatever is left of its range. */
static convert_fn *const to_f32[MICA_DTYPE_COUNT] = {
#if !defined(MICA_SMALL)
    [MICA_U16] = f32_from_u16,
#endif
    FLOATS(LOAD, f32)[MICA_I32] = f32_from_i32,
    [MICA_I16] = f32_from_i16,
    [MICA_I8] = f32_from_i8,
    [MICA_I4] = f32_from_i8,
    [MICA_I2] = f32_from_i8,
    [MICA_U8] = f32_from_u8,
    [MICA_U4] = f32_from_u8,
    [MICA_U2] = f32_from_u8,
    [MICA_BOOL] = f32_from_u8,
    [MICA_U32] = f32_from_u32,
};
static convert_fn *const to_i64[MICA_DTYPE_COUNT] = {
#if !defined(MICA_SMALL)
    [MICA_U16] = i64_from_u16,
#endif
    [MICA_I32] = i64_from_i32, [MICA_I16] = i64_from_i16, [MICA_I8] = i64_from_i8, [MICA_I4] = i64_from_i8,
    [MICA_I2] = i64_from_i8,   [MICA_U8] = i64_from_u8,   [MICA_U4] = i64_from_u8, [MICA_U2] = i64_from_u8,
    [MICA_BOOL] = i64_from_u8, [MICA_U32] = i64_from_u32,
};

/* `load` into the type in between, then `store`. */
static void staged(char *dst, size_t dst_bytes, convert_fn *store, const char *src, size_t src_bytes,
                   convert_fn *load, size_t n)
{
    union {
        float f32[STAGE];
        double f64[STAGE];
        int64_t i64[STAGE];
    } stage;
    for (size_t i = 0; i < n; i += STAGE) {
        size_t some = n - i < STAGE ? n - i : STAGE;
        load(&stage, src + i * src_bytes, some);
        store(dst + i * dst_bytes, &stage, some);
    }
}

static void run_blocks(char *dst, mica_dtype to, const char *src, mica_dtype from, size_t n);

static void run_u64(void *dst, mica_dtype to, const void *src, size_t n)
{
    size_t dst_bytes = mica_dtype_bytes(to);
    if (to == MICA_F32)
        f32_from_u64(dst, src, n);
    else if (to == MICA_F64)
        f64_from_u64(dst, src, n);
    else if (to == MICA_I64)
        i64_from_u64(dst, src, n);
    else if (mica_is_float(to))
        staged(dst, dst_bytes, from_f64[to], src, sizeof(uint64_t), odd_f64_from_u64, n);
    else
        staged(dst, dst_bytes, from_i64[to], src, sizeof(uint64_t), i64_from_u64, n);
}

static void run(void *dst, mica_dtype to, const void *src, mica_dtype from, size_t n)
{
    if (mica_dtype_block(from) > 1 || mica_dtype_block(to) > 1) {
        run_blocks(dst, to, src, from, n);
        return;
    }
    size_t src_bytes = mica_dtype_bytes(from), dst_bytes = mica_dtype_bytes(to);
    if (from == to) {
        if (dst != src)
            memcpy(dst, src, n * dst_bytes);
        return;
    }
    /* f32 holds what comes from the small types; i32 and u32 it rounds, which is wrong before a second rounding. */
    bool wide = from == MICA_I32 || from == MICA_U32;
    bool through_f32 = mica_is_float(from) || (mica_is_float(to) && (!wide || to == MICA_F32));
    if (from == MICA_F32)
        from_f32[to](dst, src, n);
    else if (from == MICA_F64)
        from_f64[to](dst, src, n);
    else if (from == MICA_I64)
        from_i64[to](dst, src, n);
    else if (from == MICA_U64)
        run_u64(dst, to, src, n);
    else if (to == MICA_F32)
        to_f32[from](dst, src, n);
    else if (to == MICA_I64 && !through_f32)
        to_i64[from](dst, src, n);
    else if (through_f32)
        staged(dst, dst_bytes, from_f32[to], src, src_bytes, to_f32[from], n);
    else
        staged(dst, dst_bytes, from_i64[to], src, src_bytes, to_i64[from], n);
}

#if defined(MICA_SMALL)
/* Tensors of blocks are refused: src/tensor/tensor.c. */
static void run_blocks(char *dst, mica_dtype to, const char *src, mica_dtype from, size_t n)
{
    (void)dst, (void)to, (void)src, (void)from, (void)n;
}
#else
/* Where one side or both have blocks: through f32. */
static void run_blocks(char *dst, mica_dtype to, const char *src, mica_dtype from, size_t n)
{
    size_t src_block = mica_dtype_block(from), src_bytes = mica_dtype_bytes(from);
    size_t dst_block = mica_dtype_block(to), dst_bytes = mica_dtype_bytes(to);
    if (from == to) {
        if (dst != src)
            memcpy(dst, src, n / dst_block * dst_bytes);
    } else if (to == MICA_F32) {
        VF_SYMBOL(mica_block_kernels).decode[from]((float *)(void *)dst, (const uint8_t *)src, n / src_block);
    } else if (from == MICA_F32) {
        VF_SYMBOL(mica_block_kernels)
            .encode[to]((uint8_t *)dst, (const float *)(const void *)src, n / dst_block);
    } else {
        float stage[STAGE];
        for (size_t i = 0; i < n; i += STAGE) {
            size_t some = n - i < STAGE ? n - i : STAGE;
            run(stage, MICA_F32, src + i / src_block * src_bytes, from, some);
            run(dst + i / dst_block * dst_bytes, to, stage, MICA_F32, some);
        }
    }
}

#endif

#if defined(MICA_SMALL)
static void cast(void *dst, mica_dtype to, const void *src, mica_dtype from, size_t n,
                 const mica_cast_opts *opts)
{
    (void)opts;
    run(dst, to, src, from, n);
}
#else
/* The lower bits of an integer, as a value of the type. */
static void wrap_from_i64(void *dst, mica_dtype to, const int64_t *in, size_t n)
{
#define WRAP(code, type)                    \
    case MICA_##code:                       \
        for (size_t i = 0; i < n; i++)      \
            ((type *)dst)[i] = (type)in[i]; \
        break;
#define WRAP_BITS(code, bits, sign)                                                             \
    case MICA_##code:                                                                           \
        for (size_t i = 0; i < n; i++)                                                          \
            ((uint8_t *)dst)[i] = (uint8_t)(((in[i] & ((1 << (bits)) - 1)) ^ (sign)) - (sign)); \
        break;
    switch (to) {
        WRAP(I64, int64_t)
        WRAP(U64, uint64_t)
        WRAP(I32, int32_t)
        WRAP(U32, uint32_t)
        WRAP(I16, int16_t)
        WRAP(U16, uint16_t)
        WRAP(I8, int8_t)
        WRAP(U8, uint8_t)
        WRAP_BITS(I4, 4, 8)
        WRAP_BITS(I2, 2, 2)
        WRAP_BITS(U4, 4, 0)
        WRAP_BITS(U2, 2, 0)
    default:
        break;
    }
}

/* Into f32, so that a second rounding gives what one would have given. */
static void odd_f32(float *out, const void *src, mica_dtype from, size_t n)
{
    if (from == MICA_F64)
        for (size_t i = 0; i < n; i++)
            out[i] = odd_from_double(((const double *)src)[i]);
    else if (from == MICA_I64)
        for (size_t i = 0; i < n; i++)
            out[i] = odd_from_double(odd_from_integer(((const int64_t *)src)[i]));
    else if (from == MICA_U64)
        for (size_t i = 0; i < n; i++)
            out[i] = odd_from_double(odd_from_unsigned(((const uint64_t *)src)[i]));
    else if (from == MICA_I32)
        for (size_t i = 0; i < n; i++)
            out[i] = odd_from_double(((const int32_t *)src)[i]);
    else if (from == MICA_U32)
        for (size_t i = 0; i < n; i++)
            out[i] = odd_from_double(((const uint32_t *)src)[i]);
    else
        run(out, MICA_F32, src, from, n);
}

static void cast(void *dst, mica_dtype to, const void *src, mica_dtype from, size_t n,
                 const mica_cast_opts *opts)
{
    size_t src_bytes = mica_dtype_bytes(from), dst_bytes = mica_dtype_bytes(to);
    bool wraps = opts->wrap && mica_is_integer(to), small = mica_is_small_float(to);
    if (from == to || (!wraps && !small)) {
        run(dst, to, src, from, n);
        return;
    }
    union {
        float f32[STAGE];
        int64_t i64[STAGE];
    } stage;
    for (size_t i = 0; i < n; i += STAGE) {
        size_t some = n - i < STAGE ? n - i : STAGE;
        const char *in = (const char *)src + i * src_bytes;
        char *out = (char *)dst + i * dst_bytes;
        if (small) {
            odd_f32(stage.f32, in, from, some);
            small_from_f32((uint8_t *)out, stage.f32, some, to, opts);
        } else {
            if (from == MICA_U64)
                memcpy(stage.i64, in, some * sizeof stage.i64[0]);
            else
                run(stage.i64, MICA_I64, in, from, some);
            wrap_from_i64(out, to, stage.i64, some);
        }
    }
}
#endif

static void stream(float *dst, const float *src, size_t n)
{
    size_t ahead = (size_t)(-(uintptr_t)dst / sizeof *dst) % VF_LANES, i = ahead < n ? ahead : n;
    memcpy(dst, src, i * sizeof *dst);
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_stream(dst + i, vf_load(src + i));
    vf_stream_end();
    memcpy(dst + i, src + i, (n - i) * sizeof *dst);
}

/* ---- Transposition ---- */

/* Eight elements as the compiler's own vector, at any address: it finds the shuffles of any instruction set. */
typedef uint32_t eight __attribute__((vector_size(32), aligned(4), may_alias));
/* Of them, for which compilers find plain instructions. */
typedef uint64_t pairs __attribute__((vector_size(32)));

#define LOW(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#if defined(MICA_SMALL) /* numbers one by one */
#define EVEN(a, b)  __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define ODD(a, b)   __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define FIRST(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define LAST(a, b)  __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
#else
#define EVEN(a, b)  ((eight)__builtin_shufflevector((pairs)a, (pairs)b, 0, 4, 2, 6))
#define ODD(a, b)   ((eight)__builtin_shufflevector((pairs)a, (pairs)b, 1, 5, 3, 7))
#define FIRST(a, b) ((eight)__builtin_shufflevector((pairs)a, (pairs)b, 0, 1, 4, 5))
#define LAST(a, b)  ((eight)__builtin_shufflevector((pairs)a, (pairs)b, 2, 3, 6, 7))
#endif

#define ROW(k)    (*(const eight *)(src + (k)*src_stride))
#define COLUMN(k) (*(eight *)(dst + (k)*dst_stride))

/* Within each half: pairs of rows interleave, then pairs of pairs; then the halves change places. Written out, as
 * compilers keep an array of vectors in memory. */
VF_INLINE void transpose_eight(uint32_t *dst, ptrdiff_t dst_stride, const uint32_t *src, ptrdiff_t src_stride)
{
    eight a0 = ROW(0), a1 = ROW(1), a2 = ROW(2), a3 = ROW(3), a4 = ROW(4), a5 = ROW(5), a6 = ROW(6),
          a7 = ROW(7);
    eight b0 = LOW(a0, a1), b1 = HIGH(a0, a1), b2 = LOW(a2, a3), b3 = HIGH(a2, a3), b4 = LOW(a4, a5),
          b5 = HIGH(a4, a5), b6 = LOW(a6, a7), b7 = HIGH(a6, a7);
    a0 = EVEN(b0, b2), a1 = ODD(b0, b2), a2 = EVEN(b1, b3), a3 = ODD(b1, b3), a4 = EVEN(b4, b6),
    a5 = ODD(b4, b6), a6 = EVEN(b5, b7), a7 = ODD(b5, b7);
    COLUMN(0) = FIRST(a0, a4);
    COLUMN(1) = FIRST(a1, a5);
    COLUMN(2) = FIRST(a2, a6);
    COLUMN(3) = FIRST(a3, a7);
    COLUMN(4) = LAST(a0, a4);
    COLUMN(5) = LAST(a1, a5);
    COLUMN(6) = LAST(a2, a6);
    COLUMN(7) = LAST(a3, a7);
}

static void transpose(uint32_t *dst, ptrdiff_t dst_stride, const uint32_t *src, ptrdiff_t src_stride,
                      ptrdiff_t rows, ptrdiff_t columns)
{
    ptrdiff_t r = 0;
    for (; r + 8 <= rows; r += 8) {
        ptrdiff_t c = 0;
        for (; c + 8 <= columns; c += 8)
            transpose_eight(dst + c * dst_stride + r, dst_stride, src + r * src_stride + c, src_stride);
        for (; c < columns; c++)
            for (ptrdiff_t k = r; k < r + 8; k++)
                dst[c * dst_stride + k] = src[k * src_stride + c];
    }
    for (; r < rows; r++)
        for (ptrdiff_t c = 0; c < columns; c++)
            dst[c * dst_stride + r] = src[r * src_stride + c];
}

const mica_convert_kernels VF_SYMBOL(mica_convert_kernels) = {
    .run = run, .cast = cast, .stream = stream, .transpose = transpose};

MICA_KERNEL_SYMBOL(convert, run, run)
MICA_KERNEL_SYMBOL(convert, cast, cast)
MICA_KERNEL_SYMBOL(convert, stream, stream)
MICA_KERNEL_SYMBOL(convert, transpose, transpose)
