/* Tokenizers with small vocabularies: every algorithm, special tokens, decoding as tokens come, chats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oom.h"
#include "test.h"
#include "text/vocabulary.h"

/* Byte-level; what is not in it has no token: enough for a few words. Bytes of e-acute are U+00C3 and U+00A9. */
#define BYTES                                                                                                        \
    "{\"added_tokens\":[{\"id\":20,\"content\":\"<|im_start|>\",\"special\":true},"                                  \
    "{\"id\":21,\"content\":\"<|im_end|>\",\"special\":true},{\"id\":22,\"content\":\"<tool>\",\"special\":false}]," \
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"model\":{\"type\":\"BPE\",\"vocab\":{"  \
    "\"h\":0,\"e\":1,\"l\":2,\"o\":3,\"he\":4,\"ll\":5,\"hell\":6,\"hello\":7,\"\\u0120\":8,\"\\u0120hello\":9,"     \
    "\"\\u0120h\":10,\"\\u00c3\":11,\"\\u00a9\":12,\"<\":13,\">\":14,\"|\":15,\"\\u010a\":16,\"s\":17,\"u\":18,"     \
    "\"r\":19,\"i\":23,\"m\":24,\"_\":25,\"n\":26,\"d\":27,\"t\":28,\"y\":29,\"a\":30},\"merges\":[\"h e\",\"l l\"," \
    "[\"he\",\"ll\"],\"hell o\",\"\\u0120 hello\"]%s}}"
#define CONFIG                                                                                                         \
    "{\"chat_template\":\"{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\\\nhello<|im_end|>\\\\n' }}" \
    "{% endif %}<|im_start|>\",\"eos_token\":{\"content\":\"<|im_end|>\"}}"

static mica_tokenizer *open_json(mica_context *ctx, const char *text, const char *config)
{
    mica_tokenizer *t = NULL;
    CHECK_OK(ctx, mica_tokenizer_over_json(ctx, &t, text, strlen(text), config,
                                           config != NULL ? strlen(config) : 0));
    return t;
}

/* The tokens are these, which end with -1; and where `back` is given, so is their text. */
static void check_tokens(mica_context *ctx, const mica_tokenizer *t, const char *text, bool special,
                         const int32_t *wanted, const char *back)
{
    int32_t got[256];
    size_t count = 256, room = mica_encode_scratch(t, strlen(text)), length = 0, want = 0;
    void *scratch = malloc(room);
    char out[1024];
    test_heap before = test_heap_now();
    mica_status status = mica_encode(ctx, t, got, &count, text, strlen(text), scratch, room,
                                     &(mica_tokenize_opts){.special = special});
    mica_decoder decoder;
    mica_decode_begin(&decoder, t, true);
    for (size_t i = 0; i < count && status == MICA_OK; i++)
        length += mica_decode_next(&decoder, out + length, sizeof out - length, got[i]);
    length += mica_decode_end(&decoder, out + length, sizeof out - length);
    if (test_heap_counted())
        CHECK(test_heap_now().calls == before.calls);
    CHECK_OK(ctx, status);
    while (wanted[want] >= 0)
        want++;
    bool same = count == want && memcmp(got, wanted, want * sizeof *got) == 0;
    CHECK_MSG(same, "\"%s\": %zu tokens, the first is %d", text, count, count > 0 ? (int)got[0] : -1);
    if (back != NULL)
        CHECK_MSG(length == strlen(back) && memcmp(out, back, length) == 0, "\"%s\" comes back as \"%.*s\"",
                  text, (int)length, out);
    free(scratch);
}

#define TOKENS(...) \
    (const int32_t[]) { __VA_ARGS__, -1 }

