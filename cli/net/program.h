/* The program of a compiled net, for programs. */
#ifndef MICA_CLI_NET_PROGRAM_H
#define MICA_CLI_NET_PROGRAM_H

#include <stdio.h>

#include <mica/net.h>

/* A JSON list of its calls: op, phase, layer, fused, inputs, outputs, options, scratch. */
void put_program(FILE *out, const mica_net *net);

#endif
