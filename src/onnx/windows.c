/* Windows of convolutions and pooling, from attributes; padding; tables of sums along an axis. */
#include "onnx/windows.h"

#include <string.h>

#include "onnx/state.h"
#include "ops/int8_conv.h"

/* Sizes beyond this are nonsense, and no product of two overflows. */
#define MOST ((int64_t)INT32_MAX - 1)
/* Elements of a table: no real model needs more. */
#define MOST_TABLE ((mica_index)1 << 26)

/* ---- Attributes ---- */

bool mica_onnx_sizes(mica_onnx_importing *n, const char *name, int axes, mica_index least,
                     mica_index otherwise, mica_index *out)
{
    int64_t values[MICA_MAX_RANK];
    int count = mica_onnx_int_list(n, name, values, MICA_MAX_RANK);
    if (n->failed)
        return false;
    if (count > 0 && count != axes)
        return mica_onnx_bad(n, "attribute \"%s\" has %d numbers, expected %d", name, count, axes) != 0;
    for (int k = 0; k < axes; k++) {
        int64_t value = count > 0 ? values[k] : (int64_t)otherwise;
        if (value < (int64_t)least || value > MOST)
            return mica_onnx_bad(n, "attribute \"%s\" is %lld: expected %td or more", name, (long long)value,
                                 least) != 0;
        out[k] = (mica_index)value;
    }
    return true;
}

static mica_index reach_of(const mica_onnx_windows *w, int k)
{
    return w->dilation[k] * (w->kernel[k] - 1) + 1;
}

/* Padding so that there are ceil(size / stride) windows. Where the stride is larger than the kernel it may be negative:
 * the windows are in the middle. */
static void pad_same(mica_onnx_windows *w, int k, bool upper)
{
    mica_index out = (w->size[k] + w->stride[k] - 1) / w->stride[k];
    mica_index total = (out - 1) * w->stride[k] + reach_of(w, k) - w->size[k];
    w->before[k] = upper ? total / 2 : (total + 1) / 2;
    w->after[k] = total - w->before[k];
}

static bool read_padding(mica_onnx_importing *n, mica_onnx_windows *w)
{
    const char *how = mica_onnx_text(n, "auto_pad", "NOTSET");
    mica_index pads[6];
    if (strcmp(how, "NOTSET") == 0 || how[0] == '\0') {
        if (!mica_onnx_sizes(n, "pads", 2 * w->axes, 0, 0, pads))
            return false;
        memcpy(w->before, pads, (size_t)w->axes * sizeof *pads);
        memcpy(w->after, pads + w->axes, (size_t)w->axes * sizeof *pads);
        return true;
    }
    bool upper = strcmp(how, "SAME_UPPER") == 0;
    if (strcmp(how, "VALID") != 0 && strcmp(how, "SAME_LOWER") != 0 && !upper)
        return mica_onnx_bad(n, "auto_pad is \"%s\": expected NOTSET, SAME_UPPER, SAME_LOWER or VALID",
                             how) != 0;
    w->same = strcmp(how, "VALID") != 0;
    for (int k = 0; k < w->axes && w->same; k++)
        pad_same(w, k, upper);
    return !n->failed;
}

/* How many windows there are. With ceil_mode the last may reach past the end, but must not start behind it. */
static mica_index windows_along(const mica_onnx_windows *w, int k)
{
    mica_index room = w->size[k] + w->before[k] + w->after[k] - reach_of(w, k);
    room += w->ceil_mode ? w->stride[k] - 1 : 0;
    if (room < 0)
        return 0;
    mica_index count = room / w->stride[k] + 1;
    return w->ceil_mode && (count - 1) * w->stride[k] >= w->size[k] + w->before[k] ? count - 1 : count;
}

bool mica_onnx_read_windows(mica_onnx_importing *n, mica_onnx_windows *w, const mica_tensor *x,
                            const mica_index *kernel)
{
    *w = (mica_onnx_windows){.axes = x->rank - 2};
    if (n->failed)
        return false;
    if (w->axes < 1 || w->axes > 3)
        return mica_onnx_unsupported(n, "windows of an input of rank %d: expected 3 to 5", x->rank) != 0;
    for (int k = 0; k < w->axes; k++) {
        w->size[k] = x->dim[2 + k];
        if ((int64_t)w->size[k] > MOST)
            return mica_onnx_unsupported(n, "dimension %d is %td", 2 + k, w->size[k]) != 0;
    }
    if (!mica_onnx_sizes(n, "kernel_shape", w->axes, 1, kernel != NULL ? 1 : 0, w->kernel) ||
        !mica_onnx_sizes(n, "strides", w->axes, 1, 1, w->stride) ||
        !mica_onnx_sizes(n, "dilations", w->axes, 1, 1, w->dilation))
        return false;
    for (int k = 0; k < w->axes; k++) {
        if (kernel != NULL && mica_onnx_find(n, "kernel_shape") != NULL && w->kernel[k] != kernel[k])
            return mica_onnx_bad(n, "kernel_shape is %td where the weights have %td", w->kernel[k],
                                 kernel[k]) != 0;
        w->kernel[k] = kernel != NULL ? kernel[k] : w->kernel[k];
        if ((int64_t)w->kernel[k] > MOST)
            return mica_onnx_bad(n, "a kernel of %td", w->kernel[k]) != 0;
    }
    w->ceil_mode = mica_onnx_int(n, "ceil_mode", 0) != 0;
    if (!read_padding(n, w))
        return false;
    for (int k = 0; k < w->axes; k++)
        w->out[k] = windows_along(w, k);
    return !n->failed;
}

