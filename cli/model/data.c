/* Data by name. */
#include "cli/model/data.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cli/model/images.h"
#include "cli/model/npz.h"
#include "cli/model/sounds.h"
#include "cli/model/tables.h"
#include "cli/model/take.h"

#define DIGITS_TRAIN      20000
#define DIGITS_TEST       5000
#define DIGITS_FIRST_TEST ((uint64_t)1 << 40) /* beyond any training sample */
#define FASHION_FOLDER    "/usr/share/datasets/fashion-mnist"

static const char *const fashion_classes[] = {"T-shirt", "trouser", "pullover", "dress", "coat",
                                              "sandal",  "shirt",   "sneaker",  "bag",   "boot"};

/* ---- Files by name ---- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcasecmp(text + n - m, end) == 0;
}

file_kind file_kind_of(const char *path)
{
    static const struct {
        const char *end;
        file_kind kind;
    } ends[] = {{".idx", FILE_IDX},    {"ubyte", FILE_IDX},  {".npy", FILE_NPY},   {".csv", FILE_CSV},
                {".tsv", FILE_CSV},    {".txt", FILE_TEXT},  {".png", FILE_IMAGE}, {".jpg", FILE_IMAGE},
                {".jpeg", FILE_IMAGE}, {".ppm", FILE_IMAGE}, {".pgm", FILE_IMAGE}, {".pnm", FILE_IMAGE},
                {".npz", FILE_NPZ},    {".wav", FILE_WAV}};
    char with_gz[16];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        (void)snprintf(with_gz, sizeof with_gz, "%s.gz", ends[i].end);
        if (ends_with(path, ends[i].end) || ends_with(path, with_gz))
            return ends[i].kind;
    }
    return FILE_UNKNOWN;
}

/* ---- Targets ---- */

/* How many classes the targets tell apart: whole numbers from 0 on; 0: they are something else. */
static int64_t count_classes(mica_context *ctx, const mica_dataset *set)
{
    int64_t most = -1;
    if (!set->has_targets || mica_tensor_count(&set->targets) != (size_t)set->count)
        return 0;
    double *targets = take((size_t)set->count, sizeof *targets);
    mica_tensor as_f64;
    bool whole = mica_tensor_init(ctx, &as_f64, targets, MICA_F64, set->targets.rank, set->targets.dim) ==
                     MICA_OK &&
                 mica_copy(ctx, &as_f64, &set->targets) == MICA_OK;
    for (mica_index i = 0; whole && i < set->count; i++) {
        whole = targets[i] >= 0 && targets[i] < 1e6 && targets[i] == floor(targets[i]);
        most = whole && (int64_t)targets[i] > most ? (int64_t)targets[i] : most;
    }
    free(targets);
    return whole ? most + 1 : 0;
}

static void set_classes(data *d, mica_context *ctx)
{
    if (d->samples.classes != NULL) {
        d->class_names = d->samples.classes;
        d->class_count = d->samples.class_count;
        return;
    }
    d->class_count = count_classes(ctx, &d->samples);
    if (d->has_test) {
        int64_t of_test = count_classes(ctx, &d->test);
        d->class_count = of_test > d->class_count ? of_test : d->class_count;
    }
}

/* ---- Kinds of data ---- */

static bool is_digits(const char *spec)
{
    return strcmp(spec, "digits") == 0 || strncmp(spec, "digits:", 7) == 0;
}

