/* Layers in a net against PyTorch's numbers: output, gradient of the input, gradients of the parameters. */
#include <stdio.h>
#include <string.h>

#include "golden/golden.h"
#include "layer/layer_case.h"

#define TOLERANCE 1e-5

static bool is(const golden_case *c, const char *op) { return strcmp(c->op, op) == 0; }
static mica_index whole(const golden_case *c, const char *name, int i)
{
    return (mica_index)golden_value(c, name, i, 0.0);
}

/* ---- sum(y * dy): a loss whose gradient is dy ---- */

static mica_status dot_infer(mica_infer *i) { return mica_infer_out(i, 0, MICA_F32, 0, NULL); }

static mica_status dot_run(const mica_call *c) { return mica_dot(c->ctx, c->out[0], c->in[0], c->in[1]); }

static void dot_gradient(mica_grad *g) { mica_grad_pass(g, 0, g->in[1]); }

static const mica_op dot = {.name = "dot",
                            .flags = MICA_OP_LOSS,
                            .ins = 2,
                            .outs = 1,
                            .infer = dot_infer,
                            .run = dot_run,
                            .gradient = dot_gradient};

/* ---- From a case to a layer, named "l" ---- */

static mica_value build_conv(mica_net *net, const golden_case *c, mica_value x)
{
    const mica_tensor *w = golden_find(c, "w");
    bool transposed = strncmp(c->op, "conv_transpose", 14) == 0;
    mica_net_conv_opts o = {
        .name = "l", .groups = whole(c, "groups", 0), .no_bias = golden_find(c, "b") == NULL};
    o.out_channels = transposed ? w->dim[1] * (o.groups > 0 ? o.groups : 1) : w->dim[0];
    for (int k = 0; k < 2; k++) {
        o.kernel[k] = k + 2 < w->rank ? w->dim[k + 2] : 0;
        o.stride[k] = whole(c, "stride", k);
        o.pad[k] = whole(c, "pad", k);
        o.dilation[k] = whole(c, "dilation", k);
        o.output_pad[k] = whole(c, "output_pad", k);
    }
    if (w->rank == 3)
        return transposed ? mica_net_conv_transpose1d(net, x, &o) : mica_net_conv1d(net, x, &o);
    if (!transposed && o.groups == golden_find(c, "x")->dim[1])
        return mica_net_depthwise_conv2d(net, x, &o);
    return transposed ? mica_net_conv_transpose2d(net, x, &o) : mica_net_conv2d(net, x, &o);
}

static mica_value build_pool(mica_net *net, const golden_case *c, mica_value x)
{
    const mica_tensor *y = golden_find(c, "y");
    mica_net_pool_opts o = {.name = "l",
                            .ceil_mode = whole(c, "ceil_mode", 0) != 0,
                            .exclude_pad = whole(c, "exclude_pad", 0) != 0};
    mica_net_adaptive_pool_opts to = {.name = "l"};
    for (int k = 0; k < 2; k++) {
        o.kernel[k] = whole(c, "kernel", k);
        o.stride[k] = whole(c, "stride", k);
        o.pad[k] = whole(c, "pad", k);
        o.dilation[k] = whole(c, "dilation", k);
        to.size[k] = k + 2 < y->rank ? y->dim[k + 2] : 0;
    }
    if (is(c, "max_pool1d"))
        return mica_net_max_pool1d(net, x, &o);
    if (is(c, "max_pool2d"))
        return mica_net_max_pool2d(net, x, &o);
    if (is(c, "avg_pool1d"))
        return mica_net_avg_pool1d(net, x, &o);
    if (is(c, "avg_pool2d"))
        return mica_net_avg_pool2d(net, x, &o);
    if (is(c, "adaptive_avg_pool1d"))
        return mica_net_adaptive_avg_pool1d(net, x, &to);
    if (is(c, "adaptive_avg_pool2d"))
        return mica_net_adaptive_avg_pool2d(net, x, &to);
    return mica_net_global_avg_pool(net, x, &(mica_net_global_pool_opts){.name = "l", .keep = true});
}

