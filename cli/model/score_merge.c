/* One score of those that ranks have made of their batches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/score_parts.h"
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

/* The values that all ranks have ranked. Their order is that of ranks, which does not matter: they are sorted. */
static int gather_ranked(float *all, size_t *count, const verb *v, const float *own, size_t own_count)
{
    enum { PIECE = 4096 };
    size_t ranks = (size_t)ranks_count(), most = 0;
    uint64_t *counts = take(ranks, sizeof *counts), mine = own_count;
    float *pieces = take((ranks + 1) * PIECE, sizeof *pieces), *padded = pieces + ranks * PIECE;
    int code = ranks_gather(v, counts, &mine, sizeof mine);
    for (size_t rank = 0; rank < ranks && code == EXIT_OK; rank++)
        most = counts[rank] > most ? (size_t)counts[rank] : most;
    for (size_t at = 0; code == EXIT_OK && at < most; at += PIECE) {
        size_t left = own_count > at ? own_count - at : 0;
        memcpy(padded, own + (left > 0 ? at : 0), (left < PIECE ? left : PIECE) * sizeof *own);
        code = ranks_gather(v, pieces, padded, PIECE * sizeof *pieces);
        for (size_t rank = 0; rank < ranks && code == EXIT_OK; rank++) {
            size_t its = counts[rank] > at ? (size_t)counts[rank] - at : 0;
            its = its < PIECE ? its : PIECE;
            memcpy(all + *count, pieces + rank * PIECE, its * sizeof *all);
            *count += its;
        }
    }
    free(counts);
    free(pieces);
    return code;
}

/* Those of samples that are yes in front, the others behind them, without a gap. */
static int merge_ranked(scoring *sc)
{
    if (sc->ranked == NULL)
        return EXIT_OK;
    size_t all = 0;
    float *list = take(sc->room, sizeof *list);
    int code = gather_ranked(list, &all, sc->v, sc->ranked, sc->yes);
    size_t yes = all;
    if (code == EXIT_OK)
        code = gather_ranked(list, &all, sc->v, sc->ranked + sc->room - sc->no, sc->no);
    free(sc->ranked);
    sc->ranked = list;
    sc->yes = yes;
    sc->no = all - yes;
    sc->room = all;
    return code;
}

/* Each pair is one rank's. */
static int merge_pairs(const scoring *sc)
{
    enum { PIECE = 1024 };
    score *s = sc->s;
    size_t count = s->pairs != NULL ? (size_t)s->pair_samples * (size_t)s->pair_targets : 0,
           ranks = (size_t)ranks_count();
    report_pair *all = take(ranks * PIECE, sizeof *all);
    int code = EXIT_OK;
    for (size_t at = 0; code == EXIT_OK && at < count; at += PIECE) {
        size_t piece = count - at < PIECE ? count - at : PIECE;
        code = ranks_gather(sc->v, all, s->pairs + at, piece * sizeof *all);
        for (size_t i = 0; code == EXIT_OK && i < ranks * piece; i++)
            if (!isnan(all[i].truth))
                s->pairs[at + i % piece] = all[i];
    }
    free(all);
    return code;
}

int score_merge(scoring *sc)
{
    score *s = sc->s;
    const verb *v = sc->v;
    size_t show = sc->opts->show;
    int code = add_confusion(s, v);
    if (code == EXIT_OK)
        code = merge(s->worst, &s->worst_count, s, v, SCORE_MOST_MISTAKES, mistake_before);
    if (code == EXIT_OK)
        code = merge(s->first, &s->first_count, s, v, show < SCORE_MOST_MISTAKES ? show : SCORE_MOST_MISTAKES,
                     sample_before);
    if (code == EXIT_OK)
        code = merge_ranked(sc);
    return code == EXIT_OK ? merge_pairs(sc) : code;
}
