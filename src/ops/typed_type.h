/* Loops of one element type: included by typed.c once for each. No include guard.
 *
 *   T            the element type
 *   U            what it is computed in: of an integer an unsigned type of 32 bits or more, which wraps
 *   TYPE(name)   the name of a function for this type
 *   IS_FLOAT, IS_SIGNED
 *   FLOAT(name)  the function of C's library for it, where it is a float */

#if IS_SIGNED
#define NEGATIVE(x) ((x) < 0)
#else
#define NEGATIVE(x) false
#endif
#if IS_FLOAT
#define IS_NAN(x) ((x) != (x))
#else
#define IS_NAN(x) false
#endif

#if IS_FLOAT
static inline T TYPE(div_of)(T a, T b) { return a / b; }
static inline T TYPE(fmod_of)(T a, T b) { return FLOAT(fmod)(a, b); }
static inline T TYPE(mod_of)(T a, T b)
{
    T rest = FLOAT(fmod)(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
static inline T TYPE(pow_of)(T a, T b) { return FLOAT(pow)(a, b); }
static inline T TYPE(min_of)(T a, T b) { return a != a || a < b ? a : b; } /* NaN if either is */
static inline T TYPE(max_of)(T a, T b) { return a != a || a > b ? a : b; }
static inline T TYPE(abs_of)(T a) { return FLOAT(fabs)(a); }
static inline T TYPE(sign_of)(T a) { return a > 0 ? 1 : a < 0 ? -1 : a; }
#else
/* Division by 0 gives 0. The least number divided by -1 is itself, as everything wraps. */
static inline T TYPE(div_of)(T a, T b)
{
    if (IS_SIGNED && b == (T)-1)
        return (T)(0 - (U)a);
    return (T)(b != 0 ? a / b : 0);
}
static inline T TYPE(fmod_of)(T a, T b)
{
    if (IS_SIGNED && b == (T)-1)
        return 0;
    return (T)(b != 0 ? a % b : 0);
}
static inline T TYPE(mod_of)(T a, T b)
{
    T rest = TYPE(fmod_of)(a, b);
    return (T)(rest != 0 && NEGATIVE(rest ^ b) ? (U)rest + (U)b : (U)rest);
}
/* By squaring. A negative power is the whole part of a fraction: 0, but of 1 and -1. */
static inline T TYPE(pow_of)(T a, T b)
{
    U base = (U)a, power = 1;
    if (NEGATIVE(b))
        return (T)(a == 1 ? 1 : a != (T)-1 ? 0 : b & 1 ? -1 : 1);
    for (U left = (U)b; left != 0; left >>= 1, base *= base)
        if (left & 1)
            power *= base;
    return (T)power;
}
static inline T TYPE(min_of)(T a, T b) { return a < b ? a : b; }
static inline T TYPE(max_of)(T a, T b) { return a > b ? a : b; }
static inline T TYPE(abs_of)(T a) { return (T)(NEGATIVE(a) ? 0 - (U)a : (U)a); }
static inline T TYPE(sign_of)(T a) { return (T)((a > 0) - NEGATIVE(a)); }
/* What a processor does with a shift by its width or more differs: here nothing is left. */
static inline T TYPE(shift_left_of)(T a, T b) { return (T)((U)b < 8 * sizeof(T) ? (U)a << (U)b : 0); }
static inline T TYPE(shift_right_of)(T a, T b)
{
    return (T)((U)b < 8 * sizeof(T) ? a >> (U)b : 0 - NEGATIVE(a));
}
#endif

/* A loop over two sources: one where all lie contiguously, which compilers vectorise, two where one source is a single
 * number (built small these are the last's), and one for any strides. */
#define LOOP2_OF(to, from_x, from_y, D, result) \
    for (mica_index i = 0; i < n; i++) {        \
        T a = x[from_x], b = y[from_y];         \
        out[to] = (D)(result);                  \
    }
#if defined(MICA_SMALL)
#define LOOP2_SINGLE(D, result)
#else
#define LOOP2_SINGLE(D, result)                                  \
    else if (stride[0] == 1 && stride[1] == 1 && stride[2] == 0) \
    {                                                            \
        const T single = *y;                                     \
        y = &single;                                             \
        LOOP2_OF(i, i, 0, D, result)                             \
    }                                                            \
    else if (stride[0] == 1 && stride[1] == 0 && stride[2] == 1) \
    {                                                            \
        const T single = *x;                                     \
        x = &single;                                             \
        LOOP2_OF(i, 0, i, D, result)                             \
    }
#endif
#define LOOP2(name, D, result)                                                                        \
    static void TYPE(name)(void *dst, const void *const *src, const mica_index *stride, mica_index n) \
    {                                                                                                 \
        D *out = dst;                                                                                 \
        const T *x = src[0], *y = src[1];                                                             \
        if (stride[0] == 1 && stride[1] == 1 && stride[2] == 1) {                                     \
            LOOP2_OF(i, i, i, D, result)                                                              \
        }                                                                                             \
        LOOP2_SINGLE(D, result)                                                                       \
        else                                                                                          \
        {                                                                                             \
            LOOP2_OF(i *stride[0], i *stride[1], i *stride[2], D, result)                             \
        }                                                                                             \
    }
#define LOOP1(name, result)                                                                           \
    static void TYPE(name)(void *dst, const void *const *src, const mica_index *stride, mica_index n) \
    {                                                                                                 \
        T *out = dst;                                                                                 \
        const T *x = src[0];                                                                          \
        for (mica_index i = 0; i < n; i++) {                                                          \
            T a = x[i * stride[1]];                                                                   \
            out[i * stride[0]] = (T)(result);                                                         \
        }                                                                                             \
    }

LOOP2(add, T, (U)a + (U)b)
LOOP2(sub, T, (U)a - (U)b)
LOOP2(mul, T, (U)a *(U)b)
LOOP2(div, T, TYPE(div_of)(a, b))
LOOP2(min, T, TYPE(min_of)(a, b))
LOOP2(max, T, TYPE(max_of)(a, b))
LOOP2(pow, T, TYPE(pow_of)(a, b))
LOOP2(mod, T, TYPE(mod_of)(a, b))
LOOP2(fmod, T, TYPE(fmod_of)(a, b))
LOOP2(eq, uint8_t, a == b)
LOOP2(ne, uint8_t, a != b)
LOOP2(lt, uint8_t, a < b)
LOOP2(le, uint8_t, a <= b)
LOOP2(gt, uint8_t, a > b)
LOOP2(ge, uint8_t, a >= b)
#if IS_FLOAT
LOOP1(neg, -a)
#else
LOOP1(neg, 0 - (U)a)
#endif
LOOP1(abs, TYPE(abs_of)(a))
LOOP1(sign, TYPE(sign_of)(a))
LOOP1(square, (U)a *(U)a)
#if IS_FLOAT
LOOP1(sqrt, FLOAT(sqrt)(a))
LOOP1(floor, FLOAT(floor)(a))
LOOP1(ceil, FLOAT(ceil)(a))
LOOP1(round, FLOAT(rint)(a))
#else
LOOP2(bit_and, T, a &b)
LOOP2(bit_or, T, a | b)
LOOP2(bit_xor, T, a ^ b)
LOOP2(shift_left, T, TYPE(shift_left_of)(a, b))
LOOP2(shift_right, T, TYPE(shift_right_of)(a, b))
LOOP1(bit_not, ~(U)a)
#endif

#undef LOOP1
#undef LOOP2
#undef LOOP2_OF
#undef LOOP2_SINGLE

/* ---- Reductions: what a line of elements adds to a sum and the like ---- */

#define FOLD(name, start, step)                                                                             \
    static void TYPE(fold_##name)(void *sum, const void *line, mica_index stride, mica_index n, bool first) \
    {                                                                                                       \
        const T *x = line;                                                                                  \
        T so_far = first ? (T)(start) : *(T *)sum;                                                          \
        for (mica_index i = 0; i < n; i++) {                                                                \
            T a = x[i * stride];                                                                            \
            so_far = (T)(step);                                                                             \
        }                                                                                                   \
        *(T *)sum = so_far;                                                                                 \
    }
FOLD(sum, 0, (U)so_far + (U)a)
FOLD(prod, 1, (U)so_far *(U)a)
FOLD(max, *x, TYPE(max_of)(so_far, a))
FOLD(min, *x, TYPE(min_of)(so_far, a))
#undef FOLD

static void TYPE(divide)(void *sum, mica_index n)
{
#if IS_FLOAT
    *(T *)sum /= (T)n;
#elif IS_SIGNED
    *(T *)sum = (T)(n != 0 ? (int64_t) * (T *)sum / (int64_t)n : 0);
#else
    *(T *)sum = (T)(n != 0 ? (uint64_t) * (T *)sum / (uint64_t)n : 0);
#endif
}

/* Where the first of the largest elements is, or of the smallest. NaN is more extreme than any number. */
static mica_index TYPE(find)(const void *line, mica_index stride, mica_index n, bool largest)
{
    const T *x = line;
    mica_index at = 0;
    for (mica_index i = 1; i < n; i++) {
        T a = x[i * stride], best = x[at * stride];
        if (IS_NAN(best))
            break;
        if (IS_NAN(a) || (largest ? a > best : a < best))
            at = i;
    }
    return at;
}

/* The product of a row and a column. */
static void TYPE(dot)(void *dst, const void *row, mica_index row_stride, const void *column,
                      mica_index column_stride, mica_index n)
{
    const T *x = row, *y = column;
    U sum = 0;
    for (mica_index i = 0; i < n; i++)
        sum += (U)x[i * row_stride] * (U)y[i * column_stride];
    *(T *)dst = (T)sum;
}

#undef NEGATIVE
#undef IS_NAN
#undef T
#undef U
#undef TYPE
#undef FLOAT
#undef IS_FLOAT
#undef IS_SIGNED
