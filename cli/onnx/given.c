#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/mica.h>

#include "base/context.h"
#include "cli/onnx/given.h"
#include "io/quote.h"

mica_status given_open(given *g, mica_context *ctx, const char *path)
{
    *g = (given){.ctx = ctx};
    MICA_TRY(mica_onnx_open(ctx, &g->model, path));
    int count = mica_onnx_inputs(g->model);
    if (count > GIVEN_INPUTS)
        return mica_fail(ctx, MICA_ERR_FORMAT, "%s: %d inputs, expected at most %d", MICA_QUOTE(path), count,
                         GIVEN_INPUTS);
    for (; g->count < count; g->count++)
        MICA_TRY(mica_onnx_input(g->model, &g->input[g->count], g->count));
    return MICA_OK;
}

void given_close(given *g)
{
    for (int i = 0; i < g->count; i++) {
        mica_loaded_release(g->ctx, &g->loaded[i]);
        free(g->owned[i]);
    }
    mica_onnx_close(g->model);
    *g = (given){0};
}

int given_find(const given *g, const char *name, size_t length)
{
    for (int i = 0; i < g->count; i++)
        if (strlen(g->input[i].name) == length && memcmp(g->input[i].name, name, length) == 0)
            return i;
    return -1;
}

mica_index given_size(const given *g, const char *symbol)
{
    for (int i = 0; symbol != NULL && i < g->symbols; i++)
        if (strcmp(g->symbol[i].name, symbol) == 0)
            return g->symbol[i].size;
    return -1;
}

void given_set_size(given *g, const char *symbol, mica_index size)
{
    if (given_size(g, symbol) < 0 && g->symbols < OPTION_LIST_MOST)
        g->symbol[g->symbols++] = (mica_onnx_set){.name = symbol, .size = size};
}

void given_fill_sizes(given *g, mica_index size, mica_index apart)
{
    mica_index next = size;
    for (int i = 0; i < g->count; i++) {
        const mica_onnx_value *v = &g->input[i];
        bool nameless = false;
        for (int k = 0; k < v->rank && g->how[i] == GIVEN_NOTHING; k++) {
            const char *symbol = v->symbol[k];
            nameless = nameless || (v->dim[k] < 0 && symbol == NULL);
            if (v->dim[k] < 0 && symbol != NULL && given_size(g, symbol) < 0) {
                given_set_size(g, symbol, next);
                next += apart;
            }
        }
        if (!nameless || v->dtype == MICA_DTYPE_COUNT)
            continue;
        mica_index dims[MICA_MAX_RANK];
        for (int k = 0; k < v->rank; k++)
            dims[k] = v->dim[k] >= 0 ? v->dim[k] : size;
        if (mica_tensor_init(g->ctx, &g->value[i], NULL, v->dtype, v->rank, dims) == MICA_OK)
            g->how[i] = GIVEN_SHAPE;
    }
}

/* ---- The net ---- */

/* Inputs that must be known, and whose values are, become constants: whether there are more of them than before. */
static bool learns_more(given *g)
{
    bool more = false;
    for (int k = 0; k < mica_onnx_problems(g->model); k++) {
        mica_onnx_problem p;
        if (mica_onnx_problem_at(g->model, &p, k) != MICA_OK)
            return false;
        for (int i = 0; i < g->count; i++)
            if ((p.needs >> i & 1) != 0 && g->how[i] == GIVEN_SHAPE && g->value[i].data != NULL) {
                g->how[i] = GIVEN_VALUE;
                more = true;
            }
    }
    return more;
}

static mica_status build_once(given *g, mica_net **net, bool train)
{
    mica_onnx_set sets[GIVEN_INPUTS + OPTION_LIST_MOST];
    mica_tensor shapes[GIVEN_INPUTS];
    int count = 0;
    for (int i = 0; i < g->count; i++) {
        if (g->how[i] == GIVEN_NOTHING)
            continue;
        shapes[i] = g->value[i];
        if (g->how[i] == GIVEN_SHAPE)
            shapes[i].data = NULL;
        sets[count++] = (mica_onnx_set){.name = g->input[i].name, .value = &shapes[i]};
    }
    for (int i = 0; i < g->symbols; i++)
        sets[count++] = g->symbol[i];
    mica_status status = mica_net_create(g->ctx, net);
    if (status == MICA_OK)
        status = mica_onnx_build(
            g->model, *net,
            &(mica_onnx_opts){.sets = sets, .count = count, .train = train, .frozen = g->frozen});
    if (status != MICA_OK) {
        mica_net_destroy(*net);
        *net = NULL;
    }
    return status;
}

