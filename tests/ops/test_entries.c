/* Every operation of the list has an entry; running it gives what a net of one call gives; in place and adding, too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/entry_draw.h"
#include "ops/list.h"

#define DRAWS 40

TEST(entries_are_complete)
{
    static const char *const listed[][2] = {
#define NAMES(name, family) {#name, #family},
        MICA_OPS(NAMES)
#undef NAMES
    };
    int count = (int)(sizeof listed / sizeof listed[0]);
    CHECK(mica_op_at(count) == NULL && mica_op_at(-1) == NULL);
    CHECK(mica_op_find("nothing") == NULL && mica_op_find(NULL) == NULL);
    for (int n = 0; n < count; n++) {
        const mica_op *op = mica_op_at(n);
        REQUIRE(op != NULL);
        CHECK_MSG(strcmp(op->name, listed[n][0]) == 0, "%s stands where %s should", op->name, listed[n][0]);
        CHECK_MSG(op->family != NULL && strcmp(op->family, listed[n][1]) == 0, "%s: family", op->name);
        CHECK_MSG(op->about != NULL && *op->about != '\0', "%s: what it computes is not said", op->name);
        CHECK_MSG(mica_op_find(op->name) == op, "%s is not found by its name", op->name);
        CHECK_MSG(op->run != NULL || (op->flags & MICA_OP_VIEW), "%s does not run", op->name);
        CHECK_MSG(op->infer != NULL || strstr(op->name, "_backward") != NULL, "%s infers nothing", op->name);
        CHECK_MSG(op->ins + op->optional_ins <= MICA_OP_INS && op->outs >= 1 && op->outs <= MICA_OP_OUTS,
                  "%s: counts", op->name);
        for (int f = 0; f < op->field_count; f++)
            CHECK_MSG(op->fields[f].name != NULL && op->fields[f].about != NULL &&
                          op->fields[f].offset < op->opts_bytes,
                      "%s: field %d", op->name, f);
    }
}

/* ---- Running ---- */

/* Reserves what a call takes; then it runs without another heap call. */
static bool reserve(mica_context *ctx, const entry_draw *d, const mica_tensor *const *outs)
{
    mica_measure_begin(ctx);
    mica_status status = mica_op_run(ctx, d->op, outs, d->ins, d->sample.ins, d->sample.opts);
    size_t bytes = mica_measure_end(ctx);
    return CHECK_MSG(status == MICA_OK, "%s: measuring: %s", d->op->name, mica_error(ctx)) &&
           CHECK_OK(ctx, mica_workspace_reserve(ctx, bytes));
}

static bool run(mica_context *ctx, const entry_draw *d, const mica_tensor *const *outs)
{
    if (!reserve(ctx, d, outs))
        return false;
    test_heap heap = test_heap_now();
    bool ok = CHECK_MSG(mica_op_run(ctx, d->op, outs, d->ins, d->sample.ins, d->sample.opts) == MICA_OK,
                        "%s: %s", d->op->name, mica_error(ctx));
    return CHECK_MSG(test_heap_now().calls == heap.calls, "%s: heap calls", d->op->name) && ok;
}

static void result_outs(const entry_draw *d, const mica_tensor **outs)
{
    for (int k = 0; k < MICA_OP_OUTS; k++)
        outs[k] = entry_result(d, k) ? &d->out[k] : NULL;
}

static bool same_bytes(const mica_tensor *a, const mica_tensor *b)
{
    return mica_tensor_same_shape(a, b) && a->dtype == b->dtype &&
           (mica_tensor_bytes(a) == 0 || memcmp(a->data, b->data, mica_tensor_bytes(a)) == 0);
}

/* A loss for nets that have none, so that they can be compiled for training. */
static void add_loss(mica_net *net)
{
    mica_value unused = mica_net_learned(net, "unused", 1, (mica_index[]){1},
                                         (mica_init){MICA_INIT_CONSTANT, 1.0f});
    mica_value target = mica_net_input(net, "unused target", MICA_F32, 1, (mica_index[]){1});
    (void)mica_net_op(net, "unused loss", "mse_loss", (mica_value[]){unused, target}, 2, NULL);
}

