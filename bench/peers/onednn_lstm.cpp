// LSTM over a sequence: forward, and forward with backward through time.
#include <cstring>

#include "onednn.hpp"

namespace onednn
{
namespace
{

using dnnl::prop_kind;
using dnnl::rnn_direction;

// Mica's weights are [4 hidden, inputs] with the gates in oneDNN's order. Its two biases become one, beforehand.
struct Lstm {
    long steps, batch, inputs, hidden;
    memory::desc x, y, state, w_x, w_h, bias;

    explicit Lstm(const Sizes &size)
        : steps(size[0]), batch(size[1]), inputs(size[2]), hidden(size[3]),
          x(plain({steps, batch, inputs}, Tag::tnc)), y(plain({steps, batch, hidden}, Tag::tnc)),
          state(plain({1, 1, batch, hidden}, Tag::ldnc)), w_x(plain({1, 1, inputs, 4, hidden}, Tag::ldgoi)),
          w_h(plain({1, 1, hidden, 4, hidden}, Tag::ldgoi)), bias(plain({1, 1, 4, hidden}, Tag::ldgo))
    {
    }
    memory::desc free(const memory::desc &of) const
    {
#if DNNL_VERSION_MAJOR >= 3
        return any(of.get_dims());
#else
        return any(of.dims());
#endif
    }

    dnnl::lstm_forward::primitive_desc forward(prop_kind kind) const
    {
        return described<dnnl::lstm_forward>(kind, rnn_direction::unidirectional_left2right, x, state, state,
                                             free(w_x), free(w_h), bias, y, state, state);
    }

    Floats values(const memory::desc &of, int index) const
    {
        return numbers(of.get_size() / sizeof(float), index);
    }
    static Floats small(Floats weights) // as Mica's row has them
    {
        for (float &weight : weights)
            weight /= 16.0f;
        return weights;
    }
    Floats both_biases() const
    {
        Floats sum = values(bias, 4), other = values(bias, 5);
        for (size_t i = 0; i < sum.size(); i++)
            sum[i] += other[i];
        return sum;
    }

    template <typename Descriptor> std::map<int, memory> inputs_of(const Descriptor &pd) const
    {
        return {{DNNL_ARG_SRC_LAYER, make(x, values(x, 1))},
                {DNNL_ARG_WEIGHTS_LAYER, laid(pd.weights_layer_desc(), w_x, small(values(w_x, 2)))},
                {DNNL_ARG_WEIGHTS_ITER, laid(pd.weights_iter_desc(), w_h, small(values(w_h, 3)))},
                {DNNL_ARG_BIAS, make(bias, small(both_biases()))}};
    }
};

std::vector<Way> forward(const Sizes &size)
{
    Lstm lstm(size);
    auto pd = lstm.forward(prop_kind::forward_inference);
    auto arguments = lstm.inputs_of(pd);
    arguments[DNNL_ARG_SRC_ITER] = make(lstm.state, lstm.values(lstm.state, 6));
    arguments[DNNL_ARG_SRC_ITER_C] = make(lstm.state, lstm.values(lstm.state, 7));
    memory y = arguments[DNNL_ARG_DST_LAYER] = make(lstm.y);
    memory h = arguments[DNNL_ARG_DST_ITER] = make(lstm.state);
    memory c = arguments[DNNL_ARG_DST_ITER_C] = make(lstm.state);
    Step step(dnnl::lstm_forward(pd), pd, arguments);
    auto result = [=](int index) {
        return index == 0 ? read(y, lstm.y) : read(index == 8 ? h : c, lstm.state);
    };
    return {{"", [=] { step(), wait(); }, result}};
}

// Gradients of weights are added to what is there, so they are zeroed in every call, as anyone must. The first state is
// zeros, given as such: without one the gradient of the hidden state's weights comes out otherwise (--verify).
std::vector<Way> both(const Sizes &size)
{
    Lstm lstm(size);
    const memory::desc &state = lstm.state;
    auto pd = lstm.forward(prop_kind::forward_training);
    auto back = described_for<dnnl::lstm_backward>(
        pd, prop_kind::backward, rnn_direction::unidirectional_left2right, lstm.x, state, state,
        lstm.free(lstm.w_x), lstm.free(lstm.w_h), lstm.bias, lstm.y, state, state, lstm.x, state, state,
        lstm.free(lstm.w_x), lstm.free(lstm.w_h), lstm.bias, lstm.y, state, state);
    auto arguments = lstm.inputs_of(pd), back_arguments = lstm.inputs_of(back);
    back_arguments[DNNL_ARG_SRC_LAYER] = arguments[DNNL_ARG_SRC_LAYER];
    memory y = arguments[DNNL_ARG_DST_LAYER] = back_arguments[DNNL_ARG_DST_LAYER] = make(lstm.y);
    for (int index : {DNNL_ARG_SRC_ITER, DNNL_ARG_SRC_ITER_C, DNNL_ARG_DST_ITER, DNNL_ARG_DST_ITER_C})
        arguments[index] = back_arguments[index] = make(state);
    for (int index :
         {DNNL_ARG_DIFF_SRC_ITER, DNNL_ARG_DIFF_SRC_ITER_C, DNNL_ARG_DIFF_DST_ITER, DNNL_ARG_DIFF_DST_ITER_C})
        back_arguments[index] = make(state);
    arguments[DNNL_ARG_WORKSPACE] = back_arguments[DNNL_ARG_WORKSPACE] = make(pd.workspace_desc());
    memory dx = make(lstm.x), dw_x = make(back.diff_weights_layer_desc()),
           dw_h = make(back.diff_weights_iter_desc()), db = make(lstm.bias);
    back_arguments[DNNL_ARG_DIFF_DST_LAYER] = make(lstm.y, lstm.values(lstm.y, 12));
    back_arguments[DNNL_ARG_DIFF_SRC_LAYER] = dx;
    back_arguments[DNNL_ARG_DIFF_WEIGHTS_LAYER] = dw_x;
    back_arguments[DNNL_ARG_DIFF_WEIGHTS_ITER] = dw_h;
    back_arguments[DNNL_ARG_DIFF_BIAS] = db;
    Step step(dnnl::lstm_forward(pd), pd, arguments),
        back_step(dnnl::lstm_backward(back), back, back_arguments);
    auto call = [=] {
        for (const memory &gradient : {dw_x, dw_h, db})
            std::memset(gradient.get_data_handle(), 0, gradient.get_desc().get_size());
        step(), back_step(), wait();
    };
    auto result = [=](int index) {
        return index == 0    ? read(y, lstm.y)
               : index == 13 ? read(dx, lstm.x)
               : index >= 16 ? read(db, lstm.bias)
                             : read(index == 14 ? dw_x : dw_h, index == 14 ? lstm.w_x : lstm.w_h);
    };
    return {{"", call, result}};
}

} // namespace

void add_lstm(peer::Makers &makers)
{
    makers["lstm_fwd"] = forward;
    makers["lstm_both"] = both;
}

} // namespace onednn
