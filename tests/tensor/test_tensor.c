/* Making tensors, asking about them, elements and the iterator. */
#include <math.h>
#include <string.h>

#include "test.h"

TEST(dtype_names_and_sizes)
{
    CHECK(strcmp(mica_dtype_name(MICA_F32), "f32") == 0 && mica_dtype_bytes(MICA_F32) == 4);
    CHECK(strcmp(mica_dtype_name(MICA_BF16), "bf16") == 0 && mica_dtype_bytes(MICA_BF16) == 2);
    CHECK(strcmp(mica_dtype_name(MICA_U8), "u8") == 0 && mica_dtype_bytes(MICA_U8) == 1);
    CHECK(strcmp(mica_dtype_name(MICA_DTYPE_COUNT), "invalid") == 0 &&
          mica_dtype_bytes(MICA_DTYPE_COUNT) == 0);
    CHECK(strcmp(mica_dtype_name((mica_dtype)77), "invalid") == 0 && mica_dtype_bytes((mica_dtype)77) == 0);
}

TEST(tensor_init_is_contiguous)
{
    mica_context *ctx = test_context(1);
    double data[24];
    mica_tensor t;
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, data, MICA_F64, 3, (mica_index[]){2, 3, 4}));
    CHECK(t.stride[0] == 12 && t.stride[1] == 4 && t.stride[2] == 1);
    CHECK(mica_tensor_count(&t) == 24 && mica_tensor_bytes(&t) == 192 && mica_tensor_contiguous(&t));
    mica_tensor like = mica_tensor_like(&t, NULL);
    CHECK(mica_tensor_same_shape(&t, &like) && like.dtype == MICA_F64 && like.data == NULL);
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, NULL, MICA_U8, 0, NULL));
    CHECK(mica_tensor_count(&t) == 1 && mica_tensor_bytes(&t) == 1 && mica_tensor_contiguous(&t));
    CHECK(!mica_tensor_same_shape(&t, &like));
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, NULL, MICA_F32, 2, (mica_index[]){0, 5}));
    CHECK(mica_tensor_count(&t) == 0 && mica_tensor_contiguous(&t));
}

TEST(tensor_init_refuses)
{
    mica_context *ctx = test_context(1);
    mica_tensor t = {.rank = 42};
    CHECK_ERROR(ctx, mica_tensor_init(ctx, &t, NULL, MICA_F32, 9, (mica_index[9]){0}), MICA_ERR_SHAPE,
                "shape error: tensor_init: the tensor has rank 9, expected 0 to 8");
    CHECK_ERROR(ctx, mica_tensor_init(ctx, &t, NULL, MICA_F32, -1, NULL), MICA_ERR_SHAPE,
                "shape error: tensor_init: the tensor has rank -1, expected 0 to 8");
    CHECK_ERROR(ctx, mica_tensor_init(ctx, &t, NULL, (mica_dtype)99, 1, (mica_index[]){3}), MICA_ERR_DTYPE,
                "dtype error: tensor_init: the tensor [3] has unknown dtype 99");
    CHECK_ERROR(ctx, mica_tensor_init(ctx, &t, NULL, MICA_F32, 2, (mica_index[]){3, -2}), MICA_ERR_SHAPE,
                "shape error: tensor_init: the tensor [3, -2] has size -2 in dimension 1");
    CHECK_ERROR(ctx, mica_tensor_init(ctx, &t, NULL, MICA_F32, 1, NULL), MICA_ERR_ARGUMENT,
                "argument error: tensor_init: dims is NULL");
    CHECK_ERROR(ctx, mica_tensor_init(ctx, NULL, NULL, MICA_F32, 0, NULL), MICA_ERR_ARGUMENT,
                "argument error: tensor_init: out is NULL");
    mica_index large = (mica_index)1 << (sizeof large * 4);
    CHECK(mica_tensor_init(ctx, &t, NULL, MICA_I8, 2, (mica_index[]){large, large}) == MICA_ERR_SHAPE);
    CHECK(strstr(mica_error(ctx), "has more elements than memory can hold") != NULL);
    CHECK(mica_tensor_init(ctx, &t, NULL, MICA_F64, 3, (mica_index[]){large, 0, large}) == MICA_ERR_SHAPE);
    CHECK(t.rank == 42);
}

