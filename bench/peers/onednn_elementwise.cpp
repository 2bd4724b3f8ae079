// Activations, sums, softmax and layer norm.
#include "onednn.hpp"

namespace onednn
{
namespace
{

using dnnl::algorithm;
using dnnl::prop_kind;

memory::desc table(const Sizes &size) { return plain({size[0], size[1]}, Tag::ab); }
size_t count(const Sizes &size) { return (size_t)(size[0] * size[1]); }

// What is made lies as what it is made of, which version 3 wants to be told.
dnnl::eltwise_forward::primitive_desc activated(prop_kind kind, algorithm how, const memory::desc &desc)
{
#if DNNL_VERSION_MAJOR >= 3
    return described<dnnl::eltwise_forward>(kind, how, desc, desc, 0.0f, 0.0f);
#else
    return described<dnnl::eltwise_forward>(kind, how, desc, 0.0f, 0.0f);
#endif
}

dnnl::eltwise_backward::primitive_desc activated_for(const dnnl::eltwise_forward::primitive_desc &hint,
                                                     algorithm how, const memory::desc &desc)
{
#if DNNL_VERSION_MAJOR >= 3
    return described_for<dnnl::eltwise_backward>(hint, how, desc, desc, desc, 0.0f, 0.0f);
#else
    return described_for<dnnl::eltwise_backward>(hint, how, desc, desc, 0.0f, 0.0f);
#endif
}

// ---- Activations. Backward reads x, or y where the derivative is made of that. ----

peer::Maker activation(algorithm how)
{
    return [=](const Sizes &size) -> std::vector<Way> {
        memory::desc desc = table(size);
        auto pd = activated(prop_kind::forward_inference, how, desc);
        memory y = make(desc);
        Step step(dnnl::eltwise_forward(pd), pd,
                  {{DNNL_ARG_SRC, make(desc, numbers(count(size), 1))}, {DNNL_ARG_DST, y}});
        return {{"", [=] { step(), wait(); }, [=](int) { return read(y, desc); }}};
    };
}

peer::Maker activation_backward(algorithm how, int reads)
{
    return [=](const Sizes &size) -> std::vector<Way> {
        memory::desc desc = table(size);
        auto pd = activated_for(activated(prop_kind::forward_training, how, desc), how, desc);
        memory dx = make(desc);
        Step step(dnnl::eltwise_backward(pd), pd,
                  {{reads, make(desc, numbers(count(size), 2))},
                   {DNNL_ARG_DIFF_DST, make(desc, numbers(count(size), 1))},
                   {DNNL_ARG_DIFF_SRC, dx}});
        return {{"", [=] { step(), wait(); }, [=](int) { return read(dx, desc); }}};
    };
}

// size: { elements, calls }
std::vector<Way> add(const Sizes &size)
{
    memory::desc desc = plain({size[0]}, Tag::a);
    auto pd = described<dnnl::binary>(algorithm::binary_add, desc, desc, desc);
    memory y = make(desc);
    Step step(dnnl::binary(pd), pd,
              {{DNNL_ARG_SRC_0, make(desc, numbers((size_t)size[0], 1))},
               {DNNL_ARG_SRC_1, make(desc, numbers((size_t)size[0], 2))},
               {DNNL_ARG_DST, y}});
    long calls = size[1];
    auto call = [=] {
        for (long i = 0; i < calls; i++)
            step(), wait();
    };
    return {{"", call, [=](int) { return read(y, desc); }}};
}

// ---- Softmax over the last dimension ----

dnnl::softmax_forward::primitive_desc softmax_of(const memory::desc &desc, prop_kind kind)
{
#if DNNL_VERSION_MAJOR >= 3
    return described<dnnl::softmax_forward>(kind, algorithm::softmax_accurate, desc, desc, 1);
#else
    return described<dnnl::softmax_forward>(kind, desc, 1);
#endif
}

std::vector<Way> softmax(const Sizes &size)
{
    memory::desc desc = table(size);
    auto pd = softmax_of(desc, prop_kind::forward_inference);
    memory y = make(desc);
    Step step(dnnl::softmax_forward(pd), pd,
              {{DNNL_ARG_SRC, make(desc, numbers(count(size), 1))}, {DNNL_ARG_DST, y}});
    return {{"", [=] { step(), wait(); }, [=](int) { return read(y, desc); }}};
}

std::vector<Way> softmax_backward(const Sizes &size)
{
    memory::desc desc = table(size);
    auto hint = softmax_of(desc, prop_kind::forward_training);
#if DNNL_VERSION_MAJOR >= 3
    auto pd = described_for<dnnl::softmax_backward>(hint, algorithm::softmax_accurate, desc, desc, desc, 1);
#else
    auto pd = described_for<dnnl::softmax_backward>(hint, desc, desc, 1);
#endif
    memory dx = make(desc);
    Step step(dnnl::softmax_backward(pd), pd,
              {{DNNL_ARG_DST, make(desc, numbers(count(size), 2))},
               {DNNL_ARG_DIFF_DST, make(desc, numbers(count(size), 1))},
               {DNNL_ARG_DIFF_SRC, dx}});
    return {{"", [=] { step(), wait(); }, [=](int) { return read(dx, desc); }}};
}

// ---- Layer norm with scale and shift; forward also gives mean and variance ----

constexpr float epsilon = 1e-5f;

struct Norm {
    memory::desc desc, row;
    dnnl::layer_normalization_forward::primitive_desc pd;
    std::map<int, memory> arguments;

