/* The product behind a convolution that makes an image: output channels x pixels = weights x patches, the patches
 * never in memory as a whole but packed from the image as the product asks for them.
 *
 * How it runs depends on its sizes:
 *
 *   direct     very few output channels (depthwise above all): sums over taps, one plane at a time
 *   tiles      taps of few enough channels to keep a window of them all: sums in register tiles, no packing
 *   winograd   three by three taps of many channels: conv_winograd.h
 *   columns    three rows of taps of few channels: conv_columns.h
 *   products   one matrix product for each image and group, straight into the output
 *   staged     where the output's pixels do not lie at one stride, or images are so small that several share a
 *              product: bands of pixels, by way of the scratch
 *
 *   scratch:  [ for each thread that needs its own: the product's panels, a stage m x band ]
 *   tiles:    [ panels of weights | offsets of taps | for each thread: a window ]
 */
#ifndef MICA_SRC_OPS_CONV_PRODUCT_H
#define MICA_SRC_OPS_CONV_PRODUCT_H

#include "ops/conv/conv.h"
#include "ops/conv/columns.h"
#include "ops/conv/grid.h"
#include "ops/conv/winograd.h"

typedef enum mica_conv_path {
    MICA_CONV_DIRECT,
    MICA_CONV_TILES,
    MICA_CONV_WINOGRAD,
    MICA_CONV_COLUMNS,
    MICA_CONV_PRODUCTS,
    MICA_CONV_STAGED,
} mica_conv_path;

/* The plan of a product by way of lines.
 *
 *   scratch:  [ weights | offsets | for each thread: inputs, outputs 6 x some x room ] */
typedef struct mica_conv_columns {
    mica_conv_lines lines;
    size_t some; /* output channels of a round */
    size_t weight_bytes, offset_bytes, input_bytes, output_bytes;
} mica_conv_columns;

/* What becomes of an image instead of being left: the largest of windows of its planes. */
typedef struct mica_conv_pooling {
    mica_pool_shape shape;
    float *y;         /* [images, groups * m, windows] */
    int32_t *indices; /* the same, or NULL */
} mica_conv_pooling;

/* The weights of one group: `vectors` are output channels. */
typedef struct mica_conv_weights {
    mica_conv_taps taps;
    ptrdiff_t vector_stride, group_stride;
    size_t rows, columns;
    const mica_gemm_kernels *gemm;
} mica_conv_weights;

typedef struct mica_conv_product {
    size_t images, groups;
    size_t m, channels; /* output and input channels of a group */
    mica_conv_planes out;
    mica_conv_patches in;
    mica_conv_weights w;
    const float *bias; /* [groups * m], contiguous, or NULL */
    bool accumulate;
    mica_map_fn *finish; /* applied at the end, or NULL */
    float slope;         /* its parameter */
    /* Instead of an image, where mica_conv_tiles_total says so: the sum of each of its planes, or of the part of
     * it that a block has, [images, groups, blocks, m], and how its pixels end. NULL: the image. */
    double *totals;
    /* Instead of an image, where mica_conv_stage_floats says so: this, by way of a stage of so many bytes a
     * thread, and `finish` after it. */
    const mica_conv_pooling *pool;
    char *stage;
    size_t stage_bytes;
    mica_conv_finish ending;

    /* The plan: mica_conv_product_plan fills it in. */
    const mica_context *ctx;
    const mica_kernels *kernels;
    mica_conv_path path;
    size_t k, pixels;            /* of a group; of an image */
    size_t band;                 /* direct: rows of a block; staged: pixels */
    mica_conv_grid grid;         /* tiles */
    mica_conv_winograd winograd; /* its own */
    mica_conv_columns columns;   /* its own */
    size_t gemm_bytes, thread_bytes;
    char *scratch;
} mica_conv_product;

/* The product that makes the narrow image, all but its plan and its bias. */
mica_conv_product mica_conv_narrow_product(const mica_context *ctx, const mica_conv *conv);

/* The bias of so many channels as contiguous numbers: as it lies, or copied to `scratch`, of so many bytes. */
size_t mica_conv_bias_bytes(const mica_conv *conv, size_t channels);
const float *mica_conv_load_bias(const mica_conv *conv, size_t channels, float *scratch);

/* Chooses the path. */
void mica_conv_product_plan(const mica_context *ctx, mica_conv_product *p);

/* Bytes of scratch that a planned product takes. */
size_t mica_conv_product_bytes(const mica_context *ctx, const mica_conv_product *p);

/* Packs output channels first .. first + count - 1: a mica_gemm_pack_fn, source a mica_conv_weights. */
void mica_conv_pack_weights(const void *source, float *panel, size_t width, size_t first, size_t count,
                            size_t k0, size_t k);

/* Runs a planned product, whose bias and scratch are set by now. */
void mica_conv_product_run(mica_context *ctx, mica_conv_product *p);

/* Finishes rows x columns of one output plane: the ways that can do so while the cache has them. */
void mica_conv_finish_plane(const mica_conv_product *p, float *at, size_t rows, size_t columns);

/* The tiles: their part of the scratch, and of the run. */
size_t mica_conv_tiles_bytes(const mica_context *ctx, const mica_conv_product *p);
void mica_conv_tiles_run(mica_context *ctx, const mica_conv_product *p);
/* Floats of the stage that a planned product with a pool wants for each thread; 0 if it cannot end that way:
 * no thread has all of an image at a time. */
size_t mica_conv_stage_floats(const mica_conv_product *p);

/* Pools m planes of the stage: those from `channel` on, of all groups, of an image. */
void mica_conv_pool_stage(const mica_conv_product *p, const float *stage, size_t image, size_t channel,
                          size_t m);

/* A planned product of `count` images from `first` on, which are contiguous. */
mica_conv_product mica_conv_images_product(const mica_context *ctx, const mica_conv *c,
                                           const mica_conv_pooling *pool, size_t first, size_t count);

/* Makes some images at a time, and has all planes of these, `count` from number `first` on, done with by `then`: what
 * becomes of them is not said by the product. Takes its scratch, or is only measured. */
typedef void mica_conv_planes_fn(mica_context *ctx, void *user, const float *planes, size_t first,
                                 size_t count);
mica_status mica_conv_by_images(mica_context *ctx, const mica_conv *c, mica_conv_planes_fn *then, void *user);

/* Whether a planned product can leave totals: it goes by tiles, and a window has all channels. */
static inline bool mica_conv_tiles_total(const mica_conv_product *p)
{
    return p->path == MICA_CONV_TILES && p->grid.window.channels == p->channels;
}

/* Winograd's transforms: whether they are the better way, their part of the scratch, and of the run. */
bool mica_conv_winograd_plan(const mica_context *ctx, mica_conv_product *p);
size_t mica_conv_winograd_bytes(const mica_context *ctx, const mica_conv_product *p);
void mica_conv_winograd_run(mica_context *ctx, const mica_conv_product *p);

/* The same down the columns alone. */
bool mica_conv_columns_plan(const mica_context *ctx, mica_conv_product *p);
size_t mica_conv_columns_bytes(const mica_context *ctx, const mica_conv_product *p);
void mica_conv_columns_run(mica_context *ctx, const mica_conv_product *p);

#endif
