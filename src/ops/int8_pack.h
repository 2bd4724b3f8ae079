/* Weights as int8 products read them: made at each call in scratch, or once, by mica_int8_pack.
 *
 *     linear        panels of `width` rows, as kernel/int8.h has them | what their sums start at
 *     convolution   of one group: panels of channels [quads][channels of it][4], the last rounded up to whole vectors |
 *                   what sums of channels start at, as many
 *     grouped       for each group, blocks of channels [quads][channels of it][4] | what sums of channels start at
 *     depthwise     the same | for channels last (kernel/int8.h), panels of channels [rows of quads][columns][deep][4]
 *     tiled         as of one group | what sums of channels start at here | whether sums of panels are small enough |
 *                   panels of channels [36][pairs of input channels][channels of it][2], of 16 bits (int8_tiled.c)
 *
 * A quad of a convolution is four channels at one tap (quads by channel group, then tap), or, where that takes fewer,
 * four taps in a row of one channel. */
#ifndef MICA_SRC_OPS_INT8_PACK_H
#define MICA_SRC_OPS_INT8_PACK_H

#include "ops/int8.h"

typedef struct mica_int8_packing {
    bool linear, slides;    /* quads are taps in a row */
    bool panels, depthwise; /* of a convolution of one group; of groups of one channel in and out */
    size_t groups, in, out; /* channels of a group; of a linear one, values and units */
    size_t taps[2];
    size_t planes;          /* of quads: four channels each, or one */
    size_t values, quads;   /* of a sum */
    size_t start_at, bytes; /* where the starts are; of all */
    size_t most;            /* the bytes of this or of fewer channels */
    size_t deep_at;         /* where starts end; from there on, panels of a depthwise one */
    size_t tiled_at;        /* where what is for tiles is; 0: there is none */
} mica_int8_packing;

mica_int8_packing mica_int8_packing_of(const mica_int8_kernels *kernels, const mica_tensor *w, size_t groups);
/* Channels of the block that starts with so many left. */
size_t mica_int8_block(const mica_int8_kernels *kernels, size_t left);
/* Where the weights of channel c of a group are, from the group's first, and how far its quads are apart; blocks start
 * with it where they are no panels. */
size_t mica_int8_channel_at(const mica_int8_packing *p, const mica_int8_kernels *kernels, size_t c,
                            size_t *apart);
/* Panel number k of a linear one. */
static inline size_t mica_int8_panel_bytes(const mica_int8_packing *p, const mica_int8_kernels *kernels)
{
    return p->quads * kernels->width * 4;
}
#if !defined(MICA_SMALL)
/* Adds what tiles take, where weights are of such a shape. */
void mica_int8_add_tiles(mica_int8_packing *p, const mica_int8_kernels *kernels);
void mica_int8_pack_tiles(mica_context *ctx, const mica_int8_packing *p, void *to, const int8_t *w,
                          const int32_t *bias, int32_t zero);
/* A panel of a depthwise one. */
static inline size_t mica_int8_deep_bytes(const mica_int8_packing *p, const mica_int8_kernels *kernels)
{
    return (p->taps[0] + 3) / 4 * p->taps[1] * kernels->deep * 4;
}
#endif
/* `zero`: the zero point of x. */
void mica_int8_pack_into(mica_context *ctx, const mica_int8_packing *p, void *to, const int8_t *w,
                         const int32_t *bias, int32_t zero);
/* `packed` may be absent; what it must be. */
mica_status mica_int8_check_packed(mica_context *ctx, const char *op, const mica_tensor *packed,
                                   const mica_int8_packing *p);

/* Products of any kind; args as mica_int8_check_weights or mica_affine_check_weights has set them. */
mica_status mica_int8_linear_of(mica_context *ctx, const char *op, const mica_arg args[MICA_INT8_ARGS],
                                mica_int8_finish finish, int32_t zero);
mica_status mica_int8_conv_of(mica_context *ctx, const char *op, const mica_arg args[MICA_INT8_ARGS],
                              const mica_int8_conv_opts *windows, mica_int8_finish finish, int32_t zero);

#endif