    explicit Norm(const Sizes &size)
        : desc(table(size)), row(plain({size[1]}, Tag::a)),
          pd(forward(desc)), arguments{{DNNL_ARG_SRC, make(desc, numbers(count(size), 1))},
                                       {DNNL_ARG_SCALE, make(row, numbers((size_t)size[1], 2))},
                                       {DNNL_ARG_SHIFT, make(row, numbers((size_t)size[1], 3))},
                                       {DNNL_ARG_MEAN, make(pd.mean_desc())},
                                       {DNNL_ARG_VARIANCE, make(pd.variance_desc())},
                                       {DNNL_ARG_DST, make(desc)}}
    {
    }
    static dnnl::layer_normalization_forward::primitive_desc forward(const memory::desc &desc)
    {
        const auto kind = prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
        return described<dnnl::layer_normalization_forward>(kind, desc, desc, epsilon, flags());
#else
        return described<dnnl::layer_normalization_forward>(kind, desc, epsilon, flags());
#endif
    }
    static dnnl::normalization_flags flags()
    {
        return dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    }
    Step step() const { return Step(dnnl::layer_normalization_forward(pd), pd, arguments); }
};

std::vector<Way> layer_norm(const Sizes &size)
{
    Norm norm(size);
    Step step = norm.step();
    return {
        {"", [=] { step(), wait(); }, [=](int) { return read(norm.arguments.at(DNNL_ARG_DST), norm.desc); }}};
}

std::vector<Way> layer_norm_backward(const Sizes &size)
{
    Norm norm(size);
    norm.step()();
    wait();
#if DNNL_VERSION_MAJOR >= 3
    auto pd = described_for<dnnl::layer_normalization_backward>(norm.pd, prop_kind::backward, norm.desc,
                                                                norm.desc, norm.desc, epsilon, Norm::flags());
#else
    auto pd = described_for<dnnl::layer_normalization_backward>(norm.pd, prop_kind::backward, norm.desc,
                                                                norm.desc, epsilon, Norm::flags());
#endif
    memory dx = make(norm.desc), dscale = make(norm.row), dshift = make(norm.row);
    std::map<int, memory> arguments = norm.arguments;
    arguments.erase(DNNL_ARG_DST);
    arguments[DNNL_ARG_DIFF_DST] = make(norm.desc, numbers(count(size), 6));
    arguments[DNNL_ARG_DIFF_SRC] = dx;
    arguments[DNNL_ARG_DIFF_SCALE] = dscale;
    arguments[DNNL_ARG_DIFF_SHIFT] = dshift;
    Step step(dnnl::layer_normalization_backward(pd), pd, arguments);
    auto result = [=](int index) {
        return index == 7 ? read(dx, norm.desc) : read(index == 8 ? dscale : dshift, norm.row);
    };
    return {{"", [=] { step(), wait(); }, result}};
}

} // namespace

void add_elementwise(peer::Makers &makers)
{
    makers["relu_fwd"] = activation(algorithm::eltwise_relu);
    makers["sigmoid_fwd"] = activation(algorithm::eltwise_logistic);
    makers["tanh_fwd"] = activation(algorithm::eltwise_tanh);
    makers["gelu_fwd"] = activation(algorithm::eltwise_gelu_erf);
    makers["relu_bwd"] = activation_backward(algorithm::eltwise_relu, DNNL_ARG_SRC);
    makers["sigmoid_bwd"] = activation_backward(algorithm::eltwise_logistic_use_dst_for_bwd, DNNL_ARG_DST);
    makers["tanh_bwd"] = activation_backward(algorithm::eltwise_tanh_use_dst_for_bwd, DNNL_ARG_DST);
    makers["gelu_bwd"] = activation_backward(algorithm::eltwise_gelu_erf, DNNL_ARG_SRC);
    makers["add"] = add;
    makers["softmax_fwd"] = softmax;
    makers["softmax_bwd"] = softmax_backward;
    makers["layer_norm_fwd"] = layer_norm;
    makers["layer_norm_bwd"] = layer_norm_backward;
}

} // namespace onednn
