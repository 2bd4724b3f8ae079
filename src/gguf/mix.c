/* The mixes, and what they give each tensor. */
#include "gguf/mix.h"

#include <string.h>

#include "base/sort.h"
#include "gguf/cursor.h"
#include "tensor/tensor.h"

/* clang-format off */
static const mica_mix mixes[MICA_MIX_COUNT] = {
    [MICA_MIX_F32] = {.dtype = MICA_F32},
    [MICA_MIX_F16] = {.dtype = MICA_F16},
    [MICA_MIX_BF16] = {.dtype = MICA_BF16},
    [MICA_MIX_Q4_0] = {.dtype = MICA_Q4_0},
    [MICA_MIX_Q4_1] = {.dtype = MICA_Q4_1},
    [MICA_MIX_Q5_0] = {.dtype = MICA_Q5_0},
    [MICA_MIX_Q5_1] = {.dtype = MICA_Q5_1},
    [MICA_MIX_Q8_0] = {.dtype = MICA_Q8_0},
    [MICA_MIX_Q2_K] = {.dtype = MICA_Q2_K, .wider_output = true,
     .values = {{MICA_SHARE_GROUPED, MICA_Q4_K}, {MICA_SHARE_ALL, MICA_Q3_K}},
     .down = {{MICA_SHARE_ALL, MICA_Q3_K}},
     .output = {MICA_SHARE_ALL, MICA_Q3_K}},
    [MICA_MIX_Q3_K_S] = {.dtype = MICA_Q3_K, .wider_output = true},
    [MICA_MIX_Q3_K_M] = {.dtype = MICA_Q3_K, .wider_output = true,
     .values = {{MICA_SHARE_TWO, MICA_Q5_K}, {MICA_SHARE_ALL, MICA_Q4_K}},
     .down = {{MICA_SHARE_SIXTEENTH, MICA_Q5_K}, {MICA_SHARE_ALL, MICA_Q4_K}},
     .output = {MICA_SHARE_ALL, MICA_Q4_K}},
    [MICA_MIX_Q3_K_L] = {.dtype = MICA_Q3_K,
     .values = {{MICA_SHARE_ALL, MICA_Q5_K}},
     .down = {{MICA_SHARE_ALL, MICA_Q5_K}},
     .output = {MICA_SHARE_ALL, MICA_Q5_K}},
    [MICA_MIX_Q4_K_S] = {.dtype = MICA_Q4_K, .wider_output = true,
     .values = {{MICA_SHARE_FOUR, MICA_Q5_K}},
     .down = {{MICA_SHARE_EIGHTH, MICA_Q5_K}}},
    [MICA_MIX_Q4_K_M] = {.dtype = MICA_Q4_K, .wider_output = true,
     .values = {{MICA_SHARE_MORE, MICA_Q6_K}},
     .down = {{MICA_SHARE_MORE, MICA_Q6_K}}},
    [MICA_MIX_Q5_K_S] = {.dtype = MICA_Q5_K},
    [MICA_MIX_Q5_K_M] = {.dtype = MICA_Q5_K,
     .values = {{MICA_SHARE_MORE, MICA_Q6_K}},
     .down = {{MICA_SHARE_MORE, MICA_Q6_K}}},
    [MICA_MIX_Q6_K] = {.dtype = MICA_Q6_K},
    [MICA_MIX_IQ4_NL] = {.dtype = MICA_IQ4_NL, .wider_output = true,
     .values = {{MICA_SHARE_GROUPED, MICA_Q5_K}},
     .down = {{MICA_SHARE_EIGHTH, MICA_Q5_K}}},
    [MICA_MIX_IQ4_XS] = {.dtype = MICA_IQ4_XS, .wider_output = true,
     .values = {{MICA_SHARE_GROUPED, MICA_Q5_K}},
     .down = {{MICA_SHARE_EIGHTH, MICA_Q5_K}}},
};
/* clang-format on */

static const struct {
    const char *name;
    uint32_t number;
} names[MICA_MIX_COUNT] = {
#define NAME(name, number) [MICA_MIX_##name] = {#name, number},
    MICA_GGUF_MIX_LIST(NAME)
#undef NAME
};

