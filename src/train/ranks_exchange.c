/* The exchange of gradients between ranks; src/train/ranks.h explains it. */
#include <string.h>

#include <mica/ops/elementwise.h>

#include "base/size.h"
#include "train/ranks.h"

/* A bucket has an eighth of all gradients, within these limits, in bytes. Small ones start early, large ones have less
 * overhead. */
#define LEAST_BUCKET ((size_t)64 << 10)
#define MOST_BUCKET  ((size_t)8 << 20)
/* The tag of a bucket's results; those of blocks are lower. */
#define RESULT_TAG MICA_SHARE_NODES
#define TAGS       (MICA_SHARE_NODES + 1) /* of a bucket */

mica_status mica_ranks_wire(mica_ranks *r, mica_status status)
{
    if (status == MICA_OK)
        return MICA_OK;
    return mica_fail(r->ctx, status, "rank %d of %d: %s", r->wire.rank, r->wire.ranks,
                     r->wire.error != NULL ? r->wire.error(r->wire.user) : "the transport failed");
}

const char *mica_ranks_reason(const mica_ranks *r)
{
    const char *text = mica_error(r->ctx), *kind = mica_status_text(r->ctx->status);
    size_t length = strlen(kind);
    return strncmp(text, kind, length) == 0 && strncmp(text + length, ": ", 2) == 0 ? text + length + 2
                                                                                    : text;
}

/* ---- Shares of a rank ---- */

static mica_shares shares_of(const mica_ranks *r, int rank)
{
    return (mica_shares){rank * r->own, (rank + 1) * r->own};
}

/* How many blocks wait for their right operand at once, at most. */
static int deepest(const mica_ranks *r)
{
    mica_shares stack[MICA_SHARE_NODES];
    int depth = 0, most = 0;
    for (int i = r->first; i < r->first + r->own; i++) {
        mica_shares top = {i, i + 1};
        while (depth > 0 && mica_shares_join(r->shares, stack[depth - 1], top))
            top.first = stack[--depth].first;
        stack[depth++] = top;
        if (i + 1 < r->first + r->own && depth > most) /* the last one stays in the net's gradients */
            most = depth;
    }
    return most;
}

/* ---- Buckets ---- */

mica_segment mica_exchange_owned(const mica_ranks *r, const mica_bucket *b, int rank)
{
    size_t ranks = (size_t)r->wire.ranks, number = (size_t)rank, end = b->all.first + b->all.count;
    size_t each = mica_round_up(mica_div_up(b->all.count, ranks), MICA_ALIGN / sizeof(float));
    size_t from = b->all.first + each * number, to = from + each;
    if (r->spread) {
        from = mica_most(r->net->state_count * number, b->all.first);
        to = r->net->state_count * (number + 1);
    }
    to = mica_least(to, end);
    return (mica_segment){from, from < to ? to - from : 0};
}

/* When each value is final: after the last call that writes it. */
static void find_times(int *times, const mica_net *net)
{
    memset(times, 0, (size_t)net->value_count * sizeof *times);
    for (int e = 0; e < net->entry_count; e++)
        for (int k = 0; k < net->entries[e].node.outs; k++)
            if (net->entries[e].node.out[k] != NONE)
                times[net->entries[e].node.out[k]] = e;
}

/* From the last parameter to the first, roughly the order of the backward pass. A bucket never starts before the ones
 * ahead of it, so it is ready no earlier than they are. */
