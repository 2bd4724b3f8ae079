/* Tensors of block-quantized types: sizes, elements, and views that keep blocks whole. */
#include <string.h>

#include "test.h"

/* Q8_0 with a scale of 1 (f16 0x3c00), so that the bytes are the values. */
enum { BLOCK = 32, BYTES = 34, ROWS = 12, BLOCKS = 4 * ROWS };

static uint8_t bytes[BLOCKS * BYTES];
static float plain[BLOCKS * BLOCK]; /* the same values */

static void fill(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        bytes[i * BYTES] = 0x00;
        bytes[i * BYTES + 1] = 0x3c;
        for (int j = 0; j < BLOCK; j++) {
            int8_t value = (int8_t)((i * 37 + j * 11) % 255 - 127);
            bytes[i * BYTES + 2 + j] = (uint8_t)value;
            plain[i * BLOCK + j] = value;
        }
    }
}

/* [2, 3, 2, 128] over all of it. */
static mica_tensor grid(mica_context *ctx, void *data, mica_dtype dtype)
{
    mica_tensor t = {0};
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, data, dtype, 4, (mica_index[]){2, 3, 2, 128}));
    return t;
}

TEST(block_dtypes_have_bytes_and_values)
{
    static const struct {
        mica_dtype dtype;
        const char *name;
        size_t bytes, block;
    } types[] = {
        {MICA_Q4_0, "q4_0", 18, 32},   {MICA_Q4_1, "q4_1", 20, 32},     {MICA_Q5_0, "q5_0", 22, 32},
        {MICA_Q5_1, "q5_1", 24, 32},   {MICA_Q8_0, "q8_0", 34, 32},     {MICA_Q2_K, "q2_k", 84, 256},
        {MICA_Q3_K, "q3_k", 110, 256}, {MICA_Q4_K, "q4_k", 144, 256},   {MICA_Q5_K, "q5_k", 176, 256},
        {MICA_Q6_K, "q6_k", 210, 256}, {MICA_IQ4_NL, "iq4_nl", 18, 32}, {MICA_IQ4_XS, "iq4_xs", 136, 256}};
    mica_context *ctx = test_context(1);
    CHECK(sizeof types / sizeof *types == MICA_DTYPE_COUNT - MICA_Q4_0);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        mica_dtype d = types[i].dtype;
        CHECK(strcmp(mica_dtype_name(d), types[i].name) == 0);
        CHECK(mica_dtype_bytes(d) == types[i].bytes && mica_dtype_block(d) == types[i].block);
        mica_tensor t;
        CHECK_OK(ctx, mica_tensor_init(ctx, &t, NULL, d, 2, (mica_index[]){3, 512}));
        CHECK(mica_tensor_count(&t) == 1536 &&
              mica_tensor_bytes(&t) == 1536 / types[i].block * types[i].bytes);
        CHECK(mica_tensor_contiguous(&t) && t.stride[0] == 512 && t.stride[1] == 1);
        mica_tensor like = mica_tensor_like(&t, bytes);
        CHECK(like.dtype == d && like.data == bytes && mica_tensor_bytes(&like) == mica_tensor_bytes(&t));
        CHECK_OK(ctx, mica_tensor_init(ctx, &t, NULL, d, 2, (mica_index[]){3, 0}));
        CHECK(mica_tensor_bytes(&t) == 0);
    }
    for (mica_dtype d = 0; d <= MICA_U8; d++)
        CHECK(mica_dtype_block(d) == 1);
    CHECK(mica_dtype_block(MICA_DTYPE_COUNT) == 0 && mica_dtype_block((mica_dtype)77) == 0);
}

