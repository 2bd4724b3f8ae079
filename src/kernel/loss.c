/* Loss kernels; compiled once per instruction set. */
#include "kernel/kernels.h"
#include "kernel/loss.h"
#include "kernel/softmax_loop.h"
#include "kernel/vec_run.h"
#include "kernel/vmath.h"

/* ---- Element by element ---- */

/* The loss of p against t, and its derivative by p. */
typedef vf point_fn(vf p, vf t, vf param, vf *slope);

/* loss and grad are given or not: constants where that matters. */
VF_INLINE float each(float *loss, float *grad, const float *pred, const float *target, size_t n, float scale,
                     float param, point_fn *fn)
{
    vf sums[2] = {vf_zero(), vf_zero()}, by = vf_set1(scale), k = vf_set1(param), slope;
    size_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        for (size_t v = 0; v < 2; v++) {
            size_t at = i + v * VF_LANES;
            vf p = grad != NULL ? vf_load(pred + at) : run_load(pred + at);
            vf t = grad != NULL ? vf_load(target + at) : run_load(target + at);
            vf value = fn(p, t, k, &slope);
            sums[v] = vf_add(sums[v], value);
            if (loss != NULL)
                vf_store(loss + at, value);
            if (grad != NULL)
                vf_store(grad + at, vf_mul(slope, by));
        }
    }
    for (; i < n; i += VF_LANES) {
        size_t left = n - i < VF_LANES ? n - i : VF_LANES;
        vf value = fn(vf_load_tail(pred + i, left), vf_load_tail(target + i, left), k, &slope);
        sums[0] = vf_add(sums[0], vf_select(vm_first(left), value, vf_zero()));
        if (loss != NULL)
            vf_store_tail(loss + i, value, left);
        if (grad != NULL)
            vf_store_tail(grad + i, vf_mul(slope, by), left);
    }
    return vf_sum(vf_add(sums[0], sums[1]));
}

/* d^2, 2 d */
VF_INLINE vf mse_point(vf p, vf t, vf param, vf *slope)
{
    (void)param;
    vf d = vf_sub(p, t);
    *slope = vf_add(d, d);
    return vf_mul(d, d);
}

/* |d|, the sign of d */
VF_INLINE vf l1_point(vf p, vf t, vf param, vf *slope)
{
    (void)param;
    vf d = vf_sub(p, t), zero = vf_zero();
    vf sign = vf_copysign(vf_set1(1.0f), d);
    *slope = vf_select(vf_ne(d, zero), vf_select(vf_isnan(d), d, sign), zero);
    return vf_abs(d);
}

/* d^2 / 2 and d inside, delta (|d| - delta / 2) and delta sign(d) outside */
VF_INLINE vf huber_point(vf p, vf t, vf delta, vf *slope)
{
    vf d = vf_sub(p, t), half = vf_set1(0.5f), far = vf_abs(d);
    *slope = vf_max(vf_neg(delta), vf_min(delta, d));
    vf outside = vf_mul(delta, vf_fnma(half, delta, far));
    return vf_select(vf_gt(far, delta), outside, vf_mul(half, vf_mul(d, d)));
}

#define LEAST_LOG    (-100.0f)
#define LEAST_CHANCE 1e-12f

/* -(t log p + (1 - t) log(1 - p)), (p - t) / (p (1 - p)) */
VF_INLINE vf bce_point(vf p, vf t, vf param, vf *slope)
{
    (void)param;
    vf one = vf_set1(1.0f), least = vf_set1(LEAST_LOG);
    vf yes = vf_max(least, vf_log(p)), no = vf_max(least, vf_log1p(vf_neg(p)));
    *slope = vf_div(vf_sub(p, t), vf_max(vf_set1(LEAST_CHANCE), vf_mul(p, vf_sub(one, p))));
    return vf_neg(vf_fma(t, yes, vf_mul(vf_sub(one, t), no)));
}

