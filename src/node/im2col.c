/* Patches as columns, and back: each is the other's gradient. */
#include <string.h>

#include "node/entry.h"
#include "node/planes.h"

static mica_im2col_opts patches_of(const mica_col2im_opts *o)
{
    mica_im2col_opts p;
    memcpy(p.kernel, o->kernel, sizeof p.kernel);
    memcpy(p.stride, o->stride, sizeof p.stride);
    memcpy(p.pad, o->pad, sizeof p.pad);
    memcpy(p.dilation, o->dilation, sizeof p.dilation);
    return p;
}

/* Taps of a patch, and patches of an image [.., .., H, W]: rows and columns of a channel's matrix. */
static mica_status infer_matrix(mica_infer *i, const mica_tensor *image, const mica_im2col_opts *o,
                                mica_index *taps, mica_index *patches)
{
    mica_conv2d_opts how = {.stride = {o->stride[0], o->stride[1]},
                            .pad = {o->pad[0], o->pad[1]},
                            .dilation = {o->dilation[0], o->dilation[1]}};
    mica_index kernel[2] = {o->kernel[0] != 0 ? o->kernel[0] : 1, o->kernel[1] != 0 ? o->kernel[1] : 1};
    mica_index sizes[2] = {0};
    char reason[MICA_REASON];
    mica_status status = mica_conv_sizes(sizes, reason, image, kernel, &how, false);
    if (status != MICA_OK)
        return mica_infer_fail(i, status, "%s", reason);
    if (__builtin_mul_overflow(kernel[0], kernel[1], taps) ||
        __builtin_mul_overflow(sizes[0], sizes[1], patches))
        return mica_infer_fail(i, MICA_ERR_SHAPE,
                               "columns of %td x %td taps and %td x %td patches are too many", kernel[0],
                               kernel[1], sizes[0], sizes[1]);
    return MICA_OK;
}

/* ---- im2col ---- */

static mica_status im2col_infer(mica_infer *i)
{
    const mica_tensor *x = i->in[0];
    mica_index taps = 0, dims[3] = {x->dim[0]};
    if (x->dtype != MICA_F32 || x->rank != 4)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 [N, C, H, W]");
    MICA_TRY(infer_matrix(i, x, i->opts, &taps, &dims[2]));
    if (__builtin_mul_overflow(x->dim[1], taps, &dims[1]))
        return mica_infer_fail(i, MICA_ERR_SHAPE, "%td channels of %td taps are too many", x->dim[1], taps);
    return mica_infer_out(i, 0, MICA_F32, 3, dims);
}

static mica_status im2col_run(const mica_call *c)
{
    return mica_im2col(c->ctx, c->out[0], c->in[0], c->opts);
}

static void im2col_gradient(mica_grad *g)
{
    const mica_im2col_opts *p = g->opts;
    mica_col2im_opts back = {.size = {0}}; /* that of x, whose shape the gradient has */
    memcpy(back.kernel, p->kernel, sizeof back.kernel);
    memcpy(back.stride, p->stride, sizeof back.stride);
    memcpy(back.pad, p->pad, sizeof back.pad);
    memcpy(back.dilation, p->dilation, sizeof back.dilation);
    mica_grad_give(g, 0, &mica_op_col2im, &g->dout[0], 1, &back);
}

/* ---- col2im ---- */

static mica_status col2im_infer(mica_infer *i)
{
    const mica_col2im_opts *o = i->opts;
    const mica_tensor *columns = i->in[0];
    mica_im2col_opts p = patches_of(o);
    mica_index taps = 1, patches = 0;
    if (columns->dtype != MICA_F32 || columns->rank != 3)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected f32 [N, C KH KW, OH OW]");
    if (o->size[0] < 0 || o->size[1] < 0)
        return mica_infer_fail(i, MICA_ERR_ARGUMENT, "size is %td x %td: expected 0 or more", o->size[0],
                               o->size[1]);
    mica_tensor image = {.rank = 4, .dim = {columns->dim[0], 1, o->size[0], o->size[1]}};
    MICA_TRY(infer_matrix(i, &image, &p, &taps, &patches));
    if (columns->dim[1] % taps != 0 || columns->dim[2] != patches)
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected a multiple of %td rows and %td columns", taps,
                               patches);
    image.dim[1] = columns->dim[1] / taps;
    return mica_infer_out(i, 0, MICA_F32, 4, image.dim);
}

