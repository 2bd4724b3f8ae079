/* mica quantize --int8: a trained net in bytes. */
#ifndef MICA_CLI_MODEL_QUANTIZE_INT8_H
#define MICA_CLI_MODEL_QUANTIZE_INT8_H

#include "cli/model/data.h"

/* The options of verbs that quantize, whose settings have a field `ranges`. */
typedef struct int8_ranges {
    const char *data; /* NULL: that of the training */
    int method;       /* mica_int8_method; -1: not given */
    int64_t samples;  /* that ranges are taken from; 0: not given */
    bool per_tensor, per_channel;
    int64_t epochs; /* of training with roundings in the graph; 0: none */
} int8_ranges;

#define INT8_RANGES_DEFAULTS \
    {                        \
        .method = -1         \
    }
#define INT8_SAMPLES 1024

extern const char *const int8_methods[];

#define INT8_OPTIONS(settings)                                                                         \
    {.name = "--data",                                                                                 \
     OPTION_TEXT,                                                                                      \
     offsetof(settings, ranges.data),                                                                  \
     "DATA",                                                                                           \
     "--int8: data to take ranges from, and to compare the scores on (the training data set)"},        \
        {.name = "--calibrate",                                                                        \
         OPTION_CHOICE,                                                                                \
         offsetof(settings, ranges.method),                                                            \
         "METHOD",                                                                                     \
         "--int8: how to choose ranges from the values seen (minmax)",                                 \
         .choices = int8_methods},                                                                     \
        {.name = "--samples",                                                                          \
         OPTION_COUNT,                                                                                 \
         offsetof(settings, ranges.samples),                                                           \
         "N",                                                                                          \
         "--int8: samples to take ranges from (1024)",                                                 \
         .least = 1,                                                                                   \
         .most = 1000000000},                                                                          \
        {.name = "--per-channel",                                                                      \
         OPTION_FLAG,                                                                                  \
         offsetof(settings, ranges.per_channel),                                                       \
         NULL,                                                                                         \
         "--int8: a scale for each output channel of weights, which is what is done anyway"},          \
        {.name = "--per-tensor",                                                                       \
         OPTION_FLAG,                                                                                  \
         offsetof(settings, ranges.per_tensor),                                                        \
         NULL,                                                                                         \
         "--int8: one scale for all weights of a layer, not one per output channel"},                  \
    {                                                                                                  \
        .name = "--qat", OPTION_COUNT, offsetof(settings, ranges.epochs), "EPOCHS",                    \
        "--int8: train so many epochs with the roundings in the net before converting it", .least = 1, \
        .most = 100000                                                                                 \
    }

/* Without --int8: refuses these options, with a message. */
int int8_not_wanted(const int8_ranges *r, const verb *v);

typedef struct int8_settings {
    const shared_settings *shared;
    int8_ranges ranges;
    table_settings table;
    const option_list *set; /* of an ONNX model: sizes and inputs; NULL: none */
    /* With `learns`, layers from the first on whose parameters do not begin with one of these stay float. */
    bool learns;
    const option_list *freeze;
    bool silent; /* no report */
} int8_settings;

/* Reads the checkpoint or ONNX model `in`, writes `out`, and reports how the two compare. */
int quantize_int8(const verb *v, mica_context *ctx, const int8_settings *set, const char *in,
                  const char *out);
/* Removes what that wrote. */
void quantize_int8_remove(const char *out);

#endif
