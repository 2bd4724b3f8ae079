/* Hugging Face folders: names, numbers and conventions as GGUF files have them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/scratch.h"
#include "oom.h"
#include "test.h"
#include "text/huggingface.h"

/* ---- Folders ---- */

enum { MOST = 64 };

/* A folder in the making: tensors whose values tell which they are. */
typedef struct model {
    scratch s;
    mica_named_tensor tensors[MOST];
    size_t count;
    char names[MOST][96];
    float data[MOST][64];
} model;

static void put_text(model *m, const char *file, const char *text)
{
    scratch_write(scratch_path(&m->s, file), text, strlen(text));
}

/* [rows, columns], or a vector if rows is 0. Its values are 1000 times its number, and on. */
static void put_tensor(model *m, const char *name, mica_index rows, mica_index columns)
{
    size_t number = m->count++;
    mica_tensor *t = &m->tensors[number].tensor;
    (void)snprintf(m->names[number], sizeof m->names[0], "%s", name);
    m->tensors[number].name = m->names[number];
    for (size_t i = 0; i < 64; i++)
        m->data[number][i] = (float)(1000 * number + i);
    *t = rows > 0 ? mica_2d(m->data[number], rows, columns) : mica_1d(m->data[number], columns);
}

/* Two layers of a decoder of width 4, with a vocabulary of 6. */
static void put_decoder(model *m, const char *prefix, bool fused, bool around)
{
    static const struct {
        const char *name;
        mica_index rows, columns;
        int when; /* 0: always; 1, 2: unless, if fused; 3: if norms are around */
    } parts[] = {
        {"input_layernorm", 0, 4, 0},
        {"post_attention_layernorm", 0, 4, 0},
        {"self_attn.q_proj", 4, 4, 1},
        {"self_attn.k_proj", 2, 4, 1},
        {"self_attn.v_proj", 2, 4, 1},
        {"self_attn.qkv_proj", 8, 4, 2},
        {"self_attn.o_proj", 4, 4, 0},
        {"mlp.gate_proj", 8, 4, 1},
        {"mlp.up_proj", 8, 4, 1},
        {"mlp.gate_up_proj", 16, 4, 2},
        {"mlp.down_proj", 4, 8, 0},
        {"pre_feedforward_layernorm", 0, 4, 3},
        {"post_feedforward_layernorm", 0, 4, 3},
    };
    char name[96];
    (void)snprintf(name, sizeof name, "%sembed_tokens.weight", prefix);
    put_tensor(m, name, 6, 4);
    (void)snprintf(name, sizeof name, "%snorm.weight", prefix);
    put_tensor(m, name, 0, 4);
    for (int layer = 0; layer < 2; layer++)
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            if ((parts[i].when == 1 && fused) || (parts[i].when == 2 && !fused) ||
                (parts[i].when == 3 && !around))
                continue;
            (void)snprintf(name, sizeof name, "%slayers.%d.%s.weight", prefix, layer, parts[i].name);
            put_tensor(m, name, parts[i].rows, parts[i].columns);
        }
}

static void write_as(model *m, mica_context *ctx, const char *file, size_t first, size_t count,
                     mica_dtype dtype)
{
    static uint16_t halves[MOST][64];
    mica_named_tensor list[MOST];
    for (size_t i = 0; i < count; i++) {
        list[i] = m->tensors[first + i];
        if (dtype == MICA_F32)
            continue;
        list[i].tensor.dtype = dtype;
        list[i].tensor.data = halves[i];
        CHECK_OK(ctx, mica_copy(ctx, &list[i].tensor, &m->tensors[first + i].tensor));
    }
    CHECK_OK(ctx, mica_safetensors_write(ctx, scratch_path(&m->s, file), list, count, NULL));
}

static void write_all(model *m, mica_context *ctx, mica_dtype dtype)
{
    write_as(m, ctx, "model.safetensors", 0, m->count, dtype);
}

static model *model_make(void)
{
    model *m = calloc(1, sizeof *m);
    m->s = scratch_make();
    return m;
}

static void model_remove(model *m)
{
    scratch_remove(&m->s);
    free(m);
}

static mica_huggingface *open_model(model *m, mica_context *ctx)
{
    mica_huggingface *h = NULL;
    CHECK_OK(ctx, mica_huggingface_open(ctx, &h, m->s.folder));
    return h;
}

