/* Status codes, their texts, and the error message of a context. */
#include <stdarg.h>

#include "base/context.h"
#include "base/format.h"

#define TEXT_OF(number)                   #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *mica_version(void)
{
    return VERSION_TEXT(MICA_VERSION_MAJOR, MICA_VERSION_MINOR, MICA_VERSION_PATCH);
}

const char *mica_status_text(mica_status status)
{
    static const char *const words[] = {
#define STATUS_WORDS(code, text) text,
        MICA_STATUS_LIST(STATUS_WORDS)
#undef STATUS_WORDS
    };
    return (unsigned)status < MICA_STATUS_COUNT ? words[status] : "unknown status";
}

mica_status mica_fail(mica_context *ctx, mica_status status, const char *format, ...)
{
    int used = mica_format(ctx->error, sizeof ctx->error, "%s: ", mica_status_text(status));
    va_list args;
    va_start(args, format);
    (void)mica_vformat(ctx->error + used, sizeof ctx->error - (size_t)used, format, args);
    va_end(args);
    ctx->status = status;
    return status;
}

mica_status mica_context_status(const mica_context *ctx) { return ctx->status; }

const char *mica_error(const mica_context *ctx) { return ctx->error; }
