/* The training loop: epochs of batches, validation, early stopping, checkpoints, exact resume. */
#ifndef MICA_FIT_H
#define MICA_FIT_H

#include <mica/checkpoint.h>
#include <mica/ranks.h>
#include <mica/table.h>
#include <mica/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Where batches come from ---- */

/* As mica_batches: `next` fills the first *count rows; 0 ends an epoch, and the call after that begins the
 * next one. */
typedef struct mica_source {
    mica_status (*next)(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                        mica_index *count, void *user);
    /* The same in two steps, for ranks that need only some rows of each batch (mica/ranks.h); may be NULL otherwise.
     * `begin` moves on to the next batch, of at most `batch` rows; `rows` writes inputs->dim[0] rows of it, from row
     * `first` on. */
    mica_status (*begin)(mica_context *ctx, const mica_tensor *inputs, mica_index batch, mica_index *count,
                         void *user);
    mica_status (*rows)(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                        mica_index first, void *user);
    mica_cursor (*cursor)(const void *user);
    mica_status (*seek)(mica_context *ctx, void *user, mica_cursor cursor);
    void *user;
    /* The net's inputs that are filled, by name; NULL: its first and its second. The batch is axis 0 of both. */
    const char *inputs, *targets;
} mica_source;

MICA_API mica_source mica_source_of_batches(mica_batches *batches);
MICA_API mica_source mica_source_of_table(mica_table_stream *stream);

/* Windows of a text: random ones, `steps` batches to an epoch; or with in_order all of them once. */
typedef struct mica_text_source {
    mica_tensor tokens; /* [N] */
    uint64_t seed;
    uint64_t steps;
    bool in_order;
    mica_cursor at;    /* epoch, and batches (or windows) handed out in it */
    mica_cursor begun; /* where the current batch began */
} mica_text_source;

MICA_API mica_source mica_source_of_text(mica_text_source *text);

/* ---- Evaluation ---- */

typedef struct mica_score {
    double loss;     /* mean over samples */
    double accuracy; /* share of rows whose largest output is the target's class; NaN without classes */
    mica_index samples;
} mica_score;

/* One epoch of `source` through the net, into the inputs that it names; `output` is the value whose last
 * axis is scored for accuracy, by name, or NULL. Allocates nothing. */
MICA_API mica_status mica_evaluate(mica_net *net, mica_score *out, const mica_source *source,
                                   const char *output);
/* The same by all ranks, which take the batches in turn. All get the same score, bit for bit whatever their number. The
 * source has `begin` and `rows`, and batches that fit the net: at most the rows of one share. */
MICA_API mica_status mica_ranks_evaluate(mica_ranks *ranks, mica_score *out, const mica_source *source,
                                         const char *output);

/* ---- Training ---- */

typedef struct mica_progress {
    uint64_t epoch, step; /* steps are counted over all epochs, from 1 */
    double loss;          /* of this step */
    double mean_loss;     /* of this epoch so far */
    float lr;
    mica_index samples; /* of this epoch so far */
    bool epoch_done;    /* then the score is there, if there is validation */
    const mica_score *validation;
} mica_progress;

typedef struct mica_fit_opts {
    mica_source train;
    mica_source validation; /* .next == NULL: none */
    const char *output;     /* for accuracy: see mica_evaluate */
    uint64_t epochs;        /* 0: 1 */
    mica_schedule schedule; /* .lr == 0: the optimizer's own, constant */
    int accumulate; /* batches to an update; 0: 1. Those left over at the end of an epoch are not used */

    const char *checkpoint;     /* a path; NULL: none. Written after every epoch and when training stops */
    uint64_t checkpoint_steps;  /* and after so many steps; 0: not */
    bool resume;                /* from the checkpoint, if it is there */
    const mica_metadata *notes; /* [note_count] for the checkpoint: see mica_training_state */
    size_t note_count;

    /* All ranks train, each on its rows of every batch; rank 0 writes the checkpoints. The sources have `begin` and
     * `rows`; the batches of `validation` have at most the rows of one share. A report that returns false on one rank
     * stops all of them one step later. NULL: this process alone. */
    mica_ranks *ranks;

    int patience; /* stop after so many epochs without a better validation loss; 0: do not */
    /* With validation: when the training has ended, after its last epoch or early, the net and the checkpoint have the
     * weights (and running statistics) of the epoch with the least validation loss. Always so with patience. Takes a
     * copy of mica_weights_bytes, on every rank, before the first step. While training goes on, and where the report
     * stopped it, the net has the last weights and the checkpoint both: it resumes to the same bits. A training that
     * had ended resumes, with more epochs, from its best weights and its last optimizer state. */
    bool keep_best;

    /* Called after every step and every epoch; returning false stops the training (and writes the checkpoint). */
    bool (*report)(void *user, const mica_progress *progress);
    void *user;
} mica_fit_opts;

typedef struct mica_fit_result {
    uint64_t epochs, steps;          /* done, those before a resume included */
    double train_loss;               /* mean of the last epoch */
    mica_score validation;           /* after the last epoch */
    uint64_t best_epoch;             /* from 1: that with the least validation loss; 0: none was kept */
    double best_loss, best_accuracy; /* its score in validation */
    bool stopped;                    /* by the report */
    bool stopped_early;              /* by patience; also where a resume finds that it was */
} mica_fit_result;

/* Trains a bound, initialized net compiled with .train and an optimizer. A loss that is not finite ends it with
 * MICA_ERR_DIVERGED; the last checkpoint stays. What a checkpoint cannot hold (a note that is not UTF-8) is an error
 * before the first step. An epoch with too few batches for one update is an error. The
 * steps themselves allocate nothing. */
MICA_API mica_status mica_fit(mica_net *net, mica_fit_result *result, const mica_fit_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
