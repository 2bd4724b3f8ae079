/* Convolutions, plain and transposed. */
#include <string.h>

#include "onnx/windows.h"

/* ---- Calls ---- */

/* The convolution with equal padding on both sides. Signals run as images of one row, so that what follows fuses. */
static mica_onnx_ref call(mica_onnx_importing *n, bool transposed, const mica_onnx_ref ins[3],
                          const mica_onnx_windows *w, const mica_index *output_pad)
{
    mica_index groups = (mica_index)mica_onnx_int(n, "group", 1);
    if (w->axes == 3) {
        mica_conv3d_opts o = {.groups = groups};
        memcpy(o.stride, w->stride, sizeof o.stride);
        memcpy(o.pad, w->before, sizeof o.pad);
        memcpy(o.dilation, w->dilation, sizeof o.dilation);
        memcpy(o.output_pad, output_pad, sizeof o.output_pad);
        return mica_onnx_op(n, transposed ? "conv_transpose3d" : "conv3d", ins, 3, &o);
    }
    mica_conv2d_opts o = {.groups = groups};
    for (int k = 0; k < w->axes; k++) {
        int at = 2 - w->axes + k;
        o.stride[at] = w->stride[k];
        o.pad[at] = w->before[k];
        o.dilation[at] = w->dilation[k];
        o.output_pad[at] = output_pad[k];
    }
    return mica_onnx_op(n, transposed ? "conv_transpose2d" : "conv2d", ins, 3, &o);
}

/* Inputs x, w, b; w's shape fits x's rank. */
static bool read_inputs(mica_onnx_importing *n, mica_onnx_ref ins[3], mica_tensor *x, mica_tensor *w)
{
    for (int k = 0; k < 3; k++)
        ins[k] = mica_onnx_f32(n, k);
    *x = *mica_onnx_shape(n, ins[0]);
    *w = *mica_onnx_shape(n, ins[1]);
    if (n->failed)
        return false;
    if (x->rank < 3 || w->rank != x->rank)
        return mica_onnx_bad(n, "X has rank %d and W %d: expected the same, 3 or more", x->rank, w->rank) !=
               0;
    if (mica_onnx_int(n, "group", 1) < 1)
        return mica_onnx_bad(n, "group is %lld", (long long)mica_onnx_int(n, "group", 1)) != 0;
    return true;
}

/* ---- Conv ---- */

static void conv(mica_onnx_importing *n)
{
    static const mica_index none[3];
    mica_onnx_ref ins[3];
    mica_tensor x, weights;
    mica_onnx_windows w;
    if (!read_inputs(n, ins, &x, &weights) || !mica_onnx_read_windows(n, &w, &x, &weights.dim[2]))
        return;
    mica_index before[3], after[3]; /* what is on one side only */
    mica_onnx_check_windows(n, ins[0], &w);
    mica_onnx_cut_nothing(&w);
    for (int k = 0; k < w.axes; k++) {
        mica_index both = w.before[k] < w.after[k] ? w.before[k] : w.after[k];
        before[k] = w.before[k] - both;
        after[k] = w.after[k] - both;
        w.before[k] = w.after[k] = both;
    }
    ins[0] = mica_onnx_pad(n, ins[0], w.axes, before, after, 0.0);
    mica_onnx_give_like(n, 0, call(n, false, ins, &w, none), n->in[0]);
}

/* ---- ConvTranspose ---- */

/* What is cut off (before, after) of the full result, which has output_pad more rows behind it: pads, or what they
 * must be for the result to have output_shape, or stride times the input's sizes. */
static bool read_cuts(mica_onnx_importing *n, mica_onnx_windows *w, const mica_index *output_pad)
{
    const char *how = mica_onnx_text(n, "auto_pad", "NOTSET");
    bool same = strncmp(how, "SAME", 4) == 0;
    mica_index shape[MICA_MAX_RANK];
    int64_t given[MICA_MAX_RANK];
    int count = mica_onnx_int_list(n, "output_shape", given, MICA_MAX_RANK);
    if (n->failed)
        return false;
    if (count > 0 && count != w->axes && count != w->axes + 2) /* of old, N and C were among them */
        return mica_onnx_bad(n, "output_shape has %d numbers, expected %d", count, w->axes) != 0;
    if (count <= 0 && !same)
        return true;
    for (int k = 0; k < w->axes; k++) {
        shape[k] = count > 0 ? (mica_index)given[count - w->axes + k] : w->size[k] * w->stride[k];
        if (shape[k] < 1 || shape[k] > INT32_MAX)
            return mica_onnx_bad(n, "output_shape is %td: expected 1 or more", shape[k]) != 0;
        mica_index full = (w->size[k] - 1) * w->stride[k] + w->dilation[k] * (w->kernel[k] - 1) + 1 +
                          output_pad[k];
        mica_index total = full - shape[k], half = total / 2;
        bool upper = strcmp(how, "SAME_UPPER") == 0;
        if (total < 0) { /* what is missing is 0, behind the rest */
            w->before[k] = 0;
            w->after[k] = total;
            continue;
        }
        w->before[k] = upper ? half : total - half;
        w->after[k] = total - w->before[k];
    }
    return true;
}

