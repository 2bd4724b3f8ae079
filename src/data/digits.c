/* Synthetic digits: pen strokes, each sample in its own handwriting.
 *
 * A sample is a function of the seed and its number. Only +, -, *, / and sqrt are used, which IEEE 754 defines exactly,
 * so a sample is the same on every machine. */
#include <math.h>
#include <string.h>

#include <mica/data.h>

#include "base/parallel.h"
#include "data/streams.h"

enum { SIDE = MICA_DIGITS_SIDE, PIXELS = SIDE * SIDE, SAMPLES_PER_BLOCK = 16 };

/* ---- How digits are written ---- */

/* Paths as in SVG, in a box of 100 by 100 with y downwards: M moves the pen, L draws a line, Q a quadratic Bezier
 * curve by its control point and its end. Several ways to write each. */
#define MOST_FORMS 3
static const char *const forms[10][MOST_FORMS] = {
    {"M50 0 Q100 0 100 50 Q100 100 50 100 Q0 100 0 50 Q0 0 50 0",
     "M65 2 Q10 0 4 55 Q5 100 50 100 Q98 98 96 48 Q92 2 40 4"},
    {"M50 0 L50 100", "M22 28 Q45 18 55 0 L55 100", "M25 26 L52 0 L52 100 M25 100 L80 100"},
    {"M6 26 Q10 0 50 0 Q98 2 90 36 Q82 58 2 100 L98 98",
     "M8 18 Q40 -8 72 8 Q102 32 60 66 Q20 104 6 92 Q0 76 30 82 Q60 100 98 94"},
    {"M6 12 Q30 -4 56 0 Q98 6 86 30 Q74 48 36 48 Q106 50 94 78 Q76 110 2 90",
     "M6 2 L90 0 L42 40 Q104 40 94 74 Q78 112 4 92"},
    {"M18 0 Q14 36 4 60 L96 58 M70 24 L64 100", "M70 100 L70 0 L2 68 L100 68"},
    {"M90 2 L18 0 L12 44 Q96 24 92 70 Q78 114 2 92", "M16 2 L10 46 Q92 30 90 70 Q76 112 4 90 M16 2 L88 4"},
    {"M76 0 Q4 26 4 70 Q10 104 54 98 Q102 90 90 62 Q66 38 8 66",
     "M42 0 Q6 48 8 78 Q22 106 58 98 Q94 86 84 64 Q58 44 12 76"},
    {"M2 2 L96 0 L42 100", "M2 6 Q50 10 96 0 Q60 50 48 100", "M4 2 L94 0 L40 100 M26 50 L82 48"},
    {"M50 0 Q94 0 88 25 Q80 48 50 48 Q14 48 12 24 Q8 0 50 0 "
     "M50 48 Q102 50 98 75 Q92 100 50 100 Q6 100 2 75 Q0 50 50 48",
     "M86 16 Q56 -16 20 10 Q0 34 50 48 Q110 64 86 90 Q50 112 12 90 Q-10 62 50 46 Q90 30 86 16"},
    {"M90 24 Q84 0 46 0 Q2 4 6 32 Q14 58 54 52 Q84 46 92 14 L82 100",
     "M86 10 Q40 -12 12 20 Q-2 52 42 54 Q84 46 88 12 Q100 84 24 100"},
};

/* ---- Randomness ---- */

/* In [low, high). */
static float between(mica_random *r, float low, float high)
{
    return low + (high - low) * mica_random_uniform(r);
}

/* Around 0, most within +-0.5, all within +-1.5. */
static float bell(mica_random *r)
{
    float sum = mica_random_uniform(r);
    sum += mica_random_uniform(r);
    return sum + mica_random_uniform(r) - 1.5f;
}

/* ---- Drawing ---- */

typedef struct point {
    float x, y;
} point;

/* How this sample is written: where a point of the box goes, and with what pen. */
typedef struct hand {
    float xx, xy, yx, yy; /* x' = xx x + xy y, about the middle of the box */
    point middle;         /* in pixels */
    float radius;         /* of the pen */
    float shake;          /* how far points stray, in units of the box */
} hand;

