/* Values from outside and values that last; outputs, freezing, shapes. */
#include <string.h>

#include "net/net.h"

/* The longest name of what belongs to a layer, whose own may be shorter: build.c. */
#define LASTING_MOST (MICA_NAME_BYTES - 12)

/* ---- Inputs ---- */

/* By number: a first size that is that of the batch, or the first of all, is the batch's. */
static mica_value add_input(mica_net *net, const char *name, mica_dtype dtype, int rank,
                            const mica_index *dims, bool by_number)
{
    if (!mica_net_building(net))
        return 0;
    mica_tensor shape;
    mica_index most[MICA_MAX_RANK], source[MICA_MAX_RANK];
    if (name == NULL || *name == '\0')
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "an input needs a name");
    if (mica_net_resolve_dims(net, rank, dims, most, source) != MICA_OK)
        return 0;
    mica_status status = mica_tensor_init(net->ctx, &shape, NULL, dtype, rank, most);
    if (status != MICA_OK) {
        (void)mica_net_failed(net, status);
        return 0;
    }
    const char *full = mica_net_full_name(net, name, "input");
    int value = full != NULL ? mica_net_new_value(net, full, MICA_HOME_PLANNED, MICA_BUFFER_INPUT, &shape)
                             : NONE;
    if (value == NONE)
        return 0;
    mica_size *batch = &net->size[0];
    by_number = by_number && rank > 0 && source[0] == 0;
    if (by_number && batch->most == 0)
        batch->most = batch->now = net->rows = net->part_rows = most[0];
    if (by_number && batch->most == most[0] && most[0] > 0) /* 0: a later input has the batch */
        source[0] = MICA_SIZE_CODE(0);
    if (mica_net_set_source(net, value, rank, source) != MICA_OK)
        return 0;
    net->values[value].layer = NONE;
    net->built_values = net->value_count;
    return value + 1;
}

mica_value mica_net_input(mica_net *net, const char *name, mica_dtype dtype, int rank, const mica_index *dims)
{
    return add_input(net, name, dtype, rank, dims, true);
}

#if !defined(MICA_SMALL)
mica_value mica_net_input_as_said(mica_net *net, const char *name, mica_dtype dtype, int rank,
                                  const mica_index *dims)
{
    return add_input(net, name, dtype, rank, dims, false);
}

void mica_net_fix_batch(mica_net *net, mica_index rows, const char *reason)
{
    mica_size *batch = &net->size[0];
    batch->most = batch->now = net->rows = net->part_rows = rows;
    batch->fixed = reason;
}
#endif

/* A value that lasts, named after the scope. */
static mica_value add_lasting(mica_net *net, const char *name, mica_home home, mica_buffer_kind kind,
                              const mica_tensor *shape, const char *what)
{
    if (name == NULL || *name == '\0')
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "a %s needs a name", what);
    const char *full = mica_net_text(net, "%s%s", net->prefix, name);
    if (full == NULL)
        return 0;
    if (strlen(full) > LASTING_MOST)
        return mica_net_layer_fail(
            net, MICA_ERR_ARGUMENT,
            "the name \"%.32s...\" of its %s is too long (at most %d bytes, with its scopes)", full, what,
            LASTING_MOST);
    if (mica_net_name_taken(net, full))
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "the name of its %s \"%s\" is already in use",
                                   what, full);
    int value = mica_net_new_value(net, full, home, kind, shape);
    net->built_values = net->value_count;
    return value + 1;
}

/* The shape of something that lasts; false, with the layer's failure recorded, if it is none. */
static bool lasting_shape(mica_net *net, mica_tensor *shape, mica_dtype dtype, int rank,
                          const mica_index *dims)
{
    if (!mica_net_building(net))
        return false;
    mica_status status = mica_tensor_init(net->ctx, shape, NULL, dtype, rank, dims);
    if (status != MICA_OK)
        (void)mica_net_failed(net, status);
    return status == MICA_OK;
}

mica_value mica_net_learned(mica_net *net, const char *name, int rank, const mica_index *dims, mica_init init)
{
    mica_tensor shape;
    if (!lasting_shape(net, &shape, MICA_F32, rank, dims))
        return 0;
    if ((unsigned)init.kind > MICA_INIT_HE_NORMAL)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "unknown init %d for \"%s\"", (int)init.kind,
                                   name != NULL ? name : "");
    mica_value value = add_lasting(net, name, MICA_HOME_LEARNED, MICA_BUFFER_PARAMETER, &shape, "parameter");
    if (value != 0)
        net->values[value - 1].init = init;
    return value;
}