static mica_status cut_buckets(mica_ranks *r, size_t bytes)
{
    const mica_net *net = r->net;
    size_t elements = net->learned_count, end = elements;
    if (bytes == 0)
        bytes = mica_least(mica_most(elements * sizeof(float) / 8, LEAST_BUCKET), MOST_BUCKET);
    size_t room = (size_t)net->learned_values + 1;
    r->buckets_bytes = room * sizeof *r->buckets;
    r->buckets = mica_allocate(r->ctx, r->buckets_bytes);
    if (r->buckets == NULL)
        return r->ctx->status;
    memset(r->buckets, 0, r->buckets_bytes);
    int *times = mica_allocate(r->ctx, (size_t)net->value_count * sizeof *times + 1), time = 0;
    if (times == NULL)
        return r->ctx->status;
    find_times(times, net);
    for (int i = net->learned_values - 1; i >= 0; i--) {
        const mica_value_info *v = &net->values[net->learned[i]];
        time = times[v->gradient] > time ? times[v->gradient] : time;
        if ((end - v->flat) * sizeof(float) < bytes && i > 0)
            continue;
        r->buckets[r->bucket_count++] = (mica_bucket){.all = {v->flat, end - v->flat}, .ready = time};
        end = v->flat;
    }
    mica_release(r->ctx, times, (size_t)net->value_count * sizeof *times + 1);
    return MICA_OK;
}

static void count_sends(mica_ranks *r, size_t elements, int messages)
{
    r->sent += (double)elements * sizeof(float) * messages;
    r->sends += elements > 0 ? messages : 0;
}

/* Counts the memory a bucket takes, and what it sends. */
static void count_bucket(mica_ranks *r, mica_bucket *b)
{
    int me = r->wire.rank, ranks = r->wire.ranks;
    mica_shares blocks[MICA_SHARE_NODES];
    size_t owned = mica_exchange_owned(r, b, me).count;
    b->received = r->received_count;
    for (int rank = 0; rank < ranks; rank++) {
        if (rank == me)
            continue;
        r->received_count += owned * (size_t)mica_shares_cut(blocks, r->shares, shares_of(r, rank));
        count_sends(r, mica_exchange_owned(r, b, rank).count, r->block_count);
    }
    if (!r->spread)
        count_sends(r, owned, ranks - 1);
    b->gathered = r->gathered_count;
    r->gathered_count += owned;
}

mica_status mica_exchange_plan(mica_ranks *r, size_t bucket_bytes)
{
    r->block_count = mica_shares_cut(r->blocks, r->shares, shares_of(r, r->wire.rank));
    r->most_depth = r->fixed ? deepest(r) : 0;
    for (int rank = 0; rank < r->wire.ranks; rank++) {
        mica_shares blocks[MICA_SHARE_NODES];
        r->term_count += (size_t)mica_shares_cut(blocks, r->shares, shares_of(r, rank));
    }
    MICA_TRY(cut_buckets(r, bucket_bytes));
    for (int i = 0; i < r->bucket_count && r->fixed; i++)
        count_bucket(r, &r->buckets[i]);
    double all = (double)r->net->learned_count * sizeof(float), ranks = r->wire.ranks;
    if (!r->fixed) { /* what a ring sends, which is the least possible */
        r->sent = (r->spread ? 1 : 2) * all * (ranks - 1) / ranks;
        r->sends = (r->spread ? 1 : 2) * r->bucket_count * (r->wire.ranks - 1);
    }
    if (r->spread) { /* parameters, too; the last ranks may have few or none */
        mica_bucket whole = {.all = {0, r->net->learned_count}};
        count_sends(r, mica_exchange_owned(r, &whole, r->wire.rank).count, r->wire.ranks - 1);
    }
    return MICA_OK;
}

/* ---- Messages ---- */

static float *gradients(const mica_ranks *r) { return r->net->flat_gradients; }

/* Where a block of this rank is once all its shares are added: the last one in the net's own gradients. */
static float *block_data(const mica_ranks *r, int block)
{
    return block + 1 == r->block_count ? gradients(r) : r->partial + (size_t)block * r->net->learned_count;
}

static mica_status send_block(mica_ranks *r, const float *data, size_t count, int to, int tag)
{
    r->messages++;
    return mica_ranks_wire(r, r->wire.send(r->wire.user, data, count, to, tag));
}

static mica_status receive_block(mica_ranks *r, float *data, size_t count, int from, int tag)
{
    r->messages++;
    return mica_ranks_wire(r, r->wire.receive(r->wire.user, data, count, from, tag));
}

