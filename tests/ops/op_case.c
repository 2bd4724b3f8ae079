/* The list of cases, and what they use to draw and to compute references. */
#include "ops/op_case.h"

#include <math.h>
#include <string.h>

static op_case *cases;

void op_register(op_case *op, const char *name)
{
    op->name = name;
    op_case **place = &cases;
    while (*place != NULL && strcmp((*place)->name, name) < 0)
        place = &(*place)->next;
    op->next = *place;
    *place = op;
}

const op_case *op_cases(void) { return cases; }

void op_tensor(op_call *c, int tensor, mica_dtype dtype, int rank, const mica_index *dims)
{
    mica_tensor *t = &c->tensor[tensor];
    *t = (mica_tensor){.dtype = dtype, .rank = rank};
    mica_index stride = 1;
    for (int i = rank - 1; i >= 0; i--) {
        t->dim[i] = dims[i];
        t->stride[i] = stride;
        stride *= dims[i];
    }
}

int op_random_shape(const op_call *c, test_random *r, int low_rank, int high_rank, mica_index *dims)
{
    int rank = test_int(r, low_rank, high_rank);
    if (c->large && rank == 0)
        rank = high_rank > 0 ? 1 : 0;
    for (int i = 0; i < rank; i++)
        dims[i] = test_chance(r, 4) ? 0 : test_chance(r, 15) ? test_int(r, 8, 40) : test_int(r, 1, 6);
    if (c->large && rank > 0) {
        /* One long axis, short others. */
        mica_index others = 1;
        int longest = test_int(r, 0, rank - 1);
        for (int i = 0; i < rank; i++) {
            dims[i] = test_int(r, 1, 5);
            others *= i == longest ? 1 : dims[i];
        }
        dims[longest] = test_int(r, 80000, 120000) / others;
    }
    return rank;
}

int op_random_broadcast(test_random *r, int rank, const mica_index *dims, mica_index *out)
{
    int dropped = test_chance(r, 25) ? test_int(r, 0, rank) : 0;
    for (int i = dropped; i < rank; i++)
        out[i - dropped] = test_chance(r, 25) ? 1 : dims[i];
    return rank - dropped;
}

size_t op_count(const op_call *c, int tensor) { return mica_tensor_count(&c->tensor[tensor]); }

size_t op_broadcast_index(const mica_tensor *t, const mica_tensor *to, size_t i)
{
    size_t index = 0, step = 1;
    for (int axis = to->rank - 1; axis >= 0; axis--) {
        size_t position = i % (size_t)to->dim[axis];
        i /= (size_t)to->dim[axis];
        int own = axis - (to->rank - t->rank);
        if (own < 0)
            continue;
        if (t->dim[own] != 1)
            index += position * step;
        step *= (size_t)t->dim[own];
    }
    return index;
}

void op_numeric_gradient(double *gradient, double *x, size_t count, double (*loss)(void *user), void *user)
{
    for (size_t i = 0; i < count; i++) {
        double kept = x[i], step = 1e-5 * (1.0 + fabs(kept));
        x[i] = kept + step;
        double above = loss(user);
        x[i] = kept - step;
        double below = loss(user);
        x[i] = kept;
        gradient[i] = (above - below) / (2.0 * step);
    }
}
