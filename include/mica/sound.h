/* Sound: WAV files, other sample rates, and the log-mel features that keyword nets take.
 *
 *     mica_sound sound;
 *     mica_sound_load_wav(ctx, &sound, "yes.wav", &(mica_wav_opts){.rate = 16000, .mono = true});
 *
 *     mica_log_mel *features;                                  // tables and buffers, once
 *     mica_log_mel_create(ctx, &features, NULL);               // or _place, in a block of yours
 *     while (callback_gets(samples, count))                    // allocates nothing, takes no lock
 *             for (size_t at = 0, used; at < count; at += used)
 *                     if (mica_log_mel_push(features, frame, samples + at, count - at, &used))
 *                             use(frame);                      // 40 numbers every 20 ms
 */
#ifndef MICA_SOUND_H
#define MICA_SOUND_H

#include <mica/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Sounds ------------------------------------------------------------------------------------------ */

/* A value: read its fields freely. */
typedef struct mica_sound {
    mica_tensor samples;    /* [channels, frames], f32, -1 to 1; a file of floats may go beyond */
    int32_t rate;           /* frames per second */
    int32_t file_rate;      /* as the file has it, before resampling */
    int32_t file_channels;  /* before mixing */
    int32_t bits;           /* of a sample in the file: 8, 16, 24, 32 or 64 */
    bool floats;            /* whether these are floating-point numbers */
    mica_index file_frames; /* before resampling */
    size_t owned;           /* bytes of the samples, which are the sound's own */
} mica_sound;

/* Limits, checked against a file's header before memory is allocated. */
#define MICA_SOUND_LEAST_RATE    1000
#define MICA_SOUND_MOST_RATE     768000
#define MICA_SOUND_MOST_CHANNELS 64
#define MICA_SOUND_MOST_SAMPLES  ((int64_t)1 << 28) /* in all channels, of the file and of the result */

typedef struct mica_wav_opts {
    int32_t rate; /* resample to this; 0: as the file has it */
    bool mono;    /* one channel, the mean of the file's */
} mica_wav_opts;

/* WAV (RIFF): PCM of 8, 16, 24 or 32 bits, IEEE floats of 32 or 64, both also as WAVE_FORMAT_EXTENSIBLE. Chunks of
 * other kinds are skipped, wherever they are. A file shorter than its headers say is refused, and so is a
 * sample that is not finite. */
MICA_API mica_status mica_sound_load_wav(mica_context *ctx, mica_sound *out, const char *path,
                                         const mica_wav_opts *opts);
/* The same of a file in memory; `name` is for messages. */
MICA_API mica_status mica_sound_from_memory(mica_context *ctx, mica_sound *out, const void *bytes,
                                            size_t count, const char *name, const mica_wav_opts *opts);

/* Frees the samples. May be called twice. */
MICA_API void mica_sound_destroy(mica_context *ctx, mica_sound *sound);

/* How many frames `frames` become at another rate: as many as begin within the same time. */
MICA_API int64_t mica_resampled_frames(int64_t frames, int32_t from, int32_t to);

/* Samples [n] at one rate to [mica_resampled_frames(n, from, to)] at another, f32, by a windowed sinc (Kaiser, 64
 * zero crossings to each side): up to 0.9 of the lower of the two Nyquist frequencies tones are kept to within 0.01
 * dB; from that Nyquist frequency on they are at least 85 dB down. Silence is assumed before and after. Its table,
 * at most 8 MiB, comes from the context's allocator for the time of the call. */
MICA_API mica_status mica_resample(mica_context *ctx, const mica_tensor *dst, const mica_tensor *src,
                                   int32_t from, int32_t to);

/* ---- Log-mel features -------------------------------------------------------------------------------- */

/* Frame t is made of samples t * hop to t * hop + window - 1, times a (periodic) Hann window, and padded to a power
 * of two for the Fourier transform. Triangles that overlap by half, of peak 1 and equal width on the mel scale
 * (HTK's: 2595 log10(1 + Hz / 700)), add up the squared magnitudes: log(energy + floor) is what comes out. That is
 * torchaudio's MelSpectrogram with center=False, and librosa's with htk=True, norm=None.
 *
 * Zeros are what is usual for keywords: 16 kHz, windows of 30 ms every 20 ms, 40 mels from 20 to 7600 Hz. */
