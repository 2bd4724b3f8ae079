/* The texts of what shape operations refuse, and results that are easier to see than to compute. */
#include <string.h>

#include "test.h"

TEST(shape_ops_say_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    float a[24] = {0}, b[24] = {0};
    mica_tensor src = mica_2d(a, 4, 5), dst = mica_2d(b, 2, 5);
    CHECK_ERROR(ctx, mica_reshape(ctx, &dst, &src), MICA_ERR_SHAPE,
                "shape error: reshape: src is [4, 5] (20 elements), dst is [2, 5] (10 elements)");
    CHECK_ERROR(
        ctx, mica_slice(ctx, &dst, &src, &(mica_slice_opts){.start = 3}), MICA_ERR_SHAPE,
        "shape error: slice: dst is [2, 5], but starting at 3 with step 1, axis 0 of src [4, 5] has 1 positions");
    CHECK_ERROR(ctx, mica_slice(ctx, &dst, &src, &(mica_slice_opts){.axis = 1}), MICA_ERR_SHAPE,
                "shape error: slice: dst is [2, 5], expected [4, 5] for src [4, 5]");
    CHECK_ERROR(ctx, mica_transpose(ctx, &dst, &src, 0, 2), MICA_ERR_AXIS,
                "axis error: transpose: axis 2 of src [4, 5], which has rank 2");
    CHECK_ERROR(ctx, mica_transpose(ctx, &dst, &src, 0, 1), MICA_ERR_SHAPE,
                "shape error: transpose: dst is [2, 5], expected [5, 4] for src [4, 5]");
    CHECK_ERROR(ctx, mica_permute(ctx, &dst, &src, (int[]){1, 1}), MICA_ERR_AXIS,
                "axis error: permute: axis 1 of src [4, 5] is listed twice");
    CHECK_ERROR(ctx, mica_permute(ctx, &dst, &src, NULL), MICA_ERR_ARGUMENT,
                "argument error: permute: axes is NULL");
    CHECK_ERROR(ctx, mica_squeeze(ctx, &dst, &src, 1), MICA_ERR_SHAPE,
                "shape error: squeeze: axis 1 of src [4, 5] has size 5, not 1 (dst is [2, 5])");
    CHECK_ERROR(ctx, mica_unsqueeze(ctx, &dst, &src, 3), MICA_ERR_AXIS,
                "axis error: unsqueeze: axis 3 is out of range for dst, which has rank 3 for src [4, 5]");
    CHECK_ERROR(ctx, mica_flatten(ctx, &dst, &src, 1, 0), MICA_ERR_AXIS,
                "axis error: flatten: first axis 1 of src [4, 5] comes after last axis 0");
    CHECK_ERROR(ctx, mica_copy(ctx, &dst, &src), MICA_ERR_SHAPE,
                "shape error: copy: src is [4, 5], which does not broadcast to dst [2, 5]");
    src = mica_2d(b + 1, 2, 5);
    CHECK_ERROR(ctx, mica_copy(ctx, &dst, &src), MICA_ERR_ALIAS,
                "alias error: copy: dst [2, 5] overlaps src [2, 5] without being identical to it");
}

