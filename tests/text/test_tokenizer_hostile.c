/* Tokenizers of files that nobody in their right mind makes: they end, and give tokens of the vocabulary. */
#include <string.h>

#include "gguf/build.h"
#include "test.h"

static void put_text_array(gguf_bytes *b, const char *key, const char *const *texts, size_t count)
{
    gguf_key(b, key, MICA_GGUF_ARRAY);
    gguf_number(b, MICA_GGUF_STRING, 4);
    gguf_number(b, count, 8);
    for (size_t i = 0; i < count; i++)
        gguf_string(b, texts[i]);
}

/* A character map by which the first byte of a character, 0xe2, is replaced by "x". */
static void put_map(gguf_bytes *b)
{
    enum { UNITS = 0xe4 };
    uint32_t units[UNITS] = {[0] = 1u << 10, [0xe3] = 1u << 10 | 1u << 8 | 0xe2, [0xe2] = 1u << 31};
    gguf_key(b, "tokenizer.ggml.precompiled_charsmap", MICA_GGUF_ARRAY);
    gguf_number(b, MICA_GGUF_U8, 4);
    gguf_number(b, 4 + 4 * UNITS + 2, 8);
    gguf_number(b, 4 * UNITS, 4);
    for (int i = 0; i < UNITS; i++)
        gguf_number(b, units[i], 4);
    gguf_put(b, "x", 2);
}

/* Without an unknown token, and with parts of characters left over. */
TEST(unigram_with_a_map_that_cuts_characters)
{
    static const char *const texts[] = {"a", "x"};
    static unsigned char scratch[8192];
    gguf_bytes b = {0};
    mica_gguf *file;
    mica_tokenizer *tokenizer = NULL;
    mica_context *ctx = test_context(1);
    gguf_start(&b, 3, 0, 4);
    gguf_key(&b, "tokenizer.ggml.model", MICA_GGUF_STRING);
    gguf_string(&b, "t5");
    put_text_array(&b, "tokenizer.ggml.tokens", texts, 2);
    gguf_key(&b, "tokenizer.ggml.scores", MICA_GGUF_ARRAY);
    gguf_number(&b, MICA_GGUF_F32, 4);
    gguf_number(&b, 2, 8);
    gguf_number(&b, 0, 8);
    put_map(&b);
    REQUIRE(CHECK_OK(ctx, mica_gguf_over(ctx, &file, b.bytes, b.size, "hostile")));
    if (CHECK_OK(ctx, mica_tokenizer_of_gguf(ctx, &tokenizer, file))) {
        static const char text[] = "a\xe2\x82\xac?\xe2\x82\xac";
        int32_t tokens[16] = {-7, -7, -7, -7, -7, -7};
        size_t count = 16;
        CHECK(mica_tokenizer_about(tokenizer)->unknown == -1);
        CHECK(mica_encode_scratch(tokenizer, sizeof text - 1) <= sizeof scratch);
        CHECK_OK(ctx, mica_encode(ctx, tokenizer, tokens, &count, text, sizeof text - 1, scratch,
                                  sizeof scratch, NULL));
        CHECK(count == 1 && tokens[0] == 0 && tokens[1] == -7);
    }
    mica_tokenizer_close(tokenizer);
    mica_gguf_close(file);
    gguf_free(&b);
}
