/* One score of those that ranks have made of their batches. */
#include <stdlib.h>
#include <string.h>

#include "cli/model/score.h"
#include "cli/model/take.h"
#include "cli/ranks.h"

/* The confusion table, some of it at a time: that of a thousand classes is large, and all ranks' would be larger. */
static int add_confusion(score *s, const verb *v)
{
    enum { PIECE = 4096 };
    size_t count = s->confusion != NULL ? (size_t)s->classes * (size_t)s->classes : 0,
           ranks = (size_t)ranks_count();
    uint64_t *all = take(ranks * PIECE, sizeof *all);
    int code = EXIT_OK;
    for (size_t at = 0; code == EXIT_OK && at < count; at += PIECE) {
        size_t piece = count - at < PIECE ? count - at : PIECE;
        code = ranks_gather(v, all, s->confusion + at, piece * sizeof *all);
        for (size_t i = 0; code == EXIT_OK && i < piece; i++) {
            s->confusion[at + i] = 0;
            for (size_t rank = 0; rank < ranks; rank++)
                s->confusion[at + i] += all[rank * piece + i];
        }
    }
    free(all);
    return code;
}

static bool sample_before(const scored_sample *a, const scored_sample *b) { return a->number < b->number; }

/* The samples that a rank has kept, in order. */
typedef struct kept_list {
    scored_sample list[SCORE_MOST_MISTAKES];
    size_t count, taken;
} kept_list;

/* The rank whose next sample comes before those of the others; -1: none has one left. */
static int next_of(const kept_list *all, bool (*before)(const scored_sample *, const scored_sample *))
{
    int best = -1;
    for (int rank = 0; rank < ranks_count(); rank++)
        if (all[rank].taken < all[rank].count &&
            (best < 0 || before(&all[rank].list[all[rank].taken], &all[best].list[all[best].taken])))
            best = rank;
    return best;
}

/* The first `most` of all ranks' lists. Pictures follow one by one: those of all that was kept would be many. */
static int merge(scored_sample *samples, size_t *count, const score *s, const verb *v, size_t most,
                 bool (*before)(const scored_sample *, const scored_sample *))
{
    size_t ranks = (size_t)ranks_count(), bytes = (size_t)s->width * (size_t)s->height * (size_t)s->channels;
    kept_list *all = take(ranks + 1, sizeof *all), *own = &all[ranks];
    unsigned char *pictures = take(ranks + 1, bytes), *blank = pictures + ranks * bytes;
    memcpy(own->list, samples, *count * sizeof *samples);
    own->count = *count;
    *count = 0;
    int code = ranks_gather(v, all, own, sizeof *own), rank;
    while (code == EXIT_OK && *count < most && (rank = next_of(all, before)) >= 0) {
        size_t number = all[rank].taken++;
        scored_sample next = all[rank].list[number];
        bool has_picture = next.pixels != NULL; /* where it is, is another process's affair */
        next.pixels = NULL;
        if (has_picture) {
            code = ranks_gather(v, pictures, rank == ranks_rank() ? own->list[number].pixels : blank, bytes);
            next.pixels = memcpy(take(bytes, 1), pictures + (size_t)rank * bytes, bytes);
        }
        samples[(*count)++] = next;
    }
    for (size_t i = 0; i < own->count; i++)
        free(own->list[i].pixels);
    free(all);
    free(pictures);
    return code;
}

int score_merge(score *s, const verb *v, size_t show)
{
    int code = add_confusion(s, v);
    if (code == EXIT_OK)
        code = merge(s->worst, &s->worst_count, s, v, SCORE_MOST_MISTAKES, mistake_before);
    if (code == EXIT_OK)
        code = merge(s->first, &s->first_count, s, v, show < SCORE_MOST_MISTAKES ? show : SCORE_MOST_MISTAKES,
                     sample_before);
    return code;
}
