/* Data-parallel training of one net by several processes, the ranks: each computes some rows of every batch, gradients
 * are summed over all ranks, and every rank makes the same update.
 *
 *     mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam});   // for the rows of one share
 *     mica_net_bind(net, NULL, 0);
 *     mica_net_initialize(net, 42);                                                      // the same on every rank
 *     mica_ranks_create(ctx, &ranks, net, &(mica_ranks_opts){.transport = wire, .batch = 256, .shares = 8});
 *     mica_fit(net, &result, &(mica_fit_opts){.train = source, .ranks = ranks});
 *
 * A batch is cut into shares, and every rank computes the same number of them. With `shares` given, gradients are added
 * in an order that depends on their number alone (a binary tree), so that 1, 2 or 4 ranks get the same bits. Without
 * it, each rank has one share, and the transport adds in any order it likes.
 *
 * A transport moves the data; mica/mpi.h has one for MPI. A single process needs none. docs/cluster.md explains how it
 * works. */
#ifndef MICA_RANKS_H
#define MICA_RANKS_H

#include <mica/checkpoint.h>
#include <mica/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The transport ---- */

/* How ranks reach each other. Every function returns MICA_OK, or another status if the job cannot go on; `error` then
 * says why. Messages are persistent: created once, numbered from 0 in that order, and started again at every step, so a
 * transport serves one mica_ranks at a time. Only one thread at a time calls any of these. */
typedef struct mica_transport {
    int rank, ranks;
    void *user;
    /* All-gather: `bytes` bytes from each rank, in rank order, to all [ranks * bytes]. Blocks until all have called. */
    mica_status (*gather)(void *user, void *all, const void *own, size_t bytes);
    /* Creates a message of floats to or from another rank. They match by the pair of ranks and the tag. */
    mica_status (*send)(void *user, const float *data, size_t count, int to, int tag);
    mica_status (*receive)(void *user, float *data, size_t count, int from, int tag);
    /* Creates an in-place sum over all ranks, whose result goes to rank `to`, or to all if that is -1. May be NULL if
     * `shares` is always given. Sums are created and started in the same order on all ranks. */
    mica_status (*sum)(void *user, float *data, size_t count, int to);
    /* Starts `count` messages from number `first` on; tests whether all are done; waits until they are. */
    mica_status (*start)(void *user, int first, int count);
    mica_status (*test)(void *user, int first, int count, bool *done);
    mica_status (*wait)(void *user, int first, int count);
    /* Frees all messages, none of which is in flight. The next one is number 0 again. */
    void (*forget)(void *user);
    const char *(*error)(void *user);
} mica_transport;

/* ---- Ranks ---- */

typedef struct mica_ranks mica_ranks;

typedef struct mica_ranks_opts {
    const mica_transport *transport; /* copied; NULL: this process alone */
    mica_index batch;                /* rows of a whole batch, of all ranks; 0: shares times the net's */
    int shares;       /* of a batch, a multiple of the ranks; 0: one per rank, added in any order */
    size_t bucket;    /* bytes of gradients that are sent together; 0: chosen by size of the net */
    bool accumulates; /* an update may have several parts: with `shares`, takes room for their sum */
    bool no_overlap;  /* send nothing before the backward pass ends: to measure what overlap saves */
} mica_ranks_opts;

/* For a bound net compiled with .train and an optimizer, for at least the rows of one share: batch / shares, rounded
 * up. With mica_compile_opts.ranks, each rank has its part of the optimizer's state, and updates its part of the
 * parameters.
 *
 * A collective call: all ranks make it, and it compares them. A rank with another version, net, optimizer, seed,
 * initial parameters or options is an error on all ranks, which names it; the options of single layers are not
 * compared. A net with recurrent state that is kept from step to step is refused: the state belongs to rows, which move
 * between ranks. */
MICA_API mica_status mica_ranks_create(mica_context *ctx, mica_ranks **out, mica_net *net,
                                       const mica_ranks_opts *opts);
/* Before or after its net; before its transport is closed. NULL is allowed. */
MICA_API void mica_ranks_destroy(mica_ranks *ranks);

MICA_API int mica_ranks_rank(const mica_ranks *ranks);
MICA_API int mica_ranks_count(const mica_ranks *ranks);

/* Bytes allocated in addition to the net's block. */
MICA_API size_t mica_ranks_bytes(const mica_ranks *ranks);

/* What ranks would need in addition to the net's plan, on the rank that needs most. For a compiled net; needs no
 * transport. */
typedef struct mica_ranks_plan {
    mica_index rows; /* of a share, at most */
    size_t buffers;  /* bytes of sums and of messages in flight */
    double sent;     /* bytes that a rank sends in a step */
    int messages;    /* that a rank sends in a step */
} mica_ranks_plan;
MICA_API mica_status mica_ranks_plan_of(mica_ranks_plan *out, mica_net *net, int ranks,
                                        const mica_ranks_opts *opts);

/* One step of all ranks on a batch of `rows` rows in total: a collective call, with the same rows, parts and lr on
 * every rank. `fill` writes rows first .. first + count - 1 of the batch to the net's inputs, after the net was resized
 * to `count`. The loss is that of the whole batch, the same on all ranks. An error on one rank, or a loss that is not
 * finite, is an error on all, which names the rank; nothing is updated, and the next step may be made. With 0 rows
 * nothing is updated either. `part` and `parts` are those of mica_train_accumulate: the last part makes the update.
 * Allocates nothing. */
typedef mica_status mica_ranks_fill_fn(mica_net *net, mica_index first, mica_index count, void *user);
typedef struct mica_ranks_step_opts {
    mica_index rows;
    mica_ranks_fill_fn *fill;
    void *user;
    int part, parts; /* 0: the only one */
    float lr;        /* as in mica_train_update */
    bool stop;       /* this rank wants to stop, which all learn from the outcome */
    /* Other than MICA_OK: this rank cannot take part, for the reason in the context's error. The step fails on all. */
    mica_status status;
} mica_ranks_step_opts;
typedef struct mica_ranks_outcome {
    double loss; /* mean over the rows */
    bool stop;   /* some rank wants to stop */
} mica_ranks_outcome;
MICA_API mica_status mica_ranks_step(mica_ranks *ranks, mica_ranks_outcome *out,
                                     const mica_ranks_step_opts *opts);

/* Whether something succeeded on all ranks: a collective call, with each rank's status, and its reason in the context's
 * error. The failure of the lowest rank becomes the error of all, with that rank's number. */
MICA_API mica_status mica_ranks_agree(mica_ranks *ranks, mica_status status);

/* All-gather: `count` numbers from each rank, in rank order, to all [ranks * count]. */
MICA_API mica_status mica_ranks_gather(mica_ranks *ranks, double *all, const double *own, int count);

/* mica_checkpoint_save and _load for ranks, as collective calls: rank 0 writes, all read. The file does not depend on
 * the number of ranks. If the optimizer's state is sharded, rank 0 allocates memory for all of it to save, and every
 * rank to load. */
MICA_API mica_status mica_ranks_save(mica_ranks *ranks, const char *path, const mica_training_state *state);
MICA_API mica_status mica_ranks_load(mica_ranks *ranks, mica_training_state *state, const char *path);

#ifdef __cplusplus
}
#endif
#endif
