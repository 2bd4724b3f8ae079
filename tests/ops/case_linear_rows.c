/* The case of linear_rows with weights that are plain floats; test_linear_rows.c has those in blocks. */
#include "ops/op_case.h"

static void draw(op_call *c, test_random *r)
{
    static const mica_dtype dtypes[] = {MICA_F32, MICA_F16, MICA_BF16};
    int most = test_chance(r, 20) ? 70 : 9;
    mica_index rows = test_int(r, 0, most), units = test_int(r, 0, most), width = test_int(r, 0, most);
    if (c->large) {
        rows = test_int(r, 20, 60);
        units = test_int(r, 200, 600);
        width = test_int(r, 100, 600);
    }
    if (test_chance(r, 30))
        rows = 1;
    c->scale = 1.0 + (double)width * 0.5;
    op_tensor(c, 0, MICA_F32, 2, (mica_index[]){rows, units});
    op_tensor(c, 1, MICA_F32, 2, (mica_index[]){rows, width});
    op_tensor(c, 2, dtypes[test_int(r, 0, 2)], 2, (mica_index[]){units, width});
    c->absent[3] = test_chance(r, 60);
    op_tensor(c, 3, MICA_F32, 1, &units);
}

/* Small integers, which every type holds. */
static void fill(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c;
    for (size_t i = 0; i < count; i++)
        value[i] = tensor == 2 ? (double)test_int(r, -8, 8) / 8.0 : test_uniform(r, -1.0, 1.0);
}

static mica_status run(mica_context *ctx, const op_call *c)
{
    return mica_linear_rows(ctx, OP(c, 0), OP(c, 1), OP(c, 2), OP(c, 3));
}

static void reference(const op_call *c, double *const *v)
{
    size_t units = (size_t)c->tensor[2].dim[0], width = (size_t)c->tensor[2].dim[1];
    for (size_t i = 0; i < op_count(c, 0); i++) {
        double sum = c->absent[3] ? 0.0 : v[3][i % units];
        for (size_t k = 0; k < width; k++)
            sum += v[1][i / units * width + k] * v[2][i % units * width + k];
        v[0][i] = sum;
    }
}

OP_CASE(linear_rows) = {.names = {"y", "x", "w", "bias"},
                        .outs = 1,
                        .ins = 3,
                        .optional = OP_BIT(3),
                        .blocks = OP_BIT(2),
                        .contiguous = OP_BIT(2),
                        .draw = draw,
                        .fill = fill,
                        .run = run,
                        .reference = reference,
                        .tolerance = 1e-6};
