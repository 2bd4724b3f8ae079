/* In NAME.h: what inputs and outputs stand for, by the data that the net was trained on, for a device that reads a
 * sensor. Functions are in the header, so that a program that does not call them has no code of them. */
#include <stdio.h>
#include <stdlib.h>

#include "export/write.h"

static void put_list(text *out, const char *name, const float *values, int count)
{
    text_put(out, "    static const float %s[%d] = {", name, count);
    for (int c = 0; c < count; c++) {
        text_put(out, c > 0 ? ", " : "");
        text_put_float(out, values[c]);
    }
    text_put(out, "};\n");
}

/* Element i of the inputs belongs to channel i / `plane` % `channels`. */
static void put_normalize(text *out, const export_opts *opts, const float *mean, const float *deviation,
                          float scale, int channels, size_t plane)
{
    char channel[64] = "0";
    if (channels > 1 && plane > 1)
        snprintf(channel, sizeof channel, "i / %zu %% %d", plane, channels);
    else if (channels > 1)
        snprintf(channel, sizeof channel, "i %% %d", channels);
    text_put(out, "static inline void %s_normalize(float *x)\n{\n", opts->name);
    put_list(out, "mean", mean, channels);
    put_list(out, "deviation", deviation, channels);
    text_put(out, "    for (int i = 0; i < %s_INPUT_SIZE; i++)\n        x[i] = (x[i]",
             capitals_of(opts->name).text);
    if (scale != 1.0f) {
        text_put(out, " * ");
        text_put_float(out, scale);
    }
    text_put(out, " - mean[%s]) / deviation[%s];\n}\n\n", channel, channel);
}

/* ---- Tables ---- */

/* One line of the comment: " *   3  soil: clay". */
static mica_index put_element(text *out, mica_index at, const char *column, const char *words)
{
    text_put(out, " *   %td  ", at);
    text_put_comment(out, column);
    text_put_comment(out, words != NULL ? ": " : "");
    text_put_comment(out, words != NULL ? words : "");
    text_put(out, "\n");
    return at + 1;
}

/* As mica_table_encode places them. */
static void put_column(text *out, const mica_column *c)
{
    static const char *const of_date[] = {"seconds since 1970", "sine of the time of year",
                                          "cosine of the time of year", "sine of the time of day",
                                          "cosine of the time of day"};
    mica_index at = c->first_input, end = at + c->inputs;
    if (c->kind == MICA_COLUMN_CATEGORY) {
        for (int i = 0; i < c->value_count; i++)
            at = put_element(out, at, c->name, c->values[i]);
        at = put_element(out, at, c->name, "1 for any other value");
    } else if (c->kind == MICA_COLUMN_DATE) {
        for (int i = 0; i < (c->times ? 5 : 3); i++)
            at = put_element(out, at, c->name, of_date[i]);
    } else {
        at = put_element(out, at, c->name, NULL);
    }
    if (at < end)
        put_element(out, at, c->name, "1 if it is missing, else 0");
}

static void put_table(text *out, const export_opts *opts)
{
    int width = (int)mica_table_inputs(opts->table);
    float *mean = calloc(2 * (size_t)width, sizeof *mean);
    if (mean == NULL) {
        out->failed = true;
        return;
    }
    float *deviation = mean + width;
    for (int i = 0; i < width; i++)
        deviation[i] = 1.0f;
    text_put(
        out,
        "/* The elements of an input, from the columns of the training data; a category is 1 at its value, 0 at the others:\n");
    for (int i = 0; i < mica_table_columns(opts->table); i++) {
        const mica_column *c = mica_table_column(opts->table, i);
        if (c->inputs == 0)
            continue;
        put_column(out, c);
        if (c->kind != MICA_COLUMN_CATEGORY) {
            mean[c->first_input] = (float)c->mean;
            deviation[c->first_input] = c->deviation > 0 ? (float)c->deviation : 1.0f;
        }
    }
    text_put(
        out,
        " * Write numbers as they are in the table; this scales them to mean 0 and deviation 1, in place. */\n");
    put_normalize(out, opts, mean, deviation, 1.0f, width, 1);
    free(mean);
}

void write_normalize(text *out, const graph *g, const export_opts *opts)
{
    const value *x = &g->values[g->input];
    size_t channels = opts->table != NULL  ? (size_t)mica_table_inputs(opts->table)
                      : opts->channels > 0 ? (size_t)opts->channels
                                           : 0;
    if (channels == 0 || (x->dtype != MICA_F32 && !(x->scale > 0.0f)) || x->count % channels != 0)
        return;
    if (opts->table != NULL) {
        put_table(out, opts);
        return;
    }
    text_put(out,
             "/* Scales raw inputs as the training data were, to mean 0 and deviation 1%s. In place. */\n",
             channels > 1 ? " in each channel" : "");
    put_normalize(out, opts, opts->mean, opts->deviation, opts->scale, opts->channels, x->count / channels);
}

/* ---- Outputs ---- */

static void put_names(text *out, const char *title, const char *const *names, int count)
{
    text_put(out, "/* %s:", title);
    for (int i = 0; i < count; i++) {
        text_put(out, " %d ", i);
        text_put_comment(out, names[i]);
        text_put(out, i + 1 < count ? "," : "");
    }
}

void write_output_meaning(text *out, const graph *g, const export_opts *opts)
{
    if (opts->class_count > 0) {
        put_names(out, "The outputs, one for each class; the largest wins", opts->classes, opts->class_count);
        text_put(out, ". */\n");
    }
    if (opts->target_count == 0)
        return;
    put_names(out, "The outputs", opts->targets, opts->target_count);
    text_put(out, ". They have mean 0 and deviation 1: this is output i in the unit of the table. */\n");
    text_put(out, "static inline float %s_value(int i)\n{\n", opts->name);
    put_list(out, "mean", opts->unit_mean, opts->target_count);
    put_list(out, "unit", opts->unit, opts->target_count);
    text_put(out, "    return %s_output()[i]", opts->name);
    if (g->values[g->output].scale > 0.0f)
        text_put(out, " * %s_OUTPUT_SCALE", capitals_of(opts->name).text);
    text_put(out, " * unit[i %% %d] + mean[i %% %d];\n}\n", opts->target_count, opts->target_count);
    if (!g->train)
        return;
    text_put(out, "/* And back: target i of a training step, from its value in the unit of the table. */\n");
    text_put(out, "static inline float %s_target(int i, float value)\n{\n", opts->name);
    put_list(out, "mean", opts->unit_mean, opts->target_count);
    put_list(out, "unit", opts->unit, opts->target_count);
    text_put(out, "    return (value - mean[i %% %d]) / unit[i %% %d];\n}\n", opts->target_count,
             opts->target_count);
}
