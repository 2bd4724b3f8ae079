/* Rows of tokens: what an operation gives for a row does not depend on how many there are, nor on threads, not in a
 * single bit. linear_rows and cached_attention have tests of their own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/isa_context.h"

enum { ROWS = 37, MOST_WIDTH = 5000, MOST_INS = 3 };

/* Inputs: r: rows [T, width]; v: a vector [width]; a: a table of angles [T, width / 2 * 2]. */
typedef struct row_op {
    const char *name, *ins;
} row_op;

static const row_op row_ops[] = {
    {"rms_norm", "rv"},   {"rms_norm", "r"}, {"layer_norm", "rvv"}, {"layer_norm", "r"},   {"add", "rr"},
    {"add", "rv"},        {"mul", "rr"},     {"mul", "rv"},         {"sub", "rr"},         {"scale", "r"},
    {"add_scaled", "rr"}, {"silu", "r"},     {"gelu", "r"},         {"gelu_tanh", "r"},    {"relu", "r"},
    {"sigmoid", "r"},     {"tanh", "r"},     {"exp", "r"},          {"softplus", "r"},     {"softmax", "r"},
    {"log_softmax", "r"}, {"square", "r"},   {"l2_normalize", "r"}, {"rotary_rows", "ra"}, {"gate", "rr"},
};

typedef struct row_call {
    const mica_op *op;
    const row_op *how;
    mica_index width;
    float *in[MOST_INS], *y;
} row_call;

/* Rows from `first` on. */
static bool run(mica_context *ctx, const row_call *c, mica_index first, mica_index rows, float *y)
{
    mica_tensor in[MOST_INS], out = mica_2d(y + first * c->width, rows, c->width);
    const mica_tensor *ins[MOST_INS], *outs[MICA_OP_OUTS] = {&out};
    int count = (int)strlen(c->how->ins);
    for (int i = 0; i < count; i++) {
        mica_index width = c->how->ins[i] == 'a' ? c->width / 2 * 2 : c->width;
        in[i] = c->how->ins[i] == 'v' ? mica_1d(c->in[i], width)
                                      : mica_2d(c->in[i] + first * width, rows, width);
        ins[i] = &in[i];
    }
    void *opts = calloc(1, c->op->opts_bytes + 1);
    if (strcmp(c->op->name, "softmax") == 0 || strcmp(c->op->name, "log_softmax") == 0 ||
        strcmp(c->op->name, "l2_normalize") == 0)
        ((mica_axis_opts *)opts)->axis = -1;
    if (strcmp(c->op->name, "scale") == 0 || strcmp(c->op->name, "add_scaled") == 0)
        ((mica_scalar_opts *)opts)->s = 0.7f;
    if (strcmp(c->op->name, "gate") == 0)
        ((mica_gate_opts *)opts)->activation = MICA_SILU;
    bool ok = CHECK_MSG(mica_op_run(ctx, c->op, outs, ins, count, opts) == MICA_OK, "%s: %s", c->op->name,
                        mica_error(ctx));
    free(opts);
    return ok;
}

static void check_rows(mica_context *const *ctx, row_call *c, const char *isa)
{
    size_t bytes = (size_t)(ROWS * c->width) * sizeof *c->y;
    float *y = malloc(bytes);
    bool ok = run(ctx[0], c, 0, ROWS, c->y);
    for (int k = 1; k < 3 && ok; k++) {
        ok = run(ctx[k], c, 0, ROWS, y);
        CHECK_MSG(memcmp(y, c->y, bytes) == 0, "%s, %s of %td: %d threads", isa, c->op->name, c->width,
                  k + 1);
    }
    memset(y, 0, bytes);
    for (mica_index row = 0; row < ROWS && ok; row++)
        ok = run(ctx[row % 3], c, row, 1, y);
    CHECK_MSG(memcmp(y, c->y, bytes) == 0, "%s, %s of %td: one row at a time", isa, c->op->name, c->width);
    for (mica_index row = 0, count = 1; row < ROWS && ok; row += count, count++)
        ok = run(ctx[row % 3], c, row, count < ROWS - row ? count : ROWS - row, y);
    CHECK_MSG(memcmp(y, c->y, bytes) == 0, "%s, %s of %td: some rows at a time", isa, c->op->name, c->width);
    free(y);
}

TEST(rows_do_not_depend_on_one_another)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    static const mica_index widths[] = {1, 7, 33, 64, 576, MOST_WIDTH};
    test_random r = test_seed(600);
    row_call c = {.y = malloc(ROWS * MOST_WIDTH * sizeof(float))};
    for (int i = 0; i < MOST_INS; i++) {
        c.in[i] = malloc(ROWS * MOST_WIDTH * sizeof(float));
        for (int k = 0; k < ROWS * MOST_WIDTH; k++)
            c.in[i][k] = (float)test_normal(&r);
    }
    for (int i = 0; i < 4; i++) {
        mica_context *ctx[] = {isa_context(isas[i], 1), isa_context(isas[i], 2), isa_context(isas[i], 3)};
        for (size_t n = 0; n < sizeof row_ops / sizeof row_ops[0] && ctx[0] != NULL; n++) {
            c.how = &row_ops[n];
            c.op = mica_op_find(c.how->name);
            CHECK_MSG(c.op != NULL, "%s is unknown", c.how->name);
            for (size_t w = 0; w < sizeof widths / sizeof widths[0] && c.op != NULL; w++) {
                c.width = widths[w];
                check_rows(ctx, &c, isas[i]);
            }
        }
        for (int k = 0; k < 3; k++)
            if (ctx[k] != NULL)
                mica_context_destroy(ctx[k]);
    }
    for (int i = 0; i < MOST_INS; i++)
        free(c.in[i]);
    free(c.y);
}
