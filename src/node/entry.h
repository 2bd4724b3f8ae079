/* The entries of all operations: src/ops/list.h, each defined in a file of this folder. */
#ifndef MICA_SRC_NODE_ENTRY_H
#define MICA_SRC_NODE_ENTRY_H

#include <mica/op.h>
#include <mica/ops.h>

#include "base/context.h"
#include "ops/list.h"

#define MICA_DECLARE_ENTRY(name, family) extern const mica_op mica_op_##name;
MICA_OPS(MICA_DECLARE_ENTRY)
#undef MICA_DECLARE_ENTRY

/* Not in the list: parts of layers and of gradients. */
extern const mica_op mica_op_linear;
extern const mica_op mica_op_sum_to;         /* y = a, summed over the axes along which it is larger than y */
extern const mica_op mica_op_loss_gradient; /* y = a * weight * the step's scale */
/* The largest of windows of what conv2d gives, then the activation: outputs y and, optionally, where in its plane each
 * lay. [N, C, L] is [N, C, 1, L], as in conv2d and max_pool2d. */
typedef struct mica_conv_max_pool_opts {
    mica_conv2d_opts conv;
    mica_pooling_opts pool;
} mica_conv_max_pool_opts;
extern const mica_op mica_op_conv2d_max_pool;

#define MICA_FIELD_LIST(list) .fields = (list), .field_count = (int)(sizeof(list) / sizeof(list)[0])

#endif
