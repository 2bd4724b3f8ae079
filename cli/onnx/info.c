/* mica info of ONNX models. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/take.h"
#include "cli/onnx/given.h"
#include "cli/onnx/onnx.h"
#include "cli/picture/text.h"
#include "onnx/import.h"

/* How many nodes of a type there are. */
typedef struct type_count {
    const char *domain, *type;
    int count;
} type_count;

typedef struct type_list {
    type_count *list;
    size_t count, room;
} type_list;

static void count_type(type_list *to, const mica_onnx_node *node)
{
    for (size_t i = 0; i < to->count; i++)
        if (strcmp(to->list[i].type, node->type) == 0 && strcmp(to->list[i].domain, node->domain) == 0) {
            to->list[i].count++;
            return;
        }
    to->list = take_more(to->list, to->count, &to->room, sizeof *to->list);
    to->list[to->count++] = (type_count){node->domain, node->type, 1};
}

/* With those of subgraphs; their depth is limited by the parser. */
static void count_graph(type_list *to, const mica_onnx_graph *graph)
{
    for (int i = 0; i < graph->node_count; i++) {
        const mica_onnx_node *node = &graph->nodes[i];
        count_type(to, node);
        for (int k = 0; k < node->attribute_count; k++)
            if (node->attributes[k].g != NULL)
                count_graph(to, node->attributes[k].g);
    }
}

static int by_count(const void *a, const void *b)
{
    const type_count *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count) - (x->count > y->count) : strcmp(x->type, y->type);
}

/* As the import finds operators and functions. A domain that the model does not name has version 1. */
static bool is_supported(const mica_onnx *model, const type_count *t)
{
    int64_t version = 1;
    for (int i = 0; i < model->function_count; i++)
        if (strcmp(model->functions[i].name, t->type) == 0 &&
            strcmp(model->functions[i].domain, t->domain) == 0)
            return true;
    for (int i = 0; i < model->opset_count; i++)
        if (strcmp(model->opsets[i].domain, t->domain) == 0)
            version = model->opsets[i].version < INT32_MAX ? model->opsets[i].version : INT32_MAX;
    return mica_onnx_operator_for(t->domain, t->type, (int)version) != NULL;
}

/* ---- Text ---- */

static void put_value(const char *what, const mica_onnx_value *v)
{
    printf("%-7s ", what);
    put_plain_up_to(stdout, v->name, 60);
    printf("  %s ", v->type);
    for (int i = 0; i < v->rank; i++) {
        printf("%s", i > 0 ? ", " : "[");
        if (v->dim[i] >= 0)
            printf("%td", v->dim[i]);
        else
            put_plain_up_to(stdout, v->symbol[i] != NULL ? v->symbol[i] : "?", 40);
    }
    printf(v->rank < 0 ? "of any shape\n" : v->rank == 0 ? "[]\n" : "]\n");
}

static void put_problems(const mica_onnx *model, mica_status status, const char *error)
{
    int count = mica_onnx_problems(model);
    if (status == MICA_OK) {
        printf("\nall of it can be imported\n");
        return;
    }
    if (count == 0)
        printf("\ncannot be imported as it is: ");
    if (count == 0)
        put_message(stdout, error);
    else
        printf("\ncannot be imported: %d node%s", count, count == 1 ? "" : "s");
    printf("\n");
    for (int i = 0; i < count; i++) {
        mica_onnx_problem p;
        if (mica_onnx_problem_at(model, &p, i) != MICA_OK)
            return;
        char type[64];
        printf("  %-20s ", plain_text(type, sizeof type, p.type));
        put_plain_up_to(stdout, p.node, 60);
        printf("%s", *p.node != '\0' ? ": " : "");
        put_plain(stdout, p.reason);
        printf("\n");
    }
}

static void put_about(const given *g, const char *path, const type_list *types, mica_status status)
{
    const mica_onnx *model = g->model;
    mica_onnx_about about = mica_onnx_describe(model);
    mica_onnx_value v;
    put_plain(stdout, path);
    printf(": ONNX, IR version %lld, opset %d", (long long)about.ir_version, about.opset);
    printf("%s", *about.producer != '\0' ? ", by " : "");
    put_plain_up_to(stdout, about.producer, 60);
    printf("\n\n");
    for (int i = 0; i < mica_onnx_inputs(model) && mica_onnx_input(model, &v, i) == MICA_OK; i++)
        put_value("input", &v);
    for (int i = 0; i < mica_onnx_outputs(model) && mica_onnx_output(model, &v, i) == MICA_OK; i++)
        put_value("output", &v);
    printf("\n%d nodes, %d weights, %s\n\n", about.nodes, about.initializers,
           size_text((double)about.weight_bytes).text);
    for (size_t i = 0; i < types->count; i++) {
        const type_count *t = &types->list[i];
        printf("%7d  ", t->count);
        put_plain_up_to(stdout, t->domain, 60);
        printf("%s", *t->domain != '\0' ? ":" : "");
        put_plain_up_to(stdout, t->type, 60);
        printf("%s\n", is_supported(model, t) ? "" : "  (not supported)");
    }
    put_problems(model, status, mica_error(g->ctx));
}

