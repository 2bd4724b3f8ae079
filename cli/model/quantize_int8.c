/* mica quantize --int8: ranges from data, the int8 net, its score beside that of the floats, and the file. */
#include "cli/model/quantize_int8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mica/int8.h>
#include <mica/train.h>

#include "cli/model/feed.h"
#include "cli/model/int8.h"
#include "cli/model/match.h"
#include "cli/model/saved.h"
#include "cli/model/score_print.h"
#include "cli/picture/text.h"

enum { BATCH = 32, COMPARED = 8 }; /* samples of a batch; batches that layers are compared over */
#define QAT_RATE 5e-4              /* of training with roundings, at its beginning */

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

static mica_int8_method method_of(const int8_settings *set)
{
    return set->ranges.method >= 0 ? (mica_int8_method)set->ranges.method : MICA_INT8_MINMAX;
}

typedef struct quantizing {
    const verb *v;
    mica_context *ctx;
    const int8_settings *set;
    const char *data;
    saved saved;
    data samples;
    mica_net *net, *bytes, *fake;
    mica_netfile_info info, bytes_info;
    mica_int8 *q;
    mica_part part; /* that is scored */
    score before, after;
    int64_t epoch; /* of training with roundings */
} quantizing;

static int failed(const quantizing *z, mica_status status)
{
    return verb_error(z->v, status == MICA_ERR_MEMORY ? EXIT_FAILED : EXIT_FILE, "%s: %s", z->saved.path,
                      mica_error(z->ctx));
}

/* ---- Both nets ---- */

static int build_floats(quantizing *z)
{
    const saved *s = &z->saved;
    mica_status status = mica_net_create(z->ctx, &z->net);
    if (status == MICA_OK)
        status = mica_netfile_build(z->net, &z->info, saved_text(s, MICA_NETFILE_KEY),
                                    &(mica_netfile_opts){.file = s->path, .batch = BATCH});
    for (size_t i = 0; status == MICA_OK && z->set->learns && i < z->set->freeze->count; i++)
        status = mica_net_freeze(z->net, z->set->freeze->item[i],
                                 true); /* an error if there is no such one */
    const char *first = status == MICA_OK && z->set->learns ? int8_first_layer_learns(z->net, z->set->freeze)
                                                            : NULL;
    if (first != NULL)
        return usage_error(
            z->v, "--int8 --train: layer %s, the first, is not frozen, so none can become int8: --freeze %s",
            first, first);
    if (status == MICA_OK)
        status = mica_int8_create(z->net, &z->q);
    if (status == MICA_OK)
        status = mica_net_compile(z->net, NULL);
    if (status == MICA_OK)
        status = mica_net_bind(z->net, NULL, 0);
    if (status == MICA_OK)
        status = mica_weights_load(z->net, s->path);
    if (status != MICA_OK)
        return failed(z, status);
    if (z->info.target == NULL || z->info.task == MICA_TASK_NONE)
        return verb_error(z->v, EXIT_FILE, "%s: the net has no loss to evaluate", s->path);
    return EXIT_OK;
}

static int choose_scales(quantizing *z)
{
    mica_status status = mica_int8_choose(z->q, &(mica_int8_opts){.method = method_of(z->set)});
    if (status == MICA_OK && z->set->learns)
        status = int8_keep_floats(z->q, z->net, z->set->freeze);
    mica_int8_per_tensor(z->q, z->set->ranges.per_tensor);
    return status == MICA_OK ? EXIT_OK : failed(z, status);
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
    return status == MICA_OK ? EXIT_OK : failed(z, status);
}

/* ---- Data ---- */

