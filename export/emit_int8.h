/* What the rewrites and the emitters of int8 agree on. */
#ifndef MICA_EXPORT_EMIT_INT8_H
#define MICA_EXPORT_EMIT_INT8_H

#include "export/emit.h"

/* Inputs of int8_linear and int8_conv2d. */
enum { INT8_X, INT8_W, INT8_BIAS, INT8_MULTIPLIER, INT8_SHIFT };

/* The limits of a result, as arguments; of a call that has none, from `least` to 127. */
typedef struct limit_words {
    char text[32];
} limit_words;
limit_words limit_words_of(const call *c, int least);

/* numbers[] of int8_conv_plane. */
enum { INT8_KERNEL, INT8_PAD };

#define INT8_FEW 4 /* outputs of a group: with fewer, laying out patches does not pay */

/* Kernels of convolutions. */
enum {
    INT8_GENERAL,
    INT8_ONE, /* 1 x 1 */
    INT8_3X3,
    INT8_3X3_POOL,
    INT8_WIDE,
    INT8_WIDE_POOL,
    INT8_PLAIN_POOL,
    INT8_PATCHES,
    INT8_PATCHES_POOL,
};
static inline bool int8_packs(int kernel) { return kernel >= INT8_3X3 && kernel <= INT8_WIDE_POOL; }
static inline bool int8_patches(int kernel) { return kernel >= INT8_PATCHES; }
static inline bool int8_pools(int kernel)
{
    return kernel == INT8_3X3_POOL || kernel == INT8_WIDE_POOL || kernel == INT8_PLAIN_POOL ||
           kernel == INT8_PATCHES_POOL;
}

/* Element i of a packed constant, from the net's tensor. */
int packed_number(const value *v, const mica_tensor *t, size_t i);

#endif
