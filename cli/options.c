/* Options by table, and errors that help. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "cli/help.h"

const shared_option shared_options[] = {
    {SHARED_JSON, {.name = "--json", OPTION_FLAG, offsetof(shared_settings, json), NULL, "print JSON"}},
    {SHARED_THREADS,
     {.name = "--threads",
      OPTION_COUNT,
      offsetof(shared_settings, threads),
      "N",
      "number of threads (one per processor); results do not depend on it",
      .least = 1,
      .most = MICA_MAX_THREADS}},
    {SHARED_SEED,
     {.name = "--seed", OPTION_COUNT, offsetof(shared_settings, seed), "N", "random seed (42)", .letter = 0}},
    {SHARED_QUIET,
     {.name = "--quiet",
      OPTION_FLAG,
      offsetof(shared_settings, quiet),
      NULL,
      "print only results and errors",
      .letter = "q"}},
    {SHARED_QUIET,
     {.name = "--verbose",
      OPTION_FLAG,
      offsetof(shared_settings, verbose),
      NULL,
      "print more progress",
      .letter = "v"}},
};
const size_t shared_option_count = sizeof shared_options / sizeof shared_options[0];

const char *const prepare_choices[] = {"yes", "no", NULL};

const char *nearest(const char *word, const void *names, size_t count, size_t stride)
{
    return mica_nearest(word, strlen(word), names, count, stride);
}

/* ---- Finding an option ---- */

/* All options of a verb, its own first; NULL behind the last. */
static const verb_option *option_at(const verb *v, size_t number)
{
    if (number < v->option_count)
        return &v->options[number];
    number -= v->option_count;
    for (size_t i = 0; i < shared_option_count; i++)
        if ((v->shared & shared_options[i].flag) != 0 && number-- == 0)
            return &shared_options[i].option;
    return NULL;
}

static const verb_option *find(const verb *v, const char *name, size_t length)
{
    const verb_option *option;
    for (size_t i = 0; (option = option_at(v, i)) != NULL; i++)
        if (strlen(option->name) == length && memcmp(option->name, name, length) == 0)
            return option;
    return NULL;
}

static const verb_option *find_letter(const verb *v, char letter)
{
    const verb_option *option;
    for (size_t i = 0; (option = option_at(v, i)) != NULL; i++)
        if (option->letter != NULL && *option->letter == letter)
            return option;
    return NULL;
}

/* Takes and forgets what all verbs take, where this one has no use for it: a script may give it to any of them. */
static shared_settings unused;

static bool is_for_all(const shared_option *o)
{
    return (o->flag & (SHARED_THREADS | SHARED_SEED | SHARED_QUIET)) != 0;
}

static const verb_option *find_for_all(const char *name, size_t length, char letter)
{
    for (size_t i = 0; i < shared_option_count; i++) {
        const verb_option *option = &shared_options[i].option;
        bool same = name != NULL ? strlen(option->name) == length && memcmp(option->name, name, length) == 0
                                 : option->letter != NULL && *option->letter == letter;
        if (same && is_for_all(&shared_options[i]))
            return option;
    }
    return NULL;
}

static bool unknown(const verb *v, const char *name)
{
    const char *names[128] = {"--help"};
    size_t count = 1;
    for (const verb_option *option; count < 128 && (option = option_at(v, count - 1)) != NULL; count++)
        names[count] = option->name;
    const char *meant = nearest(name, names, count, sizeof names[0]);
    if (meant != NULL)
        usage_error(v, "unknown option %s; did you mean %s?", name, meant);
    else
        usage_error(v, "unknown option %s", name);
    return false;
}

/* ---- Values ---- */

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

static bool set_count(const verb *v, const verb_option *option, int64_t *field, const char *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    bool sound = end != value && *end == '\0' && errno == 0 && number >= option->least;
    if (sound && (option->most == 0 || number <= option->most)) {
        *field = number;
        return true;
    }
    if (option->most != 0)
        usage_error(v, "%s takes an integer from %lld to %lld, not \"%s\"", option->name,
                    (long long)option->least, (long long)option->most, value);
    else
        usage_error(v, "%s takes an integer of at least %lld, not \"%s\"", option->name,
                    (long long)option->least, value);
    return false;
}

