/* The sizes of a recurrent layer over x. Row (t, n) of x is at t * x_time + n * x_batch; of its steps, the outputs of
 * all times, at t * steps_time + n * steps_batch. Where time runs backwards, the distances are negative. */
#ifndef KERNEL_RECURRENT_SHAPE
#define KERNEL_RECURRENT_SHAPE

struct recurrent_shape {
    int batch, time, inputs, hidden;
    int x_time, x_batch, steps_time, steps_batch;
};

/* Destinations and operands of the weights; each may be NULL. */
struct recurrent_weights {
    const float *w_ih /* [blocks hidden, inputs] */, *w_hh /* [blocks hidden, hidden] */, *b_ih, *b_hh;
};

#endif /* KERNEL_RECURRENT_SHAPE */
