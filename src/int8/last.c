/* What lasts and stays as it is, copied into the new net: parameters of layers that stay float, states, tables. */
#include <string.h>

#include "int8/convert.h"

/* The sizes that something kept has; false if they follow those of a step. */
static bool fixed_size(const mica_value_info *v)
{
    for (int k = 0; k < v->tensor.rank; k++)
        if (v->source[k] != 0)
            return false;
    return true;
}

static mica_value derived(mica_int8 *q, int value)
{
    const mica_net *net = q->net;
    const mica_value_info *v = &net->values[value];
    for (int n = 0; n < net->derivation_count; n++) {
        const mica_node *node = &net->derivations[n];
        mica_value ins[MICA_OP_INS] = {0};
        if (node->out[0] != value)
            continue;
        for (int i = 0; i < node->ins; i++)
            ins[i] = node->in[i] != NONE ? mica_int8_lasting(q, node->in[i]) : 0;
        return mica_net_derived(q->out, v->name, v->tensor.dtype, v->tensor.rank, v->built, node->op, ins,
                                node->ins, node->opts);
    }
    return 0;
}

mica_value mica_int8_lasting(mica_int8 *q, int value)
{
    const mica_value_info *v = &q->net->values[value];
    if (q->as_floats[value] != 0)
        return q->as_floats[value];
    switch (v->home) {
    case MICA_HOME_LEARNED:
        q->as_floats[value] = mica_net_learned(q->out, v->name, v->tensor.rank, v->built, v->init);
        break;
    case MICA_HOME_KEPT:
        q->as_floats[value] =
            fixed_size(v)
                ? mica_net_kept(q->out, v->name, v->kept, v->tensor.dtype, v->tensor.rank, v->built, v->start)
                : mica_net_refuse(q->out, MICA_ERR_STATE,
                                  "int8: \"%s\" is kept, and its size is that of a step", v->name);
        break;
    case MICA_HOME_DERIVED:
        q->as_floats[value] = derived(q, value);
        break;
    case MICA_HOME_LENT:
        q->as_floats[value] = mica_net_lent(q->out, v->name, &v->tensor);
        break;
    case MICA_HOME_PLANNED:
        break;
    }
    return q->as_floats[value];
}

mica_status mica_int8_copy_lasting(mica_int8 *q, mica_net *out, bool back)
{
    for (int i = 0; i < q->values; i++) {
        const mica_value_info *v = &q->net->values[i];
        mica_tensor first, second;
        if (q->as_floats[i] == 0 || (v->home != MICA_HOME_LEARNED && v->home != MICA_HOME_KEPT))
            continue;
        MICA_TRY(mica_net_value_tensor(q->net, &first, i + 1));
        MICA_TRY(mica_net_value_tensor(out, &second, q->as_floats[i]));
        if (mica_tensor_bytes(&first) > 0)
            memcpy(back ? first.data : second.data, back ? second.data : first.data,
                   mica_tensor_bytes(&first));
    }
    return MICA_OK;
}
