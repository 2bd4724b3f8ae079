/* mica generate: its settings, which serve nets of Mica's own and public models. */
#ifndef MICA_CLI_TEXT_GENERATE_H
#define MICA_CLI_TEXT_GENERATE_H

#include <mica/text.h>

#include "cli/text/model.h"

typedef struct generate_settings {
    shared_settings shared;
    session_settings session;
    const char *prompt, *system, *save, *restore;
    int64_t tokens, top_k, recent, likely;
    double temperature, top_p, min_p, typical_p, repeat_penalty, presence_penalty, frequency_penalty;
    option_list bias, stop;
    bool chat, special, endless;
} generate_settings;

/* What the settings say of sampling; recent tokens and biases are not in it. */
mica_sampling generate_sampling(const generate_settings *set);

/* Writes with a public model. */
int generate_with_model(mica_context *ctx, const generate_settings *set, const char *path);

#endif
