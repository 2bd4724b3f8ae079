/* What a net that was trained on a table must know of it: units, columns, and the baseline of a forecast. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/saved.h"
#include "cli/model/tables.h"
#include "cli/model/take.h"

/* The baseline of a series: where its targets are among the inputs. */
typedef struct plain_forecast {
    mica_index window, horizon, season, width, targets;
    char name[48];
    mica_index place[]; /* [targets] of each among the inputs of a row */
} plain_forecast;

/* The values of one season before, or the last one. */
static void forecast_plainly(float *out, const float *inputs, const void *user)
{
    const plain_forecast *f = user;
    for (mica_index h = 0; h < f->horizon; h++) {
        mica_index row = f->season > 0 ? f->window - f->season + h % f->season : f->window - 1;
        for (mica_index j = 0; j < f->targets; j++)
            out[h * f->targets + j] = inputs[row * f->width + f->place[j]];
    }
}

mica_index season_of(const float *series, mica_index stride, mica_index rows, mica_index most)
{
    enum { FEWEST_PERIODS = 3 };
    const double least = 0.3; /* of correlation */
    double best = least;
    mica_index found = 0;
    if (most > rows / FEWEST_PERIODS)
        most = rows / FEWEST_PERIODS;
    double before = 1, mean = 0;
    for (mica_index i = 0; i < rows; i++)
        mean += (double)series[i * stride] / (double)rows;
    for (mica_index lag = 1; lag <= most; lag++) {
        double product = 0, square = 0;
        for (mica_index i = 0; i + lag < rows; i++) {
            double a = (double)series[i * stride] - mean, b = (double)series[(i + lag) * stride] - mean;
            product += a * b;
            square += 0.5 * (a * a + b * b);
        }
        double correlation = square > 0 ? product / square : 0;
        if (correlation >= before && correlation > best) { /* a season is a rise after a fall */
            best = correlation;
            found = lag;
        }
        before = correlation;
    }
    return found;
}

/* Columns that are targets, in their order. */
static const mica_column *target_column(const mica_table *t, mica_index number)
{
    for (int i = 0; i < mica_table_columns(t); i++) {
        const mica_column *c = mica_table_column(t, i);
        if (c->targets > 0 && c->first_target == number)
            return c;
    }
    return NULL;
}

static void set_units(meaning *m, const mica_table *t, mica_index horizon)
{
    mica_index targets = mica_table_targets(t), count = targets * (horizon > 0 ? horizon : 1);
    float *mean = take(2 * (size_t)count, sizeof *mean), *deviation = mean + count;
    char **names = take((size_t)count, sizeof *names);
    for (mica_index k = 0; k < targets; k++) {
        const char *name = target_column(t, k)->name;
        size_t size = strlen(name) + 32;
        float unit_mean, unit_deviation;
        mica_table_target_unit(&unit_mean, &unit_deviation, t, k);
        for (mica_index i = k; i < count; i += targets) {
            mean[i] = unit_mean;
            deviation[i] = unit_deviation;
            names[i] = take(size, 1);
            (void)snprintf(names[i], size, horizon > 1 ? "%s +%td" : "%s", name, i / targets + 1);
        }
    }
    m->units = (target_units){count, mean, deviation, (const char *const *)names};
}

static void set_columns(meaning *m, const mica_table *t)
{
    column_span *spans = take((size_t)mica_table_columns(t), sizeof *spans);
    size_t count = 0;
    for (int i = 0; i < mica_table_columns(t); i++) {
        const mica_column *c = mica_table_column(t, i);
        if (c->inputs > 0)
            spans[count++] = (column_span){c->name, c->first_input, c->inputs};
    }
    m->columns = (column_spans){spans, count};
}

static void set_forecast(meaning *m, const mica_table *t, mica_index window, mica_index horizon,
                         mica_index season)
{
    mica_index targets = mica_table_targets(t);
    plain_forecast *f = take(1, sizeof *f + (size_t)targets * sizeof f->place[0]);
    *f = (plain_forecast){.window = window,
                          .horizon = horizon,
                          .season = season,
                          .width = mica_table_inputs(t),
                          .targets = targets};
    (void)snprintf(f->name, sizeof f->name, season > 0 ? "the value %td rows before" : "the last value",
                   season);
    for (mica_index j = 0; j < targets; j++)
        f->place[j] = target_column(t, j)->first_input;
    m->forecast = (forecast_shape){.window = window,
                                   .horizon = horizon,
                                   .width = mica_table_inputs(t),
                                   .baseline = forecast_plainly,
                                   .baseline_name = f->name,
                                   .user = f};
}

void table_meaning(meaning *m, const mica_table *table, mica_index window, mica_index horizon,
                   mica_index season)
{
    bool numbers = target_column(table, 0) != NULL && target_column(table, 0)->kind == MICA_COLUMN_NUMBER;
    m->table = table;
    m->season = season;
    if (numbers || mica_table_targets(table) > 1)
        set_units(m, table, horizon);
    if (window == 0)
        set_columns(m, table);
    else
        set_forecast(m, table, window, horizon, season);
}

char *take_table_text(mica_context *ctx, const mica_table *table)
{
    size_t bytes = 0;
    if (mica_table_to_text(ctx, NULL, &bytes, table) != MICA_OK)
        return NULL;
    char *text = take(bytes, 1);
    if (mica_table_to_text(ctx, text, &bytes, table) == MICA_OK)
        return text;
    free(text);
    return NULL;
}

void table_meaning_free(meaning *m)
{
    for (mica_index i = 0; m->units.names != NULL && i < m->units.count; i++)
        free((void *)m->units.names[i]);
    free((void *)m->units.names);
    free((void *)m->units.mean);
    free((void *)m->columns.list);
    free((void *)m->forecast.user);
    m->units = (target_units){0};
    m->columns = (column_spans){0};
    m->forecast = (forecast_shape){0};
}