static void compare_with_net(mica_context *ctx, const entry_draw *d, uint64_t seed)
{
    const mica_op *op = d->op;
    entry_net n;
    bool ok = entry_net_make(&n, ctx, d, 0, false);
    if (ok) {
        add_loss(n.net);
        ok = CHECK_MSG(mica_net_compile(n.net, &(mica_compile_opts){.train = true, .debug = true}) == MICA_OK,
                       "%s: %s", op->name, mica_error(ctx)) &&
             CHECK_OK(ctx, mica_net_bind(n.net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(n.net, 0)) &&
             entry_net_fill(&n, d, 0, false);
    }
    if (ok) {
        test_heap heap = test_heap_now();
        CHECK_MSG(mica_net_forward_training(n.net, 0) == MICA_OK, "%s: %s", op->name, mica_error(ctx));
        CHECK_MSG(test_heap_now().calls == heap.calls, "%s: heap calls in a step", op->name);
    }
    for (int k = 0; ok && k < op->outs; k++) {
        mica_tensor t;
        if (!entry_result(d, k))
            continue;
        ok = CHECK_OK(ctx, mica_net_value_tensor(n.net, &t, n.out[k])) &&
             CHECK_MSG(same_bytes(&t, &d->out[k]), "%s: seed %d: output %d of a net differs", op->name,
                       (int)seed, k);
    }
    mica_net_destroy(n.net);
}

TEST(entries_run_as_in_a_net)
{
    mica_context *ctx = test_context(1);
    for (int n = 0; mica_op_at(n) != NULL; n++) {
        const mica_op *op = mica_op_at(n);
        for (uint64_t seed = 0;
             !entry_skipped(op) && entry_callable(op) && seed < (uint64_t)test_effort(DRAWS); seed++) {
            entry_draw d, kept;
            entry_draw_make(&d, ctx, op, seed);
            entry_draw_make(&kept, ctx, op, seed); /* running may write to inputs */
            const mica_tensor *outs[MICA_OP_OUTS];
            result_outs(&d, outs);
            bool view = (op->flags & MICA_OP_VIEW) != 0;
            if (view)
                memcpy(d.out[0].data, d.in[0].data, mica_tensor_bytes(&d.out[0]));
            if (view || run(ctx, &d, outs)) {
                for (int k = 0; k < op->outs; k++) {
                    void *own = kept.out[k].data;
                    kept.out[k] = d.out[k];
                    d.out[k].data = own;
                }
                compare_with_net(ctx, &kept, seed);
            }
            entry_draw_free(&d);
            entry_draw_free(&kept);
        }
    }
}

/* ---- In place ---- */

static void check_in_place(mica_context *ctx, const mica_op *op, uint64_t seed, int out, int in)
{
    entry_draw d, over;
    entry_draw_make(&d, ctx, op, seed);
    entry_draw_make(&over, ctx, op, seed);
    const mica_tensor *outs[MICA_OP_OUTS], *over_outs[MICA_OP_OUTS];
    result_outs(&d, outs);
    result_outs(&over, over_outs);
    if (op->optional_outs >> out & 1u) { /* only made if asked for */
        outs[out] = &d.out[out];
        over_outs[out] = &over.out[out];
    }
    bool fits = over.given[in] && over.in[in].dtype == over.out[out].dtype &&
                mica_tensor_same_shape(&over.in[in], &over.out[out]);
    if (fits) {
        over_outs[out] = &over.in[in];
        if (run(ctx, &d, outs) && run(ctx, &over, over_outs))
            for (int k = 0; k < op->outs; k++)
                CHECK_MSG(outs[k] == NULL || same_bytes(outs[k], over_outs[k]),
                          "%s: seed %d: output %d differs where output %d lies over input %d", op->name,
                          (int)seed, k, out, in);
    }
    entry_draw_free(&d);
    entry_draw_free(&over);
}

TEST(entries_run_in_place)
{
    mica_context *ctx = test_context(1);
    for (int n = 0; mica_op_at(n) != NULL; n++) {
        const mica_op *op = mica_op_at(n);
        for (uint64_t seed = 0; !entry_skipped(op) && op->run != NULL && entry_callable(op) &&
                                seed < (uint64_t)test_effort(DRAWS);
             seed++)
            for (int k = 0; k < op->outs; k++)
                for (int i = 0; i < op->ins; i++)
                    if (op->in_place[k] >> i & 1u)
                        check_in_place(ctx, op, seed, k, i);
    }
}

/* ---- Adding ---- */

/* What is added to has no activation behind it. */
static void clear_activation(const entry_draw *d)
{
    for (int f = 0; f < d->op->field_count; f++)
        if (d->op->fields[f].kind == MICA_FIELD_ACTIVATION)
            memset((char *)d->sample.opts + d->op->fields[f].offset, 0, sizeof(mica_activation));
}

static void check_adding(mica_context *ctx, const mica_op *op, uint64_t seed, int out)
{
    entry_draw d;
    entry_draw_make(&d, ctx, op, seed);
    clear_activation(&d);
    const mica_tensor *outs[MICA_OP_OUTS];
    result_outs(&d, outs);
    outs[out] = &d.out[out];
    if (run(ctx, &d, outs) && d.out[out].dtype == MICA_F32) {
        size_t count = mica_tensor_count(&d.out[out]);
        float *once = malloc(count * sizeof *once + 1), *y = d.out[out].data;
        memcpy(once, y, count * sizeof *once);
        for (size_t i = 0; i < count; i++)
            y[i] = (float)(i % 7) - 3.0f;
        mica_call call = {.ctx = ctx,
                          .op = op,
                          .opts = d.sample.opts,
                          .ins = op->ins + op->optional_ins,
                          .outs = op->outs,
                          .add = 1u << out,
                          .training = true,
                          .scale = 1.0f};
        memcpy(call.in, d.ins, sizeof call.in);
        memcpy(call.out, outs, sizeof call.out);
        CHECK_MSG(op->run(&call) == MICA_OK, "%s: adding: %s", op->name, mica_error(ctx));
        for (size_t i = 0; i < count; i++) {
            float want = (float)(i % 7) - 3.0f + once[i];
            if (!CHECK_MSG(fabsf(y[i] - want) <= 1e-5f * (4.0f + fabsf(once[i])),
                           "%s: seed %d: element %zu of output %d is %g, added to it should be %g", op->name,
                           (int)seed, i, out, (double)y[i], (double)want))
                break;
        }
        free(once);
    }
    entry_draw_free(&d);
}

TEST(entries_add_to_their_outputs)
{
    mica_context *ctx = test_context(1);
    for (int n = 0; mica_op_at(n) != NULL; n++) {
        const mica_op *op = mica_op_at(n);
        for (uint64_t seed = 0;
             !entry_skipped(op) && entry_callable(op) && seed < (uint64_t)test_effort(DRAWS); seed++)
            for (int k = 0; k < op->outs; k++)
                if (op->adds >> k & 1u)
                    check_adding(ctx, op, seed, k);
    }
}