/* Its first value, which tells which tensor of the file it is; NAN: there is none. */
static double first_of(const mica_huggingface *h, mica_context *ctx, const char *name, mica_dtype dtype,
                       bool transposed)
{
    mica_tensor t;
    bool turned = false;
    double value = NAN;
    if (h == NULL || !mica_huggingface_tensor(h, &t, name, &turned))
        return value;
    CHECK_MSG(t.dtype == dtype && turned == transposed, "%s is %s", name, mica_dtype_name(t.dtype));
    static const mica_index zero[2];
    CHECK_OK(ctx, mica_at(ctx, &value, &t, zero));
    return value;
}

/* The value of a tensor of the file that has this name there. */
static double told(const model *m, const char *name)
{
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->names[i], name) == 0)
            return 1000.0 * (double)i;
    CHECK_MSG(false, "%s", name);
    return 0.0;
}

static void check_number(const mica_huggingface *h, const char *key, double wanted)
{
    double got = NAN;
    bool there = h != NULL && mica_huggingface_number(h, &got, key);
    CHECK_MSG(isnan(wanted) ? !there : there && fabs(got - wanted) <= 1e-12 * fabs(wanted),
              "%s is %g, expected %g", key, got, wanted);
}

static void check_text(const mica_huggingface *h, const char *key, const char *wanted)
{
    const char *got = NULL;
    bool there = h != NULL && mica_huggingface_text(h, &got, key);
    CHECK_MSG(wanted == NULL ? !there : there && strcmp(got, wanted) == 0, "%s is %s", key,
              there ? got : "absent");
}

/* ---- Architectures ---- */

static const char llama_config[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 4, \"intermediate_size\": 8, \"num_hidden_layers\": 2,"
    " \"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"rms_norm_eps\": 1e-5, \"rope_theta\": 500000.0,"
    " \"max_position_embeddings\": 64, \"vocab_size\": 6, \"hidden_act\": \"silu\", \"rope_scaling\": null}";

TEST(huggingface_llama)
{
    mica_context *ctx = test_context(1);
    model *m = model_make();
    put_decoder(m, "model.", false, false);
    put_tensor(m, "lm_head.weight", 6, 4);
    put_tensor(m, "model.layers.0.self_attn.rotary_emb.inv_freq", 0, 1); /* of no interest */
    write_all(m, ctx, MICA_F16);
    put_text(m, "config.json", llama_config);
    mica_huggingface *h = open_model(m, ctx);
    CHECK(first_of(h, ctx, "token_embd.weight", MICA_F16, false) == told(m, "model.embed_tokens.weight"));
    CHECK(first_of(h, ctx, "output.weight", MICA_F16, false) == told(m, "lm_head.weight"));
    CHECK(first_of(h, ctx, "output_norm.weight", MICA_F32, false) ==
          told(m, "model.norm.weight")); /* made f32 */
    CHECK(first_of(h, ctx, "blk.1.attn_q.weight", MICA_F16, false) ==
          told(m, "model.layers.1.self_attn.q_proj.weight"));
    CHECK(first_of(h, ctx, "blk.1.ffn_norm.weight", MICA_F32, false) ==
          told(m, "model.layers.1.post_attention_layernorm.weight"));
    CHECK(first_of(h, ctx, "blk.0.ffn_down.weight", MICA_F16, false) ==
          told(m, "model.layers.0.mlp.down_proj.weight"));
    CHECK(isnan(first_of(h, ctx, "blk.2.attn_q.weight", MICA_F16, false)));
    CHECK(isnan(first_of(h, ctx, "rope_freqs.weight", MICA_F32, false)));
    CHECK(mica_huggingface_rope_halves(h) && mica_huggingface_tensors(h) == 3 + 2 * 9);
    const char *name;
    mica_tensor t;
    CHECK(mica_huggingface_tensor_at(h, &name, &t, 0) && strcmp(name, "token_embd.weight") == 0);
    CHECK(!mica_huggingface_tensor_at(h, &name, &t, 21));
    check_text(h, "general.architecture", "llama");
    check_text(h, "llama.rope.scaling.type", NULL);
    static const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"llama.block_count", 2},
        {"llama.embedding_length", 4},
        {"llama.feed_forward_length", 8},
        {"llama.attention.head_count", 2},
        {"llama.attention.head_count_kv", 1},
        {"llama.attention.layer_norm_rms_epsilon", 1e-5},
        {"llama.rope.freq_base", 500000},
        {"llama.rope.dimension_count", 2},
        {"llama.context_length", 64},
        {"llama.vocab_size", 6},
        {"llama.attention.key_length", NAN},
        {"llama.rope.scaling.factor", NAN},
        {"qwen2.block_count", NAN},
        {"block_count", NAN},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        check_number(h, numbers[i].key, numbers[i].value);
    mica_huggingface_close(h);
    model_remove(m);
}

