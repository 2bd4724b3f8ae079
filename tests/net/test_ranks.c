/* Training by several ranks: the same bits for any number of them, and one rank's failure is everyone's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/fit.h>
#include <mica/netfile.h>

#include "net/thread_ranks.h"
#include "test.h"
#include "train/ranks.h"

/* ---- The tree ---- */

TEST(ranks_tree_cuts_any_row_into_its_nodes)
{
    for (int all = 1; all <= 40; all++)
        for (int first = 0; first < all; first++)
            for (int end = first + 1; end <= all; end++) {
                mica_shares nodes[MICA_SHARE_NODES];
                int count = mica_shares_cut(nodes, all, (mica_shares){first, end}), at = first;
                for (int i = 0; i < count; i++) {
                    CHECK(nodes[i].first == at && nodes[i].end > at);
                    at = nodes[i].end;
                    if (i > 0) /* otherwise their sum would be one of the nodes */
                        CHECK(!mica_shares_join(all, nodes[i - 1], nodes[i]));
                }
                CHECK(at == end);
                CHECK(count <= MICA_SHARE_NODES);
            }
    mica_shares whole[MICA_SHARE_NODES];
    CHECK(mica_shares_cut(whole, MICA_MOST_SHARES - 1, (mica_shares){1, MICA_MOST_SHARES - 2}) <=
          MICA_SHARE_NODES);
    CHECK(mica_shares_join(7, (mica_shares){4, 6}, (mica_shares){6, 7}));
    CHECK(mica_shares_join(7, (mica_shares){0, 4}, (mica_shares){4, 7}));
    CHECK(!mica_shares_join(7, (mica_shares){2, 4}, (mica_shares){4, 6}));
}

#if defined(MICA_NO_THREADS)

TEST(ranks_make_the_same_bits) { test_skip("a build without threads"); }

#else

/* ---- Small nets of every kind ---- */

static const char cnn[] =
    "input x [1, 8, 8]\n"
    "conv 6 3x3 pad=1\nbatch_norm\nrelu\nmax_pool 2x2\ndropout 0.2\n"
    "flatten\ndense 5 name=logits\nloss cross_entropy\n";
static const char lstm[] = "input x [6, 4]\nlstm 7 last\ndense 5 name=logits\nloss cross_entropy\n";
static const char table[] =
    "input x [8] i32\nembedding 20 12\nflatten\ndense 16 relu\ndense 5 name=logits\n"
    "loss cross_entropy\n";

enum { SAMPLES = 77, CLASSES = 5, STEPS_KEPT = 64 };

typedef struct job {
    const char *net;
    mica_index batch;
    int shares, accumulate;
    bool spread, no_overlap;
    bool plain; /* without ranks at all */
    size_t budget, bucket;
    float clip;
    uint64_t epochs;
    const char *checkpoint;
    bool resume, keep_best;
    int bad_rank; /* whose data are not finite; 0: none */
    int stop_rank, stop_step;

    /* What came of it, by rank 0; and of all ranks, whether it did. */
    double losses[STEPS_KEPT], validation;
    uint64_t best_epoch;
    int steps;
    float *parameters;
    size_t count;
    mica_status status[16];
    char error[16][300];
    bool same[16];
} job;

typedef struct hand {
    job *job;
    mica_net *net;
    int rank;
} hand;

static bool keep_loss(void *user, const mica_progress *p)
{
    hand *h = user;
    if (!p->epoch_done && h->rank == 0 && h->job->steps < STEPS_KEPT)
        h->job->losses[h->job->steps++] = p->loss;
    if (p->epoch_done && h->rank == 0 && p->validation != NULL)
        h->job->validation = p->validation->loss;
    return !(h->rank == h->job->stop_rank && (int)p->step == h->job->stop_step);
}

static mica_index row_size(const mica_tensor *t) { return (mica_index)mica_tensor_count(t) / t->dim[0]; }

