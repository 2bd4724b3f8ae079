/* A plan as an image and as a page. */
#include "cli/picture/plan_picture.h"

#include <stdlib.h>

#include "cli/picture/assets.h"
#include "cli/picture/page.h"
#include "cli/picture/text.h"

#define LARGEST 12 /* buffers in the table */

bool plan_picture_svg(FILE *out, const plan_picture *picture)
{
    plan_facts facts = plan_facts_of(picture->plan);
    put_plan_svg(out, picture, &facts, true);
    plan_facts_release(&facts);
    return fflush(out) == 0 && !ferror(out);
}

void put_plan_tiles(FILE *out, const mica_plan *plan, const plan_facts *facts)
{
    char text[96], what[96];
    double total = (double)plan->total, all = (double)facts->all_bytes;
    put_tile(out, size_text(total).text, "total, in one block");
    put_tile(out, size_text((double)plan->lower_bound).text, "lower bound: the most bytes live at once");
    (void)snprintf(text, sizeof text, "%.2f %%",
                   plan->lower_bound > 0 ? 100.0 * (total / (double)plan->lower_bound - 1.0) : 0.0);
    put_tile(out, text, "lost by packing");
    (void)snprintf(text, sizeof text, "%.0f %%", all > 0.0 ? 100.0 * (1.0 - total / all) : 0.0);
    (void)snprintf(what, sizeof what, "saved by reuse: %s without sharing", size_text(all).text);
    put_tile(out, text, what);
    (void)snprintf(text, sizeof text, "%s", count_text((double)plan->count).text);
    (void)snprintf(what, sizeof what, "buffers over %s time steps", count_text(plan->times).text);
    put_tile(out, text, what);
    if (plan->recomputed > 0) {
        (void)snprintf(text, sizeof text, "+%.0f %%", 100.0 * plan->extra_work);
        (void)snprintf(what, sizeof what, "forward work: %d layers recomputed", plan->recomputed);
        put_tile(out, text, what);
    }
    if (plan->parts > 1) {
        (void)snprintf(text, sizeof text, "%d parts", plan->parts);
        put_tile(out, text, "per batch");
    }
}

/* ---- What is in use at the peak ---- */

static int by_bytes(const void *a, const void *b)
{
    const mica_plan_buffer *x = *(const mica_plan_buffer *const *)a, *y = *(const mica_plan_buffer *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void put_row(FILE *out, const mica_plan *plan, const plan_facts *facts, const mica_plan_buffer *b)
{
    fputs("<tr><td>", out);
    put_text(out, b->name);
    fprintf(
        out,
        "</td><td class=\"s\"><i class=\"swatch\" style=\"background:var(--k%d)\"></i>%s</td><td class=\"s\">%s</td>",
        (int)b->kind, mica_buffer_kind_text(b->kind), shape_text(b->dtype, b->rank, b->dim).text);
    fprintf(out, "<td class=\"n\">%s</td><td class=\"n\">%.1f %%</td><td>", size_text((double)b->bytes).text,
            facts->peak > 0 ? 100.0 * (double)b->bytes / (double)facts->peak : 0.0);
    put_moment(out, plan, b->first);
    fputs("</td><td>", out);
    put_moment(out, plan, b->last);
    fputs("</td></tr>\n", out);
}

static void put_largest(FILE *out, const mica_plan *plan, const plan_facts *facts)
{
    const mica_plan_buffer **list = malloc((plan->count + 1) * sizeof *list);
    if (list == NULL)
        return;
    size_t count = 0;
    for (size_t i = 0; i < plan->count; i++)
        if (plan->buffers[i].first <= facts->peak_time && facts->peak_time <= plan->buffers[i].last)
            list[count++] = &plan->buffers[i];
    qsort(list, count, sizeof *list, by_bytes);
    size_t shown = count < LARGEST ? count : LARGEST;
    fprintf(out,
            "<h2>In use at the peak</h2>\n<p class=\"note\">%s %zu of the %zu buffers that are in use at ",
            shown < count ? "The largest" : "All", shown, count);
    put_moment(out, plan, facts->peak_time);
    fprintf(
        out,
        ": %s.</p>\n<div class=\"figure\"><table class=\"largest\"><thead><tr><th>buffer</th><th>kind</th><th>shape</th><th class=\"n\">bytes</th>"
        "<th class=\"n\">of the peak</th><th>from</th><th>to</th></tr></thead><tbody>\n",
        size_text((double)facts->peak).text);
    for (size_t i = 0; i < shown; i++)
        put_row(out, plan, facts, list[i]);
    fputs("</tbody></table></div>\n", out);
    free((void *)list);
}

/* ---- The figure and the page ---- */

/* What the script needs to speak of times: [name, phase, bytes in use]. */
static void put_times(FILE *out, const mica_plan *plan, const plan_facts *facts)
{
    fputs("<script type=\"application/json\" id=\"plan-times\">[", out);
    for (int t = 0; t < plan->times; t++) {
        fputs(t > 0 ? ",\n[" : "[", out);
        put_json(out, plan->time[t].name);
        fprintf(out, ",%d,%zu]", (int)plan->time[t].phase, facts->alive != NULL ? facts->alive[t] : 0);
    }
    fputs("]</script>\n", out);
}

void put_plan_figure(FILE *out, const plan_picture *picture, const plan_facts *facts)
{
    fputs("<figure class=\"figure\">\n", out);
    put_plan_svg(out, picture, facts, false);
    fputs(
        "</figure>\n<div class=\"bar\"><span class=\"hint\">Hover over a buffer for details; drag a box to zoom in.</span>"
        "<button type=\"button\" class=\"reset\" hidden>Show all</button></div>\n",
        out);
    put_times(out, picture->plan, facts);
    fprintf(out, "<script>\n%s</script>\n", asset_plan_js);
    put_largest(out, picture->plan, facts);
}

bool plan_picture_html(FILE *out, const plan_picture *picture)
{
    plan_facts facts = plan_facts_of(picture->plan);
    page_begin(out, picture->title, picture->subtitle, NULL);
    fputs("<ul class=\"tiles\">\n", out);
    put_plan_tiles(out, picture->plan, &facts);
    fputs("</ul>\n", out);
    put_plan_figure(out, picture, &facts);
    plan_facts_release(&facts);
    return page_end(out);
}