TEST(tokenizer_bytes_merge_by_rank)
{
    mica_context *ctx = test_context(1);
    char text[2048];
    snprintf(text, sizeof text, BYTES, "");
    mica_tokenizer *t = open_json(ctx, text, CONFIG);
    REQUIRE(t != NULL);
    check_tokens(ctx, t, "hello hello", false, TOKENS(7, 9), "hello hello");
    check_tokens(ctx, t, "hell ohe", false, TOKENS(6, 8, 3, 4), "hell ohe");
    check_tokens(ctx, t, "\xc3\xa9", false, TOKENS(11, 12), "\xc3\xa9");
    check_tokens(ctx, t, "", false, TOKENS(-1), "");
    /* Special tokens only where asked for; what the file adds as text, always. */
    check_tokens(ctx, t, "<|im_end|>", true, TOKENS(21), "<|im_end|>");
    check_tokens(ctx, t, "<|im_end|>", false, TOKENS(13, 15, 23, 24, 25, 1, 26, 27, 15, 14), "<|im_end|>");
    check_tokens(ctx, t, "he<tool>ll", false, TOKENS(4, 22, 5), "he<tool>ll");
    CHECK(mica_token_ends(t, 21) && !mica_token_ends(t, 20) && !mica_token_ends(t, -1));
    CHECK(mica_token_find(t, "hello", 5) == 7 && mica_token_find(t, "x", 1) == -1);
    mica_tokenizer_close(t);
    /* A word of the vocabulary as it is, though no merges lead there. */
    snprintf(text, sizeof text, BYTES, ",\"ignore_merges\":true");
    t = open_json(ctx, text, NULL);
    REQUIRE(t != NULL);
    check_tokens(ctx, t, " h", false, TOKENS(10), " h");
    mica_tokenizer_close(t);
}

TEST(tokenizer_decodes_whole_characters_only)
{
    mica_context *ctx = test_context(1);
    char text[2048], out[8];
    snprintf(text, sizeof text, BYTES, "");
    mica_tokenizer *t = open_json(ctx, text, NULL);
    REQUIRE(t != NULL);
    mica_decoder d;
    mica_decode_begin(&d, t, false);
    CHECK(mica_decode_next(&d, out, 8, 11) == 0); /* half of e-acute */
    CHECK(mica_decode_next(&d, out, 1, 12) == 2 &&
          d.held_bytes == 1); /* too little room: nothing has happened */
    CHECK(mica_decode_next(&d, out, 8, 12) == 2 && memcmp(out, "\xc3\xa9", 2) == 0);
    CHECK(mica_decode_next(&d, out, 8, 11) == 0);
    CHECK(mica_decode_next(&d, out, 8, 0) == 4 && memcmp(out, "\xef\xbf\xbdh", 4) == 0);
    CHECK(mica_decode_next(&d, out, 8, 21) == 0); /* a control token, not written */
    CHECK(mica_decode_next(&d, out, 8, 11) == 0 && mica_decode_end(&d, out, 8) == 3);
    CHECK(mica_decode_end(&d, out, 8) == 0);
    CHECK(mica_decode_next(&d, out, 8, 1000) == 0);
    mica_tokenizer_close(t);
}

TEST(tokenizer_says_how_much_room_it_takes)
{
    mica_context *ctx = test_context(1);
    char text[2048], scratch[8192];
    snprintf(text, sizeof text, BYTES, "");
    mica_tokenizer *t = open_json(ctx, text, NULL);
    REQUIRE(t != NULL);
    int32_t tokens[2];
    size_t count = 2;
    CHECK_ERROR(ctx, mica_encode(ctx, t, tokens, &count, "hhh", 3, scratch, sizeof scratch, NULL),
                MICA_ERR_MEMORY, "memory error: encode: the text is 3 tokens, there is room for 2");
    CHECK(count == 3);
    CHECK(mica_encode(ctx, t, tokens, &count, "hello", 5, scratch, 16, NULL) == MICA_ERR_MEMORY);
    CHECK(mica_encode_scratch(t, (size_t)1 << 40) == SIZE_MAX);
    mica_tokenizer_close(t);
}

/* A long word costs n log n: this would take hours if it were n squared. */
TEST(tokenizer_long_words_are_no_trap)
{
    mica_context *ctx = test_context(1);
    char text[2048];
    snprintf(text, sizeof text, BYTES, "");
    mica_tokenizer *t = open_json(ctx, text, NULL);
    REQUIRE(t != NULL);
    size_t bytes = 1 << 20, count = bytes, room = mica_encode_scratch(t, bytes);
    char *long_text = malloc(bytes);
    int32_t *tokens = malloc(bytes * sizeof *tokens);
    void *scratch = malloc(room);
    memset(long_text, 'l', bytes);
    CHECK_OK(ctx, mica_encode(ctx, t, tokens, &count, long_text, bytes, scratch, room, NULL));
    CHECK(count == bytes / 2 && tokens[0] == 5 && tokens[count - 1] == 5);
    free(long_text);
    free(tokens);
    free(scratch);
    mica_tokenizer_close(t);
}