/* Llama 3's scaling, as a tensor of divisors; the numbers are those of the converter of llama.cpp. */
TEST(huggingface_llama3_rope)
{
    mica_context *ctx = test_context(1);
    model *m = model_make();
    put_decoder(m, "model.", false, false);
    write_all(m, ctx, MICA_BF16);
    put_text(
        m, "config.json",
        "{\"model_type\": \"llama\", \"hidden_size\": 4, \"num_hidden_layers\": 2, \"num_attention_heads\": 2,"
        " \"head_dim\": 128, \"tie_word_embeddings\": true, \"rope_parameters\": {\"rope_theta\": 500000.0,"
        " \"rope_type\": \"llama3\", \"factor\": 32.0, \"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0,"
        " \"original_max_position_embeddings\": 8192}}");
    mica_huggingface *h = open_model(m, ctx);
    mica_tensor t;
    REQUIRE(h != NULL && CHECK(mica_huggingface_tensor(h, &t, "rope_freqs.weight", NULL)));
    const float *factors = t.data;
    CHECK(t.rank == 1 && t.dim[0] == 64 && factors[0] == 1.0f && factors[28] == 1.0f && factors[63] == 32.0f);
    static const double near[] = {1.0, 1.234937, 1.651329, 2.276659, 3.292263, 5.171597, 9.66673, 32.0, 32.0};
    for (int i = 0; i < 9; i++)
        CHECK_MSG(fabs(factors[28 + i] - near[i]) < 1e-5 * near[i], "%d: %g", 28 + i,
                  (double)factors[28 + i]);
    CHECK(isnan(first_of(h, ctx, "output.weight", MICA_BF16, false))); /* tied */
    check_number(h, "llama.rope.freq_base", 500000);
    check_number(h, "llama.attention.key_length", 128);
    check_text(h, "llama.rope.scaling.type", NULL);
    mica_huggingface_close(h);
    model_remove(m);
}

/* Gemma: norms get their 1; the text part of a model that also sees pictures stands apart. */
TEST(huggingface_gemma3)
{
    mica_context *ctx = test_context(1);
    model *m = model_make();
    put_decoder(m, "language_model.model.", false, true);
    put_tensor(m, "language_model.model.layers.1.self_attn.q_norm.weight", 0, 2);
    put_tensor(m, "vision_tower.patch.weight", 2, 2);
    write_all(m, ctx, MICA_F32);
    put_text(m, "config.json",
             "{\"model_type\": \"gemma3\", \"text_config\": {\"hidden_size\": 4, \"num_hidden_layers\": 2,"
             " \"sliding_window\": 16, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8.0},"
             " \"query_pre_attn_scalar\": 16, \"final_logit_softcapping\": null, \"layer_types\": ["
             "\"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\"]}}");
    mica_huggingface *h = open_model(m, ctx);
    CHECK(first_of(h, ctx, "output_norm.weight", MICA_F32, false) ==
          1 + told(m, "language_model.model.norm.weight"));
    CHECK(first_of(h, ctx, "blk.1.attn_q_norm.weight", MICA_F32, false) ==
          1 + told(m, "language_model.model.layers.1.self_attn.q_norm.weight"));
    CHECK(first_of(h, ctx, "blk.0.post_attention_norm.weight", MICA_F32, false) ==
          1 + told(m, "language_model.model.layers.0.post_attention_layernorm.weight"));
    CHECK(first_of(h, ctx, "blk.0.ffn_norm.weight", MICA_F32, false) ==
          1 + told(m, "language_model.model.layers.0.pre_feedforward_layernorm.weight"));
    CHECK(first_of(h, ctx, "blk.0.post_ffw_norm.weight", MICA_F32, false) ==
          1 + told(m, "language_model.model.layers.0.post_feedforward_layernorm.weight"));
    CHECK(first_of(h, ctx, "token_embd.weight", MICA_F32, false) == 0.0 && !mica_huggingface_rope_halves(h));
    check_text(h, "general.architecture", "gemma3");
    check_text(h, "gemma3.rope.scaling.type", "linear");
    check_number(h, "gemma3.rope.scaling.factor", 8);
    check_number(h, "gemma3.rope.freq_base", 1e6);
    check_number(h, "gemma3.rope.freq_base_swa", 1e4);
    check_number(h, "gemma3.attention.sliding_window", 16);
    for (int layer = 0; layer < 4; layer++) {
        bool windowed;
        CHECK(mica_huggingface_windowed(h, &windowed, layer) && windowed == (layer != 2));
        CHECK(!mica_huggingface_windowed(h, &windowed, 4));
    }
    check_number(h, "gemma3.attention.head_count", 8);
    check_number(h, "gemma3.attention.head_count_kv", 4);
    check_number(h, "gemma3.attention.key_length", 256);
    check_number(h, "gemma3.attention.scale", 0.25);
    check_number(h, "gemma3.final_logit_softcapping", 0);
    check_number(h, "gemma3.attn_logit_softcapping", NAN);
    mica_huggingface_close(h);
    model_remove(m);
}

