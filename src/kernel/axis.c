/* Kernels along contiguous lines; the panels are in axis_panel.h. Compiled once per instruction set. */
#include "kernel/axis.h"
#include "kernel/axis_panel.h"
#include "kernel/map_loop.h"
#include "kernel/sum_loop.h"
#include "kernel/vmath.h"

/* A NaN may be lost here; it shows again in the sum of exponentials. */
static float line_max(const float *x, size_t n)
{
    vf m[4];
    for (int w = 0; w < 4; w++)
        m[w] = vf_set1(-INFINITY);
    size_t i = 0;
    for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES)
        for (size_t w = 0; w < 4; w++)
            m[w] = vf_max(m[w], vf_load(x + i + w * VF_LANES));
    for (; i + VF_LANES <= n; i += VF_LANES)
        m[0] = vf_max(m[0], vf_load(x + i));
    if (i < n)
        m[1] = vf_select(vm_first(n - i), vf_max(m[1], vf_load_tail(x + i, n - i)), m[1]);
    return vf_hmax(vf_max(vf_max(m[0], m[1]), vf_max(m[2], m[3])));
}

/* dst = exp(x - max) for a chunk; returns its sum. */
static float exp_chunk(float *dst, const float *x, size_t n, vf max)
{
    vf sum = vf_zero(), other = vf_zero();
    size_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        vf e = vf_exp_down(vf_sub(vf_load(x + i), max)), f = vf_exp_down(vf_sub(vf_load(x + i + VF_LANES), max));
        vf_store(dst + i, e);
        vf_store(dst + i + VF_LANES, f);
        sum = vf_add(sum, e);
        other = vf_add(other, f);
    }
    for (; i < n; i += VF_LANES) {
        size_t lanes = n - i < VF_LANES ? n - i : VF_LANES;
        vf e = vf_exp_down(vf_sub(vf_load_tail(x + i, lanes), max));
        vf_store_tail(dst + i, e, lanes);
        sum = vf_add(sum, vf_select(vm_first(lanes), e, vf_zero()));
    }
    return vf_sum(vf_add(sum, other));
}

MAP1(times, 1, vf_mul(a, p[0]))
MAP1(less_two, 2, vf_sub(vf_sub(a, p[0]), p[1]))
/* y (dy - sum) */
MAP2(softmax_gradient, 1, vf_mul(b, vf_sub(a, p[0])))
/* dy - sum e^y */
MAP2(log_softmax_gradient, 1, vf_fnma(p[0], vf_exp(b), a))
/* p[0] dy - p[1] x */
MAP2(difference, 2, vf_fnma(p[1], b, vf_mul(p[0], a)))

static void softmax_line(float *dst, const float *const *src, size_t n, float param)
{
    (void)param;
    const float *x = src[0];
    vf max = vf_set1(line_max(x, n));
    double sum = 0.0;
    for (size_t i = 0; i < n; i += SUM_CHUNK)
        sum += (double)exp_chunk(dst + i, x + i, n - i < SUM_CHUNK ? n - i : SUM_CHUNK, max);
    float scale = (float)(1.0 / sum);
    map_times(dst, (const float *[]){dst}, n, &scale);
}

VF_INLINE vf term_exp(vf a, vf b, vf k) { return (void)b, vf_exp_down(vf_sub(a, k)); }

static float log_of(float x)
{
    float lane[VF_LANES];
    vf_store(lane, vf_log(vf_set1(x)));
    return lane[0];
}

static void log_softmax_line(float *dst, const float *const *src, size_t n, float param)
{
    (void)param;
    float max = line_max(src[0], n);
    float log_sum = log_of((float)sum_run(src[0], src[0], n, max, term_exp));
    map_less_two(dst, src, n, (float[]){max, log_sum});
}

static void softmax_backward_line(float *dst, const float *const *src, size_t n, float param)
{
    (void)param;
    float sum = (float)sum_run(src[0], src[1], n, 0.0f, term_product);
    map_softmax_gradient(dst, src, n, &sum);
}

static void log_softmax_backward_line(float *dst, const float *const *src, size_t n, float param)
{
    (void)param;
    float sum = (float)sum_run(src[0], src[0], n, 0.0f, term_value);
    map_log_softmax_gradient(dst, src, n, &sum);
}

static void l2_normalize_line(float *dst, const float *const *src, size_t n, float least)
{
    float norm = sqrtf((float)sum_run(src[0], src[0], n, 0.0f, term_square));
    float scale = 1.0f / (norm < least ? least : norm);
    map_times(dst, src, n, &scale);
}

/* dx = (dy - x (x.dy) / |x|^2) / |x|, or dy / least where |x| is smaller */
static void l2_normalize_backward_line(float *dst, const float *const *src, size_t n, float least)
{
    double square = sum_run(src[1], src[1], n, 0.0f, term_square);
    double product = sum_run(src[0], src[1], n, 0.0f, term_product);
    float norm = sqrtf((float)square);
    bool held = norm < least;
    float scale = 1.0f / (held ? least : norm);
    map_difference(dst, src, n, (float[]){scale, held ? 0.0f : (float)(product / square) * scale});
}

const mica_axis_kernels VF_SYMBOL(mica_axis_kernels) = {
#define FIELD(name, sources) .name = {name##_line, name##_panel},
    MICA_AXIS_KERNELS(FIELD)};