/* The same data on every rank. */
static void make_data(mica_dataset *set, mica_context *ctx, const mica_tensor *input, float *x, int32_t *y)
{
    test_random r = test_seed(9);
    mica_index each = row_size(input), dims[MICA_MAX_RANK] = {SAMPLES};
    for (int k = 1; k < input->rank; k++)
        dims[k] = input->dim[k];
    for (mica_index i = 0; i < SAMPLES * each; i++)
        x[i] = input->dtype == MICA_I32 ? (float)test_int(&r, 0, 19) : (float)test_uniform(&r, -1, 1);
    for (int i = 0; i < SAMPLES; i++)
        y[i] = test_int(&r, 0, CLASSES - 1);
    mica_tensor inputs, targets;
    (void)mica_tensor_init(ctx, &inputs, x, MICA_F32, input->rank, dims);
    (void)mica_tensor_init(ctx, &targets, y, MICA_I32, 1, dims);
    (void)mica_dataset_over(ctx, set, &inputs, &targets);
}

static mica_status train(hand *h, mica_context *ctx, const mica_transport *wire)
{
    job *j = h->job;
    static float data[16][SAMPLES * 64];
    static int32_t labels[16][SAMPLES];
    mica_optimizer adam = {.kind = MICA_ADAMW, .lr = 0.01f, .weight_decay = 0.1f, .clip_norm = j->clip};
    int shares = j->shares > 0 ? j->shares : wire->ranks;
    mica_netfile_opts opts = {.batch = (j->batch + shares - 1) / shares};
    mica_dataset set;
    mica_tensor input;
    mica_batches *batches[2] = {NULL, NULL};
    mica_ranks *ranks = NULL;
    mica_fit_result result;
    mica_compile_opts compile = {
        .train = true, .optimizer = &adam, .budget = j->budget, .ranks = j->spread ? wire->ranks : 0};
    mica_status s = mica_netfile_build(h->net, NULL, j->net, &opts);
    s = s == MICA_OK ? mica_net_compile(h->net, &compile) : s;
    s = s == MICA_OK ? mica_net_bind(h->net, NULL, 0) : s;
    s = s == MICA_OK ? mica_net_initialize(h->net, 3) : s;
    s = s == MICA_OK ? mica_net_input_tensor(h->net, NULL, &input, 0) : s;
    if (s != MICA_OK)
        return s;
    make_data(&set, ctx, &input, data[h->rank], labels[h->rank]);
    if (j->bad_rank > 0 && j->bad_rank == h->rank)
        for (int i = 0; i < SAMPLES; i++)
            data[h->rank][i * row_size(&input)] = NAN;
    mica_batches_opts train = {
        .batch = j->batch, .seed = 4, .split = {.part = MICA_PART_TRAIN, .validation = 0.2}};
    mica_batches_opts check = {
        .batch = opts.batch, .sequential = true, .split = {.part = MICA_PART_VALIDATION, .validation = 0.2}};
    s = mica_batches_create(ctx, &batches[0], &set, &train);
    s = s == MICA_OK ? mica_batches_create(ctx, &batches[1], &set, &check) : s;
    s = s == MICA_OK && !j->plain ? mica_ranks_create(ctx, &ranks, h->net,
                                                      &(mica_ranks_opts){.transport = wire,
                                                                         .batch = j->batch,
                                                                         .shares = j->shares,
                                                                         .bucket = j->bucket,
                                                                         .accumulates = j->accumulate > 1,
                                                                         .no_overlap = j->no_overlap})
                                  : s;
    if (s == MICA_OK) {
        mica_fit_opts fit = {.train = mica_source_of_batches(batches[0]),
                             .validation = mica_source_of_batches(batches[1]),
                             .output = "logits",
                             .epochs = j->epochs > 0 ? j->epochs : 2,
                             .accumulate = j->accumulate,
                             .ranks = ranks,
                             .checkpoint = j->checkpoint,
                             .resume = j->resume,
                             .keep_best = j->keep_best,
                             .report = keep_loss,
                             .user = h};
        s = mica_fit(h->net, &result, &fit);
        if (h->rank == 0)
            j->best_epoch = result.best_epoch;
    }
    mica_ranks_destroy(ranks);
    for (int i = 0; i < 2; i++)
        mica_batches_destroy(ctx, batches[i]);
    return s;
}

