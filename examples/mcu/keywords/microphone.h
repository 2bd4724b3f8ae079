/* A made-up microphone: half a second at 8 kHz of one of five words, in noise. Words are whistles whose pitch moves in
 * their own way; speaker, loudness, start and length vary. */
#ifndef MICROPHONE_H
#define MICROPHONE_H

#include "../common/chance.h"

enum { sound_rate = 8000, sound_length = 4096 };

enum word { word_silence, word_up, word_down, word_steady, word_twice, word_count };

void microphone_hear(float *sound /* [sound_length] */, enum word word, chance *c);

#endif
