#include "cli/net/program.h"

#include <math.h>
#include <string.h>

#include <mica/op.h>

#include "cli/picture/text.h"
#include "netfile/reader.h"

/* ---- Options ---- */

static void put_real(FILE *out, double number)
{
    if (isfinite(number))
        fprintf(out, "%.9g", number);
    else
        fputs("null", out);
}

/* The word of a choice: number `which` of "constant|reflect". */
static void put_choice(FILE *out, const char *words, int which)
{
    char text[64];
    for (; which > 0 && strchr(words, '|') != NULL; which--)
        words = strchr(words, '|') + 1;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(words, "|"), words);
    put_json(out, text);
}

static void put_number(FILE *out, const mica_field *field, const char *list, int number)
{
    const void *at = list;
    int whole = field->kind == MICA_FIELD_BOOL || field->kind == MICA_FIELD_INDEX ? 0
                                                                                  : ((const int *)at)[number];
    switch (field->kind) {
    case MICA_FIELD_INDEX:
        fprintf(out, "%td", ((const mica_index *)at)[number]);
        break;
    case MICA_FIELD_FLOAT:
        put_real(out, (double)((const float *)at)[number]);
        break;
    case MICA_FIELD_DOUBLE:
        put_real(out, ((const double *)at)[number]);
        break;
    case MICA_FIELD_BOOL:
        fputs(((const bool *)at)[number] ? "true" : "false", out);
        break;
    case MICA_FIELD_ACTIVATION:
        put_json(out, whole == MICA_NO_ACTIVATION ? "none" : mica_netfile_activations[whole - 1]);
        break;
    case MICA_FIELD_DTYPE:
        put_json(out, mica_dtype_name((mica_dtype)whole));
        break;
    case MICA_FIELD_CHOICE:
        put_choice(out, field->about, whole);
        break;
    default:
        fprintf(out, "%d", whole);
    }
}

static void put_options(FILE *out, const mica_op *op, const char *opts)
{
    bool first = true;
    fputc('{', out);
    for (int f = 0; f < op->field_count && opts != NULL; f++) {
        const mica_field *field = &op->fields[f];
        if (field->kind == MICA_FIELD_LENGTH)
            continue;
        int count = field->count;
        if (f > 0 && field[-1].kind == MICA_FIELD_LENGTH)
            count = *(const int *)(const void *)(opts + field[-1].offset);
        fputs(first ? "" : ", ", out);
        first = false;
        put_json(out, field->name);
        fputs(field->count > 0 ? ": [" : ": ", out);
        for (int i = 0; i < (field->count > 0 ? count : 1); i++) {
            fputs(i > 0 ? ", " : "", out);
            put_number(out, field, opts + field->offset, i);
        }
        fputs(field->count > 0 ? "]" : "", out);
    }
    fputc('}', out);
}

/* ---- Calls ---- */

static void put_value(FILE *out, const mica_net *net, mica_value value)
{
    mica_program_value v;
    if (value == 0 || mica_net_program_value(net, &v, value) != MICA_OK) {
        fputs("null", out);
        return;
    }
    fputs("{\"name\": ", out);
    put_json(out, v.name);
    fprintf(out, ", \"home\": \"%s\", \"offset\": %zu, \"shape\": [", mica_home_text(v.home), v.offset);
    for (int i = 0; i < v.rank; i++)
        fprintf(out, i > 0 ? ", %td" : "%td", v.dim[i]);
    fprintf(out, "], \"dtype\": \"%s\"}", mica_dtype_name(v.dtype));
}

static void put_values(FILE *out, const mica_net *net, const mica_value *values, int count)
{
    while (count > 0 && values[count - 1] == 0)
        count--;
    fputc('[', out);
    for (int i = 0; i < count; i++) {
        fputs(i > 0 ? ", " : "", out);
        put_value(out, net, values[i]);
    }
    fputc(']', out);
}

static void put_call(FILE *out, const mica_net *net, const mica_program_call *call)
{
    const char *layer = NULL;
    if (call->layer >= 0)
        (void)mica_net_layer(net, &layer, NULL, NULL, call->layer);
    fputs("{\"op\": ", out);
    put_json(out, call->op->name);
    fprintf(out, ", \"phase\": \"%s\", \"layer\": ", mica_phase_text(call->phase));
    put_json(out, layer);
    fputs(", \"fused\": ", out);
    put_json(out, call->fused);
    fputs(", \"inputs\": ", out);
    put_values(out, net, call->in, call->ins);
    fputs(", \"outputs\": ", out);
    put_values(out, net, call->out, call->outs);
    fprintf(out, ", \"adds\": %s, \"options\": ", call->add != 0 ? "true" : "false");
    put_options(out, call->op, call->opts);
    fprintf(out, ", \"scratch\": %zu}", call->scratch);
}

void put_program(FILE *out, const mica_net *net)
{
    fputc('[', out);
    for (int n = 0; n < mica_net_program(net); n++) {
        mica_program_call call;
        if (mica_net_program_call(net, &call, n) != MICA_OK)
            break;
        fputs(n > 0 ? ",\n" : "\n", out);
        put_call(out, net, &call);
    }
    fputc(']', out);
}
