/* Element-wise operations, generated from the lists of kernels. */
#include <mica/ops/bits.h>
#include <mica/ops/elementwise.h>

#include "ops/check.h"
#include "ops/typed.h"
#include "ops/walk.h"

static mica_status unary(mica_context *ctx, const char *op, mica_map_fn *fn, const void *params,
                         const mica_tensor *dst, const mica_tensor *a)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"a", a, MICA_ARG_IN_PLACE, 0}};
    return mica_map_op(ctx, op, fn, params, args, 2);
}

static mica_status binary(mica_context *ctx, const char *op, mica_map_fn *fn, const void *params,
                          const mica_tensor *dst, const mica_tensor *a, const mica_tensor *b)
{
    mica_arg args[] = {
        {"dst", dst, MICA_ARG_OUT, 0}, {"a", a, MICA_ARG_IN_PLACE, 0}, {"b", b, MICA_ARG_IN_PLACE, 0}};
    return mica_map_op(ctx, op, fn, params, args, 3);
}

/* ---- In other types than f32 ---- */

static mica_status typed1(mica_context *ctx, const char *op, mica_typed_code code, const mica_tensor *dst,
                          const mica_tensor *a)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"a", a, MICA_ARG_IN_PLACE, 0}};
    return mica_typed_op(ctx, op, code, args, 2);
}

static mica_status typed2(mica_context *ctx, const char *op, mica_typed_code code, const mica_tensor *dst,
                          const mica_tensor *a, const mica_tensor *b)
{
    mica_arg args[] = {
        {"dst", dst, MICA_ARG_OUT, 0}, {"a", a, MICA_ARG_IN_PLACE, 0}, {"b", b, MICA_ARG_IN_PLACE, 0}};
    return mica_typed_op(ctx, op, code, args, 3);
}

/* ---- Operations with vector kernels ---- */

