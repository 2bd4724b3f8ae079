/* mica run: what a trained net says of inputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/answer.h"
#include "cli/model/images.h"
#include "cli/model/match.h"
#include "cli/model/same.h"
#include "cli/model/saved.h"
#include "cli/model/tables.h"
#include "cli/model/score.h"
#include "cli/model/sounds.h"
#include "cli/model/take.h"
#include "cli/onnx/onnx.h"
#include "cli/picture/text.h"
#include "cli/ranks.h"
#include "data/image_file.h"
#include "data/sounds.h"

#define DEFAULT_TOP 3 /* classes that are printed, where nothing else is asked for */

typedef struct settings {
    shared_settings shared;
    table_settings table;
    int64_t top, batch;
    bool invert;
    const char *id;
    option_list set, inputs; /* these of an ONNX model */
    const char *output;
    int64_t repeat;
} settings;

static const verb_option options[] = {
    {.name = "--top",
     OPTION_COUNT,
     offsetof(settings, top),
     "N",
     "print the N most likely classes of each input (3; of classes in JSON all)",
     .least = 1},
    {.name = "--invert",
     OPTION_FLAG,
     offsetof(settings, invert),
     NULL,
     "invert images, for nets trained on white on black"},
    {.name = "--id",
     OPTION_TEXT,
     offsetof(settings, id),
     "COLUMN",
     "table: print the value of this column before each answer (the row's index)"},
    TABLE_READING_OPTIONS(settings),
    {.name = "--batch",
     OPTION_COUNT,
     offsetof(settings, batch),
     "N",
     "batch size (32)",
     .least = 1,
     .most = 1000000},
    {.name = "--input",
     OPTION_LIST,
     offsetof(settings, inputs),
     "NAME=FILE",
     "ONNX: an input, from a .npy file; may be repeated"},
    {.name = "--set",
     OPTION_LIST,
     offsetof(settings, set),
     "NAME=VALUE",
     "ONNX: a size (batch=8), or an input that is fixed: numbers, or @FILE.npy"},
    {.name = "--output",
     OPTION_TEXT,
     offsetof(settings, output),
     "DIR",
     "ONNX: write each output to DIR/NAME.npy, instead of printing the first values"},
    {.name = "--repeat",
     OPTION_COUNT,
     offsetof(settings, repeat),
     "N",
     "ONNX: run N times, and tell the median time (1)",
     .least = 1,
     .most = 1000000},
};

static const char details[] =
    "FILE is a checkpoint written by mica train, or its folder. INPUT is a file with one or more\n"
    "inputs: .idx, .npy, .npz, .csv or .tsv, or .txt for text nets; optionally gzipped. Or INPUTs are\n"
    "images (PNG, JPEG, PPM, PGM) and folders of them: the middle of each is scaled to the net's input.\n"
    "Or WAV files and folders of them, for nets trained on such. With \"-\" or no INPUT, reads stdin and\n"
    "detects the format.\n"
    "\n"
    "Prints a line per input: its index, its --id, or the file of an image, then the most likely classes\n"
    "with their probabilities, or the values of a regression net in their own unit. A text net\n"
    "predicts the next token.\n"
    "\n"
    "Nets trained on digits expect white on black: --invert converts black on white.\n"
    "\n"
    "FILE may also be an ONNX model. Then its inputs are .npy files, by name with --input, or in order;\n"
    "sizes that the model leaves open are those of the files. --json prints an object: inputs and outputs\n"
    "(name, dtype, shape, and the file or the first values), runs, seconds, heap_calls, plan_bytes.";

static const verb_example examples[] = {
    {"run lenet-digits seven.png --invert", "classify an image"},
    {"run lenet-animals photo.jpg album --top 1", "classify images and folders of them"},
    {"run lenet-digits t10k-images-idx3-ubyte.gz --top 1", "classify many images"},
    {"run mlp-iris - < flowers.csv", "read a table from stdin"},
    {"run mlp-churn customers.csv --id customer --json", "a line of JSON for each customer"},
    {"run keywords-words a.wav b.wav", "say what was spoken"},
    {"run resnet18.onnx --input image=cat.npy --output out",
     "an ONNX model: writes out/NAME.npy for each output"},
    {"run gpt-tiny-shakespeare --json < prompt.txt", "the most likely next characters, as JSON"},
    {NULL, NULL},
};