/* log(1 + e^-|z|) + |z| (1 - t or t, as z is positive or not), sigmoid(z) - t */
VF_INLINE vf bce_logits_point(vf z, vf t, vf param, vf *slope)
{
    (void)param;
    vf away = vf_select(vf_gt(z, vf_zero()), vf_sub(vf_set1(1.0f), t), t), size = vf_abs(z);
    *slope = vf_sub(vf_sigmoid(z), t);
    return vf_fma(size, away, vf_softplus(vf_neg(size)));
}

#define POINT_LOSS(name)                                                                                 \
    static float loss_##name(float *loss, float *grad, const float *pred, const float *target, size_t n, \
                             float scale, float param)                                                   \
    {                                                                                                    \
        if (loss == NULL && grad != NULL)                                                                \
            return each(NULL, grad, pred, target, n, scale, param, name##_point);                        \
        if (loss == NULL)                                                                                \
            return each(NULL, NULL, pred, target, n, scale, param, name##_point);                        \
        return each(loss, grad, pred, target, n, scale, param, name##_point);                            \
    }
POINT_LOSS(mse)
POINT_LOSS(l1)
POINT_LOSS(huber)
POINT_LOSS(bce)
POINT_LOSS(bce_logits)

/* ---- Row by row ---- */

VF_INLINE vf load(const float *p, size_t left)
{
    return left == VF_LANES ? vf_load(p) : vf_load_tail(p, left);
}
static size_t lanes_left(size_t n, size_t i) { return n - i < VF_LANES ? n - i : VF_LANES; }

static int64_t label_of(const mica_class_rows *a, size_t row)
{
    return a->labels32 != NULL ? a->labels32[row] : a->labels64[row];
}

/* The smoothed target of some classes. */
VF_INLINE vf smoothed(vf t, float smoothing, size_t n)
{
    return vf_fma(t, vf_set1(1.0f - smoothing), vf_set1(smoothing / (float)n));
}

/* The sum of a distribution, and of its products with z - most; where the target is 0, z does not matter. */
static void target_sums(float *total, float *dot, const float *target, const float *z, float most, size_t n,
                        float smoothing)
{
    vf sum = vf_zero(), products = vf_zero(), m = vf_set1(most);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t left = lanes_left(n, i);
        vf t = vf_select(vm_first(left), smoothed(load(target + i, left), smoothing, n), vf_zero());
        vf product = vf_mul(t, vf_sub(load(z + i, left), m));
        sum = vf_add(sum, t);
        products = vf_add(products, vf_select(vf_eq(t, vf_zero()), vf_zero(), product));
    }
    *total = vf_sum(sum);
    *dot = vf_sum(products);
}

static float sum_from(const float *z, float most, size_t n)
{
    vf sum = vf_zero(), m = vf_set1(most);
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t left = lanes_left(n, i);
        sum = vf_add(sum, vf_select(vm_first(left), vf_sub(load(z + i, left), m), vf_zero()));
    }
    return vf_sum(sum);
}

/* grad = scale (by * grad - target); without a target, - smoothing / n in its stead. */
static void finish_gradient(float *grad, const float *target, float by, float scale, float smoothing,
                            size_t n)
{
    vf k = vf_set1(by), s = vf_set1(scale), even = vf_set1(smoothing / (float)n);
    vf factor = vf_mul(s, k), less = vf_mul(s, even);
    size_t i = 0;
    for (; target == NULL && i + VF_LANES <= n; i += VF_LANES)
        vf_store(grad + i, vf_sub(vf_mul(factor, vf_load(grad + i)), less));
    for (; i < n; i += VF_LANES) {
        size_t left = lanes_left(n, i);
        vf t = target != NULL ? smoothed(load(target + i, left), smoothing, n) : even;
        vf_store_tail(grad + i, vf_sub(vf_mul(factor, load(grad + i, left)), vf_mul(s, t)), left);
    }
}

/* With s = softmax(z) and t the smoothed target, which sums to T:
 * loss = T log(sum of e^(z - m)) - sum of t (z - m),  m the largest z;  gradient = T s - t. */
static void entropy_row(const mica_class_rows *a, size_t row)
{
    const float *z = a->pred + row * a->n, *target = a->target != NULL ? a->target + row * a->n : NULL;
    float *grad = a->grad != NULL ? a->grad + row * a->n : NULL;
    float most = line_max(z, a->n), total = 1.0f, dot;
    int64_t label = target == NULL ? label_of(a, row) : 0;
    if (target != NULL) {
        target_sums(&total, &dot, target, z, most, a->n, a->smoothing);
    } else {
        dot = (1.0f - a->smoothing) * (z[label] - most);
        if (a->smoothing > 0.0f)
            dot += a->smoothing / (float)a->n * sum_from(z, most, a->n);
    }
    float sum = (float)(grad != NULL ? exp_line(grad, z, a->n, most) : exp_line(NULL, z, a->n, most));
    a->loss[row] = total * log_of(sum) - dot;
    if (grad == NULL)
        return;
    finish_gradient(grad, target, total / sum, a->scale, a->smoothing, a->n);
    if (target == NULL)
        grad[label] -= a->scale * (1.0f - a->smoothing);
}

/* The smoothed target of class i of a row. */
VF_INLINE vf class_target(const mica_class_rows *a, const float *target, int64_t label, size_t i, size_t left)
{
    if (target != NULL)
        return smoothed(load(target + i, left), a->smoothing, a->n);
    vm here = vi_eq(vi_add(vi_iota(), vi_set1((int32_t)i)), vi_set1((int32_t)label));
    return smoothed(vf_select(here, vf_set1(1.0f), vf_zero()), a->smoothing, a->n);
}

/* loss = - sum of t log(p), gradient = -t / p */
static void entropy_probs_row(const mica_class_rows *a, size_t row)
{
    const float *p = a->pred + row * a->n, *target = a->target != NULL ? a->target + row * a->n : NULL;
    float *grad = a->grad != NULL ? a->grad + row * a->n : NULL;
    int64_t label = target == NULL ? label_of(a, row) : 0;
    vf sum = vf_zero(), by = vf_set1(-a->scale);
    for (size_t i = 0; i < a->n; i += VF_LANES) {
        size_t left = lanes_left(a->n, i);
        vf chance = load(p + i, left), t = class_target(a, target, label, i, left);
        vf term = vf_mul(t, vf_max(vf_set1(LEAST_LOG), vf_log(chance)));
        vm counts = vm_and(vm_first(left), vf_ne(t, vf_zero()));
        sum = vf_sub(sum, vf_select(counts, term, vf_zero()));
        if (grad != NULL)
            vf_store_tail(grad + i, vf_mul(by, vf_div(t, vf_max(vf_set1(LEAST_CHANCE), chance))), left);
    }
    a->loss[row] = vf_sum(sum);
}

/* ---- Few classes: VF_LANES rows at once, a lane for each ---- */

#define FEW_CLASSES 32

/* Class i of each of `count` rows in vector i, and the way back. */
static void turn_in(vf *turned, const float *z, size_t n, size_t count)
{
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t left = lanes_left(n, i);
        vf square[VF_LANES];
        for (size_t row = 0; row < VF_LANES; row++)
            square[row] = row < count ? load(z + row * n + i, left) : vf_zero();
        vf_transpose(square);
        memcpy(turned + i, square, sizeof square);
    }
}

