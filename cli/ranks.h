/* Being one of several processes of a job, started by mpirun: what verbs need of it. Rank 0 speaks for all: of the
 * others stdout goes nowhere, and their messages are held until all ranks agree on what went wrong. */
#ifndef MICA_CLI_RANKS_H
#define MICA_CLI_RANKS_H

#include <mica/ranks.h>

#include "cli/verb.h"

/* Joins the job that mpirun started, if it did; else there is one rank. Returns what the program ends with where that
 * fails. */
int ranks_join(void);
/* Leaves it; returns what the program ends with. */
int ranks_leave(int code);

int ranks_rank(void);
int ranks_count(void);
/* The way to the others; NULL: this process is alone. It counts what goes over it. */
const mica_transport *ranks_wire(void);

/* Threads that each rank of this machine can have for itself, of so many processors. */
int64_t ranks_threads(int64_t processors);

/* What all ranks end with: the code of the first that failed, whose message rank 0 prints, with the numbers of those
 * that said it. Every rank comes here at the same points, until one has failed: all know it then, and none waits. */
int ranks_agree(int code);
/* `bytes` bytes of each rank, in the order of ranks, to all [ranks * bytes]; alone, a copy. Where the wire fails,
 * says so and returns what the program ends with. */
int ranks_gather(const verb *v, void *all, const void *own, size_t bytes);
/* What rank 0 has, to all: the others' *bytes is made, to be given to free(). */
int ranks_share(const verb *v, char **bytes, size_t *count);
/* The first rank whose number is another than that of rank 0; 0: all have the same. */
int ranks_differing(uint64_t number);

/* Ends the job, with what this rank has to say, where it cannot come to the next point. Returns `code` where there is
 * no job. */
int ranks_abort(int code);

/* Holds a message for ranks_agree. False: it is to be printed at once. */
bool ranks_hold(const char *verb_name, const char *message);

/* What MPI did since the program began: heap calls of its own; seconds in calls that wait, and in those that start
 * messages and look for them. */
typedef struct wire_use {
    uint64_t heap_calls;
    double waited, polled;
} wire_use;
wire_use ranks_use(void);

#endif
