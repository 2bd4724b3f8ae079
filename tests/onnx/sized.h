/* Models of x [n, 3], and nets of them for so many rows. */
#ifndef MICA_TESTS_ONNX_SIZED_H
#define MICA_TESTS_ONNX_SIZED_H

#include <mica/mica.h>

#include "onnx/proto.h"

enum { SIZED_COLUMNS = 3 };

/* The input x, the output y, and the shape of x. */
proto sized_graph(void);
/* A number, as a list of one. */
void sized_integer(proto *graph, const char *name, int64_t value);
/* y = -x if the condition holds, else |x|. */
void sized_branch(proto *graph, const char *condition);
/* NULL, after a failed check, if there is none. */
mica_net *sized_net(mica_context *ctx, mica_onnx *model, mica_index rows);
/* One forward, of an x that is always the same; y's elements into y. */
void sized_run(mica_context *ctx, mica_net *net, float *y);

#endif
