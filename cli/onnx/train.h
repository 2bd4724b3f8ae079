/* ONNX models as nets that are trained: their text stands where that of a net file would.
 *
 *     onnx source.onnx        a copy of the model, beside the checkpoint
 *     task classes            what is learned: classes, regression, binary
 *     set sr=16000            as --set has it: any number of these
 *
 * Weights are learned, under the names that they have in the model, so that checkpoints hold them like those of any
 * other net. */
#ifndef MICA_CLI_ONNX_TRAIN_H
#define MICA_CLI_ONNX_TRAIN_H

#include <mica/netfile.h>
#include <mica/onnx.h>

#include "cli/verb.h"

#define ONNX_SOURCE "source.onnx" /* beside the checkpoint */

/* Whether it is the text of an ONNX model, not that of a net file. */
bool is_onnx_text(const char *text);

/* Builds what a text says, with a loss unless opts->inference; `path` is where the model lies. The net closes the
 * model. On failure *out is NULL, it was said what is wrong, and what the program ends with is returned. */
int onnx_text_build(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx,
                    const char *text, const char *path, const mica_netfile_opts *opts);
/* The same, where the text comes from a checkpoint. */
int onnx_text_build_beside(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx,
                           const char *text, const char *checkpoint, const mica_netfile_opts *opts);

/* The net of a model, to be trained for this task. */
int onnx_train_build(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx,
                     const char *path, mica_task task, const option_list *set, const mica_netfile_opts *opts);

/* The model that a net was built from; NULL: from none. */
mica_onnx *onnx_of(const mica_net *net);

/* Copies the model of a net to the folder of its checkpoint, if its text says so. */
int onnx_keep_source(const mica_net *net, const verb *v, const char *text, const char *folder);

#endif
