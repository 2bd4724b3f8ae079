/* The tensors of a folder under GGUF's names: by tables, one for each family of models. */
#include <math.h>
#include <string.h>

#include <mica/ops.h>

#include "base/format.h"
#include "base/size.h"
#include "base/sort.h"
#include "io/number.h"
#include "tensor/tensor.h"
#include "text/huggingface_parts.h"

/* ---- Tables ---- */

enum {
    WEIGHT = 1,
    BIAS = 2,
    BOTH = WEIGHT | BIAS,
    NORM = 4,       /* its weight may lack 1 */
    TRANSPOSED = 8, /* [in, out] */
    ROOT = 16,      /* without the prefix */
    LAYER = 32,     /* one for each: # in its names is the layer's number */
    GAMMA = 64,     /* its parts may have their old names, gamma and beta */
};

typedef struct mica_huggingface_row {
    const char *gguf, *name; /* without ".weight" */
    unsigned flags;
} row;

static const row decoder[] = {
    {"token_embd", "embed_tokens", WEIGHT},
    {"output_norm", "norm", WEIGHT | NORM},
    {"output", "lm_head", WEIGHT | ROOT},
    {"blk.#.attn_norm", "layers.#.input_layernorm", WEIGHT | NORM | LAYER},
    {"blk.#.attn_q", "layers.#.self_attn.q_proj", BOTH | LAYER},
    {"blk.#.attn_k", "layers.#.self_attn.k_proj", BOTH | LAYER},
    {"blk.#.attn_v", "layers.#.self_attn.v_proj", BOTH | LAYER},
    {"blk.#.attn_qkv", "layers.#.self_attn.qkv_proj", BOTH | LAYER},
    {"blk.#.attn_q_norm", "layers.#.self_attn.q_norm", WEIGHT | NORM | LAYER},
    {"blk.#.attn_k_norm", "layers.#.self_attn.k_norm", WEIGHT | NORM | LAYER},
    {"blk.#.attn_output", "layers.#.self_attn.o_proj", BOTH | LAYER},
    {"blk.#.ffn_gate", "layers.#.mlp.gate_proj", BOTH | LAYER},
    {"blk.#.ffn_up", "layers.#.mlp.up_proj", BOTH | LAYER},
    {"blk.#.ffn_up", "layers.#.mlp.gate_up_proj", BOTH | LAYER},
    {"blk.#.ffn_down", "layers.#.mlp.down_proj", BOTH | LAYER},
    {0},
};

/* Norms in front of attention and of the feed-forward part. */
static const row norms_before[] = {
    {"blk.#.ffn_norm", "layers.#.post_attention_layernorm", WEIGHT | NORM | LAYER},
    {0},
};

/* And after both. */
static const row norms_around[] = {
    {"blk.#.post_attention_norm", "layers.#.post_attention_layernorm", WEIGHT | NORM | LAYER},
    {"blk.#.ffn_norm", "layers.#.pre_feedforward_layernorm", WEIGHT | NORM | LAYER},
    {"blk.#.post_ffw_norm", "layers.#.post_feedforward_layernorm", WEIGHT | NORM | LAYER},
    {0},
};

static const row gpt2[] = {
    {"token_embd", "wte", WEIGHT},
    {"position_embd", "wpe", WEIGHT},
    {"output_norm", "ln_f", BOTH},
    {"output", "lm_head", WEIGHT | ROOT},
    {"blk.#.attn_norm", "h.#.ln_1", BOTH | LAYER},
    {"blk.#.attn_qkv", "h.#.attn.c_attn", BOTH | TRANSPOSED | LAYER},
    {"blk.#.attn_output", "h.#.attn.c_proj", BOTH | TRANSPOSED | LAYER},
    {"blk.#.ffn_norm", "h.#.ln_2", BOTH | LAYER},
    {"blk.#.ffn_up", "h.#.mlp.c_fc", BOTH | TRANSPOSED | LAYER},
    {"blk.#.ffn_down", "h.#.mlp.c_proj", BOTH | TRANSPOSED | LAYER},
    {0},
};

