/* The most likely of many tokens. */
#ifndef MICA_SRC_TEXT_LIKELY_H
#define MICA_SRC_TEXT_LIKELY_H

#include <mica/text.h>

#include "kernel/kernels.h"

/* Whether logits are a contiguous row of at least one f32. */
mica_status mica_check_logits(mica_context *ctx, const char *op, const mica_tensor *logits);

/* The largest of x [count], or an error where it is NaN or infinite. `what` they are is for the message. */
mica_status mica_top_logit(mica_context *ctx, const char *op, const char *what, float *top, const float *x,
                           size_t count);

/* The sum of e^(x - top). */
double mica_sum_of_exponentials(const mica_kernels *kernels, const float *x, size_t count, float top);

/* The `most` largest of x [count], as a heap: out[].log_probability gets the values. Ties: the lower tokens. */
void mica_pick_largest(const mica_kernels *kernels, mica_likely *out, size_t most, const float *x,
                       size_t count);

/* Most likely first. */
void mica_sort_likely(mica_likely *likely, size_t count);

#endif
