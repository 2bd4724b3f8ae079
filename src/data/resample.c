/* Samples at another rate: a windowed sinc.
 *
 * Output i stands at the input's time i * from / to. Its neighbours there are weighed with a sinc that passes what
 * is below the lower Nyquist frequency, times a Kaiser window. With from and to reduced by their greatest common
 * divisor, only `to` different fractions of an input sample occur: each has a row of weights. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include <mica/sound.h>

#include "base/context.h"
#include "base/size.h"
#include "ops/check.h"

#define PI 3.14159265358979323846

#define CROSSINGS 64    /* of zero, to each side */
#define CUTOFF    0.953 /* the middle of the slope, of the lower Nyquist frequency: the slope ends at 1 */
#define BETA      9.0   /* of the window: what is above the slope is some 90 dB down */
#define MOST_ROWS ((size_t)8 << 20) /* bytes; with more, rows are made as they come */

/* The modified Bessel function of order 0, by its series. */
static double bessel(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; k < 60 && term > 1e-17 * sum; k++) {
        term *= x / (2 * k) * (x / (2 * k));
        sum += term;
    }
    return sum;
}

typedef struct filter {
    int64_t from, to; /* reduced */
    double band;      /* the lower rate, of the input's: 1 or less */
    double reach;     /* input samples to each side */
    int64_t taps;
} filter;

static filter filter_of(int32_t from, int32_t to)
{
    int64_t divisor = mica_common_divisor(from, to);
    assert(from > 0 && to > 0);
    filter f = {.from = from / divisor, .to = to / divisor};
    f.band = to < from ? (double)to / from : 1;
    f.reach = CROSSINGS / (CUTOFF * f.band);
    f.taps = 2 * (int64_t)ceil(f.reach);
    return f;
}

/* The input samples around a point that is phase / to behind sample s: s - taps / 2 + 1 to s + taps / 2. They add up to
 * 1, so that a constant stays one. */
static void make_row(float *row, const filter *f, int64_t phase)
{
    double sum = 0, fraction = (double)phase / (double)f->to, top = bessel(BETA);
    int64_t before = f->taps / 2 - 1;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t k = 0; k < f->taps; k++) {
            double at = (double)(k - before) - fraction, part = at / f->reach;
            double angle = PI * CUTOFF * f->band * at;
            double window = fabs(part) < 1 ? bessel(BETA * sqrt(1 - part * part)) / top : 0;
            double value = window * (fabs(angle) < 1e-9 ? 1 : sin(angle) / angle);
            if (pass == 0)
                sum += value;
            else
                row[k] = (float)(value / sum);
        }
    }
}

int64_t mica_resampled_frames(int64_t frames, int32_t from, int32_t to)
{
    if (frames <= 0 || from <= 0 || to <= 0)
        return 0;
    filter f = filter_of(from, to);
    /* ceil(frames * to / from), without a product that overflows. */
    int64_t whole = frames / f.from, rest = frames % f.from;
    if (whole > (INT64_MAX - f.to) / f.to)
        return INT64_MAX;
    return whole * f.to + (rest * f.to + f.from - 1) / f.from;
}

static float weigh(const float *row, const filter *f, const float *x, int64_t count, int64_t sample)
{
    int64_t first = sample - f->taps / 2 + 1;
    int64_t low = first < 0 ? -first : 0, high = first + f->taps > count ? count - first : f->taps;
    double sum = 0;
    for (int64_t k = low; k < high; k++)
        sum += (double)row[k] * (double)x[first + k];
    return (float)sum;
}

static mica_status check(mica_context *ctx, const char *op, const mica_tensor *dst, const mica_tensor *src,
                         int32_t from, int32_t to)
{
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"src", src, 0, MICA_DTYPE_BIT(MICA_F32)}};
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(mica_check_rank(ctx, op, "dst", dst, 1, 1));
    MICA_TRY(mica_check_rank(ctx, op, "src", src, 1, 1));
    const int32_t rates[] = {from, to};
    for (int i = 0; i < 2; i++)
        if (rates[i] < MICA_SOUND_LEAST_RATE || rates[i] > MICA_SOUND_MOST_RATE)
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is %d: expected %d to %d", op,
                             i == 0 ? "from" : "to", (int)rates[i], MICA_SOUND_LEAST_RATE,
                             MICA_SOUND_MOST_RATE);
    if (dst->dim[0] != mica_resampled_frames(src->dim[0], from, to) || !mica_tensor_contiguous(dst) ||
        !mica_tensor_contiguous(src))
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: dst has %td samples, expected %lld; both contiguous", op,
                         dst->dim[0], (long long)mica_resampled_frames(src->dim[0], from, to));
    return MICA_OK;
}

mica_status mica_resample(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src, int32_t from,
                          int32_t to)
{
    static const char op[] = "resample";
    MICA_TRY(check(ctx, op, dst, src, from, to));
    MICA_START(ctx, op, 0, NULL);
    if (from == to || dst->dim[0] == 0) {
        if (dst->dim[0] > 0)
            memmove(dst->data, src->data, mica_tensor_bytes(src));
        return MICA_OK;
    }
    filter f = filter_of(from, to);
    size_t row_bytes = (size_t)f.taps * sizeof(float);
    bool all = (size_t)f.to <= MOST_ROWS / row_bytes && f.to < dst->dim[0];
    size_t bytes = all ? (size_t)f.to * row_bytes : row_bytes;
    float *rows = mica_allocate(ctx, bytes), *y = dst->data;
    if (rows == NULL)
        return ctx->status;
    for (int64_t phase = 0; all && phase < f.to; phase++)
        make_row(rows + phase * f.taps, &f, phase);
    int64_t sample = 0, phase = 0;
    for (mica_index i = 0; i < dst->dim[0]; i++) {
        if (!all)
            make_row(rows, &f, phase);
        y[i] = weigh(all ? rows + phase * f.taps : rows, &f, src->data, src->dim[0], sample);
        phase += f.from;
        sample += phase / f.to;
        phase %= f.to;
    }
    mica_release(ctx, rows, bytes);
    return MICA_OK;
}