/* What is open while it runs. */
typedef struct prediction {
    mica_context *ctx;
    const settings *set;
    saved saved;
    mica_net *net;
    mica_netfile_info info;
    mica_dataset inputs;
    mica_text text;
    char *bytes; /* of stdin */
    size_t byte_count;
    float *picture; /* fitted to the net's input */
    bool is_text, is_picture;
    image_list images; /* whose samples are in `inputs`, if it has paths */
    char **ids;        /* of the rows of a table, [inputs.count] */
    FILE *to;          /* where answers are printed */
} prediction;

/* ---- Inputs ---- */

static int read_bytes(prediction *p)
{
    size_t room = 0;
    do {
        char *more = realloc(p->bytes, room = 2 * room + 65536);
        if (more == NULL)
            return verb_error(&verb_run, EXIT_FAILED, "out of memory reading stdin");
        p->bytes = more;
        p->byte_count += fread(p->bytes + p->byte_count, 1, room - p->byte_count, stdin);
    } while (p->byte_count == room);
    return ferror(stdin) ? verb_error(&verb_run, EXIT_FILE, "cannot read stdin") : EXIT_OK;
}

/* Rank 0 has it, and gives it to the others. */
static int read_stdin(prediction *p)
{
    int code = ranks_agree(ranks_rank() == 0 ? read_bytes(p) : EXIT_OK);
    return code == EXIT_OK ? ranks_share(&verb_run, &p->bytes, &p->byte_count) : code;
}

/* What is on stdin: by its first bytes; then numbers, for nets that take them; text, for those that read. */
static file_kind kind_of_bytes(const prediction *p)
{
    const unsigned char *b = (const unsigned char *)p->bytes;
    if (p->byte_count >= 8 &&
        (memcmp(b, "\x89PNG", 4) == 0 || memcmp(b, "\xff\xd8\xff", 3) == 0 ||
         (b[0] == 'P' && strchr("2356", b[1]) != NULL && strchr(" \t\r\n#", b[2]) != NULL)))
        return FILE_IMAGE;
    if (p->byte_count >= 8 && memcmp(b, "\x93NUMPY", 6) == 0)
        return FILE_NPY;
    if (p->byte_count >= 8 && memcmp(b, "RIFF", 4) == 0)
        return FILE_WAV;
    if (p->byte_count >= 4 && b[0] == 0 && b[1] == 0)
        return FILE_IDX;
    return p->is_text ? FILE_TEXT : FILE_CSV;
}

/* The rows of a CSV, by the names of the columns that the net was trained on; from a file, or from stdin. */
static int from_table(prediction *p, const char *path)
{
    if (p->saved.meaning.table == NULL)
        return verb_error(&verb_run, EXIT_FILE, "%s is a table, which the net was not trained on", path);
    int code = table_load_inputs(&p->inputs, &verb_run, p->ctx, path, p->bytes, p->byte_count,
                                 &p->saved.meaning, &p->set->table,
                                 !p->set->shared.quiet && ranks_rank() == 0);
    if (code != EXIT_OK || p->set->id == NULL)
        return code;
    table_source from = {path, p->bytes, p->byte_count, 0};
    if (p->set->table.delimiter != NULL)
        from.delimiter = delimiter_named(&verb_run, p->set->table.delimiter);
    return table_load_ids(&p->ids, &verb_run, p->ctx, &from, p->set->id, p->inputs.count);
}

