/* One thread trains while another infers, as docs/training.md says: two contexts, two nets, and weights that are handed
 * over under a lock. For the thread sanitizer too. */
#include <math.h>
#include <string.h>

#include "test.h"

#ifndef MICA_NO_THREADS
#include <pthread.h>

enum { BATCH = 16, WIDTH = 3, STEPS = 200 };

static mica_value build(mica_net *net, mica_index batch)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){batch, WIDTH});
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 12, .activation = MICA_TANH});
    return mica_net_dense(net, h, &(mica_net_dense_opts){.name = "y", .units = 1});
}

/* What the two threads share: nothing else. */
typedef struct mailbox {
    pthread_mutex_t lock;
    float weights[256];
    size_t count;
    int version; /* 0: nothing was put in yet */
    float probe; /* what the trainer's net said of the probe with these weights */
    bool done;
} mailbox;

typedef struct reader {
    mailbox *box;
    int taken, wrong; /* versions; answers that are not the trainer's */
} reader;

static const float probe[WIDTH] = {0.3f, -0.7f, 0.2f};

/* The newest weights, if they are newer than `version`. */
static bool take_weights(mailbox *box, float *weights, int *version, float *expected)
{
    pthread_mutex_lock(&box->lock);
    bool newer = box->version > *version, done = box->done && !newer;
    if (newer) {
        memcpy(weights, box->weights, box->count * sizeof *weights);
        *version = box->version;
        *expected = box->probe;
    }
    pthread_mutex_unlock(&box->lock);
    return !done;
}

static void *infer(void *argument)
{
    reader *r = argument;
    mica_context *ctx = NULL;
    mica_net *net = NULL;
    mica_tensor x, y, weights;
    bool ready = mica_context_create(&ctx, NULL) == MICA_OK && mica_net_create(ctx, &net) == MICA_OK &&
                 build(net, 1) != 0 && mica_net_compile(net, NULL) == MICA_OK &&
                 mica_net_bind(net, NULL, 0) == MICA_OK && mica_net_flat(net, &weights, NULL) == MICA_OK &&
                 mica_net_tensor(net, &x, "x") == MICA_OK && mica_net_tensor(net, &y, "y") == MICA_OK;
    r->wrong += !ready;
    int version = 0, before = 0;
    float expected = 0.0f;
    while (ready && take_weights(r->box, weights.data, &version, &expected)) {
        if (version == 0)
            continue;
        r->taken += version > before;
        before = version;
        memcpy(x.data, probe, sizeof probe);
        r->wrong += mica_net_derive(net) != MICA_OK || mica_net_forward(net) != MICA_OK ||
                    fabsf(*(float *)y.data - expected) > 1e-6f;
    }
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return NULL;
}

/* Between two steps: weights, and what they make of the probe. */
static void put_weights(mailbox *box, mica_net *net)
{
    mica_tensor weights, x, y;
    CHECK(mica_net_flat(net, &weights, NULL) == MICA_OK && mica_net_tensor(net, &x, "x") == MICA_OK &&
          mica_net_tensor(net, &y, "y") == MICA_OK);
    for (int i = 0; i < BATCH; i++)
        memcpy((float *)x.data + WIDTH * i, probe, sizeof probe);
    CHECK(mica_net_forward(net) == MICA_OK);
    pthread_mutex_lock(&box->lock);
    box->count = mica_tensor_count(&weights);
    memcpy(box->weights, weights.data, mica_tensor_bytes(&weights));
    box->probe = *(float *)y.data;
    box->version++;
    pthread_mutex_unlock(&box->lock);
}

