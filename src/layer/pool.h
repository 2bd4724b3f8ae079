/* Pooling, for the layers that can go on with it. */
#ifndef MICA_SRC_LAYER_POOL_H
#define MICA_SRC_LAYER_POOL_H

#include <mica/ops/pool.h>

/* What a pooling layer keeps as its options, as the operations want them. */
mica_pooling_opts mica_pool_how(const void *opts);

#endif
