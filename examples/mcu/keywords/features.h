/* What the net sees of a sound: how loud each of 16 bands is in each of 32 frames, as log2 of its power. */
#ifndef FEATURES_H
#define FEATURES_H

enum { frame_count = 32, band_count = 16, frame_length = 128 };

void features_of(float *features /* [frame_count, band_count] */,
                 const float *sound /* [frame_count * frame_length] */);

#endif