static void turn_out(float *grad, const vf *turned, size_t n, size_t count)
{
    for (size_t i = 0; i < n; i += VF_LANES) {
        size_t left = lanes_left(n, i);
        vf square[VF_LANES];
        memcpy(square, turned + i, sizeof square);
        vf_transpose(square);
        for (size_t row = 0; row < count; row++)
            vf_store_tail(grad + row * n + i, square[row], left);
    }
}

VF_INLINE vi labels_of(const mica_class_rows *a, size_t first, size_t count)
{
    if (a->labels32 != NULL)
        return vi_load_tail(a->labels32 + first, count);
    int32_t labels[VF_LANES] = {0};
    for (size_t row = 0; row < count; row++)
        labels[row] = (int32_t)label_of(a, first + row);
    return vi_load(labels);
}

/* As entropy_row for labels without smoothing. */
static void entropy_few(const mica_class_rows *a, size_t first, size_t count)
{
    vf turned[FEW_CLASSES + VF_LANES], most = vf_set1(-INFINITY), sum = vf_zero(), right = vf_zero();
    turn_in(turned, a->pred + first * a->n, a->n, count);
    vi label = labels_of(a, first, count);
    for (size_t i = 0; i < a->n; i++) {
        most = vf_max(most, turned[i]);
        right = vf_select(vi_eq(label, vi_set1((int32_t)i)), turned[i], right);
    }
    for (size_t i = 0; i < a->n; i++) {
        turned[i] = vf_exp_down(vf_sub(turned[i], most));
        sum = vf_add(sum, turned[i]);
    }
    vf_store_tail(a->loss + first, vf_sub(vf_log(sum), vf_sub(right, most)), count);
    if (a->grad == NULL)
        return;
    vf scale = vf_set1(a->scale), by = vf_div(scale, sum);
    for (size_t i = 0; i < a->n; i++) {
        vf target = vf_select(vi_eq(label, vi_set1((int32_t)i)), scale, vf_zero());
        turned[i] = vf_sub(vf_mul(turned[i], by), target);
    }
    turn_out(a->grad + first * a->n, turned, a->n, count);
}