TEST(block_tensors_refuse_to_cut_blocks)
{
    mica_context *ctx = test_context(1);
    mica_tensor t = {.rank = 5};
    CHECK_ERROR(
        ctx, mica_tensor_init(ctx, &t, bytes, MICA_Q8_0, 2, (mica_index[]){64, 33}), MICA_ERR_SHAPE,
        "shape error: tensor_init: the tensor [64, 33] has 33 values along its last axis, which splits the blocks of 32 of q8_0");
    CHECK_ERROR(
        ctx, mica_tensor_init(ctx, &t, bytes, MICA_Q4_K, 2, (mica_index[]){256, 576}), MICA_ERR_SHAPE,
        "shape error: tensor_init: the tensor [256, 576] has 576 values along its last axis, which splits the blocks of 256 of q4_k");
    CHECK_ERROR(
        ctx, mica_tensor_init(ctx, &t, bytes, MICA_Q8_0, 0, NULL), MICA_ERR_SHAPE,
        "shape error: tensor_init: the tensor [] has 1 values along its last axis, which splits the blocks of 32 of q8_0");
    CHECK(t.rank == 5);
    /* 2^62 values are more than memory holds with 34 bytes for 32, but not with 18. */
    if (sizeof(mica_index) == 8) {
        mica_index huge = (mica_index)1 << 31;
        CHECK_OK(ctx, mica_tensor_init(ctx, &t, NULL, MICA_Q4_0, 2, (mica_index[]){huge, huge * 2 - 32}));
        CHECK(mica_tensor_bytes(&t) == (size_t)huge * (size_t)(huge * 2 - 32) / 32 * 18);
        CHECK(mica_tensor_init(ctx, &t, NULL, MICA_Q8_0, 2, (mica_index[]){huge, huge * 2 - 32}) ==
              MICA_ERR_SHAPE);
        CHECK(mica_tensor_init(ctx, &t, NULL, MICA_Q4_0, 3, (mica_index[]){huge, 2, huge * 2}) ==
              MICA_ERR_SHAPE);
    }
    /* Strides that a caller sets himself. */
    double value;
    t = grid(ctx, bytes, MICA_Q8_0);
    t.stride[0] = 48;
    CHECK_ERROR(ctx, mica_at(ctx, &value, &t, (mica_index[4]){0}), MICA_ERR_ARGUMENT,
                "argument error: at: t has stride 48 in dimension 0, which splits the blocks of 32 of q8_0");
    t = grid(ctx, bytes, MICA_Q8_0);
    t.stride[3] = 32;
    CHECK_ERROR(ctx, mica_at(ctx, &value, &t, (mica_index[4]){0}), MICA_ERR_ARGUMENT,
                "argument error: at: t has stride 32 in dimension 3, which splits the blocks of 32 of q8_0");
}

TEST(block_elements_can_be_read_only)
{
    mica_context *ctx = test_context(1);
    fill();
    mica_tensor t = grid(ctx, bytes, MICA_Q8_0), p = grid(ctx, plain, MICA_F32);
    uint8_t before[sizeof bytes];
    memcpy(before, bytes, sizeof bytes);
    double value, want;
    CHECK_OK(ctx, mica_at(ctx, &value, &t, (mica_index[]){1, -1, 0, 77}));
    CHECK_OK(ctx, mica_at(ctx, &want, &p, (mica_index[]){1, 2, 0, 77}));
    CHECK(value == want);
    CHECK_ERROR(
        ctx, mica_set_at(ctx, &t, (mica_index[]){1, 2, 0, 77}, 3.0), MICA_ERR_DTYPE,
        "dtype error: set_at: t [2, 3, 2, 128] is q8_0, where a value cannot be set without the rest of its block");
    CHECK(memcmp(before, bytes, sizeof bytes) == 0);
    int count = 0;
    for (mica_iter it = mica_iter_begin(&t, 0, NULL); it.valid; mica_iter_next(&it), count++)
        if (!CHECK((uint8_t *)it.element == bytes + count / BLOCK * BYTES))
            break;
    CHECK(count == BLOCKS * BLOCK);
    static char text[20000], same[20000];
    CHECK(mica_tensor_print(text, sizeof text, &t) == mica_tensor_print(same, sizeof same, &p));
    CHECK(strcmp(text, same) == 0 && strstr(text, "-127") != NULL);
}

