/* Compiled once per instruction set, as the kernels are. */
#include "kernel/isa/probe.h"
#include "kernel/vmath.h"

/* ---- Primitives ---- */

#define PROBE(name, result)                                                        \
    static void run_##name(void *out, const void *a, const void *b, const void *c) \
    {                                                                              \
        (void)a, (void)b, (void)c;                                                 \
        result;                                                                    \
    }
#define A            vf_load(a)
#define B            vf_load(b)
#define C            vf_load(c)
#define IA           vi_load(a)
#define IB           vi_load(b)
#define IC           vi_load(c)
#define OUT_FLOAT(v) vf_store(out, v)
#define OUT_INT(v)   vi_store(out, v)
#define OUT_MASK(m)  vi_store(out, vi_select(m, vi_set1(1), vi_set1(0)))
#define LOW(call) \
    vf low;       \
    (void)(call); \
    vf_store(out, low)

/* X(name, kind, what it writes) */
#define PRIMITIVES(X)                                                                \
    X(vf_load_store, PROBE_EXACT, OUT_FLOAT(A))                                      \
    X(vf_set1, PROBE_EXACT, OUT_FLOAT(vf_set1(1.5f)))                                \
    X(vf_zero, PROBE_EXACT, OUT_FLOAT(vf_zero()))                                    \
    X(vf_add, PROBE_EXACT, OUT_FLOAT(vf_add(A, B)))                                  \
    X(vf_sub, PROBE_EXACT, OUT_FLOAT(vf_sub(A, B)))                                  \
    X(vf_mul, PROBE_EXACT, OUT_FLOAT(vf_mul(A, B)))                                  \
    X(vf_div, PROBE_EXACT, OUT_FLOAT(vf_div(A, B)))                                  \
    X(vf_sqrt, PROBE_EXACT, OUT_FLOAT(vf_sqrt(A)))                                   \
    X(vf_fma, PROBE_FUSED, OUT_FLOAT(vf_fma(A, B, C)))                               \
    X(vf_fnma, PROBE_FUSED_MINUS, OUT_FLOAT(vf_fnma(A, B, C)))                       \
    X(vf_two_product, PROBE_MODERATE, vf low; OUT_FLOAT(vf_two_product(A, B, &low))) \
    X(vf_two_product_low, PROBE_MODERATE, LOW(vf_two_product(A, B, &low)))           \
    X(vf_min, PROBE_NAN_IN_B, OUT_FLOAT(vf_min(A, B)))                               \
    X(vf_max, PROBE_NAN_IN_B, OUT_FLOAT(vf_max(A, B)))                               \
    X(vf_min_nan, PROBE_ORDER, OUT_FLOAT(vf_min_nan(A, B)))                          \
    X(vf_max_nan, PROBE_ORDER, OUT_FLOAT(vf_max_nan(A, B)))                          \
    X(vf_abs, PROBE_EXACT, OUT_FLOAT(vf_abs(A)))                                     \
    X(vf_neg, PROBE_EXACT, OUT_FLOAT(vf_neg(A)))                                     \
    X(vf_copysign, PROBE_EXACT, OUT_FLOAT(vf_copysign(A, B)))                        \
    X(vf_round, PROBE_EXACT, OUT_FLOAT(vf_round(A)))                                 \
    X(vf_floor, PROBE_EXACT, OUT_FLOAT(vf_floor(A)))                                 \
    X(vf_ceil, PROBE_EXACT, OUT_FLOAT(vf_ceil(A)))                                   \
    X(vf_trunc, PROBE_EXACT, OUT_FLOAT(vf_trunc(A)))                                 \
    X(vf_lt, PROBE_EXACT, OUT_MASK(vf_lt(A, B)))                                     \
    X(vf_le, PROBE_EXACT, OUT_MASK(vf_le(A, B)))                                     \
    X(vf_eq, PROBE_EXACT, OUT_MASK(vf_eq(A, B)))                                     \
    X(vf_ne, PROBE_EXACT, OUT_MASK(vf_ne(A, B)))                                     \
    X(vf_ge, PROBE_EXACT, OUT_MASK(vf_ge(A, B)))                                     \
    X(vf_gt, PROBE_EXACT, OUT_MASK(vf_gt(A, B)))                                     \
    X(vf_isnan, PROBE_EXACT, OUT_MASK(vf_isnan(A)))                                  \
    X(vm_and, PROBE_EXACT, OUT_MASK(vm_and(vf_lt(A, B), vf_lt(B, C))))               \
    X(vm_or, PROBE_EXACT, OUT_MASK(vm_or(vf_lt(A, B), vf_lt(B, C))))                 \
    X(vm_not, PROBE_EXACT, OUT_MASK(vm_not(vf_lt(A, B))))                            \
    X(vf_select, PROBE_EXACT, OUT_FLOAT(vf_select(vf_lt(A, B), B, C)))               \
    X(vi_load_store, PROBE_EXACT, OUT_INT(IA))                                       \
    X(vi_set1, PROBE_EXACT, OUT_INT(vi_set1(-7)))                                    \
    X(vi_add, PROBE_EXACT, OUT_INT(vi_add(IA, IB)))                                  \
    X(vi_sub, PROBE_EXACT, OUT_INT(vi_sub(IA, IB)))                                  \
    X(vi_mul, PROBE_EXACT, OUT_INT(vi_mul(IA, IB)))                                  \
    X(vi_mulhi_u, PROBE_EXACT, OUT_INT(vi_mulhi_u(IA, IB)))                          \
    X(vi_and, PROBE_EXACT, OUT_INT(vi_and(IA, IB)))                                  \
    X(vi_or, PROBE_EXACT, OUT_INT(vi_or(IA, IB)))                                    \
    X(vi_xor, PROBE_EXACT, OUT_INT(vi_xor(IA, IB)))                                  \
    X(vi_shl_1, PROBE_EXACT, OUT_INT(vi_shl(IA, 1)))                                 \
    X(vi_shl_23, PROBE_EXACT, OUT_INT(vi_shl(IA, 23)))                               \
    X(vi_shr_1, PROBE_EXACT, OUT_INT(vi_shr(IA, 1)))                                 \
    X(vi_shr_31, PROBE_EXACT, OUT_INT(vi_shr(IA, 31)))                               \
    X(vi_sar_1, PROBE_EXACT, OUT_INT(vi_sar(IA, 1)))                                 \
    X(vi_sar_31, PROBE_EXACT, OUT_INT(vi_sar(IA, 31)))                               \
    X(vi_eq, PROBE_EXACT, OUT_MASK(vi_eq(IA, IB)))                                   \
    X(vi_gt, PROBE_EXACT, OUT_MASK(vi_gt(IA, IB)))                                   \
    X(vi_select, PROBE_EXACT, OUT_INT(vi_select(vi_gt(IA, IB), IB, IC)))             \
    X(vf_from_vi, PROBE_EXACT, OUT_FLOAT(vf_from_vi(IA)))                            \
    X(vi_from_vf, PROBE_FITS_INT, OUT_INT(vi_from_vf(A)))                            \
    X(vf_pow2i, PROBE_EXPONENT, OUT_FLOAT(vf_pow2i(IA)))

