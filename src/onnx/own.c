/* Nodes of the domain "mica", as Mica writes them (write_own.c): an operation by its name, behind which a number
 * may stand ("attention_2"), its options as attributes. The file has a function for each, for other programs. Here
 * they become the call that they were. */
#include <string.h>

#include "node/int8.h"
#include "onnx/windows.h"
#include "onnx/write.h"

enum { MOST_BYTES = 512, MOST_LIST = MICA_MAX_RANK };

/* Without the number: "attention_2" is "attention". */
static size_t name_length(const char *type)
{
    size_t length = strlen(type), end = length;
    while (end > 0 && type[end - 1] >= '0' && type[end - 1] <= '9')
        end--;
    return end < length && end > 1 && type[end - 1] == '_' ? end - 1 : length;
}

static const mica_onnx_row *row_of(const char *type)
{
    const mica_onnx_row *row = mica_onnx_row_named(type, strlen(type));
    return row != NULL ? row : mica_onnx_row_named(type, name_length(type));
}

/* ---- Options ---- */

static int named_activation(mica_onnx_importing *n, const char *name)
{
#define IS_ACTIVATION(CODE, text) \
    if (strcmp(name, #text) == 0) \
        return MICA_##CODE;
    MICA_ACTIVATION_LIST(IS_ACTIVATION)
#undef IS_ACTIVATION
    (void)mica_onnx_bad(n, "there is no activation \"%s\"", name);
    return MICA_NO_ACTIVATION;
}

static int named_dtype(mica_onnx_importing *n, const char *name)
{
    for (int d = 0; d < MICA_DTYPE_COUNT; d++)
        if (strcmp(mica_dtype_name((mica_dtype)d), name) == 0)
            return d;
    (void)mica_onnx_bad(n, "there is no dtype \"%s\"", name);
    return 0;
}

static void set_whole(mica_onnx_importing *n, const mica_field *f, void *at, int i, int64_t value)
{
    if (f->kind == MICA_FIELD_INDEX)
        ((mica_index *)at)[i] = (mica_index)value;
    else if (f->kind == MICA_FIELD_BOOL)
        ((bool *)at)[i] = value != 0;
    else if (value < INT32_MIN || value > INT32_MAX)
        (void)mica_onnx_bad(n, "attribute \"%s\" is %lld", f->name, (long long)value);
    else
        ((int *)at)[i] = (int)value;
}

static void read_field(mica_onnx_importing *n, const mica_field *f, char *opts)
{
    void *at = opts + f->offset;
    int64_t ints[MOST_LIST];
    if (mica_onnx_find(n, f->name) == NULL)
        return;
    if (f->kind == MICA_FIELD_ACTIVATION)
        *(int *)at = named_activation(n, mica_onnx_text(n, f->name, ""));
    else if (f->kind == MICA_FIELD_DTYPE)
        *(int *)at = named_dtype(n, mica_onnx_text(n, f->name, ""));
    else if (f->kind == MICA_FIELD_FLOAT && f->count == 0)
        *(float *)at = mica_onnx_float(n, f->name, 0.0f);
    else if (f->kind == MICA_FIELD_FLOAT)
        (void)mica_onnx_float_list(n, f->name, at, f->count);
    else if (f->count == 0)
        set_whole(n, f, at, 0, mica_onnx_int(n, f->name, 0));
    else {
        int count = mica_onnx_int_list(n, f->name, ints, f->count < MOST_LIST ? f->count : MOST_LIST);
        for (int i = 0; i < count; i++)
            set_whole(n, f, at, i, ints[i]);
    }
}

/* ---- The call ---- */

/* Which input of a product of bytes are packed weights, and how they are packed: as in the net that was written. 0: it
 * is none. */
static int packing(mica_onnx_importing *n, const mica_op *op, const void *opts, mica_int8_pack_opts *pack)
{
    *pack = (mica_int8_pack_opts){.groups = 0};
    if (op == &mica_op_int8_conv2d)
        pack->groups = ((const mica_int8_conv_opts *)opts)->groups;
    else if (op == &mica_op_affine_linear)
        pack->zero = ((const mica_affine_opts *)opts)->x_zero;
    else if (op == &mica_op_affine_conv2d) {
        pack->groups = ((const mica_affine_conv_opts *)opts)->groups;
        pack->zero = ((const mica_affine_conv_opts *)opts)->x_zero;
        pack->tiled = mica_onnx_is_tiled(n, n->in[INT8_X], n->in[INT8_W], opts);
    } else
        return op == &mica_op_int8_linear ? INT8_PACKED : 0;
    return op == &mica_op_int8_conv2d ? INT8_PACKED : AFFINE_PACKED;
}

/* A file has no packed weights: constant ones are packed here. */
static mica_onnx_ref call_own(mica_onnx_importing *n, const mica_op *op, const void *opts)
{
    mica_int8_pack_opts pack;
    mica_onnx_ref ins[MICA_OP_INS] = {0};
    int at = packing(n, op, opts, &pack);
    if (at == 0 || n->ins > at || !mica_onnx_is_known(n, n->in[INT8_W]) ||
        !mica_onnx_is_known(n, n->in[INT8_BIAS]))
        return mica_onnx_call(n, op, n->in, n->ins, opts);
    memcpy(ins, n->in, (size_t)n->ins * sizeof ins[0]);
    ins[at] = mica_onnx_derived(n, &mica_op_int8_pack, &ins[INT8_W], 2, &pack);
    return n->failed ? 0 : mica_onnx_call(n, op, ins, at + 1, opts);
}

static void import_own(mica_onnx_importing *n)
{
    const mica_op *op = row_of(n->node->type)->op;
    union {
        char bytes[MOST_BYTES];
        void *pointer;
        double number;
    } opts;
    memset(&opts, 0, sizeof opts);
    if (op->opts_bytes > sizeof opts) {
        (void)mica_onnx_unsupported(n, "its options have %zu bytes", op->opts_bytes);
        return;
    }
    for (int i = 0; i < op->field_count; i++)
        read_field(n, &op->fields[i], opts.bytes);
    int most = op->ins + op->optional_ins;
    if (n->ins < op->ins || n->ins > most || n->outs > op->outs) {
        (void)mica_onnx_bad(n, "%d inputs and %d outputs: expected %d to %d inputs and at most %d outputs",
                            n->ins, n->outs, op->ins, most, op->outs);
        return;
    }
    mica_onnx_ref y = call_own(n, op, opts.bytes);
    for (int k = 0; k < n->outs; k++)
        if (mica_onnx_wants(n, k))
            mica_onnx_give(n, k, k == 0 ? y : mica_onnx_result(n, y, k));
}

bool mica_onnx_is_own(const mica_onnx *model)
{
    for (int i = 0; i < model->opset_count; i++)
        if (strcmp(model->opsets[i].domain, "mica") == 0)
            return true;
    return false;
}

const mica_onnx_operator *mica_onnx_own_operator(const char *domain, const char *type)
{
    static const mica_onnx_operator own = {"mica:*", 1, import_own};
    return strcmp(domain, "mica") == 0 && row_of(type) != NULL ? &own : NULL;
}
