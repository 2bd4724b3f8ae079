/* WAV: "RIFF", a size, "WAVE", and chunks of a name, a size, bytes and a padding byte after an odd number of them.
 *
 *     fmt   format, channels, rate, bytes per second, bytes of a frame, bits of a sample [, an extension]
 *     data  the frames, interleaved, low byte first
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include <mica/sound.h>

#include "base/size.h"
#include "data/sound.h"
#include "io/quote.h"
#include "tensor/tensor.h"

enum { PCM = 1, IEEE_FLOAT = 3, EXTENSIBLE = 0xfffe };
enum { UNKNOWN_SIZE = -1 }; /* 2^32 - 1, by writers that cannot go back to the header */

typedef struct wav {
    mica_context *ctx;
    mica_stream *stream;
    bool has_format;
    int format, channels, bits;
    int64_t rate, frame_bytes;
    bool has_data;
    int64_t data_at, data_bytes;
} wav;

static mica_status bad_at(const wav *w, uint64_t at, const char *what, int64_t found, const char *expected)
{
    return mica_fail(w->ctx, MICA_ERR_FORMAT, "%s: byte %llu: wav: %s %lld, expected %s",
                     MICA_QUOTE(w->stream->file.path), (unsigned long long)at, what, (long long)found,
                     expected);
}

static mica_status bad(const wav *w, uint64_t at, const char *what)
{
    return mica_fail(w->ctx, MICA_ERR_FORMAT, "%s: byte %llu: wav: %s", MICA_QUOTE(w->stream->file.path),
                     (unsigned long long)at, what);
}

static uint32_t low_first(const unsigned char *b, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)b[i] << 8 * i;
    return value;
}

/* ---- Chunks ---- */

/* Goes over bytes that are there. */
static mica_status skip(const wav *w, int64_t bytes, const char *what)
{
    unsigned char buffer[4096];
    mica_stream *s = w->stream;
    if (s->gzip == NULL && (uint64_t)bytes <= s->most - s->position) {
        s->position += (uint64_t)bytes;
        return MICA_OK;
    }
    while (bytes > 0) {
        size_t now = mica_least((size_t)bytes, sizeof buffer);
        MICA_TRY(mica_stream_need(w->ctx, buffer, s, now, what));
        bytes -= (int64_t)now;
    }
    return MICA_OK;
}

/* The format that an extension names: its GUID begins with it and ends with these bytes. */
static mica_status read_extension(wav *w, const unsigned char *f, uint64_t at)
{
    static const unsigned char rest[] = {0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71};
    if (memcmp(f + 26, rest, sizeof rest) != 0)
        return bad(w, at + 26, "an extensible format of an unknown kind: expected PCM or floats");
    w->format = (int)low_first(f + 24, 2);
    uint32_t used = low_first(f + 18, 2);
    if (used > (uint32_t)w->bits)
        return bad_at(w, at + 18, "bits of a sample in use:", used, "at most those of its container");
    return MICA_OK;
}

static mica_status check_format(const wav *w, uint64_t at)
{
    bool pcm = w->format == PCM, floats = w->format == IEEE_FLOAT;
    if (!pcm && !floats)
        return bad_at(w, at, "format", w->format, "1 (PCM) or 3 (floats): convert it first");
    if (w->channels < 1 || w->channels > MICA_SOUND_MOST_CHANNELS)
        return bad_at(w, at + 2, "channels:", w->channels, "1 to 64");
    if (w->rate < MICA_SOUND_LEAST_RATE || w->rate > MICA_SOUND_MOST_RATE)
        return bad_at(w, at + 4, "a rate of", w->rate, "1000 to 768000 Hz");
    if (pcm && w->bits != 8 && w->bits != 16 && w->bits != 24 && w->bits != 32)
        return bad_at(w, at + 14, "bits of a PCM sample:", w->bits, "8, 16, 24 or 32");
    if (floats && w->bits != 32 && w->bits != 64)
        return bad_at(w, at + 14, "bits of a floating-point sample:", w->bits, "32 or 64");
    if (w->frame_bytes != (int64_t)w->channels * w->bits / 8)
        return bad_at(w, at + 12, "bytes of a frame:", w->frame_bytes, "as channels and bits make it");
    return MICA_OK;
}

