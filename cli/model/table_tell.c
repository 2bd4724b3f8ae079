/* What is said about a table: what its columns are and what becomes of them, and what later files lack. */
#include <math.h>
#include <stdio.h>

#include "cli/model/data.h"
#include "cli/model/tables.h"
#include "cli/picture/text.h"

void put_column(FILE *to, const mica_column *c, mica_index rows)
{
    static const char *const kinds[] = {"numbers", "categories", "dates", "text", "no values"};
    put_plain(to, c->name);
    fprintf(to, ": %s", kinds[c->kind]);
    if (c->kind == MICA_COLUMN_EMPTY)
        return;
    if (c->different > MICA_TABLE_MOST_VALUES)
        fprintf(to, ", more than %s different", count_text(MICA_TABLE_MOST_VALUES).text);
    else
        fprintf(to, ", %s different", count_text((double)c->different).text);
    if (c->kind == MICA_COLUMN_NUMBER) {
        fprintf(to, ", %s to ", number_text(c->least).text);
        fprintf(to, "%s", number_text(c->most).text);
    }
    if (c->missing > 0)
        fprintf(to, ", %s of %s missing", count_text((double)c->missing).text, count_text((double)rows).text);
}

/* "  learned from 3 columns of numbers, 1 of categories, 1 of dates" */
static void tell_inputs(const mica_table *t)
{
    static const char *const kinds[] = {"numbers", "categories", "dates"};
    int counts[3] = {0}, told = 0;
    for (int i = 0; i < mica_table_columns(t); i++) {
        const mica_column *c = mica_table_column(t, i);
        if (c->inputs > 0 && c->kind <= MICA_COLUMN_DATE)
            counts[c->kind]++;
    }
    for (size_t k = 0; k < 3; k++) {
        if (counts[k] == 0)
            continue;
        fprintf(stderr, "%s%d%s of %s", told == 0 ? "  learned from " : ", ", counts[k],
                told > 0         ? ""
                : counts[k] == 1 ? " column"
                                 : " columns",
                kinds[k]);
        told++;
    }
    fprintf(stderr, "\n");
}

/* A column that would be numbers, but for a few words. */
static void tell_odd(const mica_column *c)
{
    if (c->odd == 0)
        return;
    fprintf(stderr, "    numbers but for %s, such as \"", count_text((double)c->odd).text);
    put_plain(stderr, c->odd_value);
    fprintf(stderr, "\": a value that is missing must be empty or NA\n");
}

static void put_step(FILE *to, double seconds)
{
    static const struct {
        double seconds;
        const char *name;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
    size_t i = 0;
    while (i + 1 < sizeof units / sizeof units[0] && fmod(seconds, units[i].seconds) != 0)
        i++;
    double count = seconds / units[i].seconds;
    fprintf(to, "%g %s%s", count, units[i].name, count == 1 ? "" : "s");
}

int table_check_steps(const data *d, const verb *v, bool tell)
{
    for (int i = 0; d->window > 0 && i < mica_table_columns(d->table); i++) {
        const mica_column *c = mica_table_column(d->table, i);
        if (c->kind != MICA_COLUMN_DATE || c->inputs == 0)
            continue;
        if (c->step < 0)
            return verb_error(v, EXIT_FILE,
                              "%s: \"%s\" goes back in time: a series needs its oldest row first", d->path,
                              c->name);
        if (!tell || c->uneven == 0)
            continue;
        fprintf(stderr, "  ");
        put_plain(stderr, c->name);
        fprintf(stderr, ": %s of %s steps are not ", count_text((double)c->uneven).text,
                count_text((double)mica_table_rows(d->table) - 1).text);
        put_step(stderr, c->step);
        fprintf(stderr, ": rows count as if they were\n");
    }
    return EXIT_OK;
}

static const char *fill_text(const mica_column *c, mica_missing missing)
{
    static const char *const fills[] = {"filled with the mean, and an input says so",
                                        "filled with the median, and an input says so", "rows left out",
                                        "refused"};
    bool words = c->kind == MICA_COLUMN_CATEGORY && missing <= MICA_MISSING_MEDIAN;
    return words ? "an input says so" : fills[missing];
}

void table_tell(const data *d, const verb *v, mica_missing missing)
{
    static const char *const tasks[] = {"classes", "regression", "yes or no"};
    const mica_table *t = d->table;
    char delimiter = mica_table_delimiter(t);
    fprintf(stderr, "mica %s: ", v->name);
    put_plain(stderr, d->path);
    fprintf(stderr, ": %s rows of %d column%s, ", count_text((double)mica_table_rows(t)).text,
            mica_table_columns(t), mica_table_columns(t) == 1 ? "" : "s");
    if (mica_table_columns(t) > 1)
        fprintf(stderr, "%s between them, ",
                delimiter == ','    ? "a comma"
                : delimiter == ';'  ? "a semicolon"
                : delimiter == '\t' ? "a tab"
                                    : (char[]){'"', delimiter, '"', '\0'});
    fprintf(stderr, "%s header\n", mica_table_has_header(t) ? "with a" : "no");
    for (int i = 0; i < mica_table_columns(t); i++) {
        const mica_column *c = mica_table_column(t, i);
        bool target = (c->role & MICA_ROLE_TARGET) != 0, left_out = c->role == 0;
        if (!target && !left_out && c->missing == 0 && c->odd == 0)
            continue;
        fprintf(stderr, "  ");
        put_column(stderr, c, mica_table_rows(t));
        if (target)
            fprintf(stderr, ": %s", d->window > 0 ? "forecast" : tasks[d->task]);
        else if (left_out)
            fprintf(stderr, ": left out%s", c->counts_rows ? ", they count the rows" : "");
        if (c->missing > 0 && target) /* whether it is an input too or not */
            fprintf(stderr, ": rows without it left out");
        else if (c->missing > 0 && !left_out)
            fprintf(stderr, ": %s", fill_text(c, missing));
        fprintf(stderr, "\n");
        tell_odd(c);
    }
    tell_inputs(t);
    if (d->window > 0)
        fprintf(stderr, "  from %td rows the next %td; parts are cut in time, the last for tests\n",
                d->window, d->horizon);
    if (d->streamed)
        fprintf(stderr, "  too large for memory: read in blocks\n");
}

void table_tell_found(const char *path, const verb *v, const mica_table *t, const mica_table_found *found)
{
    const struct {
        uint64_t count;
        const char *one, *many;
    } lines[] = {
        {found->missing, "missing value was filled in", "missing values were filled in"},
        {found->dropped, "row was left out: a value is missing", "rows were left out: values are missing"},
        {found->unseen, "category was not seen in training", "categories were not seen in training"},
        {(uint64_t)found->extra_columns, "column is new and ignored", "columns are new and ignored"}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (lines[i].count > 0)
            fprintf(stderr, "mica %s: %s: %s %s\n", v->name, path, count_text((double)lines[i].count).text,
                    lines[i].count == 1 ? lines[i].one : lines[i].many);
    if (found->unseen_column != NULL) {
        fprintf(stderr, "  such as \"");
        put_plain(stderr, found->unseen_value);
        fprintf(stderr, "\" in ");
        put_plain(stderr, found->unseen_column);
        fprintf(stderr, "\n");
    }
    if (found->by_position && mica_table_has_header(t) && mica_table_columns(t) > 1)
        fprintf(stderr, "mica %s: %s: no header, columns are taken in the order of the training\n", v->name,
                path);
}
