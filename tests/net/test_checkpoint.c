/* Checkpoints: a training that is killed again and again ends where one ends that was left alone; bad files
 * change nothing; memory may run out anywhere. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "io/scratch.h"
#include "oom.h"
#include "test.h"

enum { SAMPLES = 120, BATCH = 16, EPOCHS = 8, STEPS = EPOCHS * 8 };

static float points[SAMPLES][3];
static int32_t labels[SAMPLES];

/* A net with all that must come back: parameters, running statistics, random masks, two slots of optimizer state. */
static mica_status build(mica_context *ctx, mica_net **out, mica_index units)
{
    mica_status status = mica_net_create(ctx, out);
    if (status != MICA_OK)
        return status;
    mica_net *net = *out;
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){BATCH, 3});
    mica_value label = mica_net_input(net, "label", MICA_I32, 1, (mica_index[]){BATCH});
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.name = "fc1", .units = units});
    h = mica_net_batch_norm(net, h, NULL);
    h = mica_net_activation(net, h, &(mica_net_activation_opts){.kind = MICA_RELU});
    h = mica_net_dropout(net, h, &(mica_net_dropout_opts){.rate = 0.2f});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.name = "fc2", .units = 2});
    mica_net_output(net, "logits", h);
    mica_net_cross_entropy(net, h, label, NULL);
    mica_optimizer adamw = {.kind = MICA_ADAMW, .lr = 0.02f, .weight_decay = 0.01f, .clip_norm = 1.0f};
    status = mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adamw});
    if (status == MICA_OK)
        status = mica_net_bind(net, NULL, 0);
    return status == MICA_OK ? mica_net_initialize(net, 3) : status;
}

static bool keep_loss(void *user, const mica_progress *p)
{
    if (!p->epoch_done)
        ((double *)user)[p->step - 1] = p->loss;
    return true;
}

/* From nothing, or from the checkpoint, to the end of so many epochs. */
static mica_status train(mica_context *ctx, const char *checkpoint, uint64_t checkpoint_steps,
                         uint64_t epochs, double *loss)
{
    test_random r = test_seed(8);
    for (int i = 0; i < SAMPLES; i++) {
        for (int j = 0; j < 3; j++)
            points[i][j] = (float)test_uniform(&r, -1.0, 1.0);
        labels[i] = points[i][0] * points[i][1] > points[i][2] * 0.3f;
    }
    mica_tensor x = mica_2d(&points[0][0], SAMPLES, 3), y;
    mica_dataset set;
    mica_batches *batches = NULL;
    mica_net *net = NULL;
    mica_fit_result result;
    mica_status status = mica_tensor_init(ctx, &y, labels, MICA_I32, 1, (mica_index[]){SAMPLES});
    if (status == MICA_OK)
        status = mica_dataset_over(ctx, &set, &x, &y);
    if (status == MICA_OK)
        status = mica_batches_create(ctx, &batches, &set, &(mica_batches_opts){.batch = BATCH, .seed = 2});
    if (status == MICA_OK)
        status = build(ctx, &net, 24);
    mica_fit_opts opts = {
        .epochs = epochs,
        .schedule = {.kind = MICA_SCHEDULE_COSINE, .lr = 0.02f, .warmup = 4, .total = STEPS},
        .checkpoint = checkpoint,
        .checkpoint_steps = checkpoint_steps,
        .resume = true,
        .report = loss != NULL ? keep_loss : NULL,
        .user = loss};
    if (status == MICA_OK) {
        opts.train = mica_source_of_batches(batches);
        status = mica_fit(net, &result, &opts);
    }
    mica_net_destroy(net);
    mica_batches_destroy(ctx, batches);
    return status;
}

/* ---- Killed ---- */

static void pause_for(int microseconds)
{
    struct timespec t = {microseconds / 1000000, microseconds % 1000000 * 1000L};
    nanosleep(&t, NULL);
}

/* Starts a training from where the checkpoint stands and kills it after a while (0: does not). Whether it
 * came to its end. */
