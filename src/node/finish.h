/* The gradient of a call that ends with an activation. */
#ifndef MICA_SRC_NODE_FINISH_H
#define MICA_SRC_NODE_FINISH_H

#include "node/entry.h"

typedef struct mica_finish {
    mica_activation activation;
    float slope;
    const mica_op *op;          /* makes the activation's output, or its input, again from g->in */
    const void *with, *without; /* its options, with the activation and without */
} mica_finish;

/* The gradient by the activation's input, from that by its output, dy. y is the output, or 0 if no value is: what the
 * activation's backward reads is made again where it is not there. Without an activation it is dy. */
mica_value mica_grad_finish(mica_grad *g, const mica_finish *finish, mica_value dy, mica_value y);

#endif
