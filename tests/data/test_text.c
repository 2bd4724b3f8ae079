/* Text: vocabularies, encoding and decoding, windows. */
#include <string.h>

#include "io/scratch.h"
#include "data/sample.h"
#include "test.h"

TEST(text_bytes_and_characters)
{
    mica_context *ctx = test_context(1);
    const char *words = "h\xc3\xa9llo \xe2\x98\x83\n";
    mica_text bytes, characters, other;
    CHECK_OK(ctx, mica_text_from_memory(ctx, &bytes, words, strlen(words), NULL));
    CHECK(bytes.vocabulary.count == 256 && bytes.tokens.dtype == MICA_U8 && bytes.tokens.dim[0] == 11);
    CHECK(memcmp(bytes.tokens.data, words, 11) == 0);
    CHECK_OK(ctx, mica_text_from_memory(ctx, &characters, words, strlen(words),
                                        &(mica_text_opts){.characters = true}));
    static const uint32_t sorted[] = {'\n', ' ', 'h', 'l', 'o', 0xe9, 0x2603};
    CHECK(characters.vocabulary.count == 7 &&
          memcmp(characters.vocabulary.characters, sorted, sizeof sorted) == 0);
    static const uint8_t tokens[] = {2, 5, 3, 3, 4, 1, 6, 0};
    CHECK(characters.tokens.dim[0] == 8 && memcmp(characters.tokens.data, tokens, 8) == 0);
    char text[32];
    CHECK_OK(ctx, mica_text_decode(ctx, text, sizeof text, &characters.vocabulary, &characters.tokens));
    CHECK(strcmp(text, words) == 0);
    CHECK_OK(ctx, mica_text_decode(ctx, text, sizeof text, &bytes.vocabulary, &bytes.tokens));
    CHECK(strcmp(text, words) == 0);
    CHECK_ERROR(ctx, mica_text_decode(ctx, text, 11, &bytes.vocabulary, &bytes.tokens), MICA_ERR_MEMORY,
                "memory error: text_decode: the text does not fit in 11 bytes");
    static uint8_t block[34];
    mica_tensor quantized;
    CHECK_OK(ctx, mica_tensor_init(ctx, &quantized, block, MICA_Q8_0, 1, (mica_index[]){32}));
    CHECK(mica_text_decode(ctx, text, sizeof text, &bytes.vocabulary, &quantized) == MICA_ERR_DTYPE);

    int32_t encoded[4];
    size_t count = 4;
    CHECK_OK(ctx, mica_text_encode(ctx, encoded, &count, &characters.vocabulary, "\xe2\x98\x83oh"));
    CHECK(count == 3 && encoded[0] == 6 && encoded[1] == 4 && encoded[2] == 2);
    CHECK_ERROR(ctx, mica_text_encode(ctx, encoded, &count, &characters.vocabulary, "hello"),
                MICA_ERR_ARGUMENT, "argument error: text_encode: byte 1: \"e\" is not in the vocabulary");
    count = 2;
    CHECK_ERROR(ctx, mica_text_encode(ctx, encoded, &count, &bytes.vocabulary, "hello"), MICA_ERR_MEMORY,
                "memory error: text_encode: 5 tokens, room for 2");
    CHECK(count == 5);

    CHECK_OK(ctx, mica_text_from_memory(ctx, &other, "loh", 3,
                                        &(mica_text_opts){.vocabulary = &characters.vocabulary}));
    CHECK(memcmp(other.tokens.data, (uint8_t[]){3, 4, 2}, 3) == 0);
    mica_text_destroy(ctx, &other);
    CHECK_ERROR(
        ctx,
        mica_text_from_memory(ctx, &other, "lox", 3, &(mica_text_opts){.vocabulary = &characters.vocabulary}),
        MICA_ERR_FORMAT, "format error: \"memory\": byte 2: \"x\" is not in the vocabulary");
    CHECK_ERROR(ctx, mica_text_from_memory(ctx, &other, "ab\xff", 3, &(mica_text_opts){.characters = true}),
                MICA_ERR_FORMAT, "format error: \"memory\": byte 2: not UTF-8");
    CHECK(other.block == NULL);
    mica_text_destroy(ctx, &bytes);
    mica_text_destroy(ctx, &characters);
    CHECK_OK(ctx, mica_text_from_memory(ctx, &other, NULL, 0, &(mica_text_opts){.characters = true}));
    CHECK(other.tokens.dim[0] == 0 && other.vocabulary.count == 0);
    mica_text_destroy(ctx, &other);
    CHECK(mica_context_heap(ctx).live_bytes == mica_context_heap(test_context(1)).live_bytes);
}

