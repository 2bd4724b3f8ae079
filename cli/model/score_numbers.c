/* Scores of outputs that are numbers, and of those that are each a yes or no. */
#include <math.h>

#include "cli/model/score_parts.h"

/* The baseline's prediction of target i; NaN: unknown. */
static double baseline_of(const scoring *sc, mica_index i)
{
    const score_opts *o = sc->opts;
    if (sc->baseline != NULL)
        return in_unit(o->units, i, (double)sc->baseline[i]);
    bool known = o->units != NULL && i < o->units->count && o->units->mean != NULL;
    return known ? (double)o->units->mean[i] : (double)NAN;
}

/* A sample's place among the pairs; NULL: it is not kept. */
static report_pair *pairs_of(const score *s, mica_index number)
{
    if (s->pairs == NULL || number % s->pair_stride != 0 || number / s->pair_stride >= s->pair_samples)
        return NULL;
    return s->pairs + number / s->pair_stride * s->pair_targets;
}

void score_numbers(scoring *sc, tally *t, const mica_tensor *y, mica_index first, mica_index count)
{
    const score_opts *o = sc->opts;
    mica_index each = sc->k.targets_each;
    for (mica_index r = 0; r < count; r++) {
        report_pair *pairs = pairs_of(sc->s, first + r);
        if (sc->baseline != NULL)
            o->forecast->baseline(sc->baseline, sc->k.inputs + r * sc->k.elements, o->forecast->user);
        for (mica_index i = 0; i < each; i++) {
            report_pair p = {.truth = in_unit(o->units, i, (double)sc->k.numbers[r * each + i]),
                             .said = in_unit(o->units, i, (double)((const float *)y->data)[r * each + i]),
                             .baseline = baseline_of(sc, i)};
            error_sums_add(&t->each[sc->groups > 1 ? i : 0], p.truth, p.said, p.baseline);
            if (pairs != NULL && i < sc->s->pair_targets)
                pairs[i] = p;
        }
    }
}

void keep_ranked(scoring *sc, float value, bool yes)
{
    if (sc->ranked == NULL || sc->yes + sc->no == sc->room)
        return;
    sc->ranked[yes ? sc->yes++ : sc->room - ++sc->no] = value;
}

mica_index score_yes_no(scoring *sc, const mica_tensor *y, mica_index count)
{
    mica_index right = 0;
    float half = sc->info->logits ? 0 : 0.5f;
    for (mica_index i = 0; i < count * sc->k.targets_each; i++) {
        float value = ((const float *)y->data)[i];
        bool is = sc->k.numbers[i] >= 0.5f, said = value >= half;
        right += is == said;
        sc->s->confusion[2 * is + said]++;
        keep_ranked(sc, value, is);
    }
    return right;
}
