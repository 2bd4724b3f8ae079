/* The table of example nets. A new net is one line in it. */
#include "net/example_nets.h"

#define DIMS(...) \
    (int)(sizeof((mica_index[]){__VA_ARGS__}) / sizeof(mica_index)), (mica_index[]) { __VA_ARGS__ }

static void build_xor(mica_net *net, mica_index batch)
{
    mica_value x = mica_net_input(net, "x", MICA_F32, DIMS(batch, 2));
    mica_value target = mica_net_input(net, "target", MICA_F32, DIMS(batch, 1));
    mica_value h = mica_net_dense(net, x, &(mica_net_dense_opts){.units = 8, .activation = MICA_TANH});
    mica_value y = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 1});
    mica_net_output(net, "y", y);
    mica_net_bce_logits(net, y, target, NULL);
}

static void build_mlp(mica_net *net, mica_index batch)
{
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(batch, 784));
    mica_value label = mica_net_input(net, "label", MICA_I32, DIMS(batch));
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 128, .activation = MICA_RELU});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 64, .activation = MICA_GELU});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 10});
    mica_net_output(net, "logits", h);
    mica_net_cross_entropy(net, h, label, NULL);
}

static void build_cnn(mica_net *net, mica_index batch)
{
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(batch, 1, 28, 28));
    mica_value label = mica_net_input(net, "label", MICA_I32, DIMS(batch));
    for (int i = 0; i < 2; i++) {
        mica_net_conv_opts conv = {
            .out_channels = 8 << i, .kernel = {3, 3}, .pad = {1, 1}, .activation = MICA_RELU};
        h = mica_net_max_pool2d(net, mica_net_conv2d(net, h, &conv), &(mica_net_pool_opts){.kernel = {2, 2}});
    }
    h = mica_net_flatten(net, h, NULL);
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 128, .activation = MICA_RELU});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 10});
    mica_net_output(net, "logits", h);
    mica_net_cross_entropy(net, h, label, NULL);
}

static void build_signal(mica_net *net, mica_index batch)
{
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(batch, 1, 128));
    mica_value label = mica_net_input(net, "label", MICA_I32, DIMS(batch));
    for (int i = 0; i < 3; i++) {
        mica_net_conv_opts conv = {.out_channels = 8 << i, .kernel = {5}, .pad = {2}, .stride = {2}};
        h = mica_net_layer_norm(net, mica_net_conv1d(net, h, &conv), NULL);
        h = mica_net_activation(net, h, &(mica_net_activation_opts){.kind = MICA_GELU});
        h = mica_net_dropout(net, h, &(mica_net_dropout_opts){.rate = 0.1f});
    }
    h = mica_net_dense(net, mica_net_global_avg_pool(net, h, NULL), &(mica_net_dense_opts){.units = 4});
    mica_net_output(net, "logits", h);
    mica_net_cross_entropy(net, h, label, NULL);
}

static mica_value residual_body(mica_net *net, mica_value x, void *user)
{
    mica_index channels = *(const mica_index *)user;
    mica_net_conv_opts conv = {.out_channels = channels, .kernel = {3, 3}, .pad = {1, 1}, .no_bias = true};
    conv.stride[0] = conv.stride[1] = channels > 8 ? 2 : 1;
    mica_value h = mica_net_group_norm(net, mica_net_conv2d(net, x, &conv),
                                       &(mica_net_group_norm_opts){.groups = 4});
    h = mica_net_activation(net, h, &(mica_net_activation_opts){.kind = MICA_SILU});
    conv.stride[0] = conv.stride[1] = 1;
    h = mica_net_group_norm(net, mica_net_conv2d(net, h, &conv), &(mica_net_group_norm_opts){.groups = 4});
    return mica_net_squeeze_excite(net, h, &(mica_net_squeeze_excite_opts){.name = "se", .reduction = 4});
}

static void build_residual(mica_net *net, mica_index batch)
{
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(batch, 3, 16, 16));
    mica_value label = mica_net_input(net, "label", MICA_I32, DIMS(batch));
    static const char *const names[] = {"block0", "block1", "block2"};
    for (int i = 0; i < 3; i++) {
        mica_index channels = 8 << i;
        h = mica_net_residual(net, h,
                              &(mica_net_residual_opts){.name = names[i],
                                                        .body = residual_body,
                                                        .user = &channels,
                                                        .project = true,
                                                        .activation = MICA_RELU});
    }
    h = mica_net_dense(net, mica_net_global_avg_pool(net, h, NULL), &(mica_net_dense_opts){.units = 10});
    mica_net_output(net, "logits", h);
    mica_net_cross_entropy(net, h, label, NULL);
}