static mica_status col2im_run(const mica_call *c)
{
    mica_im2col_opts p = patches_of(c->opts);
    return mica_col2im(c->ctx, c->out[0], c->in[0], &p);
}

static void col2im_gradient(mica_grad *g)
{
    mica_im2col_opts p = patches_of(g->opts);
    mica_grad_give(g, 0, &mica_op_im2col, &g->dout[0], 1, &p);
}

/* ---- Samples ---- */

/* Options, and the sizes of an image that they fit. */
static void sample_patches(mica_op_sample *s, mica_col2im_opts *o, mica_index patches[2])
{
    for (int k = 0; k < 2; k++) {
        o->kernel[k] = mica_op_sample_int(s, 1, 3);
        o->stride[k] = mica_op_sample_int(s, 1, 2);
        o->dilation[k] = mica_op_sample_int(s, 1, 2);
        mica_index reach = o->dilation[k] * (o->kernel[k] - 1) + 1;
        o->pad[k] = mica_op_sample_int(s, 0, (reach - 1) / 2);
        mica_index more = mica_op_sample_int(s, 0, 3);
        o->size[k] = reach - 2 * o->pad[k] + more;
        patches[k] = more / o->stride[k] + 1;
    }
}

static void im2col_sample(mica_op_sample *s)
{
    mica_col2im_opts o = {.size = {0}};
    mica_index patches[2];
    sample_patches(s, &o, patches);
    *(mica_im2col_opts *)s->opts = patches_of(&o);
    mica_op_sample_shape(
        s, 0, 4,
        (mica_index[]){mica_op_sample_int(s, 1, 2), mica_op_sample_int(s, 1, 3), o.size[0], o.size[1]});
}

static void col2im_sample(mica_op_sample *s)
{
    mica_col2im_opts *o = s->opts;
    mica_index patches[2];
    sample_patches(s, o, patches);
    mica_index rows = mica_op_sample_int(s, 1, 3) * o->kernel[0] * o->kernel[1];
    mica_op_sample_shape(s, 0, 3, (mica_index[]){mica_op_sample_int(s, 1, 2), rows, patches[0] * patches[1]});
}

/* ---- Entries ---- */

#define PATCH_FIELDS(type)                                                              \
    MICA_FIELDS(type, kernel, INDEX, "0: 1"), MICA_FIELDS(type, stride, INDEX, "0: 1"), \
        MICA_FIELDS(type, pad, INDEX, "zero padding on each side"),                     \
        MICA_FIELDS(type, dilation, INDEX, "0: 1")

static const mica_field im2col_fields[] = {PATCH_FIELDS(mica_im2col_opts)};
static const mica_field col2im_fields[] = {
    PATCH_FIELDS(mica_col2im_opts),
    MICA_FIELDS(mica_col2im_opts, size, INDEX, "height and width of the image")};

#define ENTRY(op, words, from)                                               \
    const mica_op mica_op_##op = {.name = #op,                               \
                                  .family = "conv",                          \
                                  .about = words,                            \
                                  .ins = 1,                                  \
                                  .outs = 1,                                 \
                                  .names = (const char *const[]){from, "y"}, \
                                  .opts_bytes = sizeof(mica_##op##_opts),    \
                                  MICA_FIELD_LIST(op##_fields),              \
                                  .infer = op##_infer,                       \
                                  .run = op##_run,                           \
                                  .gradient = MICA_GRADIENT(op##_gradient),  \
                                  .sample = MICA_SAMPLE(op##_sample)};

ENTRY(im2col, "the patches that a convolution reads, as columns", "x")
ENTRY(col2im, "an image from columns: each pixel is the sum of what im2col takes from it", "columns")
