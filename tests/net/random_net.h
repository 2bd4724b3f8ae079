/* Random nets: branches, sums, products, views, saved values, shared and frozen parameters, several losses, outputs
 * in the middle. */
#ifndef MICA_TESTS_NET_RANDOM_NET_H
#define MICA_TESTS_NET_RANDOM_NET_H

#include "test.h"

/* Inputs of whole numbers are 0 to this - 1. */
#define RANDOM_NET_BELOW 4

/* The same net for the same seed. Of operations of the list alone, or also of its own, which use what a planner
 * offers. */
mica_net *random_net(mica_context *ctx, uint64_t seed, bool listed);

#endif