static mica_status open_sums(mica_ranks *r, mica_bucket *b)
{
    b->sends.first = r->messages;
    for (int rank = 0; rank < (r->spread ? r->wire.ranks : 1); rank++) {
        mica_segment s = r->spread ? mica_exchange_owned(r, b, rank) : b->all;
        if (s.count == 0)
            continue;
        r->messages++;
        MICA_TRY(mica_ranks_wire(
            r, r->wire.sum(r->wire.user, gradients(r) + s.first, s.count, r->spread ? rank : -1)));
    }
    b->sends.count = r->messages - b->sends.first;
    return MICA_OK;
}

static mica_status open_bucket(mica_ranks *r, mica_bucket *b, int number)
{
    int me = r->wire.rank, tag = number * TAGS;
    mica_segment own = mica_exchange_owned(r, b, me);
    mica_shares blocks[MICA_SHARE_NODES];
    float *to = r->received + b->received;
    b->receives.first = r->messages;
    for (int rank = 0; rank < r->wire.ranks && own.count > 0; rank++) {
        int count = rank != me ? mica_shares_cut(blocks, r->shares, shares_of(r, rank)) : 0;
        for (int k = 0; k < count; k++, to += own.count)
            MICA_TRY(receive_block(r, to, own.count, rank, tag + k));
    }
    b->receives.count = r->messages - b->receives.first;

    b->sends.first = r->messages;
    for (int i = 1; i < r->wire.ranks; i++) { /* the next rank first: not everyone to rank 0 at once */
        int rank = (me + i) % r->wire.ranks;
        mica_segment s = mica_exchange_owned(r, b, rank);
        for (int k = 0; k < r->block_count && s.count > 0; k++)
            MICA_TRY(send_block(r, block_data(r, k) + s.first, s.count, rank, tag + k));
    }
    b->sends.count = r->messages - b->sends.first;

    b->results.first = r->messages;
    for (int rank = 0; rank < r->wire.ranks && !r->spread; rank++) {
        mica_segment s = mica_exchange_owned(r, b, rank);
        if (rank != me && s.count > 0)
            MICA_TRY(receive_block(r, gradients(r) + s.first, s.count, rank, tag + RESULT_TAG));
        if (rank != me && own.count > 0)
            MICA_TRY(send_block(r, gradients(r) + own.first, own.count, rank, tag + RESULT_TAG));
    }
    b->results.count = r->messages - b->results.first;
    return MICA_OK;
}

/* Each rank's part of the parameters goes to all others. */
static mica_status open_parameters(mica_ranks *r)
{
    const mica_net *net = r->net;
    mica_bucket whole = {.all = {0, net->learned_count}};
    int me = r->wire.rank, tag = r->bucket_count * TAGS;
    mica_segment own = mica_exchange_owned(r, &whole, me);
    r->parameters.first = r->messages;
    for (int rank = 0; rank < r->wire.ranks; rank++) {
        mica_segment s = mica_exchange_owned(r, &whole, rank);
        if (rank != me && s.count > 0)
            MICA_TRY(receive_block(r, net->flat_parameters + s.first, s.count, rank, tag));
        if (rank != me && own.count > 0)
            MICA_TRY(send_block(r, net->flat_parameters + own.first, own.count, rank, tag));
    }
    r->parameters.count = r->messages - r->parameters.first;
    return MICA_OK;
}

mica_status mica_exchange_open(mica_ranks *r)
{
    if (r->wire.ranks == 1)
        return MICA_OK;
    for (int i = 0; i < r->bucket_count; i++)
        MICA_TRY(r->fixed ? open_bucket(r, &r->buckets[i], i) : open_sums(r, &r->buckets[i]));
    return r->spread ? open_parameters(r) : MICA_OK;
}

/* ---- Sums ---- */

/* to = a + b, where `to` may be one of them. */
static mica_status add_ranges(mica_ranks *r, float *to, float *a, float *b, size_t count)
{
    mica_index n = (mica_index)count;
    mica_tensor sum = mica_1d(to, n), left = mica_1d(a, n), right = mica_1d(b, n);
    return mica_add(r->ctx, &sum, &left, &right);
}

