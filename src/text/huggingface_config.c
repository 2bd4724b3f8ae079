/* config.json: what it says, under GGUF's keys. */
#include <math.h>
#include <string.h>

#include "io/number.h"
#include "text/huggingface_parts.h"

/* ---- Values by their paths ---- */

/* The first part of a path, and what follows it. */
static const char *split(char part[64], const char *path)
{
    size_t length = strcspn(path, ".");
    if (length >= 64)
        length = 63; /* equal to no key then: they are all shorter here */
    memcpy(part, path, length);
    part[length] = '\0';
    path += length;
    return *path == '.' ? path + 1 : NULL;
}

static bool find(const mica_map *text, mica_json_token *out, const char *path)
{
    mica_json json = mica_json_over((const char *)text->bytes, text->size);
    mica_json_token token;
    char part[64];
    bool found = false;
    path = split(part, path);
    if (!mica_json_next(&json, &token) || token.kind != MICA_JSON_OBJECT)
        return false;
    while (mica_json_next(&json, &token) && token.kind == MICA_JSON_KEY) {
        bool here = mica_json_says(&token, part);
        if (!mica_json_next(&json, &token))
            return false;
        if (here && path != NULL && token.kind == MICA_JSON_OBJECT) {
            path = split(part, path);
            continue;
        }
        if (here && path == NULL) { /* of two with one key the last counts, as for Python */
            *out = token;
            found = true;
        }
        if (!mica_json_skip(&json, &token))
            return false;
    }
    return found;
}

bool mica_huggingface_find(const mica_map *text, mica_json_token *out, const char *path)
{
    return find(text, out, path) && out->kind != MICA_JSON_NULL;
}

/* A model that also sees pictures has what belongs to its text apart. */
bool mica_huggingface_config(const mica_huggingface *folder, mica_json_token *out, const char *path)
{
    char inner[128] = "text_config.";
    size_t length = strlen(path), before = strlen(inner);
    if (length < sizeof inner - before) {
        memcpy(inner + before, path, length + 1);
        if (mica_huggingface_find(&folder->config, out, inner))
            return true;
    }
    return mica_huggingface_find(&folder->config, out, path);
}

static bool token_number(double *out, const mica_json_token *token)
{
    return token->kind == MICA_JSON_NUMBER && mica_parse_number(out, token->text, token->length) &&
           isfinite(*out);
}

bool mica_huggingface_config_number(const mica_huggingface *folder, double *out, const char *path)
{
    mica_json_token token;
    return mica_huggingface_config(folder, &token, path) && token_number(out, &token);
}

static bool is(const mica_huggingface *folder, const char *architecture)
{
    return strcmp(folder->kind->architecture, architecture) == 0;
}

static bool flag(const mica_huggingface *folder, const char *path, bool otherwise)
{
    mica_json_token token;
    return mica_huggingface_config(folder, &token, path) ? token.kind == MICA_JSON_TRUE : otherwise;
}

/* ---- Rotary positions ---- */

bool mica_huggingface_rope(const mica_huggingface *folder, mica_json_token *out, const char *name)
{
    static const char *const places[] = {"rope_parameters.full_attention.", "rope_parameters.",
                                         "rope_scaling.", ""};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[128];
        size_t before = strlen(places[i]), length = strlen(name);
        if (before + length >= sizeof path)
            continue;
        memcpy(path, places[i], before);
        memcpy(path + before, name, length + 1);
        if (mica_huggingface_config(folder, out, path))
            return true;
    }
    return false;
}

bool mica_huggingface_rope_number(const mica_huggingface *folder, double *out, const char *name)
{
    mica_json_token token;
    return mica_huggingface_rope(folder, &token, name) && token_number(out, &token);
}

/* How positions are scaled. False: they are not. */
static bool rope_type(const mica_huggingface *folder, mica_json_token *out)
{
    bool told = mica_huggingface_rope(folder, out, "rope_type") ||
                mica_huggingface_config(folder, out, "rope_scaling.type");
    return told && !mica_json_says(out, "default");
}

