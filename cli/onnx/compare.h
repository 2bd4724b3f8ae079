/* Whether a tensor has the values that were expected, by the rule of ONNX's own test runner. */
#ifndef MICA_CLI_ONNX_COMPARE_H
#define MICA_CLI_ONNX_COMPARE_H

#include <mica/tensor.h>

typedef struct tolerance {
    double relative, absolute;
    bool integers; /* for integers too, which otherwise must be equal */
} tolerance;

/* dtype and shape are equal; floats within absolute + relative * |expected|, where NaN equals NaN and infinity itself;
 * anything else exactly. If not, why[size] says what came and what was expected. */
bool same_tensors(char *why, size_t size, mica_context *ctx, const mica_tensor *got,
                  const mica_tensor *expected, tolerance within);

#endif
