/* The sizes of a step (batch, length, ...), and the shapes of all values that follow from them.
 *
 * Values are numbered in an order in which each comes after what its shape follows from. So one pass is enough, and
 * what does not depend on the size that changed is passed over. */
#include <string.h>

#include "net/net.h"

/* ---- Building ---- */

mica_index mica_net_size(mica_net *net, const char *name, mica_index most)
{
    if (!mica_net_building(net))
        return 0;
    if (name == NULL || *name == '\0' || most < 0)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "a size needs a name and a maximum of at least 0");
    int number = 0;
    while (number < net->size_count && strcmp(net->size[number].name, name) != 0)
        number++;
    bool fresh = number == net->size_count || (number == 0 && net->size[0].most == 0);
    if (!fresh && net->size[number].most != most)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "size \"%s\" is already %td, not %td", name,
                               net->size[number].most, most);
    if (number == MICA_SIZES)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "more than %d sizes", MICA_SIZES);
    if (number == net->size_count) {
        net->size[number].name = mica_net_text(net, "%s", name);
        if (net->size[number].name == NULL)
            return 0;
        net->size_count++;
    }
    net->size[number].most = net->size[number].now = most;
    if (number == 0)
        net->rows = net->part_rows = most;
    return MICA_SIZE_CODE(number);
}

int mica_net_size_number(const mica_net *net, mica_index size)
{
    bool is_code = size <= MICA_SIZE_FIRST && size > MICA_SIZE_FIRST - (mica_index)net->size_count;
    return is_code ? (int)(MICA_SIZE_FIRST - size) : NONE;
}

mica_index mica_net_dim(mica_net *net, mica_value value, int axis)
{
    if (!mica_net_building(net) || mica_net_check_value(net, value, "a size") != MICA_OK)
        return 0;
    int rank = net->values[value - 1].tensor.rank;
    if (axis < -rank || axis >= rank)
        return mica_net_refuse(net, MICA_ERR_AXIS, "axis %d of a tensor of rank %d", axis, rank);
    return MICA_DIM_CODE(value - 1, axis < 0 ? axis + rank : axis);
}

mica_status mica_net_fix_sizes(mica_net *net, const char *reason)
{
    if (!mica_net_building(net))
        return net->ctx->status;
    net->sizes_fixed = mica_net_text(net, "%s", reason != NULL ? reason : "the net says so");
    return net->status;
}

/* The size that a code stands for now, or the code itself where it is a plain number. */
static mica_index size_of(const mica_net *net, mica_index code)
{
    if (code > MICA_SIZE_FIRST)
        return code;
    int number = mica_net_size_number(net, code);
    if (number != NONE)
        return net->size[number].now;
    mica_index place = MICA_DIM_FIRST - code;
    return net->values[place / MICA_MAX_RANK].tensor.dim[place % MICA_MAX_RANK];
}

mica_status mica_net_resolve_dims(mica_net *net, int rank, const mica_index *dims, mica_index *most,
                                  mica_index *source)
{
    if (rank > 0 && dims == NULL)
        return mica_net_refuse(net, MICA_ERR_ARGUMENT, "a tensor of rank %d whose dims are NULL", rank),
               net->status;
    for (int i = 0; i < rank && i < MICA_MAX_RANK; i++) {
        bool is_size = mica_net_size_number(net, dims[i]) != NONE;
        mica_index place = dims[i] <= MICA_DIM_FIRST ? MICA_DIM_FIRST - dims[i] : 0;
        bool is_dim = dims[i] <= MICA_DIM_FIRST && place / MICA_MAX_RANK < net->built_values &&
                      place % MICA_MAX_RANK < net->values[place / MICA_MAX_RANK].tensor.rank;
        source[i] = is_size || is_dim ? dims[i] : 0;
        if (!is_size && !is_dim && dims[i] <= MICA_SIZE_FIRST)
            return mica_net_refuse(net, MICA_ERR_ARGUMENT, "%td is not a size of this net", dims[i]),
                   net->status;
        most[i] = is_size || is_dim ? size_of(net, dims[i]) : dims[i];
    }
    return MICA_OK;
}

