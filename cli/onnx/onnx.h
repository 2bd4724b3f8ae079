/* What verbs do with ONNX models. */
#ifndef MICA_CLI_ONNX_ONNX_H
#define MICA_CLI_ONNX_ONNX_H

#include <mica/net.h>

#include "cli/verb.h"

/* Whether a file is an ONNX model, by its first bytes or its name. */
bool is_onnx(const char *path);

typedef struct onnx_run_settings {
    shared_settings shared;
    option_list set, inputs; /* NAME=VALUE, NAME=FILE.npy */
    const char *output;      /* a folder; NULL: values are printed */
    int64_t repeat;
    bool prepare; /* weights, when the net is bound */
} onnx_run_settings;

/* mica ops --onnx */
void onnx_operators(bool json);

/* mica run */
int onnx_run(mica_context *ctx, const verb *v, const onnx_run_settings *set, const char *path, char **files,
             int file_count);

/* mica info */
int onnx_info(mica_context *ctx, const verb *v, const option_list *set, const char *path, bool json);

/* mica plan: builds the net, sizes that were not set being `batch`. onnx_release closes the model, after the net. */
typedef struct onnx_built onnx_built;
int onnx_build(onnx_built **out, mica_net **net, mica_context *ctx, const verb *v, const option_list *set,
               const char *path, mica_index batch);
void onnx_release(onnx_built *built);
/* ", sequence 10": the named sizes but the batch, as they were set, in text[size]. */
void onnx_sizes(char *text, size_t size, const onnx_built *built);
/* Bytes of the model's weights, which are lent from the file. */
size_t onnx_weight_bytes(const onnx_built *built);

#endif