/* ---- JSON ---- */

static void put_value_json(const mica_onnx_value *v, bool first)
{
    printf("%s\n{\"name\": ", first ? "" : ",");
    put_json(stdout, v->name);
    printf(", \"type\": ");
    put_json(stdout, v->type);
    printf(", \"dtype\": ");
    printf(v->dtype == MICA_DTYPE_COUNT ? "null" : "\"%s\"", mica_dtype_name(v->dtype));
    printf(", \"shape\": %s", v->rank < 0 ? "null}" : "[");
    for (int i = 0; i < v->rank; i++) {
        printf("%s", i > 0 ? ", " : "");
        if (v->dim[i] >= 0)
            printf("%td", v->dim[i]);
        else if (v->symbol[i] != NULL)
            put_json(stdout, v->symbol[i]);
        else
            printf("null");
    }
    printf(v->rank < 0 ? "" : "]}");
}

static void put_problems_json(const given *g, mica_status status)
{
    int count = mica_onnx_problems(g->model);
    printf("], \"supported\": %s, \"problems\": [", status == MICA_OK ? "true" : "false");
    for (int i = 0; i < count; i++) {
        mica_onnx_problem p;
        if (mica_onnx_problem_at(g->model, &p, i) != MICA_OK)
            break;
        printf("%s\n{\"node\": ", i > 0 ? "," : "");
        put_json(stdout, p.node);
        printf(", \"type\": ");
        put_json(stdout, p.type);
        printf(", \"reason\": ");
        put_json(stdout, p.reason);
        printf("}");
    }
    if (status != MICA_OK && count == 0) {
        printf("\n{\"node\": \"\", \"type\": \"\", \"reason\": ");
        put_json(stdout, mica_error(g->ctx));
        printf("}");
    }
    printf("]}\n");
}

static void put_all_json(const given *g, const type_list *types, mica_status status)
{
    const mica_onnx *model = g->model;
    mica_onnx_about about = mica_onnx_describe(model);
    mica_onnx_value v;
    printf("{\"kind\": \"onnx\", \"ir_version\": %lld, \"opset\": %d, \"producer\": ",
           (long long)about.ir_version, about.opset);
    put_json(stdout, about.producer);
    printf(", \"nodes\": %d, \"weights\": %d, \"weight_bytes\": %zu, \"inputs\": [", about.nodes,
           about.initializers, about.weight_bytes);
    for (int i = 0; i < mica_onnx_inputs(model) && mica_onnx_input(model, &v, i) == MICA_OK; i++)
        put_value_json(&v, i == 0);
    printf("], \"outputs\": [");
    for (int i = 0; i < mica_onnx_outputs(model) && mica_onnx_output(model, &v, i) == MICA_OK; i++)
        put_value_json(&v, i == 0);
    printf("], \"operators\": [");
    for (size_t i = 0; i < types->count; i++) {
        const type_count *t = &types->list[i];
        printf("%s\n{\"domain\": ", i > 0 ? "," : "");
        put_json(stdout, t->domain);
        printf(", \"type\": ");
        put_json(stdout, t->type);
        printf(", \"count\": %d, \"supported\": %s}", t->count, is_supported(model, t) ? "true" : "false");
    }
    put_problems_json(g, status);
}

int onnx_info(mica_context *ctx, const verb *v, const option_list *set, const char *path, bool json)
{
    given *g = take(1, sizeof *g);
    mica_net *net = NULL;
    type_list types = {0};
    int code = given_open(g, ctx, path) == MICA_OK ? given_sets(g, v, set) : verb_failed(v, ctx);
    if (code == EXIT_OK) {
        count_graph(&types, &g->model->graph);
        qsort(types.list, types.count, sizeof *types.list, by_count);
        given_fill_sizes(g, 1, 0);
        mica_status status = given_build(g, &net, false);
        if (json)
            put_all_json(g, &types, status);
        else
            put_about(g, path, &types, status);
    }
    free(types.list);
    mica_net_destroy(net);
    given_close(g);
    free(g);
    return code;
}