/* ---- Any classes ---- */

static bool ignored(const mica_class_rows *a, size_t row)
{
    bool labels = a->labels32 != NULL || a->labels64 != NULL;
    return a->ignore && labels && label_of(a, row) == a->ignore_index;
}

VF_INLINE void rows(const mica_class_rows *a, size_t begin, size_t end,
                    void (*fn)(const mica_class_rows *a, size_t row))
{
    for (size_t row = begin; row < end; row++) {
        if (ignored(a, row)) {
            a->loss[row] = 0.0f;
            if (a->grad != NULL)
                memset(a->grad + row * a->n, 0, a->n * sizeof(float));
        } else {
            fn(a, row);
        }
    }
}

static void cross_entropy(const mica_class_rows *a, size_t begin, size_t end)
{
    bool few = VF_LANES > 1 && a->n <= FEW_CLASSES && a->target == NULL && a->smoothing == 0.0f && !a->ignore;
    for (; few && begin < end; begin += VF_LANES)
        entropy_few(a, begin, end - begin < VF_LANES ? end - begin : VF_LANES);
    rows(a, begin, end, entropy_row);
}

static void cross_entropy_probs(const mica_class_rows *a, size_t begin, size_t end)
{
    rows(a, begin, end, entropy_probs_row);
}

const mica_loss_kernels VF_SYMBOL(mica_loss_kernels) = {
    .mse = loss_mse,
    .l1 = loss_l1,
    .huber = loss_huber,
    .bce = loss_bce,
    .bce_logits = loss_bce_logits,
    .cross_entropy = cross_entropy,
    .cross_entropy_probs = cross_entropy_probs,
};

MICA_KERNEL_SYMBOL(loss, mse, loss_mse)
MICA_KERNEL_SYMBOL(loss, l1, loss_l1)
MICA_KERNEL_SYMBOL(loss, huber, loss_huber)
MICA_KERNEL_SYMBOL(loss, bce, loss_bce)
MICA_KERNEL_SYMBOL(loss, bce_logits, loss_bce_logits)
MICA_KERNEL_SYMBOL(loss, cross_entropy, cross_entropy)
MICA_KERNEL_SYMBOL(loss, cross_entropy_probs, cross_entropy_probs)
