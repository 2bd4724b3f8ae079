/* A net that several processes train together:
 *
 *     mpirun -np 4 ranks
 *
 * With 1, 2 or 4 ranks the losses are the same to the last bit. */
#include <mica/mica.h>
#include <mica/mpi.h>
#include <stdio.h>

enum { BATCH = 64, SHARES = 4 }; /* rows of a batch, of all ranks, and what it is cut into */

typedef struct work {
    mica_context *ctx;
    mica_net *net;
    mica_dataset digits;
    mica_batches *batches;
} work;

/* The same on every rank: a net with room for one share, and batches of all rows. */
static mica_status prepare(work *w)
{
    mica_optimizer adam = {.kind = MICA_ADAM};
    mica_netfile_opts share = {.batch = BATCH / SHARES};
    mica_batches_opts whole = {.batch = BATCH, .seed = 1, .scale = 1.0f / 255.0f};
    const char *lenet = mica_netfile_builtin("lenet");
    mica_status s = mica_net_create(w->ctx, &w->net);
    s = s == MICA_OK ? mica_netfile_build(w->net, NULL, lenet, &share) : s;
    s = s == MICA_OK ? mica_net_compile(w->net, &(mica_compile_opts){.train = true, .optimizer = &adam}) : s;
    s = s == MICA_OK ? mica_net_bind(w->net, NULL, 0) : s;
    s = s == MICA_OK ? mica_net_initialize(w->net, 42) : s;
    s = s == MICA_OK ? mica_dataset_digits(w->ctx, &w->digits, &(mica_digits_opts){.count = 2000}) : s;
    return s == MICA_OK ? mica_batches_create(w->ctx, &w->batches, &w->digits, &whole) : s;
}

static bool show(void *user, const mica_progress *p)
{
    if (p->epoch_done && mica_ranks_rank(user) == 0)
        printf("epoch %d  loss %.9g\n", (int)p->epoch + 1, p->mean_loss);
    return true;
}

static mica_status train(work *w, const mica_transport *wire)
{
    mica_ranks_opts opts = {.transport = wire, .batch = BATCH, .shares = SHARES};
    mica_ranks *ranks;
    mica_fit_result result;
    mica_status s = mica_ranks_create(w->ctx, &ranks, w->net, &opts);
    if (s == MICA_OK)
        s = mica_fit(w->net, &result,
                     &(mica_fit_opts){.train = mica_source_of_batches(w->batches),
                                      .epochs = 3,
                                      .ranks = ranks,
                                      .report = show,
                                      .user = ranks});
    mica_ranks_destroy(ranks);
    return s;
}

int main(void)
{
    work w = {0};
    mica_mpi *mpi;
    if (mica_mpi_open(&mpi, NULL) != MICA_OK)
        return fprintf(stderr, "%s\n", mica_mpi_error(mpi)), 1;
    mica_transport wire = mica_mpi_transport(mpi);
    if (mica_context_create(&w.ctx, &(mica_context_opts){.threads = 1}) != MICA_OK)
        mica_mpi_abort(mpi, 1); /* the others wait for this rank, and cannot be told otherwise */
    if (prepare(&w) != MICA_OK) {
        fprintf(stderr, "rank %d: %s\n", wire.rank, mica_error(w.ctx));
        mica_mpi_abort(mpi, 1);
    }
    mica_status status = train(&w, &wire); /* from here on, one rank's error is everyone's */
    if (status != MICA_OK && wire.rank == 0)
        fprintf(stderr, "%s\n", mica_error(w.ctx));
    mica_batches_destroy(w.ctx, w.batches);
    mica_dataset_destroy(w.ctx, &w.digits);
    mica_net_destroy(w.net);
    mica_context_destroy(w.ctx);
    mica_mpi_close(mpi);
    return status == MICA_OK ? 0 : 1;
}
