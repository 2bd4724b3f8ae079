/* Ranks of a job that mpirun started, for the verbs. Rank 0 speaks for all: the others' stdout is discarded, and error
 * messages are held until all ranks agree on what went wrong. */
#ifndef MICA_CLI_RANKS_H
#define MICA_CLI_RANKS_H

#include <mica/ranks.h>

#include "cli/verb.h"

/* Joins the job if mpirun started one; otherwise there is one rank. Returns an exit code. */
int ranks_join(void);
/* Leaves it; returns the exit code that all ranks agree on. */
int ranks_leave(int code);

int ranks_rank(void);
int ranks_count(void);
/* The transport to the others, which counts its use (ranks_use); NULL: this process is alone. */
const mica_transport *ranks_wire(void);

/* How many of the machine's processors this rank has to itself. */
int64_t ranks_threads(int64_t processors);

/* The exit code of the lowest rank that failed, whose message rank 0 prints with the numbers of the ranks that had it.
 * A collective call, until a rank has failed: after that, all know the code, and none waits. */
int ranks_agree(int code);
/* `bytes` bytes of each rank, in the order of ranks, to all [ranks * bytes]; alone, a copy. Where the wire fails,
 * says so and returns what the program ends with. */
int ranks_gather(const verb *v, void *all, const void *own, size_t bytes);
/* What rank 0 has, to all: the others' *bytes is made, to be given to free(). */
int ranks_share(const verb *v, char **bytes, size_t *count);
/* The first rank whose number differs from that of rank 0; 0: all have the same. */
int ranks_differing(uint64_t number);

/* Ends the whole job, printing this rank's message, when the rank cannot get to the next ranks_agree. Returns `code` if
 * there is no job. */
int ranks_abort(int code);

/* Holds a message for ranks_agree; false if it should be printed at once. */
bool ranks_hold(const char *verb_name, const char *message);

/* What MPI has used so far: heap calls of its own; seconds in calls that block, and in those that start or test
 * messages. */
typedef struct wire_use {
    uint64_t heap_calls;
    double waited, polled;
} wire_use;
wire_use ranks_use(void);

#endif
