/* The state of reading a net file.
 *
 *   lex.c         bytes to tokens, positions, and messages that point at them
 *   expression.c  numbers, constants, lists
 *   words.c       the table of layer words and their options
 *   arguments.c   what follows a word, by that table, into the layer's own struct of options
 *   layers.c      from there to the builders of mica/layers.h
 *   operations.c  operations of the list as words, by their entries
 *   read.c        lines, braces, names
 */
#ifndef MICA_SRC_NETFILE_READER_H
#define MICA_SRC_NETFILE_READER_H

#include <mica/layers.h>
#include <mica/netfile.h>

#include <mica/op.h>

#include "net/net.h"

/* ---- Tokens: lex.c ---- */

typedef enum token_kind {
    TOKEN_END,
    TOKEN_LINE,   /* the end of a line */
    TOKEN_NUMBER, /* 128, 1e-3 */
    TOKEN_SIZES,  /* 3x3 */
    TOKEN_WORD,   /* relu, block0.conv1 */
    TOKEN_SIGN,   /* one of = ( ) [ ] { } , + - * / ^ */
} token_kind;

typedef struct token {
    token_kind kind;
    char sign;         /* TOKEN_SIGN: which; else 0 */
    bool spaced;       /* white space stands before it */
    size_t at, length; /* in the text */
    int line;
    size_t line_at; /* where the line begins */
} token;

typedef struct constant {
    const char *name;
    double value;
    bool loop; /* the index of a repeat */
    int line;
} constant;

#define MOST_CONSTANTS 128
#define MOST_EDITS     (MOST_CONSTANTS + 1)

/* What another text than the given one stands in info.text. */
typedef struct edit {
    size_t at, length;
    char text[128];
} edit;

/* A name of the text and the value it stands for. */
typedef struct label {
    const char *name; /* in full, with those of the braces around it */
    mica_value value;
    struct label *before;
} label;

typedef struct frame frame; /* of braces: read.c */

typedef struct reader {
    mica_net *net;
    mica_context *ctx;
    const mica_netfile_opts *opts;
    mica_netfile_info info;

    const char *text;
    size_t length;
    token now;
    size_t before; /* where the token before it ends */
    int depth;     /* of parentheses */

    constant constants[MOST_CONSTANTS];
    int constant_count;
    edit edits[MOST_EDITS];
    int edit_count;
    label *labels;             /* the last first */
    bool used[MOST_CONSTANTS]; /* which of the constants that were given are in the text */

    mica_value value; /* what the next line takes */
    bool told;        /* a failure names its line */
    bool scored;      /* a loss has been */
    bool tokens;      /* the first input is a sequence of whole numbers */
    int lines;        /* run so far */
    frame *frames;
    int frame_count;
} reader;

/* Goes to the token behind `r->now`. */
mica_status mica_next_token(reader *r);
bool mica_is_sign(const reader *r, char sign);
bool mica_is_word(const reader *r, const char *name);

/* What stands at `r->now`, in words. */
typedef struct found {
    char text[120];
} found;
found mica_found_now(const reader *r);