TEST(second_thread_infers_while_the_first_trains)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    mica_tensor x, target, weights;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value y = build(net, BATCH);
    mica_net_mse(net, y, mica_net_input(net, "target", MICA_F32, 2, (mica_index[]){BATCH, 1}), NULL);
    mica_net_output(net, "y", y);
    mica_optimizer adam = {.kind = MICA_ADAM, .lr = 0.01f};
    REQUIRE(CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam})));
    REQUIRE(CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(net, 7)));
    REQUIRE(mica_net_tensor(net, &x, "x") == MICA_OK && mica_net_tensor(net, &target, "target") == MICA_OK);
    mailbox box = {.lock = PTHREAD_MUTEX_INITIALIZER};
    REQUIRE(mica_net_flat(net, &weights, NULL) == MICA_OK &&
            mica_tensor_bytes(&weights) <= sizeof box.weights);
    reader r = {.box = &box};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, infer, &r) == 0);
    test_random random = test_seed(2);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < BATCH; i++) {
            float sum = 0.0f;
            for (int k = 0; k < WIDTH; k++)
                sum += ((float *)x.data)[i * WIDTH + k] = (float)test_uniform(&random, -1.0, 1.0);
            ((float *)target.data)[i] = sum;
        }
        CHECK_OK(ctx, mica_train_step(net, MICA_OPTIMIZER_LR));
        if (step % 10 == 9)
            put_weights(&box, net);
    }
    pthread_mutex_lock(&box.lock);
    box.done = true;
    pthread_mutex_unlock(&box.lock);
    pthread_join(thread, NULL);
    CHECK_MSG(r.taken > 0 && r.wrong == 0, "%d versions taken, %d wrong", r.taken, r.wrong);
    CHECK_MSG(fabsf(box.probe - -0.2f) < 0.1f, "it learned %g", (double)box.probe);
    mica_net_destroy(net);
}

/* ---- Taking turns: one set of weights, and a lock for every step and every forward ---- */

typedef struct turns {
    pthread_mutex_t lock;
    mica_net *trained;
    bool done;
    int forwards, failures;
} turns;

static void *infer_in_turn(void *argument)
{
    turns *t = argument;
    mica_context *ctx = NULL;
    mica_net *net = NULL;
    mica_tensor x;
    pthread_mutex_lock(&t->lock); /* it looks at the other net */
    bool ready = mica_context_create(&ctx, NULL) == MICA_OK && mica_net_create(ctx, &net) == MICA_OK &&
                 build(net, 1) != 0 &&
                 mica_net_compile(net, &(mica_compile_opts){.weights = t->trained}) == MICA_OK &&
                 mica_net_bind(net, NULL, 0) == MICA_OK && mica_net_tensor(net, &x, "x") == MICA_OK;
    pthread_mutex_unlock(&t->lock);
    t->failures += !ready;
    for (bool done = !ready; !done;) {
        pthread_mutex_lock(&t->lock);
        memcpy(x.data, probe, sizeof probe);
        t->failures += mica_net_derive(net) != MICA_OK || mica_net_forward(net) != MICA_OK;
        t->forwards++;
        done = t->done;
        pthread_mutex_unlock(&t->lock);
    }
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return NULL;
}

TEST(second_thread_takes_turns_with_the_first)
{
    mica_context *ctx = test_context(1);
    turns t = {.lock = PTHREAD_MUTEX_INITIALIZER};
    mica_tensor x, target;
    REQUIRE(mica_net_create(ctx, &t.trained) == MICA_OK);
    mica_value y = build(t.trained, BATCH);
    mica_net_mse(t.trained, y, mica_net_input(t.trained, "target", MICA_F32, 2, (mica_index[]){BATCH, 1}),
                 NULL);
    mica_optimizer sgd = {.kind = MICA_SGD, .lr = 0.01f};
    REQUIRE(
        CHECK_OK(ctx, mica_net_compile(t.trained, &(mica_compile_opts){.train = true, .optimizer = &sgd})));
    REQUIRE(CHECK_OK(ctx, mica_net_bind(t.trained, NULL, 0)) &&
            CHECK_OK(ctx, mica_net_initialize(t.trained, 7)));
    REQUIRE(mica_net_tensor(t.trained, &x, "x") == MICA_OK &&
            mica_net_tensor(t.trained, &target, "target") == MICA_OK);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, infer_in_turn, &t) == 0);
    for (int step = 0; step < STEPS; step++) {
        pthread_mutex_lock(&t.lock);
        for (int i = 0; i < BATCH * WIDTH; i++)
            ((float *)x.data)[i] = (float)((step + i) % 7) / 7.0f;
        memset(target.data, 0, mica_tensor_bytes(&target));
        CHECK_OK(ctx, mica_train_step(t.trained, MICA_OPTIMIZER_LR));
        pthread_mutex_unlock(&t.lock);
    }
    pthread_mutex_lock(&t.lock);
    t.done = true;
    pthread_mutex_unlock(&t.lock);
    pthread_join(thread, NULL);
    CHECK_MSG(t.forwards > 0 && t.failures == 0, "%d forwards, %d failures", t.forwards, t.failures);
    mica_net_destroy(t.trained);
}
#endif
