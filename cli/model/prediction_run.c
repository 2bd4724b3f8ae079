/* What mica run says of its inputs: batches are run by all ranks in turn, and rank 0 prints. */
#include "cli/model/prediction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/answer.h"
#include "cli/model/match.h"
#include "cli/model/same.h"
#include "cli/model/score.h"
#include "cli/model/take.h"
#include "cli/ranks.h"

#define DEFAULT_TOP 3 /* classes that are printed, where nothing else is asked for */

static answer_style style_of(const prediction *p)
{
    bool all = p->set->top < 0 && p->set->shared.json && !p->is_text;
    return (answer_style){.to = p->to,
                          .json = p->set->shared.json,
                          .top = all               ? INT64_MAX
                                 : p->set->top < 0 ? DEFAULT_TOP
                                                   : p->set->top,
                          .ctx = p->ctx,
                          .info = &p->info,
                          .meaning = &p->saved.meaning,
                          .paths = p->ids != NULL ? p->ids : p->images.paths,
                          .path_key = p->ids != NULL ? "id" : "file"};
}

int prediction_run_text(prediction *p)
{
    const char *name;
    mica_tensor x, y, window = p->text.tokens;
    mica_index tokens = window.dim[0], length = p->info.length < tokens ? p->info.length : tokens;
    if (tokens == 0)
        return verb_error(&verb_run, EXIT_FILE, "the text is empty");
    window.data = (char *)window.data + (size_t)(tokens - length) * mica_dtype_bytes(window.dtype);
    window.rank = 2;
    window.dim[0] = 1;
    window.dim[1] = length;
    window.stride[0] = length;
    window.stride[1] = 1;
    float *scratch = take((size_t)p->info.classes, sizeof *scratch);
    answer_style to = style_of(p);
    mica_status status = mica_net_set_size(p->net, "length", length);
    if (status == MICA_OK)
        status = mica_net_input_tensor(p->net, &name, &x, 0);
    if (status == MICA_OK)
        status = mica_copy(p->ctx, &x, &window);
    if (status == MICA_OK)
        status = mica_net_forward(p->net);
    if (status == MICA_OK)
        status = net_output(&y, p->net, &p->info, 1);
    if (status == MICA_OK)
        answer_row(&to, 0, (const float *)y.data + mica_tensor_count(&y) - (size_t)p->info.classes,
                   p->info.classes, scratch);
    free(scratch);
    return status == MICA_OK ? EXIT_OK : verb_failed(&verb_run, p->ctx);
}

/* The batch that was begun, with so many inputs, numbered from `first` on. */
static mica_status run_batch(prediction *p, const mica_batches *batches, mica_index first, mica_index count,
                             float *scratch)
{
    mica_tensor x, y;
    mica_status status = mica_net_resize(p->net, count);
    if (status == MICA_OK)
        status = mica_net_tensor(p->net, &x, p->info.input);
    if (status == MICA_OK)
        status = mica_batches_rows(p->ctx, &x, NULL, 0, count, batches);
    if (status == MICA_OK)
        status = mica_net_forward(p->net);
    if (status == MICA_OK)
        status = net_output(&y, p->net, &p->info, count);
    /* Classes of each place of an input, where it has several, are a line each. */
    mica_index each = status == MICA_OK ? (mica_index)mica_tensor_count(&y) / count : 0;
    mica_index row = p->info.task == MICA_TASK_CLASSES ? p->info.classes : each;
    answer_style to = style_of(p);
    for (mica_index i = 0; status == MICA_OK && i < count; i++)
        for (mica_index at = i * each; at < (i + 1) * each; at += row)
            answer_row(&to, first + i, (const float *)y.data + at, row, scratch);
    return status;
}

/* Some batches for each rank, and what came of them. Several, as ranks wait for each other at the end of a turn. */
#define TURN_BATCHES 8
typedef struct turn {
    int32_t code;
    bool ended;     /* no batch is left: on all ranks alike */
    bool refused;   /* nobody takes what rank 0 prints */
    uint64_t bytes; /* of answers that rank 0 is to print */
} turn;

