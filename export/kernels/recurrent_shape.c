/* The sizes of a recurrent layer over x [batch, time, inputs]. Row (t, n) of its steps, the outputs of all times, is at
 * t * steps_time + n * steps_batch. */
#ifndef KERNEL_RECURRENT_SHAPE
#define KERNEL_RECURRENT_SHAPE

struct recurrent_shape {
    int batch, time, inputs, hidden;
    int steps_time, steps_batch;
};

/* Destinations and operands of the weights; each may be NULL. */
struct recurrent_weights {
    const float *w_ih /* [blocks hidden, inputs] */, *w_hh /* [blocks hidden, hidden] */, *b_ih, *b_hh;
};

#endif /* KERNEL_RECURRENT_SHAPE */
