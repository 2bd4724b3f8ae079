/* Cases of the comparisons and choices. */
#include "ops/map_case.h"

/* Numbers that often meet. */
static void fill_meeting(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c, (void)tensor;
    for (size_t i = 0; i < count; i++)
        value[i] = test_chance(r, 5)   ? (double)NAN
                   : test_chance(r, 5) ? (double)INFINITY
                                       : test_int(r, -2, 2);
}

static void draw_mask(op_call *c, test_random *r, int inputs)
{
    map_draw(c, r, inputs);
    if (test_chance(r, 50))
        c->tensor[0].dtype = MICA_U8;
}
static void draw_mask1(op_call *c, test_random *r) { draw_mask(c, r, 1); }
static void draw_mask2(op_call *c, test_random *r) { draw_mask(c, r, 2); }

/* MAP_CASE with a destination that is f32 or u8. */
#define MASK_CASE(op, inputs, call_, expression)                \
    MAP_CASE(op, inputs, fill_meeting, 0.0, call_, expression); \
    __attribute__((constructor)) static void mask_##op(void) { op_case_##op.draw = draw_mask##inputs; }

MASK_CASE(eq, 2, mica_eq(ctx, dst, x, y), a == b)
MASK_CASE(ne, 2, mica_ne(ctx, dst, x, y), a != b)
MASK_CASE(lt, 2, mica_lt(ctx, dst, x, y), a < b)
MASK_CASE(le, 2, mica_le(ctx, dst, x, y), a <= b)
MASK_CASE(gt, 2, mica_gt(ctx, dst, x, y), a > b)
MASK_CASE(ge, 2, mica_ge(ctx, dst, x, y), a >= b)
MASK_CASE(isnan, 1, mica_isnan(ctx, dst, x), isnan(a) ? 1.0 : 0.0)
MASK_CASE(isfinite, 1, mica_isfinite(ctx, dst, x), isfinite(a) ? 1.0 : 0.0)

static void draw_where(op_call *c, test_random *r)
{
    map_draw(c, r, 3);
    if (test_chance(r, 50))
        c->tensor[1].dtype = MICA_U8;
}

static void fill_where(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        value[i] = tensor == 1 ? test_int(r, 0, 2) : test_normal(r);
    (void)c;
}

static mica_status run_where(mica_context *ctx, const op_call *c)
{
    return mica_where(ctx, OP(c, 0), OP(c, 1), OP(c, 2), OP(c, 3));
}

static void reference_where(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = map_at(c, v, 1, i) != 0.0 ? map_at(c, v, 2, i) : map_at(c, v, 3, i);
}

OP_CASE(where) = {.names = {"dst", "cond", "a", "b"},
                  .outs = 1,
                  .ins = 3,
                  .in_place = OP_BIT(1) | OP_BIT(2) | OP_BIT(3),
                  .any_shape = OP_BIT(0),
                  .draw = draw_where,
                  .fill = fill_where,
                  .run = run_where,
                  .reference = reference_where,
                  .tolerance = 0.0};

/* da, db, dy of one shape; cond broadcasts. */
static void draw_where_backward(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK], part[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 4, dims), part_rank = op_random_broadcast(r, rank, dims, part);
    for (int k = 0; k < 3; k++)
        op_tensor(c, k, MICA_F32, rank, dims);
    op_tensor(c, 3, test_chance(r, 50) ? MICA_U8 : MICA_F32, part_rank, part);
    c->absent[0] = test_chance(r, 20);
    c->absent[1] = !c->absent[0] && test_chance(r, 20);
}

static void fill_where_backward(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        value[i] = tensor == 3 ? test_int(r, 0, 2) : test_normal(r);
    (void)c;
}

static mica_status run_where_backward(mica_context *ctx, const op_call *c)
{
    return mica_where_backward(ctx, OP(c, 0), OP(c, 1), OP(c, 2), OP(c, 3));
}

static void reference_where_backward(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 2); i++) {
        bool cond = v[3][op_broadcast_index(&c->tensor[3], &c->tensor[2], i)] != 0.0;
        if (!c->absent[0])
            v[0][i] = cond ? v[2][i] : 0.0;
        if (!c->absent[1])
            v[1][i] = cond ? 0.0 : v[2][i];
    }
}

OP_CASE(where_backward) = {.names = {"da", "db", "dy", "cond"},
                           .outs = 2,
                           .ins = 2,
                           .in_place = OP_BIT(2),
                           .optional = OP_BIT(0) | OP_BIT(1),
                           .draw = draw_where_backward,
                           .fill = fill_where_backward,
                           .run = run_where_backward,
                           .reference = reference_where_backward,
                           .tolerance = 0.0};
