/* Scopes of blocks made of several layers. */
#ifndef MICA_SRC_LAYER_SCOPE_H
#define MICA_SRC_LAYER_SCOPE_H

#include <mica/layers/block.h>

#include "base/format.h"

/* Enters a block's scope: its name, or else its kind and a number that no other block has. */
static inline void mica_enter_block(mica_net *net, const char *name, const char *kind)
{
    char text[64];
    (void)mica_format(text, sizeof text, "%s_%d", kind, mica_net_layers(net));
    mica_net_enter(net, name != NULL && *name != '\0' ? name : text);
}

/* Ends a residual block that mica_enter_block began: y is what became of x in it. Returns the block's result. */
mica_value mica_end_residual(mica_net *net, mica_value y, mica_value x, const mica_net_residual_opts *opts);

#endif
