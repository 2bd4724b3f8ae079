/* Pooling of [N, C, L] and [N, C, H, W]. mica/ops/pool.h says exactly how. */
#ifndef MICA_LAYERS_POOL_H
#define MICA_LAYERS_POOL_H

#include <mica/net.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes are for height, then width; in one dimension only the first of each counts. */
typedef struct mica_net_pool_opts {
    const char *name;
    mica_index kernel[2];
    mica_index stride[2];   /* 0: as the kernel */
    mica_index pad[2];      /* at most half of the kernel */
    mica_index dilation[2]; /* 0: 1. Maximum only */
    bool ceil_mode;
    bool exclude_pad; /* averages: divide by the elements inside x */
} mica_net_pool_opts;

MICA_API mica_value mica_net_max_pool1d(mica_net *net, mica_value x, const mica_net_pool_opts *opts);
MICA_API mica_value mica_net_max_pool2d(mica_net *net, mica_value x, const mica_net_pool_opts *opts);
MICA_API mica_value mica_net_avg_pool1d(mica_net *net, mica_value x, const mica_net_pool_opts *opts);
MICA_API mica_value mica_net_avg_pool2d(mica_net *net, mica_value x, const mica_net_pool_opts *opts);

typedef struct mica_net_adaptive_pool_opts {
    const char *name;
    mica_index size[2]; /* of the result; 0: 1 */
} mica_net_adaptive_pool_opts;

MICA_API mica_value mica_net_adaptive_avg_pool1d(mica_net *net, mica_value x,
                                                 const mica_net_adaptive_pool_opts *opts);
MICA_API mica_value mica_net_adaptive_avg_pool2d(mica_net *net, mica_value x,
                                                 const mica_net_adaptive_pool_opts *opts);

/* [N, C, ...] to [N, C]: the mean of each channel. */
typedef struct mica_net_global_pool_opts {
    const char *name;
    bool keep; /* [N, C, 1, ...] instead */
} mica_net_global_pool_opts;

MICA_API mica_value mica_net_global_avg_pool(mica_net *net, mica_value x,
                                             const mica_net_global_pool_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
