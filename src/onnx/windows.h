/* What convolutions, pooling and resizing have in common: windows along up to three axes, and sums along an axis by
 * a table that is made while the net is built. */
#ifndef MICA_SRC_ONNX_WINDOWS_H
#define MICA_SRC_ONNX_WINDOWS_H

#include "onnx/import.h"

/* Windows over the axes behind the first two: 1 to 3. */
typedef struct mica_onnx_windows {
    int axes;
    mica_index size[3]; /* of the input */
    mica_index kernel[3], stride[3], dilation[3];
    mica_index before[3], after[3]; /* padding; less than 0: cut off */
    mica_index out[3];              /* of the result */
    bool ceil_mode;
    bool same; /* auto_pad is SAME_UPPER or SAME_LOWER: padding follows the size */
} mica_onnx_windows;

/* From the attributes kernel_shape (or `kernel`, if it is not NULL: the sizes that the weights have), strides,
 * dilations, pads, auto_pad and ceil_mode, for an input of this shape. False, with the node failed, if they make no
 * sense. */
bool mica_onnx_read_windows(mica_onnx_importing *n, mica_onnx_windows *w, const mica_tensor *x,
                            const mica_index *kernel);
/* Attributes "strides" and the like of `axes` numbers from `least` up into out[axes]; `otherwise` where there is
 * none. */
bool mica_onnx_sizes(mica_onnx_importing *n, const char *name, int axes, mica_index least,
                     mica_index otherwise, mica_index *out);

/* Notes `why` sizes are fixed, if padding follows one that varies: by the remainder of the stride. */
void mica_onnx_fix_strided(mica_onnx_importing *n, mica_onnx_ref x, const mica_onnx_windows *w,
                           const char *why);

/* Notes if these windows of x, which are those of the planned sizes, are others at smaller ones. */
void mica_onnx_check_windows(mica_onnx_importing *n, mica_onnx_ref x, const mica_onnx_windows *w);

/* For convolutions, which, unlike pooling, cut nothing off: padding below 0 becomes none. */
void mica_onnx_cut_nothing(mica_onnx_windows *w);

/* Whether padding is the same on both sides of each axis, and nothing is cut off. */
bool mica_onnx_even_padding(const mica_onnx_windows *w);

/* x with this much in front of and behind the axes from number 2 on: negative amounts are cut off. */
mica_onnx_ref mica_onnx_pad(mica_onnx_importing *n, mica_onnx_ref x, int axes, const mica_index *before,
                            const mica_index *after, double value);
/* The same for any axes of x, all given. */
mica_onnx_ref mica_onnx_pad_all(mica_onnx_importing *n, mica_onnx_ref x, const mica_index *before,
                                const mica_index *after, double value);

/* Whether the weights of a convolution of bytes are packed for tiles, too: images will have their channels last, if
 * there are several. */
bool mica_onnx_is_tiled(mica_onnx_importing *n, mica_onnx_ref x, mica_onnx_ref w,
                        const mica_affine_conv_opts *opts);

/* A table of sum_taps: `out` rows of up to `taps` elements and their weights; -1 is no element. */
typedef struct mica_onnx_table {
    mica_index out, taps;
    int32_t *index;
    float *weight;
    mica_index row, used; /* the row that is being filled, and its elements so far */
} mica_onnx_table;

/* An empty one; false, with the node failed, if it is too large. */
bool mica_onnx_table_make(mica_onnx_importing *n, mica_onnx_table *t, mica_index out, mica_index taps);
/* Adds an element to a row that has room. Rows are filled one after the other. */
void mica_onnx_table_put(mica_onnx_table *t, mica_index row, mica_index index, double weight);
/* Sums by the table along an axis of x. */
mica_onnx_ref mica_onnx_sum_taps(mica_onnx_importing *n, mica_onnx_ref x, int axis, const mica_onnx_table *t);

#endif
