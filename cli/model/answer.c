/* Lines of answers. */
#include "cli/model/answer.h"

#include <math.h>
#include <stdlib.h>

#include "cli/model/names.h"
#include "cli/model/take.h"
#include "cli/picture/text.h"

/* Which input it is: its number, and the file of an image. */
static void put_input(const answer_style *a, mica_index number)
{
    const char *path = a->paths != NULL ? a->paths[number] : NULL;
    if (a->json) {
        fprintf(a->to, "{\"input\": %td, ", number);
        if (path != NULL) {
            fprintf(a->to, "\"%s\": ", a->path_key != NULL ? a->path_key : "file");
            put_json(a->to, path);
            fprintf(a->to, ", ");
        }
    } else if (path != NULL) {
        put_plain(a->to, path);
    } else {
        fprintf(a->to, "%td", number);
    }
}

/* What stands for a class or token, for people. */
static const char *answer_text(char *text, size_t size, const answer_style *a, int32_t class)
{
    const meaning *m = a->meaning;
    if (m->vocabulary.count > 0) {
        char piece[8] = "";
        mica_tensor one = {.data = &class, .dtype = MICA_I32, .rank = 1, .dim = {1}, .stride = {1}};
        if (class >= m->vocabulary.count) /* one that the net can name, and no text has */
            (void)snprintf(text, size, "%d", (int)class);
        else if (mica_text_decode(a->ctx, piece, sizeof piece, &m->vocabulary, &one) != MICA_OK ||
                 (unsigned char)piece[0] <= ' ')
            (void)snprintf(text, size, "\\x%02x", (unsigned)(unsigned char)piece[0]);
        else
            (void)plain_text(text, size, piece);
        return text;
    }
    name_list names = class_names_of(m, a->info);
    return class_text(text, size, names.list, names.count, class);
}

typedef struct likely_class {
    float probability;
    int32_t class;
} likely_class;

/* The likeliest first, else in their order. */
static int by_probability(const void *a, const void *b)
{
    const likely_class *x = a, *y = b;
    if (x->probability != y->probability)
        return x->probability < y->probability ? 1 : -1;
    return (x->class > y->class) - (x->class < y->class);
}

static void put_json_class(const answer_style *a, int32_t class, double probability)
{
    char text[64];
    fprintf(a->to, "{\"class\": ");
    put_json(a->to, answer_text(text, sizeof text, a, class));
    fprintf(a->to, ", \"probability\": ");
    put_json_number(a->to, probability);
    fprintf(a->to, "}");
}

static void put_classes(const answer_style *a, mica_index number, const float *values, mica_index count)
{
    int64_t top = a->top < count ? a->top : count;
    likely_class *order = take((size_t)count, sizeof *order);
    for (mica_index c = 0; c < count; c++)
        order[c] = (likely_class){isnan(values[c]) ? -1 : values[c], (int32_t)c};
    qsort(order, (size_t)count, sizeof *order, by_probability);
    put_input(a, number);
    fprintf(a->to, a->json ? "\"classes\": [" : "");
    for (int64_t i = 0; i < top; i++) {
        char text[64];
        int32_t class = order[i].class;
        double probability = (double)values[class];
        if (a->json) {
            fprintf(a->to, "%s", i > 0 ? ", " : "");
            put_json_class(a, class, probability);
        } else {
            fprintf(a->to, "  %s %.2f %%", answer_text(text, sizeof text, a, class), 100 * probability);
        }
    }
    fprintf(a->to, a->json ? "]}\n" : "\n");
    free(order);
}

/* ---- Yes or no ---- */

/* One output: both classes, the likelier one first. */
static void put_yes_no(const answer_style *a, mica_index number, double yes)
{
    char text[64];
    int32_t said = yes >= 0.5;
    double probability = said ? yes : 1 - yes;
    put_input(a, number);
    if (!a->json) {
        fprintf(a->to, "  %s  probability %.2f\n", answer_text(text, sizeof text, a, said), probability);
        return;
    }
    fprintf(a->to, "\"classes\": [");
    put_json_class(a, said, probability);
    fprintf(a->to, ", ");
    put_json_class(a, !said, 1 - probability);
    fprintf(a->to, "]}\n");
}

/* Several outputs of an input: what each says. */
static void put_yes_nos(const answer_style *a, mica_index number, const float *yes, mica_index count)
{
    char text[64];
    put_input(a, number);
    fprintf(a->to, a->json ? "\"outputs\": [" : "");
    for (mica_index i = 0; i < count; i++) {
        const char *name = target_name(&a->meaning->units, i);
        int32_t said = yes[i] >= 0.5f;
        double probability = said ? (double)yes[i] : 1 - (double)yes[i];
        if (!a->json) {
            fprintf(a->to, "  ");
            put_plain(a->to, name);
            fprintf(a->to, "%s%s %.2f", name != NULL ? " " : "", answer_text(text, sizeof text, a, said),
                    probability);
            continue;
        }
        fprintf(a->to, "%s{", i > 0 ? ", " : "");
        if (name != NULL) {
            fprintf(a->to, "\"name\": ");
            put_json(a->to, name);
            fprintf(a->to, ", ");
        }
        fprintf(a->to, "\"class\": ");
        put_json(a->to, answer_text(text, sizeof text, a, said));
        fprintf(a->to, ", \"probability\": ");
        put_json_number(a->to, probability);
        fprintf(a->to, "}");
    }
    fprintf(a->to, a->json ? "]}\n" : "\n");
}

/* ---- Numbers ---- */

/* In their own unit, with the names of what they are. */
static void put_numbers(const answer_style *a, mica_index number, const float *values, mica_index count)
{
    const target_units *u = &a->meaning->units;
    put_input(a, number);
    fprintf(a->to, a->json ? "\"values\": [" : "");
    for (mica_index i = 0; i < count; i++) {
        double value = in_unit(u, i, (double)values[i]);
        if (a->json) {
            fprintf(a->to, "%s", i > 0 ? ", " : "");
            put_json_number(a->to, value);
            continue;
        }
        fprintf(a->to, "  ");
        if (target_name(u, i) != NULL) {
            put_plain(a->to, target_name(u, i));
            fprintf(a->to, " ");
        }
        fprintf(a->to, "%s", number_text(value).text);
    }
    if (a->json && target_name(u, 0) != NULL) {
        fprintf(a->to, "], \"names\": [");
        for (mica_index i = 0; i < count; i++) {
            fprintf(a->to, "%s", i > 0 ? ", " : "");
            put_json(a->to, target_name(u, i));
        }
    }
    fprintf(a->to, a->json ? "]}\n" : "\n");
}

void answer_row(const answer_style *a, mica_index number, const float *row, mica_index count, float *scratch)
{
    mica_task task = a->info->task;
    bool classes = task == MICA_TASK_CLASSES || task == MICA_TASK_TEXT;
    if (classes || task == MICA_TASK_BINARY)
        probabilities(scratch, row, count, a->info);
    if (classes)
        put_classes(a, number, scratch, count);
    else if (task == MICA_TASK_BINARY && count == 1)
        put_yes_no(a, number, (double)scratch[0]);
    else if (task == MICA_TASK_BINARY)
        put_yes_nos(a, number, scratch, count);
    else
        put_numbers(a, number, row, count);
}
