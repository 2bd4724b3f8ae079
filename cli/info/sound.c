/* mica info of WAV files. */
#include <math.h>
#include <stdio.h>

#include <mica/sound.h>

#include "cli/info/info.h"
#include "cli/picture/text.h"

/* How loud it is: 1 is full scale. */
static void levels(const mica_tensor *samples, double *peak, double *rms)
{
    const float *x = samples->data;
    size_t count = mica_tensor_count(samples);
    double squares = 0;
    *peak = 0;
    for (size_t i = 0; i < count; i++) {
        *peak = fmax(*peak, fabs((double)x[i]));
        squares += (double)x[i] * (double)x[i];
    }
    *rms = count > 0 ? sqrt(squares / (double)count) : 0;
}

int info_wav(mica_context *ctx, const info_settings *set, const char *path)
{
    mica_sound s;
    double peak, rms;
    if (mica_sound_load_wav(ctx, &s, path, NULL) != MICA_OK)
        return verb_failed(&verb_info, ctx);
    levels(&s.samples, &peak, &rms);
    double seconds = (double)s.file_frames / s.rate;
    if (set->shared.json) {
        printf(
            "{\"kind\": \"wav\", \"bits\": %d, \"floats\": %s, \"channels\": %d, \"rate\": %d, \"frames\": %td, "
            "\"seconds\": %.9g, \"peak\": %.6g, \"rms\": %.6g}\n",
            (int)s.bits, s.floats ? "true" : "false", (int)s.file_channels, (int)s.rate, s.file_frames,
            seconds, peak, rms);
    } else {
        put_plain(stdout, path);
        printf(": wav, %d-bit %s, %d channel%s, %s Hz, %s frames (%.3f s), peak %.3f, rms %.3f\n",
               (int)s.bits, s.floats ? "floats" : "PCM", (int)s.file_channels,
               s.file_channels == 1 ? "" : "s", count_text(s.rate).text,
               count_text((double)s.file_frames).text, seconds, peak, rms);
    }
    mica_sound_destroy(ctx, &s);
    return EXIT_OK;
}
