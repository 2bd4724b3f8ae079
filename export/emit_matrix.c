/* Matrix products whose batches broadcast; vectors. */
#include <string.h>

#include "export/formula.h"
#include "export/nest.h"

/* One product of matrices at offsets: text after the pointers. */
static void emit_product(emitter *e, const char *c, const char *a, const char *b, const char *bias, int m,
                         int n, int k, const int stride[4], double alpha, int add)
{
    use_kernel(e, "matmul");
    emit(e, "matmul(%s, %s, %s, %s, %d, %d, %d, %d, %d, %d, %d, %s, %d);", c, a, b, bias, m, n, k, stride[0],
         stride[1], stride[2], stride[3], float_text(alpha), add);
}

static double alpha_of(const mica_matmul_opts *o) { return o->alpha != 0.0f ? (double)o->alpha : 1.0; }

/* The leading axes of v as a shape of their own, of matrices. */
static void add_matrices(nest *n, const char *name, const value *v)
{
    int number = nest_add(n, name), missing = n->rank - (v->rank - 2);
    mica_index stride[MICA_MAX_RANK];
    strides_of(v, stride);
    for (int k = 0; k < v->rank - 2; k++)
        n->stride[number][missing + k] = v->dim[k] == 1 ? 0 : stride[k];
}

static void emit_matmul(emitter *e, const call *c)
{
    const mica_matmul_opts *o = c->opts;
    const value *a = in_value(e, 0), *b = in_value(e, 1), *y = out_value(e, 0);
    int m = (int)y->dim[y->rank - 2], n = (int)y->dim[y->rank - 1];
    int k = (int)a->dim[a->rank - (o->transpose_a ? 2 : 1)];
    int stride[4] = {o->transpose_a ? 1 : k, o->transpose_a ? m : 1, o->transpose_b ? 1 : n,
                     o->transpose_b ? k : 1};
    nest loops;
    text at[3] = {{0}, {0}, {0}};
    nest_start(&loops, NULL);
    for (int axis = 0; axis < y->rank - 2; axis++)
        nest_axis(&loops, y->dim[axis]);
    add_matrices(&loops, out_name(e, 0), y);
    add_matrices(&loops, in_name(e, 0), a);
    add_matrices(&loops, in_name(e, 1), b);
    nest_open(e, &loops);
    for (int i = 0; i < 3; i++) {
        const char *index = nest_index(&loops, i);
        text_put(&at[i], strcmp(index, "0") == 0 ? "%s" : "%s + %s", loops.name[i], index);
    }
    emit_product(e, at[0].bytes, at[1].bytes, at[2].bytes, c->ins > 2 ? in_name(e, 2) : "0", m, n, k, stride,
                 alpha_of(o), (int)(c->add & 1u));
    nest_close(e, &loops);
    for (int i = 0; i < 3; i++)
        text_free(&at[i]);
    emit_finish(e, out_name(e, 0), y->count, o->activation, (double)o->slope);
}

/* dw [K, N], or with transpose_b [N, K]: a [rows, K] and dy [rows, N] over all their rows. */
static void emit_shared(emitter *e, const call *c)
{
    const mica_matmul_opts *o = c->opts;
    int k = columns_of(in_value(e, 0)), n = columns_of(in_value(e, 1)), rows = rows_of(in_value(e, 0));
    int straight[4] = {1, k, n, 1}, swapped[4] = {1, n, k, 1};
    if (o->transpose_b)
        emit_product(e, out_name(e, 0), in_name(e, 1), in_name(e, 0), "0", n, k, rows, swapped, alpha_of(o),
                     (int)(c->add & 1u));
    else
        emit_product(e, out_name(e, 0), in_name(e, 0), in_name(e, 1), "0", k, n, rows, straight, alpha_of(o),
                     (int)(c->add & 1u));
}

static void emit_matvec(emitter *e, const call *c)
{
    const value *a = in_value(e, 0);
    int m = (int)a->dim[0], k = (int)a->dim[1];
    bool transposed = strcmp(c->name, "matvec_transposed") == 0;
    int straight[4] = {k, 1, 1, 0}, swapped[4] = {1, k, 1, 0};
    emit_product(e, out_name(e, 0), in_name(e, 0), in_name(e, 1), "0", transposed ? k : m, 1,
                 transposed ? m : k, transposed ? swapped : straight, 1.0, (int)(c->add & 1u));
}

static void emit_outer(emitter *e, const call *c)
{
    int n = columns_of(out_value(e, 0));
    emit(e, "for (int i = 0; i < %zu; i++)", out_value(e, 0)->count);
    emit(e, "    %s[i] %s %s[i / %d] * %s[i %% %d];", out_name(e, 0), c->add & 1u ? "+=" : "=", in_name(e, 0),
         n, in_name(e, 1), n);
}

const export_op export_matrix_ops[] = {
    {.name = "matmul", .emit = emit_matmul, .adds = 1},
    {.name = "matmul_backward_shared", .emit = emit_shared, .adds = 1},
    {.name = "matvec", .emit = emit_matvec, .adds = 1},
    {.name = "matvec_transposed", .emit = emit_matvec, .adds = 1},
    {.name = "outer", .emit = emit_outer, .adds = 1},
    {.name = NULL},
};