TEST(block_views_say_what_they_would_cut)
{
    mica_context *ctx = test_context(1);
    mica_tensor t, v = {.rank = 7};
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, bytes, MICA_Q8_0, 2, (mica_index[]){6, 64}));
    CHECK_ERROR(
        ctx, mica_view_slice(ctx, &v, &t, 1, 16, 48, 1), MICA_ERR_SHAPE,
        "shape error: view_slice: t [6, 64] is q8_0: a view [6, 32] with strides [64, 1] starting at element 16 would split its blocks of 32");
    CHECK_ERROR(
        ctx, mica_view_slice(ctx, &v, &t, 1, 0, MICA_END, 2), MICA_ERR_SHAPE,
        "shape error: view_slice: t [6, 64] is q8_0: a view [6, 32] with strides [64, 2] starting at element 0 would split its blocks of 32");
    CHECK(mica_view_flip(ctx, &v, &t, 1) == MICA_ERR_SHAPE);
    CHECK(mica_view_select(ctx, &v, &t, 1, 32) == MICA_ERR_SHAPE);
    CHECK(mica_view_unsqueeze(ctx, &v, &t, 2) == MICA_ERR_SHAPE);
    CHECK_ERROR(
        ctx, mica_view_transpose(ctx, &v, &t, 0, 1), MICA_ERR_SHAPE,
        "shape error: view_transpose: t [6, 64] is q8_0: a view [64, 6] with strides [1, 64] starting at element 0 would split its blocks of 32");
    CHECK_ERROR(
        ctx, mica_view_reshape(ctx, &v, &t, 2, (mica_index[]){24, 16}), MICA_ERR_SHAPE,
        "shape error: view_reshape: the shape [24, 16] has 16 values along its last axis, which splits the blocks of 32 of q8_0");
    CHECK(v.rank == 7);
    CHECK_OK(ctx, mica_view_slice(ctx, &v, &t, 1, 32, 64, 1));
    CHECK((uint8_t *)v.data == bytes + BYTES && v.dim[1] == 32 && v.stride[0] == 64);
    CHECK_OK(ctx, mica_view_flip(ctx, &v, &v, 0));
    CHECK((uint8_t *)v.data == bytes + 11 * BYTES && v.stride[0] == -64);
}

/* One random view of t; the same of p for the same state of r. */
static mica_status random_view(mica_context *ctx, mica_tensor *t, test_random r)
{
    int axis = test_int(&r, -t->rank, t->rank - 1), other = test_int(&r, -t->rank, t->rank - 1);
    int start = test_int(&r, 0, 3), count = test_int(&r, 1, 4),
        step = test_chance(&r, 70) ? 1 : test_int(&r, 1, 2);
    bool last = axis == -1 || axis == t->rank - 1;
    start *= last && test_chance(&r, 80) ? BLOCK : 1;
    count *= last && test_chance(&r, 80) ? BLOCK : 1;
    bool keep = t->rank > 1 && test_chance(&r, 80); /* the last axis in its place */
    int axes[MICA_MAX_RANK];
    mica_index dims[MICA_MAX_RANK + 1];
    switch (test_int(&r, 0, 8)) {
    case 0:
        return mica_view_slice(ctx, t, t, axis, start, start + count, step);
    case 1:
        return mica_view_flip(ctx, t, t, axis);
    case 2:
        return mica_view_select(ctx, t, t, axis, start);
    case 3:
        return mica_view_transpose(ctx, t, t, axis, other);
    case 4:
        for (int k = 0; k < t->rank; k++)
            axes[k] = k == t->rank - 1 && keep ? k : (k + 1) % (t->rank - keep);
        return mica_view_permute(ctx, t, t, axes);
    case 5:
        return mica_view_unsqueeze(ctx, t, t, axis);
    case 6:
        return mica_view_flatten(ctx, t, t, test_int(&r, 0, t->rank - 1), test_int(&r, 0, t->rank - 1));
    case 7: /* the last axis split */
        memcpy(dims, t->dim, sizeof t->dim);
        dims[t->rank - 1] = -1;
        dims[t->rank] = test_chance(&r, 70) ? BLOCK : test_int(&r, 1, 64);
        return t->rank == MICA_MAX_RANK ? MICA_OK : mica_view_reshape(ctx, t, t, t->rank + 1, dims);
    default:
        return mica_view_squeeze(ctx, t, t, MICA_ALL_AXES);
    }
}

