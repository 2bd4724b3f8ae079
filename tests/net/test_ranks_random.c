/* Random trainings by ranks: nets, optimizers, batches, shares, buckets and budgets as they come. Whatever the number
 * of ranks, losses, parameters, statistics and the optimizer's state are the same to the last bit. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/fit.h>
#include <mica/netfile.h>

#include "net/net.h"
#include "net/thread_ranks.h"
#include "test.h"

#if !defined(MICA_NO_THREADS)

enum { MOST_RANKS = 8, MOST_SAMPLES = 100, MOST_ROW = 128, MOST_STEPS = 400, CLASSES = 5, MOST_THREADS = 3 };

/* ---- A training ---- */

typedef struct training {
    char net[1000], all[500]; /* its text; in words, for messages */
    int samples, batch, shares, accumulate, threads;
    size_t bucket, budget;
    bool spread, no_overlap, frozen;
    uint64_t seed, epochs;
    mica_optimizer optimizer;
} training;

static void say(char *text, size_t room, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(char *text, size_t room, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text + length, room - length, format, arguments);
    va_end(arguments);
}

#define ADD(...) say(t->net, sizeof t->net, __VA_ARGS__)

static const char *activation(test_random *r)
{
    static const char *const kinds[] = {"", "relu", "tanh", "gelu", "sigmoid", "silu"};
    return kinds[test_int(r, 0, 5)];
}

static void add_between(training *t, test_random *r, bool batch_norm)
{
    if (batch_norm && test_chance(r, 40))
        ADD("batch_norm %s\n", activation(r));
    else if (test_chance(r, 20))
        ADD("layer_norm\n");
    if (test_chance(r, 25))
        ADD("dropout 0.%d\n", test_int(r, 1, 5));
}

static void make_net(training *t, test_random *r)
{
    int kind = test_int(r, 0, 4), layers = test_int(r, 0, 2), last = t->samples % t->batch;
    /* Batch norm of single rows is an error, and one after a dense layer has nothing but rows. */
    bool two_rows = t->batch >= 2 * t->shares && (last == 0 || last >= 2 * t->shares);
    if (kind == 0) {
        ADD("input x [%d]\n", test_int(r, 1, 30));
    } else if (kind == 1) {
        ADD("input x [%d, 6, 6]\n", test_int(r, 1, 3));
        for (int i = test_int(r, 1, 2); i > 0; i--) {
            ADD("conv %d 3x3 pad=1 stride=%d\n", test_int(r, 1, 9), test_int(r, 1, 2));
            add_between(t, r, true);
        }
        ADD("%s\nflatten\n", test_chance(r, 50) ? "relu" : "max_pool 2x2");
    } else if (kind == 2) {
        ADD("input x [%d, %d]\n", test_int(r, 1, 6), test_int(r, 1, 6));
        ADD("%s %d last\n", test_chance(r, 50) ? "lstm" : "gru", test_int(r, 1, 12));
    } else if (kind == 3) {
        ADD("input x [%d] i32\nembedding 20 %d\nflatten\n", test_int(r, 1, 8), test_int(r, 1, 20));
    } else {
        ADD("input x [%d] i32\ngpt 20 %d %d 2 %s\nflatten\n", test_int(r, 2, 8), 4 * test_int(r, 1, 3),
            test_int(r, 1, 2), test_chance(r, 50) ? "tied" : "");
    }
    for (int i = 0; i < layers; i++) {
        ADD("dense %d %s\n", test_int(r, 1, test_chance(r, 20) ? 300 : 40), activation(r));
        add_between(t, r, two_rows);
    }
    bool classes = test_chance(r, 60);
    ADD("dense %d name=logits\nloss %s\n", CLASSES, classes ? "cross_entropy" : "mse");
}

#undef ADD

static const int many_shares[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 12, 15, 16, 18, 24, 24, 30, 30, 36, 60};

