/* Whether tensors share memory, exactly.
 *
 * Two tensors share a byte if and only if some indices x of a, y of b and byte offsets u, v within an element (or a
 * block, where there are blocks) satisfy
 *
 *     address(a) + sum a_i x_i + u = address(b) + sum b_j y_j + v        (strides in bytes)
 *
 * Turning every variable so that its coefficient is positive leaves: sum c_i z_i = target with 0 <= z_i <=
 * limit_i. The search takes the largest coefficients first; what is left must be a multiple of the gcd of the
 * remaining coefficients and within their reach, which decides every layout met in practice (slices,
 * interleavings, transposes) in a few steps. The general problem is NP-hard, so the work is bounded, and
 * "perhaps" counts as yes. */
#include "base/size.h"
#include "tensor/tensor.h"

enum { MAX_TERMS = 2 * MICA_MAX_RANK, MAX_STEPS = 4096 };

/* No real tensor spans this many bytes; sums of a few such spans still do not overflow. */
#define FAR (INT64_MAX / 8)

typedef struct term {
    int64_t coefficient, limit;
} term;

typedef struct equation {
    term terms[MAX_TERMS];
    int count;
    int64_t gcd[MAX_TERMS + 1];   /* of the coefficients from a term on; 0 past the last */
    int64_t reach[MAX_TERMS + 1]; /* the largest sum of the terms from one on */
    int steps;                    /* taken so far */
} equation;

/* The x with a x = 1 (mod m), for coprime a and m > 1. */
static int64_t inverse_modulo(int64_t a, int64_t m)
{
    int64_t r0 = m, r1 = a % m, x0 = 0, x1 = 1;
    while (r1 > 1) {
        int64_t quotient = r0 / r1, rest = r0 % r1, x = x0 - quotient * x1;
        r0 = r1, r1 = rest;
        x0 = x1, x1 = x;
    }
    return x1 < 0 ? x1 + m : x1;
}

/* Adds coefficient * z, 0 <= z <= limit. A variable with a negative coefficient must have been turned. */
static void add_term(equation *e, int64_t coefficient, int64_t limit)
{
    if (coefficient == 0 || limit <= 0)
        return;
    int at = 0;
    while (at < e->count && e->terms[at].coefficient > coefficient)
        at++;
    if (at < e->count && e->terms[at].coefficient == coefficient) {
        e->terms[at].limit += limit;
        return;
    }
    for (int k = e->count++; k > at; k--)
        e->terms[k] = e->terms[k - 1];
    e->terms[at] = (term){coefficient, limit};
}

static void prepare(equation *e)
{
    e->gcd[e->count] = 0;
    e->reach[e->count] = 0;
    for (int k = e->count - 1; k >= 0; k--) {
        e->gcd[k] = mica_common_divisor(e->terms[k].coefficient, e->gcd[k + 1]);
        e->reach[k] = e->reach[k + 1] + e->terms[k].coefficient * e->terms[k].limit;
    }
    e->steps = 0;
}

/* Whether the terms from k on can sum to target; true also when the steps have run out. */
static bool solvable(equation *e, int k, int64_t target)
{
    if (target < 0 || target > e->reach[k])
        return false;
    if (k == e->count)
        return true; /* target is 0: the reach is */
    if (target % e->gcd[k] != 0)
        return false;
    int64_t coefficient = e->terms[k].coefficient, rest = e->reach[k + 1];
    int64_t low = target > rest ? (target - rest + coefficient - 1) / coefficient : 0;
    int64_t high = target / coefficient < e->terms[k].limit ? target / coefficient : e->terms[k].limit;
    int64_t step = 1;
    if (e->gcd[k + 1] == 0) { /* the last term: divisible, by the gcd */
        return low <= high;
    }
    /* Only every step-th z leaves a multiple of the others' gcd. */
    step = e->gcd[k + 1] / e->gcd[k];
    if (step > INT32_MAX)
        return true;
    if (step > 1) {
        int64_t first = (target / e->gcd[k]) % step * inverse_modulo(coefficient / e->gcd[k] % step, step) %
                        step;
        int64_t behind = (first - low) % step;
        low += behind < 0 ? behind + step : behind;
    }
    for (int64_t z = low; z <= high; z += step) {
        if (e->steps++ >= MAX_STEPS || solvable(e, k + 1, target - z * coefficient))
            return true;
    }
    return false;
}

/* A tensor of blocks with sizes and strides that count them: blocks lie in memory as elements do. Others stay as
 * they are. */
static mica_tensor whole_blocks(const mica_tensor *t)
{
    mica_tensor out = *t;
    mica_index block = (mica_index)mica_dtype_block(t->dtype);
    if (block > 1 && t->rank > 0) {
        out.dim[t->rank - 1] /= block;
        for (int k = 0; k < t->rank - 1; k++)
            out.stride[k] /= block;
    }
    return out;
}

