/* Weights of a convolution, prepared once for one of its paths: for nets that are not trained.
 *
 * A path that can read prepared weights is a row of the table in prepare.c. What is prepared depends on the channels
 * and taps, not on the sizes of images: it serves every smaller call. Where a smaller one does not go that way, it goes
 * as if nothing were prepared. */
#ifndef MICA_SRC_OPS_CONV_PREPARE_H
#define MICA_SRC_OPS_CONV_PREPARE_H

#include "ops/conv/product.h"

/* The tensors of a mica_conv2d. */
typedef struct mica_conv_tensors {
    const mica_tensor *dst, *x, *w, *bias;
} mica_conv_tensors;

/* The row of the path for which weights are best prepared, for a call of these shapes, and how many floats that takes;
 * *row is -1 where none is better than what needs no preparation. No data is read. */
mica_status mica_conv_prepare_choose(mica_context *ctx, int *row, size_t *floats, const mica_conv_tensors *t,
                                     const mica_conv2d_opts *opts);
/* Prepares them. Of the images only the shapes count: those that it was chosen for. */
mica_status mica_conv_prepare(mica_context *ctx, const mica_tensor *prepared, int row,
                              const mica_conv_tensors *t, const mica_conv2d_opts *opts);
/* mica_conv2d with what was prepared; and mica_conv2d_mean, of an image that lies as x does, with what was prepared for
 * a mica_conv2d that makes it. */
mica_status mica_conv_prepared(mica_context *ctx, const mica_conv_tensors *t, const mica_tensor *prepared,
                               int row, const mica_conv2d_opts *opts);
mica_status mica_conv_prepared_mean(mica_context *ctx, const mica_conv_tensors *t,
                                    const mica_tensor *prepared, int row, const mica_conv2d_opts *opts);
/* Nanoseconds of one thread for a planned product, as its path is chosen or with weights prepared. */
double mica_conv_prepared_cost(mica_context *ctx, const mica_conv *conv);

/* Of each path: floats for a planned product, and making them. */
size_t mica_conv_last_floats(const mica_context *ctx, const mica_conv_product *p);
void mica_conv_last_prepare(mica_context *ctx, const mica_conv_product *p, float *to);
size_t mica_conv_last_taps_floats(const mica_context *ctx, const mica_conv_product *p);
void mica_conv_last_taps_prepare(mica_context *ctx, const mica_conv_product *p, float *to);
size_t mica_conv_packed_floats(const mica_context *ctx, const mica_conv_product *p);
void mica_conv_packed_prepare(mica_context *ctx, const mica_conv_product *p, float *to);
size_t mica_conv_deep_floats(const mica_context *ctx, const mica_conv_product *p);
void mica_conv_deep_prepare(mica_context *ctx, const mica_conv_product *p, float *to);

#endif
