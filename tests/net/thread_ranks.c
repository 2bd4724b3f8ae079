#include "net/thread_ranks.h"

#if !defined(MICA_NO_THREADS)

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 16, MOST_MESSAGES = 4096 };

/* What is on its way from one rank to another under one tag. */
typedef struct parcel {
    int from, to, tag;
    float *data;
    size_t count;
    bool full;
    struct parcel *next;
} parcel;

/* What all ranks give and all get. */
typedef struct meeting {
    int arrived, left;
    size_t bytes, room;
    char *all;
} meeting;

typedef struct shared {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ranks;
    parcel *parcels;
    meeting gather, sums[MOST_MESSAGES];
} shared;

typedef struct message {
    enum { SEND, RECEIVE, SUM } kind;
    float *data;
    size_t count;
    parcel *parcel;
    int sum, to;
    bool done;
} message;

typedef struct rank {
    shared *shared;
    mica_transport wire;
    message messages[MOST_MESSAGES];
    int count, sums;
    thread_rank_fn *body;
    void *user;
    pthread_t thread;
} rank;

/* ---- Everyone at once ---- */

static void arrive(rank *r, meeting *m, const void *own, size_t bytes)
{
    shared *s = r->shared;
    while (m->left > 0) /* the last one is not over */
        pthread_cond_wait(&s->changed, &s->lock);
    if (m->arrived == 0) {
        m->bytes = bytes;
        if (bytes * (size_t)s->ranks + 1 >
            m->room) { /* only then, so that steps can be seen to allocate nothing */
            m->room = bytes * (size_t)s->ranks + 1;
            m->all = realloc(m->all, m->room);
        }
    }
    if (bytes != m->bytes)
        abort(); /* ranks that talk of different things */
    memcpy(m->all + (size_t)r->wire.rank * bytes, own, bytes);
    if (++m->arrived == s->ranks) {
        m->left = s->ranks;
        pthread_cond_broadcast(&s->changed);
    }
}

static void leave(rank *r, meeting *m)
{
    if (--m->left == 0) {
        m->arrived = 0;
        pthread_cond_broadcast(&r->shared->changed);
    }
}

static mica_status gather(void *user, void *all, const void *own, size_t bytes)
{
    rank *r = user;
    shared *s = r->shared;
    pthread_mutex_lock(&s->lock);
    arrive(r, &s->gather, own, bytes);
    while (s->gather.left == 0)
        pthread_cond_wait(&s->changed, &s->lock);
    memcpy(all, s->gather.all, bytes * (size_t)s->ranks);
    leave(r, &s->gather);
    pthread_mutex_unlock(&s->lock);
    return MICA_OK;
}

/* ---- Messages ---- */

static mica_status add_message(rank *r, message m, int from, int to, int tag)
{
    shared *s = r->shared;
    if (r->count == MOST_MESSAGES)
        return MICA_ERR_MEMORY;
    pthread_mutex_lock(&s->lock);
    parcel *p = s->parcels;
    while (m.kind != SUM && p != NULL && (p->from != from || p->to != to || p->tag != tag))
        p = p->next;
    if (m.kind != SUM && p == NULL) {
        p = calloc(1, sizeof *p);
        *p = (parcel){from, to, tag, malloc(m.count * sizeof(float) + 1), m.count, false, s->parcels};
        s->parcels = p;
    }
    if (m.kind != SUM && p->count != m.count)
        abort();
    pthread_mutex_unlock(&s->lock);
    m.parcel = p;
    r->messages[r->count++] = m;
    return MICA_OK;
}

static mica_status make_send(void *user, const float *data, size_t count, int to, int tag)
{
    rank *r = user;
    return add_message(r, (message){SEND, (float *)data, count, NULL, 0, 0, true}, r->wire.rank, to, tag);
}
static mica_status make_receive(void *user, float *data, size_t count, int from, int tag)
{
    rank *r = user;
    return add_message(r, (message){RECEIVE, data, count, NULL, 0, 0, true}, from, r->wire.rank, tag);
}
static mica_status make_sum(void *user, float *data, size_t count, int to)
{
    rank *r = user;
    return add_message(r, (message){SUM, data, count, NULL, r->sums++, to, true}, 0, 0, 0);
}