/* ---- Stepping ---- */

/* Gives a value a shape, within the memory it has. */
static mica_status reshape(mica_net *net, mica_value_info *v, const mica_tensor *shape)
{
    if (v->tensor.rank == shape->rank &&
        memcmp(v->tensor.dim, shape->dim, (size_t)shape->rank * sizeof shape->dim[0]) == 0)
        return MICA_OK;
    if (mica_tensor_bytes(shape) > v->bytes)
        return mica_fail(net->ctx, MICA_ERR_SHAPE, "net: \"%s\" would be %s, larger than planned",
                         mica_net_value_text(net, (int)(v - net->values)).text, MICA_SHAPE(shape));
    mica_index block = (mica_index)mica_dtype_block(v->tensor.dtype);
    if (block > 1 && (shape->rank == 0 || shape->dim[shape->rank - 1] % block != 0))
        return mica_fail(net->ctx, MICA_ERR_SHAPE,
                         "net: \"%s\" would be %s, which cuts the blocks of %td of %s",
                         mica_net_value_text(net, (int)(v - net->values)).text, MICA_SHAPE(shape), block,
                         mica_dtype_name(v->tensor.dtype));
    void *data = v->tensor.data;
    mica_dtype dtype = v->tensor.dtype;
    v->tensor = *shape;
    v->tensor.dtype = dtype;
    v->tensor.data = data;
    mica_net_set_strides(v);
    v->changed = true;
    return MICA_OK;
}

static mica_status reshape_from_sources(mica_net *net, mica_value_info *v)
{
    mica_tensor shape = v->tensor;
    for (int i = 0; i < shape.rank; i++)
        if (v->source[i] != 0)
            shape.dim[i] = size_of(net, v->source[i]);
    return reshape(net, v, &shape);
}

static bool inputs_changed(const mica_net *net, const mica_node *node)
{
    for (int i = 0; i < node->ins; i++)
        if (node->in[i] != NONE && net->values[node->in[i]].changed)
            return true;
    return false;
}

static bool same_as_built(const mica_value_info *a, const mica_value_info *b)
{
    return a->tensor.rank == b->tensor.rank &&
           memcmp(a->built, b->built, (size_t)a->tensor.rank * sizeof a->built[0]) == 0;
}

/* What was planned for two shapes that are the same holds only while they are: that an output lies over an input, that
 * a gradient is passed on as it is. At a smaller size one could be repeated to fit the other. */
static mica_status check_overlays(mica_net *net, const mica_node *node, const mica_infer *infer)
{
    for (int k = 0; k < node->outs; k++)
        for (int i = 0; i < node->ins && node->op->in_place[k] >> i; i++) {
            if (node->out[k] == NONE || node->in[i] == NONE || !(node->op->in_place[k] >> i & 1u))
                continue;
            const mica_value_info *in = &net->values[node->in[i]], *out = &net->values[node->out[k]];
            if (net->values[in->root].home == MICA_HOME_PLANNED && same_as_built(in, out) &&
                !mica_tensor_same_shape(&in->tensor, &infer->out[k]))
                return mica_fail(net->ctx, MICA_ERR_SHAPE,
                                 "net: %s of %s is %s at these sizes, but was planned to have its shape",
                                 node->op->name, MICA_SHAPE(&in->tensor), MICA_SHAPE(&infer->out[k]));
        }
    return MICA_OK;
}

static mica_status infer_again(mica_net *net, const mica_node *node)
{
    if (!inputs_changed(net, node))
        return MICA_OK;
    mica_infer infer;
    MICA_TRY(mica_net_infer_node(net, node, &infer));
    MICA_TRY(check_overlays(net, node, &infer));
    for (int k = 0; k < node->outs; k++)
        if (node->out[k] != NONE && infer.out[k].rank != NONE)
            MICA_TRY(reshape(net, &net->values[node->out[k]], &infer.out[k]));
    return MICA_OK;
}

