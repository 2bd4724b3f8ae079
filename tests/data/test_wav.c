/* WAV files: what other programs wrote, every way in which they may be wrong; and other rates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/sample.h"
#include "data/sound.h"
#include "io/scratch.h"
#include "oom.h"

#define E "format error: \"file\": byte "

static const char *wav_path(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/wav/%s.wav", MICA_TEST_DATA, name);
    return path;
}

/* As tests/data/wav/make.py says. */
static double expected(int i, int c) { return (double)(i * (c + 3) % 11 - 5) / 8; }

TEST(wav_reads_files_of_others)
{
    mica_context *ctx = test_context(1);
    static const struct {
        const char *name;
        int bits, channels, rate;
    } files[] = {{"pcm8", 8, 1, 8000},    {"pcm16", 16, 2, 16000},   {"pcm24", 24, 2, 48000},
                 {"pcm32", 32, 1, 44100}, {"float32", 32, 1, 22050}, {"float64", 64, 3, 96000}};
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        mica_sound s;
        if (!CHECK_OK(ctx, mica_sound_load_wav(ctx, &s, wav_path(files[f].name), NULL)))
            continue;
        CHECK(s.bits == files[f].bits && s.file_channels == files[f].channels && s.rate == files[f].rate);
        CHECK(s.floats == (files[f].name[0] == 'f') && s.file_frames == 9 && s.file_rate == s.rate);
        CHECK(s.samples.rank == 2 && s.samples.dim[0] == files[f].channels && s.samples.dim[1] == 9);
        for (int k = 0; k < 9 * files[f].channels; k++)
            CHECK((double)((float *)s.samples.data)[k] == expected(k % 9, k / 9));
        mica_sound_destroy(ctx, &s);
        mica_sound_destroy(ctx, &s);
        REQUIRE(mica_sound_load_wav(ctx, &s, wav_path(files[f].name), &(mica_wav_opts){.mono = true}) ==
                MICA_OK);
        CHECK(s.samples.dim[0] == 1 && s.file_channels == files[f].channels);
        for (int i = 0; i < 9; i++) {
            double mean = 0;
            for (int c = 0; c < files[f].channels; c++)
                mean += expected(i, c) / files[f].channels;
            CHECK(fabs((double)((float *)s.samples.data)[i] - mean) < 1e-7);
        }
        mica_sound_destroy(ctx, &s);
    }
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
}

/* ---- Files made here ---- */

typedef struct made {
    unsigned char bytes[400];
    size_t count;
} made;

static void put(made *m, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        m->bytes[m->count++] = (unsigned char)(value >> 8 * i);
}

static void name(made *m, const char *four)
{
    memcpy(m->bytes + m->count, four, 4);
    m->count += 4;
}

static void begin(made *m)
{
    *m = (made){.count = 0};
    name(m, "RIFF");
    put(m, 0, 4);
    name(m, "WAVE");
}

static void end(made *m)
{
    size_t count = m->count;
    m->count = 4;
    put(m, (uint32_t)count - 8, 4);
    m->count = count;
}

static void format(made *m, uint32_t kind, uint32_t channels, uint32_t rate, uint32_t bits)
{
    name(m, "fmt ");
    put(m, 16, 4);
    put(m, kind, 2);
    put(m, channels, 2);
    put(m, rate, 4);
    put(m, rate * channels * bits / 8, 4);
    put(m, channels * bits / 8, 2);
    put(m, bits, 2);
}

static void chunk(made *m, const char *four, const void *bytes, size_t count)
{
    name(m, four);
    put(m, (uint32_t)count, 4);
    memcpy(m->bytes + m->count, bytes, count);
    m->count += count + count % 2;
}

/* Through a copy of exactly its size, for the sanitizer. */
static mica_status read_made(mica_context *ctx, mica_sound *out, const void *bytes, size_t count)
{
    unsigned char *copy = malloc(count + 1);
    memcpy(copy + 1, bytes, count);
    mica_status status = mica_sound_from_memory(ctx, out, copy + 1, count, "file", NULL);
    free(copy);
    return status;
}

static const unsigned char six[] = {0, 0x40, 0, 0x80, 0xff, 0x7f};

