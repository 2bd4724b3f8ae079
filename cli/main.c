/* The mica command: finds the verb and runs it. */
#include <stdio.h>
#include <string.h>

#include <mica/mica.h>

#include "cli/verb.h"
#include "mica_commit.h" /* made by the build */

static const verb *const verbs[] = {
#define ADDRESS(name) &verb_##name,
    VERBS(ADDRESS)};
#define VERB_COUNT (sizeof verbs / sizeof verbs[0])

static const verb *find(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

static int unknown_verb(const char *name)
{
    const char *names[VERB_COUNT + 1];
    for (size_t i = 0; i < VERB_COUNT; i++)
        names[i] = verbs[i]->name;
    names[VERB_COUNT] = "help";
    const char *meant = nearest(name, names, VERB_COUNT + 1, sizeof names[0]);
    if (meant != NULL)
        return usage_error(NULL, "there is no verb \"%s\"; did you mean \"%s\"?", name, meant);
    return usage_error(NULL, "there is no verb \"%s\"", name);
}

static void print_summary(FILE *out)
{
    fprintf(out, "usage: mica VERB [ARGUMENTS]\n\n");
    for (size_t i = 0; i < VERB_COUNT; i++)
        fprintf(out, "  %-14s %s\n", verbs[i]->name, verbs[i]->summary);
    fprintf(out, "  %-14s %s\n", "help [VERB]", "this, or what a verb takes");
    fprintf(out, "  %-14s %s\n", "--version", "the version, the commit, and the kernels for this processor");
}

static void print_verb(FILE *out, const verb *v)
{
    fprintf(out, "usage: mica %s %s\n\n%s\n", v->name, v->arguments, v->summary);
    if (v->option_count > 0)
        fprintf(out, "\n");
    for (size_t i = 0; i < v->option_count; i++) {
        char left[64];
        const verb_option *option = &v->options[i];
        snprintf(left, sizeof left, "%s%s%s", option->name, option->value != NULL ? " " : "",
                 option->value != NULL ? option->value : "");
        fprintf(out, "  %-22s %s\n", left, option->help);
    }
    if (v->details != NULL)
        fprintf(out, "\n%s\n", v->details);
}

static int help(int argc, char **argv)
{
    if (argc == 0) {
        print_summary(stdout);
        return EXIT_OK;
    }
    if (argc > 1)
        return usage_error(NULL, "help takes one verb");
    const verb *v = find(argv[0]);
    if (v == NULL)
        return unknown_verb(argv[0]);
    print_verb(stdout, v);
    return EXIT_OK;
}

static int version(void)
{
    mica_context *ctx;
    mica_status status = mica_context_create(&ctx, NULL);
    printf("mica %s, commit %s, %s kernels\n", mica_version(), MICA_COMMIT,
           status == MICA_OK ? mica_context_isa(ctx) : "no");
    mica_context_destroy(ctx);
    return EXIT_OK;
}

static bool asks_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_summary(stderr);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return help(argc - 2, argv + 2);
    if (strcmp(word, "--version") == 0)
        return version();
    const verb *v = find(word);
    if (v == NULL)
        return unknown_verb(word);
    if (asks_help(argc - 2, argv + 2)) {
        print_verb(stdout, v);
        return EXIT_OK;
    }
    return v->run(argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    int code = run(argc, argv);
    /* A full disk, or a reader that left: what was printed is not what was meant. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "mica: cannot write the output\n");
        return code != EXIT_OK ? code : EXIT_FAILED;
    }
    return code;
}