bool bytes_read(const char *text, size_t *bytes)
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    char *end;
    double number = strtod(text, &end);
    if (end == text || !isdigit((unsigned char)*text) || !isfinite(number))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++, number *= 1024.0) {
        size_t length = strlen(units[i]);
        if (length == 1 && toupper((unsigned char)*end) != units[i][0])
            continue;
        const char *rest = end + length;
        if (strcmp(rest, "") != 0 && strcmp(rest, "B") != 0 && (length == 0 || strcmp(rest, "iB") != 0))
            continue;
        if (number > 9e15) /* beyond what a double counts exactly */
            return false;
        *bytes = (size_t)number;
        return true;
    }
    return false;
}

static bool set_bytes(const verb *v, const verb_option *option, size_t *field, const char *value)
{
    if (bytes_read(value, field))
        return true;
    usage_error(v, "%s takes a size in bytes, such as 65536, 64KiB or 2MiB, not \"%s\"", option->name, value);
    return false;
}

static bool set_choice(const verb *v, const verb_option *option, int *field, const char *value)
{
    size_t count = 0;
    for (; option->choices[count] != NULL; count++)
        if (strcasecmp(option->choices[count], value) == 0) {
            *field = (int)count;
            return true;
        }
    char all[256];
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s",
                                 i == 0           ? ""
                                 : i + 1 == count ? " or "
                                                  : ", ",
                                 option->choices[i]);
    const char *meant = nearest(value, option->choices, count, sizeof option->choices[0]);
    if (meant != NULL)
        usage_error(v, "%s takes %s, not \"%s\"; did you mean %s?", option->name, all, value, meant);
    else
        usage_error(v, "%s takes %s, not \"%s\"", option->name, all, value);
    return false;
}

static bool add_item(const verb *v, const verb_option *option, option_list *field, const char *value)
{
    if (field->count == OPTION_LIST_MOST) {
        usage_error(v, "%s can be given at most %d times", option->name, OPTION_LIST_MOST);
        return false;
    }
    field->item[field->count++] = value;
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
    case OPTION_COUNT:
        return set_count(v, option, field, value);
    case OPTION_NUMBER:
        return set_number(v, option, field, value);
    case OPTION_BYTES:
        return set_bytes(v, option, field, value);
    case OPTION_CHOICE:
        return set_choice(v, option, field, value);
    case OPTION_LIST:
        return add_item(v, option, field, value);
    }
    return false;
}

/* ---- The command line ---- */

/* An option whose value, unless it was given with it, is the next argument. */
static bool take(const verb *v, void *settings, const verb_option *option, const char *value, int argc,
                 char **argv, int *i)
{
    if (value == NULL) {
        if (*i + 1 == argc) {
            usage_error(v, "%s needs a value: %s %s", option->name, option->name, option->value);
            return false;
        }
        value = argv[++*i];
    }
    return set(v, option, settings, value);
}

/* --name, --name=value or --name value at argv[*i]. */
static bool read_long(const verb *v, void *settings, int argc, char **argv, int *i)
{
    char *name = argv[*i];
    char *equals = strchr(name, '=');
    size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const verb_option *option = find(v, name, length);
    if (option == NULL && (option = find_for_all(name, length, '\0')) != NULL)
        settings = &unused;
    if (option == NULL) {
        if (equals != NULL)
            *equals = '\0';
        return unknown(v, name);
    }
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (option->kind != OPTION_FLAG)
        return take(v, settings, option, value, argc, argv, i);
    if (value != NULL) {
        usage_error(v, "%s takes no value", option->name);
        return false;
    }
    return set(v, option, settings, NULL);
}

/* -q, -qv, -oVALUE or -o VALUE at argv[*i]. */
static bool read_short(const verb *v, void *settings, int argc, char **argv, int *i)
{
    for (const char *letter = argv[*i] + 1; *letter != '\0'; letter++) {
        const verb_option *option = find_letter(v, *letter);
        void *into = settings;
        if (option == NULL && (option = find_for_all(NULL, 0, *letter)) != NULL)
            into = &unused;
        if (option == NULL)
            return unknown(v, (char[]){'-', *letter, '\0'});
        if (option->kind != OPTION_FLAG)
            return take(v, into, option, letter[1] != '\0' ? letter + 1 : NULL, argc, argv, i);
        set(v, option, into, NULL);
    }
    return true;
}

int options_read(const verb *v, void *settings, int argc, char **argv)
{
    int kept = 0;
    bool ended = false;
    for (int i = 0; i < argc; i++) {
        char *word = argv[i];
        if (!ended && strcmp(word, "--") == 0)
            ended = true;
        else if (ended || word[0] != '-' || word[1] == '\0')
            argv[kept++] = word;
        else if (word[1] == '-' ? !read_long(v, settings, argc, argv, &i)
                                : !read_short(v, settings, argc, argv, &i))
            return -1;
    }
    return kept;
}
