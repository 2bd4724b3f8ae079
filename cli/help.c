/* Help from the tables: for people, and as lines for the programs that make man pages and completions. */
#include "cli/help.h"

#include <string.h>
#include <unistd.h>

#include <mica/netfile.h>

#include "cli/net/words.h"

const verb *const all_verbs[] = {
#define ADDRESS(name) &verb_##name,
    VERBS(ADDRESS)};
const size_t all_verb_count = sizeof all_verbs / sizeof all_verbs[0];

static const struct {
    int code;
    const char *text;
} exit_texts[] = {
#define EXIT_TEXT(name, code, text) {code, text},
    EXIT_CODES(EXIT_TEXT)};

static const struct {
    const char *name, *text;
} variables[] = {
    {"NO_COLOR", "if set and not empty, no colours"},
    {"MICA_ISA",
     "the kernels to use, scalar, avx2, avx512 or neon, instead of the best ones for this processor"},
};

const verb *verb_find(const char *name)
{
    for (size_t i = 0; i < all_verb_count; i++)
        if (strcmp(all_verbs[i]->name, name) == 0)
            return all_verbs[i];
    return NULL;
}

/* What other tools call the verbs. */
static const struct {
    const char *theirs, *ours;
} aliases[] = {
    {"predict", "run"},     {"infer", "run"},       {"inference", "run"},     {"classify", "run"},
    {"test", "eval"},       {"score", "eval"},      {"evaluate", "eval"},     {"validate", "eval"},
    {"fit", "train"},       {"learn", "train"},     {"finetune", "train"},    {"fine-tune", "train"},
    {"resume", "train"},    {"sample", "generate"}, {"complete", "generate"}, {"write", "generate"},
    {"show", "info"},       {"inspect", "info"},    {"summary", "info"},      {"describe", "info"},
    {"benchmark", "bench"}, {"operations", "ops"},  {"memory", "plan"},       {"version", "--version"},
    {"data", "train"},      {"table", "train"},     {"csv", "train"},         {"label", "train"},
    {"images", "train"},    {"pictures", "train"},  {"forecast", "train"},    {"series", "train"}};

static const char *alias_of(const char *name)
{
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (strcmp(aliases[i].theirs, name) == 0)
            return aliases[i].ours;
    return NULL;
}

int unknown_verb(const char *name)
{
    const char *names[sizeof all_verbs / sizeof all_verbs[0] + 1], *meant = alias_of(name);
    for (size_t i = 0; i < all_verb_count; i++)
        names[i] = all_verbs[i]->name;
    names[all_verb_count] = "help";
    if (meant == NULL)
        meant = nearest(name, names, all_verb_count + 1, sizeof names[0]);
    if (meant != NULL)
        return usage_error(NULL, "unknown verb \"%s\"; did you mean \"%s\"?", name, meant);
    return usage_error(NULL, "unknown verb \"%s\"", name);
}

int unknown_topic(const char *name)
{
    enum { MOST = 512 };
    const char *names[MOST] = {"layers", "operations"}, *meant = alias_of(name);
    size_t count = 2;
    for (size_t i = 0; i < all_verb_count; i++)
        names[count++] = all_verbs[i]->name;
    for (size_t i = 0; mica_netfile_builtin_name(i) != NULL && count < MOST; i++)
        names[count++] = mica_netfile_builtin_name(i);
    count += word_names(names + count, MOST - count);
    if (meant == NULL)
        meant = nearest(name, names, count, sizeof names[0]);
    if (meant != NULL)
        return usage_error(NULL, "nothing is called \"%s\"; did you mean \"%s\"?", name, meant);
    return usage_error(NULL, "\"%s\" is no verb, layer, operation or net", name);
}

bool help_net(FILE *out, const char *name)
{
    const char *text = mica_netfile_builtin(name);
    if (text != NULL)
        fprintf(out, "%s, a built-in net (mica info %s, mica train %s --data DATA):\n\n%s", name, name, name,
                text);
    return text != NULL;
}

/* ---- For people ---- */

static void heading(FILE *out, const char *text)
{
    bool bold = terminal_of(fileno(out)).colour;
    fprintf(out, "\n%s%s:%s\n", bold ? "\033[1m" : "", text, bold ? "\033[0m" : "");
}

static void print_examples(FILE *out, const verb *v)
{
    if (v->examples == NULL)
        return;
    heading(out, "examples");
    for (const verb_example *e = v->examples; e->command != NULL; e++)
        fprintf(out, "  mica %s\n      %s\n", e->command, e->text);
}

