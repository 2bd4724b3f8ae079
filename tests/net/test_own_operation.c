/* An operation of the caller's own, by the public headers alone: in a net, planned, trained, its gradient checked. */
#include <math.h>
#include <string.h>

#include <mica/mica.h>
#include <mica/op.h>

#include "test.h"

/* ---- y = gain relu(x)^2 ---- */

typedef struct own_opts {
    float gain;
} own_opts;

static mica_status own_infer(mica_infer *i) { return mica_infer_like(i, 0, 0); }

static mica_status own_run(const mica_call *c)
{
    const mica_tensor *y = c->out[0];
    mica_status status = mica_relu(c->ctx, y, c->in[0]);
    if (status == MICA_OK)
        status = mica_square(c->ctx, y, y);
    return status == MICA_OK ? mica_scale(c->ctx, y, y, ((const own_opts *)c->opts)->gain) : status;
}

/* dx = 2 gain relu(x) dy */
static void own_gradient(mica_grad *g)
{
    mica_scalar_opts twice = {2.0f * ((const own_opts *)g->opts)->gain};
    mica_value slope = mica_grad_value(g, mica_op_find("relu"), g->in, 1, NULL);
    mica_value product = mica_grad_value(g, mica_op_find("mul"), (mica_value[]){slope, g->dout[0]}, 2, NULL);
    mica_grad_give(g, 0, mica_op_find("scale"), &product, 1, &twice);
}

static const mica_op own = {.name = "own",
                            .about = "gain relu(x)^2",
                            .flags = MICA_OP_CHEAP,
                            .ins = 1,
                            .outs = 1,
                            .opts_bytes = sizeof(own_opts),
                            .in_place = {1},
                            .infer = own_infer,
                            .run = own_run,
                            .gradient = own_gradient};

/* ---- In a net ---- */

#define COUNT 6

/* The loss is the sum of squares of own(x) / COUNT. */
static mica_net *make_net(mica_context *ctx, const float *x)
{
    mica_net *net;
    mica_tensor t;
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    mica_value in = mica_net_learned(net, "x", 1, (mica_index[]){COUNT},
                                     (mica_init){MICA_INIT_CONSTANT, 0.0f});
    mica_value y = mica_net_call(net, "own", &own, &in, 1, &(own_opts){1.5f});
    mica_value zero = mica_net_op(net, NULL, "zeros", &y, 1, NULL);
    (void)mica_net_op(net, "loss", "mse_loss", (mica_value[]){y, zero}, 2, NULL);
    CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .debug = true}));
    CHECK_OK(ctx, mica_net_bind(net, NULL, 0));
    CHECK_OK(ctx, mica_net_initialize(net, 0));
    CHECK_OK(ctx, mica_net_tensor(net, &t, "x"));
    memcpy(t.data, x, COUNT * sizeof *x);
    return net;
}

static double loss_at(mica_context *ctx, const float *x)
{
    mica_net *net = make_net(ctx, x);
    CHECK_OK(ctx, mica_net_forward_training(net, 0));
    double loss = (double)mica_net_loss(net);
    mica_net_destroy(net);
    return loss;
}

TEST(own_operations_have_gradients_in_nets)
{
    mica_context *ctx = test_context(1);
    float x[COUNT] = {-1.5f, -0.2f, 0.3f, 0.8f, 1.1f, 2.0f};
    mica_net *net = make_net(ctx, x);
    mica_tensor dx;
    test_heap heap = test_heap_now();
    CHECK_OK(ctx, mica_net_gradients(net, NULL));
    CHECK(test_heap_now().calls == heap.calls);
    CHECK_OK(ctx, mica_net_gradient(net, &dx, "x"));
    for (int i = 0; i < COUNT; i++) {
        const float step = 1e-2f, at = x[i];
        x[i] = at + step;
        double above = loss_at(ctx, x);
        x[i] = at - step;
        double below = loss_at(ctx, x);
        x[i] = at;
        double want = (above - below) / (2.0 * (double)step), got = (double)((const float *)dx.data)[i];
        CHECK_MSG(fabs(got - want) <= 1e-2 * (0.1 + fabs(want)), "element %d: %g, by differences %g", i, got,
                  want);
    }
    mica_net_destroy(net);
}

/* Only the list has names. */
TEST(own_operations_are_not_found_by_name)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    CHECK_OK(ctx, mica_net_create(ctx, &net));
    mica_value x = mica_net_input(net, "x", MICA_F32, 1, (mica_index[]){3});
    CHECK(mica_net_op(net, NULL, "own", &x, 1, NULL) == 0);
    CHECK_ERROR(ctx, mica_net_status(net), MICA_ERR_ARGUMENT,
                "argument error: net: unknown operation \"own\"");
    mica_net_destroy(net);
}
