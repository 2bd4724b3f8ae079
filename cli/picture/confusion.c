/* The confusion matrix, and the worst mistakes. */
#include <math.h>
#include <stdlib.h>

#include "cli/picture/png.h"
#include "cli/picture/report_parts.h"
#include "cli/picture/text.h"

#define MOST_CLASSES 40 /* of a matrix; of more, the most frequent mistakes are listed */
#define MOST_LISTED  20

static uint64_t cell(const report *r, int label, int prediction)
{
    return r->confusion[(size_t)label * (size_t)r->classes + (size_t)prediction];
}

void put_class(FILE *out, const report *r, int number)
{
    if (r->class_names != NULL && number >= 0 && number < r->classes)
        put_text(out, r->class_names[number]);
    else
        fprintf(out, "%d", number);
}

static uint64_t row_sum(const report *r, int label)
{
    uint64_t sum = 0;
    for (int i = 0; i < r->classes; i++)
        sum += cell(r, label, i);
    return sum;
}

static uint64_t column_sum(const report *r, int prediction)
{
    uint64_t sum = 0;
    for (int i = 0; i < r->classes; i++)
        sum += cell(r, i, prediction);
    return sum;
}

static void put_percent(FILE *out, uint64_t part, uint64_t whole, int digits)
{
    if (whole == 0)
        fputs("<td class=\"share\">–</td>", out);
    else
        fprintf(out, "<td class=\"share\">%.*f %%</td>", digits, 100.0 * (double)part / (double)whole);
}

/* A share as the strength of a colour: mistakes are few, and still have to be seen. */
static void put_cell(FILE *out, const report *r, int label, int prediction, uint64_t row)
{
    uint64_t count = cell(r, label, prediction);
    double share = row > 0 ? (double)count / (double)row : 0.0;
    bool right = label == prediction;
    double strength = right ? 0.85 * share : count > 0 ? fmin(0.9, 0.14 + 3.0 * share) : 0.0;
    fprintf(out, "<td class=\"%s%s\" style=\"--s:%.3f\" data-label=\"%d\" data-prediction=\"%d\" title=\"",
            right ? "right" : "wrong", strength > 0.55 ? " strong" : "", strength, label, prediction);
    put_class(out, r, label);
    fputs(" predicted as ", out);
    put_class(out, r, prediction);
    fprintf(out, ": %s\">", count_text((double)count).text);
    if (count > 0)
        fprintf(out, "%llu", (unsigned long long)count);
    fputs("</td>", out);
}

static void put_matrix(FILE *out, const report *r)
{
    fputs(
        "<div class=\"figure\"><table class=\"matrix\">\n<thead><tr><th class=\"corner\">label ↓ prediction →</th>",
        out);
    for (int i = 0; i < r->classes; i++) {
        fputs("<th>", out);
        put_class(out, r, i);
        fputs("</th>", out);
    }
    fputs("<th class=\"share\">recall</th></tr></thead>\n<tbody>\n", out);
    for (int label = 0; label < r->classes; label++) {
        uint64_t row = row_sum(r, label);
        fputs("<tr><th>", out);
        put_class(out, r, label);
        fputs("</th>", out);
        for (int prediction = 0; prediction < r->classes; prediction++)
            put_cell(out, r, label, prediction, row);
        put_percent(out, cell(r, label, label), row, 1);
        fputs("</tr>\n", out);
    }
    fputs("</tbody><tfoot><tr><th>right</th>", out);
    for (int i = 0; i < r->classes; i++)
        put_percent(out, cell(r, i, i), column_sum(r, i), 0);
    fputs("<td></td></tr></tfoot></table></div>\n", out);
}

/* ---- Of many classes: a list ---- */

typedef struct pair {
    int label, prediction;
    uint64_t count;
} pair;

static int by_count(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return x->label != y->label ? x->label - y->label : x->prediction - y->prediction;
}

static void put_list(FILE *out, const report *r)
{
    pair top[MOST_LISTED + 1];
    size_t count = 0;
    for (int label = 0; label < r->classes; label++)
        for (int prediction = 0; prediction < r->classes; prediction++) {
            if (label == prediction || cell(r, label, prediction) == 0)
                continue;
            top[count++] = (pair){label, prediction, cell(r, label, prediction)};
            qsort(top, count, sizeof top[0], by_count);
            count = count > MOST_LISTED ? MOST_LISTED : count;
        }
    fputs(
        "<table class=\"pairs\"><thead><tr><th>label</th><th>predicted as</th><th class=\"n\">count</th></tr></thead><tbody>\n",
        out);
    for (size_t i = 0; i < count; i++) {
        fputs("<tr><td>", out);
        put_class(out, r, top[i].label);
        fputs("</td><td>", out);
        put_class(out, r, top[i].prediction);
        fprintf(out, "</td><td class=\"n\">%s</td></tr>\n", count_text((double)top[i].count).text);
    }
    fputs("</tbody></table>\n", out);
}

void put_confusion(FILE *out, const report *r)
{
    if (r->classes < 1 || r->confusion == NULL)
        return;
    fputs("<section><h2>What was taken for what</h2>\n", out);
    if (r->classes <= MOST_CLASSES)
        put_matrix(out, r);
    else
        put_list(out, r);
    fputs("</section>\n", out);
}

/* ---- Mistakes ---- */

static void put_mistake(FILE *out, const report *r, const report_mistake *m)
{
    fprintf(out, "<figure class=\"mistake\" title=\"sample %zu: given %.2f %% for ", m->number,
            100.0 * m->probability);
    put_class(out, r, m->prediction);
    fprintf(out, ", %.2f %% for ", 100.0 * m->label_probability);
    put_class(out, r, m->label);
    fputs("\">", out);
    if (m->pixels != NULL) {
        fputs("<img alt=\"\" src=\"", out);
        put_png(out, m->pixels, m->width, m->height, m->channels);
        fprintf(out, "\" width=\"%d\" height=\"%d\">", m->width, m->height);
    }
    fputs("<figcaption><b>", out);
    put_class(out, r, m->label);
    fputs("</b> predicted as <b class=\"bad\">", out);
    put_class(out, r, m->prediction);
    fprintf(out, "</b><span>%.1f %% sure</span></figcaption></figure>\n", 100.0 * m->probability);
}

void put_mistakes(FILE *out, const report *r)
{
    if (r->mistake_count == 0)
        return;
    fputs("<section><h2>The worst mistakes</h2>\n<div class=\"mistakes\">\n", out);
    for (size_t i = 0; i < r->mistake_count; i++)
        put_mistake(out, r, &r->mistakes[i]);
    fputs("</div></section>\n", out);
}