static void rank_body(const mica_transport *wire, void *user)
{
    job *j = user;
    hand h = {.job = j, .rank = wire->rank};
    mica_context *ctx;
    mica_tensor flat;
    (void)mica_context_create(&ctx, &(mica_context_opts){.threads = 1, .isa = getenv("MICA_ISA")});
    (void)mica_net_create(ctx, &h.net);
    mica_status status = train(&h, ctx, wire);
    j->status[wire->rank] = status;
    (void)snprintf(j->error[wire->rank], sizeof j->error[0], "%s", status != MICA_OK ? mica_error(ctx) : "");
    if (status == MICA_OK && mica_net_flat(h.net, &flat, NULL) == MICA_OK) {
        size_t bytes = mica_tensor_count(&flat) * sizeof(float);
        if (wire->rank == 0) {
            j->parameters = malloc(bytes);
            j->count = mica_tensor_count(&flat);
            memcpy(j->parameters, flat.data, bytes);
        }
        char *all = malloc(bytes * (size_t)wire->ranks); /* what rank 0 has, is everyone's */
        wire->gather(wire->user, all, flat.data, bytes);
        j->same[wire->rank] = memcmp(all, flat.data, bytes) == 0;
        free(all);
    }
    mica_net_destroy(h.net);
    mica_context_destroy(ctx);
}

static job run_job(job j, int ranks)
{
    j.steps = 0;
    run_thread_ranks(ranks, rank_body, &j);
    for (int i = 0; i < ranks; i++) {
        CHECK_MSG(j.status[i] == MICA_OK, "rank %d of %d: %s", i, ranks, j.error[i]);
        CHECK_MSG(j.status[i] != MICA_OK || j.same[i], "rank %d of %d ends with other parameters than rank 0",
                  i, ranks);
    }
    return j;
}

static void check_same(const job *a, const job *b, int ranks, const char *what)
{
    bool losses = a->steps == b->steps &&
                  memcmp(a->losses, b->losses, (size_t)a->steps * sizeof a->losses[0]) == 0;
    CHECK_MSG(a->steps > 0 && losses, "%s: other losses with %d ranks (%.9g and %.9g)", what, ranks,
              a->losses[0], b->losses[0]);
    CHECK_MSG(a->validation == b->validation, "%s: validation %.9g, with %d ranks %.9g", what, a->validation,
              ranks, b->validation);
    bool same = a->count == b->count && a->parameters != NULL && b->parameters != NULL &&
                memcmp(a->parameters, b->parameters, a->count * sizeof(float)) == 0;
    CHECK_MSG(same, "%s: other parameters with %d ranks", what, ranks);
}

/* One rank, then others, which give the same bits. */
static void check_job(const char *what, job j, const int *ranks)
{
    job one = run_job(j, 1);
    for (; *ranks != 0; ranks++) {
        job many = run_job(j, *ranks);
        check_same(&one, &many, *ranks, what);
        free(many.parameters);
        many = (job){0};
    }
    free(one.parameters);
}

