/* Ranks that are used carelessly, or of which one fails: all of them say so, none waits for another, and nothing of the
 * net has changed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/fit.h>
#include <mica/netfile.h>

#include "net/thread_ranks.h"
#include "oom.h"
#include "train/ranks.h"

#if defined(MICA_NO_THREADS)

TEST(ranks_faults) { test_skip("a build without threads"); }

#else

enum { RANKS = 3, BATCH = 12, PATH_BYTES = 64 };

static const char normed[] =
    "input x [1, 8, 8]\nconv 6 3x3 pad=1\nbatch_norm\nrelu\nmax_pool 2x2\nflatten\ndense 5 name=logits\n"
    "loss cross_entropy\n";
static const char table[] =
    "input x [8] i32\nembedding 20 12\nflatten\ndense 16 relu\ndense 5 name=logits\nloss cross_entropy\n";

/* ---- One rank's net ---- */

typedef struct site {
    mica_context *ctx;
    mica_net *net;
    mica_ranks *ranks;
    oom_heap heap;
    mica_allocator allocator;
} site;

static const mica_optimizer adam = {.kind = MICA_ADAM, .lr = 0.01f};

static void build_net(site *s, const char *text, int spread)
{
    s->allocator = oom_allocator(&s->heap);
    mica_compile_opts compile = {.train = true, .optimizer = &adam, .ranks = spread, .debug = true};
    (void)mica_context_create(&s->ctx, &(mica_context_opts){.threads = 1, .allocator = &s->allocator});
    CHECK_OK(s->ctx, mica_net_create(s->ctx, &s->net));
    CHECK_OK(s->ctx, mica_netfile_build(s->net, NULL, text, &(mica_netfile_opts){.batch = BATCH}));
    CHECK_OK(s->ctx, mica_net_compile(s->net, &compile));
}

static void bind_net(site *s)
{
    CHECK_OK(s->ctx, mica_net_bind(s->net, NULL, 0));
    CHECK_OK(s->ctx, mica_net_initialize(s->net, 3));
}

static void open_net(site *s, const char *text, int spread)
{
    build_net(s, text, spread);
    bind_net(s);
}

static void close_net(site *s)
{
    mica_net_destroy(s->net);
    mica_ranks_destroy(s->ranks); /* in any order */
    mica_context_destroy(s->ctx);
    CHECK_MSG(s->heap.blocks == 0, "%d blocks are left", s->heap.blocks);
}

/* Of the parameters and statistics. */
static uint64_t hash_of(const site *s)
{
    uint64_t hash = 1;
    for (int i = 0; i < s->net->built_values; i++) {
        const mica_value_info *v = &s->net->values[i];
        bool kept = v->home == MICA_HOME_KEPT && v->kept != MICA_KEPT_PRIVATE;
        if (v->home != MICA_HOME_LEARNED && !kept)
            continue;
        mica_tensor t = mica_net_built_tensor(s->net, v);
        const unsigned char *bytes = t.data;
        for (size_t k = 0; k < mica_tensor_bytes(&t); k++)
            hash = (hash ^ bytes[k]) * 0x100000001b3u;
    }
    return hash;
}

/* ---- Steps ---- */

typedef struct filling {
    int calls;
    int fails;   /* at this call; 0: never */
    int resizes; /* likewise */
} filling;

static mica_status fill(mica_net *net, mica_index first, mica_index count, void *user)
{
    filling *f = user;
    f->calls++;
    if (f->calls == f->fails)
        return mica_fail(net->ctx, MICA_ERR_IO, "no row %td", first);
    for (int i = 0; i < 2; i++) {
        mica_tensor t;
        MICA_TRY(mica_net_input_tensor(net, NULL, &t, i));
        mica_index each = (mica_index)mica_tensor_count(&t) / t.dim[0];
        for (mica_index k = 0; k < count * each; k++) {
            mica_index number = (first * each + k) * 7 % 5;
            if (t.dtype == MICA_I32)
                ((int32_t *)t.data)[k] = (int32_t)number;
            else
                ((float *)t.data)[k] = (float)number - 2.0f;
        }
    }
    return f->calls == f->resizes ? mica_net_resize(net, count > 1 ? 1 : 2) : MICA_OK;
}

