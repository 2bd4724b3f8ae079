/* Augmentation: what each option does to a picture, and the same bits however it is asked for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { H = 6, W = 8, PIXELS = H * W, CHANNELS = 3, ELEMENTS = CHANNELS * PIXELS };

/* One sample through a transform, with a stream of its own. */
static void augment_one(mica_context *ctx, float *out, const float *row, const mica_augment *a,
                        uint64_t stream)
{
    mica_transform t = {0};
    if (CHECK_OK(ctx, mica_augment_transform(ctx, &t, a)))
        t.run(t.user, out, row, mica_random_stream(5, stream));
}

static void number_pixels(float *row)
{
    for (int i = 0; i < ELEMENTS; i++)
        row[i] = (float)i;
}

/* The pixel at (y, x), or the nearest to it. */
static float near_pixel(const float *row, int c, int y, int x)
{
    y = y < 0 ? 0 : y >= H ? H - 1 : y;
    x = x < 0 ? 0 : x >= W ? W - 1 : x;
    return row[c * PIXELS + y * W + x];
}

static bool moved(const float *out, const float *row, bool mirrored, int dy, int dx)
{
    for (int i = 0; i < ELEMENTS; i++) {
        int c = i / PIXELS, y = i % PIXELS / W, x = i % W;
        if (out[i] != near_pixel(row, c, y + dy, (mirrored ? W - 1 - x : x) + dx))
            return false;
    }
    return true;
}

TEST(augment_flips_and_shifts_whole_pixels)
{
    mica_context *ctx = test_context(1);
    float row[ELEMENTS], out[ELEMENTS];
    number_pixels(row);
    mica_augment a = {.channels = CHANNELS, .height = H, .width = W, .flip = true, .shift = 2};
    int seen[2][5][5] = {{{0}}};
    for (uint64_t stream = 0; stream < 2000; stream++) {
        int found = 0;
        augment_one(ctx, out, row, &a, stream);
        for (int i = 0; i < 50; i++) {
            if (moved(out, row, i >= 25, i % 25 / 5 - 2, i % 5 - 2)) {
                seen[i / 25][i % 25 / 5][i % 5]++;
                found++;
            }
        }
        CHECK(found == 1);
    }
    for (int i = 0; i < 50; i++) /* each is as likely as another: 40 of 2000 */
        CHECK_MSG(seen[i / 25][i % 25 / 5][i % 5] > 10, "shift %d, %d was drawn %d times", i % 25 / 5 - 2,
                  i % 5 - 2, seen[i / 25][i % 25 / 5][i % 5]);
    a = (mica_augment){.channels = CHANNELS, .height = H, .width = W};
    augment_one(ctx, out, row, &a, 3);
    CHECK(memcmp(out, row, sizeof out) == 0); /* nothing asked for */
}

/* On a slope, a turned picture is the slope turned: what comes out tells where each pixel came from. */
TEST(augment_turns_and_crops)
{
    mica_context *ctx = test_context(1);
    enum { SIDE = 33 };
    static float row[2 * SIDE * SIDE], out[2 * SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) {
        int x = i % SIDE, y = i / SIDE;
        row[i] = (float)x;
        row[SIDE * SIDE + i] = (float)y;
    }
    mica_augment a = {.channels = 2, .height = SIDE, .width = SIDE, .rotate = 20};
    double least = 1, most = -1;
    for (uint64_t stream = 0; stream < 200; stream++) {
        augment_one(ctx, out, row, &a, stream);
        const float *xs = out, *ys = out + SIDE * SIDE;
        int middle = SIDE / 2 * SIDE + SIDE / 2;
        CHECK(fabsf(xs[middle] - 16) < 1e-3f && fabsf(ys[middle] - 16) < 1e-3f);
        double dx = (double)(xs[middle + 5] - xs[middle]) / 5, dy = (double)(ys[middle + 5] - ys[middle]) / 5;
        CHECK_MSG(fabs(dx * dx + dy * dy - 1) < 1e-3, "lengths are kept: %g", dx * dx + dy * dy);
        least = fmin(least, atan2(dy, dx) * 180 / 3.14159265);
        most = fmax(most, atan2(dy, dx) * 180 / 3.14159265);
    }
    CHECK_MSG(least >= -20.01 && least < -18 && most <= 20.01 && most > 18, "from %g to %g degrees", least,
              most);

    a = (mica_augment){.channels = 2, .height = SIDE, .width = SIDE, .crop = 0.25f};
    double smallest = 2;
    for (uint64_t stream = 0; stream < 200; stream++) {
        augment_one(ctx, out, row, &a, stream);
        double left = (double)out[0], right = (double)out[SIDE - 1];
        double kept = (right - left) / (SIDE - 1);
        CHECK(left >= -1e-3 && right <= SIDE - 1 + 1e-3 && kept <= 1.0001 && kept >= 0.7499);
        smallest = fmin(smallest, kept);
    }
    CHECK_MSG(smallest < 0.77, "%g", smallest);
}