TEST(ranks_make_the_same_bits)
{
    static const int to_four[] = {2, 4, 0}, six[] = {2, 3, 6, 0}, twelve[] = {2, 3, 4, 0};
    check_job("cnn", (job){.net = cnn, .batch = 16, .shares = 4}, to_four);
    check_job("cnn, 6 shares", (job){.net = cnn, .batch = 18, .shares = 6, .clip = 0.5f}, six);
    check_job("lstm, 12 shares", (job){.net = lstm, .batch = 24, .shares = 12}, twelve);
    check_job("embedding", (job){.net = table, .batch = 12, .shares = 4, .clip = 1.0f}, to_four);
    check_job("small buckets", (job){.net = table, .batch = 12, .shares = 6, .bucket = 64}, six);
    check_job("no overlap", (job){.net = table, .batch = 12, .shares = 4, .no_overlap = true}, to_four);
    check_job("accumulation", (job){.net = lstm, .batch = 8, .shares = 4, .accumulate = 3}, to_four);
    check_job("spread state", (job){.net = table, .batch = 12, .shares = 6, .spread = true, .clip = 0.3f},
              six);
    check_job("spread, accumulated",
              (job){.net = cnn, .batch = 12, .shares = 4, .spread = true, .accumulate = 2}, to_four);
}

/* The last batch has fewer rows than there are shares. */
TEST(ranks_shares_of_one_row_or_none)
{
    static const int ranks[] = {2, 4, 6, 0};
    check_job("lstm", (job){.net = lstm, .batch = 60, .shares = 12}, ranks);
    check_job("spread", (job){.net = table, .batch = 20, .shares = 12, .spread = true}, ranks);
}

/* A budget's parts follow the share, not the rank. */
TEST(ranks_keep_to_a_budget)
{
    static const int ranks[] = {2, 3, 0};
    mica_context *ctx = test_context(1);
    mica_net *net;
    mica_optimizer adam = {.kind = MICA_ADAMW};
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    CHECK_OK(ctx, mica_netfile_build(net, NULL, lstm, &(mica_netfile_opts){.batch = 8}));
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam}));
    size_t total = mica_net_plan(net)->total;
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){
                                            .train = true, .optimizer = &adam, .budget = total * 17 / 20}));
    CHECK(mica_net_plan(net)->parts > 1);
    mica_net_destroy(net);
    check_job("budget", (job){.net = lstm, .batch = 48, .shares = 6, .budget = total * 17 / 20}, ranks);
}

/* One rank with one share does what a training without ranks does. */
TEST(ranks_of_one_change_nothing)
{
    static const char *const nets[] = {cnn, lstm, table};
    for (int i = 0; i < 3; i++)
        for (int accumulate = 1; accumulate < 4; accumulate += 2) {
            job j = {.net = nets[i], .batch = 9, .shares = 1, .accumulate = accumulate}, without = j;
            without.plain = true;
            job one = run_job(j, 1), plain = run_job(without, 1);
            if (accumulate == 1)
                check_same(&plain, &one, 1, "plain");
            CHECK(one.steps > 0 && one.steps == plain.steps);
            for (int step = 0; step < one.steps; step++) /* parts of an update are rounded in another order */
                CHECK_MSG(fabs(one.losses[step] - plain.losses[step]) < 1e-4, "step %d: %g and %g", step,
                          one.losses[step], plain.losses[step]);
            free(one.parameters);
            free(plain.parameters);
        }
}

/* Where the transport adds, in whatever order, results are near to those of one rank; the state may be spread. */
TEST(ranks_add_in_any_order)
{
    job one = run_job((job){.net = table, .batch = 12, .shares = 1}, 1);
    for (int spread = 0; spread < 2; spread++)
        for (int accumulate = 1; accumulate < 3; accumulate++) {
            job many = run_job(
                (job){
                    .net = table, .batch = 12 / accumulate, .spread = spread != 0, .accumulate = accumulate},
                3);
            CHECK(many.steps > 0 && isfinite(many.losses[many.steps - 1]));
            if (accumulate == 1)
                CHECK_MSG(fabs(many.losses[many.steps - 1] - one.losses[one.steps - 1]) < 1e-4, "%g and %g",
                          many.losses[many.steps - 1], one.losses[one.steps - 1]);
            free(many.parameters);
        }
    free(one.parameters);
}

/* ---- Checkpoints ---- */

