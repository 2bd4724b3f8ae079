/* Recurrent calls over prepared weights: which calls become one, and the same numbers as without, at every step. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <mica/layers.h>
#include <mica/op.h>

#include "net/net.h"
#include "node/entry.h"
#include "test.h"

/* ---- Nets ---- */

/* How the outputs of two directions over the same x are used; and how many calls of prepared weights there are, and of
 * concat and permute. */
typedef enum use {
    APART,    /* each is an output */
    JOINED,   /* along the last axis */
    STACKED,  /* along a new first axis */
    TURNED,   /* along a new axis behind the first, which then goes behind the second: as ONNX has it */
    MIXED_UP, /* the same, but rows do not stay rows */
    ONE_READ, /* joined, and one of them is read besides */
    LAST,     /* the last steps, joined */
    TWICE,    /* the same one joined with itself */
    ALONE,    /* one direction only */
    CHAINED,  /* the second starts from what the first ends with */
    CHANGING, /* weights that change */
    PAIRED,   /* along a new last axis: rows do not stay rows */
    USES
} use;

static const struct {
    int prepared, moves;
} expected[USES] = {[APART] = {1, 0},  [JOINED] = {1, 0},   [STACKED] = {1, 0},  [PAIRED] = {1, 1},
                    [TURNED] = {1, 0}, [MIXED_UP] = {1, 1}, [ONE_READ] = {1, 1}, [LAST] = {1, 1},
                    [TWICE] = {1, 1},  [ALONE] = {1, 0},    [CHAINED] = {2, 1},  [CHANGING] = {0, 1}};

typedef struct shape {
    int cell;
    use use;
    mica_index batch, steps, inputs, hidden;
    bool biases, time_first;
} shape;

static mica_value direction(mica_net *net, const shape *s, mica_value x, const char *name, mica_value h_0)
{
    static const char *const names[] = {"lstm", "gru", "rnn"};
    static const mica_index blocks[] = {4, 3, 1};
    mica_index gates = blocks[s->cell] * s->hidden, inputs[] = {gates, s->inputs},
               square[] = {gates, s->hidden};
    mica_init init = {MICA_INIT_NORMAL, 0.3f};
    mica_value in[10] = {x};
    mica_net_enter(net, name);
    in[1] = mica_net_learned(net, "w_ih", 2, inputs, init);
    in[2] = s->use == CHANGING ? mica_net_kept(net, "w_hh", MICA_KEPT_STATE, MICA_F32, 2,
                                               (mica_index[]){gates, s->hidden}, 0.1f)
                               : mica_net_learned(net, "w_hh", 2, square, init);
    for (int i = 3; s->biases && i < 5; i++)
        in[i] = mica_net_learned(net, i == 3 ? "b_ih" : "b_hh", 1, &gates, init);
    in[9] = h_0;
    mica_net_leave(net);
    return mica_net_op(net, name, names[s->cell], in, h_0 != 0 ? 10 : 5,
                       &(mica_sequence_opts){
                           .last = s->use == LAST, .reverse = name[0] == 'b', .time_first = s->time_first});
}

static mica_value use_both(mica_net *net, const shape *s, mica_value a, mica_value b)
{
    static const int axes[USES] = {
        [STACKED] = 0, [PAIRED] = 3,    [TURNED] = 1, [MIXED_UP] = 1, [LAST] = 1,
        [JOINED] = -1, [ONE_READ] = -1, [TWICE] = -1, [CHAINED] = -1, [CHANGING] = -1};
    int axis = axes[s->use];
    mica_value both[] = {a, s->use == TWICE ? a : b};
    for (int k = 0; axis >= 0 && s->use != LAST && k < 2; k++)
        both[k] = mica_net_op(net, NULL, "unsqueeze", &both[k], 1, &(mica_axis_opts){axis});
    mica_value y = mica_net_op(net, NULL, "concat", both, 2, &(mica_axis_opts){axis});
    if (s->use == TURNED)
        y = mica_net_op(net, NULL, "permute", &y, 1, &(mica_permute_opts){{0, 2, 1, -1}});
    if (s->use == MIXED_UP)
        y = mica_net_op(net, NULL, "permute", &y, 1, &(mica_permute_opts){{0, 2, 3, 1}});
    return y;
}