/* The sum of a node whose blocks are the terms from *next on: in `to`, or if that is NULL, in place of the first term.
 * A single term stays where it is. */
static mica_status sum_node(mica_ranks *r, int *next, mica_shares node, size_t count, float *to, float **out)
{
    const mica_term *t = &r->terms[*next];
    if (t->of.first == node.first && t->of.end == node.end) {
        *out = t->data;
        (*next)++;
        return MICA_OK;
    }
    int middle = mica_shares_middle(node);
    float *left, *right;
    MICA_TRY(sum_node(r, next, (mica_shares){node.first, middle}, count, NULL, &left));
    MICA_TRY(sum_node(r, next, (mica_shares){middle, node.end}, count, NULL, &right));
    *out = to != NULL ? to : left; /* all terms have been read, so `to` may overlap any of them */
    return add_ranges(r, *out, left, right, count);
}

/* Sums the segment that this rank owns over the blocks of all ranks, then adds earlier parts of the update. */
static mica_status sum_segment(mica_ranks *r, const mica_bucket *b)
{
    mica_segment own = mica_exchange_owned(r, b, r->wire.rank);
    if (own.count == 0)
        return MICA_OK;
    float *received = r->received + b->received, *before = r->gathered; /* NULL: updates have one part */
    before += before != NULL ? b->gathered : 0;
    float *sum, *to = r->last_part ? gradients(r) + own.first : before;
    int count = 0, next = 0;
    for (int rank = 0; rank < r->wire.ranks; rank++) {
        bool mine = rank == r->wire.rank;
        mica_shares blocks[MICA_SHARE_NODES];
        int its = mica_shares_cut(blocks, r->shares, shares_of(r, rank));
        for (int k = 0; k < its; k++) {
            r->terms[count++] = (mica_term){blocks[k], mine ? block_data(r, k) + own.first : received};
            received += mine ? 0 : own.count;
        }
    }
    bool keeps = r->adds && !r->last_part; /* `to` holds the earlier parts, which are added last */
    float *place = keeps ? NULL : to;
    MICA_TRY(sum_node(r, &next, (mica_shares){0, r->shares}, own.count, place, &sum));
    if (r->adds)
        return add_ranges(r, to, sum, before, own.count);
    if (sum != to)
        memcpy(to, sum, own.count * sizeof *to);
    return MICA_OK;
}

/* ---- Shares of this rank ---- */

/* Adds a segment of the share in the net's gradients to the blocks that wait for it. Each sum replaces its left
 * operand, except for the last share: its sums stay in the net's gradients, from where they are sent. */
static mica_status join(mica_ranks *r, mica_shares share, mica_segment s, bool last, int *depth)
{
    size_t all = r->net->learned_count;
    float *right = gradients(r) + s.first;
    *depth = r->depth;
    while (*depth > 0 && mica_shares_join(r->shares, r->stack[*depth - 1], share)) {
        float *left = r->partial + (size_t)-- * depth * all + s.first;
        float *sum = last ? right : left;
        MICA_TRY(add_ranges(r, sum, left, right, s.count));
        right = sum;
        share.first = r->stack[*depth].first;
    }
    float *place = r->partial + (size_t)*depth * all + s.first;
    if (!last && right != place && s.count > 0) /* of a frozen net there is nothing, at NULL */
        memcpy(place, right, s.count * sizeof *place);
    return MICA_OK;
}

/* ---- Buckets in flight ---- */

static mica_status start(mica_ranks *r, mica_messages m)
{
    return m.count > 0 ? mica_ranks_wire(r, r->wire.start(r->wire.user, m.first, m.count)) : MICA_OK;
}

static mica_status wait_for(mica_ranks *r, mica_messages m)
{
    return m.count > 0 ? mica_ranks_wire(r, r->wire.wait(r->wire.user, m.first, m.count)) : MICA_OK;
}

