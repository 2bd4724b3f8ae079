/* The profile of a net that is built: by a program, or from a net file. */
#include <string.h>

#include "bench/profile.h"
#include "bench/report.h"

/* Some numbers; labels and tokens are all 0. */
static mica_status set_inputs(mica_net *net)
{
    for (int i = 0; i < mica_net_inputs(net); i++) {
        mica_tensor t;
        BENCH_TRY(mica_net_input_tensor(net, NULL, &t, i));
        memset(t.data, 0, mica_tensor_bytes(&t));
        size_t count = t.dtype == MICA_F32 ? mica_tensor_count(&t) : 0;
        for (size_t k = 0; k < count; k++)
            ((float *)t.data)[k] = 0.05f * (float)(k % 17);
    }
    return MICA_OK;
}

static mica_status train(void *work)
{
    BENCH_TRY(set_inputs(work));
    return mica_train_step(work, MICA_OPTIMIZER_LR);
}

static mica_status infer(void *work)
{
    BENCH_TRY(set_inputs(work));
    return mica_net_forward(work);
}

mica_status profile_net(FILE *out, const char *name, mica_net *net, const mica_compile_opts *opts,
                        const bench_timing *timing)
{
    mica_context *ctx = mica_net_context(net);
    bool training = opts->train;
    BENCH_TRY(mica_net_compile(net, opts));
    BENCH_TRY(mica_net_bind(net, NULL, 0));
    BENCH_TRY(mica_net_initialize(net, 1));
    bench_peak peak;
    BENCH_TRY(bench_measure_peak(&peak, ctx, timing));
    char title[160];
    (void)snprintf(title, sizeof title, "%s, %s, threads: %d, peak %.1f GFLOP/s", name,
                   training ? "training" : "inference", mica_context_threads(ctx), peak.gflops);
    return profile_print(out, &(profile_subject){title, net, training ? train : infer, net}, &peak, timing);
}
