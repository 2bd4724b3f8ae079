/* A reference of net files from the parser's own table. */
#include "cli/net/words.h"

#include <string.h>

#include "netfile/operations.h"

#define COLUMN 28 /* where the text begins */

/* What stands for a value of each kind. */
static const char *value_of(value_kind kind)
{
    switch (kind) {
    case VALUE_FLOAT:
    case VALUE_DOUBLE:
        return "X";
    case VALUE_PAIR:
        return "HxW";
    case VALUE_LIST:
    case VALUE_NUMBERS:
        return "[N, N, ...]";
    case VALUE_ACTIVATION:
        return "ACTIVATION";
    case VALUE_INIT:
        return "INIT";
    case VALUE_NAME:
        return "NAME";
    case VALUE_PARAMETER:
        return "LAYER.weight";
    case VALUE_VALUE:
    case VALUE_VALUES:
        return "LAYER";
    default:
        return "N";
    }
}

static void print_row(FILE *out, const char *left, const char *text)
{
    if (strlen(left) < COLUMN)
        fprintf(out, "%-*s%s\n", COLUMN, left, text);
    else
        fprintf(out, "%s\n%*s%s\n", left, COLUMN, "", text);
}

static void print_option(FILE *out, const word_option *o)
{
    char left[160];
    if (o->kind == VALUE_FLAG)
        snprintf(left, sizeof left, "    %s", o->name);
    else if (o->kind == VALUE_CHOICE)
        snprintf(left, sizeof left, "    %s:", o->name);
    else
        snprintf(left, sizeof left, "    %s=%s", o->name, value_of(o->kind));
    print_row(out, left, o->help);
    for (size_t i = 0; o->choices != NULL && o->choices[i] != NULL; i++)
        fprintf(out, i == 0 ? "        %s" : o->choices[i + 1] == NULL ? " or %s\n" : ", %s", o->choices[i]);
}

/* "conv channels kernel [ACTIVATION]" */
static void print_word(FILE *out, const word *w)
{
    char left[160];
    size_t used = (size_t)snprintf(left, sizeof left, "%s", w->name);
    for (size_t i = 0; i < w->option_count && used < sizeof left; i++)
        if ((w->options[i].flags & IN_PLACE) != 0)
            used += (size_t)snprintf(left + used, sizeof left - used,
                                     (w->options[i].flags & REQUIRED) != 0 ? " %s" : " [%s]",
                                     w->options[i].name);
    if ((w->flags & ACTIVATES) != 0)
        used += (size_t)snprintf(left + used, sizeof left - used, " [ACTIVATION]");
    if ((w->flags & OPENS) != 0)
        snprintf(left + used, sizeof left - used, " {");
    print_row(out, left, w->help);
    for (size_t i = 0; i < w->option_count; i++)
        print_option(out, &w->options[i]);
}

static void print_list(FILE *out, const char *left, const char *const *list)
{
    fprintf(out, "%-*s", COLUMN, left);
    size_t column = COLUMN;
    for (size_t i = 0; list[i] != NULL; i++) {
        bool fits = column + strlen(list[i]) + 2 <= 100;
        if (i > 0)
            fprintf(out, ",%s%*s", fits ? "" : "\n", fits ? 1 : COLUMN, "");
        column = (fits ? column : COLUMN) + strlen(list[i]) + 2;
        fputs(list[i], out);
    }
    fputc('\n', out);
}

/* ---- Operations ---- */

const char *operation_value(const mica_op *op, int number)
{
    int ins = op->ins + op->optional_ins;
    if (number < ins)
        return mica_operation_input(op, number);
    return op->names == NULL && op->outs == 1 ? "y" : mica_operation_output(op, number - ins);
}

void operation_signature(char *out, size_t size, const mica_op *op)
{
    int ins = op->ins + op->optional_ins;
    size_t used = 0;
    *out = '\0';
    for (int i = 0; i < ins + op->outs && used < size; i++) {
        bool optional = i < ins ? i >= op->ins : (op->optional_outs >> (i - ins) & 1u) != 0;
        const char *before = i == ins ? (i > 0 ? " -> " : "-> ") : i > 0 ? " " : "";
        used += (size_t)snprintf(out + used, size - used, optional ? "%s[%s]" : "%s%s", before,
                                 operation_value(op, i));
    }
}

static void print_operation(FILE *out, const mica_op *op)
{
    operation_word made;
    char left[160];
    mica_operation_word(&made, op);
    mica_operation_usage(left, sizeof left, op);
    size_t used = strlen(left);
    for (int k = 0; k < op->outs && op->outs > 1 && used < sizeof left; k++)
        used += (size_t)snprintf(left + used, sizeof left - used, k == 0 ? " -> %s" : ", %s",
                                 mica_operation_output(op, k));
    print_row(out, left, op->about);
    for (size_t i = (size_t)op->ins + (size_t)op->optional_ins; i < made.word.option_count; i++)
        if (made.options[i].choices == mica_netfile_dtypes)
            print_row(out, "    dtype=DTYPE", made.options[i].help);
        else
            print_option(out, &made.options[i]);
}

/* ---- Layers ---- */

void help_layers(FILE *out)
{
    for (size_t i = 0; i < mica_netfile_word_count; i++)
        print_word(out, &mica_netfile_words[i]);
    fprintf(out, "\n");
    print_row(out, "name=NAME", "any layer: its name (its type and a number)");
    print_row(out, "from=LAYER", "any layer: its input (the line above)");
    print_list(out, "ACTIVATION", mica_netfile_activations);
    print_list(out, "INIT", mica_netfile_inits);
    print_row(out, "", "the first three with a parameter: normal(0.02)");
}

void help_operations(FILE *out)
{
    for (int n = 0; mica_op_at(n) != NULL; n++)
        if (mica_netfile_operation(n) != NULL)
            print_operation(out, mica_op_at(n));
    fprintf(out, "\n");
    print_row(out, "name=NAME", "every operation: what it is called (its word and a number)");
    print_row(out, "from=LAYER", "its first value (the line above)");
    print_row(out, "-> a, b", "several outputs: NAME.a and NAME.b");
    print_list(out, "ACTIVATION", mica_netfile_activations);
    print_list(out, "DTYPE", mica_netfile_dtypes);
}

bool help_word(FILE *out, const char *name)
{
    const word *w = mica_find_word(name, strlen(name));
    int operation = w == NULL ? mica_find_operation(name, strlen(name)) : -1;
    if (w == NULL && operation < 0)
        return false;
    if (w != NULL)
        print_word(out, w);
    else
        print_operation(out, mica_op_at(operation));
    fprintf(out, "\nAll of them: mica help %s\n", w != NULL ? "layers" : "operations");
    return true;
}

size_t word_names(const char **names, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < mica_netfile_word_count && count < most; i++)
        names[count++] = mica_netfile_words[i].name;
    for (int n = 0; mica_op_at(n) != NULL && count < most; n++)
        if (mica_netfile_operation(n) != NULL)
            names[count++] = mica_op_at(n)->name;
    return count;
}
