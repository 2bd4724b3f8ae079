/* The nets of examples/ and of the benchmarks, as a table that tests walk: plans, heap calls, budgets,
 * checkpoints. */
#ifndef MICA_TESTS_NET_EXAMPLE_NETS_H
#define MICA_TESTS_NET_EXAMPLE_NETS_H

#include "test.h"

typedef struct example_net {
    const char *name;
    mica_index batch; /* that it is trained with */
    int below;        /* inputs of whole numbers are 0 to below - 1 */
    mica_optimizer optimizer;
    void (*build)(mica_net *net, mica_index batch); /* from inputs to the loss */
} example_net;

extern const example_net example_nets[];
extern const int example_net_count;

/* Built for `batch` (0: the table's), compiled, bound and initialized. opts may be NULL: training, with the net's
 * optimizer. NULL, and a failed check, if anything goes wrong. */
mica_net *example_net_make(mica_context *ctx, const example_net *example, mica_index batch,
                           const mica_compile_opts *opts);

/* Sets all inputs to numbers that follow from the seed. Makes no heap call. */
void example_net_fill(mica_net *net, const example_net *example, uint64_t seed);

/* No two buffers of a plan that live at once overlap, all lie in the block, and the parts add up. */
void check_plan(const mica_plan *plan);

#endif
