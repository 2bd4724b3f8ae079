/* The words of net files, as mica help layers and mica help operations show them. */
#ifndef MICA_CLI_NET_WORDS_H
#define MICA_CLI_NET_WORDS_H

#include <stdio.h>

#include <mica/op.h>

void help_layers(FILE *out);
void help_operations(FILE *out);
/* One of either; false: there is none of this name. And all their names, at most `most`; returns how many. */
bool help_word(FILE *out, const char *name);
size_t word_names(const char **names, size_t most);

/* What an operation's inputs, and behind them its outputs, are called. */
const char *operation_value(const mica_op *op, int number);
/* "a b [bias] -> y" */
void operation_signature(char *out, size_t size, const mica_op *op);

#endif
