/* Calls of operations: inputs checked, options copied, shapes inferred, outputs made. */
#include <string.h>

#include "base/format.h"
#include "net/net.h"

/* Refuses an entry that cannot be called. */
static mica_status check_entry(mica_net *net, const mica_op *op)
{
    if (op == NULL || op->name == NULL)
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "a call of an operation that %s",
                              op == NULL ? "is NULL" : "has no name");
    else if (op->ins < 0 || op->optional_ins < 0 || op->ins + op->optional_ins > MICA_OP_INS)
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "%s has %d inputs: expected 0 to %d", op->name,
                              op->ins + op->optional_ins, MICA_OP_INS);
    else if (op->outs < 1 || op->outs > MICA_OP_OUTS)
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "%s has %d outputs: expected 1 to %d", op->name,
                              op->outs, MICA_OP_OUTS);
    else if (op->flags & MICA_OP_VIEW ? op->ins < 1 || op->outs != 1 : op->run == NULL)
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "%s cannot be called: %s", op->name,
                              op->flags & MICA_OP_VIEW ? "a view has one output, of its first input"
                                                       : "its run is NULL");
    return net->status;
}

mica_status mica_net_make_node(mica_net *net, mica_node *node, const mica_op *op, const mica_value *ins,
                               int count, const void *opts)
{
    MICA_TRY(check_entry(net, op));
    int most = op->ins + op->optional_ins;
    *node = (mica_node){.op = op, .layer = net->open_layer, .ins = most, .outs = op->outs};
    if (count < op->ins || count > most) {
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT,
                              op->optional_ins > 0 ? "%s of %d values: expected %d to %d"
                                                   : "%s of %d values: expected %d",
                              op->name, count, op->ins, most);
        return net->status;
    }
    if (count > 0 && ins == NULL) {
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "%s: the list of its inputs is NULL", op->name);
        return net->status;
    }
    for (int i = 0; i < most; i++) {
        node->in[i] = i < count && ins[i] != 0 ? ins[i] - 1 : NONE;
        if (i < op->ins || node->in[i] != NONE)
            MICA_TRY(mica_net_check_value(net, i < count ? ins[i] : 0, op->name));
        if (node->in[i] != NONE && (op->writes >> i & 1u) &&
            net->values[net->values[node->in[i]].root].home != MICA_HOME_KEPT)
            return mica_net_refuse(net, MICA_ERR_ARGUMENT,
                                   "%s writes to input %d: expected a value that is kept", op->name, i),
                   net->status;
    }
    if (op->opts_bytes == 0)
        return MICA_OK;
    node->opts = mica_net_memory(net, op->opts_bytes);
    if (node->opts == NULL)
        return net->status;
    if (opts != NULL)
        memcpy(node->opts, opts, op->opts_bytes);
    else
        memset(node->opts, 0, op->opts_bytes);
    return MICA_OK;
}

mica_status mica_net_infer_node(mica_net *net, const mica_node *node, mica_infer *infer)
{
    mica_tensor shapes[MICA_OP_INS];
    *infer = (mica_infer){.ctx = net->ctx, .op = node->op, .opts = node->opts, .ins = node->ins};
    for (int i = 0; i < node->ins; i++) {
        if (node->in[i] == NONE)
            continue;
        shapes[i] = net->values[node->in[i]].tensor;
        shapes[i].data = NULL;
        infer->in[i] = &shapes[i];
    }
    for (int k = 0; k < node->outs; k++)
        infer->out[k].rank = NONE;
    mica_status status = node->op->infer != NULL ? node->op->infer(infer)
                                                 : mica_fail(net->ctx, MICA_ERR_STATE,
                                                             "%s: only for use in gradients", node->op->name);
    for (int k = 0; status == MICA_OK && k < node->outs; k++)
        if (infer->out[k].rank == NONE && (k == 0 || !(node->op->optional_outs >> k & 1u)))
            status = mica_fail(net->ctx, MICA_ERR_STATE, "%s: output %d was not inferred", node->op->name, k);
    for (int i = 0; i < node->ins; i++)
        infer->in[i] = NULL; /* they end here */
    return status;
}

bool mica_net_changes_later(const mica_net *net, int value, int origin)
{
    int root = net->values[value].root;
    if (net->values[root].home != MICA_HOME_KEPT)
        return false;
    for (int n = origin + 1; n < net->node_count; n++)
        for (int i = 0; i < net->nodes[n].ins && net->nodes[n].op->writes >> i; i++)
            if ((net->nodes[n].op->writes >> i & 1u) && net->nodes[n].in[i] != NONE &&
                net->values[net->nodes[n].in[i]].root == root)
                return true;
    return false;
}

/* What the operation that just failed said, without "shape error: operation: ". */
static const char *reason_of(mica_context *ctx)
{
    const char *reason = mica_error(ctx);
    for (int k = 0; k < 2; k++) {
        const char *colon = strstr(reason, ": ");
        reason = colon != NULL ? colon + 2 : reason;
    }
    return reason;
}

