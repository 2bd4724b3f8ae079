/* The settings of a text model, read and checked. */
#include <math.h>
#include <string.h>

#include "base/format.h"
#include "text/model.h"

/* ---- Architectures ---- */

static const mica_architecture architectures[] = {
    {.name = "llama", .rope = MICA_ROPE_PAIRS, .activation = MICA_SILU},
    {.name = "gpt2", .rope = MICA_ROPE_NONE, .activation = MICA_GELU_TANH, .layer_norm = true},
    {.name = "qwen2", .rope = MICA_ROPE_HALVES, .activation = MICA_SILU, .no_window = true},
    {.name = "qwen3",
     .rope = MICA_ROPE_HALVES,
     .activation = MICA_SILU,
     .no_window = true,
     .head_norms = true},
    {.name = "gemma",
     .rope = MICA_ROPE_HALVES,
     .activation = MICA_GELU_TANH,
     .scaled_embedding = true,
     .tied = true,
     .no_window = true},
    {.name = "gemma2",
     .rope = MICA_ROPE_HALVES,
     .activation = MICA_GELU_TANH,
     .scaled_embedding = true,
     .tied = true,
     .part_norms = true,
     .window_period = 2,
     .window = 4096,
     .attention_cap = 50.0f,
     .logit_cap = 30.0f,
     .narrow_scale_layers = 46},
    {.name = "gemma3",
     .rope = MICA_ROPE_HALVES,
     .activation = MICA_GELU_TANH,
     .scaled_embedding = true,
     .part_norms = true,
     .head_norms = true,
     .window_period = 6,
     .narrow_scale_layers = 62,
     .local_base = 10000.0},
    {.name = "phi3", .rope = MICA_ROPE_HALVES, .activation = MICA_SILU, .no_window = true},
    {.name = "bert",
     .rope = MICA_ROPE_NONE,
     .activation = MICA_GELU,
     .layer_norm = true,
     .norms_last = true,
     .both_ways = true},
};

#define ARCHITECTURES (sizeof architectures / sizeof architectures[0])

const mica_architecture *mica_architecture_find(const char *name)
{
    for (size_t i = 0; i < ARCHITECTURES; i++)
        if (strcmp(architectures[i].name, name) == 0)
            return &architectures[i];
    return NULL;
}

const char *mica_architecture_names(void)
{
    return "llama, gpt2, qwen2, qwen3, gemma, gemma2, gemma3, phi3, bert";
}

/* ---- Numbers ---- */

typedef struct reading {
    mica_model *model;
    mica_status status; /* of the first failure: later readings do nothing */
} reading;

static void setting_key(char *key, size_t size, const mica_model *model, const char *name)
{
    mica_format(key, size, "%s.%s", model->info.architecture, name);
}

static mica_status refuse(const mica_model *model, const char *name, const char *text)
{
    return mica_fail(model->ctx, MICA_ERR_FORMAT, "%s: setting \"%s.%s\" %s", model->source.path,
                     model->info.architecture, name, text);
}

/* A number from `least` to `most`; `otherwise` where the file has none. */
static double number(reading *r, const char *name, double otherwise, double least, double most)
{
    char key[128], text[128];
    double value;
    setting_key(key, sizeof key, r->model, name);
    if (r->status != MICA_OK || !mica_source_number(&r->model->source, &value, key, 0))
        return otherwise;
    if (value >= least && value <= most) /* false for a NaN */
        return value;
    mica_format(text, sizeof text, "is %.17g: expected %.17g to %.17g", value, least, most);
    r->status = refuse(r->model, name, text);
    return otherwise;
}

/* A whole number from 1 to `most`; where the file has none, `otherwise`, or an error if that is 0. A list, with a
 * number for each layer, must have the same one for all. */
static mica_index count(reading *r, const char *name, mica_index otherwise, mica_index most)
{
    char key[128];
    double value = number(r, name, (double)otherwise, 1, (double)most), other;
    setting_key(key, sizeof key, r->model, name);
    if (r->status == MICA_OK && value == 0)
        r->status = refuse(r->model, name, "is missing");
    if (r->status == MICA_OK && value != floor(value))
        r->status = refuse(r->model, name, "is not a whole number");
    for (size_t i = 1; r->status == MICA_OK && mica_source_number(&r->model->source, &other, key, i); i++)
        if (other != value)
            r->status = refuse(r->model, name, "differs from layer to layer, which is not supported");
    return (mica_index)value;
}

/* ---- Parts ---- */

enum { MOST_LAYERS = 4096, MOST_WIDTH = 1 << 20, MOST_HEADS = 1 << 14, MOST_CONTEXT = 1 << 27 };
enum { MOST_ALL_HEADS = 1 << 24 }; /* features of all heads: sums of such numbers fit */