static mica_status read_format(wav *w, int64_t bytes)
{
    unsigned char f[40];
    uint64_t at = w->stream->position;
    if (w->has_format)
        return bad(w, at - 8, "a second \"fmt \" chunk");
    if (bytes < 16)
        return bad_at(w, at - 4, "a \"fmt \" chunk of bytes:", bytes, "16 or more");
    size_t known = mica_least((size_t)bytes, sizeof f);
    MICA_TRY(mica_stream_need(w->ctx, f, w->stream, known, "the \"fmt \" chunk"));
    w->format = (int)low_first(f, 2);
    w->channels = (int)low_first(f + 2, 2);
    w->rate = low_first(f + 4, 4);
    w->frame_bytes = low_first(f + 12, 2);
    w->bits = (int)low_first(f + 14, 2);
    if (w->format == EXTENSIBLE) {
        if (known < sizeof f)
            return bad_at(w, at - 4, "an extensible \"fmt \" chunk of bytes:", bytes, "40 or more");
        MICA_TRY(read_extension(w, f, at));
    }
    w->has_format = true;
    MICA_TRY(check_format(w, at));
    return skip(w, bytes - (int64_t)known, "the \"fmt \" chunk");
}

/* Notes where the frames are. */
static mica_status pass_data(wav *w, int64_t bytes)
{
    if (w->has_data)
        return bad(w, w->stream->position - 8, "a second \"data\" chunk");
    w->has_data = true;
    w->data_at = (int64_t)w->stream->position;
    w->data_bytes = bytes;
    if (bytes != UNKNOWN_SIZE)
        return skip(w, bytes, "the \"data\" chunk");
    size_t got;
    unsigned char buffer[4096];
    do
        MICA_TRY(mica_stream_read(w->ctx, buffer, &got, w->stream, sizeof buffer));
    while (got > 0);
    w->data_bytes = (int64_t)w->stream->position - w->data_at;
    return MICA_OK;
}

/* From one chunk to the next, up to where RIFF says that they end. */
static mica_status walk(wav *w)
{
    unsigned char head[12];
    mica_stream *s = w->stream;
    MICA_TRY(mica_stream_need(w->ctx, head, s, sizeof head, "a WAV header"));
    if (memcmp(head, "RIFX", 4) == 0 || memcmp(head, "RF64", 4) == 0)
        return bad(w, 0, "RIFX and RF64 are not supported, expected RIFF");
    if (memcmp(head, "RIFF", 4) != 0 || memcmp(head + 8, "WAVE", 4) != 0)
        return bad(w, 0, "expected \"RIFF\", a size and \"WAVE\"");
    uint32_t size = low_first(head + 4, 4);
    bool unknown = size == UINT32_MAX;
    int64_t end = unknown ? INT64_MAX : (int64_t)size + 8;
    if (s->gzip == NULL && !unknown && (uint64_t)end > s->most)
        return mica_fail(
            w->ctx, MICA_ERR_FORMAT, "%s: byte 4: wav: the file has %llu bytes, %lld short of its RIFF size",
            MICA_QUOTE(s->file.path), (unsigned long long)s->most, (long long)(end - (int64_t)s->most));
    while ((int64_t)s->position + 8 <= end) {
        uint64_t at = s->position;
        if (unknown && w->has_data && w->has_format)
            break;
        MICA_TRY(mica_stream_need(w->ctx, head, s, 8, "a chunk: \"fmt \" and \"data\" are needed"));
        bool is_data = memcmp(head, "data", 4) == 0;
        int64_t bytes = low_first(head + 4, 4);
        if (is_data && unknown && bytes == UINT32_MAX)
            bytes = UNKNOWN_SIZE;
        else if (bytes > end - (int64_t)s->position)
            return bad_at(w, at + 4, "a chunk of bytes:", bytes, "no more than are left");
        if (memcmp(head, "fmt ", 4) == 0)
            MICA_TRY(read_format(w, bytes));
        else if (is_data)
            MICA_TRY(pass_data(w, bytes));
        else
            MICA_TRY(skip(w, bytes, "a chunk"));
        if (bytes > 0 && bytes % 2 == 1 && (int64_t)s->position < end && !(unknown && is_data))
            MICA_TRY(skip(w, 1, "the padding of a chunk"));
    }
    if (!w->has_format || !w->has_data)
        return bad(w, s->position, w->has_format ? "no \"data\" chunk" : "no \"fmt \" chunk");
    return MICA_OK;
}

