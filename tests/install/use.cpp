// What a C++ program of somebody else's does: it learns XOR with two threads, in memory of its own.
#include <cstdio>
#include <cstring>
#include <memory>
#include <mica/mica.h>
#include <new>

namespace
{
const float inputs[4][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
const float targets[4] = {0, 1, 1, 0};

struct Destroy {
    void operator()(mica_context *ctx) const { mica_context_destroy(ctx); }
    void operator()(mica_net *net) const { mica_net_destroy(net); }
    void operator()(void *block) const { ::operator delete (block, std::align_val_t{64}); }
};

void build(mica_net *net)
{
    const mica_index x_dims[] = {4, 2}, target_dims[] = {4, 1};
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, x_dims);
    mica_value target = mica_net_input(net, "target", MICA_F32, 2, target_dims);
    mica_net_dense_opts hidden{}, last{};
    hidden.units = 8;
    hidden.activation = MICA_TANH;
    last.units = 1;
    mica_value y = mica_net_dense(net, mica_net_dense(net, x, &hidden), &last);
    mica_net_output(net, "y", y);
    mica_net_bce_logits(net, y, target, nullptr);
}

mica_status set_inputs(mica_net *net)
{
    mica_tensor x, target;
    if (mica_net_tensor(net, &x, "x") != MICA_OK || mica_net_tensor(net, &target, "target") != MICA_OK)
        return MICA_ERR_STATE;
    std::memcpy(x.data, inputs, sizeof inputs);
    std::memcpy(target.data, targets, sizeof targets);
    return MICA_OK;
}

int right_answers(mica_net *net)
{
    mica_tensor y;
    if (set_inputs(net) != MICA_OK || mica_net_forward(net) != MICA_OK ||
        mica_net_tensor(net, &y, "y") != MICA_OK)
        return 0;
    int right = 0;
    for (int i = 0; i < 4; i++)
        right += (static_cast<const float *>(y.data)[i] > 0.0f) == (targets[i] > 0.5f);
    return right;
}
} // namespace

int main()
{
    mica_context_opts opts{};
    opts.threads = 2;
    mica_context *made = nullptr;
    if (mica_context_create(&made, &opts) != MICA_OK)
        return 1;
    std::unique_ptr<mica_context, Destroy> ctx(made);
    mica_net *created = nullptr;
    if (mica_net_create(ctx.get(), &created) != MICA_OK)
        return 1;
    std::unique_ptr<mica_net, Destroy> net(created);
    build(net.get());

    mica_optimizer adam{};
    adam.kind = MICA_ADAM;
    adam.lr = 0.05f;
    mica_compile_opts compile{};
    compile.train = true;
    compile.optimizer = &adam;
    if (mica_net_compile(net.get(), &compile) != MICA_OK)
        return std::fprintf(stderr, "%s\n", mica_error(ctx.get())), 1;
    std::size_t bytes = mica_net_plan(net.get())->total;
    std::unique_ptr<void, Destroy> block(::operator new (bytes, std::align_val_t{64}));
    if (mica_net_bind(net.get(), block.get(), bytes) != MICA_OK ||
        mica_net_initialize(net.get(), 42) != MICA_OK)
        return std::fprintf(stderr, "%s\n", mica_error(ctx.get())), 1;
    for (int step = 0; step < 300; step++)
        if (set_inputs(net.get()) != MICA_OK || mica_train_step(net.get(), MICA_OPTIMIZER_LR) != MICA_OK)
            return std::fprintf(stderr, "%s\n", mica_error(ctx.get())), 1;
    int right = right_answers(net.get());
    std::printf("mica %s, %s: %zu bytes, %d of 4 right\n", mica_version(), mica_context_isa(ctx.get()), bytes,
                right);
    net.reset(); /* before its memory goes */
    return right == 4 ? 0 : 1;
}