mica_status given_build(given *g, mica_net **net, bool train)
{
    mica_status status;
    while ((status = build_once(g, net, train)) != MICA_OK && learns_more(g))
        ;
    return status;
}

mica_status given_write(given *g, mica_net *net)
{
    mica_status status = MICA_OK;
    for (int i = 0; status == MICA_OK && i < mica_net_inputs(net); i++) {
        const char *name;
        mica_tensor t;
        status = mica_net_input_tensor(net, &name, &t, i);
        int k = status == MICA_OK ? given_find(g, name, strlen(name)) : -1;
        if (k >= 0 && g->value[k].data != NULL)
            status = mica_copy(g->ctx, &t, &g->value[k]);
    }
    return status;
}

/* ---- Why it failed ---- */

/* The size of axis k of an input, where something was said of it; -1: nothing was. */
static mica_index axis_given(const given *g, int number, int k)
{
    const mica_onnx_value *in = &g->input[number];
    if (in->dim[k] >= 0 || in->symbol[k] == NULL)
        return -1;
    return g->how[number] != GIVEN_NOTHING && g->value[number].rank == in->rank
               ? g->value[number].dim[k]
               : given_size(g, in->symbol[k]);
}

/* ", batch is 5 in "state"": the size of an axis, unless an earlier axis of that name has the same. */
static size_t add_size(char *text, size_t size, const given *g, int number, int k, bool *differ)
{
    const char *symbol = g->input[number].symbol[k];
    mica_index is = axis_given(g, number, k);
    for (int i = 0; i <= number && is >= 0; i++)
        for (int j = 0; j < (i < number ? g->input[i].rank : k); j++) {
            mica_index other = axis_given(g, i, j);
            if (other < 0 || strcmp(g->input[i].symbol[j], symbol) != 0)
                continue;
            if (other == is)
                return 0;
            *differ = true;
        }
    return is < 0 ? 0
                  : (size_t)snprintf(text, size, ", %.64s is %td in \"%.64s\"", symbol, is,
                                     g->input[number].name);
}

/* What may be wrong with the sizes, if shapes do not fit: two inputs disagree on a size; or the model was exported for
 * others. In text[size]. */
static void hint_at_sizes(char *text, size_t size, const given *g)
{
    char sizes[1024] = "";
    size_t at = 0;
    bool differ = false;
    for (int i = 0; i < g->count; i++)
        for (int k = 0; k < g->input[i].rank && at + 300 < sizeof sizes; k++)
            at += add_size(sizes + at, sizeof sizes - at, g, i, k, &differ);
    text[0] = '\0';
    if (at > 0)
        (void)snprintf(text, size, "\n%s: %s",
                       differ ? "The inputs disagree on a size"
                              : "The model may have been exported for sizes other than these",
                       sizes + 2);
}

static bool is_about_shapes(const mica_onnx_problem *p) { return strstr(p->reason, "shape error") != NULL; }

int given_build_failed(const given *g, const verb *v, const char *path)
{
    enum { SHOWN = 40 };
    char text[6000] = "", sizes[1200] = "";
    const char *fix = "";
    int count = mica_onnx_problems(g->model);
    if (count == 0 && mica_context_status(g->ctx) == MICA_ERR_ARGUMENT)
        return usage_error(v, "%s: %s (--set)", path, mica_error(g->ctx));
    if (count == 0)
        return verb_failed(v, g->ctx);
    for (int i = 0; i < count && i < SHOWN; i++) {
        mica_onnx_problem p;
        size_t at = strlen(text);
        if (mica_onnx_problem_at(g->model, &p, i) != MICA_OK)
            break;
        if (is_about_shapes(&p))
            hint_at_sizes(sizes, sizeof sizes, g);
        if (p.needs != 0)
            fix = "\nAn input that must be known is set by --set NAME=1,2,3 or --set NAME=@FILE.npy";
        (void)snprintf(text + at, sizeof text - at, "\n  %s%s%s%s: %s", p.type, *p.node != '\0' ? " \"" : "",
                       p.node, *p.node != '\0' ? "\"" : "", p.reason);
    }
    return verb_error(v, EXIT_FAILED, "%s: %d node%s cannot be imported:%s%s%s%s", path, count,
                      count == 1 ? "" : "s", text, count > SHOWN ? "\n  ..." : "", sizes, fix);
}
