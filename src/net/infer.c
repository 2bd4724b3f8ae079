/* Inference of shapes: what a layer answers, recorded when a node is added and repeated when a net is
 * resized. */
#include <stdarg.h>
#include <stdio.h>

#include "net/net.h"
#include "tensor/tensor.h"

/* No two flags of a layer are one. */
#define ALL_FLAGS(join)                                                                                      \
    (MICA_LAYER_READS_INPUTS join MICA_LAYER_READS_OUTPUT join MICA_LAYER_IN_PLACE join MICA_LAYER_VIEW join \
         MICA_LAYER_ADDS_INPUTS join MICA_LAYER_ADDS_PARAMETERS join MICA_LAYER_LOSS join                    \
             MICA_LAYER_FIRST_INPUT_ONLY join MICA_LAYER_NO_INPUT_GRADIENT join MICA_LAYER_BACKWARD_IN_PLACE \
                 join MICA_LAYER_ENDS_WITH_ACTIVATION join MICA_LAYER_ACTIVATION join                        \
                     MICA_LAYER_BACKWARD_SAVED join MICA_LAYER_BACKWARD_TEMPORARIES join                     \
                         MICA_LAYER_STATES_LEARNED)
_Static_assert(ALL_FLAGS(+) == ALL_FLAGS(|), "flags of a layer are single bits, each its own");

/* Kinds of buffers that a layer asks for, as they are counted in mica_infer.asked. */
enum { ASKED_PARAMETER, ASKED_STATE, ASKED_SAVED, ASKED_TEMPORARY };

/* A slot takes a shape: as built, or a smaller one within the memory it has. */
static mica_status reshape(mica_infer *infer, mica_slot *slot, const mica_tensor *shape)
{
    if (mica_tensor_bytes(shape) > slot->bytes)
        return mica_fail(infer->ctx, MICA_ERR_SHAPE, "net: \"%s\" would be %s, larger than planned",
                         slot->name, MICA_SHAPE(shape));
    for (int life = 0; life < 2; life++)
        slot->tensor[life] = mica_tensor_like(shape, slot->tensor[life].data);
    return MICA_OK;
}

/* Answers a request: with a new slot the first time, by giving it its shape later. */
static mica_status ask(mica_infer *infer, int *slot, mica_buffer_kind kind, const char *name,
                       const mica_tensor *shape)
{
    if (*slot != NONE)
        return reshape(infer, &infer->net->slots[*slot], shape);
    int made = mica_net_new_slot(infer->net, name, kind, shape, infer->node);
    if (made == NONE)
        return infer->net->status;
    *slot = made;
    return MICA_OK;
}

/* The next buffer of a kind: its place in the node. */
static mica_status next_buffer(mica_infer *infer, int asked, int *list, int *count, int **place)
{
    int number = infer->asked[asked]++;
    if (number >= MICA_LAYER_BUFFERS)
        return mica_fail(infer->ctx, MICA_ERR_ARGUMENT,
                         "net: layer \"%s\" asks for more than %d buffers of a kind", infer->name,
                         MICA_LAYER_BUFFERS);
    if (number == *count) {
        list[number] = NONE;
        (*count)++;
    }
    *place = &list[number];
    return MICA_OK;
}

mica_status mica_infer_output(mica_infer *infer, mica_dtype dtype, int rank, const mica_index *dims)
{
    mica_tensor shape;
    MICA_TRY(mica_tensor_init(infer->ctx, &shape, NULL, dtype, rank, dims));
    mica_node *node = &infer->net->nodes[infer->node];
    bool fresh = node->out == NONE;
    MICA_TRY(ask(infer, &node->out, MICA_BUFFER_ACTIVATION, node->name, &shape));
    if (fresh && (node->layer->flags & MICA_LAYER_VIEW))
        infer->net->slots[node->out].root = infer->net->slots[node->in[0]].root;
    return MICA_OK;
}

mica_status mica_infer_parameter(mica_infer *infer, const char *name, int rank, const mica_index *dims,
                                 mica_init init)
{
    mica_tensor shape;
    MICA_TRY(mica_tensor_init(infer->ctx, &shape, NULL, MICA_F32, rank, dims));
    mica_node *node = &infer->net->nodes[infer->node];
    int *place = NULL;
    MICA_TRY(next_buffer(infer, ASKED_PARAMETER, node->param, &node->params, &place));
    if (*place != NONE)
        return MICA_OK; /* parameters do not change with the batch */
    const char *full = mica_net_text(infer->net, "%s.%s", node->name, name);
    if (full == NULL)
        return infer->net->status;
    if (mica_net_find(infer->net, full) != NONE)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT, "the name of its parameter \"%s\" is taken", full);
    if ((unsigned)init.kind > MICA_INIT_HE_NORMAL)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT, "the init of \"%s\" is number %d, which is none",
                               name, (int)init.kind);
    MICA_TRY(ask(infer, place, MICA_BUFFER_PARAMETER, full, &shape));
    infer->net->slots[*place].init = init;
    return MICA_OK;
}

