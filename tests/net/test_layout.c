/* Where the channels of images lie makes no difference to what a net computes: random nets of convolutions and what
 * lies between them, with all images as planes, with every one that may having its channels last, and as compile
 * chooses; with weights as they lie, and prepared. */
#include <math.h>
#include <string.h>

#include <mica/layers.h>
#include <mica/op.h>

#include "net/net.h"
#include "test.h"

enum { MOST_BATCH = 4, PLANES = 0, ALL_LAST, ALL_LAST_PREPARED, CHOSEN, CHOSEN_PREPARED, WAYS };

typedef struct images {
    mica_net *net;
    test_random *r;
    mica_value value;
    mica_index channels;
} images;

static mica_value call(images *s, const char *op, const mica_value *ins, int count, const void *opts)
{
    return mica_net_op(s->net, NULL, op, ins, count, opts);
}

static void convolve(images *s)
{
    bool depthwise = test_chance(s->r, 35);
    mica_index kernel = (mica_index)test_int(s->r, 0, 2) * 2 + 1, stride = test_int(s->r, 1, 2);
    mica_index channels = depthwise ? s->channels : test_int(s->r, 1, 40);
    s->value = mica_net_conv2d(
        s->net, s->value,
        &(mica_net_conv_opts){.out_channels = channels,
                              .kernel = {kernel, kernel},
                              .stride = {stride, stride},
                              .pad = {kernel / 2, kernel / 2},
                              .groups = depthwise ? channels : 1,
                              .no_bias = test_chance(s->r, 30),
                              .activation = test_chance(s->r, 50) ? MICA_RELU6 : MICA_NO_ACTIVATION});
    s->channels = channels;
}

/* Images of the same shape beside one another, or one of one pixel that is repeated. */
static void combine(images *s)
{
    mica_value x = s->value, other = call(s, "relu", &x, 1, NULL);
    switch (test_int(s->r, 0, 3)) {
    case 0:
        s->value = call(s, "add", (mica_value[]){x, other}, 2, NULL);
        break;
    case 1:
        s->value = call(s, "concat", (mica_value[]){x, other}, 2, &(mica_axis_opts){.axis = 1});
        s->channels *= 2;
        break;
    case 2:
        other = call(s, "global_avg_pool", &x, 1, &(mica_global_pool_opts){.keep = true});
        s->value = call(s, "mul", (mica_value[]){x, other}, 2, NULL);
        break;
    default:
        s->value = call(s, "clamp", &x, 1, &(mica_clamp_opts){-0.5f, 0.5f});
    }
}

static void pool(images *s)
{
    mica_pooling_opts opts = {.kernel = {2, 3}, .stride = {1, 2}, .pad = {1, 1}};
    s->value = call(s, test_chance(s->r, 50) ? "max_pool2d" : "avg_pool2d", &s->value, 1, &opts);
}

/* What cannot take channels that lie last, in the middle. */
static void move(images *s) { s->value = call(s, "flip", &s->value, 1, &(mica_axis_opts){.axis = 2}); }

static mica_net *build(mica_context *ctx, uint64_t seed)
{
    mica_net *net;
    if (mica_net_create(ctx, &net) != MICA_OK)
        return NULL;
    test_random r = test_seed(seed);
    images s = {.net = net, .r = &r, .channels = test_int(&r, 1, 20)};
    mica_index batch = mica_net_size(net, "batch", MOST_BATCH),
               dims[] = {batch, s.channels, test_int(&r, 5, 17), test_int(&r, 5, 17)};
    s.value = mica_net_input(net, "x", MICA_F32, 4, dims);
    for (int i = test_int(&r, 2, 8); i > 0; i--) {
        int what = test_int(&r, 0, 9);
        if (what < 6)
            convolve(&s);
        else if (what < 8)
            combine(&s);
        else if (what < 9)
            pool(&s);
        else if (test_chance(&r, 50))
            move(&s);
    }
    if (test_chance(&r, 50))
        s.value = mica_net_flatten(net, s.value, NULL);
    else if (test_chance(&r, 70))
        s.value = call(&s, "global_avg_pool", &s.value, 1, NULL);
    mica_net_output(net, "y", s.value);
    return net;
}

/* One way: the outputs at some sizes, one behind the other. Returns how many images have their channels last. */
static int run(mica_context *ctx, uint64_t seed, int way, float *out, size_t room, size_t *count)
{
    mica_net *net = build(ctx, seed);
    int turned = 0;
    *count = 0;
    if (!CHECK(net != NULL))
        return 0;
    net->all_last = way == ALL_LAST || way == ALL_LAST_PREPARED;
    mica_compile_opts opts = {.planes = way == PLANES,
                              .prepare = way == ALL_LAST_PREPARED || way == CHOSEN_PREPARED,
                              .debug = seed % 2};
    if (CHECK_OK(ctx, mica_net_compile(net, &opts)) && CHECK_OK(ctx, mica_net_bind(net, NULL, 0)) &&
        CHECK_OK(ctx, mica_net_initialize(net, seed))) {
        for (mica_index batch = MOST_BATCH; batch >= 0; batch -= batch == MOST_BATCH ? 1 : 3) {
            mica_tensor x, y;
            CHECK_OK(ctx, mica_net_resize(net, batch));
            CHECK_OK(ctx, mica_net_tensor(net, &x, "x"));
            test_random r = test_seed(seed + 7);
            for (size_t i = 0; i < mica_tensor_count(&x); i++)
                ((float *)x.data)[i] = (float)test_uniform(&r, -1.0, 1.0);
            CHECK_OK(ctx, mica_net_forward(net));
            CHECK_OK(ctx, mica_net_tensor(net, &y, "y"));
            CHECK(mica_tensor_contiguous(&y));
            size_t more = mica_tensor_count(&y);
            if (!CHECK(*count + more <= room))
                break;
            memcpy(out + *count, y.data, more * sizeof *out);
            *count += more;
        }
    }
    for (int i = 0; i < net->value_count; i++)
        turned += net->values[i].channels_last;
    mica_net_destroy(net);
    return turned;
}

TEST(net_layouts_make_no_difference)
{
    enum { ROOM = 1 << 20 };
    static float out[WAYS][ROOM];
    mica_context *ctx = test_context(2);
    int turned[WAYS] = {0};
    for (int seed = 0; seed < test_effort(400); seed++) {
        size_t count[WAYS];
        for (int way = 0; way < WAYS; way++)
            turned[way] += run(ctx, (uint64_t)seed, way, out[way], ROOM, &count[way]);
        double largest = 1e-3, off = 0.0;
        for (size_t i = 0; i < count[PLANES]; i++)
            largest = fmax(largest, fabs((double)out[PLANES][i]));
        for (int way = 1; way < WAYS && CHECK(count[way] == count[PLANES]); way++)
            for (size_t i = 0; i < count[PLANES]; i++)
                off = fmax(off, fabs((double)out[way][i] - (double)out[PLANES][i]));
        CHECK_MSG(off <= 2e-5 * largest, "net %d: %g off, of %g", seed, off, largest);
    }
    CHECK(turned[PLANES] == 0);
    CHECK_MSG(turned[ALL_LAST] > test_effort(400), "%d images were turned", turned[ALL_LAST]);
}
