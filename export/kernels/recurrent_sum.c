/* What goes into a gate: biases plus a row of each matrix times the input and the state before (NULL: zeros). */
#ifndef KERNEL_RECURRENT_SUM
#define KERNEL_RECURRENT_SUM

#include <stddef.h>

static float recurrent_sum(const float *x /* [inputs] */, const float *h /* [hidden] or NULL */,
                           const float *w_ih /* [inputs] */, const float *w_hh /* [hidden] */, int inputs,
                           int hidden, float sum)
{
    for (int i = 0; x != NULL && i < inputs; i++)
        sum += w_ih[i] * x[i];
    for (int i = 0; h != NULL && i < hidden; i++)
        sum += w_hh[i] * h[i];
    return sum;
}

#endif /* KERNEL_RECURRENT_SUM */
