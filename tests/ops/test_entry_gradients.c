/* Gradients of entries against finite differences of their forward, through real nets: a leaf for each input, the
 * operation, a weighted sum of what it makes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/entry.h"
#include "ops/entry_draw.h"

#define DRAWS     40
#define STEP      1e-2f
#define TOLERANCE 5e-3 /* relative to the largest gradient of the input */

/* Inputs of f32 that have no gradient: conditions, targets, tables, shapes. */
static const struct {
    const char *op;
    unsigned inputs;
} constants[] = {
    {"where", 1u << 0},    {"broadcast_to", 1u << 1}, {"rotary", 1u << 1 | 1u << 2},
    {"sum_taps", 1u << 2}, {"roi_align", 1u << 1},
};

static unsigned constant_inputs(const mica_op *op)
{
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++)
        if (strcmp(constants[i].op, op->name) == 0)
            return constants[i].inputs;
    return op->flags & MICA_OP_LOSS ? 1u << 1 | 1u << 2 : 0u; /* the target, and the weights of classes */
}

/* ---- A loss that is linear in x ---- */

static double weight(size_t i) { return sin(1.0 + 1.7 * (double)i); }

static mica_status sum_infer(mica_infer *i) { return mica_infer_out(i, 0, MICA_F32, 0, NULL); }

static mica_status sum_run(const mica_call *c)
{
    double sum = 0.0;
    if (mica_call_measuring(c))
        return MICA_OK;
    for (size_t i = 0; i < mica_tensor_count(c->in[0]); i++)
        sum += weight(i) * (double)((const float *)c->in[0]->data)[i];
    *(float *)c->out[0]->data = (float)sum;
    return MICA_OK;
}

static mica_status sum_run_back(const mica_call *c)
{
    for (size_t i = 0; !mica_call_measuring(c) && i < mica_tensor_count(c->out[0]); i++)
        ((float *)c->out[0]->data)[i] = (float)weight(i) * c->scale;
    return MICA_OK;
}

static const mica_op sum_back = {.name = "weights", .ins = 1, .outs = 1, .run = sum_run_back};

static void sum_gradient(mica_grad *g) { mica_grad_give(g, 0, &sum_back, g->in, 1, NULL); }

static const mica_op weighted_sum = {.name = "weighted_sum",
                                     .flags = MICA_OP_LOSS,
                                     .ins = 1,
                                     .outs = 1,
                                     .infer = sum_infer,
                                     .run = sum_run,
                                     .gradient = sum_gradient};

/* ---- One draw ---- */

typedef struct checked {
    entry_draw draw;
    entry_net n;
    unsigned learned;
    bool sums[MICA_OP_OUTS]; /* which outputs are summed to the loss */
    bool twice;              /* by two calls, so that the second to go back adds to the first's gradients */
} checked;

typedef struct tally {
    int checked, at_corners;
} tally;

/* A loss of what the call made. */
static void add_losses(const checked *c, mica_value first)
{
    for (int k = 0; k < c->draw.op->outs; k++)
        if (c->sums[k]) {
            mica_value y = mica_net_result(c->n.net, first, k);
            (void)mica_net_call(c->n.net, NULL, &weighted_sum, &y, 1, NULL);
        }
}

static bool build(checked *c, mica_context *ctx, const mica_op *op, uint64_t seed)
{
    entry_draw *d = &c->draw;
    *c = (checked){.learned = 0};
    entry_draw_make(d, ctx, op, seed);
    unsigned out_of_reach = constant_inputs(op) | op->writes;
    for (int i = 0; i < d->sample.ins; i++)
        if (d->given[i] && d->in[i].dtype == MICA_F32 && !(out_of_reach >> i & 1u))
            c->learned |= 1u << i;
    bool copied = seed % 2 == 0;
    if (c->learned == 0 || !entry_net_make(&c->n, ctx, d, c->learned, copied))
        return false;
    bool loss = (op->flags & MICA_OP_LOSS) != 0, any = loss;
    for (int k = 0; k < op->outs && !loss; k++) {
        c->sums[k] = entry_result(d, k) && d->out[k].dtype == MICA_F32;
        any = any || c->sums[k];
    }
    c->twice = seed % 3 == 0 && op->writes == 0 && !(op->flags & MICA_OP_RANDOM);
    add_losses(c, c->n.out[0]);
    if (c->twice)
        add_losses(c, mica_net_call(c->n.net, NULL, op, c->n.in, d->sample.ins, d->sample.opts));
    if (!any)
        return false;
    return CHECK_MSG(mica_net_compile(c->n.net, &(mica_compile_opts){.train = true, .debug = true}) ==
                         MICA_OK,
                     "%s: seed %d: %s", op->name, (int)seed, mica_error(ctx)) &&
           CHECK_OK(ctx, mica_net_bind(c->n.net, NULL, 0)) &&
           CHECK_OK(ctx, mica_net_initialize(c->n.net, seed)) && entry_net_fill(&c->n, d, c->learned, false);
}

