/* The program of a compiled net, as data and as text. */
#include <string.h>

#include <mica/ops/activation.h>

#include "base/format.h"
#include "base/writer.h"
#include "net/net.h"

_Static_assert(MICA_PROGRAM_TENSORS >= MICA_OP_INS && MICA_PROGRAM_TENSORS >= MICA_OP_OUTS,
               "a call of the program holds all inputs and outputs");
_Static_assert(sizeof((mica_program_value){0}.dim) / sizeof(mica_index) == MICA_MAX_RANK, "any rank fits");

const char *mica_home_text(mica_home home)
{
    static const char *const texts[] = {"planned", "learned", "kept", "derived", "lent"};
    return (unsigned)home < sizeof texts / sizeof texts[0] ? texts[home] : "unknown";
}

int mica_net_program_values(const mica_net *net) { return net->compiled ? net->value_count : 0; }

/* What keeps statistics makes them of the whole batch in training. */
bool mica_net_samples_apart(mica_net *net)
{
    bool in_parts = net->part_rows < net->size[0].most; /* then they are, and shapes are those of a part */
    bool apart = net->compiled && (in_parts || mica_net_can_part(net));
    for (int n = 0; n < net->node_count && net->train; n++)
        apart = apart && net->nodes[n].op->writes == 0;
    return apart;
}

int mica_net_program(const mica_net *net) { return net->compiled ? net->entry_count : 0; }

