/* The most likely of many tokens, by a heap of as many as are asked for: most logits are skipped by the vector. */
#include "text/likely.h"

#include <math.h>

#include "base/sort.h"
#include "ops/check.h"

enum {
    BLOCK = 64,  /* logits that are skipped at once */
    CHUNK = 512, /* logits whose exponentials are on the stack */
};

mica_status mica_check_logits(mica_context *ctx, const char *op, const mica_tensor *logits)
{
    mica_arg args[] = {{"logits", logits, 0, 0}};
    MICA_TRY(mica_check_args(ctx, op, args, 1));
    MICA_TRY(mica_check_rank(ctx, op, "logits", logits, 1, 1));
    if (logits->dim[0] < 1 || logits->dim[0] > INT32_MAX || logits->stride[0] != 1)
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: logits are %s: expected a contiguous row of at least 1",
                         op, MICA_SHAPE(logits));
    return MICA_OK;
}

mica_status mica_top_logit(mica_context *ctx, const char *op, const char *what, float *top, const float *x,
                           size_t count)
{
    const mica_reduce_kernels *reduce = ctx->kernels->reduce;
    double largest = MICA_KERNEL_OF(reduce, reduce, max).start;
    MICA_KERNEL_OF(reduce, reduce, max).row(&largest, x, count, 0);
    *top = (float)largest;
    if (*top == -INFINITY)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: no token is possible: every %s is -inf", op, what);
    if (!isfinite(*top))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: the %s of token %zu is %g", op, what,
                         MICA_KERNEL_OF(reduce, reduce, find)(x, count, *top), (double)*top);
    return MICA_OK;
}

double mica_sum_of_exponentials(const mica_kernels *kernels, const float *x, size_t count, float top)
{
    double sum = 0;
    float terms[CHUNK];
    for (size_t i = 0; i < count; i += CHUNK) {
        size_t n = count - i < CHUNK ? count - i : CHUNK;
        MICA_KERNEL(kernels, map, sub_scalar)(terms, (const float *[]){x + i}, n, &top);
        MICA_KERNEL(kernels, map, exp)(terms, (const float *[]){terms}, n, NULL);
        MICA_KERNEL(kernels, reduce, sum).row(&sum, terms, n, 0);
    }
    return sum;
}

/* Whether a is less likely than b. */
static bool below(mica_likely a, mica_likely b)
{
    return a.log_probability != b.log_probability ? a.log_probability < b.log_probability : a.token > b.token;
}

/* Lets the first of a heap, whose first is the least likely, sink to its place. */
static void sink(mica_likely *heap, size_t count, size_t at)
{
    mica_likely moved = heap[at];
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && below(heap[child + 1], heap[child]);
        if (!below(heap[child], moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

void mica_pick_largest(const mica_kernels *kernels, mica_likely *out, size_t most, const float *x,
                       size_t count)
{
    if (most == 0)
        return;
    for (size_t i = 0; i < most; i++)
        out[i] = (mica_likely){(int32_t)i, x[i]};
    for (size_t at = most / 2; at > 0; at--)
        sink(out, most, at - 1);
    for (size_t i = most; i < count; i += BLOCK) {
        size_t n = count - i < BLOCK ? count - i : BLOCK;
        double largest = MICA_KERNEL(kernels, reduce, max).start;
        MICA_KERNEL(kernels, reduce, max).row(&largest, x + i, n, 0);
        if (!((float)largest > out[0].log_probability)) /* a tie comes later, and is a higher token */
            continue;
        for (size_t k = i; k < i + n; k++)
            if (x[k] > out[0].log_probability) {
                out[0] = (mica_likely){(int32_t)k, x[k]};
                sink(out, most, 0);
            }
    }
}

static int by_likelihood(const void *a, const void *b)
{
    const mica_likely *x = a, *y = b;
    return below(*x, *y) ? 1 : below(*y, *x) ? -1 : 0;
}

void mica_sort_likely(mica_likely *likely, size_t count)
{
    mica_sort(likely, count, sizeof *likely, by_likelihood);
}

mica_status mica_log_probabilities(mica_context *ctx, float *chosen, int32_t token, mica_likely *likely,
                                   size_t count, const mica_tensor *logits)
{
    static const char op[] = "log_probabilities";
    MICA_TRY(mica_check_logits(ctx, op, logits));
    if (chosen != NULL && (token < 0 || token >= logits->dim[0]))
        return mica_fail(ctx, MICA_ERR_INDEX, "%s: token is %d, logits are %s", op, (int)token,
                         MICA_SHAPE(logits));
    if (count > (size_t)logits->dim[0] || (count > 0 && likely == NULL))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: the %zu most likely tokens of %td, into %s", op, count,
                         logits->dim[0], likely != NULL ? "an array" : "NULL");
    MICA_START(ctx, op, 0, NULL);
    const float *x = logits->data;
    size_t all = (size_t)logits->dim[0];
    float top;
    MICA_TRY(mica_top_logit(ctx, op, "logit", &top, x, all));
    double log_sum = (double)top + log(mica_sum_of_exponentials(ctx->kernels, x, all, top));
    if (chosen != NULL)
        *chosen = (float)((double)x[token] - log_sum);
    mica_pick_largest(ctx->kernels, likely, count, x, all);
    mica_sort_likely(likely, count);
    for (size_t i = 0; i < count; i++)
        likely[i].log_probability = (float)((double)likely[i].log_probability - log_sum);
    return MICA_OK;
}
