/* Recurrent layers beyond their gradients: states that are kept, streams, recomputation, and learning. */
#include <math.h>
#include <string.h>

#include <mica/train.h>

#include "layer/layer_case.h"

enum { BATCH = 3, TIME = 6, FEATURES = 4, UNITS = 5 };

typedef mica_value builder(mica_net *net, mica_value x, const mica_net_recurrent_opts *opts);

static builder *const builders[] = {mica_net_lstm, mica_net_gru, mica_net_rnn};

/* Two stacked layers of one kind over [BATCH, time, FEATURES]. */
static mica_net *stacked(mica_context *ctx, int kind, mica_index time, bool keep, const mica_net *weights)
{
    mica_net *net;
    mica_net_create(ctx, &net);
    mica_value x = mica_net_input(net, "x", MICA_F32, 3, (mica_index[]){BATCH, time, FEATURES});
    mica_value y = builders[kind](
        net, x, &(mica_net_recurrent_opts){.name = "cell", .units = UNITS, .layers = 2, .keep_state = keep});
    mica_net_output(net, "y", y);
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.weights = weights}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 5));
    return net;
}

static void fill(float *x, size_t count, uint64_t seed)
{
    test_random r = test_seed(seed);
    for (size_t i = 0; i < count; i++)
        x[i] = (float)test_normal(&r);
}

/* Runs steps first .. first + time - 1 of the sequences x [BATCH, TIME, FEATURES] into y [BATCH, TIME, UNITS]. */
static void run_steps(mica_net *net, const float *x, float *y, size_t first, size_t time)
{
    mica_tensor in, out;
    CHECK_OK(mica_net_context(net), mica_net_tensor(net, &in, "x"));
    for (size_t n = 0; n < BATCH; n++)
        memcpy((float *)in.data + n * time * FEATURES, x + (n * TIME + first) * FEATURES,
               time * FEATURES * sizeof *x);
    CHECK_OK(mica_net_context(net), mica_net_forward(net));
    CHECK_OK(mica_net_context(net), mica_net_tensor(net, &out, "y"));
    for (size_t n = 0; n < BATCH; n++)
        memcpy(y + (n * TIME + first) * UNITS, (float *)out.data + n * time * UNITS,
               time * UNITS * sizeof *y);
}

static float furthest(const float *a, const float *b, size_t count)
{
    float worst = 0.0f;
    for (size_t i = 0; i < count; i++)
        worst = fmaxf(worst, fabsf(a[i] - b[i]));
    return worst;
}

TEST(recurrent_streams_go_on_where_they_were)
{
    mica_context *ctx = test_context(1);
    for (int kind = 0; kind < 3; kind++) {
        float x[BATCH * TIME * FEATURES], whole[BATCH * TIME * UNITS], parts[BATCH * TIME * UNITS];
        fill(x, BATCH * TIME * FEATURES, 1);
        mica_net *all = stacked(ctx, kind, TIME, false, NULL);
        mica_net *stream = stacked(ctx, kind, 1, true, all),
                 *halves = stacked(ctx, kind, TIME / 2, true, all);
        CHECK(!mica_net_keeps_states(all) && mica_net_keeps_states(stream));
        run_steps(all, x, whole, 0, TIME);
        for (int round = 0; round < 2; round++) { /* again after a reset */
            test_heap heap = test_heap_now();
            for (size_t t = 0; t < TIME; t++)
                run_steps(stream, x, parts, t, 1);
            CHECK(test_heap_now().calls == heap.calls);
            CHECK(furthest(whole, parts, BATCH * TIME * UNITS) <= 2e-6f);
            run_steps(halves, x, parts, 0, TIME / 2);
            run_steps(halves, x, parts, TIME / 2, TIME / 2);
            CHECK(furthest(whole, parts, BATCH * TIME * UNITS) <= 2e-6f);
            CHECK_OK(ctx, mica_net_reset_states(stream));
            CHECK_OK(ctx, mica_net_reset_states(halves));
        }
        run_steps(stream, x, parts, 0, 1);
        run_steps(stream, x, parts, 0, 1); /* not the same state */
        CHECK(fabsf(parts[0] - whole[0]) > 1e-6f);
        mica_net_destroy(halves);
        mica_net_destroy(stream);
        mica_net_destroy(all);
    }
}

/* ---- Training with a state that is kept ---- */