static mica_value build_norm(mica_net *net, const golden_case *c, mica_value x)
{
    float eps = (float)golden_value(c, "eps", 0, is(c, "rms_norm") ? 1e-5 : 0.0);
    bool bare = golden_find(c, "gamma") == NULL;
    mica_net_layer_norm_opts rows = {
        .name = "l", .eps = eps, .axes = (int)whole(c, "axes", 0), .no_affine = bare};
    mica_net_group_norm_opts groups = {
        .name = "l", .eps = eps, .groups = (int)whole(c, "groups", 0), .no_affine = bare, .affine = !bare};
    if (is(c, "layer_norm"))
        return mica_net_layer_norm(net, x, &rows);
    if (is(c, "rms_norm"))
        return mica_net_rms_norm(net, x, &rows);
    if (is(c, "group_norm"))
        return mica_net_group_norm(net, x, &groups);
    if (is(c, "instance_norm"))
        return mica_net_instance_norm(net, x, &groups);
    float momentum = (float)golden_value(c, "momentum", 0, 0.0);
    return mica_net_batch_norm(net, x,
                               &(mica_net_batch_norm_opts){.name = "l", .eps = eps, .momentum = momentum});
}

static mica_value residual_body(mica_net *net, mica_value x, void *user)
{
    const golden_case *c = *(const golden_case **)user;
    mica_index channels = whole(c, "channels", 0), stride = whole(c, "stride", 0);
    mica_net_conv_opts conv = {.name = "conv1",
                               .out_channels = channels,
                               .kernel = {3, 3},
                               .pad = {1, 1},
                               .stride = {stride, stride},
                               .no_bias = true};
    mica_value h = mica_net_conv2d(net, x, &conv);
    h = mica_net_batch_norm(net, h, &(mica_net_batch_norm_opts){.name = "norm1"});
    h = mica_net_activation(net, h, &(mica_net_activation_opts){.kind = MICA_RELU});
    conv.name = "conv2";
    conv.stride[0] = conv.stride[1] = 1;
    h = mica_net_conv2d(net, h, &conv);
    return mica_net_batch_norm(net, h, &(mica_net_batch_norm_opts){.name = "norm2"});
}

static mica_value build_layer(mica_net *net, const golden_case *c, mica_value x)
{
    mica_net_softmax_opts softmax = {.axis = (int)whole(c, "axis", 0)};
    if (is(c, "softmax"))
        return mica_net_softmax(net, x, &softmax);
    if (is(c, "log_softmax"))
        return mica_net_log_softmax(net, x, &softmax);
    if (is(c, "squeeze_excite"))
        return mica_net_squeeze_excite(
            net, x, &(mica_net_squeeze_excite_opts){.name = "block", .reduction = whole(c, "reduction", 0)});
    if (is(c, "residual")) {
        return mica_net_residual(net, x,
                                 &(mica_net_residual_opts){.name = "block",
                                                           .body = residual_body,
                                                           .user = &c,
                                                           .project = true,
                                                           .activation = MICA_RELU});
    }
    mica_net_pad_opts pad = {.pad = {.before = {0, 0, 0, whole(c, "left", 0)},
                                     .after = {0, 0, whole(c, "bottom", 0), whole(c, "right", 0)},
                                     .mode = whole(c, "reflect", 0) ? MICA_PAD_REFLECT : MICA_PAD_CONSTANT,
                                     .value = golden_value(c, "value", 0, 0.0)}};
    return mica_net_pad(net, x, &pad);
}

static mica_value build_text(mica_net *net, const golden_case *c, mica_value x)
{
    bool llama = whole(c, "llama", 0) != 0;
    mica_net_transformer_block_opts o = {
        .name = "l",
        .attention = {.heads = (int)whole(c, "heads", 0),
                      .kv_heads = (int)whole(c, "kv_heads", 0),
                      .causal = whole(c, "causal", 0) != 0,
                      .no_bias = llama,
                      .rotary = llama},
        .mlp = {.hidden = whole(c, "hidden", 0), .swiglu = llama, .no_bias = llama},
        .rms_norm = llama,
        .eps = (float)golden_value(c, "eps", 0, 0.0)};
    if (is(c, "transformer_block"))
        return mica_net_transformer_block(net, x, &o);
    o.attention.name = "l";
    return mica_net_multi_head_attention(net, x, &o.attention);
}

/* ---- One case ---- */

typedef mica_value build_fn(mica_net *net, const golden_case *c, mica_value x);

