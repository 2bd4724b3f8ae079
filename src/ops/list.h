/* Every public operation, one line each: OP(name, family). `mica_<name>` is declared in
 * include/mica/ops/<family>.h.
 *
 * The tests walk this list: an operation without a case in tests/ops fails them. */
#ifndef MICA_SRC_OPS_LIST_H
#define MICA_SRC_OPS_LIST_H

/* clang-format off */

#define MICA_OPS_MAKE(OP)

#define MICA_OPS_COPY(OP)

#define MICA_OPS_SHAPE(OP)

#define MICA_OPS_ELEMENTWISE(OP) \
    OP(add, elementwise)

#define MICA_OPS_COMPARE(OP)

#define MICA_OPS_REDUCE(OP)

#define MICA_OPS_LINALG(OP) \
    OP(matmul, linalg) \
    OP(matvec, linalg) \
    OP(outer, linalg)

#define MICA_OPS_ACTIVATION(OP)

#define MICA_OPS_CONV(OP)

#define MICA_OPS_POOL(OP)

#define MICA_OPS_NORM(OP)

#define MICA_OPS_DROPOUT(OP)

#define MICA_OPS_ATTENTION(OP)

#define MICA_OPS_LOSS(OP)

#define MICA_OPS(OP) \
    MICA_OPS_MAKE(OP) \
    MICA_OPS_COPY(OP) \
    MICA_OPS_SHAPE(OP) \
    MICA_OPS_ELEMENTWISE(OP) \
    MICA_OPS_COMPARE(OP) \
    MICA_OPS_REDUCE(OP) \
    MICA_OPS_LINALG(OP) \
    MICA_OPS_ACTIVATION(OP) \
    MICA_OPS_CONV(OP) \
    MICA_OPS_POOL(OP) \
    MICA_OPS_NORM(OP) \
    MICA_OPS_DROPOUT(OP) \
    MICA_OPS_ATTENTION(OP) \
    MICA_OPS_LOSS(OP)

/* clang-format on */

#endif
