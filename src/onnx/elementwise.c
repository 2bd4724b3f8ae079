/* Element by element: arithmetic and functions. Operations take most types themselves; what they do not take is
 * computed in f32 (mica_onnx_typed). */
#include <math.h>
#include <string.h>

#include "onnx/compose.h"

/* An ONNX operator and the operation that it is. */
typedef struct named {
    const char *type, *op;
} named;

static const char *op_of(const mica_onnx_importing *n, const named *list)
{
    while (list->type != NULL && strcmp(list->type, n->node->type) != 0)
        list++;
    return list->op;
}

/* ---- Types ---- */

/* Whether an operation takes tensors of this dtype. */
static bool takes(mica_onnx_importing *n, const char *op, int count, mica_dtype dtype, const void *opts)
{
    const mica_op *entry = mica_op_find(op);
    mica_context *ctx = mica_onnx_context(n);
    mica_tensor like = {.dtype = dtype, .rank = 1, .dim = {1}, .stride = {1}}, outs[MICA_OP_OUTS];
    const mica_tensor *ins[] = {&like, &like, &like};
    return entry != NULL && mica_op_infer(ctx, entry, outs, ins, count, opts) == MICA_OK;
}

mica_onnx_ref mica_onnx_typed(mica_onnx_importing *n, const char *op, const mica_onnx_ref *ins, int count,
                              const void *opts)
{
    mica_dtype dtype = mica_onnx_shape(n, ins[0])->dtype;
    mica_onnx_ref own[3] = {0};
    if (n->failed)
        return 0;
    bool floats = dtype == MICA_F16 || dtype == MICA_BF16 || dtype == MICA_F64;
    mica_dtype with = floats && !takes(n, op, count, dtype, opts) ? MICA_F32 : dtype;
    for (int i = 0; i < count; i++)
        own[i] = mica_onnx_cast(n, ins[i], with);
    return mica_onnx_op(n, op, own, count, opts);
}

/* ---- One and two inputs ---- */

static const named unary_list[] = {{"Abs", "abs"},     {"Neg", "neg"},
                                   {"Sign", "sign"},   {"Sqrt", "sqrt"},
                                   {"Floor", "floor"}, {"Ceil", "ceil"},
                                   {"Exp", "exp"},     {"Log", "log"},
                                   {"Sin", "sin"},     {"Cos", "cos"},
                                   {"Erf", "erf"},     {"Round", "round"},
                                   {"Tan", "tan"},     {"Acos", "acos"},
                                   {"Asin", "asin"},   {"Atan", "atan"},
                                   {"Sinh", "sinh"},   {"Cosh", "cosh"},
                                   {"Acosh", "acosh"}, {"Asinh", "asinh"},
                                   {"Atanh", "atanh"}, {"Reciprocal", "reciprocal"},
                                   {NULL, NULL}};

static void unary(mica_onnx_importing *n)
{
    mica_onnx_give_like(n, 0, mica_onnx_typed(n, op_of(n, unary_list), n->in, 1, NULL), n->in[0]);
}

static const named binary_list[] = {
    {"Add", "add"}, {"Sub", "sub"}, {"Mul", "mul"}, {"Div", "div"}, {NULL, NULL}};

static void binary(mica_onnx_importing *n)
{
    if (mica_onnx_shape(n, n->in[0])->dtype != mica_onnx_shape(n, n->in[1])->dtype)
        (void)mica_onnx_bad(n, "inputs of types %s and %s",
                            mica_dtype_name(mica_onnx_shape(n, n->in[0])->dtype),
                            mica_dtype_name(mica_onnx_shape(n, n->in[1])->dtype));
    mica_onnx_give_like(n, 0, mica_onnx_typed(n, op_of(n, binary_list), n->in, 2, NULL), n->in[0]);
}

static void mod(mica_onnx_importing *n)
{
    const char *op = mica_onnx_int(n, "fmod", 0) != 0 ? "fmod" : "mod";
    mica_onnx_give_like(n, 0, mica_onnx_typed(n, op, n->in, 2, NULL), n->in[0]);
}

static bool is_integer(mica_dtype dtype)
{
    static const mica_dtype floats[] = {MICA_F32, MICA_F64, MICA_F16, MICA_BF16};
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++)
        if (dtype == floats[i])
            return false;
    return true;
}

/* Powers that are something simpler: of f32, by a known number. 0: not these. */
static mica_onnx_ref simple_power(mica_onnx_importing *n)
{
    mica_onnx_ref x = n->in[0], power = n->in[1];
    const mica_tensor *base = mica_onnx_shape(n, x), *exponent = mica_onnx_shape(n, power);
    if (base->dtype != MICA_F32 || exponent->rank > base->rank || mica_tensor_count(exponent) != 1 ||
        !mica_onnx_is_known(n, power))
        return 0;
    double number = mica_onnx_known_number(n, power, "Y");
    return number == 2.0    ? mica_onnx_op1(n, "square", x, NULL)
           : number == -1.0 ? mica_onnx_op1(n, "reciprocal", x, NULL)
                            : 0;
}

