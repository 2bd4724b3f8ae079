/* What is planned for ranks is what they take and send: counted on the wire, for all ways of cutting a batch. */
#include <string.h>

#include <mica/netfile.h>

#include "net/thread_ranks.h"
#include "test.h"

#if !defined(MICA_NO_THREADS)

enum { MOST_RANKS = 8, MOST_MESSAGES = 4096, BATCH = 12, STEPS = 2 };

static const char net_text[] =
    "input x [1, 6, 6]\nconv 4 3x3\nbatch_norm relu\nflatten\ndense 33 relu\ndense 5 name=logits\nloss cross_entropy\n";

/* A wire that counts what leaves over another. */
typedef struct counting {
    const mica_transport *wire;
    size_t bytes_of[MOST_MESSAGES]; /* by number; 0: they arrive */
    int made;
    double sent;
    int messages;
} counting;

typedef struct trial {
    int ranks, shares;
    bool spread;
    mica_status status[MOST_RANKS];
    size_t buffers[MOST_RANKS];
    counting count[MOST_RANKS];
} trial;

static mica_status count_gather(void *user, void *all, const void *own, size_t bytes)
{
    const mica_transport *w = ((counting *)user)->wire;
    return w->gather(w->user, all, own, bytes);
}
static mica_status count_send(void *user, const float *data, size_t count, int to, int tag)
{
    counting *c = user;
    c->bytes_of[c->made++] = count * sizeof *data;
    return c->wire->send(c->wire->user, data, count, to, tag);
}
static mica_status count_receive(void *user, float *data, size_t count, int from, int tag)
{
    counting *c = user;
    c->bytes_of[c->made++] = 0;
    return c->wire->receive(c->wire->user, data, count, from, tag);
}
static mica_status count_start(void *user, int first, int count)
{
    counting *c = user;
    for (int i = first; i < first + count; i++) {
        c->sent += (double)c->bytes_of[i];
        c->messages += c->bytes_of[i] > 0;
    }
    return c->wire->start(c->wire->user, first, count);
}
static mica_status count_test(void *user, int first, int count, bool *done)
{
    const mica_transport *w = ((counting *)user)->wire;
    return w->test(w->user, first, count, done);
}
static mica_status count_wait(void *user, int first, int count)
{
    const mica_transport *w = ((counting *)user)->wire;
    return w->wait(w->user, first, count);
}
static void count_forget(void *user)
{
    counting *c = user;
    c->made = 0;
    c->wire->forget(c->wire->user);
}

static mica_status fill(mica_net *net, mica_index first, mica_index count, void *user)
{
    (void)user;
    mica_tensor x, y;
    mica_status s = mica_net_input_tensor(net, NULL, &x, 0);
    s = s == MICA_OK ? mica_net_input_tensor(net, NULL, &y, 1) : s;
    for (size_t i = 0; s == MICA_OK && i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)(((size_t)first + i) % 7) - 3.0f;
    for (mica_index i = 0; s == MICA_OK && i < count; i++)
        ((int32_t *)y.data)[i] = (int32_t)((first + i) % 5);
    return s;
}

/* The net for one share. */
static mica_status make_net(mica_context *ctx, mica_net **net, const trial *t)
{
    mica_optimizer adam = {.kind = MICA_ADAMW};
    int shares = t->shares > 0 ? t->shares : t->ranks;
    mica_netfile_opts opts = {.batch = (BATCH + shares - 1) / shares};
    mica_status s = mica_net_create(ctx, net);
    s = s == MICA_OK ? mica_netfile_build(*net, NULL, net_text, &opts) : s;
    mica_compile_opts compile = {.train = true, .optimizer = &adam, .ranks = t->spread ? t->ranks : 0};
    return s == MICA_OK ? mica_net_compile(*net, &compile) : s;
}