TEST(wav_chunks_in_any_order)
{
    mica_context *ctx = test_context(1);
    for (int order = 0; order < 3; order++) {
        made m;
        mica_sound s;
        begin(&m);
        chunk(&m, "LIST", "odd", 3);
        if (order == 1)
            chunk(&m, "data", six, 6);
        format(&m, 1, 1, 16000, 16);
        chunk(&m, "JUNK", "", 0);
        if (order != 1)
            chunk(&m, "data", six, 6);
        if (order == 2)
            chunk(&m, "id3 ", "x", 1);
        end(&m);
        if (order == 2)
            m.bytes[m.count++] = 'z'; /* behind the RIFF's end */
        REQUIRE(CHECK_OK(ctx, read_made(ctx, &s, m.bytes, m.count)));
        const float *x = s.samples.data;
        CHECK(s.samples.dim[1] == 3 && x[0] == 0.5f && x[1] == -1.0f && x[2] == 32767.0f / 32768.0f);
        mica_sound_destroy(ctx, &s);
    }
}

static void extensible(made *m, uint32_t kind, uint32_t bits, uint32_t used)
{
    static const unsigned char rest[] = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};
    format(m, 0xfffe, 1, 16000, bits);
    m->bytes[m->count - 20] = 40;
    put(m, 22, 2);
    put(m, used, 2);
    put(m, 4, 4);
    put(m, kind, 2);
    memcpy(m->bytes + m->count, rest, sizeof rest);
    m->count += sizeof rest;
}

TEST(wav_extensible_and_streamed)
{
    mica_context *ctx = test_context(1);
    made m;
    mica_sound s;
    begin(&m);
    extensible(&m, 1, 24, 20); /* 20 bits in 24 */
    chunk(&m, "data", six, 6);
    end(&m);
    REQUIRE(CHECK_OK(ctx, read_made(ctx, &s, m.bytes, m.count)));
    CHECK(s.samples.dim[1] == 2 && s.bits == 24 && ((float *)s.samples.data)[0] == 16384.0f / 8388608.0f);
    mica_sound_destroy(ctx, &s);

    begin(&m);
    extensible(&m, 3, 32, 32);
    chunk(&m, "data", (float[]){-3.5f}, 4);
    end(&m);
    REQUIRE(CHECK_OK(ctx, read_made(ctx, &s, m.bytes, m.count)));
    CHECK(s.floats && ((float *)s.samples.data)[0] == -3.5f);
    mica_sound_destroy(ctx, &s);

    /* As a program writes that cannot go back: both sizes are 2^32 - 1. */
    begin(&m);
    format(&m, 1, 1, 16000, 16);
    chunk(&m, "data", six, 6);
    memset(m.bytes + 4, 0xff, 4);
    memset(m.bytes + m.count - 10, 0xff, 4);
    REQUIRE(CHECK_OK(ctx, read_made(ctx, &s, m.bytes, m.count)));
    CHECK(s.samples.dim[1] == 3);
    mica_sound_destroy(ctx, &s);
}

