/* Log-mel features: window, real Fourier transform, triangles on the mel scale, logarithm.
 *
 * All memory is one block: this struct, then its tables and buffers. The transform of N real numbers is one of N/2
 * complex numbers (even ones real, odd ones imaginary), taken apart afterwards. */
#include <math.h>
#include <string.h>

#include <mica/sound.h>

#include "base/context.h"
#include "base/size.h"
#include "ops/check.h"

#define PI          3.14159265358979323846
#define MOST_WINDOW 65536
#define MOST_MELS   512

/* The bins of one triangle: weights first .. first + count - 1 of all of them are for bins bin .. bin + count - 1. */
typedef struct triangle {
    int32_t bin, first, count;
} triangle;

struct mica_log_mel {
    mica_log_mel_opts opts;
    int32_t points; /* N of the transform: a power of two */
    float *window;  /* [opts.window] */
    float *turns;   /* [points]: cosine and sine of -2 pi k / points, k < points / 2 */
    triangle *triangles;
    float *weights;
    float *work;    /* [points + 2]: the transform, then powers */
    float *history; /* [opts.window]: samples pushed so far */
    int32_t held;   /* of these */
    int32_t passed; /* samples still to be passed over, where hop is longer than the window */
    size_t bytes;
};

/* ---- Options ---- */

static double mel_of(double hz) { return 2595 / log(10.0) * log(1 + hz / 700); }
static double hz_of(double mel) { return 700 * (exp(mel * log(10.0) / 2595) - 1); }

static mica_status refuse(mica_context *ctx, const char *name, double found, double least, double most)
{
    return mica_fail(ctx, MICA_ERR_ARGUMENT, "log_mel: %s is %g: expected %g to %g", name, found, least,
                     most);
}

static mica_status settle(mica_context *ctx, mica_log_mel_opts *o, const mica_log_mel_opts *given)
{
    *o = given != NULL ? *given : (mica_log_mel_opts){0};
    o->rate = o->rate != 0 ? o->rate : 16000;
    if (o->rate < MICA_SOUND_LEAST_RATE || o->rate > MICA_SOUND_MOST_RATE)
        return refuse(ctx, "rate", o->rate, MICA_SOUND_LEAST_RATE, MICA_SOUND_MOST_RATE);
    double nyquist = 0.5 * o->rate;
    o->window = o->window != 0 ? o->window : (int32_t)((int64_t)o->rate * 30 / 1000);
    o->hop = o->hop != 0 ? o->hop : (int32_t)((int64_t)o->rate * 20 / 1000);
    o->mels = o->mels != 0 ? o->mels : 40;
    o->low = o->low != 0.0f ? o->low : 20.0f;
    o->high = o->high != 0.0f ? o->high : (float)fmin(7600.0, 0.95 * nyquist);
    o->floor = o->floor != 0.0f ? o->floor : 1e-6f;
    if (o->window < 2 || o->window > MOST_WINDOW)
        return refuse(ctx, "window", o->window, 2, MOST_WINDOW);
    if (o->hop < 1)
        return refuse(ctx, "hop", o->hop, 1, INT32_MAX);
    if (o->mels < 1 || o->mels > MOST_MELS)
        return refuse(ctx, "mels", o->mels, 1, MOST_MELS);
    if (!(o->low >= 0.0f && (double)o->low < nyquist))
        return refuse(ctx, "low", (double)o->low, 0, nyquist);
    if (!(o->high > o->low && (double)o->high <= nyquist))
        return refuse(ctx, "high", (double)o->high, (double)o->low, nyquist);
    if (!(o->floor > 0.0f && isfinite(o->floor)))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "log_mel: floor is %g: expected a number above 0",
                         (double)o->floor);
    return MICA_OK;
}

/* ---- Tables ---- */

