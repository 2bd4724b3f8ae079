/* scale q . k + mask; 0 in *seen if the key is hidden. */
#ifndef KERNEL_ATTENTION_SCORE
#define KERNEL_ATTENTION_SCORE

#include <stddef.h>
#include <stdint.h>

#include "attention_shape.c"

static float attention_score(const float *q /* [features] */, const float *k,
                             const float *mask /* added, or NULL */,
                             const uint8_t *hide /* 0 hides, or NULL */, const struct attention_shape *s,
                             int at, int *seen)
{
    float sum = 0.0f;
    *seen = hide == NULL || hide[at] != 0;
    if (!*seen)
        return 0.0f;
    for (int i = 0; i < s->features; i++)
        sum += q[i] * k[i];
    sum *= s->scale;
    if (mask != NULL)
        sum += mask[at];
    *seen = sum > -3.402823e38f; /* a mask of -infinity hides, too */
    return sum;
}

#endif /* KERNEL_ATTENTION_SCORE */
