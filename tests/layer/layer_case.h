/* Layer cases: small nets whose gradients are checked by finite differences, for every layer and several shapes.
 *
 *     static mica_value build(mica_net *net, test_random *r)
 *     {
 *             mica_value x = layer_leaf(net, "x", 2, (mica_index[]){test_int(r, 1, 4), 5});
 *             return mica_net_dense(net, x, &(mica_net_dense_opts){.units = 3});
 *     }
 *     LAYER_CASE(dense) = {.build = build};
 *
 * A leaf is a parameter that is its own output: so the gradient of a layer's input is checked like any
 * parameter's. The output is weighed with random numbers and summed to a loss. MICA_LAYER=name limits the
 * tests to one case. */
#ifndef MICA_TESTS_LAYER_LAYER_CASE_H
#define MICA_TESTS_LAYER_LAYER_CASE_H

#include <mica/op.h>
#include <mica/layers.h>

#include "test.h"

typedef struct layer_case {
    const char *name;
    struct layer_case *next;
    mica_value (*build)(mica_net *net, test_random *r);
    int draws;        /* random nets; 0: 6 */
    double step;      /* of the differences; 0: 1e-2 */
    double tolerance; /* relative to the largest gradient; 0: 5e-3 */
    float away;       /* leaves keep this far from 0, for layers with a corner there */
} layer_case;

void layer_register(layer_case *layer, const char *name);

#define LAYER_CASE(layer)                                                 \
    static layer_case layer_case_##layer;                                 \
    __attribute__((constructor)) static void register_layer_##layer(void) \
    {                                                                     \
        layer_register(&layer_case_##layer, #layer);                      \
    }                                                                     \
    static layer_case layer_case_##layer

/* A parameter of this shape as a value, drawn from a normal distribution. */
mica_value layer_leaf(mica_net *net, const char *name, int rank, const mica_index *dims);
/* An input of whole numbers 0 to below - 1 (indices, labels), filled by the harness. */
mica_value layer_indices(mica_net *net, const char *name, int rank, const mica_index *dims, int below);
/* sum(weights * x): the loss behind every case. A builder may also use it to make a net of its own. */
mica_value layer_weighted_sum(mica_net *net, mica_value x);

/* A layer, or sometimes the sum of two like it, so that the second to go back adds to the first's gradient. */
#define LAYER_MAYBE_TWICE(net, r, call) (test_chance(r, 40) ? mica_net_plus(net, call, call, NULL) : (call))

#endif
