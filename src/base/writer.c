#include "base/writer.h"
#include "base/format.h"

#include <stdarg.h>

void mica_put(mica_writer *w, const char *format, ...)
{
    size_t room = w->length < w->size ? w->size - w->length : 0;
    va_list args;
    va_start(args, format);
    int length = mica_vformat(room > 0 ? w->text + w->length : NULL, room, format, args);
    va_end(args);
    w->length += length > 0 ? (size_t)length : 0;
}
