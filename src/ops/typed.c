/* Arithmetic in dtypes other than f32: the loops of each type, and the walk over any layout. */
#include "ops/typed.h"

#include <math.h>

#include "base/parallel.h"
#include "ops/reduce.h"
#include "ops/walk.h"

#define BLOCK ((size_t)16384) /* elements in a block of parallel work */

/* dst[i] = f(src[0][i], ...), each with its stride: stride[0] is dst's. */
typedef void typed_fn(void *dst, const void *const *src, const mica_index *stride, mica_index n);
typedef void fold_fn(void *sum, const void *line, mica_index stride, mica_index n, bool first);

/* ---- Loops ---- */

#define PASTE(name, type) name##_##type

/* clang-format off */
#define T int8_t
#define U uint32_t
#define TYPE(name) PASTE(name, i8)
#define IS_FLOAT 0
#define IS_SIGNED 1
#include "ops/typed_type.h"
#define T int16_t
#define U uint32_t
#define TYPE(name) PASTE(name, i16)
#define IS_FLOAT 0
#define IS_SIGNED 1
#include "ops/typed_type.h"
#define T int32_t
#define U uint32_t
#define TYPE(name) PASTE(name, i32)
#define IS_FLOAT 0
#define IS_SIGNED 1
#include "ops/typed_type.h"
#define T int64_t
#define U uint64_t
#define TYPE(name) PASTE(name, i64)
#define IS_FLOAT 0
#define IS_SIGNED 1
#include "ops/typed_type.h"
#define T uint8_t
#define U uint32_t
#define TYPE(name) PASTE(name, u8)
#define IS_FLOAT 0
#define IS_SIGNED 0
#include "ops/typed_type.h"
#define T uint16_t
#define U uint32_t
#define TYPE(name) PASTE(name, u16)
#define IS_FLOAT 0
#define IS_SIGNED 0
#include "ops/typed_type.h"
#define T uint32_t
#define U uint32_t
#define TYPE(name) PASTE(name, u32)
#define IS_FLOAT 0
#define IS_SIGNED 0
#include "ops/typed_type.h"
#define T uint64_t
#define U uint64_t
#define TYPE(name) PASTE(name, u64)
#define IS_FLOAT 0
#define IS_SIGNED 0
#include "ops/typed_type.h"
#define T double
#define U double
#define TYPE(name) PASTE(name, f64)
#define FLOAT(name) name
#define IS_FLOAT 1
#define IS_SIGNED 1
#include "ops/typed_type.h"
#define T float
#define U float
#define TYPE(name) PASTE(name, f32)
#define FLOAT(name) name##f
#define IS_FLOAT 1
#define IS_SIGNED 1
#include "ops/typed_type.h"
/* clang-format on */

static void bit_not_bool(void *dst, const void *const *src, const mica_index *stride, mica_index n)
{
    uint8_t *out = dst;
    const uint8_t *x = src[0];
    for (mica_index i = 0; i < n; i++)
        out[i * stride[0]] = x[i * stride[1]] == 0;
}

/* What there is of each type. */
typedef struct typed_loops {
    typed_fn *map[MICA_TYPED_CODES];
    fold_fn *fold[MICA_FOLD_MIN + 1];
    void (*divide)(void *sum, mica_index n);
    mica_index (*find)(const void *line, mica_index stride, mica_index n, bool largest);
    void (*dot)(void *dst, const void *row, mica_index row_stride, const void *column,
                mica_index column_stride, mica_index n);
} typed_loops;

