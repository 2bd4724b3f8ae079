/* tokenizer.json: any bytes are an error, or a tokenizer that encodes and decodes any text. The first line is the file,
 * what follows the text. */
#include <string.h>

#include "fuzz.h"
#include "text/vocabulary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *line = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t file = line != NULL ? (size_t)(line - data) : size, length = line != NULL ? size - file - 1 : 0;
    const char *text = line != NULL ? (const char *)line + 1 : "";
    mica_context *ctx;
    INSIST(mica_context_create(&ctx, NULL) == MICA_OK);
    mica_tokenizer *t;
    if (mica_tokenizer_over_json(ctx, &t, (const char *)data, file, "{}", 2) == MICA_OK) {
        size_t room = mica_encode_scratch(t, length), count = 16 * (length + 1);
        void *scratch = malloc(room);
        int32_t *tokens = malloc(count * sizeof *tokens);
        mica_status status = mica_encode(ctx, t, tokens, &count, text, length, scratch, room,
                                         &(mica_tokenize_opts){.special = true, .ends = true});
        INSIST(status == MICA_OK || count > 16 * (length + 1));
        mica_decoder decoder;
        mica_decode_begin(&decoder, t, true);
        char out[64];
        for (size_t i = 0; status == MICA_OK && i < count; i++) {
            INSIST(tokens[i] >= 0 && tokens[i] < mica_tokenizer_about(t)->count);
            (void)mica_decode_next(&decoder, out, sizeof out, tokens[i]);
        }
        INSIST(mica_decode_end(&decoder, out, sizeof out) <= 3);
        free(tokens);
        free(scratch);
        mica_tokenizer_close(t);
    }
    mica_context_destroy(ctx);
    return 0;
}