/* The weight of a bin in triangle `mel`: rises from one edge to the next, falls to the third. */
static double weight_of(const mica_log_mel *m, int mel, int bin)
{
    const mica_log_mel_opts *o = &m->opts;
    double low = mel_of((double)o->low), step = (mel_of((double)o->high) - low) / (o->mels + 1);
    double left = hz_of(low + mel * step), peak = hz_of(low + (mel + 1) * step),
           right = hz_of(low + (mel + 2) * step);
    double hz = (double)bin * o->rate / m->points;
    double weight = fmin((hz - left) / (peak - left), (right - hz) / (right - peak));
    return weight > 0 ? weight : 0;
}

/* Which bins each triangle has, and how many weights in all. `triangles` and `weights` may be NULL. -1 - mel: that one
 * has no bin. */
static int64_t lay_out(const mica_log_mel *m, triangle *triangles, float *weights)
{
    const mica_log_mel_opts *o = &m->opts;
    double low = mel_of((double)o->low), step = (mel_of((double)o->high) - low) / (o->mels + 1);
    int32_t used = 0;
    for (int mel = 0; mel < o->mels; mel++) {
        int bin = (int)(hz_of(low + mel * step) * m->points / o->rate), count = 0;
        /* the one on the edge weighs nothing, nor does its neighbour where it was rounded down */
        while (bin <= m->points / 2 && weight_of(m, mel, bin) <= 0 && count < 3)
            bin++, count++;
        count = 0;
        while (bin + count <= m->points / 2 && weight_of(m, mel, bin + count) > 0) {
            if (weights != NULL)
                weights[used + count] = (float)weight_of(m, mel, bin + count);
            count++;
        }
        if (count == 0)
            return -1 - mel;
        if (triangles != NULL)
            triangles[mel] = (triangle){bin, used, count};
        used += count;
    }
    return used;
}

static void fill_tables(mica_log_mel *m)
{
    for (int i = 0; i < m->opts.window; i++)
        m->window[i] = (float)(0.5 - 0.5 * cos(2 * PI * i / m->opts.window));
    for (int k = 0; k < m->points / 2; k++) {
        m->turns[2 * k] = (float)cos(-2 * PI * k / m->points);
        m->turns[2 * k + 1] = (float)sin(-2 * PI * k / m->points);
    }
    (void)lay_out(m, m->triangles, m->weights);
}

/* Hands out the next part of the block, or with NULL only counts. */
static void *part(char *block, size_t *used, size_t bytes)
{
    void *at = block != NULL ? block + *used : NULL;
    *used += mica_align_up(bytes);
    return at;
}

/* The places of everything in a block; how large it is. */
static size_t place_parts(mica_log_mel *m, void *block, int64_t weights)
{
    size_t used = 0, window = (size_t)m->opts.window, points = (size_t)m->points;
    (void)part(block, &used, sizeof *m);
    m->window = part(block, &used, window * sizeof(float));
    m->history = part(block, &used, window * sizeof(float));
    m->turns = part(block, &used, points * sizeof(float));
    m->work = part(block, &used, (points + 2) * sizeof(float));
    m->triangles = part(block, &used, (size_t)m->opts.mels * sizeof(triangle));
    m->weights = part(block, &used, (size_t)weights * sizeof(float));
    return used;
}

/* Everything but the block. */
static mica_status plan(mica_context *ctx, mica_log_mel *m, int64_t *weights, const mica_log_mel_opts *opts)
{
    *m = (mica_log_mel){.points = 4};
    MICA_TRY(settle(ctx, &m->opts, opts));
    while (m->points < m->opts.window)
        m->points *= 2;
    *weights = lay_out(m, NULL, NULL);
    if (*weights < 0)
        return mica_fail(
            ctx, MICA_ERR_ARGUMENT,
            "log_mel: mel %d of %d has no frequency of the transform, which are %g Hz apart: expected "
            "fewer mels or a longer window",
            (int)(-1 - *weights), (int)m->opts.mels, (double)m->opts.rate / m->points);
    m->bytes = place_parts(m, NULL, *weights);
    return MICA_OK;
}

