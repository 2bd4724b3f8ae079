/* An ONNX model with what is known of its inputs, and the net that follows. */
#ifndef MICA_CLI_ONNX_GIVEN_H
#define MICA_CLI_ONNX_GIVEN_H

#include <mica/onnx.h>

#include "cli/verb.h"
#include "data/load.h"

#define GIVEN_INPUTS 64 /* as many as mica_onnx_problem.needs has bits */

typedef enum given_how {
    GIVEN_NOTHING, /* the model says what it is */
    GIVEN_SHAPE,   /* its shape; and its value, where there is one, is written before each run */
    GIVEN_VALUE,   /* its value, which becomes a constant of the net */
} given_how;

typedef struct given {
    mica_context *ctx;
    mica_onnx *model;
    int count; /* of inputs */
    mica_onnx_value input[GIVEN_INPUTS];
    given_how how[GIVEN_INPUTS];
    mica_tensor value[GIVEN_INPUTS];  /* data is NULL where only the shape is given */
    mica_loaded loaded[GIVEN_INPUTS]; /* what was read from a file */
    void *owned[GIVEN_INPUTS];        /* what was read from an option */
    mica_onnx_set symbol[OPTION_LIST_MOST];
    char symbol_name[OPTION_LIST_MOST][128];
    int symbols;
    char sampled[OPTION_LIST_MOST][160]; /* sizes that data have told, as --set would have them */
    int sampled_count;
    bool frozen; /* built for training, it is not trained: mica_onnx_opts */
} given;

/* Opens the model. given_close is safe after a failure. */
mica_status given_open(given *g, mica_context *ctx, const char *path);
void given_close(given *g);

/* The number of an input; -1: there is none. */
int given_find(const given *g, const char *name, size_t length);

/* Takes options as they are given: "batch=8" for a size, "sr=16000", "axes=1,2" or "mask=@FILE.npy" for an input whose
 * value is fixed, "image=1x3x224x224" for the shape of one. And "x=FILE.npy" for the value of an input, or FILE alone
 * for the next in order. What the program ends with if they are wrong, having said why. */
int given_sets(given *g, const verb *v, const option_list *list);
int given_inputs(given *g, const verb *v, const option_list *list, char **files, int file_count);

/* What a size was set to, by its name; -1: nothing was said of it. */
mica_index given_size(const given *g, const char *symbol);
/* A size by its name, unless that was said before. */
void given_set_size(given *g, const char *symbol, mica_index size);
/* Sizes that nothing was said of are this, and for each further name so much more. */
void given_fill_sizes(given *g, mica_index size, mica_index apart);

/* Builds the net. Inputs that it needs to know, and that have values, become constants. NULL after a failure. */
mica_status given_build(given *g, mica_net **net, bool train);
/* Writes the inputs of a bound net. */
mica_status given_write(given *g, mica_net *net);

/* Says why a build failed: all that is not supported. Returns what the program ends with. */
int given_build_failed(const given *g, const verb *v, const char *path);

#endif
