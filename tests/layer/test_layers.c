/* Every layer's gradients against finite differences of its forward; the same with recomputation; and no heap
 * calls. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/layer_case.h"

/* ---- The list of cases ---- */

static layer_case *cases;

void layer_register(layer_case *layer, const char *name)
{
    layer->name = name;
    layer_case **place = &cases;
    while (*place != NULL && strcmp((*place)->name, name) < 0)
        place = &(*place)->next;
    layer->next = *place;
    *place = layer;
}

/* ---- Layers that only tests need ---- */

mica_value layer_leaf(mica_net *net, const char *name, int rank, const mica_index *dims)
{
    mica_net_layer_begin(net, "leaf", name, 0);
    mica_value value = mica_net_learned(net, "value", rank, dims, (mica_init){MICA_INIT_NORMAL, 1.0f});
    return mica_net_layer_end(net, mica_net_op(net, NULL, "copy", &value, 1, NULL));
}

mica_value layer_indices(mica_net *net, const char *name, int rank, const mica_index *dims, int below)
{
    char full[64];
    snprintf(full, sizeof full, "%s below %d", name, below);
    return mica_net_input(net, full, MICA_I32, rank, dims);
}

/* The weight of element i: some fixed numbers of either sign. */
static double weight(size_t i) { return sin(1.0 + 1.7 * (double)i); }

static mica_status sum_infer(mica_infer *i)
{
    mica_status status = mica_infer_out(i, 0, MICA_F32, 0, NULL);
    return status != MICA_OK ? status : mica_infer_like(i, 1, 0);
}

static mica_status sum_run(const mica_call *c)
{
    if (mica_call_measuring(c))
        return MICA_OK;
    const float *x = c->in[0]->data;
    double sum = 0.0;
    for (size_t i = 0; i < mica_tensor_count(c->in[0]); i++) {
        sum += weight(i) * (double)x[i];
        if (c->out[1] != NULL)
            ((float *)c->out[1]->data)[i] = (float)weight(i);
    }
    *(float *)c->out[0]->data = (float)sum;
    return MICA_OK;
}

static mica_status scaled_run(const mica_call *c)
{
    return mica_scale(c->ctx, c->out[0], c->in[0], c->scale);
}

static const mica_op scaled = {.name = "scaled", .ins = 1, .outs = 1, .in_place = {1}, .run = scaled_run};

static void sum_gradient(mica_grad *g) { mica_grad_give(g, 0, &scaled, &g->out[1], 1, NULL); }

static const mica_op weighted_sum = {.name = "weighted_sum",
                                     .flags = MICA_OP_LOSS,
                                     .ins = 1,
                                     .outs = 2,
                                     .optional_outs = 2,
                                     .infer = sum_infer,
                                     .run = sum_run,
                                     .gradient = sum_gradient};

mica_value layer_weighted_sum(mica_net *net, mica_value x)
{
    return mica_net_call(net, NULL, &weighted_sum, &x, 1, NULL);
}

/* ---- One net ---- */

typedef struct checked_net {
    mica_net *net;
    mica_value y;
    mica_tensor out; /* y's tensor */
} checked_net;

static bool build(checked_net *c, mica_context *ctx, const layer_case *layer, uint64_t seed, size_t budget)
{
    test_random r = test_seed(seed);
    mica_net_create(ctx, &c->net);
    c->y = layer->build(c->net, &r);
    mica_net_output(c->net, "y", c->y);
    layer_weighted_sum(c->net, c->y);
    mica_compile_opts opts = {.train = true, .debug = true, .budget = budget};
    return CHECK_MSG(mica_net_compile(c->net, &opts) == MICA_OK, "%s: %s", layer->name, mica_error(ctx)) &&
           CHECK_OK(ctx, mica_net_bind(c->net, NULL, 0)) &&
           CHECK_OK(ctx, mica_net_initialize(c->net, seed)) &&
           CHECK_OK(ctx, mica_net_value_tensor(c->net, &c->out, c->y));
}

/* Keeps leaves away from a corner at 0. */
static void push_away(const layer_case *layer, mica_net *net)
{
    for (int p = 0; p < mica_net_parameters(net); p++) {
        const char *name;
        mica_tensor t;
        mica_net_parameter(net, &name, &t, p);
        float *v = t.data;
        for (size_t i = 0; i < mica_tensor_count(&t) && strstr(name, ".value") != NULL; i++)
            if (fabsf(v[i]) < layer->away)
                v[i] = v[i] < 0.0f ? v[i] - layer->away : v[i] + layer->away;
    }
}