static training make_training(uint64_t seed)
{
    test_random r = test_seed(seed);
    training t = {.seed = seed, .epochs = 2};
    t.shares = many_shares[test_int(&r, 0, (int)(sizeof many_shares / sizeof many_shares[0]) - 1)];
    t.batch = test_chance(&r, 20) ? test_int(&r, 1, 2 * t.shares) : t.shares * test_int(&r, 1, 3);
    t.samples = test_int(&r, t.batch < MOST_SAMPLES ? t.batch : MOST_SAMPLES, MOST_SAMPLES);
    make_net(&t, &r);
    int batches = (t.samples + t.batch - 1) / t.batch;
    t.accumulate = test_chance(&r, 30) ? test_int(&r, 1, batches < 4 ? batches : 4) : 1;
    t.threads = MOST_THREADS;
    t.frozen = test_chance(&r, 15);
    t.optimizer = (mica_optimizer){.kind = (mica_optimizer_kind)test_int(&r, 0, MICA_OPTIMIZER_COUNT - 1),
                                   .lr = 0.01f,
                                   .momentum = test_chance(&r, 60) ? 0.9f : 0.0f,
                                   .nesterov = test_chance(&r, 20),
                                   .weight_decay = test_chance(&r, 50) ? 0.05f : 0.0f,
                                   .decay_all = test_chance(&r, 30),
                                   .clip_norm = test_chance(&r, 40) ? 0.1f : 0.0f,
                                   .clip_value = test_chance(&r, 15) ? 0.01f : 0.0f};
    t.optimizer.nesterov = t.optimizer.nesterov && t.optimizer.momentum > 0.0f;
    t.budget = test_chance(&r, 25) ? (size_t)test_int(&r, 60, 99) : 0; /* percent, for now */
    return t;
}

/* Compiled, and bound, for one share. */
static mica_status compile(mica_net *net, const training *t, int ranks)
{
    const char *name;
    mica_tensor parameter;
    mica_compile_opts opts = {
        .train = true, .optimizer = &t->optimizer, .budget = t->budget, .ranks = t->spread ? ranks : 0};
    mica_status s = mica_netfile_build(net, NULL, t->net,
                                       &(mica_netfile_opts){.batch = (t->batch + t->shares - 1) / t->shares});
    if (s == MICA_OK && t->frozen && mica_net_parameters(net) > 2) {
        s = mica_net_parameter(net, &name, &parameter, 0);
        s = s == MICA_OK ? mica_net_freeze(net, name, true) : s;
    }
    return s == MICA_OK ? mica_net_compile(net, &opts) : s;
}

/* Makes bytes of a percentage; none where the net does not fit into that. */
static void choose_budget(mica_context *ctx, training *t)
{
    mica_net *net = NULL;
    training free = *t;
    free.budget = 0;
    (void)mica_net_create(ctx, &net);
    if (CHECK_OK(ctx, compile(net, &free, 1)))
        t->budget = t->budget * mica_net_plan(net)->total / 100;
    mica_net_destroy(net);
    (void)mica_net_create(ctx, &net);
    if (t->budget > 0 && compile(net, t, 1) != MICA_OK)
        t->budget = 0;
    mica_net_destroy(net);
}

/* ---- What came of it ---- */

typedef struct outcome {
    const training *training;
    const char *checkpoint;
    bool resume;
    uint64_t epochs;
    double losses[MOST_STEPS], validation[8];
    int steps, validated;
    mica_status status[MOST_RANKS];
    char error[MOST_RANKS][300];
    uint64_t weights[MOST_RANKS],
        heap[MOST_RANKS]; /* a hash of all that a rank's net keeps; calls in steps */
} outcome;

typedef struct hand {
    outcome *out;
    mica_context *ctx;
    int rank;
    uint64_t before; /* heap calls up to the last report; 0: not within an epoch */
} hand;

