/* Which types tensors get: those of llama-quantize, for every mix and several models; see make_golden_mixes.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/build.h"
#include "test.h"

enum { MOST_TENSORS = 1024, MOST_KINDS = 24 };

/* In the order of the script's letters. */
static const mica_dtype types[] = {MICA_F32,  MICA_F16,  MICA_BF16, MICA_Q4_0,   MICA_Q4_1,
                                   MICA_Q5_0, MICA_Q5_1, MICA_Q8_0, MICA_Q2_K,   MICA_Q3_K,
                                   MICA_Q4_K, MICA_Q5_K, MICA_Q6_K, MICA_IQ4_NL, MICA_IQ4_XS};

typedef struct kind {
    char name[48];
    unsigned row, rows, matrices;
    bool in_layers;
} kind;

typedef struct model {
    char architecture[16];
    unsigned layers, heads, value_heads, experts;
    kind kinds[MOST_KINDS];
    size_t kind_count;
} model;

/* ---- A file of zeros ---- */

static void put_setting(gguf_bytes *b, const model *m, const char *name, unsigned value)
{
    char key[80];
    (void)snprintf(key, sizeof key, "%s.%s", m->architecture, name);
    gguf_key(b, key, MICA_GGUF_U32);
    gguf_number(b, value, 4);
}

static void put_tensor(gguf_bytes *b, const kind *k, unsigned layer, uint64_t *offset)
{
    char name[64];
    if (k->in_layers)
        (void)snprintf(name, sizeof name, "blk.%u.%s", layer, k->name);
    else
        (void)snprintf(name, sizeof name, "%s", k->name);
    if (k->matrices > 1) {
        gguf_string(b, name);
        gguf_number(b, 3, 4);
        gguf_number(b, k->row, 8);
        gguf_number(b, k->rows, 8);
        gguf_number(b, k->matrices, 8);
        gguf_number(b, 0, 4);
        gguf_number(b, *offset, 8);
    } else {
        gguf_tensor(b, name, k->row, k->rows, 0, *offset);
    }
    *offset += (uint64_t)k->row * k->rows * k->matrices * sizeof(float);
}

static size_t count_of(const model *m)
{
    size_t count = 0;
    for (size_t i = 0; i < m->kind_count; i++)
        count += m->kinds[i].in_layers ? m->layers : 1;
    return count;
}

/* Tensors as the script numbers them: outside of layers, then layer by layer; in the file from the last layer to the
 * first, for their order there must not matter. */
static gguf_bytes file_of(const model *m)
{
    gguf_bytes b = {0};
    uint64_t offset = 0;
    gguf_start(&b, 3, count_of(m), 5);
    gguf_key(&b, "general.architecture", MICA_GGUF_STRING);
    gguf_string(&b, m->architecture);
    put_setting(&b, m, "block_count", m->layers);
    put_setting(&b, m, "attention.head_count", m->heads);
    put_setting(&b, m, "attention.head_count_kv", m->value_heads);
    put_setting(&b, m, "expert_count", m->experts);
    for (unsigned layer = m->layers; layer-- > 0;)
        for (size_t i = 0; i < m->kind_count; i++)
            if (m->kinds[i].in_layers)
                put_tensor(&b, &m->kinds[i], layer, &offset);
    for (size_t i = 0; i < m->kind_count; i++)
        if (!m->kinds[i].in_layers)
            put_tensor(&b, &m->kinds[i], 0, &offset);
    gguf_pad(&b, 32);
    static const unsigned char zeros[4096];
    for (uint64_t left = offset; left > 0;) {
        size_t some = left < sizeof zeros ? (size_t)left : sizeof zeros;
        gguf_put(&b, zeros, some);
        left -= some;
    }
    return b;
}

/* ---- What is chosen ---- */

typedef struct choice {
    const model *m;
    mica_dtype to[MOST_TENSORS];
    size_t count;
} choice;

/* The script's number of a tensor. */
static size_t number_of(const model *m, const char *name)
{
    unsigned layer = 0;
    int skip = 0;
    bool in_layers = sscanf(name, "blk.%u.%n", &layer, &skip) == 1;
    size_t outside = 0, within = 0, at = 0;
    for (size_t i = 0; i < m->kind_count; i++) {
        const kind *k = &m->kinds[i];
        if (k->in_layers == in_layers && strcmp(k->name, name + skip) == 0)
            at = in_layers ? within : outside;
        outside += !k->in_layers;
        within += k->in_layers;
    }
    return in_layers ? outside + layer * within + at : at;
}

static mica_status note(void *user, mica_context *ctx, const mica_gguf_quantizing *at)
{
    (void)ctx;
    choice *c = user;
    c->to[number_of(c->m, at->name)] = at->to.dtype;
    CHECK(at->number == c->count && at->from.dtype == MICA_F32 && at->values_done == 0);
    c->count++;
    return MICA_OK;
}

static mica_gguf_mix mix_named(const char *name)
{
    mica_gguf_mix mix = 0;
    while (mix < MICA_MIX_COUNT && strcmp(mica_gguf_mix_name(mix), name) != 0)
        mix++;
    return mix;
}

static void check_mix(mica_context *ctx, const model *m, const char *name, bool pure, const char *letters)
{
    static choice c;
    c = (choice){.m = m};
    gguf_bytes b = file_of(m);
    mica_gguf *file;
    if (CHECK_OK(ctx, mica_gguf_over(ctx, &file, b.bytes, b.size, "mixes"))) {
        CHECK_OK(ctx,
                 mica_gguf_quantize(ctx, file, NULL,
                                    &(mica_gguf_quantize_opts){
                                        .mix = mix_named(name), .pure = pure, .report = note, .user = &c}));
        CHECK(c.count == strlen(letters) && c.count == count_of(m));
        for (size_t i = 0; i < c.count && i < strlen(letters); i++)
            CHECK_MSG(c.to[i] == types[letters[i] - 'a'],
                      "%s with %u layers, %s%s, tensor %zu: %s, llama-quantize has %s", m->architecture,
                      m->layers, name, pure ? ", pure" : "", i, mica_dtype_name(c.to[i]),
                      mica_dtype_name(types[letters[i] - 'a']));
    }
    mica_gguf_close(file);
    gguf_free(&b);
}

TEST(gguf_mixes_are_those_of_llama_quantize)
{
    static char line[2048];
    mica_context *ctx = test_context(1);
    FILE *golden = fopen(MICA_TEST_DATA "/golden/mixes.txt", "r");
    if (!CHECK(golden != NULL))
        return;
    model m = {0};
    int mixes = 0, models = 0;
    while (fgets(line, sizeof line, golden) != NULL) {
        char word[16], name[48];
        static char letters[MOST_TENSORS + 1];
        kind k;
        if (sscanf(line, "model %15s %u %u %u %u", name, &m.layers, &m.heads, &m.value_heads, &m.experts) ==
            5) {
            memcpy(m.architecture, name, sizeof m.architecture);
            m.kind_count = 0;
            models++;
        } else if (sscanf(line, "%15s %47s %u %u %u", word, k.name, &k.row, &k.rows, &k.matrices) == 5) {
            k.in_layers = strcmp(word, "layer") == 0;
            if (CHECK(m.kind_count < MOST_KINDS))
                m.kinds[m.kind_count++] = k;
        } else if (CHECK(sscanf(line, "%15s %47s %1024s", word, name, letters) == 3)) {
            check_mix(ctx, &m, name, strcmp(word, "pure") == 0, letters);
            mixes++;
        }
    }
    CHECK(models == 11 && mixes == 11 * (MICA_MIX_COUNT + 3));
    fclose(golden);
}
