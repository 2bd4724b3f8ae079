/* An inverted pendulum on a motor follows a path. A weak feedback controller (proportional and derivative) keeps it
 * near; a net that starts from random weights learns the torque that the path needs, while everything moves.
 *
 * Feedback-error learning (Kawato): whatever the feedback still adds is what the net got wrong, so the target of each
 * step is the net's own torque plus that of the feedback. Then a load is put on, and the net learns again. */
#include <math.h>

#include "board.h"
#include "pendulum.h"

enum { hertz = 200, seconds = 10 };

static const float rate = 0.0003f;

struct pendulum {
    float angle, velocity; /* from upright, in radians */
    float mass;            /* kg */
};

static float limited(float x, float most) { return x > most ? most : x < -most ? -most : x; }

/* The world, a two-hundredth of a second of it: gravity, friction, the motor. */
static void move(struct pendulum *p, float torque)
{
    const float length = 0.3f, gravity = 9.81f, step = 1.0f / (5 * hertz);
    for (int i = 0; i < 5; i++) {
        float friction = 0.02f * p->velocity + 0.03f * limited(20 * p->velocity, 1);
        float pull = p->mass * gravity * length * sinf(p->angle);
        p->velocity += step * (pull - friction + torque) / (p->mass * length * length);
        p->angle += step * p->velocity;
    }
}

/* Angle, velocity and acceleration that are wanted at time t. */
static void path_at(float *path /* [3] */, float t)
{
    const float a = 0.6f, w = 1.3f, b = 0.3f, v = 3.1f;
    path[0] = a * sinf(w * t) + b * sinf(v * t);
    path[1] = a * w * cosf(w * t) + b * v * cosf(v * t);
    path[2] = -a * w * w * sinf(w * t) - b * v * v * sinf(v * t);
}

/* The net's memory is used again in a run, so inputs are written before each. */
static void show_path(const float *path /* [3] */)
{
    float *x = pendulum_input();
    x[0] = path[0];
    x[1] = path[1] / 2;
    x[2] = path[2] / 4;
}

/* Ten seconds: the root mean square of the error, in degrees. */
static float follow(struct pendulum *p, int *tick, int use_net, int learn)
{
    float squares = 0;
    for (int i = 0; i < hertz * seconds; i++, ++*tick) {
        float path[3], net_torque = 0;
        path_at(path, (float)*tick / hertz);
        if (use_net) {
            show_path(path);
            pendulum_run();
            net_torque = *pendulum_output();
        }
        float error = path[0] - p->angle;
        float feedback = 4.0f * error + 0.4f * (path[1] - p->velocity);
        if (learn) {
            float target = net_torque + feedback;
            show_path(path);
            if (*tick == 5000)
                count_begin("learning step");
            pendulum_train_step(&target, rate);
            if (*tick == 5000)
                count_end();
        }
        move(p, limited(feedback + net_torque, 3));
        squares += error * error;
    }
    return sqrtf(squares / (hertz * seconds)) * 57.29578f;
}

/* The error of the last ten seconds of learning. */
static float learn(struct pendulum *p, int *tick, int times)
{
    float error = 0;
    for (int i = 0; i < times; i++) {
        error = follow(p, tick, 1, 1);
        report_float("error while learning, degrees", error);
    }
    return error;
}

int main(void)
{
    struct pendulum p = {.mass = 0.3f};
    int tick = 0;
    pendulum_init();
    float before = follow(&p, &tick, 0, 0);
    report_float("error before, degrees", before);
    float after = learn(&p, &tick, 4);
    report_float("error after, degrees", after);

    put_text("a load is put on\n");
    p.mass = 0.54f;
    float loaded = follow(&p, &tick, 1, 0);
    report_float("error with the load, degrees", loaded);
    float relearned = learn(&p, &tick, 4);
    report_float("error after learning it, degrees", relearned);
    report("RAM", PENDULUM_RAM_BYTES);
    return after < before / 5 && relearned < loaded / 3 ? 0 : 1;
}
