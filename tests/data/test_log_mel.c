/* Log-mel features: librosa's numbers (tests/golden/make_golden_sound.py), streams, and memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden/golden.h"
#include "test.h"

TEST(log_mel_is_librosas)
{
    mica_context *ctx = test_context(1);
    golden_file file = golden_load("sound");
    CHECK(file.count == 3);
    for (size_t i = 0; i < file.count; i++) {
        const golden_case *c = &file.cases[i];
        mica_log_mel_opts opts = {.rate = (int32_t)golden_value(c, "rate", 0, 0),
                                  .window = (int32_t)golden_value(c, "window", 0, 0),
                                  .hop = (int32_t)golden_value(c, "hop", 0, 0),
                                  .mels = (int32_t)golden_value(c, "mels", 0, 0),
                                  .low = (float)golden_value(c, "low", 0, 0),
                                  .high = (float)golden_value(c, "high", 0, 0),
                                  .floor = (float)golden_value(c, "floor", 0, 0)};
        bool usual = strcmp(c->note, "default") == 0;
        mica_log_mel *m;
        mica_tensor y = golden_like(c, "y");
        if (!CHECK_OK(ctx, mica_log_mel_create(ctx, &m, usual ? NULL : &opts)))
            continue;
        mica_log_mel_opts settled = mica_log_mel_options(m);
        CHECK(memcmp(&settled, &opts, sizeof opts) == 0);
        CHECK_OK(ctx, mica_log_mel_all(ctx, &y, m, golden_find(c, "x")));
        golden_compare(c, "y", &y, 2e-5);
        golden_release(&y);
        mica_log_mel_destroy(ctx, m);
    }
    golden_free(&file);
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
}

/* In pieces of any length, with hops shorter and longer than the window, the frames are bit for bit the same. */
TEST(log_mel_streams_as_it_reads)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(5);
    for (int draw = 0; draw < 20; draw++) {
        mica_log_mel_opts opts = {
            .rate = 16000, .window = test_int(&r, 100, 600), .hop = test_int(&r, 1, 900), .mels = 8};
        enum { SAMPLES = 5000 };
        float x[SAMPLES], frame[8];
        for (int i = 0; i < SAMPLES; i++)
            x[i] = (float)test_normal(&r);
        mica_log_mel *m;
        REQUIRE(CHECK_OK(ctx, mica_log_mel_create(ctx, &m, &opts)));
        mica_index frames = mica_log_mel_frames(m, SAMPLES), got = 0;
        float *all = malloc((size_t)frames * 8 * sizeof *all);
        mica_tensor y = mica_2d(all, frames, 8), samples = mica_1d(x, SAMPLES);
        CHECK_OK(ctx, mica_log_mel_all(ctx, &y, m, &samples));
        test_heap before = test_heap_now();
        size_t used;
        (void)mica_log_mel_push(m, frame, x, 50, &used); /* of another stream */
        mica_log_mel_reset(m);
        for (size_t at = 0; at < SAMPLES;) {
            size_t piece = (size_t)test_int(&r, 0, 700);
            piece = piece < SAMPLES - at ? piece : SAMPLES - at;
            for (size_t done = 0; done < piece; done += used)
                if (mica_log_mel_push(m, frame, x + at + done, piece - done, &used) && got < frames)
                    CHECK(memcmp(frame, all + 8 * got++, sizeof frame) == 0);
            at += piece;
        }
        CHECK_MSG(got == frames, "%d of %d frames", (int)got, (int)frames);
        CHECK(!test_heap_counted() || test_heap_now().calls == before.calls);
        free(all);
        mica_log_mel_destroy(ctx, m);
    }
}

TEST(log_mel_in_the_callers_block)
{
    mica_context *ctx = test_context(1);
    static _Alignas(64) char block[16384];
    float silence[480] = {0}, frame[40];
    size_t bytes = 0;
    mica_log_mel *m = NULL;
    CHECK_OK(ctx, mica_log_mel_place(ctx, NULL, NULL, &bytes, NULL));
    CHECK_MSG(bytes > 8000 && bytes <= 12288, "%zu bytes", bytes);
    size_t needed = bytes, less = bytes - 1;
    CHECK(mica_log_mel_place(ctx, &m, block, &less, NULL) == MICA_ERR_MEMORY && less == needed && m == NULL);
    CHECK(strstr(mica_error(ctx), "memory error: log_mel: the block has ") != NULL);
    CHECK_ERROR(ctx, mica_log_mel_place(ctx, &m, block + 1, &needed, NULL), MICA_ERR_ARGUMENT,
                "argument error: log_mel: the block is not aligned to 64 bytes");
    block[needed] = 77;
    test_heap before = test_heap_now();
    REQUIRE(CHECK_OK(ctx, mica_log_mel_place(ctx, &m, block, &needed, NULL)));
    mica_log_mel_frame(m, frame, silence);
    CHECK(!test_heap_counted() || test_heap_now().calls == before.calls);
    for (int i = 0; i < 40; i++)
        CHECK(fabsf(frame[i] - logf(1e-6f)) < 1e-5f);
    CHECK(block[needed] == 77);
}

TEST(log_mel_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    mica_log_mel *m;
#define A "argument error: log_mel: "
    static const struct {
        mica_log_mel_opts opts;
        const char *error;
    } bad[] = {
        {{.rate = 10}, A "rate is 10: expected 1000 to 768000"},
        {{.window = 1}, A "window is 1: expected 2 to 65536"},
        {{.hop = -1}, A "hop is -1: expected 1 to 2.14748e+09"},
        {{.mels = 513}, A "mels is 513: expected 1 to 512"},
        {{.low = 9000}, A "low is 9000: expected 0 to 8000"},
        {{.high = 8001}, A "high is 8001: expected 20 to 8000"},
        {{.low = 500, .high = 400}, A "high is 400: expected 500 to 8000"},
        {{.floor = -1}, A "floor is -1: expected a number above 0"},
        {{.high = NAN}, A "high is nan: expected 20 to 8000"},
        {{.window = 64, .mels = 100},
         A
         "mel 0 of 100 has no frequency of the transform, which are 250 Hz apart: expected fewer mels or a longer "
         "window"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_ERROR(ctx, mica_log_mel_create(ctx, &m, &bad[i].opts), MICA_ERR_ARGUMENT, bad[i].error);
        CHECK(m == NULL);
    }
    CHECK_ERROR(ctx, mica_log_mel_create(ctx, NULL, NULL), MICA_ERR_ARGUMENT, A "out is NULL");
    REQUIRE(mica_log_mel_create(ctx, &m, NULL) == MICA_OK);
    float x[480] = {0}, y[80];
    mica_tensor samples = mica_1d(x, 480), dst = mica_2d(y, 2, 40);
    CHECK(mica_log_mel_all(ctx, &dst, m, &samples) == MICA_ERR_SHAPE);
    CHECK(mica_log_mel_frames(m, 479) == 0 && mica_log_mel_frames(m, 480) == 1 &&
          mica_log_mel_frames(m, 16000) == 49);
    mica_log_mel_destroy(ctx, m);
    mica_log_mel_destroy(ctx, NULL);
}
