/* Arithmetic in other types than f32, against 128-bit integers and doubles: random values, among them the extremes. */
#include <math.h>
#include <string.h>

#include "test.h"

typedef __int128 wide;

static const mica_dtype integers[] = {MICA_I64, MICA_I32, MICA_I16, MICA_I8,
                                      MICA_U8,  MICA_U16, MICA_U32, MICA_U64};
enum { INTEGERS = 8, N = 60 };

static bool is_signed(mica_dtype d)
{
    return d == MICA_I64 || d == MICA_I32 || d == MICA_I16 || d == MICA_I8;
}

/* The lower bits of x, as the type reads them. */
static wide wrap(mica_dtype d, wide x)
{
    int bits = 8 * (int)mica_dtype_bytes(d);
    unsigned __int128 low = (unsigned __int128)x & ((((unsigned __int128)1) << bits) - 1);
    return is_signed(d) && (low >> (bits - 1)) ? (wide)low - ((wide)1 << bits) : (wide)low;
}

static wide get(mica_dtype d, const void *data, int i)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)data + (size_t)i * mica_dtype_bytes(d), mica_dtype_bytes(d));
    return wrap(d, (wide)bits);
}

static void set(mica_dtype d, void *data, int i, wide x)
{
    uint64_t bits = (uint64_t)x;
    memcpy((char *)data + (size_t)i * mica_dtype_bytes(d), &bits, mica_dtype_bytes(d));
}

/* Small numbers, extremes, and anything. */
static wide draw(test_random *r, mica_dtype d)
{
    if (test_chance(r, 60))
        return wrap(d, test_int(r, is_signed(d) ? -4 : 0, 8));
    if (test_chance(r, 30))
        return wrap(d, ((wide)1 << (8 * (int)mica_dtype_bytes(d) - 1)) - test_int(r, 0, 2));
    return wrap(d, (wide)test_next(r));
}

static wide power(mica_dtype d, wide a, wide b)
{
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 != 0 ? -1 : 1) : 0;
    unsigned __int128 base = (unsigned __int128)a, result = 1;
    for (unsigned __int128 left = (unsigned __int128)b; left > 0; left >>= 1, base *= base)
        result = left & 1 ? result * base : result;
    return wrap(d, (wide)result);
}

static wide shift(mica_dtype d, wide a, wide b, bool left)
{
    int bits = 8 * (int)mica_dtype_bytes(d);
    bool all = b < 0 || b >= bits;
    if (left)
        return all ? 0 : wrap(d, (wide)((unsigned __int128)a << (int)b));
    return all ? (a < 0 ? -1 : 0) : a >> (int)b;
}

typedef mica_status binary_fn(mica_context *, const mica_tensor *, const mica_tensor *, const mica_tensor *);

static const struct {
    const char *name;
    binary_fn *run;
    bool compares;
} binaries[] = {{"add", mica_add, false},
                {"sub", mica_sub, false},
                {"mul", mica_mul, false},
                {"div", mica_div, false},
                {"min", mica_min, false},
                {"max", mica_max, false},
                {"mod", mica_mod, false},
                {"fmod", mica_fmod, false},
                {"pow", mica_pow, false},
                {"bit_and", mica_bit_and, false},
                {"bit_or", mica_bit_or, false},
                {"bit_xor", mica_bit_xor, false},
                {"shift_left", mica_shift_left, false},
                {"shift_right", mica_shift_right, false},
                {"eq", mica_eq, true},
                {"ne", mica_ne, true},
                {"lt", mica_lt, true},
                {"le", mica_le, true},
                {"gt", mica_gt, true},
                {"ge", mica_ge, true}};
enum { BINARIES = sizeof binaries / sizeof *binaries };

static wide expect_binary(int op, mica_dtype d, wide a, wide b)
{
    wide rest = b != 0 ? a % b : 0;
    switch (op) {
    case 0:
        return wrap(d, a + b);
    case 1:
        return wrap(d, a - b);
    case 2:
        return wrap(d, (wide)((unsigned __int128)a * (unsigned __int128)b));
    case 3:
        return b != 0 ? wrap(d, a / b) : 0;
    case 4:
        return a < b ? a : b;
    case 5:
        return a > b ? a : b;
    case 6:
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    case 7:
        return rest;
    case 8:
        return power(d, a, b);
    case 9:
        return a & b;
    case 10:
        return a | b;
    case 11:
        return a ^ b;
    case 12:
    case 13:
        return shift(d, a, b, op == 12);
    default:
        return (wide[]){a == b, a != b, a<b, a <= b, a> b, a >= b}[op - 14];
    }
}

