/* Doing with a model all that can be done, whatever it is. */
#ifndef MICA_TESTS_ONNX_ATTACK_H
#define MICA_TESTS_ONNX_ATTACK_H

#include <mica/onnx.h>

#include "onnx/proto.h"
#include "test.h"

typedef enum attack_end { ATTACK_REFUSED, ATTACK_UNSUPPORTED, ATTACK_BUILT, ATTACK_RAN } attack_end;

/* A context that gives at most 64 MiB at once: a model of a few bytes must not ask for more and get it. */
mica_context *attack_context(void);

/* Opens, describes, builds, compiles and, if it is small, runs, and builds for training; sizes that are open are 2. How
 * far that went; the context has the error. Everything is released. */
attack_end attack(mica_context *ctx, const unsigned char *bytes, size_t size);
/* The same of a message, which is freed. */
attack_end attack_with(mica_context *ctx, proto model);

#endif
