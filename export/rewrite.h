/* The rewrites, each in a file of its own; rewrite.c has their order. */
#ifndef MICA_EXPORT_REWRITE_H
#define MICA_EXPORT_REWRITE_H

#include "export/graph.h"

/* Each returns false if memory runs out. */
bool rewrite_conv_pool(graph *g);
bool rewrite_dense(graph *g);
bool rewrite_int8(graph *g);

/* The count of steps, where something is random; marks that are not needed here. */
bool rewrite_state(graph *g);

#endif
