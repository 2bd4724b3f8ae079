/* Ranks: what the files of src/train/ranks*.c share.
 *
 *   ranks.c            creation, comparison of ranks, checkpoints
 *   ranks_step.c       a step: shares, statistics, the update
 *   ranks_tree.c       the order in which shares are added
 *   ranks_exchange.c   the exchange of gradients: buckets, messages, sums
 *
 * A rank computes its shares one after the other. Their gradients are added in the order of a binary tree over all
 * shares, as far as the rank has both operands of a sum. What remains is a few blocks of shares: the last in the net's
 * own gradients, the others in `partial`.
 *
 * Gradients are sent in buckets, each as soon as the backward pass of the last share is done with it. Every rank owns a
 * segment of each bucket, for which it receives the blocks of all others:
 *
 *             rank 0     rank 1     rank 2
 *   bucket  [ segment  | segment  | segment  ]      1. blocks go to the owners of segments
 *                                                   2. owners add them in the order of the tree
 *                                                   3. sums go to all; if sharded, the updated parameters do */
#ifndef MICA_SRC_TRAIN_RANKS_H
#define MICA_SRC_TRAIN_RANKS_H

#include <mica/ranks.h>

#include "net/net.h"

/* ---- The tree over shares first .. end - 1 ---- */

/* A node of it. */
typedef struct mica_shares {
    int first, end;
} mica_shares;

/* No range of shares consists of more nodes than this. */
enum { MICA_SHARE_NODES = 64 };
enum { MICA_MOST_SHARES = 1 << 20 };

/* Where a node of two or more shares is split: its left child has the largest power of two that leaves the right one at
 * least a share. */
int mica_shares_middle(mica_shares node);
/* Whether two neighbouring nodes are the children of one node. */
bool mica_shares_join(int all, mica_shares left, mica_shares right);
/* The largest nodes that make up a range of shares, from left to right; returns how many. */
int mica_shares_cut(mica_shares *out, int all, mica_shares row);

/* ---- The exchange of gradients ---- */

typedef struct mica_segment {
    size_t first, count; /* elements */
} mica_segment;

/* Messages first .. first + count - 1. */
typedef struct mica_messages {
    int first, count;
} mica_messages;

typedef struct mica_bucket {
    mica_segment all;
    int ready; /* its gradients are final after the call at this time */
    mica_messages receives, sends, results;
    size_t received,
        gathered; /* where the blocks of other ranks go, and sums of earlier parts: from the beginning */
    enum { MICA_BUCKET_WAITS, MICA_BUCKET_SENT, MICA_BUCKET_SUMMED } state;
} mica_bucket;

/* A block of shares, and its gradients for one segment. */
typedef struct mica_term {
    mica_shares of;
    float *data;
} mica_term;

/* What a rank reports to all others after a step; the losses and statistics of its shares follow it. */
typedef struct mica_report {
    int32_t status, stop, part, parts;
    int64_t rows;
    double lr;
    char text[240];
} mica_report;

struct mica_ranks {
    mica_context *ctx;
    mica_net *net;
    mica_transport wire;
    mica_index batch, rows; /* rows of a batch, and of one share at most */
    int shares, own;        /* shares of all ranks, and of this one */
    int first;              /* this rank's first share */
    bool fixed;             /* sums are made in a fixed order */
    bool spread;            /* the optimizer's state is sharded over the ranks */
    bool no_overlap, accumulates;

    mica_bucket *buckets;
    size_t buckets_bytes;
    int bucket_count, started, messages;
    mica_messages parameters; /* after an update, if the state is sharded */
    mica_shares blocks[MICA_SHARE_NODES], stack[MICA_SHARE_NODES];
    int block_count, depth, most_depth;
    bool last_part; /* this part of an update is the last: its result is wanted now */
    bool adds;      /* this part is not the first */
    mica_status failed;

    /* One allocation. */
    char *memory;
    size_t bytes;
    float *partial;  /* [most_depth, learned] */
    float *received; /* blocks of other ranks */
    float *gathered; /* [owned elements] of the parts of an update before this one */
    size_t square_first;
    double *squares;  /* [blocks] of MICA_RANK_BLOCK elements */
    char *told, *all; /* this rank's report, and those of all ranks */
    size_t told_bytes;
    mica_term *terms; /* [blocks of all ranks] */
    float *start;     /* [statistics] before the step */
    double *means;    /* [statistics] over shares */
    int *statistics;  /* their values */
    size_t statistics_bytes;
    int statistic_values;
    size_t statistic_count; /* numbers */
    size_t received_count, gathered_count, square_count, term_count;
    double sent; /* bytes per step */
    int sends;   /* messages per step */

    mica_report opening[]; /* [ranks] before there is other memory */
};

/* Chooses blocks and buckets, and counts the memory they take, without using the transport. */
mica_status mica_exchange_plan(mica_ranks *r, size_t bucket_bytes);
/* Creates the messages; the memory has been allocated. */
mica_status mica_exchange_open(mica_ranks *r);

/* Before the first share of a step; after each share, whose gradients are in the net; after the last one. */
mica_status mica_exchange_begin(mica_ranks *r);
mica_status mica_exchange_add(mica_ranks *r, int share);
mica_status mica_exchange_finish(mica_ranks *r);
/* Zeros for the gradients of a share that failed, but for those that have left already. */
void mica_exchange_clear(mica_ranks *r);
/* During the backward pass of the last share: called after the call at `time`, as the net's `after`. */
void mica_exchange_after(void *ranks, int time);

/* After a sharded update: sends this rank's parameters to all others, and receives theirs. */
mica_status mica_exchange_parameters(mica_ranks *r);

/* The segment of a bucket that a rank owns. */
mica_segment mica_exchange_owned(const mica_ranks *r, const mica_bucket *b, int rank);

/* Fails on all ranks if some see a file and others do not. */
mica_status mica_ranks_same(mica_ranks *r, bool there, const char *path);
/* mica_checkpoint_check for what mica_ranks_save would write. */
mica_status mica_ranks_check(mica_ranks *r, const char *path, const mica_training_state *state);

/* The context's error without its kind ("shape error: "), which mica_fail will prepend again. */
const char *mica_ranks_reason(const mica_ranks *r);

/* Turns a failure of the transport into the context's error. */
mica_status mica_ranks_wire(mica_ranks *r, mica_status status);

#endif