TEST(joins_say_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    float a[64] = {0}, b[64] = {0};
    mica_tensor x = mica_2d(a, 2, 3), y = mica_2d(a + 6, 2, 4), whole = mica_2d(b, 2, 8);
    const mica_tensor *parts[] = {&x, &y};
    CHECK_ERROR(
        ctx, mica_concat(ctx, &whole, parts, 2, 1), MICA_ERR_SHAPE,
        "shape error: concat: dst is [2, 8], but along axis 1 its 2 parts, the first [2, 3], have 7 elements");
    CHECK_ERROR(
        ctx, mica_concat(ctx, &whole, parts, 2, 0), MICA_ERR_SHAPE,
        "shape error: concat: srcs[0] is [2, 3], dst is [2, 8]: sizes other than that of axis 0 differ");
    CHECK_ERROR(ctx, mica_concat(ctx, &whole, parts, 0, 0), MICA_ERR_ARGUMENT,
                "argument error: concat: count of srcs is 0, expected 1 or more");
    CHECK_ERROR(ctx, mica_concat(ctx, &whole, NULL, 2, 0), MICA_ERR_ARGUMENT,
                "argument error: concat: srcs is NULL");
    CHECK_ERROR(ctx, mica_stack(ctx, &whole, parts, 2, 0), MICA_ERR_SHAPE,
                "shape error: stack: dst is [2, 8], expected [2, 2, 3] for srcs[0] [2, 3]");
    y = mica_2d(a + 3, 2, 5);
    CHECK_ERROR(ctx, mica_split(ctx, parts, 2, &whole, 1), MICA_ERR_ALIAS,
                "alias error: split: dsts[0] [2, 3] overlaps dsts[1] [2, 5]");
    CHECK_ERROR(ctx, mica_tile(ctx, &whole, &x), MICA_ERR_SHAPE,
                "shape error: tile: src is [2, 3], which does not tile dst [2, 8] evenly");
}

TEST(padding_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    float a[64] = {0}, b[64] = {0};
    mica_tensor x = mica_2d(a, 2, 3), y = mica_2d(b, 2, 8);
    mica_pad_opts opts = {.before = {0, 3}, .after = {0, 2}, .mode = MICA_PAD_REFLECT};
    CHECK_ERROR(
        ctx, mica_pad(ctx, &y, &x, &opts), MICA_ERR_SHAPE,
        "shape error: pad: 3 and 2 elements are to be reflected along axis 1 of src [2, 3] (dst is [2, 8])");
    opts.before[1] = -1;
    CHECK_ERROR(ctx, mica_pad(ctx, &y, &x, &opts), MICA_ERR_ARGUMENT,
                "argument error: pad: before is -1 and after 2 along axis 1 of src [2, 3]");
    opts.before[1] = 2;
    CHECK_ERROR(ctx, mica_pad(ctx, &y, &x, &opts), MICA_ERR_SHAPE,
                "shape error: pad: dst is [2, 8], expected [2, 7] for src [2, 3]");
    opts.mode = (mica_pad_mode)4;
    CHECK_ERROR(ctx, mica_pad(ctx, &y, &x, &opts), MICA_ERR_ARGUMENT, "argument error: pad: unknown mode 4");
    CHECK_ERROR(ctx, mica_unpad(ctx, &x, &y, NULL), MICA_ERR_SHAPE,
                "shape error: unpad: src is [2, 8], expected [2, 3] for dst [2, 3]");
}

TEST(indexing_finds_bad_indices_before_it_writes)
{
    mica_context *ctx = test_context(1);
    float a[12] = {0}, b[12];
    int32_t i[6] = {0, 2, 1, 3, 0, 0};
    mica_tensor src = mica_2d(a, 3, 2), dst = mica_2d(b, 3, 2), index;
    CHECK_OK(ctx, mica_tensor_init(ctx, &index, i, MICA_I32, 2, (mica_index[]){3, 2}));
    memset(b, 0x5a, sizeof b);
    float before[12];
    memcpy(before, b, sizeof b);
    CHECK_ERROR(ctx, mica_gather(ctx, &dst, &src, &index, 0), MICA_ERR_INDEX,
                "index error: gather: index [3, 2] holds 3 at element 3; axis 0 of src [3, 2] has size 3");
    CHECK_ERROR(
        ctx, mica_scatter_add(ctx, &dst, &src, &index, 0), MICA_ERR_INDEX,
        "index error: scatter_add: index [3, 2] holds 3 at element 3; axis 0 of dst [3, 2] has size 3");
    CHECK_ERROR(
        ctx, mica_gather_backward(ctx, &dst, &src, &index, 0), MICA_ERR_INDEX,
        "index error: gather_backward: index [3, 2] holds 3 at element 3; axis 0 of dx [3, 2] has size 3");
    index.rank = 1;
    index.stride[0] = 1;
    i[1] = -1;
    CHECK_ERROR(ctx, mica_take(ctx, &dst, &src, &index, 0), MICA_ERR_INDEX,
                "index error: take: index [3] holds -1 at element 1; axis 0 of src [3, 2] has size 3");
    CHECK_ERROR(ctx, mica_index_add(ctx, &dst, &src, &index, 0), MICA_ERR_INDEX,
                "index error: index_add: index [3] holds -1 at element 1; axis 0 of dst [3, 2] has size 3");
    CHECK_ERROR(
        ctx, mica_take_backward(ctx, &dst, &src, &index, 0), MICA_ERR_INDEX,
        "index error: take_backward: index [3] holds -1 at element 1; axis 0 of dx [3, 2] has size 3");
    CHECK(memcmp(before, b, sizeof b) == 0);
    CHECK_ERROR(ctx, mica_take(ctx, &dst, &src, &index, 1), MICA_ERR_SHAPE,
                "shape error: take: dst is [3, 2], which does not fit index [3] along axis 1 of src [3, 2]");
    CHECK_ERROR(
        ctx, mica_gather(ctx, &dst, &src, &index, 1), MICA_ERR_SHAPE,
        "shape error: gather: index is [3], which does not fit into src [3, 2] along axes other than 1");
}