typedef struct fault {
    const char *text; /* of the net */
    int shares;
    bool spread;
    int rank; /* that is at fault */
    void (*spoil)(mica_ranks_step_opts *step, filling *f);
    bool no_out;
    mica_status want;
    const char *says;
    uint64_t hash[RANKS];
} fault;

static void run_fault(const mica_transport *wire, void *user)
{
    fault *f = user;
    site s = {0};
    filling filled = {0};
    mica_ranks_outcome out;
    mica_ranks_step_opts good = {.rows = BATCH, .fill = fill, .user = &filled, .lr = 0.01f}, bad = good;
    open_net(&s, f->text, f->spread ? RANKS : 0);
    CHECK_OK(s.ctx,
             mica_ranks_create(s.ctx, &s.ranks, s.net,
                               &(mica_ranks_opts){.transport = wire, .batch = BATCH, .shares = f->shares}));
    CHECK_OK(s.ctx, mica_ranks_step(s.ranks, &out, &good));
    uint64_t before = hash_of(&s);
    filled.calls = 0;
    if (wire->rank == f->rank && f->spoil != NULL)
        f->spoil(&bad, &filled);
    mica_status status = mica_ranks_step(s.ranks, wire->rank == f->rank && f->no_out ? NULL : &out, &bad);
    CHECK_MSG(status == f->want && strstr(mica_error(s.ctx), f->says) != NULL, "rank %d: %s", wire->rank,
              mica_error(s.ctx));
    CHECK_MSG(hash_of(&s) == before, "rank %d: %s, but the net has changed", wire->rank, f->says);
    filled = (filling){0};
    CHECK_OK(s.ctx, mica_ranks_step(s.ranks, &out, &good)); /* and on they go */
    f->hash[wire->rank] = hash_of(&s);
    close_net(&s);
}

static void fail_first(mica_ranks_step_opts *o, filling *f) { (void)o, f->fails = 1; }
static void fail_second(mica_ranks_step_opts *o, filling *f) { (void)o, f->fails = 2; }
static void resize(mica_ranks_step_opts *o, filling *f) { (void)o, f->resizes = 1; }
static void too_many_rows(mica_ranks_step_opts *o, filling *f) { (void)f, o->rows = BATCH + 1; }
static void fewer_rows(mica_ranks_step_opts *o, filling *f) { (void)f, o->rows = BATCH - 1; }
static void no_rows(mica_ranks_step_opts *o, filling *f) { (void)f, o->rows = 0; }
static void no_fill(mica_ranks_step_opts *o, filling *f) { (void)f, o->fill = NULL; }
static void other_lr(mica_ranks_step_opts *o, filling *f) { (void)f, o->lr = 0.5f; }
static void bad_lr(mica_ranks_step_opts *o, filling *f) { (void)f, o->lr = NAN; }
static void parts(mica_ranks_step_opts *o, filling *f) { (void)f, o->parts = 3; }

