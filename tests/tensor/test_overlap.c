/* Overlap against marking every byte, and the layouts that must be told apart. */
#include <string.h>

#include "test.h"

enum { ROOM = 1024 };

static const mica_dtype dtypes[] = {MICA_F32, MICA_F64, MICA_F16, MICA_I8};

/* A random view within block[ROOM]. */
static mica_tensor random_view(test_random *r, char *block)
{
    mica_tensor t = {.dtype = dtypes[test_int(r, 0, 3)], .rank = test_int(r, 0, 4)};
    mica_index bytes = (mica_index)mica_dtype_bytes(t.dtype), low = 0, high = 0;
    for (int k = 0; k < t.rank; k++) {
        t.dim[k] = test_int(r, test_chance(r, 5) ? 0 : 1, 4);
        t.stride[k] = test_int(r, -9, 9);
        mica_index reach = t.dim[k] > 0 ? t.stride[k] * (t.dim[k] - 1) : 0;
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    mica_index room = ROOM - (high - low + 1) * bytes;
    /* Anywhere, near the others, and not always aligned. */
    t.data = block - low * bytes + test_int(r, 0, room < 100 ? (int)room : 100);
    return t;
}

static bool share_a_byte(const mica_tensor *a, const mica_tensor *b, const char *block)
{
    bool touched[ROOM] = {false};
    for (mica_iter it = mica_iter_begin(a, 0, NULL); it.valid; mica_iter_next(&it))
        memset(touched + ((char *)it.element - block), true, mica_dtype_bytes(a->dtype));
    for (mica_iter it = mica_iter_begin(b, 0, NULL); it.valid; mica_iter_next(&it))
        for (size_t k = 0; k < mica_dtype_bytes(b->dtype); k++)
            if (touched[(char *)it.element - block + (ptrdiff_t)k])
                return true;
    return false;
}

static bool same_elements(const mica_tensor *a, const mica_tensor *b)
{
    if (!mica_tensor_same_shape(a, b) || a->dtype != b->dtype)
        return false;
    mica_iter y = mica_iter_begin(b, 0, NULL);
    for (mica_iter x = mica_iter_begin(a, 0, NULL); x.valid; mica_iter_next(&x), mica_iter_next(&y))
        if (x.element != y.element)
            return false;
    return true;
}

TEST(overlap_agrees_with_marking_bytes)
{
    static char block[ROOM];
    test_random r = test_seed(11);
    int seen[3] = {0};
    for (int n = 0; n < 20000; n++) {
        mica_tensor a = random_view(&r, block), b = random_view(&r, block);
        if (test_chance(&r, 5))
            b = a;
        mica_overlap want = !share_a_byte(&a, &b, block) ? MICA_OVERLAP_NONE
                            : same_elements(&a, &b)      ? MICA_OVERLAP_EXACT
                                                         : MICA_OVERLAP_PARTIAL;
        seen[want]++;
        if (!CHECK_MSG(mica_tensor_overlap(&a, &b) == want, "case %d: expected %d", n, (int)want))
            return;
    }
    CHECK_MSG(seen[0] > 2000 && seen[1] > 500 && seen[2] > 2000, "%d %d %d", seen[0], seen[1], seen[2]);
}

TEST(self_overlap_agrees_with_marking_elements)
{
    static char block[ROOM];
    test_random r = test_seed(12);
    int seen[2] = {0};
    for (int n = 0; n < 10000; n++) {
        mica_tensor t = random_view(&r, block);
        bool touched[ROOM] = {false}, want = false;
        for (mica_iter it = mica_iter_begin(&t, 0, NULL); it.valid; mica_iter_next(&it)) {
            bool *mark = touched + ((char *)it.element - block);
            want = want || *mark;
            *mark = true;
        }
        seen[want]++;
        if (!CHECK_MSG(mica_tensor_self_overlap(&t) == want, "case %d: expected %d", n, want))
            return;
    }
    CHECK(seen[0] > 1000 && seen[1] > 1000);
}

TEST(overlap_tells_slices_apart)
{
    mica_context *ctx = test_context(1);
    static float data[4096 * 6];
    mica_tensor x = mica_2d(data, 4096, 6), left, right;
    CHECK_OK(ctx, mica_view_slice(ctx, &left, &x, 1, 0, 3, 1));
    CHECK_OK(ctx, mica_view_slice(ctx, &right, &x, 1, 3, MICA_END, 1));
    CHECK(mica_tensor_overlap(&left, &right) == MICA_OVERLAP_NONE);
    CHECK(mica_tensor_overlap(&left, &x) == MICA_OVERLAP_PARTIAL);
    CHECK(mica_tensor_overlap(&left, &left) == MICA_OVERLAP_EXACT);

    CHECK_OK(ctx, mica_view_slice(ctx, &left, &x, 0, 0, MICA_END, 2));
    CHECK_OK(ctx, mica_view_slice(ctx, &right, &x, 0, 1, MICA_END, 2));
    CHECK(mica_tensor_overlap(&left, &right) == MICA_OVERLAP_NONE);
    CHECK_OK(ctx, mica_view_flip(ctx, &right, &right, 0));
    CHECK(mica_tensor_overlap(&left, &right) == MICA_OVERLAP_NONE);

    CHECK_OK(ctx, mica_view_transpose(ctx, &left, &x, 0, 1));
    CHECK(mica_tensor_overlap(&left, &x) == MICA_OVERLAP_PARTIAL);
    CHECK(!mica_tensor_self_overlap(&left));
    CHECK_OK(ctx, mica_view_broadcast(ctx, &left, &x, 3, (mica_index[]){2, 4096, 6}));
    CHECK(mica_tensor_self_overlap(&left));
}

TEST(overlap_takes_its_time_in_bounds)
{
    /* Layouts made to be hard: the answer may be "perhaps", but it comes at once. */
    static char block[1 << 20];
    mica_tensor a = {.data = block, .dtype = MICA_I8, .rank = 6}, b = a;
    const mica_index hard[] = {1009, 2003, 3001, 4001, 5003, 6007};
    for (int k = 0; k < 6; k++) {
        a.dim[k] = b.dim[k] = 8;
        a.stride[k] = hard[k];
        b.stride[k] = hard[k] + 2 * k + 10;
    }
    b.data = block + 3;
    for (int n = 0; n < 1000; n++)
        CHECK(mica_tensor_overlap(&a, &b) != MICA_OVERLAP_EXACT);
    mica_tensor huge = {
        .data = block, .dtype = MICA_F64, .rank = 1, .dim = {3}, .stride = {PTRDIFF_MAX / 20}};
    CHECK(mica_tensor_overlap(&huge, &a) == MICA_OVERLAP_PARTIAL);
}

TEST(overlap_of_nothing_is_none)
{
    float data[4];
    mica_tensor full = mica_1d(data, 4), empty = mica_1d(data, 0), absent = mica_1d(NULL, 4);
    CHECK(mica_tensor_overlap(&full, &empty) == MICA_OVERLAP_NONE);
    CHECK(mica_tensor_overlap(&empty, &empty) == MICA_OVERLAP_NONE);
    CHECK(mica_tensor_overlap(&absent, &absent) == MICA_OVERLAP_NONE);
    CHECK(!mica_tensor_self_overlap(&empty));
}
