/* What the cases of element-wise operations share. */
#include "ops/map_case.h"

void map_draw(op_call *c, test_random *r, int inputs)
{
    mica_index dims[MICA_MAX_RANK], part[MICA_MAX_RANK];
    int rank = op_random_shape(c, r, 0, 5, dims);
    bool alike = test_chance(r, 30); /* all of one shape */
    op_tensor(c, 0, MICA_F32, rank, dims);
    for (int k = 1; k <= inputs; k++) {
        int part_rank = op_random_broadcast(r, rank, dims, part);
        op_tensor(c, k, MICA_F32, alike ? rank : part_rank, alike ? dims : part);
    }
    c->f[0] = (double)(float)test_uniform(r, -2.0, 2.0);
    c->f[1] = c->f[0] + test_int(r, 0, 2);
    c->f[1] = (double)(float)c->f[1];
    if (c->op->fill != NULL)
        c->scale = 1e-30;
}

void map_draw1(op_call *c, test_random *r) { map_draw(c, r, 1); }
void map_draw2(op_call *c, test_random *r) { map_draw(c, r, 2); }
void map_draw3(op_call *c, test_random *r) { map_draw(c, r, 3); }

double map_at(const op_call *c, double *const *v, int k, size_t i)
{
    return v[k][op_broadcast_index(&c->tensor[k], &c->tensor[0], i)];
}

void map_fill_wild(const op_call *c, test_random *r, int tensor, double *value, size_t count)
{
    (void)c, (void)tensor;
    static const double special[] = {0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -1.5, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < count; i++) {
        if (test_chance(r, 15))
            value[i] = special[test_int(r, 0, (int)(sizeof special / sizeof *special) - 1)];
        else if (test_chance(r, 20))
            value[i] = ldexp(test_uniform(r, -2.0, 2.0), test_int(r, -60, 60));
        else
            value[i] = 2.0 * test_normal(r);
    }
}
