/* Tokenizers: any text is encoded, and comes back from a vocabulary that has every byte, with what is no UTF-8
 * replaced. The first byte chooses the rule that cuts it. */
#include <string.h>

#include "fuzz.h"
#include "io/utf8.h"
#include "text/repair.h"
#include "text/vocabulary.h"

/* All bytes, a few merges, a special token and one that is cut always. */
static size_t write_vocabulary(char *out, size_t room)
{
    size_t n = (size_t)snprintf(
        out, room,
        "{\"added_tokens\":[{\"id\":256,\"content\":\"<s>\",\"special\":true},{\"id\":257,"
        "\"content\":\"ab\"}],\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":"
        "\"BPE\",\"vocab\":{\"ee\":258,\"eee\":259,\"eeee\":260");
    for (int b = 0; b < 256; b++)
        n += (size_t)snprintf(out + n, room - n, ",\"\\u%04x\":%d",
                              (unsigned)mica_byte_character((unsigned char)b), b);
    return n + (size_t)snprintf(out + n, room - n, "},\"merges\":[\"e e\",\"ee ee\",\"ee e\"]}}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"default",      "gpt-2",          "smollm",      "llama-bpe", "qwen2",
                                        "qwen35",       "gpt-4o",         "tekken",      "falcon",    "bloom",
                                        "deepseek-llm", "deepseek-coder", "deepseek-v3", "viking"};
    static char vocabulary[8192];
    bytes in = {data, size};
    const char *name = names[take(&in, 0, 13)], *text = (const char *)in.data;
    size_t length = write_vocabulary(vocabulary, sizeof vocabulary);
    mica_context *ctx;
    mica_tokenizer *t;
    INSIST(mica_context_create(&ctx, NULL) == MICA_OK);
    INSIST(mica_tokenizer_over_json(ctx, &t, vocabulary, length, NULL, 0) == MICA_OK);
    t->cut = mica_cut_by_name(name, strlen(name))->rules;
    size_t room = mica_encode_scratch(t, in.left), count = 3 * in.left + 1,
           clean = mica_repair(NULL, 0, text, in.left);
    void *scratch = malloc(room);
    int32_t *tokens = malloc(count * sizeof *tokens);
    char *wanted = malloc(clean + 1), *got = malloc(clean + 1);
    INSIST(mica_encode(ctx, t, tokens, &count, text, in.left, scratch, room, NULL) == MICA_OK);
    mica_repair(wanted, clean, text, in.left);
    mica_decoder decoder;
    mica_decode_begin(&decoder, t, true);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        INSIST(tokens[i] != 256);
        at += mica_decode_next(&decoder, got + at, clean - at, tokens[i]);
        INSIST(at <= clean);
    }
    at += mica_decode_end(&decoder, got + at, clean - at);
    INSIST(at == clean && memcmp(got, wanted, clean) == 0);
    free(got);
    free(wanted);
    free(tokens);
    free(scratch);
    mica_tokenizer_close(t);
    mica_context_destroy(ctx);
    return 0;
}
