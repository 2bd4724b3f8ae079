/* Random numbers: the library's, which are a function of seed, stream and position, so that both sides drop the
 * same. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/emit.h"

/* The stream of a call in a step: the number of steps taken is kept, where training draws anew in each. */
typedef struct stream {
    char seed[40], stream[120];
} stream;

static stream stream_of(emitter *e, const call *c)
{
    stream s;
    snprintf(s.seed, sizeof s.seed, "%lluu", (unsigned long long)c->seed);
    if (e->mode == MODE_TRAIN && c->steps != NONE)
        snprintf(s.stream, sizeof s.stream, "%lluu + %lluu * (uint64_t)%s[0]", (unsigned long long)c->stream,
                 (unsigned long long)c->stream_step, steps_name(e));
    else
        snprintf(s.stream, sizeof s.stream, "%lluu", (unsigned long long)c->stream);
    return s;
}

/* ---- Dropout ---- */

static int kept_of(const call *c)
{
    double rate = call_number(c, "rate", 0);
    int kept = (int)((1.0 - rate) * 65536.0 + 0.5);
    return kept == 0 && rate < 1.0 ? 1 : kept;
}

static void emit_drop(emitter *e, const call *c, const char *mask)
{
    stream s = stream_of(e, c);
    char first[48] = "0";
    if (e->g->samples > 1)
        snprintf(first, sizeof first, "%zu * sample", out_value(e, 0)->count);
    use_kernel(e, "dropout");
    emit(e, "dropout(%s, %s, %s, %s, %zu, %d, %s, %s);", out_name(e, 0), mask, in_name(e, 0), first,
         out_value(e, 0)->count, kept_of(c), s.seed, s.stream);
}

static void emit_dropout(emitter *e, const call *c)
{
    size_t count = out_value(e, 0)->count;
    if (e->mode == MODE_TRAIN) {
        emit_drop(e, c, out_name(e, 1));
        return;
    }
    const char *y = out_name(e, 0), *x = in_name(e, 0);
    if (c->out[1] != NONE)
        emit(e, "memset(%s, 1, %zu);", out_name(e, 1), count);
    emit(e, "if (%s != %s)", y, x);
    emit(e, "    memcpy(%s, %s, %zu * sizeof *%s);", y, x, count, y);
}

static void emit_dropout_backward(emitter *e, const call *c)
{
    if (c->ins < 2 || c->in[1] == NONE) {
        emit_drop(e, c, "0");
        return;
    }
    emit(e, "for (int i = 0; i < %zu; i++)", out_value(e, 0)->count);
    emit(e, "    %s[i] = %s[i] ? %s[i] * %s : 0.0f;", out_name(e, 0), in_name(e, 1), in_name(e, 0),
         float_text(1.0 / (1.0 - call_number(c, "rate", 0))));
}

/* ---- Fills ---- */

static double fan(const value *v, int axis)
{
    double count = (double)v->dim[axis];
    for (int k = 2; k < v->rank; k++)
        count *= (double)v->dim[k];
    return count;
}

static void emit_fill(emitter *e, const call *c)
{
    const mica_make_opts *o = c->opts;
    const value *y = out_value(e, 0);
    bool is_uniform = strstr(c->name, "uniform") != NULL, spread = c->name[0] == 'x' || c->name[0] == 'h';
    double a = is_uniform ? (double)o->low : (double)o->mean,
           b = is_uniform ? (double)o->high : (double)o->deviation;
    if (is_uniform && a == 0.0 && b == 0.0)
        b = 1.0;
    if (!is_uniform && b == 0.0)
        b = 1.0;
    if (spread) {
        double gain = o->gain != 0.0f ? (double)o->gain : 1.0;
        double variance = c->name[0] == 'x' ? 2.0 / (fan(y, 0) + fan(y, 1)) : 2.0 / fan(y, 1);
        b = gain * sqrt(is_uniform ? 3.0 * variance : variance);
        a = is_uniform ? -b : 0.0;
    }
    stream s = stream_of(e, c);
    if (o->seed != 0) {
        snprintf(s.seed, sizeof s.seed, "%lluu", (unsigned long long)o->seed);
        snprintf(s.stream, sizeof s.stream, "0");
    }
    const char *kernel = is_uniform ? "uniform" : "normal";
    use_kernel(e, kernel);
    emit(e, "%s(%s, %zu, %s, %s, %s, %s);", kernel, out_name(e, 0), y->count, float_text(a), float_text(b),
         s.seed, s.stream);
}

/* ---- The count of steps ---- */

static void emit_count(emitter *e, const call *c)
{
    (void)c;
    if (e->g->samples > 1)
        emit(e, "if (sample == %d)", e->g->samples - 1);
    emit(e, "%s%s[0] += 1.0f;", e->g->samples > 1 ? "    " : "", steps_name(e));
}

#define RANDOM(op)                                   \
    {                                                \
        .name = op, .emit = emit_fill, .modes = true \
    }

const export_op export_random_ops[] = {
    {.name = "dropout", .emit = emit_dropout, .modes = true},
    {.name = "dropout_backward", .emit = emit_dropout_backward},
    RANDOM("uniform"),
    RANDOM("normal"),
    RANDOM("xavier_uniform"),
    RANDOM("xavier_normal"),
    RANDOM("he_uniform"),
    RANDOM("he_normal"),
    {.name = "count_step", .emit = emit_count},
    {.name = NULL},
};
