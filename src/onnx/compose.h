/* Arithmetic, by short names: calls that operators made of several others are full of. All take f32, where it is
 * computed. */
#ifndef MICA_SRC_ONNX_COMPOSE_H
#define MICA_SRC_ONNX_COMPOSE_H

#include "onnx/moves.h"

static inline mica_onnx_ref mica_onnx_add(mica_onnx_importing *n, mica_onnx_ref a, mica_onnx_ref b)
{
    return mica_onnx_op2(n, "add", a, b, NULL);
}

static inline mica_onnx_ref mica_onnx_sub(mica_onnx_importing *n, mica_onnx_ref a, mica_onnx_ref b)
{
    return mica_onnx_op2(n, "sub", a, b, NULL);
}

static inline mica_onnx_ref mica_onnx_mul(mica_onnx_importing *n, mica_onnx_ref a, mica_onnx_ref b)
{
    return mica_onnx_op2(n, "mul", a, b, NULL);
}

static inline mica_onnx_ref mica_onnx_div(mica_onnx_importing *n, mica_onnx_ref a, mica_onnx_ref b)
{
    return mica_onnx_op2(n, "div", a, b, NULL);
}

/* a s, a + s, s - a */
static inline mica_onnx_ref mica_onnx_scale(mica_onnx_importing *n, mica_onnx_ref a, float s)
{
    return mica_onnx_op1(n, "scale", a, &(mica_scalar_opts){s});
}

static inline mica_onnx_ref mica_onnx_plus(mica_onnx_importing *n, mica_onnx_ref a, float s)
{
    return mica_onnx_op1(n, "add_scalar", a, &(mica_scalar_opts){s});
}

static inline mica_onnx_ref mica_onnx_minus_from(mica_onnx_importing *n, mica_onnx_ref a, float s)
{
    return mica_onnx_op1(n, "rsub_scalar", a, &(mica_scalar_opts){s});
}

/* a where the condition is not 0, else b. */
static inline mica_onnx_ref mica_onnx_choose(mica_onnx_importing *n, mica_onnx_ref condition, mica_onnx_ref a,
                                             mica_onnx_ref b)
{
    return mica_onnx_op(n, "where", (mica_onnx_ref[]){condition, a, b}, 3, NULL);
}

/* Of Mica's options that read 0 as something else: 0 itself, as near as matters. */
static inline float mica_onnx_not_0(float value) { return value != 0.0f ? value : 1e-37f; }

#endif
