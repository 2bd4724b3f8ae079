/* The picture of a plan: axes, a rectangle for each buffer, the peak and the bound, and the bytes in use. */
#include "cli/picture/plan_svg.h"

#include <math.h>
#include <stdlib.h>

#include "cli/picture/assets.h"
#include "cli/picture/text.h"

/* Pixels; the page scales them. plan.js reads where the plot lies from the element. */
enum { LEFT = 76, RIGHT = 116, PLOT_WIDTH = 1016, PLOT_HEIGHT = 460, AXIS = 134 };
enum { TITLE = 62, LEGEND_ROW = 22, USE = 62, GAP = 16, BAND = 15 };
#define LETTER 6.3 /* the width of one, in the font of labels, on average */

typedef struct frame {
    const mica_plan *plan;
    const plan_facts *facts;
    FILE *out;
    double top; /* of the plot */
    double bytes, times;
    bool standalone;
} frame;

static double x_of(const frame *f, double time) { return LEFT + time / f->times * PLOT_WIDTH; }
static double y_of(const frame *f, double bytes) { return f->top + (1.0 - bytes / f->bytes) * PLOT_HEIGHT; }

/* ---- Facts ---- */

plan_facts plan_facts_of(const mica_plan *plan)
{
    size_t times = plan->times > 0 ? (size_t)plan->times : 1;
    plan_facts facts = {.alive = calloc(times + 1, sizeof(size_t))};
    for (size_t i = 0; i < plan->count; i++)
        facts.all_bytes += plan->buffers[i].bytes;
    while (facts.forwards < plan->times && plan->time[facts.forwards].phase == MICA_PHASE_FORWARD)
        facts.forwards++;
    if (facts.alive == NULL)
        return facts;
    for (size_t i = 0; i < plan->count;
         i++) { /* what comes and what goes; the differences wrap, their sums do not */
        facts.alive[plan->buffers[i].first] += plan->buffers[i].bytes;
        facts.alive[plan->buffers[i].last + 1] -= plan->buffers[i].bytes;
    }
    for (size_t t = 0; t < times; t++) {
        facts.alive[t] += t > 0 ? facts.alive[t - 1] : 0;
        if (facts.alive[t] > facts.peak) {
            facts.peak = facts.alive[t];
            facts.peak_time = (int)t;
        }
    }
    for (size_t i = 0; i < plan->count; i++)
        if (plan->buffers[i].first <= facts.peak_time && facts.peak_time <= plan->buffers[i].last)
            facts.at_peak[plan->buffers[i].kind] += plan->buffers[i].bytes;
    return facts;
}

void plan_facts_release(plan_facts *facts)
{
    free(facts->alive);
    facts->alive = NULL;
}

void put_moment(FILE *out, const mica_plan *plan, int time)
{
    if (time < 0 || time >= plan->times)
        return;
    put_text(out, plan->time[time].name);
    fprintf(out, ", %s", mica_phase_text(plan->time[time].phase));
}

/* ---- Axes ---- */

/* The distance of lines across so many bytes: a power of two, about six of them. */
static double byte_step(double bytes) { return fmax(1.0, exp2(ceil(log2(bytes / 7.0)))); }

static void put_byte_axis(const frame *f)
{
    fprintf(f->out, "<g class=\"axis bytes\">\n");
    double step = byte_step(f->bytes);
    for (int i = 0; i * step <= f->bytes; i++) {
        double at = i * step, y = y_of(f, at);
        fprintf(f->out, "<path class=\"grid\" d=\"M%d %.2fh%d\"/><text x=\"%d\" y=\"%.2f\">%s</text>\n", LEFT,
                y, PLOT_WIDTH, LEFT - 8, y + 4.0, round_size_text(at).text);
    }
    fprintf(
        f->out,
        "</g>\n<text class=\"name\" transform=\"translate(18 %.1f) rotate(-90)\">offset in the block</text>\n",
        f->top + PLOT_HEIGHT / 2.0);
}