/* Trained by some ranks, gone on with by others: as if nothing had happened. */
/* Interrupted as `half` says and resumed with another number of ranks, a job ends with the same parameters. */
static void check_resumed(job j, job half)
{
    static const int before[] = {1, 2, 4}, after[] = {4, 1, 2};
    job whole = run_job(j, 2);
    CHECK_MSG(!j.keep_best || (whole.best_epoch > 0 && whole.best_epoch + 1 < j.epochs), "best epoch %d",
              (int)whole.best_epoch);
    for (int i = 0; i < 3; i++) {
        (void)remove(half.checkpoint);
        job first = run_job(half, before[i]);
        free(first.parameters);
        job rest = j;
        rest.checkpoint = half.checkpoint;
        rest.resume = true;
        rest = run_job(rest, after[i]);
        CHECK(rest.best_epoch == whole.best_epoch);
        CHECK_MSG(rest.count == whole.count &&
                      memcmp(rest.parameters, whole.parameters, whole.count * sizeof(float)) == 0,
                  "%d ranks after %d: other parameters", after[i], before[i]);
        free(rest.parameters);
    }
    free(whole.parameters);
    (void)remove(half.checkpoint);
}

TEST(ranks_resume_with_another_number)
{
    char path[] = "/tmp/mica-ranks-XXXXXX";
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    for (int spread = 0; spread < 2; spread++) {
        job j = {.net = cnn, .batch = 16, .shares = 4, .epochs = 4, .spread = spread != 0}, half = j;
        half.checkpoint = path;
        half.epochs = 2;
        check_resumed(j, half);
    }
}

/* The labels are random, so that validation gets worse from some epoch on. */
TEST(ranks_keep_the_best_weights)
{
    char path[] = "/tmp/mica-ranks-XXXXXX";
    int file = mkstemp(path);
    REQUIRE(file >= 0);
    for (int spread = 0; spread < 2; spread++) {
        job j = {.net = cnn, .batch = 16, .shares = 4, .epochs = 9, .spread = spread != 0, .keep_best = true},
            half = j;
        half.checkpoint = path;
        half.stop_step = 33; /* within the last epoch but one */
        check_resumed(j, half);
    }
}

/* ---- Faults ---- */

TEST(ranks_fail_together)
{
    job j = {.net = lstm, .batch = 24, .shares = 6, .bad_rank = 2};
    run_thread_ranks(3, rank_body, &j);
    for (int i = 0; i < 3; i++) {
        CHECK(j.status[i] == MICA_ERR_DIVERGED);
        CHECK_MSG(strstr(j.error[i], "on rank 2, share 4") != NULL, "%s", j.error[i]);
    }
}

static mica_status fill_badly(mica_net *net, mica_index first, mica_index count, void *user)
{
    mica_tensor x, y;
    mica_status status = mica_net_input_tensor(net, NULL, &x, 0);
    status = status == MICA_OK ? mica_net_input_tensor(net, NULL, &y, 1) : status;
    if (status != MICA_OK)
        return status;
    memset(y.data, 0, mica_tensor_bytes(&y));
    for (mica_index i = 0; i < count * row_size(&x); i++)
        ((float *)x.data)[i] = first > 0 && *(const bool *)user ? NAN : (float)(i % 7);
    return MICA_OK;
}

