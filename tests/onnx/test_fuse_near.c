/* What is almost a pattern of nodes. */
#include <string.h>

#include "onnx/pattern.h"

/* Almost patterns: moves that look like those of heads, and numbers with axes of their own. */
static const pattern_case near[] = {
    {"parts that are not heads",
     .input = {.name = "x", .dims = {2, 4, 24}},
     {SHAPE("h", 2, 4, 3, 2, 4), SHAPE("g", 2, 4, 4, 2), SHAPE("j", 2, 4, 8)},
     {{"Reshape", "x h", "a", NULL},
      {"Transpose", "a", "b", "perm=2,0,3,1,4"},
      {"Split", "b", "i k l", "axis=0"},
      {"Reshape", "i g", "q", NULL},
      {"Reshape", "k g", "r", NULL},
      {"Reshape", "l g", "v", NULL},
      {"Transpose", "r", "t", "perm=0,1,3,2"},
      {"MatMul", "q t", "s", NULL},
      {"Softmax", "s", "p", "axis=3"},
      {"MatMul", "p v", "o", NULL},
      {"Transpose", "o", "n", "perm=0,2,1,3"},
      {"Reshape", "n j", "y", NULL}},
     3,
     "permute split attention permute",
     12},
    {"rows of two heads at once, exchanged",
     .input = {.name = "x", .dims = {2, 4, 3, 2}},
     {SHAPE("a", 4, 3, 4), SHAPE("b", 2, 4, 2, 3)},
     {{"Reshape", "x a", "c", NULL},
      {"Transpose", "c", "d", "perm=0,2,1"},
      {"Reshape", "d b", "t", NULL},
      {"MatMul", "x t", "s", NULL},
      {"Softmax", "s", "p", "axis=3"},
      {"MatMul", "p x", "y", NULL}},
     4,
     "permute permute attention",
     12},
    {"a number of more axes",
     X_ROWS,
     {NUMBER("r", 1.41421356f), NUMBER("o", 1), {"h", {1, 1, 1}, 0.5f, false}},
     {{"Div", "x r", "a", NULL},
      {"Erf", "a", "b", NULL},
      {"Add", "b o", "c", NULL},
      {"Mul", "x c", "d", NULL},
      {"Mul", "d h", "y", NULL}},
     3,
     "div erf add mul mul",
     0},
};

TEST(onnx_patterns_that_are_near)
{
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof near / sizeof *near; i++)
        pattern_check(ctx, &near[i]);
}

/* What looks like a pattern and is none stays as it is. */
static const pattern_case others[] = {
    {"another constant",
     X_ROWS,
     {NUMBER("r", 1.5f), NUMBER("o", 1), NUMBER("h", 0.5f)},
     {{"Div", "x r", "a", NULL},
      {"Erf", "a", "b", NULL},
      {"Add", "b o", "c", NULL},
      {"Mul", "x c", "d", NULL},
      {"Mul", "d h", "y", NULL}},
     2,
     NULL,
     0},
    {"numbers from 1 on",
     .input = {.name = "x", .dims = {3, 8, 1}},
     {SHAPE("r", 1, 2, 3, 4), RANDOM("w", 4, 5)},
     {{"Cast", "x", "i", "to=7"},
      {"Equal", "i r", "e", NULL},
      {"Cast", "e", "c", "to=1"},
      {"MatMul", "c w", "y", NULL}},
     3,
     NULL,
     0},
    {"another slope",
     X_ROWS,
     {{0}},
     {{"HardSigmoid", "x", "s", "alpha=0.2f beta=0.5f"}, {"Mul", "x s", "y", NULL}},
     2,
     NULL,
     0},
    {"another axis",
     X_ROWS,
     {NUMBER("t", 2), NUMBER("e", 1e-5f)},
     {{"ReduceMean", "x", "m", "axes=0,"},
      {"Sub", "x m", "d", NULL},
      {"Pow", "d t", "p", NULL},
      {"ReduceMean", "p", "v", "axes=0,"},
      {"Add", "v e", "a", NULL},
      {"Sqrt", "a", "s", NULL},
      {"Div", "d s", "y", NULL}},
     2,
     NULL,
     0},
    {"a softmax over another axis",
     .input = {.name = "x", .dims = {2, 5, 5}},
     {{0}},
     {{"Transpose", "x", "t", "perm=0,2,1"},
      {"MatMul", "x t", "s", NULL},
      {"Softmax", "s", "p", "axis=1"},
      {"MatMul", "p x", "y", NULL}},
     3,
     NULL,
     0},
};

TEST(onnx_patterns_that_are_none)
{
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        static const char *const fusing[] = {"gelu", "hard_swish", "layer_norm", "attention"};
        pattern_built b = {0};
        proto bytes = pattern_model(&others[i], false);
        if (pattern_build(ctx, &b, &others[i], bytes))
            for (size_t k = 0; k < sizeof fusing / sizeof *fusing; k++)
                CHECK_MSG(strstr(b.calls, fusing[k]) == NULL, "%s is \"%s\"", others[i].name, b.calls);
        pattern_drop(&b, &bytes);
    }
}
