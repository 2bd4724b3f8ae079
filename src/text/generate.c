/* The next token of a text, by a net that is run on the last of its tokens, or that has run those before. */
#include <string.h>

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

/* The net's first input, which is one row of tokens. */
static mica_status find_input(mica_net *net, const mica_value_info **out)
{
    static const char op[] = "generate_next";
    const mica_value_info *input = *out = first_input(net);
    if (net->block == NULL || input == NULL)
        return mica_fail(net->ctx, MICA_ERR_STATE, "%s: the net is not bound, or has no input", op);
    if (input->tensor.rank != 2 || input->built[0] != 1)
        return mica_fail(net->ctx, MICA_ERR_SHAPE,
                         "%s: the net's input \"%s\" is %s: expected one row of tokens", op, input->name,
                         mica_shape_text_of(input->tensor.rank, input->built).text);
    return MICA_OK;
}

static mica_status check_tokens(mica_net *net, const mica_tensor *tokens)
{
    MICA_TRY(mica_tensor_check(net->ctx, "generate_next", "tokens", tokens));
    if (tokens->rank != 1 || tokens->dim[0] < 1)
        return mica_fail(net->ctx, MICA_ERR_SHAPE,
                         "generate_next: tokens are %s: expected a row of at least 1", MICA_SHAPE(tokens));
    return MICA_OK;
}

/* Runs the tokens from number `first` on. */
static mica_status run_from(mica_net *net, const mica_value_info *input, const mica_tensor *tokens,
                            mica_index first)
{
    mica_index length = tokens->dim[0] - first;
    MICA_TRY(set_length(net, input, length));
    mica_tensor window = {.data = mica_element(tokens, first * tokens->stride[0]),
                          .dtype = tokens->dtype,
                          .rank = 2,
                          .dim = {1, length},
                          .stride = {length * tokens->stride[0], tokens->stride[0]}};
    MICA_TRY(mica_copy(net->ctx, &input->tensor, &window));
    return mica_net_forward(net);
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

/* ---- Windows ---- */

mica_status mica_generate_next(mica_net *net, int32_t *token, const char *output, const mica_tensor *tokens,
                               mica_random *dice, const mica_sampling *sampling)
{
    mica_generation writer;
    MICA_TRY(mica_generation_begin(&writer, net, output));
    return mica_generation_next(&writer, token, tokens, dice, sampling);
}

/* ---- Token by token ---- */

static int position_of(const mica_net *net)
{
    int number = 1;
    while (number < net->size_count && strcmp(net->size[number].name, "position") != 0)
        number++;
    return number < net->size_count ? number : NONE;
}

/* Makes room where the window is full: half of it is forgotten, or, where positions are part of what is kept, the other
 * half is to be run anew. */
static mica_status make_room(mica_generation *writer, mica_index count, mica_index window)
{
    mica_index fresh = count - writer->run, half = window / 2, kept = writer->run - writer->first;
    if (fresh <= half && mica_net_can_drop(writer->net)) {
        writer->first += half;
        return mica_net_drop(writer->net, kept, half);
    }
    fresh = fresh > half ? fresh : half > 0 ? half : 1;
    writer->run = writer->first = count - (fresh < window ? fresh : window);
    return mica_net_reset_states(writer->net);
}

/* Runs what the net has not run yet, behind what it has kept; or all that is to be seen, where that is not the
 * beginning of these tokens. */
static mica_status run_new(mica_generation *writer, const mica_value_info *input, const mica_tensor *tokens)
{
    mica_net *net = writer->net;
    mica_index count = tokens->dim[0], window = input->built[1];
    bool places = position_of(net) != NONE; /* else what is kept has no end */
    if (writer->run == 0 || writer->run >= count) {
        writer->run = writer->first = places && count > window ? count - window : 0;
        MICA_TRY(mica_net_reset_states(net));
    } else if (places && count - writer->first > window) {
        MICA_TRY(make_room(writer, count, window));
    }
    while (writer->run < count) {
        mica_tensor next = *tokens;
        next.dim[0] = count - writer->run > window ? writer->run + window : count;
        if (places)
            MICA_TRY(mica_net_set_size(net, "position", writer->run - writer->first));
        MICA_TRY(run_from(net, input, &next, writer->run));
        writer->run = next.dim[0];
    }
    return MICA_OK;
}

mica_status mica_generation_begin(mica_generation *writer, mica_net *net, const char *output)
{
    if (output == NULL || writer == NULL)
        return mica_fail(net->ctx, MICA_ERR_ARGUMENT, "generation_begin: %s is NULL",
                         output == NULL ? "output" : "writer");
    *writer = (mica_generation){.net = net, .output = output, .cached = net->continues};
    return MICA_OK;
}

mica_status mica_generation_next(mica_generation *writer, int32_t *token, const mica_tensor *tokens,
                                 mica_random *dice, const mica_sampling *sampling)
{
    mica_net *net = writer->net;
    const mica_value_info *input;
    mica_tensor row;
    MICA_TRY(find_input(net, &input));
    MICA_TRY(check_tokens(net, tokens));
    if (writer->cached) {
        MICA_TRY(run_new(writer, input, tokens));
    } else {
        writer->run = tokens->dim[0];
        writer->first = writer->run > input->built[1] ? writer->run - input->built[1] : 0;
        MICA_TRY(mica_net_reset_states(net));
        MICA_TRY(run_from(net, input, tokens, writer->first));
    }
    MICA_TRY(last_row(net, &row, writer->output));
    return mica_sample(net->ctx, token, &row, dice, sampling);
}
