/* Training one net in several processes ("ranks") at once: each has some rows of every batch, gradients are summed, and
 * all make the same update.
 *
 *     mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam});   // for the rows of one share
 *     mica_net_bind(net, NULL, 0);
 *     mica_net_initialize(net, 42);                                                      // the same on every rank
 *     mica_ranks_create(ctx, &ranks, net, &(mica_ranks_opts){.transport = wire, .batch = 256, .shares = 8});
 *     mica_fit(net, &result, &(mica_fit_opts){.train = source, .ranks = ranks});
 *
 * A batch is cut into shares, and every rank computes the same number of them. With `shares` given, gradients are added
 * in an order that depends on their number alone (a binary tree): then 1, 2 or 4 ranks make the same bits. Without,
 * each rank has one share, and the transport adds in any order it likes.
 *
 * What travels is up to a transport; mica/mpi.h has one. A single process needs none. docs/cluster.md says how it all
 * works. */
#ifndef MICA_RANKS_H
#define MICA_RANKS_H

#include <mica/checkpoint.h>
#include <mica/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The wire ---- */

/* What ranks need to reach each other. All calls return MICA_OK, or another status when the job cannot go on; `error`
 * then says why. Messages are made once, and started again at every step: their numbers count from 0, in the order in
 * which they were made: so a transport serves one mica_ranks at a time. None of it is called by two threads at once. */
typedef struct mica_transport {
    int rank, ranks;
    void *user;
    /* `bytes` bytes of each rank, in the order of ranks, to all [ranks * bytes]. Blocks until all ranks have called. */
    mica_status (*gather)(void *user, void *all, const void *own, size_t bytes);
    /* Makes a message of floats to or from another rank; those of one pair of ranks and one tag are the same. */
    mica_status (*send)(void *user, const float *data, size_t count, int to, int tag);
    mica_status (*receive)(void *user, float *data, size_t count, int from, int tag);
    /* Makes a sum over all ranks, in place, for the rank `to`, or with -1 for all of them. May be NULL where every net
     * has a fixed number of shares. Sums are made and started in the same order on all ranks. */
    mica_status (*sum)(void *user, float *data, size_t count, int to);
    /* Starts `count` messages from number `first` on; tells whether they are done; waits for them. */
    mica_status (*start)(void *user, int first, int count);
    mica_status (*test)(void *user, int first, int count, bool *done);
    mica_status (*wait)(void *user, int first, int count);
    /* Forgets all messages; none of them is under way. */
    void (*forget)(void *user);
    const char *(*error)(void *user);
} mica_transport;

/* ---- Ranks ---- */

typedef struct mica_ranks mica_ranks;

typedef struct mica_ranks_opts {
    const mica_transport *transport; /* copied; NULL: this process alone */
    mica_index batch;                /* rows of a whole batch, of all ranks; 0: shares times the net's */
    int shares;       /* of a batch: a multiple of the ranks; 0: one for each, added in any order */
    size_t bucket;    /* bytes of gradients that travel together; 0: chosen */
    bool accumulates; /* updates have several parts: with `shares`, room for their sum */
    bool no_overlap;  /* nothing is sent before the backward has ended: to measure what that hides */
} mica_ranks_opts;

/* For a bound net compiled with .train and an optimizer, for at least the rows of one share: batch / shares, rounded
 * up. With mica_compile_opts.ranks, each rank has its part of the optimizer's state, and updates its part of the
 * parameters.
 *
 * All ranks call it at once, and it compares what they have: another version, another net, other parameters to begin
 * with or other options on some rank are an error on all, which names the rank. A net with recurrent state that is kept
 * from step to step is refused: the state belongs to rows, which go from rank to rank. */
MICA_API mica_status mica_ranks_create(mica_context *ctx, mica_ranks **out, mica_net *net,
                                       const mica_ranks_opts *opts);
/* Before or after its net; before its transport is closed. NULL is allowed. */
MICA_API void mica_ranks_destroy(mica_ranks *ranks);

MICA_API int mica_ranks_rank(const mica_ranks *ranks);
MICA_API int mica_ranks_count(const mica_ranks *ranks);

/* Bytes that it took beside the net's block. */
MICA_API size_t mica_ranks_bytes(const mica_ranks *ranks);

/* What takes part in a step beside the net's plan, on the rank that takes most: for planning, without a transport. The
 * net is compiled. */
typedef struct mica_ranks_plan {
    mica_index rows; /* of a share, at most */
    size_t buffers;  /* bytes of sums and of messages in flight */
    double sent;     /* bytes that a rank sends in a step */
    int messages;    /* of a step, sent by a rank */
} mica_ranks_plan;
MICA_API mica_status mica_ranks_plan_of(mica_ranks_plan *out, mica_net *net, int ranks,
                                        const mica_ranks_opts *opts);

/* One step of all ranks on one batch, which has `rows` rows in all. `fill` puts rows first .. first + count - 1 of it
 * into the inputs of the net, whose size is set to `count`. The loss is that of the whole batch, the same on all ranks.
 * An error on one rank, or a loss that is not finite, is an error on all, which names the rank; nothing is updated, and
 * the next step may be made. With 0 rows nothing is updated either. All ranks give the same rows, parts and lr.
 * `part` and `parts` as in mica_train_accumulate: the update comes with the last part. Allocates nothing. */
typedef mica_status mica_ranks_fill_fn(mica_net *net, mica_index first, mica_index count, void *user);
typedef struct mica_ranks_step_opts {
    mica_index rows;
    mica_ranks_fill_fn *fill;
    void *user;
    int part, parts; /* 0: the only one */
    float lr;        /* as in mica_train_update */
    bool stop;       /* this rank wants to stop: then all are told */
    mica_status
        status; /* other than MICA_OK, with the context's error: this rank cannot take part, so all fail */
} mica_ranks_step_opts;
typedef struct mica_ranks_outcome {
    double loss; /* mean over the rows */
    bool stop;   /* some rank wants to */
} mica_ranks_outcome;
MICA_API mica_status mica_ranks_step(mica_ranks *ranks, mica_ranks_outcome *out,
                                     const mica_ranks_step_opts *opts);

/* Whether something went well on all ranks: where it did not, the first failure is the error of all, with its rank's
 * name. `status` and the context's error are this rank's. */
MICA_API mica_status mica_ranks_agree(mica_ranks *ranks, mica_status status);

/* `count` numbers of each rank, in the order of ranks, to all [ranks * count]. */
MICA_API mica_status mica_ranks_gather(mica_ranks *ranks, double *all, const double *own, int count);

/* mica_checkpoint_save and _load of the whole net, whatever the number of ranks: rank 0 writes, all read. Both may take
 * memory for the state of the optimizer, where each rank has only a part of it. */
MICA_API mica_status mica_ranks_save(mica_ranks *ranks, const char *path, const mica_training_state *state);
MICA_API mica_status mica_ranks_load(mica_ranks *ranks, mica_training_state *state, const char *path);

#ifdef __cplusplus
}
#endif
#endif