/* WAV files, made ready as the sounds that the net was trained on. */
static int from_sounds(prediction *p, char **names, int count)
{
    const meaning *m = &p->saved.meaning;
    if (!m->is_sound)
        return verb_error(&verb_run, EXIT_FILE, "%s is a sound, but the net was not trained on sounds",
                          names[0]);
    int code = sounds_load_files(&p->images, &verb_run, p->ctx, names, count, &m->sound);
    p->inputs = p->images.set;
    p->images.set = (mica_dataset){0};
    return code;
}

static int from_stdin(prediction *p)
{
    file_kind kind = kind_of_bytes(p);
    if (kind == FILE_WAV && p->saved.meaning.is_sound)
        return mica_sounds_from_memory(p->ctx, &p->inputs, p->bytes, p->byte_count, "stdin",
                                       &p->saved.meaning.sound) == MICA_OK
                   ? EXIT_OK
                   : verb_failed(&verb_run, p->ctx);
    mica_text_opts text = {.vocabulary = &p->saved.meaning.vocabulary};
    mica_status status;
    if (kind == FILE_CSV)
        return from_table(p, "stdin");
    if (kind == FILE_TEXT && p->is_text) {
        status = mica_text_from_memory(p->ctx, &p->text, p->bytes, p->byte_count, &text);
    } else {
        mica_stream stream;
        mica_loaded loaded = {0};
        status = mica_stream_open_memory(p->ctx, &stream, p->bytes, p->byte_count, "stdin");
        if (status == MICA_OK)
            status = kind == FILE_IMAGE ? mica_image_read(p->ctx, &loaded, &stream)
                     : kind == FILE_NPY ? mica_npy_read(p->ctx, &loaded, &stream)
                                        : mica_idx_read(p->ctx, &loaded, &stream);
        mica_stream_close(p->ctx, &stream);
        if (status == MICA_OK) {
            status = mica_dataset_over(p->ctx, &p->inputs, &loaded.tensor, NULL);
            if (status == MICA_OK)
                p->inputs.owned[0] = loaded.bytes;
            else
                mica_loaded_release(p->ctx, &loaded);
        }
    }
    p->is_picture = kind == FILE_IMAGE;
    return status == MICA_OK ? EXIT_OK : verb_failed(&verb_run, p->ctx);
}

static int from_file(prediction *p, const char *path)
{
    file_kind kind = file_kind_of(path);
    mica_text_opts text = {.vocabulary = &p->saved.meaning.vocabulary};
    mica_status status;
    switch (p->is_text ? FILE_TEXT : kind) {
    case FILE_IDX:
        status = mica_dataset_load_idx(p->ctx, &p->inputs, path, NULL);
        break;
    case FILE_NPY:
        status = mica_dataset_load_npy(p->ctx, &p->inputs, path, NULL);
        break;
    case FILE_NPZ:
        status = mica_dataset_load_npz(p->ctx, &p->inputs, path, NULL);
        break;
    case FILE_CSV:
        return from_table(p, path);
    case FILE_TEXT:
        if (p->is_text) {
            status = mica_text_load(p->ctx, &p->text, path, &text);
            break;
        }
        return verb_error(&verb_run, EXIT_FILE, "%s is text, but this is not a text net", path);
    default:
        return verb_error(
            &verb_run, EXIT_FILE,
            "%s: unknown file type: expected a name that ends with .png, .jpg, .ppm, .pgm, .wav, .idx, .npy, .npz, .csv or .tsv",
            path);
    }
    return status == MICA_OK ? EXIT_OK : verb_failed(&verb_run, p->ctx);
}

/* What an image is to become: what the net was trained on, [channels, H, W] or [H, W]. */
static int picture_size(const prediction *p, image_size *out)
{
    const mica_tensor *sample = &p->saved.meaning.sample;
    *out = images_size_of_sample(sample);
    if (sample->rank < 2 || out->channels == 0)
        return verb_error(&verb_run, EXIT_FILE,
                          "the input is an image, but the net was not trained on images");
    return EXIT_OK;
}

