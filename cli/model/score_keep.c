/* Samples that a score keeps to show. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/score_parts.h"
#include "cli/model/take.h"

/* Pictures are [1 or 3, H, W] or [H, W]. */
void find_picture(score *s, const mica_tensor *sample)
{
    enum { LEAST = 4, MOST = 512 };
    int rank = sample->rank;
    bool planes = rank == 3 && (sample->dim[0] == 1 || sample->dim[0] == 3);
    if (!planes && rank != 2)
        return;
    mica_index height = sample->dim[rank - 2], width = sample->dim[rank - 1];
    if (height < LEAST || height > MOST || width < LEAST || width > MOST)
        return;
    s->channels = planes ? (int)sample->dim[0] : 1;
    s->height = (int)height;
    s->width = (int)width;
}

/* A normalized sample [channels, H, W] as bytes [H, W, channels]. */
unsigned char *pixels_of(const score *s, const float *x, const normalization *n)
{
    if (s->width == 0 || x == NULL)
        return NULL;
    size_t plane = (size_t)s->width * (size_t)s->height;
    unsigned char *out = take(plane * (size_t)s->channels, 1);
    for (int c = 0; c < s->channels; c++) {
        mica_index at = n->channels > 1 ? c : 0;
        float deviation = n->channels > 0 ? n->deviation[at] : 1, mean = n->channels > 0 ? n->mean[at] : 0;
        for (size_t i = 0; i < plane; i++) {
            float value = (x[(size_t)c * plane + i] * deviation + mean) * 255;
            out[i * (size_t)s->channels + (size_t)c] = (unsigned char)(value < 0     ? 0
                                                                       : value > 255 ? 255
                                                                                     : value + 0.5f);
        }
    }
    return out;
}

/* The surest first; those without a probability last; else in their order. */
bool mistake_before(const scored_sample *a, const scored_sample *b)
{
    double p = isnan(a->probability) ? -1 : a->probability, q = isnan(b->probability) ? -1 : b->probability;
    return p > q || (p == q && a->number < b->number);
}

/* Puts a mistake where it belongs among the worst, if it does. */
void keep_mistake(score *s, scored_sample m, const float *x, const normalization *n)
{
    size_t at = s->worst_count;
    while (at > 0 && mistake_before(&m, &s->worst[at - 1]))
        at--;
    if (at == SCORE_MOST_MISTAKES)
        return;
    if (s->worst_count == SCORE_MOST_MISTAKES)
        free(s->worst[--s->worst_count].pixels);
    memmove(s->worst + at + 1, s->worst + at, (s->worst_count - at) * sizeof m);
    m.pixels = pixels_of(s, x, n);
    s->worst[at] = m;
    s->worst_count++;
}
