/* The JSON reader: ends for any bytes, keeps to the text, and what it takes is well nested. */
#include <string.h>

#include "fuzz.h"
#include "io/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1); /* decoded in place, as the readers do */
    memcpy(text, data, size);
    mica_json json = mica_json_over(text, size);
    mica_json_token token;
    size_t before = 0;
    int depth = 0;
    bool done = false;
    while (!done && mica_json_next(&json, &token)) {
        uint64_t number;
        INSIST(token.offset >= before && token.offset <= size && json.at <= size);
        before = token.offset;
        depth += token.kind == MICA_JSON_ARRAY || token.kind == MICA_JSON_OBJECT;
        depth -= token.kind == MICA_JSON_ARRAY_END || token.kind == MICA_JSON_OBJECT_END;
        INSIST(depth == json.depth && depth >= 0 && depth <= MICA_JSON_DEEPEST);
        (void)mica_json_unsigned(&number, &token);
        if (token.kind == MICA_JSON_KEY || token.kind == MICA_JSON_STRING) {
            INSIST(token.text >= text && token.text + token.length < text + size);
            INSIST(mica_json_decode(text + (token.text - text), &token) <= token.length);
        }
        done = token.kind == MICA_JSON_DONE;
    }
    INSIST(done == (json.error == NULL) && (!done || depth == 0));
    INSIST(json.at <= size);
    free(text);
    return 0;
}
