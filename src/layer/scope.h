/* Scopes of blocks made of several layers. */
#ifndef MICA_SRC_LAYER_SCOPE_H
#define MICA_SRC_LAYER_SCOPE_H

#include <stdio.h>

#include <mica/net.h>

/* Enters a block's scope: its name, or else its kind and a number that no other block has. */
static inline void mica_enter_block(mica_net *net, const char *name, const char *kind)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s_%d", kind, mica_net_layers(net));
    mica_net_enter(net, name != NULL && *name != '\0' ? name : text);
}

#endif
