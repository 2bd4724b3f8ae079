#include "onednn.hpp"

#include <cstdlib>
#include <cstring>
#include <omp.h>

namespace onednn
{

dnnl::engine &engine()
{
    static dnnl::engine one(dnnl::engine::kind::cpu, 0);
    return one;
}

dnnl::stream &stream()
{
    static dnnl::stream one(engine());
    return one;
}

dnnl::primitive_attr attributes()
{
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
}

memory::desc plain(const Dims &dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }
memory::desc any(const Dims &dims) { return {dims, memory::data_type::f32, Tag::any}; }

memory make(const memory::desc &desc)
{
    memory one(desc, engine());
    if (desc.get_size() > 0)
        std::memset(one.get_data_handle(), 0, desc.get_size());
    return one;
}

memory make(const memory::desc &desc, const Floats &values)
{
    memory one = make(desc);
    std::memcpy(one.get_data_handle(), values.data(), values.size() * sizeof(float));
    return one;
}

static memory reordered(const memory &from, const memory::desc &wanted)
{
    memory to = make(wanted), source = from;
    dnnl::reorder(source, to).execute(stream(), source, to);
    stream().wait();
    return to;
}

memory laid(const memory::desc &wanted, const memory::desc &given, const Floats &values)
{
    return reordered(make(given, values), wanted);
}

Floats read(const memory &from, const memory::desc &wanted)
{
    memory to = reordered(from, wanted);
    const float *data = (const float *)to.get_data_handle();
    return Floats(data, data + wanted.get_size() / sizeof(float));
}

dnnl::pooling_forward::primitive_desc pooled(dnnl::algorithm how, const memory::desc &image,
                                             const memory::desc &out, const Dims &window)
{
    Dims none(window.size(), 0);
    const auto kind = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3 // with a dilation
    return described<dnnl::pooling_forward>(kind, how, image, out, window, window, none, none, none);
#else
    return described<dnnl::pooling_forward>(kind, how, image, out, window, window, none, none);
#endif
}

dnnl::pooling_backward::primitive_desc pooled_for(const dnnl::pooling_forward::primitive_desc &hint,
                                                  dnnl::algorithm how, const memory::desc &image,
                                                  const memory::desc &out, const Dims &window)
{
    Dims none(window.size(), 0);
#if DNNL_VERSION_MAJOR >= 3
    return described_for<dnnl::pooling_backward>(hint, how, image, out, window, window, none, none, none);
#else
    return described_for<dnnl::pooling_backward>(hint, how, image, out, window, window, none, none);
#endif
}

void attempt(std::vector<Way> &ways, const std::string &name, const std::function<Way()> &maker)
{
    try {
        ways.push_back(maker());
        ways.back().name = name;
    } catch (const dnnl::error &) {
        // not for this processor, shape or layout
    }
}

} // namespace onednn

int main(int argc, char **argv)
{
    int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    omp_set_num_threads(threads);
    int team = 0;
#pragma omp parallel reduction(+ : team)
    team += 1;
    if (team != threads) // they are there from the beginning
        return 1;
    const dnnl_version_t *version = dnnl_version();
    peer::Makers makers;
    onednn::add_linalg(makers);
    onednn::add_conv(makers);
    onednn::add_pooling(makers);
    onednn::add_elementwise(makers);
    onednn::add_lstm(makers);
    return peer::serve("oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) +
                           "." + std::to_string(version->patch),
                       threads, makers);
}
