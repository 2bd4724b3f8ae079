/* Ranks: creation, comparison, checkpoints. */
#include <string.h>

#include "base/format.h"
#include "base/size.h"
#include "io/quote.h"
#include "train/loop.h"
#include "train/ranks.h"

/* ---- Memory ---- */

/* Lists the running statistics of the net, which are averaged over shares. */
static mica_status list_statistics(mica_ranks *r)
{
    mica_net *net = r->net;
    r->statistics_bytes = (size_t)net->built_values * sizeof *r->statistics + 1;
    r->statistics = mica_allocate(r->ctx, r->statistics_bytes);
    if (r->statistics == NULL)
        return r->ctx->status;
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *v = &net->values[i];
        if (v->home != MICA_HOME_KEPT || v->kept == MICA_KEPT_PRIVATE)
            continue;
        if (v->kept == MICA_KEPT_STATE || v->tensor.dtype != MICA_F32)
            return mica_fail(
                r->ctx, MICA_ERR_ARGUMENT,
                "ranks: \"%s\" is kept from step to step, but the rows it belongs to go from rank to rank",
                v->name);
        r->statistics[r->statistic_values++] = i;
        r->statistic_count += v->built_bytes / sizeof(float);
    }
    return MICA_OK;
}

/* Lays out the one allocation and counts its bytes; once there is memory, sets the pointers. */
static void lay_out(mica_ranks *r)
{
    const mica_net *net = r->net;
    size_t at = 0, ranks = (size_t)r->wire.ranks;
    size_t own_squares = mica_div_up(r->spread ? net->state_count : net->learned_count, MICA_RANK_BLOCK);
    r->told_bytes = mica_round_up(sizeof(mica_report) +
                                      (size_t)r->own * (sizeof(double) + r->statistic_count * sizeof(float)),
                                  sizeof(double));
    const struct {
        void *to;
        size_t bytes;
    } parts[] = {{&r->partial, (size_t)r->most_depth * net->learned_count * sizeof(float)},
                 {&r->received, r->received_count * sizeof(float)},
                 {&r->gathered, r->accumulates && r->fixed ? r->gathered_count * sizeof(float) : 0},
                 {&r->squares, own_squares * (r->spread ? ranks + 1 : 1) * sizeof(double)},
                 {&r->told, r->told_bytes},
                 {&r->all, r->told_bytes * ranks},
                 {&r->terms, r->term_count * sizeof(mica_term)},
                 {&r->start, r->statistic_count * sizeof(float)},
                 {&r->means, r->statistic_count * sizeof(double)}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        void *place = r->memory != NULL && parts[i].bytes > 0 ? r->memory + at : NULL;
        memcpy(parts[i].to, &place, sizeof place);
        at += mica_align_up(parts[i].bytes);
    }
    r->bytes = at;
}

/* ---- What must be the same on all ranks ---- */

typedef struct likeness {
    char version[24], isa[16];
    uint64_t net, weights, optimizer, seed, steps, buckets;
    int64_t batch, shares, spread, accumulates, part_rows;
} likeness;

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    for (; bytes > 0; bytes--)
        hash = (hash ^ *at++) * 0x100000001b3u;
    return hash;
}

/* Names, shapes and operations. Not their options, such as a rate of dropout: ranks may differ in these unnoticed. */
static uint64_t hash_net(const mica_net *net)
{
    uint64_t hash = 1;
    for (int i = 0; i < net->built_values; i++) {
        const mica_value_info *v = &net->values[i];
        if (v->name != NULL)
            hash = mix(hash, v->name, strlen(v->name));
        hash = mix(hash, v->built, (size_t)v->tensor.rank * sizeof v->built[0]);
        hash = mix(hash, &v->tensor.dtype, sizeof v->tensor.dtype);
    }
    for (int n = 0; n < net->node_count; n++)
        hash = mix(hash, net->nodes[n].op->name, strlen(net->nodes[n].op->name));
    return mix(hash, &net->learned_count, sizeof net->learned_count);
}

/* Field by field: a struct may have padding. */
static uint64_t hash_optimizer(const mica_optimizer *o)
{
    const double numbers[] = {(double)o->kind,      (double)o->lr,        (double)o->momentum,
                              (double)o->nesterov,  (double)o->beta1,     (double)o->weight_decay,
                              (double)o->beta2,     (double)o->alpha,     (double)o->eps,
                              (double)o->decay_all, (double)o->clip_norm, (double)o->clip_value};
    return mix(2, numbers, sizeof numbers);
}

