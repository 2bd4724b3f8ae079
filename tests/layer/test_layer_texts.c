/* What layers refuse, word by word. */
#include "layer/layer_case.h"

typedef mica_value build_fn(mica_net *net, mica_value x);

/* Builds on an input "x" of this shape, and expects this failure. */
static void expect(int rank, const mica_index *dims, build_fn *build, mica_status status, const char *text)
{
    mica_context *ctx = test_context(1);
    mica_net *net;
    REQUIRE(mica_net_create(ctx, &net) == MICA_OK);
    mica_value x = mica_net_input(net, "x", MICA_F32, rank, dims);
    CHECK(build(net, x) == 0);
    CHECK_ERROR(ctx, mica_net_compile(net, NULL), status, text);
    mica_net_destroy(net);
}

#define DIMS(...) \
    (int)(sizeof((mica_index[]){__VA_ARGS__}) / sizeof(mica_index)), (mica_index[]) { __VA_ARGS__ }
#define BUILD(name, call) \
    static mica_value name(mica_net *net, mica_value x) { return call; }

BUILD(conv, mica_net_conv2d(net, x,
                            &(mica_net_conv_opts){
                                .name = "conv2", .out_channels = 64, .kernel = {3, 3}, .in_channels = 32}))
BUILD(conv_groups,
      mica_net_conv2d(net, x,
                      &(mica_net_conv_opts){.name = "c", .out_channels = 4, .kernel = {3, 3}, .groups = 3}))
BUILD(conv_out, mica_net_conv1d(net, x, &(mica_net_conv_opts){.name = "c", .kernel = {3}}))
BUILD(conv_kernel,
      mica_net_conv2d(net, x, &(mica_net_conv_opts){.name = "c", .out_channels = 4, .kernel = {3}}))
BUILD(conv_fit,
      mica_net_conv1d(net, x,
                      &(mica_net_conv_opts){.name = "c", .out_channels = 4, .kernel = {5}, .dilation = {2}}))
BUILD(conv_extra,
      mica_net_conv_transpose2d(net, x,
                                &(mica_net_conv_opts){
                                    .name = "c", .out_channels = 4, .kernel = {3, 3}, .output_pad = {1, 1}}))
BUILD(pool, mica_net_max_pool2d(net, x, &(mica_net_pool_opts){.name = "p", .kernel = {2, 9}}))
BUILD(average,
      mica_net_avg_pool2d(net, x, &(mica_net_pool_opts){.name = "p", .kernel = {2, 2}, .dilation = {2, 2}}))
BUILD(adaptive,
      mica_net_adaptive_avg_pool1d(net, x, &(mica_net_adaptive_pool_opts){.name = "p", .size = {-1}}))
BUILD(global, mica_net_global_avg_pool(net, x, &(mica_net_global_pool_opts){.name = "p"}))

