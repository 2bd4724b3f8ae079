/* Checkpoints of int8 nets: metadata "mica.int8" say how the net of "mica.net", which is of floats, becomes the one
 * that the tensors belong to.
 *
 *     channel            or "tensor": what weights have a scale for each of
 *     image 0.0078       scales, as mica_int8_scales_print has them
 *     ... */
#ifndef MICA_CLI_MODEL_INT8_H
#define MICA_CLI_MODEL_INT8_H

#include <mica/int8.h>
#include <mica/io.h>
#include <mica/netfile.h>

#include "cli/verb.h"

#define INT8_KEY "mica.int8"

/* Turns *net, which is built but not compiled, into the int8 net that the text describes; info tells of that one
 * then. With `pack`, it has its weights as its products read them, too: not for exports. On failure, *net is as it
 * was. */
mica_status int8_convert(mica_net **net, mica_netfile_info *info, const char *text, bool pack);

/* With `freeze`, prefixes of parameters' names, layers from the first one that learns onward stay float: this forgets
 * their scales. */
mica_status int8_keep_floats(mica_int8 *q, const mica_net *net, const option_list *freeze);
/* The first layer that has parameters, if it learns: then none can become int8. NULL: it is frozen. */
const char *int8_first_layer_learns(const mica_net *net, const option_list *freeze);

/* Whether the tensors of a file are of the dtypes that the net has: bytes are not to be read as floats. */
mica_status int8_check_file(const mica_net *net, const mica_safetensors *file);

/* The text, in memory of its own. */
char *int8_text(const mica_int8 *q, bool per_tensor);

/* What info tells of a net, told of the int8 net that was built from it. */
mica_status int8_info(mica_netfile_info *info, const mica_int8 *q, mica_net *bytes);

#endif