bool mica_huggingface_rope_is(const mica_huggingface *folder, const char *type)
{
    mica_json_token token;
    return rope_type(folder, &token) && mica_json_says(&token, type);
}

static bool long_rope(const mica_huggingface *folder)
{
    return mica_huggingface_rope_is(folder, "longrope") || mica_huggingface_rope_is(folder, "su");
}

/* ---- Checks ---- */

#define CONFIG                 "config.json"
#define BAD(folder, text, ...) MICA_HUGGINGFACE_BAD(folder, CONFIG, text, __VA_ARGS__)

static mica_status check_json(const mica_huggingface *folder)
{
    mica_json json = mica_json_over((const char *)folder->config.bytes, folder->config.size);
    mica_json_token token;
    if (folder->config.size > MICA_HUGGINGFACE_MOST_CONFIG)
        return BAD(folder, "has %zu bytes, expected at most %zu", folder->config.size,
                   MICA_HUGGINGFACE_MOST_CONFIG);
    do
        if (!mica_json_next(&json, &token))
            return BAD(folder, "byte %zu: %s", json.at, json.error);
    while (token.kind != MICA_JSON_DONE);
    return MICA_OK;
}

static mica_status check_activation(const mica_huggingface *folder)
{
    static const char *const places[] = {"hidden_activation", "hidden_act", "activation_function"};
    mica_json_token token;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (!mica_huggingface_config(folder, &token, places[i]))
            continue;
        for (size_t k = 0; k < 4 && folder->kind->activations[k] != NULL; k++)
            if (mica_json_says(&token, folder->kind->activations[k]))
                return MICA_OK;
        return BAD(folder, "%s is %s, expected %s", places[i], MICA_QUOTE_N(token.text, token.length),
                   folder->kind->activations[0]);
    }
    return MICA_OK;
}

static mica_status check_rope(const mica_huggingface *folder)
{
    mica_json_token type;
    if (!rope_type(folder, &type))
        return MICA_OK;
    bool factors = is(folder, "llama") || is(folder, "phi3");
    if (mica_json_says(&type, "linear") || mica_json_says(&type, "yarn") || (factors && long_rope(folder)) ||
        (is(folder, "llama") && mica_json_says(&type, "llama3")))
        return MICA_OK;
    return BAD(folder, "rope_type %s is not supported for %s", MICA_QUOTE_N(type.text, type.length),
               folder->kind->architecture);
}

/* What GGUF's conventions have no place for. */
static mica_status check_rest(const mica_huggingface *folder)
{
    static const char *const never[] = {"scale_attn_by_inverse_layer_idx", "add_cross_attention",
                                        "use_bidirectional_attention"};
    mica_json_token token;
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (flag(folder, never[i], false))
            return BAD(folder, "%s is true, which is not supported", never[i]);
    if (mica_huggingface_config(folder, &token, "position_embedding_type") &&
        !mica_json_says(&token, "absolute"))
        return BAD(folder, "position_embedding_type is %s, expected absolute",
                   MICA_QUOTE_N(token.text, token.length));
    if (mica_huggingface_config(folder, &token, "quantization_config"))
        return BAD(folder, "its weights are quantized (%s), which is not supported", "quantization_config");
    return MICA_OK;
}

mica_status mica_huggingface_read_config(mica_huggingface *folder)
{
    mica_json_token token;
    MICA_TRY(check_json(folder));
    if (!mica_huggingface_find(&folder->config, &token, "model_type") || token.kind != MICA_JSON_STRING)
        return BAD(folder, "has no %s", "\"model_type\"");
    folder->kind = mica_huggingface_kind_of(&token);
    if (folder->kind == NULL)
        return BAD(folder, "model_type %s is not supported: %s are", MICA_QUOTE_N(token.text, token.length),
                   mica_huggingface_kinds_text);
    MICA_TRY(check_rest(folder));
    MICA_TRY(check_activation(folder));
    return check_rope(folder);
}

