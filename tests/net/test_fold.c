/* Batch norms that go into the weights before them, in nets whose weights are prepared: the same numbers, and where it
 * must not be. */
#include <math.h>
#include <string.h>

#include <mica/layers.h>
#include <mica/op.h>

#include "test.h"

enum { MOST_BATCH = 3 };

/* What becomes of a convolution's image beside the norm. */
typedef enum beside { NOTHING, SEEN, READ_TWICE } beside;

static mica_net *build(mica_context *ctx, uint64_t seed, beside what)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    test_random r = test_seed(seed);
    mica_index batch = mica_net_size(net, "batch", MOST_BATCH);
    mica_index channels = test_int(&r, 1, 9),
               dims[] = {batch, channels, test_int(&r, 3, 9), test_int(&r, 3, 9)};
    int kind = test_int(&r, 0, 3); /* of images, depthwise, of signals, dense */
    mica_value h = mica_net_input(net, "x", MICA_F32, kind == 2 ? 3 : kind == 3 ? 2 : 4, dims);
    for (int i = 0, layers = test_int(&r, 1, 3); i < layers; i++) {
        mica_index out = kind == 1 ? channels : test_int(&r, 1, 20);
        mica_net_conv_opts conv = {.name = i == 0 ? "first" : NULL,
                                   .out_channels = out,
                                   .kernel = {3, 3},
                                   .pad = {1, 1},
                                   .groups = kind == 1 ? channels : 1,
                                   .no_bias = test_chance(&r, 60)};
        if (kind == 3)
            h = mica_net_dense(
                net, h, &(mica_net_dense_opts){.name = conv.name, .units = out, .no_bias = conv.no_bias});
        else
            h = kind == 2 ? mica_net_conv1d(net, h, &conv) : mica_net_conv2d(net, h, &conv);
        mica_value image = h;
        if (what == SEEN)
            mica_net_output(net, i == 0 ? "image" : "another", h);
        h = mica_net_batch_norm(net, h,
                                &(mica_net_batch_norm_opts){.no_affine = test_chance(&r, 30),
                                                            .eps = test_chance(&r, 50) ? 0.1f : 0.0f});
        if (what == READ_TWICE)
            h = mica_net_plus(net, h, image, NULL);
        h = mica_net_activation(net, h, &(mica_net_activation_opts){.kind = MICA_RELU});
        channels = out;
        if (what == SEEN && i == 1)
            break;
    }
    mica_net_output(net, "y", h);
    return net;
}

/* Weights and statistics that are not those of the start. */
static void set_numbers(mica_net *net, uint64_t seed)
{
    mica_context *ctx = mica_net_context(net);
    test_random r = test_seed(seed + 1);
    for (mica_value v = 1; v <= mica_net_program_values(net); v++) {
        mica_program_value value;
        mica_tensor t;
        if (mica_net_program_value(net, &value, v) != MICA_OK ||
            (value.home != MICA_HOME_LEARNED && value.home != MICA_HOME_KEPT) ||
            mica_net_value_tensor(net, &t, v) != MICA_OK)
            continue;
        bool variance = strstr(value.name, "running_var") != NULL;
        for (size_t i = 0; i < mica_tensor_count(&t); i++)
            ((float *)t.data)[i] = (float)(variance ? test_uniform(&r, 0.1, 3.0)
                                                    : test_uniform(&r, -1.0, 1.0));
    }
    CHECK_OK(ctx, mica_net_derive(net));
}

static int norms_left(const mica_net *net)
{
    int count = 0;
    for (int i = 0; i < mica_net_program(net); i++) {
        mica_program_call call;
        count += mica_net_program_call(net, &call, i) == MICA_OK && strcmp(call.op->name, "batch_norm") == 0;
    }
    return count;
}

static mica_net *make(mica_context *ctx, uint64_t seed, beside what, bool prepare)
{
    mica_net *net = build(ctx, seed, what);
    if (net == NULL)
        return NULL;
    mica_compile_opts opts = {.prepare = prepare, .debug = seed % 2 == 0};
    CHECK_OK(ctx, mica_net_compile(net, &opts)); /* nothing of it may stay when it is compiled again */
    if (CHECK_OK(ctx, mica_net_compile(net, &opts)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
        CHECK_OK(ctx, mica_net_initialize(net, 1))) {
        set_numbers(net, seed);
        return net;
    }
    mica_net_destroy(net);
    return NULL;
}

static mica_tensor run(mica_net *net, uint64_t seed, mica_index batch)
{
    mica_context *ctx = mica_net_context(net);
    mica_tensor x, y;
    test_random r = test_seed(seed + 2);
    CHECK_OK(ctx, mica_net_resize(net, batch));
    CHECK_OK(ctx, mica_net_tensor(net, &x, "x"));
    for (size_t i = 0; i < mica_tensor_count(&x); i++)
        ((float *)x.data)[i] = (float)test_uniform(&r, -1.0, 1.0);
    CHECK_OK(ctx, mica_net_forward(net));
    CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
    return y;
}

static void compare(uint64_t seed, const mica_tensor *want, const mica_tensor *got)
{
    double largest = 1e-3, off = 0.0;
    if (!CHECK(mica_tensor_count(want) == mica_tensor_count(got)))
        return;
    for (size_t i = 0; i < mica_tensor_count(want); i++) {
        double a = (double)((const float *)want->data)[i], b = (double)((const float *)got->data)[i];
        largest = fmax(largest, fabs(a));
        off = fmax(off, fabs(a - b));
    }
    CHECK_MSG(off <= 2e-5 * largest, "net %d: %g off, of %g", (int)seed, off, largest);
}

TEST(fold_gives_batch_norms_to_the_weights_before_them)
{
    mica_context *ctx = test_context(2);
    int left[3] = {0}, all = 0;
    for (uint64_t seed = 0; seed < (uint64_t)test_effort(600); seed++) {
        beside what = (beside)(seed % 3);
        mica_net *plain = make(ctx, seed, what, false), *folded = make(ctx, seed, what, true);
        if (plain != NULL && folded != NULL) {
            all += what == NOTHING ? norms_left(plain) : 0;
            left[what] += norms_left(folded);
            CHECK(what == NOTHING || norms_left(folded) == norms_left(plain));
            for (mica_index batch = MOST_BATCH; batch >= 0; batch--) {
                mica_tensor want = run(plain, seed, batch), got = run(folded, seed, batch);
                compare(seed, &want, &got);
            }
        }
        mica_net_destroy(plain);
        mica_net_destroy(folded);
    }
    CHECK_MSG(all > 0 && left[NOTHING] == 0, "%d of %d batch norms are left", left[NOTHING], all);
}
