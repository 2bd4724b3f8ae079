/* Conversions; compiled once per instruction set.
 *
 * Every value passes through the widest type that holds it exactly: f32 (for f16, bf16 and small integers),
 * f64 or i64. That takes a loop from each of these three to every type, and one from every type to them,
 * instead of eighty-one. */
#include "kernel/block.h"
#include "kernel/convert.h"
#include "kernel/kernels.h"
#include "kernel/vec.h"

extern const mica_block_kernels VF_SYMBOL(mica_block_kernels);

/* Values converted at a time where neither side has the type in between: stays in the first cache, and is a whole
 * number of blocks. */
#define STAGE MICA_MAX_BLOCK

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

static void run_blocks(char *dst, mica_dtype to, const char *src, mica_dtype from, size_t n);

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

#define LOW(a, b)   __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH(a, b)  __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define EVEN(a, b)  __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define ODD(a, b)   __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define FIRST(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define LAST(a, b)  __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)

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
    .run = run, .stream = stream, .transpose = transpose};

MICA_KERNEL_SYMBOL(convert, run, run)
MICA_KERNEL_SYMBOL(convert, stream, stream)
MICA_KERNEL_SYMBOL(convert, transpose, transpose)