/* ---- GGUF's keys ---- */

/* Keys whose value is found under one of several names. */
static const struct {
    const char *key; /* without the architecture */
    const char *paths[3];
} plain[] = {
    {"block_count", {"num_hidden_layers", "n_layer"}},
    {"context_length", {"max_position_embeddings", "n_positions", "n_ctx"}},
    {"embedding_length", {"hidden_size", "n_embd"}},
    {"feed_forward_length", {"intermediate_size", "n_inner"}},
    {"attention.head_count", {"num_attention_heads", "n_head"}},
    {"attention.head_count_kv", {"num_key_value_heads"}},
    {"attention.key_length", {"head_dim"}},
    {"attention.value_length", {"head_dim"}},
    {"attention.layer_norm_rms_epsilon", {"rms_norm_eps"}},
    {"attention.layer_norm_epsilon", {"layer_norm_eps", "layer_norm_epsilon"}},
    {"rope.freq_base_swa", {"rope_local_base_freq", "rope_parameters.sliding_attention.rope_theta"}},
    {"vocab_size", {"vocab_size"}},
};

/* What the configuration's class has where the file has nothing. */
static const struct {
    const char *architecture, *key;
    double value;
} defaults[] = {
    {"bert", "attention.layer_norm_epsilon", 1e-12},
    {"gpt2", "attention.layer_norm_epsilon", 1e-5},
    {"llama", "attention.layer_norm_rms_epsilon", 1e-6},
    {"qwen2", "attention.layer_norm_rms_epsilon", 1e-6},
    {"qwen3", "attention.layer_norm_rms_epsilon", 1e-6},
    {"phi3", "attention.layer_norm_rms_epsilon", 1e-5},
    {"gemma", "attention.layer_norm_rms_epsilon", 1e-6},
    {"gemma2", "attention.layer_norm_rms_epsilon", 1e-6},
    {"gemma3", "attention.layer_norm_rms_epsilon", 1e-6},
    {"gemma", "attention.key_length", 256},
    {"gemma", "attention.value_length", 256},
    {"gemma2", "attention.key_length", 256},
    {"gemma2", "attention.value_length", 256},
    {"gemma3", "attention.key_length", 256},
    {"gemma3", "attention.value_length", 256},
    {"gemma3", "attention.head_count", 8},
    {"gemma3", "attention.head_count_kv", 4},
    {"gemma3", "context_length", 131072},
    {"gemma3", "rope.freq_base", 1e6},
    {"gemma3", "rope.freq_base_swa", 1e4},
    {"gemma2", "attention.sliding_window", 4096},
    {"gemma2", "attn_logit_softcapping", 50},
    {"gemma2", "final_logit_softcapping", 30},
};

static bool is_qwen(const mica_huggingface *folder) { return is(folder, "qwen2") || is(folder, "qwen3"); }

/* After so many layers windows begin again. */
static bool window_period(const mica_huggingface *folder, double *out)
{
    return mica_huggingface_config_number(folder, out, "sliding_window_pattern") ||
           mica_huggingface_config_number(folder, out, "_sliding_window_pattern");
}

bool mica_huggingface_windowed(const mica_huggingface *folder, bool *out, mica_index layer)
{
    mica_json_token token;
    double first;
    if (!mica_huggingface_config(folder, &token, "layer_types") || token.kind != MICA_JSON_ARRAY) {
        if (!is_qwen(folder) || !mica_huggingface_config_number(folder, &first, "max_window_layers"))
            return false;
        *out = (double)layer >= first; /* those before it see all, whatever the name says */
        return true;
    }
    mica_json json = mica_json_over((const char *)folder->config.bytes + token.offset,
                                    folder->config.size - token.offset);
    (void)mica_json_next(&json, &token);
    for (mica_index i = 0; mica_json_next(&json, &token) && token.kind == MICA_JSON_STRING; i++)
        if (i == layer) {
            *out = mica_json_says(&token, "sliding_attention");
            return true;
        }
    return false;
}

