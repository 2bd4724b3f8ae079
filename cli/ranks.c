/* Ranks of a job: MPI is loaded only when mpirun started the program. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mica/mpi.h>

#include "cli/picture/text.h"
#include "cli/ranks.h"
#include "host/clock.h"
#include "host/heap.h"

#define LIBRARY "libmica_mpi.so." MICA_SOVERSION

/* The functions of libmica_mpi. */
typedef struct mpi_library {
    mica_status (*open)(mica_mpi **out, const mica_mpi_opts *opts);
    void (*close)(mica_mpi *mpi);
    mica_transport (*transport)(mica_mpi *mpi);
    const char *(*error)(const mica_mpi *mpi);
    void (*abort)(mica_mpi *mpi, int code);
} mpi_library;

/* A rank's error message and exit code. */
typedef struct held {
    int32_t code;
    char verb[20], text[1000];
} held;

static struct {
    mpi_library library;
    mica_mpi *mpi;
    mica_transport wire, counted; /* MPI's, and the same with counters */
    wire_use use;
    held own, *all;
    int agreed; /* other than EXIT_OK: the exit code of all ranks */
    bool lost;  /* a call failed: some rank may be gone, and cannot be agreed with */
} job = {.wire = {.ranks = 1}};

int ranks_rank(void) { return job.wire.rank; }
int ranks_count(void) { return job.wire.ranks; }
const mica_transport *ranks_wire(void) { return job.mpi != NULL ? &job.counted : NULL; }
wire_use ranks_use(void) { return job.use; }

/* ---- Counting ---- */

/* Whether a call went well. */
static mica_status noted(mica_status status)
{
    job.lost = job.lost || status != MICA_OK;
    return status;
}

/* Passes a call on, and counts its heap calls and its time. */
#define COUNTED(name, seconds, parameters, arguments)        \
    static mica_status counted_##name parameters             \
    {                                                        \
        uint64_t calls = heap_now().calls;                   \
        double began = clock_seconds();                      \
        mica_status status = noted(job.wire.name arguments); \
        job.use.heap_calls += heap_now().calls - calls;      \
        job.use.seconds += clock_seconds() - began;          \
        return status;                                       \
    }

COUNTED(gather, waited, (void *user, void *all, const void *own, size_t bytes), (user, all, own, bytes))
COUNTED(start, polled, (void *user, int first, int count), (user, first, count))
COUNTED(test, polled, (void *user, int first, int count, bool *done), (user, first, count, done))
COUNTED(wait, waited, (void *user, int first, int count), (user, first, count))

/* ---- Joining ---- */

