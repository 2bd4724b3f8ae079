/* The best weights are kept, whatever interrupts the training; and weights that fit are loaded for another. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mica/fit.h>
#include <mica/layers.h>
#include <mica/netfile.h>

#include "oom.h"
#include "test.h"

enum { SAMPLES = 120, EPOCHS = 8, CLASSES = 3 };

static float inputs[SAMPLES][4];
static int32_t targets[SAMPLES];

/* Many labels are wrong: what is learned of them is no use for others, so that validation gets worse after a while. */
static void make_noise(mica_context *ctx, mica_dataset *set)
{
    test_random r = test_seed(8);
    for (int i = 0; i < SAMPLES; i++) {
        for (int j = 0; j < 4; j++)
            inputs[i][j] = (float)test_uniform(&r, -1.0, 1.0);
        targets[i] = test_chance(&r, 60) ? inputs[i][0] > 0.0f : test_int(&r, 0, CLASSES - 1);
    }
    mica_tensor x = mica_2d(&inputs[0][0], SAMPLES, 4), y;
    CHECK_OK(ctx, mica_tensor_init(ctx, &y, targets, MICA_I32, 1, (mica_index[]){SAMPLES}));
    CHECK_OK(ctx, mica_dataset_over(ctx, set, &x, &y));
}

/* With running statistics, which belong to the best weights too. */
static mica_net *noisy_net(mica_context *ctx, int classes, const char *last, const char *frozen)
{
    char text[200];
    mica_net *net;
    (void)snprintf(text, sizeof text,
                   "input x [4]\ndense 32 name=fc\nbatch_norm name=norm\nrelu\ndense %d name=%s\n"
                   "loss cross_entropy\n",
                   classes, last);
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    CHECK_OK(ctx, mica_netfile_build(net, NULL, text, &(mica_netfile_opts){.batch = 16}));
    if (frozen != NULL)
        CHECK_OK(ctx, mica_net_freeze(net, frozen, true));
    mica_optimizer adam = {.kind = MICA_ADAM, .lr = 0.01f};
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 11));
    return net;
}

typedef struct run {
    mica_context *ctx;
    const char *path;
    bool resume;
    int patience;
    uint64_t epochs, checkpoint_steps;
    uint64_t stop_at; /* a step; 0: none */

    /* What came of it. */
    double loss[EPOCHS + 1]; /* of validation, by epoch */
    uint64_t steps, heap_calls, calls_before;
    double now; /* the loss of validation with the weights that the net has in the end */
    mica_fit_result result;
} run;

static bool follow(void *user, const mica_progress *p)
{
    run *r = user;
    uint64_t calls = test_heap_now().calls;
    if (p->epoch_done && p->epoch <= EPOCHS)
        r->loss[p->epoch] = p->validation->loss;
    if (!p->epoch_done) {
        r->steps++;
        r->heap_calls += r->calls_before != 0 ? calls - r->calls_before : 0;
    }
    r->calls_before = p->epoch_done || (r->checkpoint_steps > 0 && p->step % r->checkpoint_steps == 0)
                          ? 0
                          : test_heap_now().calls;
    return r->stop_at == 0 || p->step < r->stop_at;
}

static void train(run *r)
{
    mica_context *ctx = r->ctx;
    mica_dataset set;
    make_noise(ctx, &set);
    mica_batches *batches[2];
    mica_batches_opts opts = {.batch = 16, .seed = 3, .split = {.part = MICA_PART_TRAIN, .validation = 0.3}};
    CHECK_OK(ctx, mica_batches_create(ctx, &batches[0], &set, &opts));
    opts.split.part = MICA_PART_VALIDATION;
    opts.sequential = true;
    CHECK_OK(ctx, mica_batches_create(ctx, &batches[1], &set, &opts));
    mica_net *net = noisy_net(ctx, CLASSES, "head", NULL);
    mica_source validation = mica_source_of_batches(batches[1]);
    CHECK_OK(ctx, mica_fit(net, &r->result,
                           &(mica_fit_opts){.train = mica_source_of_batches(batches[0]),
                                            .validation = validation,
                                            .output = "head",
                                            .epochs = r->epochs > 0 ? r->epochs : EPOCHS,
                                            .checkpoint = r->path,
                                            .checkpoint_steps = r->checkpoint_steps,
                                            .resume = r->resume,
                                            .keep_best = true,
                                            .patience = r->patience,
                                            .report = follow,
                                            .user = r}));
    mica_score score;
    CHECK_OK(ctx, mica_evaluate(net, &score, &validation, NULL));
    r->now = score.loss;
    mica_net_destroy(net);
    for (int i = 0; i < 2; i++)
        mica_batches_destroy(ctx, batches[i]);
}

