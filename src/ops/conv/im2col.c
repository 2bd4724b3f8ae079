/* Patches as columns and back: mica_im2col, mica_col2im. */
#include "base/parallel.h"
#include "ops/conv/conv.h"

typedef struct job {
    const mica_kernels *kernels;
    mica_conv_patches in;   /* im2col: what is read */
    mica_conv_planes image; /* col2im: what is written */
    mica_conv_dim rows, columns;
    size_t channels;
    float *matrix; /* [N, C KH KW, OH OW] */
    ptrdiff_t batch_stride, tap_stride, pixel_stride;
} job;

/* One axis of the image, whose size is wide. */
static mica_status infer(mica_context *ctx, mica_conv_dim *out, const char *op, const char *name,
                         const mica_tensor *image, int d, const mica_im2col_opts *o)
{
    MICA_TRY(mica_conv_check_option(ctx, op, "kernel", o->kernel[d]));
    MICA_TRY(mica_conv_check_option(ctx, op, "stride", o->stride[d]));
    MICA_TRY(mica_conv_check_option(ctx, op, "pad", o->pad[d]));
    MICA_TRY(mica_conv_check_option(ctx, op, "dilation", o->dilation[d]));
    mica_index taps = o->kernel[d] > 0 ? o->kernel[d] : 1, dilation = o->dilation[d] > 0 ? o->dilation[d] : 1;
    mica_index stride = o->stride[d] > 0 ? o->stride[d] : 1, size = image->dim[2 + d];
    mica_index span = dilation * (taps - 1) + 1, padded = size + 2 * o->pad[d];
    if (padded < span)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: %s is %s: the kernel spans %td in dimension %d, expected at most %td", op, name,
                         MICA_SHAPE(image), span, 2 + d, padded);
    *out = (mica_conv_dim){
        (size_t)size, (size_t)((padded - span) / stride) + 1, (size_t)taps, stride, o->pad[d], dilation};
    return MICA_OK;
}

/* Checks both tensors and takes them apart. */
static mica_status check(mica_context *ctx, job *out, const char *op, const mica_arg *matrix,
                         const mica_arg *image, const mica_im2col_opts *opts)
{
    static const mica_im2col_opts defaults;
    const mica_im2col_opts *o = opts != NULL ? opts : &defaults;
    const mica_tensor *x = image->tensor, *m = matrix->tensor;
    MICA_TRY(mica_check_rank(ctx, op, image->name, x, 4, 4));
    MICA_TRY(mica_check_rank(ctx, op, matrix->name, m, 3, 3));
    *out = (job){.kernels = ctx->kernels, .channels = (size_t)x->dim[1]};
    MICA_TRY(infer(ctx, &out->rows, op, image->name, x, 0, o));
    MICA_TRY(infer(ctx, &out->columns, op, image->name, x, 1, o));
    mica_index want[3] = {x->dim[0], 0, 0};
    if (__builtin_mul_overflow(x->dim[1], (mica_index)(out->rows.taps * out->columns.taps), &want[1]) ||
        __builtin_mul_overflow((mica_index)out->rows.narrow, (mica_index)out->columns.narrow, &want[2]))
        want[1] = want[2] = PTRDIFF_MAX; /* which no tensor has */
    MICA_TRY(mica_check_shape(ctx, op, matrix->name, m, 3, want, image->name, x));
    out->image = (mica_conv_planes){x->data, x->stride[0], x->stride[1], x->stride[2], x->stride[3]};
    out->matrix = m->data;
    out->batch_stride = m->stride[0];
    out->tap_stride = m->stride[1];
    out->pixel_stride = m->stride[2];
    return MICA_OK;
}

static mica_conv conv_of(const job *j)
{
    return (mica_conv){.rows = j->rows, .columns = j->columns, .wide = j->image};
}

