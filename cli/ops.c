/* mica ops: the operations of the library, from their entries. */
#include <stdio.h>
#include <string.h>

#include <mica/op.h>

#include "cli/net/words.h"
#include "cli/onnx/onnx.h"
#include "cli/picture/text.h"
#include "cli/verb.h"
#include "netfile/operations.h"

typedef struct settings {
    shared_settings shared;
    bool onnx;
} settings;

static const verb_option options[] = {
    {.name = "--onnx",
     OPTION_FLAG,
     offsetof(settings, onnx),
     NULL,
     "list the operators of ONNX that can be imported, by family"},
};

static const char *const kinds[] = {
    [MICA_FIELD_INT] = "int",       [MICA_FIELD_INDEX] = "index",   [MICA_FIELD_FLOAT] = "float",
    [MICA_FIELD_DOUBLE] = "double", [MICA_FIELD_BOOL] = "bool",     [MICA_FIELD_ACTIVATION] = "activation",
    [MICA_FIELD_DTYPE] = "dtype",   [MICA_FIELD_CHOICE] = "choice", [MICA_FIELD_LENGTH] = "length",
};

/* Whether an operation has a gradient: of its own, or as a view, whose gradient is a view. */
static bool has_gradient(const mica_op *op)
{
    return op->gradient != NULL || (op->flags & MICA_OP_VIEW) != 0;
}

static int number_of(const mica_op *op)
{
    int number = 0;
    while (mica_op_at(number) != op)
        number++;
    return number;
}

/* ---- Text ---- */

static void print_line(const mica_op *op)
{
    char signature[160];
    operation_signature(signature, sizeof signature, op);
    printf("%-32s %-12s %-40s %s\n", op->name, op->family, signature, op->about);
}

static void print_one(const mica_op *op)
{
    char signature[160];
    operation_signature(signature, sizeof signature, op);
    printf("%s: %s\n\n", op->name, op->about);
    printf("  %-12s %s\n", "values", signature);
    if (strcmp(op->family, "composed") == 0)
        printf("  %-12s %s: made of other operations, through mica_op_run and nets\n", "family", op->family);
    else
        printf("  %-12s %s, include/mica/ops/%s.h\n", "family", op->family, op->family);
    printf("  %-12s %s\n", "gradient", has_gradient(op) ? "yes" : "none");
    bool own = mica_netfile_operation(number_of(op)) != NULL;
    bool layer = mica_find_word(op->name, strlen(op->name)) != NULL;
    char usage[160];
    mica_operation_usage(usage, sizeof usage, op);
    printf("  %-12s %s\n", "net files",
           own     ? usage
           : layer ? "the layer of this name (mica help layers)"
                   : "not a word of them");
    if (op->field_count > 0)
        printf("\noptions:\n");
    for (int f = 0; f < op->field_count; f++) {
        const mica_field *field = &op->fields[f];
        char kind[32];
        if (field->kind == MICA_FIELD_LENGTH)
            continue;
        snprintf(kind, sizeof kind, field->count > 0 ? "%s[%d]" : "%s", kinds[field->kind], field->count);
        printf("  %-14s %-12s %s\n", field->name, kind, field->about);
    }
}

/* ---- JSON ---- */

static void json_values(const mica_op *op, int first, int count, unsigned optional)
{
    printf("[");
    for (int i = 0; i < count; i++) {
        printf("%s{\"name\": ", i > 0 ? ", " : "");
        put_json(stdout, operation_value(op, first + i));
        printf(", \"optional\": %s}", optional >> i & 1u ? "true" : "false");
    }
    printf("]");
}

static void json_fields(const mica_op *op)
{
    printf("[");
    for (int f = 0; f < op->field_count; f++) {
        const mica_field *field = &op->fields[f];
        printf("%s{\"name\": ", f > 0 ? ", " : "");
        put_json(stdout, field->name);
        printf(", \"kind\": \"%s\", \"count\": %d, \"about\": ", kinds[field->kind], field->count);
        put_json(stdout, field->about);
        printf("}");
    }
    printf("]");
}

static void print_json(const mica_op *op)
{
    int ins = op->ins + op->optional_ins;
    printf("{\"name\": ");
    put_json(stdout, op->name);
    printf(", \"family\": ");
    put_json(stdout, op->family);
    printf(", \"about\": ");
    put_json(stdout, op->about);
    printf(", \"inputs\": ");
    json_values(op, 0, ins, ~((1u << op->ins) - 1u));
    printf(", \"outputs\": ");
    json_values(op, ins, op->outs, op->optional_outs);
    printf(", \"options\": ");
    json_fields(op);
    printf(", \"gradient\": %s, \"net_file\": %s}", has_gradient(op) ? "true" : "false",
           mica_netfile_operation(number_of(op)) != NULL ? "true" : "false");
}

/* ---- The verb ---- */

static bool is_wanted(const mica_op *op, char **filters, int count)
{
    for (int f = 0; f < count; f++)
        if (strstr(op->name, filters[f]) != NULL || strcmp(op->family, filters[f]) == 0)
            return true;
    return count == 0;
}

static int run(int argc, char **argv)
{
    settings set = {.shared = SHARED_DEFAULTS};
    int filters = options_read(&verb_ops, &set, argc, argv);
    if (filters < 0)
        return EXIT_USAGE;
    if (set.onnx && filters > 0)
        return usage_error(&verb_ops, "--onnx lists all operators: unexpected \"%s\"", argv[0]);
    if (set.onnx) {
        onnx_operators(set.shared.json);
        return EXIT_OK;
    }
    const mica_op *one = filters == 1 ? mica_op_find(argv[0]) : NULL;
    if (one != NULL && !set.shared.json) {
        print_one(one);
        return EXIT_OK;
    }
    size_t shown = 0;
    for (int n = 0; mica_op_at(n) != NULL; n++) {
        const mica_op *op = mica_op_at(n);
        if (one != NULL ? op != one : !is_wanted(op, argv, filters))
            continue;
        if (set.shared.json) {
            fputs(shown == 0 ? "[" : ",\n", stdout);
            print_json(op);
        } else {
            print_line(op);
        }
        shown++;
    }
    if (set.shared.json && shown > 0)
        puts("]");
    return shown > 0 ? EXIT_OK : verb_error(&verb_ops, EXIT_FAILED, "no matching operation or family");
}

const verb verb_ops = {
    .name = "ops",
    .arguments = "[NAME | FILTER...] [OPTIONS]",
    .summary = "list the operations with their inputs and outputs",
    .details =
        "NAME shows one operation with its options. A FILTER selects the operations whose name contains it, or a\n"
        "whole family. Inputs and outputs in brackets are optional.\n"
        "\n"
        "--json prints a list of objects: name, family, about, inputs, outputs (name, optional), options (name,\n"
        "kind, count, about), gradient, and net_file: whether net files can use it; with --onnx type, since (the\n"
        "first opset) and family.",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_JSON,
    .examples =
        (const verb_example[]){
            {"ops", "all of them"},
            {"ops matmul", "one of them, with its options"},
            {"ops conv pool", "those with \"conv\" in their name, and the family \"pool\""},
            {NULL, NULL},
        },
};
