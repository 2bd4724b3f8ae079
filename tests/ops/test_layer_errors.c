/* The exact words of what pooling, normalization, dropout, attention and losses refuse, and a few values that
 * random cases do not meet. */
#include <math.h>

#include "test.h"

static float data[4096];

TEST(pool_says_what_does_not_fit)
{
    mica_context *ctx = test_context(1);
    mica_tensor x = mica_4d(data, 2, 3, 8, 8), y = mica_4d(data + 1000, 2, 3, 4, 4);
    mica_tensor wrong = mica_4d(data + 1000, 2, 3, 4, 5), other = mica_4d(data + 1000, 2, 2, 4, 4);
    CHECK_ERROR(ctx, mica_max_pool2d(ctx, &y, NULL, &x, NULL), MICA_ERR_ARGUMENT,
                "argument error: max_pool2d: opts is NULL, but a kernel size is needed");
    CHECK_ERROR(ctx, mica_max_pool2d(ctx, &wrong, NULL, &x, &(mica_pooling_opts){.kernel = {2, 2}}),
                MICA_ERR_SHAPE,
                "shape error: max_pool2d: y is [2, 3, 4, 5], expected [2, 3, 4, 4] for x [2, 3, 8, 8]");
    CHECK_ERROR(
        ctx, mica_avg_pool2d(ctx, &other, &x, &(mica_pooling_opts){.kernel = {2, 2}}), MICA_ERR_SHAPE,
        "shape error: avg_pool2d: x is [2, 3, 8, 8], y is [2, 2, 4, 4]: expected the same leading axes");
    CHECK_ERROR(ctx, mica_max_pool2d(ctx, &y, NULL, &x, &(mica_pooling_opts){.kernel = {2, 9}}),
                MICA_ERR_SHAPE,
                "shape error: max_pool2d: a window of 9 does not fit into x [2, 3, 8, 8] padded by 0");
    CHECK_ERROR(
        ctx, mica_max_pool2d(ctx, &y, NULL, &x, &(mica_pooling_opts){.kernel = {2, 2}, .pad = {0, 2}}),
        MICA_ERR_ARGUMENT,
        "argument error: max_pool2d: kernel 2, stride 0, pad 2, dilation 0 along the width: pad must be "
        "0 to half of the dilated kernel");
    CHECK_ERROR(ctx, mica_avg_pool2d(ctx, &y, &x, &(mica_pooling_opts){.kernel = {2, 2}, .dilation = {2, 1}}),
                MICA_ERR_SHAPE,
                "shape error: avg_pool2d: y is [2, 3, 4, 4], expected [2, 3, 3, 4] for x [2, 3, 8, 8]");
}

TEST(norm_says_what_does_not_fit)
{
    mica_context *ctx = test_context(1);
    mica_tensor x = mica_2d(data, 4, 6), y = mica_2d(data + 100, 4, 6), gamma = mica_1d(data + 200, 5);
    mica_tensor one = mica_2d(data, 1, 6), var = mica_1d(data + 300, 6);
    CHECK_ERROR(ctx, mica_layer_norm(ctx, &y, &x, &gamma, NULL, NULL), MICA_ERR_SHAPE,
                "shape error: layer_norm: gamma is [5], expected [6] for x [4, 6]");
    CHECK_ERROR(ctx, mica_layer_norm(ctx, &y, &x, NULL, NULL, &(mica_norm_opts){.eps = -1.0f}),
                MICA_ERR_ARGUMENT, "argument error: layer_norm: eps is -1, expected 0 (for 1e-5) or more");
    CHECK_ERROR(ctx, mica_layer_norm(ctx, &y, &x, NULL, NULL, &(mica_norm_opts){.sum = &y}), MICA_ERR_ALIAS,
                "alias error: layer_norm: y [4, 6] overlaps sum [4, 6]");
    CHECK_ERROR(ctx, mica_group_norm(ctx, &y, &x, NULL, NULL, &(mica_norm_opts){.groups = 4}), MICA_ERR_SHAPE,
                "shape error: group_norm: x is [4, 6]: 6 channels cannot be divided into 4 groups");
    CHECK_ERROR(ctx, mica_batch_norm(ctx, &y, &x, NULL, NULL, &(mica_norm_opts){.inference = true}),
                MICA_ERR_ARGUMENT,
                "argument error: batch_norm: running_mean is NULL, but inference normalizes with it");
    CHECK_ERROR(ctx, mica_batch_norm(ctx, &one, &one, NULL, NULL, &(mica_norm_opts){.running_var = &var}),
                MICA_ERR_SHAPE,
                "shape error: batch_norm: x is [1, 6]: training needs more than one value in each channel");
    CHECK_ERROR(ctx, mica_layer_norm_backward(ctx, NULL, &y, &x, NULL, NULL), MICA_ERR_ARGUMENT,
                "argument error: layer_norm_backward: grads is NULL");
}

TEST(dropout_says_what_does_not_fit)
{
    mica_context *ctx = test_context(1);
    mica_tensor x = mica_2d(data, 4, 6), y = mica_2d(data + 100, 4, 6);
    CHECK_ERROR(ctx, mica_dropout(ctx, &y, NULL, &x, &(mica_dropout_opts){.rate = 1.5f}), MICA_ERR_ARGUMENT,
                "argument error: dropout: rate is 1.5, expected 0 to 1");
    CHECK_ERROR(ctx, mica_dropout(ctx, &y, NULL, &x, NULL), MICA_ERR_ARGUMENT,
                "argument error: dropout: opts is NULL, but a rate is needed");
}