/* Whether a view of the plain values consists of whole blocks, as a tensor of blocks could have it. */
static bool is_whole(const mica_tensor *p)
{
    if (p->rank == 0 || p->dim[p->rank - 1] % BLOCK != 0)
        return false;
    if (mica_tensor_count(p) == 0)
        return true;
    if (((float *)p->data - plain) % BLOCK != 0)
        return false;
    for (int k = 0; k < p->rank; k++)
        if (p->dim[k] > 1 && (k == p->rank - 1 ? p->stride[k] != 1 : p->stride[k] % BLOCK != 0))
            return false;
    return true;
}

static bool shows_the_same(mica_context *ctx, const mica_tensor *t, const mica_tensor *p)
{
    bool same = mica_tensor_same_shape(t, p);
    for (mica_iter it = mica_iter_begin(p, 0, NULL); it.valid && same; mica_iter_next(&it)) {
        double value;
        same = mica_at(ctx, &value, t, it.index) == MICA_OK && (float)value == *(float *)it.element;
    }
    return same;
}

static bool touches(bool *touched, const mica_tensor *t, bool mark)
{
    bool any = false;
    for (mica_iter it = mica_iter_begin(t, 0, NULL); it.valid; mica_iter_next(&it)) {
        ptrdiff_t at = ((uint8_t *)it.element - bytes) / BYTES;
        any = any || touched[at];
        touched[at] = touched[at] || mark;
    }
    return any;
}

TEST(block_views_show_what_plain_ones_show)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(5);
    int accepted = 0, refused = 0, shared = 0, apart = 0;
    fill();
    mica_tensor last = grid(ctx, bytes, MICA_Q8_0);
    for (int n = 0; n < 1000; n++) {
        mica_tensor t = grid(ctx, bytes, MICA_Q8_0), p = grid(ctx, plain, MICA_F32);
        for (int step = 0; step < 5 && t.rank > 0; step++) {
            test_random state = r;
            (void)test_next(&r);
            mica_tensor seen = p;
            if (random_view(ctx, &seen, state) != MICA_OK)
                continue;
            mica_status status = random_view(ctx, &t, state);
            if (!CHECK_MSG((status == MICA_OK) == is_whole(&seen), "case %d: %s", n,
                           status == MICA_OK ? "cuts a block" : mica_error(ctx)))
                return;
            accepted += status == MICA_OK;
            refused += status != MICA_OK;
            p = status == MICA_OK ? seen : p;
        }
        if (!CHECK_MSG(shows_the_same(ctx, &t, &p), "case %d", n))
            return;
        CHECK(mica_tensor_contiguous(&t) == mica_tensor_contiguous(&p));
        bool touched[BLOCKS] = {false};
        touches(touched, &t, true);
        bool common = touches(touched, &last, false);
        CHECK_MSG((mica_tensor_overlap(&t, &last) != MICA_OVERLAP_NONE) == common, "case %d", n);
        CHECK(mica_tensor_overlap(&t, &t) ==
              (mica_tensor_count(&t) > 0 ? MICA_OVERLAP_EXACT : MICA_OVERLAP_NONE));
        CHECK(!mica_tensor_self_overlap(&t));
        shared += common;
        apart += !common;
        last = t;
    }
    CHECK_MSG(accepted > 500 && refused > 500 && shared > 100 && apart > 100, "%d %d %d %d", accepted,
              refused, shared, apart);
}

TEST(block_views_broadcast_rows)
{
    mica_context *ctx = test_context(1);
    mica_tensor t, v;
    fill();
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, bytes, MICA_Q8_0, 2, (mica_index[]){1, 64}));
    CHECK_OK(ctx, mica_view_broadcast(ctx, &v, &t, 3, (mica_index[]){2, 3, 64}));
    CHECK(v.stride[0] == 0 && v.stride[1] == 0 && v.stride[2] == 1 && mica_tensor_self_overlap(&v));
    CHECK(mica_view_broadcast(ctx, &v, &t, 2, (mica_index[]){1, 128}) == MICA_ERR_SHAPE);
}