/* ---- Samples ---- */

static double float_of(const unsigned char *b, int bytes)
{
    uint64_t bits = (uint64_t)low_first(b, 4) | (bytes == 8 ? (uint64_t)low_first(b + 4, 4) << 32 : 0);
    uint32_t low = (uint32_t)bits;
    float single;
    double value;
    memcpy(&value, &bits, sizeof value);
    memcpy(&single, &low, sizeof single);
    return bytes == 8 ? value : (double)single;
}

static double sample_of(const wav *w, const unsigned char *b)
{
    if (w->format == IEEE_FLOAT)
        return float_of(b, w->bits / 8);
    if (w->bits == 8)
        return ((double)b[0] - 128) / 128;
    /* As the high bytes of 32 bits, whatever their number: the sign is then in its place. */
    uint32_t high = low_first(b, w->bits / 8) << (32 - w->bits);
    return ((double)high - (high >> 31 ? 4294967296.0 : 0)) / 2147483648.0;
}

/* Frame number `frame` to its place in x [channels, frames]. */
static mica_status take_frame(const wav *w, float *x, int64_t frame, int64_t frames, bool mono,
                              const unsigned char *b)
{
    double sum = 0;
    for (int c = 0; c < w->channels; c++) {
        int64_t place = (int64_t)c * (w->bits / 8), at = w->data_at + frame * w->frame_bytes + place;
        double value = sample_of(w, b + place);
        if (!isfinite((float)value))
            return mica_fail(w->ctx, MICA_ERR_FORMAT, "%s: byte %lld: wav: a sample that is not finite",
                             MICA_QUOTE(w->stream->file.path), (long long)at);
        sum += value;
        if (!mono)
            x[c * frames + frame] = (float)value;
    }
    if (mono)
        x[frame] = (float)(sum / w->channels);
    return MICA_OK;
}

static mica_status read_frames(const wav *w, float *x, int64_t frames, bool mono)
{
    unsigned char buffer[MICA_SOUND_MOST_CHANNELS * 8 * 16];
    int64_t at_once = (int64_t)sizeof buffer / w->frame_bytes;
    for (int64_t first = 0; first < frames; first += at_once) {
        int64_t count = frames - first < at_once ? frames - first : at_once;
        MICA_TRY(
            mica_stream_need(w->ctx, buffer, w->stream, (size_t)(count * w->frame_bytes), "its samples"));
        for (int64_t i = 0; i < count; i++)
            MICA_TRY(take_frame(w, x, first + i, frames, mono, buffer + i * w->frame_bytes));
    }
    return MICA_OK;
}

static mica_status check_size(const wav *w)
{
    assert(w->frame_bytes > 0 && w->bits >= 8); /* check_format */
    if (w->data_bytes % w->frame_bytes != 0)
        return mica_fail(w->ctx, MICA_ERR_FORMAT,
                         "%s: byte %lld: wav: %lld bytes of data, expected a multiple of the %lld of a frame",
                         MICA_QUOTE(w->stream->file.path), (long long)w->data_at, (long long)w->data_bytes,
                         (long long)w->frame_bytes);
    if (w->data_bytes / (w->bits / 8) > MICA_SOUND_MOST_SAMPLES)
        return bad_at(w, (uint64_t)w->data_at, "samples:", w->data_bytes / (w->bits / 8), "at most 2^28");
    return MICA_OK;
}

/* Takes memory for a sound of this size. */
static mica_status take_samples(mica_context *ctx, mica_sound *sound, int64_t channels, int64_t frames)
{
    sound->owned = mica_most((size_t)(channels * frames) * sizeof(float), 1);
    float *x = mica_allocate(ctx, sound->owned);
    if (x == NULL)
        return ctx->status;
    sound->samples = mica_2d(x, (mica_index)channels, (mica_index)frames);
    return MICA_OK;
}