static uint64_t hash_buckets(const mica_ranks *r)
{
    uint64_t hash = 4;
    for (int i = 0; i < r->bucket_count; i++)
        hash = mix(hash, &r->buckets[i].all, sizeof r->buckets[i].all);
    return hash;
}

static likeness likeness_of(const mica_ranks *r)
{
    const mica_net *net = r->net;
    likeness l = {.net = hash_net(net),
                  .weights = mix(3, net->flat_parameters, net->flat_count * sizeof(float)),
                  .optimizer = hash_optimizer(&net->optimizer),
                  .seed = net->seed,
                  .steps = net->steps_taken,
                  .batch = r->batch,
                  .shares = r->fixed ? r->shares : 0,
                  .spread = r->spread,
                  .accumulates = r->accumulates,
                  .part_rows = r->fixed ? net->part_rows : 0,
                  .buckets = hash_buckets(r)};
    (void)mica_format(l.version, sizeof l.version, "%s", mica_version());
    (void)mica_format(l.isa, sizeof l.isa, "%s", mica_context_isa(r->ctx));
    return l;
}

/* Causes before their effects: another net has other parameters, too. */
static mica_status compare(mica_ranks *r, const likeness *first, const likeness *other, int rank)
{
#define DIFFERS(field) (memcmp(&first->field, &other->field, sizeof first->field) != 0)
    const char *what = DIFFERS(net)         ? "another net"
                       : DIFFERS(optimizer) ? "another optimizer"
                       : DIFFERS(batch)     ? "another batch size"
                       : DIFFERS(shares) || DIFFERS(spread) || DIFFERS(accumulates) || DIFFERS(buckets)
                           ? "other options"
                       : DIFFERS(part_rows) ? "other parts of a share, to keep to its budget,"
                       : DIFFERS(seed)      ? "another seed"
                       : DIFFERS(steps)     ? "taken another number of steps"
                       : DIFFERS(weights)   ? "other parameters"
                                            : NULL;
    if (DIFFERS(version))
        return mica_fail(r->ctx, MICA_ERR_STATE, "rank %d runs Mica %.*s, rank 0 Mica %.*s", rank,
                         (int)sizeof other->version - 1, other->version, (int)sizeof first->version - 1,
                         first->version);
    if (r->fixed && DIFFERS(isa))
        return mica_fail(
            r->ctx, MICA_ERR_STATE,
            "rank %d uses %.*s kernels, rank 0 %.*s: for the same bits set MICA_ISA to what all have", rank,
            (int)sizeof other->isa - 1, other->isa, (int)sizeof first->isa - 1, first->isa);
#undef DIFFERS
    return what == NULL ? MICA_OK
                        : mica_fail(r->ctx, MICA_ERR_STATE, "rank %d has %s than rank 0", rank, what);
}

/* In the place of reports, which are larger: what takes memory may fail on one rank alone, for which all would wait. */
static mica_status compare_all(mica_ranks *r)
{
    _Static_assert(sizeof(likeness) <= sizeof(mica_report), "a report has room for it");
    if (r->wire.ranks == 1)
        return MICA_OK;
    likeness own = likeness_of(r), *all = (likeness *)(void *)r->all;
    MICA_TRY(mica_ranks_wire(r, r->wire.gather(r->wire.user, all, &own, sizeof own)));
    for (int rank = 1; rank < r->wire.ranks; rank++)
        MICA_TRY(compare(r, &all[0], &all[rank], rank));
    return MICA_OK;
}

/* ---- Creation ---- */