static mica_log_mel *make_in(void *block, mica_log_mel *planned, int64_t weights)
{
    (void)place_parts(planned, block, weights);
    mica_log_mel *m = block;
    *m = *planned;
    fill_tables(m);
    return m;
}

mica_status mica_log_mel_place(mica_context *ctx, mica_log_mel **out, void *memory, size_t *bytes,
                               const mica_log_mel_opts *opts)
{
    mica_log_mel planned;
    int64_t weights;
    if (bytes == NULL || (memory != NULL && out == NULL))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "log_mel: %s is NULL", bytes == NULL ? "bytes" : "out");
    MICA_TRY(plan(ctx, &planned, &weights, opts));
    size_t given = *bytes;
    *bytes = planned.bytes;
    if (memory == NULL)
        return MICA_OK;
    *out = NULL;
    if ((uintptr_t)memory % MICA_ALIGN != 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "log_mel: the block is not aligned to %d bytes", MICA_ALIGN);
    if (given < planned.bytes)
        return mica_fail(ctx, MICA_ERR_MEMORY, "log_mel: the block has %zu bytes: expected %zu", given,
                         planned.bytes);
    *out = make_in(memory, &planned, weights);
    return MICA_OK;
}

mica_status mica_log_mel_create(mica_context *ctx, mica_log_mel **out, const mica_log_mel_opts *opts)
{
    mica_log_mel planned;
    int64_t weights;
    if (out == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "log_mel: out is NULL");
    *out = NULL;
    MICA_TRY(plan(ctx, &planned, &weights, opts));
    void *block = mica_allocate(ctx, planned.bytes);
    if (block == NULL)
        return ctx->status;
    *out = make_in(block, &planned, weights);
    return MICA_OK;
}

void mica_log_mel_destroy(mica_context *ctx, mica_log_mel *m)
{
    if (m != NULL)
        mica_release(ctx, m, m->bytes);
}

mica_log_mel_opts mica_log_mel_options(const mica_log_mel *m) { return m->opts; }

mica_index mica_log_mel_frames(const mica_log_mel *m, mica_index samples)
{
    return samples < m->opts.window ? 0 : 1 + (samples - m->opts.window) / m->opts.hop;
}

/* ---- The transform ---- */

/* Sorts complex numbers by their reversed index. */
static void reverse_order(float *z, int count)
{
    for (int i = 1, reversed = 0; i < count; i++) {
        int bit = count >> 1;
        for (; reversed & bit; bit >>= 1)
            reversed ^= bit;
        reversed |= bit;
        if (i < reversed) {
            float re = z[2 * i], im = z[2 * i + 1];
            z[2 * i] = z[2 * reversed];
            z[2 * i + 1] = z[2 * reversed + 1];
            z[2 * reversed] = re;
            z[2 * reversed + 1] = im;
        }
    }
}

/* z [count] complex, in place. turns are those of 2 * count points: every second one is count's. */
static void transform(float *z, const float *turns, int count)
{
    reverse_order(z, count);
    for (int half = 1; half < count; half *= 2) {
        int stride = 2 * (count / half); /* floats: 2 * (2 count) / (2 half) */
        for (int first = 0; first < count; first += 2 * half) {
            for (int k = 0; k < half; k++) {
                float c = turns[k * stride], s = turns[k * stride + 1];
                float *a = z + 2 * (first + k), *b = a + 2 * half;
                float re = c * b[0] - s * b[1], im = c * b[1] + s * b[0];
                b[0] = a[0] - re;
                b[1] = a[1] - im;
                a[0] += re;
                a[1] += im;
            }
        }
    }
}