static void build(mica_net *net, const shape *s)
{
    mica_index batch = mica_net_size(net, "batch", s->batch), steps = mica_net_size(net, "steps", s->steps);
    mica_value x = mica_net_input(
        net, "x", MICA_F32, 3,
        (mica_index[]){s->time_first ? steps : batch, s->time_first ? batch : steps, s->inputs});
    mica_value a = direction(net, s, x, "forth", 0), b = 0;
    if (s->use == APART ||
        s->use == ALONE) /* a call behind the first that is none of its kind, and has no options */
        mica_net_output(net, "besides", mica_net_op(net, NULL, "sigmoid", &x, 1, NULL));
    if (s->use != ALONE)
        b = direction(net, s, x, "back", s->use == CHAINED ? mica_net_result(net, a, 4) : 0);
    if (s->use == APART || s->use == ALONE) {
        mica_net_output(net, "y", a);
        mica_net_output(net, "h", mica_net_result(net, b != 0 ? b : a, 4));
        if (b != 0)
            mica_net_output(net, "z", b);
        return;
    }
    mica_net_output(net, "y", use_both(net, s, a, b));
    if (s->use == ONE_READ)
        mica_net_output(net, "z", mica_net_op(net, NULL, "relu", &b, 1, NULL));
}

static mica_net *make(mica_context *ctx, const shape *s, bool prepare)
{
    mica_net *net = NULL;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    build(net, s);
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.prepare = prepare}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 3));
    return net;
}

/* ---- Checks ---- */

static int calls_of(const mica_net *net, const char *op)
{
    int count = 0;
    for (int e = 0; e < net->entry_count; e++)
        count += strcmp(net->entries[e].node.op->name, op) == 0;
    return count;
}

static void check_program(const mica_net *plain, const mica_net *net, const shape *s)
{
    int prepared = calls_of(net, "recurrent_prepared"),
        moves = calls_of(net, "concat") + calls_of(net, "permute");
    bool few = s->steps < 2 || s->steps * s->batch < 4;
    CHECK(calls_of(plain, "recurrent_prepared") == 0);
    if (few) {
        CHECK(prepared == 0);
        return;
    }
    CHECK_MSG(prepared == expected[s->use].prepared && moves == expected[s->use].moves,
              "use %d: %d calls of prepared weights, %d moves", (int)s->use, prepared, moves);
    CHECK((mica_net_plan(net)->kind_bytes[MICA_BUFFER_PREPARED] > 0) == (prepared > 0));
}

static void run(mica_net *net, uint64_t seed)
{
    mica_tensor x;
    test_random r = test_seed(seed);
    CHECK_OK(mica_net_context(net), mica_net_tensor(net, &x, "x"));
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)test_normal(&r);
    test_heap heap = test_heap_now();
    CHECK_OK(mica_net_context(net), mica_net_forward(net));
    CHECK(test_heap_now().calls == heap.calls);
}

static double difference(mica_net *a, mica_net *b, const char *name)
{
    mica_tensor x, y;
    double most = 0.0;
    if (mica_net_tensor(a, &x, name) != MICA_OK)
        return 0.0; /* this use has none */
    CHECK_OK(mica_net_context(b), mica_net_tensor(b, &y, name));
    CHECK(mica_tensor_same_shape(&x, &y));
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        most = fmax(most, fabs((double)((float *)x.data)[i] - (double)((float *)y.data)[i]));
    return most;
}

static void compare(mica_net *a, mica_net *b, const shape *s, double within)
{
    static const char *const outputs[] = {"y", "z", "h"};
    for (mica_index batch = s->batch; batch >= 0; batch -= 1 + batch / 3)
        for (mica_index steps = s->steps; steps > 0; steps -= 1 + steps / 2) {
            mica_net *nets[] = {a, b};
            for (int k = 0; k < 2; k++) {
                CHECK_OK(mica_net_context(nets[k]), mica_net_set_size(nets[k], "batch", batch));
                CHECK_OK(mica_net_context(nets[k]), mica_net_set_size(nets[k], "steps", steps));
                run(nets[k], (uint64_t)(100 * batch + steps));
            }
            for (int k = 0; k < 3; k++) {
                double off = difference(a, b, outputs[k]);
                CHECK_MSG(off <= within,
                          "cell %d, use %d, %td of %td, %td steps, %td to %td, %s: %s is off by %g", s->cell,
                          (int)s->use, batch, s->batch, steps, s->inputs, s->hidden,
                          mica_context_isa(mica_net_context(b)), outputs[k], off);
            }
        }
}

static void check(mica_context *const *ctx, int contexts, test_random *r)
{
    static const mica_index hidden[] = {1, 5, 17, 64, 100};
    shape s = {(int)test_int(r, 0, 2), (use)test_int(r, 0, CHANGING), test_int(r, 1, 9),  test_int(r, 1, 20),
               test_int(r, 1, 30),     hidden[test_int(r, 0, 4)],     test_chance(r, 70), test_chance(r, 50)};
    if (s.use == STACKED && s.inputs % 2 == 0)
        s.use = PAIRED;
    mica_net *plain = make(ctx[0], &s, false), *one = make(ctx[0], &s, true);
    REQUIRE(plain != NULL && one != NULL);
    check_program(plain, one, &s);
    compare(plain, one, &s,
            s.cell == 2 ? 1e-4 : 2e-5); /* a sequence alone adds up its products in another order */
    for (int k = 1; k < contexts; k++) {
        mica_net *more = make(ctx[k], &s, true);
        REQUIRE(more != NULL);
        compare(one, more, &s, 0.0);
        mica_net_destroy(more);
    }
    mica_net_destroy(plain);
    mica_net_destroy(one);
}