static hand choose_hand(mica_random *r)
{
    float width = between(r, 8.0f, 18.0f), height = between(r, 13.0f, 22.0f); /* in pixels */
    float slant = between(r, -0.5f, 0.6f);
    float half = bell(r) * 0.2f; /* the tangent of half the angle of rotation */
    float cosine = (1 - half * half) / (1 + half * half), sine = 2 * half / (1 + half * half);
    float sx = width / 100, sy = height / 100, shear = -slant * sy;
    hand h = {.xx = cosine * sx,
              .xy = cosine * shear - sine * sy,
              .yx = sine * sx,
              .yy = sine * shear + cosine * sy};
    h.middle.x = SIDE / 2.0f + bell(r) * 3.0f;
    h.middle.y = SIDE / 2.0f + bell(r) * 3.0f;
    h.radius = between(r, 0.55f, 1.75f);
    h.shake = between(r, 2.0f, 12.0f);
    return h;
}

/* A point of the box, in pixels, a little beside where it should be. */
static point place(const hand *h, mica_random *r, float x, float y)
{
    x += bell(r) * h->shake - 50;
    y += bell(r) * h->shake - 50;
    return (point){h->middle.x + h->xx * x + h->xy * y, h->middle.y + h->yx * x + h->yy * y};
}

static float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

/* The first pixel that a stroke up to `reach` around x may touch, or the last. */
static int pixel(float x) { return (int)clamp(x, 0, SIDE - 1); }

/* Ink along a line: full within the pen's radius, fading over one pixel. */
static void draw_line(float *ink, point a, point b, float radius)
{
    float dx = b.x - a.x, dy = b.y - a.y, length2 = dx * dx + dy * dy, reach = radius + 1;
    int left = pixel((a.x < b.x ? a.x : b.x) - reach), right = pixel((a.x > b.x ? a.x : b.x) + reach);
    int top = pixel((a.y < b.y ? a.y : b.y) - reach), bottom = pixel((a.y > b.y ? a.y : b.y) + reach);
    for (int y = top; y <= bottom; y++) {
        for (int x = left; x <= right; x++) {
            float px = (float)x + 0.5f - a.x, py = (float)y + 0.5f - a.y;
            float along = length2 > 0 ? clamp((px * dx + py * dy) / length2, 0, 1) : 0; /* nearest point */
            float ex = px - along * dx, ey = py - along * dy;
            float cover = clamp(radius + 0.5f - sqrtf(ex * ex + ey * ey), 0, 1);
            ink[y * SIDE + x] = cover > ink[y * SIDE + x] ? cover : ink[y * SIDE + x];
        }
    }
}

static void draw_curve(float *ink, point a, point control, point b, float radius)
{
    enum { LINES = 7 };
    point from = a;
    for (int i = 1; i <= LINES; i++) {
        float t = (float)i / LINES, u = 1 - t;
        point to = {u * u * a.x + 2 * u * t * control.x + t * t * b.x,
                    u * u * a.y + 2 * u * t * control.y + t * t * b.y};
        draw_line(ink, from, to, radius);
        from = to;
    }
}

/* A whole number of a path, which is one of ours and well formed. */
static float read_number(const char **path)
{
    while (**path == ' ')
        ++*path;
    bool negative = **path == '-';
    int value = 0;
    for (*path += negative; **path >= '0' && **path <= '9'; ++*path)
        value = 10 * value + (**path - '0');
    return (float)(negative ? -value : value);
}

static point read_point(const char **path, const hand *h, mica_random *r)
{
    float x = read_number(path), y = read_number(path);
    return place(h, r, x, y);
}

static void draw_path(float *ink, const char *path, const hand *h, mica_random *r)
{
    point pen = {0, 0};
    while (*path != '\0') {
        char command = *path++;
        point control = pen;
        if (command == 'Q')
            control = read_point(&path, h, r);
        point to = read_point(&path, h, r);
        if (command == 'Q')
            draw_curve(ink, pen, control, to, h->radius);
        else if (command == 'L')
            draw_line(ink, pen, to, h->radius);
        pen = to;
        path += *path == ' ';
    }
}