const char *mica_gguf_mix_name(mica_gguf_mix mix)
{
    return (unsigned)mix < MICA_MIX_COUNT ? names[mix].name : "invalid";
}

uint32_t mica_mix_number(mica_gguf_mix mix) { return names[mix].number; }

/* ---- Names ---- */

typedef enum tensor_kind { OTHER, OUTPUT, EMBEDDING, VALUES, KEYS, ATTENTION_OUTPUT, DOWN } tensor_kind;

static bool is(mica_gguf_text name, const char *word)
{
    return name.length == strlen(word) && memcmp(name.bytes, word, name.length) == 0;
}

static bool has(mica_gguf_text name, const char *word)
{
    size_t length = strlen(word);
    for (size_t i = 0; i + length <= name.length; i++)
        if (memcmp(name.bytes + i, word, length) == 0)
            return true;
    return false;
}

static tensor_kind kind_of(mica_gguf_text name)
{
    static const struct {
        const char *word;
        tensor_kind kind;
    } words[] = {
        {"attn_qkv.weight", VALUES}, {"attn_kv_b.weight", VALUES}, {"attn_v.weight", VALUES},
        {"attn_k.weight", KEYS},     {"attn_q.weight", OTHER},     {"attn_output.weight", ATTENTION_OUTPUT},
        {"ffn_up", OTHER},           {"ffn_gate", OTHER},          {"ffn_down", DOWN}};
    if (is(name, "output.weight"))
        return OUTPUT;
    if (is(name, "token_embd.weight") || is(name, "per_layer_token_embd.weight"))
        return EMBEDDING;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (has(name, words[i].word))
            return words[i].kind;
    return OTHER;
}

/* 12 of "blk.12.attn_v.weight"; -1 for a tensor of no layer. */
static int64_t layer_of(mica_gguf_text name)
{
    int64_t layer = -1;
    if (name.length < 4 || memcmp(name.bytes, "blk.", 4) != 0)
        return layer;
    for (size_t i = 4; i < name.length && name.bytes[i] >= '0' && name.bytes[i] <= '9' && layer < 1000000;
         i++)
        layer = (layer < 0 ? 0 : layer * 10) + (name.bytes[i] - '0');
    return layer;
}

/* What is too small or too delicate to be quantized: norms and biases, positions, routers, convolutions, and matrices
 * of a few rows that recurrent and other models have. */
static bool may_change(mica_gguf_text name, const mica_tensor *t)
{
    static const char *const stay[] = {"_norm.weight",
                                       "ffn_gate_inp.weight",
                                       "ffn_gate_tid2eid.weight",
                                       "altup",
                                       "laurel",
                                       "per_layer_model_proj",
                                       "ssm_conv1d",
                                       "shortconv.conv.weight",
                                       "indexer.k_proj.weight",
                                       "indexer.q_proj.weight",
                                       "time_mix_first.weight",
                                       "time_mix_w0.weight",
                                       "time_mix_w1.weight",
                                       "time_mix_w2.weight",
                                       "time_mix_v0.weight",
                                       "time_mix_v1.weight",
                                       "time_mix_v2.weight",
                                       "time_mix_a0.weight",
                                       "time_mix_a1.weight",
                                       "time_mix_a2.weight",
                                       "time_mix_g1.weight",
                                       "time_mix_g2.weight",
                                       "time_mix_decay_w1.weight",
                                       "time_mix_decay_w2.weight",
                                       "time_mix_lerp_fused.weight",
                                       "attn_rel_b.weight",
                                       ".position_embd",
                                       "sam.pos_embd",
                                       "sam.neck.",
                                       "sam.net_",
                                       ".rel_pos",
                                       ".patch_embd",
                                       ".patch_merger",
                                       "a.rvq.codebook",
                                       "mm.a.code_embd"};
    bool is_float = t->dtype == MICA_F32 || t->dtype == MICA_F16 || t->dtype == MICA_BF16 ||
                    mica_in_blocks(t->dtype);
    bool ends = name.length >= 6 && memcmp(name.bytes + name.length - 6, "weight", 6) == 0;
    size_t rows = mica_tensor_count(t) / (size_t)t->dim[t->rank - 1];
    if (!is_float || !ends || rows < 2 || is(name, "position_embd.weight") || is(name, "token_types.weight"))
        return false;
    for (size_t i = 0; i < sizeof stay / sizeof stay[0]; i++)
        if (has(name, stay[i]))
            return false;
    return true;
}

