/* Rotary position embedding (RoPE): pairs of features rotated by an angle proportional to the position.
 *
 *     x, y [..., T, D]      table [P, R]      R even, at most D
 *
 * Pair i of the R / 2 pairs of row t is rotated by the angle (offset + t) / base^(2i / R); features from R on
 * are unchanged. A pair is (x[i], x[i + R / 2]), as in Llama and NeoX, or with `interleaved` (x[2i],
 * x[2i + 1]), as in the paper and GPT-J. The scores of two rows then depend only on their distance. */
#ifndef MICA_OPS_ROTARY_H
#define MICA_OPS_ROTARY_H

#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_rotary_opts {
    bool interleaved;
    mica_index offset; /* the position of row 0, as with a KV cache: offset + T is at most P */
} mica_rotary_opts;

/* Row p of the table: the R / 2 cosines of position p, then its sines, computed in double precision. base 0:
 * 10000. */
MICA_API mica_status mica_rotary_table(mica_context *ctx, const mica_tensor *table, double base);

/* All f32, of any layout. y may be exactly x. */
MICA_API mica_status mica_rotary(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                 const mica_tensor *table, const mica_rotary_opts *opts);
/* Rotates back. dx may be exactly dy. */
MICA_API mica_status mica_rotary_backward(mica_context *ctx, const mica_tensor *dx, const mica_tensor *dy,
                                          const mica_tensor *table, const mica_rotary_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