void mica_onnx_fix_strided(mica_onnx_importing *n, mica_onnx_ref x, const mica_onnx_windows *w,
                           const char *why)
{
    for (int k = 0; k < w->axes && n->import->fixed == NULL; k++)
        if (w->stride[k] > 1 && mica_onnx_axis_varies(n->import, x, 2 + k))
            n->import->fixed = why;
}

void mica_onnx_check_windows(mica_onnx_importing *n, mica_onnx_ref x, const mica_onnx_windows *w)
{
    if (w->same)
        mica_onnx_fix_strided(n, x, w, "auto_pad depends on a size of the model");
    for (int k = 0; k < w->axes; k++)
        if (w->stride[k] > 1)
            mica_onnx_doubt_axis(n, x, 2 + k);
}

void mica_onnx_cut_nothing(mica_onnx_windows *w)
{
    for (int k = 0; k < w->axes; k++) {
        w->before[k] = w->before[k] > 0 ? w->before[k] : 0;
        w->after[k] = w->after[k] > 0 ? w->after[k] : 0;
    }
}

bool mica_onnx_even_padding(const mica_onnx_windows *w)
{
    for (int k = 0; k < w->axes; k++)
        if (w->before[k] != w->after[k] || w->before[k] < 0)
            return false;
    return true;
}

/* ---- Padding ---- */

mica_onnx_ref mica_onnx_pad_all(mica_onnx_importing *n, mica_onnx_ref x, const mica_index *before,
                                const mica_index *after, double value)
{
    mica_pad_opts more = {.value = value}, less = {.value = 0.0};
    bool grows = false, shrinks = false;
    for (int k = 0; k < mica_onnx_shape(n, x)->rank; k++) {
        more.before[k] = before[k] > 0 ? before[k] : 0;
        more.after[k] = after[k] > 0 ? after[k] : 0;
        less.before[k] = before[k] < 0 ? -before[k] : 0;
        less.after[k] = after[k] < 0 ? -after[k] : 0;
        grows = grows || more.before[k] > 0 || more.after[k] > 0;
        shrinks = shrinks || less.before[k] > 0 || less.after[k] > 0;
    }
    if (shrinks)
        x = mica_onnx_op1(n, "unpad", x, &less);
    return grows ? mica_onnx_op1(n, "pad", x, &more) : x;
}

mica_onnx_ref mica_onnx_pad(mica_onnx_importing *n, mica_onnx_ref x, int axes, const mica_index *before,
                            const mica_index *after, double value)
{
    mica_index front[MICA_MAX_RANK] = {0}, behind[MICA_MAX_RANK] = {0};
    memcpy(front + 2, before, (size_t)axes * sizeof *before);
    memcpy(behind + 2, after, (size_t)axes * sizeof *after);
    return mica_onnx_pad_all(n, x, front, behind, value);
}

/* ---- Tiles ---- */

bool mica_onnx_is_tiled(mica_onnx_importing *n, mica_onnx_ref x, mica_onnx_ref w,
                        const mica_affine_conv_opts *opts)
{
    const mica_tensor *images = mica_onnx_shape(n, x);
    mica_int8_conv_opts windows = {.groups = opts->groups};
    for (int k = 0; k < 2; k++) {
        if (opts->pad[k] < 0 || opts->pad[k] > images->dim[2 + k])
            return false; /* a file may say anything */
        windows.stride[k] = opts->stride[k];
        windows.pad[k] = opts->pad[k];
        windows.dilation[k] = opts->dilation[k];
    }
    return mica_int8_tiles_pay(n->import->ctx, images, mica_onnx_shape(n, w), &windows);
}

/* ---- Tables ---- */

bool mica_onnx_table_make(mica_onnx_importing *n, mica_onnx_table *t, mica_index out, mica_index taps)
{
    mica_index count = 0;
    if (n->failed)
        return false;
    if (out < 0 || taps < 0 || __builtin_mul_overflow(out, taps > 0 ? taps : 1, &count) || count > MOST_TABLE)
        return mica_onnx_unsupported(n, "%td sums of %td elements along an axis", out, taps) != 0;
    *t = (mica_onnx_table){.out = out, .taps = taps};
    t->index = mica_onnx_import_memory(n->import, (size_t)(count > 0 ? count : 1) * sizeof *t->index);
    t->weight = mica_onnx_import_memory(n->import, (size_t)(count > 0 ? count : 1) * sizeof *t->weight);
    if (t->index == NULL || t->weight == NULL) {
        n->import->status = n->import->ctx->status;
        n->failed = true;
        return false;
    }
    for (mica_index i = 0; i < out * taps; i++) {
        t->index[i] = -1;
        t->weight[i] = 0.0f;
    }
    return true;
}

void mica_onnx_table_put(mica_onnx_table *t, mica_index row, mica_index index, double weight)
{
    t->used = row == t->row ? t->used : 0;
    t->row = row;
    if (t->used == t->taps)
        return;
    mica_index k = row * t->taps + t->used++;
    t->index[k] = (int32_t)index;
    t->weight[k] = (float)weight;
}

mica_onnx_ref mica_onnx_sum_taps(mica_onnx_importing *n, mica_onnx_ref x, int axis, const mica_onnx_table *t)
{
    mica_onnx_doubt_axis(n, x, axis);
    mica_tensor table = {.dtype = MICA_I32, .rank = 2, .dim = {t->out, t->taps}, .stride = {t->taps, 1}};
    table.data = t->index;
    mica_onnx_ref index = mica_onnx_constant(n, &table);
    table.dtype = MICA_F32;
    table.data = t->weight;
    mica_onnx_ref weight = mica_onnx_constant(n, &table);
    return mica_onnx_op(n, "sum_taps", (mica_onnx_ref[]){x, index, weight}, 3, &(mica_axis_opts){axis});
}
