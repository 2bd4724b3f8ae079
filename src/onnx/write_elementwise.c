/* Element-wise operations and comparisons. */
#include <math.h>

#include "onnx/write.h"

enum { BOOL = 9 };

static float s_of(const mica_onnx_writing *c) { return ((const mica_scalar_opts *)c->opts)->s; }

/* ---- One operator each ---- */

#define ONE(op, type) \
    static void op(mica_onnx_writing *c) { mica_onnx_node1(c, OUT(0), type, IN(0), NO_ATTRS); }
#define TWO(op, type) \
    static void op(mica_onnx_writing *c) { mica_onnx_node2(c, OUT(0), type, IN(0), IN(1)); }
#define SCALAR(op, type, flip)                                                        \
    static void op(mica_onnx_writing *c)                                              \
    {                                                                                 \
        mica_onnx_term s = mica_onnx_put_scalar(c, c->in[0]->dtype, (double)s_of(c)); \
        mica_onnx_node2(c, OUT(0), type, (flip) ? s : IN(0), (flip) ? IN(0) : s);     \
    }

ONE(neg, "Neg")
ONE(absolute, "Abs")
ONE(sign, "Sign")
ONE(root, "Sqrt")
ONE(reciprocal, "Reciprocal")
ONE(lower, "Floor")
ONE(upper, "Ceil")
ONE(nearest, "Round")
ONE(exponential, "Exp")
ONE(logarithm, "Log")
ONE(sine, "Sin")
ONE(cosine, "Cos")
ONE(erf_of, "Erf")
ONE(tangent, "Tan")
ONE(arc_sine, "Asin")
ONE(arc_cosine, "Acos")
ONE(arc_tangent, "Atan")
ONE(hyperbolic_sine, "Sinh")
ONE(hyperbolic_cosine, "Cosh")
ONE(area_sine, "Asinh")
ONE(area_cosine, "Acosh")
ONE(area_tangent, "Atanh")
TWO(add, "Add")
TWO(sub, "Sub")
TWO(mul, "Mul")
TWO(divide, "Div")
TWO(min_of, "Min")
TWO(max_of, "Max")
TWO(power, "Pow")
SCALAR(add_scalar, "Add", false)
SCALAR(sub_scalar, "Sub", false)
SCALAR(rsub_scalar, "Sub", true)
SCALAR(scale, "Mul", false)
SCALAR(div_scalar, "Div", false)
SCALAR(rdiv_scalar, "Div", true)
SCALAR(min_scalar, "Min", false)
SCALAR(max_scalar, "Max", false)
SCALAR(pow_scalar, "Pow", false)

static void square(mica_onnx_writing *c) { mica_onnx_node2(c, OUT(0), "Mul", IN(0), IN(0)); }

static void clamp(mica_onnx_writing *c)
{
    const mica_clamp_opts *o = c->opts;
    mica_dtype dtype = c->in[0]->dtype;
    mica_onnx_term low = mica_onnx_put_scalar(c, dtype, (double)o->low);
    mica_onnx_term high = mica_onnx_put_scalar(c, dtype, (double)o->high);
    mica_onnx_put(c, OUT(0), "Clip", TERMS(IN(0), low, high), NO_ATTRS);
}

/* Mod is for integers alone: of floats a - floor(a / b) b. */
static void modulo(mica_onnx_writing *c)
{
    if (c->in[0]->dtype != MICA_F32 && c->in[0]->dtype != MICA_F64) {
        mica_onnx_node2(c, OUT(0), "Mod", IN(0), IN(1));
        return;
    }
    mica_onnx_term t = mica_onnx_node2(c, NEW, "Div", IN(0), IN(1));
    t = mica_onnx_node1(c, NEW, "Floor", t, NO_ATTRS);
    t = mica_onnx_node2(c, NEW, "Mul", t, IN(1));
    mica_onnx_node2(c, OUT(0), "Sub", IN(0), t);
}

static void remainder_of(mica_onnx_writing *c)
{
    mica_onnx_put(c, OUT(0), "Mod", TERMS(IN(0), IN(1)), ATTRS(mica_onnx_int_attr("fmod", 1)));
}

/* ---- Made of several ---- */

static void rsqrt_of(mica_onnx_writing *c)
{
    mica_onnx_node1(c, OUT(0), "Reciprocal", mica_onnx_node1(c, NEW, "Sqrt", IN(0), NO_ATTRS), NO_ATTRS);
}

static void expm1_of(mica_onnx_writing *c)
{
    mica_onnx_term e = mica_onnx_node1(c, NEW, "Exp", IN(0), NO_ATTRS);
    mica_onnx_node2(c, OUT(0), "Sub", e, mica_onnx_put_number(c, 1.0f));
}

