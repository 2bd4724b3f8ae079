/* Vocabularies that are wrong on purpose: text is encoded all the same, in the room that was asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/build.h"
#include "test.h"
#include "text/vocabulary.h"

/* Encodes in exactly the scratch that valid text takes, so that a sanitizer sees the first byte beyond it. Returns the
 * number of tokens. */
static size_t encode_tightly(mica_context *ctx, const mica_tokenizer *t, int32_t *tokens, size_t room,
                             const char *text)
{
    size_t bytes = strlen(text), count = 0, most = mica_encode_scratch(t, bytes), least = 0;
    char *scratch = malloc(most);
    while (least < most) { /* the smallest that it takes */
        size_t middle = least + (most - least) / 2;
        count = room;
        if (mica_encode(ctx, t, tokens, &count, text, bytes, scratch, middle, NULL) == MICA_ERR_MEMORY)
            least = middle + 1;
        else
            most = middle;
    }
    free(scratch);
    scratch = malloc(least);
    count = room;
    CHECK_OK(ctx, mica_encode(ctx, t, tokens, &count, text, bytes, scratch, least, NULL));
    free(scratch);
    return count;
}

/* ---- Half characters ---- */

/* A vocabulary of four tokens, the last of which is half an e-acute that is to be cut out of texts; and a character map
 * that replaces just that half by "xy". */
static gguf_bytes half_characters(const char *model, bool mapped)
{
    static const char *const words[] = {"<unk>", "a", "\xe2\x96\x81", "\xc3"};
    static const uint64_t kinds[] = {2, 1, 1, 4};
    enum { UNITS = 512, LEAF = 300 };
    gguf_bytes b = {0};
    gguf_start(&b, 3, 0, mapped ? 6 : 5);
    gguf_key(&b, "tokenizer.ggml.model", MICA_GGUF_STRING);
    gguf_string(&b, model);
    gguf_key(&b, "tokenizer.ggml.tokens", MICA_GGUF_ARRAY);
    gguf_number(&b, MICA_GGUF_STRING, 4);
    gguf_number(&b, 4, 8);
    for (int i = 0; i < 4; i++)
        gguf_string(&b, words[i]);
    gguf_key(&b, "tokenizer.ggml.token_type", MICA_GGUF_ARRAY);
    gguf_number(&b, MICA_GGUF_I32, 4);
    gguf_number(&b, 4, 8);
    for (int i = 0; i < 4; i++)
        gguf_number(&b, mapped && i == 3 ? 1 : kinds[i], 4);
    gguf_key(&b, "tokenizer.ggml.scores", MICA_GGUF_ARRAY);
    gguf_number(&b, MICA_GGUF_F32, 4);
    gguf_number(&b, 4, 8);
    for (int i = 0; i < 4; i++)
        gguf_number(&b, 0, 4);
    gguf_key(&b, "tokenizer.ggml.unknown_token_id", MICA_GGUF_U32);
    gguf_number(&b, 0, 4);
    if (!mapped)
        return b;
    gguf_key(&b, "tokenizer.ggml.precompiled_charsmap", MICA_GGUF_ARRAY);
    gguf_number(&b, MICA_GGUF_U8, 4);
    gguf_number(&b, 4 + 4 * UNITS + 3, 8);
    gguf_number(&b, 4 * UNITS, 4);
    for (uint64_t i = 0; i < UNITS; i++) /* unit 0xc3 has a leaf, which says replacement 0 */
        gguf_number(&b, i == 0xc3 ? (0xc3 ^ LEAF) << 10 | 1 << 8 | 0xc3 : 0, 4);
    gguf_put(&b, "xy", 3);
    return b;
}

static void encode_half(const char *model, bool mapped, size_t wanted)
{
    mica_context *ctx = test_context(1);
    gguf_bytes b = half_characters(model, mapped);
    mica_gguf *file = NULL;
    mica_tokenizer *t = NULL;
    int32_t tokens[64];
    if (CHECK_OK(ctx, mica_gguf_over(ctx, &file, b.bytes, b.size, "half")) &&
        CHECK_OK(ctx, mica_tokenizer_of_gguf(ctx, &t, file))) {
        size_t count = encode_tightly(ctx, t, tokens, 64,
                                      "a\xc3\xa9"
                                      "a\xc3\xa9");
        CHECK_MSG(count == wanted, "%s: %zu tokens", model, count);
        for (size_t i = 0; i < count; i++)
            CHECK(tokens[i] < 4 && (mapped || tokens[i] != 3));
    }
    mica_tokenizer_close(t);
    mica_gguf_close(file);
    gguf_free(&b);
}