/* ---- The model ---- */

/* What the choice depends on beside names and shapes. */
typedef struct model {
    int64_t layers, heads_per_group, experts;
    bool tied; /* there is no output.weight: the embedding stands for it */
    bool is_70b;
    int64_t value_tensors;
} model;

/* The first number of a setting ARCHITECTURE.key, or `otherwise`. */
static int64_t number_of(const mica_gguf *file, const char *key, int64_t otherwise)
{
    mica_gguf_value architecture, value;
    char full[128];
    if (!mica_gguf_find(file, &architecture, "general.architecture") ||
        architecture.kind != MICA_GGUF_STRING || architecture.text.length + strlen(key) >= sizeof full)
        return otherwise;
    memcpy(full, architecture.text.bytes, architecture.text.length);
    memcpy(full + architecture.text.length, key, strlen(key) + 1);
    int64_t number;
    return mica_gguf_find(file, &value, full) && mica_gguf_integer_at(&value, &number, 0) ? number
                                                                                          : otherwise;
}

/* Models of which eight heads share values, so that these are small and may be larger. */
static bool is_70b(const mica_gguf *file, const model *m, int64_t heads, int64_t value_heads)
{
    mica_gguf_value value;
    if (!mica_gguf_find(file, &value, "general.architecture") || value.kind != MICA_GGUF_STRING)
        return false;
    if (is(value.text, "llama"))
        return m->layers == 80 && heads != value_heads;
    if (is(value.text, "jais2"))
        return m->layers == 68;
    return m->layers == 80 && (is(value.text, "qwen2") || is(value.text, "olmo") || is(value.text, "deci"));
}

static model look(const mica_gguf *file)
{
    model m = {.tied = true};
    int64_t layers = number_of(file, ".block_count", 0);
    m.layers = layers < INT32_MAX ? layers : INT32_MAX;
    m.experts = number_of(file, ".expert_count", 0);
    int64_t heads = number_of(file, ".attention.head_count", 0);
    int64_t value_heads = number_of(file, ".attention.head_count_kv", heads);
    m.heads_per_group = value_heads > 0 ? heads / value_heads : 0;
    m.is_70b = is_70b(file, &m, heads, value_heads);
    for (size_t i = 0; i < file->tensor_count; i++) {
        tensor_kind kind = kind_of(file->tensors[i].name);
        m.tied = m.tied && kind != OUTPUT;
        m.value_tensors += kind == VALUES;
    }
    return m;
}

/* ---- The choice ---- */

/* Number `i` of `n`. */
static bool applies(mica_mix_share share, int64_t i, int64_t n, const model *m)
{
    switch (share) {
    case MICA_SHARE_ALL:
        return true;
    case MICA_SHARE_MORE:
        return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
    case MICA_SHARE_EIGHTH:
        return i < n / 8;
    case MICA_SHARE_SIXTEENTH:
        return i < n / 16;
    case MICA_SHARE_TWO:
        return i < 2;
    case MICA_SHARE_FOUR:
        return i < 4;
    case MICA_SHARE_GROUPED:
        return m->heads_per_group >= 4;
    default:
        return false;
    }
}

static mica_dtype by_rules(const mica_mix_rule *rules, size_t count, mica_dtype otherwise, int64_t i,
                           int64_t n, const model *m)
{
    for (size_t k = 0; k < count; k++)
        if (applies(rules[k].share, i, n, m))
            return rules[k].dtype;
    return otherwise;
}

/* Tensors of a kind so far, in the order of layers. */
typedef struct counters {
    int64_t values, down;
} counters;

