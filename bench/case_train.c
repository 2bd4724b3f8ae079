/* Training: the optimizers alone, and whole steps of a convolutional and a recurrent net.
 * size: { parameters, tensors, optimizer }, { batch } and { batch, steps, inputs, hidden } */
#include "bench/bench.h"

/* ---- Optimizers: one pass over parameters, gradients and state ---- */

/* The first element of a parameter, whose gradient is made up: so that a net can have nothing but parameters. */
static mica_status first_infer(mica_infer *i) { return mica_infer_out(i, 0, MICA_F32, 1, (mica_index[]){1}); }

static mica_status first_run(const mica_call *c)
{
    mica_tensor first = *c->in[0];
    first.dim[0] = 1;
    return mica_copy(c->ctx, c->out[0], &first);
}

static mica_status made_up_run(const mica_call *c) { return mica_fill(c->ctx, c->out[0], 0.01); }

static const mica_op made_up = {.name = "made_up", .ins = 1, .outs = 1, .adds = 1, .run = made_up_run};

static void first_gradient(mica_grad *g) { mica_grad_give(g, 0, &made_up, &g->dout[0], 1, NULL); }

static const mica_op first = {
    .name = "first", .ins = 1, .outs = 1, .infer = first_infer, .run = first_run, .gradient = first_gradient};

static mica_status optimizer_setup(bench_state *s)
{
    mica_index count = s->row->size[0], tensors = s->row->size[1];
    mica_optimizer optimizer = {.kind = (mica_optimizer_kind)s->row->size[2], .lr = 1e-6f};
    BENCH_TRY(mica_net_create(s->ctx, &s->net));
    mica_value target = mica_net_input(s->net, "target", MICA_F32, 1, (mica_index[]){1});
    for (mica_index i = 0; i < tensors; i++) {
        mica_net_layer_begin(s->net, "leaf", NULL, 0);
        mica_value all = mica_net_learned(s->net, "value", 1, &count, (mica_init){MICA_INIT_NORMAL, 1.0f});
        mica_value one = mica_net_layer_end(s->net, mica_net_call(s->net, NULL, &first, &all, 1, NULL));
        mica_net_mse(s->net, one, target, NULL);
    }
    BENCH_TRY(mica_net_compile(s->net, &(mica_compile_opts){.train = true, .optimizer = &optimizer}));
    BENCH_TRY(mica_net_bind(s->net, NULL, 0));
    BENCH_TRY(mica_net_initialize(s->net, 1));
    BENCH_TRY(mica_net_gradients(s->net, NULL));
    /* Parameters and state are read and written, gradients read. */
    s->bytes = 4.0 * (double)(count * tensors) * (3.0 + 2.0 * mica_optimizer_states(&optimizer));
    return MICA_OK;
}

static mica_status optimizer_run(bench_state *s) { return mica_train_update(s->net, MICA_OPTIMIZER_LR); }

/* ---- Batches: copied into the net's inputs before every step, as a program does ---- */

static mica_status make_batch(bench_state *s)
{
    for (int i = 0; i < mica_net_inputs(s->net); i++) {
        mica_tensor t;
        BENCH_TRY(mica_net_input_tensor(s->net, NULL, &t, i));
        BENCH_TRY(bench_tensor(s, t.dtype, t.rank, t.dim));
        for (mica_index k = 0; t.dtype == MICA_I32 && k < t.dim[0]; k++)
            ((int32_t *)s->t[i].data)[k] = (int32_t)(k % 10);
    }
    s->bytes = 0.0; /* arithmetic is what counts */
    return MICA_OK;
}

static mica_status set_inputs(bench_state *s)
{
    for (int i = 0; i < s->tensors; i++) {
        mica_tensor t;
        BENCH_TRY(mica_net_input_tensor(s->net, NULL, &t, i));
        BENCH_TRY(mica_copy(s->ctx, &t, &s->t[i]));
    }
    return MICA_OK;
}

/* ---- The convolutional net: 28 x 28 pixels to ten classes ---- */

