/* The largest of windows two apart, where nobody asks for indices: down the columns first. For pooling.c, whose shapes
 * and spans these are. */
#ifndef MICA_SRC_KERNEL_POOLING_BY_TWO_H
#define MICA_SRC_KERNEL_POOLING_BY_TWO_H

#if !defined(MICA_SMALL)

/* Whether windows are two apart, two or three wide, and fill whole vectors between the borders. */
static bool are_by_two(const shape *s, span inner)
{
    return VF_LANES > 1 && s->stride[1] == 2 && s->dilation[0] == 1 && s->dilation[1] == 1 &&
           (s->kernel[1] == 2 || s->kernel[1] == 3) && inner.end - inner.begin >= VF_LANES;
}

VF_INLINE vf largest_of_columns(const float *p, ptrdiff_t width, ptrdiff_t rows)
{
    vf most = vf_load(p);
    for (ptrdiff_t r = 1; r < rows; r++)
        most = vf_max_nan(most, vf_load(p + r * width));
    return most;
}

/* VF_LANES windows from p on. The third columns are every second one from p + 1 on, so that nothing beyond the last is
 * read. */
VF_INLINE vf max_by_two(const float *p, ptrdiff_t width, ptrdiff_t rows, bool three)
{
    vf even, odd, third;
    vf_unzip(largest_of_columns(p, width, rows), largest_of_columns(p + VF_LANES, width, rows), &even, &odd);
    vf best = vf_max_nan(even, odd);
    if (!three)
        return best;
    vf_unzip(largest_of_columns(p + 1, width, rows), largest_of_columns(p + 1 + VF_LANES, width, rows), &even,
             &third);
    return vf_max_nan(best, third);
}

/* A window over a border. */
static float max_at_border(const float *x, const shape *s, span rows, ptrdiff_t top, ptrdiff_t ox)
{
    span columns = taps(s, 1, ox);
    size_t n = (size_t)(columns.end - columns.begin);
    const float *p = x + (top + rows.begin) * s->in[1] + 2 * ox - s->pad[1] + columns.begin;
    vf most = vf_set1(-INFINITY), none = most;
    for (ptrdiff_t ky = rows.begin; ky < rows.end && n > 0; ky++, p += s->in[1])
        most = vf_max_nan(most, vf_select(vm_first(n), vf_load_tail(p, n), none));
    return vf_hmax(most);
}

/* A row of such windows; the last vector between the borders lies over the one before it. */
static void max_row_by_two(float *y, const float *x, const shape *s, ptrdiff_t oy, span inner)
{
    span rows = taps(s, 0, oy);
    ptrdiff_t top = oy * s->stride[0] - s->pad[0], count = rows.end - rows.begin, last = inner.end - VF_LANES;
    const float *p = x + (top + rows.begin) * s->in[1] - s->pad[1];
    bool three = s->kernel[1] == 3;
    for (ptrdiff_t ox = 0; ox < inner.begin; ox++)
        y[ox] = max_at_border(x, s, rows, top, ox);
    for (ptrdiff_t ox = inner.begin;; ox = least(ox + VF_LANES, last)) {
        if (three && count == 3)
            vf_store(y + ox, max_by_two(p + 2 * ox, s->in[1], 3, true));
        else if (count > 0)
            vf_store(y + ox, max_by_two(p + 2 * ox, s->in[1], count, three));
        else
            vf_store(y + ox, vf_set1(-INFINITY));
        if (ox == last)
            break;
    }
    for (ptrdiff_t ox = inner.end; ox < s->out[1]; ox++)
        y[ox] = max_at_border(x, s, rows, top, ox);
}

#endif

#endif
