/* Tells sine, square and sawtooth waves apart by a convolution over time: any pitch, any phase, and noise on top. */
#include <mica/mica.h>
#include <math.h>
#include <stdio.h>

enum { LENGTH = 128, KINDS = 3, SAMPLES = 1500 };

static float signals[SAMPLES][LENGTH];
static int32_t kinds[SAMPLES];

static void make_signals(uint64_t seed)
{
    mica_random r = mica_random_stream(seed, 0);
    for (int i = 0; i < SAMPLES; i++) {
        float pitch = 2.0f + 8.0f * mica_random_uniform(&r), phase = mica_random_uniform(&r);
        kinds[i] = i % KINDS;
        for (int t = 0; t < LENGTH; t++) {
            float at = phase + pitch * (float)t / LENGTH, part = at - floorf(at);
            float wave = kinds[i] == 0   ? sinf(6.2831853f * part)
                         : kinds[i] == 1 ? (part < 0.5f ? 1.0f : -1.0f)
                                         : 2.0f * part - 1.0f;
            signals[i][t] = wave + 0.3f * mica_random_normal(&r);
        }
    }
}

static mica_status build(mica_net *net)
{
    mica_value x = mica_net_input(net, "signal", MICA_F32, 3, (mica_index[]){32, 1, LENGTH});
    mica_value kind = mica_net_input(net, "kind", MICA_I32, 1, (mica_index[]){32});
    mica_net_conv_opts conv = {
        .out_channels = 12, .kernel = {7}, .stride = {2}, .pad = {3}, .activation = MICA_RELU};
    mica_value h = mica_net_conv1d(net, x, &conv);
    conv.out_channels = 24;
    h = mica_net_conv1d(net, h, &conv);
    h = mica_net_global_avg_pool(net, h, NULL);
    mica_value y = mica_net_dense(net, h, &(mica_net_dense_opts){.units = KINDS});
    mica_net_output(net, "logits", y);
    mica_net_cross_entropy(net, y, kind, NULL);
    mica_optimizer adam = {.kind = MICA_ADAM, .lr = 0.01f};
    mica_status status = mica_net_compile(net, &(mica_compile_opts){.train = true, .optimizer = &adam});
    if (status == MICA_OK)
        status = mica_net_bind(net, NULL, 0);
    return status == MICA_OK ? mica_net_initialize(net, 1) : status;
}

static bool report(void *user, const mica_progress *p)
{
    (void)user;
    if (p->epoch_done)
        printf("epoch %d  loss %.4f  validation %.4f  accuracy %.1f %%\n", (int)p->epoch + 1, p->loss,
               p->validation->loss, 100.0 * p->validation->accuracy);
    return true;
}

static mica_status train(mica_context *ctx, mica_net *net, mica_fit_result *result)
{
    mica_dataset set;
    mica_batches *learn = NULL, *check = NULL;
    mica_tensor x = mica_2d(&signals[0][0], SAMPLES, LENGTH), y;
    mica_status status = mica_tensor_init(ctx, &y, kinds, MICA_I32, 1, (mica_index[]){SAMPLES});
    if (status == MICA_OK)
        status = mica_dataset_over(ctx, &set, &x, &y);
    mica_batches_opts opts = {.batch = 32, .split = {.part = MICA_PART_TRAIN, .validation = 0.2}};
    if (status == MICA_OK)
        status = mica_batches_create(ctx, &learn, &set, &opts);
    opts.split.part = MICA_PART_VALIDATION;
    if (status == MICA_OK)
        status = mica_batches_create(ctx, &check, &set, &opts);
    mica_fit_opts fit = {.epochs = 8, .output = "logits", .report = report};
    if (status == MICA_OK) {
        fit.train = mica_source_of_batches(learn);
        fit.validation = mica_source_of_batches(check);
        status = mica_fit(net, result, &fit);
    }
    mica_batches_destroy(ctx, learn);
    mica_batches_destroy(ctx, check);
    return status;
}

int main(void)
{
    mica_context *ctx;
    mica_net *net;
    mica_fit_result result = {0};
    if (mica_context_create(&ctx, NULL) != MICA_OK || mica_net_create(ctx, &net) != MICA_OK)
        return 1;
    make_signals(1);
    mica_status status = build(net);
    if (status == MICA_OK)
        status = train(ctx, net, &result);
    if (status != MICA_OK)
        fprintf(stderr, "%s\n", mica_error(ctx));
    mica_net_destroy(net);
    mica_context_destroy(ctx);
    return result.validation.accuracy > 0.9 ? 0 : 1;
}