TEST(small_tensors)
{
    float x[24];
    mica_tensor t = mica_0d(x);
    CHECK(t.rank == 0 && mica_tensor_count(&t) == 1);
    t = mica_1d(x, 5);
    CHECK(t.rank == 1 && t.dim[0] == 5 && t.stride[0] == 1);
    t = mica_3d(x, 2, 3, 4);
    CHECK(t.stride[0] == 12 && t.stride[1] == 4 && t.stride[2] == 1);
    t = mica_4d(x, 2, 3, 2, 2);
    CHECK(t.rank == 4 && t.stride[0] == 12 && mica_tensor_count(&t) == 24);
    t = mica_2d(x, -1, 3);
    CHECK(mica_tensor_count(&t) == 0);
}

TEST(element_access_converts)
{
    mica_context *ctx = test_context(1);
    int8_t data[6] = {1, 2, 3, 4, 5, 6};
    mica_tensor t;
    double value = 0;
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, data, MICA_I8, 2, (mica_index[]){2, 3}));
    CHECK_OK(ctx, mica_at(ctx, &value, &t, (mica_index[]){1, -3}));
    CHECK(value == 4);
    CHECK_OK(ctx, mica_set_at(ctx, &t, (mica_index[]){-1, 2}, -1000.0));
    CHECK(data[5] == INT8_MIN);
    CHECK_OK(ctx, mica_set_at(ctx, &t, (mica_index[]){0, 0}, (double)NAN));
    CHECK(data[0] == 0);
    CHECK_ERROR(ctx, mica_at(ctx, &value, &t, (mica_index[]){0, 3}), MICA_ERR_INDEX,
                "index error: at: index [0, 3] is out of range for t [2, 3]");
    CHECK_ERROR(ctx, mica_set_at(ctx, &t, (mica_index[]){-3, 0}, 1), MICA_ERR_INDEX,
                "index error: set_at: index [-3, 0] is out of range for t [2, 3]");
    CHECK_ERROR(ctx, mica_at(ctx, &value, NULL, NULL), MICA_ERR_ARGUMENT, "argument error: at: t is NULL");
    CHECK_ERROR(ctx, mica_at(ctx, &value, &t, NULL), MICA_ERR_ARGUMENT, "argument error: at: index is NULL");
    CHECK_ERROR(ctx, mica_at(ctx, NULL, &t, NULL), MICA_ERR_ARGUMENT, "argument error: at: value is NULL");
    t.data = NULL;
    CHECK_ERROR(ctx, mica_at(ctx, &value, &t, (mica_index[]){0, 0}), MICA_ERR_ARGUMENT,
                "argument error: at: t [2, 3] has no data (NULL)");
    float scalar = 7;
    t = mica_0d(&scalar);
    CHECK_OK(ctx, mica_at(ctx, &value, &t, NULL));
    CHECK(value == 7);
}

TEST(iterator_walks_in_row_major_order)
{
    mica_context *ctx = test_context(1);
    float data[24];
    for (int i = 0; i < 24; i++)
        data[i] = (float)i;
    mica_tensor t = mica_3d(data, 2, 3, 4), v;
    CHECK_OK(ctx, mica_view_transpose(ctx, &v, &t, 0, 2));
    CHECK_OK(ctx, mica_view_flip(ctx, &v, &v, 1));
    mica_index index[3] = {0, 0, 0};
    int count = 0;
    for (mica_iter it = mica_iter_begin(&v, 0, NULL); it.valid; mica_iter_next(&it), count++) {
        index[0] = count / 6, index[1] = count / 2 % 3, index[2] = count % 2;
        CHECK(memcmp(index, it.index, sizeof index) == 0);
        CHECK(*(float *)it.element == (float)(index[2] * 12 + (2 - index[1]) * 4 + index[0]));
    }
    CHECK(count == 24);
}

