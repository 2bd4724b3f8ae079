/* mica info of a net: its layers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/info/info.h"
#include "cli/net/argument.h"
#include "cli/picture/text.h"
#include "net/net.h"

static void print_text(const mica_net *net, const mica_netfile_info *info, const char *what)
{
    size_t width = 5, all = 0;
    for (int i = 0; i < net->layer_count; i++)
        width = strlen(net->layers[i].name) > width ? strlen(net->layers[i].name) : width;
    put_plain(stdout, what);
    printf(": %s", mica_task_text(info->task));
    if (info->task == MICA_TASK_TEXT)
        printf(", %td tokens, %td at a time\n", info->classes, info->length);
    else
        printf(", %td output%s\n", info->classes, info->classes == 1 ? "" : "s");
    for (size_t i = 0; i < info->constant_count; i++)
        printf("%s%s = %g", i == 0 ? "constants: " : ", ", info->constants[i].name, info->constants[i].value);
    printf("%s\n%-*s  %-20s %-24s %12s %12s\n", info->constant_count > 0 ? "\n" : "", (int)width, "layer",
           "kind", "output", "parameters", "bytes");
    for (int i = 0; i < net->built_values; i++)
        if (net->values[i].kind == MICA_BUFFER_INPUT)
            printf(
                "%-*s  %-20s %-24s %12s %12s\n", (int)width, net->values[i].name, "input",
                shape_text(net->values[i].tensor.dtype, net->values[i].tensor.rank, net->values[i].tensor.dim)
                    .text,
                "", count_text((double)net->values[i].bytes).text);
    for (int i = 0; i < net->layer_count; i++) {
        const mica_value_info *out = &net->values[net->layers[i].output - 1];
        size_t count = mica_net_layer_parameters(net, i);
        all += count;
        printf("%-*s  %-20s %-24s %12s %12s\n", (int)width, net->layers[i].name, net->layers[i].kind,
               shape_text(out->tensor.dtype, out->tensor.rank, out->tensor.dim).text,
               count > 0 ? count_text((double)count).text : "", count_text((double)out->bytes).text);
    }
    printf("\n%s parameters, %s\n", count_text((double)all).text,
           size_text((double)all * sizeof(float)).text);
}

static void put_shape(const mica_tensor *t)
{
    printf("\"dtype\": \"%s\", \"shape\": [", mica_dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        printf("%s%td", i > 0 ? ", " : "", t->dim[i]);
    printf("]");
}

static void put_name(const char *name, const char *kind)
{
    printf("{\"name\": ");
    put_json(stdout, name);
    printf(", \"kind\": ");
    put_json(stdout, kind);
    printf(", ");
}

static void print_json(const mica_net *net, const mica_netfile_info *info)
{
    size_t all = 0;
    printf("{\"kind\": \"net\", \"task\": \"%s\", \"outputs\": %td, \"output\": ", mica_task_text(info->task),
           info->classes);
    put_json(stdout, info->output);
    printf(", \"constants\": {");
    for (size_t i = 0; i < info->constant_count; i++) {
        printf("%s\"%s\": ", i > 0 ? ", " : "", info->constants[i].name);
        put_json_number(stdout, info->constants[i].value);
    }
    printf("}, \"inputs\": [");
    for (int i = 0, shown = 0; i < net->built_values; i++)
        if (net->values[i].kind == MICA_BUFFER_INPUT) {
            printf("%s\n", shown++ > 0 ? "," : "");
            put_name(net->values[i].name, "input");
            put_shape(&net->values[i].tensor);
            printf("}");
        }
    printf("], \"layers\": [");
    for (int i = 0; i < net->layer_count; i++) {
        const mica_value_info *out = &net->values[net->layers[i].output - 1];
        size_t count = mica_net_layer_parameters(net, i);
        all += count;
        printf("%s\n", i > 0 ? "," : "");
        put_name(net->layers[i].name, net->layers[i].kind);
        put_shape(&out->tensor);
        printf(", \"parameters\": %zu, \"bytes\": %zu}", count, out->bytes);
    }
    printf("], \"parameters\": %zu}\n", all);
}

int info_net(mica_context *ctx, const info_settings *set, const char *what)
{
    mica_net *net;
    mica_netfile_info info;
    mica_netfile_opts opts = {.batch = set->batch};
    int code = net_build(&net, &info, &verb_info, ctx, what, &set->set, &opts);
    if (code != EXIT_OK)
        return code;
    if (set->text)
        fputs(info.text, stdout);
    else if (set->shared.json)
        print_json(net, &info);
    else
        print_text(net, &info, what);
    mica_net_destroy(net);
    return EXIT_OK;
}