/* A decoder of the Llama kind; larger ones are in test_gpt.c. */
static void build_gpt(mica_net *net, mica_index batch)
{
    mica_value x = mica_net_input(net, "x", MICA_I32, DIMS(batch, 16));
    mica_value target = mica_net_input(net, "target", MICA_I32, DIMS(batch, 16));
    mica_net_gpt_opts opts = {.kind = MICA_LLAMA,
                              .vocabulary = 64,
                              .width = 32,
                              .layers = 2,
                              .heads = 4,
                              .kv_heads = 2,
                              .tied = true};
    mica_value logits = mica_net_gpt(net, x, &opts);
    mica_net_output(net, "logits", logits);
    mica_net_cross_entropy(net, logits, target, NULL);
}

static void build_lstm(mica_net *net, mica_index batch)
{
    mica_value h = mica_net_input(net, "x", MICA_F32, DIMS(batch, 20, 4));
    mica_value label = mica_net_input(net, "label", MICA_I32, DIMS(batch));
    h = mica_net_lstm(net, h,
                      &(mica_net_recurrent_opts){.name = "lstm", .units = 24, .layers = 2, .last = true});
    h = mica_net_dense(net, h, &(mica_net_dense_opts){.units = 4});
    mica_net_output(net, "logits", h);
    mica_net_cross_entropy(net, h, label, NULL);
}

const example_net example_nets[] = {
    {"xor", 4, 2, {.kind = MICA_ADAM, .lr = 0.05f}, build_xor},
    {"mlp", 32, 10, {.kind = MICA_SGD, .momentum = 0.9f, .nesterov = true}, build_mlp},
    {"cnn", 32, 10, {.kind = MICA_ADAM}, build_cnn},
    {"signal", 16, 4, {.kind = MICA_ADAMW, .weight_decay = 0.01f}, build_signal},
    {"residual", 8, 10, {.kind = MICA_SGD, .momentum = 0.9f}, build_residual},
    {"gpt", 8, 64, {.kind = MICA_ADAMW, .weight_decay = 0.1f, .clip_norm = 1.0f}, build_gpt},
    {"lstm", 16, 4, {.kind = MICA_RMSPROP, .clip_norm = 1.0f}, build_lstm},
};

const int example_net_count = (int)(sizeof example_nets / sizeof example_nets[0]);

/* ---- What all of them share ---- */

mica_net *example_net_make(mica_context *ctx, const example_net *example, mica_index batch,
                           const mica_compile_opts *opts)
{
    mica_net *net;
    if (!CHECK_OK(ctx, mica_net_create(ctx, &net)))
        return NULL;
    example->build(net, batch > 0 ? batch : example->batch);
    mica_compile_opts usual = {.train = true, .optimizer = &example->optimizer};
    if (CHECK_MSG(mica_net_compile(net, opts != NULL ? opts : &usual) == MICA_OK, "%s: %s", example->name,
                  mica_error(ctx)) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) && CHECK_OK(ctx, mica_net_initialize(net, 7)))
        return net;
    mica_net_destroy(net);
    return NULL;
}

void example_net_fill(mica_net *net, const example_net *example, uint64_t seed)
{
    test_random r = test_seed(seed);
    for (int i = 0; i < mica_net_inputs(net); i++) {
        mica_tensor t;
        CHECK_OK(mica_net_context(net), mica_net_input_tensor(net, NULL, &t, i));
        for (size_t j = 0; j < mica_tensor_count(&t); j++) {
            if (t.dtype == MICA_F32)
                ((float *)t.data)[j] = (float)test_uniform(&r, 0.0, 1.0);
            else
                ((int32_t *)t.data)[j] = test_int(&r, 0, example->below - 1);
        }
    }
}

/* Forwards come first; after the first backward only recomputations and backwards follow. */
static void check_times(const mica_plan *plan)
{
    bool back = false;
    for (int t = 0; t < plan->times; t++) {
        CHECK(plan->time[t].name != NULL);
        CHECK(plan->time[t].phase != MICA_PHASE_FORWARD || !back);
        back = back || plan->time[t].phase != MICA_PHASE_FORWARD;
    }
}

static void check_buffer_shape(const mica_plan_buffer *buffer)
{
    size_t bytes = mica_dtype_bytes(buffer->dtype);
    for (int i = 0; i < buffer->rank; i++)
        bytes *= (size_t)buffer->dim[i];
    CHECK_MSG(bytes <= buffer->bytes, "%s: a shape of %zu bytes in %zu", buffer->name, bytes, buffer->bytes);
}

void check_plan(const mica_plan *plan)
{
    size_t end = 0;
    check_times(plan);
    for (size_t i = 0; i < plan->count; i++) {
        const mica_plan_buffer *a = &plan->buffers[i];
        end = a->offset + a->bytes > end ? a->offset + a->bytes : end;
        check_buffer_shape(a);
        for (size_t j = 0; j < i; j++) {
            const mica_plan_buffer *b = &plan->buffers[j];
            bool in_time = a->first <= b->last && b->first <= a->last;
            bool in_space = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
            CHECK_MSG(!(in_time && in_space), "%s and %s overlap", a->name, b->name);
        }
    }
    CHECK(end == plan->total);
    CHECK(plan->lower_bound <= plan->total);
}
