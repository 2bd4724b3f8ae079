/* ONNX models built by hand, field by field, so that they can be wrong. The numbers are those of onnx.proto. */
#ifndef MICA_TESTS_ONNX_PROTO_H
#define MICA_TESTS_ONNX_PROTO_H

#include <stddef.h>
#include <stdint.h>

/* A message that grows. Zeroed it is empty. Those that are put into another are freed by that. */
typedef struct proto {
    unsigned char *bytes;
    size_t size, room;
} proto;

void proto_free(proto *p);
void proto_put(proto *p, const void *bytes, size_t count); /* as they are */
void proto_varint(proto *p, uint64_t value);               /* without a tag */
void proto_number(proto *p, unsigned field, uint64_t value);
void proto_float(proto *p, unsigned field, float value);
void proto_bytes(proto *p, unsigned field, const void *bytes, size_t count);
void proto_text(proto *p, unsigned field, const char *text);
void proto_message(proto *p, unsigned field, proto message);

enum {
    ONNX_FLOAT = 1,
    ONNX_UINT8 = 2,
    ONNX_INT8 = 3,
    ONNX_INT32 = 6,
    ONNX_INT64 = 7,
    ONNX_STRING = 8,
    ONNX_BOOL = 9
};

#define PROTO_OPEN INT64_MIN
/* ValueInfoProto: a size of -1 is the symbol "n", one of -2 "m", PROTO_OPEN one without a name. */
proto proto_value(const char *name, int type, int rank, const int64_t *dims);
/* TensorProto with raw data. */
proto proto_tensor(const char *name, int type, int rank, const int64_t *dims, const void *raw, size_t bytes);
/* NodeProto: names of inputs and outputs with blanks between them; "-" is an absent one. */
proto proto_node(const char *type, const char *ins, const char *outs);
/* Adds an attribute to a node. */
void proto_int(proto *node, const char *name, int64_t value);
void proto_ints(proto *node, const char *name, const int64_t *values, int count);
void proto_real(proto *node, const char *name, float value);
void proto_reals(proto *node, const char *name, const float *values, int count);
void proto_string(proto *node, const char *name, const char *value);
void proto_strings(proto *node, const char *name, const char *const *values, int count);
void proto_tensor_attribute(proto *node, const char *name, proto tensor);
void proto_graph_attribute(proto *node, const char *name, proto graph);

/* The fields of a GraphProto. */
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
/* A ModelProto of this graph, IR version 8. */
proto proto_model(proto graph, int64_t opset);
/* It also has operators of another domain. */
void proto_domain(proto *model, const char *domain, int64_t opset);

/* Small models that are sound: y = relu(x @ w + b) and the like. NULL behind the last. */
typedef struct proto_sample {
    const char *name;
    proto (*make)(void);
} proto_sample;
extern const proto_sample proto_samples[];

#endif
