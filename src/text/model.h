/* Inside a text model: where its settings and weights come from, and what they say.
 *
 *     source (GGUF file, Hugging Face folder) ──► settings ──► net over rows of tokens (model_net.c)
 *
 * Settings and weights go by GGUF's names, whatever the source. */
#ifndef MICA_SRC_TEXT_MODEL_H
#define MICA_SRC_TEXT_MODEL_H

#include <mica/model.h>
#include <mica/ops/activation.h>
#include <mica/ops/text.h>

#include "base/context.h"

/* ---- Sources ---- */

typedef struct mica_huggingface mica_huggingface;

typedef struct mica_model_source {
    mica_gguf *gguf;          /* either this */
    mica_huggingface *folder; /* or this */
    const char *path;         /* for messages */
} mica_model_source;

/* A setting by its full key ("llama.block_count"), or one element of a list of them; false: there is none. */
bool mica_source_number(const mica_model_source *source, double *out, const char *key, size_t element);
/* A text, cut to fit `size`; false: there is none. */
bool mica_source_text(const mica_model_source *source, char *text, size_t size, const char *key);
/* Whether a layer has a window, where the source says it for each layer; false: it does not. */
bool mica_source_windowed(const mica_model_source *source, bool *out, const char *key, mica_index layer);
bool mica_source_tensor(const mica_model_source *source, mica_tensor *out, const char *name);

/* ---- What an architecture is ---- */

typedef enum mica_rope_kind {
    MICA_ROPE_NONE,   /* positions are learned */
    MICA_ROPE_PAIRS,  /* neighbouring features turn together */
    MICA_ROPE_HALVES, /* features half a head apart */
} mica_rope_kind;

/* What cannot be seen from the tensors that are there. */
typedef struct mica_architecture {
    const char *name;
    mica_rope_kind rope;
    mica_activation activation; /* of the feed-forward layer */
    bool layer_norm;            /* instead of RMS norm */
    bool norms_last;            /* behind each sum, not in front of each part of a layer */
    bool part_norms;            /* also behind each part of a layer, in front of the sum */
    bool head_norms;            /* of the queries and keys of each head */
    bool scaled_embedding;      /* rows of the embedding times sqrt(width) */
    bool both_ways;             /* tokens see those behind them; no logits */
    bool tied;                  /* the head is always the embedding */
    bool no_window;             /* a window that a GGUF file names is not used, as in llama.cpp */
    int window_period; /* the last of so many layers sees all, the others a window; 0: all layers alike */
    mica_index window; /* where the file names none */
    float attention_cap, logit_cap; /* where the file names none */
    mica_index
        narrow_scale_layers; /* with so many layers scores are scaled by width / heads, not by head_width */
    double local_base;       /* of RoPE in layers with a window; 0: as in the others */
} mica_architecture;

const mica_architecture *mica_architecture_find(const char *name);
/* "llama, gpt2, ...", for messages. */
const char *mica_architecture_names(void);

/* ---- Settings ---- */

typedef enum mica_rope_scaling { MICA_ROPE_LINEAR, MICA_ROPE_YARN, MICA_ROPE_LONG } mica_rope_scaling;

/* How positions turn features: include/mica/ops/text.h. */
typedef struct mica_rope {
    float *frequency; /* [model->turned / 2] */
    float magnitude;
} mica_rope;

struct mica_model {
    mica_context *ctx;
    size_t bytes; /* of this block */
    mica_model_source source;
    const mica_architecture *architecture;
    mica_model_info info;
    char name[256];
    mica_tokenizer *tokenizer;

    float eps;
    float attention_scale; /* 0: 1 / sqrt(head_width) */
    float attention_cap, logit_cap;
    float embedding_scale; /* 0: 1 */
    mica_index positions;  /* rows of learned positions; 0: none */
    int pooling;           /* GGUF's: 1 mean, 2 first, 3 last */
    mica_rope_kind rope_kind;
    mica_index turned;       /* features of a head that RoPE turns */
    int window_period;       /* as in mica_architecture */
    double base, local_base; /* of RoPE's frequencies, in layers that see all and in those with a window */
    mica_rope_scaling scaling;
    double scaling_factor, scaling_magnitude;
    mica_index scaling_context; /* that it was trained for before it was scaled */
};

/* ---- settings.c ---- */

/* Reads and checks all settings. */
mica_status mica_model_read_settings(mica_model *model);
/* How many tokens layer number `layer` sees; 0: all. A list of the source's, with an entry for each layer, goes before
 * the period. */
mica_index mica_model_window(const mica_model *model, mica_index layer);

/* ---- rope.c ---- */

/* Frequencies for sequences of up to `context` tokens, in layers that see all or in those with a window. They are
 * written to rope->frequency. */
mica_status mica_model_make_rope(const mica_model *model, mica_rope *rope, bool local, mica_index context);

/* ---- model_net.c ---- */

/* How large a net is to be. */
typedef struct mica_text_net_opts {
    mica_index chunk;  /* rows of a step */
    mica_index logits; /* rows that get logits */
    mica_index sequences;
    mica_index pages;      /* of the cache */
    mica_index pages_each; /* the most of one sequence */
    mica_dtype cache;
    const mica_rope *rope, *local_rope;
} mica_text_net_opts;

/* The names of what a session writes and reads. */
#define MICA_TEXT_TOKENS    "tokens"
#define MICA_TEXT_POSITIONS "positions"
#define MICA_TEXT_SEQUENCE  "sequence"
#define MICA_TEXT_PLACE     "place"
#define MICA_TEXT_ROWS      "rows"
#define MICA_TEXT_TABLE     "cache.table"
#define MICA_TEXT_FIRST     "cache.first"
#define MICA_TEXT_OUTPUTS   "outputs" /* a size: rows that get logits */
#define MICA_TEXT_LOGITS    "logits"
#define MICA_TEXT_HIDDEN    "hidden"

/* Builds the model's net over rows of tokens. */
mica_status mica_model_build(const mica_model *model, mica_net *net, const mica_text_net_opts *opts);

#endif
