/* A step of all ranks: shares, reports, the update. Nothing here allocates. */
#include <math.h>
#include <string.h>

#include "base/format.h"
#include "base/parallel.h"
#include "kernel/kernels.h"
#include "train/loop.h"
#include "train/ranks.h"

/* ---- Running statistics: each share starts from those before the step; afterwards, the net has their mean ---- */

typedef enum direction { OUT_OF_NET, INTO_NET } direction;

static void move_statistics(mica_ranks *r, float *at, direction way)
{
    for (int i = 0; i < r->statistic_values; i++) {
        mica_tensor t = mica_net_built_tensor(r->net, &r->net->values[r->statistics[i]]);
        size_t count = mica_tensor_count(&t);
        if (way == OUT_OF_NET)
            memcpy(at, t.data, count * sizeof *at);
        else
            memcpy(t.data, at, count * sizeof *at);
        at += count;
    }
}

/* ---- Reports ---- */

static mica_report *report_of(const mica_ranks *r, int rank)
{
    return (mica_report *)(void *)(r->all + (size_t)rank * r->told_bytes);
}
static double *losses_of(const mica_ranks *r, const mica_report *report)
{
    (void)r;
    return (double *)(void *)((char *)report + sizeof *report);
}
static float *statistics_of(const mica_ranks *r, const mica_report *report, int share)
{
    float *first = (float *)(void *)(losses_of(r, report) + r->own);
    return first + (size_t)share * r->statistic_count;
}

static mica_status exchange_reports(mica_ranks *r)
{
    if (r->wire.ranks == 1) {
        memcpy(r->all, r->told, r->told_bytes);
        return MICA_OK;
    }
    return mica_ranks_wire(r, r->wire.gather(r->wire.user, r->all, r->told, r->told_bytes));
}

static void tell(mica_ranks *r, mica_status status)
{
    mica_report *own = (mica_report *)(void *)r->told;
    own->status = (int32_t)status;
    own->text[0] = '\0';
    if (status != MICA_OK)
        (void)mica_format(own->text, sizeof own->text, "%s", mica_ranks_reason(r));
}

/* The failure of the lowest rank becomes that of all. */
static mica_status find_failure(mica_ranks *r)
{
    for (int rank = 0; rank < r->wire.ranks; rank++) {
        const mica_report *report = report_of(r, rank);
        if (report->status == MICA_OK)
            continue;
        if (rank == r->wire.rank && r->wire.ranks == 1)
            return (mica_status)report->status; /* the context's error is right as it is */
        return mica_fail(r->ctx, (mica_status)report->status, "rank %d: %.*s", rank,
                         (int)sizeof report->text - 1, report->text);
    }
    return MICA_OK;
}

mica_status mica_ranks_agree(mica_ranks *r, mica_status status)
{
    if (r->wire.ranks == 1)
        return status;
    tell(r, status);
    ((mica_report *)(void *)r->told)->stop = 0;
    MICA_TRY(exchange_reports(r));
    return find_failure(r);
}

/* ---- Shares ---- */

/* The rows of a share. Sizes differ by one at most. */
static mica_segment rows_of(const mica_ranks *r, mica_index rows, int share)
{
    size_t all = (size_t)rows, first = all * (size_t)share / (size_t)r->shares;
    return (mica_segment){first, all * ((size_t)share + 1) / (size_t)r->shares - first};
}

/* The gradients of one share, scaled to its part of the mean over the batch. */
static mica_status run_share(mica_ranks *r, const mica_ranks_step_opts *o, int share, double *loss)
{
    mica_net *net = r->net;
    mica_segment rows = rows_of(r, o->rows, share);
    int parts = o->parts > 1 ? o->parts : 1;
    bool adds = !r->fixed && o->part > 0;
    *loss = 0.0;
    if (rows.count == 0) {
        if (!adds)
            memset(net->flat_gradients, 0, net->learned_count * sizeof(float));
        return MICA_OK;
    }
    MICA_TRY(mica_net_resize(net, (mica_index)rows.count));
    MICA_TRY(o->fill(net, (mica_index)rows.first, (mica_index)rows.count, o->user));
    if (net->rows != (mica_index)rows.count)
        return mica_fail(r->ctx, MICA_ERR_STATE,
                         "ranks_step: fill has changed the size of the net from %zu to %td", rows.count,
                         net->rows);
    uint64_t step = net->steps_taken * (uint64_t)parts + (uint64_t)o->part;
    bool last = share + 1 == r->first + r->own;
    net->after = last && !r->no_overlap && (r->fixed || r->last_part) ? mica_exchange_after : NULL;
    net->after_user = r;
    mica_status status = mica_net_gradients(
        net, &(mica_backward_opts){.add = adds,
                                   .scale = (float)((double)rows.count / (double)o->rows / parts),
                                   .step = step * (uint64_t)r->shares + (uint64_t)share});
    net->after = NULL;
    *loss = (double)mica_net_loss(net);
    return status;
}

