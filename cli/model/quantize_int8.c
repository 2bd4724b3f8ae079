/* mica quantize --int8: ranges from data, the int8 net, its score beside that of the floats, and the file. */
#include "cli/model/quantizing.h"

#include <math.h>
#include <string.h>

#include <mica/train.h>

#include "cli/model/int8.h"
#include "cli/onnx/net.h"

enum { COMPARED = 8 }; /* batches that layers are compared over */
#define QAT_RATE 5e-4  /* of training with roundings, at its beginning */

const char *const int8_methods[] = {
#define METHOD(method, text) text,
    MICA_INT8_METHODS(METHOD)
#undef METHOD
        NULL,
};

int int8_not_wanted(const int8_ranges *r, const verb *v)
{
    if (r->data == NULL && r->method < 0 && r->samples == 0 && !r->per_tensor && !r->per_channel &&
        r->epochs == 0)
        return EXIT_OK;
    return usage_error(v,
                       "--data, --calibrate, --samples, --per-channel, --per-tensor and --qat need --int8");
}

mica_int8_method quantizing_method(const int8_settings *set)
{
    return set->ranges.method >= 0 ? (mica_int8_method)set->ranges.method : MICA_INT8_MINMAX;
}

int quantizing_failed(const quantizing *z, mica_status status)
{
    return verb_error(z->v, status == MICA_ERR_MEMORY ? EXIT_FAILED : EXIT_FILE, "%s: %s", z->from,
                      mica_error(z->ctx));
}

/* ---- Both nets ---- */

static int choose_scales(quantizing *z)
{
    mica_status status = mica_int8_choose(z->q, &(mica_int8_opts){.method = quantizing_method(z->set)});
    if (status == MICA_OK && z->set->learns)
        status = int8_keep_floats(z->q, z->net, z->set->freeze);
    mica_int8_per_tensor(z->q, z->set->ranges.per_tensor);
    return status == MICA_OK ? EXIT_OK : quantizing_failed(z, status);
}

static int build_bytes(quantizing *z)
{
    z->bytes_info = z->info;
    mica_status status = mica_net_create(z->ctx, &z->bytes);
    if (status == MICA_OK)
        status = mica_int8_build(z->q, z->bytes);
    if (status == MICA_OK)
        status = int8_info(&z->bytes_info, z->q, z->bytes);
    if (status == MICA_OK)
        status = mica_int8_observe(z->q);
    if (status == MICA_OK)
        status = mica_net_compile(z->bytes, NULL);
    if (status == MICA_OK)
        status = mica_net_bind(z->bytes, NULL, 0);
    if (status == MICA_OK)
        status = mica_net_initialize(z->bytes, 0);
    if (status == MICA_OK)
        status = mica_int8_weights_set(z->q, z->bytes);
    return status == MICA_OK ? EXIT_OK : quantizing_failed(z, status);
}

/* ---- Data ---- */

static int open_feed(quantizing *z, feed *f, mica_part part)
{
    feed_opts opts = {.part = part,
                      .batch = z->batch,
                      .length = z->info.length,
                      .seed = (uint64_t)(z->set->shared->seed + z->epoch),
                      .shuffled = part == MICA_PART_TRAIN,
                      .validation = z->validation,
                      .normalization = &z->meaning->normalization};
    if (feed_open(f, z->ctx, &z->samples, &opts) != MICA_OK)
        return verb_failed(z->v, z->ctx);
    bool left = onnx_sizes_fixed(z->net) && feed_keep_whole(f, z->batch) > 0;
    if (f->samples == 0)
        return verb_error(z->v, EXIT_FILE, "%s has %s samples for this%s", z->data, left ? "too few" : "no",
                          left ? ": the model takes whole batches only" : "");
    return EXIT_OK;
}