static mica_status cnn_setup(bench_state *s, bool train)
{
    mica_index batch = s->row->size[0];
    BENCH_TRY(mica_net_create(s->ctx, &s->net));
    mica_value h = mica_net_input(s->net, "image", MICA_F32, 4, (mica_index[]){batch, 1, 28, 28});
    mica_value label = train ? mica_net_input(s->net, "label", MICA_I32, 1, &batch) : 0;
    mica_net_conv_opts conv = {.out_channels = 8, .kernel = {3, 3}, .pad = {1, 1}, .activation = MICA_RELU};
    h = mica_net_conv2d(s->net, h, &conv);
    h = mica_net_max_pool2d(s->net, h, &(mica_net_pool_opts){.kernel = {2, 2}});
    conv.out_channels = 16;
    h = mica_net_conv2d(s->net, h, &conv);
    h = mica_net_max_pool2d(s->net, h, &(mica_net_pool_opts){.kernel = {2, 2}});
    h = mica_net_flatten(s->net, h, NULL);
    h = mica_net_dense(s->net, h, &(mica_net_dense_opts){.units = 128, .activation = MICA_RELU});
    h = mica_net_dense(s->net, h, &(mica_net_dense_opts){.units = 10});
    mica_net_output(s->net, "logits", h);
    if (train)
        mica_net_cross_entropy(s->net, h, label, NULL);
    mica_optimizer adam = {.kind = MICA_ADAM};
    BENCH_TRY(
        mica_net_compile(s->net, &(mica_compile_opts){.train = train, .optimizer = train ? &adam : NULL}));
    BENCH_TRY(mica_net_bind(s->net, NULL, 0));
    BENCH_TRY(mica_net_initialize(s->net, 1));
    /* Multiply-adds of a sample's forward; backward does each twice, but for the gradient of the image. */
    double conv1 = 784.0 * 8 * 9, conv2 = 196.0 * 16 * 72, dense = 784.0 * 128 + 128.0 * 10;
    s->flops = 2.0 * (double)batch * (conv1 * (train ? 2 : 1) + (conv2 + dense) * (train ? 3 : 1));
    return make_batch(s);
}

static mica_status cnn_train_setup(bench_state *s) { return cnn_setup(s, true); }
static mica_status cnn_infer_setup(bench_state *s) { return cnn_setup(s, false); }

static mica_status train_step(bench_state *s)
{
    BENCH_TRY(set_inputs(s));
    return mica_train_step(s->net, MICA_OPTIMIZER_LR);
}

static mica_status cnn_infer(bench_state *s)
{
    BENCH_TRY(set_inputs(s));
    return mica_net_forward(s->net);
}

/* ---- A recurrent net: sequences to ten classes ---- */

static mica_status lstm_setup(bench_state *s)
{
    mica_index batch = s->row->size[0], steps = s->row->size[1], inputs = s->row->size[2];
    mica_index hidden = s->row->size[3];
    BENCH_TRY(mica_net_create(s->ctx, &s->net));
    mica_value h = mica_net_input(s->net, "sequence", MICA_F32, 3, (mica_index[]){batch, steps, inputs});
    mica_value label = mica_net_input(s->net, "label", MICA_I32, 1, &batch);
    h = mica_net_lstm(s->net, h, &(mica_net_recurrent_opts){.units = hidden, .last = true});
    h = mica_net_dense(s->net, h, &(mica_net_dense_opts){.units = 10});
    mica_net_cross_entropy(s->net, h, label, NULL);
    mica_optimizer adam = {.kind = MICA_ADAM};
    BENCH_TRY(mica_net_compile(s->net, &(mica_compile_opts){.train = true, .optimizer = &adam}));
    BENCH_TRY(mica_net_bind(s->net, NULL, 0));
    BENCH_TRY(mica_net_initialize(s->net, 1));
    /* The sequence itself has no gradient. */
    double cell = 2.0 * (double)(batch * steps * 4 * hidden);
    s->flops = cell * (2.0 * (double)inputs + 3.0 * (double)hidden) + 6.0 * (double)(batch * hidden * 10);
    return make_batch(s);
}

static const bench_case cases[] = {
    {"sgd_1m", optimizer_setup, optimizer_run, {1000000, 1, MICA_SGD}},
    {"adam_1m", optimizer_setup, optimizer_run, {1000000, 1, MICA_ADAM}},
    {"adamw_1m", optimizer_setup, optimizer_run, {1000000, 1, MICA_ADAMW}},
    {"sgd_50x20k", optimizer_setup, optimizer_run, {20000, 50, MICA_SGD}},
    {"adam_50x20k", optimizer_setup, optimizer_run, {20000, 50, MICA_ADAM}},
    {"adamw_50x20k", optimizer_setup, optimizer_run, {20000, 50, MICA_ADAMW}},
    {"cnn_step_32", cnn_train_setup, train_step, {32}},
    {"cnn_infer_32", cnn_infer_setup, cnn_infer, {32}},
    {"cnn_infer_1", cnn_infer_setup, cnn_infer, {1}},
    {"lstm_step_16x64x128_h256", lstm_setup, train_step, {16, 64, 128, 256}},
};

BENCH_FAMILY(train, cases);