static bool train_and_kill(mica_context *ctx, const char *path, double *loss, int microseconds)
{
    pid_t child = fork();
    if (child == 0)
        _exit(train(ctx, path, 1, EPOCHS, loss) == MICA_OK ? 0 : 1);
    if (microseconds > 0) {
        pause_for(microseconds);
        (void)kill(child, SIGKILL);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_MSG(WIFSIGNALED(status) || WEXITSTATUS(status) == 0, "a training that was not killed failed");
    return !WIFSIGNALED(status);
}

/* The steps that the checkpoint, which must be sound, has done; 0 if none was written yet. */
static uint64_t check_checkpoint(mica_context *ctx, const char *path)
{
    mica_net *net;
    mica_training_state state;
    if (access(path, F_OK) != 0 || !CHECK_OK(ctx, build(ctx, &net, 24)))
        return 0;
    CHECK_OK(ctx, mica_checkpoint_load(net, &state, path));
    uint64_t steps = mica_train_steps(net);
    CHECK(steps >= 1 && steps <= STEPS);
    mica_net_destroy(net);
    return steps;
}

TEST(checkpoint_survives_kills_and_resumes_with_the_same_bits)
{
    mica_context *ctx = test_context(1);
    int kills = getenv("MICA_LONG") != NULL ? 200 : 20, killed = 0, midway = 0;
    size_t bytes = STEPS * sizeof(double);
    double *loss = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), alone[STEPS];
    REQUIRE(loss != MAP_FAILED);
    CHECK_OK(ctx, train(ctx, NULL, 0, EPOCHS, alone));
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "checkpoint.safetensors");
    test_random r = test_seed((uint64_t)time(NULL));
    while (killed < kills) {
        memset(loss, 0, bytes);
        bool done = false;
        while (!done) { /* after the last kill this round goes on to its end */
            done = train_and_kill(ctx, path, loss, killed < kills ? test_int(&r, 1, 60000) : 0);
            killed += !done;
            uint64_t steps = check_checkpoint(ctx, path);
            midway += !done && steps > 0 && steps < STEPS;
            CHECK(scratch_count(&s) <= 2); /* the file, and what was left of the next one */
        }
        CHECK_MSG(memcmp(loss, alone, bytes) == 0, "after %d kills: other losses than a training left alone",
                  killed);
        CHECK(remove(path) == 0);
    }
    CHECK_MSG(midway > kills / 10, "only %d of %d kills came while checkpoints were written", midway, kills);
    scratch_remove(&s);
    munmap(loss, bytes);
}

/* ---- Bad files ---- */

/* All parameters and optimizer state of a net, to see that nothing changed. */
typedef struct snapshot {
    float parameters[4096], state[2][4096];
    size_t count;
    uint64_t steps;
} snapshot;

static void take_snapshot(mica_net *net, snapshot *s)
{
    mica_tensor parameters, state[2];
    CHECK_OK(mica_net_context(net), mica_net_flat(net, &parameters, NULL));
    REQUIRE(mica_train_state(net, state) == 2);
    memset(s, 0, sizeof *s);
    s->count = mica_tensor_count(&parameters);
    REQUIRE(s->count <= 4096);
    memcpy(s->parameters, parameters.data, mica_tensor_bytes(&parameters));
    for (int i = 0; i < 2; i++)
        memcpy(s->state[i], state[i].data, mica_tensor_bytes(&state[i]));
    s->steps = mica_train_steps(net);
}

static void check_refused(mica_net *net, const char *path, mica_status wanted, const char *words)
{
    static snapshot before, after;
    mica_training_state state;
    take_snapshot(net, &before);
    mica_status status = mica_checkpoint_load(net, &state, path);
    const char *error = mica_error(mica_net_context(net));
    CHECK_MSG(status == wanted && strstr(error, words) != NULL, "\"%s\", expected %s", error, words);
    take_snapshot(net, &after);
    CHECK_MSG(memcmp(&before, &after, sizeof before) == 0, "the net changed: %s", words);
}

TEST(checkpoint_that_is_bad_leaves_the_net_as_it_was)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "checkpoint.safetensors");
    mica_net *net, *other;
    REQUIRE(build(ctx, &net, 24) == MICA_OK && build(ctx, &other, 16) == MICA_OK);
    check_refused(net, path, MICA_ERR_IO, "checkpoint.safetensors");

    /* Cut off anywhere. */
    mica_training_state state = {0};
    CHECK_OK(ctx, mica_checkpoint_save(other, path, &state));
    check_refused(net, path, MICA_ERR_SHAPE, "tensor \"fc1.weight\" is [16, 3], expected [24, 3]");
    CHECK_OK(ctx, mica_checkpoint_save(net, path, &state));
    size_t count;
    unsigned char *bytes = scratch_read(path, &count);
    for (size_t cut = 0; cut < count; cut += 1 + cut / 3) {
        scratch_write(path, bytes, cut);
        check_refused(net, path, MICA_ERR_FORMAT, "");
    }
    scratch_write(path, bytes, count - 1);
    check_refused(net, path, MICA_ERR_FORMAT, "");
    scratch_write(path, bytes, count);
    CHECK_OK(ctx, mica_checkpoint_load(net, &state, path));
    free(bytes);

    /* Weights alone are no checkpoint. */
    CHECK_OK(ctx, mica_weights_save(net, path));
    check_refused(net, path, MICA_ERR_FORMAT,
                  "the checkpoint's \"steps\" is missing: expected up to 16 hexadecimal digits");
    CHECK_OK(ctx, mica_weights_load(net, path));
    CHECK(mica_weights_load(other, path) == MICA_ERR_SHAPE);
    mica_net_destroy(net);
    mica_net_destroy(other);
    scratch_remove(&s);
}

