/* The transport of mica/ranks.h over MPI. Uses only the types of libmica, and is not linked with it. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/mpi.h>

/* MPI 4 has persistent collectives. */
#define PERSISTENT_SUMS (MPI_VERSION >= 4)

typedef struct sum {
    float *data;
    int count;
    int to; /* -1: all */
} sum;

struct mica_mpi {
    MPI_Comm comm;
    bool own_comm, initialized; /* by this struct */
    int rank, ranks, most_tag;
    MPI_Request *requests;
    sum *sums; /* [count] beside the requests; data is NULL for messages between two ranks */
    int count, room;
    char error[MPI_MAX_ERROR_STRING + 64];
};

/* ---- Errors ---- */

static mica_status failed(mica_mpi *m, const char *what)
{
    (void)snprintf(m->error, sizeof m->error, "MPI: %s", what);
    return MICA_ERR_IO;
}

static mica_status check(mica_mpi *m, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS)
        return MICA_OK;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        (void)snprintf(text, sizeof text, "error %d", code);
    return failed(m, text);
}

static const char *error(void *user) { return ((const mica_mpi *)user)->error; }

/* ---- Creating messages ---- */

static bool make_room(mica_mpi *m)
{
    if (m->count < m->room)
        return true;
    int room = m->room > 0 ? 2 * m->room : 256;
    MPI_Request *requests = realloc(m->requests, (size_t)room * sizeof *requests);
    if (requests != NULL)
        m->requests = requests;
    sum *sums = requests != NULL ? realloc(m->sums, (size_t)room * sizeof *sums) : NULL;
    if (sums == NULL)
        return false;
    m->sums = sums;
    m->room = room;
    return true;
}

static mica_status check_message(mica_mpi *m, size_t count, int tag)
{
    if (count > INT_MAX)
        return failed(m, "a message of more than 2^31 - 1 floats: use smaller buckets");
    if (tag > m->most_tag)
        return failed(m, "more tags than this MPI has: use larger buckets");
    return make_room(m) ? MICA_OK : failed(m, "out of memory");
}

static mica_status add(mica_mpi *m, MPI_Request request, sum s, int code)
{
    if (code != MPI_SUCCESS)
        return check(m, code);
    m->requests[m->count] = request;
    m->sums[m->count++] = s;
    return MICA_OK;
}

static mica_status make_send(void *user, const float *data, size_t count, int to, int tag)
{
    mica_mpi *m = user;
    MPI_Request request = MPI_REQUEST_NULL;
    mica_status status = check_message(m, count, tag);
    if (status != MICA_OK)
        return status;
    int code = MPI_Send_init(data, (int)count, MPI_FLOAT, to, tag, m->comm, &request);
    return add(m, request, (sum){0}, code);
}

static mica_status make_receive(void *user, float *data, size_t count, int from, int tag)
{
    mica_mpi *m = user;
    MPI_Request request = MPI_REQUEST_NULL;
    mica_status status = check_message(m, count, tag);
    if (status != MICA_OK)
        return status;
    int code = MPI_Recv_init(data, (int)count, MPI_FLOAT, from, tag, m->comm, &request);
    return add(m, request, (sum){0}, code);
}

/* The send buffer of an in-place sum. Where one rank gets it, MPI_IN_PLACE is for that rank only. */
static const void *input_of(const mica_mpi *m, const sum *s)
{
    return s->to < 0 || s->to == m->rank ? MPI_IN_PLACE : s->data;
}

static mica_status make_sum(void *user, float *data, size_t count, int to)
{
    mica_mpi *m = user;
    sum s = {data, (int)count, to};
    MPI_Request request = MPI_REQUEST_NULL;
    mica_status status = check_message(m, count, 0);
    if (status != MICA_OK)
        return status;
#if PERSISTENT_SUMS
    int code = to < 0 ? MPI_Allreduce_init(MPI_IN_PLACE, data, s.count, MPI_FLOAT, MPI_SUM, m->comm,
                                           MPI_INFO_NULL, &request)
                      : MPI_Reduce_init(input_of(m, &s), data, s.count, MPI_FLOAT, MPI_SUM, to, m->comm,
                                        MPI_INFO_NULL, &request);
    return add(m, request, (sum){0}, code);
#else
    return add(m, request, s, MPI_SUCCESS);
#endif
}

/* ---- Running them ---- */

static int start_sum(mica_mpi *m, int number)
{
    const sum *s = &m->sums[number];
    MPI_Request *request = &m->requests[number];
    if (s->to < 0)
        return MPI_Iallreduce(MPI_IN_PLACE, s->data, s->count, MPI_FLOAT, MPI_SUM, m->comm, request);
    return MPI_Ireduce(input_of(m, s), s->data, s->count, MPI_FLOAT, MPI_SUM, s->to, m->comm, request);
}

/* A transport that serves two mica_ranks forgets the messages of both with the first. */
static mica_status check_range(mica_mpi *m, int first, int count)
{
    bool there = first >= 0 && count >= 0 && first <= m->count && count <= m->count - first;
    return there ? MICA_OK : failed(m, "messages that were not made, or are forgotten");
}

