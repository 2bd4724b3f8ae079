/* A series: its true values, the forecast, and the baseline. */
#include <math.h>

#include "cli/picture/frame.h"
#include "cli/picture/report_parts.h"

#define MOST_POINTS 400 /* of a curve: the first ones */

static double value_of(const report_pair *p, int which)
{
    return which == 0 ? p->truth : which == 1 ? p->said : p->baseline;
}

static void put_line(FILE *out, const frame *f, const report_forecast *s, size_t count, int which)
{
    bool drawing = false;
    fprintf(out, "<path class=\"line s%d\" d=\"", which);
    for (size_t i = 0; i < count; i++) {
        double value = value_of(&s->pairs[i * s->stride], which);
        if (isfinite(value))
            fprintf(out, "%s%.1f %.1f", drawing ? "L" : "M", frame_x(f, (double)i), frame_y(f, value));
        drawing = isfinite(value);
    }
    fputs("\"/>\n", out);
}

void put_forecast(FILE *out, const report *r)
{
    const report_forecast *s = &r->forecast;
    size_t count = s->count < MOST_POINTS ? s->count : MOST_POINTS;
    double low = INFINITY, high = -INFINITY;
    bool has_baseline = false;
    for (size_t i = 0; i < count; i++)
        for (int which = 0; which < 3; which++) {
            double value = value_of(&s->pairs[i * s->stride], which);
            if (!isfinite(value))
                continue;
            low = fmin(low, value);
            high = fmax(high, value);
            has_baseline = has_baseline || which == 2;
        }
    if (!(low <= high))
        return;
    frame f = {.title = "Forecast, one step ahead",
               .of = s->name,
               .x_title = "time",
               .wide = true,
               .legend = {"what came", "forecast", has_baseline ? s->baseline_name : NULL},
               .x = axis_over(0.0, (double)count - 1.0),
               .y = axis_over(low, high)};
    f.x.high = fmax(1.0, (double)count - 1.0);
    fputs("<section><h2>What was forecast, and what came</h2>\n", out);
    frame_begin(out, &f);
    for (int which = has_baseline ? 2 : 1; which >= 0; which--)
        put_line(out, &f, s, count, which);
    frame_end(out);
    fputs("</section>\n", out);
}