/* Whether an mpirun started this process. */
static bool is_rank(void)
{
    static const char *const marks[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (getenv(marks[i]) != NULL)
            return true;
    return false;
}

/* From the program's folder, the library folder of its installation, or the system's search path. */
static void *load(void)
{
    char path[4096 + 64];
    ssize_t length = readlink("/proc/self/exe", path, 4096);
    while (length > 0 && path[length - 1] != '/')
        length--;
    static const char *const places[] = {LIBRARY, "../" MICA_LIBDIR "/" LIBRARY};
    for (size_t i = 0; i < 2 && length > 0; i++) {
        (void)snprintf(path + length, sizeof path - (size_t)length, "%s", places[i]);
        if (access(path, R_OK) == 0) /* this one or none: otherwise its error would be lost */
            return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    }
    return dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
}

static bool find(void *library, void *function, const char *name)
{
    void *found = library != NULL ? dlsym(library, name) : NULL;
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

int ranks_join(void)
{
    if (!is_rank())
        return EXIT_OK;
    void *library = load();
    mpi_library *l = &job.library;
    if (!find(library, &l->open, "mica_mpi_open") || !find(library, &l->close, "mica_mpi_close") ||
        !find(library, &l->transport, "mica_mpi_transport") || !find(library, &l->error, "mica_mpi_error") ||
        !find(library, &l->abort, "mica_mpi_abort"))
        return verb_error(NULL, EXIT_FAILED, "started by mpirun, but MPI cannot be loaded: %s", dlerror());
    if (l->open(&job.mpi, NULL) != MICA_OK)
        return verb_error(NULL, EXIT_FAILED, "%s", job.mpi != NULL ? l->error(job.mpi) : "out of memory");
    job.wire = job.counted = l->transport(job.mpi);
    job.counted.gather = counted_gather;
    job.counted.start = counted_start;
    job.counted.test = counted_test;
    job.counted.wait = counted_wait;
    job.all = calloc((size_t)job.wire.ranks, sizeof *job.all);
    if (job.all == NULL || (job.wire.rank > 0 && freopen("/dev/null", "w", stdout) == NULL))
        return verb_error(NULL, EXIT_FAILED, "rank %d cannot be started", job.wire.rank);
    return EXIT_OK;
}

int ranks_abort(int code)
{
    if (job.wire.ranks == 1)
        return code;
    fprintf(stderr, "mica%s%s: rank %d: ", job.own.verb[0] != '\0' ? " " : "", job.own.verb, job.wire.rank);
    put_message(stderr, job.own.text[0] != '\0' ? job.own.text : job.library.error(job.mpi));
    fprintf(stderr, "\n");
    job.library.abort(job.mpi, code);
    return code;
}

int ranks_leave(int code)
{
    if (job.mpi == NULL)
        return code;
    code = ranks_agree(code);
    if (job.lost) /* MPI would wait for ranks that are gone */
        return ranks_abort(EXIT_LOST);
    job.library.close(job.mpi);
    free(job.all);
    job.mpi = NULL;
    return code;
}

int64_t ranks_threads(int64_t processors)
{
    cpu_set_t mine;
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    local = local != NULL ? local : getenv("MPI_LOCALNRANKS");
    long ranks = local != NULL ? strtol(local, NULL, 10) : 1;
    int bound = sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 0;
    if (job.mpi == NULL)
        return processors;
    if (bound > 0 && bound < processors) /* mpirun has given each rank its own */
        return bound;
    int64_t threads = ranks > 0 ? processors / ranks : processors;
    return threads > 0 ? threads : 1;
}

/* ---- Agreeing ---- */

bool ranks_hold(const char *verb_name, const char *message)
{
    if (job.wire.ranks == 1)
        return false;
    if (job.own.text[0] != '\0')
        return true; /* the first message names the cause */
    (void)snprintf(job.own.verb, sizeof job.own.verb, "%s", verb_name);
    (void)snprintf(job.own.text, sizeof job.own.text, "%s", message);
    return true;
}

/* On rank 0: prints each message once, with the ranks that had it unless all did. */
static void print_held(void)
{
    int ranks = job.wire.ranks;
    for (int rank = 0; rank < ranks; rank++) {
        held *h = &job.all[rank];
        if (h->text[0] == '\0')
            continue;
        int count = 0;
        for (int other = rank; other < ranks; other++)
            count += strcmp(job.all[other].text, h->text) == 0;
        fprintf(stderr, "mica%s%s: ", h->verb[0] != '\0' ? " " : "", h->verb);
        if (count < ranks && strncmp(h->text, "rank ", 5) != 0) {
            const char *before = count == 1 ? "rank" : "ranks";
            for (int other = rank; other < ranks; other++)
                if (strcmp(job.all[other].text, h->text) == 0) {
                    fprintf(stderr, "%s %d", before, other);
                    before = ",";
                }
            fprintf(stderr, ": ");
        }
        put_message(stderr, h->text);
        fprintf(stderr, "\n");
        for (int other = ranks - 1; other >= rank; other--)
            if (strcmp(job.all[other].text, h->text) == 0)
                job.all[other].text[0] = '\0';
    }
}

int ranks_agree(int code)
{
    if (job.wire.ranks == 1)
        return code;
    if (job.agreed != EXIT_OK) /* a rank that failed may have left already */
        return job.agreed;
    job.own.code = code;
    if (job.lost || noted(job.wire.gather(job.wire.user, job.all, &job.own, sizeof job.own)) != MICA_OK)
        return job.agreed = EXIT_LOST;
    job.own.text[0] = '\0';
    code = EXIT_OK;
    for (int rank = 0; rank < job.wire.ranks && code == EXIT_OK; rank++)
        code = job.all[rank].code;
    if (job.wire.rank == 0)
        print_held();
    return job.agreed = code;
}

int ranks_gather(const verb *v, void *all, const void *own, size_t bytes)
{
    if (job.wire.ranks == 1) {
        memcpy(all, own, bytes);
        return EXIT_OK;
    }
    return job.counted.gather(job.wire.user, all, own, bytes) == MICA_OK
               ? EXIT_OK
               : verb_error(v, EXIT_FAILED, "%s", job.library.error(job.mpi));
}

int ranks_share(const verb *v, char **bytes, size_t *count)
{
    enum { PIECE = 65536 };
    size_t ranks = (size_t)job.wire.ranks;
    if (ranks == 1)
        return EXIT_OK;
    char *all = calloc(ranks + 1, PIECE), *own = all != NULL ? all + ranks * PIECE : NULL;
    int code = ranks_agree(all != NULL ? EXIT_OK : verb_error(v, EXIT_FAILED, "out of memory"));
    if (code == EXIT_OK)
        code = ranks_gather(v, all, count, sizeof *count);
    if (code == EXIT_OK && job.wire.rank > 0) {
        memcpy(count, all, sizeof *count);
        *bytes = malloc(*count > 0 ? *count : 1);
    }
    if (code == EXIT_OK)
        code = ranks_agree(*bytes != NULL || *count == 0 ? EXIT_OK
                                                         : verb_error(v, EXIT_FAILED, "out of memory"));
    for (size_t at = 0; code == EXIT_OK && at < *count; at += PIECE) {
        size_t piece = *count - at < PIECE ? *count - at : PIECE;
        if (job.wire.rank == 0)
            memcpy(own, *bytes + at, piece);
        code = ranks_gather(v, all, own, piece);
        if (code == EXIT_OK && job.wire.rank > 0)
            memcpy(*bytes + at, all, piece);
    }
    free(all);
    return code;
}

int ranks_differing(uint64_t number)
{
    uint64_t *all = (uint64_t *)(void *)job.all; /* messages have room for it */
    int rank = 0;
    if (job.wire.ranks == 1 || noted(job.wire.gather(job.wire.user, all, &number, sizeof number)) != MICA_OK)
        return 0; /* alone; or the others are lost, which ranks_agree will report */
    for (int i = job.wire.ranks - 1; i > 0; i--)
        rank = all[i] != all[0] ? i : rank;
    return rank;
}