static const row bert[] = {
    {"token_embd", "embeddings.word_embeddings", WEIGHT},
    {"position_embd", "embeddings.position_embeddings", WEIGHT},
    {"token_types", "embeddings.token_type_embeddings", WEIGHT},
    {"token_embd_norm", "embeddings.LayerNorm", BOTH | GAMMA},
    {"blk.#.attn_q", "encoder.layer.#.attention.self.query", BOTH | LAYER},
    {"blk.#.attn_k", "encoder.layer.#.attention.self.key", BOTH | LAYER},
    {"blk.#.attn_v", "encoder.layer.#.attention.self.value", BOTH | LAYER},
    {"blk.#.attn_output", "encoder.layer.#.attention.output.dense", BOTH | LAYER},
    {"blk.#.attn_output_norm", "encoder.layer.#.attention.output.LayerNorm", BOTH | GAMMA | LAYER},
    {"blk.#.ffn_up", "encoder.layer.#.intermediate.dense", BOTH | LAYER},
    {"blk.#.ffn_down", "encoder.layer.#.output.dense", BOTH | LAYER},
    {"blk.#.layer_output_norm", "encoder.layer.#.output.LayerNorm", BOTH | GAMMA | LAYER},
    {0},
};

static const row *const llama_tables[] = {decoder, norms_before, NULL};
static const row *const gemma2_tables[] = {decoder, norms_around, NULL};
static const row *const gpt2_tables[] = {gpt2, NULL};
static const row *const bert_tables[] = {bert, NULL};

#define DECODER {"model.", "", "language_model.model.", "model.language_model."}, "embed_tokens.weight"
#define SILU            \
    {                   \
        "silu", "swish" \
    }
#define GELU                                    \
    {                                           \
        "gelu_pytorch_tanh", "gelu", "gelu_new" \
    } /* gemma's "gelu" always was the one by tanh */

static const mica_huggingface_kind kinds[] = {
    {"llama", "llama", DECODER, llama_tables, SILU, .rope_halves = true},
    {"mistral", "llama", DECODER, llama_tables, SILU, .rope_halves = true},
    {"qwen2", "qwen2", DECODER, llama_tables, SILU, .tied = false},
    {"qwen3", "qwen3", DECODER, llama_tables, SILU, .tied = false},
    {"gemma", "gemma", DECODER, llama_tables, GELU, .norm_plus_one = true, .tied = true},
    {"gemma2", "gemma2", DECODER, gemma2_tables, GELU, .norm_plus_one = true, .tied = true},
    {"gemma3", "gemma3", DECODER, gemma2_tables, GELU, .norm_plus_one = true, .tied = true},
    {"gemma3_text", "gemma3", DECODER, gemma2_tables, GELU, .norm_plus_one = true, .tied = true},
    {"phi3", "phi3", DECODER, llama_tables, SILU, .tied = false},
    {"gpt2",
     "gpt2",
     {"", "transformer."},
     "wte.weight",
     gpt2_tables,
     {"gelu_new", "gelu_pytorch_tanh"},
     .tied = true},
    {"bert", "bert", {"", "bert."}, "embeddings.word_embeddings.weight", bert_tables, {"gelu"}, .tied = true},
};

const char mica_huggingface_kinds_text[] =
    "llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3, phi3, gpt2, bert";

const mica_huggingface_kind *mica_huggingface_kind_of(const mica_json_token *type)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (mica_json_says(type, kinds[i].type))
            return &kinds[i];
    return NULL;
}

/* ---- Names ---- */

typedef struct name {
    char text[160];
} name;

/* prefix + stem + suffix, with the layer's number where # stands. */
static name make_name(const char *prefix, const char *stem, size_t layer, const char *suffix)
{
    name n;
    const char *mark = strchr(stem, '#');
    if (mark == NULL)
        (void)mica_format(n.text, sizeof n.text, "%s%s%s", prefix, stem, suffix);
    else
        (void)mica_format(n.text, sizeof n.text, "%s%.*s%zu%s%s", prefix, (int)(mark - stem), stem, layer,
                          mark + 1, suffix);
    return n;
}

/* The shard that has it; NULL: none. */
static const mica_safetensors *shard_of(const mica_huggingface *folder, const char *name_in_file)
{
    for (size_t i = 0; i < folder->shard_count; i++)
        if (mica_safetensors_find(folder->shards[i], name_in_file) != NULL)
            return folder->shards[i];
    return NULL;
}

/* What stands in front of all names; NULL: the embedding is nowhere. */
static const char *find_prefix(const mica_huggingface *folder)
{
    for (size_t i = 0; i < 4 && folder->kind->prefixes[i] != NULL; i++)
        if (shard_of(folder, make_name(folder->kind->prefixes[i], folder->kind->embedding, 0, "").text) !=
            NULL)
            return folder->kind->prefixes[i];
    return NULL;
}