static mica_status set_up(mica_ranks *r, const mica_ranks_opts *o)
{
    mica_context *ctx = r->ctx;
    mica_net *net = r->net;
    int ranks = r->wire.ranks;
    if (!net->compiled || !net->train || !net->has_optimizer || net->weights != NULL)
        return mica_fail(ctx, MICA_ERR_STATE, "ranks: the net is not compiled with .train and an optimizer");
    if (o->shares < 0 || o->shares > MICA_MOST_SHARES || o->shares % ranks != 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "ranks: %d shares: expected a multiple of the %d ranks",
                         o->shares, ranks);
    if (net->ranks > 1 && net->ranks != ranks)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "ranks: the net was compiled for %d ranks, but there are %d",
                         net->ranks, ranks);
    r->fixed = o->shares > 0;
    r->shares = r->fixed ? o->shares : ranks;
    r->own = r->shares / ranks;
    r->first = r->wire.rank * r->own;
    r->spread = net->ranks > 1;
    r->no_overlap = o->no_overlap;
    r->accumulates = o->accumulates;
    r->batch = o->batch > 0 ? o->batch : net->size[0].most * (mica_index)r->shares;
    r->rows = r->batch / r->shares + (r->batch % r->shares != 0);
    if (o->batch < 0 || r->rows > net->size[0].most)
        return mica_fail(
            ctx, MICA_ERR_SHAPE,
            "ranks: a batch of %td in %d shares has %td rows in each, but the net has room for %td", o->batch,
            r->shares, r->rows, net->size[0].most);
    if (!r->fixed && r->wire.sum == NULL && r->wire.gather != NULL) /* more than a plan */
        return mica_fail(ctx, MICA_ERR_ARGUMENT,
                         "ranks: this transport has no sums: give a number of shares");
    MICA_TRY(list_statistics(r));
    MICA_TRY(mica_exchange_plan(r, o->bucket));
    lay_out(r);
    return MICA_OK;
}

/* The net may be gone by now. */
static void release(mica_ranks *r)
{
    mica_context *ctx = r->ctx;
    if (r->memory != NULL)
        mica_release(ctx, r->memory, r->bytes);
    if (r->buckets != NULL)
        mica_release(ctx, r->buckets, r->buckets_bytes);
    if (r->statistics != NULL)
        mica_release(ctx, r->statistics, r->statistics_bytes);
}

static mica_status take_memory(mica_ranks *r)
{
    mica_net *net = r->net;
    if (!r->fixed && r->wire.ranks > 1 && r->wire.sum == NULL)
        return mica_fail(r->ctx, MICA_ERR_ARGUMENT,
                         "ranks: this transport has no sums: give a number of shares");
    if (net->block == NULL)
        return mica_fail(r->ctx, MICA_ERR_STATE, "ranks_create: the net is not bound");
    r->memory = mica_allocate(r->ctx, r->bytes);
    if (r->memory == NULL)
        return r->ctx->status;
    memset(r->memory, 0, r->bytes);
    lay_out(r);
    net->gradients_lent = true;
    net->state_first = r->spread ? (size_t)r->wire.rank * net->state_count : 0;
    return MICA_OK;
}

/* If one rank cannot be created, none is: the others would wait for it. */
static mica_status agree_on_opening(mica_ranks *r, mica_status status)
{
    mica_report own = {.status = (int32_t)status}, *all = r->opening;
    if (r->wire.ranks == 1)
        return status;
    if (status != MICA_OK)
        (void)mica_format(own.text, sizeof own.text, "%s", mica_ranks_reason(r));
    MICA_TRY(mica_ranks_wire(r, r->wire.gather(r->wire.user, all, &own, sizeof own)));
    for (int rank = 0; rank < r->wire.ranks; rank++)
        if (all[rank].status != MICA_OK)
            return mica_fail(r->ctx, (mica_status)all[rank].status, "rank %d: %.*s", rank,
                             (int)sizeof own.text - 1, all[rank].text);
    return MICA_OK;
}

/* Ranks whose first word fits on the stack. */
enum { MOST_ON_STACK = 4096 };

/* The same before there is any memory. */
static mica_status agree_on_beginning(mica_context *ctx, const mica_transport *wire, mica_status status)
{
    signed char own = (signed char)status, all[MOST_ON_STACK];
    if (wire->ranks == 1 || wire->ranks > MOST_ON_STACK)
        return status;
    if (wire->gather(wire->user, all, &own, sizeof own) != MICA_OK)
        return mica_fail(ctx, MICA_ERR_IO, "rank %d of %d: %s", wire->rank, wire->ranks,
                         wire->error != NULL ? wire->error(wire->user) : "the transport failed");
    for (int rank = 0; rank < wire->ranks && status == MICA_OK; rank++)
        if (all[rank] != MICA_OK)
            status = mica_fail(ctx, (mica_status)all[rank], "ranks_create: rank %d cannot begin", rank);
    return status;
}