static mica_status start(void *user, int first, int count)
{
    rank *r = user;
    shared *s = r->shared;
    pthread_mutex_lock(&s->lock);
    for (int i = first; i < first + count; i++) {
        message *m = &r->messages[i];
        m->done = m->kind == SEND;
        if (m->kind == SUM)
            arrive(r, &s->sums[m->sum], m->data, m->count * sizeof(float));
        if (m->kind != SEND)
            continue;
        while (m->parcel->full)
            pthread_cond_wait(&s->changed, &s->lock);
        memcpy(m->parcel->data, m->data, m->count * sizeof(float));
        m->parcel->full = true;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return MICA_OK;
}

/* In the order of ranks. */
static void add_up(const rank *r, message *m)
{
    const meeting *all = &r->shared->sums[m->sum];
    for (size_t i = 0; i < m->count && (m->to < 0 || m->to == r->wire.rank); i++) {
        float sum = 0;
        for (int k = 0; k < r->shared->ranks; k++)
            sum += ((const float *)(const void *)(all->all + (size_t)k * all->bytes))[i];
        m->data[i] = sum;
    }
}

/* Finishes what has come; under the lock. */
static bool finish(rank *r, message *m)
{
    shared *s = r->shared;
    if (m->done)
        return true;
    if (m->kind == SUM && s->sums[m->sum].left > 0) {
        add_up(r, m);
        leave(r, &s->sums[m->sum]);
        m->done = true;
    } else if (m->kind == RECEIVE && m->parcel->full) {
        memcpy(m->data, m->parcel->data, m->count * sizeof(float));
        m->parcel->full = false;
        m->done = true;
        pthread_cond_broadcast(&s->changed);
    }
    return m->done;
}

static mica_status test(void *user, int first, int count, bool *done)
{
    rank *r = user;
    *done = true;
    pthread_mutex_lock(&r->shared->lock);
    for (int i = first; i < first + count; i++)
        *done = finish(r, &r->messages[i]) && *done;
    pthread_mutex_unlock(&r->shared->lock);
    return MICA_OK;
}

static mica_status wait(void *user, int first, int count)
{
    rank *r = user;
    pthread_mutex_lock(&r->shared->lock);
    for (int i = first; i < first + count; i++)
        while (!finish(r, &r->messages[i]))
            pthread_cond_wait(&r->shared->changed, &r->shared->lock);
    pthread_mutex_unlock(&r->shared->lock);
    return MICA_OK;
}

static void forget(void *user)
{
    rank *r = user;
    r->count = r->sums = 0;
}

/* ---- Threads ---- */

static void *run_rank(void *user)
{
    rank *r = user;
    r->body(&r->wire, r->user);
    return NULL;
}

void run_thread_ranks(int ranks, thread_rank_fn *body, void *user)
{
    shared *s = calloc(1, sizeof *s);
    rank *all = calloc((size_t)ranks, sizeof *all);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->ranks = ranks;
    for (int i = 0; i < ranks; i++) {
        all[i] = (rank){.shared = s, .body = body, .user = user};
        all[i].wire = (mica_transport){.rank = i,
                                       .ranks = ranks,
                                       .user = &all[i],
                                       .gather = gather,
                                       .send = make_send,
                                       .receive = make_receive,
                                       .sum = make_sum,
                                       .start = start,
                                       .test = test,
                                       .wait = wait,
                                       .forget = forget};
    }
    for (int i = 0; i < ranks; i++)
        pthread_create(&all[i].thread, NULL, run_rank, &all[i]);
    for (int i = 0; i < ranks; i++)
        pthread_join(all[i].thread, NULL);
    for (parcel *p = s->parcels, *next; p != NULL; p = next) {
        next = p->next;
        free(p->data);
        free(p);
    }
    free(s->gather.all);
    for (int i = 0; i < MOST_MESSAGES; i++)
        free(s->sums[i].all);
    free(all);
    free(s);
}

#endif
