/* Nets in int8: a float net becomes one with int8 activations and weights and the arithmetic of <mica/ops/int8.h>.
 * docs/int8.md defines it, and describes the layout of the weights in the new net.
 *
 *     mica_netfile_build(net, ...);                  // or with the builders
 *     mica_int8_create(net, &q);                     // before compiling, so that results can be observed
 *     mica_net_compile(net, NULL); mica_net_bind(net, NULL, 0); mica_weights_load(net, ...);
 *     for (each batch of some data) {
 *         ...                                        // fill the inputs
 *         mica_net_forward(net);
 *         mica_int8_collect(q);                      // ranges
 *     }
 *     mica_int8_choose(q, &(mica_int8_opts){.method = MICA_INT8_MINMAX});
 *     mica_net_create(ctx, &bytes);
 *     mica_int8_build(q, bytes);                     // a net like any other, with inputs and outputs of the same names
 *     mica_net_compile(bytes, NULL); mica_net_bind(bytes, NULL, 0);
 *     mica_int8_weights_set(q, bytes);               // from `net`; later from a file: mica_weights_load
 *     mica_int8_destroy(q);
 *
 * Products (dense layers, convolutions) with the batch norm and relu or relu6 after them become one call; pooling,
 * additions, concatenation and changes of shape work on bytes. What has no int8 operation stays float, between
 * dequantize and quantize. Inputs and outputs are f32. The new net is for inference only. */
#ifndef MICA_INT8_H
#define MICA_INT8_H

#include <mica/net.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_int8 mica_int8;

/* How a range is chosen from the values observed: all of them, all but the largest few, or the range that loses the
 * least information (smallest Kullback-Leibler divergence). */
#define MICA_INT8_METHODS(X)    \
    X(MINMAX, "minmax")         \
    X(PERCENTILE, "percentile") \
    X(KL, "kl")
typedef enum mica_int8_method {
#define MICA_INT8_METHOD_ENUM(method, text) MICA_INT8_##method,
    MICA_INT8_METHODS(MICA_INT8_METHOD_ENUM)
#undef MICA_INT8_METHOD_ENUM
        MICA_INT8_METHOD_COUNT
} mica_int8_method;

typedef struct mica_int8_opts {
    mica_int8_method method;
    double percentile; /* of magnitudes within the range; 0: 99.99 */
} mica_int8_opts;

/* A conversion of `net`, which is already built and must outlive it. If the net is not compiled yet, it will keep the
 * results of its calls until the end of a step; only then can ranges be collected. */
MICA_API mica_status mica_int8_create(mica_net *net, mica_int8 **out);
MICA_API void mica_int8_destroy(mica_int8 *q);

/* After a forward pass of the net: adds its values to the ranges. */
MICA_API mica_status mica_int8_collect(mica_int8 *q);
/* Sets the scales from the ranges collected. */
MICA_API mica_status mica_int8_choose(mica_int8 *q, const mica_int8_opts *opts);

/* The scales as text, a line "NAME SCALE" each, into text[size]; returns the full length, as snprintf does. A name is
 * that of an input, or that of a layer with the numbers of a call and output in it: "conv1:0:0". */
MICA_API size_t mica_int8_scales_print(char *text, size_t size, const mica_int8 *q);
/* Sets the scales from such a text. Names that the net does not have are ignored. */
MICA_API mica_status mica_int8_scales_read(mica_int8 *q, const char *text);

/* One weight scale for all output channels instead of one each; call it before building. */
MICA_API void mica_int8_per_tensor(mica_int8 *q, bool per_tensor);

/* Whether the new net has a second copy of its weights, in the layout that its products read (derived, never saved).
 * On by default, since it is faster; turn it off for a net to be exported. Call it before building. */
MICA_API void mica_int8_pack_weights(mica_int8 *q, bool pack);

/* Builds the new net into an empty one. */
MICA_API mica_status mica_int8_build(mica_int8 *q, mica_net *out);
/* Sets the weights of the new net from those of the first. Both must be bound. After an error, such as a weight that
 * is not finite, the new net is unchanged. */
MICA_API mica_status mica_int8_weights_set(mica_int8 *q, mica_net *out);
/* The value of the new net that corresponds to one of the first, or 0 if there is none; and its scale, 0 if it is f32,
 * as outputs are. `scale` may be NULL. */
MICA_API mica_value mica_int8_value(const mica_int8 *q, mica_value value, float *scale);

/* ---- Quantization-aware training ---- */

/* Builds a copy of the float net into an empty one, with the int8 net's roundings (fake quantization): activations at
 * the chosen scales, weights at a scale per output channel that follows them. Gradients pass through roundings
 * unchanged (outside the range they are 0). Compile it for training and step it, so that its parameters adapt to the
 * roundings; then copy them back to the first net, and convert that at the same scales. */
MICA_API mica_status mica_int8_fake(mica_int8 *q, mica_net *out);
/* Copies everything learned or kept from the first net to that copy, or back if `back` is set. Both must be bound, and
 * nothing may have been built from `q` since. */
MICA_API mica_status mica_int8_fake_copy(mica_int8 *q, mica_net *out, bool back);

/* ---- Reports ---- */

/* The quantization error of a layer of the new net. */
typedef struct mica_int8_row {
    const char *name; /* of the layer whose result it is */
    const char *op;   /* "int8_conv2d"; if it stayed float, that operation */
    float scale;      /* of its result; 0: it is f32 */
    double signal,
        noise; /* sums of squares: of the float net's values, of their differences from the new net's */
} mica_int8_row;

/* Makes the new net keep its values until the end of a step, so that they can be compared; call it before compiling
 * that net. */
MICA_API mica_status mica_int8_observe(mica_int8 *q);
/* After a forward pass of both nets with the same inputs: adds to the signal and noise of each row. */
MICA_API mica_status mica_int8_compare(mica_int8 *q, mica_net *out);
MICA_API int mica_int8_rows(const mica_int8 *q);
MICA_API mica_status mica_int8_row_at(const mica_int8 *q, mica_int8_row *row, int number);

#ifdef __cplusplus
}
#endif
#endif
