/* Numbers that a net says against those that are true: as points, and as a histogram of what is between them. */
#include <math.h>

#include "cli/picture/frame.h"
#include "cli/picture/report_parts.h"

static bool is_pair(const report_pair *p) { return isfinite(p->truth) && isfinite(p->said); }

static const report_pair *pair_at(const report_target *t, size_t i) { return &t->pairs[i * t->stride]; }

/* Each a dot: a line without length, whose ends are round. */
static void put_points(FILE *out, const report_target *t)
{
    frame f = {.title = "Predicted against true", .of = t->name, .x_title = "true"};
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < t->count; i++) {
        const report_pair *p = pair_at(t, i);
        if (!is_pair(p))
            continue;
        low = fmin(low, fmin(p->truth, p->said));
        high = fmax(high, fmax(p->truth, p->said));
    }
    f.x = f.y = axis_over(low, high); /* the same, so that what is right lies on the diagonal */
    frame_begin(out, &f);
    fprintf(out, "<path class=\"diagonal\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", frame_x(&f, f.x.low),
            frame_y(&f, f.y.low), frame_x(&f, f.x.high), frame_y(&f, f.y.high));
    fputs("<path class=\"points\" d=\"", out);
    for (size_t i = 0; i < t->count; i++)
        if (is_pair(pair_at(t, i)))
            fprintf(out, "M%.1f %.1fh0", frame_x(&f, pair_at(t, i)->truth), frame_y(&f, pair_at(t, i)->said));
    fputs("\"/>\n", out);
    frame_end(out);
}

/* ---- Residuals ---- */

enum { MOST_BINS = 31 };

typedef struct histogram {
    double low, width;
    int bins; /* an odd number: the one in the middle is around 0 */
    size_t count[MOST_BINS], most;
} histogram;

/* By Rice's rule: of few samples, few. */
static int bins_for(size_t count) { return (int)fmin(MOST_BINS, 2.0 * floor(cbrt((double)count)) + 1.0); }

static histogram residuals_of(const report_target *t)
{
    double far = 0.0;
    for (size_t i = 0; i < t->count; i++)
        if (is_pair(pair_at(t, i)))
            far = fmax(far, fabs(pair_at(t, i)->said - pair_at(t, i)->truth));
    far = far > 0.0 ? far * (1.0 + 1e-9) : 1.0;
    histogram h = {.low = -far, .bins = bins_for(t->count)};
    h.width = 2.0 * far / h.bins;
    for (size_t i = 0; i < t->count; i++) {
        const report_pair *p = pair_at(t, i);
        if (!is_pair(p))
            continue;
        size_t bin = (size_t)fmin(h.bins - 1, fmax(0.0, floor((p->said - p->truth - h.low) / h.width)));
        h.count[bin]++;
        h.most = h.count[bin] > h.most ? h.count[bin] : h.most;
    }
    return h;
}

static void put_residuals(FILE *out, const report_target *t)
{
    histogram h = residuals_of(t);
    frame f = {.title = "Residuals",
               .of = t->name,
               .x_title = "predicted minus true",
               .x = axis_over(h.low, h.low + h.bins * h.width),
               .y = axis_over(0.0, (double)h.most)};
    frame_begin(out, &f);
    for (int i = 0; i < h.bins; i++) {
        double from = h.low + i * h.width, left = frame_x(&f, from), right = frame_x(&f, from + h.width);
        if (h.count[i] == 0)
            continue;
        fprintf(out,
                "<rect class=\"bin\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">"
                "<title>%.4g to %.4g: %zu</title></rect>\n",
                left + 0.5, frame_y(&f, (double)h.count[i]), fmax(0.5, right - left - 1.0),
                frame_y(&f, 0.0) - frame_y(&f, (double)h.count[i]), from, from + h.width, h.count[i]);
    }
    fprintf(out, "<path class=\"diagonal\" d=\"M%.1f %.1fV%.1f\"/>\n", frame_x(&f, 0.0), frame_y(&f, f.y.low),
            frame_y(&f, f.y.high));
    frame_end(out);
}

void put_regression(FILE *out, const report *r)
{
    size_t drawn = 0;
    for (size_t i = 0; i < r->target_count; i++) {
        const report_target *t = &r->targets[i];
        bool any = false;
        for (size_t k = 0; k < t->count; k++)
            any = any || is_pair(pair_at(t, k));
        if (!any)
            continue;
        if (drawn++ == 0)
            fputs("<section><h2>What was said, and what is true</h2>\n<div class=\"charts\">\n", out);
        put_points(out, t);
        put_residuals(out, t);
    }
    if (drawn > 0)
        fputs("</div></section>\n", out);
}