/* Without these nothing can be agreed on. */
static mica_status check_wire(mica_context *ctx, const mica_transport *w)
{
    if (w->ranks < 1 || w->rank < 0 || w->rank >= w->ranks || w->ranks > MICA_MOST_SHARES)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "ranks: rank %d of %d", w->rank, w->ranks);
    const char *missing = w->gather == NULL    ? "gather"
                          : w->send == NULL    ? "send"
                          : w->receive == NULL ? "receive"
                          : w->start == NULL   ? "start"
                          : w->test == NULL    ? "test"
                          : w->wait == NULL    ? "wait"
                                               : NULL;
    if (w->ranks > 1 && missing != NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "ranks: the transport has no \"%s\"", missing);
    return MICA_OK;
}

static const mica_ranks_opts defaults;
static const mica_transport alone = {.ranks = 1};

static size_t ranks_bytes(int ranks) { return sizeof(mica_ranks) + (size_t)ranks * sizeof(mica_report); }

mica_status mica_ranks_create(mica_context *ctx, mica_ranks **out, mica_net *net, const mica_ranks_opts *opts)
{
    opts = opts != NULL ? opts : &defaults;
    const mica_transport *wire = opts->transport != NULL ? opts->transport : &alone;
    mica_ranks *r = NULL;
    mica_status status = MICA_OK;
    if (out != NULL)
        *out = NULL;
    MICA_TRY(check_wire(ctx, wire));
    if (out == NULL || net == NULL)
        status = mica_fail(ctx, MICA_ERR_ARGUMENT, "ranks_create: %s is NULL", out == NULL ? "out" : "net");
    else if ((r = mica_allocate(ctx, ranks_bytes(wire->ranks))) == NULL)
        status = ctx->status;
    status = agree_on_beginning(ctx, wire, status);
    if (status != MICA_OK) {
        mica_release(ctx, r, ranks_bytes(wire->ranks));
        return status;
    }
    *r = (mica_ranks){.ctx = ctx, .net = net, .wire = *wire};
    status = set_up(r, opts);
    if (status == MICA_OK)
        status = take_memory(r);
    status = agree_on_opening(r, status);
    if (status == MICA_OK)
        status = compare_all(r);
    if (status == MICA_OK)
        status = mica_ranks_agree(r, mica_exchange_open(r));
    if (status == MICA_OK)
        *out = r;
    else
        mica_ranks_destroy(r);
    return status;
}

void mica_ranks_destroy(mica_ranks *r)
{
    if (r == NULL)
        return;
    if (r->messages > 0 && r->wire.forget != NULL)
        r->wire.forget(r->wire.user);
    release(r);
    mica_release(r->ctx, r, ranks_bytes(r->wire.ranks));
}

int mica_ranks_rank(const mica_ranks *r) { return r->wire.rank; }
int mica_ranks_count(const mica_ranks *r) { return r->wire.ranks; }
size_t mica_ranks_bytes(const mica_ranks *r) { return r->bytes; }

mica_status mica_ranks_plan_of(mica_ranks_plan *out, mica_net *net, int ranks, const mica_ranks_opts *opts)
{
    if (out == NULL || net == NULL)
        return MICA_ERR_ARGUMENT;
    *out = (mica_ranks_plan){0};
    mica_ranks_opts o = opts != NULL ? *opts : defaults;
    if (ranks < 1 || ranks > MICA_MOST_SHARES)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "ranks_plan_of: %d ranks", ranks);
    for (int rank = 0; rank < ranks; rank++) {
        mica_ranks r = {.ctx = net->ctx, .net = net, .wire = {.rank = rank, .ranks = ranks}};
        mica_status status = set_up(&r, &o);
        release(&r);
        MICA_TRY(status);
        out->rows = r.rows;
        out->buffers = mica_most(out->buffers, r.bytes);
        out->sent = r.sent > out->sent ? r.sent : out->sent;
        out->messages = r.sends > out->messages ? r.sends : out->messages;
    }
    return MICA_OK;
}

mica_status mica_ranks_gather(mica_ranks *r, double *all, const double *own, int count)
{
    if (r->wire.ranks > 1)
        return mica_ranks_wire(r, r->wire.gather(r->wire.user, all, own, (size_t)count * sizeof *own));
    memcpy(all, own, (size_t)count * sizeof *own);
    return MICA_OK;
}

/* ---- Checkpoints ---- */

