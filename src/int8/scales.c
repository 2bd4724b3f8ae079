/* Scales as text: a line for each value whose range is known. */
#include <stdio.h>
#include <string.h>

#include "int8/convert.h"
#include "io/number.h"

#define KEY_BYTES 544

/* An input's name, or "LAYER:CALL:OUTPUT". False: the value has no range of its own. */
static bool key_of(const mica_int8 *q, int value, char key[KEY_BYTES])
{
    const mica_net *net = q->net;
    const mica_value_info *v = &net->values[value];
    if (v->home != MICA_HOME_PLANNED || v->root != value || v->tensor.dtype != MICA_F32)
        return false;
    if (v->maker == NONE) {
        (void)snprintf(key, KEY_BYTES, "%s", v->name != NULL ? v->name : "");
        return v->name != NULL;
    }
    int layer = net->nodes[v->maker].layer, call = v->maker;
    if (layer == NONE)
        return false;
    while (call > 0 && net->nodes[call - 1].layer == layer)
        call--;
    (void)snprintf(key, KEY_BYTES, "%s:%d:%d", net->layers[layer].name, v->maker - call, v->number);
    return true;
}

size_t mica_int8_scales_print(char *text, size_t size, const mica_int8 *q)
{
    size_t length = 0;
    char key[KEY_BYTES];
    if (size > 0)
        text[0] = '\0';
    for (int i = 0; i < q->values; i++) {
        if (!(q->scale[i] > 0.0f) || !key_of(q, i, key))
            continue;
        bool fits = length < size;
        length += (size_t)snprintf(fits ? text + length : NULL, fits ? size - length : 0, "%s %.9g\n", key,
                                   (double)q->scale[i]);
    }
    return length;
}

/* The scale behind a key, on a line of its own; NULL: it is not there. */
static const char *find_line(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *at = text; (at = strstr(at, key)) != NULL; at += length)
        if ((at == text || at[-1] == '\n') && at[length] == ' ')
            return at + length + 1;
    return NULL;
}

mica_status mica_int8_scales_read(mica_int8 *q, const char *text)
{
    char key[KEY_BYTES];
    if (text == NULL)
        return mica_fail(q->ctx, MICA_ERR_ARGUMENT, "int8_scales_read: text is NULL");
    for (int i = 0; i < q->values; i++) {
        q->scale[i] = 0.0f;
        const char *found = key_of(q, i, key) ? find_line(text, key) : NULL;
        if (found == NULL)
            continue;
        double scale = 0.0;
        size_t length = strcspn(found, "\n");
        if (!mica_parse_number(&scale, found, length) || !(scale >= 1e-30 && scale <= 1e30))
            return mica_fail(q->ctx, MICA_ERR_FORMAT,
                             "int8: the scale of \"%.100s\" is \"%.20s\": expected a number above 0", key,
                             found);
        q->scale[i] = (float)scale;
    }
    return MICA_OK;
}
