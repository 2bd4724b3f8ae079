/* The mica command: finds the verb and runs it. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mica/mica.h>

#include "cli/help.h"
#include "cli/net/words.h"
#include "cli/ranks.h"
#include "mica_commit.h" /* made by the build */

static int help(int argc, char **argv)
{
    if (argc == 0) {
        help_summary(stdout);
        return EXIT_OK;
    }
    if (argc > 1)
        return usage_error(NULL, "help takes at most one name");
    if (strcmp(argv[0], "--table") == 0) {
        help_table(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[0], "layers") == 0) {
        help_layers(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[0], "operations") == 0) {
        help_operations(stdout);
        return EXIT_OK;
    }
    const verb *v = verb_find(argv[0]);
    if (v == NULL)
        return help_net(stdout, argv[0]) || help_word(stdout, argv[0]) ? EXIT_OK : unknown_topic(argv[0]);
    help_verb(stdout, v);
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

static bool has_word(int argc, char **argv, const char *word)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

static bool asks_help(int argc, char **argv)
{
    return has_word(argc, argv, "--help") || has_word(argc, argv, "-h");
}

/* Whether all ranks take part, where there are several. */
static bool is_ranked(const verb *v, int argc, char **argv)
{
    return (v->shared & RANKED) != 0 || (v->ranked_with != NULL && has_word(argc, argv, v->ranked_with));
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        help_summary(stderr);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return help(argc - 2, argv + 2);
    if (strcmp(word, "--version") == 0)
        return version();
    const verb *v = verb_find(word);
    if (v == NULL)
        return unknown_verb(word);
    if (asks_help(argc - 2, argv + 2)) {
        help_verb(stdout, v);
        return EXIT_OK;
    }
    int code = ranks_join();
    if (code == EXIT_OK && (ranks_rank() == 0 || is_ranked(v, argc - 2, argv + 2)))
        code = v->run(argc - 2, argv + 2);
    return ranks_leave(code);
}

bool output_failed(void) { return fflush(stdout) != 0 || ferror(stdout) != 0; }

/* Whether stdout is a pipe that nobody reads any more, as after "| head". */
static bool reader_left(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

int main(int argc, char **argv)
{
    /* A reader that left is seen where output is written; it must not end a training run. */
    signal(SIGPIPE, SIG_IGN);
    /* A limit on the size of files is an error of the write that meets it, which says so. */
    signal(SIGXFSZ, SIG_IGN);
    int code = run(argc, argv);
    if (output_failed() && !reader_left())
        return verb_error(NULL, code != EXIT_OK ? (exit_code)code : EXIT_FAILED, "cannot write the output");
    return code;
}
