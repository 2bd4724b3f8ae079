/* Messages and what the program ends with; the context; what is known of the terminal. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/picture/text.h"
#include "cli/ranks.h"
#include "cli/verb.h"

/* Messages hold names from files and from the command line: what a terminal would obey is escaped. */
static void say(const verb *v, const char *format, va_list args, const char *hint)
{
    char text[8192];
    int length = vsnprintf(text, sizeof text, format, args);
    if (hint != NULL && length >= 0 && (size_t)length < sizeof text)
        (void)snprintf(text + length, sizeof text - (size_t)length, "\nSee: mica help%s%s",
                       *hint != '\0' ? " " : "", hint);
    if (ranks_hold(v != NULL ? v->name : "", text))
        return;
    fprintf(stderr, "mica%s%s: ", v != NULL ? " " : "", v != NULL ? v->name : "");
    put_message(stderr, text);
    fprintf(stderr, "\n");
}

int usage_error(const verb *v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(v, format, args, v != NULL ? v->name : "");
    va_end(args);
    return EXIT_USAGE;
}

int verb_error(const verb *v, exit_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(v, format, args, NULL);
    va_end(args);
    return (int)code;
}

exit_code exit_code_of(mica_status status)
{
    switch (status) {
    case MICA_OK:
        return EXIT_OK;
    case MICA_ERR_IO:
    case MICA_ERR_FORMAT:
        return EXIT_FILE;
    case MICA_ERR_DIVERGED:
        return EXIT_DIVERGED;
    default:
        return EXIT_FAILED;
    }
}

int verb_failed(const verb *v, const mica_context *ctx)
{
    return verb_error(v, exit_code_of(mica_context_status(ctx)), "%s", mica_error(ctx));
}

mica_context *verb_context(const verb *v, const shared_settings *shared)
{
    mica_context *ctx;
    long here = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t threads = shared->threads > 0 ? shared->threads : ranks_threads(here > 0 ? here : 1);
    mica_status status = mica_context_create(
        &ctx,
        &(mica_context_opts){.threads = (int)(threads < MICA_MAX_THREADS ? threads : MICA_MAX_THREADS)});
    if (status != MICA_OK)
        verb_error(v, EXIT_FAILED, "cannot start: %s%s", mica_status_text(status),
                   getenv("MICA_ISA") != NULL ? " (does this processor have the kernels that MICA_ISA names?)"
                                              : "");
    return ctx;
}

struct terminal terminal_of(int descriptor)
{
    struct terminal t = {.is_terminal = isatty(descriptor) == 1, .columns = 80};
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    /* mpirun gives rank 0 a terminal of its own making, wherever the output then goes: colours would get into files. */
    t.colour = t.is_terminal && ranks_wire() == NULL && (none == NULL || *none == '\0') &&
               (term == NULL || strcmp(term, "dumb") != 0);
    struct winsize size;
    if (t.is_terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        t.columns = size.ws_col;
    return t;
}
