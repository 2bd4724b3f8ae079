/* The training loop: it learns, stops, resumes bit for bit, and its steps make no heap calls. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/fit.h>

#include "test.h"

enum { SAMPLES = 300, STEPS_KEPT = 200 };

static float points[SAMPLES][2];
static int32_t labels[SAMPLES];

/* Two classes that no line parts: inside and outside of a ring. */
static void make_rings(mica_context *ctx, mica_dataset *set)
{
    test_random r = test_seed(5);
    for (int i = 0; i < SAMPLES; i++) {
        points[i][0] = (float)test_uniform(&r, -1.0, 1.0);
        points[i][1] = (float)test_uniform(&r, -1.0, 1.0);
        labels[i] = points[i][0] * points[i][0] + points[i][1] * points[i][1] < 0.4f;
    }
    mica_tensor x = mica_2d(&points[0][0], SAMPLES, 2), y;
    CHECK_OK(ctx, mica_tensor_init(ctx, &y, labels, MICA_I32, 1, (mica_index[]){SAMPLES}));
    CHECK_OK(ctx, mica_dataset_over(ctx, set, &x, &y));
}

static mica_net *classifier(mica_context *ctx, const mica_optimizer *optimizer)
{
    mica_net *net;
    mica_net_create(ctx, &net);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){32, 2});
    mica_value label = mica_net_input(net, "label", MICA_I32, 1, (mica_index[]){32});
    mica_value h = mica_net_dense(
        net, x, &(mica_net_dense_opts){.name = "fc1", .units = 24, .activation = MICA_TANH});
    mica_value y = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "fc2", .units = 2});
    mica_net_output(net, "logits", y);
    mica_net_cross_entropy(net, y, label, NULL);
    CHECK_OK(ctx, mica_net_compile(
                      net, &(mica_compile_opts){.train = true, .optimizer = optimizer, .debug = true}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 11));
    return net;
}

typedef struct history {
    double loss[STEPS_KEPT];
    uint64_t steps;
    uint64_t stop_at; /* 0: never */
    uint64_t calls;   /* of the heap between steps */
    uint64_t calls_at_last;
} history;

static bool keep_history(void *user, const mica_progress *p)
{
    history *h = user;
    if (p->epoch_done) {
        h->calls_at_last = 0;
        return true;
    }
    if (p->step <= STEPS_KEPT)
        h->loss[p->step - 1] = p->loss;
    h->steps = p->step;
    uint64_t now = test_heap_now().calls;
    if (h->calls_at_last != 0)
        h->calls += now - h->calls_at_last;
    h->calls_at_last = now;
    return h->stop_at == 0 || p->step < h->stop_at;
}

/* Trains for `epochs` and keeps the losses. */
static mica_fit_result train(history *h, const char *checkpoint, bool resume, uint64_t epochs, int threads)
{
    mica_context *ctx = test_context(threads);
    mica_dataset set;
    make_rings(ctx, &set);
    mica_batches *train_batches, *validation;
    mica_batches_opts opts = {.batch = 32, .seed = 3, .split = {.part = MICA_PART_TRAIN, .validation = 0.2}};
    CHECK_OK(ctx, mica_batches_create(ctx, &train_batches, &set, &opts));
    opts.split.part = MICA_PART_VALIDATION;
    opts.sequential = true;
    CHECK_OK(ctx, mica_batches_create(ctx, &validation, &set, &opts));
    mica_net *net = classifier(
        ctx, &(mica_optimizer){.kind = MICA_ADAMW, .lr = 0.02f, .weight_decay = 0.01f, .clip_norm = 1.0f});
    mica_fit_result result;
    CHECK_OK(ctx,
             mica_fit(net, &result,
                      &(mica_fit_opts){
                          .train = mica_source_of_batches(train_batches),
                          .validation = mica_source_of_batches(validation),
                          .output = "logits",
                          .epochs = epochs,
                          .schedule = {.kind = MICA_SCHEDULE_COSINE, .lr = 0.02f, .warmup = 5, .total = 400},
                          .checkpoint = checkpoint,
                          .resume = resume,
                          .report = keep_history,
                          .user = h}));
    mica_net_destroy(net);
    mica_batches_destroy(ctx, train_batches);
    mica_batches_destroy(ctx, validation);
    return result;
}

TEST(fit_learns_without_heap_calls)
{
    history h = {0};
    mica_fit_result result = train(&h, NULL, false, 30, 1);
    CHECK(result.epochs == 30 && result.steps == 30 * 8);
    CHECK_MSG(result.validation.accuracy > 0.9, "accuracy %g", result.validation.accuracy);
    CHECK(result.train_loss < h.loss[0] / 2);
    CHECK_MSG(h.calls == 0, "%llu heap calls between steps", (unsigned long long)h.calls);
}

