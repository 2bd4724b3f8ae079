/* The product behind a convolution that makes an image: output channels x pixels = weights x patches, the patches
 * never in memory as a whole but packed from the image as the product asks for them. Forward it makes the narrow image,
 * for the gradient by the input the wide one (image.c).
 *
 * How it runs depends on its sizes: the table in paths.c has a row for each path. Of few channels the first that fits
 * is taken, of many the one that costs least.
 *
 * What a smaller product needs is never more than what was asked for the large one. A smaller one may go another way,
 * so what is asked for is the most over all paths that any smaller one could take: each states a bound that grows
 * with each size, and which sizes it leaves to the paths below it, which counts where the first that fits is taken.
 * Where no smaller one can follow (ctx->one_size), a product asks for just what it takes. */
#ifndef MICA_SRC_OPS_CONV_PRODUCT_H
#define MICA_SRC_OPS_CONV_PRODUCT_H

#include "ops/conv/columns.h"
#include "ops/conv/conv.h"
#include "ops/conv/extent.h"
#include "ops/conv/grid.h"
#include "ops/conv/last.h"
#include "ops/conv/winograd.h"

typedef struct mica_conv_product mica_conv_product;

typedef struct mica_conv_path {
    const char *name;
    /* Whether p can go this way, by its sizes and layout alone; plans it then. */
    bool (*fits)(const mica_context *ctx, mica_conv_product *p);
    /* What p, as planned, is held to take by one thread (cost.h); NULL where its order decides. */
    double (*cost)(const mica_context *ctx, const mica_conv_product *p);
    /* Bytes of scratch for p at any sizes within *up_to that go this way; leaves in *up_to those that cannot. */
    size_t (*scratch)(const mica_context *ctx, const mica_conv_product *p, mica_conv_extent *up_to);
    /* Bytes that p itself takes, as planned. */
    size_t (*taken)(const mica_context *ctx, const mica_conv_product *p);
    void (*run)(mica_context *ctx, mica_conv_product *p);
    /* Whether `run` applies `finish`; otherwise that is a pass of its own. */
    bool finishes;
    /* Floats of the stage on which a thread has all of an image, and pools it; 0: it never has. NULL: no path to
     * the largest of windows. */
    size_t (*stage)(const mica_conv_product *p);
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

struct mica_conv_product {
    size_t images, groups;
    size_t m, channels; /* output and input channels of a group */
    mica_conv_planes out;
    mica_conv_patches in;
    mica_conv_weights w;
    const float *prepared; /* the weights as the path `wanted` reads them (prepare.h), or NULL */
    const mica_conv_path *wanted;
    const float *bias; /* [groups * m], contiguous, or NULL */
    bool narrow;       /* makes the narrow image: strides are those of tensors, by which layouts are told */
    bool accumulate;
    mica_map_fn *finish; /* applied at the end, or NULL */
    float slope;         /* its parameter */
    /* Instead of an image, where mica_conv_tiles_total says so: the sum of each of its planes, or of the part of
     * it that a block has, [images, groups, blocks, m], and how its pixels end. NULL: the image. */
    double *totals;
    bool means; /* totals are wanted */
    /* Instead of an image, where the path has a stage for it: this, by way of a stage of so many bytes a
     * thread, and `finish` after it. */
    const mica_conv_pooling *pool;
    char *stage;
    size_t stage_bytes;
    mica_conv_finish ending;

    /* The plan: mica_conv_product_plan fills it in. */
    const mica_context *ctx;
    const mica_kernels *kernels;
    const mica_conv_path *path;
    size_t k, pixels;                /* of a group; of an image */
    size_t band;                     /* direct: rows of a block; staged: pixels */
    mica_conv_grid grid;             /* tiles */
    bool channel_lanes;              /* tiles: their lanes are output channels */
    mica_conv_winograd winograd;     /* its own */
    mica_conv_columns columns;       /* its own */
    mica_conv_last last;             /* its own */
    size_t gemm_bytes, thread_bytes; /* products, staged */
    char *scratch;
};

/* The product that makes the narrow image, all but its plan and its bias. */
mica_conv_product mica_conv_narrow_product(const mica_context *ctx, const mica_conv *conv);

/* The bias of so many channels as contiguous numbers: as it lies, or copied to `scratch`, of so many bytes. */
size_t mica_conv_bias_bytes(const mica_conv *conv, size_t channels);
const float *mica_conv_load_bias(const mica_conv *conv, size_t channels, float *scratch);

/* Whether the cost decides between paths, and not their order: by channels alone. */
bool mica_conv_by_cost(size_t channels, size_t m);

/* Chooses the path. */
void mica_conv_product_plan(const mica_context *ctx, mica_conv_product *p);

/* Bytes of scratch that a planned product takes, and every smaller one that can follow: of its own sizes, or of those
 * up to *most. */
size_t mica_conv_product_bytes(const mica_context *ctx, const mica_conv_product *p);
size_t mica_conv_product_most(const mica_context *ctx, const mica_conv_product *p,
                              const mica_conv_extent *most);

/* Packs output channels first .. first + count - 1: a mica_gemm_pack_fn, source a mica_conv_weights. */
void mica_conv_pack_weights(const void *source, float *panel, size_t width, size_t first, size_t count,
                            size_t k0, size_t k);

/* Runs a planned product, whose bias and scratch are set by now. */
void mica_conv_product_run(mica_context *ctx, mica_conv_product *p);

/* Finishes rows x columns of one output plane: the ways that can do so while the cache has them. */
void mica_conv_finish_plane(const mica_conv_product *p, float *at, size_t rows, size_t columns);

/* Joins taps that lie at one stride, so that packing sees long runs. */
void mica_conv_join_taps(mica_conv_weights *w);

/* Pools m planes of the stage: those from `channel` on, of all groups, of an image. */
void mica_conv_pool_stage(const mica_conv_product *p, const float *stage, size_t image, size_t channel,
                          size_t m);

/* Whether images whose means are wanted lie channels last, as the image that they are made from does, and go by the
 * path for that. */
static inline bool mica_conv_means_last(const mica_conv *c)
{
#if defined(MICA_SMALL)
    (void)c;
    return false;
#else
    return c->pool == NULL && c->narrow_channels > MICA_CONV_DIRECT_CHANNELS &&
           mica_conv_is_last(c->groups * c->wide_channels, c->wide.channel_stride, c->wide.column_stride);
#endif
}
/* The product of `count` images from `first` on, which are contiguous: all but its plan. */
mica_conv_product mica_conv_images_product(const mica_context *ctx, const mica_conv *c, size_t first,
                                           size_t count);

/* Makes some images at a time, and has all planes of these, `count` from number `first` on, done with by `then`: what
 * becomes of them is not said by the product. Its scratch is the bias, the images, and the product's: bytes of
 * images for any sizes up to *most, and the sizes of products that make them. */
typedef void mica_conv_planes_fn(mica_context *ctx, void *user, const float *planes, size_t first,
                                 size_t count);
size_t mica_conv_some_bytes(const mica_conv *c, const mica_conv_extent *most, mica_conv_extent *some);
/* What just this convolution takes for it, products included. */
size_t mica_conv_by_images_bytes(const mica_context *ctx, const mica_conv *c);
void mica_conv_by_images(mica_context *ctx, const mica_conv *c, mica_conv_planes_fn *then, void *user,
                         void *scratch);

/* Of tiles, the most that any sizes within *up_to take; leaves in *up_to those that do not go by tiles. False where
 * none does. */
bool mica_conv_tiles_most(const mica_context *ctx, const mica_conv_product *p, mica_conv_grid *g,
                          mica_conv_extent *up_to);
/* And the scratch that this is. */
size_t mica_conv_tiles_bytes(const mica_context *ctx, const mica_conv_product *p, const mica_conv_grid *most);

/* What becomes of sums by way of the paths of last.h, and whether `finish` is left to be applied. */
mica_last_end mica_conv_last_end(const mica_conv_product *p, bool *finishes);

/* The paths. Images channels last: last.h. */
extern const mica_conv_path mica_conv_last_taps_path;
extern const mica_conv_path mica_conv_last_path;
/* Depthwise: strips of a plane, or as many channels as a vector has lanes at a time (depthwise.h). */
extern const mica_conv_path mica_conv_strips_path;
extern const mica_conv_path mica_conv_lanes_path;
/* Very few output channels: sums over taps, one plane at a time. */
extern const mica_conv_path mica_conv_direct_path;
/* Taps of few enough channels to keep a window of them all: sums in register tiles, no packing.
 *   scratch:  [ panels of weights | offsets of taps | for each thread: a window ] */
extern const mica_conv_path mica_conv_tiles_path;
/* Three by three taps of many channels: winograd.h. */
extern const mica_conv_path mica_conv_winograd_path;
extern const mica_conv_path mica_conv_deep_path;
/* Three rows of taps of few channels: columns.h. */
extern const mica_conv_path mica_conv_columns_path;
/* One matrix product for each image and group, straight into the output.
 *   scratch:  [ for each thread that makes products alone, or for all: the product's panels ] */
extern const mica_conv_path mica_conv_products_path;
/* Where the output's pixels do not lie at one stride, or images are so small that several share a product: bands of
 * pixels, by way of the scratch.
 *   scratch:  [ for each thread, or band if there are fewer: the product's panels, a stage m x band ] */
extern const mica_conv_path mica_conv_staged_path;

/* Of weights that are prepared: prepare.h. Pixels times panels of weights, straight into the output.
 *   scratch:  [ for each thread that makes products alone, or for all: the product's panels of patches ] */
extern const mica_conv_path mica_conv_packed_path;

/* Whether a planned product can leave totals: it goes by tiles, and a window has all channels. */
static inline bool mica_conv_tiles_total(const mica_conv_product *p)
{
    return p->path == &mica_conv_tiles_path && p->grid.window.channels == p->channels;
}

#endif