/* Layers below the axis, as many as there is room for. */
static void put_time_axis(const frame *f)
{
    const mica_plan *plan = f->plan;
    int every = (int)ceil(14.0 * f->times / PLOT_WIDTH);
    double y = f->top + PLOT_HEIGHT;
    fprintf(f->out, "<g class=\"axis times\">\n");
    for (int t = 0; t<plan->times; t += every> 0 ? every : 1) {
        double x = x_of(f, t + 0.5);
        fprintf(f->out, "<text transform=\"translate(%.2f %.2f) rotate(-60)\">", x + 4.0, y + BAND + 16.0);
        put_text_end(f->out, plan->time[t].name, 17);
        fprintf(f->out, "</text>\n");
    }
    fprintf(f->out, "</g>\n");
}

/* A band below the plot: what runs forward, what backward. */
static void put_phases(const frame *f)
{
    const mica_plan *plan = f->plan;
    double y = f->top + PLOT_HEIGHT + 3.0;
    fprintf(f->out, "<g class=\"phases\">\n");
    for (int t = 0, end; t < plan->times; t = end) {
        for (end = t + 1; end < plan->times && plan->time[end].phase == plan->time[t].phase; end++)
            ;
        double x = x_of(f, t), width = x_of(f, end) - x;
        const char *text = mica_phase_text(plan->time[t].phase);
        fprintf(f->out,
                "<g data-first=\"%d\" data-last=\"%d\"><rect class=\"p%d\" x=\"%.2f\" y=\"%.2f\" "
                "width=\"%.2f\" height=\"%d\"/>",
                t, end - 1, (int)plan->time[t].phase, x, y, width, BAND);
        fprintf(f->out, "<text x=\"%.2f\" y=\"%.2f\">%s</text></g>\n", x + width / 2.0, y + 11.0,
                width > LETTER * 10.0 ? text : "");
    }
    fprintf(f->out, "</g>\n");
    for (int phase = MICA_PHASE_RECOMPUTE; plan->recomputed > 0 && phase <= MICA_PHASE_BACKWARD; phase++) {
        double at = y +
                    (phase - MICA_PHASE_RECOMPUTE) * (BAND + 3.0); /* their pieces are too short for a name */
        fprintf(
            f->out,
            "<rect class=\"p%d\" x=\"%d\" y=\"%.2f\" width=\"12\" height=\"12\"/><text class=\"side start\" x=\"%d\" y=\"%.2f\">%s</text>\n",
            phase, LEFT + PLOT_WIDTH + 10, at + 2.0, LEFT + PLOT_WIDTH + 28, at + 12.0,
            mica_phase_text((mica_phase)phase));
    }
    if (f->facts->forwards > 0 && f->facts->forwards < plan->times)
        fprintf(f->out, "<path class=\"turn\" data-time=\"%d\" d=\"M%.2f %.2fV%.2f\"/>\n", f->facts->forwards,
                x_of(f, f->facts->forwards), f->top - GAP - USE, y + BAND);
}

/* ---- Buffers ---- */

static void put_buffer_title(const frame *f, const mica_plan_buffer *b)
{
    fprintf(f->out, "<title>");
    put_text(f->out, b->name);
    fprintf(f->out, " (%s)\n%s\n%s bytes at %s\nfrom ", mica_buffer_kind_text(b->kind),
            shape_text(b->dtype, b->rank, b->dim).text, count_text((double)b->bytes).text,
            count_text((double)b->offset).text);
    put_moment(f->out, f->plan, b->first);
    fprintf(f->out, " to ");
    put_moment(f->out, f->plan, b->last);
    fprintf(f->out, "</title>");
}

static void put_buffer(const frame *f, const mica_plan_buffer *b)
{
    double x = x_of(f, b->first), y = y_of(f, (double)(b->offset + b->bytes));
    double width = x_of(f, b->last + 1) - x, height = y_of(f, (double)b->offset) - y;
    fprintf(f->out, "<rect class=\"k%d%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"",
            (int)b->kind, width < 3.0 || height < 3.0 ? " thin" : "", x, y, width, height);
    if (f->standalone) {
        fprintf(f->out, ">");
        put_buffer_title(f, b);
        fprintf(f->out, "</rect>\n");
        return;
    }
    fprintf(f->out, " data-name=\"");
    put_text(f->out, b->name);
    fprintf(
        f->out,
        "\" data-kind=\"%s\" data-shape=\"%s\" data-bytes=\"%zu\" data-offset=\"%zu\" data-first=\"%d\" data-last=\"%d\"/>\n",
        mica_buffer_kind_text(b->kind), shape_text(b->dtype, b->rank, b->dim).text, b->bytes, b->offset,
        b->first, b->last);
}

