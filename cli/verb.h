/* The verbs of the mica command, and the options they take.
 *
 * A verb is one file, cli/NAME.c, that defines verb_NAME, and one line in the list below. Data goes to
 * stdout, messages to stderr. */
#ifndef MICA_CLI_VERB_H
#define MICA_CLI_VERB_H

#include <stdbool.h>
#include <stddef.h>

/* What the program ends with. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_FILE = 3 };

typedef enum option_kind {
    OPTION_FLAG,   /* bool */
    OPTION_TEXT,   /* const char *: as given */
    OPTION_NUMBER, /* double, at least 0 */
} option_kind;

typedef struct verb_option {
    const char *name; /* "--threads" */
    option_kind kind;
    size_t offset;     /* of its field in the verb's own struct of settings */
    const char *value; /* what follows, as shown by help: "N"; NULL for a flag */
    const char *help;
} verb_option;

typedef struct verb {
    const char *name;
    const char *arguments; /* as shown by help: "[FILTER...]" */
    const char *summary;   /* one line */
    const char *details;   /* paragraphs, or NULL */
    const verb_option *options;
    size_t option_count;
    int (*run)(int argc, char **argv); /* what follows the verb; returns what the program ends with */
} verb;

/* Every verb, in the order of help. */
#define VERBS(X) \
    X(bench)     \
    X(ops)

#define VERB_DECLARE(name) extern const verb verb_##name;
VERBS(VERB_DECLARE)
#undef VERB_DECLARE

/* ---- For verbs ---- */

/* Fills *settings from argv by the verb's options (--name value, --name=value), and moves what is no option
 * to the front of argv. Returns how many of those there are; -1, with a message, for what cannot be. "--"
 * ends the options. */
int options_read(const verb *v, void *settings, int argc, char **argv);

/* "mica VERB: message", and where to find help. Returns EXIT_USAGE. `v` may be NULL. */
int usage_error(const verb *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The one of `names` (every `stride` bytes a const char *) that was probably meant; NULL if none is near. */
const char *nearest(const char *word, const void *names, size_t count, size_t stride);

#endif
