/* What the cases of the reductions do not reach: nothing to reduce, long sums, error texts. */
#include <math.h>
#include <stdlib.h>

#include "test.h"

TEST(reduce_nothing)
{
    mica_context *ctx = test_context(1);
    float none[1], out[3] = {9.0f, 9.0f, 9.0f};
    mica_tensor a = mica_2d(none, 3, 0), dst = mica_1d(out, 3);
    mica_reduce_opts last = {.axes = {1}, .count = 1};
    CHECK_OK(ctx, mica_sum(ctx, &dst, &a, &last));
    CHECK(out[0] == 0.0f && out[2] == 0.0f);
    CHECK_OK(ctx, mica_prod(ctx, &dst, &a, &last));
    CHECK(out[0] == 1.0f && out[2] == 1.0f);
    CHECK_OK(ctx, mica_norm(ctx, &dst, &a, MICA_NORM_INF, &last));
    CHECK(out[0] == 0.0f && out[2] == 0.0f);
    CHECK_OK(ctx, mica_mean(ctx, &dst, &a, &last));
    CHECK(isnan(out[0]) && isnan(out[2]));
    CHECK_OK(ctx, mica_variance(ctx, &dst, &a, &last));
    CHECK(isnan(out[0]) && isnan(out[2]));
    CHECK_ERROR(ctx, mica_amax(ctx, &dst, &a, &last), MICA_ERR_SHAPE,
                "shape error: amax: a is [3, 0]: the axis is empty");
    int32_t place[3];
    mica_tensor index = mica_tensor_like(&dst, place);
    index.dtype = MICA_I32;
    CHECK_ERROR(ctx, mica_argmin(ctx, &index, &a, -1), MICA_ERR_SHAPE,
                "shape error: argmin: a is [3, 0]: the axis is empty");
}

TEST(reduce_errors)
{
    mica_context *ctx = test_context(1);
    float data[24] = {0};
    mica_tensor a = mica_2d(data, 2, 3), dst = mica_1d(data + 12, 3);
    CHECK_ERROR(ctx, mica_sum(ctx, &dst, &a, &(mica_reduce_opts){.axes = {1}, .count = 1}), MICA_ERR_SHAPE,
                "shape error: sum: dst is [3], expected [2] or [2, 1] for a [2, 3]");
    CHECK_ERROR(ctx, mica_mean(ctx, &dst, &a, &(mica_reduce_opts){.axes = {0, -2}, .count = 2}),
                MICA_ERR_AXIS, "axis error: mean: axis 0 of a [2, 3] is listed twice");
    CHECK_ERROR(ctx, mica_mean(ctx, &dst, &a, &(mica_reduce_opts){.axes = {2}, .count = 1}), MICA_ERR_AXIS,
                "axis error: mean: axis 2 of a [2, 3], which has rank 2");
    CHECK_ERROR(ctx, mica_amin(ctx, &dst, &a, &(mica_reduce_opts){.count = 3}), MICA_ERR_AXIS,
                "axis error: amin: 3 axes of a [2, 3], which has rank 2");
    CHECK_ERROR(ctx, mica_norm(ctx, &dst, &a, (mica_norm_kind)7, NULL), MICA_ERR_ARGUMENT,
                "argument error: norm: unknown kind 7");
    CHECK_ERROR(ctx, mica_dot(ctx, &dst, &a, &a), MICA_ERR_SHAPE,
                "shape error: dot: dst is [3], expected one element for a [2, 3]");
    CHECK_ERROR(ctx, mica_all_finite(ctx, NULL, &a), MICA_ERR_ARGUMENT,
                "argument error: all_finite: out is NULL");
}

TEST(amax_backward_refuses_an_index_out_of_range)
{
    mica_context *ctx = test_context(1);
    float dx[6] = {1, 1, 1, 1, 1, 1}, dy[2] = {5, 6};
    int32_t index[2] = {2, 3};
    mica_tensor x = mica_2d(dx, 2, 3), y = mica_1d(dy, 2), places = mica_tensor_like(&y, index);
    places.dtype = MICA_I32;
    CHECK_ERROR(ctx, mica_amax_backward(ctx, &x, &y, &places, 1), MICA_ERR_INDEX,
                "index error: amax_backward: index has 3, outside axis 1 of dx [2, 3]");
    CHECK(dx[2] == 1.0f);
    index[1] = 0;
    CHECK_OK(ctx, mica_amax_backward(ctx, &x, &y, &places, 1));
    CHECK(dx[0] == 0.0f && dx[1] == 0.0f && dx[2] == 5.0f && dx[3] == 6.0f && dx[4] == 0.0f);
}

/* The stated bound: 40 half-ulps of the sum of magnitudes, however long the sum. */
TEST(reduce_long_sums_stay_accurate)
{
    mica_context *ctx = test_context(2);
    enum { N = 3000000 };
    float *x = malloc(N * sizeof *x), out[3];
    test_random r = test_seed(5);
    double sum = 0.0, magnitude = 0.0;
    for (int i = 0; i < N; i++) {
        x[i] = (float)test_uniform(&r, -0.1, 1.0);
        sum += (double)x[i];
        magnitude += fabs((double)x[i]);
    }
    const double half_ulp = 0x1p-24;
    mica_tensor flat = mica_1d(x, N), matrix = mica_2d(x, N / 3, 3), one = mica_0d(out),
                three = mica_1d(out, 3);
    CHECK_OK(ctx, mica_sum(ctx, &one, &flat, NULL));
    CHECK(fabs((double)out[0] - sum) <= 40 * half_ulp * magnitude);
    CHECK_OK(ctx, mica_sum(ctx, &three, &matrix, &(mica_reduce_opts){.axes = {0}, .count = 1}));
    CHECK(fabs((double)out[0] + (double)out[1] + (double)out[2] - sum) <= 40 * half_ulp * magnitude);

    /* Neighbouring floats around 1000: the variance is that of a coin, times the square of their distance. */
    float ulp = nextafterf(1000.0f, 2000.0f) - 1000.0f;
    for (int i = 0; i < N; i++)
        x[i] = 1000.0f + (i % 2 ? ulp : 0.0f);
    CHECK_OK(ctx, mica_variance(ctx, &one, &flat, NULL));
    CHECK(fabsf(out[0] / (ulp * ulp) - 0.25f) < 1e-5f);
    free(x);
}

TEST(all_finite_sees_every_element)
{
    mica_context *ctx = test_context(2);
    enum { N = 100003 };
    float *x = calloc(N, sizeof *x);
    mica_tensor a = mica_1d(x, N), none = mica_1d(x, 0);
    bool finite = false;
    CHECK_OK(ctx, mica_all_finite(ctx, &finite, &a));
    CHECK(finite);
    for (int i = 0; i < N; i += 9973) {
        x[i] = i % 2 ? NAN : -INFINITY;
        CHECK_OK(ctx, mica_all_finite(ctx, &finite, &a));
        CHECK(!finite);
        x[i] = 3e38f;
    }
    CHECK_OK(ctx, mica_all_finite(ctx, &finite, &a));
    CHECK(finite);
    CHECK_OK(ctx, mica_all_finite(ctx, &finite, &none));
    CHECK(finite);
    free(x);
}