/* The same sound at another rate, in memory of its own. */
static mica_status at_rate(mica_context *ctx, mica_sound *sound, int32_t rate, const char *path)
{
    mica_index channels = sound->samples.dim[0];
    int64_t frames = mica_resampled_frames(sound->samples.dim[1], sound->rate, rate);
    if (frames > MICA_SOUND_MOST_SAMPLES / channels)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: wav: %lld frames at %d Hz, expected at most 2^28 samples",
                         MICA_QUOTE(path), (long long)frames, (int)rate);
    mica_sound other = *sound;
    MICA_TRY(take_samples(ctx, &other, channels, frames));
    other.rate = rate;
    mica_status status = MICA_OK;
    for (mica_index c = 0; c < channels && status == MICA_OK; c++) {
        mica_tensor from = mica_1d((float *)sound->samples.data + c * sound->samples.dim[1],
                                   sound->samples.dim[1]);
        mica_tensor to = mica_1d((float *)other.samples.data + c * frames, (mica_index)frames);
        status = mica_resample(ctx, &to, &from, sound->rate, rate);
    }
    mica_sound_destroy(ctx, status == MICA_OK ? sound : &other);
    if (status == MICA_OK)
        *sound = other;
    return status;
}

mica_status mica_wav_read(mica_context *ctx, mica_sound *out, mica_stream *stream, const mica_wav_opts *opts)
{
    wav w = {.ctx = ctx, .stream = stream};
    bool mono = opts != NULL && opts->mono;
    int32_t rate = opts != NULL ? opts->rate : 0;
    *out = (mica_sound){0};
    if (rate != 0 && (rate < MICA_SOUND_LEAST_RATE || rate > MICA_SOUND_MOST_RATE))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "wav: a rate of %d: expected %d to %d", (int)rate,
                         MICA_SOUND_LEAST_RATE, MICA_SOUND_MOST_RATE);
    MICA_TRY(walk(&w));
    MICA_TRY(check_size(&w));
    int64_t frames = w.data_bytes / w.frame_bytes;
    mica_sound sound = {.rate = (int32_t)w.rate,
                        .file_rate = (int32_t)w.rate,
                        .file_channels = w.channels,
                        .bits = w.bits,
                        .floats = w.format == IEEE_FLOAT,
                        .file_frames = (mica_index)frames};
    MICA_TRY(take_samples(ctx, &sound, mono ? 1 : w.channels, frames));
    mica_status status = mica_stream_rewind(ctx, stream);
    if (status == MICA_OK)
        status = skip(&w, w.data_at, "its header");
    if (status == MICA_OK)
        status = read_frames(&w, sound.samples.data, frames, mono);
    if (status == MICA_OK && rate != 0 && rate != sound.rate)
        status = at_rate(ctx, &sound, rate, stream->file.path);
    if (status == MICA_OK)
        *out = sound;
    else
        mica_sound_destroy(ctx, &sound);
    return status;
}

/* ---- Sounds ---- */

void mica_sound_destroy(mica_context *ctx, mica_sound *sound)
{
    if (sound != NULL && sound->owned > 0)
        mica_release(ctx, sound->samples.data, sound->owned);
    if (sound != NULL)
        *sound = (mica_sound){0};
}

static mica_status read_and_close(mica_context *ctx, mica_sound *out, mica_stream *stream,
                                  const mica_wav_opts *opts)
{
    mica_status status = mica_wav_read(ctx, out, stream, opts);
    mica_stream_close(ctx, stream);
    return status;
}

mica_status mica_sound_load_wav(mica_context *ctx, mica_sound *out, const char *path,
                                const mica_wav_opts *opts)
{
    mica_stream stream;
    if (out == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "sound: %s is NULL", out == NULL ? "out" : "path");
    *out = (mica_sound){0};
    MICA_TRY(mica_stream_open(ctx, &stream, path));
    return read_and_close(ctx, out, &stream, opts);
}

mica_status mica_sound_from_memory(mica_context *ctx, mica_sound *out, const void *bytes, size_t count,
                                   const char *name, const mica_wav_opts *opts)
{
    mica_stream stream;
    if (out == NULL || name == NULL || (bytes == NULL && count > 0))
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "sound: %s is NULL",
                         out == NULL    ? "out"
                         : name == NULL ? "name"
                                        : "bytes");
    *out = (mica_sound){0};
    MICA_TRY(mica_stream_open_memory(ctx, &stream, bytes, count, name));
    return read_and_close(ctx, out, &stream, opts);
}