static int least(const double *loss, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        best = loss[i] < loss[best] ? i : best;
    return best;
}

/* The loss of validation with the weights of a file. */
static double loss_of_file(mica_context *ctx, const char *path)
{
    mica_dataset set;
    make_noise(ctx, &set);
    mica_batches *batches;
    CHECK_OK(ctx, mica_batches_create(
                      ctx, &batches, &set,
                      &(mica_batches_opts){.batch = 16,
                                           .seed = 3,
                                           .split = {.part = MICA_PART_VALIDATION, .validation = 0.3},
                                           .sequential = true}));
    mica_net *net = noisy_net(ctx, CLASSES, "head", NULL);
    CHECK_OK(ctx, mica_weights_load(net, path));
    mica_score score;
    mica_source source = mica_source_of_batches(batches);
    CHECK_OK(ctx, mica_evaluate(net, &score, &source, NULL));
    mica_net_destroy(net);
    mica_batches_destroy(ctx, batches);
    return score.loss;
}

static bool file_has(mica_context *ctx, const char *path, const char *name)
{
    mica_safetensors *file;
    CHECK_OK(ctx, mica_safetensors_open(ctx, &file, path));
    bool has = mica_safetensors_find(file, name) != NULL;
    mica_safetensors_close(ctx, file);
    return has;
}

/* All of a file, to be freed. */
static char *read_all(const char *path, size_t *bytes)
{
    FILE *in = fopen(path, "rb");
    char *all = malloc((size_t)1 << 20);
    *bytes = 0;
    if (CHECK_MSG(in != NULL, "%s cannot be opened", path)) {
        *bytes = fread(all, 1, (size_t)1 << 20, in);
        (void)fclose(in);
    }
    return all;
}

static bool same_files(const char *a, const char *b)
{
    size_t bytes[2];
    char *all[2] = {read_all(a, &bytes[0]), read_all(b, &bytes[1])};
    bool same = bytes[0] > 0 && bytes[0] == bytes[1] && memcmp(all[0], all[1], bytes[0]) == 0;
    free(all[0]);
    free(all[1]);
    return same;
}

static void new_path(char *path)
{
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    (void)close(file);
    (void)remove(path);
}

TEST(best_weights_are_what_a_training_ends_with)
{
    mica_context *ctx = test_context(1);
    char path[] = "/tmp/mica-best-XXXXXX";
    new_path(path);
    run r = {.ctx = ctx, .path = path};
    train(&r);
    int best = least(r.loss, EPOCHS);
    CHECK_MSG(best > 0 && best < EPOCHS - 1, "the best epoch is %d: a test of nothing", best + 1);
    CHECK(r.result.epochs == EPOCHS && r.result.best_epoch == (uint64_t)best + 1);
    CHECK(r.result.best_loss == (double)(float)r.loss[best] && isfinite(r.result.best_accuracy));
    CHECK(r.result.validation.loss == r.loss[EPOCHS - 1]); /* that of the last epoch */
    CHECK_MSG(r.now == r.loss[best], "%.9g instead of %.9g", r.now, r.loss[best]);
    CHECK(loss_of_file(ctx, path) == r.loss[best]);
    CHECK(file_has(ctx, path, "fc.weight") && !file_has(ctx, path, "best.fc.weight"));
    CHECK_MSG(r.heap_calls == 0, "%d heap calls in steps", (int)r.heap_calls);
    (void)remove(path);
}

TEST(best_weights_survive_interruptions_to_the_bit)
{
    mica_context *ctx = test_context(1);
    char paths[2][32] = {"/tmp/mica-best-XXXXXX", "/tmp/mica-best-XXXXXX"};
    new_path(paths[0]);
    new_path(paths[1]);
    run whole = {.ctx = ctx, .path = paths[0]};
    train(&whole);
    int best = least(whole.loss, EPOCHS);
    static const uint64_t stops[] = {3, 19, 24, 30, 0};
    run part = {.ctx = ctx, .path = paths[1], .resume = true};
    for (int i = 0; i < 5; i++) {
        part.stop_at = stops[i];
        train(&part);
        bool ended = stops[i] == 0, validated = stops[i] >= 6;
        CHECK(part.result.stopped == !ended);
        CHECK(file_has(ctx, paths[1], "best.fc.weight") == (!ended && validated));
        CHECK(file_has(ctx, paths[1], "best.norm.running_mean") == (!ended && validated));
        if (!ended && validated) /* what run and eval load */
            CHECK(loss_of_file(ctx, paths[1]) == part.loss[part.result.best_epoch - 1]);
    }
    CHECK(part.result.best_epoch == (uint64_t)best + 1 && part.result.best_loss == whole.result.best_loss);
    CHECK(part.result.best_accuracy == whole.result.best_accuracy);
    CHECK(memcmp(part.loss, whole.loss, sizeof whole.loss) == 0);
    CHECK(same_files(paths[0], paths[1]));
    for (int i = 0; i < 2; i++)
        (void)remove(paths[i]);
}