static mica_dtype of_values(const mica_mix *mix, const model *m, int64_t number)
{
    mica_dtype to = by_rules(mix->values, 2, mix->dtype, number, m->value_tensors, m);
    if (m->is_70b && (to == MICA_Q3_K || to == MICA_Q4_K))
        to = MICA_Q5_K;
    return m->experts == 8 ? MICA_Q8_0 : to;
}

static mica_dtype by_mix(const mica_mix *mix, const model *m, const mica_gguf_entry *entry, counters *seen)
{
    tensor_kind kind = kind_of(entry->name);
    int64_t number;
    size_t row = (size_t)entry->tensor.dim[entry->tensor.rank - 1];
    if (kind == OUTPUT || (kind == EMBEDDING && m->tied)) {
        bool fits = row % mica_dtype_block(mix->dtype) == 0;
        return !fits || mix->dtype == MICA_Q8_0 ? MICA_Q8_0 : MICA_Q6_K;
    }
    switch (kind) {
    case VALUES:
        return of_values(mix, m, seen->values++);
    case KEYS:
        return m->experts == 8 ? MICA_Q8_0 : mix->dtype;
    case DOWN:
        number = m->experts > 1 ? layer_of(entry->name) : seen->down;
        seen->down++;
        return by_rules(mix->down, 2, mix->dtype, number, m->layers, m);
    case ATTENTION_OUTPUT:
        if (m->experts == 8)
            return mix->wider_output ? MICA_Q5_K : mix->dtype;
        return by_rules(&mix->output, 1, mix->dtype, 0, 1, m);
    default:
        return mix->dtype;
    }
}

/* The type for rows that `dtype` cannot hold. */
static mica_dtype fallen_back(mica_dtype dtype, size_t row)
{
    static const mica_dtype instead[MICA_DTYPE_COUNT] = {
        [MICA_Q2_K] = MICA_Q4_0, [MICA_Q3_K] = MICA_Q4_0, [MICA_Q4_K] = MICA_Q5_0,
        [MICA_Q5_K] = MICA_Q5_1, [MICA_Q6_K] = MICA_Q8_0, [MICA_IQ4_XS] = MICA_IQ4_NL,
    };
    if (row % mica_dtype_block(dtype) == 0)
        return dtype;
    bool smaller = mica_dtype_block(dtype) == MICA_MAX_BLOCK && row % mica_dtype_block(instead[dtype]) == 0;
    return smaller ? instead[dtype] : MICA_F16;
}

static int compare_layers(const void *a, const void *b)
{
    const mica_gguf_entry *one = *(const mica_gguf_entry *const *)a,
                          *two = *(const mica_gguf_entry *const *)b;
    int64_t first = layer_of(one->name), second = layer_of(two->name);
    return first != second ? (first < second ? -1 : 1) : mica_gguf_compare(one->name, two->name);
}

mica_status mica_mix_choose(mica_context *ctx, mica_dtype *to, const mica_gguf *file, mica_gguf_mix mix,
                            bool pure)
{
    size_t count = file->tensor_count, bytes = count * sizeof(const mica_gguf_entry *);
    const mica_mix *rules = &mixes[mix];
    counters seen = {0};
    if (count == 0)
        return MICA_OK;
    const mica_gguf_entry **ordered = mica_allocate(ctx, bytes);
    if (ordered == NULL)
        return ctx->status;
    for (size_t i = 0; i < count; i++)
        ordered[i] = &file->tensors[i];
    mica_sort(ordered, count, sizeof *ordered, compare_layers);
    model m = look(file);
    for (size_t i = 0; i < count; i++) {
        const mica_gguf_entry *entry = ordered[i];
        mica_dtype dtype = entry->tensor.dtype;
        if (may_change(entry->name, &entry->tensor))
            dtype = pure || !mica_in_blocks(rules->dtype) ? rules->dtype : by_mix(rules, &m, entry, &seen);
        if (dtype != entry->tensor.dtype)
            dtype = fallen_back(dtype, (size_t)entry->tensor.dim[entry->tensor.rank - 1]);
        to[entry - file->tensors] = dtype;
    }
    mica_release(ctx, ordered, bytes);
    return MICA_OK;
}
