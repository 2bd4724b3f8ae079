/* ONNX models: mapped, read in place, and built into nets that can be planned, run and trained further.
 *
 *     mica_onnx *model;
 *     mica_onnx_open(ctx, &model, "resnet18.onnx");
 *     mica_net_create(ctx, &net);
 *     mica_onnx_build(model, net, &(mica_onnx_opts){.sets = &(mica_onnx_set){.name = "batch", .size = 8}, .count = 1});
 *     mica_net_compile(net, &(mica_compile_opts){0});
 *     mica_net_bind(net, NULL, 0);
 *     mica_onnx_load(model, net);                      // learned weights; all others are lent from the file
 *     mica_net_forward(net);
 *
 * docs/onnx.md lists the operators and says how they are imported. */
#ifndef MICA_ONNX_H
#define MICA_ONNX_H

#include <mica/net.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_onnx mica_onnx;

/* Maps the file and parses all of it. Every length, count and depth is checked. Weights stay in place, and are copied
 * only if they are not aligned to the size of their type. On failure *out is NULL. */
MICA_API mica_status mica_onnx_open(mica_context *ctx, mica_onnx **out, const char *path);
/* The same for a model in memory, which must outlive *out. External data is refused. `name` is for messages. */
MICA_API mica_status mica_onnx_over(mica_context *ctx, mica_onnx **out, const void *bytes, size_t size,
                                    const char *name);
/* Nets built from the model must be destroyed first. NULL is fine. */
MICA_API void mica_onnx_close(mica_onnx *model);

/* ---- Inputs and outputs of a model ---- */

typedef struct mica_onnx_value {
    const char *name;
    const char *type;                  /* as ONNX calls it: "FLOAT", "sequence" */
    mica_dtype dtype;                  /* MICA_DTYPE_COUNT: not a tensor, or of a type that Mica lacks */
    int rank;                          /* -1: unknown */
    mica_index dim[MICA_MAX_RANK];     /* -1: unknown until it is set */
    const char *symbol[MICA_MAX_RANK]; /* the name of an unknown size; NULL: it has none */
} mica_onnx_value;

/* Inputs with an initializer are optional, and not counted: they are that, unless mica_onnx_set gives their value. */
MICA_API int mica_onnx_inputs(const mica_onnx *model);
MICA_API mica_status mica_onnx_input(const mica_onnx *model, mica_onnx_value *out, int number);
MICA_API int mica_onnx_outputs(const mica_onnx *model);
MICA_API mica_status mica_onnx_output(const mica_onnx *model, mica_onnx_value *out, int number);

typedef struct mica_onnx_about {
    int64_t ir_version;
    int opset;            /* of the main domain */
    const char *producer; /* "" if unknown */
    int nodes, initializers;
    size_t weight_bytes; /* of all initializers */
} mica_onnx_about;
MICA_API mica_onnx_about mica_onnx_describe(const mica_onnx *model);

/* ---- Building a net ---- */

/* What is set before the import: a size by its symbol, or the shape or value of an input. A value with data becomes a
 * constant, and the net no longer has that input; one without data gives the input's shape. A name that the model does
 * not have is an error. */
typedef struct mica_onnx_set {
    const char *name; /* of a symbol ("batch") or an input */
    mica_index size;  /* of a symbol: its maximum */
    const mica_tensor *value;
} mica_onnx_set;

typedef struct mica_onnx_opts {
    const mica_onnx_set *sets;
    int count;
    /* Weights are learned. Otherwise they are lent, and whatever depends on them alone is computed once. */
    bool train;
    /* With train: weights are still values under their names, but no step will train them, so operations are those of
     * inference, even if they give some weights no gradient. For mica convert. */
    bool frozen;
    /* QuantizeLinear and DequantizeLinear round floats, as the standard defines them. Otherwise what is between them
     * is computed in int8 where possible. Implied by training. */
    bool rounded;
} mica_onnx_opts;

/* Adds the model to an empty net: its inputs, calls and outputs, under their names in the model. The model must
 * outlive the net. If something is not supported, the error names the first such nodes, and mica_onnx_problem_at
 * gives all of them. After an error the net can only be destroyed. */
MICA_API mica_status mica_onnx_build(mica_onnx *model, mica_net *net, const mica_onnx_opts *opts);

/* Copies the model's weights into the learned and kept values of the net that was built last, which must be bound. */
MICA_API mica_status mica_onnx_load(mica_onnx *model, mica_net *net);

/* What the last build could not import. */
typedef struct mica_onnx_problem {
    const char *node, *type; /* "" if the node has no name */
    const char *reason;
    uint64_t needs; /* bit k: it could be imported if input k were known (mica_onnx_set.value) */
} mica_onnx_problem;
MICA_API int mica_onnx_problems(const mica_onnx *model);
MICA_API mica_status mica_onnx_problem_at(const mica_onnx *model, mica_onnx_problem *out, int number);

/* ---- Writing ---- */

/* Of files that are written, with IR version 8. Element types that came later need newer versions: 8-bit floats
 * opset 19 and IR 9, 4-bit integers opset 21 and IR 10, 4-bit floats opset 23 and IR 11. */
#define MICA_ONNX_OPSET 17

typedef struct mica_onnx_write_opts {
    /* Standard operators only, for programs that do not read functions. Otherwise an operation that ONNX has no
     * operator for (rotary positions, attention, ...) becomes a function in the file, made of standard operators;
     * reading the file back, Mica replaces it with the original operation. */
    bool plain;
} mica_onnx_write_opts;

/* Writes a bound net to a file, which replaces `path` once all of it is on disk. The file holds what inference needs:
 * inputs, weights under their full names, and outputs, but no losses. Sizes of a step are named dimensions ("batch").
 * If calls cannot be expressed, the error names them by layer and operation, and nothing is written. opts may be
 * NULL. */
MICA_API mica_status mica_onnx_write(mica_net *net, const char *path, const mica_onnx_write_opts *opts);

/* ---- Single tensors ---- */

/* A file with one TensorProto, as in ONNX's tests. The tensor's data belongs to *model, an otherwise empty model. */
MICA_API mica_status mica_onnx_open_tensor(mica_context *ctx, mica_onnx **model, mica_tensor *out,
                                           const char **name, const char *path);

#ifdef __cplusplus
}
#endif
#endif
