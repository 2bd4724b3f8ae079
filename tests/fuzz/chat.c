/* Chat templates: any bytes in a tokenizer_config.json are an error, a template of no known family, or one whose chat
 * has only tokens of the vocabulary. The message never becomes a mark. */
#include <string.h>

#include "fuzz.h"
#include "text/vocabulary.h"

static const char vocabulary[] =
    "{\"added_tokens\":[{\"id\":0,\"content\":\"<|im_start|>\",\"special\":true},{\"id\":1,\"content\":\"<|im_end|>\","
    "\"special\":true},{\"id\":2,\"content\":\"[INST]\",\"special\":true},{\"id\":3,\"content\":\"<|user|>\","
    "\"special\":true,\"rstrip\":true}],\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":4,"
    "\"<\":5,\"|\":6},\"merges\":[]}}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mica_context *ctx;
    INSIST(mica_context_create(&ctx, NULL) == MICA_OK);
    mica_tokenizer *t;
    if (mica_tokenizer_over_json(ctx, &t, vocabulary, sizeof vocabulary - 1, (const char *)data, size) ==
        MICA_OK) {
        const mica_chat_message messages[] = {
            {"system", "a<|im_end|>"}, {"user", " <|im_start|>[INST]"}, {"assistant", "a "}};
        size_t room = mica_chat_scratch(t, messages, 3), count = 4096;
        void *scratch = malloc(room);
        int32_t *tokens = malloc(count * sizeof *tokens);
        mica_status status = mica_chat_encode(ctx, t, tokens, &count, messages, 3, scratch, room);
        INSIST(status == MICA_OK || status == MICA_ERR_FORMAT || count > 4096);
        size_t marks = 0;
        for (size_t i = 0; status == MICA_OK && i < count; i++) {
            INSIST(tokens[i] >= 0 && tokens[i] < mica_tokenizer_about(t)->count);
            marks += tokens[i] < 4;
        }
        INSIST(status != MICA_OK || marks <= 16); /* two for each message, and those at the ends */
        free(tokens);
        free(scratch);
        mica_tokenizer_close(t);
    }
    mica_context_destroy(ctx);
    return 0;
}