/* ---- Entries: counted first, then filled ---- */

typedef struct filling {
    mica_huggingface *folder;
    const char *prefix;
    bool counts; /* only */
    size_t entries, floats;
} filling;

static bool told_tied(const mica_huggingface *folder)
{
    mica_json_token token;
    if (mica_huggingface_config(folder, &token, "tie_word_embeddings"))
        return token.kind == MICA_JSON_TRUE;
    return folder->kind->tied;
}

static mica_status add(filling *f, const char *gguf_name, const mica_tensor *t, bool transposed)
{
    size_t number = f->entries++;
    if (f->counts)
        return MICA_OK;
    mica_huggingface_entry *entry = &f->folder->entries[number];
    size_t length = mica_least(strlen(gguf_name), sizeof entry->name - 1); /* all are shorter */
    memcpy(entry->name, gguf_name, length);
    entry->name[length] = '\0';
    entry->tensor = *t;
    entry->transposed = transposed;
    return MICA_OK;
}

/* Room for a tensor that is made here. */
static mica_tensor made_room(filling *f, mica_index count)
{
    mica_tensor t = mica_1d(f->counts ? NULL : f->folder->made + f->floats, count);
    f->floats += (size_t)count;
    return t;
}

/* As GGUF has norms and biases: in f32, and whole. */
static mica_status add_vector(filling *f, const char *gguf_name, const mica_tensor *t, bool plus_one)
{
    if (t->dtype == MICA_F32 && !plus_one)
        return add(f, gguf_name, t, false);
    mica_tensor made = made_room(f, t->dim[0]);
    if (!f->counts) {
        MICA_TRY(mica_copy(f->folder->ctx, &made, t));
        float *values = made.data;
        for (mica_index i = 0; plus_one && i < t->dim[0]; i++)
            values[i] += 1.0f;
    }
    return add(f, gguf_name, &made, false);
}

static mica_status add_found(filling *f, const char *gguf_name, const mica_safetensors *shard,
                             const char *name_in_file, unsigned flags)
{
    mica_context *ctx = f->folder->ctx;
    mica_tensor t;
    MICA_TRY(mica_safetensors_lend(ctx, &t, shard, name_in_file));
    bool floats = t.dtype == MICA_F32 || t.dtype == MICA_F16 || t.dtype == MICA_BF16;
    if (!floats || t.rank < 1 || t.rank > 2 || mica_tensor_count(&t) == 0)
        return mica_fail(ctx, MICA_ERR_FORMAT,
                         "%s: tensor %s is %s of %s, expected a vector or matrix of f32, f16 or bf16",
                         MICA_QUOTE(shard->file.path), MICA_QUOTE(name_in_file), MICA_SHAPE(&t),
                         mica_dtype_name(t.dtype));
    if (t.rank == 1)
        return add_vector(f, gguf_name, &t, (flags & NORM) && f->folder->kind->norm_plus_one);
    bool transposed = (flags & TRANSPOSED) != 0;
    if (transposed)
        MICA_TRY(mica_view_transpose(ctx, &t, &t, 0, 1));
    return add(f, gguf_name, &t, transposed);
}

/* The weight or the bias of a row. Not every model has each: what is missing, the builder will tell. */
static mica_status add_part(filling *f, const row *r, size_t layer, const char *suffix,
                            const char *old_suffix)
{
    const char *prefix = r->flags & ROOT ? "" : f->prefix;
    name gguf_name = make_name("", r->gguf, layer, suffix),
         in_file = make_name(prefix, r->name, layer, suffix);
    const mica_safetensors *shard = shard_of(f->folder, in_file.text);
    if (shard == NULL && (r->flags & ROOT)) {
        in_file = make_name("language_model.", r->name, layer, suffix);
        shard = shard_of(f->folder, in_file.text);
    }
    if (shard == NULL && (r->flags & GAMMA)) {
        in_file = make_name(prefix, r->name, layer, old_suffix);
        shard = shard_of(f->folder, in_file.text);
    }
    if (shard == NULL)
        return MICA_OK;
    return add_found(f, gguf_name.text, shard, in_file.text, r->flags);
}