/* How many: where there are few batches, all ranks get some. */
static int turn_batches(const mica_batches *batches)
{
    mica_index ranks = ranks_count(), each = (mica_batches_count(batches) + ranks - 1) / ranks;
    if (ranks == 1)
        return 1; /* what is answered is soon seen */
    return each > TURN_BATCHES ? TURN_BATCHES : each > 0 ? (int)each : 1;
}

/* Own batches of a turn, printed to p->to. *number is that of the first input that is left. */
static turn run_turn(prediction *p, mica_batches *batches, mica_index *number, float *scratch)
{
    int each = turn_batches(batches), all = each * ranks_count();
    turn t = {.refused = output_failed()};
    mica_status status = MICA_OK;
    for (int i = 0; i < all && status == MICA_OK && !t.ended && !t.refused; i++) {
        mica_index count = 0;
        status = mica_batches_begin(p->ctx, &count, batches);
        t.ended = count == 0;
        if (status == MICA_OK && !t.ended && rank_of_batch(p->net, i / each) == ranks_rank())
            status = run_batch(p, batches, *number, count, scratch);
        *number += count;
    }
    t.code = status == MICA_OK ? EXIT_OK : verb_failed(&verb_run, p->ctx);
    return t;
}

/* Rank 0 prints what all have answered, in their order, up to the first that failed. *goes_on is the same on all. */
static int end_turn(const turn *own, const char *answers, bool *goes_on)
{
    size_t ranks = (size_t)ranks_count(), most = 0;
    turn *all = take(ranks, sizeof *all);
    int code = ranks_gather(&verb_run, all, own, sizeof *own);
    for (size_t i = 0; i < ranks && code == EXIT_OK; i++)
        most = all[i].bytes > most ? (size_t)all[i].bytes : most;
    char *texts = take(ranks + 1, most), *padded = texts + ranks * most;
    if (own->bytes > 0 && most > 0)
        memcpy(padded, answers, (size_t)own->bytes);
    if (code == EXIT_OK && most > 0)
        code = ranks_gather(&verb_run, texts, padded, most);
    *goes_on = code == EXIT_OK && !all[0].ended && !all[0].refused;
    bool failed = code != EXIT_OK || all[0].refused;
    for (size_t i = 0; i < ranks && !failed; i++) {
        if (ranks_rank() == 0)
            (void)fwrite(texts + i * most, 1, (size_t)all[i].bytes, stdout);
        failed = all[i].code != EXIT_OK;
    }
    *goes_on = *goes_on && !failed;
    free(texts);
    free(all);
    return code != EXIT_OK ? code : own->code;
}

static int run_batches(prediction *p, mica_batches *batches, float *scratch)
{
    bool alone = ranks_count() == 1, goes_on = true;
    mica_index number = 0;
    int code = EXIT_OK;
    while (goes_on && code == EXIT_OK) {
        char *answers = NULL;
        size_t bytes = 0;
        turn own = {.code = EXIT_FAILED};
        p->to = alone ? stdout : open_memstream(&answers, &bytes);
        if (p->to != NULL)
            own = run_turn(p, batches, &number, scratch);
        if (p->to == NULL || (!alone && fclose(p->to) != 0))
            own.code = verb_error(&verb_run, EXIT_FAILED, "out of memory for the answers");
        own.bytes = answers != NULL ? bytes : 0;
        code = end_turn(&own, answers, &goes_on);
        free(answers);
    }
    return code;
}

int prediction_run_samples(prediction *p)
{
    const normalization *n = &p->saved.meaning.normalization;
    mica_batches_opts opts = {.batch = (mica_index)p->set->batch,
                              .sequential = true,
                              .scale = n->scale,
                              .mean = n->mean,
                              .deviation = n->deviation,
                              .channels = n->channels};
    mica_batches *batches;
    mica_tensor y;
    mica_status status = mica_batches_create(p->ctx, &batches, &p->inputs, &opts);
    if (status == MICA_OK)
        status = mica_net_tensor(p->net, &y, p->info.output);
    int code = ranks_agree(status == MICA_OK ? EXIT_OK : verb_failed(&verb_run, p->ctx));
    if (code == EXIT_OK) {
        float *scratch = take(mica_tensor_count(&y), sizeof *scratch);
        code = run_batches(p, batches, scratch);
        free(scratch);
    }
    mica_batches_destroy(p->ctx, batches);
    return code;
}