/* Without any padding; then what is to be cut off, or is missing; then the bias. */
static mica_onnx_ref cut(mica_onnx_importing *n, const mica_onnx_ref ins[3], const mica_onnx_windows *w,
                         const mica_index *output_pad)
{
    static const mica_index none[3];
    mica_onnx_windows plain = *w;
    mica_index front[3], behind[3];
    for (int k = 0; k < w->axes; k++) {
        plain.before[k] = plain.after[k] = 0;
        front[k] = -w->before[k];
        behind[k] = output_pad[k] - w->after[k];
    }
    mica_onnx_ref y = call(n, true, (mica_onnx_ref[]){ins[0], ins[1], 0}, &plain, none);
    y = mica_onnx_pad(n, y, w->axes, front, behind, 0.0);
    if (ins[2] == 0)
        return y;
    mica_index dims[5] = {1, -1, 1, 1, 1};
    return mica_onnx_op2(n, "add", y, mica_onnx_reshape(n, ins[2], 2 + w->axes, dims), NULL);
}

/* A transposed convolution is one product for each position within a stride, and is planned as such. */
static bool has_few_phases(mica_onnx_importing *n, const mica_onnx_windows *w)
{
    enum { MOST_PHASES = 1 << 20 };
    mica_index phases = 1;
    for (int k = 0; k < w->axes; k++) {
        if (w->stride[k] > MOST_PHASES / phases)
            return mica_onnx_unsupported(n, "a stride of %td along axis %d", w->stride[k], 2 + k) != 0;
        phases *= w->stride[k];
    }
    return true;
}

static void conv_transpose(mica_onnx_importing *n)
{
    mica_onnx_ref ins[3];
    mica_tensor x, weights;
    mica_onnx_windows w;
    mica_index output_pad[3] = {0};
    if (!read_inputs(n, ins, &x, &weights) || !mica_onnx_read_windows(n, &w, &x, &weights.dim[2]) ||
        !mica_onnx_sizes(n, "output_padding", w.axes, 0, 0, output_pad) || !read_cuts(n, &w, output_pad) ||
        !has_few_phases(n, &w))
        return;
    bool direct = mica_onnx_even_padding(&w);
    for (int k = 0; k < w.axes; k++)
        direct = direct &&
                 (output_pad[k] == 0 || output_pad[k] < w.stride[k] || output_pad[k] < w.dilation[k]);
    mica_onnx_ref y = direct ? call(n, true, ins, &w, output_pad) : cut(n, ins, &w, output_pad);
    mica_onnx_give_like(n, 0, y, n->in[0]);
}

/* ---- DeformConv ---- */

static void deform_conv(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0), weights = mica_onnx_f32(n, 1), offset = mica_onnx_f32(n, 2),
                  bias = mica_onnx_f32(n, 3), mask = mica_onnx_f32(n, 4);
    mica_tensor shape = *mica_onnx_shape(n, x), w = *mica_onnx_shape(n, weights),
                o = *mica_onnx_shape(n, offset);
    mica_onnx_windows windows;
    if (!n->failed && (shape.rank != 4 || w.rank != 4 || o.rank != 4)) {
        (void)mica_onnx_unsupported(n, "X, W and offset of ranks %d, %d and %d: expected images, of rank 4",
                                    shape.rank, w.rank, o.rank);
        return;
    }
    if (!mica_onnx_read_windows(n, &windows, &shape, &w.dim[2]))
        return;
    mica_index groups = (mica_index)mica_onnx_int(n, "group", 1);
    if (groups < 1 || w.dim[0] % groups != 0 || shape.dim[1] != w.dim[1] * groups ||
        o.dim[2] != windows.out[0] || o.dim[3] != windows.out[1]) {
        (void)mica_onnx_bad(
            n, "%td channels and weights [%td, %td, ...] in %td groups, with offsets [..., %td, %td]",
            shape.dim[1], w.dim[0], w.dim[1], groups, o.dim[2], o.dim[3]);
        return;
    }
    mica_deform_opts opts = {.groups = (mica_index)mica_onnx_int(n, "offset_group", 1)};
    for (int k = 0; k < 2; k++) {
        opts.kernel[k] = windows.kernel[k];
        opts.stride[k] = windows.stride[k];
        opts.pad[k] = windows.before[k];
        opts.dilation[k] = windows.dilation[k];
    }
    mica_onnx_ref columns = mica_onnx_op(n, "deform_columns", (mica_onnx_ref[]){x, offset, mask}, 3, &opts);
    mica_index rows = w.dim[1] * w.dim[2] * w.dim[3], points = o.dim[2] * o.dim[3];
    columns = mica_onnx_reshape(n, columns, 4, (mica_index[]){0, groups, rows, points});
    weights = mica_onnx_reshape(n, weights, 4, (mica_index[]){1, groups, w.dim[0] / groups, rows});
    mica_onnx_ref y = mica_onnx_op2(n, "matmul", weights, columns, NULL);
    y = mica_onnx_reshape(n, y, 4, (mica_index[]){0, w.dim[0], o.dim[2], o.dim[3]});
    if (bias != 0)
        y = mica_onnx_op2(n, "add", y, mica_onnx_reshape(n, bias, 4, (mica_index[]){1, -1, 1, 1}), NULL);
    mica_onnx_give_like(n, 0, y, n->in[0]);
}