mica_status mica_net_check_outputs(mica_net *net, const mica_node *node, const mica_tensor *out)
{
    const mica_tensor *in = node->op->flags & MICA_OP_VIEW ? &net->values[node->in[0]].tensor : NULL;
    if (in != NULL && !mica_tensor_contiguous(in))
        return mica_fail(net->ctx, MICA_ERR_SHAPE,
                         "%s: expected a contiguous tensor, got %s with strides %s: copy it first",
                         node->op->name, MICA_SHAPE(in), mica_shape_text_of(in->rank, in->stride).text);
    if (in != NULL && (out->dtype != in->dtype || mica_tensor_bytes(out) != mica_tensor_bytes(in)))
        return mica_fail(net->ctx, MICA_ERR_SHAPE, "%s: %s %s is no view of %s %s", node->op->name,
                         mica_dtype_name(out->dtype), MICA_SHAPE(out), mica_dtype_name(in->dtype),
                         MICA_SHAPE(in));
    if ((node->op->flags & MICA_OP_LOSS) && (out->dtype != MICA_F32 || mica_tensor_count(out) != 1))
        return mica_fail(net->ctx, MICA_ERR_SHAPE, "%s: a loss is %s %s: expected one number, f32",
                         node->op->name, mica_dtype_name(out->dtype), MICA_SHAPE(out));
    return MICA_OK;
}

/* Makes a value for every output. Fails the layer if shapes do not fit. */
static mica_status make_outputs(mica_net *net, mica_node *node)
{
    mica_infer infer;
    mica_status status = mica_net_infer_node(net, node, &infer);
    if (status == MICA_OK)
        status = mica_net_check_outputs(net, node, &infer.out[0]);
    if (status != MICA_OK) {
        char reason[MICA_ERROR_TEXT];
        (void)mica_format(reason, sizeof reason, "%s", reason_of(net->ctx));
        (void)mica_net_layer_fail(net, status, "%s", reason);
        return net->status;
    }
    int outs = node->outs;
    for (int k = 0; k < outs; k++) {
        node->out[k] = NONE;
        if (infer.out[k].rank == NONE)
            continue;
        mica_buffer_kind beside = node->op->flags & MICA_OP_LOSS ? MICA_BUFFER_BACK : MICA_BUFFER_SAVED;
        int value = mica_net_new_value(net, NULL, MICA_HOME_PLANNED, k == 0 ? MICA_BUFFER_ACTIVATION : beside,
                                       &infer.out[k]);
        if (value == NONE)
            return net->status;
        net->values[value].maker = net->node_count;
        if (k > 0 && (node->op->flags & (MICA_OP_RANDOM | MICA_OP_LOSS)))
            net->streams--; /* a mask, a loss's gradient: they had none */
        net->values[value].number = k;
        node->out[k] = value;
    }
    if (node->op->flags & MICA_OP_VIEW)
        net->values[node->out[0]].root = net->values[node->in[0]].root;
    return MICA_OK;
}

mica_value mica_net_call(mica_net *net, const char *name, const mica_op *op, const mica_value *ins, int count,
                         const void *opts)
{
    if (!mica_net_building(net) || check_entry(net, op) != MICA_OK)
        return 0;
    if (op == NULL)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "the operation is NULL");
    bool alone = net->open_layer == NONE;
    if (alone)
        mica_net_layer_begin(net, op->name, name, count > 0 && ins != NULL ? ins[0] : 0);
    mica_node node;
    if (net->status != MICA_OK || mica_net_make_node(net, &node, op, ins, count, opts) != MICA_OK ||
        mica_net_grow(net, &net->nodes, net->node_count, &net->node_room, sizeof *net->nodes) != MICA_OK ||
        make_outputs(net, &node) != MICA_OK)
        return 0;
    net->nodes[net->node_count++] = node;
    net->built_values = net->value_count;
    mica_value y = node.outs > 0 ? node.out[0] + 1 : 0;
    return alone ? mica_net_layer_end(net, y) : y;
}

mica_value mica_net_op(mica_net *net, const char *name, const char *op, const mica_value *ins, int count,
                       const void *opts)
{
    const mica_op *found = op != NULL ? mica_op_find(op) : NULL;
    if (found == NULL)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "unknown operation \"%s\"", op != NULL ? op : "");
    return mica_net_call(net, name, found, ins, count, opts);
}

mica_value mica_net_result(mica_net *net, mica_value value, int number)
{
    if (!mica_net_building(net) || mica_net_check_value(net, value, "result") != MICA_OK)
        return 0;
    int maker = net->values[value - 1].maker;
    if (maker == NONE || number < 0 || number >= net->nodes[maker].outs ||
        net->nodes[maker].out[number] == NONE)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "value %d has no sibling output %d", value, number);
    return net->nodes[maker].out[number] + 1;
}