static mica_status add_row(filling *f, const row *r, size_t layer)
{
    if (strcmp(r->gguf, "output") == 0 && told_tied(f->folder))
        return MICA_OK;
    if (r->flags & WEIGHT)
        MICA_TRY(add_part(f, r, layer, ".weight", ".gamma"));
    if (r->flags & BIAS)
        MICA_TRY(add_part(f, r, layer, ".bias", ".beta"));
    return MICA_OK;
}

/* ---- Tensors that GGUF files have for rotary positions ---- */

/* By what llama 3 divides its frequencies: nothing where they are high, `factor` where they are low. */
static mica_status add_llama3(filling *f)
{
    const mica_huggingface *folder = f->folder;
    double base = 10000.0, factor = 8.0, low = 1.0, high = 4.0, trained = 8192.0;
    (void)mica_huggingface_rope_number(folder, &base, "rope_theta");
    (void)mica_huggingface_rope_number(folder, &factor, "factor");
    (void)mica_huggingface_rope_number(folder, &low, "low_freq_factor");
    (void)mica_huggingface_rope_number(folder, &high, "high_freq_factor");
    (void)mica_huggingface_rope_number(folder, &trained, "original_max_position_embeddings");
    double width = mica_huggingface_rope_width(folder);
    if (!(width >= 2.0 && width <= 65536.0 && base > 0.0 && factor > 0.0 && low > 0.0 && high > low &&
          trained > 0.0))
        return MICA_HUGGINGFACE_BAD(folder, "config.json", "the numbers of %s make no sense",
                                    "rope_type \"llama3\"");
    mica_tensor t = made_room(f, (mica_index)width / 2);
    float *values = t.data;
    for (mica_index i = 0; !f->counts && i < t.dim[0]; i++) {
        double wave = 2.0 * 3.14159265358979323846 * pow(base, 2.0 * (double)i / width);
        double smooth = (trained / wave - low) / (high - low);
        smooth = smooth < 0.0 ? 0.0 : smooth > 1.0 ? 1.0 : smooth;
        values[i] = (float)(1.0 / ((1.0 - smooth) / factor + smooth));
    }
    return add(f, "rope_freqs.weight", &t, false);
}

static mica_status add_factors(filling *f, const char *gguf_name, const char *key)
{
    const mica_huggingface *folder = f->folder;
    const char *text = (const char *)folder->config.bytes;
    mica_json_token token;
    if (!mica_huggingface_rope(folder, &token, key) || token.kind != MICA_JSON_ARRAY)
        return MICA_HUGGINGFACE_BAD(folder, "config.json", "has no array \"%s\" for its rope_type", key);
    double width = mica_huggingface_rope_width(folder), value = 0.0;
    mica_index count = width >= 2.0 && width <= 65536.0 ? (mica_index)width / 2 : 0, got = 0;
    mica_json json = mica_json_over(text + token.offset, folder->config.size - token.offset);
    mica_tensor t = made_room(f, count);
    float *values = t.data;
    (void)mica_json_next(&json, &token);
    while (mica_json_next(&json, &token) && token.kind == MICA_JSON_NUMBER &&
           mica_parse_number(&value, token.text, token.length)) {
        if (!f->counts && got < count)
            values[got] = (float)value;
        got++;
    }
    if (token.kind != MICA_JSON_ARRAY_END || got != count || count == 0)
        return MICA_HUGGINGFACE_BAD(folder, "config.json", "\"%s\" has %lld numbers, expected %lld", key,
                                    (long long)got, (long long)count);
    return add(f, gguf_name, &t, false);
}

static mica_status add_rope(filling *f)
{
    if (mica_huggingface_rope_is(f->folder, "llama3"))
        return add_llama3(f);
    if (!mica_huggingface_rope_is(f->folder, "longrope") && !mica_huggingface_rope_is(f->folder, "su"))
        return MICA_OK;
    MICA_TRY(add_factors(f, "rope_factors_long.weight", "long_factor"));
    return add_factors(f, "rope_factors_short.weight", "short_factor");
}

/* ---- All ---- */

static mica_status fill(filling *f, size_t layers)
{
    f->entries = f->floats = 0;
    for (size_t layer = 0; layer <= layers;
         layer++) /* one round more, before the first, for those of no layer */
        for (const row *const *table = f->folder->kind->tables; *table != NULL; table++)
            for (const row *r = *table; r->gguf != NULL; r++) {
                bool in_layer = (r->flags & LAYER) != 0;
                if (in_layer == (layer > 0))
                    MICA_TRY(add_row(f, r, in_layer ? layer - 1 : 0));
            }
    return add_rope(f);
}