static int open_feed(quantizing *z, feed *f, mica_part part)
{
    double validation = z->saved.settings.validation;
    feed_opts opts = {.part = part,
                      .batch = BATCH,
                      .length = z->info.length,
                      .seed = (uint64_t)(z->set->shared->seed + z->epoch),
                      .shuffled = part == MICA_PART_TRAIN,
                      .validation = validation >= 0 ? validation : SHARE_VALIDATION,
                      .normalization = &z->saved.meaning.normalization};
    if (feed_open(f, z->ctx, &z->samples, &opts) != MICA_OK)
        return verb_failed(z->v, z->ctx);
    if (f->samples == 0)
        return verb_error(z->v, EXIT_FILE, "%s has no samples for this", z->data);
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
        status = mica_net_resize(z->net, BATCH);
        if (status == MICA_OK)
            status = mica_net_tensor(z->net, &x, z->info.input);
        if (status == MICA_OK)
            status = mica_net_tensor(z->net, &y, z->info.target);
        if (status == MICA_OK)
            status = source->begin(z->ctx, &x, BATCH, &count, source->user);
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
    return code == EXIT_OK && status != MICA_OK ? failed(z, status) : code;
}

/* k 0: the net of floats; 1: of bytes. */
static int score_one(quantizing *z, int k)
{
    const meaning *m = &z->saved.meaning;
    score_opts opts = {.batch = BATCH,
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
    mica_status status = mica_net_resize(net, BATCH);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &x, z->info.input);
    if (status == MICA_OK)
        status = mica_net_tensor(net, &y, z->info.target);
    *count = 0;
    if (status == MICA_OK)
        status = source->begin(z->ctx, &x, BATCH, count, source->user);
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
    return code == EXIT_OK && status != MICA_OK ? failed(z, status) : code;
}

static int open_all(quantizing *z, const char *in)
{
    int code = saved_open(&z->saved, z->v, z->ctx, in);
    if (code != EXIT_OK)
        return code;
    const meaning *m = &z->saved.meaning;
    z->data = z->set->ranges.data != NULL ? z->set->ranges.data : m->data;
    if (saved_text(&z->saved, INT8_KEY) != NULL)
        return verb_error(z->v, EXIT_FILE, "%s is an int8 net already", z->saved.path);
    if (z->data == NULL)
        return usage_error(z->v, "--data is required: the checkpoint does not record its training data");
    code = build_floats(z);
    if (code == EXIT_OK)
        code = saved_load_data(
            &z->samples, z->v, z->ctx, &z->saved, z->data,
            &(data_opts){.table = z->set->table, .tell = !z->set->shared->quiet && !z->set->shared->json});
    net_ends ends;
    if (code == EXIT_OK)
        code = net_ends_find(&ends, z->v, z->net, &z->info, z->saved.path);
    if (code == EXIT_OK)
        code = data_match(&z->samples, z->data, z->v, &ends, &z->info, "the net");
    bool own = m->data != NULL && strcmp(z->data, m->data) == 0;
    z->part = own || z->samples.has_test ? MICA_PART_TEST : MICA_PART_ALL;
    return code;
}

/* ---- What is written and told ---- */

/* All that the checkpoint says of its net, and how that becomes this one. */
static int write_file(quantizing *z, const char *out)
{
    notes n = {.count = 0};
    char path[4096];
    if (!checkpoint_path(path, sizeof path, out))
        return usage_error(z->v, "the path is longer than %zu bytes", sizeof path - 1);
    for (size_t i = 0; i < mica_safetensors_metadata_count(z->saved.file); i++) {
        const mica_metadata *from = mica_safetensors_metadata_at(z->saved.file, i);
        if (strncmp(from->key, "mica.", 5) == 0)
            notes_add(&n, from->key, from->value);
    }
    char *text = int8_text(z->q, z->set->ranges.per_tensor);
    notes_add(&n, INT8_KEY, text);
    free(text);
    mica_training_state state = {.notes = n.list, .note_count = n.count};
    mica_status status = mica_checkpoint_save(z->bytes, path, &state);
    notes_free(&n);
    return status == MICA_OK ? EXIT_OK : verb_error(z->v, EXIT_FAILED, "%s", mica_error(z->ctx));
}

static double decibels(const mica_int8_row *row)
{
    return row->noise > 0.0 ? 10.0 * log10(row->signal / row->noise) : INFINITY;
}