#define DEFINE_PRIMITIVE(name, kind, result) PROBE(name, result)
PRIMITIVES(DEFINE_PRIMITIVE)

static const probe_entry entries[] = {
#define PRIMITIVE_ENTRY(name, kind, result) {#name, kind, run_##name},
    PRIMITIVES(PRIMITIVE_ENTRY)};

static void load_tail(float *out, const float *p, size_t n) { vf_store(out, vf_load_tail(p, n)); }
static void load_where(float *out, const float *p, size_t first, size_t end)
{
    vf_store(out, vf_load_where(p, vm_and(vm_first(end), vm_not(vm_first(first)))));
}
static void store_tail(float *p, const float *in, size_t n) { vf_store_tail(p, vf_load(in), n); }
static void int_load_tail(int32_t *out, const int32_t *p, size_t n) { vi_store(out, vi_load_tail(p, n)); }
static void int_store_tail(int32_t *p, const int32_t *in, size_t n) { vi_store_tail(p, vi_load(in), n); }
static void stream(float *p, const float *in)
{
    vf_stream(p, vf_load(in));
    vf_stream_end();
}
static void gather(float *out, const float *p, ptrdiff_t stride) { vf_store(out, vf_gather(p, stride)); }
static void scatter(float *p, ptrdiff_t stride, const float *in) { vf_scatter(p, stride, vf_load(in)); }
static float sum(const float *in) { return vf_sum(vf_load(in)); }
static void sums(float *out, const float *in)
{
    vf rows[VF_LANES];
    for (size_t i = 0; i < VF_LANES; i++)
        rows[i] = vf_load(in + i * VF_LANES);
    vf_store(out, vf_sums(rows));
}
static float hmin(const float *in) { return vf_hmin(vf_load(in)); }
static float hmax(const float *in) { return vf_hmax(vf_load(in)); }