/* All shares of this rank. If one fails, the others learn of it from the report, and get zeros in place of the
 * gradients they are waiting for. */
static mica_status run_shares(mica_ranks *r, const mica_ranks_step_opts *o)
{
    mica_report *own = (mica_report *)(void *)r->told;
    mica_status status = o->status, wire = MICA_OK;
    bool exchanges = r->fixed || r->last_part;
    r->started = 0;
    tell(r, status);
    own->rows = o->rows;
    own->part = o->part;
    own->parts = o->parts;
    own->lr = (double)o->lr;
    move_statistics(r, r->start, OUT_OF_NET);
    if (exchanges)
        wire = mica_exchange_begin(r);
    for (int i = 0; i < r->own && wire == MICA_OK; i++) {
        if (status == MICA_OK) {
            if (i > 0)
                move_statistics(r, r->start, INTO_NET);
            status = run_share(r, o, r->first + i, &losses_of(r, own)[i]);
            tell(r, status);
            move_statistics(r, statistics_of(r, own, i), OUT_OF_NET);
        }
        if (status != MICA_OK)
            mica_exchange_clear(r);
        if (r->fixed)
            wire = mica_exchange_add(r, r->first + i);
    }
    if (exchanges && wire == MICA_OK)
        wire = mica_exchange_finish(r);
    return wire;
}

/* A step is the same for all ranks. */
static mica_status compare_steps(mica_ranks *r, const mica_report *first, const mica_report *other, int rank)
{
    if (other->rows != first->rows)
        return mica_fail(r->ctx, MICA_ERR_SHAPE, "rank %d has a batch of %lld rows, rank 0 one of %lld", rank,
                         (long long)other->rows, (long long)first->rows);
    if (other->part != first->part || other->parts != first->parts)
        return mica_fail(r->ctx, MICA_ERR_STATE,
                         "rank %d has part %d of %d of an update, rank 0 part %d of %d", rank,
                         (int)other->part, (int)other->parts, (int)first->part, (int)first->parts);
    if (other->lr != first->lr)
        return mica_fail(r->ctx, MICA_ERR_STATE, "rank %d has a learning rate of %g, rank 0 one of %g", rank,
                         other->lr, first->lr);
    return MICA_OK;
}

static double weight_of(const mica_ranks *r, mica_index rows, int share)
{
    return rows > 0 ? (double)rows_of(r, rows, share).count / (double)rows : 0.0;
}

/* The mean of what shares made of the statistics, weighed by rows. */
static void join_statistics(mica_ranks *r, const mica_ranks_step_opts *o)
{
    for (size_t i = 0; i < r->statistic_count; i++)
        r->means[i] = o->rows > 0 ? 0.0 : (double)r->start[i];
    for (int share = 0; share < r->shares; share++) {
        double weight = weight_of(r, o->rows, share);
        const float *its = statistics_of(r, report_of(r, share / r->own), share % r->own);
        for (size_t i = 0; i < r->statistic_count && weight > 0.0; i++)
            r->means[i] += weight * (double)its[i];
    }
    for (size_t i = 0; i < r->statistic_count; i++)
        r->start[i] = (float)r->means[i];
    move_statistics(r, r->start, INTO_NET);
}

/* The losses and statistics of all shares, in their order. */
static mica_status join_shares(mica_ranks *r, const mica_ranks_step_opts *o, mica_ranks_outcome *out)
{
    double loss = 0.0;
    MICA_TRY(find_failure(r));
    *out = (mica_ranks_outcome){0};
    for (int rank = 0; rank < r->wire.ranks; rank++)
        MICA_TRY(compare_steps(r, report_of(r, 0), report_of(r, rank), rank));
    for (int share = 0; share < r->shares; share++) {
        const mica_report *report = report_of(r, share / r->own);
        double weight = weight_of(r, o->rows, share);
        double its = losses_of(r, report)[share % r->own];
        out->stop = out->stop || report->stop != 0;
        if (weight > 0.0 && !isfinite(its))
            return mica_fail(r->ctx, MICA_ERR_DIVERGED,
                             r->shares > 1 ? "the loss of step %llu is %g on rank %d, share %d"
                                           : "the loss of step %llu is %g",
                             (unsigned long long)r->net->steps_taken + 1, its, share / r->own, share);
        loss += weight > 0.0 ? weight * its : 0.0;
    }
    join_statistics(r, o);
    out->loss = loss;
    return MICA_OK;
}