static int from_images(prediction *p, char **names, int count)
{
    image_size size;
    int code = picture_size(p, &size);
    if (code == EXIT_OK)
        code = image_list_load(&p->images, &verb_run, p->ctx, names, count, &size);
    if (code != EXIT_OK)
        return code;
    p->inputs = p->images.set;
    p->images.set = (mica_dataset){0};
    unsigned char *bytes = p->inputs.inputs.data;
    for (size_t i = 0; p->set->invert && i < mica_tensor_count(&p->inputs.inputs); i++)
        bytes[i] = (unsigned char)(255 - bytes[i]);
    return EXIT_OK;
}

/* The image of stdin, as numbers from 0 to 255. */
static int fit_picture(prediction *p)
{
    image_size size;
    mica_tensor image = p->inputs.inputs, fitted, batch;
    int code = picture_size(p, &size);
    if (code != EXIT_OK)
        return code;
    size_t count = (size_t)(size.channels * size.height * size.width);
    float *values = p->picture = take(count, sizeof *values);
    fitted = mica_3d(values, size.channels, size.height, size.width);
    batch = mica_4d(values, 1, size.channels, size.height, size.width);
    image.rank = 3;
    memmove(image.dim, image.dim + 1, 3 * sizeof image.dim[0]);
    memmove(image.stride, image.stride + 1, 3 * sizeof image.stride[0]);
    mica_status status = mica_image_centre(p->ctx, &image, &image, size.height, size.width);
    if (status == MICA_OK)
        status = mica_image_fit(p->ctx, &fitted, &image);
    for (size_t i = 0; i < count && p->set->invert; i++)
        values[i] = 255 - values[i];
    mica_dataset_destroy(p->ctx, &p->inputs);
    if (status == MICA_OK)
        status = mica_dataset_over(p->ctx, &p->inputs, &batch, NULL);
    return status == MICA_OK ? EXIT_OK : verb_failed(&verb_run, p->ctx);
}

/* ---- Running ---- */

static answer_style style_of(const prediction *p)
{
    bool all = p->set->top < 0 && p->set->shared.json && !p->is_text;
    return (answer_style){.to = p->to,
                          .json = p->set->shared.json,
                          .top = all               ? INT64_MAX
                                 : p->set->top < 0 ? DEFAULT_TOP
                                                   : p->set->top,
                          .ctx = p->ctx,
                          .info = &p->info,
                          .meaning = &p->saved.meaning,
                          .paths = p->ids != NULL ? p->ids : p->images.paths,
                          .path_key = p->ids != NULL ? "id" : "file"};
}

static int run_text(prediction *p)
{
    const char *name;
    mica_tensor x, y, window = p->text.tokens;
    mica_index tokens = window.dim[0], length = p->info.length < tokens ? p->info.length : tokens;
    if (tokens == 0)
        return verb_error(&verb_run, EXIT_FILE, "the text is empty");
    window.data = (char *)window.data + (size_t)(tokens - length) * mica_dtype_bytes(window.dtype);
    window.rank = 2;
    window.dim[0] = 1;
    window.dim[1] = length;
    window.stride[0] = length;
    window.stride[1] = 1;
    float *scratch = take((size_t)p->info.classes, sizeof *scratch);
    answer_style to = style_of(p);
    mica_status status = mica_net_set_size(p->net, "length", length);
    if (status == MICA_OK)
        status = mica_net_input_tensor(p->net, &name, &x, 0);
    if (status == MICA_OK)
        status = mica_copy(p->ctx, &x, &window);
    if (status == MICA_OK)
        status = mica_net_forward(p->net);
    if (status == MICA_OK)
        status = net_output(&y, p->net, &p->info, 1);
    if (status == MICA_OK)
        answer_row(&to, 0, (const float *)y.data + mica_tensor_count(&y) - (size_t)p->info.classes,
                   p->info.classes, scratch);
    free(scratch);
    return status == MICA_OK ? EXIT_OK : verb_failed(&verb_run, p->ctx);
}

