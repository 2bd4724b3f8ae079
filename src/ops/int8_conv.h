/* A convolution of int8 images, as its paths share it. */
#ifndef MICA_SRC_OPS_INT8_CONV_H
#define MICA_SRC_OPS_INT8_CONV_H

#include "ops/int8_pack.h"

#define MICA_INT8_BLOCK_SUMS ((double)(1 << 19)) /* of parallel work, about */
#define MICA_INT8_SLACK      ((size_t)512)       /* bytes behind what vectors read or write */

/* Position i of a convolution meets input position i * stride - pad + t * dilation by tap t; `made` of its `out`
 * positions, or of pairs of these, become output, `step` input positions apart. */
typedef struct mica_int8_dim {
    mica_index in, out, taps, stride, pad, dilation, made, step;
} mica_int8_dim;

typedef struct mica_int8_job {
    const mica_int8_kernels *kernels;
    mica_int8_packing packing;
    size_t batch;
    mica_int8_dim dim[2];
    mica_index pool; /* 1, or 2: windows of 2 x 2 */
    const int8_t *x;
    char *y;
    mica_int8_finish finish;
    int32_t zero; /* of x */
    uint8_t pad;  /* what padding is in a window: the zero point, with the kernels' offset */
    size_t size;  /* of a result, in bytes */
    int each;
    const int8_t *w;
    const int32_t *start;
    int32_t *at;
    char *own; /* of threads */
    size_t own_bytes, window_bytes, result_bytes;
    mica_index rows, pitch,
        phase_rows; /* rows of output at a time; quads of a row; rows of a phase of a window */
    size_t tiles, units_at_once;
    bool bytes;         /* a window is of bytes, not of quads: see kernel/int8.h */
    bool x_last;        /* x has its channels last; int8_last.c */
    size_t part, parts; /* channels of a group that are made from a window at once, and how often */
} mica_int8_job;

static inline mica_index mica_int8_span(const mica_int8_dim *d) { return (d->taps - 1) * d->dilation + 1; }

#if !defined(MICA_SMALL)
/* Channels last (int8_last.c): whether a call is for it, and the call. `planar`: scratch of the other path, which
 * smaller images of the same layouts may take. */
bool mica_int8_last_takes(const mica_int8_job *job, const mica_tensor *y, const mica_tensor *x);
mica_status mica_int8_last_run(mica_context *ctx, const char *op, mica_int8_job *job, const mica_arg *args,
                               double sums, size_t planar);
/* By tiles (int8_tiled.c): whether packed weights are for them; the scratch of a call, 0 if it never goes that way;
 * whether it does, of a job that is ready; the call. */
void mica_int8_take_tiles(mica_int8_job *job, const mica_tensor *packed);
size_t mica_int8_tiled_scratch(const mica_context *ctx, const mica_int8_job *job);
bool mica_int8_tiled_takes(const mica_int8_job *job);
void mica_int8_tiled_run(mica_context *ctx, const mica_int8_job *job, void *scratch, double sums);
/* Whether weights are worth packing for tiles, of calls with an x of this shape, with channels last. */
bool mica_int8_tiles_pay(const mica_context *ctx, const mica_tensor *x, const mica_tensor *w,
                         const mica_int8_conv_opts *o);
/* How long a call takes by where the channels of x and y lie, in nanoseconds, about (net/layout.c). */
double mica_int8_conv_time(const mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                           const mica_tensor *w, const mica_int8_conv_opts *o);
#else
static inline bool mica_int8_tiles_pay(const mica_context *ctx, const mica_tensor *x, const mica_tensor *w,
                                       const mica_int8_conv_opts *o)
{
    (void)ctx, (void)x, (void)w, (void)o;
    return false;
}
#endif

#endif
