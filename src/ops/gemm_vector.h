/* Products that need no panels: by a vector, of a column and a row, and empty ones. */
#ifndef MICA_SRC_OPS_GEMM_VECTOR_H
#define MICA_SRC_OPS_GEMM_VECTOR_H

#include "ops/gemm.h"

/* Computes *g, but for its finish, if it is of this kind and lies so that a kernel can take it; else returns
 * false. ctx NULL: on this thread alone. */
bool mica_gemm_vector_run(mica_context *ctx, const mica_gemm_kernels *kernels, const mica_gemm *g);

/* Whether it is a row times a matrix, whatever its data, column bias and beta (a step may add where the plan's
 * measurement did not), if what it adds to is c: such a product takes no scratch, and neither does a smaller one that
 * lies the same way. */
bool mica_gemm_is_vector(const mica_gemm *g);

#endif