static double relative_error(const mica_int8_row *row)
{
    return row->signal > 0.0 ? sqrt(row->noise / row->signal) : 0.0;
}

static void print_json(const quantizing *z, const char *out)
{
    printf("{\"calibration\": \"%s\", \"weights\": \"%s\", \"qat_epochs\": %lld, \"layers\": [",
           int8_methods[method_of(z->set)], z->set->ranges.per_tensor ? "tensor" : "channel",
           (long long)z->set->ranges.epochs);
    for (int i = 0; i < mica_int8_rows(z->q); i++) {
        mica_int8_row row;
        if (mica_int8_row_at(z->q, &row, i) != MICA_OK)
            continue;
        printf("%s\n  {\"name\": ", i > 0 ? "," : "");
        put_json(stdout, row.name);
        printf(", \"operation\": \"%s\", \"scale\": ", row.op);
        put_json_number(stdout, (double)row.scale);
        printf(", \"relative_error\": ");
        put_json_number(stdout, relative_error(&row));
        printf(", \"snr_db\": ");
        put_json_number(stdout, decibels(&row));
        printf("}");
    }
    printf("],\n \"samples\": %td, \"float\": ", z->before.samples);
    put_json_metrics(stdout, &z->before);
    printf(", \"int8\": ");
    put_json_metrics(stdout, &z->after);
    printf(",\n \"bytes_before\": %zu, \"bytes\": %zu, \"file\": ", mica_weights_bytes(z->net),
           mica_weights_bytes(z->bytes));
    put_json(stdout, out);
    printf("}\n");
}

static void print_text(const quantizing *z, const char *out)
{
    printf("%-24s %-20s %12s %10s %8s\n", "layer", "operation", "scale", "error", "SNR");
    for (int i = 0; i < mica_int8_rows(z->q); i++) {
        mica_int8_row row;
        char name[64], scale[32] = "float";
        if (mica_int8_row_at(z->q, &row, i) != MICA_OK)
            continue;
        if (row.scale > 0.0f)
            (void)snprintf(scale, sizeof scale, "%.4g", (double)row.scale);
        printf("%-24s %-20s %12s %8.2f %% %5.1f dB\n", plain_text(name, sizeof name, row.name), row.op, scale,
               100.0 * relative_error(&row), decibels(&row));
    }
    printf("\nfloat: ");
    put_score_line(stdout, &z->before, (scored_net){&z->saved.meaning, &z->info});
    printf("\nint8:  ");
    put_score_line(stdout, &z->after, (scored_net){&z->saved.meaning, &z->bytes_info});
    printf("\n%s: weights of %s, of %s as floats\n", out,
           size_text((double)mica_weights_bytes(z->bytes)).text,
           size_text((double)mica_weights_bytes(z->net)).text);
}

int quantize_int8(const verb *v, mica_context *ctx, const int8_settings *set, const char *in, const char *out)
{
    quantizing z = {.v = v, .ctx = ctx, .set = set};
    if (set->ranges.per_channel && set->ranges.per_tensor)
        return usage_error(v, "--per-channel and --per-tensor exclude each other");
    if (set->ranges.epochs > 0 && (set->learns || set->ranges.per_tensor))
        return usage_error(v, "--qat does not go with %s", set->learns ? "--train" : "--per-tensor");
    int64_t samples = set->ranges.samples > 0 ? set->ranges.samples : INT8_SAMPLES;
    int code = open_all(&z, in);
    if (code == EXIT_OK)
        code = walk_part(&z, MICA_PART_TRAIN, (mica_index)((samples + BATCH - 1) / BATCH), false);
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
        code = write_file(&z, out);
    if (code == EXIT_OK && !set->silent)
        (set->shared->json ? print_json : print_text)(&z, out);
    score_free(&z.before);
    score_free(&z.after);
    mica_net_destroy(z.bytes);
    mica_net_destroy(z.fake);
    mica_int8_destroy(z.q);
    mica_net_destroy(z.net);
    data_release(ctx, &z.samples);
    saved_close(ctx, &z.saved);
    return code;
}
