/* A made-up microphone: half a second at 8 kHz of one of nine words, in noise. Words are whistles whose pitch moves in
 * their own way; speaker, loudness, start and length vary. */
#ifndef MICROPHONE_H
#define MICROPHONE_H

#include "../common/chance.h"

enum { sound_rate = 8000, sound_length = 4096 };

enum word {
    word_silence,
    word_up,     /* rises */
    word_down,   /* falls */
    word_steady, /* stays */
    word_twice,  /* stays, with a pause in the middle */
    word_step,   /* low, then high */
    word_drop,   /* high, then low */
    word_trill,  /* wavers */
    word_arch,   /* rises and falls. Not in the training data: the device is taught it */
    word_count
};

void microphone_hear(float *sound /* [sound_length] */, enum word word, chance *c);

#endif