TEST(prepare_of_recurrent_calls)
{
    static const char *const sets[] = {"scalar", "avx2", "avx512", "neon"};
#if defined(MICA_NO_THREADS)
    enum { CONTEXTS = 1 };
#else
    enum { CONTEXTS = 3 };
#endif
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        mica_context *ctx[CONTEXTS] = {NULL};
        bool there = true;
        for (int k = 0; k < CONTEXTS && there; k++)
            there = mica_context_create(&ctx[k], &(mica_context_opts){.threads = k + 1, .isa = sets[i]}) ==
                    MICA_OK;
        test_random r = test_seed(70 + i);
        for (int k = 0; there && k < test_effort(40); k++)
            check(ctx, CONTEXTS, &r);
        for (int k = 0; k < CONTEXTS; k++)
            mica_context_destroy(ctx[k]);
    }
}

/* Weights that change are packed again when they are derived again; and where the budget has no room for packed ones,
 * there are none. */
TEST(prepare_of_recurrent_weights)
{
    mica_context *ctx = test_context(1);
    shape s = {0, TURNED, 3, 7, 11, 20, true, true};
    mica_net *plain = make(ctx, &s, false), *prepared = make(ctx, &s, true), *tight = NULL;
    REQUIRE(plain != NULL && prepared != NULL);
    mica_tensor w[2];
    CHECK_OK(ctx, mica_net_tensor(plain, &w[0], "forth.w_hh"));
    CHECK_OK(ctx, mica_net_tensor(prepared, &w[1], "forth.w_hh"));
    for (int k = 0; k < 100; k++)
        ((float *)w[0].data)[k] = ((float *)w[1].data)[k] = 0.5f;
    run(plain, 1);
    run(prepared, 1);
    CHECK(difference(plain, prepared, "y") > 1e-3); /* it has read the old ones */
    CHECK_OK(ctx, mica_net_derive(prepared));
    compare(plain, prepared, &s, 2e-5);
    CHECK_OK(ctx, mica_net_create(ctx, &tight));
    build(tight, &s);
    CHECK_OK(ctx, mica_net_compile(
                      tight, &(mica_compile_opts){.prepare = true, .budget = mica_net_plan(plain)->total}));
    CHECK(calls_of(tight, "recurrent_prepared") == 0 && calls_of(tight, "lstm") == 2);
    mica_net_destroy(plain);
    mica_net_destroy(prepared);
    mica_net_destroy(tight);
}

/* States that are lent may lie any way. */
TEST(prepare_of_recurrent_calls_from_lent_states)
{
    enum { BATCH = 3, STEPS = 5, INPUTS = 4, HIDDEN = 8 };
    mica_context *ctx = test_context(1);
    float state[BATCH * HIDDEN];
    test_random r = test_seed(9);
    for (int i = 0; i < BATCH * HIDDEN; i++)
        state[i] = (float)test_normal(&r);
    for (int turned = 0; turned < 2; turned++) {
        mica_net *nets[2] = {NULL, NULL};
        mica_tensor h_0 = mica_2d(state, BATCH, HIDDEN);
        if (turned) {
            h_0.stride[0] = 1;
            h_0.stride[1] = BATCH;
        }
        for (int k = 0; k < 2; k++) {
            shape s = {1, ALONE, BATCH, STEPS, INPUTS, HIDDEN, true, false};
            REQUIRE(mica_net_create(ctx, &nets[k]) == MICA_OK);
            mica_value x = mica_net_input(nets[k], "x", MICA_F32, 3, (mica_index[]){BATCH, STEPS, INPUTS});
            mica_net_output(nets[k], "y",
                            direction(nets[k], &s, x, "forth", mica_net_lent(nets[k], "h_0", &h_0)));
            CHECK_OK(ctx, mica_net_compile(nets[k], &(mica_compile_opts){.prepare = k == 1}));
            CHECK_OK(ctx, mica_net_bind(nets[k], NULL, 0));
            CHECK_OK(ctx, mica_net_initialize(nets[k], 3));
            run(nets[k], 1);
        }
        CHECK(calls_of(nets[1], "recurrent_prepared") == !turned);
        CHECK(difference(nets[0], nets[1], "y") <= 2e-5);
        mica_net_destroy(nets[0]);
        mica_net_destroy(nets[1]);
    }
}
