/* A layer of one's own, with a parameter and a hand-written backward; its gradients checked; then it learns. Public
 * headers only: this file could be anywhere. docs/adding-a-layer.md explains it. */
#include <math.h>
#include <mica/mica.h>
#include <stdio.h>

/* ---- The operation: y[n, c] = x[n, c] * sigmoid(slope[c] * x[n, c]) ---- */

static float sigmoid(float v) { return 1.0f / (1.0f + expf(-v)); }

static mica_status infer(mica_infer *i)
{
    const mica_tensor *x = i->in[0], *slope = i->in[1];
    if (x->rank != 2 || slope->rank != 1 || slope->dim[0] != x->dim[1])
        return mica_infer_fail(i, MICA_ERR_SHAPE, "expected x [N, C] and slope [C]");
    return mica_infer_like(i, 0, 0);
}

static mica_status run(const mica_call *c)
{
    const float *x = c->in[0]->data, *slope = c->in[1]->data;
    float *y = c->out[0]->data;
    mica_index channels = c->in[0]->dim[1], count = c->in[0]->dim[0] * channels;
    if (mica_call_measuring(c)) /* the plan asks for scratch: there are no numbers yet */
        return MICA_OK;
    for (mica_index i = 0; i < count; i++)
        y[i] = x[i] * sigmoid(slope[i % channels] * x[i]);
    return MICA_OK;
}

/* Both gradients in one pass, from x, slope and dy. One that nobody wants is NULL. */
static mica_status run_backward(const mica_call *c)
{
    const float *x = c->in[0]->data, *slope = c->in[1]->data, *dy = c->in[2]->data;
    mica_index channels = c->in[0]->dim[1], count = c->in[0]->dim[0] * channels;
    float *dx = c->out[0] != NULL ? c->out[0]->data : NULL,
          *dslope = c->out[1] != NULL ? c->out[1]->data : NULL;
    if (mica_call_measuring(c))
        return MICA_OK;
    for (mica_index k = 0; dslope != NULL && k < channels; k++)
        dslope[k] = 0.0f;
    for (mica_index i = 0; i < count; i++) {
        float s = sigmoid(slope[i % channels] * x[i]), ds = s * (1.0f - s);
        if (dx != NULL)
            dx[i] = dy[i] * (s + slope[i % channels] * x[i] * ds);
        if (dslope != NULL)
            dslope[i % channels] += dy[i] * x[i] * x[i] * ds;
    }
    return MICA_OK;
}

static const mica_op sloped_backward = {
    .name = "sloped_backward", .ins = 3, .outs = 2, .optional_outs = 3, .run = run_backward};

static void gradient(mica_grad *g)
{
    mica_value ins[] = {g->in[0], g->in[1], g->dout[0]};
    mica_grad_give_all(g, (int[]){0, 1}, 2, &sloped_backward, ins, 3, NULL);
}

static const mica_op sloped = {.name = "sloped",
                               .about = "x sigmoid(slope x)",
                               .ins = 2,
                               .outs = 1,
                               .infer = infer,
                               .run = run,
                               .gradient = gradient};

/* ---- The layer: the operation with its parameter ---- */

static mica_value sloped_layer(mica_net *net, const char *name, mica_value x)
{
    mica_tensor t;
    mica_net_layer_begin(net, "sloped", name, x);
    if (mica_net_shape(net, &t, x) != MICA_OK)
        return mica_net_layer_end(net, 0);
    if (t.rank != 2)
        return mica_net_layer_fail(net, MICA_ERR_SHAPE, "expected rank 2");
    mica_value slope = mica_net_learned(net, "slope", 1, &t.dim[1], (mica_init){MICA_INIT_CONSTANT, 1.0f});
    return mica_net_layer_end(net, mica_net_call(net, NULL, &sloped, (mica_value[]){x, slope}, 2, NULL));
}

/* ---- Its gradients ---- */

static mica_status check(mica_context *ctx)
{
    mica_net *net;
    mica_gradient_check found = {.right = false};
    mica_status status = mica_net_create(ctx, &net);
    if (status != MICA_OK)
        return status;
    /* The input is learned, so that its gradient is checked as well. */
    mica_value x = mica_net_learned(net, "x", 2, (mica_index[]){5, 3}, (mica_init){MICA_INIT_NORMAL, 1.0f});
    mica_value y = sloped_layer(net, "sloped", x);
    mica_net_mse(net, y, mica_net_input(net, "target", MICA_F32, 2, (mica_index[]){5, 3}), NULL);
    status = mica_net_compile(net, &(mica_compile_opts){.train = true, .debug = true});
    if (status == MICA_OK)
        status = mica_net_bind(net, NULL, 0);
    if (status == MICA_OK)
        status = mica_net_initialize(net, 42);
    mica_tensor target;
    if (status == MICA_OK)
        status = mica_net_tensor(net, &target, "target");
    for (int i = 0; status == MICA_OK && i < 15; i++)
        ((float *)target.data)[i] = sinf((float)i);
    if (status == MICA_OK)
        status = mica_check_gradients(net, &found, NULL);
    if (status == MICA_OK)
        printf("%zu gradients: %s; the worst, %s[%zu], is %g, by differences %g\n", found.checked,
               found.right ? "right" : "WRONG", found.name, found.element, found.gradient, found.difference);
    mica_net_destroy(net);
    return status == MICA_OK && !found.right ? MICA_ERR_STATE : status;
}

/* ---- It learns sin(3 x) ---- */

enum { BATCH = 32 };

static mica_status train(mica_context *ctx, float *loss)
{
    mica_net *net;
    mica_tensor in, want;
    mica_status status = mica_net_create(ctx, &net);
    if (status != MICA_OK)
        return status;
    mica_value x = mica_net_input(net, "x", MICA_F32, 2, (mica_index[]){BATCH, 1});
    mica_value target = mica_net_input(net, "target", MICA_F32, 2, (mica_index[]){BATCH, 1});
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 16});
    h = sloped_layer(net, "sloped", h);
    mica_net_mse(net, mica_net_dense(net, h, &(mica_net_dense_opts){.units = 1}), target, NULL);
    mica_optimizer adam = {.kind = MICA_ADAM, .lr = 0.02f};
    status = mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam});
    if (status == MICA_OK)
        status = mica_net_bind(net, NULL, 0);
    if (status == MICA_OK)
        status = mica_net_initialize(net, 42);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &in, "x");
    if (status == MICA_OK)
        status = mica_net_tensor(net, &want, "target");
    for (int step = 0; step < 500 && status == MICA_OK; step++) {
        for (int i = 0; i < BATCH; i++) {
            float v = 2.0f * (float)((step * 13 + i * 29) % 101) / 100.0f - 1.0f;
            ((float *)in.data)[i] = v;
            ((float *)want.data)[i] = sinf(3.0f * v);
        }
        status = mica_train_step(net, MICA_OPTIMIZER_LR);
    }
    *loss = status == MICA_OK ? mica_net_loss(net) : INFINITY;
    mica_net_destroy(net);
    return status;
}

int main(void)
{
    mica_context *ctx;
    float loss = INFINITY;
    if (mica_context_create(&ctx, NULL) != MICA_OK)
        return 1;
    mica_status status = check(ctx);
    if (status == MICA_OK)
        status = train(ctx, &loss);
    if (status != MICA_OK)
        fprintf(stderr, "%s\n", mica_error(ctx));
    else
        printf("sin(3x) after 500 steps: loss %.5f\n", (double)loss);
    mica_context_destroy(ctx);
    return status == MICA_OK && loss < 0.01f ? 0 : 1;
}