static int load_digits(data *out, const verb *v, mica_context *ctx, const char *spec, const data_opts *opts)
{
    int64_t count = DIGITS_TRAIN;
    if (spec[6] == ':') {
        char *end;
        errno = 0;
        count = strtoll(spec + 7, &end, 10);
        if (end == spec + 7 || *end != '\0' || errno != 0 || count < 10 || count > 10000000)
            return usage_error(v, "digits:N takes a number from 10 to 10000000, not \"%s\"", spec + 7);
    }
    int64_t tests = count < 4 * DIGITS_TEST ? count / 4 : DIGITS_TEST;
    mica_digits_opts digits = {.count = (mica_index)count, .seed = opts->seed};
    if (mica_dataset_digits(ctx, &out->samples, &digits) != MICA_OK)
        return verb_failed(v, ctx);
    digits.count = (mica_index)tests;
    digits.first = DIGITS_FIRST_TEST;
    out->has_test = true;
    return mica_dataset_digits(ctx, &out->test, &digits) == MICA_OK ? EXIT_OK : verb_failed(v, ctx);
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool is_there(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0;
}

bool find_idx(char *path, size_t size, const char *folder, const char *name)
{
    static const char *const ends[] = {"", ".gz"};
    for (size_t i = 0; i < 2; i++) {
        int n = snprintf(path, size, "%s/%s%s", folder, name, ends[i]);
        if (n > 0 && (size_t)n < size && is_there(path))
            return true;
    }
    (void)snprintf(path, size, "%s/%s", folder, name);
    return false;
}

static int load_folder(data *out, const verb *v, mica_context *ctx, const char *folder)
{
    char images[4096], labels[4096];
    (void)find_idx(images, sizeof images, folder, "train-images-idx3-ubyte");
    (void)find_idx(labels, sizeof labels, folder, "train-labels-idx1-ubyte");
    if (mica_dataset_load_idx(ctx, &out->samples, images, labels) != MICA_OK)
        return verb_failed(v, ctx);
    if (!find_idx(images, sizeof images, folder, "t10k-images-idx3-ubyte"))
        return EXIT_OK;
    (void)find_idx(labels, sizeof labels, folder, "t10k-labels-idx1-ubyte");
    out->has_test = true;
    return mica_dataset_load_idx(ctx, &out->test, images, labels) == MICA_OK ? EXIT_OK : verb_failed(v, ctx);
}

static int load_fashion(data *out, const verb *v, mica_context *ctx)
{
    if (!is_folder(FASHION_FOLDER))
        return verb_error(v, EXIT_FILE, "%s not found: apt-get install dataset-fashion-mnist",
                          FASHION_FOLDER);
    int code = load_folder(out, v, ctx, FASHION_FOLDER);
    out->class_names = fashion_classes;
    out->class_count = 10;
    return code;
}

/* "X,Y" or "X": pairs of idx or npy files. */
static int load_pair(data *out, const verb *v, mica_context *ctx, const char *spec)
{
    char inputs[4096];
    const char *comma = strchr(spec, ',');
    size_t length = comma != NULL ? (size_t)(comma - spec) : strlen(spec);
    if (length >= sizeof inputs)
        return usage_error(v, "the path is longer than %zu bytes", sizeof inputs - 1);
    memcpy(inputs, spec, length);
    inputs[length] = '\0';
    const char *targets = comma != NULL ? comma + 1 : NULL;
    mica_status status = file_kind_of(inputs) == FILE_NPY
                             ? mica_dataset_load_npy(ctx, &out->samples, inputs, targets)
                             : mica_dataset_load_idx(ctx, &out->samples, inputs, targets);
    return status == MICA_OK ? EXIT_OK : verb_failed(v, ctx);
}

/* Characters where the text is UTF-8, bytes where it is not. */
static int load_text(data *out, const verb *v, mica_context *ctx, const char *path, const data_opts *opts)
{
    mica_text_opts text = {.characters = true, .vocabulary = opts->vocabulary};
    out->is_text = true;
    mica_status status = mica_text_load(ctx, &out->text, path, &text);
    if (status == MICA_ERR_FORMAT && opts->vocabulary == NULL)
        status = mica_text_load(ctx, &out->text, path, NULL);
    return status == MICA_OK ? EXIT_OK : verb_failed(v, ctx);
}

static int unknown(const verb *v, const char *spec)
{
    static const char *const names[] = {"digits", "fashion-mnist"};
    const char *meant = nearest(spec, names, 2, sizeof names[0]);
    if (ends_with(spec, ".xlsx") || ends_with(spec, ".xls") || ends_with(spec, ".ods") ||
        ends_with(spec, ".parquet"))
        return verb_error(v, EXIT_FILE, "%s: not read: export it as a CSV file", spec);
    if (is_there(spec))
        return verb_error(
            v, EXIT_FILE,
            "%s: unknown file type: expected a name that ends with .csv, .tsv, .npy, .npz, .idx or .txt",
            spec);
    return verb_error(v, EXIT_FILE, "unknown data \"%s\"%s%s%s", spec,
                      meant != NULL ? "; did you mean \"" : "", meant != NULL ? meant : "",
                      meant != NULL ? "\"?" : "");
}

bool data_is_images(const char *spec) { return !is_digits(spec) && images_named(spec); }

static int load(data *out, const verb *v, mica_context *ctx, const char *spec, const data_opts *opts)
{
    if (opts->sound_asked && !(is_folder(spec) && is_sound_folder(ctx, spec)))
        return verb_error(v, EXIT_FILE,
                          "%s: expected a folder of WAV files, as the options or the net are for sounds",
                          spec);
    if (is_digits(spec))
        return load_digits(out, v, ctx, spec, opts);
    if (strcmp(spec, "fashion-mnist") == 0 && !is_there(spec))
        return load_fashion(out, v, ctx);
    if (is_folder(spec) && is_sound_folder(ctx, spec))
        return sounds_load(out, v, ctx, spec, opts);
    if (images_named(spec))
        return images_load(out, v, ctx, spec, opts);
    if (is_folder(spec))
        return load_folder(out, v, ctx, spec);
    if (strchr(spec, ',') != NULL)
        return load_pair(out, v, ctx, spec);
    switch (file_kind_of(spec)) {
    case FILE_IDX:
    case FILE_NPY:
        return load_pair(out, v, ctx, spec);
    case FILE_NPZ:
        return npz_load(out, v, ctx, spec);
    case FILE_TEXT:
        return load_text(out, v, ctx, spec, opts);
    case FILE_CSV:
        return table_load(out, v, ctx, spec, opts);
    default:
        return unknown(v, spec);
    }
}

int data_load(data *out, const verb *v, mica_context *ctx, const char *spec, const data_opts *opts)
{
    *out = (data){0};
    int code = load(out, v, ctx, spec, opts);
    if (code == EXIT_OK && opts->test != NULL && out->table == NULL && !data_is_images(spec))
        code = usage_error(v, "--test is for tables, FILE.csv, and folders of images");
    if (code == EXIT_OK && !out->is_text && out->table == NULL && out->class_names == NULL)
        set_classes(out, ctx);
    if (code == EXIT_OK && !out->is_text && out->samples.count == 0 && !out->streamed)
        code = verb_error(v, EXIT_FILE, "%s: the data has no samples", spec);
    return code;
}

void data_release(mica_context *ctx, data *d)
{
    mica_text_destroy(ctx, &d->text);
    mica_dataset_destroy(ctx, &d->samples);
    mica_dataset_destroy(ctx, &d->test);
    table_release(ctx, d);
}

mica_tensor data_sample(const data *d)
{
    mica_tensor sample = {.dtype = MICA_F32};
    if (d->is_text)
        return sample;
    if (d->table != NULL && d->window == 0) { /* rows are in their short form */
        sample.rank = 1;
        sample.dim[0] = mica_table_inputs(d->table);
        return sample;
    }
    sample.dtype = d->samples.inputs.dtype;
    sample.rank = d->samples.inputs.rank - 1;
    for (int i = 0; i < sample.rank; i++)
        sample.dim[i] = d->samples.inputs.dim[i + 1];
    return sample;
}

/* ---- Normalization ---- */

static mica_index channels_of(const mica_tensor *inputs)
{
    bool table = inputs->rank == 2 && inputs->dtype != MICA_U8, pictures = inputs->rank == 4;
    return table || pictures ? inputs->dim[1] : 1;
}

/* Adds up a batch: x [count, channels, rest]. */
static void add_up(double *sum, double *squares, const float *x, mica_index count, mica_index channels,
                   mica_index rest)
{
    for (mica_index i = 0; i < count * channels; i++) {
        for (mica_index k = 0; k < rest; k++, x++) {
            sum[i % channels] += (double)*x;
            squares[i % channels] += (double)*x * (double)*x;
        }
    }
}

/* Walks through the training part. buffer [LEARN_BATCH, sample] */
enum { LEARN_BATCH = 64 };
static mica_status learn(normalization *n, mica_context *ctx, const data *d, const mica_batches_opts *opts,
                         float *buffer)
{
    mica_batches *batches;
    mica_index sample = (mica_index)(mica_tensor_count(&d->samples.inputs) / (size_t)d->samples.count);
    mica_index rest = sample / n->channels;
    mica_tensor x = mica_2d(buffer, LEARN_BATCH, sample);
    double *sum = take(2 * (size_t)n->channels, sizeof *sum), *squares = sum + n->channels, count = 0;
    mica_status status = mica_batches_create(ctx, &batches, &d->samples, opts);
    for (mica_index got = 1; status == MICA_OK && got > 0;) {
        status = mica_batches_next(ctx, &x, NULL, &got, batches);
        if (status == MICA_OK)
            add_up(sum, squares, buffer, got, n->channels, rest);
        count += (double)(got * rest);
    }
    for (mica_index c = 0; c < n->channels; c++) {
        double mean = count > 0 ? sum[c] / count : 0,
               variance = count > 0 ? squares[c] / count - mean * mean : 0;
        n->mean[c] = (float)mean;
        n->deviation[c] = variance > 1e-12 ? (float)sqrt(variance) : 1.0f; /* what never changes stays 0 */
    }
    mica_batches_destroy(ctx, batches);
    free(sum);
    return status;
}

mica_status normalization_learn(normalization *out, mica_context *ctx, const data *d,
                                const mica_data_split *split)
{
    *out = (normalization){.scale = 1};
    const mica_tensor *inputs = &d->samples.inputs;
    if (d->is_text || d->table != NULL || mica_tensor_count(inputs) == 0)
        return MICA_OK; /* tables have their numbers ready */
    out->scale = inputs->dtype == MICA_U8 ? 1.0f / 255.0f : 1.0f;
    out->channels = channels_of(inputs);
    out->mean = take((size_t)out->channels, sizeof(float));
    out->deviation = take((size_t)out->channels, sizeof(float));
    float *buffer = take(LEARN_BATCH * (mica_tensor_count(inputs) / (size_t)d->samples.count), sizeof(float));
    mica_batches_opts opts = {.batch = LEARN_BATCH, .sequential = true, .split = *split, .scale = out->scale};
    opts.split.part = MICA_PART_TRAIN;
    mica_status status = learn(out, ctx, d, &opts, buffer);
    free(buffer);
    return status;
}

void normalization_free(normalization *n)
{
    free(n->mean);
    free(n->deviation);
    *n = (normalization){0};
}