static bool report(void *user, const mica_progress *p)
{
    hand *h = user;
    outcome *o = h->out;
    uint64_t calls = mica_context_heap(h->ctx).allocations;
    o->heap[h->rank] += h->before > 0 ? calls - h->before : 0;
    h->before = p->epoch_done ? 0 : calls;
    if (h->rank != 0)
        return true;
    if (!p->epoch_done && o->steps < MOST_STEPS)
        o->losses[o->steps++] = p->loss;
    if (p->epoch_done && p->validation != NULL && o->validated < 8)
        o->validation[o->validated++] = p->validation->loss;
    return true;
}

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3u;
    return hash;
}

/* Parameters and statistics. */
static uint64_t hash_weights(mica_net *net)
{
    uint64_t hash = 1;
    mica_tensor t;
    for (int i = 0; i < mica_net_parameters(net); i++)
        if (mica_net_parameter(net, NULL, &t, i) == MICA_OK)
            hash = mix(hash, t.data, mica_tensor_count(&t) * sizeof(float));
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *v = &net->values[i];
        if (v->home != MICA_HOME_KEPT || v->kept == MICA_KEPT_PRIVATE)
            continue;
        t = mica_net_built_tensor(net, v);
        hash = mix(hash, t.data, mica_tensor_count(&t) * sizeof(float));
    }
    return hash;
}

typedef struct samples {
    float x[MOST_SAMPLES * MOST_ROW], y[MOST_SAMPLES * CLASSES];
    int32_t classes[MOST_SAMPLES];
    mica_dataset set;
} samples;

/* The same on every rank. */
static mica_status make_samples(samples *s, mica_net *net, const training *t)
{
    test_random r = test_seed(t->seed + 1);
    mica_tensor x, y, inputs, targets;
    mica_context *ctx = net->ctx;
    mica_status status = mica_net_input_tensor(net, NULL, &x, 0);
    status = status == MICA_OK ? mica_net_input_tensor(net, NULL, &y, 1) : status;
    if (status != MICA_OK)
        return status;
    mica_index dims[MICA_MAX_RANK], each = (mica_index)mica_tensor_count(&x) / x.dim[0];
    memcpy(dims, x.dim, sizeof dims);
    dims[0] = t->samples;
    for (mica_index i = 0; i < t->samples * each; i++)
        s->x[i] = x.dtype == MICA_I32 ? (float)test_int(&r, 0, 19) : (float)test_uniform(&r, -1, 1);
    for (int i = 0; i < t->samples * CLASSES; i++)
        s->y[i] = (float)test_uniform(&r, -1, 1);
    for (int i = 0; i < t->samples; i++)
        s->classes[i] = test_int(&r, 0, CLASSES - 1);
    status = mica_tensor_init(ctx, &inputs, s->x, MICA_F32, x.rank, dims);
    bool classes = y.dtype == MICA_I32;
    dims[1] = CLASSES;
    if (status == MICA_OK)
        status = classes ? mica_tensor_init(ctx, &targets, s->classes, MICA_I32, 1, dims)
                         : mica_tensor_init(ctx, &targets, s->y, MICA_F32, 2, dims);
    return status == MICA_OK ? mica_dataset_over(ctx, &s->set, &inputs, &targets) : status;
}

static mica_status fit(hand *h, mica_net *net, const mica_transport *wire, samples *data)
{
    const training *t = h->out->training;
    mica_context *ctx = h->ctx;
    mica_batches *all = NULL, *some = NULL;
    mica_ranks *ranks = NULL;
    mica_fit_result result;
    mica_status s = compile(net, t, wire->ranks);
    s = s == MICA_OK ? mica_net_bind(net, NULL, 0) : s;
    s = s == MICA_OK ? mica_net_initialize(net, t->seed) : s;
    s = s == MICA_OK ? make_samples(data, net, t) : s;
    s = s == MICA_OK ? mica_batches_create(ctx, &all, &data->set,
                                           &(mica_batches_opts){.batch = t->batch, .seed = t->seed})
                     : s;
    s = s == MICA_OK ? mica_batches_create(
                           ctx, &some, &data->set,
                           &(mica_batches_opts){.batch = 1 + (t->batch - 1) / t->shares,
                                                .sequential = true,
                                                .split = {.part = MICA_PART_VALIDATION, .validation = 0.3}})
                     : s;
    s = s == MICA_OK ? mica_ranks_create(ctx, &ranks, net,
                                         &(mica_ranks_opts){.transport = wire,
                                                            .batch = t->batch,
                                                            .shares = t->shares,
                                                            .bucket = t->bucket,
                                                            .accumulates = t->accumulate > 1,
                                                            .no_overlap = t->no_overlap})
                     : s;
    if (s == MICA_OK)
        s = mica_fit(net, &result,
                     &(mica_fit_opts){.train = mica_source_of_batches(all),
                                      .validation = mica_source_of_batches(some),
                                      .output = "logits",
                                      .epochs = h->out->epochs,
                                      .accumulate = t->accumulate,
                                      .ranks = ranks,
                                      .checkpoint = h->out->checkpoint,
                                      .resume = h->out->resume,
                                      .report = report,
                                      .user = h});
    mica_ranks_destroy(ranks);
    mica_batches_destroy(ctx, some);
    mica_batches_destroy(ctx, all);
    return s;
}