static mica_net *kept(mica_context *ctx, int kind, bool last, size_t budget)
{
    mica_net *net;
    mica_net_create(ctx, &net);
    mica_value y = mica_net_input(net, "x", MICA_F32, 3, (mica_index[]){BATCH, TIME, FEATURES});
    y = builders[kind](
        net, y, &(mica_net_recurrent_opts){.name = "a", .units = UNITS, .layers = 4, .keep_state = true});
    y = builders[kind](net, y,
                       &(mica_net_recurrent_opts){.name = "b", .units = 4, .last = last, .keep_state = true});
    mica_value target = mica_net_input(net, "target", MICA_F32, last ? 2 : 3,
                                       (mica_index[]){BATCH, last ? 4 : TIME, 4});
    mica_net_mse(net, y, target, NULL);
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .budget = budget}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 5));
    return net;
}

static double loss_after(mica_net *net, bool back, uint64_t seed)
{
    mica_tensor x, target;
    CHECK_OK(mica_net_context(net), mica_net_tensor(net, &x, "x"));
    CHECK_OK(mica_net_context(net), mica_net_tensor(net, &target, "target"));
    fill(x.data, mica_tensor_count(&x), seed);
    fill(target.data, mica_tensor_count(&target), seed + 100);
    CHECK_OK(mica_net_context(net), back ? mica_net_gradients(net, NULL) : mica_net_forward_training(net, 0));
    return (double)mica_net_loss(net);
}

static float furthest_gradient(mica_net *a, mica_net *b)
{
    mica_tensor x, y;
    mica_net_flat(a, NULL, &x);
    mica_net_flat(b, NULL, &y);
    return furthest(x.data, y.data, mica_tensor_count(&x));
}

/* Recomputed nodes must not move the state twice, and parts of a batch have parts of it. */
TEST(recurrent_states_survive_a_budget)
{
    mica_context *ctx = test_context(1);
    int recomputed = 0, parts = 0;
    for (int kind = 0; kind < 3; kind++) {
        for (size_t percent = 95; percent >= 75; percent -= 10) {
            mica_net *whole = kept(ctx, kind, kind == 1, 0);
            mica_net *tight = kept(ctx, kind, kind == 1, mica_net_plan(whole)->total * percent / 100);
            const mica_plan *plan = mica_net_plan(tight);
            for (uint64_t step = 0; plan != NULL && step < 3; step++) {
                CHECK(fabs(loss_after(whole, true, step) - loss_after(tight, true, step)) <= 1e-5);
                CHECK(furthest_gradient(whole, tight) <= (plan->parts > 1 ? 1e-6f : 0.0f));
            }
            recomputed += plan->recomputed;
            parts += plan->parts - 1;
            mica_net_destroy(tight);
            mica_net_destroy(whole);
        }
    }
    CHECK_MSG(recomputed > 0 && parts > 0, "%d nodes recomputed, %d parts", recomputed, parts);
}

/* The loss of the second of two steps, with this one weight in it alone: the first one's state is constant. */
static double second_loss(mica_net *net, float *weight, float value)
{
    float held = *weight;
    CHECK_OK(mica_net_context(net), mica_net_reset_states(net));
    (void)loss_after(net, false, 1);
    *weight = value;
    double loss = loss_after(net, false, 2);
    *weight = held;
    return loss;
}

TEST(recurrent_gradients_start_from_the_kept_state)
{
    mica_context *ctx = test_context(1);
    for (int kind = 0; kind < 3; kind++) {
        mica_net *net = kept(ctx, kind, false, 0);
        (void)loss_after(net, true, 1);
        (void)loss_after(net, true, 2);
        mica_tensor w, g;
        CHECK_OK(ctx, mica_net_tensor(net, &w, "b.weight_hh"));
        CHECK_OK(ctx, mica_net_gradient(net, &g, "b.weight_hh"));
        for (size_t i = 0; i < mica_tensor_count(&w); i++) {
            float *at = (float *)w.data + i, got = ((float *)g.data)[i];
            double by = (second_loss(net, at, *at + 1e-2f) - second_loss(net, at, *at - 1e-2f)) / 2e-2;
            CHECK_MSG(fabs(by - (double)got) <= 1e-4, "%d: gradient %zu is %g, by differences %g", kind, i,
                      (double)got, by);
        }
        mica_net_destroy(net);
    }
}

/* ---- Learning ---- */

enum { CLASSES = 4, DELAY = 20, LENGTH = DELAY + 2, WIDTH = 2 * CLASSES + 1, SAMPLES = 32, CELLS = 24 };

