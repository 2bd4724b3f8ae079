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
#include "kernel/depthwise.h"
#include "kernel/gemm.h"
#include "kernel/int8.h"
#include "kernel/last.h"
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
    X(lanes)      /* depthwise convolution, channels side by side */   \
    X(strips)     /* the same, rows of wide planes */                  \
    X(last)       /* convolution of images channels last */            \
    X(last_taps)  /* the same, depthwise */                            \
    X(last_pool)  /* pooling of images channels last */                \
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

/* ---- Reaching a kernel ----
 *
 * Through the context's table, so that the best set of this machine runs. In a small build with the scalar set alone
 * (MICA_ONE_ISA) kernels are reached by symbol instead, so that a linker drops those that a program does not use: a
 * table would keep them all. Then the context's table has no families.
 *
 *   MICA_FAMILY(kernels, gemm)         a family, of all kernels
 *   MICA_KERNEL(kernels, map, add)     a kernel, of all
 *   MICA_KERNEL_OF(table, map, add)    a kernel of a family's table; of those families that are listed below
 */
#if defined(MICA_ONE_ISA)
#define MICA_FAMILY(kernels, family)        ((void)(kernels), &mica_##family##_kernels_scalar)
#define MICA_KERNEL(kernels, family, name)  (*((void)(kernels), &mica_##family##_##name##_kernel))
#define MICA_KERNEL_OF(table, family, name) (*((void)(table), &mica_##family##_##name##_kernel))
#define MICA_KERNEL_SYMBOL(family, name, function) \
    extern __typeof__(function) mica_##family##_##name##_kernel __attribute__((alias(#function)));

#define MICA_DECLARE_FAMILY(family) extern const mica_##family##_kernels mica_##family##_kernels_scalar;
MICA_KERNEL_FAMILIES(MICA_DECLARE_FAMILY)

#define MICA_DECLARE_KERNEL(family, name) \
    extern __typeof__(*((mica_##family##_kernels *)NULL)->name) mica_##family##_##name##_kernel;
/* clang-format off */
#define MICA_KERNELS_BY_SYMBOL(X) \
    X(pool, max) X(pool, average) X(pool, max_backward) X(pool, average_backward) X(pool, adaptive) \
    X(pool, adaptive_backward) \
    X(conv, fill) X(conv, pack) X(conv, pack_transposed) X(conv, sum) X(conv, add) \
    X(taps, image) X(taps, gradient) \
    X(convert, run) X(convert, cast) X(convert, stream) X(convert, transpose) \
    X(loss, mse) X(loss, l1) X(loss, huber) X(loss, bce) X(loss, bce_logits) X(loss, cross_entropy) \
    X(loss, cross_entropy_probs) \
    X(optimizer, sgd) X(optimizer, sgd_momentum) X(optimizer, adam) X(optimizer, rmsprop) \
    X(optimizer, rmsprop_momentum) X(optimizer, adagrad) \
    X(random, uniform) X(random, normal) X(random, spread) X(random, dropout) X(random, dropout_backward) \
    X(reduce, dot) X(reduce, find) X(reduce, argmax_columns) X(reduce, argmin_columns)
/* clang-format on */
MICA_KERNELS_BY_SYMBOL(MICA_DECLARE_KERNEL)

#define MICA_DECLARE_MAP(name)                    extern mica_map_fn mica_map_##name##_kernel;
#define MICA_DECLARE_MAP_3(name, sources, params) extern mica_map_fn mica_map_##name##_kernel;
MICA_MAP_UNARY_TYPED(MICA_DECLARE_MAP)
MICA_MAP_UNARY(MICA_DECLARE_MAP)
MICA_MAP_BINARY(MICA_DECLARE_MAP)
MICA_MAP_SCALAR(MICA_DECLARE_MAP)
MICA_MAP_COMPARE(MICA_DECLARE_MAP)
MICA_MAP_CLASSIFY(MICA_DECLARE_MAP)
MICA_MAP_OTHER(MICA_DECLARE_MAP_3)
MICA_MAP_CURVES(MICA_DECLARE_MAP_3)

#define MICA_DECLARE_ACTIVATION(name, params, reads) \
    extern mica_map_fn mica_activation_##name##_kernel, mica_activation_##name##_backward_kernel;
MICA_ACTIVATIONS(MICA_DECLARE_ACTIVATION)

#define MICA_DECLARE_REDUCE(name, fold, start) extern const mica_reduce_kernel mica_reduce_##name##_kernel;
MICA_REDUCE_KERNELS(MICA_DECLARE_REDUCE)
#define MICA_DECLARE_AXIS(name, sources) extern const mica_axis_kernel mica_axis_##name##_kernel;
MICA_AXIS_KERNELS(MICA_DECLARE_AXIS)
#else
#define MICA_FAMILY(kernels, family)        ((kernels)->family)
#define MICA_KERNEL(kernels, family, name)  ((kernels)->family->name)
#define MICA_KERNEL_OF(table, family, name) ((table)->name)
#define MICA_KERNEL_SYMBOL(family, name, function)
#endif

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
