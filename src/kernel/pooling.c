/* Pooling kernels; compiled once per instruction set.
 *
 * A row of outputs has three sections: at the left and right, windows extend past the edge and are processed one by
 * one; in the interior every tap of every window is inside, and VF_LANES windows are processed at a time. */
#include "kernel/kernels.h"
#include "kernel/pooling.h"
#include "kernel/vec.h"

typedef mica_pool_shape shape;

static ptrdiff_t least(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }
static ptrdiff_t most(ptrdiff_t a, ptrdiff_t b) { return a > b ? a : b; }

/* Windows begin to end. */
typedef struct span {
    ptrdiff_t begin, end;
} span;

/* The windows of a row whose taps are all inside. */
static span interior(const shape *s)
{
    ptrdiff_t reach = s->in[1] - 1 + s->pad[1] - (s->kernel[1] - 1) * s->dilation[1];
    ptrdiff_t begin = least((s->pad[1] + s->stride[1] - 1) / s->stride[1], s->out[1]);
    ptrdiff_t end = reach < 0 ? 0 : least(reach / s->stride[1] + 1, s->out[1]);
    return (span){begin, most(begin, end)};
}

/* The taps of window `at` along an axis that are inside. */
static span taps(const shape *s, int axis, ptrdiff_t at)
{
    ptrdiff_t start = at * s->stride[axis] - s->pad[axis], d = s->dilation[axis];
    ptrdiff_t begin = start < 0 ? -start : 0, room = s->in[axis] - start, end = most(room, 0);
    if (d > 1) {
        begin = (begin + d - 1) / d;
        end = (end + d - 1) / d;
    }
    return (span){begin, most(begin, least(end, s->kernel[axis]))};
}

/* What an average divides by along an axis. Past the padding there is nothing to count, even with it. */
static ptrdiff_t divisor(const shape *s, int axis, ptrdiff_t at)
{
    if (s->exclude_pad) {
        span inside = taps(s, axis, at);
        return inside.end - inside.begin;
    }
    ptrdiff_t start = at * s->stride[axis] - s->pad[axis];
    return least(start + s->kernel[axis], s->in[axis] + s->pad[axis]) - start;
}

/* Two by two, side by side: all that its windows need comes in whole vectors. */
static bool is_pairs(const shape *s)
{
    for (int k = 0; k < 2; k++)
        if (s->kernel[k] != 2 || s->stride[k] != 2 || s->pad[k] != 0 || s->dilation[k] != 1)
            return false;
    return true;
}

static bool are_pairs_inside(const shape *s)
{
    return is_pairs(s) && 2 * s->out[1] <= s->in[1] && 2 * s->out[0] <= s->in[0];
}

/* Whether they fill planes whose rows are one vector each: then the windows of two rows go together, or half
 * the lanes of their results would be in vain. */
static bool is_narrow(const shape *s)
{
    return VF_LANES > 1 && s->in[1] == VF_LANES && 2 * s->out[1] == VF_LANES && s->in[0] == 2 * s->out[0] &&
           is_pairs(s);
}

/* p[0], p[step], ... for n lanes. */
VF_INLINE vf load_steps(const float *p, ptrdiff_t step, size_t n)
{
    if (step == 1)
        return n == VF_LANES ? vf_load(p) : vf_load_tail(p, n);
    if (step == 2) {
        size_t need = 2 * n - 1, first = need < VF_LANES ? need : VF_LANES;
        vf even, odd;
        vf_unzip(vf_load_tail(p, first), vf_load_tail(p + first, need - first), &even, &odd);
        return even;
    }
    if (n == VF_LANES)
        return vf_gather(p, step);
    float lanes[VF_LANES] = {0};
    for (size_t i = 0; i < n; i++)
        lanes[i] = p[(ptrdiff_t)i * step];
    return vf_load(lanes);
}

