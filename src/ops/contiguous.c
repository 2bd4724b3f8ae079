/* Copies between any layout and contiguous scratch. */
#include "ops/contiguous.h"

#include <assert.h>
#include <string.h>

#include "ops/walk.h"
#include "tensor/tensor.h"

/* One run of n elements along the innermost axis. */
static void copy_run(char *dst, mica_index dst_step, const char *src, mica_index src_step, mica_index n,
                     size_t bytes)
{
    if (dst_step == (mica_index)bytes && src_step == (mica_index)bytes) {
        memcpy(dst, src, (size_t)n * bytes);
        return;
    }
    for (mica_index i = 0; i < n; i++)
        memcpy(dst + i * dst_step, src + i * src_step, bytes);
}

/* dst = src, of one shape and dtype. */
static void copy_elements(const mica_tensor *dst, const mica_tensor *src)
{
    mica_walk w;
    mica_walk_init(&w, (const mica_tensor *[]){dst, src}, 2);
    if (w.count == 0)
        return;
    mica_index bytes = (mica_index)mica_dtype_bytes(dst->dtype), index[MICA_MAX_RANK] = {0};
    int last = w.rank - 1;
    char *to = w.data[0], *from = w.data[1];
    for (;;) {
        copy_run(to, w.stride[0][last] * bytes, from, w.stride[1][last] * bytes, w.dim[last], (size_t)bytes);
        int axis = last - 1;
        for (; axis >= 0; axis--) {
            to += w.stride[0][axis] * bytes;
            from += w.stride[1][axis] * bytes;
            if (++index[axis] < w.dim[axis])
                break;
            to -= w.dim[axis] * w.stride[0][axis] * bytes;
            from -= w.dim[axis] * w.stride[1][axis] * bytes;
            index[axis] = 0;
        }
        if (axis < 0)
            return;
    }
}

static bool contiguous_rows(const mica_tensor *t)
{
    return t->rank == 0 || t->stride[t->rank - 1] == 1 || t->dim[t->rank - 1] < 2;
}

static void plan(mica_contiguous *dense, const mica_arg *args, int count, bool (*fits)(const mica_tensor *t))
{
    assert(count <= MICA_CONTIGUOUS_MOST);
    dense->count = count;
    dense->bytes = 0;
    dense->arg = args;
    dense->copied = 0;
    for (int k = 0; k < count; k++) {
        const mica_tensor *t = args[k].tensor;
        dense->data[k] = t != NULL ? t->data : NULL;
        if (t == NULL || fits(t))
            continue;
        dense->copied |= 1u << k;
        dense->bytes += mica_align_up(mica_tensor_bytes(t));
    }
}

void mica_contiguous_plan(mica_contiguous *dense, const mica_arg *args, int count)
{
    plan(dense, args, count, mica_tensor_contiguous);
    dense->copy = NULL;
}

void mica_contiguous_plan_rows(mica_contiguous *dense, mica_tensor *copies, const mica_arg *args, int count)
{
    plan(dense, args, count, contiguous_rows);
    dense->copy = copies;
    for (int k = 0; k < count; k++)
        if (dense->copied >> k & 1u)
            copies[k] = mica_tensor_like(args[k].tensor, NULL);
}

const mica_tensor *mica_contiguous_tensor(const mica_contiguous *dense, int k)
{
    return dense->copied >> k & 1u ? &dense->copy[k] : dense->arg[k].tensor;
}

void *mica_contiguous_load(mica_contiguous *dense, void *scratch)
{
    char *next = scratch;
    for (int k = 0; k < dense->count; k++) {
        if (!(dense->copied >> k & 1u))
            continue;
        mica_tensor copy = mica_tensor_like(dense->arg[k].tensor, next);
        dense->data[k] = next;
        next += mica_align_up(mica_tensor_bytes(&copy));
        copy_elements(&copy, dense->arg[k].tensor); /* outputs too: some are updated */
        if (dense->copy != NULL)
            dense->copy[k] = copy;
    }
    return next;
}

void mica_contiguous_store(const mica_contiguous *dense)
{
    for (int k = 0; k < dense->count; k++)
        if ((dense->copied >> k & 1u) && (dense->arg[k].flags & MICA_ARG_OUT)) {
            mica_tensor copy = mica_tensor_like(dense->arg[k].tensor, dense->data[k]);
            copy_elements(dense->arg[k].tensor, &copy);
        }
}
