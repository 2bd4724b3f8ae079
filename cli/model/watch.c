/* Times of layers. */
#include "cli/model/watch.h"

#include <stdlib.h>

#include "host/clock.h"
#include "cli/model/take.h"

static void keep_event(watch *w, const mica_work *work, double end)
{
    bool wanted = w->steps >= WATCH_FIRST_STEP && w->steps < WATCH_FIRST_STEP + WATCH_STEPS;
    if (!wanted || w->event_count == WATCH_MOST_EVENTS)
        return;
    w->events[w->event_count++] = (trace_event){.name = work->name,
                                                .kind = work->kind,
                                                .phase = work->phase,
                                                .begin = w->began,
                                                .end = end,
                                                .step = (int)w->steps};
}

static void see(void *user, const mica_work *work, bool done)
{
    watch *w = user;
    if (!w->on)
        return;
    double now = clock_seconds();
    if (!done) {
        w->began = now;
        return;
    }
    size_t layer = work->layer >= 0 ? (size_t)work->layer : w->layer_count - 1;
    if (layer >= w->layer_count)
        return;
    if (work->phase == MICA_PHASE_FORWARD)
        w->layers[layer].forward += now - w->began;
    else
        w->layers[layer].backward += now - w->began;
    keep_event(w, work, now);
}

watch *watch_begin(mica_net *net)
{
    watch *w = take(1, sizeof *w);
    size_t count = (size_t)mica_net_layers(net);
    w->layer_count = count + 1;
    w->layers = take(w->layer_count, sizeof *w->layers);
    w->events = take(WATCH_MOST_EVENTS, sizeof *w->events);
    for (size_t i = 0; i < count; i++)
        (void)mica_net_layer(net, &w->layers[i].name, &w->layers[i].kind, NULL, (int)i);
    w->layers[count].name = "optimizer";
    w->layers[count].kind = "update";
    mica_net_watch(net, see, w);
    return w;
}

void watch_step(watch *w, bool begins)
{
    w->on = begins;
    w->steps += !begins;
}

void watch_end(watch *w, mica_net *net)
{
    mica_net_watch(net, NULL, NULL);
    for (size_t i = 0; i < w->layer_count && w->steps > 0; i++) {
        w->layers[i].forward /= (double)w->steps;
        w->layers[i].backward /= (double)w->steps;
    }
}

void watch_free(watch *w)
{
    if (w == NULL)
        return;
    free(w->layers);
    free(w->events);
    free(w);
}