/* What windows of two by two so much further on will take, of two vectors and what lies `width` behind: from a far
 * cache it would come too late. Addresses are numbers, as these may lie behind the end of it all. */
VF_INLINE void fetch_pairs(const float *p, ptrdiff_t width)
{
#if !defined(MICA_SMALL)
    enum { AHEAD = 512 * sizeof(float), LINE = 64, ALL = 2 * VF_LANES * sizeof(float) };
    const uintptr_t at = (uintptr_t)p, below = at + (uintptr_t)width * sizeof(float);
    for (uintptr_t i = AHEAD; VF_LANES > 1 && i < AHEAD + ALL; i += LINE) {
        /* NOLINTBEGIN(performance-no-int-to-ptr): nothing is read by these pointers */
        __builtin_prefetch((const void *)(at + i));
        __builtin_prefetch((const void *)(below + i));
        /* NOLINTEND(performance-no-int-to-ptr) */
    }
#else
    (void)p;
    (void)width;
#endif
}

/* ---- Maximum ---- */

static void max_window(float *y, int32_t *index, const float *x, const shape *s, ptrdiff_t oy, ptrdiff_t ox)
{
    float best = -INFINITY;
    ptrdiff_t at = -1;
    span rows = taps(s, 0, oy), columns = taps(s, 1, ox);
    ptrdiff_t top = oy * s->stride[0] - s->pad[0], left = ox * s->stride[1] - s->pad[1];
    for (ptrdiff_t ky = rows.begin; ky < rows.end; ky++) {
        for (ptrdiff_t kx = columns.begin; kx < columns.end; kx++) {
            ptrdiff_t here = (top + ky * s->dilation[0]) * s->in[1] + left + kx * s->dilation[1];
            if (at < 0 || x[here] > best || x[here] != x[here]) {
                best = x[here];
                at = here;
            }
        }
    }
    *y = best;
    if (index != NULL)
        *index = (int32_t)at;
}

/* Of equal values the first counts, and of NaNs the last, as in PyTorch. */
VF_INLINE void take_larger(vf *best, vi *at, vf value, vi here)
{
    vm larger = vm_or(vf_gt(value, *best), vf_isnan(value));
    *best = vf_select(larger, value, *best);
    *at = vi_select(larger, here, *at);
}

/* Where there is no NaN. */
VF_INLINE void take_greater(vf *best, vi *at, vf value, vi here)
{
    *at = vi_select(vf_gt(value, *best), here, *at);
    *best = vf_max(value, *best); /* the second if both are zero */
}

/* n interior windows from ox on, `step` apart; `rows` is not empty. */
VF_INLINE void max_windows(float *y, int32_t *index, const float *x, const shape *s, ptrdiff_t step,
                           ptrdiff_t oy, span rows, ptrdiff_t ox, size_t n)
{
    ptrdiff_t top = oy * s->stride[0] - s->pad[0], left = ox * step - s->pad[1];
    vi steps = vi_mul(vi_iota(), vi_set1((int32_t)step));
    vf best = vf_zero();
    vi at = vi_set1(-1);
    for (ptrdiff_t ky = rows.begin; ky < rows.end; ky++) {
        ptrdiff_t row = (top + ky * s->dilation[0]) * s->in[1] + left;
        for (ptrdiff_t kx = 0; kx < s->kernel[1]; kx++) {
            ptrdiff_t here = row + kx * s->dilation[1];
            vf value = load_steps(x + here, step, n);
            vi place = vi_add(steps, vi_set1((int32_t)here));
            if (ky == rows.begin && kx == 0) {
                best = value;
                at = place;
            } else {
                take_larger(&best, &at, value, place);
            }
        }
    }
    vf_store_tail(y + ox, best, n);
    if (index != NULL)
        vi_store_tail(index + ox, at, n);
}

