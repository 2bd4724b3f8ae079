/* Folders of WAV files as data sets. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/sounds.h"
#include "io/scratch.h"
#include "oom.h"
#include "test.h"

/* A mono file of 16 bits: a ramp of `frames` samples, i / 256. */
static void write_wav(const char *path, int rate, int frames)
{
    unsigned char bytes[44 + 2 * 600] = "RIFF....WAVEfmt \x10\0\0\0\1\0\1\0........\2\0\x10\0data";
    const struct {
        size_t at;
        uint32_t value;
    } numbers[] = {{4, 36 + 2 * (uint32_t)frames},
                   {24, (uint32_t)rate},
                   {28, 2 * (uint32_t)rate},
                   {40, 2 * (uint32_t)frames}};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 4; k++)
            bytes[numbers[i].at + k] = (unsigned char)(numbers[i].value >> 8 * k);
    for (int i = 0; i < frames; i++) {
        int value = i % 256 * 128;
        bytes[44 + 2 * i] = (unsigned char)value;
        bytes[45 + 2 * i] = (unsigned char)(value >> 8);
    }
    scratch_write(path, bytes, 44 + 2 * (size_t)frames);
}

static void make(scratch *s)
{
    *s = scratch_make();
    CHECK(mkdir(scratch_path(s, "yes"), 0777) == 0 && mkdir(scratch_path(s, "no"), 0777) == 0);
    write_wav(scratch_path(s, "yes/long.wav"), 16000, 600);
    write_wav(scratch_path(s, "yes/short.wav"), 16000, 100);
    write_wav(scratch_path(s, "no/other.WAV"), 8000, 300);
}

static void clear(const scratch *s)
{
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", s->folder);
    CHECK(system(command) == 0);
}

TEST(sounds_of_a_folder)
{
    mica_context *ctx = test_context(1);
    scratch s;
    make(&s);
    mica_dataset set;
    mica_sounds_opts opts = {.seconds = 0.025, .samples = true};
    REQUIRE(CHECK_OK(ctx, mica_dataset_load_sounds(ctx, &set, s.folder, &opts)));
    CHECK(set.count == 3 && set.inputs.rank == 3 && set.inputs.dim[1] == 1 && set.inputs.dim[2] == 400);
    CHECK(set.class_count == 2 && strcmp(set.classes[0], "no") == 0 && strcmp(set.classes[1], "yes") == 0);
    CHECK(memcmp(set.targets.data, (int32_t[]){0, 1, 1}, 12) == 0);
    const float *x = set.inputs.data;
    CHECK(x[400 + 399] == 143.0f / 256.0f);                                               /* cut */
    CHECK(x[800 + 99] == 99.0f / 256.0f && x[800 + 100] == 0.0f && x[800 + 399] == 0.0f); /* padded */
    CHECK(fabsf(x[200] - 100.0f / 256.0f) < 0.02f); /* at twice its rate */
    mica_dataset_destroy(ctx, &set);

    /* Log-mel features are those of the same samples. */
    opts = (mica_sounds_opts){.seconds = 0.05, .log_mel = {.mels = 10}};
    REQUIRE(CHECK_OK(ctx, mica_dataset_load_sounds(ctx, &set, s.folder, &opts)));
    CHECK(set.inputs.rank == 4 && set.inputs.dim[2] == 2 && set.inputs.dim[3] == 10);
    mica_sound sound;
    mica_log_mel *m;
    float frame[10];
    REQUIRE(mica_sound_load_wav(ctx, &sound, scratch_path(&s, "yes/long.wav"), NULL) == MICA_OK);
    REQUIRE(mica_log_mel_create(ctx, &m, &opts.log_mel) == MICA_OK);
    mica_log_mel_frame(m, frame, sound.samples.data);
    CHECK(memcmp(frame, (float *)set.inputs.data + 20, sizeof frame) == 0);
    mica_log_mel_destroy(ctx, m);
    mica_sound_destroy(ctx, &sound);
    mica_dataset_destroy(ctx, &set);
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
    clear(&s);
}

TEST(sounds_say_what_is_wrong)
{
    mica_context *ctx = test_context(1);
    scratch s;
    make(&s);
    mica_dataset set;
    static const struct {
        mica_sounds_opts opts;
        const char *error;
    } bad[] = {
        {{.rate = 5}, "sounds: rate is 5: expected 1000 to 768000"},
        {{.seconds = -1}, "sounds: seconds is -1: expected one sample to an hour"},
        {{.seconds = NAN}, "sounds: seconds is nan: expected one sample to an hour"},
        {{.seconds = 3601}, "sounds: seconds is 3601: expected one sample to an hour"},
        {{.seconds = 0.01}, "sounds: 0.01 seconds are 160 samples: expected at least a window of 480"},
        {{.log_mel = {.mels = 600}}, "log_mel: mels is 600: expected 1 to 512"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(mica_dataset_load_sounds(ctx, &set, s.folder, &bad[i].opts) == MICA_ERR_ARGUMENT);
        CHECK_MSG(strstr(mica_error(ctx), bad[i].error) != NULL, "%s", mica_error(ctx));
        CHECK(set.inputs.data == NULL);
    }
    scratch_write(scratch_path(&s, "yes/bad.wav"), "RIFF", 4);
    CHECK(mica_dataset_load_sounds(ctx, &set, s.folder, NULL) == MICA_ERR_FORMAT);
    CHECK(strstr(mica_error(ctx), "yes/bad.wav") != NULL);
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
    clear(&s);
}

static mica_status oom_work(const mica_allocator *allocator, void *argument)
{
    mica_context *ctx = NULL;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    mica_dataset set = {0};
    if (status == MICA_OK)
        status = mica_dataset_load_sounds(ctx, &set, argument, &(mica_sounds_opts){.seconds = 0.05});
    mica_dataset_destroy(ctx, &set);
    mica_context_destroy(ctx);
    return status;
}

TEST(sounds_out_of_memory)
{
    scratch s;
    make(&s);
    CHECK(test_oom(oom_work, s.folder) >= 8);
    clear(&s);
}