/* A name in its rectangle, if it fits. */
static void put_label(const frame *f, const mica_plan_buffer *b)
{
    double x = x_of(f, b->first), y = y_of(f, (double)(b->offset + b->bytes));
    double width = x_of(f, b->last + 1) - x, height = y_of(f, (double)b->offset) - y;
    int letters = (int)((width - 9.0) / LETTER);
    if (height < 15.0 || letters < 4)
        return;
    fprintf(f->out, "<text class=\"t%d\" x=\"%.2f\" y=\"%.2f\">", (int)b->kind, x + 5.0,
            height < 22.0 ? y + height / 2.0 + 4.0 : y + 14.0);
    put_text_up_to(f->out, b->name, (size_t)letters);
    fprintf(f->out, "</text>\n");
    if (height >= 34.0 && letters >= 8)
        fprintf(f->out, "<text class=\"t%d size\" x=\"%.2f\" y=\"%.2f\">%s</text>\n", (int)b->kind, x + 5.0,
                y + 28.0, size_text((double)b->bytes).text);
}

static void put_buffers(const frame *f)
{
    fprintf(f->out, "<g class=\"buffers\" clip-path=\"url(#plot)\">\n");
    for (size_t i = 0; i < f->plan->count; i++)
        if (f->plan->buffers[i].bytes > 0)
            put_buffer(f, &f->plan->buffers[i]);
    fprintf(f->out, "</g>\n<g class=\"labels\" clip-path=\"url(#plot)\">\n");
    for (size_t i = 0; i < f->plan->count; i++)
        put_label(f, &f->plan->buffers[i]);
    fprintf(f->out, "</g>\n");
}

/* ---- Lines ---- */

/* Above the plot: bytes in use at each time, whose highest is the lower bound. */
static void put_use(const frame *f)
{
    const plan_facts *facts = f->facts;
    if (facts->alive == NULL || f->plan->times == 0)
        return;
    double floor = f->top - GAP, scale = USE / f->bytes;
    double bound = floor - (double)f->plan->lower_bound * scale, peak = x_of(f, facts->peak_time + 0.5);
    fprintf(f->out,
            "<text class=\"side\" x=\"%d\" y=\"%.2f\">in use</text>\n<path class=\"use\" d=\"M%d %.2f",
            LEFT - 8, floor - USE / 2.0 + 4.0, LEFT, floor);
    for (int t = 0; t < f->plan->times; t++)
        if (t == 0 || facts->alive[t] != facts->alive[t - 1])
            fprintf(f->out, "H%.2fV%.2f", x_of(f, t), floor - (double)facts->alive[t] * scale);
    fprintf(f->out, "H%dV%.2fZ\"/>\n", LEFT + PLOT_WIDTH, floor);
    fprintf(
        f->out,
        "<path class=\"bound\" d=\"M%d %.2fh%d\"/><circle class=\"peak\" cx=\"%.2f\" cy=\"%.2f\" r=\"4\"/>\n",
        LEFT, bound, PLOT_WIDTH + 4, peak, bound);
}

static void put_line(const frame *f, const char *class, double bytes, double text_y, const char *name)
{
    double y = y_of(f, bytes), right = LEFT + PLOT_WIDTH;
    fprintf(f->out,
            "<g class=\"%s\" data-bytes=\"%.0f\"><path d=\"M%d %.2fH%.2f\"/>"
            "<text x=\"%.2f\" y=\"%.2f\">%s</text><text class=\"size\" x=\"%.2f\" y=\"%.2f\">%s</text></g>\n",
            class, bytes, LEFT, y, right + 4.0, right + 10.0, text_y, name, right + 10.0, text_y + 15.0,
            size_text(bytes).text);
}

static void put_lines(const frame *f)
{
    double total = (double)f->plan->total, bound = (double)f->plan->lower_bound;
    bool near = y_of(f, bound) - f->top < 36.0;
    put_line(f, "line bound", bound, near ? f->top + 38.0 : y_of(f, bound) + 4.0, "lower bound");
    put_line(f, "line total", total, f->top + 4.0, "peak");
}

/* ---- The whole ---- */