/* VF_LANES windows of two by two, number `at` and behind: their upper rows are the vectors at p and at `more`, the
 * lower ones come `width` behind; their first elements lie at `first`. Lanes are put in order at the end: until then
 * there are offsets in a window. `indexed`, whether there is an index, is a constant where this is inlined. */
VF_INLINE void max_pairs(float *y, int32_t *index, ptrdiff_t at, const float *p, const float *more, vi first,
                         ptrdiff_t width, bool indexed)
{
    vf p0 = vf_load(p), p1 = vf_load(more), q0 = vf_load(p + width), q1 = vf_load(more + width), a, b, c, d;
    if (!indexed) {
        vf_pairs(vf_max_nan(p0, q0), vf_max_nan(p1, q1), &a, &b);
        vf_store(y + at, vf_in_order(vf_max_nan(a, b)));
        return;
    }
    vf_pairs(p0, p1, &a, &b);
    vf_pairs(q0, q1, &c, &d);
    vf best = a, lower = c;
    vi right = vi_set1(1), down = vi_set1((int32_t)width), offset = vi_set1(0), below = down;
    if (vm_any(vf_isnan(vf_add(vf_add(p0, p1), vf_add(q0, q1))))) { /* or infinities of both signs */
        take_larger(&best, &offset, b, right);
        take_larger(&best, &offset, c, down);
        take_larger(&best, &offset, d, vi_add(down, right));
    } else {
        take_greater(&best, &offset, b, right);
        take_greater(&lower, &below, d, vi_add(down, right));
        take_greater(&best, &offset, lower, below);
    }
    vf_store(y + at, vf_in_order(best));
    vi_store(index + at, vi_add(first, vf_bits(vf_in_order(vf_of_bits(offset)))));
}

#include "kernel/pooling_by_two.h"

VF_INLINE void max_row(float *y, int32_t *index, const float *x, const shape *s, ptrdiff_t oy, span inner)
{
#if !defined(MICA_SMALL)
    if (index == NULL && are_by_two(s, inner)) {
        max_row_by_two(y, x, s, oy, inner);
        return;
    }
#endif
    span rows = taps(s, 0, oy);
    ptrdiff_t ox = 0;
    if (rows.begin == rows.end)
        inner.begin = inner.end = 0;
    for (; ox < inner.begin; ox++)
        max_window(y + ox, index != NULL ? index + ox : NULL, x, s, oy, ox);
    for (; ox < inner.end; ox += VF_LANES) {
        size_t n = (size_t)least(VF_LANES, inner.end - ox);
        if (s->stride[1] == 1)
            max_windows(y, index, x, s, 1, oy, rows, ox, n);
        else if (s->stride[1] == 2)
            max_windows(y, index, x, s, 2, oy, rows, ox, n);
        else
            max_windows(y, index, x, s, s->stride[1], oy, rows, ox, n);
    }
    for (ox = inner.end; ox < s->out[1]; ox++)
        max_window(y + ox, index != NULL ? index + ox : NULL, x, s, oy, ox);
}

/* Where a row of windows of two by two begins that are all inside. */
typedef struct pair_row {
    const float *p, *stop; /* what comes before `stop` may be read */
    ptrdiff_t oy, from;    /* within its plane: the row of windows, and the element at p */
} pair_row;

VF_INLINE pair_row pair_row_of(const float *x, size_t begin, size_t end, const shape *s)
{
    ptrdiff_t size = s->in[0] * s->in[1], planes = ((ptrdiff_t)end + s->out[0] - 1) / s->out[0];
    ptrdiff_t plane = (ptrdiff_t)begin / s->out[0], oy = (ptrdiff_t)begin % s->out[0];
    ptrdiff_t from = 2 * oy * s->in[1];
    return (pair_row){x + plane * size + from, x + planes * size, oy, from};
}

VF_INLINE void next_pair_row(pair_row *at, const shape *s)
{
    at->p += 2 * s->in[1];
    at->from += 2 * s->in[1];
    if (++at->oy == s->out[0]) {
        at->p += s->in[0] * s->in[1] - at->from;
        at->oy = at->from = 0;
    }
}

