// Pooling by 2 x 2, stride 2, in every layout.
#include "onednn.hpp"

namespace onednn
{
namespace
{

using dnnl::algorithm;

struct Pool {
    algorithm how;
    memory::desc image; // in the layout that is tried
    Dims whole, halved;

    memory::desc plain_image() const { return plain(whole, Tag::nchw); }
    memory::desc plain_halved() const { return plain(halved, Tag::nchw); }
    Floats image_values() const { return numbers(count(whole), 1); }
    static size_t count(const Dims &dims) { return (size_t)(dims[0] * dims[1] * dims[2] * dims[3]); }

    dnnl::pooling_forward::primitive_desc forward() const { return pooled(how, image, any(halved), {2, 2}); }
};

// Arguments of forward; the largest ones' places go to the workspace.
std::map<int, memory> forward_arguments(const Pool &pool, const dnnl::pooling_forward::primitive_desc &pd)
{
    std::map<int, memory> arguments{{DNNL_ARG_SRC, laid(pool.image, pool.plain_image(), pool.image_values())},
                                    {DNNL_ARG_DST, make(pd.dst_desc())}};
    if (pool.how == algorithm::pooling_max)
        arguments[DNNL_ARG_WORKSPACE] = make(pd.workspace_desc());
    return arguments;
}

Way forward_way(const Pool &pool)
{
    auto pd = pool.forward();
    auto arguments = forward_arguments(pool, pd);
    Step step(dnnl::pooling_forward(pd), pd, arguments);
    memory y = arguments[DNNL_ARG_DST];
    return {"", [=] { step(), wait(); }, [=](int) { return read(y, pool.plain_halved()); }};
}

Way backward_way(const Pool &pool)
{
    auto hint = pool.forward();
    auto before = forward_arguments(pool, hint);
    auto pd = pooled_for(hint, pool.how, pool.image, hint.dst_desc(), {2, 2});
    memory dx = make(pool.image);
    std::map<int, memory> arguments{{DNNL_ARG_DIFF_SRC, dx}};
    if (pool.how == algorithm::pooling_max) {
        Step(dnnl::pooling_forward(hint), hint, before)();
        wait();
        arguments[DNNL_ARG_WORKSPACE] = before[DNNL_ARG_WORKSPACE];
        arguments[DNNL_ARG_DIFF_DST] = before[DNNL_ARG_DST]; // as in Mica's row, the maxima themselves
    } else
        arguments[DNNL_ARG_DIFF_DST] = laid(hint.dst_desc(), pool.plain_halved(),
                                            numbers(Pool::count(pool.halved), 0));
    Step step(dnnl::pooling_backward(pd), pd, arguments);
    return {"", [=] { step(), wait(); }, [=](int) { return read(dx, pool.plain_image()); }};
}

peer::Maker from(algorithm how, Way (*maker)(const Pool &))
{
    return [=](const Sizes &size) {
        static const std::pair<const char *, Tag> layouts[] = {{"blocks of 8 channels", Tag::nChw8c},
                                                               {"blocks of 16 channels", Tag::nChw16c},
                                                               {"channels last", Tag::nhwc},
                                                               {"channels first", Tag::nchw}};
        Dims whole{size[0], size[1], size[2], size[2]}, halved{size[0], size[1], size[2] / 2, size[2] / 2};
        std::vector<Way> ways;
        for (auto [name, tag] : layouts)
            attempt(ways, name, [&, layout = tag] {
                return maker({how, plain(whole, layout), whole, halved});
            });
        return ways;
    };
}

} // namespace

void add_pooling(peer::Makers &makers)
{
    makers["max_pool_fwd"] = from(algorithm::pooling_max, forward_way);
    makers["max_pool_bwd"] = from(algorithm::pooling_max, backward_way);
    makers["avg_pool_fwd"] = from(algorithm::pooling_avg_exclude_padding, forward_way);
    makers["avg_pool_bwd"] = from(algorithm::pooling_avg_exclude_padding, backward_way);
}

} // namespace onednn
