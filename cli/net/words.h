/* The words of net files, as mica help layers shows them. */
#ifndef MICA_CLI_NET_WORDS_H
#define MICA_CLI_NET_WORDS_H

#include <stdio.h>

void help_layers(FILE *out);

#endif
