/* Views: what they show, and what they refuse. */
#include <string.h>

#include "test.h"

static float grid[24]; /* 0 to 23 */

static mica_tensor grid_234(void)
{
    for (int i = 0; i < 24; i++)
        grid[i] = (float)i;
    return mica_3d(grid, 2, 3, 4);
}

/* t has this shape and, in row-major order, these values. */
static bool shows(const mica_tensor *t, const char *shape, int count, const float *values)
{
    char text[100];
    mica_tensor_print_shape(text, sizeof text, t);
    int at = 0;
    bool same = strcmp(text, shape) == 0;
    for (mica_iter it = mica_iter_begin(t, 0, NULL); it.valid; mica_iter_next(&it), at++)
        same = same && at < count && *(float *)it.element == values[at];
    CHECK_MSG(same && at == count, "is %s with %d elements, expected %s with %d", text, at, shape, count);
    return same;
}

#define SHOWS(t, shape, ...) \
    shows(t, shape, (int)(sizeof((float[]){__VA_ARGS__}) / sizeof(float)), (float[]){__VA_ARGS__})

TEST(view_reshape)
{
    mica_context *ctx = test_context(1);
    mica_tensor t = grid_234(), v, w;
    CHECK_OK(ctx, mica_view_reshape(ctx, &v, &t, 2, (mica_index[]){-1, 12}));
    CHECK(v.dim[0] == 2 && v.stride[0] == 12 && v.data == grid);
    CHECK_OK(ctx, mica_view_slice(ctx, &v, &t, 0, 0, 1, 1));
    CHECK_OK(ctx, mica_view_reshape(ctx, &w, &v, 5, (mica_index[]){3, 1, 2, 2, 1}));
    CHECK(w.stride[0] == 4 && w.stride[2] == 2 && w.stride[3] == 1);
    /* Columns 0 and 2: a reshape can split axes of it, and join the first two, but not the last two. */
    CHECK_OK(ctx, mica_view_slice(ctx, &v, &t, 2, 0, MICA_END, 2));
    CHECK_OK(ctx, mica_view_reshape(ctx, &w, &v, 3, (mica_index[]){6, 1, 2}));
    SHOWS(&w, "[6, 1, 2]", 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22);
    CHECK_OK(ctx, mica_view_reshape(ctx, &w, &v, 1, (mica_index[]){12}));
    SHOWS(&w, "[12]", 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22);
    CHECK_OK(ctx, mica_view_slice(ctx, &v, &t, 2, 0, 3, 1));
    CHECK_ERROR(
        ctx, mica_view_reshape(ctx, &w, &v, 1, (mica_index[]){18}), MICA_ERR_SHAPE,
        "shape error: view_reshape: t is [2, 3, 3] with strides [12, 4, 1], which cannot be viewed as [18] without a copy (mica_reshape copies)");
    CHECK_ERROR(ctx, mica_view_reshape(ctx, &v, &t, 2, (mica_index[]){4, 5}), MICA_ERR_SHAPE,
                "shape error: view_reshape: t is [2, 3, 4] (24 elements), dims are [4, 5] (20 elements)");
    CHECK_ERROR(ctx, mica_view_reshape(ctx, &v, &t, 2, (mica_index[]){-1, 5}), MICA_ERR_SHAPE,
                "shape error: view_reshape: t is [2, 3, 4] (24 elements), which dims [-1, 5] do not divide");
    CHECK_ERROR(ctx, mica_view_reshape(ctx, &v, &t, 2, (mica_index[]){-1, -1}), MICA_ERR_SHAPE,
                "shape error: view_reshape: dims [-1, -1] have more than one -1");
    CHECK_ERROR(ctx, mica_view_reshape(ctx, &v, &t, 9, (mica_index[9]){0}), MICA_ERR_SHAPE,
                "shape error: view_reshape: rank is 9, expected 0 to 8");
    CHECK_ERROR(ctx, mica_view_reshape(ctx, &v, &t, 1, NULL), MICA_ERR_ARGUMENT,
                "argument error: view_reshape: dims is NULL");
    CHECK_ERROR(ctx, mica_view_reshape(ctx, &v, &t, 2, (mica_index[]){4, -6}), MICA_ERR_SHAPE,
                "shape error: view_reshape: the shape [4, -6] has size -6 in dimension 1");
    mica_tensor empty = mica_2d(grid, 0, 4);
    CHECK_OK(ctx, mica_view_reshape(ctx, &v, &empty, 3, (mica_index[]){2, 0, 7}));
    CHECK(mica_tensor_count(&v) == 0);
}