/* A size of 1 is broadcast: where the plan's was not, gradients would need to be summed now. */
static mica_status check_gradients(mica_net *net)
{
    for (int i = 0; i < net->value_count; i++) {
        const mica_value_info *v = &net->values[i],
                              *gradient = v->gradient != NONE ? &net->values[v->gradient] : v;
        if ((v->changed || gradient->changed) && !mica_tensor_same_shape(&v->tensor, &gradient->tensor))
            return mica_fail(net->ctx, MICA_ERR_SHAPE,
                             "net: \"%s\" would be %s, its gradient %s: a size of 1 is broadcast",
                             mica_net_value_name(net, i), MICA_SHAPE(&v->tensor),
                             MICA_SHAPE(&gradient->tensor));
    }
    return MICA_OK;
}

mica_status mica_net_infer_shapes(mica_net *net)
{
    for (int i = 0; i < net->value_count; i++)
        net->values[i].changed = false;
    for (int i = 0; i < net->value_count; i++) {
        mica_value_info *v = &net->values[i];
        if (v->like != NONE)
            MICA_TRY(reshape(net, v, &net->values[v->like].tensor));
        else if (v->maker != NONE && v->number == 0)
            MICA_TRY(
                infer_again(net, i < net->built_values ? &net->nodes[v->maker] : &net->makers[v->maker]));
        else if (v->maker == NONE && (v->kind == MICA_BUFFER_INPUT || v->home == MICA_HOME_KEPT))
            MICA_TRY(reshape_from_sources(net, v));
    }
    for (int i = 0; i < net->size_count; i++)
        net->size_now[i] = net->size[i].now;
    return check_gradients(net);
}

/* Whether an output has the memory of an input: see take_over in lifetime.c. */
static bool shares_in_place(const mica_net *net, const mica_node *node, int in, int out)
{
    if (node->in[in] == NONE || node->out[out] == NONE || !(node->op->in_place[out] >> in & 1u))
        return false;
    int a = net->values[node->in[in]].root, b = net->values[node->out[out]].root;
    return a != b && net->values[a].group != NONE && net->values[a].group == net->values[b].group;
}

/* For the same reason a call that writes over an input would now write to elements that it still has to read. */
static mica_status check_in_place(mica_net *net)
{
    for (int e = 0; e < net->entry_count; e++) {
        const mica_node *node = &net->entries[e].node;
        for (int k = 0; k < node->outs; k++)
            for (int i = 0; i < node->ins; i++) {
                if (!shares_in_place(net, node, i, k))
                    continue;
                const mica_tensor *in = &net->values[node->in[i]].tensor,
                                  *out = &net->values[node->out[k]].tensor;
                if (!mica_tensor_same_shape(in, out))
                    return mica_fail(
                        net->ctx, MICA_ERR_SHAPE,
                        "net: \"%s\" would be %s, made in place from %s: a size of 1 is broadcast",
                        mica_net_value_name(net, node->out[k]), MICA_SHAPE(out), MICA_SHAPE(in));
            }
    }
    return MICA_OK;
}

/* Sets the sizes, or leaves all as it was. */
static mica_status set_sizes(mica_net *net, const mica_index *sizes)
{
    mica_index before[MICA_SIZES];
    for (int i = 0; i < net->size_count; i++) {
        const char *fixed = net->sizes_fixed;
#if !defined(MICA_SMALL)
        fixed = fixed != NULL ? fixed : net->size[i].fixed;
#endif
        if (fixed != NULL && sizes[i] != net->size[i].most)
            return mica_fail(net->ctx, MICA_ERR_SHAPE, "net: %s cannot be %td, only %td as planned: %s",
                             net->size[i].name, sizes[i], net->size[i].most, fixed);
    }
    for (int i = 0; i < net->size_count; i++) {
        before[i] = net->size[i].now;
        net->size[i].now = sizes[i];
    }
    mica_status status = mica_net_update_shapes(net);
    if (status == MICA_OK)
        status = check_in_place(net);
#if !defined(MICA_SMALL)
    net->shapes++;
#endif
    if (status == MICA_OK)
        return MICA_OK;
    char text[MICA_ERROR_TEXT]; /* what went wrong first */
    memcpy(text, net->ctx->error, sizeof text);
    for (int i = 0; i < net->size_count; i++)
        net->size[i].now = before[i];
    (void)mica_net_infer_shapes(net); /* some shapes have changed, others not */
    memcpy(net->ctx->error, text, sizeof text);
    return net->ctx->status = status;
}

