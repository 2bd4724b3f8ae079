/* What is set before an import has a name that the model has. */
#include <string.h>

#include "base/format.h"
#include "io/quote.h"
#include "onnx/state.h"

/* "a, b, c" */
typedef struct name_list {
    char text[400];
    size_t used;
} name_list;

static void list(name_list *l, const char *name)
{
    char item[160];
    (void)mica_format(item, sizeof item, "%s%s", l->used > 0 ? ", " : "", MICA_QUOTE(name));
    size_t length = strlen(item);
    if (l->used + length >= sizeof l->text)
        return;
    memcpy(l->text + l->used, item, length + 1);
    l->used += length;
}

static bool is_listed_before(const mica_onnx_graph *g, int input, int axis)
{
    const char *symbol = g->inputs[input].is.symbol[axis];
    for (int i = 0; i <= input; i++)
        for (int k = 0; k < (i < input ? g->inputs[i].is.rank : axis); k++)
            if (g->inputs[i].is.symbol[k] != NULL && strcmp(g->inputs[i].is.symbol[k], symbol) == 0)
                return true;
    return false;
}

/* Whether the model has this size, and the sizes that it has. */
static bool has_size(const mica_onnx_graph *g, const char *name, name_list *all)
{
    bool found = false;
    for (int i = 0; i < g->input_count; i++)
        for (int k = 0; k < g->inputs[i].is.rank; k++) {
            const char *symbol = g->inputs[i].is.symbol[k];
            found = found || (symbol != NULL && strcmp(symbol, name) == 0);
            if (symbol != NULL && !is_listed_before(g, i, k))
                list(all, symbol);
        }
    return found;
}

static bool has_input(const mica_onnx_graph *g, const char *name, name_list *all)
{
    bool found = false;
    for (int i = 0; i < g->input_count; i++) {
        found = found || strcmp(g->inputs[i].is.name, name) == 0;
        list(all, g->inputs[i].is.name);
    }
    return found;
}

void mica_onnx_check_sets(mica_onnx_import *im)
{
    const mica_onnx *model = im->model;
    for (int i = 0; i < im->opts->count && im->status == MICA_OK; i++) {
        const mica_onnx_set *s = &im->opts->sets[i];
        name_list all = {.used = 0};
        if (s->name == NULL || (s->value != NULL ? has_input : has_size)(&model->graph, s->name, &all))
            continue;
        im->status = mica_fail(im->ctx, MICA_ERR_ARGUMENT, "onnx: %s has no %s %s, which is set: it has %s",
                               MICA_QUOTE(model->path), s->value != NULL ? "input" : "size",
                               MICA_QUOTE(s->name), all.used > 0 ? all.text : "none");
    }
}
