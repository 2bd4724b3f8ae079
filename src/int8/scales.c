/* Scales as text: a line for each value whose range is known. */
#include <stdio.h>
#include <string.h>

#include "base/sort.h"
#include "int8/convert.h"
#include "io/number.h"
#include "io/quote.h"

#define KEY_BYTES 544

/* An input's name, or "LAYER:CALL:OUTPUT". False: the value has no range of its own. */
static bool raw_key_of(const mica_int8 *q, int value, char key[KEY_BYTES])
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

/* In one line: names of models may have any characters. */
static bool key_of(const mica_int8 *q, int value, char key[KEY_BYTES])
{
    bool has = raw_key_of(q, value, key);
    for (char *at = key; has && *at != '\0'; at++)
        *at = *at == '\n' ? ' ' : *at;
    return has;
}

size_t mica_int8_scales_print(char *text, size_t size, const mica_int8 *q)
{
    size_t length = 0;
    char key[KEY_BYTES], scale[MICA_NUMBER_ROOM];
    if (size > 0)
        text[0] = '\0';
    for (int i = 0; i < q->values; i++) {
        if (!(q->scale[i] > 0.0f) || !key_of(q, i, key))
            continue;
        bool fits = length < size;
        length += (size_t)snprintf(fits ? text + length : NULL, fits ? size - length : 0, "%s %s\n", key,
                                   mica_print_number(scale, 9, (double)q->scale[i]));
    }
    return length;
}

/* ---- Reading ---- */

/* A line of the text: a key, and a number behind the last blank. */
typedef struct scale_line {
    const char *key, *number;
    size_t key_length, number_length;
} scale_line;

static int compare_keys(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order != 0 ? order : a_length < b_length ? -1 : a_length > b_length;
}

static int compare_lines(const void *a, const void *b)
{
    const scale_line *x = a, *y = b;
    return compare_keys(x->key, x->key_length, y->key, y->key_length);
}

static size_t count_lines(const char *text)
{
    size_t lines = 1;
    for (; (text = strchr(text, '\n')) != NULL; text++)
        lines++;
    return lines;
}

/* Lines without a blank are passed over. */
static size_t split(scale_line *lines, const char *text)
{
    size_t count = 0;
    while (*text != '\0') {
        size_t length = strcspn(text, "\n"), blank = length;
        while (blank > 0 && text[blank - 1] != ' ')
            blank--;
        if (blank > 0)
            lines[count++] = (scale_line){text, text + blank, blank - 1, length - blank};
        text += length + (text[length] == '\n');
    }
    return count;
}

static const scale_line *find_line(const scale_line *lines, size_t count, const char *key)
{
    size_t first = 0, end = count, length = strlen(key);
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        int order = compare_keys(key, length, lines[middle].key, lines[middle].key_length);
        if (order == 0)
            return &lines[middle];
        if (order < 0)
            end = middle;
        else
            first = middle + 1;
    }
    return NULL;
}

/* The scale of a value; 0: it has no line. */
static mica_status read_scale(mica_int8 *q, int value, const scale_line *lines, size_t count, double *scale)
{
    char key[KEY_BYTES];
    const scale_line *found = key_of(q, value, key) ? find_line(lines, count, key) : NULL;
    *scale = 0.0;
    if (found == NULL ||
        (mica_parse_number(scale, found->number, found->number_length) && *scale >= 1e-30 && *scale <= 1e37))
        return MICA_OK;
    return mica_fail(q->ctx, MICA_ERR_FORMAT,
                     "int8: the scale of %s is %s: expected a number from 1e-30 to 1e37", MICA_QUOTE(key),
                     MICA_QUOTE_N(found->number, found->number_length));
}

/* All lines are looked at before the first scale is set. */
static mica_status read_scales(mica_int8 *q, const scale_line *lines, size_t count)
{
    double scale;
    for (int set = 0; set < 2; set++)
        for (int i = 0; i < q->values; i++) {
            MICA_TRY(read_scale(q, i, lines, count, &scale));
            q->scale[i] = set ? (float)scale : q->scale[i];
        }
    return MICA_OK;
}

mica_status mica_int8_scales_read(mica_int8 *q, const char *text)
{
    if (text == NULL)
        return mica_fail(q->ctx, MICA_ERR_ARGUMENT, "int8_scales_read: text is NULL");
    size_t bytes = count_lines(text) * sizeof(scale_line);
    scale_line *lines = mica_allocate(q->ctx, bytes);
    if (lines == NULL)
        return q->ctx->status;
    size_t count = split(lines, text);
    mica_sort(lines, count, sizeof *lines, compare_lines);
    mica_status status = read_scales(q, lines, count);
    mica_release(q->ctx, lines, bytes);
    return status;
}
