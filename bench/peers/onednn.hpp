// oneDNN's side: what all its kinds of rows share.
//
// Primitives, memory and scratchpads (the user's, not the library's) are made before the timing, and so are the
// reorders into the layouts that a primitive prefers. Primitives are run through the C interface, whose arguments are
// laid out once: the C++ one copies a map of them at every call.
#pragma once

#include <dnnl.hpp>

#include "peer.hpp"

namespace onednn
{

using dnnl::memory;
using Dims = memory::dims;
using Tag = memory::format_tag;
using peer::Floats;
using peer::numbers;
using peer::Sizes;
using peer::Way;

dnnl::engine &engine();
dnnl::stream &stream();
dnnl::primitive_attr attributes(); // with a scratchpad of the user's

memory::desc plain(const Dims &dims, Tag tag);
memory::desc any(const Dims &dims);

memory make(const memory::desc &desc);                       // zeros
memory make(const memory::desc &desc, const Floats &values); // in that layout
memory laid(const memory::desc &wanted, const memory::desc &given,
            const Floats &values); // given so, wanted otherwise
Floats read(const memory &from, const memory::desc &wanted);

// A primitive with its arguments.
class Step
{
  public:
    template <typename Descriptor>
    Step(const dnnl::primitive &primitive, const Descriptor &descriptor, std::map<int, memory> arguments)
        : primitive_(primitive), memory_(std::move(arguments))
    {
        memory_[DNNL_ARG_SCRATCHPAD] = make(descriptor.scratchpad_desc());
        for (auto &[index, one] : memory_)
            argument_.push_back({index, one.get()});
    }

    void operator()() const
    {
        dnnl::error::wrap_c_api(
            dnnl_primitive_execute(primitive_.get(), stream().get(), (int)argument_.size(), argument_.data()),
            "a primitive failed");
    }

  private:
    dnnl::primitive primitive_;
    std::map<int, memory> memory_;
    std::vector<dnnl_exec_arg_t> argument_;
};

// A primitive's descriptor, with our attributes: version 3 has no descriptors of operations before it.
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc described(const Arguments &...arguments)
{
#if DNNL_VERSION_MAJOR >= 3
    return typename Primitive::primitive_desc(engine(), arguments..., attributes());
#else
    return {typename Primitive::desc(arguments...), attributes(), engine()};
#endif
}

// The same of a backward one, whose forward one is the hint.
template <typename Primitive, typename Hint, typename... Arguments>
typename Primitive::primitive_desc described_for(const Hint &hint, const Arguments &...arguments)
{
#if DNNL_VERSION_MAJOR >= 3
    return typename Primitive::primitive_desc(engine(), arguments..., hint, attributes());
#else
    return {typename Primitive::desc(arguments...), attributes(), engine(), hint};
#endif
}

// Windows side by side.
dnnl::pooling_forward::primitive_desc pooled(dnnl::algorithm how, const memory::desc &image,
                                             const memory::desc &out, const Dims &window);
dnnl::pooling_backward::primitive_desc pooled_for(const dnnl::pooling_forward::primitive_desc &hint,
                                                  dnnl::algorithm how, const memory::desc &image,
                                                  const memory::desc &out, const Dims &window);

inline void wait() { dnnl_stream_wait(stream().get()); }

// Adds a way if the library can do it.
void attempt(std::vector<Way> &ways, const std::string &name, const std::function<Way()> &maker);

void add_linalg(peer::Makers &makers);
void add_conv(peer::Makers &makers);
void add_pooling(peer::Makers &makers);
void add_elementwise(peer::Makers &makers);
void add_lstm(peer::Makers &makers);

} // namespace onednn
