/* Operations as words: what their lines are read into, and how entries become words. */
#ifndef MICA_SRC_NETFILE_OPERATIONS_H
#define MICA_SRC_NETFILE_OPERATIONS_H

#include "netfile/reader.h"
#include "ops/list.h"

#define OPERATION_OPTIONS      32  /* most that an operation's line can have, its inputs included */
#define OPERATION_CHOICES      64  /* words of all choices, and an end for each */
#define OPERATION_NUMBERS      16  /* of a list */
#define OPERATION_OPTION_BYTES 384 /* of its struct of options */

#define OPERATION_ONE(name, family) +1
enum { OPERATION_COUNT = 0 MICA_OPS(OPERATION_ONE) };

typedef struct operation_line {
    const char *name;
    int placed;
    mica_value place[MICA_OP_INS]; /* inputs by place, in their order */
    mica_value in[MICA_OP_INS];    /* those by name */
    _Alignas(max_align_t) char opts[OPERATION_OPTION_BYTES];
} operation_line;

_Static_assert(sizeof(operation_line) <= WORD_OPTION_BYTES, "a line of options holds it");

/* A word that is made from an entry, and what it points at. */
typedef struct operation_word {
    word word;
    word_option options[OPERATION_OPTIONS];
    const char *choices[OPERATION_CHOICES];
    size_t choice_count;
    char text[512];
    size_t text_length;
} operation_word;

void mica_operation_word(operation_word *out, const mica_op *op);

/* The operation of this number in the list if it is a word of its own; else NULL: a layer has that word, only gradients
 * call it, or no file can say what it needs. */
const mica_op *mica_netfile_operation(int number);
/* By name: its number, or NONE. */
int mica_find_operation(const char *name, size_t length);

const char *mica_operation_input(const mica_op *op, int in);
const char *mica_operation_output(const mica_op *op, int out);
/* "matmul [a] b [bias]" */
void mica_operation_usage(char *out, size_t size, const mica_op *op);

line_builder mica_line_operation;
/* Outputs of an operation that has several: "split1.0", "max_pool2d1.indices". */
mica_status mica_label_outputs(reader *r, const line *l, mica_value y);

#endif