/* The same for the batch alone: that of a part. */
mica_status mica_net_set_rows(mica_net *net, mica_index rows)
{
    mica_index sizes[MICA_SIZES];
    for (int i = 0; i < net->size_count; i++)
        sizes[i] = i == 0 ? rows : net->size[i].now;
    return set_sizes(net, sizes);
}

mica_status mica_net_set_size(mica_net *net, const char *name, mica_index size)
{
    if (name == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_set_size: name is NULL");
    if (strcmp(name, "batch") == 0)
        return mica_net_resize(net, size);
    int number = 1;
    while (number < net->size_count && strcmp(net->size[number].name, name) != 0)
        number++;
    if (!net->compiled)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_set_size: the net is not compiled");
    if (number == net->size_count)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "net_set_size: the net has no size \"%s\"", name);
    if (size < 0 || size > net->size[number].most)
        return mica_fail(net->ctx, MICA_ERR_SHAPE,
                         "net_set_size: %s is %td, but the net was built for at most %td", name, size,
                         net->size[number].most);
    mica_index sizes[MICA_SIZES];
    for (int i = 0; i < net->size_count; i++)
        sizes[i] = i == number ? size : net->size[i].now;
    net->ready = false;
    return set_sizes(net, sizes);
}

mica_status mica_net_resize(mica_net *net, mica_index batch)
{
    if (!net->compiled)
        return mica_fail(net->ctx, MICA_ERR_STATE, "net_resize: the net is not compiled");
    if (batch < 0 || batch > net->size[0].most)
        return mica_fail(net->ctx, MICA_ERR_SHAPE,
                         "net_resize: the batch is %td, but the net was built for at most %td", batch,
                         net->size[0].most);
    mica_index sizes[MICA_SIZES];
    for (int i = 0; i < net->size_count; i++)
        sizes[i] = net->size[i].now;
    sizes[0] = batch < net->part_rows ? batch : net->part_rows;
    net->ready = false;
    MICA_TRY(set_sizes(net, sizes));
    net->rows = batch;
    return MICA_OK;
}

int mica_net_sizes(const mica_net *net) { return net->size_count; }

mica_status mica_net_size_at(const mica_net *net, const char **name, mica_index *now, mica_index *most,
                             int number)
{
    if (number < 0 || number >= net->size_count)
        return mica_fail(net->ctx, MICA_ERR_INDEX, "net_size_at: size %d of %d", number, net->size_count);
    if (name != NULL)
        *name = net->size[number].name;
    if (now != NULL)
        *now = number == 0 ? net->rows : net->size[number].now;
    if (most != NULL)
        *most = net->size[number].most;
    return MICA_OK;
}

mica_status mica_net_unplan(mica_net *net)
{
    net->compiled = false;
    mica_net_rewind_memory(net);
    net->entry_count = net->forward_count = 0;
    net->value_count = net->built_values;
    net->derivation_count = net->built_derivations;
    net->maker_count = 0;
    for (int i = 0; i < net->built_values; i++) {
        mica_value_info *v = &net->values[i];
        v->bytes = v->built_bytes;
        v->gradient = NONE;
        v->whole = false;
        if (v->channels_last) {
            v->channels_last = false;
            mica_net_set_strides(v);
        }
    }
    for (int i = 0; i < net->size_count; i++)
        net->size[i].now = net->size[i].most;
    net->rows = net->part_rows = net->size[0].most;
    return mica_net_update_shapes(net);
}
