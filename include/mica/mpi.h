/* A transport for mica/ranks.h over MPI, in a library of its own (libmica_mpi), so that the core does not need MPI.
 *
 *     mica_mpi *mpi;
 *     if (mica_mpi_open(&mpi, NULL) != MICA_OK)
 *         fprintf(stderr, "%s\n", mica_mpi_error(mpi));
 *     mica_transport wire = mica_mpi_transport(mpi);
 *     mica_ranks_create(ctx, &ranks, net, &(mica_ranks_opts){.transport = &wire, .shares = 8});
 *     ...
 *     mica_ranks_destroy(ranks);
 *     mica_mpi_close(mpi);
 *
 * Started as `mpirun -np 4 program`. Works with Open MPI and MPICH. Messages are persistent requests; sums are
 * non-blocking collectives, persistent ones from MPI 4 on. */
#ifndef MICA_MPI_H
#define MICA_MPI_H

#include <mica/ranks.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mica_mpi mica_mpi;

typedef struct mica_mpi_opts {
    void *comm; /* an MPI_Comm *, which is duplicated; NULL: MPI_COMM_WORLD */
} mica_mpi_opts;

/* Initializes MPI (MPI_THREAD_FUNNELED) unless the program already has. If it fails, *out still has the error, and is
 * to be closed; it is NULL only if there is no memory. */
MICA_API mica_status mica_mpi_open(mica_mpi **out, const mica_mpi_opts *opts);
/* Finalizes MPI if mica_mpi_open initialized it; MPI cannot be opened again then. NULL is allowed. */
MICA_API void mica_mpi_close(mica_mpi *mpi);

/* Valid until mica_mpi_close. */
MICA_API mica_transport mica_mpi_transport(mica_mpi *mpi);
/* NULL is allowed: then there was no memory. */
MICA_API const char *mica_mpi_error(const mica_mpi *mpi);

/* Ends all processes of the job with this exit code, for a failure that the other ranks cannot learn of otherwise. NULL
 * is allowed, and so is a handle that could not be opened. */
MICA_API void mica_mpi_abort(mica_mpi *mpi, int code);

#ifdef __cplusplus
}
#endif
#endif
