/* Convolutions whose narrow image lies channels last: [N, C, H, W] with strides [H W C, 1, W C, C], or a slice of more
 * channels. Two paths, which no other is tried against where they fit:
 *
 *   last        pixels x weights, in register tiles (kernel/last.h). What is read may lie either way: channels last
 *               with a single tap it is read where it lies, otherwise by way of patches, a block of pixels at a time.
 *                 scratch:  [ weights in panels, unless they are prepared | for each thread: patches ]
 *   last taps   depthwise, channels last on both sides.
 *                 scratch:  [ weights, unless they are prepared ]
 *
 * A layout is told by strides alone, and so that they also tell it of images of one pixel: channels are side by side,
 * and pixels at least as far apart as there are channels, more than one.
 *
 * Weights in the order that the kernels read can be packed once and for all: mica_conv_product.prepared. */
#ifndef MICA_SRC_OPS_CONV_LAST_H
#define MICA_SRC_OPS_CONV_LAST_H

#include "ops/conv/conv.h"

struct mica_conv_product;

/* The plan of a product by way of `last`. */
typedef struct mica_conv_last {
    bool direct;     /* what is read is not copied */
    bool planar;     /* patches are [k, pixels], of an image that does not lie channels last */
    ptrdiff_t pixel; /* stride of what is written */
    size_t run;      /* pixels at that stride, one behind the other; and of what is read, if direct */
    size_t block;    /* pixels of a block, but for the last of a run */
    size_t some;     /* channels of a block: whole panels */
    size_t weight_bytes, patch_bytes;
} mica_conv_last;

/* Whether channels lie side by side, so many for a pixel. */
static inline bool mica_conv_is_last(size_t channels, ptrdiff_t channel_stride, ptrdiff_t column_stride)
{
    return channels > 1 && channel_stride == 1 && column_stride >= (ptrdiff_t)channels;
}

/* Floats of the weights of a planned product as its path wants them prepared, by its kernels; 0 where it takes them as
 * they lie. */
size_t mica_conv_prepared_floats(const struct mica_conv_product *p);
/* Writes these, to an address aligned to MICA_ALIGN. */
void mica_conv_prepare(const struct mica_conv_product *p, float *to);

/* For nets, which prepare weights once: what the weights of a mica_conv2d with these tensors and options take, of which
 * no data is read but the weights', and written to `to` unless that is NULL. *floats is 0 where they are taken as they
 * lie. They hold for any batch, height and width, by the same kernels, in the same layouts. */
mica_status mica_conv2d_prepare(mica_context *ctx, float *to, size_t *floats, const mica_tensor *dst,
                                const mica_tensor *x, const mica_tensor *w, const mica_conv2d_opts *opts);
/* mica_conv2d with these; NULL: with those of w. */
mica_status mica_conv2d_prepared(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                 const mica_tensor *w, const mica_tensor *bias, const float *prepared,
                                 const mica_conv2d_opts *opts);
/* mica_conv2d_mean with those of a mica_conv2d that reads and writes channels last; of no use unless x lies so. */
mica_status mica_conv2d_mean_prepared(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                                      const mica_tensor *w, const mica_tensor *bias, const float *prepared,
                                      const mica_conv2d_opts *opts);

/* Nanoseconds of one thread for a planned product by its path, in either layout, in the manner of cost.h: those that
 * write channels last as with prepared weights. For the choice between layouts. */
double mica_conv_cost(const mica_context *ctx, const struct mica_conv_product *p);
/* The same for a mica_conv2d with these tensors, of which no data is read. */
mica_status mica_conv2d_cost(mica_context *ctx, double *nanoseconds, const mica_tensor *dst,
                             const mica_tensor *x, const mica_tensor *w, const mica_conv2d_opts *opts);

#endif