typedef struct mica_log_mel_opts {
    int32_t rate;    /* of the samples, 1000 to 768000; 0: 16000 */
    int32_t window;  /* samples; 0: 30 ms. At most 65536 */
    int32_t hop;     /* samples from one frame to the next; 0: 20 ms */
    int32_t mels;    /* numbers of a frame, at most 512; 0: 40 */
    float low, high; /* Hz; 0: 20, and 7600 or 0.95 of the Nyquist frequency, the lower of the two */
    float floor;     /* keeps the logarithm of silence finite; 0: 1e-6 */
} mica_log_mel_opts;

/* Tables and buffers. It serves one thread at a time. */
typedef struct mica_log_mel mica_log_mel;

/* Makes one inside `memory`, aligned to 64, which the caller owns and which must outlive it: nothing is allocated. If
 * memory is NULL, only sets *bytes to the size required; a block that is too small is MICA_ERR_MEMORY and also
 * sets it. */
MICA_API mica_status mica_log_mel_place(mica_context *ctx, mica_log_mel **out, void *memory, size_t *bytes,
                                        const mica_log_mel_opts *opts);
/* From the context's allocator, which mica_log_mel_destroy gives it back to. NULL is allowed there. */
MICA_API mica_status mica_log_mel_create(mica_context *ctx, mica_log_mel **out,
                                         const mica_log_mel_opts *opts);
MICA_API void mica_log_mel_destroy(mica_context *ctx, mica_log_mel *m);

/* What the options came to: without zeros. */
MICA_API mica_log_mel_opts mica_log_mel_options(const mica_log_mel *m);

/* The frames that so many samples hold: 0 if they are fewer than a window. */
MICA_API mica_index mica_log_mel_frames(const mica_log_mel *m, mica_index samples);

/* None of these three allocates, locks or fails; they are for audio callbacks and machines without a system. */

/* One frame: mels numbers from `window` samples. */
MICA_API void mica_log_mel_frame(mica_log_mel *m, float *frame, const float *samples);

/* A stream, in pieces of any length: takes samples until a frame is complete or they are used up. *used is how many
 * were taken. True: `frame` [mels] was written; call again with the rest. The frames are those of mica_log_mel_all. */
MICA_API bool mica_log_mel_push(mica_log_mel *m, float *frame, const float *samples, size_t count,
                                size_t *used);

/* Forgets the samples pushed so far: a new stream. */
MICA_API void mica_log_mel_reset(mica_log_mel *m);

/* All frames of samples [n], f32, as dst [frames, mels]. Allocates nothing. */
MICA_API mica_status mica_log_mel_all(mica_context *ctx, const mica_tensor *dst, mica_log_mel *m,
                                      const mica_tensor *samples);

/* ---- Sounds as samples of a data set ------------------------------------------------------------------ */

typedef struct mica_sounds_opts {
    int32_t rate;   /* of all sounds; 0: 16000 */
    double seconds; /* of all sounds, at most 3600: longer ones are cut, shorter ones end in silence; 0: 1 */
    bool samples;   /* what the net takes are samples, not log-mel features */
    mica_log_mel_opts log_mel; /* its rate is the one above */

    /* With `classes` [class_count], in that order, every sub-folder must be one of these; else all that there are. */
    const char *const *classes;
    int class_count;
} mica_sounds_opts;

/* Fills in what the options leave open, and sets the shape of one sound: [1, frames, mels] or [1, samples], f32. */
MICA_API mica_status mica_sounds_settle(mica_context *ctx, mica_tensor *shape, mica_sounds_opts *opts);

/* A folder of WAV files with a sub-folder for each class (words/yes/1.wav, words/no/7.wav): inputs [N, 1, frames, mels]
 * or [N, 1, samples], f32; targets [N], i32 class indices; and the classes' names, in byte order. Samples are in order
 * of class and path. Files may have any rate and number of channels. */
MICA_API mica_status mica_dataset_load_sounds(mica_context *ctx, mica_dataset *out, const char *folder,
                                              const mica_sounds_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