TEST(tokenizer_cuts_out_no_half_characters)
{
    encode_half("bert", false, 1);  /* a word with characters that are not known */
    encode_half("t5", false, 5);    /* begins, a, unknown, a, unknown */
    encode_half("llama", false, 7); /* the same, with both bytes unknown */
}

TEST(tokenizer_maps_half_characters) { encode_half("t5", true, 5); }

/* ---- Rules that no model has together ---- */

TEST(tokenizer_escaped_spaces_as_bytes)
{
    static const char json[] =
        "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"},"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false},"
        "\"model\":{\"type\":\"BPE\",\"vocab\":{\"\xc3\xa2\":0,\"\xc4\xb8\":1,\"\xc4\xa3\":2},\"merges\":[]}}";
    mica_context *ctx = test_context(1);
    mica_tokenizer *t = NULL;
    int32_t tokens[300];
    char spaces[101];
    memset(spaces, ' ', 100);
    spaces[100] = '\0';
    REQUIRE(CHECK_OK(ctx, mica_tokenizer_over_json(ctx, &t, json, strlen(json), NULL, 0)));
    size_t count = encode_tightly(ctx, t, tokens, 300, spaces);
    CHECK_MSG(count == 300, "%zu tokens", count);
    for (size_t i = 0; i < count; i++)
        CHECK_MSG(tokens[i] == (int32_t)(i % 3), "token %zu is %d", i, (int)tokens[i]);
    mica_tokenizer_close(t);
}

TEST(tokenizer_scores_are_finite)
{
    static const char json[] = "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",-1e300]]}}";
    mica_context *ctx = test_context(1);
    mica_tokenizer *t = NULL;
    CHECK_ERROR(ctx, mica_tokenizer_over_json(ctx, &t, json, strlen(json), NULL, 0), MICA_ERR_FORMAT,
                "format error: \"tokenizer.json\": byte 36: expected a token and its score");
}

/* ---- Tokens that begin alike ---- */

TEST(tokenizer_long_special_tokens_are_no_trap)
{
    enum { TOKENS = 40, LENGTH = 1000, TEXT = 5000 };
    size_t room = TOKENS * (LENGTH + 200), at = 0;
    char *json = malloc(room), *text = malloc(TEXT);
    at += (size_t)snprintf(json, room, "{\"added_tokens\":[");
    for (int i = 0; i < TOKENS; i++) { /* a...ab, each longer than the one before */
        at += (size_t)snprintf(json + at, room - at, "%s{\"id\":%d,\"content\":\"", i > 0 ? "," : "", i + 2);
        memset(json + at, 'a', (size_t)LENGTH + (size_t)i);
        at += (size_t)LENGTH + (size_t)i;
        at += (size_t)snprintf(json + at, room - at, "b\"}");
    }
    at += (size_t)snprintf(json + at, room - at,
                           "],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"use_regex\":false},\"model\":{"
                           "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}");
    memset(text, 'a', TEXT - 1);
    text[TEXT - 2] = 'b'; /* one token ends here: the longest of them */
    text[TEXT - 1] = '\0';
    mica_context *ctx = test_context(1);
    mica_tokenizer *t = NULL;
    int32_t *tokens = malloc(TEXT * sizeof *tokens);
    if (CHECK_OK(ctx, mica_tokenizer_over_json(ctx, &t, json, at, NULL, 0))) {
        size_t count = encode_tightly(ctx, t, tokens, TEXT, text);
        CHECK_MSG(count == TEXT - 2 - (LENGTH + TOKENS - 1) + 1, "%zu tokens", count);
        CHECK(count > 0 && tokens[count - 1] == TOKENS + 1 && tokens[0] == 0);
    }
    mica_tokenizer_close(t);
    free(tokens);
    free(text);
    free(json);
}
