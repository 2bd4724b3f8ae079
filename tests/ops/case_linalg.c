/* Cases of the matrix products. */
#include "ops/op_case.h"

/* Options of matmul: i[0], i[1] transposes; i[2] an activation; f[0] alpha, f[1] beta. */
static void draw_matmul(op_call *c, test_random *r)
{
    int most = test_chance(r, 20) ? 70 : 9; /* beyond one tile now and then */
    mica_index m = test_int(r, 0, most), n = test_int(r, 0, most),
               k = test_chance(r, 5) ? 300 : test_int(r, 0, most);
    if (c->large) {
        m = test_int(r, 100, 300);
        n = test_int(r, 100, 300);
        k = test_int(r, 100, 600);
    }
    if (test_chance(r, 15))
        m = 1;
    if (test_chance(r, 15))
        n = 1;
    int batch_rank = test_chance(r, 50) ? 0 : test_int(r, 1, 3);
    mica_index batch[MICA_MAX_RANK], dims[MICA_MAX_RANK];
    for (int i = 0; i < batch_rank; i++)
        batch[i] = test_chance(r, 3) ? 0 : test_int(r, 1, 3);
    c->i[0] = test_chance(r, 50);
    c->i[1] = test_chance(r, 50);
    c->i[2] = test_chance(r, 30);
    c->f[0] = test_chance(r, 50) ? 1.0 : -0.75;
    c->f[1] = test_chance(r, 60) ? 0.0 : 0.5;
    c->scale = 1.0 + (double)k * 0.5;

    for (int i = 0; i < batch_rank; i++)
        dims[i] = batch[i];
    dims[batch_rank] = m;
    dims[batch_rank + 1] = n;
    op_tensor(c, 0, MICA_F32, batch_rank + 2, dims);
    for (int t = 1; t <= 2; t++) {
        int rank = op_random_broadcast(r, batch_rank, batch, dims);
        bool transpose = c->i[t - 1] != 0;
        mica_index rows = t == 1 ? m : k, columns = t == 1 ? k : n;
        dims[rank] = transpose ? columns : rows;
        dims[rank + 1] = transpose ? rows : columns;
        op_tensor(c, t, MICA_F32, rank + 2, dims);
    }
    c->absent[3] = test_chance(r, 60);
    op_tensor(c, 3, MICA_F32, 1, &n);
}

static mica_status run_matmul(mica_context *ctx, const op_call *c)
{
    return mica_matmul(ctx, OP(c, 0), OP(c, 1), OP(c, 2),
                       &(mica_matmul_opts){.transpose_a = c->i[0] != 0,
                                           .transpose_b = c->i[1] != 0,
                                           .alpha = (float)c->f[0],
                                           .beta = (float)c->f[1],
                                           .activation = c->i[2] ? MICA_LEAKY_RELU : MICA_NO_ACTIVATION,
                                           .slope = 0.125f,
                                           .bias = OP(c, 3)});
}

static void reference_matmul(const op_call *c, double *const *v)
{
    const mica_tensor *dst = &c->tensor[0], *a = &c->tensor[1], *b = &c->tensor[2];
    size_t m = (size_t)dst->dim[dst->rank - 2], n = (size_t)dst->dim[dst->rank - 1];
    size_t k = (size_t)a->dim[a->rank - (c->i[0] ? 2 : 1)];
    mica_tensor batch = *dst, batch_a = *a, batch_b = *b;
    batch.rank -= 2;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    for (size_t s = 0; m * n > 0 && s < op_count(c, 0) / (m * n); s++) {
        const double *va = v[1] + op_broadcast_index(&batch_a, &batch, s) * m * k;
        const double *vb = v[2] + op_broadcast_index(&batch_b, &batch, s) * k * n;
        for (size_t i = 0; i < m; i++) {
            for (size_t j = 0; j < n; j++) {
                double sum = 0.0, *out = &v[0][(s * m + i) * n + j];
                for (size_t p = 0; p < k; p++)
                    sum += va[c->i[0] ? p * m + i : i * k + p] * vb[c->i[1] ? j * k + p : p * n + j];
                *out = c->f[0] * sum + (c->f[1] != 0.0 ? c->f[1] * *out : 0.0) +
                       (c->absent[3] ? 0.0 : v[3][j]);
                if (c->i[2] && *out < 0.0)
                    *out *= 0.125;
            }
        }
    }
}

OP_CASE(matmul) = {.names = {"dst", "a", "b", "bias"},
                   .outs = 1,
                   .ins = 3,
                   .optional = OP_BIT(3),
                   .reads_outs = OP_BIT(0),
                   .any_shape = OP_BIT(0), /* its batch */
                   .contiguous = OP_BIT(3),
                   .draws = 600,
                   .draw = draw_matmul,
                   .run = run_matmul,
                   .reference = reference_matmul,
                   .tolerance = 1e-6};

static void draw_matvec(op_call *c, test_random *r)
{
    mica_index m = c->large ? 500 : test_int(r, 0, 40), k = c->large ? 1000 : test_int(r, 0, 40);
    op_tensor(c, 0, MICA_F32, 1, &m);
    op_tensor(c, 1, MICA_F32, 2, (mica_index[]){m, k});
    op_tensor(c, 2, MICA_F32, 1, &k);
    c->scale = 1.0 + (double)k * 0.5;
}

static mica_status run_matvec(mica_context *ctx, const op_call *c)
{
    return mica_matvec(ctx, OP(c, 0), OP(c, 1), OP(c, 2));
}

static void reference_matvec(const op_call *c, double *const *v)
{
    size_t k = (size_t)c->tensor[1].dim[1];
    for (size_t i = 0; i < op_count(c, 0); i++) {
        v[0][i] = 0.0;
        for (size_t p = 0; p < k; p++)
            v[0][i] += v[1][i * k + p] * v[2][p];
    }
}

OP_CASE(matvec) = {.names = {"dst", "a", "x"},
                   .outs = 1,
                   .ins = 2,
                   .draw = draw_matvec,
                   .run = run_matvec,
                   .reference = reference_matvec,
                   .tolerance = 1e-6};

static void draw_outer(op_call *c, test_random *r)
{
    mica_index m = c->large ? 300 : test_int(r, 0, 40), n = c->large ? 400 : test_int(r, 0, 40);
    op_tensor(c, 0, MICA_F32, 2, (mica_index[]){m, n});
    op_tensor(c, 1, MICA_F32, 1, &m);
    op_tensor(c, 2, MICA_F32, 1, &n);
}

static mica_status run_outer(mica_context *ctx, const op_call *c)
{
    return mica_outer(ctx, OP(c, 0), OP(c, 1), OP(c, 2));
}

static void reference_outer(const op_call *c, double *const *v)
{
    size_t n = (size_t)c->tensor[2].dim[0];
    for (size_t i = 0; i < op_count(c, 0); i++)
        v[0][i] = v[1][i / n] * v[2][i % n];
}

OP_CASE(outer) = {.names = {"dst", "a", "b"},
                  .outs = 1,
                  .ins = 2,
                  .draw = draw_outer,
                  .run = run_outer,
                  .reference = reference_outer,
                  .tolerance = 1e-6};