static void read_sizes(reading *r)
{
    mica_model_info *info = &r->model->info;
    info->layers = count(r, "block_count", 0, MOST_LAYERS);
    info->width = count(r, "embedding_length", 0, MOST_WIDTH);
    info->heads = count(r, "attention.head_count", 0, MOST_HEADS);
    info->kv_heads = count(r, "attention.head_count_kv", info->heads, MOST_HEADS);
    info->hidden = count(r, "feed_forward_length", 0, MOST_WIDTH * 16);
    info->context = count(r, "context_length", 0, MOST_CONTEXT);
    if (r->status != MICA_OK)
        return;
    char key[128];
    double given;
    setting_key(key, sizeof key, r->model, "attention.key_length");
    if (!mica_source_number(&r->model->source, &given, key, 0) && info->width % info->heads != 0)
        r->status = refuse(r->model, "embedding_length", "is not a multiple of the number of heads");
    if (r->status == MICA_OK && info->heads % info->kv_heads != 0)
        r->status = refuse(r->model, "attention.head_count_kv", "does not divide the number of heads");
    mica_index even = info->width / info->heads;
    info->head_width = count(r, "attention.key_length", even > 0 ? even : 1, MOST_WIDTH);
    info->value_width = count(r, "attention.value_length", even > 0 ? even : 1, MOST_WIDTH);
    if (r->status == MICA_OK &&
        (info->head_width > MOST_ALL_HEADS / info->heads || info->value_width > MOST_ALL_HEADS / info->heads))
        r->status = refuse(r->model, "attention.head_count", "times the width of a head is too large");
    if (r->status == MICA_OK && number(r, "expert_count", 0, 0, 1e9) > 0)
        r->status = refuse(r->model, "expert_count", "is above 0: mixtures of experts are not supported");
}

static void read_norms(reading *r)
{
    mica_model *model = r->model;
    const mica_architecture *a = model->architecture;
    const char *name = a->layer_norm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
    model->eps = (float)number(r, name, -1, 1e-30, 1);
    if (r->status == MICA_OK && !(model->eps > 0))
        r->status = refuse(model, name, "is missing");
    model->attention_cap = (float)number(r, "attn_logit_softcapping", (double)a->attention_cap, 0, 1e9);
    model->logit_cap = (float)number(r, "final_logit_softcapping", (double)a->logit_cap, 0, 1e9);
    if (a->attention_cap == 0.0f) /* others do not have it, whatever the file says */
        model->attention_cap = 0.0f;
    model->pooling = (int)number(r, "pooling_type", 1, 0, 3);
    if (a->scaled_embedding)
        model->embedding_scale = sqrtf((float)model->info.width);
    mica_index share = model->info.width / model->info.heads;
    model->attention_scale = (float)number(r, "attention.scale", 0, 0, 1e6);
    if (model->attention_scale == 0.0f && a->narrow_scale_layers == model->info.layers)
        model->attention_scale = 1.0f / sqrtf((float)share);
}

static void read_window(reading *r)
{
    mica_model *model = r->model;
    const mica_architecture *a = model->architecture;
    char key[128];
    bool windowed;
    setting_key(key, sizeof key, model, "attention.sliding_window_pattern");
    if (!mica_source_windowed(&model->source, &windowed, key, 0))
        model->window_period = (int)number(r, "attention.sliding_window_pattern", a->window_period, 0,
                                           MOST_LAYERS);
    else if (!mica_source_windowed(&model->source, &windowed, key, model->info.layers - 1))
        r->status = refuse(model, "attention.sliding_window_pattern",
                           "has fewer entries than there are layers");
    if ((!a->no_window || model->source.folder != NULL) && !a->both_ways)
        model->info.window = (mica_index)number(r, "attention.sliding_window", (double)a->window, 0,
                                                MOST_CONTEXT);
}

static void read_rope(reading *r)
{
    mica_model *model = r->model;
    const mica_architecture *a = model->architecture;
    model->turned = count(r, "rope.dimension_count", model->info.head_width, MOST_WIDTH);
    if (r->status == MICA_OK && (model->turned > model->info.head_width || model->turned % 2 != 0))
        r->status = refuse(model, "rope.dimension_count", "is odd, or larger than a head");
    model->base = number(r, "rope.freq_base", 10000.0, 1.0, 1e15);
    model->local_base = number(r, "rope.freq_base_swa", a->local_base, 1.0, 1e15);
    char key[128], type[32];
    setting_key(key, sizeof key, model, "rope.scaling.type");
    if (!mica_source_text(&model->source, type, sizeof type, key))
        mica_format(type, sizeof type, "linear");
    double factor = number(r, "rope.scaling.factor", number(r, "rope.scale_linear", 0, 0, 1e6), 0, 1e6);
    model->scaling_factor = factor > 0 && strcmp(type, "none") != 0 ? factor : 1.0;
    model->scaling_magnitude = number(r, "rope.scaling.attn_factor", 1.0, 1e-6, 1e6);
    model->scaling_context = (mica_index)number(r, "rope.scaling.original_context_length",
                                                (double)model->info.context, 1, MOST_CONTEXT);
    if (strcmp(type, "yarn") == 0)
        model->scaling = MICA_ROPE_YARN;
    else if (strcmp(type, "longrope") == 0)
        model->scaling = MICA_ROPE_LONG;
    else if (strcmp(type, "linear") != 0 && strcmp(type, "none") != 0 && r->status == MICA_OK)
        r->status = refuse(model, "rope.scaling.type", "is unknown: expected none, linear, yarn or longrope");
}

mica_status mica_model_read_settings(mica_model *model)
{
    reading r = {.model = model};
    model->rope_kind = model->architecture->rope;
    read_sizes(&r);
    if (r.status == MICA_OK)
        read_norms(&r);
    if (r.status == MICA_OK)
        read_window(&r);
    if (r.status == MICA_OK && model->rope_kind != MICA_ROPE_NONE)
        read_rope(&r);
    model->info.embeds = model->architecture->both_ways;
    return r.status;
}

mica_index mica_model_window(const mica_model *model, mica_index layer)
{
    char key[128];
    int period = model->window_period;
    bool windowed;
    setting_key(key, sizeof key, model, "attention.sliding_window_pattern");
    if (!mica_source_windowed(&model->source, &windowed, key, layer))
        windowed = period == 0 || layer % period != period - 1;
    return windowed ? model->info.window : 0;
}
