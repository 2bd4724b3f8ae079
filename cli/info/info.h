/* The parts of mica info: nets, weights, data. Each prints and returns what the program ends with. */
#ifndef MICA_CLI_INFO_INFO_H
#define MICA_CLI_INFO_INFO_H

#include "cli/model/data.h"

typedef struct info_settings {
    shared_settings shared;
    option_list set;
    int64_t batch;
    bool text;
    table_settings table;
} info_settings;

typedef enum info_data_kind {
    INFO_NO_DATA,
    INFO_IDX,
    INFO_NPY,
    INFO_CSV,
    INFO_PNG,
    INFO_JPEG,
    INFO_NETPBM,
    INFO_WAV,
    INFO_NPZ,
    INFO_GGUF
} info_data_kind;

int info_net(mica_context *ctx, const info_settings *set, const char *what);
int info_weights(mica_context *ctx, const info_settings *set, const char *path);
int info_data(mica_context *ctx, const info_settings *set, const char *path, info_data_kind kind);
int info_wav(mica_context *ctx, const info_settings *set, const char *path);
int info_gguf(mica_context *ctx, const info_settings *set, const char *path);
int info_npz(mica_context *ctx, const info_settings *set, const char *path);

int info_table(mica_context *ctx, const info_settings *set, const char *path);
bool has_images(mica_context *ctx, const char *path); /* in it or below */
int info_folder(mica_context *ctx, const info_settings *set, const char *path, bool sounds); /* else images */

#endif