/* A token, DELAY others on channels of their own, and a last step that asks for the first. */
static void draw_sequences(mica_net *net, test_random *r)
{
    mica_tensor x, label;
    mica_net_tensor(net, &x, "x");
    mica_net_tensor(net, &label, "label");
    memset(x.data, 0, mica_tensor_bytes(&x));
    for (int n = 0; n < SAMPLES; n++) {
        float *row = (float *)x.data + n * LENGTH * WIDTH;
        int token = test_int(r, 0, CLASSES - 1);
        ((int32_t *)label.data)[n] = token;
        row[token] = 1.0f;
        for (int t = 1; t <= DELAY; t++)
            row[t * WIDTH + CLASSES + test_int(r, 0, CLASSES - 1)] = 1.0f;
        row[(LENGTH - 1) * WIDTH + WIDTH - 1] = 1.0f;
    }
}

/* The last input alone, [N, T, F] to [N, F]. */
static mica_status last_infer(mica_infer *i)
{
    return mica_infer_out(i, 0, MICA_F32, 2, (mica_index[]){i->in[0]->dim[0], i->in[0]->dim[2]});
}
static mica_status last_run(const mica_call *c)
{
    mica_tensor last;
    mica_status status = mica_view_select(c->ctx, &last, c->in[0], 1, c->in[0]->dim[1] - 1);
    return status != MICA_OK ? status : mica_copy(c->ctx, c->out[0], &last);
}
static const mica_op last_input = {
    .name = "last_input", .ins = 1, .outs = 1, .infer = last_infer, .run = last_run};

static mica_net *recall_net(mica_context *ctx, bool lstm)
{
    mica_net *net;
    mica_net_create(ctx, &net);
    mica_value x = mica_net_input(net, "x", MICA_F32, 3, (mica_index[]){SAMPLES, LENGTH, WIDTH});
    mica_value label = mica_net_input(net, "label", MICA_I32, 1, (mica_index[]){SAMPLES});
    mica_value h;
    if (lstm) {
        h = mica_net_lstm(net, x, &(mica_net_recurrent_opts){.name = "lstm", .units = CELLS, .last = true});
    } else {
        h = mica_net_call(net, NULL, &last_input, &x, 1, NULL);
        h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 64, .activation = MICA_RELU});
    }
    mica_value y = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "out", .units = CLASSES});
    mica_net_output(net, "y", y);
    mica_net_cross_entropy(net, y, label, NULL);
    mica_optimizer adam = {.kind = MICA_ADAM, .lr = 0.01f, .clip_norm = 1.0f};
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 3));
    if (lstm) { /* to start with, forget little: the forget gate's is the second of four blocks */
        mica_tensor bias, forget;
        CHECK_OK(ctx, mica_net_tensor(net, &bias, "lstm.bias_ih"));
        CHECK_OK(ctx, mica_view_slice(ctx, &forget, &bias, 0, CELLS, 2 * CELLS, 1));
        CHECK_OK(ctx, mica_fill(ctx, &forget, 3.0f));
    }
    return net;
}

/* The share of right answers over some fresh batches. */
static double accuracy(mica_net *net, test_random *r)
{
    int right = 0, batches = 16;
    for (int k = 0; k < batches; k++) {
        mica_tensor y, label;
        draw_sequences(net, r);
        mica_net_tensor(net, &label, "label");
        int32_t want[SAMPLES];
        memcpy(want, label.data, sizeof want);
        CHECK_OK(mica_net_context(net), mica_net_forward(net));
        mica_net_tensor(net, &y, "y");
        for (int n = 0; n < SAMPLES; n++) {
            const float *row = (float *)y.data + n * CLASSES;
            int best = 0;
            for (int c = 1; c < CLASSES; c++)
                best = row[c] > row[best] ? c : best;
            right += best == want[n];
        }
    }
    return (double)right / (double)(batches * SAMPLES);
}

static double train_to_recall(mica_context *ctx, bool lstm, int most)
{
    mica_net *net = recall_net(ctx, lstm);
    test_random r = test_seed(11);
    float mean = 2.0f;
    test_heap heap = test_heap_now();
    for (int step = 0; step < most && mean > 0.02f; step++) {
        draw_sequences(net, &r);
        CHECK_OK(ctx, mica_train_step(net, MICA_OPTIMIZER_LR));
        mean += 0.05f * (mica_net_loss(net) - mean);
    }
    CHECK(test_heap_now().calls == heap.calls);
    double share = accuracy(net, &r);
    mica_net_destroy(net);
    return share;
}

TEST(recurrent_lstm_recalls_what_a_dense_net_cannot)
{
    mica_context *ctx = test_context(1);
    double lstm = train_to_recall(ctx, true, 600), dense = train_to_recall(ctx, false, 300);
    CHECK_MSG(lstm >= 0.98, "LSTM: %g right", lstm);
    CHECK_MSG(dense <= 0.4, "Dense on the last input: %g right", dense);
}