/* Layers before max_window_layers see all, and none has a window unless the configuration asks for them. */
TEST(huggingface_qwen2_windows)
{
    mica_context *ctx = test_context(1);
    model *m = model_make();
    bool windowed;
    double window;
    put_decoder(m, "model.", false, false);
    write_all(m, ctx, MICA_F32);
    for (int used = 0; used < 2; used++) {
        char config[256];
        snprintf(config, sizeof config,
                 "{\"model_type\": \"qwen2\", \"hidden_size\": 4, \"num_hidden_layers\": 2, "
                 "\"num_attention_heads\": 2, \"tie_word_embeddings\": true, \"sliding_window\": 16, "
                 "\"max_window_layers\": 1, \"use_sliding_window\": %s}",
                 used ? "true" : "false");
        put_text(m, "config.json", config);
        mica_huggingface *h = open_model(m, ctx);
        CHECK(mica_huggingface_number(h, &window, "qwen2.attention.sliding_window") == used);
        for (int layer = 0; layer < 2; layer++)
            CHECK(mica_huggingface_windowed(h, &windowed, layer) && windowed == (layer >= 1));
        mica_huggingface_close(h);
    }
    model_remove(m);
}

TEST(huggingface_phi3)
{
    mica_context *ctx = test_context(1);
    model *m = model_make();
    put_decoder(m, "model.", true, false);
    put_tensor(m, "lm_head.weight", 6, 4);
    write_all(m, ctx, MICA_F32);
    put_text(
        m, "config.json",
        "{\"model_type\": \"phi3\", \"hidden_size\": 16, \"num_hidden_layers\": 2, \"num_attention_heads\": 2,"
        " \"partial_rotary_factor\": 0.5, \"max_position_embeddings\": 256, \"rope_theta\": 10000.0,"
        " \"original_max_position_embeddings\": 16, \"sliding_window\": 32, \"rope_scaling\":"
        " {\"type\": \"longrope\", \"long_factor\": [1.5, 2], \"short_factor\": [1, 1.25]}}");
    mica_huggingface *h = open_model(m, ctx);
    CHECK(first_of(h, ctx, "blk.1.attn_qkv.weight", MICA_F32, false) ==
          told(m, "model.layers.1.self_attn.qkv_proj.weight"));
    CHECK(first_of(h, ctx, "blk.1.ffn_up.weight", MICA_F32, false) ==
          told(m, "model.layers.1.mlp.gate_up_proj.weight"));
    CHECK(first_of(h, ctx, "rope_factors_long.weight", MICA_F32, false) == 1.5);
    CHECK(first_of(h, ctx, "rope_factors_short.weight", MICA_F32, false) == 1.0);
    check_text(h, "phi3.rope.scaling.type", "longrope");
    check_number(h, "phi3.rope.dimension_count", 4);
    check_number(h, "phi3.rope.scaling.original_context_length", 16);
    check_number(h, "phi3.rope.scaling.attn_factor", sqrt(2.0));
    check_number(h, "phi3.attention.head_count_kv", 2);
    mica_huggingface_close(h);
    model_remove(m);
}