#define PART(name, type) [MICA_TYPED_##name] = name##_##type,
#define OTHERS(type)                                                                                        \
    .fold = {fold_sum_##type, fold_prod_##type, fold_max_##type, fold_min_##type}, .divide = divide_##type, \
    .find = find_##type, .dot = dot_##type
#define PART_i8(name)  PART(name, i8)
#define PART_i16(name) PART(name, i16)
#define PART_i32(name) PART(name, i32)
#define PART_i64(name) PART(name, i64)
#define PART_u8(name)  PART(name, u8)
#define PART_u16(name) PART(name, u16)
#define PART_u32(name) PART(name, u32)
#define PART_u64(name) PART(name, u64)
#define PART_f64(name) PART(name, f64)
#define PART_f32(name) PART(name, f32)
#define INTEGER_LOOPS(type)                                                                 \
    {                                                                                       \
        .map = {MICA_TYPED_ANY(PART_##type) MICA_TYPED_INTEGERS(PART_##type)}, OTHERS(type) \
    }
#define FLOAT_LOOPS(type)                                                                 \
    {                                                                                     \
        .map = {MICA_TYPED_ANY(PART_##type) MICA_TYPED_FLOATS(PART_##type)}, OTHERS(type) \
    }

static const typed_loops loops[] = {
    [MICA_F32] = FLOAT_LOOPS(f32),
    [MICA_F64] = FLOAT_LOOPS(f64),
    [MICA_I64] = INTEGER_LOOPS(i64),
    [MICA_I32] = INTEGER_LOOPS(i32),
    [MICA_I16] = INTEGER_LOOPS(i16),
    [MICA_I8] = INTEGER_LOOPS(i8),
    [MICA_U8] = INTEGER_LOOPS(u8),
    [MICA_U16] = INTEGER_LOOPS(u16),
    [MICA_U32] = INTEGER_LOOPS(u32),
    [MICA_U64] = INTEGER_LOOPS(u64),
    /* 0 and 1: bits are truths. */
    [MICA_BOOL] = {.map = {PART_u8(eq) PART_u8(ne) PART_u8(lt) PART_u8(le) PART_u8(gt) PART_u8(ge)
                               PART_u8(min) PART_u8(max) PART_u8(bit_and) PART_u8(bit_or)
                                   PART_u8(bit_xor)[MICA_TYPED_bit_not] = bit_not_bool}},
};

uint64_t mica_typed_dtypes(mica_typed_code code)
{
    uint64_t mask = 0;
    for (unsigned d = 0; d < sizeof loops / sizeof loops[0]; d++)
        if (loops[d].map[code] != NULL)
            mask |= MICA_DTYPE_BIT(d);
    return mask;
}

/* ---- Element by element ---- */

typedef struct typed_job {
    mica_walk walk;
    typed_fn *fn;
} typed_job;

static void map_block(void *work, size_t block, int thread)
{
    (void)thread;
    const typed_job *job = work;
    const mica_walk *w = &job->walk;
    int last = w->rank - 1;
    size_t position = block * BLOCK, end = mica_least(position + BLOCK, w->count);
    mica_walk_place c = mica_walk_at(w, position);
    while (position < end) {
        mica_index n = mica_least_index(w->dim[last] - c.index[last], (mica_index)(end - position));
        const void *src[MICA_WALK_OPERANDS];
        mica_index stride[MICA_WALK_OPERANDS];
        void *dst = NULL;
        for (int k = 0; k < w->operands; k++) {
            char *at = w->data[k] + mica_walk_offset(w, &c, k) * (mica_index)mica_dtype_bytes(w->dtype[k]);
            stride[k] = w->stride[k][last];
            if (k == 0)
                dst = at;
            else
                src[k - 1] = at;
        }
        job->fn(dst, src, stride, n);
        position += (size_t)n;
        mica_walk_advance(w, &c, n);
    }
}

static mica_status map(mica_context *ctx, const char *op, typed_fn *fn, const mica_arg *args, int count)
{
    MICA_TRY(mica_map_check(ctx, op, args, count));
    MICA_START(ctx, op, 0, NULL);
    const mica_tensor *operands[MICA_WALK_OPERANDS];
    for (int k = 0; k < count; k++)
        operands[k] = args[k].tensor;
    typed_job job = {.fn = fn};
    mica_walk_init(&job.walk, operands, count);
    mica_parallel(ctx, mica_div_up(job.walk.count, BLOCK), map_block, &job);
    return MICA_OK;
}

mica_status mica_typed_op(mica_context *ctx, const char *op, mica_typed_code code, mica_arg *args, int count)
{
    mica_dtype dtype = args[1].tensor->dtype;
    bool compares = code >= MICA_TYPED_eq && code <= MICA_TYPED_ge;
    for (int k = 0; k < count; k++)
        args[k].dtypes = MICA_DTYPE_BIT(dtype);
    if (compares)
        args[0].dtypes = MICA_DTYPE_BIT(MICA_BOOL) | MICA_DTYPE_BIT(MICA_U8);
    return map(ctx, op, loops[dtype].map[code], args, count);
}

/* ---- Choices: by the size of an element, whatever it is, and that of the condition ---- */

#define CHOOSE(name, type, condition)                                                           \
    static void name(void *dst, const void *const *src, const mica_index *stride, mica_index n) \
    {                                                                                           \
        type *out = dst;                                                                        \
        const condition *c = src[0];                                                            \
        const type *a = src[1], *b = src[2];                                                    \
        for (mica_index i = 0; i < n; i++)                                                      \
            out[i * stride[0]] = c[i * stride[1]] != 0 ? a[i * stride[2]] : b[i * stride[3]];   \
    }
CHOOSE(choose_1, uint8_t, uint8_t)
CHOOSE(choose_2, uint16_t, uint8_t)
CHOOSE(choose_4, uint32_t, uint8_t)
CHOOSE(choose_8, uint64_t, uint8_t)
CHOOSE(choose_1_f32, uint8_t, float)
CHOOSE(choose_2_f32, uint16_t, float)
CHOOSE(choose_4_f32, uint32_t, float)
CHOOSE(choose_8_f32, uint64_t, float)

mica_status mica_typed_where(mica_context *ctx, const char *op, mica_arg *args)
{
    static typed_fn *const choose[2][4] = {{choose_1, choose_2, choose_4, choose_8},
                                           {choose_1_f32, choose_2_f32, choose_4_f32, choose_8_f32}};
    mica_dtype dtype = args[2].tensor->dtype;
    size_t bytes = mica_dtype_bytes(dtype);
    for (int k = 0; k < 4; k++)
        args[k].dtypes = k == 1 ? MICA_DTYPES_MASK : MICA_DTYPE_BIT(dtype);
    bool wide = args[1].tensor != NULL && args[1].tensor->dtype == MICA_F32;
    return map(ctx, op, choose[wide][bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3], args, 4);
}

/* ---- Reductions: an output at a time, from lines along the last reduced axis ---- */

typedef struct reduce_job {
    mica_walk outs;   /* operand 0: kept, 1: a, at the first element that each is made of */
    mica_tensor part; /* a along the reduced axes */
    mica_index lines; /* of the part, along its last axis */
    const typed_loops *loops;
    mica_typed_fold fold;
    bool arg, largest;
    size_t per_block;
} reduce_job;

static void fold_part(const reduce_job *job, char *sum, const char *a)
{
    const mica_tensor *p = &job->part;
    int last = p->rank - 1;
    mica_index bytes = (mica_index)mica_dtype_bytes(p->dtype), n = last < 0 ? 1 : p->dim[last];
    fold_fn *fold = job->loops->fold[job->fold == MICA_FOLD_MEAN ? MICA_FOLD_SUM : job->fold];
    bool first = true;
    if (job->lines * n == 0)
        fold(sum, a, 0, 0, true);
    for (mica_index line = 0; line < job->lines && n > 0; line++, first = false) {
        mica_index rest = line, offset = 0;
        for (int k = last - 1; k >= 0; k--) {
            offset += rest % p->dim[k] * p->stride[k];
            rest /= p->dim[k];
        }
        fold(sum, a + offset * bytes, last < 0 ? 1 : p->stride[last], n, first);
    }
    if (job->fold == MICA_FOLD_MEAN)
        job->loops->divide(sum, job->lines * n);
}

static void reduce_block(void *work, size_t block, int thread)
{
    (void)thread;
    const reduce_job *job = work;
    const mica_walk *w = &job->outs;
    size_t end = mica_least((block + 1) * job->per_block, w->count);
    for (size_t i = block * job->per_block; i < end; i++) {
        mica_walk_place c = mica_walk_at(w, i);
        char *out = w->data[0] + mica_walk_offset(w, &c, 0) * (mica_index)mica_dtype_bytes(w->dtype[0]);
        const char *a = w->data[1] + mica_walk_offset(w, &c, 1) * (mica_index)mica_dtype_bytes(w->dtype[1]);
        if (!job->arg) {
            fold_part(job, out, a);
            continue;
        }
        mica_index at = job->loops->find(a, job->part.stride[0], job->part.dim[0], job->largest);
        if (w->dtype[0] == MICA_I32)
            *(int32_t *)(void *)out = (int32_t)at;
        else
            *(int64_t *)(void *)out = (int64_t)at;
    }
}

static void reduce(mica_context *ctx, reduce_job *job, const mica_tensor *kept, const mica_tensor *a,
                   unsigned mask)
{
    mica_tensor outs = mica_reduce_part(a, ~mask);
    job->part = mica_reduce_part(a, mask);
    job->loops = &loops[a->dtype];
    job->lines = 1;
    for (int k = 0; k < job->part.rank - 1; k++)
        job->lines *= job->part.dim[k];
    mica_walk_init(&job->outs, (const mica_tensor *[]){kept, &outs}, 2);
    job->per_block = BLOCK / (mica_tensor_count(&job->part) + 1) + 1;
    mica_parallel(ctx, mica_div_up(job->outs.count, job->per_block), reduce_block, job);
}

void mica_typed_reduce(mica_context *ctx, mica_typed_fold fold, const mica_tensor *kept, const mica_tensor *a,
                       unsigned mask)
{
    reduce_job job = {.fold = fold};
    reduce(ctx, &job, kept, a, mask);
}

void mica_typed_arg(mica_context *ctx, bool largest, const mica_tensor *kept, const mica_tensor *a, int axis)
{
    reduce_job job = {.arg = true, .largest = largest};
    reduce(ctx, &job, kept, a, 1u << axis);
}

/* ---- Matrix products: a row of one at a time ---- */

typedef struct product_job {
    mica_tensor dst, a, b; /* of one rank */
    const typed_loops *loops;
} product_job;

static void product_row(void *work, size_t row, int thread)
{
    (void)thread;
    const product_job *job = work;
    int rank = job->dst.rank;
    mica_index rest = (mica_index)row, at[3] = {0}, bytes = (mica_index)mica_dtype_bytes(job->dst.dtype);
    for (int k = rank - 2; k >= 0; k--) {
        mica_index index = rest % job->dst.dim[k];
        rest /= job->dst.dim[k];
        at[0] += index * job->dst.stride[k];
        at[1] += index * job->a.stride[k];
        at[2] += k < rank - 2 ? index * job->b.stride[k] : 0;
    }
    for (mica_index n = 0; n < job->dst.dim[rank - 1]; n++)
        job->loops->dot((char *)job->dst.data + (at[0] + n * job->dst.stride[rank - 1]) * bytes,
                        (char *)job->a.data + at[1] * bytes, job->a.stride[rank - 1],
                        (char *)job->b.data + (at[2] + n * job->b.stride[rank - 1]) * bytes,
                        job->b.stride[rank - 2], job->a.dim[rank - 1]);
}

void mica_typed_matmul(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, const mica_tensor *b)
{
    product_job job = {*dst, *a, *b, &loops[dst->dtype]};
    mica_index rows = 1;
    for (int k = 0; k < dst->rank - 1; k++)
        rows *= dst->dim[k];
    if (mica_tensor_count(dst) > 0)
        mica_parallel(ctx, (size_t)rows, product_row, &job);
}
