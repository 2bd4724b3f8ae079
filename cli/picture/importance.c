/* Columns by how much depends on them; and texts that a net writes. */
#include <math.h>

#include "cli/picture/report_parts.h"
#include "cli/picture/text.h"

#define MOST_LISTED 30

void put_importance(FILE *out, const report *r)
{
    size_t count = r->column_count < MOST_LISTED ? r->column_count : MOST_LISTED;
    double most = 0.0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, r->columns[i].drop);
    if (count == 0)
        return;
    fputs("<section><h2>Which columns matter</h2>\n<p class=\"note\">How much ", out);
    put_text(out, r->importance_of);
    fputs(
        " when the values of a column are shuffled among the samples: nothing is lost where the net does not need "
        "it.</p>\n"
        "<div class=\"figure\"><table class=\"layers columns\"><tbody>\n",
        out);
    for (size_t i = 0; i < count; i++) {
        const report_column *c = &r->columns[i];
        fputs("<tr><th>", out);
        put_text_up_to(out, c->name, 60);
        if (r->importance_share)
            fprintf(out, "</th><td class=\"n\">%.2f %%</td>", 100.0 * c->drop);
        else
            fprintf(out, "</th><td class=\"n\">%s</td>", figure_text(c->drop).text);
        fprintf(out, "<td class=\"bars\"><i class=\"forward\" style=\"width:%.2f%%\"></i></td></tr>\n",
                most > 0.0 ? fmax(0.0, 100.0 * c->drop / most) : 0.0);
    }
    fputs("</tbody></table></div>\n", out);
    if (count < r->column_count)
        fprintf(out, "<p class=\"note\">And %s more, which matter less.</p>\n",
                count_text((double)(r->column_count - count)).text);
    fputs("</section>\n", out);
}

void put_texts(FILE *out, const report *r)
{
    if (r->text_count == 0)
        return;
    fputs("<section><h2>What it writes</h2>\n", out);
    for (size_t i = 0; i < r->text_count; i++) {
        fputs("<pre class=\"written\">", out);
        put_text(out, r->texts[i]);
        fputs("</pre>\n", out);
    }
    fputs("</section>\n", out);
}