#define UNARY_OP(name)                                                                       \
    mica_status mica_##name(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a) \
    {                                                                                        \
        return unary(ctx, #name, MICA_KERNEL(ctx->kernels, map, name), NULL, dst, a);        \
    }
MICA_MAP_UNARY(UNARY_OP)

#define TYPED_UNARY_OP(name)                                                                 \
    mica_status mica_##name(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a) \
    {                                                                                        \
        if (mica_typed_takes(MICA_TYPED_##name, a))                                          \
            return typed1(ctx, #name, MICA_TYPED_##name, dst, a);                            \
        return unary(ctx, #name, MICA_KERNEL(ctx->kernels, map, name), NULL, dst, a);        \
    }
MICA_MAP_UNARY_TYPED(TYPED_UNARY_OP)

#define BINARY_OP(name)                                                                      \
    mica_status mica_##name(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, \
                            const mica_tensor *b)                                            \
    {                                                                                        \
        if (mica_typed_takes(MICA_TYPED_##name, a))                                          \
            return typed2(ctx, #name, MICA_TYPED_##name, dst, a, b);                         \
        return binary(ctx, #name, MICA_KERNEL(ctx->kernels, map, name), NULL, dst, a, b);    \
    }
MICA_MAP_BINARY(BINARY_OP)

/* ---- Operations without ---- */

/* A dtype that has no loops is refused as such. */
static mica_status typed_only(mica_context *ctx, const char *op, mica_typed_code code, mica_arg *args,
                              int count)
{
    const mica_tensor *a = args[1].tensor;
    if (a != NULL && (unsigned)a->dtype < MICA_DTYPE_COUNT &&
        (mica_typed_dtypes(code) & MICA_DTYPE_BIT(a->dtype)))
        return mica_typed_op(ctx, op, code, args, count);
    for (int k = 0; k < count; k++)
        args[k].dtypes = mica_typed_dtypes(code);
    return mica_check_args(ctx, op, args, count);
}

#define TYPED_BINARY(name)                                                                                  \
    mica_status mica_##name(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,                \
                            const mica_tensor *b)                                                           \
    {                                                                                                       \
        mica_arg args[] = {                                                                                 \
            {"dst", dst, MICA_ARG_OUT, 0}, {"a", a, MICA_ARG_IN_PLACE, 0}, {"b", b, MICA_ARG_IN_PLACE, 0}}; \
        return typed_only(ctx, #name, MICA_TYPED_##name, args, 3);                                          \
    }
TYPED_BINARY(mod)
TYPED_BINARY(fmod)
TYPED_BINARY(bit_and)
TYPED_BINARY(bit_or)
TYPED_BINARY(bit_xor)
TYPED_BINARY(shift_left)
TYPED_BINARY(shift_right)

mica_status mica_bit_not(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"a", a, MICA_ARG_IN_PLACE, 0}};
    return typed_only(ctx, "bit_not", MICA_TYPED_bit_not, args, 2);
}

#define SCALAR_OP(name)                                                                               \
    mica_status mica_##name(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, float s) \
    {                                                                                                 \
        return unary(ctx, #name, MICA_KERNEL(ctx->kernels, map, name), &s, dst, a);                   \
    }
MICA_MAP_SCALAR(SCALAR_OP)

mica_status mica_add_scaled(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a,
                            const mica_tensor *b, float s)
{
    return binary(ctx, "add_scaled", MICA_KERNEL(ctx->kernels, map, add_scaled), &s, dst, a, b);
}

mica_status mica_lerp(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, const mica_tensor *b,
                      float s)
{
    return binary(ctx, "lerp", MICA_KERNEL(ctx->kernels, map, lerp), &s, dst, a, b);
}

mica_status mica_clamp(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, float low, float high)
{
    if (!(low <= high))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "clamp: low is %g, high is %g: expected low <= high",
                         (double)low, (double)high);
    return unary(ctx, "clamp", MICA_KERNEL(ctx->kernels, map, clamp), (float[]){low, high}, dst, a);
}

/* ---- A caller's function: kernels that call it, on this thread only ---- */

static void call1(float *dst, const float *const *src, size_t n, const void *params)
{
    const mica_function1 *f = params;
    for (size_t i = 0; i < n; i++)
        dst[i] = f->call(f->user, src[0][i]);
}

static void call2(float *dst, const float *const *src, size_t n, const void *params)
{
    const mica_function2 *f = params;
    for (size_t i = 0; i < n; i++)
        dst[i] = f->call(f->user, src[0][i], src[1][i]);
}

static void call3(float *dst, const float *const *src, size_t n, const void *params)
{
    const mica_function3 *f = params;
    for (size_t i = 0; i < n; i++)
        dst[i] = f->call(f->user, src[0][i], src[1][i], src[2][i]);
}

typedef struct bound_function {
    mica_function2 f;
    float s;
} bound_function;

static void call_scalar(float *dst, const float *const *src, size_t n, const void *params)
{
    const bound_function *bound = params;
    for (size_t i = 0; i < n; i++)
        dst[i] = bound->f.call(bound->f.user, src[0][i], bound->s);
}

static mica_status apply(mica_context *ctx, const char *op, bool callable, mica_map_fn *fn,
                         const void *params, const mica_arg *args, int count)
{
    if (!callable)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: f has no function (NULL) to apply to %s", op,
                         args[1].name);
    MICA_TRY(mica_map_check(ctx, op, args, count));
    MICA_START(ctx, op, 0, NULL);
    mica_map_run_here(fn, params, args, count);
    return MICA_OK;
}

mica_status mica_apply1(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, mica_function1 f)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"a", a, MICA_ARG_IN_PLACE, 0}};
    return apply(ctx, "apply1", f.call != NULL, call1, &f, args, 2);
}

mica_status mica_apply2(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, const mica_tensor *b,
                        mica_function2 f)
{
    mica_arg args[] = {
        {"dst", dst, MICA_ARG_OUT, 0}, {"a", a, MICA_ARG_IN_PLACE, 0}, {"b", b, MICA_ARG_IN_PLACE, 0}};
    return apply(ctx, "apply2", f.call != NULL, call2, &f, args, 3);
}

mica_status mica_apply3(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, const mica_tensor *b,
                        const mica_tensor *c, mica_function3 f)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0},
                       {"a", a, MICA_ARG_IN_PLACE, 0},
                       {"b", b, MICA_ARG_IN_PLACE, 0},
                       {"c", c, MICA_ARG_IN_PLACE, 0}};
    return apply(ctx, "apply3", f.call != NULL, call3, &f, args, 4);
}

mica_status mica_apply_scalar(mica_context *ctx, const mica_tensor *dst, const mica_tensor *a, float s,
                              mica_function2 f)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"a", a, MICA_ARG_IN_PLACE, 0}};
    return apply(ctx, "apply_scalar", f.call != NULL, call_scalar, &(bound_function){f, s}, args, 2);
}