TEST(ranks_fault_in_a_step)
{
    static const fault faults[] = {
        {.spoil = fail_first, .want = MICA_ERR_IO, .says = "rank 1: no row 4"},
        {.spoil = fail_second, .want = MICA_ERR_IO, .says = "rank 1: no row 6"},
        {.spoil = resize, .want = MICA_ERR_STATE, .says = "rank 1: ranks_step: fill has changed the size"},
        {.spoil = too_many_rows, .want = MICA_ERR_SHAPE, .says = "rank 1: ranks_step: 13 rows of a batch"},
        {.spoil = fewer_rows,
         .want = MICA_ERR_SHAPE,
         .says = "rank 1 has a batch of 11 rows, rank 0 one of 12"},
        {.spoil = no_rows, .want = MICA_ERR_SHAPE, .says = "rank 1 has a batch of 0 rows"},
        {.spoil = no_fill, .want = MICA_ERR_ARGUMENT, .says = "rank 1: ranks_step: fill is NULL"},
        {.spoil = other_lr, .want = MICA_ERR_STATE, .says = "rank 1 has a learning rate of 0.5"},
        {.spoil = bad_lr,
         .want = MICA_ERR_ARGUMENT,
         .says = "rank 1: train_update: the learning rate is nan"},
        {.spoil = parts,
         .want = MICA_ERR_ARGUMENT,
         .says = "rank 1: ranks_step: the ranks were created without"},
        {.no_out = true, .want = MICA_ERR_ARGUMENT, .says = "rank 1: ranks_step: out is NULL"},
    };
    static const char *const nets[] = {normed, table};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        for (int kind = 0; kind < 8; kind++) {
            fault f = faults[i];
            f.text = nets[kind % 2];
            f.shares = kind / 2 % 2 == 0 ? 2 * RANKS : 0;
            f.spread = kind / 4 == 1;
            f.rank = 1;
            if (f.shares == 0 && f.spoil == fail_second)
                continue; /* there is no second share */
            run_thread_ranks(RANKS, run_fault, &f);
            CHECK_MSG(f.hash[0] == f.hash[1] && f.hash[0] == f.hash[2], "\"%s\": ranks differ afterwards",
                      f.says);
        }
}

/* Nothing to learn from: nothing is updated. */
static void run_empty(const mica_transport *wire, void *user)
{
    site s = {0};
    filling filled = {0};
    mica_ranks_outcome out;
    (void)user;
    open_net(&s, normed, 0);
    CHECK_OK(s.ctx,
             mica_ranks_create(s.ctx, &s.ranks, s.net,
                               &(mica_ranks_opts){.transport = wire, .batch = BATCH, .shares = RANKS}));
    uint64_t before = hash_of(&s);
    CHECK_OK(s.ctx, mica_ranks_step(s.ranks, &out, &(mica_ranks_step_opts){.fill = fill, .user = &filled}));
    CHECK(filled.calls == 0 && hash_of(&s) == before && s.net->steps_taken == 0);
    close_net(&s);
}

TEST(ranks_step_without_rows) { run_thread_ranks(RANKS, run_empty, NULL); }

/* ---- Making them ---- */

TEST(ranks_of_a_transport_without_members)
{
    site s = {0};
    open_net(&s, table, 0);
    mica_transport wire = {.ranks = 2};
    mica_ranks_opts opts = {.transport = &wire, .shares = 2, .batch = 4};
    CHECK_ERROR(s.ctx, mica_ranks_create(s.ctx, &s.ranks, s.net, &opts), MICA_ERR_ARGUMENT,
                "argument error: ranks: the transport has no \"gather\"");
    wire = (mica_transport){.rank = 2, .ranks = 2};
    CHECK_ERROR(s.ctx, mica_ranks_create(s.ctx, &s.ranks, s.net, &opts), MICA_ERR_ARGUMENT,
                "argument error: ranks: rank 2 of 2");
    wire = (mica_transport){0};
    CHECK_ERROR(s.ctx, mica_ranks_create(s.ctx, &s.ranks, s.net, &opts), MICA_ERR_ARGUMENT,
                "argument error: ranks: rank 0 of 0");
    CHECK(s.ranks == NULL);
    mica_ranks_plan plan;
    CHECK(mica_ranks_plan_of(&plan, s.net, 0, NULL) == MICA_ERR_ARGUMENT);
    CHECK(mica_ranks_plan_of(&plan, s.net, 1, &(mica_ranks_opts){.batch = PTRDIFF_MAX}) == MICA_ERR_SHAPE);
    CHECK(mica_ranks_plan_of(&plan, s.net, 2, &(mica_ranks_opts){.batch = PTRDIFF_MAX}) == MICA_ERR_SHAPE);
    close_net(&s);
}

enum unlikeness { UNBOUND, NO_NET, NO_OUT, ACCUMULATES, UNLIKENESSES };

