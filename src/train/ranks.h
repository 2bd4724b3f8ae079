/* How ranks train one net: the parts of src/train/ranks*.c.
 *
 *   ranks.c            making, comparing, checkpoints
 *   ranks_step.c       a step: shares, statistics, the update
 *   ranks_tree.c       the order in which shares are added
 *   ranks_exchange.c   gradients on their way: buckets, messages, sums
 *
 * A rank computes its shares one after the other. Their gradients are added in the order of a binary tree over all
 * shares, as far as the rank has both sides of a sum: what is left are a few blocks of shares, one of them in the net's
 * own gradients, the others in `partial`.
 *
 * Gradients travel in buckets, each as soon as the last share's backward is done with it. Of each bucket every rank
 * owns a segment, for which it receives the blocks of all others:
 *
 *             rank 0     rank 1     rank 2
 *   bucket  [ segment  | segment  | segment  ]      1. blocks to the owners of segments
 *                                                   2. there, sums in the order of the tree
 *                                                   3. sums to all, or only the parameters that they update */
#ifndef MICA_SRC_TRAIN_RANKS_H
#define MICA_SRC_TRAIN_RANKS_H

#include <mica/ranks.h>

#include "net/net.h"

/* ---- The tree over shares first .. end - 1 ---- */

/* A node of it. */
typedef struct mica_shares {
    int first, end;
} mica_shares;

/* Nodes that make up any row of shares at most. */
enum { MICA_SHARE_NODES = 64 };
/* Shares at most. */
enum { MICA_MOST_SHARES = 1 << 20 };

/* Where a node with more than one share is divided: its left side is the largest power of two that leaves something. */
int mica_shares_middle(mica_shares node);
/* Whether two neighbours are the two sides of one node. */
bool mica_shares_join(int all, mica_shares left, mica_shares right);
/* The largest nodes within a row of shares, from left to right; returns how many. */
int mica_shares_cut(mica_shares *out, int all, mica_shares row);

/* ---- Gradients on their way ---- */

typedef struct mica_segment {
    size_t first, count; /* elements */
} mica_segment;

/* Messages first .. first + count - 1. */
typedef struct mica_messages {
    int first, count;
} mica_messages;

typedef struct mica_bucket {
    mica_segment all;
    int ready; /* the time after which its gradients are final */
    mica_messages receives, sends, results;
    size_t received,
        gathered; /* where the blocks of other ranks go, and sums of earlier parts: from the beginning */
    enum { MICA_BUCKET_WAITS, MICA_BUCKET_SENT, MICA_BUCKET_SUMMED } state;
} mica_bucket;

/* A block of shares, and its numbers for one segment. */
typedef struct mica_term {
    mica_shares of;
    float *data;
} mica_term;

/* What a rank tells all others of a step; behind it are the losses of its shares, and their statistics. */
typedef struct mica_report {
    int32_t status, stop;
    int64_t rows;
    double lr;
    char text[240];
} mica_report;

struct mica_ranks {
    mica_context *ctx;
    mica_net *net;
    mica_transport wire;
    mica_index batch, rows; /* of all shares, of one at most */
    int shares, own;        /* of all ranks, of this one */
    int first;              /* share of this rank */
    bool fixed;             /* the order of sums is */
    bool spread;            /* so is the optimizer's state: over the ranks */
    bool no_overlap, accumulates;

    mica_bucket *buckets;
    int bucket_count, started, messages;
    mica_messages parameters; /* after an update, where that is spread */
    mica_shares blocks[MICA_SHARE_NODES], stack[MICA_SHARE_NODES];
    int block_count, depth, most_depth;
    bool last_part; /* of an update: now its result is wanted */
    bool adds;      /* a part of an update came before this one */
    mica_status failed;

    /* One allocation. */
    char *memory;
    size_t bytes;
    float *partial;  /* [most_depth, learned] */
    float *received; /* blocks of other ranks */
    float *gathered; /* [owned elements] of the parts of an update before this one */
    size_t square_first;
    double *squares;  /* [blocks] of MICA_RANK_BLOCK elements */
    char *told, *all; /* reports: this rank's, and those of all */
    size_t told_bytes;
    mica_term *terms; /* [blocks of all ranks] */
    float *start;     /* [statistics] before the step */
    int *statistics;  /* their values */
    int statistic_values;
    size_t statistic_count; /* numbers */
    size_t received_count, gathered_count, square_count, term_count;
    double sent; /* bytes, by a step */
    int sends;
};

/* Decides on blocks and buckets, and counts what they take; the wire is not used. */
mica_status mica_exchange_plan(mica_ranks *r, size_t bucket_bytes);
/* Makes the messages, once there is memory. */
mica_status mica_exchange_open(mica_ranks *r);

/* Before the first share of a step; after each share, whose gradients are in the net; after the last one. */
mica_status mica_exchange_begin(mica_ranks *r);
mica_status mica_exchange_add(mica_ranks *r, int share);
mica_status mica_exchange_finish(mica_ranks *r);
/* While the last share's backward runs: after the call at `time`. A mica_net's `after`. */
void mica_exchange_after(void *ranks, int time);

/* After an update that is spread over ranks: all parameters to all of them. */
mica_status mica_exchange_parameters(mica_ranks *r);

/* The segment of a bucket that a rank owns. */
mica_segment mica_exchange_owned(const mica_ranks *r, const mica_bucket *b, int rank);

/* Fails on all ranks where one of them sees a file and another does not. */
mica_status mica_ranks_same(mica_ranks *r, bool there, const char *path);
/* mica_checkpoint_check, of what mica_ranks_save would write. */
mica_status mica_ranks_check(mica_ranks *r, const char *path, const mica_training_state *state);

/* The context's error without its kind, which is put in front of it once more where all ranks say it. */
const char *mica_ranks_reason(const mica_ranks *r);

/* Passes on what the wire says. */
mica_status mica_ranks_wire(mica_ranks *r, mica_status status);

#endif