static void log1p_of(mica_onnx_writing *c)
{
    mica_onnx_term sum = mica_onnx_node2(c, NEW, "Add", IN(0), mica_onnx_put_number(c, 1.0f));
    mica_onnx_node1(c, OUT(0), "Log", sum, NO_ATTRS);
}

static void add_scaled(mica_onnx_writing *c)
{
    mica_onnx_term part = mica_onnx_node2(c, NEW, "Mul", IN(1), mica_onnx_put_number(c, s_of(c)));
    mica_onnx_node2(c, OUT(0), "Add", IN(0), part);
}

static void lerp(mica_onnx_writing *c)
{
    mica_onnx_term way = mica_onnx_node2(c, NEW, "Sub", IN(1), IN(0));
    way = mica_onnx_node2(c, NEW, "Mul", way, mica_onnx_put_number(c, s_of(c)));
    mica_onnx_node2(c, OUT(0), "Add", IN(0), way);
}

/* ---- Copies ---- */

/* Integers of a type; no bits: it is none. */
typedef struct whole {
    int bits;
    bool sign;
} whole;

static whole whole_of(mica_dtype dtype)
{
    const char *name = mica_dtype_name(dtype); /* "u8" */
    whole w = {0, name[0] == 'i'};
    for (const char *c = name + 1; (name[0] == 'u' || w.sign) && *c >= '0' && *c <= '9'; c++)
        w.bits = 10 * w.bits + (*c - '0');
    return w;
}

/* Whether all numbers of one type are between the least and the largest of the other. */
static bool holds(mica_dtype dtype, mica_dtype all)
{
    whole to = whole_of(dtype), from = whole_of(all);
    if (to.bits == 0 || all == MICA_BOOL)
        return true;
    return from.bits > 0 && (to.sign || !from.sign) && to.bits - to.sign >= from.bits - from.sign;
}

/* What Mica reads a Cast as: integers that do not fit wrap around. Elsewhere ONNX leaves open what they become. */
static bool is_cast(mica_onnx_writing *c)
{
    const mica_copy_opts *o = c->opts;
    mica_dtype from = c->in[0]->dtype;
    if (!o->cast || o->dtype == from)
        return true;
    return !o->overflow && o->round == MICA_ROUND_UP && (o->wrap || holds(o->dtype, from));
}

/* x between the least and the largest number of a type of integers; of 64 bits, the largest that f64 has, too. Floats
 * become f64, which has these bounds. */
static mica_onnx_term saturated(mica_onnx_writing *c, mica_dtype dtype)
{
    enum { DOUBLE = 11, DIGITS = 53 };
    whole to = whole_of(dtype);
    mica_dtype from = whole_of(c->in[0]->dtype).bits > 0 ? c->in[0]->dtype : MICA_F64;
    int power = to.bits - to.sign;
    double high = ldexp(1.0, power) - ldexp(1.0, power > DIGITS ? power - DIGITS : 0);
    mica_onnx_term x = c->in[0]->dtype == from ? IN(0) : mica_onnx_put_cast(c, NEW, IN(0), DOUBLE);
    mica_onnx_term low = mica_onnx_put_scalar(c, from, to.sign ? -ldexp(1.0, power) : 0.0);
    return mica_onnx_put(c, NEW, "Clip", TERMS(x, low, mica_onnx_put_scalar(c, from, high)), NO_ATTRS);
}

static void copy(mica_onnx_writing *c)
{
    const mica_copy_opts *o = c->opts;
    mica_dtype from = c->in[0]->dtype;
    if (!o->cast || o->dtype == from)
        mica_onnx_node1(c, OUT(0), "Identity", IN(0), NO_ATTRS);
    else if (mica_onnx_type_of(o->dtype) == 0 || mica_onnx_type_of(from) == 0)
        mica_onnx_refuse(c, "a type that ONNX does not have");
    else
        mica_onnx_put_cast(c, OUT(0), o->wrap || holds(o->dtype, from) ? IN(0) : saturated(c, o->dtype),
                           mica_onnx_type_of(o->dtype));
}

static void dropout(mica_onnx_writing *c) { mica_onnx_node1(c, OUT(0), "Identity", IN(0), NO_ATTRS); }

/* ---- Comparisons ---- */

/* Where the result is no bool, it is cast. */
static mica_onnx_term truth_of(const mica_onnx_writing *c)
{
    return c->out[0]->dtype == MICA_BOOL ? OUT(0) : NEW;
}

static void give_truth(mica_onnx_writing *c, mica_onnx_term truth)
{
    if (truth != OUT(0))
        mica_onnx_put_cast(c, OUT(0), truth, mica_onnx_type_of(c->out[0]->dtype));
}

#define COMPARE(op, type)                                                   \
    static void op(mica_onnx_writing *c)                                    \
    {                                                                       \
        give_truth(c, mica_onnx_node2(c, truth_of(c), type, IN(0), IN(1))); \
    }