/* The loss of a forward in training mode, in double precision where it is a sum. */
static double loss_of(const checked *c)
{
    entry_net_fill(&c->n, &c->draw, c->learned, true);
    CHECK_OK(mica_net_context(c->n.net), mica_net_forward_training(c->n.net, 0));
    if (c->draw.op->flags & MICA_OP_LOSS)
        return (double)mica_net_loss(c->n.net);
    double sum = 0.0;
    for (int k = 0; k < c->draw.op->outs; k++) {
        mica_tensor y;
        if (!c->sums[k] || mica_net_value_tensor(c->n.net, &y, c->n.out[k]) != MICA_OK)
            continue;
        for (size_t i = 0; i < mica_tensor_count(&y); i++)
            sum += weight(i) * (double)((const float *)y.data)[i];
    }
    return c->twice ? 2.0 * sum : sum;
}

/* Differences to both sides of an element. */
typedef struct slopes {
    double below, above, middle;
} slopes;

static slopes slopes_of(const checked *c, float *x)
{
    float kept = *x;
    volatile float high = kept + STEP, low = kept - STEP;
    double here = loss_of(c);
    *x = high;
    double above = loss_of(c);
    *x = low;
    double below = loss_of(c);
    *x = kept;
    return (slopes){(here - below) / ((double)kept - (double)low),
                    (above - here) / ((double)high - (double)kept),
                    (above - below) / ((double)high - (double)low)};
}

/* At a corner any slope between those of the two sides will do. */
static bool between(const slopes *s, double g, double most)
{
    return fabs(s->above - s->below) > 2.0 * most && g >= fmin(s->above, s->below) - most &&
           g <= fmax(s->above, s->below) + most;
}

static void check_input(checked *c, int in, uint64_t seed, tally *t)
{
    mica_context *ctx = mica_net_context(c->n.net);
    char name[16];
    mica_tensor x, g;
    snprintf(name, sizeof name, "in %d", in);
    if (!CHECK_OK(ctx, mica_net_tensor(c->n.net, &x, name)) ||
        !CHECK_OK(ctx, mica_net_gradient(c->n.net, &g, name)))
        return;
    size_t count = mica_tensor_count(&x);
    slopes *numeric = malloc(count * sizeof *numeric + 1);
    double largest = 1e-3;
    for (size_t i = 0; i < count; i++) {
        numeric[i] = slopes_of(c, (float *)x.data + i);
        largest = fmax(largest, fabs(numeric[i].middle));
    }
    for (size_t i = 0; i < count; i++) {
        double gradient = (double)((const float *)g.data)[i];
        bool near = fabs(gradient - numeric[i].middle) <= TOLERANCE * largest;
        bool corner = !near && between(&numeric[i], gradient, TOLERANCE * largest);
        t->checked++;
        t->at_corners += corner;
        if (!CHECK_MSG(near || corner,
                       "%s: seed %d: gradient of input %d [%zu] is %g, by differences %g (largest %g)",
                       c->draw.op->name, (int)seed, in, i, gradient, numeric[i].middle, largest))
            break;
    }
    free(numeric);
}

static void check_draw(mica_context *ctx, const mica_op *op, uint64_t seed, tally *t)
{
    checked c;
    if (build(&c, ctx, op, seed)) {
        test_heap heap = test_heap_now();
        CHECK_MSG(mica_net_gradients(c.n.net, NULL) == MICA_OK, "%s: %s", op->name, mica_error(ctx));
        CHECK_MSG(test_heap_now().calls == heap.calls, "%s: heap calls in a step", op->name);
        for (int i = 0; i < c.draw.sample.ins; i++)
            if (c.learned >> i & 1u)
                check_input(&c, i, seed, t);
    }
    mica_net_destroy(c.n.net);
    entry_draw_free(&c.draw);
}

TEST(entries_have_the_gradients_of_their_forward)
{
    mica_context *ctx = test_context(1);
    for (int n = 0; mica_op_at(n) != NULL; n++) {
        const mica_op *op = mica_op_at(n);
        bool view = (op->flags & MICA_OP_VIEW) != 0;
        if (entry_skipped(op) || !entry_callable(op) || (op->gradient == NULL && !view))
            continue;
        tally t = {0};
        for (uint64_t seed = 0; seed < (uint64_t)test_effort(DRAWS); seed++)
            check_draw(ctx, op, seed, &t);
        CHECK_MSG(t.checked > 0, "%s: no gradient was checked", op->name);
        CHECK_MSG(t.checked < 100 || t.at_corners * 10 <= t.checked, "%s: %d of %d elements lie at corners",
                  op->name, t.at_corners, t.checked);
    }
}

