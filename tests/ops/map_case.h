/* Cases of element-wise operations, each from the call and an expression of what it computes. */
#ifndef MICA_TESTS_OPS_MAP_CASE_H
#define MICA_TESTS_OPS_MAP_CASE_H

#include <math.h>

#include "ops/op_case.h"

/* dst of a random shape and `inputs` tensors that broadcast to it; c->f[0] and c->f[1] are numbers for the
 * operations that take some, f[0] <= f[1]. Errors count relative to the result, however small it is; in cases
 * without a fill function, which sum normal numbers, relative to 1 at least. */
void map_draw(op_call *c, test_random *r, int inputs);
void map_draw1(op_call *c, test_random *r);
void map_draw2(op_call *c, test_random *r);
void map_draw3(op_call *c, test_random *r);

/* The element of input k that meets element i of the destination. */
double map_at(const op_call *c, double *const *v, int k, size_t i);

/* Values over the whole range of f32, with zeros, infinities and NaN among them. */
void map_fill_wild(const op_call *c, test_random *r, int tensor, double *value, size_t count);

/* call: in terms of dst, x, y, z (tensors) and s, t (floats). expression: of a, b, c (elements), s, t. */
#define MAP_CASE(op, inputs, fill_function, allowed, call_, expression)                            \
    static mica_status run_##op(mica_context *ctx, const op_call *c)                               \
    {                                                                                              \
        const mica_tensor *dst = OP(c, 0), *x = OP(c, 1), *y = OP(c, 2), *z = OP(c, 3);            \
        float s = (float)c->f[0], t = (float)c->f[1];                                              \
        (void)x, (void)y, (void)z, (void)s, (void)t;                                               \
        return call_;                                                                              \
    }                                                                                              \
    static void reference_##op(const op_call *call, double *const *v)                              \
    {                                                                                              \
        for (size_t i = 0; i < op_count(call, 0); i++) {                                           \
            double a = map_at(call, v, 1, i), b = (inputs) > 1 ? map_at(call, v, 2, i) : 0.0;      \
            double c = (inputs) > 2 ? map_at(call, v, 3, i) : 0.0, s = call->f[0], t = call->f[1]; \
            (void)a, (void)b, (void)c, (void)s, (void)t;                                           \
            v[0][i] = expression;                                                                  \
        }                                                                                          \
    }                                                                                              \
    OP_CASE(op) = {.names = {"dst", "a", "b", "c"},                                                \
                   .outs = 1,                                                                      \
                   .ins = inputs,                                                                  \
                   .in_place = OP_BIT(1) | OP_BIT(2) | OP_BIT(3),                                  \
                   .any_shape = OP_BIT(0),                                                         \
                   .draw = map_draw##inputs,                                                       \
                   .fill = fill_function,                                                          \
                   .run = run_##op,                                                                \
                   .reference = reference_##op,                                                    \
                   .tolerance = allowed}

#endif
