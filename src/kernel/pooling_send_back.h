/* What is sent back to the largest of each window: for pooling.c, whose shapes these are. */
#ifndef MICA_SRC_KERNEL_POOLING_SEND_BACK_H
#define MICA_SRC_KERNEL_POOLING_SEND_BACK_H

/* Whether windows are two by two, side by side, as far as their number tells. */
static bool tells_of_pairs(const shape *s)
{
    return s->in[0] == 2 * s->out[0] && s->in[1] == 2 * s->out[1] && s->out[1] > 0;
}

/* Which of the four of VF_LANES windows of two by two, of which the first n count, is number `at` of the plane; the
 * first of each is number `first`. False if none is. */
VF_INLINE bool find_pairs(vm found[4], vi at, vi first, ptrdiff_t width, size_t n)
{
    vi below = vi_add(first, vi_set1((int32_t)width)), one = vi_set1(1);
    found[0] = vi_eq(at, first);
    found[1] = vi_eq(at, vi_add(first, one));
    found[2] = vi_eq(at, below);
    found[3] = vi_eq(at, vi_add(below, one));
    vm any = vm_or(vm_or(found[0], found[1]), vm_or(found[2], found[3]));
    return vm_all(vm_or(any, vm_not(vm_first(n))));
}

/* A row of their elements: what is sent back where it was found, zeros elsewhere. */
VF_INLINE void zip_found(vf row[2], vf value, const vm found[2])
{
    vf_zip(vf_select(found[0], value, vf_zero()), vf_select(found[1], value, vf_zero()), &row[0], &row[1]);
}

/* Whole vectors of windows: their upper rows are those at p and at `more`, the lower ones come `width` behind. False,
 * with nothing written, if an index lies elsewhere. */
VF_INLINE bool send_back_whole(float *p, float *more, const float *dy, const int32_t *index, vi first,
                               ptrdiff_t width, size_t n)
{
    vf value = vf_add(vf_load(dy), vf_zero()), row[2];
    vm found[4];
    if (!find_pairs(found, vi_load(index), first, width, n))
        return false;
    zip_found(row, value, found);
    vf_store(p, row[0]);
    vf_store(more, row[1]);
    zip_found(row, value, found + 2);
    vf_store(p + width, row[0]);
    vf_store(more + width, row[1]);
    return true;
}

/* n windows, and nothing beyond them is read or written. */
VF_INLINE bool send_back_last(float *p, const float *dy, const int32_t *index, vi first, ptrdiff_t width,
                              size_t n)
{
    vf value = vf_add(vf_load_tail(dy, n), vf_zero()), row[2];
    vm found[4];
    if (!find_pairs(found, vi_load_tail(index, n), first, width, n))
        return false;
    size_t left = 2 * n < VF_LANES ? 2 * n : VF_LANES, right = 2 * n - left;
    for (ptrdiff_t down = 0; down < 2; down++) {
        zip_found(row, value, found + 2 * down);
        vf_store_tail(p + down * width, row[0], left);
        if (right > 0)
            vf_store_tail(p + down * width + VF_LANES, row[1], right);
    }
    return true;
}

/* A row of windows, in whole vectors: the last of a row lies over the one before, and where a row is narrower than a
 * vector, that goes on into what comes next, which is written later. False if an index lies elsewhere. */
VF_INLINE bool send_back_row(float *dx, const float *dy, const int32_t *indices, const shape *s, ptrdiff_t oy)
{
    ptrdiff_t width = s->in[1], out = s->out[1], last = most(out - VF_LANES, 0);
    size_t n = (size_t)least(VF_LANES, out);
    for (ptrdiff_t ox = 0;; ox = least(ox + VF_LANES, last)) {
        ptrdiff_t here = 2 * (oy * width + ox), at = oy * out + ox;
        vi first = vi_add(vi_add(vi_iota(), vi_iota()), vi_set1((int32_t)here));
        float *p = dx + here;
        if (!send_back_whole(p, p + VF_LANES, dy + at, indices + at, first, width, n))
            return false;
        if (ox == last)
            return true;
    }
}

/* The same where there is no room for that. */
static __attribute__((noinline)) bool send_back_last_row(float *dx, const float *dy, const int32_t *indices,
                                                         const shape *s, ptrdiff_t oy)
{
    ptrdiff_t width = s->in[1], out = s->out[1];
    for (ptrdiff_t ox = 0; ox < out; ox += VF_LANES) {
        ptrdiff_t here = 2 * (oy * width + ox), at = oy * out + ox;
        vi first = vi_add(vi_add(vi_iota(), vi_iota()), vi_set1((int32_t)here));
        if (!send_back_last(dx + here, dy + at, indices + at, first, width,
                            (size_t)least(VF_LANES, out - ox)))
            return false;
    }
    return true;
}

/* A plane. Where is_narrow, as far as its sizes tell, two rows of windows go together. */
VF_INLINE bool send_back_plane(float *dx, const float *dy, const int32_t *indices, const shape *s)
{
    ptrdiff_t width = s->in[1], size = s->in[0] * width, out = s->out[1], oy = 0;
    if (VF_LANES > 1 && width == VF_LANES) {
        vm upper = vi_gt(vi_iota(), vi_set1((int32_t)out - 1));
        vi steps = vi_add(vi_add(vi_iota(), vi_iota()),
                          vi_select(upper, vi_set1((int32_t)width), vi_set1(0)));
        for (; oy + 2 <= s->out[0]; oy += 2) {
            float *p = dx + 2 * oy * width;
            vi first = vi_add(steps, vi_set1((int32_t)(2 * oy * width)));
            if (!send_back_whole(p, p + 2 * width, dy + oy * out, indices + oy * out, first, width, VF_LANES))
                return false;
        }
    }
    ptrdiff_t last = most(out - VF_LANES, 0);
    for (; oy < s->out[0] && 2 * (oy * width + last) + width + 2 * VF_LANES <= size &&
           oy * out + last + VF_LANES <= s->out[0] * out;
         oy++)
        if (!send_back_row(dx, dy, indices, s, oy))
            return false;
    for (; oy < s->out[0]; oy++)
        if (!send_back_last_row(dx, dy, indices, s, oy))
            return false;
    return true;
}

/* dx[index] += dy, in the order of the windows. */
static void pool_max_backward(float *dx, const float *dy, const int32_t *indices, size_t planes,
                              const shape *of)
{
    const shape own = *of, *s = &own;
    size_t in = (size_t)(s->in[0] * s->in[1]), out = (size_t)(s->out[0] * s->out[1]);
    bool pairs = tells_of_pairs(s);
    for (size_t plane = 0; plane < planes; plane++, dx += in, dy += out, indices += out) {
        if (pairs && send_back_plane(dx, dy, indices, s))
            continue;
        memset(dx, 0, in * sizeof *dx);
        for (size_t i = 0; i < out; i++)
            if ((uint32_t)indices[i] < in)
                dx[indices[i]] += dy[i];
    }
}

#endif