TEST(huggingface_gpt2)
{
    mica_context *ctx = test_context(1);
    model *m = model_make();
    static const char *const vectors[] = {"ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias",
                                          "attn.c_attn.bias"};
    put_tensor(m, "transformer.wte.weight", 6, 4);
    put_tensor(m, "transformer.wpe.weight", 8, 4);
    for (size_t i = 0; i < 5; i++) {
        char name[96];
        (void)snprintf(name, sizeof name, "transformer.h.0.%s", vectors[i]);
        put_tensor(m, name, 0, 4);
    }
    put_tensor(m, "transformer.h.0.attn.c_attn.weight", 4, 12);
    put_tensor(m, "transformer.h.0.mlp.c_proj.weight", 16, 4);
    put_tensor(m, "lm_head.weight", 6, 4);
    write_all(m, ctx, MICA_F32);
    put_text(m, "config.json",
             "{\"model_type\": \"gpt2\", \"n_embd\": 4, \"n_layer\": 1, \"n_head\": 2, \"n_positions\": 8,"
             " \"n_inner\": null, \"layer_norm_epsilon\": 1e-05, \"activation_function\": \"gelu_new\"}");
    mica_huggingface *h = open_model(m, ctx);
    CHECK(first_of(h, ctx, "blk.0.attn_qkv.weight", MICA_F32, true) ==
          told(m, "transformer.h.0.attn.c_attn.weight"));
    CHECK(first_of(h, ctx, "blk.0.attn_qkv.bias", MICA_F32, false) ==
          told(m, "transformer.h.0.attn.c_attn.bias"));
    CHECK(first_of(h, ctx, "position_embd.weight", MICA_F32, false) == told(m, "transformer.wpe.weight"));
    mica_tensor t;
    REQUIRE(h != NULL && CHECK(mica_huggingface_tensor(h, &t, "blk.0.ffn_down.weight", NULL)));
    CHECK(t.dim[0] == 4 && t.dim[1] == 16 && t.stride[0] == 1 && t.stride[1] == 4);
    CHECK(!mica_huggingface_tensor(h, &t, "output.weight", NULL)); /* tied, whatever is there */
    check_number(h, "gpt2.feed_forward_length", 16);
    check_number(h, "gpt2.attention.head_count", 2);
    check_number(h, "gpt2.context_length", 8);
    check_number(h, "gpt2.attention.layer_norm_epsilon", 1e-5);
    check_number(h, "gpt2.rope.dimension_count", NAN);
    mica_huggingface_close(h);
    model_remove(m);
}

TEST(huggingface_bert)
{
    mica_context *ctx = test_context(1);
    model *m = model_make();
    put_tensor(m, "bert.embeddings.word_embeddings.weight", 6, 4);
    put_tensor(m, "bert.embeddings.LayerNorm.gamma", 0, 4);
    put_tensor(m, "bert.embeddings.LayerNorm.beta", 0, 4);
    put_tensor(m, "bert.encoder.layer.0.attention.self.query.weight", 4, 4);
    put_tensor(m, "bert.encoder.layer.0.output.LayerNorm.weight", 0, 4);
    put_tensor(m, "bert.pooler.dense.weight", 4, 4);
    write_all(m, ctx, MICA_F32);
    put_text(
        m, "config.json",
        "{\"model_type\": \"bert\", \"hidden_size\": 4, \"num_hidden_layers\": 1, \"num_attention_heads\": 2,"
        " \"intermediate_size\": 8, \"hidden_act\": \"gelu\", \"type_vocab_size\": 2}");
    char folder[300], path[600];
    (void)snprintf(folder, sizeof folder, "%s", scratch_path(&m->s, "1_Pooling"));
    CHECK(mkdir(folder, 0777) == 0);
    (void)snprintf(path, sizeof path, "%s/config.json", folder);
    static const char pooling[] = "{\"pooling_mode_cls_token\": true, \"pooling_mode_mean_tokens\": false}";
    scratch_write(path, pooling, strlen(pooling));
    mica_huggingface *h = open_model(m, ctx);
    CHECK(first_of(h, ctx, "token_embd_norm.weight", MICA_F32, false) ==
          told(m, "bert.embeddings.LayerNorm.gamma"));
    CHECK(first_of(h, ctx, "token_embd_norm.bias", MICA_F32, false) ==
          told(m, "bert.embeddings.LayerNorm.beta"));
    CHECK(first_of(h, ctx, "blk.0.layer_output_norm.weight", MICA_F32, false) ==
          told(m, "bert.encoder.layer.0.output.LayerNorm.weight"));
    check_number(h, "bert.pooling_type", 2);
    check_number(h, "tokenizer.ggml.token_type_count", 2);
    check_number(h, "bert.attention.layer_norm_epsilon", 1e-12);
    mica_huggingface_close(h);
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
    model_remove(m);
}