static void be_rank(const mica_transport *wire, void *user)
{
    outcome *o = user;
    hand h = {.out = o, .rank = wire->rank};
    mica_context_opts opts = {.threads = o->training->threads, .isa = getenv("MICA_ISA")};
    mica_net *net = NULL;
    samples *data = calloc(1, sizeof *data);
    mica_status s = mica_context_create(&h.ctx, &opts);
    s = s == MICA_OK ? mica_net_create(h.ctx, &net) : s;
    s = s == MICA_OK ? fit(&h, net, wire, data) : s;
    o->status[wire->rank] = s;
    (void)snprintf(o->error[wire->rank], sizeof o->error[0], "%s", s != MICA_OK ? mica_error(h.ctx) : "");
    o->weights[wire->rank] = s == MICA_OK ? hash_weights(net) : 0;
    mica_net_destroy(net);
    mica_context_destroy(h.ctx);
    free(data);
}

/* ---- Comparing ---- */

typedef struct file {
    char *data;
    size_t bytes;
} file;

static file read_file(const char *path)
{
    file f = {0};
    FILE *from = fopen(path, "rb");
    if (from == NULL)
        return f;
    (void)fseek(from, 0, SEEK_END);
    f.bytes = (size_t)ftell(from);
    rewind(from);
    f.data = malloc(f.bytes + 1);
    f.bytes = fread(f.data, 1, f.bytes, from);
    (void)fclose(from);
    return f;
}

/* With `change`, another number of ranks goes on after the first epoch. */
static bool run(outcome *o, int ranks, int change, const char *what)
{
    bool fine = true;
    (void)remove(o->checkpoint);
    o->epochs = change > 0 ? 1 : o->training->epochs;
    run_thread_ranks(ranks, be_rank, o);
    if (change > 0 && o->status[0] == MICA_OK) {
        o->resume = true;
        o->epochs = o->training->epochs;
        run_thread_ranks(change, be_rank, o);
        ranks = change;
    }
    for (int i = 0; i < ranks; i++) {
        fine = CHECK_MSG(o->status[i] == MICA_OK, "%s: rank %d of %d: %s", what, i, ranks, o->error[i]) &&
               fine;
        fine = CHECK_MSG(o->weights[i] == o->weights[0], "%s: rank %d of %d has other parameters than rank 0",
                         what, i, ranks) &&
               fine;
        CHECK_MSG(o->heap[i] == 0, "%s: rank %d of %d: %llu heap calls in steps", what, i, ranks,
                  (unsigned long long)o->heap[i]);
    }
    return fine;
}

/* In how many parts a share is run; 0: it does not fit into the budget. */
static mica_index parts_of(const training *t, int ranks)
{
    mica_context *ctx;
    mica_net *net;
    (void)mica_context_create(&ctx, &(mica_context_opts){.threads = t->threads, .isa = getenv("MICA_ISA")});
    (void)mica_net_create(ctx, &net);
    mica_index parts = compile(net, t, ranks) == MICA_OK ? (mica_index)mica_net_plan(net)->parts : 0;
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return parts;
}

