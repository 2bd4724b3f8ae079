/* Sums along an axis, up to each element. */
#include "ops/combine.h"
#include "ops/reduce.h"

/* y[i] is the sum of x[0] to x[i], or to x[i - 1]; y may be x. f32 is summed in double precision. */
typedef void scan_fn(void *y, mica_index y_stride, const void *x, mica_index x_stride, mica_index n,
                     bool exclusive);

#define SCAN(code, type, wide, add)                                                                         \
    static void scan_##code(void *y, mica_index y_stride, const void *x, mica_index x_stride, mica_index n, \
                            bool exclusive)                                                                 \
    {                                                                                                       \
        wide sum = 0;                                                                                       \
        for (mica_index i = 0; i < n; i++) {                                                                \
            type value = ((const type *)x)[i * x_stride];                                                   \
            wide old = sum;                                                                                 \
            add;                                                                                            \
            ((type *)y)[i * y_stride] = (type)(exclusive ? old : sum);                                      \
        }                                                                                                   \
    }
#define SCAN_INTEGER(code, type) SCAN(code, type, type, (void)__builtin_add_overflow(sum, value, &sum))
MICA_INTEGER_LIST(SCAN_INTEGER)
SCAN(F32, float, double, sum += (double)value)
SCAN(F64, double, double, sum += value)

static scan_fn *const scans[MICA_DTYPE_COUNT] = {
#define ROW(code, type) [MICA_##code] = scan_##code,
    MICA_NUMBER_LIST(ROW)};

mica_status mica_cumsum(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                        const mica_cumsum_opts *opts)
{
    static const mica_cumsum_opts first = {.axis = 0};
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, MICA_DTYPES_NUMBER},
                       {"src", src, MICA_ARG_IN_PLACE, MICA_DTYPES_NUMBER}};
    int axis;
    opts = opts != NULL ? opts : &first;
    MICA_TRY(mica_check_args(ctx, "cumsum", args, 2));
    MICA_TRY(mica_check_axis(ctx, "cumsum", opts->axis, "src", src, &axis));
    MICA_TRY(mica_check_same_shape(ctx, "cumsum", "dst", dst, "src", src));
    MICA_TRY(mica_check_combine(ctx, "cumsum", MICA_SCATTER_ADD, dst, src));
    MICA_START(ctx, "cumsum", 0, NULL);
    if (mica_tensor_count(src) == 0)
        return MICA_OK;
    mica_tensor to = mica_reduce_part(dst, ~(1u << axis)), from = mica_reduce_part(src, ~(1u << axis));
    mica_walk walk;
    mica_walk_init(&walk, (const mica_tensor *[]){&to, &from}, 2);
    mica_walk_place c = {{0}};
    mica_index n = src->dim[axis], step[] = {dst->stride[axis], src->stride[axis]};
    for (size_t line = 0; line < walk.count; line++, mica_walk_advance(&walk, &c, 1)) {
        mica_index at[] = {mica_walk_offset(&walk, &c, 0), mica_walk_offset(&walk, &c, 1)};
        for (int k = 0; opts->reverse && k < 2; k++)
            at[k] += (n - 1) * step[k];
        scans[src->dtype](walk.data[0] + mica_offset_bytes(dst->dtype, at[0]),
                          opts->reverse ? -step[0] : step[0],
                          walk.data[1] + mica_offset_bytes(src->dtype, at[1]),
                          opts->reverse ? -step[1] : step[1], n, opts->exclusive);
    }
    return MICA_OK;
}
