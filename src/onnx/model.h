/* A parsed model: plain structs over the bytes of the file, which stays mapped. Names are interned: two that are equal
 * are the same pointer. Everything lies in the model's own pool, and lives until it is closed. */
#ifndef MICA_SRC_ONNX_MODEL_H
#define MICA_SRC_ONNX_MODEL_H

#include <mica/onnx.h>

#include "base/context.h"
#include "io/file.h"
#include "tensor/tensor.h"

typedef struct mica_onnx_graph mica_onnx_graph;

/* The numbers of AttributeProto.type. */
typedef enum mica_onnx_kind {
    MICA_ONNX_NO_KIND,
    MICA_ONNX_FLOAT,
    MICA_ONNX_INT,
    MICA_ONNX_STRING,
    MICA_ONNX_TENSOR,
    MICA_ONNX_GRAPH,
    MICA_ONNX_FLOATS,
    MICA_ONNX_INTS,
    MICA_ONNX_STRINGS,
    MICA_ONNX_TENSORS,
    MICA_ONNX_GRAPHS,
} mica_onnx_kind;

/* TensorProto: where its elements lie in the file. mica_onnx_tensor_data makes a tensor of it. */
typedef struct mica_onnx_tensor {
    const char *name;
    int type; /* the standard's number: 1 is float */
    int rank;
    mica_index dim[MICA_MAX_RANK];
    const unsigned char *raw; /* raw_data, or NULL */
    size_t raw_bytes;
    const unsigned char *packed; /* the whole message, to read typed fields (float_data, ...) from */
    size_t packed_bytes;
    const char *external;                     /* a file beside the model; NULL: none */
    uint64_t external_offset, external_bytes; /* bytes 0: as many as it has elements for */
    mica_tensor tensor; /* once it was made: data is not NULL, or there are no elements */
    bool made;
    int build, ref; /* of a subgraph: the import of this number holds it as this value */
} mica_onnx_tensor;

typedef struct mica_onnx_attribute {
    const char *name;
    mica_onnx_kind kind;
    const char
        *reference; /* in a function: the name of the attribute of the call that it takes; NULL: none */
    int64_t i;
    float f;
    const char *s; /* terminated */
    size_t length; /* of s, which may hold NULs */
    mica_onnx_tensor *t;
    const mica_onnx_graph *g;
    const int64_t *ints;
    const float *floats;
    const char *const *strings;
    size_t count; /* of ints, floats or strings */
} mica_onnx_attribute;

typedef struct mica_onnx_node {
    const char *name;                     /* "" where there is none */
    const char *type, *domain, *overload; /* the main domain is "" */
    const char *const *in;                /* "": absent */
    const char *const *out;
    int ins, outs;
    const mica_onnx_attribute *attributes;
    int attribute_count;
} mica_onnx_node;

/* ValueInfoProto. */
typedef struct mica_onnx_info {
    const char *name;
    mica_onnx_value is; /* as the public header shows it */
    bool initialized;   /* an input that has an initializer, and so need not be given */
} mica_onnx_info;

struct mica_onnx_graph {
    const char *name;
    const mica_onnx_node *nodes;
    int node_count;
    mica_onnx_tensor *initializers;
    int initializer_count;
    const mica_onnx_info *inputs, *outputs;
    int input_count, output_count;
};

typedef struct mica_onnx_opset {
    const char *domain;
    int64_t version;
} mica_onnx_opset;

/* A function of the model's own: nodes that stand for one. */
typedef struct mica_onnx_function {
    const char *name, *domain, *overload;
    const char *const *in;
    const char *const *out;
    int ins, outs;
    const mica_onnx_attribute *defaults; /* attributes with default values */
    int default_count;
    const mica_onnx_node *nodes;
    int node_count;
    const mica_onnx_opset *opsets;
    int opset_count;
} mica_onnx_function;

/* A file with external data, mapped while the model is open. */
typedef struct mica_onnx_mapped {
    struct mica_onnx_mapped *next;
    const char *name;
    mica_map map;
} mica_onnx_mapped;

struct mica_onnx {
    mica_context *ctx;
    const char *path; /* for messages, and for external data */
    bool has_folder;  /* path is a file's: external data may lie beside it */
    mica_map map;     /* of the file; none if it was opened over memory */
    const unsigned char *bytes;
    size_t size;
    int64_t ir_version;
    const char *producer;
    const mica_onnx_opset *opsets;
    int opset_count;
    mica_onnx_graph graph;
    const mica_onnx_function *functions;
    int function_count;
    mica_onnx_mapped *mapped;
    struct mica_onnx_chunk *chunks; /* the pool */
    const char **interned;          /* open addressing */
    size_t interned_count, interned_room;
    int builds;                     /* imports so far, twins included */
    struct mica_onnx_start *starts; /* what learned and kept values of the last build start as */
    mica_onnx_problem *problems;    /* of the last build */
    int problem_count, problem_room;
};

/* Makes room for one more than `count` elements of an array (`array` points to the pointer), whose memory is the
 * context's: mica_release(ctx, *array, *room * bytes). */
mica_status mica_onnx_grow(mica_context *ctx, void *array, int count, int *room, size_t bytes);
/* Memory of the model's own, aligned to 64 if large; NULL, with the context's error set, if there is none left. */
void *mica_onnx_memory(mica_onnx *model, size_t bytes);
/* The one copy of this text. NULL, with an error, if memory is short. */
const char *mica_onnx_intern(mica_onnx *model, const char *bytes, size_t length);

/* Notes which inputs have an initializer. */
mica_status mica_onnx_mark_initialized(mica_onnx *model, mica_onnx_info *infos, int count,
                                       const mica_onnx_tensor *initializers, int initializer_count);
/* Some exporters leave the batch open without a name (skl2onnx). If it is that of one input alone, and no other size is
 * called so, it is "batch". */
mica_status mica_onnx_name_batch(mica_onnx *model, mica_onnx_info *inputs, int count);

/* Parses the whole file. */
mica_status mica_onnx_parse(mica_onnx *model);
/* One TensorProto of a file of its own (input_0.pb of ONNX's tests). */
mica_status mica_onnx_parse_tensor(mica_onnx *model, mica_onnx_tensor *out, const unsigned char *bytes,
                                   size_t size);
/* Its elements: lent from the file where they lie aligned, otherwise converted into the pool. */
mica_status mica_onnx_tensor_data(mica_onnx *model, mica_onnx_tensor *t);
/* Mica's dtype of the standard's number; MICA_DTYPE_COUNT: none. And its name there: "FLOAT". */
mica_dtype mica_onnx_dtype(int64_t type);
const char *mica_onnx_type_name(int64_t type);

#endif