/* Also the statistics of batch norm, which shares before the bad one have moved. */
TEST(ranks_change_nothing_in_a_step_that_fails)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    mica_ranks *ranks;
    mica_ranks_outcome outcome;
    mica_tensor flat;
    float before[512], mean[6];
    bool bad = false;
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    CHECK_OK(ctx, mica_netfile_build(net, NULL, cnn, &(mica_netfile_opts){.batch = 4}));
    CHECK_OK(ctx,
             mica_net_compile(net, &(mica_compile_opts){.train = true,
                                                        .optimizer = &(mica_optimizer){.kind = MICA_ADAM}}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 1));
    CHECK_OK(ctx, mica_ranks_create(ctx, &ranks, net, &(mica_ranks_opts){.shares = 2}));
    mica_ranks_step_opts step = {.rows = 8, .fill = fill_badly, .user = &bad, .lr = 0.1f};
    CHECK_OK(ctx, mica_ranks_step(ranks, &outcome, &step));
    mica_tensor running = mica_net_built_tensor(net, &net->values[ranks->statistics[0]]);
    CHECK_OK(ctx, mica_net_flat(net, &flat, NULL));
    REQUIRE(mica_tensor_bytes(&running) == sizeof mean);
    size_t bytes = mica_tensor_bytes(&flat) < sizeof before ? mica_tensor_bytes(&flat) : sizeof before;
    memcpy(mean, running.data, sizeof mean);
    memcpy(before, flat.data, bytes);
    bad = true;
    CHECK(mica_ranks_step(ranks, &outcome, &step) == MICA_ERR_DIVERGED);
    CHECK(memcmp(mean, running.data, sizeof mean) == 0);
    CHECK(memcmp(before, flat.data, bytes) == 0);
    mica_ranks_destroy(ranks);
    mica_net_destroy(net);
}

/* A step whose numbers differ between two ranks, or are wrong on one of them. */
typedef struct odd_step {
    float lr[2];
    mica_index rows[2];
    char error[2][300];
} odd_step;

static void odd_ranks(const mica_transport *wire, void *user)
{
    odd_step *odd = user;
    mica_context *ctx;
    mica_net *net;
    mica_ranks *ranks = NULL;
    mica_ranks_outcome outcome;
    mica_optimizer adam = {.kind = MICA_ADAM};
    bool bad = false;
    (void)mica_context_create(&ctx, &(mica_context_opts){.threads = 1});
    (void)mica_net_create(ctx, &net);
    (void)mica_netfile_build(net, NULL, cnn, &(mica_netfile_opts){.batch = 4});
    (void)mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam});
    (void)mica_net_bind(net, NULL, 0);
    (void)mica_net_initialize(net, 1);
    mica_status status = mica_ranks_create(ctx, &ranks, net,
                                           &(mica_ranks_opts){.transport = wire, .shares = 2});
    mica_ranks_step_opts step = {
        .rows = odd->rows[wire->rank], .fill = fill_badly, .user = &bad, .lr = odd->lr[wire->rank]};
    status = status == MICA_OK ? mica_ranks_step(ranks, &outcome, &step) : status;
    (void)snprintf(odd->error[wire->rank], sizeof odd->error[0], "%s",
                   status != MICA_OK ? mica_error(ctx) : "");
    mica_ranks_destroy(ranks);
    mica_net_destroy(net);
    mica_context_destroy(ctx);
}