/* Fills the inputs of a net with a batch; *count 0: there is none left. */
static mica_status fill(quantizing *z, mica_net *net, const mica_tensor *x, const mica_tensor *y,
                        mica_index count)
{
    mica_tensor to;
    mica_status status = mica_net_resize(net, count);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &to, z->info.input);
    if (status == MICA_OK && to.data != x->data)
        memcpy(to.data, x->data, mica_tensor_bytes(&to));
    if (status == MICA_OK)
        status = mica_net_tensor(net, &to, z->info.target);
    if (status == MICA_OK && to.data != y->data)
        memcpy(to.data, y->data, mica_tensor_bytes(&to));
    return status;
}

/* Runs batches of a part through the float net; with `compare`, through the other too. */
static mica_status walk(quantizing *z, const feed *f, mica_index batches, bool compare)
{
    const mica_source *source = &f->source;
    mica_status status = MICA_OK;
    for (mica_index n = 0; status == MICA_OK && n < batches && n < f->steps; n++) {
        mica_tensor x, y;
        mica_index count = 0;
        status = mica_net_resize(z->net, z->batch);
        if (status == MICA_OK)
            status = mica_net_tensor(z->net, &x, z->info.input);
        if (status == MICA_OK)
            status = mica_net_tensor(z->net, &y, z->info.target);
        if (status == MICA_OK)
            status = source->begin(z->ctx, &x, z->batch, &count, source->user);
        if (status != MICA_OK || count == 0)
            break;
        x.dim[0] = y.dim[0] = count;
        status = source->rows(z->ctx, &x, &y, 0, source->user);
        if (status == MICA_OK && compare)
            status = fill(z, z->bytes, &x, &y, count);
        if (status == MICA_OK)
            status = mica_net_resize(z->net, count);
        if (status == MICA_OK)
            status = mica_net_forward(z->net);
        if (status == MICA_OK && compare)
            status = mica_net_forward(z->bytes);
        if (status == MICA_OK)
            status = compare ? mica_int8_compare(z->q, z->bytes) : mica_int8_collect(z->q);
    }
    return status;
}

static int walk_part(quantizing *z, mica_part part, mica_index batches, bool compare)
{
    feed f = {.batches = NULL};
    int code = open_feed(z, &f, part);
    mica_status status = code == EXIT_OK ? walk(z, &f, batches, compare) : MICA_OK;
    feed_close(z->ctx, &f);
    return code == EXIT_OK && status != MICA_OK ? quantizing_failed(z, status) : code;
}

/* k 0: the net of floats; 1: of bytes. */
static int score_one(quantizing *z, int k)
{
    const meaning *m = z->meaning;
    score_opts opts = {.batch = z->batch,
                       .normalization = &m->normalization,
                       .sample = &m->sample,
                       .units = &m->units,
                       .forecast = &m->forecast};
    feed f = {.batches = NULL};
    int code = open_feed(z, &f, z->part);
    if (code == EXIT_OK)
        code = score_net(k == 0 ? &z->before : &z->after, z->v, k == 0 ? z->net : z->bytes,
                         k == 0 ? &z->info : &z->bytes_info, &f, &opts);
    feed_close(z->ctx, &f);
    return code;
}

/* ---- Training with roundings ---- */

/* A batch of the feed into the inputs of a net; *count 0: there is none left. */
static mica_status next_batch(quantizing *z, const feed *f, mica_net *net, mica_index *count)
{
    const mica_source *source = &f->source;
    mica_tensor x, y;
    mica_status status = mica_net_resize(net, z->batch);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &x, z->info.input);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &y, z->info.target);
    *count = 0;
    if (status == MICA_OK)
        status = source->begin(z->ctx, &x, z->batch, count, source->user);
    if (status != MICA_OK || *count == 0)
        return status;
    x.dim[0] = y.dim[0] = *count;
    status = source->rows(z->ctx, &x, &y, 0, source->user);
    return status == MICA_OK ? mica_net_resize(net, *count) : status;
}

