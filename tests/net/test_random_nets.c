/* Plans of random nets: branches, sums, products, views, saved values, shared and frozen parameters, several losses,
 * outputs in the middle. However memory is shared, the gradients have the bits of a net where nothing is. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/example_nets.h"
#include "net/net.h"
#include "net/random_net.h"

enum { MOST_FLAT = 60000, STEPS = 5 };

/* ---- Four ways to plan it ---- */

typedef struct outcome {
    float loss;
    float gradients[MOST_FLAT];
    float outputs[MOST_FLAT];
    size_t gradient_count, output_count;
} outcome;

static void fill_inputs(mica_net *net, uint64_t seed)
{
    test_random r = test_seed(seed);
    for (int i = 0; i < mica_net_inputs(net); i++) {
        mica_tensor t;
        mica_net_input_tensor(net, NULL, &t, i);
        for (size_t j = 0; j < mica_tensor_count(&t); j++) {
            if (t.dtype == MICA_F32)
                ((float *)t.data)[j] = (float)test_uniform(&r, -1.0, 1.0);
            else
                ((int32_t *)t.data)[j] = test_int(&r, 0, RANDOM_NET_BELOW - 1);
        }
    }
}

/* Every parameter's gradient and every output, one behind the other. */
static void collect(mica_net *net, outcome *out)
{
    out->loss = mica_net_loss(net);
    out->gradient_count = out->output_count = 0;
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *v = &net->values[i];
        mica_tensor t;
        if (v->maker != NONE && (net->nodes[v->maker].op->flags & MICA_OP_LOSS))
            continue; /* of a step in parts, that of the last */
        if (v->output)
            CHECK_OK(net->ctx, mica_net_value_tensor(net, &t, i + 1));
        else if (v->kind == MICA_BUFFER_PARAMETER && v->gradient != NONE)
            t = net->values[v->gradient].tensor;
        else
            continue;
        float *to = v->output ? out->outputs : out->gradients;
        size_t *used = v->output ? &out->output_count : &out->gradient_count;
        REQUIRE(*used + mica_tensor_count(&t) <= MOST_FLAT);
        memcpy(to + *used, t.data, mica_tensor_bytes(&t));
        *used += mica_tensor_count(&t);
    }
}

/* Two steps, the second with gradients that are added; then some with smaller batches. */
static void run(mica_net *net, uint64_t seed, outcome *out)
{
    mica_context *ctx = mica_net_context(net);
    REQUIRE(CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(net, seed)));
    for (int step = 0; step < 2; step++) {
        fill_inputs(net, seed + (uint64_t)step);
        CHECK_OK(ctx, mica_net_gradients(net, &(mica_backward_opts){.add = step > 0}));
        collect(net, &out[step]);
    }
    test_random r = test_seed(seed);
    for (int step = 2; step < STEPS; step++) {
        CHECK_OK(ctx, mica_net_resize(net, step == 2 ? 1 : test_int(&r, 1, (int)net->size[0].most)));
        fill_inputs(net, seed + (uint64_t)step);
        CHECK_OK(ctx, mica_net_gradients(net, NULL));
        collect(net, &out[step]);
    }
}

static void compare(const char *how, uint64_t seed, const outcome *got, const outcome *want)
{
    for (int i = 0; i < STEPS; i++) {
        bool same = memcmp(&got[i].loss, &want[i].loss, sizeof(float)) == 0 &&
                    got[i].gradient_count == want[i].gradient_count &&
                    got[i].output_count == want[i].output_count &&
                    memcmp(got[i].gradients, want[i].gradients, want[i].gradient_count * sizeof(float)) ==
                        0 &&
                    memcmp(got[i].outputs, want[i].outputs, want[i].output_count * sizeof(float)) == 0;
        CHECK_MSG(same, "net %d, %s, step %d: other bits than with nothing shared", (int)seed, how, i);
    }
}

static double distance(const float *got, const float *want, size_t count)
{
    double error = 0.0, size = 0.0;
    for (size_t i = 0; i < count; i++) {
        error += pow((double)got[i] - (double)want[i], 2.0);
        size += pow((double)want[i], 2.0);
    }
    return sqrt(error) / (sqrt(size) + 1e-6);
}