TEST(view_reshape_keeps_the_order_of_any_layout)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(5);
    static float data[4096];
    for (int i = 0; i < 4096; i++)
        data[i] = (float)i;
    const mica_index shapes[][4] = {{12, 1, 1, 1}, {2, 6, 1, 1}, {3, 4, 1, 1}, {1, 12, 1, 1}, {2, 3, 2, 1},
                                    {2, 2, 3, 1},  {3, 2, 2, 1}, {2, 1, 6, 1}, {2, 1, 3, 2},  {1, 4, 1, 3}};
    int fitted = 0;
    for (int n = 0; n < 2000; n++) {
        mica_tensor t = {.data = data + 2048, .dtype = MICA_F32, .rank = 4}, v;
        memcpy(t.dim, shapes[test_int(&r, 0, 9)], sizeof shapes[0]);
        mica_index stride = test_int(&r, 1, 3);
        for (int k = 3; k >= 0; k--) { /* mostly layouts that join somewhere */
            t.stride[k] = t.dim[k] == 1 ? 77 : stride;
            stride = test_chance(&r, 70) ? stride * t.dim[k] : test_int(&r, -20, 20);
        }
        const mica_index *dims = shapes[test_int(&r, 0, 9)];
        if (mica_view_reshape(ctx, &v, &t, 4, dims) != MICA_OK)
            continue;
        fitted++;
        mica_iter b = mica_iter_begin(&v, 0, NULL);
        for (mica_iter a = mica_iter_begin(&t, 0, NULL); a.valid; mica_iter_next(&a), mica_iter_next(&b))
            if (!CHECK(a.element == b.element))
                return;
    }
    CHECK(fitted > 500);
}