TEST(attention_says_what_does_not_fit)
{
    mica_context *ctx = test_context(1);
    mica_tensor q = mica_4d(data, 1, 4, 3, 2), out = mica_4d(data + 100, 1, 4, 3, 2);
    mica_tensor k = mica_4d(data + 200, 1, 3, 5, 2), narrow = mica_4d(data + 200, 1, 4, 5, 3);
    mica_tensor good = mica_4d(data + 200, 1, 2, 5, 2), mask = mica_2d(data + 300, 3, 4);
    CHECK_ERROR(
        ctx, mica_attention(ctx, &out, &q, &k, &k, NULL), MICA_ERR_SHAPE,
        "shape error: attention: q is [1, 4, 3, 2], k is [1, 3, 5, 2]: 4 query heads cannot share 3 key "
        "heads evenly");
    CHECK_ERROR(
        ctx, mica_attention(ctx, &out, &q, &narrow, &narrow, NULL), MICA_ERR_SHAPE,
        "shape error: attention: q is [1, 4, 3, 2], k is [1, 4, 5, 3]: expected the same first and last "
        "axis");
    CHECK_ERROR(
        ctx, mica_attention(ctx, &out, &q, &good, &good, &(mica_attention_opts){.mask = &mask}),
        MICA_ERR_SHAPE,
        "shape error: attention: mask is [3, 4], which does not broadcast to the scores [1, 4, 3, 5]");
}

TEST(loss_says_what_does_not_fit)
{
    mica_context *ctx = test_context(1);
    mica_tensor z = mica_2d(data, 2, 3), loss = mica_0d(data + 100), two = mica_1d(data + 100, 2);
    int32_t labels[] = {1, 3};
    mica_index rows = 2;
    mica_tensor target;
    CHECK_OK(ctx, mica_tensor_init(ctx, &target, labels, MICA_I32, 1, &rows));
    CHECK_ERROR(ctx, mica_cross_entropy(ctx, &loss, NULL, &z, &target, NULL), MICA_ERR_INDEX,
                "index error: cross_entropy: target 1 is class 3, but there are 3 classes");
    CHECK_ERROR(
        ctx, mica_cross_entropy(ctx, &two, NULL, &z, &target, NULL), MICA_ERR_SHAPE,
        "shape error: cross_entropy: loss is [2], expected [] or [1] for a mean or sum over logits [2, "
        "3]");
    CHECK_ERROR(ctx, mica_mse_loss(ctx, &loss, NULL, &z, &z, &(mica_loss_opts){.smoothing = 2.0f}),
                MICA_ERR_ARGUMENT, "argument error: mse_loss: smoothing is 2, expected 0 to 1");
}

/* Any logits, hidden classes among them, and the mean of nothing. */
TEST(loss_stands_extremes)
{
    mica_context *ctx = test_context(1);
    float logits[] = {3e38f, -3e38f, 0.0f, -INFINITY, 1.0f, 1.0f}, grad[6], value;
    int32_t labels[] = {0, 1};
    mica_index rows = 2;
    mica_tensor z = mica_2d(logits, 2, 3), dz = mica_2d(grad, 2, 3), loss = mica_0d(&value), target;
    CHECK_OK(ctx, mica_tensor_init(ctx, &target, labels, MICA_I32, 1, &rows));
    CHECK_OK(ctx, mica_cross_entropy(ctx, &loss, &dz, &z, &target, NULL));
    CHECK(fabsf(value - logf(2.0f) / 2.0f) < 1e-6f);
    CHECK(grad[0] == 0.0f && grad[1] == 0.0f && grad[3] == 0.0f && fabsf(grad[4] + 0.25f) < 1e-6f);
    mica_loss_opts all = {.ignore = true, .ignore_index = 1};
    labels[0] = 1;
    CHECK_OK(ctx, mica_cross_entropy(ctx, &loss, &dz, &z, &target, &all));
    CHECK(isnan(value) && grad[0] == 0.0f && grad[5] == 0.0f);
    mica_tensor nothing = mica_1d(NULL, 0);
    CHECK_OK(ctx, mica_mse_loss(ctx, &loss, NULL, &nothing, &nothing, NULL));
    CHECK(isnan(value));
}

/* A sum of squares in f32 would have no digit of this variance left. */
TEST(norm_keeps_digits_far_from_zero)
{
    mica_context *ctx = test_context(1);
    enum { N = 6000 };
    static float x[N], y[N];
    float mean, rstd;
    for (int i = 0; i < N; i++)
        x[i] = 10000.0f + (float)(i % 2);
    mica_tensor in = mica_1d(x, N), out = mica_1d(y, N), m = mica_0d(&mean), r = mica_0d(&rstd);
    CHECK_OK(ctx, mica_layer_norm(ctx, &out, &in, NULL, NULL, &(mica_norm_opts){.mean = &m, .rstd = &r}));
    CHECK_MSG(fabsf(mean - 10000.5f) < 1e-3f, "mean %.9g", (double)mean);
    CHECK_MSG(fabsf(rstd - 2.0f) < 1e-3f, "rstd %.9g", (double)rstd);
    CHECK_MSG(fabsf(y[0] + 1.0f) < 2e-3f && fabsf(y[1] - 1.0f) < 2e-3f, "y %g %g", (double)y[0],
              (double)y[1]);
}