static bool number_or(const mica_huggingface *folder, double *out, const char *path, double otherwise)
{
    if (!mica_huggingface_config_number(folder, out, path))
        *out = otherwise;
    return true;
}

double mica_huggingface_rope_width(const mica_huggingface *folder)
{
    double width = 0.0, heads = 1.0, part = 1.0;
    if (!mica_huggingface_config_number(folder, &width, "head_dim")) {
        (void)number_or(folder, &width, "hidden_size", 0.0);
        (void)number_or(folder, &heads, "num_attention_heads", 1.0);
        width = heads > 0.0 ? floor(width / heads) : 0.0;
    }
    if (mica_huggingface_rope_number(folder, &part, "partial_rotary_factor"))
        width = floor(width * part);
    return width;
}

/* What cosines and sines are multiplied with. */
static bool attention_factor(const mica_huggingface *folder, double *out)
{
    double most = 0.0, trained = 0.0, factor = 1.0;
    if (mica_huggingface_rope_number(folder, out, "attention_factor")) {
        /* GGUF's yarn has a factor of its own, which this one takes the place of. */
        if (mica_huggingface_rope_is(folder, "yarn") &&
            mica_huggingface_rope_number(folder, &factor, "factor") && factor > 1.0)
            *out /= 1.0 + 0.1 * log(factor);
        return true;
    }
    if (!long_rope(folder) || !mica_huggingface_config_number(folder, &most, "max_position_embeddings") ||
        !mica_huggingface_rope_number(folder, &trained, "original_max_position_embeddings") || trained <= 1.0)
        return false;
    *out = most > trained ? sqrt(1.0 + log(most / trained) / log(trained)) : 1.0;
    return true;
}

/* Whether layers have a window at all. */
static bool window(const mica_huggingface *folder, double *out)
{
    if (is_qwen(folder))
        if (!flag(folder, "use_sliding_window", false))
            return false;
    return mica_huggingface_config_number(folder, out, "sliding_window");
}

static bool pooling(const mica_huggingface *folder, double *out)
{
    static const struct {
        const char *mode;
        double type;
    } modes[] = {
        {"pooling_mode_mean_tokens", 1.0}, {"pooling_mode_cls_token", 2.0}, {"pooling_mode_lasttoken", 3.0}};
    mica_json_token token;
    for (size_t i = 0; folder->pooling.bytes != NULL && i < sizeof modes / sizeof modes[0]; i++)
        if (mica_huggingface_find(&folder->pooling, &token, modes[i].mode) && token.kind == MICA_JSON_TRUE) {
            *out = modes[i].type;
            return true;
        }
    return false;
}

/* 1 / sqrt: what scores are multiplied with. */
static bool scale(const mica_huggingface *folder, double *out)
{
    if (!mica_huggingface_config_number(folder, out, "query_pre_attn_scalar") || *out <= 0.0)
        return false;
    *out = 1.0 / sqrt(*out);
    return true;
}

static bool rope_base(const mica_huggingface *folder, double *out)
{
    return mica_huggingface_rope_number(folder, out, "rope_theta");
}

static bool rope_dimensions(const mica_huggingface *folder, double *out)
{
    *out = mica_huggingface_rope_width(folder);
    return !is(folder, "gpt2") && !is(folder, "bert") && *out > 0.0;
}

static bool rope_factor(const mica_huggingface *folder, double *out)
{
    return (mica_huggingface_rope_is(folder, "linear") || mica_huggingface_rope_is(folder, "yarn")) &&
           mica_huggingface_rope_number(folder, out, "factor");
}

static bool rope_trained(const mica_huggingface *folder, double *out)
{
    return mica_huggingface_rope_number(folder, out, "original_max_position_embeddings");
}

