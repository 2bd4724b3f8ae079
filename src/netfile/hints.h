/* What other frameworks call things that a net file has under another name: for messages alone. */
#ifndef MICA_SRC_NETFILE_HINTS_H
#define MICA_SRC_NETFILE_HINTS_H

#include "netfile/reader.h"

/* The word for a layer; NULL: not known. */
const char *mica_layer_alias(const char *name, size_t length);

/* The option of a layer; NULL: not known, or the layer has none like it. */
const char *mica_option_alias(const word *w, const char *name, size_t length);

/* Whether an option gives what stands by itself in a net file, an activation; or what follows from the line above. */
bool mica_option_is_activation(const char *name, size_t length);
bool mica_option_is_known(const char *name, size_t length);

#endif
