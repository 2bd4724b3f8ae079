/* Concat, split, stack, tile. */
#include <mica/ops/shape.h>

#include "base/format.h"
#include "ops/check.h"
#include "ops/move.h"
#include "ops/walk.h"

/* "srcs[12]": an entry of an array, for messages. */
typedef struct entry_name {
    char text[24];
} entry_name;

static entry_name name_entry(const char *array, int i)
{
    entry_name name;
    mica_format(name.text, sizeof name.text, "%s[%d]", array, i);
    return name;
}

/* `count` parts on one side, one whole on the other; `parts_out` says which of them are written. */
static mica_status check_parts(mica_context *ctx, const char *op, const mica_tensor *whole,
                               const char *whole_name, const mica_tensor *const *parts,
                               const char *parts_name, int count, bool parts_out)
{
    if (parts == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is NULL", op, parts_name);
    if (count < 1)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: count of %s is %d, expected 1 or more", op, parts_name,
                         count);
    for (int i = 0; i < count; i++) {
        entry_name name = name_entry(parts_name, i);
        mica_arg args[] = {{whole_name, whole, parts_out ? 0 : MICA_ARG_OUT, MICA_DTYPES_ANY},
                           {name.text, parts[i], parts_out ? MICA_ARG_OUT : 0, MICA_DTYPES_ANY}};
        MICA_TRY(mica_check_args(ctx, op, args, 2));
        for (int j = 0; parts_out && j < i; j++) { /* the written parts must be apart */
            entry_name other = name_entry(parts_name, j);
            mica_arg pair[] = {{other.text, parts[j], MICA_ARG_OUT, MICA_DTYPES_ANY},
                               {name.text, parts[i], MICA_ARG_OUT, MICA_DTYPES_ANY}};
            MICA_TRY(mica_check_args(ctx, op, pair, 2));
        }
    }
    return MICA_OK;
}

/* The parts lie one after the other along `axis` and make up the whole. */
static mica_status check_fit(mica_context *ctx, const char *op, const mica_tensor *whole,
                             const char *whole_name, const mica_tensor *const *parts, const char *parts_name,
                             int count, int axis)
{
    mica_index total = 0;
    for (int i = 0; i < count; i++) {
        bool fits = parts[i]->rank == whole->rank;
        for (int k = 0; fits && k < whole->rank; k++)
            fits = k == axis || parts[i]->dim[k] == whole->dim[k];
        if (!fits)
            return mica_fail(ctx, MICA_ERR_SHAPE,
                             "%s: %s[%d] is %s, %s is %s: sizes other than that of axis %d differ", op,
                             parts_name, i, MICA_SHAPE(parts[i]), whole_name, MICA_SHAPE(whole), axis);
        total += parts[i]->dim[axis];
    }
    if (total != whole->dim[axis])
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: %s is %s, but along axis %d its %d parts, the first %s, have %td elements", op,
                         whole_name, MICA_SHAPE(whole), axis, count, MICA_SHAPE(parts[0]), total);
    return MICA_OK;
}

/* The part of t that begins at `start` along an axis and has `size` elements there. */
static mica_tensor part_of(const mica_tensor *t, int axis, mica_index start, mica_index size)
{
    mica_tensor part = *t;
    part.dim[axis] = size;
    if (size > 0)
        part.data = mica_element(t, start * t->stride[axis]);
    return part;
}

mica_status mica_concat(mica_context *ctx, const mica_tensor *dst, const mica_tensor *const *srcs, int count,
                        int axis)
{
    MICA_TRY(check_parts(ctx, "concat", dst, "dst", srcs, "srcs", count, false));
    MICA_TRY(mica_check_axis(ctx, "concat", axis, "dst", dst, &axis));
    MICA_TRY(check_fit(ctx, "concat", dst, "dst", srcs, "srcs", count, axis));
    MICA_START(ctx, "concat", 0, NULL);
    mica_index start = 0;
    for (int i = 0; i < count; i++) {
        mica_tensor part = part_of(dst, axis, start, srcs[i]->dim[axis]);
        mica_move(ctx, &part, srcs[i]);
        start += srcs[i]->dim[axis];
    }
    return MICA_OK;
}

mica_status mica_split(mica_context *ctx, const mica_tensor *const *dsts, int count, const mica_tensor *src,
                       int axis)
{
    MICA_TRY(check_parts(ctx, "split", src, "src", dsts, "dsts", count, true));
    MICA_TRY(mica_check_axis(ctx, "split", axis, "src", src, &axis));
    MICA_TRY(check_fit(ctx, "split", src, "src", dsts, "dsts", count, axis));
    MICA_START(ctx, "split", 0, NULL);
    mica_index start = 0;
    for (int i = 0; i < count; i++) {
        mica_tensor part = part_of(src, axis, start, dsts[i]->dim[axis]);
        mica_move(ctx, dsts[i], &part);
        start += dsts[i]->dim[axis];
    }
    return MICA_OK;
}

mica_status mica_stack(mica_context *ctx, const mica_tensor *dst, const mica_tensor *const *srcs, int count,
                       int axis)
{
    MICA_TRY(check_parts(ctx, "stack", dst, "dst", srcs, "srcs", count, false));
    MICA_TRY(mica_check_axis(ctx, "stack", axis, "dst", dst, &axis));
    for (int i = 0; i < count; i++) {
        mica_index dims[MICA_MAX_RANK + 1];
        for (int k = 0; k < srcs[i]->rank + 1; k++)
            dims[k] = k < axis ? srcs[i]->dim[k] : k == axis ? count : srcs[i]->dim[k - 1];
        entry_name name = name_entry("srcs", i);
        MICA_TRY(mica_check_shape(ctx, "stack", "dst", dst, srcs[i]->rank + 1, dims, name.text, srcs[i]));
    }
    MICA_START(ctx, "stack", 0, NULL);
    if (mica_tensor_count(dst) == 0)
        return MICA_OK;
    for (int i = 0; i < count; i++) {
        mica_tensor part;
        MICA_TRY(mica_view_select(ctx, &part, dst, axis, i));
        mica_move(ctx, &part, srcs[i]);
    }
    return MICA_OK;
}