static int compare_names(const void *a, const void *b)
{
    const mica_huggingface_entry *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static mica_status check_layers(const filling *f, size_t *layers)
{
    const mica_huggingface *folder = f->folder;
    double count = 0.0, tensors = 0.0;
    char key[64];
    (void)mica_format(key, sizeof key, "%s.block_count", folder->kind->architecture);
    for (size_t i = 0; i < folder->shard_count; i++)
        tensors += (double)mica_safetensors_count(folder->shards[i]);
    if (!mica_huggingface_number(folder, &count, key) || count < 1.0 || count != floor(count))
        return MICA_HUGGINGFACE_BAD(folder, "config.json", "does not tell the number of layers (%s)",
                                    "num_hidden_layers");
    if (count > tensors) /* each has several */
        return MICA_HUGGINGFACE_BAD(folder, "config.json",
                                    "%.0f layers, but the files have %.0f tensors in all", count, tensors);
    *layers = (size_t)count;
    return MICA_OK;
}

static mica_status make_memory(filling *f)
{
    mica_huggingface *folder = f->folder;
    folder->entry_room = f->entries;
    folder->entries = mica_allocate(folder->ctx, f->entries * sizeof *folder->entries);
    folder->sorted = folder->entries == NULL
                         ? NULL
                         : mica_allocate(folder->ctx, f->entries * sizeof *folder->sorted);
    if (folder->sorted == NULL)
        return folder->ctx->status;
    if (f->floats == 0)
        return MICA_OK;
    folder->made = mica_allocate(folder->ctx, f->floats * sizeof *folder->made);
    folder->made_count = f->floats;
    return folder->made != NULL ? MICA_OK : folder->ctx->status;
}

mica_status mica_huggingface_read_tensors(mica_huggingface *folder)
{
    filling f = {.folder = folder, .counts = true};
    size_t layers = 0;
    MICA_TRY(check_layers(&f, &layers));
    f.prefix = find_prefix(folder);
    if (f.prefix == NULL)
        return MICA_HUGGINGFACE_BAD(folder, "model.safetensors",
                                    "has no tensor %s, as a model of type %s has",
                                    MICA_QUOTE(folder->kind->embedding), folder->kind->type);
    MICA_TRY(fill(&f, layers));
    MICA_TRY(make_memory(&f));
    f.counts = false;
    MICA_TRY(fill(&f, layers));
    folder->entry_count = f.entries;
    for (size_t i = 0; i < f.entries; i++)
        folder->sorted[i] = &folder->entries[i];
    mica_sort(folder->sorted, f.entries, sizeof *folder->sorted, compare_names);
    mica_tensor output;
    if (!told_tied(folder) && !mica_huggingface_tensor(folder, &output, "output.weight", NULL))
        return MICA_HUGGINGFACE_BAD(folder, "model.safetensors",
                                    "has no tensor %s, and its embeddings are not tied",
                                    "\"lm_head.weight\"");
    for (size_t i = 1; i < f.entries; i++)
        if (strcmp(folder->sorted[i - 1]->name, folder->sorted[i]->name) == 0)
            return MICA_HUGGINGFACE_BAD(folder, "model.safetensors", "two tensors are %s in GGUF's terms",
                                        MICA_QUOTE(folder->sorted[i]->name));
    return MICA_OK;
}

bool mica_huggingface_tensor(const mica_huggingface *folder, mica_tensor *out, const char *gguf_name,
                             bool *transposed)
{
    for (size_t low = 0, high = folder->entry_count; low < high;) {
        size_t middle = low + (high - low) / 2;
        const mica_huggingface_entry *entry = folder->sorted[middle];
        int order = strcmp(gguf_name, entry->name);
        if (order == 0) {
            *out = entry->tensor;
            if (transposed != NULL)
                *transposed = entry->transposed;
            return true;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

size_t mica_huggingface_tensors(const mica_huggingface *folder) { return folder->entry_count; }

bool mica_huggingface_tensor_at(const mica_huggingface *folder, const char **gguf_name, mica_tensor *out,
                                size_t number)
{
    if (number >= folder->entry_count)
        return false;
    *gguf_name = folder->entries[number].name;
    *out = folder->entries[number].tensor;
    return true;
}

bool mica_huggingface_rope_halves(const mica_huggingface *folder) { return folder->kind->rope_halves; }