/* One pass over the training data; the rate falls to 0 along a cosine over all of them. */
static mica_status train_epoch(quantizing *z, const feed *f, int64_t epoch)
{
    mica_status status = MICA_OK;
    for (mica_index n = 0; status == MICA_OK && n < f->steps; n++) {
        double done = ((double)epoch + (double)n / (double)f->steps) / (double)z->set->ranges.epochs;
        mica_index count;
        status = next_batch(z, f, z->fake, &count);
        if (status != MICA_OK || count == 0)
            break;
        status = mica_train_step(z->fake, (float)(QAT_RATE * 0.5 * (1.0 + cos(3.14159265358979 * done))));
    }
    return status;
}

/* The weights of the float net learn to live with the roundings. */
static int train_rounded(quantizing *z)
{
    mica_optimizer adam = {.kind = MICA_ADAM};
    mica_status status = mica_net_create(z->ctx, &z->fake);
    if (status == MICA_OK)
        status = mica_int8_fake(z->q, z->fake);
    if (status == MICA_OK)
        status = mica_net_compile(z->fake, &(mica_compile_opts){.train = true, .optimizer = &adam});
    if (status == MICA_OK)
        status = mica_net_bind(z->fake, NULL, 0);
    if (status == MICA_OK)
        status = mica_net_initialize(z->fake, (uint64_t)z->set->shared->seed);
    if (status == MICA_OK)
        status = mica_int8_fake_copy(z->q, z->fake, false);
    int code = EXIT_OK;
    for (int64_t epoch = 0; status == MICA_OK && code == EXIT_OK && epoch < z->set->ranges.epochs; epoch++) {
        feed f = {.batches = NULL};
        z->epoch = epoch;
        code = open_feed(z, &f, MICA_PART_TRAIN);
        if (code == EXIT_OK)
            status = train_epoch(z, &f, epoch);
        feed_close(z->ctx, &f);
    }
    z->epoch = 0;
    if (status == MICA_OK && code == EXIT_OK)
        status = mica_int8_fake_copy(z->q, z->fake, true);
    return code == EXIT_OK && status != MICA_OK ? quantizing_failed(z, status) : code;
}

/* ---- All of it ---- */

int quantize_int8(const verb *v, mica_context *ctx, const int8_settings *set, const char *in, const char *out)
{
    quantizing z = {.v = v, .ctx = ctx, .set = set, .from = in};
    if (set->ranges.per_channel && set->ranges.per_tensor)
        return usage_error(v, "--per-channel and --per-tensor exclude each other");
    if (set->ranges.epochs > 0 && (set->learns || set->ranges.per_tensor))
        return usage_error(v, "--qat does not go with %s", set->learns ? "--train" : "--per-tensor");
    int64_t samples = set->ranges.samples > 0 ? set->ranges.samples : INT8_SAMPLES;
    int code = quantizing_open(&z, in);
    if (code == EXIT_OK)
        code = walk_part(&z, MICA_PART_TRAIN, (mica_index)((samples + z.batch - 1) / z.batch), false);
    if (code == EXIT_OK)
        code = choose_scales(&z);
    if (code == EXIT_OK)
        code = score_one(&z, 0);
    if (code == EXIT_OK && set->ranges.epochs > 0)
        code = train_rounded(&z);
    if (code == EXIT_OK)
        code = build_bytes(&z);
    if (code == EXIT_OK)
        code = walk_part(&z, z.part, COMPARED, true);
    if (code == EXIT_OK)
        code = score_one(&z, 1);
    if (code == EXIT_OK)
        code = quantizing_write(&z, out);
    if (code == EXIT_OK && !set->silent)
        quantizing_report(&z, out);
    score_free(&z.before);
    score_free(&z.after);
    mica_net_destroy(z.bytes);
    mica_net_destroy(z.fake);
    mica_int8_destroy(z.q);
    quantizing_close(&z);
    return code;
}
