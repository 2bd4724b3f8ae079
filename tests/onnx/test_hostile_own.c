/* Nodes of the domain "mica", which become calls of Mica's own operations with the options that the file has for them:
 * options that no operation takes are refused, or do no harm. */
#include <stdio.h>
#include <string.h>

#include "onnx/attack.h"
#include "onnx/write.h"
#include "ops/entry_draw.h"

static const mica_onnx_row *const families[] = {
#define LISTED(family) mica_onnx_write_##family,
    MICA_ONNX_WRITE_FAMILIES(LISTED)
#undef LISTED
};

static const int64_t extremes[] = {INT64_MIN, INT32_MIN,        -1,       1, 3, 1000,
                                   INT32_MAX, (int64_t)1 << 62, INT64_MAX};
enum { EXTREMES = sizeof extremes / sizeof extremes[0] };

/* One option; of a list, all elements are the same, or only the first is not 1. */
static void put_option(proto *node, const mica_field *f, int64_t value, bool first)
{
    int64_t list[MICA_MAX_RANK];
    if (f->kind == MICA_FIELD_INDEX &&
        value == INT32_MAX) /* a stride may be that, and takes minutes to plan for */
        value = INT64_MAX - 1;
    if (f->kind == MICA_FIELD_ACTIVATION || f->kind == MICA_FIELD_DTYPE) {
        proto_string(node, f->name, value < 0 ? "none" : value < 3 ? "i8" : "relu");
        return;
    }
    if (f->kind == MICA_FIELD_FLOAT && f->count == 0) {
        proto_real(node, f->name, (float)value);
        return;
    }
    for (int i = 0; i < MICA_MAX_RANK; i++)
        list[i] = first && i > 0 ? 1 : value;
    if (f->count == 0)
        proto_int(node, f->name, value);
    else
        proto_ints(node, f->name, list, f->count < MICA_MAX_RANK ? f->count : MICA_MAX_RANK);
}

/* The operation with the inputs of a draw, and one option, or all of them, of this value. */
static proto model_of(const entry_draw *d, int option, int64_t value, bool first)
{
    char names[MICA_OP_INS * 8] = "", name[16];
    for (int i = 0; i < d->sample.ins; i++) {
        snprintf(name, sizeof name, d->given[i] ? "%si%d" : "%s-", i > 0 ? " " : "", i);
        strcat(names, name);
    }
    proto g = {0}, node = proto_node(d->op->name, names, "y"), domain = {0};
    for (int k = 0; k < d->op->field_count; k++)
        if (option < 0 || option == k)
            put_option(&node, &d->op->fields[k], value, first);
    proto_text(&node, 7, "mica");
    proto_message(&g, GRAPH_NODE, node);
    for (int i = 0; i < d->sample.ins; i++) {
        int64_t dims[MICA_MAX_RANK];
        const mica_tensor *t = &d->in[i];
        if (!d->given[i])
            continue;
        for (int k = 0; k < t->rank; k++)
            dims[k] = t->dim[k];
        snprintf(name, sizeof name, "i%d", i);
        int type = mica_onnx_type_of(t->dtype);
        if (i == 1 && first) /* a constant, so that weights are packed */
            proto_message(&g, GRAPH_INITIALIZER,
                          proto_tensor(name, type, t->rank, dims, t->data, mica_tensor_bytes(t)));
        else
            proto_message(&g, GRAPH_INPUT, proto_value(name, type, t->rank, dims));
    }
    proto_message(&g, GRAPH_OUTPUT, proto_value("y", ONNX_FLOAT, 0, NULL));
    proto model = proto_model(g, 17);
    proto_text(&domain, 1, "mica");
    proto_number(&domain, 2, 1);
    proto_message(&model, 8, domain);
    return model;
}

/* Two have no sample, and do not take inputs that are all of one shape. */
static bool can_draw(const mica_op *op)
{
    return entry_callable(op) && op != &mica_op_linear && op != &mica_op_attention_rows;
}

TEST(onnx_hostile_own_options)
{
    mica_context *ctx = test_context(1), *small = attack_context();
    for (size_t f = 0; f < sizeof families / sizeof families[0]; f++)
        for (const mica_onnx_row *row = families[f]; row->op != NULL; row++)
            for (int draw = 0; draw < test_effort(1) && row->own && can_draw(row->op); draw++) {
                entry_draw d;
                entry_draw_make(&d, ctx, row->op, (uint64_t)draw);
                for (int option = -1; option < row->op->field_count; option++)
                    for (int i = 0; i < EXTREMES * 2; i++)
                        (void)attack_with(small, model_of(&d, option, extremes[i / 2], i % 2 == 1));
                entry_draw_free(&d);
            }
    mica_context_destroy(small);
}