TEST(text_many_characters_are_i32)
{
    mica_context *ctx = test_context(1);
    char text[2 * 400];
    for (int i = 0; i < 400; i++) { /* U+0100 on: two bytes each */
        text[2 * i] = (char)(0xc4 + i / 64);
        text[2 * i + 1] = (char)(0x80 + i % 64);
    }
    scratch s = scratch_make();
    scratch_write(scratch_path(&s, "text"), text, sizeof text);
    mica_text loaded;
    CHECK_OK(ctx, mica_text_load(ctx, &loaded, s.path, &(mica_text_opts){.characters = true}));
    CHECK(loaded.vocabulary.count == 400 && loaded.tokens.dtype == MICA_I32);
    for (int i = 0; i < 400; i++)
        CHECK(((int32_t *)loaded.tokens.data)[i] == i);
    mica_text_destroy(ctx, &loaded);
    CHECK_OK(ctx, mica_text_load(ctx, &loaded, s.path, NULL));
    CHECK(loaded.tokens.dim[0] == 800);
    mica_text_destroy(ctx, &loaded);
    CHECK(mica_text_load(ctx, &loaded, "no such file", NULL) == MICA_ERR_IO);
    scratch_remove(&s);
}

TEST(windows_targets_are_one_token_on)
{
    mica_context *ctx = test_context(1);
    uint8_t data[50];
    for (int i = 0; i < 50; i++)
        data[i] = (uint8_t)i;
    mica_tensor tokens, x, y;
    int64_t in[4][7], out[7][4], again[4][7];
    CHECK_OK(ctx, mica_tensor_init(ctx, &tokens, data, MICA_U8, 1, (mica_index[]){50}));
    CHECK_OK(ctx, mica_tensor_init(ctx, &x, in, MICA_I64, 2, (mica_index[]){4, 7}));
    CHECK_OK(ctx, mica_tensor_init(ctx, &y, out, MICA_I64, 2, (mica_index[]){7, 4}));
    CHECK_OK(ctx, mica_view_transpose(ctx, &y, &y, 0, 1));
    bool first = false, last = false;
    test_heap before = test_heap_now();
    for (uint64_t step = 0; step < 200; step++) {
        CHECK_OK(ctx, mica_windows_random(ctx, &x, &y, &tokens, mica_random_stream(3, step)));
        memcpy(again, in, sizeof in);
        for (int b = 0; b < 4; b++) {
            first = first || in[b][0] == 0;
            last = last || in[b][0] == 42;
            for (int t = 0; t < 7; t++)
                CHECK(in[b][t] == in[b][0] + t && out[t][b] == in[b][t] + 1 && out[t][b] < 50);
        }
        CHECK_OK(ctx, mica_windows_random(ctx, &x, &y, &tokens, mica_random_stream(3, step)));
        CHECK(memcmp(again, in, sizeof in) == 0);
    }
    CHECK(first && last);
    CHECK(mica_windows_count(&tokens, 7) == 7 && mica_windows_count(&tokens, 50) == 0);
    CHECK_OK(ctx, mica_windows_in_order(ctx, &x, &y, &tokens, 3));
    CHECK(in[0][0] == 21 && in[3][6] == 48 && out[6][3] == 49);
    if (test_heap_counted())
        CHECK(test_heap_now().calls == before.calls);
    CHECK_ERROR(
        ctx, mica_windows_in_order(ctx, &x, &y, &tokens, 4), MICA_ERR_INDEX,
        "index error: windows_in_order: windows 4 to 7 for inputs [4, 7], but tokens [50] only have 7");
    CHECK_OK(ctx, mica_view_slice(ctx, &tokens, &tokens, 0, 0, 7, 1));
    CHECK_ERROR(ctx, mica_windows_random(ctx, &x, &y, &tokens, mica_random_stream(3, 0)), MICA_ERR_SHAPE,
                "shape error: windows_random: tokens [7] are too few for inputs [4, 7] and one more");
}

TEST(text_real_shakespeare)
{
    mica_context *ctx = test_context(1);
    const char *path = sample_real_data("tinyshakespeare.txt");
    if (path == NULL) {
        test_skip("no tinyshakespeare.txt in $MICA_DATA or ../shared/data");
        return;
    }
    mica_text text;
    REQUIRE(CHECK_OK(ctx, mica_text_load(ctx, &text, path, &(mica_text_opts){.characters = true})));
    CHECK(text.tokens.dim[0] == 1115394 && text.vocabulary.count == 65 && text.tokens.dtype == MICA_U8);
    char start[16];
    mica_tensor few;
    CHECK_OK(ctx, mica_view_slice(ctx, &few, &text.tokens, 0, 0, 13, 1));
    CHECK_OK(ctx, mica_text_decode(ctx, start, sizeof start, &text.vocabulary, &few));
    CHECK(strcmp(start, "First Citizen") == 0);
    mica_text_destroy(ctx, &text);
}