TEST(best_weights_of_a_training_that_ended_stay)
{
    mica_context *ctx = test_context(1);
    char paths[2][32] = {"/tmp/mica-best-XXXXXX", "/tmp/mica-best-XXXXXX"};
    new_path(paths[0]);
    new_path(paths[1]);
    for (int patience = 0; patience < 3; patience += 2) {
        run r = {.ctx = ctx, .path = paths[0], .patience = patience},
            again = {.ctx = ctx, .path = paths[1], .patience = patience};
        (void)remove(paths[0]);
        (void)remove(paths[1]);
        train(&r);
        train(&again);
        CHECK(r.result.stopped_early == (patience > 0));
        CHECK(patience == 0 || r.result.epochs == r.result.best_epoch + 2);
        again.resume = true;
        again.steps = 0;
        train(&again);
        CHECK(again.steps == 0 && again.result.best_epoch == r.result.best_epoch);
        CHECK(again.result.stopped_early == r.result.stopped_early && again.result.epochs == r.result.epochs);
        CHECK(again.now == r.now && same_files(paths[0], paths[1]));
        /* More of it goes on from the best, and nothing worse replaces them. */
        again.epochs = r.result.epochs + 1;
        again.patience = 0;
        train(&again);
        CHECK(again.steps == 6 && again.now <= r.now);
        CHECK(again.result.best_epoch == r.result.best_epoch || again.now < r.now);
    }
    for (int i = 0; i < 2; i++)
        (void)remove(paths[i]);
}

static bool stop_at_nine(void *user, const mica_progress *p)
{
    (void)user;
    return p->step != 9;
}

/* A training that is interrupted and then ends, within what the allocator gives. */
static mica_status train_within(const mica_allocator *allocator, void *path)
{
    mica_context *ctx;
    mica_net *net = NULL;
    mica_batches *batches = NULL;
    mica_dataset set;
    mica_fit_result result;
    mica_optimizer sgd = {.kind = MICA_SGD, .lr = 0.1f};
    mica_tensor x = mica_2d(&inputs[0][0], SAMPLES, 4),
                y = {.data = targets, .dtype = MICA_I32, .rank = 1, .dim = {SAMPLES}, .stride = {1}};
    mica_status s = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (s != MICA_OK)
        return s;
    (void)remove(path);
    s = mica_net_create(ctx, &net);
    s = s == MICA_OK ? mica_netfile_build(net, NULL, "input x [4]\ndense 3\nloss cross_entropy\n",
                                          &(mica_netfile_opts){.batch = 16})
                     : s;
    s = s == MICA_OK ? mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &sgd}) : s;
    s = s == MICA_OK ? mica_net_bind(net, NULL, 0) : s;
    s = s == MICA_OK ? mica_net_initialize(net, 1) : s;
    s = s == MICA_OK ? mica_dataset_over(ctx, &set, &x, &y) : s;
    s = s == MICA_OK ? mica_batches_create(ctx, &batches, &set, &(mica_batches_opts){.batch = 16}) : s;
    for (int again = 0; again < 2 && s == MICA_OK; again++) {
        mica_source source = mica_source_of_batches(batches);
        s = mica_fit(net, &result,
                     &(mica_fit_opts){.train = source,
                                      .validation = source,
                                      .epochs = 2,
                                      .checkpoint = path,
                                      .resume = again > 0,
                                      .keep_best = true,
                                      .report = again > 0 ? NULL : stop_at_nine});
    }
    s = s == MICA_OK ? mica_weights_load_matching(net, NULL, path) : s;
    mica_batches_destroy(ctx, batches);
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return s;
}

TEST(best_weights_where_allocations_are_refused)
{
    char path[] = "/tmp/mica-best-XXXXXX";
    new_path(path);
    make_noise(test_context(1), &(mica_dataset){0});
    CHECK(test_oom(train_within, path) > 20);
    (void)remove(path);
}