static bool is_empty(const mica_tensor *t) { return mica_tensor_count(t) == 0; }

/* The lowest address that t touches. */
static uintptr_t lowest(const mica_tensor *t, int64_t bytes)
{
    int64_t back = 0;
    for (int k = 0; k < t->rank; k++)
        if (t->stride[k] < 0)
            back += t->stride[k] * (t->dim[k] - 1) * bytes;
    return (uintptr_t)t->data + (uintptr_t)back;
}

static void add_axes(equation *e, const mica_tensor *t, int64_t bytes)
{
    for (int k = 0; k < t->rank; k++)
        if (t->dim[k] > 1)
            add_term(e, (t->stride[k] < 0 ? -t->stride[k] : t->stride[k]) * bytes, t->dim[k] - 1);
}

static int64_t span_bytes(const mica_tensor *t, int64_t bytes)
{
    int64_t span = bytes;
    for (int k = 0; k < t->rank; k++)
        span += (t->stride[k] < 0 ? -t->stride[k] : t->stride[k]) * (t->dim[k] - 1) * bytes;
    return span;
}

static bool same_elements(const mica_tensor *a, const mica_tensor *b)
{
    if (a->data != b->data || a->dtype != b->dtype || !mica_tensor_same_shape(a, b))
        return false;
    for (int k = 0; k < a->rank; k++)
        if (a->dim[k] > 1 && a->stride[k] != b->stride[k])
            return false;
    return true;
}

/* Of tensors that are not empty and not the same. */
static mica_overlap compare_layouts(const mica_tensor *a, const mica_tensor *b)
{
    int64_t bytes_a = (int64_t)mica_dtype_kinds[a->dtype].bytes;
    int64_t bytes_b = (int64_t)mica_dtype_kinds[b->dtype].bytes;
    uintptr_t low_a = lowest(a, bytes_a), low_b = lowest(b, bytes_b);
    int64_t span_a = span_bytes(a, bytes_a), span_b = span_bytes(b, bytes_b);
    if (low_a <= low_b ? low_b - low_a >= (uintptr_t)span_a : low_a - low_b >= (uintptr_t)span_b)
        return MICA_OVERLAP_NONE;
    if (span_a > FAR || span_b > FAR || (mica_tensor_contiguous(a) && mica_tensor_contiguous(b)))
        return MICA_OVERLAP_PARTIAL;

    /* With y turned around (y = limit - z), b's axes add: sum a x + sum b z = low_b - low_a + b's reach + v -
     * u. */
    equation e = {.count = 0};
    add_axes(&e, a, bytes_a);
    add_axes(&e, b, bytes_b);
    prepare(&e);
    int64_t target = (int64_t)(low_b - low_a) + span_b - bytes_b;
    for (int64_t shift = 1 - bytes_a; shift < bytes_b; shift++)
        if (solvable(&e, 0, target + shift))
            return MICA_OVERLAP_PARTIAL;
    return MICA_OVERLAP_NONE;
}

mica_overlap mica_tensor_overlap(const mica_tensor *a, const mica_tensor *b)
{
    if (a->data == NULL || b->data == NULL || is_empty(a) || is_empty(b))
        return MICA_OVERLAP_NONE;
    if (same_elements(a, b))
        return MICA_OVERLAP_EXACT;
    mica_tensor whole_a, whole_b;
    if (mica_dtype_kinds[a->dtype].block > 1) {
        whole_a = whole_blocks(a);
        a = &whole_a;
    }
    if (mica_dtype_kinds[b->dtype].block > 1) {
        whole_b = whole_blocks(b);
        b = &whole_b;
    }
    return compare_layouts(a, b);
}

/* Two indices x != y name the same element if z = x - y has sum s_k z_k = 0. Let axis k be the first where
 * they differ, and z_k > 0 (else swap them): then z_k = 1 + t, and the later z_j lie in -(d_j - 1) to d_j
 * - 1. */
bool mica_tensor_self_overlap(const mica_tensor *t)
{
    if (is_empty(t) || mica_tensor_contiguous(t))
        return false;
    if (span_bytes(t, 1) > FAR)
        return true;
    for (int k = t->rank - 1; k >= 0; k--) {
        if (t->dim[k] < 2)
            continue;
        int64_t stride = t->stride[k] < 0 ? -t->stride[k] : t->stride[k];
        if (stride == 0)
            return true;
        equation e = {.count = 0};
        add_term(&e, stride, t->dim[k] - 2);
        int64_t target = -stride;
        for (int j = k + 1; j < t->rank; j++) {
            int64_t later = t->stride[j] < 0 ? -t->stride[j] : t->stride[j];
            if (t->dim[j] < 2)
                continue;
            add_term(&e, later, 2 * (t->dim[j] - 1));
            target += later * (t->dim[j] - 1);
        }
        prepare(&e);
        if (solvable(&e, 0, target))
            return true;
    }
    return false;
}