/* What must not make a difference; within a budget, as long as the number of parts stays. */
static training vary(training t, test_random *r, int ranks, int change)
{
    training before = t;
    t.threads = test_chance(r, 30) ? test_int(r, 1, MOST_THREADS) : 1;
    t.bucket = test_chance(r, 50) ? 0 : (size_t)test_int(r, 1, 4000);
    t.spread = test_chance(r, 40);
    t.no_overlap = test_chance(r, 15);
    mica_index parts = t.budget > 0 ? parts_of(&before, 1) : 1;
    bool same = t.budget == 0 ||
                (parts_of(&t, ranks) == parts && (change == 0 || parts_of(&t, change) == parts));
    if (!same) {
        t.threads = before.threads;
        t.spread = before.spread;
    }
    return t;
}

static void describe(training *t)
{
    t->all[0] = '\0';
    say(t->all, sizeof t->all,
        "seed %llu: %d samples, batch %d, %d shares, accumulate %d, %d threads, bucket %zu, budget %zu%s%s%s, "
        "optimizer %d",
        (unsigned long long)t->seed, t->samples, t->batch, t->shares, t->accumulate, t->threads, t->bucket,
        t->budget, t->spread ? ", spread" : "", t->no_overlap ? ", no overlap" : "",
        t->frozen ? ", frozen" : "", (int)t->optimizer.kind);
}

static void check_training(mica_context *ctx, uint64_t seed, const char *path, int *runs)
{
    static outcome one, many;
    training first = make_training(seed);
    test_random r = test_seed(seed + 2);
    choose_budget(ctx, &first);
    describe(&first);
    one = (outcome){.training = &first, .checkpoint = path};
    if (!run(&one, 1, 0, first.all))
        return;
    file wanted = read_file(path);
    CHECK(one.steps > 0 && wanted.bytes > 0);
    for (int ranks = 2; ranks <= MOST_RANKS; ranks++) {
        if (first.shares % ranks != 0)
            continue;
        int change = test_chance(&r, 30) ? 1 + (ranks % 2 == 0) * test_int(&r, 0, 1) : 0;
        training t = vary(first, &r, ranks, change);
        describe(&t);
        many = (outcome){.training = &t, .checkpoint = path};
        if (!run(&many, ranks, change, t.all))
            continue;
        file got = read_file(path);
        CHECK_MSG(many.steps == one.steps &&
                      memcmp(many.losses, one.losses, (size_t)one.steps * sizeof one.losses[0]) == 0,
                  "%s: other losses with %d ranks (then %d)", t.all, ranks, change);
        CHECK_MSG(memcmp(many.validation, one.validation, sizeof one.validation) == 0,
                  "%s: other validation with %d ranks (then %d)", t.all, ranks, change);
        CHECK_MSG(many.weights[0] == one.weights[0], "%s: other parameters with %d ranks (then %d)", t.all,
                  ranks, change);
        CHECK_MSG(got.bytes == wanted.bytes && memcmp(got.data, wanted.data, got.bytes) == 0,
                  "%s: another checkpoint with %d ranks (then %d)", t.all, ranks, change);
        free(got.data);
        ++*runs;
    }
    free(wanted.data);
}

TEST(ranks_random_trainings_have_the_same_bits)
{
    char path[] = "/tmp/mica-ranks-random-XXXXXX";
    REQUIRE(mkstemp(path) >= 0);
    mica_context *ctx = test_context(MOST_THREADS);
    const char *from = getenv("MICA_TEST_SEED"); /* other trainings than those of every day */
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 0;
    int trainings = test_effort(20), runs = 0;
    for (uint64_t seed = first; seed < first + (uint64_t)trainings; seed++)
        check_training(ctx, seed, path, &runs);
    if (getenv("MICA_TEST_SHOW") != NULL)
        printf("  %d trainings, compared with %d by more ranks\n", trainings, runs);
    CHECK(runs > trainings / 4);
    (void)remove(path);
}

#endif
