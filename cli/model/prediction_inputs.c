/* The inputs of mica run: from files of any kind, or from stdin. */
#include "cli/model/prediction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/match.h"
#include "cli/model/sounds.h"
#include "cli/model/tables.h"
#include "cli/model/take.h"
#include "cli/ranks.h"
#include "data/image_file.h"
#include "data/sounds.h"

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
int prediction_read_stdin(prediction *p)
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
            "%s: unknown file type: expected a name that ends with .png, .jpg, .ppm, .pgm, .wav, .idx, .npy, "
            ".npz, .csv or .tsv",
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
    return p->inputs.count > 0 ? sample_match(&verb_run, &x, "the net", &p->inputs.inputs, "the data")
                               : EXIT_OK;
}

int prediction_open_inputs(prediction *p, char **inputs, int count, bool is_stdin)
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
