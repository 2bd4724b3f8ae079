/* Padding: dst is cut into regions, one copy (or fill) each; modes that repeat elements go element by element.
 *
 *     before        middle        after        along every axis: with two padded axes nine regions,
 *     [ 3 2 ]    [ 1 2 3 4 ]     [ 3 2 ]       whose corners are reflected in both
 */
#include <mica/ops/shape.h>

#include "ops/combine.h"
#include "ops/move.h"
#include "ops/reduce.h"

static const mica_pad_opts no_padding = {.mode = MICA_PAD_CONSTANT};

/* The amounts are none below 0; `padded` has them around `plain`. */
static mica_status check_padding(mica_context *ctx, const char *op, const mica_tensor *padded,
                                 const char *padded_name, const mica_tensor *plain, const char *plain_name,
                                 const mica_pad_opts *opts)
{
    mica_index dims[MICA_MAX_RANK];
    if ((unsigned)opts->mode > MICA_PAD_WRAP)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: unknown mode %d", op, (int)opts->mode);
    for (int k = 0; k < plain->rank; k++) {
        mica_index size = plain->dim[k], before = opts->before[k], after = opts->after[k];
        if (before < 0 || after < 0 || before > PTRDIFF_MAX / 4 || after > PTRDIFF_MAX / 4)
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: before is %td and after %td along axis %d of %s %s",
                             op, before, after, k, plain_name, MICA_SHAPE(plain));
        if (opts->mode == MICA_PAD_REFLECT && (before > 0 || after > 0) && (before >= size || after >= size))
            return mica_fail(ctx, MICA_ERR_SHAPE,
                             "%s: %td and %td elements are to be reflected along axis %d of %s %s (%s is %s)",
                             op, before, after, k, plain_name, MICA_SHAPE(plain), padded_name,
                             MICA_SHAPE(padded));
        if (opts->mode > MICA_PAD_REFLECT && (before > 0 || after > 0) && size == 0)
            return mica_fail(ctx, MICA_ERR_SHAPE, "%s: axis %d of %s %s has nothing to repeat (%s is %s)", op,
                             k, plain_name, MICA_SHAPE(plain), padded_name, MICA_SHAPE(padded));
        dims[k] = before + size + after;
    }
    return mica_check_shape(ctx, op, padded_name, padded, plain->rank, dims, plain_name, plain);
}

/* ---- Regions ---- */

/* Where one stands: 0 before, 1 middle, 2 after, along each axis. */
typedef struct region {
    int at[MICA_MAX_RANK];
    bool middle;               /* along every axis */
    mica_tensor padded, plain; /* its part of the padded tensor, and the part of the plain one shown there */
} region;

/* Fills in the parts for the place that is set; false if the region is empty. */
static bool locate(region *g, const mica_tensor *padded, const mica_tensor *plain, const mica_pad_opts *opts)
{
    mica_index padded_offset = 0, plain_offset = 0;
    g->padded = *padded;
    g->plain = *plain;
    g->middle = true;
    for (int k = 0; k < plain->rank; k++) {
        mica_index before = opts->before[k], size = plain->dim[k], stride = plain->stride[k];
        mica_index count = g->at[k] == 0 ? before : g->at[k] == 1 ? size : opts->after[k];
        if (count == 0)
            return false;
        padded_offset += (g->at[k] == 0 ? 0 : g->at[k] == 1 ? before : before + size) * padded->stride[k];
        /* Before: elements before, before - 1, ..., 1. After: size - 2, size - 3, ... */
        plain_offset += (g->at[k] == 0 ? before : g->at[k] == 1 ? 0 : size - 2) * stride;
        g->plain.stride[k] = g->at[k] == 1 ? stride : -stride;
        g->padded.dim[k] = g->plain.dim[k] = count;
        g->middle = g->middle && g->at[k] == 1;
    }
    g->padded.data = mica_element(padded, padded_offset);
    if (g->middle || opts->mode == MICA_PAD_REFLECT)
        g->plain.data = mica_element(plain, plain_offset);
    return true;
}

static bool next_region(region *g, int rank)
{
    for (int k = rank - 1; k >= 0; k--) {
        if (++g->at[k] < 3)
            return true;
        g->at[k] = 0;
    }
    return false;
}

/* ---- Modes that repeat elements: each element of the padded tensor by itself ---- */

/* The place of a plain tensor that is shown at place i of the padded one. */
static mica_index shown_at(mica_index i, mica_index before, mica_index size, mica_pad_mode mode)
{
    mica_index at = i - before;
    if (mode == MICA_PAD_EDGE)
        return at < 0 ? 0 : at >= size ? size - 1 : at;
    return (at % size + size) % size;
}

