#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/onnx/compare.h"
#include "cli/picture/text.h"

static bool is_wide_integer(mica_dtype dtype) { return mica_dtype_bytes(dtype) == 8 && dtype != MICA_F64; }

/* As np.testing.assert_allclose has it. */
static bool is_close(double got, double expected, tolerance within)
{
    if (isnan(got) || isnan(expected))
        return isnan(got) && isnan(expected);
    if (isinf(got) || isinf(expected))
        return got == expected;
    return fabs(got - expected) <= within.absolute + within.relative * fabs(expected);
}

/* Elements of 64-bit integers are compared as they are: not all of them are numbers of a double. */
static bool same_element(mica_context *ctx, double value[2], const mica_tensor *got,
                         const mica_tensor *expected, const mica_iter *it, tolerance within)
{
    if (mica_at(ctx, &value[0], got, it->index) != MICA_OK ||
        mica_at(ctx, &value[1], expected, it->index) != MICA_OK)
        return false;
    if (!is_wide_integer(got->dtype))
        return is_close(value[0], value[1], within);
    mica_index at = 0;
    for (int i = 0; i < got->rank; i++)
        at += it->index[i] * got->stride[i];
    return memcmp((const char *)got->data + at * 8, it->element, 8) == 0;
}

static void say_where(char *why, size_t size, size_t differ, const mica_tensor *t, const mica_index *index,
                      const double value[2])
{
    int at = snprintf(why, size, "%zu of %zu elements differ, the first at [", differ, mica_tensor_count(t));
    for (int i = 0; i < t->rank && at >= 0 && (size_t)at < size; i++)
        at += snprintf(why + at, size - (size_t)at, "%s%td", i > 0 ? ", " : "", index[i]);
    if (at >= 0 && (size_t)at < size)
        snprintf(why + at, size - (size_t)at, "]: got %.9g, expected %.9g", value[0], value[1]);
}

bool same_tensors(char *why, size_t size, mica_context *ctx, const mica_tensor *got,
                  const mica_tensor *expected, tolerance within)
{
    if (got->dtype != expected->dtype || !mica_tensor_same_shape(got, expected)) {
        snprintf(why, size, "got %s, expected %s", shape_text(got->dtype, got->rank, got->dim).text,
                 shape_text(expected->dtype, expected->rank, expected->dim).text);
        return false;
    }
    bool is_float = got->dtype == MICA_F32 || got->dtype == MICA_F64 || got->dtype == MICA_F16 ||
                    got->dtype == MICA_BF16;
    tolerance used = is_float || within.integers ? within : (tolerance){0};
    size_t differ = 0;
    double first[2] = {0};
    mica_index where[MICA_MAX_RANK] = {0};
    for (mica_iter it = mica_iter_begin(expected, 0, NULL); it.valid; mica_iter_next(&it)) {
        double value[2] = {0};
        if (same_element(ctx, value, got, expected, &it, used) || differ++ > 0)
            continue;
        memcpy(first, value, sizeof first);
        memcpy(where, it.index, sizeof where);
    }
    if (differ > 0)
        say_where(why, size, differ, got, where, first);
    return differ == 0;
}