static mica_status start(void *user, int first, int count)
{
    mica_mpi *m = user;
    int code = MPI_SUCCESS;
    if (check_range(m, first, count) != MICA_OK)
        return MICA_ERR_STATE;
    for (int i = first; i < first + count && code == MPI_SUCCESS; i++)
        code = m->sums[i].data != NULL ? start_sum(m, i) : MPI_Start(&m->requests[i]);
    return check(m, code);
}

/* One by one: with MPICH 4.0, MPI_Testall fails on persistent sums that are done. */
static mica_status test(void *user, int first, int count, bool *done)
{
    mica_mpi *m = user;
    int flag = 1, code = MPI_SUCCESS;
    if (check_range(m, first, count) != MICA_OK)
        return MICA_ERR_STATE;
    for (int i = first; i < first + count && flag != 0 && code == MPI_SUCCESS; i++)
        code = MPI_Test(&m->requests[i], &flag, MPI_STATUS_IGNORE);
    *done = flag != 0;
    return check(m, code);
}

static mica_status wait(void *user, int first, int count)
{
    mica_mpi *m = user;
    if (check_range(m, first, count) != MICA_OK)
        return MICA_ERR_STATE;
    return check(m, MPI_Waitall(count, m->requests + first, MPI_STATUSES_IGNORE));
}

static void forget(void *user)
{
    mica_mpi *m = user;
    for (int i = 0; i < m->count; i++)
        if (m->requests[i] != MPI_REQUEST_NULL)
            (void)MPI_Request_free(&m->requests[i]);
    m->count = 0;
}

static mica_status gather(void *user, void *all, const void *own, size_t bytes)
{
    mica_mpi *m = user;
    if (bytes <= INT_MAX)
        return check(m, MPI_Allgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, m->comm));
    return failed(m, "more than 2^31 - 1 bytes of each rank at once");
}

/* ---- Joining and leaving ---- */

/* MPI ends the process when it is called before its beginning or after its end. */
static bool can_be_called(void)
{
    int there, over;
    return MPI_Initialized(&there) == MPI_SUCCESS && there && MPI_Finalized(&over) == MPI_SUCCESS && !over;
}

static mica_status join(mica_mpi *m, const mica_mpi_opts *o)
{
    int there, provided, *tag, found;
    if (MPI_Initialized(&there) != MPI_SUCCESS)
        return failed(m, "MPI_Initialized failed");
    if (!there) {
        if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
            return failed(m, "cannot be initialized");
        m->initialized = true;
    }
    if (!can_be_called())
        return failed(m, "was finalized, and cannot be initialized again");
    MPI_Comm from = o != NULL && o->comm != NULL ? *(MPI_Comm *)o->comm : MPI_COMM_WORLD;
    if (from == MPI_COMM_NULL)
        return failed(m, "MPI_COMM_NULL has no ranks");
    mica_status status = check(m, MPI_Comm_dup(from, &m->comm));
    if (status != MICA_OK)
        return status;
    m->own_comm = true;
    (void)MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
    status = check(m, MPI_Comm_rank(m->comm, &m->rank));
    if (status == MICA_OK)
        status = check(m, MPI_Comm_size(m->comm, &m->ranks));
    m->most_tag = 32767; /* the least that MPI guarantees */
    if (MPI_Comm_get_attr(m->comm, MPI_TAG_UB, &tag, &found) == MPI_SUCCESS && found)
        m->most_tag = *tag;
    return status;
}

mica_status mica_mpi_open(mica_mpi **out, const mica_mpi_opts *opts)
{
    if (out == NULL)
        return MICA_ERR_ARGUMENT;
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return MICA_ERR_MEMORY;
    (*out)->ranks = 1;
    return join(*out, opts);
}

void mica_mpi_close(mica_mpi *m)
{
    if (m == NULL)
        return;
    if (can_be_called()) { /* otherwise it was finalized by another mica_mpi, or by the program */
        forget(m);
        if (m->own_comm)
            (void)MPI_Comm_free(&m->comm);
        if (m->initialized)
            (void)MPI_Finalize();
    }
    free(m->requests);
    free(m->sums);
    free(m);
}

mica_transport mica_mpi_transport(mica_mpi *m)
{
    return (mica_transport){.rank = m->rank,
                            .ranks = m->ranks,
                            .user = m,
                            .gather = gather,
                            .send = make_send,
                            .receive = make_receive,
                            .sum = make_sum,
                            .start = start,
                            .test = test,
                            .wait = wait,
                            .forget = forget,
                            .error = error};
}

const char *mica_mpi_error(const mica_mpi *m) { return m != NULL ? m->error : "MPI: out of memory"; }

void mica_mpi_abort(mica_mpi *m, int code)
{
    if (can_be_called())
        (void)MPI_Abort(m != NULL && m->own_comm ? m->comm : MPI_COMM_WORLD, code);
    exit(code); /* there is no MPI that could */
}
