/* Figures with two axes. */
#include "cli/picture/frame.h"

#include <math.h>

#include "cli/picture/text.h"

enum { NARROW = 500, WIDE = 1000, HEIGHT = 300, LEFT = 66, RIGHT = 18, TOP = 14, BOTTOM = 48 };
enum { PLOT_HEIGHT = HEIGHT - TOP - BOTTOM };

static int plot_width(const frame *f) { return (f->wide ? WIDE : NARROW) - LEFT - RIGHT; }

double frame_x(const frame *f, double x) { return LEFT + axis_along(&f->x, x) * plot_width(f); }
double frame_y(const frame *f, double y) { return TOP + (1.0 - axis_along(&f->y, y)) * PLOT_HEIGHT; }

/* A number at a tick, with no more digits than tell it from the next. */
static short_text tick_text(double value, double step)
{
    short_text out;
    double size = fmax(fabs(value), step);
    int digits = (int)fmin(12.0, fmax(1.0, ceil(log10(size / step) - 1e-9) + 1.0));
    if (size >= 1e7 || size < 1e-4)
        (void)snprintf(out.text, sizeof out.text, "%.*g", digits, fabs(value) < step * 1e-6 ? 0.0 : value);
    else
        (void)snprintf(out.text, sizeof out.text, "%.*f", (int)fmax(0.0, ceil(-log10(step) - 1e-9)),
                       fabs(value) < step * 1e-6 ? 0.0 : value);
    return out;
}

static void put_ticks(FILE *out, const frame *f, bool along_x)
{
    const axis *a = along_x ? &f->x : &f->y;
    double step = round_step(a->high - a->low, along_x ? (f->wide ? 12.0 : 6.0) : 5.0);
    int first = (int)ceil(a->low / step - 1e-9), last = (int)floor(a->high / step + 1e-9);
    for (int i = first; i <= last; i++) {
        const short_text text = tick_text(i * step, step);
        if (along_x)
            fprintf(out, "<text class=\"x\" x=\"%.1f\" y=\"%d\">%s</text>\n", frame_x(f, i * step),
                    TOP + PLOT_HEIGHT + 18, text.text);
        else
            fprintf(
                out,
                "<path class=\"grid\" d=\"M%d %.1fh%d\"/><text class=\"y\" x=\"%d\" y=\"%.1f\">%s</text>\n",
                LEFT, frame_y(f, i * step), plot_width(f), LEFT - 8, frame_y(f, i * step) + 4.0, text.text);
    }
}

void frame_begin(FILE *out, const frame *f)
{
    fprintf(out, "<figure class=\"drawn\"><figcaption><b>%s</b>", f->title);
    if (f->of != NULL) {
        fputs("<span>", out);
        put_text_up_to(out, f->of, 40);
        fputs("</span>", out);
    }
    for (int i = 0; i < 3; i++)
        if (f->legend[i] != NULL) {
            fprintf(out, "<span><i class=\"s%d\"></i>", i);
            put_text_up_to(out, f->legend[i], 40);
            fputs("</span>", out);
        }
    fprintf(out,
            "</figcaption>\n<svg class=\"curves\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n",
            f->wide ? WIDE : NARROW, HEIGHT, f->title);
    put_ticks(out, f, false);
    put_ticks(out, f, true);
    fprintf(out, "<text class=\"x soft\" x=\"%.1f\" y=\"%d\">%s</text>\n", LEFT + plot_width(f) / 2.0,
            HEIGHT - 8, f->x_title);
}

void frame_end(FILE *out) { fputs("</svg></figure>\n", out); }