static int check_inputs(const prediction *p)
{
    mica_tensor x;
    if (mica_net_tensor(p->net, &x, p->info.input) != MICA_OK)
        return verb_failed(&verb_run, p->ctx);
    size_t wanted = mica_tensor_count(&x) / (size_t)x.dim[0];
    size_t given = p->inputs.count > 0 ? mica_tensor_count(&p->inputs.inputs) / (size_t)p->inputs.count
                                       : wanted;
    if (given != wanted)
        return verb_error(&verb_run, EXIT_FILE, "an input has %zu values, the net takes %zu", given, wanted);
    return EXIT_OK;
}

/* The batch that was begun, with so many inputs, numbered from `first` on. */
static mica_status run_batch(prediction *p, const mica_batches *batches, mica_index first, mica_index count,
                             float *scratch)
{
    mica_tensor x, y;
    mica_status status = mica_net_resize(p->net, count);
    if (status == MICA_OK)
        status = mica_net_tensor(p->net, &x, p->info.input);
    if (status == MICA_OK)
        status = mica_batches_rows(p->ctx, &x, NULL, 0, count, batches);
    if (status == MICA_OK)
        status = mica_net_forward(p->net);
    if (status == MICA_OK)
        status = net_output(&y, p->net, &p->info, count);
    /* Classes of each place of an input, where it has several, are a line each. */
    mica_index each = status == MICA_OK ? (mica_index)mica_tensor_count(&y) / count : 0;
    mica_index row = p->info.task == MICA_TASK_CLASSES ? p->info.classes : each;
    answer_style to = style_of(p);
    for (mica_index i = 0; status == MICA_OK && i < count; i++)
        for (mica_index at = i * each; at < (i + 1) * each; at += row)
            answer_row(&to, first + i, (const float *)y.data + at, row, scratch);
    return status;
}

/* Some batches for each rank, and what came of them. Several, as ranks wait for each other at the end of a turn. */
#define TURN_BATCHES 8
typedef struct turn {
    int32_t code;
    bool ended;     /* no batch is left: on all ranks alike */
    bool refused;   /* nobody takes what rank 0 prints */
    uint64_t bytes; /* of answers that rank 0 is to print */
} turn;

/* How many: where there are few batches, all ranks get some. */
static int turn_batches(const mica_batches *batches)
{
    mica_index ranks = ranks_count(), each = (mica_batches_count(batches) + ranks - 1) / ranks;
    if (ranks == 1)
        return 1; /* what is answered is soon seen */
    return each > TURN_BATCHES ? TURN_BATCHES : each > 0 ? (int)each : 1;
}

/* Own batches of a turn, printed to p->to. *number is that of the first input that is left. */
static turn run_turn(prediction *p, mica_batches *batches, mica_index *number, float *scratch)
{
    int each = turn_batches(batches), all = each * ranks_count();
    turn t = {.refused = output_failed()};
    mica_status status = MICA_OK;
    for (int i = 0; i < all && status == MICA_OK && !t.ended && !t.refused; i++) {
        mica_index count = 0;
        status = mica_batches_begin(p->ctx, &count, batches);
        t.ended = count == 0;
        if (status == MICA_OK && !t.ended && rank_of_batch(p->net, i / each) == ranks_rank())
            status = run_batch(p, batches, *number, count, scratch);
        *number += count;
    }
    t.code = status == MICA_OK ? EXIT_OK : verb_failed(&verb_run, p->ctx);
    return t;
}

/* Rank 0 prints what all have answered, in their order, up to the first that failed. *goes_on is the same on all. */
static int end_turn(const turn *own, const char *answers, bool *goes_on)
{
    size_t ranks = (size_t)ranks_count(), most = 0;
    turn *all = take(ranks, sizeof *all);
    int code = ranks_gather(&verb_run, all, own, sizeof *own);
    for (size_t i = 0; i < ranks && code == EXIT_OK; i++)
        most = all[i].bytes > most ? (size_t)all[i].bytes : most;
    char *texts = take(ranks + 1, most), *padded = texts + ranks * most;
    if (own->bytes > 0 && most > 0)
        memcpy(padded, answers, (size_t)own->bytes);
    if (code == EXIT_OK && most > 0)
        code = ranks_gather(&verb_run, texts, padded, most);
    *goes_on = code == EXIT_OK && !all[0].ended && !all[0].refused;
    bool failed = code != EXIT_OK || all[0].refused;
    for (size_t i = 0; i < ranks && !failed; i++) {
        if (ranks_rank() == 0)
            (void)fwrite(texts + i * most, 1, (size_t)all[i].bytes, stdout);
        failed = all[i].code != EXIT_OK;
    }
    *goes_on = *goes_on && !failed;
    free(texts);
    free(all);
    return code != EXIT_OK ? code : own->code;
}