/* ---- Tile ---- */

/* Repetitions of `small` (given axes of size 1 in front) in `large`, numbered along each axis. */
typedef struct tiling {
    mica_tensor small, large;
    mica_index repeats[MICA_MAX_RANK], at[MICA_MAX_RANK];
} tiling;

static mica_status find_tiling(mica_context *ctx, const char *op, tiling *t, const mica_tensor *small,
                               const char *small_name, const mica_tensor *large, const char *large_name)
{
    int missing = large->rank - small->rank;
    bool fits = missing >= 0;
    *t = (tiling){.small = *small, .large = *large};
    t->small.rank = large->rank;
    for (int k = 0; fits && k < large->rank; k++) {
        mica_index size = k < missing ? 1 : small->dim[k - missing];
        t->small.dim[k] = size;
        t->small.stride[k] = k < missing ? 0 : small->stride[k - missing];
        fits = size > 0 ? large->dim[k] % size == 0 : large->dim[k] == 0;
        t->repeats[k] = fits && size > 0 ? large->dim[k] / size : 1;
    }
    if (!fits)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: %s is %s, which does not tile %s %s evenly", op,
                         small_name, MICA_SHAPE(small), large_name, MICA_SHAPE(large));
    return MICA_OK;
}

/* The repetition that t->at names. */
static mica_tensor repetition(const tiling *t)
{
    mica_tensor part = t->large;
    mica_index offset = 0;
    for (int k = 0; k < part.rank; k++) {
        part.dim[k] = t->small.dim[k];
        offset += t->at[k] * t->small.dim[k] * t->large.stride[k];
    }
    part.data = mica_element(&t->large, offset);
    return part;
}

/* Goes on to the next repetition in row-major order; false after the last. */
static bool next_repetition(tiling *t)
{
    for (int k = t->large.rank - 1; k >= 0; k--) {
        if (++t->at[k] < t->repeats[k])
            return true;
        t->at[k] = 0;
    }
    return false;
}

static void push_axis(tiling *t, mica_index large_dim, mica_index large_stride, mica_index small_dim,
                      mica_index small_stride, mica_index repeats)
{
    int k = t->large.rank++;
    t->small.rank++;
    t->large.dim[k] = large_dim, t->large.stride[k] = large_stride;
    t->small.dim[k] = small_dim, t->small.stride[k] = small_stride;
    t->repeats[k] = repeats;
}

/* The same with repetitions turned into axes over which `small` is broadcast, while there is room for axes. */
static tiling absorb_repeats(const tiling *t)
{
    tiling out = {.small = {.data = t->small.data, .dtype = t->small.dtype},
                  .large = {.data = t->large.data, .dtype = t->large.dtype}};
    int room = MICA_MAX_RANK - t->large.rank;
    for (int k = 0; k < t->large.rank; k++) {
        mica_index size = t->small.dim[k], times = t->repeats[k], step = t->large.stride[k];
        if (times > 1 && size == 1) {
            push_axis(&out, times, step, times, 0, 1);
        } else if (times > 1 && room > 0) {
            push_axis(&out, times, step * size, times, 0, 1);
            push_axis(&out, size, step, size, t->small.stride[k], 1);
            room--;
        } else {
            push_axis(&out, t->large.dim[k], step, size, t->small.stride[k], times);
        }
    }
    return out;
}

mica_status mica_tile(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY}, {"src", src, 0, MICA_DTYPES_ANY}};
    MICA_TRY(mica_check_args(ctx, "tile", args, 2));
    tiling t;
    MICA_TRY(find_tiling(ctx, "tile", &t, src, "src", dst, "dst"));
    MICA_START(ctx, "tile", 0, NULL);
    if (mica_tensor_count(dst) == 0)
        return MICA_OK;
    t = absorb_repeats(&t);
    do {
        mica_tensor part = repetition(&t);
        mica_move(ctx, &part, &t.small);
    } while (next_repetition(&t));
    return MICA_OK;
}

/* dx[i] = sum over repetitions r of dy[r][i] */
mica_status mica_tile_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy)
{
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, 0, 0}};
    MICA_TRY(mica_check_args(ctx, "tile_backward", args, 2));
    tiling t;
    MICA_TRY(find_tiling(ctx, "tile_backward", &t, dx, "dx", dy, "dy"));
    MICA_START(ctx, "tile_backward", 0, NULL);
    if (mica_tensor_count(dx) == 0)
        return MICA_OK;
    if (mica_tensor_count(dy) == 0) { /* repeated not once */
        float zero = 0.0f;
        mica_tensor none = mica_0d(&zero);
        mica_move(ctx, dx, &none);
        return MICA_OK;
    }
    mica_tensor part = repetition(&t);
    mica_move(ctx, &t.small, &part);
    while (next_repetition(&t)) {
        part = repetition(&t);
        mica_map_run(ctx, MICA_KERNEL(ctx->kernels, map, add), NULL, &t.small,
                     (const mica_tensor *[]){&t.small, &part}, 2);
    }
    return MICA_OK;
}