TEST(wav_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    static const struct {
        int kind, channels, rate, bits, at, value; /* byte `at` of the whole file is set to value; -1: none */
        const char *error;
    } bad[] = {
        {1, 1, 16000, 16, 0, 'X', E "0: wav: expected \"RIFF\", a size and \"WAVE\""},
        {1, 1, 16000, 16, 3, 'X', E "0: wav: RIFX and RF64 are not supported, expected RIFF"},
        {6, 1, 16000, 8, -1, 0, E "20: wav: format 6, expected 1 (PCM) or 3 (floats): convert it first"},
        {1, 0, 16000, 16, -1, 0, E "22: wav: channels: 0, expected 1 to 64"},
        {1, 65, 16000, 8, -1, 0, E "22: wav: channels: 65, expected 1 to 64"},
        {1, 1, 999, 16, -1, 0, E "24: wav: a rate of 999, expected 1000 to 768000 Hz"},
        {1, 1, 16000, 12, -1, 0, E "34: wav: bits of a PCM sample: 12, expected 8, 16, 24 or 32"},
        {3, 1, 16000, 16, -1, 0, E "34: wav: bits of a floating-point sample: 16, expected 32 or 64"},
        {1, 1, 16000, 16, 32, 3, E "32: wav: bytes of a frame: 3, expected as channels and bits make it"},
        {1, 1, 16000, 16, 16, 15, E "16: wav: a \"fmt \" chunk of bytes: 15, expected 16 or more"},
        {0xfffe, 1, 16000, 16, -1, 0,
         E "16: wav: an extensible \"fmt \" chunk of bytes: 16, expected 40 or more"},
        {1, 1, 16000, 16, 36, 'X', E "50: wav: no \"data\" chunk"},
        {1, 1, 16000, 16, 12, 'X', E "50: wav: no \"fmt \" chunk"},
        {1, 1, 16000, 16, 40, 7, E "40: wav: a chunk of bytes: 7, expected no more than are left"},
        {1, 2, 16000, 16, -1, 0, E "44: wav: 6 bytes of data, expected a multiple of the 4 of a frame"},
        {1, 1, 16000, 16, 4, 43, E "4: wav: the file has 50 bytes, 1 short of its RIFF size"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        made m;
        mica_sound s;
        begin(&m);
        format(&m, (uint32_t)bad[i].kind, (uint32_t)bad[i].channels, (uint32_t)bad[i].rate,
               (uint32_t)bad[i].bits);
        chunk(&m, "data", six, 6);
        end(&m);
        if (bad[i].at >= 0)
            m.bytes[bad[i].at] = (unsigned char)bad[i].value;
        CHECK_ERROR(ctx, read_made(ctx, &s, m.bytes, m.count), MICA_ERR_FORMAT, bad[i].error);
        CHECK(s.samples.data == NULL);
    }
    made m;
    mica_sound s;
    begin(&m);
    format(&m, 1, 1, 16000, 16);
    chunk(&m, "data", six, 6);
    chunk(&m, "data", six, 6);
    end(&m);
    CHECK_ERROR(ctx, read_made(ctx, &s, m.bytes, m.count), MICA_ERR_FORMAT,
                E "50: wav: a second \"data\" chunk");
    begin(&m);
    format(&m, 3, 1, 16000, 32);
    chunk(&m, "data", (float[]){1.0f, NAN}, 8);
    end(&m);
    CHECK_ERROR(ctx, read_made(ctx, &s, m.bytes, m.count), MICA_ERR_FORMAT,
                E "48: wav: a sample that is not finite");
    CHECK_ERROR(ctx, mica_sound_from_memory(ctx, &s, m.bytes, m.count, "file", &(mica_wav_opts){.rate = 1}),
                MICA_ERR_ARGUMENT, "argument error: wav: a rate of 1: expected 1000 to 768000");
}

/* Cut anywhere it is an error; with any bit turned, an error or a sound. */
TEST(wav_mutations_give_clean_errors)
{
    mica_context *ctx = test_context(1);
    static const char *const names[] = {"pcm8", "pcm24", "float64"};
    for (size_t f = 0; f < 3; f++) {
        size_t count;
        unsigned char *bytes = scratch_read(wav_path(names[f]), &count);
        REQUIRE(bytes != NULL);
        for (size_t n = 0; n < count; n++) {
            mica_sound s;
            CHECK(read_made(ctx, &s, bytes, n) == MICA_ERR_FORMAT && s.samples.data == NULL);
        }
        for (size_t bit = 0; bit < 8 * count; bit++) {
            mica_sound s;
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            mica_status status = read_made(ctx, &s, bytes, count);
            CHECK(status == MICA_OK || status == MICA_ERR_FORMAT);
            CHECK((status == MICA_OK) == (s.samples.data != NULL));
            mica_sound_destroy(ctx, &s);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        free(bytes);
    }
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
}

static mica_status oom_work(const mica_allocator *allocator, void *argument)
{
    (void)argument;
    mica_context *ctx = NULL;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    mica_sound s = {0};
    if (status == MICA_OK)
        status = mica_sound_load_wav(ctx, &s, wav_path("pcm24"), &(mica_wav_opts){.rate = 16000});
    mica_sound_destroy(ctx, &s);
    mica_context_destroy(ctx);
    return status;
}

TEST(wav_out_of_memory) { CHECK(test_oom(oom_work, NULL) >= 4); }

/* ---- Other rates ---- */

/* Resamples a tone; away from the ends, its size and how far it is from the same tone at the new rate. */
static void resample_tone(mica_context *ctx, double hz, int from, int to, double *size, double *error)
{
    enum { FRAMES = 12000 };
    int64_t count = mica_resampled_frames(FRAMES, from, to);
    float *x = malloc(FRAMES * sizeof *x), *y = malloc((size_t)count * sizeof *y);
    for (int i = 0; i < FRAMES; i++)
        x[i] = (float)sin(6.283185307179586 * hz * i / from);
    mica_tensor a = mica_1d(x, FRAMES), b = mica_1d(y, (mica_index)count);
    CHECK_OK(ctx, mica_resample(ctx, &b, &a, from, to));
    *size = *error = 0;
    for (int64_t i = count / 4; i < count * 3 / 4; i++) {
        *size = fmax(*size, fabs((double)y[i]));
        *error = fmax(*error, fabs((double)y[i] - sin(6.283185307179586 * hz * (double)i / to)));
    }
    free(x);
    free(y);
}

TEST(resampling_keeps_what_fits_and_removes_the_rest)
{
    mica_context *ctx = test_context(1);
    static const int rates[][2] = {{44100, 16000}, {48000, 16000}, {8000, 16000}, {16000, 44100},
                                   {22050, 16000}, {16000, 15999}, {44100, 44101}};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        int from = rates[i][0], to = rates[i][1];
        double nyquist = 0.5 * (from < to ? from : to), size, error;
        for (int part = 1; part <= 9; part += 4) {
            resample_tone(ctx, nyquist * part / 10, from, to, &size, &error);
            CHECK_MSG(error < 1.15e-3, "%d to %d Hz: a tone at 0.%d of the band is %g off", from, to, part,
                      error);
        }
        if (from > to + to / 4) {
            resample_tone(ctx, nyquist * 1.001, from, to, &size, &error);
            CHECK_MSG(size < 5.6e-5, "%d to %d Hz: %g of a tone above the band is left", from, to, size);
            resample_tone(ctx, nyquist * 1.2, from, to, &size, &error);
            CHECK_MSG(size < 5.6e-5, "%d to %d Hz: %g of a tone above the band is left", from, to, size);
        }
    }
}

TEST(resampling_counts_and_refusals)
{
    mica_context *ctx = test_context(1);
    CHECK(mica_resampled_frames(44100, 44100, 16000) == 16000 && mica_resampled_frames(1, 44100, 16000) == 1);
    CHECK(mica_resampled_frames(0, 44100, 16000) == 0 && mica_resampled_frames(3, 48000, 16000) == 1);
    CHECK(mica_resampled_frames(INT64_MAX, 1000, 768000) == INT64_MAX);
    float x[4] = {1, 1, 1, 1}, y[4];
    mica_tensor a = mica_1d(x, 4), b = mica_1d(y, 4);
    CHECK_OK(ctx, mica_resample(ctx, &b, &a, 16000, 16000));
    CHECK(memcmp(x, y, sizeof x) == 0);
    CHECK_ERROR(ctx, mica_resample(ctx, &b, &a, 16000, 8000), MICA_ERR_SHAPE,
                "shape error: resample: dst has 4 samples, expected 2; both contiguous");
    CHECK_ERROR(ctx, mica_resample(ctx, &b, &a, 16000, 0), MICA_ERR_ARGUMENT,
                "argument error: resample: to is 0: expected 1000 to 768000");
}

TEST(wav_is_resampled)
{
    mica_context *ctx = test_context(1);
    mica_sound s;
    REQUIRE(CHECK_OK(ctx, mica_sound_load_wav(ctx, &s, wav_path("pcm24"), &(mica_wav_opts){.rate = 16000})));
    CHECK(s.rate == 16000 && s.file_rate == 48000 && s.file_frames == 9 && s.samples.dim[0] == 2 &&
          s.samples.dim[1] == 3);
    mica_sound_destroy(ctx, &s);
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
}