static int run_batches(prediction *p, mica_batches *batches, float *scratch)
{
    bool alone = ranks_count() == 1, goes_on = true;
    mica_index number = 0;
    int code = EXIT_OK;
    while (goes_on && code == EXIT_OK) {
        char *answers = NULL;
        size_t bytes = 0;
        turn own = {.code = EXIT_FAILED};
        p->to = alone ? stdout : open_memstream(&answers, &bytes);
        if (p->to != NULL)
            own = run_turn(p, batches, &number, scratch);
        if (p->to == NULL || (!alone && fclose(p->to) != 0))
            own.code = verb_error(&verb_run, EXIT_FAILED, "out of memory for the answers");
        own.bytes = answers != NULL ? bytes : 0;
        code = end_turn(&own, answers, &goes_on);
        free(answers);
    }
    return code;
}

static int run_samples(prediction *p)
{
    const normalization *n = &p->saved.meaning.normalization;
    mica_batches_opts opts = {.batch = (mica_index)p->set->batch,
                              .sequential = true,
                              .scale = n->scale,
                              .mean = n->mean,
                              .deviation = n->deviation,
                              .channels = n->channels};
    mica_batches *batches;
    mica_tensor y;
    mica_status status = mica_batches_create(p->ctx, &batches, &p->inputs, &opts);
    if (status == MICA_OK)
        status = mica_net_tensor(p->net, &y, p->info.output);
    int code = ranks_agree(status == MICA_OK ? EXIT_OK : verb_failed(&verb_run, p->ctx));
    if (code == EXIT_OK) {
        float *scratch = take(mica_tensor_count(&y), sizeof *scratch);
        code = run_batches(p, batches, scratch);
        free(scratch);
    }
    mica_batches_destroy(p->ctx, batches);
    return code;
}

static int open_net(prediction *p, const char *where)
{
    int code = saved_open(&p->saved, &verb_run, p->ctx, where);
    p->is_text = p->saved.meaning.vocabulary.count > 0;
    mica_index batch = p->is_text ? 1 : (mica_index)p->set->batch;
    return code == EXIT_OK ? saved_build(&p->net, &p->info, &verb_run, p->ctx, &p->saved, batch, false)
                           : code;
}

static int open_inputs(prediction *p, char **inputs, int count, bool is_stdin)
{
    file_kind kind = file_kind_of(inputs[0]);
    if (count > 1 && (p->is_text || kind == FILE_CSV || kind == FILE_IDX || kind == FILE_NPY))
        return usage_error(&verb_run, "one %s at a time; unexpected \"%s\"",
                           p->is_text         ? "text"
                           : kind == FILE_CSV ? "table"
                                              : "array",
                           inputs[1]);
    bool sounds = !is_stdin && (kind == FILE_WAV || (p->saved.meaning.is_sound &&
                                                     (count > 1 || is_sound_folder(p->ctx, inputs[0]))));
    bool images = !is_stdin && !p->is_text && !sounds &&
                  (count > 1 || images_named(inputs[0]) || kind == FILE_IMAGE);
    int code = images     ? from_images(p, inputs, count)
               : sounds   ? from_sounds(p, inputs, count)
               : is_stdin ? from_stdin(p)
                          : from_file(p, inputs[0]);
    if (code != EXIT_OK || p->is_text)
        return code;
    code = p->is_picture ? fit_picture(p) : EXIT_OK;
    return code == EXIT_OK ? check_inputs(p) : code;
}

