/* Chrome's trace format: an object with an array of events, times in microseconds. */
#include "cli/picture/trace.h"

#include <string.h>

#include "cli/picture/text.h"

/* Bytes of the plan that are in use while the event runs; 0 if it is not in the plan. Parts run in sequence while they
 * are traced, so there is one lane. */
static size_t bytes_at(const mica_plan *plan, const trace_event *e)
{
    int time = 0;
    while (time < plan->times &&
           (plan->time[time].phase != e->phase || strcmp(plan->time[time].name, e->name) != 0))
        time++;
    size_t bytes = 0;
    for (size_t i = 0; i < plan->count && time < plan->times; i++)
        if (plan->buffers[i].lane == 0 && plan->buffers[i].first <= time && time <= plan->buffers[i].last)
            bytes += plan->buffers[i].bytes;
    return bytes;
}

static void put_bytes(FILE *out, const trace *t, const trace_event *e, double begin)
{
    size_t bytes = t->plan != NULL ? bytes_at(t->plan, e) : 0;
    if (bytes > 0)
        fprintf(
            out,
            ",\n{\"ph\":\"C\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"name\":\"planned bytes in use\",\"args\":{\"bytes\":%zu}}",
            begin, bytes);
}

static void put_name(FILE *out, const char *what, const char *name)
{
    fprintf(out, "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"%s\",\"args\":{\"name\":", what);
    put_json(out, name);
    fputs("}}", out);
}

static void put_event(FILE *out, const trace *t, const trace_event *e)
{
    double from = t->events[0].begin;
    double begin = (e->begin - from) * 1e6, took = (e->end - e->begin) * 1e6;
    fprintf(out, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":%.3f,\"dur\":%.3f,\"name\":", begin,
            took > 0.0 ? took : 0.0);
    put_json(out, e->name);
    fputs(",\"cat\":", out);
    put_json(out, mica_phase_text(e->phase));
    fprintf(out, ",\"args\":{\"step\":%d", e->step);
    if (e->kind != NULL) {
        fputs(",\"kind\":", out);
        put_json(out, e->kind);
    }
    fputs(",\"phase\":", out);
    put_json(out, mica_phase_text(e->phase));
    fputs("}}", out);
    put_bytes(out, t, e, begin);
}

bool trace_write(FILE *out, const trace *t)
{
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", out);
    put_name(out, "process_name", t->title);
    fputs(",\n", out);
    put_name(out, "thread_name", "step");
    for (size_t i = 0; i < t->count; i++)
        put_event(out, t, &t->events[i]);
    fputs("\n]}\n", out);
    return fflush(out) == 0 && !ferror(out);
}
