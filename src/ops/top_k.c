/* The largest or smallest elements along an axis, and vectors that are hot in one place.
 *
 * Elements of every dtype are compared as unsigned keys of 64 bits in the same order. The best k of a line are kept in
 * a heap whose root is the worst of them; sorting it at the end gives them in order. */
#include <string.h>

#include "base/sort.h"
#include "ops/combine.h"
#include "ops/move.h"
#include "ops/reduce.h"

typedef struct item {
    uint64_t key; /* smaller comes first */
    int64_t rank; /* of equal keys, smaller comes first */
} item;

/* Floats of 8 bits and less are no numbers that anyone sorts. */
#define ORDERED                                                                                            \
    (MICA_DTYPES_NUMBER | MICA_DTYPE_BIT(MICA_F16) | MICA_DTYPE_BIT(MICA_BF16) | MICA_DTYPE_BIT(MICA_I4) | \
     MICA_DTYPE_BIT(MICA_U4) | MICA_DTYPE_BIT(MICA_I2) | MICA_DTYPE_BIT(MICA_U2))

#define HIGHEST (UINT64_C(1) << 63)

/* The bits of a float of `bits` bits, in order: NaN above all, both zeros alike. */
static uint64_t float_key(uint64_t bits, int width, uint64_t infinity)
{
    uint64_t sign = UINT64_C(1) << (width - 1), size = bits & (sign - 1);
    if (size > infinity)
        return UINT64_MAX;
    return (bits & sign) ? HIGHEST - size : HIGHEST + size;
}

static uint64_t key_of(const void *element, mica_dtype dtype)
{
    switch (dtype) {
#define SIGNED(code, type) \
    case MICA_##code:      \
        return (uint64_t)(int64_t) * (const type *)element + HIGHEST;
        SIGNED(I64, int64_t)
        SIGNED(I32, int32_t)
        SIGNED(I16, int16_t)
        SIGNED(I8, int8_t)
        SIGNED(I4, int8_t)
        SIGNED(I2, int8_t)
    case MICA_F32:
        return float_key(*(const uint32_t *)element, 32, UINT32_C(0x7f800000));
    case MICA_F64:
        return float_key(*(const uint64_t *)element, 64, UINT64_C(0x7ff0000000000000));
    case MICA_F16:
        return float_key(*(const uint16_t *)element, 16, 0x7c00);
    case MICA_BF16:
        return float_key(*(const uint16_t *)element, 16, 0x7f80);
    case MICA_U64:
        return *(const uint64_t *)element;
    case MICA_U32:
        return *(const uint32_t *)element;
    case MICA_U16:
        return *(const uint16_t *)element;
    default:
        return *(const uint8_t *)element;
    }
}

static bool before(const item *a, const item *b)
{
    return a->key != b->key ? a->key < b->key : a->rank < b->rank;
}

static int compare(const void *a, const void *b) { return before(a, b) ? -1 : before(b, a) ? 1 : 0; }

/* The item at i of a heap of n moves down until none below it comes after it. */
static void sink(item *heap, size_t i, size_t n)
{
    for (;;) {
        size_t worst = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++)
            if (before(&heap[worst], &heap[child]))
                worst = child;
        if (worst == i)
            return;
        item moved = heap[i];
        heap[i] = heap[worst];
        heap[worst] = moved;
        i = worst;
    }
}

/* The first k items of a line of n elements, in order. */
static void choose(item *heap, size_t k, const mica_tensor *src, const char *line, mica_index n,
                   mica_index stride, const mica_top_k_opts *opts)
{
    for (mica_index i = 0; i < n; i++) {
        uint64_t key = key_of(line + mica_offset_bytes(src->dtype, i * stride), src->dtype);
        item next = {opts->smallest ? key : ~key, opts->last ? -i : i};
        if ((size_t)i < k) {
            heap[i] = next;
            for (size_t j = k / 2; (size_t)i == k - 1 && j-- > 0;)
                sink(heap, j, k);
        } else if (before(&next, &heap[0])) {
            heap[0] = next;
            sink(heap, 0, k);
        }
    }
    mica_sort(heap, k, sizeof *heap, compare);
}

/* What was chosen of the line x, to lines of values and places. */
static void store(const item *heap, const mica_tensor *values, char *value, const mica_tensor *places,
                  char *place, const mica_tensor *src, const char *x, int axis, bool last)
{
    mica_combine_fn *set = mica_combine_for(MICA_SCATTER_SET, src->dtype);
    for (mica_index j = 0; j < values->dim[axis]; j++) {
        int64_t at = last ? -heap[j].rank : heap[j].rank;
        set(value + mica_offset_bytes(src->dtype, j * values->stride[axis]), 1,
            x + mica_offset_bytes(src->dtype, (mica_index)at * src->stride[axis]), 1, 1);
        void *to = place + mica_offset_bytes(places->dtype, j * places->stride[axis]);
        if (places->dtype == MICA_I32)
            *(int32_t *)to = (int32_t)at;
        else
            *(int64_t *)to = at;
    }
}

