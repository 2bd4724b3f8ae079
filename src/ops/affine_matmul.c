/* Products of two int8 matrices with zero points, as those of attention: both sides become numbers of 16 bits less
 * their zero points, which are at most 255, and multiply by pairs.
 *
 * Scratch, for each thread: columns of b by pairs, in panels | rows of a | sums of a panel. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "ops/int8.h"

#define ROWS   ((size_t)56) /* of a, at a time */
#define PANELS ((size_t)8)  /* of b, at most */
#define SLACK  ((size_t)4)  /* rows of sums that are read behind the last */
#define UNITS  ((size_t)8)  /* of work, for each thread, at least */

typedef struct product {
    const mica_int8_kernels *kernels;
    size_t batch, rows, values, columns; /* products of [rows, values] and [values, columns] */
    size_t padded;                       /* values, rounded up to pairs */
    size_t panels, at_once, groups;      /* of columns; of a unit; units of a product */
    const int8_t *a, *b;
    char *y;
    int32_t zero[2];
    mica_int8_finish finish;
    size_t size; /* of a result, in bytes */
    char *own;
    size_t own_bytes, b_bytes, a_bytes;
} product;

#if !defined(MICA_SMALL)

static size_t panel_of(const product *p) { return p->kernels->panel; }

static size_t scratch_of(const mica_context *ctx, product *p)
{
    size_t panel = panel_of(p), panels = mica_least(p->panels, PANELS);
    p->b_bytes = mica_align_up(panels * panel * p->padded * sizeof(int16_t));
    p->a_bytes = mica_align_up(ROWS * p->padded * sizeof(int16_t));
    p->own_bytes = p->b_bytes + p->a_bytes + mica_align_up((ROWS + SLACK) * panel * sizeof(int32_t));
    return (size_t)ctx->threads * p->own_bytes;
}

/* A panel of columns of b, as kernels->pairs reads it. */
static void pack_columns(const product *p, int16_t *to, const int8_t *b, size_t columns)
{
    size_t panel = panel_of(p);
    for (size_t k = 0; k < p->values; k += 2, to += 2 * panel) {
        const int8_t *row = b + k * p->columns, *next = k + 1 < p->values ? row + p->columns : row;
        memset(to + 2 * columns, 0, 2 * (panel - columns) * sizeof *to);
        p->kernels->pair_rows(to, row, next, columns, p->zero[1]); /* behind the last, rows of a have a 0 */
    }
}

static void run_unit(void *work, size_t unit, int thread)
{
    const product *p = work;
    size_t panel = panel_of(p), which = unit / p->groups, first = unit % p->groups * p->at_once,
           end = mica_least(first + p->at_once, p->panels);
    const int8_t *a = p->a + which * p->rows * p->values, *b = p->b + which * p->values * p->columns;
    char *y = p->y + which * p->rows * p->columns * p->size, *own = p->own + (size_t)thread * p->own_bytes;
    int16_t *packed = (int16_t *)(void *)own, *rows = (int16_t *)(void *)(own + p->b_bytes);
    int32_t *sum = (int32_t *)(void *)(own + p->b_bytes + p->a_bytes);
    for (size_t k = first; k < end; k++)
        pack_columns(p, packed + (k - first) * panel * p->padded, b + k * panel,
                     mica_least(panel, p->columns - k * panel));
    for (size_t row = 0; row < p->rows; row += ROWS) {
        size_t count = mica_least(ROWS, p->rows - row);
        for (size_t r = 0; r < count; r++) {
            if (p->padded > p->values)
                rows[r * p->padded + p->values] = 0;
            p->kernels->less_zero(rows + r * p->padded, a + (row + r) * p->values, p->values, p->zero[0]);
        }
        for (size_t k = first; k < end; k++) {
            p->kernels->pairs(sum, rows, p->padded, count, p->padded / 2,
                              packed + (k - first) * panel * p->padded);
            memset(sum + count * panel, 0, SLACK * panel * sizeof *sum);
            p->kernels->finish_panel(y + (row * p->columns + k * panel) * p->size, p->columns * p->size, sum,
                                     count, mica_least(panel, p->columns - k * panel), &p->finish, 0);
        }
    }
}

static void run(mica_context *ctx, product *p, void *scratch, double sums)
{
    size_t wanted = ctx->threads > 1 ? mica_div_up((size_t)ctx->threads * UNITS, p->batch) : 1;
    size_t parts = mica_most(1, mica_least(wanted, p->panels));
    p->own = scratch;
    p->at_once = mica_most(1, mica_least(mica_div_up(p->panels, parts), PANELS));
    p->groups = mica_div_up(p->panels, p->at_once);
    mica_parallel_sums(ctx, sums, p->batch * p->groups, run_unit, p);
}

#else

static size_t scratch_of(const mica_context *ctx, product *p)
{
    (void)ctx;
    (void)p;
    return 0;
}

