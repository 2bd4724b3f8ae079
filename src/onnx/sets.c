/* What is set before an import has a name that the model has. */
#include <string.h>

#include "base/format.h"
#include "io/quote.h"
#include "onnx/state.h"

#define MOST_LISTED 300 /* bytes of names, about, in a message */

/* "a, b, c" */
typedef struct name_list {
    char text[MOST_LISTED + 100];
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

static bool has_size(const mica_onnx_graph *g, const char *name)
{
    for (int i = 0; i < g->input_count; i++)
        for (int k = 0; k < g->inputs[i].is.rank; k++)
            if (g->inputs[i].is.symbol[k] != NULL && strcmp(g->inputs[i].is.symbol[k], name) == 0)
                return true;
    return false;
}

static bool has_input(const mica_onnx_graph *g, const char *name)
{
    for (int i = 0; i < g->input_count; i++)
        if (strcmp(g->inputs[i].is.name, name) == 0)
            return true;
    return false;
}

/* The first of them: as many as there is room for. */
static void list_sizes(name_list *all, const mica_onnx_graph *g)
{
    for (int i = 0; i < g->input_count && all->used < MOST_LISTED; i++)
        for (int k = 0; k < g->inputs[i].is.rank; k++)
            if (g->inputs[i].is.symbol[k] != NULL && !is_listed_before(g, i, k))
                list(all, g->inputs[i].is.symbol[k]);
}

static void list_inputs(name_list *all, const mica_onnx_graph *g)
{
    for (int i = 0; i < g->input_count && all->used < MOST_LISTED; i++)
        list(all, g->inputs[i].is.name);
}

void mica_onnx_check_sets(mica_onnx_import *im)
{
    const mica_onnx *model = im->model;
    for (int i = 0; i < im->opts->count && im->status == MICA_OK; i++) {
        const mica_onnx_set *s = &im->opts->sets[i];
        if (s->name == NULL || (s->value != NULL ? has_input : has_size)(&model->graph, s->name))
            continue;
        name_list all = {.used = 0};
        (s->value != NULL ? list_inputs : list_sizes)(&all, &model->graph);
        const char *what = s->value != NULL ? "input" : "size";
        im->status = mica_fail(im->ctx, MICA_ERR_ARGUMENT, "onnx: %s has no %s %s to set; its %ss: %s",
                               MICA_QUOTE(model->path), what, MICA_QUOTE(s->name), what,
                               all.used > 0 ? all.text : "none");
    }
}
