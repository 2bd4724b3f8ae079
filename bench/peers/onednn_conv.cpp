// Convolutions of one and two axes, alone and with the mean of each channel behind ("matched").
#include "onednn.hpp"

namespace onednn
{
namespace
{

using dnnl::algorithm;
using dnnl::prop_kind;

// Sizes: axes, batch, channels in and out, side, kernel; stride 1, the size is kept.
struct Shape {
    long batch, in, out, side, kernel;
    int axes;
    Dims image(long channels) const { return spread(batch, channels, side); }
    Dims weights() const { return spread(out, in, kernel); }
    Dims pad() const { return Dims((size_t)axes, kernel / 2); }
    Dims ones() const { return Dims((size_t)axes, 1); }
    size_t image_count(long channels) const { return (size_t)(batch * channels * positions()); }
    size_t weight_count() const { return (size_t)(out * in * (axes == 2 ? kernel * kernel : kernel)); }
    long positions() const { return axes == 2 ? side * side : side; }

    Dims spread(long first, long second, long length) const
    {
        Dims dims{first, second};
        dims.insert(dims.end(), (size_t)axes, length);
        return dims;
    }
};

// How images and weights lie in memory: as oneDNN prefers, channels first, channels last.
enum class Layout { preferred, channels_first, channels_last };

struct Conv {
    Shape shape;
    Layout layout;
    algorithm how;

    memory::desc image(long channels) const { return of(shape.image(channels)); }
    memory::desc weights() const // only images are bound to a layout: weights are reordered once
    {
        return any(shape.weights());
    }
    memory::desc bias() const { return plain({shape.out}, Tag::a); }
    memory::desc first(const Dims &dims) const { return plain(dims, shape.axes == 2 ? Tag::nchw : Tag::ncw); }

    memory::desc of(const Dims &dims) const
    {
        if (layout == Layout::preferred)
            return any(dims);
        if (layout == Layout::channels_first)
            return first(dims);
        return plain(dims, shape.axes == 2 ? Tag::nhwc : Tag::nwc);
    }

    dnnl::convolution_forward::primitive_desc forward(prop_kind kind) const
    {
        return described<dnnl::convolution_forward>(kind, how, image(shape.in), weights(), bias(),
                                                    image(shape.out), shape.ones(), shape.pad(), shape.pad());
    }
    memory x(const memory::desc &wanted) const
    {
        return laid(wanted, first(shape.image(shape.in)), numbers(shape.image_count(shape.in), 1));
    }
    memory w(const memory::desc &wanted) const
    {
        return laid(wanted, first(shape.weights()), numbers(shape.weight_count(), 2));
    }
};

// ---- Forward ----

struct Forward {
    dnnl::convolution_forward::primitive_desc pd;
    memory y;
    Step step;

    explicit Forward(const Conv &conv)
        : pd(conv.forward(prop_kind::forward_inference)), y(make(pd.dst_desc())),
          step(dnnl::convolution_forward(pd), pd,
               {{DNNL_ARG_SRC, conv.x(pd.src_desc())},
                {DNNL_ARG_WEIGHTS, conv.w(pd.weights_desc())},
                {DNNL_ARG_BIAS, make(conv.bias(), numbers((size_t)conv.shape.out, 3))},
                {DNNL_ARG_DST, y}})
    {
    }
};

Way forward_way(const Conv &conv)
{
    Forward forward(conv);
    memory::desc wanted = conv.first(conv.shape.image(conv.shape.out));
    return {"", [=] { forward.step(), wait(); }, [=](int) { return read(forward.y, wanted); }};
}

// ---- Backward: the gradients of input, weights and bias ----

struct Backward {
    dnnl::convolution_forward::primitive_desc hint;
    dnnl::convolution_backward_weights::primitive_desc weights;
    dnnl::convolution_backward_data::primitive_desc data;
    memory dx, dw, db;

    // With `shared` both read the output's gradient from one memory, so in one layout.
    Backward(const Conv &conv, bool shared)
        : hint(conv.forward(prop_kind::forward_training)),
          weights(described_for<dnnl::convolution_backward_weights>(
              hint, conv.how, conv.image(conv.shape.in), conv.weights(), conv.bias(),
              conv.image(conv.shape.out), conv.shape.ones(), conv.shape.pad(), conv.shape.pad())),
          data(described_for<dnnl::convolution_backward_data>(
              hint, conv.how, conv.image(conv.shape.in), conv.weights(),
              shared ? weights.diff_dst_desc() : conv.image(conv.shape.out), conv.shape.ones(),
              conv.shape.pad(), conv.shape.pad())),
          dx(make(data.diff_src_desc())), dw(make(weights.diff_weights_desc())), db(make(conv.bias()))
    {
    }