TEST(view_slice_as_in_python)
{
    mica_context *ctx = test_context(1);
    float data[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    mica_tensor t = mica_1d(data, 10), v;
    CHECK_OK(ctx, mica_view_slice(ctx, &v, &t, 0, 2, 8, 3));
    SHOWS(&v, "[2]", 2, 5);
    CHECK_OK(ctx, mica_view_slice(ctx, &v, &t, -1, -3, 100, 1));
    SHOWS(&v, "[3]", 7, 8, 9);
    CHECK_OK(ctx, mica_view_slice(ctx, &v, &t, 0, -1, MICA_END, -4));
    SHOWS(&v, "[3]", 9, 5, 1);
    CHECK_OK(ctx, mica_view_slice(ctx, &v, &t, 0, 5, 2, -1));
    SHOWS(&v, "[3]", 5, 4, 3);
    CHECK_OK(ctx, mica_view_slice(ctx, &v, &t, 0, 100, -100, -9));
    SHOWS(&v, "[2]", 9, 0);
    CHECK_OK(ctx, mica_view_slice(ctx, &v, &t, 0, 8, 3, 1));
    CHECK(v.dim[0] == 0);
    CHECK_OK(ctx, mica_view_slice(ctx, &v, &t, 0, 3, MICA_END, PTRDIFF_MAX));
    SHOWS(&v, "[1]", 3);
    CHECK_OK(ctx, mica_view_slice(ctx, &v, &t, 0, 3, MICA_END, PTRDIFF_MIN));
    SHOWS(&v, "[1]", 3);
    t = mica_2d(data, 4, 5);
    CHECK_ERROR(ctx, mica_view_slice(ctx, &v, &t, 3, 0, 1, 1), MICA_ERR_AXIS,
                "axis error: view_slice: axis 3 of a tensor of rank 2 [4, 5]");
    CHECK_ERROR(ctx, mica_view_slice(ctx, &v, &t, -3, 0, 1, 1), MICA_ERR_AXIS,
                "axis error: view_slice: axis -3 of a tensor of rank 2 [4, 5]");
    CHECK_ERROR(ctx, mica_view_slice(ctx, &v, &t, 0, 0, 1, 0), MICA_ERR_ARGUMENT,
                "argument error: view_slice: step is 0");
    CHECK_ERROR(ctx, mica_view_slice(ctx, &v, NULL, 0, 0, 1, 1), MICA_ERR_ARGUMENT,
                "argument error: view_slice: t is NULL");
    CHECK_ERROR(ctx, mica_view_slice(ctx, NULL, &t, 0, 0, 1, 1), MICA_ERR_ARGUMENT,
                "argument error: view_slice: out is NULL");
}

TEST(view_select_and_flip)
{
    mica_context *ctx = test_context(1);
    mica_tensor t = grid_234(), v;
    CHECK_OK(ctx, mica_view_select(ctx, &v, &t, 1, -1));
    SHOWS(&v, "[2, 4]", 8, 9, 10, 11, 20, 21, 22, 23);
    CHECK_OK(ctx, mica_view_flip(ctx, &v, &v, 0));
    SHOWS(&v, "[2, 4]", 20, 21, 22, 23, 8, 9, 10, 11);
    CHECK_ERROR(ctx, mica_view_select(ctx, &v, &t, 1, 3), MICA_ERR_INDEX,
                "index error: view_select: position 3 of axis 1, which has size 3, in [2, 3, 4]");
    CHECK_ERROR(ctx, mica_view_select(ctx, &v, &t, 4, 0), MICA_ERR_AXIS,
                "axis error: view_select: axis 4 of a tensor of rank 3 [2, 3, 4]");
    CHECK_ERROR(ctx, mica_view_flip(ctx, &v, &t, 3), MICA_ERR_AXIS,
                "axis error: view_flip: axis 3 of a tensor of rank 3 [2, 3, 4]");
}

TEST(view_transpose_and_permute)
{
    mica_context *ctx = test_context(1);
    mica_tensor t = grid_234(), v;
    CHECK_OK(ctx, mica_view_select(ctx, &v, &t, 0, 0));
    CHECK_OK(ctx, mica_view_transpose(ctx, &v, &v, 0, -1));
    SHOWS(&v, "[4, 3]", 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11);
    CHECK_OK(ctx, mica_view_permute(ctx, &v, &t, (int[]){2, 0, -2}));
    CHECK(v.dim[0] == 4 && v.dim[1] == 2 && v.dim[2] == 3);
    CHECK(v.stride[0] == 1 && v.stride[1] == 12 && v.stride[2] == 4);
    CHECK_ERROR(ctx, mica_view_permute(ctx, &v, &t, (int[]){0, 1, -2}), MICA_ERR_AXIS,
                "axis error: view_permute: axis 1 is listed twice for a tensor of rank 3 [2, 3, 4]");
    CHECK_ERROR(ctx, mica_view_permute(ctx, &v, &t, (int[]){0, 1, 3}), MICA_ERR_AXIS,
                "axis error: view_permute: axis 3 of a tensor of rank 3 [2, 3, 4]");
    CHECK_ERROR(ctx, mica_view_permute(ctx, &v, &t, NULL), MICA_ERR_ARGUMENT,
                "argument error: view_permute: axes is NULL");
    CHECK_ERROR(ctx, mica_view_transpose(ctx, &v, &t, 0, 3), MICA_ERR_AXIS,
                "axis error: view_transpose: axis 3 of a tensor of rank 3 [2, 3, 4]");
}

TEST(view_broadcast)
{
    mica_context *ctx = test_context(1);
    float data[3] = {1, 2, 3};
    mica_tensor t = mica_2d(data, 3, 1), v, w = {.rank = 42};
    CHECK_OK(ctx, mica_view_broadcast(ctx, &v, &t, 3, (mica_index[]){2, 3, 2}));
    SHOWS(&v, "[2, 3, 2]", 1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3);
    CHECK_OK(ctx, mica_view_broadcast(ctx, &v, &t, 2, (mica_index[]){3, 0}));
    CHECK(mica_tensor_count(&v) == 0);
    CHECK_ERROR(ctx, mica_view_broadcast(ctx, &w, &t, 2, (mica_index[]){4, 3}), MICA_ERR_SHAPE,
                "shape error: view_broadcast: t is [3, 1], which does not broadcast to [4, 3]");
    CHECK_ERROR(ctx, mica_view_broadcast(ctx, &w, &t, 1, (mica_index[]){3}), MICA_ERR_SHAPE,
                "shape error: view_broadcast: t is [3, 1], which does not broadcast to [3]");
    CHECK_ERROR(ctx, mica_view_broadcast(ctx, &w, &t, -1, NULL), MICA_ERR_SHAPE,
                "shape error: view_broadcast: rank is -1, expected 0 to 8");
    CHECK(w.rank == 42);
}

TEST(view_squeeze_unsqueeze_flatten)
{
    mica_context *ctx = test_context(1);
    mica_tensor t = mica_4d(grid, 1, 2, 1, 3), v, full;
    CHECK_OK(ctx, mica_view_squeeze(ctx, &v, &t, MICA_ALL_AXES));
    CHECK(v.rank == 2 && v.dim[0] == 2 && v.dim[1] == 3 && v.stride[0] == 3 && v.stride[1] == 1);
    CHECK_OK(ctx, mica_view_squeeze(ctx, &v, &t, -2));
    CHECK(v.rank == 3 && v.dim[2] == 3);
    CHECK_ERROR(ctx, mica_view_squeeze(ctx, &v, &t, 1), MICA_ERR_SHAPE,
                "shape error: view_squeeze: axis 1 of [1, 2, 1, 3] has size 2, not 1");
    t = grid_234();
    CHECK_OK(ctx, mica_view_unsqueeze(ctx, &v, &t, -1));
    CHECK(v.rank == 4 && v.dim[3] == 1 && mica_tensor_contiguous(&v));
    CHECK_OK(ctx, mica_view_unsqueeze(ctx, &v, &t, 1));
    CHECK(v.dim[0] == 2 && v.dim[1] == 1 && v.dim[2] == 3);
    CHECK_ERROR(ctx, mica_view_unsqueeze(ctx, &v, &t, 4), MICA_ERR_AXIS,
                "axis error: view_unsqueeze: axis 4 is out of range for a result of rank 4 from [2, 3, 4]");
    CHECK_OK(ctx, mica_tensor_init(ctx, &full, grid, MICA_F32, 8, (mica_index[]){1, 1, 1, 1, 1, 1, 1, 2}));
    CHECK_ERROR(ctx, mica_view_unsqueeze(ctx, &v, &full, 0), MICA_ERR_SHAPE,
                "shape error: view_unsqueeze: t [1, 1, 1, 1, 1, 1, 1, 2] already has 8 axes");
    CHECK_OK(ctx, mica_view_flatten(ctx, &v, &t, 0, 1));
    CHECK(v.rank == 2 && v.dim[0] == 6 && v.dim[1] == 4);
    CHECK_OK(ctx, mica_view_flatten(ctx, &v, &t, 0, -1));
    CHECK(v.rank == 1 && v.dim[0] == 24);
    CHECK_ERROR(ctx, mica_view_flatten(ctx, &v, &t, 2, 1), MICA_ERR_AXIS,
                "axis error: view_flatten: first axis 2 comes after last axis 1");
    CHECK_ERROR(ctx, mica_view_flatten(ctx, &v, &t, 0, 3), MICA_ERR_AXIS,
                "axis error: view_flatten: axis 3 of a tensor of rank 3 [2, 3, 4]");
    CHECK_OK(ctx, mica_view_transpose(ctx, &v, &t, 0, 1));
    CHECK_ERROR(
        ctx, mica_view_flatten(ctx, &v, &v, 0, 1), MICA_ERR_SHAPE,
        "shape error: view_flatten: axes 0 to 1 of [3, 2, 4] with strides [4, 12, 1] cannot be merged without a copy (mica_flatten copies)");
    t = mica_0d(grid);
    CHECK_OK(ctx, mica_view_flatten(ctx, &v, &t, 0, -1));
    CHECK(v.rank == 1 && v.dim[0] == 1);
}

TEST(views_refuse_tensors_that_cannot_be)
{
    mica_context *ctx = test_context(1);
    mica_tensor t = mica_2d(grid, 2, 3), v;
    t.rank = 9;
    CHECK_ERROR(ctx, mica_view_transpose(ctx, &v, &t, 0, 1), MICA_ERR_ARGUMENT,
                "argument error: view_transpose: t has rank 9, expected 0 to 8");
    t = mica_2d(grid, 2, -3);
    CHECK_ERROR(ctx, mica_view_squeeze(ctx, &v, &t, 0), MICA_ERR_ARGUMENT,
                "argument error: view_squeeze: t has size -3 in dimension 1");
    t = mica_2d(grid, 2, 3);
    t.dtype = (mica_dtype)-1;
    CHECK_ERROR(ctx, mica_view_flip(ctx, &v, &t, 0), MICA_ERR_ARGUMENT,
                "argument error: view_flip: t has unknown dtype -1");
    t = mica_2d(grid, 2, 3);
    t.stride[0] = PTRDIFF_MAX / 2;
    CHECK_ERROR(ctx, mica_view_unsqueeze(ctx, &v, &t, 0), MICA_ERR_ARGUMENT,
                "argument error: view_unsqueeze: t has strides that exceed the address space");
    t.stride[0] = PTRDIFF_MIN;
    CHECK(mica_view_flatten(ctx, &v, &t, 0, 1) == MICA_ERR_ARGUMENT);
}
