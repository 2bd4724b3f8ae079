/* Where the state of sequence n at time t lies: in its steps, if they are kept, else in one of two rows by turns;
 * before the first time it is h_0, which may be NULL. */
#ifndef KERNEL_RECURRENT_STATE
#define KERNEL_RECURRENT_STATE

#include "recurrent_shape.c"

#include <stddef.h>

static float *recurrent_state(float *steps, float *rows /* [2, hidden] */, const struct recurrent_shape *s,
                              int t, int n)
{
    return steps != NULL ? steps + t * s->steps_time + n * s->steps_batch : rows + (t & 1) * s->hidden;
}

#endif /* KERNEL_RECURRENT_STATE */