TEST(making_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    float a[12];
    mica_random from = mica_random_stream(1, 2);
    mica_tensor t = mica_1d(a, 12), twice;
    CHECK_ERROR(ctx, mica_he_normal(ctx, &t, &from, 1), MICA_ERR_SHAPE,
                "shape error: he_normal: dst is [12] of rank 1, expected weights [out, in, kernel...]");
    CHECK_ERROR(ctx, mica_uniform(ctx, &t, NULL, 0, 1), MICA_ERR_ARGUMENT,
                "argument error: uniform: from is NULL");
    CHECK_ERROR(ctx, mica_generate(ctx, &t, NULL, NULL), MICA_ERR_ARGUMENT,
                "argument error: generate: function is NULL");
    CHECK(mica_normal(ctx, &t, &from, 0, 1e38f * 10) == MICA_ERR_ARGUMENT);
    CHECK_OK(ctx, mica_view_broadcast(ctx, &twice, &t, 2, (mica_index[]){2, 12}));
    CHECK_ERROR(
        ctx, mica_zeros(ctx, &twice), MICA_ERR_ALIAS,
        "alias error: zeros: dst [2, 12] has several indices for the same element and cannot be written");
}

TEST(random_fills_do_not_depend_on_layout)
{
    mica_context *one = test_context(1), *three = test_context(3);
    static float plain[300 * 200], other[300 * 200];
    mica_tensor x = mica_2d(plain, 300, 200), y = mica_2d(other, 200, 300), turned;
    mica_random from = mica_random_stream(7, 1);
    CHECK_OK(one, mica_view_transpose(one, &turned, &y, 0, 1));
    CHECK_OK(one, mica_normal(one, &x, &from, 0, 1));
    CHECK_OK(three, mica_normal(three, &turned, &from, 0, 1));
    bool same = true;
    for (int i = 0; i < 300; i++)
        for (int j = 0; j < 200; j++)
            same = same && plain[i * 200 + j] == other[j * 300 + i];
    CHECK(same);
}

TEST(copies_of_large_blocks_pass_the_cache)
{
    enum { COUNT = (4 << 20) + 5 };
    mica_context *ctx = test_context(2);
    mica_index bytes = COUNT * (mica_index)sizeof(float);
    static float from[COUNT], to[COUNT];
    for (int i = 0; i < COUNT; i++)
        from[i] = (float)i;
    mica_tensor src = mica_1d(from, COUNT - 3), dst = mica_1d(to + 3, COUNT - 3);
    CHECK_OK(ctx, mica_copy(ctx, &dst, &src));
    CHECK(bytes > 0 && memcmp(to + 3, from, sizeof from - 12) == 0 && to[2] == 0);
}