/* The squared magnitudes of bins 0 to count of 2 * count real numbers, from the transform z of their pairs. In z. */
static void powers(float *z, const float *turns, int count)
{
    /* Bins k and count - k come from the same two numbers: each pair is made before it is overwritten. Powers are
     * first written in pairs (p, 0), then moved together. */
    float first = z[0] + z[1], last = z[0] - z[1];
    for (int k = 1; 2 * k <= count; k++) {
        float *a = z + 2 * k, *b = z + 2 * (count - k);
        float even_re = 0.5f * (a[0] + b[0]), even_im = 0.5f * (a[1] - b[1]);
        float odd_re = 0.5f * (a[1] + b[1]), odd_im = 0.5f * (b[0] - a[0]);
        float c = turns[2 * k], s = turns[2 * k + 1];
        float re = c * odd_re - s * odd_im, im = c * odd_im + s * odd_re;
        float high_re = even_re + re, high_im = even_im + im, low_re = even_re - re, low_im = even_im - im;
        a[0] = high_re * high_re + high_im * high_im;
        b[0] = k == count - k ? a[0] : low_re * low_re + low_im * low_im;
    }
    z[0] = first * first;
    for (int k = 1; k < count; k++)
        z[k] = z[2 * k];
    z[count] = last * last;
}

/* ---- Frames ---- */

void mica_log_mel_frame(mica_log_mel *m, float *frame, const float *samples)
{
    float *z = m->work;
    for (int i = 0; i < m->opts.window; i++)
        z[i] = m->window[i] * samples[i];
    memset(z + m->opts.window, 0, (size_t)(m->points - m->opts.window) * sizeof *z);
    transform(z, m->turns, m->points / 2);
    powers(z, m->turns, m->points / 2);
    for (int mel = 0; mel < m->opts.mels; mel++) {
        const triangle *t = &m->triangles[mel];
        const float *weights = m->weights + t->first, *power = z + t->bin;
        float energy = 0.0f;
        for (int k = 0; k < t->count; k++)
            energy += weights[k] * power[k];
        frame[mel] = logf(energy + m->opts.floor);
    }
}

bool mica_log_mel_push(mica_log_mel *m, float *frame, const float *samples, size_t count, size_t *used)
{
    const mica_log_mel_opts *o = &m->opts;
    size_t pass = mica_least((size_t)m->passed, count);
    size_t take = mica_least((size_t)(o->window - m->held), count - pass);
    m->passed -= (int32_t)pass;
    if (take > 0)
        memcpy(m->history + m->held, samples + pass, take * sizeof *samples);
    m->held += (int32_t)take;
    *used = pass + take;
    if (m->held < o->window)
        return false;
    mica_log_mel_frame(m, frame, m->history);
    m->held = o->hop < o->window ? o->window - o->hop : 0;
    m->passed = o->hop > o->window ? o->hop - o->window : 0;
    if (m->held > 0)
        memmove(m->history, m->history + o->hop, (size_t)m->held * sizeof *samples);
    return true;
}

void mica_log_mel_reset(mica_log_mel *m)
{
    m->held = 0;
    m->passed = 0;
}

mica_status mica_log_mel_all(mica_context *ctx, const mica_tensor *dst, mica_log_mel *m,
                             const mica_tensor *samples)
{
    static const char op[] = "log_mel";
    mica_arg args[] = {{"dst", dst, MICA_ARG_OUT, 0}, {"samples", samples, 0, 0}};
    if (m == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: m is NULL", op);
    MICA_TRY(mica_check_args(ctx, op, args, 2));
    MICA_TRY(mica_check_rank(ctx, op, "samples", samples, 1, 1));
    mica_index dims[] = {mica_log_mel_frames(m, samples->dim[0]), m->opts.mels};
    MICA_TRY(mica_check_shape(ctx, op, "dst", dst, 2, dims, "samples", samples));
    if (!mica_tensor_contiguous(dst) || !mica_tensor_contiguous(samples))
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: dst and samples must be contiguous", op);
    MICA_START(ctx, op, 0, NULL);
    for (mica_index t = 0; t < dims[0]; t++)
        mica_log_mel_frame(m, (float *)dst->data + t * dims[1],
                           (const float *)samples->data + t * m->opts.hop);
    return MICA_OK;
}
