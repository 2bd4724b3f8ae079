/* mica quantize --int8 at work, for the files that carry it out: quantize_open.c reads, quantize_int8.c converts,
 * quantize_report.c tells. */
#ifndef MICA_CLI_MODEL_QUANTIZING_H
#define MICA_CLI_MODEL_QUANTIZING_H

#include <mica/int8.h>

#include "cli/model/feed.h"
#include "cli/model/quantize_int8.h"
#include "cli/model/saved.h"
#include "cli/model/score.h"

typedef struct training training;

typedef struct quantizing {
    const verb *v;
    mica_context *ctx;
    const int8_settings *set;
    const char *from, *data;
    saved saved;      /* of a checkpoint */
    training *opened; /* of an ONNX model, as if it were to be trained; NULL: it is a checkpoint */
    const meaning *meaning;
    double validation; /* the share of the data that is held back for it */
    mica_index batch;  /* samples of one */
    data samples;
    mica_net *net, *bytes, *fake;
    mica_netfile_info info, bytes_info;
    mica_int8 *q;
    mica_part part; /* that is scored */
    score before, after;
    int64_t epoch; /* of training with roundings */
} quantizing;

/* The net of floats, bound, with its weights, and the data. What was opened is closed by the other one in any case. */
int quantizing_open(quantizing *z, const char *in);
void quantizing_close(quantizing *z);

/* The checkpoint of the int8 net, and the model that it is built from again, if there is one. */
int quantizing_write(quantizing *z, const char *out);

/* Layers and scores of both nets, as text or JSON. */
void quantizing_report(const quantizing *z, const char *out);

mica_int8_method quantizing_method(const int8_settings *set);
/* The library's message, about what is quantized. */
int quantizing_failed(const quantizing *z, mica_status status);

#endif