/* Fails the net with "FILE:LINE:COLUMN: message" and the line, with a mark below the token. */
mica_status mica_fail_at(reader *r, const token *at, mica_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* "; did you mean "relu"?", or nothing. */
typedef struct guess {
    char text[96];
} guess;
guess mica_guess_of(const reader *r, const token *name, const void *names, size_t count, size_t stride);

/* The token's text in memory of the net. */
const char *mica_keep_word(reader *r, const token *name);

/* ---- Numbers: expression.c ---- */

/* An expression. Outside of parentheses and brackets, and unless `open`, it ends at white space. */
mica_status mica_read_expression(reader *r, double *out, bool open);
/* The same as a whole number within limits; `what` is for messages. */
mica_status mica_read_whole(reader *r, mica_index *out, const char *what, mica_index least, mica_index most);
/* 3x3, [a, b], or one number. */
mica_status mica_read_sizes(reader *r, mica_index *out, int *count, const char *what, mica_index least);
constant *mica_find_constant(reader *r, const char *name, size_t length);

/* ---- Words and options: words.c ---- */

/* What an option's value is, the type of its field, and what a message expects there. */
#define VALUE_KINDS(X)                                                                                \
    X(FLAG, "nothing")                              /* bool */                                        \
    X(SIZE, "an integer")                           /* mica_index, 1 at least */                      \
    X(OFFSET, "an integer")                         /* mica_index */                                  \
    X(INT, "an integer")                            /* int */                                         \
    X(COUNT, "an integer")                          /* int, 1 to MOST_COUNT */                        \
    X(FLOAT, "a number")                            /* float */                                       \
    X(DOUBLE, "a number")                           /* double */                                      \
    X(PAIR, "sizes, such as 3x3 or 3")              /* mica_index[2]; one number is both */           \
    X(LIST, "a list, such as [1, 28, 28]")          /* size_list */                                   \
    X(ACTIVATION, "an activation")                  /* mica_activation */                             \
    X(INIT, "an initializer, such as normal(0.02)") /* mica_init */                                   \
    X(CHOICE, "a keyword")                          /* int: the number of it in `choices` */          \
    X(NAME, "a name")                               /* const char *: a new one */                     \
    X(PARAMETER, "a parameter")                     /* const char *: the full name of one there is */ \
    X(VALUE, "the name of a layer above")           /* mica_value */                                  \
    X(VALUES, "the names of layers above")          /* value_list: as many as follow */               \
    X(NUMBERS, "a list, such as [1, 2]")            /* an array, as the operation's field describes */

typedef enum value_kind {
#define VALUE_KIND_ENUM(kind, text) VALUE_##kind,
    VALUE_KINDS(VALUE_KIND_ENUM)
#undef VALUE_KIND_ENUM
} value_kind;

#define MOST_COUNT 256
#define MOST_WORDS 80

typedef struct size_list {
    mica_index size[MICA_MAX_RANK];
    int count;
} size_list;

typedef struct value_list {
    mica_value value[MICA_OP_OUTS];
    int count;
} value_list;

enum {
    IN_PLACE = 1, /* may be given without its name, in the order of the table */
    REQUIRED = 2,
};

typedef struct word_option {
    const char *name;
    value_kind kind;
    unsigned offset; /* in the struct of options */
    unsigned flags;
    const char *help;
    const char *const *choices; /* ends with NULL */
} word_option;

enum {
    ACTIVATES = 1, /* an activation may follow, as in "conv 8 3x3 relu" */
    OPENS = 2,     /* ends with {, and } closes it */
    SOURCE = 4,    /* takes nothing from the line above */
    UNNAMED = 8,   /* takes no name= */
};

typedef struct word word;

/* A line: its word, its options, and what all lines have. */
typedef struct line {
    const word *word;
    token at;                   /* the word */
    void *opts;                 /* the layer's struct; its first field is the name */
    int number;                 /* of the word among all: mica_netfile_words, then the operations */
    const char *name;           /* given, or made: "conv1" */
    bool named;                 /* given */
    mica_value x;               /* the line above, or from= */
    bool from;                  /* given */
    mica_activation activation; /* ACTIVATES */
    token list;                 /* where its list, an input's shape, begins */
    size_t list_end;            /* and ends */
    unsigned given;             /* which of the word's options were: bits */
} line;

typedef mica_value line_builder(reader *r, const line *l);

struct word {
    const char *name;
    unsigned flags;
    line_builder *build;
    const word_option *options;
    size_t option_count;
    const char *help;
    const mica_op *op; /* an operation through its entry; NULL: a layer */
};

extern const word mica_netfile_words[];
extern const size_t mica_netfile_word_count;
extern const char *const mica_netfile_activations[]; /* by number less one; ends with NULL */
extern const char *const mica_netfile_dtypes[];
extern const char *const mica_netfile_losses[];
extern const char *const mica_netfile_inits[];

const word *mica_find_word(const char *name, size_t length);
size_t mica_activation_count(void);

/* ---- What follows a word: arguments.c ---- */

/* Reads to the end of the line. l->word, l->at and l->opts (zeros) are there. */
mica_status mica_read_arguments(reader *r, line *l);
/* The value of a name; the innermost braces first. */
mica_status mica_find_value(reader *r, const token *name, mica_value *out);
/* The same; 0 if there is none. */
mica_value mica_value_called(const reader *r, const token *name);
/* Another name of a value, in the scope at hand. */
mica_status mica_add_label(reader *r, const char *name, mica_value value);

/* ---- Operations: operations.c ---- */

/* A list of numbers into the operation's options. */
mica_status mica_read_numbers(reader *r, const line *l, const word_option *o);
/* The name of a value by its place: an input. */
mica_status mica_read_input(reader *r, line *l);

/* ---- Building: layers.c ---- */

#define WORD_OPTION_BYTES 512 /* no struct of options is larger */

#endif