static mica_status test(mica_ranks *r, mica_messages m, bool *done)
{
    *done = true;
    return m.count > 0 ? mica_ranks_wire(r, r->wire.test(r->wire.user, m.first, m.count, done)) : MICA_OK;
}

/* Sends the next bucket, whose gradients are final. */
static mica_status start_bucket(mica_ranks *r)
{
    mica_bucket *b = &r->buckets[r->started];
    int last = r->first + r->own - 1, depth;
    if (r->fixed)
        MICA_TRY(join(r, (mica_shares){last, last + 1}, b->all, true, &depth));
    MICA_TRY(start(r, b->sends));
    b->state = MICA_BUCKET_SENT;
    r->started++;
    return MICA_OK;
}

/* Adds up what all ranks have sent of a bucket, and sends the result if it is wanted. */
static mica_status sum_bucket(mica_ranks *r, mica_bucket *b)
{
    if (r->fixed)
        MICA_TRY(sum_segment(r, b));
    b->state = MICA_BUCKET_SUMMED;
    return r->last_part ? start(r, b->results) : MICA_OK;
}

/* Does what can be done without waiting, in the order of buckets, which is the same on all ranks. */
static mica_status advance(mica_ranks *r)
{
    for (int i = 0; i < r->started; i++) {
        mica_bucket *b = &r->buckets[i];
        bool received, sent;
        if (b->state != MICA_BUCKET_SENT)
            continue;
        MICA_TRY(test(r, b->receives, &received));
        MICA_TRY(test(r, b->sends, &sent));
        if (!received || !sent)
            return MICA_OK;
        MICA_TRY(sum_bucket(r, b));
    }
    return MICA_OK;
}

void mica_exchange_after(void *ranks, int time)
{
    mica_ranks *r = ranks;
    if (r->failed != MICA_OK)
        return;
    while (r->started < r->bucket_count && r->buckets[r->started].ready <= time && r->failed == MICA_OK)
        r->failed = start_bucket(r);
    if (r->failed == MICA_OK)
        r->failed = advance(r);
}

mica_status mica_exchange_begin(mica_ranks *r)
{
    r->started = r->depth = 0;
    r->failed = MICA_OK;
    for (int i = 0; i < r->bucket_count; i++) {
        r->buckets[i].state = MICA_BUCKET_WAITS;
        MICA_TRY(start(r, r->buckets[i].receives));
    }
    return MICA_OK;
}

void mica_exchange_clear(mica_ranks *r)
{
    size_t left = r->started > 0 ? r->buckets[r->started - 1].all.first : r->net->learned_count;
    memset(r->net->flat_gradients, 0, left * sizeof(float)); /* buckets are cut from the end */
}

mica_status mica_exchange_add(mica_ranks *r, int share)
{
    if (share + 1 == r->first + r->own) /* the last share is sent bucket by bucket */
        return MICA_OK;
    int depth;
    mica_shares top = {share, share + 1};
    MICA_TRY(join(r, top, (mica_segment){0, r->net->learned_count}, false, &depth));
    if (depth < r->depth)
        top.first = r->stack[depth].first;
    r->stack[depth] = top;
    r->depth = depth + 1;
    return MICA_OK;
}

mica_status mica_exchange_finish(mica_ranks *r)
{
    MICA_TRY(r->failed);
    while (r->started < r->bucket_count)
        MICA_TRY(start_bucket(r));
    for (int i = 0; i < r->bucket_count; i++) {
        mica_bucket *b = &r->buckets[i];
        if (b->state == MICA_BUCKET_SUMMED)
            continue;
        MICA_TRY(wait_for(r, b->receives));
        MICA_TRY(wait_for(r, b->sends));
        MICA_TRY(sum_bucket(r, b));
    }
    for (int i = 0; i < r->bucket_count && r->last_part; i++)
        MICA_TRY(wait_for(r, r->buckets[i].results));
    return MICA_OK;
}

mica_status mica_exchange_parameters(mica_ranks *r)
{
    MICA_TRY(start(r, r->parameters));
    return wait_for(r, r->parameters);
}
