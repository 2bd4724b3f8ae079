/* The matrix product behind matmul, convolution and attention: c = f(alpha * a b + beta * from + bias), in f32.
 *
 * After Goto and BLIS: operands are packed into panels that the caches hold, and a register tile runs down
 * strips of them. What is read in order anyway, or used too little to be worth it, is not packed. A matrix need
 * not exist in memory: an operand may bring its own packing, as convolution does to feed image patches straight
 * into the panels.
 *
 *   scratch:  [ for each thread a block of A's panels | panels of B: GEMM_K x up to GEMM_N columns ]
 *
 * A matrix that is the same in every product, as weights are, may be packed once (mica_gemm_pack), and take no part of
 * the scratch. The sums are the same.
 */
#ifndef MICA_SRC_OPS_GEMM_H
#define MICA_SRC_OPS_GEMM_H

#include <mica/ops/linalg.h>

#include "base/context.h"
#include "kernel/kernels.h"

/* Packs vectors first .. first + count - 1 (rows of A, columns of B; count <= width), elements k0 .. k0 + k -
 * 1 of each, into one panel: element (p, i) at panel[p * width + i], zeros for i >= count. */
typedef void mica_gemm_pack_fn(const void *source, float *panel, size_t width, size_t first, size_t count,
                               size_t k0, size_t k);

/* Sums are made in runs of so many products, each added to c. Long ones go over c less often; short ones take less
 * scratch. */
#if defined(MICA_SMALL)
#define MICA_GEMM_RUN ((size_t)256)
#else
#define MICA_GEMM_RUN ((size_t)1024)
#endif

typedef struct mica_gemm_operand {
    /* A strided matrix: element (i, p) of A, or (p, i) of B, at data[i * vector_stride + p * k_stride]. */
    const float *data;
    ptrdiff_t vector_stride, k_stride;
    /* Or, if not NULL, packing of its own. Called from several threads at once. */
    mica_gemm_pack_fn *pack;
    const void *source;
    /* Beside either of them, all panels of the matrix, from mica_gemm_pack for this side of the product; or NULL. */
    const float *packed;
} mica_gemm_operand;

typedef struct mica_gemm {
    size_t m, n, k; /* c is m x n */
    mica_gemm_operand a, b;
    float *c; /* element (i, j) at c[i * row_stride + j * column_stride]; overlaps neither a nor b */
    ptrdiff_t row_stride, column_stride;
    float alpha, beta; /* with beta == 0, `from` is not read */
    const float *from; /* m x n, apart from c or exactly it; NULL: c itself, and its strides */
    ptrdiff_t from_row_stride, from_column_stride;
    const float *row_bias;    /* [m], contiguous, or NULL */
    const float *column_bias; /* [n], contiguous, or NULL */
    mica_map_fn *finish;      /* applied to c in place at the end, or NULL; column_stride must then be 1 */
    const void *finish_params;
} mica_gemm;

/* Bytes of scratch for a product, by all threads of the context or by one: sizes, strides and where panels come from
 * count, data need not be there. They are enough for every smaller product that lies the same way, and with fewer
 * threads. mica_gemm_most_scratch: with all threads, however the matrices lie. */
size_t mica_gemm_scratch(const mica_context *ctx, const mica_gemm *g);
size_t mica_gemm_serial_scratch(const mica_context *ctx, const mica_gemm *g);
size_t mica_gemm_most_scratch(const mica_context *ctx, size_t m, size_t n, size_t k);

/* All panels of a matrix of `vectors` rows of A (left), or columns of B, of length k: how many floats they take, and
 * packing them, by all threads. Run of k by run of k, panel behind panel. */
size_t mica_gemm_packed_floats(const mica_context *ctx, size_t vectors, size_t k, bool left);
void mica_gemm_pack(mica_context *ctx, float *panels, const mica_gemm_operand *from, size_t vectors, size_t k,
                    bool left);

/* For products of tensors: b [K, N], or with `transpose` [N, K], packed into f32 [mica_gemm_packed_floats]; and
 * mica_matmul by it, given as it lies, too: the same bits. */
mica_status mica_matmul_pack(mica_context *ctx, const mica_tensor *packed, const mica_tensor *b,
                             bool transpose);
mica_status mica_matmul_packed(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                               const mica_tensor *b, const mica_tensor *packed, const mica_matmul_opts *opts);

/* Computes with all threads of the context. */
void mica_gemm_run(mica_context *ctx, const mica_gemm *g, void *scratch);

/* Computes on the calling thread alone: for use inside a block of parallel work. The same bits as
 * mica_gemm_run. */
void mica_gemm_run_serial(const mica_context *ctx, const mica_gemm *g, void *scratch);

/* Below this many multiply-adds one product is not worth sharing between threads: a batch of them is, each by one
 * thread with serial scratch of its own. */
#define MICA_GEMM_SMALL ((size_t)1 << 21)

static inline bool mica_gemm_many(size_t count, size_t m, size_t n, size_t k)
{
    return count > 1 && m * n * k < MICA_GEMM_SMALL;
}

/* Bytes that each thread takes if there are many; and scratch for a batch of so many products, or of fewer and
 * smaller ones, whether these are many or not. */
size_t mica_gemm_each_scratch(const mica_context *ctx, const mica_gemm *g);
size_t mica_gemm_batch_scratch(const mica_context *ctx, const mica_gemm *g, size_t count);

#endif