/* A tensor that the net has and the file has not. */
TEST(checkpoint_without_a_tensor_is_refused)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "weights.safetensors");
    mica_net *net;
    REQUIRE(build(ctx, &net, 24) == MICA_OK);
    mica_tensor weight;
    CHECK_OK(ctx, mica_net_tensor(net, &weight, "fc1.weight"));
    mica_named_tensor one = {"fc1.weight", weight};
    CHECK_OK(ctx, mica_safetensors_write(ctx, path, &one, 1, NULL));
    static snapshot before, after;
    take_snapshot(net, &before);
    CHECK(mica_weights_load(net, path) == MICA_ERR_FORMAT);
    CHECK_MSG(strstr(mica_error(ctx), "has no tensor \"fc1.bias\"") != NULL, "%s", mica_error(ctx));
    take_snapshot(net, &after);
    CHECK(memcmp(&before, &after, sizeof before) == 0);
    mica_net_destroy(net);
    scratch_remove(&s);
}

/* Writes the file with the value of a field of its metadata changed to another of the same length. */
static void change_field(const char *path, const unsigned char *bytes, size_t count, const char *field,
                         const char *value)
{
    char *copy = malloc(count + 1), wanted[40];
    memcpy(copy, bytes, count);
    copy[count] = '\0';
    snprintf(wanted, sizeof wanted, "\"%s\":\"", field);
    char *at = NULL; /* behind the header's length there is text up to the tensors */
    for (size_t i = 8; at == NULL && i + strlen(wanted) < count; i++)
        at = memcmp(copy + i, wanted, strlen(wanted)) == 0 ? copy + i + strlen(wanted) : NULL;
    if (CHECK_MSG(at != NULL && at[strlen(value)] == '"', "no %s as long as %s", field, value))
        memcpy(at, value, strlen(value));
    scratch_write(path, copy, count);
    free(copy);
}

TEST(checkpoint_numbers_are_held_to_their_ranges)
{
    mica_context *ctx = test_context(1);
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "checkpoint.safetensors");
    mica_net *net;
    REQUIRE(build(ctx, &net, 24) == MICA_OK);
    mica_training_state state = {.cursor = {UINT64_C(0x123456789abcdef0), UINT64_C(0x123456789abcdef0)},
                                 .best_loss = 1.0f,
                                 .bad_epochs = 0x12345678,
                                 .best_epoch = UINT64_C(0x123456789abcdef0),
                                 .best_accuracy = 0.75};
    CHECK_OK(ctx, mica_train_set_steps(net, UINT64_C(0x123456789abcdef0)));
    CHECK_OK(ctx, mica_checkpoint_save(net, path, &state));
    size_t count;
    unsigned char *bytes = scratch_read(path, &count);
    static const char *const bad[][3] = {
        {"steps", "ffffffffffffffff", "\"steps\" is \"ffffffffffffffff\": expected at most 7fffffffffffffff"},
        {"steps", "-23456789abcdef0",
         "\"steps\" is \"-23456789abcdef0\": expected up to 16 hexadecimal digits"},
        {"epoch", "8000000000000000", "\"epoch\" is"},
        {"position", "123456789abcdefg", "\"position\" is"},
        {"best_loss", "7fc00000", "\"best_loss\" is not a number"},
        {"bad_epochs", "80000000", "\"bad_epochs\" is"},
        {"best_epoch", "8000000000000000", "\"best_epoch\" is"},
        {"best_accuracy", "3fe800000000000g", "\"best_accuracy\" is"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        change_field(path, bytes, count, bad[i][0], bad[i][1]);
        check_refused(net, path, MICA_ERR_FORMAT, bad[i][2]);
    }
    scratch_write(path, bytes, count);
    CHECK_OK(ctx, mica_checkpoint_load(net, &state, path));
    CHECK(state.cursor.epoch == UINT64_C(0x123456789abcdef0) && state.bad_epochs == 0x12345678);
    CHECK(state.best_epoch == UINT64_C(0x123456789abcdef0) && state.best_accuracy == 0.75);
    free(bytes);
    mica_net_destroy(net);
    scratch_remove(&s);
}

/* ---- Out of memory ---- */

static mica_status train_with(const mica_allocator *allocator, void *argument)
{
    mica_context *ctx;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    (void)remove(argument);
    status = train(ctx, argument, 5, 1, NULL);
    if (status == MICA_OK)
        status = train(ctx, argument, 0, 2, NULL); /* goes on from there */
    mica_context_destroy(ctx);
    return status;
}