TEST(fit_gives_the_same_bits_for_any_number_of_threads)
{
    history one = {0}, three = {0};
    train(&one, NULL, false, 4, 1);
    train(&three, NULL, false, 4, 3);
    CHECK(memcmp(one.loss, three.loss, sizeof one.loss) == 0);
}

TEST(fit_resumes_bit_for_bit)
{
    char path[] = "/tmp/mica-fit-XXXXXX";
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    remove(path);
    history whole = {0}, parts = {0};
    train(&whole, NULL, false, 6, 1);
    /* Stopped in the middle of an epoch, twice, by new processes as it were. */
    parts.stop_at = 13;
    mica_fit_result first = train(&parts, path, true, 6, 1);
    CHECK(first.stopped && first.steps == 13);
    parts.stop_at = 30;
    train(&parts, path, true, 6, 1);
    parts.stop_at = 0;
    mica_fit_result last = train(&parts, path, true, 6, 2);
    CHECK(last.epochs == 6 && last.steps == whole.steps);
    CHECK(memcmp(whole.loss, parts.loss, sizeof whole.loss) == 0);
    remove(path);
}

TEST(fit_stops_when_validation_gets_no_better)
{
    mica_context *ctx = test_context(1);
    mica_dataset set;
    make_rings(ctx, &set);
    mica_batches *batches, *validation;
    CHECK_OK(ctx, mica_batches_create(ctx, &batches, &set, &(mica_batches_opts){.batch = 32}));
    CHECK_OK(ctx, mica_batches_create(ctx, &validation, &set,
                                      &(mica_batches_opts){.batch = 32, .sequential = true}));
    mica_net *net = classifier(ctx, &(mica_optimizer){.kind = MICA_SGD, .lr = 1e-30f});
    mica_fit_result result;
    CHECK_OK(ctx, mica_fit(net, &result,
                           &(mica_fit_opts){.train = mica_source_of_batches(batches),
                                            .validation = mica_source_of_batches(validation),
                                            .epochs = 50,
                                            .patience = 3}));
    CHECK(result.stopped_early && result.epochs == 4);
    mica_net_destroy(net);
    mica_batches_destroy(ctx, batches);
    mica_batches_destroy(ctx, validation);
}

TEST(fit_says_when_training_diverges)
{
    mica_context *ctx = test_context(1);
    mica_dataset set;
    make_rings(ctx, &set);
    points[7][0] = NAN;
    mica_batches *batches;
    CHECK_OK(ctx,
             mica_batches_create(ctx, &batches, &set, &(mica_batches_opts){.batch = 32, .sequential = true}));
    mica_net *net = classifier(ctx, &(mica_optimizer){.kind = MICA_SGD});
    mica_fit_result result;
    CHECK_ERROR(ctx, mica_fit(net, &result, &(mica_fit_opts){.train = mica_source_of_batches(batches)}),
                MICA_ERR_DIVERGED, "training diverged: the loss of step 1 is nan");
    mica_net_destroy(net);
    mica_batches_destroy(ctx, batches);
}

/* ---- What could go wrong silently ---- */

/* A rate of 0, as at the end of a cosine, is no request for another rate. */
TEST(fit_a_rate_of_zero_changes_no_parameter)
{
    mica_context *ctx = test_context(1);
    mica_dataset set;
    make_rings(ctx, &set);
    mica_batches *batches;
    CHECK_OK(ctx, mica_batches_create(ctx, &batches, &set, &(mica_batches_opts){.batch = 32}));
    static const mica_optimizer_kind kinds[] = {MICA_SGD, MICA_ADAM, MICA_ADAMW, MICA_RMSPROP, MICA_ADAGRAD};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        mica_net *net = classifier(ctx,
                                   &(mica_optimizer){.kind = kinds[i], .lr = 0.1f, .weight_decay = 0.1f});
        mica_schedule past = {.kind = MICA_SCHEDULE_COSINE, .lr = 0.1f, .total = 1};
        CHECK(mica_schedule_lr(&past, 1) == 0.0f);
        CHECK_OK(ctx, mica_train_set_steps(net, 1)); /* the schedule is over */
        mica_tensor parameters;
        CHECK_OK(ctx, mica_net_flat(net, &parameters, NULL));
        size_t bytes = mica_tensor_bytes(&parameters);
        void *before = malloc(bytes);
        memcpy(before, parameters.data, bytes);
        mica_fit_result result;
        CHECK_OK(ctx, mica_fit(net, &result,
                               &(mica_fit_opts){.train = mica_source_of_batches(batches), .schedule = past}));
        CHECK(memcmp(before, parameters.data, bytes) == 0);
        CHECK_OK(ctx, mica_train_update(net, 0.0f));
        CHECK(memcmp(before, parameters.data, bytes) == 0);
        CHECK_OK(ctx, mica_train_update(net, MICA_OPTIMIZER_LR));
        CHECK(memcmp(before, parameters.data, bytes) != 0);
        CHECK_ERROR(ctx, mica_train_update(net, -0.5f), MICA_ERR_ARGUMENT,
                    "argument error: train_update: the learning rate is -0.5: expected 0 or more, or "
                    "MICA_OPTIMIZER_LR");
        CHECK(mica_train_update(net, NAN) == MICA_ERR_ARGUMENT);
        free(before);
        mica_net_destroy(net);
    }
    mica_batches_destroy(ctx, batches);
}