    Step by_weights(const Conv &conv, const memory &dy) const
    {
        return Step(dnnl::convolution_backward_weights(weights), weights,
                    {{DNNL_ARG_SRC, conv.x(weights.src_desc())},
                     {DNNL_ARG_DIFF_DST, dy},
                     {DNNL_ARG_DIFF_WEIGHTS, dw},
                     {DNNL_ARG_DIFF_BIAS, db}});
    }
    Step by_data(const Conv &conv, const memory &dy) const
    {
        return Step(dnnl::convolution_backward_data(data), data,
                    {{DNNL_ARG_WEIGHTS, conv.w(data.weights_desc())},
                     {DNNL_ARG_DIFF_DST, dy},
                     {DNNL_ARG_DIFF_SRC, dx}});
    }
    std::function<Floats(int)> result(const Conv &conv) const
    {
        Backward kept = *this;
        return [=](int index) {
            return index == 4   ? read(kept.dx, conv.first(conv.shape.image(conv.shape.in)))
                   : index == 5 ? read(kept.dw, conv.first(conv.shape.weights()))
                                : read(kept.db, conv.bias());
        };
    }
};

Way backward_way(const Conv &conv)
{
    Backward backward(conv, false);
    memory::desc given = conv.first(conv.shape.image(conv.shape.out));
    Floats dy = numbers(conv.shape.image_count(conv.shape.out), 7);
    Step by_data = backward.by_data(conv, laid(backward.data.diff_dst_desc(), given, dy));
    Step by_weights = backward.by_weights(conv, laid(backward.weights.diff_dst_desc(), given, dy));
    return {"", [=] { by_data(), by_weights(), wait(); }, backward.result(conv)};
}

// ---- Matched ----

dnnl::pooling_forward::primitive_desc mean_of(const Conv &conv, const memory::desc &image)
{
    const Shape &shape = conv.shape;
    return pooled(algorithm::pooling_avg_exclude_padding, image, any(shape.spread(shape.batch, shape.out, 1)),
                  Dims((size_t)shape.axes, shape.side));
}

Way matched_pooled(const Conv &conv)
{
    Forward forward(conv);
    auto pd = mean_of(conv, forward.pd.dst_desc());
    memory mean = make(pd.dst_desc());
    Step step(dnnl::pooling_forward(pd), pd, {{DNNL_ARG_SRC, forward.y}, {DNNL_ARG_DST, mean}});
    memory::desc wanted = conv.first(conv.shape.spread(conv.shape.batch, conv.shape.out, 1));
    return {"", [=] { forward.step(), step(), wait(); }, [=](int) { return read(mean, wanted); }};
}

Way matched_reduced(const Conv &conv)
{
    Forward forward(conv);
    memory::desc wanted = conv.first(conv.shape.spread(conv.shape.batch, conv.shape.out, 1));
    auto pd = described<dnnl::reduction>(algorithm::reduction_mean, forward.pd.dst_desc(), wanted, 0.0f,
                                         0.0f);
    memory mean = make(pd.dst_desc());
    Step step(dnnl::reduction(pd), pd, {{DNNL_ARG_SRC, forward.y}, {DNNL_ARG_DST, mean}});
    return {"", [=] { forward.step(), step(), wait(); }, [=](int) { return read(mean, wanted); }};
}

Way matched_backward(const Conv &conv)
{
    Backward backward(conv, true);
    memory dy = make(backward.weights.diff_dst_desc());
    auto hint = mean_of(conv, dy.get_desc());
    const Shape &shape = conv.shape;
    auto pd = pooled_for(hint, algorithm::pooling_avg_exclude_padding, dy.get_desc(), hint.dst_desc(),
                         Dims((size_t)shape.axes, shape.side));
    memory dmean = laid(pd.diff_dst_desc(), conv.first(shape.spread(shape.batch, shape.out, 1)),
                        numbers((size_t)(shape.batch * shape.out), 8));
    Step spread(dnnl::pooling_backward(pd), pd, {{DNNL_ARG_DIFF_DST, dmean}, {DNNL_ARG_DIFF_SRC, dy}});
    Step by_data = backward.by_data(conv, dy), by_weights = backward.by_weights(conv, dy);
    return {"", [=] { spread(), by_data(), by_weights(), wait(); }, backward.result(conv)};
}

// Every layout and algorithm that there is.
void every(std::vector<Way> &ways, const Sizes &size, const std::string &name, Way (*maker)(const Conv &))
{
    Shape shape{size[1], size[2], size[3], size[4], size[5], (int)size[0]};
    static const std::pair<const char *, Layout> layouts[] = {{"preferred layout", Layout::preferred},
                                                              {"channels first", Layout::channels_first},
                                                              {"channels last", Layout::channels_last}};
    for (auto [layout_name, layout] : layouts)
        attempt(ways, name + layout_name, [&, kind = layout] {
            return maker({shape, kind, algorithm::convolution_direct});
        });
    attempt(ways, name + "winograd", [&] {
        return maker({shape, Layout::preferred, algorithm::convolution_winograd});
    });
}

peer::Maker from(std::vector<std::pair<std::string, Way (*)(const Conv &)>> makers)
{
    return [=](const Sizes &size) {
        std::vector<Way> ways;
        for (auto &[name, maker] : makers)
            every(ways, size, name, maker);
        return ways;
    };
}

} // namespace

void add_conv(peer::Makers &makers)
{
    makers["conv_fwd"] = from({{"", forward_way}});
    makers["conv_bwd"] = from({{"", backward_way}});
    makers["matched_fwd"] = from({{"pooling, ", matched_pooled}, {"reduction, ", matched_reduced}});
    makers["matched_bwd"] = from({{"", matched_backward}});
}

} // namespace onednn
