/* Blocks made of other layers. */
#include <mica/layers.h>

#include "layer/scope.h"

/* x through a layer that gives it the shape of `like`. */
static mica_value project(mica_net *net, mica_value x, const mica_tensor *from, const mica_tensor *like)
{
    if (from->rank == 2)
        return mica_net_dense(
            net, x, &(mica_net_dense_opts){.name = "project", .units = like->dim[1], .no_bias = true});
    mica_net_conv_opts opts = {
        .name = "project", .out_channels = like->dim[1], .kernel = {1, 1}, .no_bias = true};
    for (int k = 2; k < from->rank; k++)
        opts.stride[k - 2] = like->dim[k] > 0 ? (from->dim[k] + like->dim[k] - 1) / like->dim[k] : 1;
    return from->rank == 3 ? mica_net_conv1d(net, x, &opts) : mica_net_conv2d(net, x, &opts);
}

mica_value mica_end_residual(mica_net *net, mica_value y, mica_value x, const mica_net_residual_opts *opts)
{
    mica_tensor from, like;
    if (mica_net_status(net) == MICA_OK && mica_net_shape(net, &from, x) == MICA_OK &&
        mica_net_shape(net, &like, y) == MICA_OK && !mica_tensor_same_shape(&from, &like)) {
        char shape[2][128];
        (void)mica_tensor_print_shape(shape[0], sizeof shape[0], &from);
        (void)mica_tensor_print_shape(shape[1], sizeof shape[1], &like);
        bool can = from.rank == like.rank && from.rank >= 2 && from.rank <= 4;
        if (!opts->project || !can)
            x = mica_net_refuse(net, MICA_ERR_SHAPE, "residual block: x is %s, but its body outputs %s%s",
                                shape[0], shape[1],
                                opts->project ? "" : "; .project adds a projection of x to that shape");
        else
            x = project(net, x, &from, &like);
    }
    y = mica_net_plus(net, y, x, &(mica_net_pair_opts){.name = "add"});
    if (opts->activation != MICA_NO_ACTIVATION)
        y = mica_net_activation(net, y, &(mica_net_activation_opts){.name = "out", .kind = opts->activation});
    mica_net_leave(net);
    return y;
}

mica_value mica_net_residual(mica_net *net, mica_value x, const mica_net_residual_opts *opts)
{
    if (opts == NULL || opts->body == NULL)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "a residual block needs a body");
    mica_enter_block(net, opts->name, "residual");
    return mica_end_residual(net, opts->body(net, x, opts->user), x, opts);
}

mica_value mica_net_squeeze_excite(mica_net *net, mica_value x, const mica_net_squeeze_excite_opts *opts)
{
    static const mica_net_squeeze_excite_opts defaults = {0};
    if (opts == NULL)
        opts = &defaults;
    mica_tensor shape = {.rank = 0};
    if (mica_net_status(net) != MICA_OK || mica_net_shape(net, &shape, x) != MICA_OK || shape.rank < 3)
        return mica_net_refuse(net, MICA_ERR_SHAPE,
                               "squeeze and excitation: x has rank %d: expected [N, C, ...]", shape.rank);
    if (opts->reduction < 0)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "squeeze and excitation: reduction is %td",
                               opts->reduction);
    mica_index channels = shape.dim[1], units = channels / (opts->reduction > 0 ? opts->reduction : 16);
    mica_enter_block(net, opts->name, "squeeze_excite");
    mica_value scale = mica_net_global_avg_pool(net, x, NULL);
    scale = mica_net_dense(net, scale,
                           &(mica_net_dense_opts){.name = "fc1",
                                                  .units = units > 0 ? units : 1,
                                                  .activation = opts->activation != MICA_NO_ACTIVATION
                                                                    ? opts->activation
                                                                    : MICA_RELU});
    scale = mica_net_dense(
        net, scale, &(mica_net_dense_opts){.name = "fc2", .units = channels, .activation = MICA_SIGMOID});
    mica_net_reshape_opts as_x = {.rank = shape.rank, .dims = {0, 0, 1, 1, 1, 1, 1, 1}};
    mica_value y = mica_net_times(net, x, mica_net_reshape(net, scale, &as_x), NULL);
    mica_net_leave(net);
    return y;
}