/* ---- The update ---- */

static void square_block(void *work, size_t block, int thread)
{
    (void)thread;
    mica_ranks *r = work;
    size_t first = r->square_first + block * MICA_RANK_BLOCK, all = r->net->learned_count;
    double *sum = &r->squares[block];
    *sum = 0.0;
    if (first < all)
        MICA_KERNEL(r->ctx->kernels, reduce, sum_squares)
            .row(sum, r->net->flat_gradients + first, mica_least(MICA_RANK_BLOCK, all - first), 0.0f);
}

/* The norm of all gradients, added in an order of blocks that does not depend on the ranks. */
static mica_status find_norm(mica_ranks *r)
{
    mica_net *net = r->net;
    if (net->optimizer.clip_norm == 0.0f)
        return MICA_OK;
    size_t own = mica_div_up(r->spread ? net->state_count : net->learned_count, MICA_RANK_BLOCK);
    r->square_first = r->spread ? net->state_first : 0;
    mica_parallel(r->ctx, own, square_block, r);
    const double *all = r->squares;
    size_t count = own;
    if (r->spread && r->wire.ranks > 1) {
        count = own * (size_t)r->wire.ranks;
        MICA_TRY(mica_ranks_wire(
            r, r->wire.gather(r->wire.user, r->squares + own, r->squares, own * sizeof *r->squares)));
        all = r->squares + own;
    }
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += all[i];
    net->gradient_norm = (float)sqrt(sum);
    return MICA_OK;
}

static mica_status update(mica_ranks *r, float lr)
{
    mica_net *net = r->net;
    MICA_TRY(find_norm(r));
    net->ready = false;
    if (!r->spread) {
        mica_train_update_part(net, lr, 0, net->learned_count);
        return MICA_OK;
    }
    size_t first = mica_least(net->state_first, net->learned_count);
    mica_train_update_part(net, lr, first, mica_least(net->state_count, net->learned_count - first));
    return mica_exchange_parameters(r);
}

/* ---- The step ---- */

static mica_status check_step(mica_ranks *r, const mica_ranks_outcome *out, const mica_ranks_step_opts *o)
{
    if (out == NULL || o == NULL || o->fill == NULL)
        return mica_fail(r->ctx, MICA_ERR_ARGUMENT, "ranks_step: %s is NULL",
                         out == NULL ? "out"
                         : o == NULL ? "opts"
                                     : "fill");
    if (o->rows < 0 || o->rows > r->batch)
        return mica_fail(r->ctx, MICA_ERR_SHAPE, "ranks_step: %td rows of a batch of at most %td", o->rows,
                         r->batch);
    int parts = o->parts > 1 ? o->parts : 1;
    if (o->part < 0 || o->part >= parts)
        return mica_fail(r->ctx, MICA_ERR_ARGUMENT, "ranks_step: part %d of %d", o->part, parts);
    if (parts > 1 && !r->accumulates)
        return mica_fail(r->ctx, MICA_ERR_ARGUMENT,
                         "ranks_step: the ranks were created without .accumulates: an update has one part");
    return mica_train_check_lr(r->net, o->lr);
}

mica_status mica_ranks_step(mica_ranks *r, mica_ranks_outcome *out, const mica_ranks_step_opts *opts)
{
    static const mica_ranks_step_opts nothing;
    mica_ranks_step_opts o = opts != NULL ? *opts : nothing;
    mica_status status = check_step(r, out, opts);
    if (status != MICA_OK) /* takes part nevertheless, as the others may be right */
        o.status = status;
    bool parted = o.parts > 1 && r->accumulates; /* otherwise there is no room for the sum of parts */
    r->last_part = !parted || o.part + 1 >= o.parts;
    r->adds = parted && o.part > 0;
    ((mica_report *)(void *)r->told)->stop = o.stop;
    mica_parallel_begin(r->ctx);
    status = run_shares(r, &o);
    if (status == MICA_OK)
        status = exchange_reports(r);
    if (status == MICA_OK)
        status = join_shares(r, &o, out);
    if (status != MICA_OK) /* not those that a share has left */
        move_statistics(r, r->start, INTO_NET);
    if (status == MICA_OK && r->last_part && o.rows > 0)
        status = update(r, o.lr);
    mica_parallel_end(r->ctx);
    return status;
}