TEST(augment_noise_has_its_deviation)
{
    mica_context *ctx = test_context(1);
    enum { SIDE = 128 };
    static float row[SIDE * SIDE], out[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++)
        row[i] = 100;
    mica_augment a = {.height = SIDE, .width = SIDE, .noise = 0.1f};
    augment_one(ctx, out, row, &a, 1);
    double sum = 0, squares = 0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        sum += (double)out[i] - 100;
        squares += ((double)out[i] - 100) * ((double)out[i] - 100);
    }
    double mean = sum / (SIDE * SIDE), deviation = sqrt(squares / (SIDE * SIDE) - mean * mean);
    CHECK_MSG(fabs(mean) < 0.8 && fabs(deviation - 25.5) < 0.5, "mean %g, deviation %g", mean, deviation);
    /* geometry is drawn elsewhere: noise does not change it */
    mica_augment shifted = {.height = SIDE, .width = SIDE, .shift = 9}, both = shifted;
    both.noise = 1e-6f;
    static float other[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++)
        row[i] = (float)i;
    augment_one(ctx, out, row, &shifted, 2);
    augment_one(ctx, other, row, &both, 2);
    double worst = 0;
    for (int i = 0; i < SIDE * SIDE; i++)
        worst = fmax(worst, fabs((double)(out[i] - other[i])));
    CHECK_MSG(worst < 0.01, "%g", worst);
}

/* ---- In batches ---- */

enum { N = 40, BATCH = 16 };

/* Three epochs into out [3 * N, ELEMENTS], from a cursor on; returns the rows. */
static int gather(int threads, const mica_augment *a, float *out, mica_cursor cursor)
{
    mica_context *ctx = test_context(threads);
    static unsigned char pixels[N * ELEMENTS];
    for (int i = 0; i < N * ELEMENTS; i++)
        pixels[i] = (unsigned char)(i * 7);
    mica_tensor inputs;
    mica_dataset set;
    mica_batches *batches;
    CHECK_OK(ctx, mica_tensor_init(ctx, &inputs, pixels, MICA_U8, 4, (mica_index[]){N, CHANNELS, H, W}));
    CHECK_OK(ctx, mica_dataset_over(ctx, &set, &inputs, NULL));
    mica_batches_opts opts = {.batch = BATCH, .seed = 9, .scale = 1 / 255.0f};
    CHECK_OK(ctx, mica_augment_transform(ctx, &opts.transform, a));
    if (!CHECK_OK(ctx, mica_batches_create(ctx, &batches, &set, &opts)))
        return 0;
    CHECK_OK(ctx, mica_batches_seek(ctx, batches, cursor));
    int rows = 0;
    uint64_t calls = test_heap_now().calls;
    for (int epochs = (int)cursor.epoch; epochs < 3;) {
        mica_index n = 0;
        mica_tensor x = mica_4d(out + (size_t)rows * ELEMENTS, BATCH, CHANNELS, H, W);
        CHECK_OK(ctx, mica_batches_next(ctx, &x, NULL, &n, batches));
        rows += (int)n;
        epochs += n == 0;
    }
    CHECK(test_heap_now().calls == calls);
    mica_batches_destroy(ctx, batches);
    return rows;
}

TEST(augment_same_bits_for_any_threads_and_cursor)
{
    static float one[(3 * N + BATCH) * ELEMENTS], many[(3 * N + BATCH) * ELEMENTS];
    mica_augment a = {.channels = CHANNELS,
                      .height = H,
                      .width = W,
                      .flip = true,
                      .shift = 2,
                      .crop = 0.2f,
                      .rotate = 15,
                      .noise = 0.05f};
    REQUIRE(gather(1, &a, one, (mica_cursor){0}) == 3 * N);
    REQUIRE(gather(3, &a, many, (mica_cursor){0}) == 3 * N);
    CHECK(memcmp(one, many, 3 * N * ELEMENTS * sizeof(float)) == 0);
    CHECK(memcmp(one, one + (size_t)N * ELEMENTS, N * ELEMENTS * sizeof(float)) !=
          0); /* another epoch, other draws */
    int rows = gather(2, &a, many, (mica_cursor){.epoch = 1, .position = BATCH});
    CHECK(rows == 2 * N - BATCH);
    CHECK(memcmp(one + (size_t)(N + BATCH) * ELEMENTS, many, (size_t)rows * ELEMENTS * sizeof(float)) == 0);
}

TEST(augment_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    mica_transform t;
    mica_augment a = {.height = 8, .width = 8, .crop = 1};
    CHECK_ERROR(ctx, mica_augment_transform(ctx, &t, &a), MICA_ERR_ARGUMENT,
                "argument error: augment: crop is 1: expected 0 to 0.99");
    a = (mica_augment){.height = 8, .width = 8, .rotate = -1};
    CHECK_ERROR(ctx, mica_augment_transform(ctx, &t, &a), MICA_ERR_ARGUMENT,
                "argument error: augment: rotate is -1: expected 0 to 180");
    a = (mica_augment){.height = 8, .width = 8, .noise = NAN};
    CHECK(mica_augment_transform(ctx, &t, &a) == MICA_ERR_ARGUMENT);
    a = (mica_augment){.height = 8};
    CHECK_ERROR(ctx, mica_augment_transform(ctx, &t, &a), MICA_ERR_SHAPE,
                "shape error: augment: pictures of [0, 8, 0]: expected sides from 1 to 1048576");
    CHECK(mica_augment_transform(ctx, NULL, &a) == MICA_ERR_ARGUMENT);
}
