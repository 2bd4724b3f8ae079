/* Dropout: zeroes elements at random and scales the others up, so that the expectation is unchanged.
 *
 * What happens to element i (in row-major order) depends only on the random position, the rate and i: the same
 * for any layout, any number of threads and any instruction set. Tensors may be of any layout; one that is not
 * contiguous is copied through the workspace.
 *
 * Sixteen random bits decide: the rate is rounded to a multiple of 1/65,536, and the scale uses the rounded rate,
 * so that the expectation is exact. A rate of 0 keeps everything; one below 1 keeps at least one in 65,536. */
#ifndef MICA_OPS_DROPOUT_H
#define MICA_OPS_DROPOUT_H

#include <mica/random.h>
#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_dropout_opts {
    float rate; /* the probability of zeroing an element, 0 to 1 */
    mica_random
        random; /* seed, stream and position: element i is decided by mica_random_bits16 at position + i */
} mica_dropout_opts;

/* mask[i] = 1 with probability 1 - rate, else 0;  y = mask ? x / (1 - rate) : 0.
 * mask is u8 of x's shape, for backward; NULL: not kept. y may be exactly x. */
MICA_API mica_status mica_dropout(mica_context *ctx, const mica_tensor *y, const mica_tensor *mask,
                                  const mica_tensor *x, const mica_dropout_opts *opts);

/* dx = mask ? dy / (1 - rate) : 0. Needs the mask only. dx may be exactly dy. */
MICA_API mica_status mica_dropout_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                           const mica_tensor *mask, float rate);

#ifdef __cplusplus
}
#endif
#endif
