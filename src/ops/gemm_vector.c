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

/* The product as a matrix times a vector: A times a column, or a row times B, which is B transposed times a column.
 * False if no kernel can take it as it lies. */
static bool as_vector(const mica_gemm *g, bool column, vector_job *v)
{
    const mica_gemm_operand *matrix = column ? &g->a : &g->b, *vector = column ? &g->b : &g->a;
    if ((column ? g->n : g->m) != 1 || (column ? g->column_bias : g->row_bias) != NULL)
        return false;
    v->m = matrix->data;
    v->x = vector->data;
    v->bias = column ? g->row_bias : g->column_bias;
    v->m_row_stride = matrix->vector_stride;
    v->m_k_stride = matrix->k_stride;
    v->x_stride = vector->k_stride;
    v->y_stride = column ? g->row_stride : g->column_stride;
    v->rows = column ? g->m : g->n;
    return (v->m_k_stride == 1 && v->x_stride == 1) || (v->m_row_stride == 1 && v->y_stride == 1);
}

static bool takes(const mica_gemm *g, vector_job *v)
{
    return g->a.pack == NULL && g->b.pack == NULL && (as_vector(g, false, v) || as_vector(g, true, v));
}

bool mica_gemm_is_vector(const mica_gemm *g)
{
    vector_job v;
    return g->a.pack == NULL && g->b.pack == NULL && as_vector(g, false, &v);
}

/* Divisions take as long as a small product: one of a single block does without. */
static void run_vector(mica_context *ctx, const mica_gemm *g, vector_job *v)
{
    v->y = g->c;
    v->k = g->k;
    v->alpha = g->alpha;
    v->beta = g->beta;
    v->block_rows = v->rows;
    if (v->rows * v->k <= VECTOR_BLOCK) {
        vector_block(v, 0, 0);
        return;
    }
    v->block_rows = mica_round_up(VECTOR_BLOCK / g->k + 1, v->kernels->tile_columns);
    mica_parallel(ctx, mica_div_up(v->rows, v->block_rows), vector_block, v);
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
    if (g->beta != 0.0f && g->from != g->c)
        return false;
    vector_job v = {.kernels = kernels};
    if (takes(g, &v)) {
        run_vector(ctx, g, &v);
        return true;
    }
    if (g->a.pack != NULL || g->b.pack != NULL)
        return false;
    if (!is_outer(g))
        return false;
    outer_job o = {.g = g, .kernels = kernels, .block_rows = VECTOR_BLOCK / g->n + 1};
    mica_parallel(ctx, mica_div_up(g->m, o.block_rows), outer_block, &o);
    return true;
}
