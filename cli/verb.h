/* The verbs of the mica command, and the options they take.
 *
 * A verb is one file, cli/NAME.c, that defines verb_NAME, and one line in the list below. All that help, the man
 * pages and the shell's completion say of it comes from that table. Data goes to stdout, messages to stderr. */
#ifndef MICA_CLI_VERB_H
#define MICA_CLI_VERB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mica/base.h>

/* Every verb, in the order of help. */
#define VERBS(X)  \
    X(train)      \
    X(eval)       \
    X(run)        \
    X(generate)   \
    X(tokenize)   \
    X(perplexity) \
    X(embed)      \
    X(info)       \
    X(plan)       \
    X(export)     \
    X(convert)    \
    X(quantize)   \
    X(bench)      \
    X(check)      \
    X(ops)

/* What the program ends with. */
#define EXIT_CODES(X)                                                       \
    X(OK, 0, "success")                                                     \
    X(FAILED, 1, "failure: the message says why")                           \
    X(USAGE, 2, "usage error: an unknown verb or option, an invalid value") \
    X(FILE, 3, "an input file that is unreadable or malformed")             \
    X(DIVERGED, 4, "training diverged: the loss became infinite or NaN")    \
    X(LOST, 5, "another rank of the job cannot be reached any more")        \
    X(INTERRUPTED, 130, "interrupted (Ctrl-C), after writing the checkpoint, if there is one")

typedef enum exit_code {
#define EXIT_CODE_ENUM(name, code, text) EXIT_##name = (code),
    EXIT_CODES(EXIT_CODE_ENUM)
#undef EXIT_CODE_ENUM
} exit_code;

/* ---- Options ---- */

/* What an option's value is, and the type of its field. */
#define OPTION_KINDS(X)                                                                    \
    X(FLAG, "flag")     /* bool: takes no value */                                         \
    X(TEXT, "text")     /* const char *: as given */                                       \
    X(COUNT, "count")   /* int64_t, from `least` to `most` */                              \
    X(NUMBER, "number") /* double, at least 0 */                                           \
    X(BYTES, "bytes")   /* size_t: 4096, 64K, 2MiB, 1.5GiB (K, KiB and kB are all 1024) */ \
    X(CHOICE, "choice") /* int: the number of one of `choices` */                          \
    X(LIST, "list")     /* option_list: may be given several times */

typedef enum option_kind {
#define OPTION_KIND_ENUM(kind, text) OPTION_##kind,
    OPTION_KINDS(OPTION_KIND_ENUM)
#undef OPTION_KIND_ENUM
} option_kind;

#define OPTION_LIST_MOST 32

typedef struct option_list {
    const char *item[OPTION_LIST_MOST];
    size_t count;
} option_list;

typedef struct verb_option {
    const char *name; /* "--threads" */
    option_kind kind;
    size_t offset; /* of its field in the verb's own struct of settings */
    const char *
        value; /* what follows, as shown by help: "N", and as completed: "FILE", "DIR", "NET"; NULL: a flag */
    const char *help;
    const char *letter;         /* "q" for -q; NULL: none */
    int64_t least, most;        /* OPTION_COUNT; most 0: no limit */
    const char *const *choices; /* OPTION_CHOICE; ends with NULL */
} verb_option;

/* --prepare, of verbs that run nets: an int, which is one of these. */
enum { PREPARE_YES, PREPARE_NO };
extern const char *const prepare_choices[];
#define PREPARE_OPTION(where, about)                                                           \
    {                                                                                          \
        .name = "--prepare", OPTION_CHOICE, where, "yes|no", about, .choices = prepare_choices \
    }

/* Options that mean the same wherever they are. A verb says which it uses; its struct of settings then starts with
 * a shared_settings. All but --json are taken by every verb, and change nothing where they are not used. */
enum {
    SHARED_QUIET = 1, /* -q and -v */
    SHARED_JSON = 2,
    SHARED_THREADS = 4,
    SHARED_SEED = 8,
    RANKED = 16, /* no option: under mpirun all ranks take part, not rank 0 alone */
};

typedef struct shared_settings {
    bool quiet;      /* no progress, no hints */
    bool verbose;    /* more of them */
    bool json;       /* JSON on stdout instead of text */
    int64_t threads; /* 0: as many as this machine has processors */
    int64_t seed;
} shared_settings;

/* What they are where nothing else is given. */
#define SHARED_DEFAULTS \
    {                   \
        .seed = 42      \
    }

/* ---- Verbs ---- */

typedef struct verb_example {
    const char *command; /* without "mica ": "train lenet --data digits" */
    const char *text;    /* what it does */
} verb_example;

typedef struct verb {
    const char *name;
    const char *arguments; /* as shown by help: "[FILTER...]" */
    const char *summary;   /* one line */
    const char *details;   /* paragraphs, or NULL */
    const verb_option *options;
    size_t option_count;
    int (*run)(int argc, char **argv); /* what follows the verb; returns what the program ends with */
    unsigned shared;                   /* SHARED_... */
    const char *ranked_with;           /* the option with which it is RANKED; or NULL */
    const verb_example *examples;      /* ends with one whose command is NULL; or NULL */
} verb;

#define VERB_DECLARE(name) extern const verb verb_##name;
VERBS(VERB_DECLARE)
#undef VERB_DECLARE

/* ---- For verbs ---- */

/* Fills *settings from argv by the verb's options, and moves what is no option to the front of argv. Returns how
 * many of those there are; -1, with a message, for what cannot be.
 *
 * Long options are --name value or --name=value; short ones -q, -qv or -oVALUE. "--" ends the options; "-" is an
 * argument like others, which by custom stands for stdin. */
int options_read(const verb *v, void *settings, int argc, char **argv);

/* Bytes as OPTION_BYTES takes them. False for what is none. */
bool bytes_read(const char *text, size_t *bytes);

/* Makes the context with the threads asked for. NULL, with a message, if that fails. */
mica_context *verb_context(const verb *v, const shared_settings *shared);

/* ---- Messages: "mica VERB: message" on stderr. `v` may be NULL. ---- */

/* Also where to find help. Returns EXIT_USAGE. */
int usage_error(const verb *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns `code`. */
int verb_error(const verb *v, exit_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* What went wrong in the library: the context's text. Returns what the program ends with after such a status: files
 * that cannot be read 3, training that diverged 4, else 1. (Where a file could not be written, end with
 * EXIT_FAILED.) */
int verb_failed(const verb *v, const mica_context *ctx);
exit_code exit_code_of(mica_status status);

/* The one of `names` (every `stride` bytes a const char *) that was probably meant; NULL if none is near. */
const char *nearest(const char *word, const void *names, size_t count, size_t stride);

/* ---- The terminal ---- */

/* Whether what stdout got so far could not be written: a reader that left, a full disk. Verbs that print without an
 * end look here and stop; main says what is to be said. */
bool output_failed(void);

/* Whether a stream (stdout, stderr) is a terminal; and whether it may be coloured: not with NO_COLOR or TERM=dumb. */
struct terminal {
    bool is_terminal, colour;
    int columns; /* 80 where nobody knows */
};
struct terminal terminal_of(int descriptor);

#endif