TEST(layer_texts_of_images)
{
    expect(DIMS(32, 16, 14, 14), conv, MICA_ERR_SHAPE,
           "shape error: layer 0 \"conv2\" (conv2d)\n"
           "  input is [32, 16, 14, 14], the net's input \"x\"\n"
           "  expected 32 channels in dimension 1, got 16");
    expect(DIMS(32, 16), conv, MICA_ERR_SHAPE,
           "shape error: layer 0 \"conv2\" (conv2d)\n"
           "  input is [32, 16], the net's input \"x\"\n"
           "  expected f32 [N, C, H, W]");
    expect(DIMS(2, 4, 8, 8), conv_groups, MICA_ERR_SHAPE,
           "shape error: layer 0 \"c\" (conv2d)\n"
           "  input is [2, 4, 8, 8], the net's input \"x\"\n"
           "  expected a multiple of 3 groups in dimension 1, got 4");
    expect(DIMS(2, 6, 8, 8), conv_groups, MICA_ERR_ARGUMENT,
           "argument error: layer 0 \"c\" (conv2d)\n"
           "  input is [2, 6, 8, 8], the net's input \"x\"\n"
           "  out_channels is 4: expected a multiple of 3 groups");
    expect(DIMS(2, 4, 8), conv_out, MICA_ERR_ARGUMENT,
           "argument error: layer 0 \"c\" (conv1d)\n"
           "  input is [2, 4, 8], the net's input \"x\"\n"
           "  out_channels is 0: expected 1 or more");
    expect(DIMS(2, 4, 8, 8), conv_kernel, MICA_ERR_ARGUMENT,
           "argument error: layer 0 \"c\" (conv2d)\n"
           "  input is [2, 4, 8, 8], the net's input \"x\"\n"
           "  along the width kernel is 0, stride 1, pad 0, dilation 1: expected 1, 1, 0, 1 or more");
    expect(DIMS(2, 4, 8), conv_fit, MICA_ERR_SHAPE,
           "shape error: layer 0 \"c\" (conv1d)\n"
           "  input is [2, 4, 8], the net's input \"x\"\n"
           "  a kernel that spans 9 does not fit into length 8 padded by 0");
    expect(DIMS(2, 4, 8, 8), conv_extra, MICA_ERR_ARGUMENT,
           "argument error: layer 0 \"c\" (conv_transpose2d)\n"
           "  input is [2, 4, 8, 8], the net's input \"x\"\n"
           "  along the height output_pad is 1: expected less than stride or dilation");
    expect(DIMS(2, 4, 8, 8), pool, MICA_ERR_SHAPE,
           "shape error: layer 0 \"p\" (max_pool2d)\n"
           "  input is [2, 4, 8, 8], the net's input \"x\"\n"
           "  a window of 9 (dilation 1) does not fit into width 8 padded by 0");
    expect(DIMS(2, 4, 8, 8), average, MICA_ERR_ARGUMENT,
           "argument error: layer 0 \"p\" (avg_pool2d)\n"
           "  input is [2, 4, 8, 8], the net's input \"x\"\n"
           "  average pooling has no dilation");
    expect(DIMS(2, 4, 8), adaptive, MICA_ERR_SHAPE,
           "shape error: layer 0 \"p\" (adaptive_avg_pool1d)\n"
           "  input is [2, 4, 8], the net's input \"x\"\n"
           "  cannot average length 8 to -1");
    expect(DIMS(2, 4), global, MICA_ERR_SHAPE,
           "shape error: layer 0 \"p\" (global_avg_pool)\n"
           "  input is [2, 4], the net's input \"x\"\n"
           "  expected f32 [N, C, ...] of rank 3 or more");
}

BUILD(batch, mica_net_batch_norm(net, x, &(mica_net_batch_norm_opts){.name = "n"}))
BUILD(momentum, mica_net_batch_norm(net, x, &(mica_net_batch_norm_opts){.name = "n", .momentum = 1.5f}))
BUILD(rows, mica_net_layer_norm(net, x, &(mica_net_layer_norm_opts){.name = "n", .axes = 3}))
BUILD(groups, mica_net_group_norm(net, x, &(mica_net_group_norm_opts){.name = "n", .groups = 3}))
BUILD(softmax, mica_net_softmax(net, x, &(mica_net_softmax_opts){.name = "s", .axis = 2}))
BUILD(drop, mica_net_dropout(net, x, &(mica_net_dropout_opts){.name = "d", .rate = 1.5f}))

TEST(layer_texts_of_norms)
{
    expect(DIMS(4), batch, MICA_ERR_SHAPE,
           "shape error: layer 0 \"n\" (batch_norm)\n"
           "  input is [4], the net's input \"x\"\n"
           "  expected f32 [N, C, ...] of rank 2 or more");
    expect(DIMS(4, 3), momentum, MICA_ERR_ARGUMENT,
           "argument error: layer 0 \"n\" (batch_norm)\n"
           "  input is [4, 3], the net's input \"x\"\n"
           "  momentum is 1.5: expected 0 to 1");
    expect(DIMS(4, 3), rows, MICA_ERR_SHAPE,
           "shape error: layer 0 \"n\" (layer_norm)\n"
           "  input is [4, 3], the net's input \"x\"\n"
           "  expected f32 with at least 3 axes to normalize over");
    expect(DIMS(4, 4, 2), groups, MICA_ERR_SHAPE,
           "shape error: layer 0 \"n\" (group_norm)\n"
           "  input is [4, 4, 2], the net's input \"x\"\n"
           "  expected a multiple of 3 groups in dimension 1, got 4");
    expect(DIMS(4, 4), softmax, MICA_ERR_AXIS,
           "axis error: layer 0 \"s\" (softmax)\n"
           "  input is [4, 4], the net's input \"x\"\n"
           "  axis 2 of a tensor of rank 2");
    expect(DIMS(4, 4), drop, MICA_ERR_ARGUMENT,
           "argument error: layer 0 \"d\" (dropout)\n"
           "  input is [4, 4], the net's input \"x\"\n"
           "  rate is 1.5: expected 0 to 1");
}

