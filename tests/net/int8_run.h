/* Nets that tests of conversions to int8 run. */
#ifndef MICA_TESTS_NET_INT8_RUN_H
#define MICA_TESTS_NET_INT8_RUN_H

#include <mica/mica.h>

/* Compiled, bound and initialized. */
bool int8_ready(mica_context *ctx, mica_net *net);
/* Random numbers into the input x. */
void int8_fill(mica_net *net, uint64_t seed);
/* The output "logits" of such an x. */
void int8_run(mica_net *net, uint64_t seed, float *out);
/* Calls of this operation. */
int int8_count_calls(const mica_net *net, const char *op);

#endif
