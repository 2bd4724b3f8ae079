/* The text of a net that is an ONNX model: it stands where that of a net file would, in checkpoints, too.
 *
 *     onnx source.onnx        the model; a name without a slash is that of a file beside the checkpoint
 *     task classes            what is learned: classes, regression, binary
 *     set sr=16000            as --set has it: any number of these
 */
#ifndef MICA_CLI_ONNX_TEXT_H
#define MICA_CLI_ONNX_TEXT_H

#include <mica/netfile.h>

#include "cli/verb.h"

#define ONNX_SOURCE "source.onnx" /* beside CHECKPOINT_NAME; beside NAME.safetensors it is NAME.source.onnx */

/* Whether it is such a text, not that of a net file. */
bool is_onnx_text(const char *text);

/* A text, taken apart. */
typedef struct onnx_text {
    char *lines; /* a copy, cut into its lines; to be given to free() */
    const char *file;
    mica_task task;
    option_list set;
} onnx_text;

/* Or says what is wrong with it, and returns what the program ends with. */
int onnx_text_read(onnx_text *out, const verb *v, const char *text);

/* Puts one together, to be given to free(). Files that --set names are found from any folder later. */
char *onnx_text_print(const char *file, mica_task task, const option_list *set);

/* Whether the model is a copy that lies beside the checkpoint. */
bool onnx_text_has_copy(const onnx_text *t);
/* Where the model lies, with this checkpoint. False: the path is too long. */
bool onnx_text_path(char *path, size_t size, const onnx_text *t, const char *checkpoint);
/* The same for a checkpoint at another place, which gets a copy of its own; to be given to free(). */
char *onnx_text_for(const onnx_text *t, const char *checkpoint);

/* A path that is the same from any folder; false: there is none, or it is too long. */
bool absolute_path(char *out, size_t size, const char *path);

#endif