TEST(training_survives_every_refused_allocation)
{
    scratch s = scratch_make();
    const char *path = scratch_path(&s, "checkpoint.safetensors");
    char copy[300];
    snprintf(copy, sizeof copy, "%s", path);
    int allocations = test_oom(train_with, copy);
    CHECK(allocations > 20);
    scratch_remove(&s);
}

/* A file of another program has weights and nothing else: it fits a net with an embedding, tables and recurrent
 * state. */
TEST(weights_of_another_program_load_by_name)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_input(net, "x", MICA_I32, 2, (mica_index[]){1, 4});
    mica_value h = mica_net_embedding(net, x,
                                      &(mica_net_embedding_opts){.name = "tokens", .rows = 5, .width = 4});
    h = mica_net_sinusoidal_positions(net, h, NULL);
    h = mica_net_rnn(net, h, &(mica_net_recurrent_opts){.name = "rnn", .units = 3, .keep_state = true});
    mica_net_output(net, "y", h);
    REQUIRE(CHECK_OK(ctx, mica_net_compile(net, NULL)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
            CHECK_OK(ctx, mica_net_initialize(net, 1)));
    float numbers[64];
    for (int i = 0; i < 64; i++)
        numbers[i] = (float)i / 8.0f;
    mica_named_tensor given[] = {
        {"tokens.weight", mica_2d(numbers, 5, 4)}, {"rnn.weight_ih", mica_2d(numbers, 3, 4)},
        {"rnn.weight_hh", mica_2d(numbers, 3, 3)}, {"rnn.bias_ih", mica_1d(numbers, 3)},
        {"rnn.bias_hh", mica_1d(numbers, 3)},      {"unrelated", mica_1d(numbers, 7)}};
    scratch folder = scratch_make();
    const char *path = scratch_path(&folder, "public.safetensors");
    CHECK_OK(ctx, mica_safetensors_write(ctx, path, given, sizeof given / sizeof given[0], NULL));
    CHECK_OK(ctx, mica_weights_load(net, path));
    mica_tensor weight;
    CHECK_OK(ctx, mica_net_tensor(net, &weight, "tokens.weight"));
    CHECK(memcmp(weight.data, numbers, 20 * sizeof(float)) == 0);
    mica_net_destroy(net);
    scratch_remove(&folder);
}

/* State of every sample of a batch, after a step with fewer of them: the checkpoint has all. */
static mica_net *stateful(mica_context *ctx, size_t budget)
{
    mica_net *net = NULL;
    mica_optimizer sgd = {.kind = MICA_SGD};
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    mica_value x = mica_net_input(net, "x", MICA_F32, 3, (mica_index[]){4, 5, 3});
    mica_value h = mica_net_rnn(net, x,
                                &(mica_net_recurrent_opts){.name = "rnn", .units = 3, .keep_state = true});
    mica_net_mse(net, h, x, NULL);
    mica_compile_opts opts = {.train = true, .optimizer = &sgd, .budget = budget};
    if (CHECK_OK(ctx, mica_net_compile(net, &opts)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
        CHECK_OK(ctx, mica_net_initialize(net, 1)))
        return net;
    mica_net_destroy(net);
    return NULL;
}

TEST(checkpoint_has_the_state_of_all_samples)
{
    mica_context *ctx = test_context(1);
    scratch folder = scratch_make();
    const char *path = scratch_path(&folder, "state.safetensors");
    size_t total = 0;
    for (int parts = 0; parts < 2; parts++) {
        mica_net *net = stateful(ctx, parts ? total - 64 : 0), *other = stateful(ctx, 0);
        REQUIRE(net != NULL && other != NULL);
        total = mica_net_plan(net)->total;
        CHECK((mica_net_plan(net)->parts > 1) == (parts == 1));
        mica_tensor t, h;
        mica_training_state state = {0};
        for (mica_index batch = 4; batch >= 3; batch--) {
            CHECK_OK(ctx, mica_net_resize(net, batch));
            CHECK_OK(ctx, mica_net_tensor(net, &t, "x"));
            for (size_t i = 0; i < mica_tensor_count(&t); i++)
                ((float *)t.data)[i] = (float)(i % 11) / 11.0f;
            CHECK_OK(ctx, mica_train_step(net, 0.1f));
        }
        CHECK_OK(ctx, mica_checkpoint_save(net, path, &state));
        CHECK_OK(ctx, mica_checkpoint_load(other, &state, path));
        CHECK_OK(ctx, mica_net_resize(net, 4));
        CHECK_OK(ctx, mica_net_tensor(net, &t, "rnn.h"));
        CHECK_OK(ctx, mica_net_tensor(other, &h, "rnn.h"));
        CHECK(mica_tensor_bytes(&t) == 48 && memcmp(t.data, h.data, 48) == 0);
        mica_net_destroy(net);
        mica_net_destroy(other);
    }
    scratch_remove(&folder);
}
