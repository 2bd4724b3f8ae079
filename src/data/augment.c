/* Augmentation: one geometric map for all channels, then noise. */
#include <mica/augment.h>

#include <math.h>

#include "base/context.h"
#include "base/philox.h"

/* Sides: coordinates in float are good to a sixteenth of a pixel. Elements: a sample's part of the stream has numbers
 * for twice as many. */
#define MOST_SIDE     ((mica_index)1 << 20)
#define MOST_ELEMENTS ((mica_index)1 << 31)
#define NOISE_FIRST   16u /* the first block of a sample's numbers for noise; those before are for geometry */

/* Where the pixel at (x, y) comes from: (xx * x + xy * y + x0, yx * x + yy * y + y0). */
typedef struct map {
    bool whole; /* x0 and y0 are whole, and the rest is 1, -1 or 0 */
    float xx, xy, x0, yx, yy, y0;
} map;

/* From -1 to 1. */
static float either_way(mica_random *r) { return 2 * mica_random_uniform(r) - 1; }

/* A whole number of pixels from -most to most. */
static float whole_shift(mica_random *r, float most)
{
    float u = mica_random_uniform(r), steps = 2 * floorf(most) + 1;
    return floorf(u * steps) - floorf(most);
}

/* Reads the same positions whatever is asked for, so that one option does not change what another draws. */
static map draw(const mica_augment *a, mica_random *r)
{
    bool mirrored = a->flip & (mica_random_uniform(r) < 0.5f);
    float shift_x = whole_shift(r, a->shift), shift_y = whole_shift(r, a->shift);
    float kept = 1 - a->crop * mica_random_uniform(r);
    float place_x = either_way(r), place_y = either_way(r), turn = either_way(r);
    float middle_x = (float)(a->width - 1) / 2, middle_y = (float)(a->height - 1) / 2;
    double angle = (double)(a->rotate * turn) * 3.14159265358979323846 / 180;
    float along = a->rotate > 0 ? (float)cos(angle) * kept : kept,
          across = a->rotate > 0 ? (float)sin(angle) * kept : 0;
    map m = {.whole = !(a->crop > 0) && !(a->rotate > 0)};
    m.xx = mirrored ? -along : along;
    m.yx = mirrored ? -across : across;
    m.xy = -across;
    m.yy = along;
    /* the middle goes to the middle, moved by the shift and by where the part that is kept lies */
    float to_x = middle_x + shift_x + place_x * (1 - kept) * middle_x,
          to_y = middle_y + shift_y + place_y * (1 - kept) * middle_y;
    m.x0 = to_x - m.xx * middle_x - m.xy * middle_y;
    m.y0 = to_y - m.yx * middle_x - m.yy * middle_y;
    return m;
}

static mica_index clamp_index(mica_index i, mica_index size) { return i < 0 ? 0 : i >= size ? size - 1 : i; }

static float clamp(float x, float most) { return x < 0 ? 0 : x > most ? most : x; }

/* Pixels as they are, elsewhere. */
static void move_whole(const mica_augment *a, const map *m, float *out, const float *row, mica_index channels)
{
    mica_index step = m->xx < 0 ? -1 : 1, x0 = (mica_index)m->x0, y0 = (mica_index)m->y0;
    for (mica_index c = 0; c < channels; c++, row += a->height * a->width) {
        for (mica_index y = 0; y < a->height; y++) {
            const float *from = row + clamp_index(y + y0, a->height) * a->width;
            for (mica_index x = 0; x < a->width; x++)
                *out++ = from[clamp_index(step * x + x0, a->width)];
        }
    }
}