TEST(typed_arithmetic_of_two_integers)
{
    mica_context *ctx = test_context(2);
    test_random r = test_seed(21);
    for (int round = 0; round < 40; round++) {
        for (int t = 0; t < INTEGERS; t++) {
            mica_dtype d = integers[t];
            _Alignas(8) char x[N * 8], y[N * 8], z[2 * N * 8];
            for (int i = 0; i < N; i++) {
                set(d, x, i, draw(&r, d));
                set(d, y, i, draw(&r, d));
            }
            /* a [6, 10], transposed or not; b [10] or [6, 10]; dst with gaps or not */
            bool row = test_chance(&r, 30), turned = test_chance(&r, 30), gaps = test_chance(&r, 30);
            mica_tensor a, b, dst;
            CHECK_OK(ctx, mica_tensor_init(ctx, &a, x, d, 2,
                                           turned ? (mica_index[]){10, 6} : (mica_index[]){6, 10}));
            if (turned)
                CHECK_OK(ctx, mica_view_transpose(ctx, &a, &a, 0, 1));
            CHECK_OK(ctx, mica_tensor_init(ctx, &b, y, d, row ? 1 : 2,
                                           row ? (mica_index[]){10} : (mica_index[]){6, 10}));
            for (int op = 0; op < BINARIES; op++) {
                mica_dtype to = binaries[op].compares ? (test_chance(&r, 50) ? MICA_BOOL : MICA_U8) : d;
                CHECK_OK(ctx, mica_tensor_init(ctx, &dst, z, to, 2, (mica_index[]){6, 10}));
                if (gaps)
                    dst.stride[0] = 20, dst.stride[1] = 2;
                CHECK_OK(ctx, binaries[op].run(ctx, &dst, &a, &b));
                for (int i = 0; i < N; i++) {
                    wide p = get(d, x, turned ? i % 10 * 6 + i / 10 : i), q = get(d, y, row ? i % 10 : i);
                    wide want = expect_binary(op, d, p, q), got = get(to, z, gaps ? 2 * i : i);
                    CHECK_MSG(got == want, "%s of %s %lld %lld is %lld, not %lld", binaries[op].name,
                              mica_dtype_name(d), (long long)p, (long long)q, (long long)got,
                              (long long)want);
                }
            }
        }
    }
}

TEST(typed_arithmetic_of_one_integer)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(22);
    static mica_status (*const unary[])(mica_context *, const mica_tensor *, const mica_tensor *) = {
        mica_neg, mica_abs, mica_sign, mica_square, mica_bit_not};
    for (int t = 0; t < INTEGERS; t++) {
        mica_dtype d = integers[t];
        _Alignas(8) char x[N * 8], z[N * 8];
        mica_tensor a, dst;
        for (int i = 0; i < N; i++)
            set(d, x, i, draw(&r, d));
        CHECK_OK(ctx, mica_tensor_init(ctx, &a, x, d, 1, (mica_index[]){N}));
        CHECK_OK(ctx, mica_tensor_init(ctx, &dst, z, d, 1, (mica_index[]){N}));
        for (int op = 0; op < 5; op++) {
            CHECK_OK(ctx, unary[op](ctx, &dst, &a));
            for (int i = 0; i < N; i++) {
                wide p = get(d, x, i), want[] = {-p, p < 0 ? -p : p, (p > 0) - (p < 0),
                                                 (wide)((unsigned __int128)p * (unsigned __int128)p), ~p};
                CHECK_MSG(get(d, z, i) == wrap(d, want[op]), "operation %d of %s %lld", op,
                          mica_dtype_name(d), (long long)p);
            }
        }
        CHECK(mica_sqrt(ctx, &dst, &a) == MICA_ERR_DTYPE);
    }
}

