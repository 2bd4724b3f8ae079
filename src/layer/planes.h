/* Images and signals alike: [N, C, L] is [N, C, 1, L], so that one layer does both. */
#ifndef MICA_SRC_LAYER_PLANES_H
#define MICA_SRC_LAYER_PLANES_H

#include <mica/layer.h>

/* A contiguous tensor of rank 3 or 4 as one of rank 4. */
static inline mica_tensor mica_planes(const mica_tensor *t)
{
    mica_tensor planes = *t;
    if (t->rank == 3) {
        planes = mica_4d(NULL, t->dim[0], t->dim[1], 1, t->dim[2]);
        planes.data = t->data;
        planes.dtype = t->dtype;
    }
    return planes;
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

/* x of a layer over images or signals: f32, [N, C, H, W] or [N, C, L]. */
static inline mica_status mica_infer_planes(mica_infer *infer, bool flat)
{
    const mica_tensor *x = infer->in[0];
    if (x->dtype == MICA_F32 && x->rank == (flat ? 3 : 4))
        return MICA_OK;
    return mica_infer_fail(infer, MICA_ERR_SHAPE, "expected f32 [N, C, %s]", flat ? "L" : "H, W");
}

/* The output [N, channels, sizes[0], sizes[1]], or without the first size. */
static inline mica_status mica_infer_planes_output(mica_infer *infer, bool flat, mica_index channels,
                                                   const mica_index sizes[2])
{
    mica_index dims[4] = {infer->in[0]->dim[0], channels, flat ? sizes[1] : sizes[0], sizes[1]};
    return mica_infer_output(infer, MICA_F32, flat ? 3 : 4, dims);
}

static inline const char *mica_plane_axis(bool flat, int axis)
{
    return flat ? "length" : axis == 0 ? "height" : "width";
}

#endif
