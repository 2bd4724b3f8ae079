/* Nets in int8: a net of floats becomes one whose activations and weights are bytes and whose arithmetic is that of
 * <mica/ops/int8.h>. docs/int8.md has the definition, and how weights lie in the new net.
 *
 *     mica_netfile_build(net, ...);                  // or with the builders
 *     mica_int8_create(net, &q);                     // before compiling: what calls make will be seen
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
 *     mica_int8_weights_set(q, bytes);               // from those of `net`; later from a file: mica_weights_load
 *     mica_int8_destroy(q);
 *
 * Products (dense layers, convolutions) with the batch norm and relu or relu6 behind them become one call; pooling,
 * sums, joins and changes of shape work on bytes. What has no int8 operation stays as it is, between dequantize and
 * quantize. Inputs and outputs are f32. The new net is for inference. */
#ifndef MICA_INT8_H
#define MICA_INT8_H

#include <mica/net.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_int8 mica_int8;

/* How a range follows from the values that were seen: all of them, all but the largest few, or so that the bytes tell
 * the most about the values (least Kullback-Leibler divergence). */
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
    double percentile; /* of sizes that the range holds; 0: 99.99 */
} mica_int8_opts;

/* A conversion of `net`, which is built and outlives it. If the net is not compiled yet, it will keep the values of
 * its calls until the end of a step: ranges can be collected then, not else. */
MICA_API mica_status mica_int8_create(mica_net *net, mica_int8 **out);
MICA_API void mica_int8_destroy(mica_int8 *q);

/* After a forward of the net: what its values were. */
MICA_API mica_status mica_int8_collect(mica_int8 *q);
/* Sets the scales from what was collected. */
MICA_API mica_status mica_int8_choose(mica_int8 *q, const mica_int8_opts *opts);

/* The scales as text, "NAME SCALE" a line, into text[size]; returns the length of all of it, as snprintf does. A name
 * is that of an input, or a layer's and the numbers of call and output in it: "conv1:0:0". */
MICA_API size_t mica_int8_scales_print(char *text, size_t size, const mica_int8 *q);
/* Sets the scales from such a text. Names that the net does not have are passed over. */
MICA_API mica_status mica_int8_scales_read(mica_int8 *q, const char *text);

/* Weights with one scale for all output channels instead of one each; before building. */
MICA_API void mica_int8_per_tensor(mica_int8 *q, bool per_tensor);

/* Whether the new net has its weights a second time, as its products read them (derived, never saved): faster, and
 * what is so unless this is said; false for a net that is to be exported. Before building. */
MICA_API void mica_int8_pack_weights(mica_int8 *q, bool pack);

/* Builds the new net into an empty one. */
MICA_API mica_status mica_int8_build(mica_int8 *q, mica_net *out);
/* Sets the weights of the new net, which is bound, from those of the first, which is, too. */
MICA_API mica_status mica_int8_weights_set(mica_int8 *q, mica_net *out);
/* The value of the new net that stands for one of the first, and its scale (0: it is f32, as outputs are). 0: there
 * is none. `scale` may be NULL. */
MICA_API mica_value mica_int8_value(const mica_int8 *q, mica_value value, float *scale);

/* ---- Training with quantization in the graph ---- */

/* Builds into an empty net the net of floats once more, with the roundings that the int8 net makes: activations at
 * the scales that were chosen, weights at a scale for each output channel that follows them. Gradients pass through
 * roundings unchanged (outside of a range there are none). Compiled for training and stepped, its parameters learn
 * to live with the roundings; then they go back to the first net, and a conversion at the same scales follows. */
MICA_API mica_status mica_int8_fake(mica_int8 *q, mica_net *out);
/* Copies all that is learned or kept from the first net to that one, or, with `back`, from that one to the first.
 * Both are bound, and nothing was built since. */
MICA_API mica_status mica_int8_fake_copy(mica_int8 *q, mica_net *out, bool back);

/* ---- Reports ---- */

/* What a layer of the new net does to the numbers. */
typedef struct mica_int8_row {
    const char *name; /* of the layer whose result it is */
    const char *op;   /* "int8_conv2d"; of what stayed float, the operation */
    float scale;      /* of its result; 0: it is f32 */
    double signal,
        noise; /* sums of squares: of the float net's values, of their differences to the new net's */
} mica_int8_row;

/* Keeps the values of the new net until the end of its steps, so that they can be compared; before compiling it. */
MICA_API mica_status mica_int8_observe(mica_int8 *q);
/* After a forward of both nets with the same inputs: adds to signal and noise of each row. */
MICA_API mica_status mica_int8_compare(mica_int8 *q, mica_net *out);
MICA_API int mica_int8_rows(const mica_int8 *q);
MICA_API mica_status mica_int8_row_at(const mica_int8 *q, mica_int8_row *row, int number);

#ifdef __cplusplus
}
#endif
#endif
