/* A net, written as an ONNX file and read again. */
#ifndef MICA_TESTS_ONNX_ROUND_TRIP_H
#define MICA_TESTS_ONNX_ROUND_TRIP_H

#include <mica/onnx.h>

#include "test.h"

/* Runs the net, whose inputs are filled, writes it, reads the file, and checks that what was read gives the same
 * bits. With $MICA_ONNX_KEEP the file, what went in and what came out are left in that folder, for other programs
 * (tests/onnx/check_written.py). False: it cannot be written, and the context says why. */
bool round_trip(mica_net *net, const char *name);
/* The same without functions. */
bool round_trip_plain(mica_net *net, const char *name);

#endif