/* All columns of one channel of one image. */
static void im2col_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    size_t channel = block % j->channels, image = block / j->channels;
    size_t taps = j->rows.taps * j->columns.taps, pixels = j->rows.narrow * j->columns.narrow;
    mica_conv_patches in = j->in;
    in.data += (ptrdiff_t)image * in.image_stride;
    float *rows = j->matrix + (ptrdiff_t)image * j->batch_stride +
                  (ptrdiff_t)(channel * taps) * j->tap_stride;
    bool in_place = j->pixel_stride == 1 && j->tap_stride >= 0;
    for (size_t first = 0; first < pixels; first += MICA_CONV_PIXELS) {
        size_t n = mica_least(pixels - first, MICA_CONV_PIXELS);
        if (in_place) {
            MICA_KERNEL(j->kernels, conv, fill)
            (&in, rows + first, (size_t)j->tap_stride, first, n, channel * taps, taps);
            continue;
        }
        for (size_t tap = 0; tap < taps; tap++) {
            float stage[MICA_CONV_PIXELS];
            MICA_KERNEL(j->kernels, conv, fill)(&in, stage, 0, first, n, channel * taps + tap, 1);
            for (size_t i = 0; i < n; i++)
                rows[(ptrdiff_t)tap * j->tap_stride + (ptrdiff_t)(first + i) * j->pixel_stride] = stage[i];
        }
    }
}

mica_status mica_im2col(mica_context *ctx, const mica_tensor *dst, const mica_tensor *x,
                        const mica_im2col_opts *opts)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"x", x, 0, 0}};
    MICA_TRY(mica_check_args(ctx, "im2col", args, 2));
    job j;
    MICA_TRY(check(ctx, &j, "im2col", &args[0], &args[1], opts));
    MICA_START(ctx, "im2col", 0, NULL);
    mica_conv conv = conv_of(&j);
    j.in = mica_conv_patches_of(&conv, ctx->kernels);
    mica_parallel(ctx, (size_t)dst->dim[0] * j.channels, im2col_block, &j);
    return MICA_OK;
}

/* One row of columns onto the row of the image that its tap meets: dst[i stride - pad + u dilation] += src[i] */
static void add_row(const job *j, float *row, const float *from, size_t u)
{
    const mica_conv_dim *d = &j->columns;
    ptrdiff_t at = (ptrdiff_t)u * d->dilation - d->pad;
    ptrdiff_t low = at >= 0 ? 0 : (-at + d->stride - 1) / d->stride;
    ptrdiff_t high = at >= (ptrdiff_t)d->wide ? 0 : ((ptrdiff_t)d->wide - 1 - at) / d->stride + 1;
    high = high < (ptrdiff_t)d->narrow ? high : (ptrdiff_t)d->narrow;
    if (low < high)
        MICA_KERNEL(j->kernels, conv, add)
        (row + (at + low * d->stride) * j->image.column_stride, j->image.column_stride * d->stride,
         from + low * j->pixel_stride, j->pixel_stride, (size_t)(high - low));
}

/* One channel of one image. */
static void col2im_block(void *work, size_t block, int thread)
{
    (void)thread;
    const job *j = work;
    size_t channel = block % j->channels, image = block / j->channels;
    size_t taps = j->rows.taps * j->columns.taps;
    float *plane = j->image.data + (ptrdiff_t)image * j->image.image_stride +
                   (ptrdiff_t)channel * j->image.channel_stride;
    const float *from = j->matrix + (ptrdiff_t)image * j->batch_stride +
                        (ptrdiff_t)(channel * taps) * j->tap_stride;
    for (size_t h = 0; h < j->rows.wide; h++)
        for (size_t w = 0; w < j->columns.wide; w++)
            plane[(ptrdiff_t)h * j->image.row_stride + (ptrdiff_t)w * j->image.column_stride] = 0.0f;
    for (size_t tap = 0; tap < taps; tap++) {
        size_t t = tap / j->columns.taps, u = tap % j->columns.taps;
        for (size_t i = 0; i < j->rows.narrow; i++) {
            ptrdiff_t h = (ptrdiff_t)i * j->rows.stride - j->rows.pad + (ptrdiff_t)t * j->rows.dilation;
            if (h >= 0 && h < (ptrdiff_t)j->rows.wide)
                add_row(j, plane + h * j->image.row_stride,
                        from + (ptrdiff_t)tap * j->tap_stride +
                            (ptrdiff_t)(i * j->columns.narrow) * j->pixel_stride,
                        u);
        }
    }
}

mica_status mica_col2im(mica_context *ctx, const mica_tensor *dst, const mica_tensor *columns,
                        const mica_im2col_opts *opts)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"columns", columns, 0, 0}};
    MICA_TRY(mica_check_args(ctx, "col2im", args, 2));
    job j;
    MICA_TRY(check(ctx, &j, "col2im", &args[1], &args[0], opts));
    MICA_START(ctx, "col2im", 0, NULL);
    mica_parallel(ctx, (size_t)dst->dim[0] * j.channels, col2im_block, &j);
    return MICA_OK;
}