TEST(typed_doubles_are_computed_in_double)
{
    mica_context *ctx = test_context(1);
    double x[] = {1e300, -7.5, 0.1, 3, (double)NAN}, y[] = {1e-300, 2, 0.2, -3, 1}, z[5];
    mica_tensor a, b, dst;
    CHECK_OK(ctx, mica_tensor_init(ctx, &a, x, MICA_F64, 1, (mica_index[]){5}));
    CHECK_OK(ctx, mica_tensor_init(ctx, &b, y, MICA_F64, 1, (mica_index[]){5}));
    CHECK_OK(ctx, mica_tensor_init(ctx, &dst, z, MICA_F64, 1, (mica_index[]){5}));
    CHECK_OK(ctx, mica_add(ctx, &dst, &a, &b));
    CHECK(z[0] == 1e300 && z[2] == 0.1 + 0.2 && isnan(z[4]));
    CHECK_OK(ctx, mica_div(ctx, &dst, &a, &b));
    CHECK(isinf(z[0]) && z[1] == -3.75 && z[2] == 0.1 / 0.2);
    CHECK_OK(ctx, mica_mod(ctx, &dst, &a, &b));
    CHECK(z[1] == 0.5 && z[3] == 0);
    CHECK_OK(ctx, mica_fmod(ctx, &dst, &a, &b));
    CHECK(z[1] == -1.5);
    CHECK_OK(ctx, mica_max(ctx, &dst, &a, &b));
    CHECK(z[0] == 1e300 && z[1] == 2 && isnan(z[4]));
    CHECK_OK(ctx, mica_neg(ctx, &dst, &a));
    CHECK(z[2] == -0.1);
}

TEST(typed_choices_of_every_type)
{
    mica_context *ctx = test_context(1);
    uint8_t cond[] = {1, 0, 1, 0};
    for (mica_dtype d = 0; d < MICA_Q4_0; d++) {
        _Alignas(8) unsigned char x[32], y[32], z[32] = {0};
        size_t width = mica_dtype_bytes(d);
        for (int i = 0; i < 32; i++)
            x[i] = (unsigned char)i, y[i] = (unsigned char)(100 + i);
        mica_tensor c, a, b, dst;
        CHECK_OK(ctx, mica_tensor_init(ctx, &c, cond, MICA_BOOL, 1, (mica_index[]){4}));
        CHECK_OK(ctx, mica_tensor_init(ctx, &a, x, d, 1, (mica_index[]){4}));
        CHECK_OK(ctx, mica_tensor_init(ctx, &b, y, d, 1, (mica_index[]){4}));
        CHECK_OK(ctx, mica_tensor_init(ctx, &dst, z, d, 1, (mica_index[]){4}));
        CHECK_OK(ctx, mica_where(ctx, &dst, &c, &a, &b));
        for (size_t i = 0; i < 4; i++)
            CHECK_MSG(memcmp(z + i * width, (cond[i] ? x : y) + i * width, width) == 0, "%s",
                      mica_dtype_name(d));
    }
}

TEST(typed_logic_of_bools)
{
    mica_context *ctx = test_context(1);
    uint8_t x[] = {0, 0, 1, 1}, y[] = {0, 1, 0, 1}, z[4];
    mica_tensor a, b, dst;
    CHECK_OK(ctx, mica_tensor_init(ctx, &a, x, MICA_BOOL, 1, (mica_index[]){4}));
    CHECK_OK(ctx, mica_tensor_init(ctx, &b, y, MICA_BOOL, 1, (mica_index[]){4}));
    CHECK_OK(ctx, mica_tensor_init(ctx, &dst, z, MICA_BOOL, 1, (mica_index[]){4}));
    CHECK_OK(ctx, mica_bit_and(ctx, &dst, &a, &b));
    CHECK(memcmp(z, (uint8_t[]){0, 0, 0, 1}, 4) == 0);
    CHECK_OK(ctx, mica_bit_or(ctx, &dst, &a, &b));
    CHECK(memcmp(z, (uint8_t[]){0, 1, 1, 1}, 4) == 0);
    CHECK_OK(ctx, mica_bit_xor(ctx, &dst, &a, &b));
    CHECK(memcmp(z, (uint8_t[]){0, 1, 1, 0}, 4) == 0);
    CHECK_OK(ctx, mica_bit_not(ctx, &dst, &a));
    CHECK(memcmp(z, (uint8_t[]){1, 1, 0, 0}, 4) == 0);
    CHECK(mica_add(ctx, &dst, &a, &b) == MICA_ERR_DTYPE);
    char text[64];
    mica_tensor_print(text, sizeof text, &a);
    CHECK_MSG(strcmp(text, "[false, false,  true,  true]") == 0, "%s", text);
}