/* padded = plain, or plain += padded. */
static void repeat_elements(const mica_tensor *padded, const mica_tensor *plain, const mica_pad_opts *opts,
                            bool back)
{
    int last = plain->rank - 1;
    mica_tensor rows = mica_reduce_part(padded, ~(1u << last));
    mica_combine_fn *combine = mica_combine_for(back ? MICA_SCATTER_ADD : MICA_SCATTER_SET, plain->dtype);
    for (mica_iter row = mica_iter_begin(&rows, 0, NULL); row.valid; mica_iter_next(&row)) {
        mica_index from = 0;
        for (int k = 0; k < last; k++)
            from += shown_at(row.index[k], opts->before[k], plain->dim[k], opts->mode) * plain->stride[k];
        for (mica_index i = 0; i < padded->dim[last]; i++) {
            mica_index at = shown_at(i, opts->before[last], plain->dim[last], opts->mode);
            char *here = (char *)row.element + mica_offset_bytes(padded->dtype, i * padded->stride[last]);
            char *there = mica_element(plain, from + at * plain->stride[last]);
            combine(back ? there : here, 1, back ? here : there, 1, 1);
        }
    }
}

static bool repeats(const mica_tensor *plain, const mica_pad_opts *opts)
{
    return opts->mode > MICA_PAD_REFLECT && plain->rank > 0;
}

/* ---- Operations ---- */

mica_status mica_pad(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                     const mica_pad_opts *opts)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY}, {"src", src, 0, MICA_DTYPES_ANY}};
    MICA_TRY(mica_check_args(ctx, "pad", args, 2));
    opts = opts != NULL ? opts : &no_padding;
    MICA_TRY(check_padding(ctx, "pad", dst, "dst", src, "src", opts));
    if (opts->mode > MICA_PAD_REFLECT)
        MICA_TRY(mica_check_combine(ctx, "pad", MICA_SCATTER_SET, dst, src));
    MICA_START(ctx, "pad", 0, NULL);
    if (repeats(src, opts)) {
        repeat_elements(dst, src, opts, false);
        return MICA_OK;
    }
    double value = opts->value;
    mica_tensor constant = {.data = &value, .dtype = MICA_F64};
    region g = {.at = {0}};
    do {
        if (locate(&g, dst, src, opts))
            mica_move(ctx, &g.padded, g.middle || opts->mode == MICA_PAD_REFLECT ? &g.plain : &constant);
    } while (next_region(&g, src->rank));
    return MICA_OK;
}

/* dx[i] = sum of dy[j] over all j that show i */
mica_status mica_pad_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                              const mica_pad_opts *opts)
{
    mica_arg args[] = {{"dx", dx, MICA_ARG_OUT, 0}, {"dy", dy, 0, 0}};
    MICA_TRY(mica_check_args(ctx, "pad_backward", args, 2));
    opts = opts != NULL ? opts : &no_padding;
    MICA_TRY(check_padding(ctx, "pad_backward", dy, "dy", dx, "dx", opts));
    MICA_START(ctx, "pad_backward", 0, NULL);
    if (repeats(dx, opts)) {
        float zero = 0.0f;
        mica_tensor none = mica_0d(&zero);
        mica_move(ctx, dx, &none);
        repeat_elements(dy, dx, opts, true);
        return MICA_OK;
    }
    region g = {.at = {1, 1, 1, 1, 1, 1, 1, 1}};
    if (!locate(&g, dy, dx, opts))
        return MICA_OK; /* dx is empty */
    mica_move(ctx, dx, &g.padded);
    if (opts->mode == MICA_PAD_CONSTANT)
        return MICA_OK;
    g = (region){.at = {0}};
    do {
        if (locate(&g, dy, dx, opts) && !g.middle)
            mica_map_run(ctx, MICA_KERNEL(ctx->kernels, map, add), NULL, &g.plain,
                         (const mica_tensor *[]){&g.plain, &g.padded}, 2);
    } while (next_region(&g, dx->rank));
    return MICA_OK;
}

mica_status mica_unpad(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                       const mica_pad_opts *opts)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY}, {"src", src, 0, MICA_DTYPES_ANY}};
    MICA_TRY(mica_check_args(ctx, "unpad", args, 2));
    mica_pad_opts amounts = opts != NULL ? *opts : no_padding;
    amounts.mode = MICA_PAD_CONSTANT; /* what was there does not matter */
    MICA_TRY(check_padding(ctx, "unpad", src, "src", dst, "dst", &amounts));
    MICA_START(ctx, "unpad", 0, NULL);
    region g = {.at = {1, 1, 1, 1, 1, 1, 1, 1}};
    if (locate(&g, src, dst, &amounts))
        mica_move(ctx, dst, &g.padded);
    return MICA_OK;
}