TEST(tokenizer_characters_and_bytes)
{
    mica_context *ctx = test_context(1);
    mica_tokenizer *t = open_json(
        ctx,
        "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":true}],\"normalizer\":{\"type\":\"Sequence\","
        "\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"},{\"type\":\"Replace\",\"pattern\":"
        "{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]},\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,"
        "\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0,\"\xe2\x96\x81\":1,\"a\":2,\"b\":3,\"\xe2\x96\x81"
        "ab\":4,"
        "\"ab\":5,\"<0xC3>\":6,\"<0xA9>\":7},\"merges\":[\"a b\",\"\xe2\x96\x81 ab\"]}}",
        NULL);
    REQUIRE(t != NULL);
    check_tokens(ctx, t, "ab  ab", false, TOKENS(4, 1, 4), "ab  ab");
    check_tokens(ctx, t, " a", false, TOKENS(1, 1, 2), " a");
    check_tokens(ctx, t, "\xc3\xa9", false, TOKENS(1, 6, 7), "\xc3\xa9");     /* as bytes */
    check_tokens(ctx, t, "x", false, TOKENS(1, 0), NULL);                     /* which x has none of */
    check_tokens(ctx, t, "<0xC3>", false, TOKENS(1, 0, 0, 0, 0, 0, 0), NULL); /* not what names one */
    mica_tokenizer_close(t);
}

