/* Comparisons, truth values and bits. */
#include <math.h>
#include <string.h>

#include "onnx/compose.h"

static const char *const compared[][2] = {
    {"Equal", "eq"}, {"Greater", "gt"}, {"Less", "lt"}, {"GreaterOrEqual", "ge"}, {"LessOrEqual", "le"}};
/* Of truth values the same as of bits. */
static const char *const of_bits[][2] = {
    {"And", "bit_and"},        {"Or", "bit_or"},        {"Xor", "bit_xor"},        {"Not", "bit_not"},
    {"BitwiseAnd", "bit_and"}, {"BitwiseOr", "bit_or"}, {"BitwiseXor", "bit_xor"}, {"BitwiseNot", "bit_not"}};

static const char *op_of(const mica_onnx_importing *n, const char *const (*list)[2], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i][0], n->node->type) == 0)
            return list[i][1];
    return "";
}

static void compare(mica_onnx_importing *n)
{
    const char *op = op_of(n, compared, sizeof compared / sizeof compared[0]);
    mica_onnx_give(n, 0, mica_onnx_typed(n, op, n->in, 2, &(mica_compare_opts){.truth = true}));
}

static void bits(mica_onnx_importing *n)
{
    const char *op = op_of(n, of_bits, sizeof of_bits / sizeof of_bits[0]);
    int count = strcmp(op, "bit_not") == 0 ? 1 : 2;
    mica_onnx_give(n, 0, mica_onnx_op(n, op, n->in, count, NULL));
}

static void shift(mica_onnx_importing *n)
{
    const char *direction = mica_onnx_text(n, "direction", "");
    bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        (void)mica_onnx_bad(n, "direction is \"%s\", expected LEFT or RIGHT", direction);
    mica_onnx_give(n, 0, mica_onnx_op(n, left ? "shift_left" : "shift_right", n->in, 2, NULL));
}

static void is_nan(mica_onnx_importing *n)
{
    mica_onnx_give(n, 0, mica_onnx_typed(n, "isnan", n->in, 1, &(mica_compare_opts){.truth = true}));
}

static void is_infinite(mica_onnx_importing *n)
{
    bool up = mica_onnx_int(n, "detect_positive", 1) != 0, down = mica_onnx_int(n, "detect_negative", 1) != 0;
    mica_compare_opts truth = {.truth = true};
    mica_dtype dtype = mica_onnx_shape(n, n->in[0])->dtype;
    mica_onnx_ref found[2];
    for (int sign = 0; sign < 2; sign++) {
        mica_onnx_ref infinity = mica_onnx_scalar(n, dtype, sign == 0 ? INFINITY : -INFINITY);
        found[sign] = mica_onnx_typed(n, "eq", (mica_onnx_ref[]){n->in[0], infinity}, 2, &truth);
    }
    if (up && down)
        mica_onnx_give(n, 0, mica_onnx_op2(n, "bit_or", found[0], found[1], NULL));
    else if (up || down)
        mica_onnx_give(n, 0, found[up ? 0 : 1]);
    else
        mica_onnx_give(n, 0,
                       mica_onnx_op2(n, "bit_and", found[0], found[1], NULL)); /* neither: nothing is both */
}

/* Elements are only moved: of any type. */
static void where(mica_onnx_importing *n) { mica_onnx_give(n, 0, mica_onnx_op(n, "where", n->in, 3, NULL)); }

const mica_onnx_operator mica_onnx_logic_operators[] = {{"Equal", 7, compare},
                                                        {"Greater", 7, compare},
                                                        {"Less", 7, compare},
                                                        {"GreaterOrEqual", 12, compare},
                                                        {"LessOrEqual", 12, compare},
                                                        {"And", 7, bits},
                                                        {"Or", 7, bits},
                                                        {"Xor", 7, bits},
                                                        {"Not", 1, bits},
                                                        {"BitwiseAnd", 18, bits},
                                                        {"BitwiseOr", 18, bits},
                                                        {"BitwiseXor", 18, bits},
                                                        {"BitwiseNot", 18, bits},
                                                        {"BitShift", 11, shift},
                                                        {"IsNaN", 9, is_nan},
                                                        {"IsInf", 10, is_infinite},
                                                        {"Where", 9, where},
                                                        {NULL, 0, NULL}};