mica_value mica_net_shared(mica_net *net, const char *full_name, int rank, const mica_index *dims)
{
    if (!mica_net_building(net))
        return 0;
    int value = full_name != NULL ? mica_net_find(net, full_name) : NONE;
    if (value == NONE || net->values[value].home != MICA_HOME_LEARNED)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT,
                                   "shares \"%s\", which is not a parameter of this net",
                                   full_name != NULL ? full_name : "");
    if (rank > 0 && dims == NULL)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "shares \"%s\" of rank %d, whose dims are NULL",
                                   full_name, rank);
    const mica_tensor *have = &net->values[value].tensor;
    bool fits = have->rank == rank;
    for (int i = 0; fits && i < rank; i++)
        fits = have->dim[i] == dims[i];
    if (!fits)
        return mica_net_layer_fail(net, MICA_ERR_SHAPE, "shares \"%s\", which is %s: expected %s", full_name,
                                   MICA_SHAPE(have), mica_shape_text_of(rank, dims).text);
    return value + 1;
}

mica_value mica_net_kept(mica_net *net, const char *name, mica_kept_kind kind, mica_dtype dtype, int rank,
                         const mica_index *dims, float start)
{
    mica_tensor shape;
    mica_index most[MICA_MAX_RANK], source[MICA_MAX_RANK];
    if (!mica_net_building(net) || mica_net_resolve_dims(net, rank, dims, most, source) != MICA_OK ||
        !lasting_shape(net, &shape, dtype, rank, most))
        return 0;
    if (mica_in_blocks(dtype) && start != 0.0f)
        return mica_net_layer_fail(net, MICA_ERR_DTYPE, "a state of %s starts at 0, not at %g",
                                   mica_dtype_name(dtype), (double)start);
    mica_value value = add_lasting(net, name, MICA_HOME_KEPT, MICA_BUFFER_STATE, &shape, "state");
    if (value != 0) {
        mica_value_info *v = &net->values[value - 1];
        v->kept = kind;
        v->start = start;
        if (mica_net_set_source(net, value - 1, rank, source) != MICA_OK)
            return 0;
    }
    return value;
}

mica_value mica_net_lent(mica_net *net, const char *name, const mica_tensor *tensor)
{
    if (!mica_net_building(net))
        return 0;
    if (tensor == NULL || tensor->data == NULL)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "lent \"%s\" is NULL", name != NULL ? name : "");
    mica_status status = mica_tensor_check(net->ctx, "net_lent", "tensor", tensor);
    if (status != MICA_OK) {
        (void)mica_net_failed(net, status);
        return 0;
    }
    mica_value value = add_lasting(net, name, MICA_HOME_LENT, MICA_BUFFER_INPUT, tensor, "value");
    if (value != 0)
        net->values[value - 1].tensor = *tensor;
    return value;
}

mica_status mica_net_lend(mica_net *net, const char *name, const mica_tensor *tensor)
{
    if (!mica_net_building(net))
        return net->status;
    int value = name != NULL ? mica_net_find(net, name) : NONE;
    if (value == NONE || net->values[value].home != MICA_HOME_LEARNED) {
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "net_lend: there is no parameter \"%s\"",
                              name != NULL ? name : "");
        return net->status;
    }
    mica_value_info *v = &net->values[value];
    mica_status status = mica_tensor_check(net->ctx, "net_lend", "tensor", tensor);
    if (status != MICA_OK)
        return mica_net_failed(net, status);
    if (tensor->data == NULL || tensor->dtype != v->tensor.dtype ||
        !mica_tensor_same_shape(tensor, &v->tensor)) {
        (void)mica_net_refuse(net, MICA_ERR_SHAPE, "net_lend: \"%s\" is %s %s: expected f32 %s", name,
                              tensor->data == NULL ? "NULL" : mica_dtype_name(tensor->dtype),
                              MICA_SHAPE(tensor), MICA_SHAPE(&v->tensor));
        return net->status;
    }
    v->home = MICA_HOME_LENT;
    v->kind = MICA_BUFFER_INPUT;
    v->tensor = *tensor;
    return MICA_OK;
}

