/* Kernels along contiguous lines; the panels are in axis_panel.h. Compiled once per instruction set. */
#include "kernel/axis.h"
#include "kernel/axis_panel.h"
#include "kernel/kernels.h"
#include "kernel/map_loop.h"
#include "kernel/softmax_loop.h"
#include "kernel/sum_loop.h"
#include "kernel/vmath.h"

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
    float scale = (float)(1.0 / exp_line(dst, src[0], n, line_max(src[0], n)));
    map_times(dst, (const float *[]){dst}, n, &scale);
}

static void log_softmax_line(float *dst, const float *const *src, size_t n, float param)
{
    (void)param;
    float max = line_max(src[0], n);
    float log_sum = log_of((float)exp_line(NULL, src[0], n, max));
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

#if defined(MICA_ONE_ISA)
#define SYMBOL(name, sources) const mica_axis_kernel mica_axis_##name##_kernel = {name##_line, name##_panel};
MICA_AXIS_KERNELS(SYMBOL)
#endif
