/* Shared by the gradients of several families. */
#ifndef MICA_SRC_NODE_GRADIENT_H
#define MICA_SRC_NODE_GRADIENT_H

#include "node/entry.h"

/* mica_grad_give of a call whose result has the shape of out[0]: summed over the axes along which the input was
 * repeated, if it was. */
void mica_grad_give_summed(mica_grad *g, int in, const mica_op *op, const mica_value *ins, int count,
                           const void *opts);

/* The gradient of a choice: out[0]'s goes to input `yes` where the condition is not 0, to `no` where it is. */
void mica_grad_give_choice(mica_grad *g, int yes, int no, mica_value condition);

/* x where `condition` is not 0 (or, with otherwise, where it is), and 0 elsewhere: of x's shape. */
mica_value mica_grad_part(mica_grad *g, mica_value x, mica_value condition, bool otherwise);

/* The shape that two shapes are both broadcast to, aligned at the last axis. False if there is none. The result is not
 * one of the tensors'. */
bool mica_common_shape(const mica_tensor *a, const mica_tensor *b, int *rank, mica_index *dims);

#endif
