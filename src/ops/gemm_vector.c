/* Matrix-vector and outer products: nothing to pack, bound by the memory bandwidth of the matrix. */
#include "ops/gemm_vector.h"

#include "base/parallel.h"

/* Elements of the matrix in one block of parallel work. */
#define VECTOR_BLOCK ((size_t)65536)

/* y = alpha * m x + beta * y + bias, where m is `rows` x k. */
typedef struct vector_job {
    const mica_gemm_kernels *kernels;
    const float *m, *x, *bias;
    ptrdiff_t m_row_stride, m_k_stride, x_stride, y_stride;
    float *y;
    size_t rows, k, block_rows;
    float alpha, beta;
} vector_job;

static void vector_block(void *work, size_t block, int thread)
{
    (void)thread;
    const vector_job *v = work;
    size_t first = block * v->block_rows, rows = mica_least(v->block_rows, v->rows - first);
    float *y = v->y + (ptrdiff_t)first * v->y_stride;
    const float *m = v->m + (ptrdiff_t)first * v->m_row_stride;
    if (v->m_k_stride == 1 && v->x_stride == 1)
        v->kernels->rows_times_vector(y, v->y_stride, m, v->m_row_stride, v->x, rows, v->k, v->alpha,
                                      v->beta);
    else
        v->kernels->vector_times_rows(y, v->x, v->x_stride, m, v->m_k_stride, v->k, rows, v->alpha, v->beta);
    if (v->bias != NULL)
        for (size_t i = 0; i < rows; i++)
            y[(ptrdiff_t)i * v->y_stride] += v->bias[first + i];
}

/* Whether the product has a single row or column that a vector kernel can take as it lies; fills *v if so. */
static bool as_vector(const mica_gemm *g, const mica_gemm_kernels *kernels, vector_job *v)
{
    if (g->m != 1 && g->n != 1)
        return false;
    /* A times a column; otherwise a row times B, which is B transposed times a column */
    bool column = g->n == 1;
    const mica_gemm_operand *matrix = column ? &g->a : &g->b, *vector = column ? &g->b : &g->a;
    if ((column ? g->column_bias : g->row_bias) != NULL)
        return false;
    *v = (vector_job){.kernels = kernels,
                      .m = matrix->data,
                      .x = vector->data,
                      .bias = column ? g->row_bias : g->column_bias,
                      .m_row_stride = matrix->vector_stride,
                      .m_k_stride = matrix->k_stride,
                      .x_stride = vector->k_stride,
                      .y_stride = column ? g->row_stride : g->column_stride,
                      .y = g->c,
                      .rows = column ? g->m : g->n,
                      .k = g->k,
                      .alpha = g->alpha,
                      .beta = g->beta};
    v->block_rows = mica_round_up(VECTOR_BLOCK / g->k + 1, kernels->tile_columns);
    return (v->m_k_stride == 1 && v->x_stride == 1) || (v->m_row_stride == 1 && v->y_stride == 1);
}

/* ---- A column times a row ---- */

typedef struct outer_job {
    const mica_gemm *g;
    const mica_gemm_kernels *kernels;
    size_t block_rows;
} outer_job;

static void outer_block(void *work, size_t block, int thread)
{
    (void)thread;
    const outer_job *o = work;
    const mica_gemm *g = o->g;
    size_t first = block * o->block_rows, rows = mica_least(o->block_rows, g->m - first);
    o->kernels->outer(g->c + (ptrdiff_t)first * g->row_stride, g->row_stride,
                      g->a.data + (ptrdiff_t)first * g->a.vector_stride, g->a.vector_stride, g->b.data, rows,
                      g->n, g->alpha, g->beta);
}

static bool is_outer(const mica_gemm *g)
{
    return g->k == 1 && g->b.vector_stride == 1 && g->column_stride == 1 && g->row_bias == NULL &&
           g->column_bias == NULL;
}

/* ---- An empty sum: c = beta * from + bias ---- */

static void run_without_k(const mica_gemm *g)
{
    for (size_t i = 0; i < g->m; i++) {
        for (size_t j = 0; j < g->n; j++) {
            float v = (g->row_bias != NULL ? g->row_bias[i] : 0.0f) +
                      (g->column_bias != NULL ? g->column_bias[j] : 0.0f);
            if (g->beta != 0.0f)
                v += g->beta *
                     g->from[(ptrdiff_t)i * g->from_row_stride + (ptrdiff_t)j * g->from_column_stride];
            g->c[(ptrdiff_t)i * g->row_stride + (ptrdiff_t)j * g->column_stride] = v;
        }
    }
}

bool mica_gemm_vector_run(mica_context *ctx, const mica_gemm_kernels *kernels, const mica_gemm *g)
{
    if (g->k == 0) {
        run_without_k(g);
        return true;
    }
    if (g->a.pack != NULL || g->b.pack != NULL || (g->beta != 0.0f && g->from != g->c))
        return false;
    vector_job v;
    if (as_vector(g, kernels, &v)) {
        mica_parallel(ctx, mica_div_up(v.rows, v.block_rows), vector_block, &v);
        return true;
    }
    if (!is_outer(g))
        return false;
    outer_job o = {.g = g, .kernels = kernels, .block_rows = VECTOR_BLOCK / g->n + 1};
    mica_parallel(ctx, mica_div_up(g->m, o.block_rows), outer_block, &o);
    return true;
}
