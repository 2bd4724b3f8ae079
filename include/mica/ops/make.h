/* Giving tensors their first values: constants, ranges, functions, random numbers.
 *
 * dst has any plain dtype and any layout; values are converted to its dtype as mica_copy does. Elements are numbered in
 * row-major order, whatever the layout. */
#ifndef MICA_OPS_MAKE_H
#define MICA_OPS_MAKE_H

#include <mica/random.h>
#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every element is the value (what others call full). */
MICA_API mica_status mica_fill(mica_context *ctx, const mica_tensor *dst, double value);
MICA_API mica_status mica_zeros(mica_context *ctx, const mica_tensor *dst);
MICA_API mica_status mica_ones(mica_context *ctx, const mica_tensor *dst);

/* Element i is start + i * step, computed in double precision. */
MICA_API mica_status mica_range(mica_context *ctx, const mica_tensor *dst, double start, double step);

/* Every element is what `function` says of its index (dst->rank entries). Called in row-major order, by the
 * calling thread. */
typedef double mica_generate_fn(const mica_index *index, void *user);
MICA_API mica_status mica_generate(mica_context *ctx, const mica_tensor *dst, mica_generate_fn *function,
                                   void *user);

/* ---- Random numbers ---------------------------------------------------------------------------------- */

/* Element i is made from position from->position + i of the stream (mica/random.h), so that the values depend
 * neither on the layout nor on the number of threads. *from stays as it is: to fill several tensors, give
 * each a stream of its own, or skip the count of the one before. */

/* In [low, high). */
MICA_API mica_status mica_uniform(mica_context *ctx, const mica_tensor *dst, const mica_random *from,
                                  float low, float high);
MICA_API mica_status mica_normal(mica_context *ctx, const mica_tensor *dst, const mica_random *from,
                                 float mean, float deviation);

/* First values of weights [out, in, kernel...]: fan_in is in * kernel..., fan_out is out * kernel... The
 * range or deviation is multiplied by `gain`, 1 unless the network's activations want another. The rank must
 * be 2 or more.
 *
 *   Xavier (Glorot)  uniform in +-gain * sqrt(6 / (fan_in + fan_out))
 *                    normal of deviation gain * sqrt(2 / (fan_in + fan_out))
 *   He (Kaiming)     uniform in +-gain * sqrt(6 / fan_in)
 *                    normal of deviation gain * sqrt(2 / fan_in)
 */
MICA_API mica_status mica_xavier_uniform(mica_context *ctx, const mica_tensor *dst, const mica_random *from,
                                         float gain);
MICA_API mica_status mica_xavier_normal(mica_context *ctx, const mica_tensor *dst, const mica_random *from,
                                        float gain);
MICA_API mica_status mica_he_uniform(mica_context *ctx, const mica_tensor *dst, const mica_random *from,
                                     float gain);
MICA_API mica_status mica_he_normal(mica_context *ctx, const mica_tensor *dst, const mica_random *from,
                                    float gain);

#ifdef __cplusplus
}
#endif
#endif