COMPARE(eq, "Equal")
COMPARE(lt, "Less")
COMPARE(le, "LessOrEqual")
COMPARE(gt, "Greater")
COMPARE(ge, "GreaterOrEqual")

static void ne(mica_onnx_writing *c)
{
    mica_onnx_term same = mica_onnx_node2(c, NEW, "Equal", IN(0), IN(1));
    give_truth(c, mica_onnx_node1(c, truth_of(c), "Not", same, NO_ATTRS));
}

static void is_nan(mica_onnx_writing *c)
{
    give_truth(c, mica_onnx_node1(c, truth_of(c), "IsNaN", IN(0), NO_ATTRS));
}

static void is_finite(mica_onnx_writing *c)
{
    mica_onnx_term nan = mica_onnx_node1(c, NEW, "IsNaN", IN(0), NO_ATTRS);
    mica_onnx_term infinite = mica_onnx_node1(c, NEW, "IsInf", IN(0), NO_ATTRS);
    mica_onnx_term either = mica_onnx_node2(c, NEW, "Or", nan, infinite);
    give_truth(c, mica_onnx_node1(c, truth_of(c), "Not", either, NO_ATTRS));
}

static void where(mica_onnx_writing *c)
{
    mica_onnx_term condition = c->in[0]->dtype == MICA_BOOL ? IN(0) : mica_onnx_put_cast(c, NEW, IN(0), BOOL);
    mica_onnx_put(c, OUT(0), "Where", TERMS(condition, IN(1), IN(2)), NO_ATTRS);
}

/* ---- Bits: before opset 18, ONNX has them of truth values only ---- */

#define BITS(name, type)                                \
    static void name(mica_onnx_writing *c)              \
    {                                                   \
        if (c->in[0]->dtype != MICA_BOOL)               \
            mica_onnx_refuse(c, "integers");            \
        mica_onnx_node2(c, OUT(0), type, IN(0), IN(1)); \
    }
BITS(both, "And")
BITS(either_of, "Or")
BITS(one_of, "Xor")

static void opposite(mica_onnx_writing *c)
{
    if (c->in[0]->dtype != MICA_BOOL)
        mica_onnx_refuse(c, "integers");
    mica_onnx_node1(c, OUT(0), "Not", IN(0), NO_ATTRS);
}

/* clang-format off */
const mica_onnx_row mica_onnx_write_elementwise[] = {
    PLAIN(add, add), PLAIN(sub, sub), PLAIN(mul, mul), PLAIN(div, divide), PLAIN(min, min_of), PLAIN(max, max_of),
    PLAIN(pow, power), PLAIN(add_scalar, add_scalar), PLAIN(sub_scalar, sub_scalar), PLAIN(rsub_scalar, rsub_scalar),
    PLAIN(scale, scale), PLAIN(div_scalar, div_scalar), PLAIN(rdiv_scalar, rdiv_scalar), PLAIN(min_scalar, min_scalar),
    PLAIN(max_scalar, max_scalar), PLAIN(pow_scalar, pow_scalar), PLAIN(clamp, clamp), PLAIN(neg, neg),
    PLAIN(abs, absolute), PLAIN(sign, sign), PLAIN(square, square), PLAIN(sqrt, root), PLAIN(reciprocal, reciprocal),
    PLAIN(floor, lower), PLAIN(round, nearest), PLAIN(exp, exponential), PLAIN(log, logarithm), PLAIN(sin, sine),
    PLAIN(cos, cosine), PLAIN(erf, erf_of), OWN(rsqrt, rsqrt_of), OWN(expm1, expm1_of), OWN(log1p, log1p_of),
    OWN(add_scaled, add_scaled), OWN(lerp, lerp), {&mica_op_copy, copy, is_cast, true, false},
    PLAIN(dropout, dropout), PLAIN(eq, eq), PLAIN(ne, ne), PLAIN(lt, lt), PLAIN(le, le), PLAIN(gt, gt), PLAIN(ge, ge),
    PLAIN(isnan, is_nan), PLAIN(isfinite, is_finite), PLAIN(where, where),
    PLAIN(ceil, upper), OWN(mod, modulo), OWN(fmod, remainder_of),
    PLAIN(tan, tangent), PLAIN(asin, arc_sine), PLAIN(acos, arc_cosine), PLAIN(atan, arc_tangent),
    PLAIN(sinh, hyperbolic_sine), PLAIN(cosh, hyperbolic_cosine), PLAIN(asinh, area_sine), PLAIN(acosh, area_cosine),
    PLAIN(atanh, area_tangent), PLAIN(bit_and, both), PLAIN(bit_or, either_of), PLAIN(bit_xor, one_of),
    PLAIN(bit_not, opposite), END_OF_ROWS};
/* clang-format on */