/* Whether whole vectors will do. The last one of a row lies over the one before it. Where a row is narrower than a
 * vector, that goes on into the next row and plane, in what it reads and in what it writes (`rest` results are left):
 * the next row's results come later. */
VF_INLINE bool takes_vectors(const pair_row *at, const shape *s, size_t rest)
{
    return s->out[1] >= VF_LANES || (rest >= VF_LANES && at->stop - at->p >= s->in[1] + 2 * VF_LANES);
}

static __attribute__((noinline)) void max_short_row(float *y, int32_t *index, const pair_row at,
                                                    const shape *s)
{
    max_windows(y, index, at.p - at.from, s, 2, at.oy, (span){0, 2}, 0, (size_t)s->out[1]);
}

#if !defined(MICA_SMALL)
/* Whether they fill planes and their rows fill vectors: then rows follow one another, whatever plane they are of. */
static bool are_whole(const shape *s)
{
    return s->out[1] % VF_LANES == 0 && s->in[1] == 2 * s->out[1] && s->in[0] == 2 * s->out[0];
}

VF_INLINE void max_whole_rows(float *y, int32_t *index, const float *x, size_t begin, size_t end,
                              const shape *s, bool indexed)
{
    const ptrdiff_t width = s->in[1], out = s->out[1], plane = s->in[0] * width;
    const float *p = x + (ptrdiff_t)begin * 2 * width;
    ptrdiff_t from = (ptrdiff_t)begin % s->out[0] * 2 * width;
    vi twice = vi_add(vi_iota(), vi_iota());
    for (size_t row = begin; row < end; row++, p += width) {
        for (ptrdiff_t ox = 0; ox < out; ox += VF_LANES, p += 2 * VF_LANES) {
            vi first = vi_add(twice, vi_set1((int32_t)(from + 2 * ox)));
            if (VF_LANES >= 16)
                fetch_pairs(p, width);
            max_pairs(y, index, 0, p, p + VF_LANES, first, width, indexed);
            y += VF_LANES;
            if (indexed)
                index += VF_LANES;
        }
        from = from + 2 * width == plane ? 0 : from + 2 * width;
    }
}
#endif

/* `indexed` is a constant where this is inlined: into functions of its own, or the loop runs out of registers. */
VF_INLINE void max_pair_rows(float *y, int32_t *index, const float *x, size_t begin, size_t end,
                             const shape *of, bool indexed)
{
    const shape own = *of, *s = &own; /* which stores cannot change */
#if !defined(MICA_SMALL)
    if (are_whole(s)) {
        max_whole_rows(y, index, x, begin, end, s, indexed);
        return;
    }
#endif
    ptrdiff_t width = s->in[1], out = s->out[1], last = most(out - VF_LANES, 0);
    vi twice = vi_add(vi_iota(), vi_iota());
    pair_row at = pair_row_of(x, begin, end, s);
    for (size_t rest = (end - begin) * (size_t)out; rest > 0; rest -= (size_t)out, next_pair_row(&at, s)) {
        if (takes_vectors(&at, s, rest)) {
            for (ptrdiff_t ox = 0;; ox = least(ox + VF_LANES, last)) {
                const float *p = at.p + 2 * ox;
                vi first = vi_add(twice, vi_set1((int32_t)(at.from + 2 * ox)));
                if (VF_LANES >= 16) /* shorter vectors take as long as memory does */
                    fetch_pairs(p, width);
                max_pairs(y, index, ox, p, p + VF_LANES, first, width, indexed);
                if (ox == last)
                    break;
            }
        } else {
            max_short_row(y, indexed ? index : NULL, at, of);
        }
        y += out;
        if (indexed)
            index += out;
    }
}

/* Small builds have one body for both. */
#if defined(MICA_SMALL)
#define IS_INDEXED(indices) ((indices) != NULL)
#else
#define IS_INDEXED(indices) true

