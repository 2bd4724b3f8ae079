/* Sounds from streams. */
#ifndef MICA_SRC_DATA_SOUND_H
#define MICA_SRC_DATA_SOUND_H

#include <mica/sound.h>

#include "io/stream.h"

mica_status mica_wav_read(mica_context *ctx, mica_sound *out, mica_stream *stream, const mica_wav_opts *opts);

#endif
