/* mica quantize --int8: a trained net in bytes. */
#ifndef MICA_CLI_MODEL_QUANTIZE_INT8_H
#define MICA_CLI_MODEL_QUANTIZE_INT8_H

#include "cli/model/data.h"

typedef struct int8_settings {
    const shared_settings *shared;
    const char *data; /* NULL: that of the training */
    table_settings table;
    bool per_tensor;
    int method;      /* mica_int8_method */
    int64_t samples; /* that ranges are taken from */
    /* With `learns`, layers from the first on whose parameters do not begin with one of these stay float. */
    bool learns;
    const option_list *freeze;
    bool silent; /* no report */
} int8_settings;

/* Reads the checkpoint `in`, writes `out`, and reports how the two compare. */
int quantize_int8(const verb *v, mica_context *ctx, const int8_settings *set, const char *in,
                  const char *out);

#endif
