/* Which layers of a net stay float, so that they can go on learning on top of those in bytes. */
#include <stdlib.h>
#include <string.h>

#include "cli/model/int8.h"
#include "cli/model/take.h"

static bool is_frozen(const char *layer, const option_list *freeze)
{
    size_t length = strlen(layer);
    for (size_t i = 0; i < freeze->count; i++) {
        const char *prefix = freeze->item[i];
        size_t size = strlen(prefix);
        if (strncmp(prefix, layer, size < length ? size : length) == 0 &&
            (size <= length || prefix[length] == '.'))
            return true;
    }
    return false;
}

static const char *layer_name(const mica_net *net, int number)
{
    const char *name = "", *kind;
    mica_value output;
    return mica_net_layer(net, &name, &kind, &output, number) == MICA_OK ? name : "";
}

/* The first layer with parameters that are not frozen; the number of layers if there is none. */
static int first_learning(const mica_net *net, const option_list *freeze)
{
    int n = 0;
    while (n < mica_net_layers(net) &&
           (mica_net_layer_parameters(net, n) == 0 || is_frozen(layer_name(net, n), freeze)))
        n++;
    return n;
}

const char *int8_first_layer_learns(const mica_net *net, const option_list *freeze)
{
    int n = 0;
    while (n < mica_net_layers(net) && mica_net_layer_parameters(net, n) == 0)
        n++;
    return n == first_learning(net, freeze) ? layer_name(net, n) : NULL;
}

/* Whether a line "LAYER:CALL:OUTPUT SCALE" is about one of the layers from `first` on. */
static bool is_of(const mica_net *net, int first, const char *line)
{
    for (int n = first; n < mica_net_layers(net); n++) {
        const char *name = layer_name(net, n);
        size_t length = strlen(name);
        if (length > 0 && strncmp(line, name, length) == 0 && line[length] == ':')
            return true;
    }
    return false;
}

mica_status int8_keep_floats(mica_int8 *q, const mica_net *net, const option_list *freeze)
{
    size_t length = mica_int8_scales_print(NULL, 0, q);
    char *text = take(length + 1, 1), *to = text;
    (void)mica_int8_scales_print(text, length + 1, q);
    int first = first_learning(net, freeze);
    for (char *line = text, *end; *line != '\0'; line = end) {
        end = strchr(line, '\n');
        end = end != NULL ? end + 1 : line + strlen(line);
        if (is_of(net, first, line))
            continue;
        memmove(to, line, (size_t)(end - line));
        to += end - line;
    }
    *to = '\0';
    mica_status status = mica_int8_scales_read(q, text);
    free(text);
    return status;
}
