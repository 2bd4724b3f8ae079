/* Options by table, and errors that help. */
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verb.h"

#define LONGEST_WORD 63 /* longer ones are not guessed at */

/* Letters to change, insert, drop or swap to get from a to b (Damerau and Levenshtein). */
static size_t edits(const char *a, const char *b)
{
    size_t row[3][LONGEST_WORD + 1], n = strlen(b);
    for (size_t j = 0; j <= n; j++)
        row[0][j] = j;
    size_t i = 0;
    for (; a[i] != '\0'; i++) {
        const size_t *before = row[(i + 2) % 3], *above = row[i % 3];
        size_t *now = row[(i + 1) % 3];
        now[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = above[j] + (a[i] != b[j]);
            best = above[j + 1] + 1 < best ? above[j + 1] + 1 : best;
            best = now[j] + 1 < best ? now[j] + 1 : best;
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] && before[j - 1] + 1 < best)
                best = before[j - 1] + 1;
            now[j + 1] = best;
        }
    }
    return row[i % 3][n];
}

const char *nearest(const char *word, const void *names, size_t count, size_t stride)
{
    const char *best = NULL;
    size_t least = strlen(word) / 3 + 1; /* a third of the letters may be wrong */
    if (strlen(word) > LONGEST_WORD)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const char *name;
        memcpy(&name, (const char *)names + i * stride, sizeof name);
        size_t distance = strlen(name) <= LONGEST_WORD ? edits(word, name) : SIZE_MAX;
        if (distance <= least && (best == NULL || distance < least)) {
            best = name;
            least = distance;
        }
    }
    return best;
}

int usage_error(const verb *v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "mica%s%s: ", v != NULL ? " " : "", v != NULL ? v->name : "");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nSee: mica help%s%s\n", v != NULL ? " " : "", v != NULL ? v->name : "");
    va_end(args);
    return EXIT_USAGE;
}

static const verb_option *find(const verb *v, const char *name, size_t length)
{
    for (size_t i = 0; i < v->option_count; i++)
        if (strlen(v->options[i].name) == length && memcmp(v->options[i].name, name, length) == 0)
            return &v->options[i];
    return NULL;
}

static bool set_number(const verb *v, const verb_option *option, double *field, const char *value)
{
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end != '\0' || !isfinite(number) || number < 0.0) {
        usage_error(v, "%s takes a number, not \"%s\"", option->name, value);
        return false;
    }
    *field = number;
    return true;
}

static bool set(const verb *v, const verb_option *option, void *settings, const char *value)
{
    void *field = (char *)settings + option->offset;
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return true;
    case OPTION_TEXT:
        *(const char **)field = value;
        return true;
    case OPTION_NUMBER:
        return set_number(v, option, field, value);
    }
    return false;
}

static void unknown(const verb *v, const char *name)
{
    const char *meant = v->option_count > 0
                            ? nearest(name, &v->options[0].name, v->option_count, sizeof v->options[0])
                            : NULL;
    if (meant != NULL)
        usage_error(v, "there is no option %s; did you mean %s?", name, meant);
    else
        usage_error(v, "there is no option %s", name);
}

/* Reads the option at argv[*i] with its value, which may be argv[*i + 1]. */
static bool read_option(const verb *v, void *settings, int argc, char **argv, int *i)
{
    char *name = argv[*i];
    char *equals = strchr(name, '=');
    size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const verb_option *option = find(v, name, length);
    if (option == NULL) {
        if (equals != NULL)
            *equals = '\0';
        unknown(v, name);
        return false;
    }
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (option->kind == OPTION_FLAG && value != NULL) {
        usage_error(v, "%s takes no value", option->name);
        return false;
    }
    if (option->kind != OPTION_FLAG && value == NULL) {
        if (*i + 1 == argc) {
            usage_error(v, "%s needs a value: %s %s", option->name, option->name, option->value);
            return false;
        }
        value = argv[++*i];
    }
    return set(v, option, settings, value);
}

int options_read(const verb *v, void *settings, int argc, char **argv)
{
    int kept = 0;
    bool ended = false;
    for (int i = 0; i < argc; i++) {
        if (!ended && strcmp(argv[i], "--") == 0)
            ended = true;
        else if (ended || argv[i][0] != '-' || argv[i][1] == '\0')
            argv[kept++] = argv[i];
        else if (!read_option(v, settings, argc, argv, &i))
            return -1;
    }
    return kept;
}
