/* An open folder of Hugging Face's: what its files share. */
#ifndef MICA_SRC_TEXT_HUGGINGFACE_PARTS_H
#define MICA_SRC_TEXT_HUGGINGFACE_PARTS_H

#include "io/file.h"
#include "io/json.h"
#include "io/quote.h"
#include "io/safetensors_file.h"
#include "text/huggingface.h"

#define MICA_HUGGINGFACE_PATH 4096u /* bytes of the longest path */
#define MICA_HUGGINGFACE_MOST_CONFIG \
    ((size_t)1 << 20) /* bytes of config.json: real ones have a few thousand */
#define MICA_HUGGINGFACE_MOST_INDEX  ((size_t)64 << 20) /* of model.safetensors.index.json */
#define MICA_HUGGINGFACE_MOST_SHARDS 1024u

/* A kind of model: what its folders have, in GGUF's terms. */
typedef struct mica_huggingface_kind {
    const char *type;                                 /* "model_type" in config.json */
    const char *architecture;                         /* GGUF's name of it */
    const char *prefixes[4];                          /* what may stand in front of its tensors' names */
    const char *embedding;                            /* the tensor by which the prefix is found */
    const struct mica_huggingface_row *const *tables; /* of its tensors; NULL ends them */
    const char *activations[4];                       /* that mean what GGUF's does */
    bool rope_halves;                                 /* where GGUF has neighbours */
    bool norm_plus_one;                               /* its norms' weights lack 1 */
    bool tied;                                        /* unless the configuration says otherwise */
} mica_huggingface_kind;

typedef struct mica_huggingface_entry {
    char name[64]; /* GGUF's */
    mica_tensor tensor;
    bool transposed;
} mica_huggingface_entry;

struct mica_huggingface {
    mica_context *ctx;
    const mica_huggingface_kind *kind;
    mica_map config;
    mica_map pooling; /* of sentence-transformers, if there is one */
    mica_safetensors *shards[MICA_HUGGINGFACE_MOST_SHARDS];
    size_t shard_count;
    mica_huggingface_entry *entries; /* in the order of the layers */
    const mica_huggingface_entry **sorted;
    size_t entry_count, entry_room;
    float *made; /* tensors that are not in the files as GGUF has them */
    size_t made_count;
    char name[64];
    char path[MICA_HUGGINGFACE_PATH]; /* of the folder */
};

/* The kind of this name; NULL: none. And all their names in one text, for messages. */
const mica_huggingface_kind *mica_huggingface_kind_of(const mica_json_token *type);
extern const char mica_huggingface_kinds_text[];

/* ---- config.json ---- */

/* A value of the configuration, by its path: "rope_scaling.factor". What is null is not there. */
bool mica_huggingface_config(const mica_huggingface *folder, mica_json_token *out, const char *path);
bool mica_huggingface_config_number(const mica_huggingface *folder, double *out, const char *path);
/* The same within any text. */
bool mica_huggingface_find(const mica_map *text, mica_json_token *out, const char *path);

/* Finds the kind, and checks what must be so for GGUF's conventions to hold. */
mica_status mica_huggingface_read_config(mica_huggingface *folder);

/* A value of the configuration of rotary positions, in any of the places that it has had. */
bool mica_huggingface_rope(const mica_huggingface *folder, mica_json_token *out, const char *name);
bool mica_huggingface_rope_number(const mica_huggingface *folder, double *out, const char *name);
bool mica_huggingface_rope_is(const mica_huggingface *folder, const char *type);

/* Dimensions of a head that turn. */
double mica_huggingface_rope_width(const mica_huggingface *folder);

/* ---- Tensors ---- */

/* Fills entries, sorted and made from the shards. */
mica_status mica_huggingface_read_tensors(mica_huggingface *folder);

/* FOLDER/FILE in quotes, and a failure about it. */
mica_quote mica_huggingface_quote(const mica_huggingface *folder, const char *file);
#define MICA_HUGGINGFACE_BAD(folder, file, format, ...)                                                 \
    mica_fail((folder)->ctx, MICA_ERR_FORMAT, "%s: " format, mica_huggingface_quote(folder, file).text, \
              __VA_ARGS__)

#endif