mica_status mica_infer_shared(mica_infer *infer, const char *full_name, int rank, const mica_index *dims)
{
    mica_node *node = &infer->net->nodes[infer->node];
    int *place = NULL;
    MICA_TRY(next_buffer(infer, ASKED_PARAMETER, node->param, &node->params, &place));
    if (*place != NONE)
        return MICA_OK;
    int slot = mica_net_find(infer->net, full_name);
    if (slot == NONE || infer->net->slots[slot].kind != MICA_BUFFER_PARAMETER)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT, "shares \"%s\", which is no parameter of this net",
                               full_name);
    const mica_tensor *have = &infer->net->slots[slot].tensor[0];
    bool fits = have->rank == rank;
    for (int i = 0; fits && i < rank; i++)
        fits = have->dim[i] == dims[i];
    if (!fits)
        return mica_infer_fail(infer, MICA_ERR_SHAPE, "shares \"%s\", which is %s: expected %s", full_name,
                               MICA_SHAPE(have), mica_shape_text_of(rank, dims).text);
    *place = slot;
    return MICA_OK;
}

mica_status mica_infer_state(mica_infer *infer, const char *name, mica_dtype dtype, int rank,
                             const mica_index *dims, float start)
{
    mica_tensor shape;
    MICA_TRY(mica_tensor_init(infer->ctx, &shape, NULL, dtype, rank, dims));
    mica_node *node = &infer->net->nodes[infer->node];
    int *place = NULL;
    MICA_TRY(next_buffer(infer, ASKED_STATE, node->state, &node->states, &place));
    const char *full = *place != NONE ? NULL : mica_net_text(infer->net, "%s.%s", node->name, name);
    if (full != NULL && mica_net_find(infer->net, full) != NONE)
        return mica_infer_fail(infer, MICA_ERR_ARGUMENT, "the name of its state \"%s\" is taken", full);
    MICA_TRY(ask(infer, place, MICA_BUFFER_STATE, full, &shape));
    infer->net->slots[*place].start = start;
    return infer->net->status;
}

mica_status mica_infer_saved(mica_infer *infer, mica_dtype dtype, int rank, const mica_index *dims)
{
    mica_tensor shape;
    MICA_TRY(mica_tensor_init(infer->ctx, &shape, NULL, dtype, rank, dims));
    mica_node *node = &infer->net->nodes[infer->node];
    int *place = NULL;
    MICA_TRY(next_buffer(infer, ASKED_SAVED, node->save, &node->saved, &place));
    const char *full = *place != NONE
                           ? NULL
                           : mica_net_text(infer->net, "%s (saved %d)", node->name, node->saved - 1);
    return ask(infer, place, MICA_BUFFER_SAVED, full, &shape);
}

mica_status mica_infer_temporary(mica_infer *infer, mica_dtype dtype, int rank, const mica_index *dims)
{
    mica_tensor shape;
    MICA_TRY(mica_tensor_init(infer->ctx, &shape, NULL, dtype, rank, dims));
    mica_node *node = &infer->net->nodes[infer->node];
    int *place = NULL;
    MICA_TRY(next_buffer(infer, ASKED_TEMPORARY, node->temp, &node->temps, &place));
    return ask(infer, place, MICA_BUFFER_SCRATCH, NULL, &shape);
}

mica_status mica_infer_fail(mica_infer *infer, mica_status status, const char *format, ...)
{
    char message[MICA_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const mica_node *node = &infer->net->nodes[infer->node];
    if (infer->inputs == 0)
        return mica_fail(infer->ctx, status, "layer %d \"%s\" (%s)\n  %s", infer->node, node->name,
                         node->layer->name, message);
    const mica_slot *input = &infer->net->slots[node->in[0]];
    char maker[160] = "";
    if (input->node != NONE)
        (void)snprintf(maker, sizeof maker, "produced by layer %d \"%s\"", input->node, input->name);
    else
        (void)snprintf(maker, sizeof maker, "the net's input \"%s\"", input->name);
    return mica_fail(infer->ctx, status, "layer %d \"%s\" (%s)\n  input is %s, %s\n  %s", infer->node,
                     node->name, node->layer->name, MICA_SHAPE(&input->tensor[0]), maker, message);
}

mica_status mica_net_infer(mica_net *net, int number, bool first_time)
{
    mica_node *node = &net->nodes[number];
    mica_infer infer = {.ctx = net->ctx,
                        .name = node->name,
                        .opts = node->opts,
                        .inputs = node->inputs,
                        .net = net,
                        .node = number};
    mica_tensor in[MICA_LAYER_INPUTS]; /* copies: slots move when more are made */
    for (int i = 0; i < node->inputs; i++) {
        in[i] = mica_tensor_like(&net->slots[node->in[i]].tensor[0], NULL);
        infer.in[i] = &in[i];
    }
    MICA_TRY(node->layer->infer(&infer));
    if (first_time && net->nodes[number].out == NONE)
        return mica_infer_fail(&infer, MICA_ERR_STATE, "inferred no output");
    return MICA_OK;
}
