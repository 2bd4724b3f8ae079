/* Cases of rotary position embedding. */
#include "ops/op_memory.h"

#include <math.h>
#include <string.h>

/* ---- The table: f[0] base ---- */

static void draw_table(op_call *c, test_random *r)
{
    mica_index dims[] = {test_int(r, test_chance(r, 5) ? 0 : 1, 9),
                         2 * test_int(r, test_chance(r, 5) ? 0 : 1, 6)};
    op_tensor(c, 0, MICA_F32, 2, dims);
    c->f[0] = test_chance(r, 50) ? 0.0 : test_uniform(r, 10.0, 500000.0);
}

static mica_status run_table(mica_context *ctx, const op_call *c)
{
    return mica_rotary_table(ctx, OP(c, 0), c->f[0]);
}

static void reference_table(const op_call *c, double *const *v)
{
    mica_index rows = c->tensor[0].dim[0], columns = c->tensor[0].dim[1], half = columns / 2;
    double base = c->f[0] != 0.0 ? c->f[0] : 10000.0;
    for (mica_index p = 0; p < rows; p++)
        for (mica_index i = 0; i < half; i++) {
            double angle = (double)p / pow(base, 2.0 * (double)i / (double)columns);
            v[0][p * columns + i] = cos(angle);
            v[0][p * columns + half + i] = sin(angle);
        }
}

OP_CASE(rotary_table) = {.names = {"table"},
                         .outs = 1,
                         .any_shape = OP_BIT(0),
                         .draw = draw_table,
                         .run = run_table,
                         .reference = reference_table,
                         .tolerance = 1e-6};

/* ---- Turning: y; x, table. i[0] interleaved, i[1] offset ---- */

static void draw(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 2, 4, dims);
    mica_index table[] = {dims[rank - 2] + test_int(r, 0, 3), 2 * test_int(r, 0, (int)(dims[rank - 1] / 2))};
    op_tensor(c, 0, MICA_F32, rank, dims);
    op_tensor(c, 1, MICA_F32, rank, dims);
    op_tensor(c, 2, MICA_F32, 2, table);
    c->i[0] = test_chance(r, 50);
    c->i[1] = test_int(r, 0, (int)(table[0] - dims[rank - 2]));
}

static mica_rotary_opts options(const op_call *c)
{
    return (mica_rotary_opts){.interleaved = c->i[0] != 0, .offset = c->i[1]};
}

static mica_status run(mica_context *ctx, const op_call *c)
{
    mica_rotary_opts opts = options(c);
    return mica_rotary(ctx, OP(c, 0), OP(c, 1), OP(c, 2), &opts);
}

static mica_status run_backward(mica_context *ctx, const op_call *c)
{
    mica_rotary_opts opts = options(c);
    return mica_rotary_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), &opts);
}

/* As products of complex numbers; backward, by the transposed matrix. */
static void turn(const op_call *c, double *const *v, double sign)
{
    const mica_tensor *x = &c->tensor[1];
    mica_index d = x->dim[x->rank - 1], t = x->dim[x->rank - 2], n = c->tensor[2].dim[1];
    memcpy(v[0], v[1], op_count(c, 0) * sizeof **v);
    for (mica_index row = 0; d > 0 && row < (mica_index)op_count(c, 0) / d; row++) {
        const double *from = v[1] + row * d, *table = v[2] + (c->i[1] + row % t) * n;
        for (mica_index i = 0; i < n / 2; i++) {
            mica_index a = c->i[0] ? 2 * i : i, b = c->i[0] ? 2 * i + 1 : i + n / 2;
            v[0][row * d + a] = from[a] * table[i] - sign * from[b] * table[n / 2 + i];
            v[0][row * d + b] = from[b] * table[i] + sign * from[a] * table[n / 2 + i];
        }
    }
}

static void reference(const op_call *c, double *const *v) { turn(c, v, 1.0); }
static void reference_backward(const op_call *c, double *const *v) { turn(c, v, -1.0); }

OP_CASE(rotary) = {.names = {"y", "x", "table"},
                   .outs = 1,
                   .ins = 2,
                   .in_place = OP_BIT(1),
                   .any_shape = OP_BIT(2),
                   .draw = draw,
                   .run = run,
                   .reference = reference,
                   .tolerance = 2e-6};

OP_CASE(rotary_backward) = {.names = {"dx", "dy", "table"},
                            .outs = 1,
                            .ins = 2,
                            .in_place = OP_BIT(1),
                            .any_shape = OP_BIT(2),
                            .draw = draw,
                            .run = run_backward,
                            .reference = reference_backward,
                            .tolerance = 2e-6};