static mica_value other(mica_net *net) { return mica_net_input(net, "b", MICA_F32, 2, (mica_index[]){5, 3}); }
static mica_value same(mica_net *net, mica_value x, void *user)
{
    (void)net, (void)user;
    return mica_net_dense(net, x, &(mica_net_dense_opts){.units = 7});
}

BUILD(reshape, mica_net_reshape(net, x, &(mica_net_reshape_opts){.name = "r", .rank = 2, .dims = {0, 5}}))
BUILD(squeeze, mica_net_squeeze(net, x, &(mica_net_axis_opts){.name = "q", .axis = 1}))
BUILD(pad,
      mica_net_pad(net, x,
                   &(mica_net_pad_opts){.name = "p", .pad = {.before = {0, 4}, .mode = MICA_PAD_REFLECT}}))
BUILD(concat,
      mica_net_concat(net, (mica_value[]){x, other(net)}, 2, &(mica_net_axis_opts){.name = "j", .axis = 1}))
BUILD(permute, mica_net_permute(net, x, &(mica_net_permute_opts){.name = "t", .axes = {1, 1}}))
BUILD(slice, mica_net_slice(net, x, &(mica_net_slice_opts){.name = "s", .axis = 2}))
BUILD(concat_axis, mica_net_concat(net, &x, 1, &(mica_net_axis_opts){.name = "j", .axis = -3}))
BUILD(concat_none, mica_net_concat(net, &x, 0, NULL))
BUILD(plus, mica_net_plus(net, x, other(net), &(mica_net_pair_opts){.name = "a"}))
BUILD(residual, mica_net_residual(net, x, &(mica_net_residual_opts){.body = same}))
BUILD(no_body, mica_net_residual(net, x, NULL))
BUILD(excite, mica_net_squeeze_excite(net, x, NULL))

TEST(layer_texts_of_shapes)
{
    expect(DIMS(4, 4), reshape, MICA_ERR_SHAPE,
           "shape error: layer 0 \"r\" (reshape)\n"
           "  input is [4, 4], the net's input \"x\"\n"
           "  t is [4, 4] (16 elements), dims are [4, 5] (20 elements)");
    expect(DIMS(4, 4), squeeze, MICA_ERR_SHAPE,
           "shape error: layer 0 \"q\" (squeeze)\n"
           "  input is [4, 4], the net's input \"x\"\n"
           "  axis 1 of [4, 4] has size 4, not 1");
    expect(DIMS(4, 4), permute, MICA_ERR_AXIS,
           "axis error: layer 0 \"t\" (permute)\n"
           "  input is [4, 4], the net's input \"x\"\n"
           "  axis 1 is listed twice for a tensor of rank 2 [4, 4]");
    expect(DIMS(4, 4), slice, MICA_ERR_AXIS,
           "axis error: layer 0 \"s\" (slice)\n"
           "  input is [4, 4], the net's input \"x\"\n"
           "  axis 2 of a tensor of rank 2 [4, 4]");
    expect(DIMS(4, 4), pad, MICA_ERR_ARGUMENT,
           "argument error: layer 0 \"p\" (pad)\n"
           "  input is [4, 4], the net's input \"x\"\n"
           "  axis 1 of size 4 cannot be padded by 4 before and 0 after");
    expect(DIMS(4, 4), concat, MICA_ERR_SHAPE,
           "shape error: layer 0 \"j\" (concat)\n"
           "  input is [4, 4], the net's input \"x\"\n"
           "  expected 4 in dimension 0 of input 1, got 5");
    expect(DIMS(4, 4), concat_axis, MICA_ERR_AXIS,
           "axis error: layer 0 \"j\" (concat)\n"
           "  input is [4, 4], the net's input \"x\"\n"
           "  axis -3 of a tensor of rank 2");
    expect(DIMS(4, 4), concat_none, MICA_ERR_ARGUMENT, "argument error: net: concat of 0 values");
    expect(DIMS(4, 4), plus, MICA_ERR_SHAPE,
           "shape error: layer 0 \"a\" (add)\n"
           "  input is [4, 4], the net's input \"x\"\n"
           "  expected a shape that broadcasts with it, got [5, 3]");
    expect(
        DIMS(4, 4), residual, MICA_ERR_SHAPE,
        "shape error: net: residual block: x is [4, 4], but its body outputs [4, 7]; .project adds a projection of x to that shape");
    expect(DIMS(4, 4), no_body, MICA_ERR_ARGUMENT, "argument error: net: a residual block needs a body");
    expect(DIMS(4, 4), excite, MICA_ERR_SHAPE,
           "shape error: net: squeeze and excitation: x has rank 2: expected [N, C, ...]");
}
