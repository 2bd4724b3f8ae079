/* Averages over windows: for pooling.c, whose shapes and spans these are. */
#ifndef MICA_SRC_KERNEL_POOLING_AVERAGE_H
#define MICA_SRC_KERNEL_POOLING_AVERAGE_H

static float sum_window(const float *x, const shape *s, ptrdiff_t oy, ptrdiff_t ox)
{
    span rows = taps(s, 0, oy), columns = taps(s, 1, ox);
    ptrdiff_t top = oy * s->stride[0] - s->pad[0], left = ox * s->stride[1] - s->pad[1];
    float sum = 0.0f;
    for (ptrdiff_t ky = rows.begin; ky < rows.end; ky++)
        for (ptrdiff_t kx = columns.begin; kx < columns.end; kx++)
            sum += x[(top + ky) * s->in[1] + left + kx];
    return sum;
}

VF_INLINE vf sum_windows(const float *x, const shape *s, ptrdiff_t step, ptrdiff_t oy, span rows,
                         ptrdiff_t ox, size_t n)
{
    ptrdiff_t top = oy * s->stride[0] - s->pad[0], left = ox * step - s->pad[1];
    vf sum = vf_zero();
    for (ptrdiff_t ky = rows.begin; ky < rows.end; ky++) {
        const float *row = x + (top + ky) * s->in[1] + left;
        for (ptrdiff_t kx = 0; kx < s->kernel[1]; kx++)
            sum = vf_add(sum, load_steps(row + kx, step, n));
    }
    return sum;
}

/* The sums of VF_LANES windows of two by two: their upper rows are the vectors at p and at `more`, the lower ones come
 * `width` behind. */
VF_INLINE vf sum_pairs(const float *p, const float *more, ptrdiff_t width)
{
    vf even, odd;
    vf_pairs(vf_add(vf_load(p), vf_load(p + width)), vf_add(vf_load(more), vf_load(more + width)), &even,
             &odd);
    return vf_in_order(vf_add(even, odd));
}

/* The same for n windows and nothing beyond them. */
VF_INLINE vf sum_last_pairs(const float *p, ptrdiff_t width, size_t n)
{
    size_t first = 2 * n < VF_LANES ? 2 * n : VF_LANES, rest = 2 * n - first;
    vf a = vf_add(vf_load_tail(p, first), vf_load_tail(p + width, first)), b = vf_zero(), even, odd;
    if (rest > 0)
        b = vf_add(vf_load_tail(p + VF_LANES, rest), vf_load_tail(p + width + VF_LANES, rest));
    vf_pairs(a, b, &even, &odd);
    return vf_in_order(vf_add(even, odd));
}

static void average_row(float *y, const float *x, const shape *s, ptrdiff_t oy, span inner)
{
    span rows = taps(s, 0, oy);
    ptrdiff_t down = divisor(s, 0, oy), ox = 0;
    for (; ox < inner.begin; ox++)
        y[ox] = sum_window(x, s, oy, ox) / (float)(down * divisor(s, 1, ox));
    vf area = vf_set1((float)(down * s->kernel[1]));
    for (; ox < inner.end; ox += VF_LANES) {
        size_t n = (size_t)least(VF_LANES, inner.end - ox);
        vf sum = s->stride[1] == 1   ? sum_windows(x, s, 1, oy, rows, ox, n)
                 : s->stride[1] == 2 ? sum_windows(x, s, 2, oy, rows, ox, n)
                                     : sum_windows(x, s, s->stride[1], oy, rows, ox, n);
        vf_store_tail(y + ox, vf_div(sum, area), n);
    }
    for (ox = inner.end; ox < s->out[1]; ox++)
        y[ox] = sum_window(x, s, oy, ox) / (float)(down * divisor(s, 1, ox));
}

/* Rows of windows of two by two, in the manner of max_pair_rows. */
static __attribute__((noinline)) void average_pair_rows(float *y, const float *x, size_t begin, size_t end,
                                                        const shape *of)
{
    const shape own = *of, *s = &own;
    ptrdiff_t width = s->in[1], out = s->out[1], last = most(out - VF_LANES, 0);
    vf quarter = vf_set1(0.25f);
    pair_row at = pair_row_of(x, begin, end, s);
    for (size_t i = begin * (size_t)out; i < end * (size_t)out; i += (size_t)out, next_pair_row(&at, s)) {
        if (!takes_vectors(&at, s, end * (size_t)out - i)) {
            vf_store_tail(y + i, vf_mul(sum_last_pairs(at.p, width, (size_t)out), quarter), (size_t)out);
            continue;
        }
        for (ptrdiff_t ox = 0;; ox = least(ox + VF_LANES, last)) {
            const float *p = at.p + 2 * ox;
            fetch_pairs(p, width);
            vf_store(y + i + ox, vf_mul(sum_pairs(p, p + VF_LANES, width), quarter));
            if (ox == last)
                break;
        }
    }
}

/* Where is_narrow, two rows of windows at a time, as max_narrow_rows has them. */
static void average_narrow_rows(float *y, const float *x, size_t begin, size_t end)
{
    const ptrdiff_t width = VF_LANES;
    const size_t half = VF_LANES / 2;
    vf quarter = vf_set1(0.25f);
    size_t row = begin;
    for (; row + 2 <= end; row += 2) {
        const float *p = x + 2 * (ptrdiff_t)row * width;
        vf_store(y + row * half, vf_mul(sum_pairs(p, p + 2 * width, width), quarter));
    }
    if (row < end)
        vf_store_tail(y + row * half,
                      vf_mul(sum_last_pairs(x + 2 * (ptrdiff_t)row * width, width, half), quarter), half);
}

