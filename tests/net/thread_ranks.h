/* Ranks as threads of one process: a transport without a network, for tests. */
#ifndef MICA_TESTS_NET_THREAD_RANKS_H
#define MICA_TESTS_NET_THREAD_RANKS_H

#include <mica/ranks.h>

#if !defined(MICA_NO_THREADS)

/* Runs `body` in so many threads at once, each with a transport of its own. */
typedef void thread_rank_fn(const mica_transport *wire, void *user);
void run_thread_ranks(int ranks, thread_rank_fn *body, void *user);

#endif
#endif