/* ---- Shards ---- */

static void put_shards(model *m, mica_context *ctx, const char *second)
{
    put_decoder(m, "model.", false, false);
    put_tensor(m, "lm_head.weight", 6, 4);
    put_text(m, "config.json", llama_config);
    write_as(m, ctx, "model-00001-of-00002.safetensors", 0, 10, MICA_F32);
    write_as(m, ctx, "model-00002-of-00002.safetensors", 10, m->count - 10, MICA_F32);
    char index[8192];
    int used = snprintf(index, sizeof index, "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {");
    for (size_t i = 0; i < m->count; i++)
        used += snprintf(index + used, sizeof index - (size_t)used, "%s\"%s\": \"%s\"", i > 0 ? ",\n" : "",
                         m->names[i], i < 10 ? "model-00001-of-00002.safetensors" : second);
    (void)snprintf(index + used, sizeof index - (size_t)used, "}}");
    put_text(m, "model.safetensors.index.json", index);
}

static mica_status open_shards(const mica_allocator *allocator, void *argument)
{
    mica_context *ctx;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    mica_huggingface *h = NULL;
    status = mica_huggingface_open(ctx, &h, argument);
    CHECK((status == MICA_OK) == (h != NULL));
    mica_huggingface_close(h);
    mica_context_destroy(ctx);
    return status;
}

TEST(huggingface_shards)
{
    mica_context *ctx = test_context(1);
    model *m = model_make();
    put_shards(m, ctx, "model-00002-of-00002.safetensors");
    mica_huggingface *h = open_model(m, ctx);
    CHECK(first_of(h, ctx, "token_embd.weight", MICA_F32, false) == 0.0);
    CHECK(first_of(h, ctx, "output.weight", MICA_F32, false) == told(m, "lm_head.weight"));
    CHECK(h != NULL && mica_huggingface_tensors(h) == m->count);
    mica_huggingface_close(h);
    CHECK(test_oom(open_shards, m->s.folder) >= 5);
    model_remove(m);
}

/* ---- Folders that are not ---- */

static void check_bad(model *m, mica_context *ctx, const char *file, mica_status status, const char *error,
                      int line)
{
    char text[1024];
    mica_huggingface *h = NULL;
    (void)snprintf(text, sizeof text, "%s: \"%s/%s\"%s", mica_status_text(status), m->s.folder, file, error);
    mica_status got = mica_huggingface_open(ctx, &h, m->s.folder);
    (void)test_error(ctx, got, status, text, __FILE__, line);
    CHECK(h == NULL);
}
#define BAD(file, error) check_bad(m, ctx, file, MICA_ERR_FORMAT, error, __LINE__)

TEST(huggingface_index_is_checked)
{
    mica_context *ctx = test_context(1);
    static const char index[] = "model.safetensors.index.json";
    model *m = model_make();
    put_shards(m, ctx, "../model.safetensors");
    BAD(index, ": byte 831: \"../model.safetensors\" is no name of a file in this folder");
    m->count = 0;
    put_shards(m, ctx, "model-00001-of-00002.safetensors");
    BAD(index,
        ": byte 792: tensor \"model.layers.0.mlp.down_proj.weight\" is not in \"model-00001-of-00002.safetensors\"");
    m->count = 0;
    put_shards(m, ctx, "none.safetensors");
    check_bad(m, ctx, "none.safetensors", MICA_ERR_IO, ": cannot open: No such file or directory", __LINE__);
    put_text(m, index, "{\"weight_map\": {}}");
    BAD(index, ": names no files (weight_map)");
    put_text(m, index, "{\"weight_map\": {\"a\": 1}}");
    BAD(index, ": byte 21: expected the name of a file");
    put_text(m, index, "{\"weight_map\": ");
    BAD(index, ": byte 15: the text ends too early");
    model_remove(m);
}

