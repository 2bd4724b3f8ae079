/* The words of net files, as mica help layers and mica help operations show them. */
#ifndef MICA_CLI_NET_WORDS_H
#define MICA_CLI_NET_WORDS_H

#include <stdio.h>

#include <mica/op.h>

void help_layers(FILE *out);
void help_operations(FILE *out);

/* What an operation's inputs, and behind them its outputs, are called. */
const char *operation_value(const mica_op *op, int number);
/* "a b [bias] -> y" */
void operation_signature(char *out, size_t size, const mica_op *op);

#endif
