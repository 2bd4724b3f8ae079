#include "text/vocabulary.h"
mica_status mica_tokenizer_of_json(mica_context *ctx, mica_tokenizer **out, const char *path)
{
    *out = NULL;
    return mica_fail(ctx, MICA_ERR_FORMAT, "%s", path);
}