/* What the case calls a parameter or state of the net, and its gradient or new value. NULL: nothing. */
static const char *case_name(const golden_case *c, const char *name, char result[64])
{
    static const char *const names[][3] = {{"x.value", "x", "dx"},
                                           {"l.weight", "w", "dw"},
                                           {"l.bias", "b", "db"},
                                           {"l.weight", "gamma", "dgamma"},
                                           {"l.bias", "beta", "dbeta"},
                                           {"l.running_mean", "running_mean", "new_mean"},
                                           {"l.running_var", "running_var", "new_var"}};
    if (strncmp(name, "block.", strlen("block.")) == 0)
        name += strlen("block.");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i][0], name) == 0 && golden_find(c, names[i][1]) != NULL) {
            snprintf(result, 64, "%s", names[i][2]);
            return names[i][1];
        }
    snprintf(result, 64, "d.%s", name);
    return name;
}

static void set(mica_net *net, const golden_case *c, const char *name, const char *from)
{
    mica_tensor t;
    const mica_tensor *value = golden_find(c, from);
    if (CHECK_OK(mica_net_context(net), mica_net_tensor(net, &t, name)) &&
        CHECK_MSG(value != NULL && mica_tensor_same_shape(&t, value), "%s %s: %s is not as PyTorch has it",
                  c->op, c->note, name))
        memcpy(t.data, value->data, mica_tensor_bytes(value));
}

static void set_all(mica_net *net, const golden_case *c)
{
    const char *name;
    char result[64];
    for (int p = 0; p < mica_net_parameters(net); p++) {
        mica_net_parameter(net, &name, NULL, p);
        set(net, c, name, case_name(c, name, result));
    }
    if (golden_find(c, "running_mean") != NULL) {
        set(net, c, "l.running_mean", "running_mean");
        set(net, c, "l.running_var", "running_var");
    }
    set(net, c, "dy", "dy");
}

static void compare_all(mica_net *net, const golden_case *c)
{
    const char *name;
    char result[64];
    mica_tensor t;
    for (int p = 0; p < mica_net_parameters(net); p++) {
        mica_net_parameter(net, &name, NULL, p);
        (void)case_name(c, name, result);
        if (CHECK_MSG(golden_find(c, result) != NULL, "%s %s: no %s", c->op, c->note, result) &&
            CHECK_OK(mica_net_context(net), mica_net_gradient(net, &t, name)))
            golden_compare(c, result, &t, TOLERANCE);
    }
    for (int k = 0; k < 2 && golden_find(c, "running_mean") != NULL; k++) {
        mica_net_tensor(net, &t, k ? "l.running_var" : "l.running_mean");
        golden_compare(c, k ? "new_var" : "new_mean", &t, TOLERANCE);
    }
}

static void check_case(mica_context *ctx, const golden_case *c, build_fn *build)
{
    const mica_tensor *x = golden_find(c, "x"), *dy = golden_find(c, "dy");
    bool inference = golden_value(c, "inference", 0, 0.0) != 0.0;
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value y = build(net, c, layer_leaf(net, "x", x->rank, x->dim));
    mica_net_output(net, "y", y);
    mica_value weights = mica_net_input(net, "dy", MICA_F32, dy->rank, dy->dim);
    mica_net_call(net, NULL, &dot, (mica_value[]){y, weights}, 2, NULL);
    if (CHECK_OK(ctx, mica_net_compile(net, &(mica_compile_opts){.train = true, .debug = true})) &&
        CHECK_OK(ctx, mica_net_bind(net, NULL, 0))) {
        CHECK_OK(ctx, mica_net_initialize(net, 1));
        set_all(net, c);
        CHECK_OK(ctx, inference ? mica_net_forward(net) : mica_net_gradients(net, NULL));
        mica_tensor out;
        mica_net_tensor(net, &out, "y");
        golden_compare(c, "y", &out, TOLERANCE);
        if (!inference)
            compare_all(net, c);
    }
    mica_net_destroy(net);
}

static void check_family(const char *family, build_fn *build)
{
    mica_context *ctx = test_context(2);
    golden_file file = golden_load(family);
    for (size_t i = 0; i < file.count; i++)
        if (strcmp(file.cases[i].note, "unbatched") != 0) /* nets have a batch */
            check_case(ctx, &file.cases[i], build);
    golden_free(&file);
}

TEST(golden_layers_conv) { check_family("conv", build_conv); }
TEST(golden_layers_pool) { check_family("pool", build_pool); }
TEST(golden_layers_norm) { check_family("norm", build_norm); }
TEST(golden_layers) { check_family("layer", build_layer); }
TEST(golden_layers_text) { check_family("text", build_text); }