/* x [32, 2], another input [32, 1], and the label that the loss reads, which is the third. */
static mica_net *with_an_input_between(mica_context *ctx, mica_index labels_of_batch)
{
    mica_net *net;
    mica_net_create(ctx, &net);
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){32, 2});
    (void)mica_net_input(net, "between", MICA_I32, 2, (mica_index[]){32, 1});
    mica_value label = mica_net_input(net, "label", MICA_I32, 1, (mica_index[]){labels_of_batch});
    mica_value y = mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc", .units = 2});
    if (labels_of_batch < 32)
        y = mica_net_slice(net, y, &(mica_net_slice_opts){.axis = 0, .stop = labels_of_batch});
    mica_net_output(net, "logits", y);
    mica_net_cross_entropy(net, y, label, NULL);
    mica_optimizer sgd = {.kind = MICA_SGD, .lr = 0.5f};
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &sgd}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 11));
    return net;
}

TEST(fit_fills_the_inputs_that_a_source_names)
{
    mica_context *ctx = test_context(1);
    mica_dataset set;
    make_rings(ctx, &set);
    for (int i = 0; i < SAMPLES; i++)
        labels[i] = points[i][0] > 0; /* what a line can learn */
    mica_batches *batches;
    CHECK_OK(ctx, mica_batches_create(ctx, &batches, &set, &(mica_batches_opts){.batch = 32}));
    mica_source source = mica_source_of_batches(batches);
    source.inputs = "x";
    source.targets = "label";
    mica_net *net = with_an_input_between(ctx, 32);
    mica_fit_opts opts = {.train = source, .validation = source, .output = "logits", .epochs = 20};
    mica_fit_result result;
    CHECK_OK(ctx, mica_fit(net, &result, &opts));
    CHECK_MSG(result.validation.accuracy > 0.9, "accuracy %g", result.validation.accuracy);
    opts.train.targets = "lable";
    CHECK_ERROR(ctx, mica_fit(net, &result, &opts), MICA_ERR_ARGUMENT,
                "argument error: fit: the net has no input \"lable\"");
    mica_net_destroy(net);
    /* Fewer targets than samples. */
    net = with_an_input_between(ctx, 1);
    opts.train.targets = "label";
    CHECK_ERROR(ctx, mica_fit(net, &result, &opts), MICA_ERR_SHAPE,
                "shape error: fit: input \"label\" is [1]: expected 32 samples along axis 0");
    mica_net_destroy(net);
    mica_batches_destroy(ctx, batches);
}

static bool count_steps(void *user, const mica_progress *p)
{
    *(int *)user += !p->epoch_done;
    return true;
}

TEST(fit_refuses_notes_that_cannot_be_saved_before_the_first_step)
{
    mica_context *ctx = test_context(1);
    mica_dataset set;
    make_rings(ctx, &set);
    mica_batches *batches;
    CHECK_OK(ctx, mica_batches_create(ctx, &batches, &set, &(mica_batches_opts){.batch = 32}));
    mica_net *net = classifier(ctx, &(mica_optimizer){.kind = MICA_SGD});
    int steps = 0;
    mica_metadata note = {"classes", "ros\xe9"};
    mica_fit_opts opts = {.train = mica_source_of_batches(batches),
                          .checkpoint = "/no/such/folder",
                          .notes = &note,
                          .note_count = 1,
                          .report = count_steps,
                          .user = &steps};
    mica_fit_result result;
    CHECK_ERROR(
        ctx, mica_fit(net, &result, &opts), MICA_ERR_ARGUMENT,
        "argument error: safetensors_write: the metadata value of \"classes\" is not valid UTF-8 at byte 3");
    note = (mica_metadata){"seed", "1"}; /* one of the checkpoint's own */
    CHECK_ERROR(ctx, mica_fit(net, &result, &opts), MICA_ERR_ARGUMENT,
                "argument error: safetensors_write: two metadata keys are called \"seed\"");
    CHECK(steps == 0);
    mica_net_destroy(net);
    mica_batches_destroy(ctx, batches);
}