static __attribute__((noinline)) void max_pair_values(float *y, const float *x, size_t begin, size_t end,
                                                      const shape *s)
{
    max_pair_rows(y + begin * (size_t)s->out[1], NULL, x, begin, end, s, false);
}
#endif

static __attribute__((noinline)) void max_pair_indices(float *y, int32_t *indices, const float *x,
                                                       size_t begin, size_t end, const shape *s)
{
    size_t from = begin * (size_t)s->out[1];
    bool indexed = IS_INDEXED(indices);
    max_pair_rows(y + from, indexed ? indices + from : NULL, x, begin, end, s, indexed);
}

VF_INLINE void max_rows(float *y, int32_t *indices, const float *x, size_t begin, size_t end, const shape *s)
{
    span inner = interior(s);
    ptrdiff_t plane = (ptrdiff_t)begin / s->out[0], oy = (ptrdiff_t)begin % s->out[0];
    ptrdiff_t size = s->in[0] * s->in[1];
    for (size_t row = begin; row < end; row++) {
        float *to = y + row * (size_t)s->out[1];
        int32_t *index = indices != NULL ? indices + row * (size_t)s->out[1] : NULL;
        max_row(to, index, x + plane * size, s, oy, inner);
        if (++oy == s->out[0]) {
            oy = 0;
            plane++;
        }
    }
}

/* Where is_narrow: rows of windows, and those that they take, lie one behind the other, whatever plane they
 * are of. */
VF_INLINE void max_narrow_rows(float *y, int32_t *indices, const float *x, size_t begin, size_t end,
                               const shape *s)
{
    const ptrdiff_t width = VF_LANES, half = VF_LANES / 2;
    ptrdiff_t row = (ptrdiff_t)begin, oy = row % s->out[0], next;
    vi steps = vi_add(vi_iota(), vi_iota());
    vm upper = vi_gt(vi_iota(), vi_set1((int32_t)half - 1));
    for (; row + 2 <= (ptrdiff_t)end; row += 2, oy = next + 1 == s->out[0] ? 0 : next + 1) {
        next = oy + 1 == s->out[0] ? 0 : oy + 1;
        vi first = vi_set1((int32_t)(2 * oy * width)), second = vi_set1((int32_t)((2 * next - 1) * width));
        const float *p = x + 2 * row * width;
        max_pairs(y, indices, row * half, p, p + 2 * width, vi_add(steps, vi_select(upper, second, first)),
                  width, indices != NULL);
    }
    if (row < (ptrdiff_t)end)
        max_windows(y + row * half, indices != NULL ? indices + row * half : NULL, x + 2 * (row - oy) * width,
                    s, 2, oy, (span){0, 2}, 0, (size_t)half);
}

static void pool_max(float *y, int32_t *indices, const float *x, size_t begin, size_t end, const shape *of)
{
    const shape own = *of, *s = &own; /* which stores cannot change */
    bool narrow = is_narrow(s), pairs = are_pairs_inside(s);
    if (narrow && indices == NULL)
        max_narrow_rows(y, NULL, x, begin, end, s);
    else if (narrow)
        max_narrow_rows(y, indices, x, begin, end, s);
#if !defined(MICA_SMALL)
    else if (pairs && indices == NULL)
        max_pair_values(y, x, begin, end, of);
#endif
    else if (pairs)
        max_pair_indices(y, indices, x, begin, end, of);
    else if (indices == NULL)
        max_rows(y, NULL, x, begin, end, s);
    else
        max_rows(y, indices, x, begin, end, s);
}

#include "kernel/pooling_send_back.h"

/* ---- Average ---- */

#include "kernel/pooling_average.h"

/* ---- Adaptive average: part i of n covers floor(i size / n) to ceil((i + 1) size / n) ---- */

