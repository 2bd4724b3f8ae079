/* The net of floats with the roundings of the int8 net in it: x + (what bytes of x stand for - x), where the bracket
 * has no gradient. */
#include "int8/convert.h"
#include "node/entry.h"
#include "ops/integer.h"

static mica_value plus_error(mica_int8 *q, mica_value x, float scale)
{
    mica_value e = mica_net_call(q->out, NULL, &mica_op_quantize_error, &x, 1,
                                 &(mica_quantize_error_opts){scale});
    return mica_net_call(q->out, NULL, &mica_op_add, (mica_value[]){x, e}, 2, NULL);
}

/* What lies outside of the range is cut off, and has no gradient. */
static mica_value faked(mica_int8 *q, mica_value x, float scale)
{
    mica_clamp_opts limits = {-127.0f * scale, 127.0f * scale};
    return plus_error(q, mica_net_call(q->out, NULL, &mica_op_clamp, &x, 1, &limits), scale);
}

/* A value as calls read it: with its roundings, if bytes are made of it. */
static mica_value read(mica_int8 *q, int value)
{
    if (value == NONE)
        return 0;
    if (q->net->values[value].home != MICA_HOME_PLANNED)
        return mica_int8_lasting(q, value);
    return q->as_bytes[value] != 0 ? q->as_bytes[value] : q->as_floats[value];
}

/* Whether a call's result is rounded to bytes, of which the step at its beginning tells. */
static bool is_rounded(const mica_int8 *q, int value)
{
    for (int n = 0; n < q->nodes; n++) {
        mica_int8_kind kind = q->step[n].kind;
        if (q->step[n].end == value &&
            (kind == MICA_INT8_PRODUCT || kind == MICA_INT8_SUM || kind == MICA_INT8_LIMIT ||
             kind == MICA_INT8_JOIN || kind == MICA_INT8_AVERAGE || kind == MICA_INT8_GLOBAL))
            return true;
    }
    return false;
}

/* A product with its weights rounded. The scale of weights is one for each row of theirs, so they are turned where
 * their rows are not the output channels. */
static mica_value call_product(mica_int8 *q, const mica_node *node, mica_value *in, int count)
{
    mica_matmul_opts linear = {0};
    bool turned = mica_int8_turned(node);
    if (turned) {
        linear.activation = ((const mica_matmul_opts *)node->opts)->activation;
        in[1] = mica_net_call(q->out, NULL, &mica_op_permute, &in[1], 1, &(mica_permute_opts){{1, 0}});
    }
    in[1] = plus_error(q, in[1], 0.0f);
    return mica_net_call(q->out, NULL, turned ? &mica_op_linear : node->op, in, count,
                         turned ? &linear : node->opts);
}

static void build_call(mica_int8 *q, int n)
{
    const mica_node *node = &q->net->nodes[n];
    bool product = q->step[n].kind == MICA_INT8_PRODUCT;
    mica_value in[MICA_OP_INS] = {0};
    int count = node->ins, x = node->in[0], y = node->out[0];
    for (int i = 0; i < node->ins; i++)
        in[i] = read(q, node->in[i]);
    while (count > node->op->ins && in[count - 1] == 0)
        count--;
    mica_int8_begin(q, n, node->op, in[0]);
    if (product && q->as_bytes[x] == 0 && !q->bytes[x])
        in[0] = q->as_bytes[x] = faked(q, in[0], q->used[x]);
    mica_value made = product ? call_product(q, node, in, count)
                              : mica_net_call(q->out, NULL, node->op, in, count, node->opts);
    for (int k = 0; k < node->outs && made != 0; k++)
        if (node->out[k] != NONE)
            q->as_floats[node->out[k]] = mica_net_result(q->out, made, k);
    if (made != 0 && is_rounded(q, y))
        made = q->as_bytes[y] = q->as_floats[y] = faked(q, made, q->used[y]);
    (void)mica_net_layer_end(q->out, made);
}

mica_status mica_int8_fake(mica_int8 *q, mica_net *out)
{
    int inputs = 0;
    MICA_TRY(mica_int8_start(q, out));
    for (int n = 0; n < q->nodes && out->status == MICA_OK; n++) {
        mica_int8_build_inputs(q, &inputs, q->net->nodes[n].out[0]);
        build_call(q, n);
    }
    mica_int8_build_inputs(q, &inputs, q->values);
    mica_int8_build_outputs(q);
    return out->status;
}

mica_status mica_int8_fake_copy(mica_int8 *q, mica_net *out, bool back)
{
    if (out == NULL || out != q->out || out->block == NULL || q->net->block == NULL)
        return mica_fail(q->ctx, MICA_ERR_STATE,
                         "int8_fake_copy: expected the net that was built last, and both bound");
    MICA_TRY(mica_int8_copy_lasting(q, out, back));
    return mica_net_derive(back ? q->net : out);
}