static void fill_indices(mica_net *net, uint64_t seed)
{
    for (int n = 0; n < mica_net_inputs(net); n++) {
        const char *name;
        mica_tensor t;
        mica_net_input_tensor(net, &name, &t, n);
        const char *below = strstr(name, " below ");
        test_random r = test_seed(seed + (uint64_t)n);
        for (size_t i = 0; below != NULL && i < mica_tensor_count(&t); i++)
            ((int32_t *)t.data)[i] = test_int(&r, 0, atoi(below + 7) - 1);
    }
}

/* The weighted sum in double precision, of a forward in training mode. */
static double loss_of(void *user, mica_net *net)
{
    const mica_tensor *y = &((const checked_net *)user)->out;
    double sum = 0.0;
    (void)net;
    for (size_t i = 0; i < mica_tensor_count(y); i++)
        sum += weight(i) * (double)((const float *)y->data)[i];
    return sum;
}

/* Every element of every parameter. */
static void check_gradients(const layer_case *layer, checked_net *c, uint64_t seed)
{
    mica_gradient_check got;
    mica_gradient_check_opts opts = {
        .step = layer->step, .tolerance = layer->tolerance, .count = 100000, .loss = loss_of, .user = c};
    CHECK_MSG(mica_check_gradients(c->net, &got, &opts) == MICA_OK, "%s: %s", layer->name,
              mica_error(mica_net_context(c->net)));
    CHECK_MSG(got.right && got.checked > 0,
              "%s: seed %d: gradient of %s[%zu] is %g, by differences %g (%g of the largest)", layer->name,
              (int)seed, got.name, got.element, got.gradient, got.difference, got.error);
    CHECK_MSG(got.corners * 20 <= got.checked + 20, "%s: seed %d: %zu of %zu elements lie at corners",
              layer->name, (int)seed, got.corners, got.checked);
}

static bool selected(const layer_case *layer)
{
    const char *only = getenv("MICA_LAYER");
    return only == NULL || *only == '\0' || strcmp(layer->name, only) == 0;
}

TEST(layers_have_the_gradients_of_their_forward)
{
    mica_context *ctx = test_context(1);
    for (const layer_case *layer = cases; layer != NULL; layer = layer->next) {
        for (uint64_t seed = 0; selected(layer) && seed < (uint64_t)(layer->draws > 0 ? layer->draws : 6);
             seed++) {
            checked_net c;
            if (build(&c, ctx, layer, seed, 0)) {
                push_away(layer, c.net);
                fill_indices(c.net, seed);
                test_heap heap = test_heap_now();
                CHECK_MSG(mica_net_gradients(c.net, NULL) == MICA_OK, "%s: %s", layer->name, mica_error(ctx));
                CHECK_MSG(test_heap_now().calls == heap.calls, "%s: heap calls in a step", layer->name);
                fill_indices(c.net, seed);
                check_gradients(layer, &c, seed);
            }
            mica_net_destroy(c.net);
        }
    }
}

/* Gradients after a step in this net, as a copy; *count their number. */
static float *gradients_of(checked_net *c, const layer_case *layer, uint64_t seed, size_t *count)
{
    push_away(layer, c->net);
    fill_indices(c->net, seed);
    CHECK_OK(mica_net_context(c->net), mica_net_gradients(c->net, NULL));
    mica_tensor g;
    mica_net_flat(c->net, NULL, &g);
    *count = mica_tensor_count(&g);
    float *copy = malloc(*count * sizeof *copy + 1);
    memcpy(copy, g.data, *count * sizeof *copy);
    return copy;
}

TEST(layers_accumulate_gradients)
{
    mica_context *ctx = test_context(2);
    for (const layer_case *layer = cases; layer != NULL; layer = layer->next) {
        checked_net c;
        if (selected(layer) && build(&c, ctx, layer, 1, 0)) {
            size_t count;
            float *once = gradients_of(&c, layer, 1, &count);
            fill_indices(c.net, 1);
            CHECK_OK(ctx, mica_net_gradients(c.net, &(mica_backward_opts){.add = true}));
            mica_tensor g;
            mica_net_flat(c.net, NULL, &g);
            float worst = 0.0f, largest = 1e-3f;
            for (size_t i = 0; i < count; i++) {
                worst = fmaxf(worst, fabsf(((float *)g.data)[i] - 2.0f * once[i]));
                largest = fmaxf(largest, fabsf(once[i]));
            }
            CHECK_MSG(worst <= 1e-5f * largest, "%s: twice the gradient is %g off", layer->name,
                      (double)worst);
            free(once);
        }
        if (selected(layer))
            mica_net_destroy(c.net);
    }
}