static span part(const shape *s, int axis, ptrdiff_t i)
{
    ptrdiff_t size = s->in[axis], n = s->out[axis];
    return (span){i * size / n, ((i + 1) * size + n - 1) / n};
}

static float sum_run(const float *x, ptrdiff_t n)
{
    enum { CHAINS = 4 }; /* of additions that do not wait for one another */
    vf part[CHAINS] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
    ptrdiff_t i = 0;
    for (; i + CHAINS * VF_LANES <= n; i += CHAINS * VF_LANES)
        for (ptrdiff_t k = 0; k < CHAINS; k++)
            part[k] = vf_add(part[k], vf_load(x + i + k * VF_LANES));
    float sum = i > 0 ? vf_sum(vf_add(vf_add(part[0], part[1]), vf_add(part[2], part[3]))) : 0.0f;
    for (; i < n; i++)
        sum += x[i];
    return sum;
}

static float mean_part(const float *x, const shape *s, span rows, span columns)
{
    ptrdiff_t width = columns.end - columns.begin, height = rows.end - rows.begin;
    float sum = 0.0f;
    if (width == s->in[1]) /* whole rows follow one another */
        sum = sum_run(x + rows.begin * width, width * height);
    else
        for (ptrdiff_t iy = rows.begin; iy < rows.end; iy++)
            sum += sum_run(x + iy * s->in[1] + columns.begin, width);
    return sum / (float)(width * height);
}

static void pool_adaptive(float *y, const float *x, size_t planes, const shape *s)
{
    for (size_t plane = 0; plane < planes; plane++, x += s->in[0] * s->in[1])
        for (ptrdiff_t oy = 0; oy < s->out[0]; oy++)
            for (ptrdiff_t ox = 0; ox < s->out[1]; ox++)
                *y++ = mean_part(x, s, part(s, 0, oy), part(s, 1, ox));
}

static void add_to_part(float *dx, float share, const shape *s, span rows, span columns)
{
    vf add = vf_set1(share);
    for (ptrdiff_t iy = rows.begin; iy < rows.end; iy++) {
        float *row = dx + iy * s->in[1];
        ptrdiff_t ix = columns.begin;
        for (; ix + VF_LANES <= columns.end; ix += VF_LANES)
            vf_store(row + ix, vf_add(vf_load(row + ix), add));
        for (; ix < columns.end; ix++)
            row[ix] += share;
    }
}

static void pool_adaptive_backward(float *dx, const float *dy, size_t planes, const shape *s)
{
    size_t in = (size_t)(s->in[0] * s->in[1]);
    for (size_t plane = 0; plane < planes; plane++, dx += in) {
        memset(dx, 0, in * sizeof *dx);
        for (ptrdiff_t oy = 0; oy < s->out[0]; oy++) {
            span rows = part(s, 0, oy);
            for (ptrdiff_t ox = 0; ox < s->out[1]; ox++) {
                span columns = part(s, 1, ox);
                ptrdiff_t area = (rows.end - rows.begin) * (columns.end - columns.begin);
                add_to_part(dx, *dy++ / (float)area, s, rows, columns);
            }
        }
    }
}

const mica_pool_kernels VF_SYMBOL(mica_pool_kernels) = {
    .max = pool_max,
    .average = pool_average,
    .max_backward = pool_max_backward,
    .average_backward = pool_average_backward,
    .adaptive = pool_adaptive,
    .adaptive_backward = pool_adaptive_backward,
};

MICA_KERNEL_SYMBOL(pool, max, pool_max)
MICA_KERNEL_SYMBOL(pool, average, pool_average)
MICA_KERNEL_SYMBOL(pool, max_backward, pool_max_backward)
MICA_KERNEL_SYMBOL(pool, average_backward, pool_average_backward)
MICA_KERNEL_SYMBOL(pool, adaptive, pool_adaptive)
MICA_KERNEL_SYMBOL(pool, adaptive_backward, pool_adaptive_backward)