/* Allocates room for the optimizer's state of all ranks. */
static mica_status take_whole(mica_ranks *r)
{
    size_t bytes = r->net->state_count * (size_t)r->wire.ranks * sizeof(float);
    for (int i = 0; i < 2; i++) {
        if (r->net->flat_optimizer[i] == NULL)
            continue;
        r->net->whole_state[i] = mica_allocate(r->ctx, bytes);
        if (r->net->whole_state[i] == NULL)
            return r->ctx->status;
        memset(r->net->whole_state[i], 0, bytes); /* including the padding between parameters */
    }
    return MICA_OK;
}

static void give_whole(mica_ranks *r)
{
    size_t bytes = r->net->state_count * (size_t)r->wire.ranks * sizeof(float);
    for (int i = 0; i < 2; i++) {
        if (r->net->whole_state[i] != NULL)
            mica_release(r->ctx, r->net->whole_state[i], bytes);
        r->net->whole_state[i] = NULL;
    }
}

mica_status mica_ranks_same(mica_ranks *r, bool there, const char *path)
{
    double own = there, *all = (double *)(void *)r->all; /* reports have room for it */
    MICA_TRY(mica_ranks_gather(r, all, &own, 1));
    for (int rank = 1; rank < r->wire.ranks; rank++)
        if (all[rank] != all[0])
            return mica_fail(r->ctx, MICA_ERR_IO, "rank %d does not see %s, but rank %d does",
                             all[0] > 0.0 ? rank : 0, MICA_QUOTE(path), all[0] > 0.0 ? 0 : rank);
    return MICA_OK;
}

mica_status mica_ranks_check(mica_ranks *r, const char *path, const mica_training_state *state)
{
    for (int i = 0; i < 2; i++)
        r->net->whole_state[i] = r->net->flat_optimizer[i]; /* only names and shapes are looked at */
    mica_status status = mica_checkpoint_check(r->net, path, state);
    r->net->whole_state[0] = r->net->whole_state[1] = NULL;
    return status;
}

/* Floats gathered from each rank at a time. */
#define SOME_STATE ((size_t)65536)

/* Gathers one of the optimizer's states on rank 0, in pieces, through a buffer. */
static mica_status gather_state(mica_ranks *r, float *whole, const float *own, float *buffer)
{
    size_t each = r->net->state_count;
    for (size_t at = 0, some; at < each; at += some) {
        some = mica_least(SOME_STATE, each - at);
        MICA_TRY(mica_ranks_wire(r, r->wire.gather(r->wire.user, buffer, own + at, some * sizeof *own)));
        for (size_t rank = 0; rank < (size_t)r->wire.ranks && r->wire.rank == 0; rank++)
            memcpy(whole + rank * each + at, buffer + rank * some, some * sizeof *whole);
    }
    return MICA_OK;
}

static mica_status gather_states(mica_ranks *r)
{
    size_t bytes = SOME_STATE * (size_t)r->wire.ranks * sizeof(float);
    float *buffer = mica_allocate(r->ctx, bytes);
    mica_status status = buffer == NULL ? r->ctx->status : r->wire.rank == 0 ? take_whole(r) : MICA_OK;
    status = mica_ranks_agree(r, status);
    for (int i = 0; i < 2 && status == MICA_OK; i++)
        if (r->net->flat_optimizer[i] != NULL)
            status = gather_state(r, r->net->whole_state[i], r->net->flat_optimizer[i], buffer);
    mica_release(r->ctx, buffer, bytes);
    return status;
}

mica_status mica_ranks_save(mica_ranks *r, const char *path, const mica_training_state *state)
{
    mica_status told = r->spread ? gather_states(r) : MICA_OK, status = told; /* of all ranks alike */
    if (status == MICA_OK && r->wire.rank == 0)
        status = mica_checkpoint_save(r->net, path, state);
    give_whole(r);
    return told != MICA_OK ? told : mica_ranks_agree(r, status);
}

mica_status mica_ranks_load(mica_ranks *r, mica_training_state *state, const char *path)
{
    mica_net *net = r->net;
    mica_status status = r->spread ? take_whole(r) : MICA_OK;
    if (status == MICA_OK)
        status = mica_checkpoint_load(net, state, path);
    for (int i = 0; i < 2 && r->spread && status == MICA_OK; i++)
        if (net->flat_optimizer[i] != NULL)
            memcpy(net->flat_optimizer[i], net->whole_state[i] + net->state_first,
                   net->state_count * sizeof(float));
    give_whole(r);
    MICA_TRY(mica_ranks_agree(r, status));
    return compare_all(r);
}
