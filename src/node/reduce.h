/* Reductions: what their entries and their gradients share. */
#ifndef MICA_SRC_NODE_REDUCE_H
#define MICA_SRC_NODE_REDUCE_H

#include "node/entry.h"

/* Of the options: axes, count, keep. */
#define MICA_REDUCTION_FIELDS 3
extern const mica_field mica_reduction_fields[MICA_REDUCTION_FIELDS];

/* The axes that are reduced of a tensor of this rank; infer has checked them. */
unsigned mica_reduction_mask(const mica_reduction_opts *opts, int rank);

/* t, a result of a reduction of a tensor of this rank, with reduced axes of size 1. */
mica_tensor mica_reduction_kept(const mica_tensor *t, int rank, unsigned mask);

void mica_sum_gradient(mica_grad *g);
void mica_mean_gradient(mica_grad *g);
void mica_prod_gradient(mica_grad *g);
void mica_amax_gradient(mica_grad *g);
void mica_amin_gradient(mica_grad *g);
void mica_variance_gradient(mica_grad *g);
void mica_norm_gradient(mica_grad *g);

#endif
