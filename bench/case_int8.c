/* Nets that are run, in floats (weights prepared) and in int8, with random weights. size: { net, int8, batch } */
#include <mica/int8.h>
#include <mica/netfile.h>

#include "bench/bench.h"

static const char *const nets[] = {"lenet", "resnet-small"};
enum { LENET, RESNET_SMALL };
enum { FLOATS, BYTES };

#define SEED 42

static mica_status make_batch(bench_state *s)
{
    mica_tensor x;
    BENCH_TRY(mica_net_input_tensor(s->net, NULL, &x, 0));
    BENCH_TRY(bench_tensor(s, x.dtype, x.rank, x.dim));
    s->bytes = 0.0; /* arithmetic is what counts */
    return MICA_OK;
}

static mica_status run_net(bench_state *s)
{
    mica_tensor x;
    BENCH_TRY(mica_net_input_tensor(s->net, NULL, &x, 0));
    BENCH_TRY(mica_copy(s->ctx, &x, &s->t[0]));
    return mica_net_forward(s->net);
}

static void add_flops(void *user, const mica_work *work, bool done)
{
    if (done)
        *(double *)user += work->flops;
}

/* Of the float net, whose products the other has, too. */
static mica_status count_flops(bench_state *s)
{
    double flops = 0.0;
    mica_net_watch(s->net, add_flops, &flops);
    mica_status status = run_net(s);
    mica_net_watch(s->net, NULL, NULL);
    s->flops = flops;
    return status;
}

/* The net becomes one of bytes, with the ranges that a batch of random numbers has. */
static mica_status convert(mica_int8 *q, mica_net *bytes)
{
    BENCH_TRY(mica_int8_collect(q));
    BENCH_TRY(mica_int8_choose(q, NULL));
    BENCH_TRY(mica_int8_build(q, bytes));
    BENCH_TRY(mica_net_compile(bytes, &(mica_compile_opts){.prepare = true}));
    BENCH_TRY(mica_net_bind(bytes, NULL, 0));
    BENCH_TRY(mica_net_initialize(bytes, SEED));
    return mica_int8_weights_set(q, bytes);
}

static mica_status setup(bench_state *s)
{
    bool to_bytes = s->row->size[1] == BYTES;
    mica_int8 *q = NULL;
    mica_net *bytes = NULL;
    BENCH_TRY(mica_net_create(s->ctx, &s->net));
    BENCH_TRY(mica_netfile_build(s->net, NULL, mica_netfile_builtin(nets[s->row->size[0]]),
                                 &(mica_netfile_opts){.batch = s->row->size[2], .inference = true}));
    if (to_bytes)
        BENCH_TRY(mica_int8_create(s->net, &q));
    mica_status status = mica_net_compile(s->net, &(mica_compile_opts){.prepare = !to_bytes});
    if (status == MICA_OK)
        status = mica_net_bind(s->net, NULL, 0);
    if (status == MICA_OK)
        status = mica_net_initialize(s->net, SEED);
    if (status == MICA_OK)
        status = make_batch(s);
    if (status == MICA_OK)
        status = count_flops(s);
    if (status == MICA_OK && to_bytes)
        status = mica_net_create(s->ctx, &bytes);
    if (status == MICA_OK && to_bytes)
        status = convert(q, bytes);
    mica_int8_destroy(q);
    if (status != MICA_OK || !to_bytes) {
        mica_net_destroy(bytes);
        return status;
    }
    mica_net_destroy(s->net);
    s->net = bytes;
    s->quantized = true;
    return MICA_OK;
}

/* By pairs: bench/int8.c measures the two of one by turns. */
static const bench_case cases[] = {
    {"lenet_float_1", setup, run_net, {LENET, FLOATS, 1}},
    {"lenet_int8_1", setup, run_net, {LENET, BYTES, 1}},
    {"lenet_float_32", setup, run_net, {LENET, FLOATS, 32}},
    {"lenet_int8_32", setup, run_net, {LENET, BYTES, 32}},
    {"lenet_float_64", setup, run_net, {LENET, FLOATS, 64}},
    {"lenet_int8_64", setup, run_net, {LENET, BYTES, 64}},
    {"resnet_small_float_1", setup, run_net, {RESNET_SMALL, FLOATS, 1}},
    {"resnet_small_int8_1", setup, run_net, {RESNET_SMALL, BYTES, 1}},
    {"resnet_small_float_32", setup, run_net, {RESNET_SMALL, FLOATS, 32}},
    {"resnet_small_int8_32", setup, run_net, {RESNET_SMALL, BYTES, 32}},
    {"resnet_small_float_64", setup, run_net, {RESNET_SMALL, FLOATS, 64}},
    {"resnet_small_int8_64", setup, run_net, {RESNET_SMALL, BYTES, 64}},
};

BENCH_FAMILY(int8, cases);
