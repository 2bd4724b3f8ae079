/* ONNX models as nets: for training, with their weights learned, under the names that they have in the model, so that
 * checkpoints hold them like those of any other net; or for running, with weights that are lent. */
#ifndef MICA_CLI_ONNX_NET_H
#define MICA_CLI_ONNX_NET_H

#include <mica/netfile.h>
#include <mica/onnx.h>

#include "cli/verb.h"

/* opts->batch 0: the batch that --set or the model gives; else that of training, 32, or 1.
 *
 * Each of these builds a net, which closes the model when it is destroyed. On failure *out is NULL, it was said what is
 * wrong, and what the program ends with is returned. */

/* What the text of a checkpoint says (cli/onnx/text.h), with a loss unless opts->inference. */
int onnx_text_build(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx,
                    const char *text, const char *checkpoint, const mica_netfile_opts *opts);
/* The net of a model, to be trained for this task; info->text is for a checkpoint in a folder of its own. */
int onnx_train_build(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx,
                     const char *path, mica_task task, const option_list *set, const mica_netfile_opts *opts);
/* The net of a model, to be run as it is. */
int onnx_run_build(mica_net **out, mica_netfile_info *info, const verb *v, mica_context *ctx,
                   const char *path, const option_list *set, const mica_netfile_opts *opts);

/* The model that a net was built from; NULL: from none. */
mica_onnx *onnx_of(const mica_net *net);

/* Whether it can only be run with the batch that it was built for. */
bool onnx_sizes_fixed(const mica_net *net);

/* The batch that is written into a model; 0: any, or it cannot be opened. */
mica_index onnx_batch_of(mica_context *ctx, const char *path);

/* Copies the model of a net to where a checkpoint with this text has it, if that has a copy. */
int onnx_keep_source(const mica_net *net, const verb *v, const char *text, const char *checkpoint);

#endif
