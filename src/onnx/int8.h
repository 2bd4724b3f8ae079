/* Values of quantized models as bytes. Inside, all of them are i8 with zero points of -128 to 127; those that a model
 * has as u8 are seen through affine_flip, which cancels where bytes meet bytes. */
#ifndef MICA_SRC_ONNX_INT8_H
#define MICA_SRC_ONNX_INT8_H

#include "onnx/fuse.h"

typedef struct mica_onnx_bytes {
    mica_onnx_ref ref; /* i8 */
    float scale;
    int zero;
} mica_onnx_bytes;

/* Whether bytes are to be kept as such: not for training, nor if they are to be roundings of floats. */
static inline bool mica_onnx_keeps_bytes(const mica_onnx_importing *n)
{
    return !mica_onnx_training(n) && !n->import->opts->rounded;
}

/* u8 or i8 as i8. */
mica_onnx_ref mica_onnx_as_i8(mica_onnx_importing *n, mica_onnx_ref ref);
/* One known scale above 0 and zero point (0: none) for values of this dtype, u8 or i8; false: they are not that. */
bool mica_onnx_read_scale(mica_onnx_importing *n, mica_onnx_bytes *out, mica_onnx_ref scale,
                          mica_onnx_ref zero, mica_dtype dtype);
/* The bytes that a float is made of by DequantizeLinear; false: it is not. */
bool mica_onnx_bytes_of(const mica_onnx_importing *n, mica_onnx_ref ref, mica_onnx_bytes *out);
/* Output 0 of the node is y, i8, as the dtype that the model has. */
void mica_onnx_give_bytes(mica_onnx_importing *n, mica_onnx_ref y, mica_dtype dtype);

#endif