TEST(iterator_holds_axes_fixed)
{
    float data[24];
    for (int i = 0; i < 24; i++)
        data[i] = (float)i;
    mica_tensor t = mica_3d(data, 2, 3, 4), empty = mica_2d(data, 0, 3);
    float want[] = {8, 9, 10, 11, 20, 21, 22, 23};
    int count = 0;
    for (mica_iter it = mica_iter_begin(&t, 1u << 1, (mica_index[]){0, -1, 0}); it.valid; mica_iter_next(&it))
        CHECK(*(float *)it.element == want[count++]);
    CHECK(count == 8);
    mica_iter it = mica_iter_begin(&t, 7, (mica_index[]){1, 2, 3});
    CHECK(it.valid && *(float *)it.element == 23);
    mica_iter_next(&it);
    CHECK(!it.valid);
    mica_iter_next(&it);
    CHECK(!it.valid);
    CHECK(!mica_iter_begin(&t, 2, (mica_index[]){0, 3, 0}).valid);
    CHECK(!mica_iter_begin(&empty, 0, NULL).valid);
    CHECK(!mica_iter_begin(NULL, 0, NULL).valid);
}

static bool prints(const mica_tensor *t, const char *want)
{
    char text[4096], small[6];
    size_t length = mica_tensor_print(text, sizeof text, t);
    bool same = strcmp(text, want) == 0 && length == strlen(want);
    CHECK_MSG(same, "got\n%s\nexpected\n%s", text, want);
    CHECK(mica_tensor_print(small, sizeof small, t) == length && strncmp(small, want, 5) == 0);
    CHECK(mica_tensor_print(NULL, 0, t) == length);
    return same;
}

TEST(printing_like_numpy)
{
    mica_context *ctx = test_context(1);
    float data[2000] = {1.5f, 2, -3, 0.25f, 100, 0};
    mica_tensor t = mica_2d(data, 2, 3), v;
    prints(&t, "[[  1.50,   2.00,  -3.00],\n [  0.25, 100.00,   0.00]]");
    CHECK_OK(ctx, mica_view_transpose(ctx, &v, &t, 0, 1));
    prints(&v, "[[  1.50,   0.25],\n [  2.00, 100.00],\n [ -3.00,   0.00]]");
    t = mica_3d(data, 1, 2, 1);
    prints(&t, "[[[1.5],\n  [2.0]]]");
    t = mica_0d(data + 2);
    prints(&t, "-3.");
    t = mica_1d(data, 0);
    prints(&t, "<f32 [0], empty>");
    t = mica_1d(NULL, 2);
    prints(&t, "<f32 [2], no data>");
    t.rank = 9;
    prints(&t, "<tensor that has rank 9, expected 0 to 8>");
    data[0] = INFINITY, data[1] = NAN, data[2] = -INFINITY, data[3] = 1e-20f;
    t = mica_1d(data, 4);
    prints(&t, "[       inf,        nan,       -inf, 1.0000e-20]");
    int64_t whole[3] = {INT64_MIN, 0, INT64_MAX};
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, whole, MICA_I64, 1, (mica_index[]){3}));
    prints(&t, "[-9223372036854775808,                    0,  9223372036854775807]");
}

TEST(printing_large_tensors_leaves_out_the_middle)
{
    static uint8_t data[2000];
    mica_context *ctx = test_context(1);
    mica_tensor t;
    for (int i = 0; i < 2000; i++)
        data[i] = (uint8_t)(i / 20);
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, data, MICA_U8, 2, (mica_index[]){100, 20}));
    prints(
        &t,
        "[[ 0,  0,  0, ...,  0,  0,  0],\n [ 1,  1,  1, ...,  1,  1,  1],\n [ 2,  2,  2, ...,  2,  2,  2],\n"
        " ...,\n [97, 97, 97, ..., 97, 97, 97],\n [98, 98, 98, ..., 98, 98, 98],\n"
        " [99, 99, 99, ..., 99, 99, 99]]");
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, data, MICA_U8, 1, (mica_index[]){40}));
    prints(&t,
           "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1,\n"
           " 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]");
}

TEST(printing_shapes)
{
    char text[8];
    mica_tensor t = mica_3d(NULL, 2, 0, 12345);
    CHECK(mica_tensor_print_shape(text, sizeof text, &t) == 13);
    CHECK(strcmp(text, "[2, 0, ") == 0);
    t = mica_0d(NULL);
    CHECK(mica_tensor_print_shape(text, sizeof text, &t) == 2 && strcmp(text, "[]") == 0);
}
