/* The gradient by the weights:
 *
 *   dw[o, (c, t, u)] = sum over images and narrow pixels of narrow[o, pixel] * patch[(c, t, u), pixel]
 *
 * Its paths, in the manner of product.h: the table in paths.c has a row for each. */
#ifndef MICA_SRC_OPS_CONV_WEIGHT_H
#define MICA_SRC_OPS_CONV_WEIGHT_H

#include "ops/conv/conv.h"
#include "ops/conv/extent.h"

typedef struct mica_conv_weight_path {
    const char *name;
    /* Whether c can go this way, by its sizes and layout alone. */
    bool (*fits)(const mica_context *ctx, const mica_conv *c);
    /* What it is held to take by one thread (cost.h); NULL where its order decides. */
    double (*cost)(const mica_context *ctx, const mica_conv *c);
    /* Bytes of scratch for c at any sizes within *up_to that go this way; leaves in *up_to those that cannot. */
    size_t (*scratch)(const mica_context *ctx, const mica_conv *c, mica_conv_extent *up_to);
    void (*run)(mica_context *ctx, const mica_conv *c, void *scratch);
} mica_conv_weight_path;

/* Three rows of taps of few channels: Winograd's transforms down the columns alone. */
extern const mica_conv_weight_path mica_conv_weight_columns_path;
/* Three by three taps of many channels: Winograd's transforms. */
extern const mica_conv_weight_path mica_conv_weight_winograd_path;
/* Few taps in all: register tiles. */
extern const mica_conv_weight_path mica_conv_weight_tiles_path;
/* Depthwise: as many channels as a vector has lanes at a time, or strips of a plane. */
extern const mica_conv_weight_path mica_conv_weight_depthwise_path;
/* Very few narrow channels in a group: one plane at a time. */
extern const mica_conv_weight_path mica_conv_weight_direct_path;
/* Matrix products. */
extern const mica_conv_weight_path mica_conv_weight_products_path;

/* Where tap number `tap`, of (wide channel, t, u), of a narrow channel lies in the kernel. */
float *mica_conv_tap_place(const mica_conv *c, size_t channel, size_t tap);

#endif
