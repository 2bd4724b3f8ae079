/* Convolutions whose narrow image lies channels last: [N, C, H, W] with strides [H W C, 1, W C, C], or a slice of more
 * channels. Two paths, which no other is tried against where they fit:
 *
 *   last        pixels x weights, in register tiles (kernel/last.h). What is read may lie either way: channels last
 *               with a single tap it is read where it lies, otherwise by way of patches, a block of pixels at a time.
 *                 scratch:  [ weights in panels, unless they are prepared | patches: of each thread, or of all pixels ]
 *   last taps   depthwise, channels last on both sides.
 *                 scratch:  [ weights, unless they are prepared ]
 *
 * A layout is told by strides alone, and so that they also tell it of images of one pixel: channels are side by side,
 * and pixels at least as far apart as there are channels, more than one.
 *
 * Weights in the order that the kernels read can be packed once and for all: prepare.h. */
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
    bool shared;     /* the patches of all pixels are made first, as several blocks of channels read them */
    size_t weight_bytes, patch_bytes;
} mica_conv_last;

/* Whether channels lie side by side, so many for a pixel. */
static inline bool mica_conv_is_last(size_t channels, ptrdiff_t channel_stride, ptrdiff_t column_stride)
{
    return channels > 1 && channel_stride == 1 && column_stride >= (ptrdiff_t)channels;
}

/* Nanoseconds of one thread for a planned product by its path, in either layout, in the manner of cost.h. For choosing
 * between layouts: with prepared weights, if ctx->prepares. */
double mica_conv_cost(const mica_context *ctx, const struct mica_conv_product *p);
/* The same for a mica_conv2d with these tensors, of which no data is read. */
mica_status mica_conv2d_cost(mica_context *ctx, double *nanoseconds, const mica_tensor *dst,
                             const mica_tensor *x, const mica_tensor *w, const mica_conv2d_opts *opts);

#endif
