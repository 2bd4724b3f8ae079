/* LSTM, GRU and RNN. Mica's weights have their gates one below the other in PyTorch's order; ONNX has another, and
 * one tensor for both biases. The body of the function reorders them, so that the weights in the file are those of
 * the net. */
#include "onnx/write.h"

enum { X, W_IH, W_HH, B_IH, B_HH, H, H_BEFORE, C, C_BEFORE, H_0, C_0 };
enum { Y, STEPS, GATES, CELLS, H_N, C_N };

typedef struct cell {
    const char *type;
    int gates;
    int order[4]; /* gate k of ONNX is Mica's gate order[k] */
} cell;

static const cell lstm_cell = {"LSTM", 4, {0, 3, 1, 2}}; /* i f g o: i o f c */
static const cell gru_cell = {"GRU", 3, {1, 0, 2}};      /* r z n: z r h */
static const cell rnn_cell = {"RNN", 1, {0}};

static mica_onnx_term reordered(mica_onnx_writing *c, const cell *of, int in)
{
    mica_onnx_term parts[4] = {NEW, NEW, NEW, NEW}, sorted[4];
    if (of->gates == 1)
        return IN(in);
    mica_onnx_attr how[] = {mica_onnx_int_attr("axis", 0), mica_onnx_int_attr("num_outputs", of->gates)};
    mica_onnx_nodes(c, parts, of->gates, "Split", TERMS(IN(in)), how, c->w->version.opset >= 18 ? 2 : 1);
    for (int i = 0; i < of->gates; i++)
        sorted[i] = parts[of->order[i]];
    return mica_onnx_put(c, NEW, "Concat", sorted, of->gates, ATTRS(mica_onnx_int_attr("axis", 0)));
}

static mica_onnx_term biases(mica_onnx_writing *c, const cell *of, mica_onnx_term zero)
{
    bool bias = c->node->in[B_IH] != NONE;
    if (bias != (c->node->in[B_HH] != NONE))
        mica_onnx_refuse(c, "one bias of two");
    if (!bias)
        return 0;
    mica_onnx_term ih = reordered(c, of, B_IH), hh = reordered(c, of, B_HH);
    mica_onnx_term b = mica_onnx_put(c, NEW, "Concat", TERMS(ih, hh), ATTRS(mica_onnx_int_attr("axis", 0)));
    return mica_onnx_node2(c, NEW, "Unsqueeze", b, zero);
}

/* The node: outs are y [T, 1, N, H], and the last states, [1, N, H]. */
static void put_cell(mica_onnx_writing *c, const cell *of, mica_onnx_term outs[3], mica_onnx_term zero)
{
    const mica_sequence_opts *o = c->opts;
    mica_onnx_attr attrs[3] = {mica_onnx_int_attr("hidden_size", c->in[W_HH]->dim[1])};
    int attr_count = 1;
    if (of == &gru_cell)
        attrs[attr_count++] = mica_onnx_int_attr("linear_before_reset", 1);
    if (of == &rnn_cell && o->relu)
        attrs[attr_count++] = mica_onnx_texts_attr("activations", "Relu");
    if (o->reverse)
        attrs[attr_count++] = mica_onnx_text_attr("direction", "reverse");
    mica_onnx_term x = o->time_first ? IN(X) : mica_onnx_put_permute(c, NEW, IN(X), (int[]){1, 0, 2}, 3);
    mica_onnx_term w = mica_onnx_node2(c, NEW, "Unsqueeze", reordered(c, of, W_IH), zero);
    mica_onnx_term r = mica_onnx_node2(c, NEW, "Unsqueeze", reordered(c, of, W_HH), zero),
                   b = biases(c, of, zero);
    mica_onnx_term h = 0, cells = 0;
    if (c->node->in[H_0] != NONE)
        h = mica_onnx_node2(c, NEW, "Unsqueeze", IN(H_0), zero);
    if (c->node->in[C_0] != NONE)
        cells = mica_onnx_node2(c, NEW, "Unsqueeze", IN(C_0), zero);
    mica_onnx_nodes(c, outs, of == &lstm_cell ? 3 : 2, of->type, TERMS(x, w, r, b, 0, h, cells), attrs,
                    attr_count);
}

static void recurrent(mica_onnx_writing *c, const cell *of)
{
    const mica_sequence_opts *o = c->opts;
    mica_onnx_term zero = mica_onnx_put_int(c, 0), outs[3] = {NEW, NEW, NEW};
    for (int k = STEPS; k <= CELLS; k++)
        if (mica_onnx_is_read(c, k))
            mica_onnx_refuse(c, "what it keeps for its gradient is read");
    put_cell(c, of, outs, zero);
    if (mica_onnx_is_read(c, H_N))
        mica_onnx_node2(c, OUT(H_N), "Squeeze", outs[1], zero);
    if (mica_onnx_is_read(c, C_N))
        mica_onnx_node2(c, OUT(C_N), "Squeeze", outs[2], zero);
    if (o->last) {
        mica_onnx_node2(c, OUT(Y), "Squeeze", outs[1], zero);
        return;
    }
    mica_onnx_term y = mica_onnx_node2(c, o->time_first ? OUT(Y) : NEW, "Squeeze", outs[0],
                                       mica_onnx_put_int(c, 1));
    if (!o->time_first)
        mica_onnx_put_permute(c, OUT(Y), y, (int[]){1, 0, 2}, 3);
}

static void lstm(mica_onnx_writing *c) { recurrent(c, &lstm_cell); }
static void gru(mica_onnx_writing *c) { recurrent(c, &gru_cell); }
static void rnn(mica_onnx_writing *c) { recurrent(c, &rnn_cell); }

const mica_onnx_row mica_onnx_write_recurrent[] = {OWN_SEVERAL(lstm, lstm), OWN_SEVERAL(gru, gru),
                                                   OWN_SEVERAL(rnn, rnn), END_OF_ROWS};
