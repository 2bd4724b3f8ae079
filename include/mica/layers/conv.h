/* Convolutions.
 *
 *                conv1d                 conv2d                     transposed
 *   x            [N, in, L]             [N, in, H, W]              as for the plain ones
 *   weight       [out, in / groups, K]  [out, in / groups, KH, KW] [in, out / groups, ...]
 *   bias         [out]                  [out]                      [out]
 *   result       [N, out, OL]           [N, out, OH, OW]           larger: what a plain one would have made x from
 *
 * mica/ops/conv.h has the sizes. */
#ifndef MICA_LAYERS_CONV_H
#define MICA_LAYERS_CONV_H

#include <mica/layers/activation.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes are for height, then width; in one dimension only the first of each counts. */
typedef struct mica_net_conv_opts {
    const char *name;
    mica_index out_channels;
    mica_index kernel[2];
    mica_index stride[2];     /* 0: 1 */
    mica_index pad[2];        /* zeros on each side */
    mica_index dilation[2];   /* 0: 1 */
    mica_index groups;        /* 0: 1 */
    mica_index output_pad[2]; /* transposed only */
    mica_index in_channels;   /* 0: as many as x has. Otherwise x must have that many. */
    bool no_bias;
    mica_activation activation; /* a layer of its own behind this one */
    mica_init weight_init;      /* default: uniform in +-1 / sqrt(weight.dim[1] KH KW), as the bias */
} mica_net_conv_opts;

MICA_API mica_value mica_net_conv1d(mica_net *net, mica_value x, const mica_net_conv_opts *opts);
MICA_API mica_value mica_net_conv2d(mica_net *net, mica_value x, const mica_net_conv_opts *opts);
MICA_API mica_value mica_net_conv_transpose1d(mica_net *net, mica_value x, const mica_net_conv_opts *opts);
MICA_API mica_value mica_net_conv_transpose2d(mica_net *net, mica_value x, const mica_net_conv_opts *opts);
/* Every channel by itself: `groups` is x's channels, and out_channels (0: as x) a multiple of them. */
MICA_API mica_value mica_net_depthwise_conv2d(mica_net *net, mica_value x, const mica_net_conv_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
