/* mica check: runs the backend tests of ONNX. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/net/argument.h"
#include "cli/onnx/case.h"
#include "cli/onnx/folders.h"
#include "cli/picture/text.h"
#include "cli/verb.h"

/* Those of ONNX's own runner: backend/test/loader. */
#define RELATIVE 1e-3
#define ABSOLUTE 1e-7

typedef struct settings {
    shared_settings shared;
    double relative, absolute;
    int64_t seconds;
} settings;

static const verb_option options[] = {
    {.name = "--rtol",
     OPTION_NUMBER,
     offsetof(settings, relative),
     "X",
     "how far floats may be off, relative to what is expected (0.001)"},
    {.name = "--atol",
     OPTION_NUMBER,
     offsetof(settings, absolute),
     "X",
     "and besides in absolute terms (1e-7)"},
    {.name = "--seconds",
     OPTION_COUNT,
     offsetof(settings, seconds),
     "N",
     "a test that takes longer has failed (120)",
     .least = 1,
     .most = 86400},
};

static const char details[] =
    "A DIR is a test: it holds model.onnx, and inputs and expected outputs as input_0.pb, output_0.pb and so on in\n"
    "test_data_set_0 and further ones. Or it holds such folders, at any depth.\n"
    "\n"
    "Shapes, and inputs that decide a shape, an axis or a count, are taken from the inputs before the model is\n"
    "compiled. Then it runs in planned memory, and a heap call is a failure. Outputs must have the expected dtypes\n"
    "and shapes; floats must be within the tolerance of ONNX's own runner, all else must be equal. Every test runs\n"
    "in a process of its own, so that none can stop the others.\n"
    "\n"
    "Prints a line for each test that failed or is not supported, with -v for all, with -q for none, and in the end\n"
    "how many passed, failed, and are not supported. Ends with 1 if any failed. --json prints an object with\n"
    "\"tests\" (name, status, reason) and these three numbers.";

/* ---- One test, in a process of its own ---- */

/* Writes the result, whole, to the parent. */
static void send(int pipe, const case_result *result)
{
    const char *bytes = (const char *)result;
    for (size_t at = 0; at < sizeof *result;) {
        ssize_t sent = write(pipe, bytes + at, sizeof *result - at);
        if (sent <= 0)
            return;
        at += (size_t)sent;
    }
}

static bool receive(int pipe, case_result *result)
{
    char *bytes = (char *)result;
    for (size_t at = 0; at < sizeof *result;) {
        ssize_t got = read(pipe, bytes + at, sizeof *result - at);
        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    result->reason[CASE_REASON - 1] = '\0';
    return result->status >= 0 && result->status < CASE_STATUS_COUNT;
}

static case_result run_here(const settings *set, const char *folder)
{
    case_result result = {.status = CASE_FAILED, .reason = "cannot make a context"};
    mica_context *ctx = verb_context(&verb_check, &set->shared);
    if (ctx != NULL)
        result = case_run(ctx, folder, (tolerance){.relative = set->relative, .absolute = set->absolute});
    mica_context_destroy(ctx);
    return result;
}

static case_result run_apart(const settings *set, const char *folder)
{
    case_result result = {.status = CASE_FAILED, .reason = "cannot start a process"};
    int ends[2];
    if (pipe(ends) != 0)
        return result;
    fflush(NULL); /* or the child would have, and write, what is in the buffers too */
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        alarm((unsigned)set->seconds);
        result = run_here(set, folder);
        send(ends[1], &result);
        _exit(0);
    }
    close(ends[1]);
    int status = 0;
    bool received = child > 0 && receive(ends[0], &result);
    close(ends[0]);
    if (child > 0 && waitpid(child, &status, 0) == child && !received) {
        result.status = CASE_FAILED;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
            snprintf(result.reason, sizeof result.reason, "takes more than %lld seconds",
                     (long long)set->seconds);
        else if (WIFSIGNALED(status))
            snprintf(result.reason, sizeof result.reason, "crashed: %s", strsignal(WTERMSIG(status)));
        else
            snprintf(result.reason, sizeof result.reason, "ended with code %d", WEXITSTATUS(status));
    }
    return result;
}

/* ---- All of them ---- */

static const char *const status_names[] = {
#define CASE_STATUS_NAME(status, text) text,
    CASE_STATUSES(CASE_STATUS_NAME)
#undef CASE_STATUS_NAME
};

static const char *name_of(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : folder;
}

static void print_json(const char *folder, const case_result *result, bool first)
{
    printf("%s\n{\"name\": ", first ? "" : ",");
    put_json(stdout, name_of(folder));
    printf(", \"status\": \"%s\"", status_names[result->status]);
    if (result->status != CASE_PASSED) {
        printf(", \"reason\": ");
        put_json(stdout, result->reason);
    }
    printf("}");
}

static void print_line(const char *folder, const case_result *result)
{
    printf("%-11s  ", status_names[result->status]);
    put_plain(stdout, name_of(folder));
    if (result->status != CASE_PASSED) {
        printf(": ");
        put_plain(stdout, result->reason);
    }
    printf("\n");
}

static int check_all(const settings *set, const folder_list *list)
{
    size_t counts[CASE_STATUS_COUNT] = {0};
    if (set->shared.json)
        printf("{\"tests\": [");
    for (size_t i = 0; i < list->count && !output_failed(); i++) {
        case_result result = run_apart(set, list->path[i]);
        counts[result.status]++;
        if (set->shared.json)
            print_json(list->path[i], &result, i == 0);
        else if (set->shared.verbose || (!set->shared.quiet && result.status != CASE_PASSED))
            print_line(list->path[i], &result);
    }
    printf(set->shared.json ? "],\n\"passed\": %zu, \"failed\": %zu, \"unsupported\": %zu}\n"
                            : "%zu passed, %zu failed, %zu unsupported\n",
           counts[CASE_PASSED], counts[CASE_FAILED], counts[CASE_UNSUPPORTED]);
    return counts[CASE_FAILED] > 0 ? EXIT_FAILED : EXIT_OK;
}

static int run(int argc, char **argv)
{
    settings set = {.shared = SHARED_DEFAULTS, .relative = RELATIVE, .absolute = ABSOLUTE, .seconds = 120};
    int given = options_read(&verb_check, &set, argc, argv);
    if (given < 0)
        return EXIT_USAGE;
    if (given == 0)
        return usage_error(&verb_check, "which tests? Give folders with a model.onnx in them or below");
    folder_list list = {0};
    int code = EXIT_OK;
    for (int i = 0; i < given && code == EXIT_OK; i++) {
        size_t before = list.count;
        if (!folders_find(&list, argv[i]))
            code = verb_error(
                &verb_check, EXIT_FILE, "%s: %s", argv[i],
                is_regular(argv[i])
                    ? "this is a file: give a folder that contains model.onnx and test_data_set_0"
                    : "cannot read this folder");
        else if (list.count == before)
            code = verb_error(&verb_check, EXIT_FILE, "%s: no model.onnx in it or in folders below", argv[i]);
    }
    if (code == EXIT_OK)
        code = check_all(&set, &list);
    folders_free(&list);
    return code;
}

const verb verb_check = {
    .name = "check",
    .arguments = "DIR... [OPTIONS]",
    .summary = "run backend tests of ONNX",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_JSON | SHARED_THREADS | SHARED_QUIET,
    .examples =
        (const verb_example[]){
            {"check onnx/backend/test/data/node", "all tests of operators"},
            {"check node/test_conv*", "those of convolution"},
            {"check --json node > node.json", "what each of them gave"},
            {NULL, NULL},
        },
};
