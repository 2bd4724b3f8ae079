#include "microphone.h"

#include <math.h>

/* Pitch, relative to the speaker's, at time t from 0 to 1 of a word; 0 where it pauses. */
static float pitch_at(enum word word, float t)
{
    switch (word) {
    case word_up:
        return 0.7f + 0.9f * t;
    case word_down:
        return 1.6f - 0.9f * t;
    case word_steady:
        return 1.15f;
    case word_twice:
        return t < 0.35f || t > 0.65f ? 1.15f : 0.0f;
    case word_step:
        return t < 0.5f ? 0.8f : 1.5f;
    case word_drop:
        return t < 0.5f ? 1.5f : 0.8f;
    case word_trill:
        return 1.15f + 0.3f * sinf(18.8f * t);
    case word_arch:
        return 1.6f - 3.6f * (t - 0.5f) * (t - 0.5f);
    default:
        return 0.0f;
    }
}

void microphone_hear(float *sound /* [sound_length] */, enum word word, chance *c)
{
    float pitch = chance_between(c, 500, 900), level = chance_between(c, 0.2f, 0.8f);
    float length = chance_between(c, 0.25f, 0.36f) * sound_rate;
    float start = chance_next(c) * (sound_length - length), turns = 0;
    for (int i = 0; i < sound_length; i++) {
        float t = ((float)i - start) / length, now = t < 0 || t > 1 ? 0 : pitch_at(word, t);
        sound[i] = 0.03f * chance_noise(c);
        turns += pitch * now * (1.0f / sound_rate);
        turns -= (float)(int)turns;
        if (now > 0)
            sound[i] += level * (sinf(6.2831853f * turns) + 0.3f * sinf(12.566371f * turns));
    }
}