mica_status mica_net_program_call(const mica_net *net, mica_program_call *out, int number)
{
    if (out == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_program_call: out is NULL");
    if (number < 0 || number >= mica_net_program(net))
        return mica_fail(net->ctx, MICA_ERR_INDEX, "net_program_call: call %d of %d", number,
                         mica_net_program(net));
    const mica_entry *entry = &net->entries[number];
    *out = (mica_program_call){.op = entry->node.op,
                               .phase = entry->phase,
                               .layer = entry->node.layer,
                               .opts = entry->node.opts,
                               .fused = entry->fused,
                               .ins = entry->node.ins,
                               .outs = entry->node.outs,
                               .add = entry->add,
                               .seed = net->seed,
                               .stream = (uint64_t)entry->origin,
                               .stream_step = (uint64_t)net->node_count,
                               .scratch = entry->workspace_bytes,
                               .scratch_offset = entry->group != NONE ? net->groups[entry->group].span.offset
                                                                      : 0};
    for (int i = 0; i < out->ins; i++)
        out->in[i] = entry->node.in[i] + 1;
    for (int k = 0; k < out->outs; k++)
        out->out[k] = entry->node.out[k] + 1;
    return MICA_OK;
}

/* Where a value that is no view lies in the block. */
static size_t offset_of(const mica_net *net, const mica_value_info *v)
{
    if (v->kind == MICA_BUFFER_PARAMETER)
        return v->flat * sizeof(float);
    if (v->kind == MICA_BUFFER_GRADIENT)
        return ((net->weights == NULL ? net->flat_count : 0) + net->values[v->like].flat) * sizeof(float);
    if (v->home == MICA_HOME_KEPT || v->home == MICA_HOME_DERIVED)
        return v->flat;
    return v->group != NONE ? net->groups[v->group].span.offset : 0;
}

mica_status mica_net_program_value(const mica_net *net, mica_program_value *out, mica_value value)
{
    if (out == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_program_value: out is NULL");
    if (!net->compiled || value < 1 || value > net->value_count)
        return mica_fail(net->ctx, MICA_ERR_INDEX, "net_program_value: value %d of %d", value,
                         net->compiled ? net->value_count : 0);
    const mica_value_info *v = &net->values[value - 1], *root = &net->values[v->root];
    bool lent = root->home == MICA_HOME_LENT || mica_borrows(net, root);
    *out = (mica_program_value){.name = v->name != NULL    ? v->name
                                        : v->layer != NONE ? net->layers[v->layer].name
                                                           : "",
                                .home = lent ? MICA_HOME_LENT : root->home,
                                .dtype = v->tensor.dtype,
                                .rank = v->tensor.rank,
                                .offset = lent ? 0 : offset_of(net, root),
                                .bytes = mica_tensor_bytes(&v->tensor),
                                .kind = root->kind,
                                .root = v->root + 1,
                                .gradient_of = root->kind == MICA_BUFFER_GRADIENT ? root->like + 1 : 0,
                                .kept = root->kept,
                                .frozen = root->frozen,
                                .output = v->output,
                                .channels_last = v->channels_last};
    memcpy(out->dim, v->tensor.dim, sizeof out->dim);
    return MICA_OK;
}

/* ---- Text ---- */

static const char *activation_name(mica_activation kind)
{
    static const char *const names[] = {"none",
#define ACTIVATION_NAME(CODE, name) #name,
                                        MICA_ACTIVATION_LIST(ACTIVATION_NAME)
#undef ACTIVATION_NAME
    };
    return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

/* The word of a choice: number `which` of "constant|reflect". */
static void put_choice(mica_writer *w, const char *words, int which)
{
    for (; which > 0 && strchr(words, '|') != NULL; which--)
        words = strchr(words, '|') + 1;
    int length = 0;
    while (words[length] != '\0' && words[length] != '|')
        length++;
    mica_put(w, "%.*s", length, words);
}

static void put_number(mica_writer *w, const mica_field *field, const char *at)
{
    switch (field->kind) {
    case MICA_FIELD_INDEX:
        mica_put(w, "%td", *(const mica_index *)(const void *)at);
        break;
    case MICA_FIELD_FLOAT:
        mica_put(w, "%g", (double)*(const float *)(const void *)at);
        break;
    case MICA_FIELD_DOUBLE:
        mica_put(w, "%g", *(const double *)(const void *)at);
        break;
    case MICA_FIELD_DTYPE:
        mica_put(w, "%s", mica_dtype_name(*(const mica_dtype *)(const void *)at));
        break;
    case MICA_FIELD_ACTIVATION:
        mica_put(w, "%s", activation_name(*(const mica_activation *)(const void *)at));
        break;
    case MICA_FIELD_CHOICE:
        put_choice(w, field->about, *(const int *)(const void *)at);
        break;
    default:
        mica_put(w, "%d", *(const int *)(const void *)at);
    }
}

size_t mica_field_bytes(const mica_field *field)
{
    switch (field->kind) {
    case MICA_FIELD_INDEX:
        return sizeof(mica_index);
    case MICA_FIELD_FLOAT:
        return sizeof(float);
    case MICA_FIELD_DOUBLE:
        return sizeof(double);
    case MICA_FIELD_BOOL:
        return sizeof(bool);
    default:
        return sizeof(int);
    }
}

/* How many elements of a field are shown: of a list, those that its length counts, or all up to the last that is not
 * 0; none if it is as if nothing had been given. */
static int shown(const mica_op *op, int number, const char *opts)
{
    const mica_field *field = &op->fields[number];
    const char *at = opts + field->offset;
    size_t bytes = mica_field_bytes(field);
    int count = field->count > 0 ? field->count : 1;
    static const char nothing[16] = {0};
    if (field->kind == MICA_FIELD_LENGTH)
        return 0;
    if (number > 0 && field[-1].kind == MICA_FIELD_LENGTH)
        return *(const int *)(const void *)(opts + field[-1].offset);
    while (count > 0 && memcmp(at + (size_t)(count - 1) * bytes, nothing, bytes) == 0)
        count--;
    return count > 0 && field->count == 2 ? 2 : count;
}

/* An option that was given: " stride=[2, 2]". */
static void put_field(mica_writer *w, const mica_op *op, int number, const char *opts)
{
    const mica_field *field = &op->fields[number];
    const char *at = opts + field->offset;
    int count = shown(op, number, opts);
    if (count == 0)
        return;
    if (field->kind == MICA_FIELD_BOOL) {
        mica_put(w, " %s", field->name);
        return;
    }
    mica_put(w, field->count > 0 ? " %s=[" : " %s=", field->name);
    for (int i = 0; i < count; i++) {
        mica_put(w, i > 0 ? ", " : "%s", "");
        put_number(w, field, at + (size_t)i * mica_field_bytes(field));
    }
    mica_put(w, field->count > 0 ? "]" : "%s", "");
}

/* ".indices", of an output that is not its call's first and has no name of its own. */
static void put_number_of_output(mica_writer *w, const mica_net *net, int value)
{
    const mica_value_info *v = &net->values[value];
    if (v->number == 0 || v->name != NULL || v->maker == NONE || value >= net->built_values)
        return;
    const mica_op *op = net->nodes[v->maker].op;
    if (op->names != NULL)
        mica_put(w, ".%s", op->names[op->ins + op->optional_ins + v->number]);
    else
        mica_put(w, ".%d", v->number);
}

/* "conv1 [32, 8, 28, 28] @12544": its offset in the block, its layout and its home unless these are the usual ones. */
static void put_value(mica_writer *w, const mica_net *net, int value)
{
    mica_program_value v;
    if (value == NONE) {
        mica_put(w, "-");
        return;
    }
    (void)mica_net_program_value(net, &v, value + 1);
    mica_put(w, "%s", v.name);
    put_number_of_output(w, net, value);
    mica_put(w, " %s%s%s", v.dtype == MICA_F32 ? "" : mica_dtype_name(v.dtype),
             v.dtype == MICA_F32 ? "" : " ", mica_shape_text_of(v.rank, v.dim).text);
    if (v.channels_last)
        mica_put(w, " channels last");
    if (v.home != MICA_HOME_PLANNED)
        mica_put(w, " %s", mica_home_text(v.home));
    if (v.home != MICA_HOME_LENT)
        mica_put(w, " @%zu", v.offset);
}

static void put_values(mica_writer *w, const mica_net *net, const int *values, int count, unsigned add)
{
    while (count > 0 && values[count - 1] == NONE)
        count--;
    for (int i = 0; i < count; i++) {
        mica_put(w, "%s%s", i > 0 ? ", " : "", add >> i & 1u ? "+= " : "");
        put_value(w, net, values[i]);
    }
}

/* How wide the columns are. */
typedef struct columns {
    int layer, op;
} columns;

/* What a call is called in a column: "conv2d + relu". */
static size_t op_text(char *text, size_t size, const mica_entry *entry)
{
    const char *fused = entry->fused;
    return (size_t)mica_format(text, size, "%s%s%s", entry->node.op->name, fused != NULL ? " + " : "",
                               fused != NULL ? fused : "");
}

static const char *layer_name(const mica_net *net, const mica_entry *entry)
{
    return entry->node.layer != NONE ? net->layers[entry->node.layer].name : "";
}

static columns measure(const mica_net *net)
{
    columns widths = {.layer = 5, .op = 9};
    for (int e = 0; e < net->entry_count; e++) {
        int layer = (int)strlen(layer_name(net, &net->entries[e]));
        char text[256];
        int op = (int)op_text(text, sizeof text, &net->entries[e]);
        widths.layer = layer > widths.layer ? layer : widths.layer;
        widths.op = op > widths.op ? op : widths.op;
    }
    return widths;
}

static void put_entry(mica_writer *w, const mica_net *net, int number, columns widths)
{
    const mica_entry *entry = &net->entries[number];
    const mica_node *node = &entry->node;
    char op[160];
    (void)op_text(op, sizeof op, entry);
    mica_put(w, "%4d  %-9s  %-*s  %-*s  ", number, mica_phase_text(entry->phase), widths.layer,
             layer_name(net, entry), widths.op, op);
    put_values(w, net, node->out, node->outs, entry->add);
    mica_put(w, " <- ");
    put_values(w, net, node->in, node->ins, 0);
    mica_writer options = {NULL, 0, 0};
    for (int f = 0; f < node->op->field_count && node->opts != NULL; f++)
        put_field(&options, node->op, f, node->opts);
    if (options.length > 0)
        mica_put(w, " |");
    for (int f = 0; f < node->op->field_count && node->opts != NULL; f++)
        put_field(w, node->op, f, node->opts);
    if (entry->workspace_bytes > 0)
        mica_put(w, " | scratch %zu @%zu", entry->workspace_bytes, net->groups[entry->group].span.offset);
    mica_put(w, "\n");
}

size_t mica_net_program_print(char *text, size_t size, const mica_net *net)
{
    mica_writer w = {text, size, 0};
    if (!net->compiled) {
        mica_put(&w, "no program: the net is not compiled\n");
        return w.length;
    }
    columns widths = measure(net);
    mica_put(&w, "%4s  %-9s  %-*s  %-*s  %s\n", "call", "phase", widths.layer, "layer", widths.op,
             "operation", "outputs <- inputs (+=: added to; @: offset in the block) | options | scratch");
    for (int e = 0; e < net->entry_count; e++)
        put_entry(&w, net, e, widths);
    if (net->has_optimizer)
        mica_put(&w, "%4d  %-9s  %-*s  %-*s  parameters <- gradients, optimizer state (%zu elements)\n",
                 net->entry_count, mica_phase_text(MICA_PHASE_UPDATE), widths.layer, "", widths.op,
                 "optimizer", net->learned_count);
    return w.length;
}
