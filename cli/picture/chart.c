/* Curves: an axis that suits them, and no more points than there are pixels. */
#include "cli/picture/chart.h"

#include <math.h>

#include "cli/picture/axis.h"
#include "cli/picture/text.h"

/* Pixels; the page scales them. */
enum { WIDTH = 500, HEIGHT = 280, LEFT = 58, RIGHT = 18, TOP = 14, BOTTOM = 44 };
enum { PLOT_WIDTH = WIDTH - LEFT - RIGHT, PLOT_HEIGHT = HEIGHT - TOP - BOTTOM };
#define MOST_POINTS 300 /* of a curve; more are put together */
#define FEW_POINTS  40  /* are marked; more are of single steps, and drawn faintly behind their mean */

typedef struct plot {
    const chart *chart;
    FILE *out;
    axis x, y;
} plot;

static double px(const plot *p, double x) { return LEFT + axis_along(&p->x, x) * PLOT_WIDTH; }
static double py(const plot *p, double y) { return TOP + (1.0 - axis_along(&p->y, y)) * PLOT_HEIGHT; }

static bool is_point(const report_curve *curve, size_t i)
{
    return isfinite(curve->x[i]) && isfinite(curve->y[i]);
}

/* ---- Points ---- */

/* Points put together: the mean of those in [from, to) of a curve. */
typedef struct bucket {
    double x, y;
    size_t count;
} bucket;

static bucket gather(const report_curve *curve, size_t from, size_t to)
{
    bucket b = {0};
    for (size_t i = from; i < to; i++) {
        if (!is_point(curve, i))
            continue;
        b.x += curve->x[i];
        b.y += curve->y[i];
        b.count++;
    }
    if (b.count > 0) {
        b.x /= (double)b.count;
        b.y /= (double)b.count;
    }
    return b;
}

static bool is_noisy(const report_curve *curve) { return curve->count > FEW_POINTS; }

static size_t bucket_count(const report_curve *curve)
{
    return curve->count < MOST_POINTS ? curve->count : MOST_POINTS;
}

/* The curve as given. */
static bucket raw_point(const report_curve *curve, size_t number)
{
    size_t count = bucket_count(curve);
    return gather(curve, number * curve->count / count, (number + 1) * curve->count / count);
}

/* The curve without the noise of single steps: the mean over a twentieth of it, around each point. */
static bucket smooth_point(const report_curve *curve, size_t number)
{
    if (!is_noisy(curve))
        return raw_point(curve, number);
    size_t at = number * curve->count / bucket_count(curve), reach = curve->count / 40 + 1;
    size_t before = at < reach ? at : reach, after = curve->count - at;
    after = after < before + 1 ? after
                               : before + 1; /* steep at the start, where the mean must not look ahead */
    return gather(curve, at - before, at + after);
}

/* ---- Axes ---- */

/* A share that was low at the start is cut off there, so that one sees how it differs at the end. */
static double low_share(const chart *c, const axis *x)
{
    double low = INFINITY, half = (x->low + x->high) / 2.0;
    for (int s = 0; s < 2; s++) {
        const report_curve *curve = c->series[s].curve;
        for (size_t i = 0; curve != NULL && i < bucket_count(curve); i++) {
            bucket b = smooth_point(curve, i);
            if (b.count > 0 && (b.x >= half || !is_noisy(curve)))
                low = fmin(low, b.y);
        }
    }
    return low;
}

/* The range of all that is drawn; false if that is nothing. */
static bool find_range(const chart *c, axis *x, axis *y)
{
    *x = *y = (axis){INFINITY, -INFINITY, false};
    for (int s = 0; s < 2; s++) {
        const report_curve *curve = c->series[s].curve;
        for (size_t i = 0; curve != NULL && i < bucket_count(curve); i++) {
            bucket b = raw_point(curve, i);
            if (b.count == 0)
                continue;
            x->low = fmin(x->low, b.x);
            x->high = fmax(x->high, b.x);
            y->low = fmin(y->low, b.y);
            y->high = fmax(y->high, b.y);
        }
    }
    return x->low <= x->high;
}

/* Widens a range to round numbers. */
static void widen(const chart *c, axis *x, axis *y)
{
    x->low = fmin(x->low, floor(x->low));
    if (x->high <= x->low)
        x->high = x->low + 1.0;
    y->is_log = c->may_log && y->low > 0.0 && y->high > 20.0 * y->low;
    if (y->is_log) {
        y->low *= 0.8;
        y->high *= 1.25;
        return;
    }
    y->low = c->share ? fmin(low_share(c, x), y->high) : fmin(0.0, y->low);
    if (y->high <= y->low)
        y->high = y->low + (c->share ? 0.01 : 1.0);
    double step = round_step(y->high - y->low, 5.0);
    y->low = floor(y->low / step + 1e-9) * step;
    y->high = ceil(y->high / step - 1e-9) * step;
    if (c->share)
        y->high = fmin(y->high, 1.0);
}

static void put_y_tick(const plot *p, double value, double step)
{
    double y = py(p, value);
    fprintf(p->out, "<path class=\"grid\" d=\"M%d %.1fh%d\"/><text class=\"y\" x=\"%d\" y=\"%.1f\">", LEFT, y,
            PLOT_WIDTH, LEFT - 8, y + 4.0);
    if (p->chart->share)
        fprintf(p->out, "%.*f %%</text>\n", step < 0.01 - 1e-9 ? 1 : 0, 100.0 * value);
    else
        fprintf(p->out, "%.3g</text>\n", fabs(value) < 1e-12 ? 0.0 : value);
}

