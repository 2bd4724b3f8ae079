/* Images and signals alike: [N, C, L] is [N, C, 1, L], so that one operation does both. */
#ifndef MICA_SRC_NODE_PLANES_H
#define MICA_SRC_NODE_PLANES_H

#include <mica/ops/conv.h>
#include <mica/ops/pool.h>

/* A tensor of rank 3 as one of rank 4; others as they are. */
static inline mica_tensor mica_planes(const mica_tensor *t)
{
    mica_tensor planes = *t;
    if (t->rank == 3) {
        planes.rank = 4;
        planes.dim[3] = t->dim[2];
        planes.stride[3] = t->stride[2];
        planes.dim[2] = 1;
        planes.stride[2] = t->dim[2] * t->stride[2];
    }
    return planes;
}

/* The axis of the planes, 0 or 1, as messages name it. */
static inline const char *mica_plane_axis(bool flat, int axis)
{
    return flat ? "length" : axis == 0 ? "height" : "width";
}

/* A pair of sizes as the option structs of layers have it, for the planes above: `missing` along the height
 * that signals do not have, `usual` in place of 0. */
static inline void mica_plane_sizes(mica_index to[2], const mica_index from[2], bool flat, mica_index missing,
                                    mica_index usual)
{
    to[0] = flat ? missing : from[0] != 0 ? from[0] : usual;
    to[1] = flat ? from[0] : from[1];
    if (to[1] == 0)
        to[1] = usual;
}

/* Room for the text that says why something is refused. */
#define MICA_REASON 192

/* The height and width of what a convolution of x [N, C, H, W], or [N, C, L], with this kernel makes. Where there is
 * none, fails and says why in reason[MICA_REASON]. No size and no option is too large for it. */
mica_status mica_conv_sizes(mica_index sizes[2], char *reason, const mica_tensor *x,
                            const mica_index kernel[2], const mica_conv2d_opts *opts, bool transposed);
/* Of the means of a convolution: the image that they would be the means of, which lies as x does. */
mica_tensor mica_conv_image_of_means(const mica_tensor *x, const mica_tensor *w,
                                     const mica_conv2d_opts *opts);

#endif