static void pool_average(float *y, const float *x, size_t begin, size_t end, const shape *of)
{
    const shape own = *of, *s = &own; /* which stores cannot change */
    if (is_narrow(s)) {
        average_narrow_rows(y, x, begin, end);
        return;
    }
    if (are_pairs_inside(s)) {
        average_pair_rows(y, x, begin, end, of);
        return;
    }
    span inner = interior(s);
    ptrdiff_t plane = (ptrdiff_t)begin / s->out[0], oy = (ptrdiff_t)begin % s->out[0];
    for (size_t row = begin; row < end; row++) {
        average_row(y + row * (size_t)s->out[1], x + plane * s->in[0] * s->in[1], s, oy, inner);
        if (++oy == s->out[0]) {
            oy = 0;
            plane++;
        }
    }
}

/* Adds share[0 .. n) of the windows from ox on to all that they cover. */
static void spread(float *dx, const float *share, const shape *s, ptrdiff_t oy, ptrdiff_t ox, ptrdiff_t n)
{
    span rows = taps(s, 0, oy);
    ptrdiff_t top = oy * s->stride[0] - s->pad[0];
    for (ptrdiff_t ky = rows.begin; ky < rows.end; ky++) {
        float *row = dx + (top + ky) * s->in[1];
        for (ptrdiff_t i = 0; i < n; i++) {
            ptrdiff_t left = (ox + i) * s->stride[1] - s->pad[1];
            ptrdiff_t end = least(left + s->kernel[1], s->in[1]);
            for (ptrdiff_t ix = most(left, 0); ix < end; ix++)
                row[ix] += share[i];
        }
    }
}

/* dx = dy / 4 for the windows of two by two that lie within the plane; returns how many these are. */
VF_INLINE ptrdiff_t spread_pairs(float *dx, const float *dy, const shape *s, ptrdiff_t oy)
{
    float *upper = dx + 2 * oy * s->in[1], *lower = upper + s->in[1];
    ptrdiff_t ox = 0, end = least(s->out[1], s->in[1] / 2);
    vf quarter = vf_set1(0.25f), a, b;
    for (; ox + VF_LANES <= end; ox += VF_LANES) {
        vf share = vf_mul(vf_load(dy + ox), quarter);
        vf_zip(share, share, &a, &b);
        vf_store(upper + 2 * ox, a);
        vf_store(upper + 2 * ox + VF_LANES, b);
        vf_store(lower + 2 * ox, a);
        vf_store(lower + 2 * ox + VF_LANES, b);
    }
    if (ox == end)
        return end;
    size_t n = 2 * (size_t)(end - ox), first = n < VF_LANES ? n : VF_LANES;
    vf share = vf_mul(vf_load_tail(dy + ox, n / 2), quarter);
    vf_zip(share, share, &a, &b);
    vf_store_tail(upper + 2 * ox, a, first);
    vf_store_tail(lower + 2 * ox, a, first);
    if (n > first) {
        vf_store_tail(upper + 2 * ox + VF_LANES, b, n - first);
        vf_store_tail(lower + 2 * ox + VF_LANES, b, n - first);
    }
    return end;
}

static void average_row_backward(float *dx, const float *dy, const shape *s, ptrdiff_t oy, bool pairs)
{
    enum { CHUNK = 64 };
    float share[CHUNK];
    ptrdiff_t down = divisor(s, 0, oy);
    ptrdiff_t ox = pairs && 2 * oy + 1 < s->in[0] ? spread_pairs(dx, dy, s, oy) : 0;
    for (; ox < s->out[1]; ox += CHUNK) {
        ptrdiff_t n = least(CHUNK, s->out[1] - ox);
        for (ptrdiff_t i = 0; i < n; i++)
            share[i] = dy[ox + i] / (float)(down * divisor(s, 1, ox + i));
        spread(dx, share, s, oy, ox, n);
    }
}

/* A plane whose elements are each written once. Where is_narrow, two rows of windows go together. */
static void spread_plane(float *dx, const float *dy, const shape *s)
{
    ptrdiff_t width = s->in[1], oy = 0;
    if (VF_LANES > 1 && width == VF_LANES) {
        for (; oy + 2 <= s->out[0]; oy += 2, dy += VF_LANES, dx += 4 * width) {
            vf share = vf_mul(vf_load(dy), vf_set1(0.25f)), a, b;
            vf_zip(share, share, &a, &b);
            vf_store(dx, a);
            vf_store(dx + width, a);
            vf_store(dx + 2 * width, b);
            vf_store(dx + 3 * width, b);
        }
        dx -= 2 * oy * width;
    }
    for (; oy < s->out[0]; oy++, dy += s->out[1])
        spread_pairs(dx, dy, s, oy);
}

static void pool_average_backward(float *dx, const float *dy, size_t planes, const shape *of)
{
    const shape own = *of, *s = &own;
    size_t in = (size_t)(s->in[0] * s->in[1]), out = (size_t)(s->out[0] * s->out[1]);
    bool pairs = is_pairs(s), covered = pairs && tells_of_pairs(s);
    for (size_t plane = 0; plane < planes; plane++, dx += in, dy += out) {
        if (covered) {
            spread_plane(dx, dy, s);
            continue;
        }
        memset(dx, 0, in * sizeof *dx);
        for (ptrdiff_t oy = 0; oy < s->out[0]; oy++)
            average_row_backward(dx, dy + oy * s->out[1], s, oy, pairs);
    }
}

#endif