static void put_y_axis(const plot *p)
{
    static const double steps[] = {1.0, 2.0, 5.0};
    if (!p->y.is_log) {
        double step = round_step(p->y.high - p->y.low, 5.0);
        int count = (int)floor((p->y.high - p->y.low) / step + 1e-6);
        for (int i = 0; i <= count; i++)
            put_y_tick(p, p->y.low + i * step, step);
        return;
    }
    bool wide = p->y.high > 2000.0 * p->y.low; /* then only powers of ten */
    for (int power = (int)floor(log10(p->y.low)); power <= (int)ceil(log10(p->y.high)); power++)
        for (int i = 0; i < (wide ? 1 : 3); i++) {
            double value = steps[i] * pow(10.0, power);
            if (value >= p->y.low && value <= p->y.high)
                put_y_tick(p, value, 1.0);
        }
}

static void put_x_axis(const plot *p)
{
    double span = p->x.high - p->x.low, step = fmax(round_step(span, 8.0), span < 2.0 ? 0.0 : 1.0);
    int first = (int)ceil(p->x.low / step - 1e-9), last = (int)floor(p->x.high / step + 1e-9);
    for (int i = first; i <= last; i++)
        fprintf(p->out, "<text class=\"x\" x=\"%.1f\" y=\"%d\">%g</text>\n", px(p, i * step),
                TOP + PLOT_HEIGHT + 18, i * step);
    fprintf(p->out, "<text class=\"x soft\" x=\"%.1f\" y=\"%d\">epoch</text>\n", LEFT + PLOT_WIDTH / 2.0,
            HEIGHT - 6);
}

/* ---- Curves ---- */

typedef bucket point_fn(const report_curve *curve, size_t number);

static void put_path(const plot *p, int s, const char *class, point_fn *point)
{
    const report_curve *curve = p->chart->series[s].curve;
    bool drawing = false;
    fprintf(p->out, "<path class=\"%s c%d\" data-points=\"%zu\" d=\"", class, s, bucket_count(curve));
    for (size_t i = 0; i < bucket_count(curve); i++) {
        bucket b = point(curve, i);
        if (b.count > 0)
            fprintf(p->out, "%s%.1f %.1f", drawing ? "L" : "M", px(p, b.x), py(p, b.y));
        drawing = b.count > 0;
    }
    fprintf(p->out, "\"/>\n");
}

static void put_curve(const plot *p, int s)
{
    const report_curve *curve = p->chart->series[s].curve;
    put_path(p, s, "curve", smooth_point);
    for (size_t i = 0; i < curve->count && !is_noisy(curve); i++)
        if (is_point(curve, i))
            fprintf(p->out, "<circle class=\"c%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", s,
                    px(p, curve->x[i]), py(p, curve->y[i]));
}

/* For the script: the points and where they are drawn. */
static void put_points(const plot *p)
{
    const chart *c = p->chart;
    fprintf(p->out, "<script type=\"application/json\">{\"share\":%s,\"series\":[",
            c->share ? "true" : "false");
    const char *between = "";
    for (int s = 0; s < 2; s++) {
        const report_curve *curve = c->series[s].curve;
        if (curve == NULL || curve->count == 0)
            continue;
        fprintf(p->out, "%s{\"name\":", between);
        put_json(p->out, c->series[s].name);
        fprintf(p->out, ",\"number\":%d,\"points\":[", s);
        const char *comma = "";
        for (size_t i = 0; i < bucket_count(curve); i++) {
            bucket b = smooth_point(curve, i);
            if (b.count == 0)
                continue;
            fprintf(p->out, "%s[%.6g,%.6g,%.1f,%.1f]", comma, b.x, b.y, px(p, b.x), py(p, b.y));
            comma = ",";
        }
        fprintf(p->out, "]}");
        between = ",";
    }
    fprintf(p->out, "]}</script>\n");
}

void put_chart(FILE *out, const chart *c)
{
    plot p = {.chart = c, .out = out};
    if (!find_range(c, &p.x, &p.y))
        return;
    widen(c, &p.x, &p.y);
    fprintf(out, "<figure class=\"chart\"><figcaption><b>%s</b>", c->title);
    for (int s = 0; s < 2; s++)
        if (c->series[s].curve != NULL && c->series[s].curve->count > 0)
            fprintf(out, "<span><i class=\"c%d\"></i>%s</span>", s, c->series[s].name);
    if (p.y.is_log)
        fprintf(out, "<span>logarithmic</span>");
    fprintf(out,
            "</figcaption>\n<svg class=\"curves\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n",
            WIDTH, HEIGHT, c->title);
    put_y_axis(&p);
    put_x_axis(&p);
    /* Within an element of its own, so that what leaves the axes is cut off. */
    fprintf(out, "<svg x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" viewBox=\"%d %d %d %d\">\n", LEFT - 4,
            TOP - 4, PLOT_WIDTH + 8, PLOT_HEIGHT + 8, LEFT - 4, TOP - 4, PLOT_WIDTH + 8, PLOT_HEIGHT + 8);
    for (int s = 0; s < 2; s++)
        if (c->series[s].curve != NULL && is_noisy(c->series[s].curve))
            put_path(&p, s, "raw", raw_point);
    for (int s = 0; s < 2; s++)
        if (c->series[s].curve != NULL && c->series[s].curve->count > 0)
            put_curve(&p, s);
    fprintf(out, "</svg>\n</svg>\n");
    put_points(&p);
    fprintf(out, "</figure>\n");
}