/* A batch in parts: the same within rounding. */
static void compare_parts(uint64_t seed, const outcome *got, const outcome *want)
{
    for (int i = 0; i < STEPS; i++) {
        double gradients = distance(got[i].gradients, want[i].gradients, want[i].gradient_count);
        double outputs = distance(got[i].outputs, want[i].outputs, want[i].output_count);
        CHECK_MSG(gradients < 1e-4 && outputs < 1e-4,
                  "net %d in parts, step %d: gradients off by %g, outputs by %g", (int)seed, i, gradients,
                  outputs);
    }
}

typedef struct tightness {
    double sum, worst;           /* of the block over its lower bound */
    double packed, packed_worst; /* of the packed part alone */
    int count, recomputed, parts;
} tightness;

static void add_tightness(tightness *t, const mica_net *net)
{
    const mica_plan *plan = mica_net_plan(net);
    double ratio = (double)plan->total / (double)plan->lower_bound;
    double packed = (double)(plan->total - net->persistent) / (double)(plan->lower_bound - net->persistent);
    t->sum += ratio;
    t->worst = ratio > t->worst ? ratio : t->worst;
    t->packed += packed;
    t->packed_worst = packed > t->packed_worst ? packed : t->packed_worst;
    t->count++;
}

static mica_net *compiled(mica_context *ctx, uint64_t seed, bool debug, size_t budget)
{
    mica_net *net = random_net(ctx, seed, false);
    if (net != NULL && mica_net_compile(net, &(mica_compile_opts){
                                                 .train = true, .debug = debug, .budget = budget}) == MICA_OK)
        return net;
    mica_net_destroy(net);
    return NULL;
}

static void check_compiled(mica_net *net, const char *how, uint64_t seed, const outcome *want,
                           tightness *tight)
{
    static outcome got[STEPS];
    REQUIRE(net != NULL);
    const mica_plan *plan = mica_net_plan(net);
    check_plan(plan);
    run(net, seed, got);
    if (plan->parts == 1)
        compare(how, seed, got, want);
    else if (seed % 2 == 1)
        compare_parts(seed, got, want);
    tight->recomputed += plan->parts == 1 && plan->recomputed > 0;
    tight->parts += plan->parts > 1;
    mica_net_destroy(net);
}

static void check_net(mica_context *ctx, uint64_t seed, tightness *tight)
{
    static outcome want[STEPS];
    mica_net *net = random_net(ctx, seed, false);
    REQUIRE(net != NULL);
    net->unshared = true;
    if (CHECK_MSG(mica_net_compile(net, &(mica_compile_opts){.train = true}) == MICA_OK, "net %d: %s",
                  (int)seed, mica_error(ctx)))
        run(net, seed, want);
    mica_net_destroy(net);

    net = compiled(ctx, seed, false, 0);
    REQUIRE(net != NULL);
    add_tightness(tight, net);
    check_compiled(net, "plain", seed, want, tight);
    net = compiled(ctx, seed, true, 0);
    REQUIRE(net != NULL);
    size_t unlimited = mica_net_plan(net)->total;
    check_compiled(net, "guarded and poisoned", seed, want, tight);
    for (size_t percent = 75; percent <= 95; percent += 20) {
        net = compiled(ctx, seed, true, unlimited * percent / 100);
        if (net == NULL) { /* not every net can be that small */
            CHECK(mica_context_status(ctx) == MICA_ERR_MEMORY);
            continue;
        }
        CHECK(mica_net_plan(net)->total <= unlimited * percent / 100);
        check_compiled(net, "with a budget", seed, want, tight);
    }
}

TEST(random_nets_share_memory_without_a_trace)
{
    mica_context *ctx = test_context(2);
    tightness t = {0};
    int nets = test_effort(1000);
    const char *from = getenv("MICA_TEST_SEED"); /* other nets than those of every day */
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 0;
    for (uint64_t seed = first; seed < first + (uint64_t)nets; seed++)
        check_net(ctx, seed, &t);
    if (getenv("MICA_TEST_SHOW") != NULL)
        printf(
            "  %d nets: block / lower bound %.4f on average, %.4f at worst; packed part %.4f, %.4f; %d recompute, %d run in parts\n",
            t.count, t.sum / t.count, t.worst, t.packed / t.count, t.packed_worst, t.recomputed, t.parts);
    CHECK_MSG(t.sum / t.count <= 1.03, "on average %.4f of the lower bound", t.sum / t.count);
    CHECK_MSG(t.worst <= 1.10, "at worst %.4f of the lower bound", t.worst);
    CHECK(t.recomputed > nets / 20 && t.parts > nets / 20);
}