static void run_unlike(const mica_transport *wire, void *user)
{
    enum unlikeness what = *(enum unlikeness *)user;
    static const struct {
        mica_status status;
        const char *text;
    } wanted[] = {{MICA_ERR_STATE, "rank 1: ranks_create: the net is not bound"},
                  {MICA_ERR_ARGUMENT, "net is NULL"},
                  {MICA_ERR_ARGUMENT, "out is NULL"},
                  {MICA_ERR_STATE, "rank 1 has other options than rank 0"}};
    site s = {0};
    bool odd = wire->rank == 1;
    build_net(&s, table, 0);
    if (!odd || what != UNBOUND)
        bind_net(&s);
    mica_status status = mica_ranks_create(
        s.ctx, odd && what == NO_OUT ? NULL : &s.ranks, odd && what == NO_NET ? NULL : s.net,
        &(mica_ranks_opts){
            .transport = wire, .batch = BATCH, .shares = RANKS, .accumulates = odd && what == ACCUMULATES});
    CHECK_MSG(status == wanted[what].status, "rank %d: %s", wire->rank, mica_error(s.ctx));
    bool blunt = !odd && (what == NO_NET || what == NO_OUT);
    CHECK_MSG(strstr(mica_error(s.ctx), blunt ? "rank 1 cannot begin" : wanted[what].text) != NULL,
              "rank %d: %s", wire->rank, mica_error(s.ctx));
    CHECK(s.ranks == NULL);
    close_net(&s);
}

TEST(ranks_of_which_one_is_called_wrongly)
{
    for (enum unlikeness what = UNBOUND; what < UNLIKENESSES; what++)
        run_thread_ranks(RANKS, run_unlike, &what);
}

/* ---- A net that is trained without its ranks ---- */

static void run_alone(const mica_transport *wire, void *user)
{
    site s = {0};
    filling filled = {0};
    mica_ranks_outcome out;
    mica_ranks_step_opts step = {.rows = BATCH, .fill = fill, .user = &filled, .lr = 0.01f};
    (void)user;
    open_net(&s, "input x [4]\ndense 5 name=logits\nloss cross_entropy\n", RANKS);
    CHECK_OK(s.ctx,
             mica_ranks_create(s.ctx, &s.ranks, s.net,
                               &(mica_ranks_opts){.transport = wire, .batch = BATCH, .shares = RANKS}));
    CHECK_OK(s.ctx, mica_ranks_step(s.ranks, &out, &step));
    /* So small that rank 0 has all of the state. */
    CHECK(s.net->state_count >= s.net->learned_count);
    CHECK_OK(s.ctx, mica_net_resize(s.net, BATCH));
    CHECK_OK(s.ctx, fill(s.net, 0, BATCH, &filled));
    CHECK(mica_train_step(s.net, 0.01f) == MICA_ERR_STATE);
    close_net(&s);
}

TEST(ranks_of_a_net_that_is_trained_alone) { run_thread_ranks(RANKS, run_alone, NULL); }

/* ---- Memory ---- */

typedef struct refusals {
    bool spread;
    int refuse; /* this call of rank 1, from ranks_create on */
    int rank;
    char path[PATH_BYTES];
    bool refused; /* it came to that */
} refusals;

static void run_refused(const mica_transport *wire, void *user)
{
    refusals *t = user;
    site s = {0};
    filling filled = {0};
    mica_ranks_outcome out;
    mica_training_state state = {.best_loss = 1.0};
    open_net(&s, table, t->spread ? RANKS : 0);
    bool odd = wire->rank == t->rank;
    if (odd)
        s.heap.refuse = s.heap.calls + t->refuse;
    mica_status status = mica_ranks_create(
        s.ctx, &s.ranks, s.net, &(mica_ranks_opts){.transport = wire, .batch = BATCH, .shares = RANKS});
    if (status == MICA_OK)
        status = mica_ranks_step(s.ranks, &out,
                                 &(mica_ranks_step_opts){.rows = BATCH, .fill = fill, .user = &filled});
    if (status == MICA_OK)
        status = mica_ranks_save(s.ranks, t->path, &state);
    if (status == MICA_OK)
        status = mica_ranks_load(s.ranks, &state, t->path);
    bool refused = odd && s.heap.calls >= s.heap.refuse;
    if (odd)
        t->refused = refused;
    CHECK_MSG(status == MICA_OK || status == MICA_ERR_MEMORY, "rank %d: %s", wire->rank, mica_error(s.ctx));
    CHECK_MSG(!refused || status == MICA_ERR_MEMORY, "refusal %d is not an error", t->refuse);
    close_net(&s);
}