void help_summary(FILE *out)
{
    fprintf(out, "usage: mica VERB [ARGUMENTS]\n");
    heading(out, "examples"); /* the first of each verb: what one would try */
    for (size_t i = 0; i < all_verb_count; i++)
        if (all_verbs[i]->examples != NULL)
            fprintf(out, "  mica %s\n", all_verbs[i]->examples[0].command);
    heading(out, "verbs");
    for (size_t i = 0; i < all_verb_count; i++)
        fprintf(out, "  %-16s %s\n", all_verbs[i]->name, all_verbs[i]->summary);
    fprintf(out, "  %-16s %s\n", "help [VERB]", "this list, or the usage of a verb");
    fprintf(out, "  %-16s %s\n", "help layers", "reference for net files");
    fprintf(out, "  %-16s %s\n", "help operations", "reference for operations in net files");
    fprintf(out, "  %-16s %s\n", "help NAME", "one layer, operation or built-in net");
    fprintf(out, "  %-16s %s\n", "--version",
            "print the version, the commit and the kernels for this processor");
    heading(out, "exit codes");
    for (size_t i = 0; i < sizeof exit_texts / sizeof exit_texts[0]; i++)
        fprintf(out, "  %-16d %s\n", exit_texts[i].code, exit_texts[i].text);
    heading(out, "environment");
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        fprintf(out, "  %-16s %s\n", variables[i].name, variables[i].text);
}

static void print_option(FILE *out, const verb_option *option)
{
    char left[96];
    const char *letter = option->letter;
    snprintf(left, sizeof left, "%s%s%s%s%s%s", letter != NULL ? "-" : "", letter != NULL ? letter : "",
             letter != NULL ? ", " : "", option->name, option->value != NULL ? " " : "",
             option->value != NULL ? option->value : "");
    fprintf(out, strlen(left) <= 22 ? "  %-22s %s" : "  %s\n                         %s", left, option->help);
    if (option->choices != NULL) {
        fprintf(out, ": ");
        for (const char *const *choice = option->choices; *choice != NULL; choice++)
            fprintf(out, "%s%s", choice == option->choices ? "" : choice[1] == NULL ? " or " : ", ", *choice);
    }
    fprintf(out, "\n");
}

void help_verb(FILE *out, const verb *v)
{
    fprintf(out, "usage: mica %s %s\n\n%s\n", v->name, v->arguments, v->summary);
    print_examples(out, v);
    heading(out, "options");
    for (size_t i = 0; i < v->option_count; i++)
        print_option(out, &v->options[i]);
    for (size_t i = 0; i < shared_option_count; i++)
        if ((v->shared & shared_options[i].flag) != 0)
            print_option(out, &shared_options[i].option);
    print_option(out, &(verb_option){.name = "--help", .letter = "h", .help = "show this help"});
    if (v->details != NULL)
        fprintf(out, "\n%s\n", v->details);
}

/* ---- For programs ---- */

/* A field: line ends and tabs would be taken for the table's own. */
static void field(FILE *out, const char *text)
{
    fputc('\t', out);
    for (const char *c = text != NULL ? text : ""; *c != '\0'; c++)
        if (*c == '\n')
            fputs("\\n", out);
        else
            fputc(*c == '\t' ? ' ' : *c, out);
}

static void table_option(FILE *out, const char *owner, const verb_option *option)
{
    static const char *const kinds[] = {
#define KIND_TEXT(kind, text) text,
        OPTION_KINDS(KIND_TEXT)};
    fprintf(out, "option");
    field(out, owner);
    field(out, option->name);
    field(out, option->letter);
    field(out, kinds[option->kind]);
    field(out, option->value);
    field(out, option->help);
    fputc('\t', out);
    for (const char *const *choice = option->choices; choice != NULL && *choice != NULL; choice++)
        fprintf(out, "%s%s", choice == option->choices ? "" : " ", *choice);
    fputc('\n', out);
}

static void table_verb(FILE *out, const verb *v)
{
    fprintf(out, "verb");
    field(out, v->name);
    field(out, v->arguments);
    field(out, v->summary);
    field(out, v->details);
    fputc('\n', out);
    for (const verb_example *e = v->examples; e != NULL && e->command != NULL; e++) {
        fprintf(out, "example");
        field(out, v->name);
        field(out, e->command);
        field(out, e->text);
        fputc('\n', out);
    }
    for (size_t i = 0; i < v->option_count; i++)
        table_option(out, v->name, &v->options[i]);
    for (size_t i = 0; i < shared_option_count; i++)
        if ((v->shared & shared_options[i].flag) != 0)
            table_option(out, v->name, &shared_options[i].option);
}

void help_table(FILE *out)
{
    for (size_t i = 0; mica_netfile_builtin_name(i) != NULL; i++)
        fprintf(out, "net\t%s\n", mica_netfile_builtin_name(i));
    for (size_t i = 0; i < all_verb_count; i++)
        table_verb(out, all_verbs[i]);
    for (size_t i = 0; i < sizeof exit_texts / sizeof exit_texts[0]; i++)
        fprintf(out, "exit\t%d\t%s\n", exit_texts[i].code, exit_texts[i].text);
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        fprintf(out, "variable\t%s\t%s\n", variables[i].name, variables[i].text);
}