TEST(huggingface_config_is_checked)
{
    mica_context *ctx = test_context(1);
    model *m = model_make();
    put_decoder(m, "model.", false, false);
    write_all(m, ctx, MICA_F32);
    check_bad(m, ctx, "config.json", MICA_ERR_IO, ": cannot open: No such file or directory", __LINE__);
    static const struct {
        const char *config, *file, *error;
    } bad[] = {
        {"{", "config.json", ": byte 1: expected a key in quotes"},
        {"{}", "config.json", ": has no \"model_type\""},
        {"{\"model_type\": 1}", "config.json", ": has no \"model_type\""},
        {"{\"model_type\": \"mixtral\"}", "config.json",
         ": model_type \"mixtral\" is not supported: llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3, phi3, gpt2, "
         "bert are"},
        {"{\"model_type\": \"llama\", \"hidden_act\": \"relu\"}", "config.json",
         ": hidden_act is \"relu\", expected silu"},
        {"{\"model_type\": \"gpt2\", \"scale_attn_by_inverse_layer_idx\": true}", "config.json",
         ": scale_attn_by_inverse_layer_idx is true, which is not supported"},
        {"{\"model_type\": \"bert\", \"position_embedding_type\": \"relative_key\"}", "config.json",
         ": position_embedding_type is \"relative_key\", expected absolute"},
        {"{\"model_type\": \"llama\", \"quantization_config\": {}}", "config.json",
         ": its weights are quantized (quantization_config), which is not supported"},
        {"{\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"dynamic\"}}", "config.json",
         ": rope_type \"dynamic\" is not supported for llama"},
        {"{\"model_type\": \"qwen2\", \"rope_scaling\": {\"type\": \"llama3\"}}", "config.json",
         ": rope_type \"llama3\" is not supported for qwen2"},
        {"{\"model_type\": \"llama\"}", "config.json",
         ": does not tell the number of layers (num_hidden_layers)"},
        {"{\"model_type\": \"llama\", \"num_hidden_layers\": 1.5}", "config.json",
         ": does not tell the number of layers (num_hidden_layers)"},
        {"{\"model_type\": \"llama\", \"num_hidden_layers\": 1e15}", "config.json",
         ": 1000000000000000 layers, but the files have 20 tensors in all"},
        {"{\"model_type\": \"llama\", \"num_hidden_layers\": 2}", "model.safetensors",
         ": has no tensor \"lm_head.weight\", and its embeddings are not tied"},
        {"{\"model_type\": \"gpt2\", \"num_hidden_layers\": 2}", "model.safetensors",
         ": has no tensor \"wte.weight\", as a model of type gpt2 has"},
        {"{\"model_type\": \"phi3\", \"num_hidden_layers\": 2, \"rope_scaling\": {\"type\": \"longrope\"}}",
         "config.json", ": has no array \"long_factor\" for its rope_type"},
        {"{\"model_type\": \"phi3\", \"num_hidden_layers\": 2, \"head_dim\": 4, \"rope_scaling\": "
         "{\"type\": \"longrope\", \"long_factor\": [1, 2, 3]}}",
         "config.json", ": \"long_factor\" has 3 numbers, expected 2"},
        {"{\"model_type\": \"llama\", \"num_hidden_layers\": 2, \"rope_scaling\": {\"type\": \"llama3\"}}",
         "config.json", ": the numbers of rope_type \"llama3\" make no sense"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put_text(m, "config.json", bad[i].config);
        BAD(bad[i].file, bad[i].error);
    }
    model_remove(m);
}

/* Any change of a configuration: an error, or a folder that can be asked everything. */
TEST(huggingface_mutated_configs_give_clean_errors)
{
    mica_context *ctx = test_context(1);
    test_random r = test_seed(9);
    model *m = model_make();
    put_decoder(m, "model.", false, false);
    put_tensor(m, "lm_head.weight", 6, 4);
    write_all(m, ctx, MICA_F16);
    char text[sizeof llama_config];
    int opened = 0;
    for (int i = 0; i < test_effort(400); i++) {
        memcpy(text, llama_config, sizeof text);
        for (int k = test_int(&r, 1, 3); k > 0; k--)
            text[test_next(&r) % (sizeof text - 1)] = (char)test_int(&r, ' ', '~');
        put_text(m, "config.json", text);
        mica_huggingface *h = NULL;
        mica_status status = mica_huggingface_open(ctx, &h, m->s.folder);
        CHECK((status == MICA_OK) == (h != NULL) && (h != NULL || status == MICA_ERR_FORMAT));
        double number;
        if (h != NULL)
            (void)mica_huggingface_number(h, &number, "llama.rope.dimension_count");
        opened += h != NULL;
        mica_huggingface_close(h);
    }
    CHECK(opened > 0);
    model_remove(m);
}
