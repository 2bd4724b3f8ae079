#include "text/small_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TENSORS = 128, MOST_SETTINGS = 32 };

typedef struct making {
    mica_context *ctx;
    const small_model *model;
    const char *architecture;
    test_random random;
    mica_gguf_new_tensor tensors[MOST_TENSORS];
    size_t tensor_count;
    mica_gguf_new_setting settings[MOST_SETTINGS];
    size_t setting_count;
    char names[MOST_TENSORS + MOST_SETTINGS][64];
    size_t name_count;
    unsigned char windows[8];
    mica_status status;
} making;

static int or_else(int value, int otherwise) { return value != 0 ? value : otherwise; }

static const char *name_of(making *m, const char *format, const char *a, int layer)
{
    char *name = m->names[m->name_count++];
    if (layer >= 0)
        snprintf(name, sizeof m->names[0], "blk.%d.%s", layer, a);
    else
        snprintf(name, sizeof m->names[0], format, a);
    return name;
}

/* ---- Tensors ---- */

static void add(making *m, const char *name, int layer, mica_dtype dtype, int rank, mica_index rows,
                mica_index columns, double size, double around)
{
    mica_index dims[] = {rows, columns};
    mica_tensor plain, *t = &m->tensors[m->tensor_count].tensor;
    size_t count = (size_t)(rank == 2 ? rows * columns : columns);
    float *values = malloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(around + size * test_normal(&m->random));
    mica_status status = mica_tensor_init(m->ctx, t, NULL, dtype, rank, rank == 2 ? dims : dims + 1);
    if (status == MICA_OK)
        status = mica_tensor_init(m->ctx, &plain, values, MICA_F32, rank, rank == 2 ? dims : dims + 1);
    t->data = malloc(mica_tensor_bytes(t) + 1);
    if (status == MICA_OK)
        status = mica_copy(m->ctx, t, &plain);
    free(values);
    m->tensors[m->tensor_count++].name = name_of(m, "%s", name, layer);
    const char *without = m->model->without;
    if (without != NULL && strcmp(without, m->tensors[m->tensor_count - 1].name) == 0)
        free(m->tensors[--m->tensor_count].tensor.data);
    if (m->status == MICA_OK)
        m->status = status;
}

static void add_matrix(making *m, const char *name, int layer, mica_index rows, mica_index columns)
{
    add(m, name, layer, m->model->weights, 2, rows, columns, 1.0 / sqrt((double)columns), 0.0);
}

static void add_norm(making *m, const char *name, int layer, mica_index size)
{
    add(m, name, layer, MICA_F32, 1, 1, size, 0.1, 1.0);
}

static void add_layer(making *m, int layer)
{
    const small_model *s = m->model;
    int width = or_else(s->width, 256), heads = or_else(s->heads, 4), kv = or_else(s->kv_heads, 2);
    int each = width / heads, hidden = or_else(s->hidden, 256);
    add_norm(m, "attn_norm.weight", layer, width);
    if (s->fused) {
        add_matrix(m, "attn_qkv.weight", layer, width + 2 * kv * each, width);
    } else {
        add_matrix(m, "attn_q.weight", layer, width, width);
        add_matrix(m, "attn_k.weight", layer, kv * each, width);
        add_matrix(m, "attn_v.weight", layer, kv * each, width);
    }
    if (s->biases) {
        add_norm(m, "attn_q.bias", layer, width);
        add_norm(m, "attn_k.bias", layer, kv * each);
        add_norm(m, "attn_v.bias", layer, kv * each);
    }
    add_matrix(m, "attn_output.weight", layer, width, width);
    if (s->qk_norm) {
        add_norm(m, "attn_q_norm.weight", layer, each);
        add_norm(m, "attn_k_norm.weight", layer, each);
    }
    add_norm(m, "ffn_norm.weight", layer, width);
    add_matrix(m, "ffn_gate.weight", layer, hidden, width);
    add_matrix(m, "ffn_up.weight", layer, hidden, width);
    add_matrix(m, "ffn_down.weight", layer, width, hidden);
}

/* ---- Settings ---- */

static void set(making *m, const char *key, mica_gguf_value value)
{
    m->settings[m->setting_count++] = (mica_gguf_new_setting){key, value};
}

static void set_number(making *m, const char *name, int value)
{
    char key[64];
    snprintf(key, sizeof key, "%s.%s", m->architecture, name);
    set(m, name_of(m, "%s", key, -1), (mica_gguf_value){.kind = MICA_GGUF_U32, .u = (uint64_t)value});
}

static void set_text(making *m, const char *key, const char *text)
{
    set(m, key, (mica_gguf_value){.kind = MICA_GGUF_STRING, .text = {text, strlen(text)}});
}