TEST(typed_reductions_and_positions)
{
    mica_context *ctx = test_context(2);
    test_random r = test_seed(23);
    for (int t = 0; t < INTEGERS; t++) {
        mica_dtype d = integers[t];
        _Alignas(8) char x[N * 8], z[10 * 8];
        int64_t at[10];
        mica_tensor a, dst, index;
        for (int i = 0; i < N; i++)
            set(d, x, i, draw(&r, d));
        CHECK_OK(ctx, mica_tensor_init(ctx, &a, x, d, 3, (mica_index[]){2, 10, 3}));
        CHECK_OK(ctx, mica_tensor_init(ctx, &dst, z, d, 1, (mica_index[]){10}));
        mica_reduce_opts opts = {.axes = {0, -1}, .count = 2};
        for (int op = 0; op < 4; op++) {
            CHECK_OK(ctx, (op == 0   ? mica_sum
                           : op == 1 ? mica_prod
                           : op == 2 ? mica_amax
                                     : mica_amin)(ctx, &dst, &a, &opts));
            for (int k = 0; k < 10; k++) {
                wide want = op == 0 ? 0 : op == 1 ? 1 : get(d, x, 3 * k);
                for (int i = 0; i < 6; i++) {
                    wide p = get(d, x, i / 3 * 30 + 3 * k + i % 3);
                    want = op == 0   ? wrap(d, want + p)
                           : op == 1 ? wrap(d, (wide)((unsigned __int128)want * (unsigned __int128)p))
                           : op == 2 ? (p > want ? p : want)
                                     : (p < want ? p : want);
                }
                CHECK_MSG(get(d, z, k) == want, "reduction %d of %s", op, mica_dtype_name(d));
            }
        }
        CHECK_OK(ctx, mica_tensor_init(ctx, &a, x, d, 2, (mica_index[]){6, 10}));
        CHECK_OK(ctx, mica_tensor_init(ctx, &index, at, MICA_I64, 1, (mica_index[]){10}));
        for (int largest = 0; largest < 2; largest++) {
            CHECK_OK(ctx, (largest ? mica_argmax : mica_argmin)(ctx, &index, &a, 0));
            for (int k = 0; k < 10; k++) {
                int best = 0;
                for (int i = 1; i < 6; i++)
                    if (largest ? get(d, x, 10 * i + k) > get(d, x, 10 * best + k)
                                : get(d, x, 10 * i + k) < get(d, x, 10 * best + k))
                        best = i;
                CHECK(at[k] == best);
            }
        }
    }
}

TEST(typed_products_of_matrices)
{
    mica_context *ctx = test_context(2);
    test_random r = test_seed(24);
    for (int t = 0; t < INTEGERS; t++) {
        mica_dtype d = integers[t];
        _Alignas(8) char x[2 * 3 * 4 * 8], y[4 * 5 * 8], z[2 * 3 * 5 * 8];
        for (int i = 0; i < 24; i++)
            set(d, x, i, draw(&r, d));
        for (int i = 0; i < 20; i++)
            set(d, y, i, draw(&r, d));
        bool turned = test_chance(&r, 50);
        mica_tensor a, b, dst;
        CHECK_OK(ctx, mica_tensor_init(ctx, &a, x, d, 3, (mica_index[]){2, 3, 4}));
        CHECK_OK(ctx,
                 mica_tensor_init(ctx, &b, y, d, 2, turned ? (mica_index[]){5, 4} : (mica_index[]){4, 5}));
        CHECK_OK(ctx, mica_tensor_init(ctx, &dst, z, d, 3, (mica_index[]){2, 3, 5}));
        CHECK_OK(ctx, mica_matmul(ctx, &dst, &a, &b, &(mica_matmul_opts){.transpose_b = turned}));
        for (int i = 0; i < 30; i++) {
            wide want = 0;
            for (int k = 0; k < 4; k++)
                want += wrap(d, (wide)((unsigned __int128)get(d, x, i / 5 * 4 + k) *
                                       (unsigned __int128)get(d, y, turned ? i % 5 * 4 + k : 5 * k + i % 5)));
            CHECK_MSG(get(d, z, i) == wrap(d, want), "%s", mica_dtype_name(d));
        }
    }
}