/* ---- Paper ---- */

/* A dash that is none of the digit's, as dirt or a neighbour leave it; on one sample in four. */
static void add_dash(float *ink, mica_random *r)
{
    if (mica_random_below(r, 4) != 0)
        return;
    point a = {between(r, 0, SIDE), between(r, 0, SIDE)};
    point b = {a.x + bell(r) * 6, a.y + bell(r) * 6};
    draw_line(ink, a, b, between(r, 0.1f, 0.8f));
}

/* From ink to bytes: a pen that is more or less black, paper that is more or less clean. */
static void develop(uint8_t *image, const float *ink, mica_random *r)
{
    float black = between(r, 130, 255), grain = between(r, 0, 70);
    for (int i = 0; i < PIXELS; i += 2) {
        uint32_t bits = mica_random_bits(r);
        for (int k = 0; k < 2; k++, bits >>= 16) {
            float noise = (float)(bits & 0xffff) / 65536.0f -
                          0.4f; /* mostly ink, as scanners clip the paper */
            image[i + k] = (uint8_t)clamp(ink[i + k] * black + noise * grain, 0, 255);
        }
    }
}

typedef struct drawing {
    uint8_t *images, *labels;
    mica_index count;
    uint64_t seed, first;
} drawing;

static void draw_sample(const drawing *d, mica_index i)
{
    mica_random r = mica_random_stream(d->seed, MICA_STREAM_DIGITS + d->first + (uint64_t)i);
    int digit = (int)mica_random_below(&r, 10), count = 0;
    while (count < MOST_FORMS && forms[digit][count] != NULL)
        count++;
    const char *form = forms[digit][mica_random_below(&r, (uint64_t)count)];
    float ink[PIXELS] = {0};
    hand h = choose_hand(&r);
    draw_path(ink, form, &h, &r);
    add_dash(ink, &r);
    develop(d->images + i * PIXELS, ink, &r);
    d->labels[i] = (uint8_t)digit;
}

static void draw_block(void *work, size_t block, int thread)
{
    (void)thread;
    const drawing *d = work;
    mica_index i = (mica_index)block * SAMPLES_PER_BLOCK, end = i + SAMPLES_PER_BLOCK;
    for (; i < end && i < d->count; i++)
        draw_sample(d, i);
}

mica_status mica_dataset_digits(mica_context *ctx, mica_dataset *out, const mica_digits_opts *opts)
{
    static const char op[] = "dataset_digits";
    mica_digits_opts o = opts != NULL ? *opts : (mica_digits_opts){0};
    if (out == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: out is NULL", op);
    *out = (mica_dataset){0};
    if (o.count < 0 || o.count > PTRDIFF_MAX / PIXELS)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: count is %td", op, o.count);
    mica_index count = o.count > 0 ? o.count : 1000;
    mica_dataset set = {
        .count = count, .has_targets = true, .owned = {(size_t)count * PIXELS, (size_t)count}};
    drawing d = {.count = count, .seed = o.seed, .first = o.first};
    d.images = mica_allocate(ctx, set.owned[0]);
    if (d.images == NULL)
        return ctx->status;
    d.labels = mica_allocate(ctx, set.owned[1]);
    if (d.labels == NULL) {
        mica_release(ctx, d.images, set.owned[0]);
        return ctx->status;
    }
    MICA_TRY(mica_tensor_init(ctx, &set.inputs, d.images, MICA_U8, 3, (mica_index[]){count, SIDE, SIDE}));
    MICA_TRY(mica_tensor_init(ctx, &set.targets, d.labels, MICA_U8, 1, (mica_index[]){count}));
    mica_parallel(ctx, mica_div_up((size_t)count, SAMPLES_PER_BLOCK), draw_block, &d);
    *out = set;
    return MICA_OK;
}
