/* Scores in reports. */
#include "cli/model/score_report.h"

#include <math.h>

#include "cli/model/measure.h"
#include "cli/picture/text.h"

static void add_tile(report *r, score_pages *room, const char *value, const char *what)
{
    size_t i = r->score_count;
    if (i == SCORE_TILES)
        return;
    (void)snprintf(room->tile_texts[i][0], sizeof room->tile_texts[i][0], "%s", what);
    (void)snprintf(room->tile_texts[i][1], sizeof room->tile_texts[i][1], "%s", value);
    room->tiles[i] = (report_setting){room->tile_texts[i][0], room->tile_texts[i][1]};
    r->scores = room->tiles;
    r->score_count++;
}

/* With so many digits behind the point; SHORT: four in all. */
enum { SHORT = -1 };

static void add_number(report *r, score_pages *room, double value, int digits, const char *what)
{
    char text[64];
    if (!isfinite(value))
        return;
    if (digits == SHORT)
        (void)snprintf(text, sizeof text, "%s", figure_text(value).text);
    else
        (void)snprintf(text, sizeof text, "%.*f", digits, value);
    add_tile(r, room, text, what);
}

static void add_share(report *r, score_pages *room, double value, const char *what)
{
    char text[64];
    if (!isfinite(value))
        return;
    (void)snprintf(text, sizeof text, "%.2f %%", 100 * value);
    add_tile(r, room, text, what);
}

static void add_tiles(report *r, score_pages *room, const score *s, scored_net net, const char *part)
{
    char what[96], name[48];
    main_metric m = main_metric_of(s);
    (void)snprintf(what, sizeof what, "%s on %s %s %s", m.name, count_text((double)s->samples).text, part,
                   s->task == MICA_TASK_TEXT ? "windows" : "samples");
    if (m.share)
        add_share(r, room, m.value, what);
    else
        add_number(r, room, m.value, SHORT, what);
    if (s->task == MICA_TASK_REGRESSION) {
        (void)snprintf(what, sizeof what, "RMSE of always saying %.50s", score_baseline_name(net));
        add_number(r, room, s->numbers.baseline, SHORT, what);
        add_number(r, room, s->numbers.mae, SHORT, "mean absolute error");
        add_number(r, room, s->numbers.r2, 3, "R², the share of the spread that is explained");
        return;
    }
    if (s->task == MICA_TASK_TEXT) {
        add_number(r, room, s->loss / log(2), 3, "bits per token");
        add_number(r, room, exp(s->loss), SHORT, "perplexity");
        return;
    }
    if (!isnan(s->common_share)) {
        name_list names = class_names_of(net.meaning, net.info);
        (void)snprintf(what, sizeof what, "of always saying %s",
                       class_text(name, sizeof name, names.list, names.count, s->common));
        add_share(r, room, s->common_share, what);
    }
    add_number(r, room, s->f1, 3, s->task == MICA_TASK_BINARY ? "F1" : "F1, the mean of all classes");
    add_number(r, room, s->auc, 4, "area under the ROC curve");
    add_number(r, room, s->loss, SHORT, "loss");
}

static void add_mistakes(report *r, score_pages *room, const score *s)
{
    for (size_t i = 0; i < s->worst_count; i++)
        room->mistakes[i] = (report_mistake){.number = (size_t)s->worst[i].number,
                                             .label = s->worst[i].label,
                                             .prediction = s->worst[i].prediction,
                                             .probability = s->worst[i].probability,
                                             .label_probability = s->worst[i].label_probability,
                                             .pixels = s->worst[i].pixels,
                                             .width = s->width,
                                             .height = s->height,
                                             .channels = s->channels};
    r->mistakes = room->mistakes;
    r->mistake_count = s->worst_count;
}

/* A name for each class of the table: the net may tell more of them apart than the data name. */
static void add_classes(report *r, score_pages *room, const score *s, scored_net net)
{
    name_list names = class_names_of(net.meaning, net.info);
    r->classes = s->classes;
    r->confusion = s->confusion;
    if (names.list == NULL)
        return;
    for (int i = 0; i < s->classes; i++) {
        (void)snprintf(room->numbers[i], sizeof room->numbers[i], "%d", i);
        room->names[i] = i < names.count ? names.list[i] : room->numbers[i];
    }
    r->class_names = room->names;
}

/* Points of each target; of a forecast, the curve of the first. */
static void add_targets(report *r, score_pages *room, const score *s, scored_net net)
{
    const forecast_shape *f = &net.meaning->forecast;
    if (s->pairs == NULL)
        return;
    for (int i = 0; i < s->pair_targets; i++)
        room->targets[i] = (report_target){.name = target_name(&net.meaning->units, i),
                                           .pairs = s->pairs + i,
                                           .count = (size_t)s->pair_samples,
                                           .stride = (size_t)s->pair_targets};
    r->targets = room->targets;
    r->target_count = f->horizon > 0 ? 1 : (size_t)s->pair_targets;
    if (f->horizon > 0)
        r->forecast = (report_forecast){.name = room->targets[0].name,
                                        .baseline_name = f->baseline_name,
                                        .pairs = s->pairs,
                                        .count = (size_t)s->pair_samples,
                                        .stride = (size_t)s->pair_targets};
}

void score_report(report *r, score_pages *room, const score *s, scored_net net, const char *part,
                  const importance *columns, const writings *texts)
{
    if (s->samples > 0)
        add_tiles(r, room, s, net, part);
    add_mistakes(r, room, s);
    add_classes(r, room, s, net);
    add_targets(r, room, s, net);
    bool rmse = measure_kind_of(net.info) == MEASURE_RMSE;
    r->columns = columns->columns;
    r->column_count = columns->count;
    r->importance_of = rmse ? "the RMSE rises" : "the accuracy falls";
    r->importance_share = !rmse;
    r->texts = (const char *const *)texts->texts;
    r->text_count = texts->count;
}
