/* Augmentation: a net sees each picture a little different in every epoch, and learns what does not matter.
 *
 *     mica_augment augment = {.channels = 1, .height = 28, .width = 28, .shift = 2, .rotate = 10};
 *     mica_batches_opts opts = {.batch = 32, .scale = 1 / 255.f};
 *     mica_augment_transform(ctx, &opts.transform, &augment);    // augment must outlive the batches
 *     mica_batches_create(ctx, &batches, &set, &opts);
 *
 * What is drawn for a sample depends on the batches' seed, the epoch and the sample alone: the same bits for any number
 * of threads, and from any cursor on. Nothing is allocated. */
#ifndef MICA_AUGMENT_H
#define MICA_AUGMENT_H

#include <mica/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each applies to every sample, by an amount drawn evenly up to the one here; 0: not at all. What a picture lacks
 * beyond its edge is as the nearest pixel. Turned or enlarged ones are interpolated between the four nearest pixels. */
typedef struct mica_augment {
    mica_index channels, height, width; /* of a sample, whatever its shape; channels 0: 1 */
    bool flip;                          /* mirrored left to right, half of the samples */
    float shift;                        /* moved along both axes by whole pixels */
    float crop;   /* a share of height and width cut off, and the rest enlarged; below 1 */
    float rotate; /* degrees, either way */
    float noise;  /* added to each value: a bell curve with this standard deviation, times... */
    float range;  /* ...the range of values: 255 of bytes; 0: 255 */
} mica_augment;

/* The transform for mica_batches_opts. Checks the amounts. `augment` must outlive its use. */
MICA_API mica_status mica_augment_transform(mica_context *ctx, mica_transform *out,
                                            const mica_augment *augment);

#ifdef __cplusplus
}
#endif
#endif