/* ---- Col2Im ---- */

/* Element (tap, patch) of a row [taps, patches] goes to pixel patch stride + tap dilation - before. There are far more
 * of these than a table holds, if a file says so: what goes to each pixel is found from there. */
static mica_onnx_ref fold_axis(mica_onnx_importing *n, mica_onnx_ref x, int axis, const mica_onnx_windows *w,
                               int k)
{
    mica_onnx_table t;
    if (!mica_onnx_table_make(n, &t, w->size[k], w->kernel[k]))
        return 0;
    if (w->out[k] > INT32_MAX / w->kernel[k])
        return mica_onnx_unsupported(n, "%td patches of %td along an axis", w->out[k], w->kernel[k]);
    for (mica_index at = 0; at < w->size[k]; at++)
        for (mica_index tap = 0; tap < w->kernel[k]; tap++) {
            mica_index from = at + w->before[k] - tap * w->dilation[k], patch = from / w->stride[k];
            if (from >= 0 && from % w->stride[k] == 0 && patch < w->out[k])
                mica_onnx_table_put(&t, at, tap * w->out[k] + patch, 1.0);
        }
    return mica_onnx_sum_taps(n, x, axis, &t);
}

/* One axis after the other: [N, C K1 K2, L1 L2] is [N, C, K1 L1, K2 L2] with its axes in another order. */
static void col2im(mica_onnx_importing *n)
{
    mica_onnx_ref x = mica_onnx_f32(n, 0);
    mica_tensor shape = *mica_onnx_shape(n, x), image = {.rank = 2};
    int64_t size[3], block[3];
    int axes = mica_onnx_known_ints(n, n->in[1], "image_shape", size, 3);
    int blocks = mica_onnx_known_ints(n, n->in[2], "block_shape", block, 3);
    mica_index kernel[3], taps = 1, patches = 1;
    mica_onnx_windows w;
    if (n->failed)
        return;
    if (axes < 1 || blocks != axes || shape.rank != 3) {
        (void)mica_onnx_bad(n, "%d sizes of the image, %d of the block, input of rank %d", axes, blocks,
                            shape.rank);
        return;
    }
    for (int k = 0; k < axes; k++) {
        image.dim[2 + k] = (mica_index)size[k];
        kernel[k] = (mica_index)block[k];
        if (size[k] < 1 || block[k] < 1 || size[k] > INT32_MAX ||
            __builtin_mul_overflow(taps, kernel[k], &taps) || taps > shape.dim[1]) {
            (void)mica_onnx_bad(n, "an image of %lld and a block of %lld", (long long)size[k],
                                (long long)block[k]);
            return;
        }
    }
    image.rank = 2 + axes;
    if (!mica_onnx_read_windows(n, &w, &image, kernel))
        return;
    mica_index dims[MICA_MAX_RANK] = {shape.dim[0]}, joined[5] = {0, 0};
    int order[MICA_MAX_RANK] = {0, 1};
    for (int k = 0; k < axes; k++) {
        patches = __builtin_mul_overflow(patches, w.out[k], &patches) ? 0 : patches;
        dims[2 + k] = kernel[k];
        dims[2 + axes + k] = w.out[k];
        order[2 + 2 * k] = 2 + k;
        order[3 + 2 * k] = 2 + axes + k;
        joined[2 + k] = kernel[k] * w.out[k];
    }
    if (shape.dim[1] % taps != 0 || shape.dim[2] != patches) {
        (void)mica_onnx_bad(n, "input [..., %td, %td]: expected a multiple of %td rows and %td columns",
                            shape.dim[1], shape.dim[2], taps, patches);
        return;
    }
    dims[1] = joined[1] = shape.dim[1] / taps;
    joined[0] = shape.dim[0];
    x = mica_onnx_reshape(n, x, 2 + 2 * axes, dims);
    x = mica_onnx_permute(n, x, order);
    x = mica_onnx_reshape(n, x, 2 + axes, joined);
    for (int k = 0; k < axes; k++)
        x = fold_axis(n, x, 2 + k, &w, k);
    mica_onnx_give_like(n, 0, x, n->in[0]);
}

const mica_onnx_operator mica_onnx_conv_operators[] = {{"Conv", 1, conv},
                                                       {"ConvTranspose", 1, conv_transpose},
                                                       {"DeformConv", 19, deform_conv},
                                                       {"Col2Im", 18, col2im},
                                                       {NULL, 0, NULL}};