/* ---- Cases that samples do not draw ---- */

/* Gradient of the leaf "x" [count] through one call, of the weighted sum of its result. */
static void expect_gradient(const mica_op *op, const void *opts, int rank, const mica_index *dims,
                            const float *x, const float *want)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    mica_tensor t, g;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value leaf = mica_net_learned(net, "x", rank, dims, (mica_init){MICA_INIT_CONSTANT, 0.0f});
    mica_value y = mica_net_call(net, NULL, op, &leaf, 1, opts);
    (void)mica_net_call(net, NULL, &weighted_sum, &y, 1, NULL);
    if (CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .debug = true})) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(net, 1)) &&
        CHECK_OK(ctx, mica_net_tensor(net, &t, "x")) && CHECK_OK(ctx, mica_net_gradient(net, &g, "x"))) {
        memcpy(t.data, x, mica_tensor_bytes(&t));
        CHECK_OK(ctx, mica_net_gradients(net, NULL));
        for (size_t i = 0; i < mica_tensor_count(&t); i++) {
            float got = ((const float *)g.data)[i];
            CHECK_MSG(fabsf(got - want[i]) <= 1e-5f * (1.0f + fabsf(want[i])),
                      "%s: gradient %zu is %g, expected %g", op->name, i, (double)got, (double)want[i]);
        }
    }
    mica_net_destroy(net);
}

TEST(entry_gradient_of_products_with_zeros)
{
    /* Rows without a zero, with one, with two. */
    const float x[] = {2.0f, -3.0f, 0.5f, 4.0f, 0.0f, 5.0f, 0.0f, 7.0f, 0.0f};
    const float w[] = {(float)weight(0), (float)weight(1)};
    const float want[] = {-1.5f * w[0], 1.0f * w[0], -6.0f * w[0], 0.0f, 20.0f * w[1],
                          0.0f,         0.0f,        0.0f,         0.0f};
    expect_gradient(&mica_op_prod, &(mica_reduction_opts){.axes = {-1}, .count = 1}, 2, (mica_index[]){3, 3},
                    x, want);
}

TEST(entry_gradient_of_equal_extremes)
{
    /* Over both axes, the first in row-major order. */
    const float x[] = {1.0f, 2.0f, 3.0f, 3.0f, 0.0f, 3.0f};
    const float w = (float)weight(0), first[] = {0, 0, w, 0, 0, 0}, zero[] = {0, 0, 0, 0, w, 0};
    expect_gradient(&mica_op_amax, NULL, 2, (mica_index[]){2, 3}, x, first);
    expect_gradient(&mica_op_amin, NULL, 2, (mica_index[]){2, 3}, x, zero);
    const float row[] = {0.0f, (float)weight(0), 0.0f, 0.0f};
    const float y[] = {1.0f, -3.0f, 3.0f, 2.0f};
    float want[4];
    for (int i = 0; i < 4; i++)
        want[i] = -row[i]; /* the sign of -3 */
    expect_gradient(&mica_op_norm, &(mica_reduction_opts){.kind = MICA_NORM_INF}, 1, (mica_index[]){4}, y,
                    want);
}

TEST(entry_gradients_where_a_norm_is_0)
{
    const float x[3] = {0.0f}, want[3] = {0.0f};
    expect_gradient(&mica_op_norm, NULL, 1, (mica_index[]){3}, x, want);
}

TEST(entry_gradients_pass_through_casts)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    mica_tensor t, g;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_learned(net, "x", 1, (mica_index[]){5}, (mica_init){MICA_INIT_CONSTANT, 1.5f});
    mica_value half = mica_net_op(net, NULL, "copy", &x, 1,
                                  &(mica_copy_opts){.cast = true, .dtype = MICA_F16});
    mica_value single = mica_net_op(net, NULL, "copy", &half, 1,
                                    &(mica_copy_opts){.cast = true, .dtype = MICA_F32});
    mica_value y = mica_net_op(net, NULL, "square", &single, 1, NULL);
    (void)mica_net_call(net, NULL, &weighted_sum, &y, 1, NULL);
    if (CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .debug = true})) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(net, 1)) &&
        CHECK_OK(ctx, mica_net_gradients(net, NULL)) && CHECK_OK(ctx, mica_net_gradient(net, &g, "x"))) {
        CHECK(mica_net_tensor(net, &t, "x") == MICA_OK && t.dtype == MICA_F32);
        for (size_t i = 0; i < 5; i++)
            CHECK(fabs((double)((const float *)g.data)[i] - 3.0 * weight(i)) < 1e-5);
    }
    mica_net_destroy(net);
}