TEST(ranks_out_of_memory_on_one)
{
    for (int kind = 0; kind < 4; kind++) {
        refusals t = {
            .spread = kind % 2 == 1, .rank = kind / 2, .path = "/tmp/mica-refused-XXXXXX", .refused = true};
        int file = mkstemp(t.path);
        REQUIRE(file >= 0);
        for (t.refuse = 1; t.refused; t.refuse++)
            run_thread_ranks(RANKS, run_refused, &t);
        CHECK_MSG(t.refuse > 8, "%d calls", t.refuse);
        (void)remove(t.path);
    }
}

/* ---- Data that end earlier on one rank ---- */

static void run_shorter(const mica_transport *wire, void *user)
{
    site s = {0};
    static int32_t x[RANKS][48 * 8], y[RANKS][48];
    mica_dataset set;
    mica_batches *batches = NULL;
    mica_fit_result result;
    mica_tensor inputs, targets;
    (void)user;
    mica_index count = wire->rank == 1 ? 24 : 36, dims[] = {count, 8};
    open_net(&s, table, 0);
    CHECK_OK(s.ctx, mica_tensor_init(s.ctx, &inputs, x[wire->rank], MICA_I32, 2, dims));
    CHECK_OK(s.ctx, mica_tensor_init(s.ctx, &targets, y[wire->rank], MICA_I32, 1, dims));
    CHECK_OK(s.ctx, mica_dataset_over(s.ctx, &set, &inputs, &targets));
    CHECK_OK(s.ctx,
             mica_batches_create(s.ctx, &batches, &set, &(mica_batches_opts){.batch = BATCH, .seed = 4}));
    CHECK_OK(s.ctx,
             mica_ranks_create(s.ctx, &s.ranks, s.net,
                               &(mica_ranks_opts){.transport = wire, .batch = BATCH, .shares = RANKS}));
    mica_status status = mica_fit(
        s.net, &result,
        &(mica_fit_opts){.train = mica_source_of_batches(batches), .epochs = 2, .ranks = s.ranks});
    CHECK_MSG(status == MICA_ERR_SHAPE && strstr(mica_error(s.ctx), "rank 1 has a batch of 0 rows") != NULL,
              "%s", mica_error(s.ctx));
    mica_batches_destroy(s.ctx, batches);
    close_net(&s);
}

TEST(ranks_with_data_that_end_earlier_on_one) { run_thread_ranks(RANKS, run_shorter, NULL); }

/* ---- A wire that fails ---- */

/* Rank 1 of 2, where the other one does and says the same: what it sends comes from nowhere. */
typedef struct mirror {
    int calls, fails; /* at this call; 0: never */
    int made;
} mirror;

static mica_status mirror_call(mirror *m) { return ++m->calls == m->fails ? MICA_ERR_IO : MICA_OK; }
static mica_status mirror_gather(void *user, void *all, const void *own, size_t bytes)
{
    for (size_t rank = 0; rank < 2; rank++)
        memcpy((char *)all + rank * bytes, own, bytes);
    return mirror_call(user);
}
static mica_status mirror_send(void *user, const float *data, size_t count, int to, int tag)
{
    (void)data, (void)count, (void)to, (void)tag;
    ((mirror *)user)->made++;
    return mirror_call(user);
}
static mica_status mirror_receive(void *user, float *data, size_t count, int from, int tag)
{
    return mirror_send(user, data, count, from, tag);
}
static mica_status mirror_sum(void *user, float *data, size_t count, int to)
{
    return mirror_send(user, data, count, to, 0);
}
static mica_status mirror_start(void *user, int first, int count)
{
    const mirror *m = user;
    CHECK(first >= 0 && count > 0 && first + count <= m->made);
    return mirror_call(user);
}
static mica_status mirror_test(void *user, int first, int count, bool *done)
{
    *done = ((mirror *)user)->calls % 2 == 0;
    return mirror_start(user, first, count);
}
static void mirror_forget(void *user) { ((mirror *)user)->made = 0; }