TEST(ranks_step_with_the_same_numbers)
{
    static const struct {
        float lr;
        mica_index rows;
        const char *error;
    } cases[] = {
        {0.1f, 8, ""},
        {0.2f, 8, "state error: rank 1 has a learning rate of 0.2, rank 0 one of 0.1"},
        {0.1f, 7, "shape error: rank 1 has a batch of 7 rows, rank 0 one of 8"},
        {NAN, 8, "argument error: rank 1: train_update: the learning rate is nan: expected 0 or more"},
        {0.1f, 9, "shape error: rank 1: ranks_step: 9 rows of a batch of at most 8"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        odd_step odd = {.lr = {0.1f, cases[i].lr}, .rows = {8, cases[i].rows}};
        run_thread_ranks(2, odd_ranks, &odd);
        for (int rank = 0; rank < 2; rank++)
            CHECK_MSG(strncmp(odd.error[rank], cases[i].error, strlen(cases[i].error)) == 0 &&
                          (odd.error[rank][0] != '\0') == (i > 0),
                      "rank %d: %s", rank, odd.error[rank]);
    }
}

TEST(ranks_stop_together)
{
    job j = run_job(
        (job){.net = lstm, .batch = 12, .shares = 2, .epochs = 50, .stop_rank = 1, .stop_step = 3}, 2);
    CHECK_MSG(j.steps == 4, "%d steps", j.steps); /* the others are told a step later */
    free(j.parameters);
}

static void other_ranks(const mica_transport *wire, void *user)
{
    job *j = user;
    hand h = {.job = j, .rank = wire->rank};
    job own = *j;
    if (wire->rank == 1 && j->stop_step == 1)
        own.net = lstm;
    if (wire->rank == 1 && j->stop_step == 2)
        own.clip = 2.0f;
    if (wire->rank == 2 && j->stop_step == 3)
        own.batch = 300;
    own.stop_step = 0;
    h.job = &own;
    mica_context *ctx;
    (void)mica_context_create(&ctx, &(mica_context_opts){.threads = 1});
    (void)mica_net_create(ctx, &h.net);
    j->status[wire->rank] = train(&h, ctx, wire);
    (void)snprintf(j->error[wire->rank], sizeof j->error[0], "%s", mica_error(ctx));
    mica_net_destroy(h.net);
    mica_context_destroy(ctx);
}

TEST(ranks_must_be_alike)
{
    static const char *const wanted[] = {"", "rank 1 has another net than rank 0",
                                         "rank 1 has another optimizer than rank 0",
                                         "rank 2 has another net than rank 0"};
    for (int k = 1; k < 4; k++) {
        job j = {.net = table, .batch = 12, .shares = 6, .stop_step = k};
        run_thread_ranks(3, other_ranks, &j);
        for (int i = 0; i < 3; i++) {
            CHECK(j.status[i] == MICA_ERR_STATE);
            CHECK_MSG(strstr(j.error[i], wanted[k]) != NULL, "%s", j.error[i]);
        }
    }
}

#endif

/* ---- Plans ---- */

TEST(ranks_plan_before_there_are_any)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    mica_optimizer adam = {.kind = MICA_ADAMW};
    mica_ranks_plan plan;
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    CHECK_OK(ctx,
             mica_netfile_build(net, NULL, mica_netfile_builtin("lenet"), &(mica_netfile_opts){.batch = 8}));
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam}));
    size_t whole = mica_net_plan(net)->total;
    mica_tensor flat = {0};
    CHECK_OK(ctx, mica_ranks_plan_of(&plan, net, 1, &(mica_ranks_opts){.shares = 1}));
    CHECK(plan.sent == 0.0 && plan.rows == 8);
    CHECK_OK(ctx, mica_ranks_plan_of(&plan, net, 4, &(mica_ranks_opts){.shares = 4}));
    double four = plan.sent;
    CHECK_OK(ctx, mica_ranks_plan_of(&plan, net, 4, &(mica_ranks_opts){0}));
    CHECK(plan.sent > 0.0 && four <= plan.sent * 1.1); /* blocks of one share travel as in a ring */
    CHECK_ERROR(ctx, mica_ranks_plan_of(&plan, net, 4, &(mica_ranks_opts){.shares = 6}), MICA_ERR_ARGUMENT,
                "argument error: ranks: 6 shares: expected a multiple of the 4 ranks");
    CHECK_ERROR(ctx, mica_ranks_plan_of(&plan, net, 0, NULL), MICA_ERR_ARGUMENT,
                "argument error: ranks_plan_of: 0 ranks");
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam, .ranks = 4}));
    CHECK_MSG(mica_net_plan(net)->total < whole, "%zu and %zu", mica_net_plan(net)->total, whole);
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 1));
    CHECK_OK(ctx, mica_net_flat(net, &flat, NULL));
    CHECK_ERROR(ctx, mica_train_update(net, 0.1f), MICA_ERR_STATE,
                "state error: train_update: the optimizer's state is spread over ranks: use mica_ranks_step");
    mica_net_destroy(net);
}
