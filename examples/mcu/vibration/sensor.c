#include "sensor.h"

#include <math.h>

static const float two_pi = 6.2831853f;

static void add_tone(float *window, float hertz, float level, float phase)
{
    for (int i = 0; i < window_length; i++)
        window[i] += level * sinf(two_pi * (hertz * 0.001f * (float)i + phase));
}

static void add_knocks(float *window, float hertz, float level, chance *c)
{
    float every = 1000.0f / hertz, ring = chance_between(c, 235, 265);
    for (float start = -every * chance_next(c); start < window_length; start += every)
        for (int i = 0; i < window_length; i++) {
            float after = (float)i - start;
            if (after >= 0 && after < 24)
                window[i] += level * expf(-after / 6) * sinf(two_pi * ring * 0.001f * after);
        }
}

/* Noise in a third of each turn. */
static void add_rubbing(float *window, float turns, float phase, chance *c)
{
    for (int i = 0; i < window_length; i++) {
        float turn = turns * 0.001f * (float)i + phase;
        if (turn - (float)(int)turn < 0.3f)
            window[i] += 0.6f * chance_noise(c);
    }
}

void sensor_read(float *window /* [window_length] */, enum state state, chance *c)
{
    float turns = chance_between(c, 25, 30), phase = chance_next(c);
    for (int i = 0; i < window_length; i++)
        window[i] = 0.15f * chance_noise(c);
    if (state == state_off)
        return;
    add_tone(window, turns, (state == state_unbalanced ? 1.5f : 0.5f) * chance_between(c, 0.8f, 1.2f), phase);
    add_tone(window, 2 * turns, (state == state_misaligned ? 1.2f : 0.3f) * chance_between(c, 0.8f, 1.2f),
             2 * phase);
    add_tone(window, 3 * turns, 0.2f * chance_between(c, 0.8f, 1.2f), 3 * phase + 0.2f);
    if (state == state_gear)
        add_tone(window, chance_between(c, 300, 340), chance_between(c, 0.4f, 0.8f), phase);
    if (state == state_rubbing)
        add_rubbing(window, turns, phase, c);
    if (state == state_bearing)
        add_knocks(window, 3.6f * turns, chance_between(c, 0.9f, 1.5f), c);
}