static int first(size_t n, size_t i)
{
    int32_t lanes[VF_LANES];
    vm mask = vm_first(n);
    vi_store(lanes, vi_select(mask, vi_add(vi_iota(), vi_set1(1)), vi_set1(0)));
    bool set = lanes[i] == (int32_t)i + 1;
    uint8_t bytes[4 * VF_LANES];
    vm_store_bytes(bytes, (vm[]){mask, vm_not(mask), vm_first(0), vm_first(VF_LANES)});
    if (bytes[i] != set || bytes[VF_LANES + i] != !set || bytes[2 * VF_LANES + i] != 0 ||
        bytes[3 * VF_LANES + i] != 1)
        return -1;
    return (set ? 1 : 0) | (vm_any(mask) ? 2 : 0) | (vm_all(mask) ? 4 : 0);
}

#define HALF(half)                                                            \
    static void from_##half(float *dst, const uint16_t *src, size_t n)        \
    {                                                                         \
        size_t i = 0;                                                         \
        for (; i + VF_LANES <= n; i += VF_LANES)                              \
            vf_store(dst + i, vf_load_##half(src + i));                       \
        vf_store_tail(dst + i, vf_load_##half##_tail(src + i, n - i), n - i); \
    }                                                                         \
    static void to_##half(uint16_t *dst, const float *src, size_t n)          \
    {                                                                         \
        size_t i = 0;                                                         \
        for (; i + VF_LANES <= n; i += VF_LANES)                              \
            vf_store_##half(dst + i, vf_load(src + i));                       \
        vf_store_##half##_tail(dst + i, vf_load_tail(src + i, n - i), n - i); \
    }
HALF(f16)
HALF(bf16)

/* ---- Functions ---- */

/* vf_exp_down takes what is at most 1. */
VF_INLINE vf vf_exp_below_1(vf x) { return vf_exp_down(vf_min(vf_set1(1.0f), x)); }

#define FUNCTIONS(X) \
    X(exp)           \
    X(exp_below_1)   \
    X(expm1)         \
    X(log)           \
    X(log1p)         \
    X(rsqrt)         \
    X(tanh)          \
    X(sigmoid)       \
    X(silu)          \
    X(softplus)      \
    X(erf)           \
    X(phi)           \
    X(gelu)          \
    X(gelu_tanh)     \
    X(sin)           \
    X(cos)           \
    X(tan)           \
    X(asin)          \
    X(acos)          \
    X(atan)          \
    X(sinh)          \
    X(cosh)          \
    X(asinh)         \
    X(acosh)         \
    X(atanh)         \
    X(silu_grad)     \
    X(gelu_grad)     \
    X(gelu_tanh_grad)

#define DEFINE_FUNCTION(name)                                                 \
    static void map_##name(float *dst, const float *x, size_t n)              \
    {                                                                         \
        size_t i = 0;                                                         \
        for (; i + VF_LANES <= n; i += VF_LANES)                              \
            vf_store(dst + i, vf_##name(vf_load(x + i)));                     \
        vf_store_tail(dst + i, vf_##name(vf_load_tail(x + i, n - i)), n - i); \
    }
FUNCTIONS(DEFINE_FUNCTION)

static void map_pow(float *dst, const float *x, const float *y, size_t n)
{
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(dst + i, vf_pow(vf_load(x + i), vf_load(y + i)));
    vf_store_tail(dst + i, vf_pow(vf_load_tail(x + i, n - i), vf_load_tail(y + i, n - i)), n - i);
}

static const probe_function functions[] = {
#define FUNCTION_ENTRY(name) {#name, map_##name},
    FUNCTIONS(FUNCTION_ENTRY)};

extern const probe_table VF_SYMBOL(probe_table);
const probe_table VF_SYMBOL(probe_table) = {
    .isa = VF_TEXT(VF_NAME),
    .lanes = VF_LANES,
    .has_fma = VF_HAS_FMA,
    .entries = entries,
    .entry_count = sizeof entries / sizeof *entries,
    .functions = functions,
    .function_count = sizeof functions / sizeof *functions,
    .pow = map_pow,
    .load_tail = load_tail,
    .load_where = load_where,
    .store_tail = store_tail,
    .vi_load_tail = int_load_tail,
    .vi_store_tail = int_store_tail,
    .stream = stream,
    .gather = gather,
    .scatter = scatter,
    .sum = sum,
    .sums = sums,
    .hmin = hmin,
    .hmax = hmax,
    .first = first,
    .from_f16 = from_f16,
    .to_f16 = to_f16,
    .from_bf16 = from_bf16,
    .to_bf16 = to_bf16,
};