/* A file that says that its best weights are tensors of their own, and has none of them. */
TEST(best_weights_that_are_missing_are_refused)
{
    char path[] = "/tmp/mica-best-XXXXXX";
    new_path(path);
    mica_context *ctx = test_context(1);
    mica_net *net = noisy_net(ctx, CLASSES, "head", NULL);
    mica_tensor w;
    CHECK_OK(ctx, mica_net_tensor(net, &w, "fc.weight"));
    mica_metadata note = {"best_weights", "best.NAME"};
    CHECK_OK(ctx,
             mica_safetensors_write(ctx, path, &(mica_named_tensor){"fc.weight", w}, 1,
                                    &(mica_safetensors_write_opts){.metadata = &note, .metadata_count = 1}));
    CHECK(mica_weights_load(net, path) == MICA_ERR_FORMAT);
    CHECK_MSG(strstr(mica_error(ctx), "has no tensor \"best.fc.weight\"") != NULL, "%s", mica_error(ctx));
    mica_net_destroy(net);
    (void)remove(path);
}

/* ---- Weights that fit ---- */

typedef struct told {
    char missing[64], different[64];
    int loaded;
} told;

static void keep_told(void *user, mica_weights_found found, const mica_named_tensor *wanted,
                      const mica_safetensors_entry *in_file)
{
    told *t = user;
    CHECK((in_file == NULL) == (found == MICA_WEIGHTS_MISSING));
    t->loaded += found == MICA_WEIGHTS_LOADED;
    if (found == MICA_WEIGHTS_MISSING)
        (void)snprintf(t->missing + strlen(t->missing), 30, "%s ", wanted->name);
    if (found == MICA_WEIGHTS_DIFFERENT)
        (void)snprintf(t->different + strlen(t->different), 30, "%s ", wanted->name);
}

TEST(weights_that_fit_are_loaded_and_the_others_left)
{
    char path[] = "/tmp/mica-best-XXXXXX";
    new_path(path);
    mica_context *ctx = test_context(1);
    mica_net *from = noisy_net(ctx, CLASSES, "head", NULL);
    mica_tensor w, kept, other;
    CHECK_OK(ctx, mica_net_tensor(from, &w, "fc.weight"));
    CHECK_OK(ctx, mica_fill(ctx, &w, 0.25f));
    CHECK_OK(ctx, mica_weights_save(from, path));

    /* Another number of classes. */
    mica_net *net = noisy_net(ctx, 5, "head", "fc");
    CHECK_OK(ctx, mica_net_tensor(net, &w, "fc.weight"));
    CHECK_OK(ctx, mica_net_tensor(net, &kept, "head.weight"));
    CHECK_OK(ctx, mica_fill(ctx, &kept, 0.75f));
    told t = {.loaded = 0};
    mica_weights_match match = {.tell = keep_told, .user = &t};
    CHECK_OK(ctx, mica_weights_load_matching(net, &match, path));
    CHECK(match.loaded == 6 && t.loaded == 6 && match.missing == 0 && match.different == 2);
    CHECK_MSG(strcmp(t.different, "head.weight head.bias ") == 0, "%s", t.different);
    CHECK(((float *)w.data)[0] == 0.25f && ((float *)kept.data)[0] == 0.75f);
    mica_net_destroy(net);

    /* Another name. */
    net = noisy_net(ctx, CLASSES, "end", NULL);
    t = (told){.loaded = 0};
    CHECK_OK(ctx, mica_weights_load_matching(net, &match, path));
    CHECK(match.loaded == 6 && match.missing == 2 && strcmp(t.missing, "end.weight end.bias ") == 0);
    mica_net_destroy(net);

    /* Nothing that fits. */
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    CHECK_OK(ctx, mica_netfile_build(net, NULL, "input x [4]\ndense 9 name=other\nloss mse\n", NULL));
    CHECK_OK(ctx, mica_net_compile(net, NULL));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 1));
    CHECK_OK(ctx, mica_net_tensor(net, &other, "other.weight"));
    float before = ((float *)other.data)[0];
    CHECK(mica_weights_load_matching(net, NULL, path) == MICA_ERR_FORMAT);
    CHECK_MSG(strstr(mica_error(ctx), "none of its 8 tensors has the name and shape of one of the net's 2") !=
                  NULL,
              "%s", mica_error(ctx));
    CHECK(((float *)other.data)[0] == before);
    CHECK(mica_weights_load_matching(net, NULL, "/no/such/file") == MICA_ERR_IO);
    mica_net_destroy(net);
    mica_net_destroy(from);
    (void)remove(path);
}