TEST(tokenizer_wordpiece)
{
    mica_context *ctx = test_context(1);
    mica_tokenizer *t = open_json(
        ctx,
        "{\"added_tokens\":[{\"id\":0,\"content\":\"[UNK]\",\"special\":true},{\"id\":1,\"content\":\"[CLS]\","
        "\"special\":true},{\"id\":2,\"content\":\"[SEP]\",\"special\":true}],\"normalizer\":{\"type\":\"BertNormalizer\","
        "\"clean_text\":true,\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},"
        "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":{\"type\":\"TemplateProcessing\","
        "\"single\":[{\"SpecialToken\":{\"id\":\"[CLS]\"}},{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":"
        "\"[SEP]\"}}]},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,"
        "\"[SEP]\":2,\"un\":3,\"##able\":4,\"##a\":5,\"!\":6,\"\xe4\xbd\xa0\":7,\"[\":8,\"]\":9,\"unk\":10,\"caf\":11,"
        "\"##e\":12}}}",
        NULL);
    REQUIRE(t != NULL);
    check_tokens(ctx, t, "Unable \xe4\xbd\xa0unable!", false, TOKENS(3, 4, 7, 3, 4, 6), NULL);
    check_tokens(ctx, t, "Caf\xc3\xa9 una unx", false, TOKENS(11, 12, 3, 5, 0), NULL);
    check_tokens(ctx, t, "[UNK]", false, TOKENS(8, 10, 9), NULL);
    check_tokens(ctx, t, "unable un", false, TOKENS(3, 4, 3), "unable un");
    int32_t got[8];
    char scratch[16384];
    size_t count = 8;
    CHECK_OK(ctx, mica_encode(ctx, t, got, &count, "un", 2, scratch, sizeof scratch,
                              &(mica_tokenize_opts){.ends = true}));
    CHECK(count == 3 && got[0] == 1 && got[1] == 3 && got[2] == 2);
    mica_tokenizer_close(t);
}

TEST(tokenizer_unigram_takes_the_best_path)
{
    mica_context *ctx = test_context(1);
    mica_tokenizer *t = open_json(
        ctx,
        "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\","
        "\"prepend_scheme\":\"always\",\"split\":true},\"model\":{\"type\":\"Unigram\","
        "\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\xe2\x96\x81\",-2.5],[\"a\",-1],[\"b\",-1],"
        "[\"ab\",-1.5],[\"\xe2\x96\x81"
        "ab\",-6],[\"abb\",-4]]}}",
        NULL);
    REQUIRE(t != NULL);
    check_tokens(ctx, t, "ab", false, TOKENS(1, 4), "ab");
    check_tokens(ctx, t, "abb", false, TOKENS(1, 4, 3), "abb");
    check_tokens(ctx, t, "a xy b", false, TOKENS(1, 2, 1, 0, 1, 3), NULL); /* unknown ones in a row are one */
    mica_tokenizer_close(t);
}

TEST(chat_marks_are_tokens_and_messages_are_not)
{
    mica_context *ctx = test_context(1);
    char text[2048];
    snprintf(text, sizeof text, BYTES, "");
    mica_tokenizer *t = open_json(ctx, text, CONFIG);
    REQUIRE(t != NULL);
    const mica_chat_message messages[] = {{"user", "hello<|im_end|>"}};
    size_t room = mica_chat_scratch(t, messages, 1), count = 128;
    void *scratch = malloc(room);
    int32_t got[128];
    CHECK_OK(ctx, mica_chat_encode(ctx, t, got, &count, messages, 1, scratch, room));
    /* The template's own system message first; the text of the mark in the message stays text. */
    const int32_t wanted[] = {20, 17, 29, 17, 28, 1,  24, 16, 7,  21, 16, 20, 18, 17,
                              1,  19, 16, 7,  13, 15, 23, 24, 25, 1,  26, 27, 15, 14,
                              21, 16, 20, 30, 17, 17, 23, 17, 28, 30, 26, 28, 16};
    CHECK(count == sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < count && i < sizeof wanted / sizeof wanted[0]; i++)
        CHECK_MSG(got[i] == wanted[i], "token %zu is %d, wanted %d", i, (int)got[i], (int)wanted[i]);
    const mica_chat_message wrong[] = {{"tool", "x"}};
    CHECK_ERROR(
        ctx, mica_chat_encode(ctx, t, got, &count, wrong, 1, scratch, room), MICA_ERR_ARGUMENT,
        "argument error: chat: message 0: the role \"tool\"; expected system, user or assistant, and a text");
    mica_tokenizer_close(t);
    t = open_json(ctx, text, "{\"chat_template\":\"{{ anything }}\"}");
    CHECK_ERROR(ctx, mica_chat_encode(ctx, t, got, &count, messages, 1, scratch, room), MICA_ERR_FORMAT,
                "format error: chat: the model's chat template is of no family that is known");
    mica_tokenizer_close(t);
    free(scratch);
}

static mica_status open_and_close(const mica_allocator *allocator, void *argument)
{
    mica_context *ctx;
    mica_status status = mica_context_create(&ctx, &(mica_context_opts){.allocator = allocator});
    if (status != MICA_OK)
        return status;
    mica_tokenizer *t;
    status = mica_tokenizer_over_json(ctx, &t, argument, strlen(argument), CONFIG, strlen(CONFIG));
    mica_tokenizer_close(t);
    mica_context_destroy(ctx);
    return status;
}

TEST(tokenizer_without_memory)
{
    char text[2048];
    snprintf(text, sizeof text, BYTES, "");
    CHECK(test_oom(open_and_close, text) > 5);
}

TEST(tokenizer_json_says_what_is_wrong)
{
    mica_context *ctx = test_context(1);
#define AT "format error: \"tokenizer.json\": byte "
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", AT "0: the text ends too early"},
        {"[]", AT "0: expected an object"},
        {"{}", AT "0: expected a \"model\""},
        {"{\"model\":{\"type\":\"WordLevel\"}}", AT "17: the model \"WordLevel\" is not known"},
        {"{\"model\":{\"type\":\"BPE\"},\"normalizer\":{\"type\":\"NFKC\"}}",
         AT "45: the normalizer \"NFKC\" is not known"},
        {"{\"model\":{\"type\":\"BPE\"},\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x+\"},"
         "\"behavior\":\"Isolated\"}}",
         AT "75: the pattern of this Split is not known"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":99999}}}",
         AT "31: 2 tokens have numbers up to 100000"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}",
         AT "38: token 0 is \"a\" and \"b\""},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1}}}", AT "36: expected the number of a token"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"aa\"]}}",
         AT "49: a merge without a space"},
        {"{\"model\":{\"type\":\"BPE\"},\"model\":{}}", AT "24: \"model\" a second time"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mica_tokenizer *t = NULL;
        CHECK_ERROR(ctx, mica_tokenizer_over_json(ctx, &t, cases[i].text, strlen(cases[i].text), NULL, 0),
                    MICA_ERR_FORMAT, cases[i].error);
        CHECK(t == NULL);
    }
}
