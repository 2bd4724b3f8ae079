/* Determinants, and their gradient. Small matrices: elimination in double precision. */
#include <mica/ops/index.h>

#include <math.h>

#include "ops/reduce.h"

/* a [n, n] is overwritten. */
static double determinant(double *a, size_t n)
{
    double det = 1.0;
    for (size_t k = 0; k < n; k++) {
        size_t pivot = k;
        for (size_t i = k + 1; i < n; i++)
            pivot = fabs(a[i * n + k]) > fabs(a[pivot * n + k]) ? i : pivot;
        for (size_t j = k; j < n && pivot != k; j++) {
            double moved = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = moved;
        }
        det *= pivot != k ? -a[k * n + k] : a[k * n + k];
        if (a[k * n + k] == 0.0)
            return 0.0;
        for (size_t i = k + 1; i < n; i++) {
            double factor = a[i * n + k] / a[k * n + k];
            for (size_t j = k + 1; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return det;
}

/* Copies x [n, n] without one row and one column; n: none is left out. */
static void load(double *a, const float *x, const mica_tensor *t, size_t n, size_t row, size_t column)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (i != row && j != column)
                *a++ = (double)
                    x[(mica_index)i * t->stride[t->rank - 2] + (mica_index)j * t->stride[t->rank - 1]];
}

/* x is [..., N, N], and `each` [...]. */
static mica_status check_square(mica_context *ctx, const char *op, const mica_tensor *x, const char *x_name,
                                const mica_tensor *each, const char *each_name)
{
    MICA_TRY(mica_check_rank(ctx, op, x_name, x, 2, MICA_MAX_RANK));
    if (x->dim[x->rank - 2] != x->dim[x->rank - 1])
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s: expected square matrices; %s is %s", op, x_name,
                         MICA_SHAPE(x), each_name, MICA_SHAPE(each));
    return mica_check_shape(ctx, op, each_name, each, x->rank - 2, x->dim, x_name, x);
}

static mica_tensor matrices(const mica_tensor *x) { return mica_reduce_part(x, (1u << (x->rank - 2)) - 1u); }

mica_status mica_det(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"src", src, 0, 0}};
    double *a;
    MICA_TRY(mica_check_args(ctx, "det", args, 2));
    MICA_TRY(check_square(ctx, "det", src, "src", dst, "dst"));
    size_t n = (size_t)src->dim[src->rank - 1];
    MICA_START(ctx, "det", n * n * sizeof *a, (void **)&a);
    mica_tensor each = matrices(src);
    mica_iter to = mica_iter_begin(dst, 0, NULL);
    for (mica_iter from = mica_iter_begin(&each, 0, NULL); from.valid;
         mica_iter_next(&from), mica_iter_next(&to)) {
        load(a, from.element, src, n, n, n);
        *(float *)to.element = (float)determinant(a, n);
    }
    return MICA_OK;
}

/* dx[i][j] = dy (-1)^(i + j) det(x without row i and column j): right for singular matrices too */
mica_status mica_det_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                              const mica_tensor *x)
{
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, 0, 0}, {"x", x, 0, 0}};
    double *a;
    MICA_TRY(mica_check_args(ctx, "det_backward", args, 3));
    MICA_TRY(check_square(ctx, "det_backward", x, "x", dy, "dy"));
    MICA_TRY(mica_check_same_shape(ctx, "det_backward", "dx", dx, "x", x));
    size_t n = (size_t)x->dim[x->rank - 1];
    MICA_START(ctx, "det_backward", n * n * sizeof *a, (void **)&a);
    mica_tensor each = matrices(x), out = matrices(dx);
    mica_iter from = mica_iter_begin(&each, 0, NULL), by = mica_iter_begin(dy, 0, NULL);
    for (mica_iter to = mica_iter_begin(&out, 0, NULL); to.valid && n > 0;
         mica_iter_next(&to), mica_iter_next(&from), mica_iter_next(&by))
        for (size_t i = 0; i < n * n; i++) {
            mica_index row = (mica_index)(i / n), column = (mica_index)(i % n);
            load(a, from.element, x, n, i / n, i % n);
            double cofactor = ((row + column) & 1 ? -1.0 : 1.0) * determinant(a, n - 1);
            ((float *)to.element)[row * dx->stride[dx->rank - 2] + column * dx->stride[dx->rank - 1]] =
                (float)((double)*(float *)by.element * cofactor);
        }
    return MICA_OK;
}
