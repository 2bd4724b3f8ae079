/* The report of a training run. */
#include "cli/picture/report.h"

#include <math.h>

#include "cli/picture/assets.h"
#include "cli/picture/chart.h"
#include "cli/picture/page.h"
#include "cli/picture/report_parts.h"
#include "cli/picture/text.h"

/* The last finite value of a curve; NaN: none. */
static double last_of(const report_curve *curve)
{
    for (size_t i = curve->count; i > 0; i--)
        if (isfinite(curve->y[i - 1]))
            return curve->y[i - 1];
    return NAN;
}

static void put_tiles(FILE *out, const report *r)
{
    char text[64], what[96];
    double accuracy = last_of(&r->validation_accuracy), loss = last_of(&r->validation_loss);
    bool held_out = isfinite(accuracy) || isfinite(loss);
    if (!held_out) {
        accuracy = last_of(&r->train_accuracy);
        loss = last_of(&r->train_loss);
    }
    fputs("<ul class=\"tiles\">\n", out);
    for (size_t i = 0; i < r->score_count; i++)
        put_tile(out, r->scores[i].value, r->scores[i].name);
    const char *of = held_out ? "on held-out samples" : "in training";
    if (isfinite(accuracy) && r->score_count == 0) {
        (void)snprintf(text, sizeof text, "%.2f %%", 100.0 * accuracy);
        (void)snprintf(what, sizeof what, "accuracy %s", of);
        put_tile(out, text, what);
    }
    if (isfinite(loss) && r->score_count == 0) {
        (void)snprintf(text, sizeof text, "%.4g", loss);
        (void)snprintf(what, sizeof what, "loss %s", of);
        put_tile(out, text, what);
    }
    if (r->plan != NULL)
        put_tile(out, size_text((double)r->plan->total).text, "of memory, planned before the first step");
    if (r->steps > 0) {
        (void)snprintf(what, sizeof what, "heap calls in %s steps", count_text((double)r->steps).text);
        put_tile(out, count_text((double)r->heap_calls).text, what);
        (void)snprintf(what, sizeof what, "of training, %s per step",
                       time_text(r->seconds / (double)r->steps).text);
        put_tile(out, time_text(r->seconds).text, what);
    }
    fputs("</ul>\n", out);
}

static void put_curves(FILE *out, const report *r)
{
    const chart charts[] = {
        {.title = "Loss",
         .series = {{"training", &r->train_loss}, {"held out", &r->validation_loss}},
         .may_log = true},
        {.title = "Accuracy",
         .series = {{"training", &r->train_accuracy}, {"held out", &r->validation_accuracy}},
         .share = true},
        {.title = "RMSE",
         .series = {{"training", &r->train_rmse}, {"held out", &r->validation_rmse}},
         .may_log = true},
        {.title = "Learning rate", .series = {{"rate", &r->learning_rate}}},
    };
    fputs("<section class=\"charts\">\n", out);
    for (size_t i = 0; i < sizeof charts / sizeof charts[0]; i++)
        put_chart(out, &charts[i]);
    fputs("</section>\n", out);
}

/* ---- Time per layer ---- */

static void put_layers(FILE *out, const report *r)
{
    double most = 0.0, forward = 0.0, backward = 0.0;
    if (r->layer_count == 0)
        return;
    for (size_t i = 0; i < r->layer_count; i++) {
        most = fmax(most, r->layers[i].forward + r->layers[i].backward);
        forward += r->layers[i].forward;
        backward += r->layers[i].backward;
    }
    fputs(
        "<section><h2>Time per step, by layer</h2>\n<div class=\"figure\"><table class=\"layers\"><thead><tr><th>layer</th><th>kind</th>"
        "<th class=\"n\">forward</th><th class=\"n\">backward</th><th class=\"n\">share</th>"
        "<th class=\"bars\"><i class=\"forward\"></i>forward <i class=\"backward\"></i>backward</th></tr></thead><tbody>\n",
        out);
    for (size_t i = 0; i < r->layer_count; i++) {
        const report_layer *l = &r->layers[i];
        double scale = most > 0.0 ? 100.0 / most : 0.0, all = forward + backward;
        fputs("<tr><td>", out);
        put_text(out, l->name);
        fputs("</td><td>", out);
        put_text(out, l->kind);
        fprintf(out, "</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%.1f %%</td>",
                time_text(l->forward).text, time_text(l->backward).text,
                all > 0.0 ? 100.0 * (l->forward + l->backward) / all : 0.0);
        fprintf(
            out,
            "<td class=\"bars\"><i class=\"forward\" style=\"width:%.2f%%\"></i><i class=\"backward\" style=\"width:%.2f%%\"></i></td></tr>\n",
            l->forward * scale, l->backward * scale);
    }
    fprintf(
        out,
        "</tbody><tfoot><tr><td>all</td><td></td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">100 %%</td><td></td></tr></tfoot></table></div></section>\n",
        time_text(forward).text, time_text(backward).text);
}

/* ---- Memory, settings, net ---- */

static void put_memory(FILE *out, const report *r)
{
    if (r->plan == NULL)
        return;
    plan_facts facts = plan_facts_of(r->plan);
    fputs("<section><h2>Memory per step</h2>\n<ul class=\"tiles\">\n", out);
    put_plan_tiles(out, r->plan, &facts);
    fputs("</ul>\n", out);
    put_plan_figure(out, &(plan_picture){.plan = r->plan, .title = r->title}, &facts);
    fputs("</section>\n", out);
    plan_facts_release(&facts);
}

static void put_settings(FILE *out, const report *r)
{
    if (r->setting_count == 0 && r->command == NULL)
        return;
    fputs("<section><h2>Settings</h2>\n", out);
    if (r->command != NULL) {
        fputs("<p class=\"note\">To reproduce:</p>\n<pre><code>", out);
        put_text(out, r->command);
        fputs("</code></pre>\n", out);
    }
    fputs("<table class=\"settings\"><tbody>\n", out);
    for (size_t i = 0; i < r->setting_count; i++) {
        fputs("<tr><th>", out);
        put_text(out, r->settings[i].name);
        fputs("</th><td>", out);
        put_text(out, r->settings[i].value);
        fputs("</td></tr>\n", out);
    }
    fputs("</tbody></table></section>\n", out);
}

static void put_pre(FILE *out, const char *title, const char *text)
{
    if (text == NULL)
        return;
    fprintf(out, "<section><h2>%s</h2>\n<pre>", title);
    put_text(out, text);
    fputs("</pre></section>\n", out);
}

bool report_write(FILE *out, const report *r)
{
    page_begin(out, r->title, r->subtitle, asset_report_css);
    put_tiles(out, r);
    put_curves(out, r);
    put_forecast(out, r);
    put_regression(out, r);
    fputs("<div class=\"sides\">\n", out);
    put_confusion(out, r);
    put_mistakes(out, r);
    put_importance(out, r);
    fputs("</div>\n", out);
    put_samples(out, r);
    put_texts(out, r);
    put_layers(out, r);
    put_memory(out, r);
    put_settings(out, r);
    put_pre(out, "Net", r->net);
    put_pre(out, "Layers", r->summary);
    fprintf(out, "<script>\n%s</script>\n", asset_report_js);
    return page_end(out);
}