static void run(mica_context *ctx, product *p, void *scratch, double sums)
{
    (void)ctx;
    (void)scratch;
    (void)sums;
    for (size_t i = 0; i < p->batch * p->rows * p->columns; i++) {
        const int8_t *a = p->a + i / p->columns * p->values,
                     *b = p->b + i / (p->rows * p->columns) * p->values * p->columns + i % p->columns;
        int32_t sum = 0;
        for (size_t k = 0; k < p->values; k++)
            sum += (a[k] - p->zero[0]) * (b[k * p->columns] - p->zero[1]);
        if (p->finish.kind == MICA_INT8_FLOATS)
            ((float *)(void *)p->y)[i] = (float)sum * *p->finish.factor;
        else
            p->kernels->finish((int8_t *)p->y + i, &sum, 1, &p->finish, 0);
    }
}

#endif

static mica_status check(mica_context *ctx, const char *op, product *p, const mica_arg args[3],
                         const mica_affine_matmul_opts *o)
{
    const mica_tensor *y = args[0].tensor, *a = args[1].tensor, *b = args[2].tensor;
    int32_t limit[2] = {0};
    MICA_TRY(mica_check_args(ctx, op, args, 3));
    MICA_TRY(mica_check_rank(ctx, op, "a", a, 2, MICA_MAX_RANK));
    int rank = a->rank;
    bool fits = b->rank == rank && b->dim[rank - 2] == a->dim[rank - 1];
    for (int k = 0; k < rank - 2 && fits; k++)
        fits = a->dim[k] == b->dim[k];
    if (!fits || a->dim[rank - 1] > MICA_AFFINE_MATMUL_VALUES)
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "%s: a is %s, b is %s: expected [..., M, K] and [..., K, N], K at most %d", op,
                         MICA_SHAPE(a), MICA_SHAPE(b), MICA_AFFINE_MATMUL_VALUES);
    mica_index dims[MICA_MAX_RANK];
    p->batch = 1;
    for (int k = 0; k < rank; k++)
        dims[k] = k < rank - 1 ? a->dim[k] : b->dim[k];
    for (int k = 0; k < rank - 2; k++)
        p->batch *= (size_t)a->dim[k];
    MICA_TRY(mica_check_shape(ctx, op, "y", y, rank, dims, "a", a));
    p->rows = (size_t)a->dim[rank - 2];
    p->values = (size_t)a->dim[rank - 1];
    p->columns = (size_t)b->dim[rank - 1];
    p->padded = (p->values + 1) / 2 * 2;
    MICA_TRY(mica_affine_check_zero(ctx, op, o->a_zero));
    MICA_TRY(mica_affine_check_zero(ctx, op, o->b_zero));
    MICA_TRY(mica_affine_check_zero(ctx, op, o->y_zero));
    MICA_TRY(mica_affine_check_limits(ctx, op, o->low, o->high, limit));
    if (!(o->factor >= 0.0f) || !isfinite(o->factor))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: factor is %g: expected a finite number >= 0", op,
                         (double)o->factor);
    p->zero[0] = o->a_zero;
    p->zero[1] = o->b_zero;
    p->finish = (mica_int8_finish){.kind = o->dtype == MICA_F32 ? MICA_INT8_FLOATS : MICA_INT8_AFFINE,
                                   .factor = &o->factor,
                                   .zero = o->y_zero,
                                   .low = limit[0],
                                   .high = limit[1]};
    p->size = mica_int8_result_bytes(p->finish.kind);
    return MICA_OK;
}

mica_status mica_affine_matmul(mica_context *ctx, const mica_tensor *y, const mica_tensor *a,
                               const mica_tensor *b, const mica_affine_matmul_opts *opts)
{
    const char *op = "affine_matmul";
    static const mica_affine_matmul_opts none = {0};
    opts = opts != NULL ? opts : &none;
    if (opts->dtype != MICA_I8 && opts->dtype != MICA_F32)
        return mica_fail(ctx, MICA_ERR_DTYPE, "%s: dtype is %s: expected i8 or f32", op,
                         mica_dtype_name(opts->dtype));
    mica_arg args[] = {{"y", y, MICA_ARG_OUT, MICA_DTYPE_BIT(opts->dtype)},
                       {"a", a, 0, MICA_I8_ONLY},
                       {"b", b, 0, MICA_I8_ONLY}};
    product p = {.kernels = MICA_FAMILY(ctx->kernels, int8)};
    MICA_TRY(check(ctx, op, &p, args, opts));
#if !defined(MICA_SMALL)
    p.panels = mica_div_up(p.columns, panel_of(&p));
#endif
    double sums = (double)p.batch * (double)p.rows * (double)p.columns * (double)p.values;
    mica_count_flops(ctx, 2.0 * sums);
    mica_contiguous dense;
    void *scratch;
    mica_contiguous_plan(&dense, args, 3);
    bool empty = p.batch * p.rows * p.columns == 0;
    MICA_START(ctx, op, dense.bytes + (empty ? 0 : scratch_of(ctx, &p)), &scratch);
    scratch = mica_contiguous_load(&dense, scratch);
    p.y = dense.data[0];
    p.a = dense.data[1];
    p.b = dense.data[2];
    if (empty)
        return MICA_OK;
    run(ctx, &p, scratch, sums);
    mica_contiguous_store(&dense);
    return MICA_OK;
}
