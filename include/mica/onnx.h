/* ONNX models: read where they lie in a mapped file, and built into nets that can be planned, run and trained further.
 *
 *     mica_onnx *model;
 *     mica_onnx_open(ctx, &model, "resnet18.onnx");
 *     mica_net_create(ctx, &net);
 *     mica_onnx_build(model, net, &(mica_onnx_opts){.sets = &(mica_onnx_set){.name = "batch", .size = 8}, .count = 1});
 *     mica_net_compile(net, &(mica_compile_opts){0});
 *     mica_net_bind(net, NULL, 0);
 *     mica_onnx_load(model, net);                      // weights that are learned; all others are lent by the file
 *     mica_net_forward(net);
 *
 * docs/onnx.md says which operators there are and how they are imported. */
#ifndef MICA_ONNX_H
#define MICA_ONNX_H

#include <mica/net.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_onnx mica_onnx;

/* Maps the file and parses all of it. Every length, count and depth is checked. Weights stay where they lie, and are
 * copied only if that is no multiple of their type's size. On failure *out is NULL. */
MICA_API mica_status mica_onnx_open(mica_context *ctx, mica_onnx **out, const char *path);
/* The same over bytes in memory, which must outlive it. External data is refused. `name` is for messages. */
MICA_API mica_status mica_onnx_over(mica_context *ctx, mica_onnx **out, const void *bytes, size_t size,
                                    const char *name);
/* Nets that were built from it must be destroyed before. NULL is fine. */
MICA_API void mica_onnx_close(mica_onnx *model);

/* ---- What a model takes and gives ---- */

typedef struct mica_onnx_value {
    const char *name;
    const char *type;                  /* as ONNX calls it: "float", "sequence" */
    mica_dtype dtype;                  /* MICA_DTYPE_COUNT: no tensor, or of a type that Mica does not have */
    int rank;                          /* -1: not said */
    mica_index dim[MICA_MAX_RANK];     /* -1: not known before it is set */
    const char *symbol[MICA_MAX_RANK]; /* the name of a size that is not known; NULL: none */
} mica_onnx_value;

/* Without those that have an initializer, which are optional. */
MICA_API int mica_onnx_inputs(const mica_onnx *model);
MICA_API mica_status mica_onnx_input(const mica_onnx *model, mica_onnx_value *out, int number);
MICA_API int mica_onnx_outputs(const mica_onnx *model);
MICA_API mica_status mica_onnx_output(const mica_onnx *model, mica_onnx_value *out, int number);

typedef struct mica_onnx_about {
    int64_t ir_version;
    int opset;            /* of the main domain */
    const char *producer; /* "" where it is not said */
    int nodes, initializers;
    size_t weight_bytes; /* of all initializers */
} mica_onnx_about;
MICA_API mica_onnx_about mica_onnx_describe(const mica_onnx *model);

/* ---- Building a net ---- */

/* What is known before: a size by its symbol, the shape of an input, or an input's value. With data, the value becomes
 * a constant of the net, and the input is none of the net's any more; without, the input has this shape. */
typedef struct mica_onnx_set {
    const char *name; /* of a symbol ("batch") or an input */
    mica_index size;  /* of a symbol: the most it may be */
    const mica_tensor *value;
} mica_onnx_set;

typedef struct mica_onnx_opts {
    const mica_onnx_set *sets;
    int count;
    /* Weights are learned. Otherwise they are lent, and what follows from them alone is computed once. */
    bool train;
    /* QuantizeLinear and DequantizeLinear are roundings of floats, as written. Otherwise what lies between them is
     * computed with bytes where it can be. Training implies it. */
    bool rounded;
} mica_onnx_opts;

/* Adds the model to a net that is empty: its inputs, calls and outputs, under the names that they have in the model.
 * The model must outlive the net. If something is not supported, the error names the first such nodes, and
 * mica_onnx_problem_at all of them. */
MICA_API mica_status mica_onnx_build(mica_onnx *model, mica_net *net, const mica_onnx_opts *opts);

/* Copies the model's weights into what a bound net learns and keeps: the one that was built last. */
MICA_API mica_status mica_onnx_load(mica_onnx *model, mica_net *net);

/* What the last build could not import. */
typedef struct mica_onnx_problem {
    const char *node, *type; /* "" where a node has no name */
    const char *reason;
    uint64_t needs; /* bit k: it could be imported if input k were known (mica_onnx_set.value) */
} mica_onnx_problem;
MICA_API int mica_onnx_problems(const mica_onnx *model);
MICA_API mica_status mica_onnx_problem_at(const mica_onnx *model, mica_onnx_problem *out, int number);

/* ---- Writing ---- */

#define MICA_ONNX_OPSET 17 /* that is written, in a file of IR version 8 */

typedef struct mica_onnx_write_opts {
    /* Only nodes of the standard's operators in the graph, for programs that do not read functions. Otherwise what
     * ONNX has no operator for (rotary positions, attention, ...) is a function of the file's own, made of the
     * standard's operators, which Mica, reading its file again, takes for the operation it was. */
    bool plain;
} mica_onnx_write_opts;

/* Writes a net that is bound to a file, which replaces PATH once all of it is on the disk. The file holds what
 * inference takes: inputs, weights under their full names, and outputs, but no losses. Sizes of a step are named
 * dimensions ("batch"). If calls cannot be expressed, the error names them, by layer and operation, and nothing is
 * written. opts may be NULL. */
MICA_API mica_status mica_onnx_write(mica_net *net, const char *path, const mica_onnx_write_opts *opts);

/* ---- Single tensors ---- */

/* A file with one TensorProto, as ONNX's tests have them. The tensor's data belongs to *model, a model that is
 * otherwise empty. */
MICA_API mica_status mica_onnx_open_tensor(mica_context *ctx, mica_onnx **model, mica_tensor *out,
                                           const char **name, const char *path);

#ifdef __cplusplus
}
#endif
#endif
