/* Cases of the element-wise operations. */
#include "ops/op_case.h"

static void draw_binary(op_call *c, test_random *r)
{
    mica_index dims[MICA_MAX_RANK], part[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 5, dims);
    op_tensor(c, 0, MICA_F32, rank, dims);
    for (int k = 1; k <= 2; k++) {
        int part_rank = op_random_broadcast(r, rank, dims, part);
        op_tensor(c, k, MICA_F32, part_rank, part);
    }
}

static mica_status run_add(mica_context *ctx, const op_call *c)
{
    return mica_add(ctx, OP(c, 0), OP(c, 1), OP(c, 2));
}

static void reference_add(const op_call *c, double *const *v)
{
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = v[1][op_broadcast_index(&c->tensor[1], &c->tensor[0], i)] +
                  v[2][op_broadcast_index(&c->tensor[2], &c->tensor[0], i)];
}

OP_CASE(add) = {.names = {"dst", "a", "b"},
                .outs = 1,
                .ins = 2,
                .in_place = OP_BIT(1) | OP_BIT(2),
                .any_shape = OP_BIT(0),
                .draw = draw_binary,
                .run = run_add,
                .reference = reference_add,
                .tolerance = 1e-7};