/* GPT-2 leaves the width of its hidden layers out, or null. */
static bool hidden(const mica_huggingface *folder, double *out)
{
    if (!is(folder, "gpt2") || !mica_huggingface_config_number(folder, out, "n_embd"))
        return false;
    *out *= 4.0;
    return true;
}

/* A null switches a cap off. */
static bool cap(const mica_huggingface *folder, double *out, const char *path)
{
    mica_json_token token;
    *out = 0.0;
    return find(&folder->config, &token, path) && (token.kind == MICA_JSON_NULL || token_number(out, &token));
}

static bool score_cap(const mica_huggingface *folder, double *out)
{
    return cap(folder, out, "attn_logit_softcapping") ||
           cap(folder, out, "text_config.attn_logit_softcapping");
}

static bool logit_cap(const mica_huggingface *folder, double *out)
{
    return cap(folder, out, "final_logit_softcapping") ||
           cap(folder, out, "text_config.final_logit_softcapping");
}

static bool heads(const mica_huggingface *folder, double *out)
{
    return !is(folder, "gemma3") && (mica_huggingface_config_number(folder, out, "num_attention_heads") ||
                                     mica_huggingface_config_number(folder, out, "n_head"));
}

typedef bool value_fn(const mica_huggingface *folder, double *out);

/* Keys that are worked out, if no plain one told. */
static const struct {
    const char *key;
    value_fn *value;
} worked_out[] = {
    {"attention.head_count_kv", heads},
    {"attn_logit_softcapping", score_cap},
    {"final_logit_softcapping", logit_cap},
    {"attention.sliding_window", window},
    {"attention.sliding_window_pattern", window_period},
    {"attention.scale", scale},
    {"feed_forward_length", hidden},
    {"pooling_type", pooling},
    {"rope.dimension_count", rope_dimensions},
    {"rope.freq_base", rope_base},
    {"rope.scaling.attn_factor", attention_factor},
    {"rope.scaling.factor", rope_factor},
    {"rope.scaling.original_context_length", rope_trained},
};

/* A key without its architecture; NULL: another's. */
static const char *own_key(const mica_huggingface *folder, const char *key)
{
    size_t length = strlen(folder->kind->architecture);
    return strncmp(key, folder->kind->architecture, length) == 0 && key[length] == '.' ? key + length + 1
                                                                                       : NULL;
}

bool mica_huggingface_number(const mica_huggingface *folder, double *out, const char *key)
{
    if (strcmp(key, "tokenizer.ggml.token_type_count") == 0)
        return mica_huggingface_config_number(folder, out, "type_vocab_size");
    key = own_key(folder, key);
    if (key == NULL)
        return false;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        for (size_t k = 0; strcmp(plain[i].key, key) == 0 && k < 3 && plain[i].paths[k] != NULL; k++)
            if (mica_huggingface_config_number(folder, out, plain[i].paths[k]))
                return true;
    for (size_t i = 0; i < sizeof worked_out / sizeof worked_out[0]; i++)
        if (strcmp(worked_out[i].key, key) == 0 && worked_out[i].value(folder, out))
            return true;
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (is(folder, defaults[i].architecture) && strcmp(defaults[i].key, key) == 0) {
            *out = defaults[i].value;
            return true;
        }
    return false;
}

bool mica_huggingface_text(const mica_huggingface *folder, const char **out, const char *key)
{
    if (strcmp(key, "general.architecture") == 0)
        *out = folder->kind->architecture;
    else if (strcmp(key, "general.name") == 0)
        *out = folder->name;
    else if ((key = own_key(folder, key)) == NULL || strcmp(key, "rope.scaling.type") != 0)
        return false;
    else if (mica_huggingface_rope_is(folder, "linear"))
        *out = "linear";
    else if (mica_huggingface_rope_is(folder, "yarn"))
        *out = "yarn";
    else if (long_rope(folder))
        *out = "longrope";
    else
        return false;
    return true;
}
