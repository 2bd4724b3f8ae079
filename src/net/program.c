/* The program of a compiled net, as data and as text. */
#include <stdio.h>
#include <string.h>

#include <mica/ops/activation.h>

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
                               .scratch = entry->workspace_bytes,
                               .scratch_offset = entry->group != NONE ? net->groups[entry->group].span.offset
                                                                      : 0};
    for (int i = 0; i < out->ins; i++)
        out->in[i] = entry->node.in[i] + 1;
    for (int k = 0; k < out->outs; k++)
        out->out[k] = entry->node.out[k] + 1;
    return MICA_OK;
}

/* Where a value lies in the block. */
static size_t offset_of(const mica_net *net, const mica_value_info *v)
{
    const mica_value_info *root = &net->values[v->root];
    if (v->kind == MICA_BUFFER_PARAMETER)
        return v->flat * sizeof(float);
    if (v->kind == MICA_BUFFER_GRADIENT)
        return ((net->weights == NULL ? net->flat_count : 0) + net->values[v->like].flat) * sizeof(float);
    if (v->home == MICA_HOME_KEPT || v->home == MICA_HOME_DERIVED)
        return v->flat;
    return root->group != NONE ? net->groups[root->group].span.offset : 0;
}

mica_status mica_net_program_value(const mica_net *net, mica_program_value *out, mica_value value)
{
    if (out == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_program_value: out is NULL");
    if (!net->compiled || value < 1 || value > net->value_count)
        return mica_fail(net->ctx, MICA_ERR_INDEX, "net_program_value: value %d of %d", value,
                         net->compiled ? net->value_count : 0);
    const mica_value_info *v = &net->values[value - 1];
    bool lent = v->home == MICA_HOME_LENT || mica_borrows(net, v);
    *out = (mica_program_value){.name = v->name != NULL    ? v->name
                                        : v->layer != NONE ? net->layers[v->layer].name
                                                           : "",
                                .home = lent ? MICA_HOME_LENT : v->home,
                                .dtype = v->tensor.dtype,
                                .rank = v->tensor.rank,
                                .offset = lent ? 0 : offset_of(net, v),
                                .bytes = mica_tensor_bytes(&v->tensor)};
    memcpy(out->dim, v->tensor.dim, sizeof out->dim);
    return MICA_OK;
}

/* ---- Text ---- */

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
    case MICA_FIELD_BOOL:
        mica_put(w, "%s", *(const bool *)(const void *)at ? "yes" : "no");
        break;
    case MICA_FIELD_DTYPE:
        mica_put(w, "%s", mica_dtype_name(*(const mica_dtype *)(const void *)at));
        break;
    default:
        mica_put(w, "%d", *(const int *)(const void *)at);
    }
}

static size_t field_bytes(const mica_field *field)
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

/* An option that is not all zeros: "stride=[2, 2]". */
static void put_field(mica_writer *w, const mica_field *field, const char *opts)
{
    const char *at = opts + field->offset;
    size_t bytes = field_bytes(field);
    int count = field->count > 0 ? field->count : 1, used = count;
    bool zero = true;
    for (size_t i = 0; i < bytes * (size_t)count; i++)
        zero = zero && at[i] == 0;
    if (zero)
        return;
    static const char nothing[16] = {0};
    while (field->count > 2 && used > 1 && memcmp(at + (size_t)(used - 1) * bytes, nothing, bytes) == 0)
        used--; /* trailing zeros of a list */
    mica_put(w, field->count > 0 ? " %s=[" : " %s=", field->name);
    for (int i = 0; i < used; i++) {
        mica_put(w, i > 0 ? ", " : "%s", "");
        put_number(w, field, at + (size_t)i * bytes);
    }
    mica_put(w, field->count > 0 ? "]" : "%s", "");
}

/* "conv1 [32, 8, 28, 28] @12544"; values that have no place of their own are said by their home. */
static void put_value(mica_writer *w, const mica_net *net, int value, bool add)
{
    mica_program_value v;
    if (value == NONE) {
        mica_put(w, "-");
        return;
    }
    (void)mica_net_program_value(net, &v, value + 1);
    mica_put(w, "%s%s %s%s", add ? "+" : "", v.name, v.dtype == MICA_F32 ? "" : mica_dtype_name(v.dtype),
             mica_shape_text_of(v.rank, v.dim).text);
    if (v.home == MICA_HOME_LENT)
        mica_put(w, " lent");
    else
        mica_put(w, " @%zu", v.offset);
}

static void put_entry(mica_writer *w, const mica_net *net, int number)
{
    const mica_entry *entry = &net->entries[number];
    const mica_node *node = &entry->node;
    mica_put(w, "%4d %-9s ", number, mica_phase_text(entry->phase));
    for (int k = 0; k < node->outs; k++) {
        mica_put(w, k > 0 ? ", " : "%s", "");
        put_value(w, net, node->out[k], (entry->add >> k & 1u) != 0);
    }
    mica_put(w, " = %s", node->op->name);
    if (entry->fused != NULL)
        mica_put(w, " + %s", entry->fused);
    mica_put(w, "(");
    int ins = node->ins;
    while (ins > 0 && node->in[ins - 1] == NONE)
        ins--;
    for (int i = 0; i < ins; i++) {
        mica_put(w, i > 0 ? ", " : "%s", "");
        put_value(w, net, node->in[i], false);
    }
    mica_put(w, ")");
    for (int f = 0; f < node->op->field_count && node->opts != NULL; f++)
        put_field(w, &node->op->fields[f], node->opts);
    if (entry->workspace_bytes > 0)
        mica_put(w, " scratch=%zu@%zu", entry->workspace_bytes, net->groups[entry->group].span.offset);
    mica_put(w, "\n");
}

size_t mica_net_program_print(char *text, size_t size, const mica_net *net)
{
    mica_writer w = {text, size, 0};
    if (!net->compiled) {
        mica_put(&w, "no program: the net is not compiled\n");
        return w.length;
    }
    for (int e = 0; e < net->entry_count; e++)
        put_entry(&w, net, e);
    if (net->has_optimizer)
        mica_put(&w, "%4d %-9s parameters = update(gradients, optimizer state), %zu elements\n",
                 net->entry_count, mica_phase_text(MICA_PHASE_UPDATE), net->learned_count);
    return w.length;
}