/* The exponent may have another type; an integer to a power that is none is computed in f64. */
static void power(mica_onnx_importing *n)
{
    mica_onnx_ref simple = simple_power(n);
    if (simple != 0) {
        mica_onnx_give(n, 0, simple);
        return;
    }
    mica_dtype base = mica_onnx_shape(n, n->in[0])->dtype, exponent = mica_onnx_shape(n, n->in[1])->dtype;
    mica_dtype with = is_integer(base) && !is_integer(exponent) ? MICA_F64 : base;
    mica_onnx_ref ins[] = {mica_onnx_cast(n, n->in[0], with), mica_onnx_cast(n, n->in[1], with)};
    mica_onnx_give_like(n, 0, mica_onnx_typed(n, "pow", ins, 2, NULL), n->in[0]);
}

/* ---- Any number of inputs ---- */

static const named variadic_list[] = {
    {"Sum", "add"}, {"Mean", "add"}, {"Min", "min"}, {"Max", "max"}, {NULL, NULL}};

static void variadic(mica_onnx_importing *n)
{
    mica_onnx_ref all = n->in[0];
    const char *op = op_of(n, variadic_list);
    if (n->ins == 0)
        (void)mica_onnx_bad(n, "no inputs");
    for (int i = 1; i < n->ins; i++)
        all = mica_onnx_typed(
            n, op, (mica_onnx_ref[]){all, mica_onnx_cast(n, n->in[i], mica_onnx_shape(n, all)->dtype)}, 2,
            NULL);
    if (strcmp(n->node->type, "Mean") == 0) {
        mica_onnx_ref count = mica_onnx_scalar(n, mica_onnx_shape(n, all)->dtype, n->ins);
        all = mica_onnx_typed(n, "div", (mica_onnx_ref[]){all, count}, 2, NULL);
    }
    mica_onnx_give_like(n, 0, all, n->in[0]);
}

/* ---- Clip ---- */

static void clip_between(mica_onnx_importing *n, mica_onnx_ref low, mica_onnx_ref high)
{
    mica_onnx_ref x = n->in[0];
    bool f32 = mica_onnx_shape(n, x)->dtype == MICA_F32;
    bool known = (low == 0 || mica_onnx_is_known(n, low)) && (high == 0 || mica_onnx_is_known(n, high));
    if (f32 && known && (low != 0 || high != 0)) {
        mica_clamp_opts opts = {-INFINITY, INFINITY};
        opts.low = low != 0 ? (float)mica_onnx_known_number(n, low, "min") : opts.low;
        opts.high = high != 0 ? (float)mica_onnx_known_number(n, high, "max") : opts.high;
        /* Where they cross, the upper one holds. */
        opts.low = opts.low > opts.high ? opts.high : opts.low;
        bool relu6 = opts.low == 0 && opts.high == 6; /* the same bits, and a product can take it in */
        mica_onnx_give(n, 0,
                       relu6 ? mica_onnx_op1(n, "relu6", x, NULL) : mica_onnx_op1(n, "clamp", x, &opts));
        return;
    }
    if (low != 0)
        x = mica_onnx_typed(n, "max", (mica_onnx_ref[]){x, low}, 2, NULL);
    if (high != 0)
        x = mica_onnx_typed(
            n, "min", (mica_onnx_ref[]){x, mica_onnx_cast(n, high, mica_onnx_shape(n, x)->dtype)}, 2, NULL);
    mica_onnx_give_like(n, 0, x, n->in[0]);
}

static void clip_6(mica_onnx_importing *n)
{
    mica_dtype dtype = mica_onnx_shape(n, n->in[0])->dtype;
    mica_onnx_ref low = mica_onnx_find(n, "min") != NULL
                            ? mica_onnx_scalar(n, dtype, mica_onnx_float(n, "min", 0))
                            : 0;
    mica_onnx_ref high = mica_onnx_find(n, "max") != NULL
                             ? mica_onnx_scalar(n, dtype, mica_onnx_float(n, "max", 0))
                             : 0;
    clip_between(n, low, high);
}

static void clip(mica_onnx_importing *n)
{
    clip_between(n, n->ins > 1 ? n->in[1] : 0, n->ins > 2 ? n->in[2] : 0);
}

const mica_onnx_operator mica_onnx_elementwise_operators[] = {
    {"Abs", 1, unary},    {"Neg", 1, unary},        {"Sign", 1, unary},   {"Sqrt", 1, unary},
    {"Floor", 1, unary},  {"Ceil", 1, unary},       {"Exp", 1, unary},    {"Log", 1, unary},
    {"Sin", 1, unary},    {"Cos", 1, unary},        {"Erf", 1, unary},    {"Round", 1, unary},
    {"Tan", 1, unary},    {"Acos", 1, unary},       {"Asin", 1, unary},   {"Atan", 1, unary},
    {"Sinh", 1, unary},   {"Cosh", 1, unary},       {"Acosh", 1, unary},  {"Asinh", 1, unary},
    {"Atanh", 1, unary},  {"Reciprocal", 1, unary}, {"Add", 7, binary},   {"Sub", 7, binary},
    {"Mul", 7, binary},   {"Div", 7, binary},       {"Mod", 1, mod},      {"Pow", 7, power},
    {"Sum", 1, variadic}, {"Mean", 1, variadic},    {"Min", 1, variadic}, {"Max", 1, variadic},
    {"Clip", 1, clip_6},  {"Clip", 11, clip},       {NULL, 0, NULL}};