/* Kinds with the bytes that they take at the peak. Returns the rows that takes; writes nothing without `out`. */
static int put_legend(FILE *out, const mica_plan *plan, const plan_facts *facts, double y)
{
    double x = LEFT + 78.0, right = LEFT + PLOT_WIDTH + RIGHT - 12.0;
    int rows = 1;
    if (out != NULL)
        fprintf(out, "<text class=\"side start\" x=\"%d\" y=\"%.1f\">at the peak:</text>\n", LEFT, y + 10.0);
    for (int kind = 0; kind < MICA_BUFFER_KIND_COUNT; kind++) {
        if (plan->kind_bytes[kind] == 0)
            continue;
        char text[96];
        int letters = snprintf(text, sizeof text, "%s %s", mica_buffer_kind_text((mica_buffer_kind)kind),
                               facts->at_peak[kind] > 0 ? size_text((double)facts->at_peak[kind]).text : "–");
        double width = 18.0 + 6.6 * letters + 16.0;
        if (x + width > right) {
            x = LEFT + 78.0;
            rows++;
        }
        if (out != NULL)
            fprintf(
                out,
                "<g class=\"key\" data-kind=\"%d\"><rect class=\"k%d\" x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"2\"/>"
                "<text x=\"%.1f\" y=\"%.1f\">%s <tspan class=\"size\">%s</tspan></text></g>\n",
                kind, kind, x, y + (rows - 1) * LEGEND_ROW, x + 18.0, y + (rows - 1) * LEGEND_ROW + 10.0,
                mica_buffer_kind_text((mica_buffer_kind)kind),
                facts->at_peak[kind] > 0 ? size_text((double)facts->at_peak[kind]).text : "–");
        x += width;
    }
    return rows;
}

static void put_heading(FILE *out, const plan_picture *picture, const plan_facts *facts)
{
    const mica_plan *plan = picture->plan;
    fprintf(out, "<text class=\"title\" x=\"%d\" y=\"34\">", LEFT);
    put_text_up_to(out, picture->title, 60);
    fprintf(out, "</text>\n<text class=\"subtitle\" x=\"%d\" y=\"54\">", LEFT);
    put_text_up_to(out, picture->subtitle, 100);
    fprintf(out, "%s%s in one block, peak at ", picture->subtitle != NULL ? ": " : "",
            size_text((double)plan->total).text);
    put_moment(out, plan, facts->peak_time);
    fprintf(out, "</text>\n");
}

void put_plan_svg(FILE *out, const plan_picture *picture, const plan_facts *facts, bool standalone)
{
    const mica_plan *plan = picture->plan;
    double y = standalone ? TITLE + 12 : 8;
    int rows = put_legend(NULL, plan, facts, y);
    frame f = {.plan = plan, .facts = facts, .out = out, .standalone = standalone};
    f.top = y + rows * LEGEND_ROW + 10.0 + USE + GAP;
    f.bytes = plan->total > 0 ? (double)plan->total : 1.0;
    f.times = plan->times > 0 ? plan->times : 1.0;
    double width = LEFT + PLOT_WIDTH + RIGHT, height = f.top + PLOT_HEIGHT + AXIS;

    fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plan\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
        "data-left=\"%d\" data-top=\"%.0f\" data-width=\"%d\" data-height=\"%d\" data-times=\"%d\" data-total=\"%zu\">\n",
        width, height, LEFT, f.top, PLOT_WIDTH, PLOT_HEIGHT, plan->times, plan->total);
    if (standalone) {
        fprintf(out, "<style>%s%s</style>\n<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\" rx=\"8\"/>\n",
                asset_colours_css, asset_plan_css, width, height);
        put_heading(out, picture, facts);
    }
    fprintf(
        out,
        "<defs><clipPath id=\"plot\"><rect x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%d\"/></clipPath></defs>\n"
        "<rect class=\"plot\" x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%d\"/>\n",
        LEFT, f.top, PLOT_WIDTH, PLOT_HEIGHT, LEFT, f.top, PLOT_WIDTH, PLOT_HEIGHT);
    put_legend(out, plan, facts, y);
    put_byte_axis(&f);
    put_time_axis(&f);
    put_buffers(&f);
    put_use(&f);
    put_lines(&f);
    put_phases(&f);
    fprintf(out, "</svg>\n");
}