static mica_status take_steps(mica_context *ctx, mica_net *net, trial *t, int rank,
                              const mica_transport *wire)
{
    mica_ranks *ranks;
    mica_ranks_outcome out;
    mica_ranks_opts opts = {.transport = wire, .batch = BATCH, .shares = t->shares, .bucket = 1000};
    mica_status s = mica_net_bind(net, NULL, 0);
    s = s == MICA_OK ? mica_net_initialize(net, 1) : s;
    s = s == MICA_OK ? mica_ranks_create(ctx, &ranks, net, &opts) : s;
    if (s != MICA_OK)
        return s;
    t->buffers[rank] = mica_ranks_bytes(ranks);
    for (int i = 0; i < STEPS && s == MICA_OK; i++)
        s = mica_ranks_step(ranks, &out, &(mica_ranks_step_opts){.rows = BATCH, .fill = fill, .lr = 0.01f});
    mica_ranks_destroy(ranks);
    return s;
}

static void be_rank(const mica_transport *wire, void *user)
{
    trial *t = user;
    counting *c = &t->count[wire->rank];
    mica_context *ctx;
    mica_net *net = NULL;
    mica_transport counted = *wire;
    c->wire = wire;
    counted.user = c;
    counted.gather = count_gather;
    counted.send = count_send;
    counted.receive = count_receive;
    counted.sum = NULL; /* only what is sent from rank to rank can be counted here */
    counted.start = count_start;
    counted.test = count_test;
    counted.wait = count_wait;
    counted.forget = count_forget;
    mica_status s = mica_context_create(&ctx, &(mica_context_opts){.threads = 1});
    s = s == MICA_OK ? make_net(ctx, &net, t) : s;
    t->status[wire->rank] = s == MICA_OK ? take_steps(ctx, net, t, wire->rank, &counted) : s;
    mica_net_destroy(net);
    mica_context_destroy(ctx);
}

TEST(ranks_take_and_send_what_is_planned)
{
    static const struct {
        int ranks, shares;
    } ways[] = {{1, 1}, {1, 6}, {2, 2}, {2, 6}, {3, 3}, {3, 12}, {4, 4}, {4, 12}, {5, 5}, {5, 15}, {7, 7}};
    static trial t;
    mica_context *ctx = test_context(1);
    for (size_t i = 0; i < 2 * sizeof ways / sizeof ways[0]; i++) {
        memset(&t, 0, sizeof t);
        t.ranks = ways[i / 2].ranks;
        t.shares = ways[i / 2].shares;
        t.spread = i % 2 == 1;
        run_thread_ranks(t.ranks, be_rank, &t);
        size_t buffers = 0;
        double sent = 0.0;
        int messages = 0;
        for (int rank = 0; rank < t.ranks; rank++) {
            CHECK(t.status[rank] == MICA_OK);
            buffers = t.buffers[rank] > buffers ? t.buffers[rank] : buffers;
            sent = t.count[rank].sent > sent ? t.count[rank].sent : sent;
            messages = t.count[rank].messages > messages ? t.count[rank].messages : messages;
        }
        mica_net *net = NULL;
        mica_ranks_plan plan;
        mica_ranks_opts opts = {.batch = BATCH, .shares = t.shares, .bucket = 1000};
        CHECK_OK(ctx, make_net(ctx, &net, &t));
        CHECK_OK(ctx, mica_ranks_plan_of(&plan, net, t.ranks, &opts));
        CHECK_MSG(plan.buffers == buffers, "%d ranks, %d shares: %zu bytes planned, %zu taken", t.ranks,
                  t.shares, plan.buffers, buffers);
        CHECK_MSG(STEPS * plan.sent == sent, "%d ranks, %d shares: %g bytes planned, %g sent", t.ranks,
                  t.shares, STEPS * plan.sent, sent);
        CHECK_MSG(STEPS * plan.messages == messages, "%d ranks, %d shares: %d messages planned, %d sent",
                  t.ranks, t.shares, STEPS * plan.messages, messages);
        mica_net_destroy(net);
    }
}

#endif