/* The pixel at (y, x) of all channels, from the four around where it comes from. */
static void resample(const mica_augment *a, const map *m, float *out, const float *row, mica_index channels)
{
    mica_index plane = a->height * a->width;
    for (mica_index y = 0; y < a->height; y++) {
        for (mica_index x = 0; x < a->width; x++, out++) {
            float sx = clamp(m->xx * (float)x + m->xy * (float)y + m->x0, (float)(a->width - 1));
            float sy = clamp(m->yx * (float)x + m->yy * (float)y + m->y0, (float)(a->height - 1));
            mica_index left = (mica_index)sx, top = (mica_index)sy;
            mica_index right = left + (left < a->width - 1), down = top < a->height - 1 ? a->width : 0;
            float fx = sx - (float)left, fy = sy - (float)top;
            const float *upper = row + top * a->width, *lower = upper + down;
            for (mica_index c = 0; c < channels; c++, upper += plane, lower += plane) {
                float above = upper[left] + fx * (upper[right] - upper[left]);
                float below = lower[left] + fx * (lower[right] - lower[left]);
                out[c * plane] = above + fy * (below - above);
            }
        }
    }
}

/* The sum of the four bytes of a random word: a bell curve of mean 510 and deviation 147.8, in whole numbers, so that
 * it is the same everywhere. Four elements to a block. */
static void add_noise(const mica_augment *a, float *out, mica_index count, const mica_random *r)
{
    const uint32_t key[2] = {(uint32_t)r->seed, (uint32_t)(r->seed >> 32)};
    const float scale = a->noise * (a->range > 0 ? a->range : 255) /
                        147.80054f; /* sqrt(4 * (256^2 - 1) / 12) */
    for (mica_index i = 0; i < count;) {
        uint64_t block = r->position / 4 + NOISE_FIRST + (uint64_t)i / 4;
        const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)r->stream,
                                     (uint32_t)(r->stream >> 32)};
        uint32_t words[4];
        mica_philox(words, counter, key);
        for (int k = 0; k < 4 && i < count; k++, i++) {
            uint32_t w = words[k], pairs = (w & 0xff00ffu) + (w >> 8 & 0xff00ffu);
            out[i] += scale * (float)((int32_t)((pairs & 0xffffu) + (pairs >> 16)) - 510);
        }
    }
}

static void augment_row(const void *user, float *out, const float *row, mica_random random)
{
    const mica_augment *a = user;
    mica_index channels = a->channels > 0 ? a->channels : 1;
    mica_random start = random;
    map m = draw(a, &random);
    if (m.whole)
        move_whole(a, &m, out, row, channels);
    else
        resample(a, &m, out, row, channels);
    if (a->noise > 0)
        add_noise(a, out, channels * a->height * a->width, &start);
}

mica_status mica_augment_transform(mica_context *ctx, mica_transform *out, const mica_augment *a)
{
    static const char op[] = "augment";
    if (out == NULL || a == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is NULL", op, out == NULL ? "out" : "augment");
    mica_index channels = a->channels > 0 ? a->channels : 1;
    if (a->channels < 0 || a->height < 1 || a->width < 1 || a->height > MOST_SIDE || a->width > MOST_SIDE ||
        channels > MOST_ELEMENTS / (a->height * a->width))
        return mica_fail(ctx, MICA_ERR_SHAPE, "%s: pictures of [%td, %td, %td]: expected sides from 1 to %td",
                         op, a->channels, a->height, a->width, MOST_SIDE);
    const struct {
        const char *name;
        float value, most;
    } amounts[] = {{"shift", a->shift, (float)MOST_SIDE},
                   {"crop", a->crop, 0.99f},
                   {"rotate", a->rotate, 180.0f},
                   {"noise", a->noise, 1e6f},
                   {"range", a->range, 1e30f}};
    for (size_t i = 0; i < sizeof amounts / sizeof amounts[0]; i++)
        if (!(amounts[i].value >= 0 && amounts[i].value <= amounts[i].most))
            return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: %s is %g: expected 0 to %g", op, amounts[i].name,
                             (double)amounts[i].value, (double)amounts[i].most);
    mica_index elements = channels * a->height * a->width;
    *out = (mica_transform){.run = augment_row, .user = a, .elements = elements, .takes = elements};
    return MICA_OK;
}