mica_status mica_top_k(mica_context *ctx, const mica_tensor *values, const mica_tensor *places,
                       const mica_tensor *src, const mica_top_k_opts *opts)
{
    static const mica_top_k_opts first = {.axis = 0};
    mica_arg args[] = {{"values", values, MICA_ARG_OUT, ORDERED},
                       {"places", places, MICA_ARG_OUT, MICA_DTYPES_INDEX},
                       {"src", src, 0, ORDERED}};
    int axis;
    item *heap;
    opts = opts != NULL ? opts : &first;
    MICA_TRY(mica_check_args(ctx, "top_k", args, 3));
    MICA_TRY(mica_check_axis(ctx, "top_k", opts->axis, "src", src, &axis));
    MICA_TRY(mica_check_same_shape(ctx, "top_k", "places", places, "values", values));
    mica_tensor want = *src;
    if (values->rank == src->rank && values->dim[axis] <= src->dim[axis])
        want.dim[axis] = values->dim[axis];
    MICA_TRY(mica_check_shape(ctx, "top_k", "values", values, src->rank, want.dim, "src", src));
    MICA_TRY(mica_check_combine(ctx, "top_k", MICA_SCATTER_SET, values, src));
    size_t k = (size_t)values->dim[axis];
    MICA_START(ctx, "top_k", k * sizeof *heap, (void **)&heap);
    if (mica_tensor_count(values) == 0)
        return MICA_OK;
    mica_tensor lines[] = {mica_reduce_part(values, ~(1u << axis)), mica_reduce_part(places, ~(1u << axis)),
                           mica_reduce_part(src, ~(1u << axis))};
    mica_walk walk;
    mica_walk_init(&walk, (const mica_tensor *[]){&lines[0], &lines[1], &lines[2]}, 3);
    mica_walk_place c = {{0}};
    for (size_t line = 0; line < walk.count; line++, mica_walk_advance(&walk, &c, 1)) {
        char *value = walk.data[0] + mica_offset_bytes(values->dtype, mica_walk_offset(&walk, &c, 0));
        char *place = walk.data[1] + mica_offset_bytes(places->dtype, mica_walk_offset(&walk, &c, 1));
        const char *x = walk.data[2] + mica_offset_bytes(src->dtype, mica_walk_offset(&walk, &c, 2));
        choose(heap, k, src, x, src->dim[axis], src->stride[axis], opts);
        store(heap, values, value, places, place, src, x, axis, opts->last);
    }
    return MICA_OK;
}

mica_status mica_one_hot(mica_context *ctx, const mica_tensor *dst, const mica_tensor *index,
                         const mica_tensor *values, int axis)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_ANY},
                       {"index", index, 0, MICA_DTYPES_INDEX},
                       {"values", values, 0, MICA_DTYPES_ANY}};
    MICA_TRY(mica_check_args(ctx, "one_hot", args, 3));
    MICA_TRY(mica_check_axis(ctx, "one_hot", axis, "dst", dst, &axis));
    mica_tensor lines = mica_reduce_part(dst, ~(1u << axis));
    MICA_TRY(mica_check_shape(ctx, "one_hot", "index", index, lines.rank, lines.dim, "dst", dst));
    MICA_TRY(mica_check_shape(ctx, "one_hot", "values", values, 1, (mica_index[]){2}, "dst", dst));
    if (values->dtype != dst->dtype)
        return mica_fail(ctx, MICA_ERR_DTYPE, "one_hot: dst %s is %s, values %s is %s: expected the same",
                         MICA_SHAPE(dst), mica_dtype_name(dst->dtype), MICA_SHAPE(values),
                         mica_dtype_name(values->dtype));
    MICA_START(ctx, "one_hot", 0, NULL);
    mica_tensor off = *values;
    off.rank = 0;
    mica_move(ctx, dst, &off);
    mica_combine_fn *set = mica_combine_for(MICA_SCATTER_SET, dst->dtype);
    mica_iter at = mica_iter_begin(index, 0, NULL);
    for (mica_iter line = mica_iter_begin(&lines, 0, NULL); line.valid;
         mica_iter_next(&line), mica_iter_next(&at)) {
        int64_t i = index->dtype == MICA_I32 ? *(int32_t *)at.element : *(int64_t *)at.element,
                size = dst->dim[axis];
        i += i < 0 ? size : 0;
        if (i >= 0 && i < size)
            set((char *)line.element + mica_offset_bytes(dst->dtype, (mica_index)i * dst->stride[axis]), 1,
                mica_element(values, values->stride[0]), 1, 1);
    }
    return MICA_OK;
}
