/* Weights and patches of a convolution as operands of matrix products. */
#ifndef MICA_SRC_OPS_CONV_OPERANDS_H
#define MICA_SRC_OPS_CONV_OPERANDS_H

#include "ops/conv/product.h"
#include "ops/gemm.h"

static inline mica_gemm_operand mica_conv_weights_operand(const mica_conv_weights *w)
{
    ptrdiff_t stride;
    if (w->rows == 1 && mica_conv_pixel_stride(&stride, w->taps.channels, w->columns, w->taps.channel_stride,
                                               w->taps.column_stride))
        return (mica_gemm_operand){
            .data = w->taps.data, .vector_stride = w->vector_stride, .k_stride = stride};
    return (mica_gemm_operand){.pack = mica_conv_pack_weights, .source = w};
}

/* Whether patches are of one pixel each, and pixels of the image lie at its columns' stride: a 1x1 convolution needs no
 * packing of its own. The first alone does not depend on the image's size. */
static inline bool mica_conv_single_pixels(const mica_conv_patches *in)
{
    const mica_conv_axis *r = &in->rows, *c = &in->columns;
    return r->taps == 1 && c->taps == 1 && r->scale == 1 && c->scale == 1 && r->base == 0 && c->base == 0;
}

static inline bool mica_conv_plain_pixels(const mica_conv_patches *in)
{
    const mica_conv_axis *r = &in->rows, *c = &in->columns;
    ptrdiff_t stride;
    return mica_conv_single_pixels(in) && r->count <= r->image && c->count <= c->image &&
           mica_conv_pixel_stride(&stride, r->count, c->count, in->row_stride, in->column_stride) &&
           stride == in->column_stride;
}

static inline mica_gemm_operand mica_conv_plain_operand(const mica_conv_patches *in)
{
    return (mica_gemm_operand){
        .data = in->data, .vector_stride = in->column_stride, .k_stride = in->channel_stride};
}

static inline mica_gemm_operand mica_conv_packed_operand(const mica_conv_patches *in,
                                                         const mica_conv_kernels *kernels)
{
    return (mica_gemm_operand){.pack = MICA_KERNEL_OF(kernels, conv, pack), .source = in};
}

#endif
