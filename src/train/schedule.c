/* Learning-rate schedules. */
#include <math.h>

#include <mica/train.h>

#define PI 3.14159265358979323846

/* From `high` to `low` along half a cosine, as `part` goes from 0 to 1. */
static double cosine(double high, double low, double part)
{
    return low + (high - low) * 0.5 * (1.0 + cos(PI * part));
}

/* PyTorch's OneCycleLR with its defaults: 30 % up, division factors 25 and 1e4, cosine both ways. */
static double one_cycle(const mica_schedule *s, uint64_t step)
{
    double start = s->lr / 25.0, end = start / 1e4;
    double rise = 0.3 * (double)s->total - 1.0, last = (double)s->total - 1.0, at = (double)step;
    if (at >= last)
        return end;
    return at <= rise ? cosine(start, s->lr, at / rise) : cosine(s->lr, end, (at - rise) / (last - rise));
}

float mica_schedule_lr(const mica_schedule *s, uint64_t step)
{
    if (s->kind == MICA_SCHEDULE_ONE_CYCLE)
        return (float)one_cycle(s, step);
    if (step < s->warmup)
        return (float)((double)s->lr * (double)(step + 1) / (double)(s->warmup + 1));
    double past = (double)(step - s->warmup);
    switch (s->kind) {
    case MICA_SCHEDULE_STEP:
        return (float)(s->lr * pow(s->gamma != 0.0f ? s->gamma : 0.1,
                                   s->period > 0 ? floor(past / (double)s->period) : 0.0));
    case MICA_SCHEDULE_EXPONENTIAL:
        return (float)(s->lr * pow(s->gamma != 0.0f ? s->gamma : 0.95, past));
    case MICA_SCHEDULE_COSINE:
        if (step >= s->total)
            return s->min_lr;
        return (float)cosine(s->lr, s->min_lr, past / (double)(s->total - s->warmup));
    default:
        return s->lr;
    }
}