/* An array of strings as in a file: each with its length in front. */
static size_t put_token(unsigned char *bytes, const char *text)
{
    uint64_t length = strlen(text);
    memcpy(bytes, &length, 8);
    for (uint64_t i = 0; i < length; i++)
        bytes[8 + i] = (unsigned char)text[i];
    return 8 + length;
}

/* <unk>, <s>, </s>, the 256 bytes, and letters: no merges, so a text is its characters. */
static void set_vocabulary(making *m, unsigned char *tokens, float *scores, int32_t *types)
{
    size_t size = 0;
    for (int i = 0; i < SMALL_VOCABULARY; i++) {
        char text[16];
        if (i < 3)
            snprintf(text, sizeof text, "%s", i == 0 ? "<unk>" : i == 1 ? "<s>" : "</s>");
        else if (i < 259)
            snprintf(text, sizeof text, "<0x%02X>", i - 3);
        else
            snprintf(text, sizeof text, "%c", i - 259 < 26 ? 'a' + i - 259 : 'A' + (i - 259 - 26) % 26);
        size += put_token(tokens + size, text);
        scores[i] = 0.0f;
        types[i] = i == 0 ? 2 : i < 3 ? 3 : i < 259 ? 6 : 1;
    }
    set_text(m, "tokenizer.ggml.model", "llama");
    set(m, "tokenizer.ggml.tokens",
        (mica_gguf_value){.kind = MICA_GGUF_ARRAY,
                          .array = {MICA_GGUF_STRING, SMALL_VOCABULARY, tokens, size}});
    set(m, "tokenizer.ggml.scores",
        (mica_gguf_value){.kind = MICA_GGUF_ARRAY,
                          .array = {MICA_GGUF_F32, SMALL_VOCABULARY, (unsigned char *)scores,
                                    SMALL_VOCABULARY * sizeof *scores}});
    set(m, "tokenizer.ggml.token_type",
        (mica_gguf_value){.kind = MICA_GGUF_ARRAY,
                          .array = {MICA_GGUF_I32, SMALL_VOCABULARY, (unsigned char *)types,
                                    SMALL_VOCABULARY * sizeof *types}});
    set(m, "tokenizer.ggml.bos_token_id", (mica_gguf_value){.kind = MICA_GGUF_U32, .u = 1});
    set(m, "tokenizer.ggml.eos_token_id", (mica_gguf_value){.kind = MICA_GGUF_U32, .u = 2});
}

static void set_sizes(making *m)
{
    const small_model *s = m->model;
    set_text(m, "general.architecture", m->architecture);
    set_number(m, "block_count", or_else(s->layers, 2));
    set_number(m, "embedding_length", or_else(s->width, 256));
    set_number(m, "attention.head_count", or_else(s->heads, 4));
    set_number(m, "attention.head_count_kv", or_else(s->kv_heads, 2));
    set_number(m, "feed_forward_length", or_else(s->hidden, 256));
    set_number(m, "context_length", or_else(s->context, 512));
    if (s->window > 0)
        set_number(m, "attention.sliding_window", s->window);
    char key[64];
    if (s->windows != NULL) {
        size_t count = strlen(s->windows);
        for (size_t i = 0; i < count; i++)
            m->windows[i] = s->windows[i] == 'w';
        snprintf(key, sizeof key, "%s.attention.sliding_window_pattern", m->architecture);
        set(m, name_of(m, "%s", key, -1),
            (mica_gguf_value){.kind = MICA_GGUF_ARRAY, .array = {MICA_GGUF_BOOL, count, m->windows, count}});
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", m->architecture);
    set(m, name_of(m, "%s", key, -1), (mica_gguf_value){.kind = MICA_GGUF_F32, .f = 1e-5});
}

mica_status small_model_write(mica_context *ctx, const char *path, const small_model *model)
{
    static unsigned char tokens[SMALL_VOCABULARY * 16];
    static float scores[SMALL_VOCABULARY];
    static int32_t types[SMALL_VOCABULARY];
    making *m = calloc(1, sizeof *m);
    *m = (making){.ctx = ctx,
                  .model = model,
                  .architecture = model->architecture != NULL ? model->architecture : "llama",
                  .random = test_seed(model->seed + 1)};
    set_sizes(m);
    set_vocabulary(m, tokens, scores, types);
    int width = or_else(model->width, 256);
    add_matrix(m, "token_embd.weight", -1, SMALL_VOCABULARY, width);
    for (int i = 0; i < or_else(model->layers, 2); i++)
        add_layer(m, i);
    add_norm(m, "output_norm.weight", -1, width);
    mica_status status = m->status;
    if (status == MICA_OK)
        status = mica_gguf_write(
            ctx, path, m->tensors, m->tensor_count,
            &(mica_gguf_write_opts){.settings = m->settings, .setting_count = m->setting_count});
    for (size_t i = 0; i < m->tensor_count; i++)
        free(m->tensors[i].tensor.data);
    free(m);
    return status;
}
