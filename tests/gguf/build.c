#include "gguf/build.h"

#include <stdlib.h>
#include <string.h>

void gguf_free(gguf_bytes *b)
{
    free(b->bytes);
    *b = (gguf_bytes){0};
}

void gguf_put(gguf_bytes *b, const void *bytes, size_t count)
{
    if (b->size + count > b->room) {
        size_t room = (2 * (b->size + count) + 63) / 64 * 64;
        unsigned char *larger = aligned_alloc(64, room);
        if (larger == NULL)
            abort();
        if (b->size > 0)
            memcpy(larger, b->bytes, b->size);
        free(b->bytes);
        b->bytes = larger;
        b->room = room;
    }
    if (count > 0)
        memcpy(b->bytes + b->size, bytes, count);
    b->size += count;
}

void gguf_number(gguf_bytes *b, uint64_t number, size_t bytes)
{
    unsigned char text[8];
    for (size_t i = 0; i < bytes; i++)
        text[i] = (unsigned char)(number >> (8 * i));
    gguf_put(b, text, bytes);
}

void gguf_string(gguf_bytes *b, const char *text)
{
    gguf_number(b, strlen(text), 8);
    gguf_put(b, text, strlen(text));
}

void gguf_pad(gguf_bytes *b, size_t alignment)
{
    while (b->size % alignment != 0)
        gguf_put(b, "", 1);
}

void gguf_start(gguf_bytes *b, uint32_t version, uint64_t tensors, uint64_t settings)
{
    gguf_put(b, "GGUF", 4);
    gguf_number(b, version, 4);
    gguf_number(b, tensors, 8);
    gguf_number(b, settings, 8);
}

void gguf_key(gguf_bytes *b, const char *key, uint32_t kind)
{
    gguf_string(b, key);
    gguf_number(b, kind, 4);
}

void gguf_tensor(gguf_bytes *b, const char *name, uint64_t row, uint64_t rows, uint32_t type, uint64_t offset)
{
    gguf_string(b, name);
    gguf_number(b, 2, 4);
    gguf_number(b, row, 8);
    gguf_number(b, rows, 8);
    gguf_number(b, type, 4);
    gguf_number(b, offset, 8);
}

gguf_bytes gguf_sound(uint32_t version)
{
    gguf_bytes b = {0};
    gguf_start(&b, version, 4, 16);
    static const struct {
        const char *key;
        uint64_t number;
        uint32_t kind;
        size_t bytes;
    } numbers[] = {
        {"a.u8", 200, 0, 1},
        {"a.i8", 0x9c, 1, 1}, /* -100 */
        {"a.u16", 60000, 2, 2},
        {"a.i16", 0x8ad0, 3, 2}, /* -30000 */
        {"a.u32", 4000000000u, 4, 4},
        {"a.i32", 0x88ca6c00u, 5, 4}, /* -2000000000 */
        {"a.f32", 0x3fc00000, 6, 4},  /* 1.5 */
        {"a.bool", 1, 7, 1},
        {"a.u64", UINT64_MAX, 10, 8},
        {"a.i64", (uint64_t)INT64_MIN, 11, 8},
        {"a.f64", 0xc004000000000000u, 12, 8}, /* -2.5 */
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        gguf_key(&b, numbers[i].key, numbers[i].kind);
        gguf_number(&b, numbers[i].number, numbers[i].bytes);
    }
    gguf_key(&b, "general.architecture", 8);
    gguf_string(&b, "llama");
    gguf_key(&b, "tokenizer.ggml.tokens", 9);
    gguf_number(&b, 8, 4);
    gguf_number(&b, 3, 8);
    gguf_string(&b, "<s>");
    gguf_string(&b, "");
    gguf_string(&b, "\xe2\x96\x81the");
    gguf_key(&b, "tokenizer.ggml.token_type", 9);
    gguf_number(&b, 5, 4);
    gguf_number(&b, 3, 8);
    for (int i = 0; i < 3; i++)
        gguf_number(&b, i == 0 ? 0xffffffffu : (uint64_t)i, 4);
    gguf_key(&b, "a.windows", 9);
    gguf_number(&b, 7, 4);
    gguf_number(&b, 2, 8);
    gguf_number(&b, 0x0001, 2);
    gguf_key(&b, "general.alignment", 4);
    gguf_number(&b, 64, 4);
    gguf_tensor(&b, "token_embd.weight", 32, 3, 8, 0);     /* Q8_0: 3 * 34 bytes */
    gguf_tensor(&b, "blk.0.attn_q.weight", 32, 2, 3, 256); /* Q4_1: 2 * 20 bytes */
    gguf_tensor(&b, "blk.0.attn_k.weight", 3, 2, 1, 128);  /* F16: 12 bytes */
    gguf_string(&b, "output_norm.weight");
    gguf_number(&b, 1, 4);
    gguf_number(&b, 5, 8);
    gguf_number(&b, 0, 4);
    gguf_number(&b, 192, 8); /* F32: 20 bytes */
    gguf_pad(&b, 64);
    for (int i = 0; i < 256 + 40; i++)
        gguf_number(&b, (uint64_t)i, 1);
    return b;
}