/* Returns the first failure. */
static mica_status run_mirror(mirror *m, int shares, bool spread, const char *path)
{
    site s = {0};
    filling filled = {0};
    mica_ranks_outcome out;
    mica_training_state state = {.best_loss = 1.0};
    mica_transport wire = {1,
                           2,
                           m,
                           mirror_gather,
                           mirror_send,
                           mirror_receive,
                           mirror_sum,
                           mirror_start,
                           mirror_test,
                           mirror_start,
                           mirror_forget,
                           NULL};
    open_net(&s, normed, spread ? 2 : 0);
    mica_ranks_opts opts = {
        .transport = &wire, .batch = BATCH, .shares = shares, .accumulates = true, .bucket = 256};
    mica_status status = mica_ranks_create(s.ctx, &s.ranks, s.net, &opts);
    for (int part = 0; part < 4 && status == MICA_OK; part++)
        status = mica_ranks_step(
            s.ranks, &out,
            &(mica_ranks_step_opts){
                .rows = BATCH, .fill = fill, .user = &filled, .part = part % 2, .parts = 2});
    if (status == MICA_OK)
        status = mica_ranks_save(s.ranks, path, &state); /* rank 0 would write it */
    if (status != MICA_OK)
        CHECK_MSG(strstr(mica_error(s.ctx), "rank 1 of 2: the transport failed") != NULL, "%s",
                  mica_error(s.ctx));
    close_net(&s);
    CHECK(m->made == 0);
    return status;
}

TEST(ranks_whose_wire_fails_at_any_call)
{
    for (int kind = 0; kind < 4; kind++) {
        int shares = kind % 2 == 0 ? 6 : 0;
        mirror all = {0};
        CHECK(run_mirror(&all, shares, kind / 2 == 1, "unused") == MICA_OK);
        CHECK(all.calls > 10);
        for (int fails = 1; fails <= all.calls; fails++) {
            mirror m = {.fails = fails};
            CHECK_MSG(run_mirror(&m, shares, kind / 2 == 1, "unused") == MICA_ERR_IO, "call %d", fails);
        }
    }
}

/* ---- Nets with little to learn ---- */

static void run_frozen(const mica_transport *wire, void *user)
{
    const char *prefix = user;
    site s = {.allocator = {0}};
    filling filled = {0};
    mica_ranks_outcome out = {0};
    mica_compile_opts compile = {.train = true, .optimizer = &adam, .debug = true};
    s.allocator = oom_allocator(&s.heap);
    (void)mica_context_create(&s.ctx, &(mica_context_opts){.threads = 1, .allocator = &s.allocator});
    CHECK_OK(s.ctx, mica_net_create(s.ctx, &s.net));
    CHECK_OK(s.ctx, mica_netfile_build(s.net, NULL, normed, &(mica_netfile_opts){.batch = BATCH}));
    CHECK_OK(s.ctx, mica_net_freeze(s.net, prefix, true));
    mica_status status = mica_net_compile(s.net, &compile);
    if (status == MICA_OK) {
        bind_net(&s);
        for (int shares = 0; shares <= 2 * RANKS; shares += RANKS) {
            CHECK_OK(s.ctx, mica_ranks_create(
                                s.ctx, &s.ranks, s.net,
                                &(mica_ranks_opts){.transport = wire, .batch = BATCH, .shares = shares}));
            for (int i = 0; i < 3; i++)
                CHECK_OK(s.ctx, mica_ranks_step(
                                    s.ranks, &out,
                                    &(mica_ranks_step_opts){
                                        .rows = BATCH - 5 * i, .fill = fill, .user = &filled, .lr = 0.01f}));
            CHECK(isfinite(out.loss) && out.loss > 0.0);
            mica_ranks_destroy(s.ranks);
            s.ranks = NULL;
        }
    }
    close_net(&s);
}

TEST(ranks_of_a_net_with_frozen_parameters)
{
    static char some[] = "conv", all[] = "";
    run_thread_ranks(RANKS, run_frozen, some);
    run_thread_ranks(RANKS, run_frozen, all);
}

#endif
