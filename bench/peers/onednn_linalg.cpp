// Products and the dense layer.
#include "onednn.hpp"

namespace onednn
{
namespace
{

// C [M, N] = A [M, K] B [K, N]: in plain layouts, and with the layouts that oneDNN prefers.
Way product(const Sizes &size, bool packed)
{
    Dims a_dims{size[0], size[2]}, b_dims{size[2], size[1]}, c_dims{size[0], size[1]};
    memory::desc a = plain(a_dims, Tag::ab), b = plain(b_dims, Tag::ab), c = plain(c_dims, Tag::ab);
    auto pd = packed ? described<dnnl::matmul>(any(a_dims), any(b_dims), any(c_dims))
                     : described<dnnl::matmul>(a, b, c);
    memory out = make(pd.dst_desc());
    Step step(dnnl::matmul(pd), pd,
              {{DNNL_ARG_SRC, laid(pd.src_desc(), a, numbers((size_t)(size[0] * size[2]), 1))},
               {DNNL_ARG_WEIGHTS, laid(pd.weights_desc(), b, numbers((size_t)(size[2] * size[1]), 2))},
               {DNNL_ARG_DST, out}});
    return {"", [step] { step(), wait(); }, [=](int) { return read(out, c); }};
}

Way direct_product(const Sizes &size)
{
    long m = size[0], n = size[1], k = size[2];
    auto c = peer::aligned((size_t)(m * n)), a = peer::aligned(numbers((size_t)(m * k), 1)),
         b = peer::aligned(numbers((size_t)(k * n), 2));
    return {"", [=] { dnnl_sgemm('N', 'N', m, n, k, 1.0f, a.get(), k, b.get(), n, 0.0f, c.get(), n); },
            [=](int) { return Floats(c.get(), c.get() + m * n); }};
}

std::vector<Way> sgemm(const Sizes &size)
{
    std::vector<Way> ways;
    attempt(ways, "matmul, packed", [&] { return product(size, true); });
    attempt(ways, "matmul", [&] { return product(size, false); });
    attempt(ways, "sgemm", [&] { return direct_product(size); });
    return ways;
}

// ---- Dense: an inner product, whose weights [OUT, IN] Mica has as [IN, OUT] ----

struct Dense {
    long m, n, k;
    memory::desc x, w, b, y;
    memory::desc wanted_x, wanted_w, wanted_y;

    Dense(const Sizes &size, bool packed, Tag weights)
        : m(size[0]), n(size[1]), k(size[2]), x(plain({m, k}, Tag::ab)), w(plain({n, k}, Tag::ba)),
          b(plain({n}, Tag::a)), y(plain({m, n}, Tag::ab)), wanted_x(packed ? any({m, k}) : x),
          wanted_w(packed ? any({n, k}) : plain({n, k}, weights)), wanted_y(packed ? any({m, n}) : y)
    {
    }

    dnnl::inner_product_forward::primitive_desc forward(dnnl::prop_kind kind) const
    {
        return described<dnnl::inner_product_forward>(kind, wanted_x, wanted_w, b, wanted_y);
    }
    Floats x_values() const { return numbers((size_t)(m * k), 1); }
    Floats w_values() const { return numbers((size_t)(k * n), 2); }
};

Way dense_forward_way(const Dense &dense)
{
    auto pd = dense.forward(dnnl::prop_kind::forward_inference);
    memory out = make(pd.dst_desc());
    Step step(dnnl::inner_product_forward(pd), pd,
              {{DNNL_ARG_SRC, laid(pd.src_desc(), dense.x, dense.x_values())},
               {DNNL_ARG_WEIGHTS, laid(pd.weights_desc(), dense.w, dense.w_values())},
               {DNNL_ARG_BIAS, make(dense.b, numbers((size_t)dense.n, 3))},
               {DNNL_ARG_DST, out}});
    return {"", [step] { step(), wait(); }, [=](int) { return read(out, dense.y); }};
}

Way dense_backward_way(const Dense &dense)
{
    auto hint = dense.forward(dnnl::prop_kind::forward_training);
    auto data = described_for<dnnl::inner_product_backward_data>(hint, dense.wanted_x, dense.wanted_w,
                                                                 dense.wanted_y);
    auto weights = described_for<dnnl::inner_product_backward_weights>(hint, dense.wanted_x, dense.wanted_w,
                                                                       dense.b, dense.wanted_y);
    Floats dy = numbers((size_t)(dense.m * dense.n), 4);
    memory dx = make(data.diff_src_desc()), dw = make(weights.diff_weights_desc()), db = make(dense.b);
    Step by_data(dnnl::inner_product_backward_data(data), data,
                 {{DNNL_ARG_DIFF_DST, laid(data.diff_dst_desc(), dense.y, dy)},
                  {DNNL_ARG_WEIGHTS, laid(data.weights_desc(), dense.w, dense.w_values())},
                  {DNNL_ARG_DIFF_SRC, dx}});
    Step by_weights(dnnl::inner_product_backward_weights(weights), weights,
                    {{DNNL_ARG_DIFF_DST, laid(weights.diff_dst_desc(), dense.y, dy)},
                     {DNNL_ARG_SRC, laid(weights.src_desc(), dense.x, dense.x_values())},
                     {DNNL_ARG_DIFF_WEIGHTS, dw},
                     {DNNL_ARG_DIFF_BIAS, db}});
    auto result = [=](int index) {
        return index == 5 ? read(dx, dense.x) : index == 6 ? read(dw, dense.w) : read(db, dense.b);
    };
    return {"", [=] { by_data(), by_weights(), wait(); }, result};
}

std::vector<Way> dense(const Sizes &size, Way (*maker)(const Dense &))
{
    std::vector<Way> ways;
    attempt(ways, "packed", [&] { return maker(Dense(size, true, Tag::any)); });
    attempt(ways, "plain", [&] { return maker(Dense(size, false, Tag::ab)); });
    attempt(ways, "plain, transposed", [&] { return maker(Dense(size, false, Tag::ba)); });
    return ways;
}

} // namespace

void add_linalg(peer::Makers &makers)
{
    makers["sgemm"] = sgemm;
    makers["dense_fwd"] = [](const Sizes &size) { return dense(size, dense_forward_way); };
    makers["dense_bwd"] = [](const Sizes &size) { return dense(size, dense_backward_way); };
}

} // namespace onednn
