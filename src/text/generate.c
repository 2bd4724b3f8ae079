/* The next token of a text, by a net that is run on the last of its tokens. */
#include <mica/ops/copy.h>
#include <mica/text.h>

#include "net/net.h"
#include "tensor/tensor.h"

/* The net's first input, with the shape that it was built for. */
static const mica_value_info *first_input(const mica_net *net)
{
    for (int i = 0; i < net->built_values; i++)
        if (net->values[i].kind == MICA_BUFFER_INPUT)
            return &net->values[i];
    return NULL;
}

/* Lets the net's input have so many tokens. */
static mica_status set_length(mica_net *net, const mica_value_info *input, mica_index length)
{
    if (input->tensor.dim[1] == length)
        return MICA_OK;
    if (input->source[1] == 0)
        return mica_fail(
            net->ctx, MICA_ERR_SHAPE,
            "generate_next: the net's input \"%s\" always has %td tokens: expected a size that can shrink (mica_net_size)",
            input->name, input->built[1]);
    return mica_net_set_size(net, net->size[MICA_SIZE_FIRST - input->source[1]].name, length);
}

/* The last of the tokens, as many as fit, into the net's first input. */
static mica_status set_window(mica_net *net, const mica_tensor *tokens)
{
    static const char op[] = "generate_next";
    const mica_value_info *input = first_input(net);
    if (net->block == NULL || input == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "%s: the net is not bound, or has no input", op);
    if (input->tensor.rank != 2 || input->built[0] != 1)
        return mica_fail(net->ctx, MICA_ERR_SHAPE,
                         "%s: the net's input \"%s\" is %s: expected one row of tokens", op, input->name,
                         mica_shape_text_of(input->tensor.rank, input->built).text);
    MICA_TRY(mica_tensor_check(net->ctx, op, "tokens", tokens));
    if (tokens->rank != 1 || tokens->dim[0] < 1)
        return mica_fail(net->ctx, MICA_ERR_SHAPE, "%s: tokens are %s: expected a row of at least 1", op,
                         MICA_SHAPE(tokens));
    mica_index most = input->built[1], length = tokens->dim[0] < most ? tokens->dim[0] : most;
    MICA_TRY(set_length(net, input, length));
    mica_tensor window = {.data = mica_element(tokens, (tokens->dim[0] - length) * tokens->stride[0]),
                          .dtype = tokens->dtype,
                          .rank = 2,
                          .dim = {1, length},
                          .stride = {length * tokens->stride[0], tokens->stride[0]}};
    return mica_copy(net->ctx, &input->tensor, &window);
}

/* The last row of an output [1, t, V] or [1, V]. */
static mica_status last_row(mica_net *net, mica_tensor *row, const char *output)
{
    mica_tensor y;
    MICA_TRY(mica_net_tensor(net, &y, output));
    if (y.rank < 2 || y.rank > 3 || y.dtype != MICA_F32 || mica_tensor_count(&y) == 0)
        return mica_fail(net->ctx, MICA_ERR_SHAPE,
                         "generate_next: output \"%s\" is %s %s: expected f32 logits of tokens", output,
                         mica_dtype_name(y.dtype), MICA_SHAPE(&y));
    mica_index logits = y.dim[y.rank - 1];
    *row = mica_1d((float *)y.data + (mica_tensor_count(&y) - (size_t)logits), logits);
    return MICA_OK;
}

mica_status mica_generate_next(mica_net *net, int32_t *token, const char *output, const mica_tensor *tokens,
                               mica_random *dice, const mica_sampling *sampling)
{
    mica_tensor row;
    if (output == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "generate_next: output is NULL");
    MICA_TRY(set_window(net, tokens));
    MICA_TRY(mica_net_reset_states(net));
    MICA_TRY(mica_net_forward(net));
    MICA_TRY(last_row(net, &row, output));
    return mica_sample(net->ctx, token, &row, dice, sampling);
}

mica_status mica_generation_begin(mica_generation *writer, mica_net *net, const char *output)
{
    if (output == NULL || writer == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "generation_begin: %s is NULL",
                         output == NULL ? "output" : "writer");
    *writer = (mica_generation){.net = net, .output = output};
    return MICA_OK;
}

mica_status mica_generation_next(mica_generation *writer, int32_t *token, const mica_tensor *tokens,
                                 mica_random *dice, const mica_sampling *sampling)
{
    return mica_generate_next(writer->net, token, writer->output, tokens, dice, sampling);
}
