/* Layers that rearrange, cut and join, and sums and products of two values. Axes may count from the end. Axis 0
 * is the batch, which a step may make smaller: so shapes are best said without its size. */
#ifndef MICA_LAYERS_SHAPE_H
#define MICA_LAYERS_SHAPE_H

#include <mica/net.h>
#include <mica/ops/shape.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Another shape for the same elements: costs nothing ---- */

typedef struct mica_net_flatten_opts {
    const char *name;
    int first, last; /* axes that are joined; 0, 0: all but the batch */
} mica_net_flatten_opts;
MICA_API mica_value mica_net_flatten(mica_net *net, mica_value x, const mica_net_flatten_opts *opts);

typedef struct mica_net_reshape_opts {
    const char *name;
    int rank;
    mica_index dims[MICA_MAX_RANK]; /* 0: as x has at this axis; one may be -1: what is left */
} mica_net_reshape_opts;
MICA_API mica_value mica_net_reshape(mica_net *net, mica_value x, const mica_net_reshape_opts *opts);

typedef struct mica_net_axis_opts {
    const char *name;
    int axis;
} mica_net_axis_opts;
/* Without an axis of size 1. */
MICA_API mica_value mica_net_squeeze(mica_net *net, mica_value x, const mica_net_axis_opts *opts);
/* With another axis of size 1, which becomes axis `axis`. */
MICA_API mica_value mica_net_unsqueeze(mica_net *net, mica_value x, const mica_net_axis_opts *opts);

/* ---- Other places ---- */

/* Axis k of the result is axis axes[k] of x. */
typedef struct mica_net_permute_opts {
    const char *name;
    int axes[MICA_MAX_RANK];
} mica_net_permute_opts;
MICA_API mica_value mica_net_permute(mica_net *net, mica_value x, const mica_net_permute_opts *opts);

/* Two axes in each other's place. */
typedef struct mica_net_transpose_opts {
    const char *name;
    int a, b; /* 0, 0: the last two */
} mica_net_transpose_opts;
MICA_API mica_value mica_net_transpose(mica_net *net, mica_value x, const mica_net_transpose_opts *opts);

typedef struct mica_net_pad_opts {
    const char *name;
    mica_pad_opts pad; /* elements before and after each axis, and what they are */
} mica_net_pad_opts;
MICA_API mica_value mica_net_pad(mica_net *net, mica_value x, const mica_net_pad_opts *opts);

/* Elements start, start + step, ... before stop along an axis, as in Python: negative positions count from the
 * end, those out of range are clamped. */
typedef struct mica_net_slice_opts {
    const char *name;
    int axis;
    mica_index start;
    mica_index stop; /* 0: through the end */
    mica_index step; /* 0: 1 */
} mica_net_slice_opts;
MICA_API mica_value mica_net_slice(mica_net *net, mica_value x, const mica_net_slice_opts *opts);

/* One behind the other along an axis: up to MICA_OP_OUTS values. */
MICA_API mica_value mica_net_concat(mica_net *net, const mica_value *values, int count,
                                    const mica_net_axis_opts *opts);

/* ---- Two values, element by element; either is broadcast to the other ---- */

typedef struct mica_net_pair_opts {
    const char *name;
} mica_net_pair_opts;
/* a + b */
MICA_API mica_value mica_net_plus(mica_net *net, mica_value a, mica_value b, const mica_net_pair_opts *opts);
/* a * b */
MICA_API mica_value mica_net_times(mica_net *net, mica_value a, mica_value b, const mica_net_pair_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
