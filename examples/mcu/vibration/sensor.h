/* A made-up accelerometer on a machine: 128 readings at 1 kHz, in one of seven states. */
#ifndef SENSOR_H
#define SENSOR_H

#include "../common/chance.h"

enum { window_length = 128 };

enum state {
    state_off,        /* noise */
    state_running,    /* turns 25 to 30 times a second, with harmonics */
    state_unbalanced, /* running, and once in a turn much stronger */
    state_misaligned, /* twice in a turn */
    state_gear,       /* running, with a tone of its gear at 300 to 340 Hz */
    state_rubbing,    /* running, with noise once in a turn */
    state_bearing, /* running, with a worn bearing: knocks that ring at about 250 Hz. Not known in the factory */
    state_count
};

void sensor_read(float *window /* [window_length] */, enum state state, chance *c);

#endif