mica_value mica_net_derived(mica_net *net, const char *name, mica_dtype dtype, int rank,
                            const mica_index *dims, const mica_op *op, const mica_value *ins, int count,
                            const void *opts)
{
    mica_tensor shape;
    if (!lasting_shape(net, &shape, dtype, rank, dims))
        return 0;
    if (op == NULL)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "derived by an operation that is NULL");
    if (mica_net_grow(net, &net->derivations, net->derivation_count, &net->derivation_room,
                      sizeof *net->derivations) != MICA_OK)
        return 0;
    mica_node node;
    if (mica_net_make_node(net, &node, op, ins, count, opts) != MICA_OK)
        return 0;
    if (op->run == NULL || (~op->optional_outs & ((1u << op->outs) - 1u)) > 1u)
        return mica_net_layer_fail(net, MICA_ERR_ARGUMENT, "%s cannot derive a value: %s", op->name,
                                   op->run == NULL ? "its run is NULL" : "it has several outputs");
    for (int i = 0; i < node.ins; i++)
        if (node.in[i] != NONE && net->values[node.in[i]].home == MICA_HOME_PLANNED)
            return mica_net_layer_fail(net, MICA_ERR_ARGUMENT,
                                       "derives \"%s\" from a value that changes with every step",
                                       name != NULL ? name : "");
    mica_value value = add_lasting(net, name, MICA_HOME_DERIVED, MICA_BUFFER_DERIVED, &shape, "table");
    if (value == 0)
        return 0;
    node.outs = 1;
    node.out[0] = value - 1;
    net->derivations[net->derivation_count++] = node;
    net->built_derivations = net->derivation_count;
    return value;
}

/* ---- Outputs, freezing, shapes ---- */

mica_status mica_net_output(mica_net *net, const char *name, mica_value value)
{
    if (!mica_net_building(net))
        return net->status;
    MICA_TRY(mica_net_check_value(net, value, "output"));
    mica_value_info *v = &net->values[value - 1];
    if (v->output == 0)
        v->output = ++net->output_count;
    bool is_layers = v->layer != NONE && net->layers[v->layer].output == value;
    const char *known = v->name != NULL ? v->name : is_layers ? net->layers[v->layer].name : "";
    if (name == NULL || strcmp(known, name) == 0)
        return MICA_OK;
    const char *full = NULL;
    if (v->kind == MICA_BUFFER_INPUT)
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "output \"%s\" is the input \"%s\"", name, v->name);
    else if (v->name != NULL)
        (void)mica_net_refuse(net, MICA_ERR_ARGUMENT, "output \"%s\" is already named \"%s\"", name, v->name);
    else
        full = mica_net_full_name(net, name, "output");
    if (full != NULL) {
        net->values[value - 1].name = full;
        (void)mica_net_name_value(net, value - 1); /* its layer keeps its own */
    }
    return net->status;
}

mica_value mica_net_named(const mica_net *net, const char *name)
{
    int value = net != NULL && name != NULL ? mica_net_find(net, name) : NONE;
    return value != NONE ? value + 1 : 0;
}

mica_status mica_net_freeze(mica_net *net, const char *prefix, bool frozen)
{
    if (prefix == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_freeze: prefix is NULL");
    if (net->status != MICA_OK)
        return net->status;
    if (net->block != NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_freeze: the net is already bound");
    int found = 0;
    for (int i = 0; i < net->built_values; i++) {
        mica_value_info *v = &net->values[i];
        if (v->home == MICA_HOME_LEARNED && strncmp(v->name, prefix, strlen(prefix)) == 0) {
            v->frozen = frozen;
            found++;
        }
    }
    if (found == 0)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net: no parameter's name starts with \"%s\"", prefix);
    net->compiled = false;
    return MICA_OK;
}

mica_status mica_net_shape(const mica_net *net, mica_tensor *out, mica_value value)
{
    if (out == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_shape: out is NULL");
    if (value < 1 || value > net->built_values)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net: value %d does not belong to this net", value);
    const mica_value_info *v = &net->values[value - 1];
    mica_tensor shape = v->tensor;
    memcpy(shape.dim, v->built, sizeof shape.dim);
    *out = mica_tensor_like(&shape, NULL);
    return MICA_OK;
}
