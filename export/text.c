/* Text that grows. */
#include "export/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(text *t, size_t more)
{
    if (t->failed)
        return false;
    if (t->length + more + 1 <= t->room)
        return true;
    size_t room = 2 * (t->length + more) + 256;
    char *bytes = realloc(t->bytes, room);
    if (bytes == NULL) {
        t->failed = true;
        return false;
    }
    t->bytes = bytes;
    t->room = room;
    return true;
}

void text_put_list(text *t, const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, list);
    if (length < 0)
        t->failed = true;
    else if (make_room(t, (size_t)length)) {
        vsnprintf(t->bytes + t->length, (size_t)length + 1, format, again);
        t->length += (size_t)length;
    }
    va_end(again);
}

void text_put(text *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    text_put_list(t, format, list);
    va_end(list);
}

void text_add(text *t, const char *words) { text_put(t, "%s", words); }

void text_put_comment(text *t, const char *words)
{
    for (char last = ' '; *words != '\0'; last = *words++)
        text_put(t, last == '*' && *words == '/' ? " %c" : "%c", (unsigned char)*words < ' ' ? ' ' : *words);
}

void text_put_float(text *t, float value)
{
    char digits[40];
    if (isnan(value) || isinf(value)) { /* no literal of C99 */
        text_put(t, "%s", isnan(value) ? "(0.0f / 0.0f)" : value > 0 ? "(1.0f / 0.0f)" : "(-1.0f / 0.0f)");
        return;
    }
    for (int precision = 6; precision <= 9; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, (double)value);
        if (strtof(digits, NULL) == value)
            break;
    }
    bool plain = strpbrk(digits, ".en") == NULL;
    text_put(t, "%s%sf", digits, plain ? ".0" : "");
}

void text_free(text *t)
{
    free(t->bytes);
    *t = (text){0};
}
