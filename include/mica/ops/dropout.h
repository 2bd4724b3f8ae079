/* Dropout: zeroes elements at random and scales the others up, so that their expectation stays.
 *
 * What happens to element i (in row-major order) depends on the random place, the rate and i alone: the same
 * for any layout and any number of threads. Tensors may be of any layout; one that is not contiguous is
 * copied through the workspace. */
#ifndef MICA_OPS_DROPOUT_H
#define MICA_OPS_DROPOUT_H

#include <mica/random.h>
#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_dropout_opts {
    float rate;         /* the chance of an element to be zeroed, 0 to 1 */
    mica_random random; /* seed, stream and position: element i reads position + i */
} mica_dropout_opts;

/* mask[i] = 1 with chance 1 - rate, else 0;  y = mask ? x / (1 - rate) : 0.
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