static int predict(prediction *p, const char *where, char **inputs, int count)
{
    const settings *set = p->set;
    bool is_stdin = count == 1 && strcmp(inputs[0], "-") == 0;
    const int64_t chosen[] = {set->top, set->batch, set->invert, set->shared.json, is_stdin};
    int code = ranks_agree(open_net(p, where));
    if (code == EXIT_OK)
        code = same_options(chosen, sizeof chosen / sizeof chosen[0], &verb_run);
    if (code == EXIT_OK)
        code = same_net(&p->saved, p->net, &verb_run);
    if (code == EXIT_OK && is_stdin)
        code = read_stdin(p);
    if (code == EXIT_OK)
        code = ranks_agree(open_inputs(p, inputs, count, is_stdin));
    if (code == EXIT_OK && set->id != NULL && p->ids == NULL)
        code = usage_error(&verb_run, "--id is for tables");
    if (code == EXIT_OK)
        code = same_inputs(p->is_text ? &p->text.tokens : &p->inputs.inputs, &verb_run, inputs[0]);
    if (code != EXIT_OK)
        return code;
    if (!p->is_text)
        return run_samples(p);
    return ranks_rank() == 0 ? run_text(p) : EXIT_OK; /* there is one text, and one answer */
}

static int run_model(const settings *set, const char *path, char **files, int count)
{
    mica_context *ctx = verb_context(&verb_run, &set->shared);
    if (ctx == NULL)
        return EXIT_FAILED;
    onnx_run_settings model = {.shared = set->shared,
                               .set = set->set,
                               .inputs = set->inputs,
                               .output = set->output,
                               .repeat = set->repeat};
    int code = ranks_rank() == 0 ? onnx_run(ctx, &verb_run, &model, path, files, count) : EXIT_OK;
    mica_context_destroy(ctx);
    return code;
}

static int run(int argc, char **argv)
{
    settings set = {.shared = SHARED_DEFAULTS, .table = TABLE_DEFAULTS, .top = -1, .batch = 32, .repeat = 1};
    int count = options_read(&verb_run, &set, argc, argv);
    if (count < 0)
        return EXIT_USAGE;
    if (count < 1)
        return usage_error(&verb_run, "which trained net? The FILE argument is missing");
    if (is_onnx(argv[0]))
        return run_model(&set, argv[0], argv + 1, count - 1);
    if (set.inputs.count > 0 || set.set.count > 0 || set.output != NULL)
        return usage_error(&verb_run, "%s is for ONNX models, which %s is not",
                           set.inputs.count > 0 ? "--input"
                           : set.set.count > 0  ? "--set"
                                                : "--output",
                           argv[0]);
    prediction p = {.ctx = verb_context(&verb_run, &set.shared), .set = &set, .to = stdout};
    if (p.ctx == NULL)
        return EXIT_FAILED;
    char *from_stdin[] = {"-"};
    int code = predict(&p, argv[0], count > 1 ? argv + 1 : from_stdin, count > 1 ? count - 1 : 1);
    mica_net_destroy(p.net);
    for (mica_index i = 0; p.ids != NULL && i < p.inputs.count; i++)
        free(p.ids[i]);
    free(p.ids);
    mica_dataset_destroy(p.ctx, &p.inputs);
    image_list_free(p.ctx, &p.images);
    mica_text_destroy(p.ctx, &p.text);
    saved_close(p.ctx, &p.saved);
    mica_context_destroy(p.ctx);
    free(p.bytes);
    free(p.picture);
    return code;
}

const verb verb_run = {
    .name = "run",
    .arguments = "FILE [INPUT...|-] [OPTIONS]",
    .summary = "run a trained net on inputs: classes and probabilities",
    .details = details,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run,
    .shared = SHARED_QUIET | SHARED_JSON | SHARED_THREADS | RANKED,
    .examples = examples,
};
