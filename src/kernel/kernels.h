/* The kernel tables: what touches elements, one table per instruction set, chosen once per context.
 *
 * Kernels take plain pointers and trust them; the operations in src/ops check. Each family has a header that
 * declares its struct of function pointers and a .c file that is compiled once per instruction set and fills
 * it. A new family is those two files and one line here. */
#ifndef MICA_SRC_KERNEL_KERNELS_H
#define MICA_SRC_KERNEL_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/activation.h"
#include "kernel/attention.h"
#include "kernel/axis.h"
#include "kernel/block.h"
#include "kernel/cache.h"
#include "kernel/conv.h"
#include "kernel/convert.h"
#include "kernel/gemm.h"
#include "kernel/int8.h"
#include "kernel/loss.h"
#include "kernel/map.h"
#include "kernel/norm.h"
#include "kernel/optimizer.h"
#include "kernel/pooling.h"
#include "kernel/probe.h"
#include "kernel/quant.h"
#include "kernel/random.h"
#include "kernel/recurrent.h"
#include "kernel/reduce.h"
#include "kernel/rotary.h"
#include "kernel/rows.h"
#include "kernel/winograd.h"

#define MICA_KERNEL_COMMON_FAMILIES(X)                                 \
    X(gemm)       /* matrix products */                                \
    X(map)        /* element-wise: one value out of one to three */    \
    X(activation) /* activations and their gradients, as map */        \
    X(reduce)     /* many elements into one */                         \
    X(axis)       /* along one axis: softmax, normalize */             \
    X(conv)       /* image patches for the matrix product */           \
    X(tiles)      /* convolution without packing */                    \
    X(taps)       /* the same, one plane at a time */                  \
    X(winograd)   /* transforms of three by three convolutions */      \
    X(convert)    /* from one element type to another */               \
    X(block)      /* block-quantized values to floats and back */      \
    X(random)     /* fills from a random stream, dropout */            \
    X(norm)       /* normalization of rows, segments and columns */    \
    X(attention)  /* products of tiles and the softmax between them */ \
    X(cache)      /* attention over a cache of keys and values */      \
    X(rotary)     /* rotary position embedding */                      \
    X(rows)       /* rows times rows of weights of several types */    \
    X(loss)       /* losses with their gradients */                    \
    X(optimizer)  /* updates of parameters */                          \
    X(pool)       /* pooling over planes */                            \
    X(recurrent)  /* the gates of recurrent cells */

/* Those that gain by instructions which only some processors of a set have: these are compiled once more for each
 * variant of it (CMakeLists.txt). */
#define MICA_KERNEL_VARIANT_FAMILIES(X)                  \
    X(quant) /* products with block-quantized weights */ \
    X(int8)  /* products of bytes, for int8 nets */      \
    X(probe) /* the best this machine can do, for benchmarks */

#define MICA_KERNEL_FAMILIES(X)    \
    MICA_KERNEL_COMMON_FAMILIES(X) \
    MICA_KERNEL_VARIANT_FAMILIES(X)

typedef struct mica_kernels {
    const char *isa;       /* "avx512", also of a variant of it */
    const char *full_name; /* "avx512-vnni"; "avx512-plain" without a variant's instructions */
#define MICA_KERNEL_FIELD(family) const mica_##family##_kernels *family;
    MICA_KERNEL_FAMILIES(MICA_KERNEL_FIELD)
#undef MICA_KERNEL_FIELD
} mica_kernels;

extern const mica_kernels mica_kernels_scalar;
extern const mica_kernels mica_kernels_avx2;
extern const mica_kernels mica_kernels_avx2_vnni;
extern const mica_kernels mica_kernels_avx512;
extern const mica_kernels mica_kernels_avx512_vnni;
extern const mica_kernels mica_kernels_neon;
extern const mica_kernels mica_kernels_neon_dot;

/* The kernels of a set by name, of its best variant that runs here unless the full name is given; with NULL those
 * named by $MICA_ISA, and without that the best that runs here. NULL for a name that is unknown, not built in, or
 * that this CPU or OS cannot run. */
const mica_kernels *mica_kernels_choose(const char *isa);

#endif
