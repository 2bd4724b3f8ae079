/* What --data names, loaded: samples with targets, or a text. And how samples are made ready for a net. */
#ifndef MICA_CLI_MODEL_DATA_H
#define MICA_CLI_MODEL_DATA_H

#include <mica/mica.h>
#include <mica/sound.h>

#include "cli/verb.h"

/* For help: what can stand behind --data. */
#define DATA_HELP                                                                                 \
    "DATA is one of:\n"                                                                           \
    "  digits, digits:N        synthetic digits: N for training (20000), plus some for testing\n" \
    "  fashion-mnist           as installed by Debian's dataset-fashion-mnist\n"                  \
    "  FOLDER                  files named like MNIST's: train-images-idx3-ubyte etc., or .gz\n"  \
    "  FOLDER                  images in a sub-folder for each class: FOLDER/cat/1.png etc.;\n"   \
    "                          also FOLDER/train/cat/1.png and FOLDER/test/cat/1.png\n"           \
    "  X.idx,Y.idx             inputs and targets; also X.npy,Y.npy\n"                            \
    "  FILE.csv, FILE.tsv      a table, a sample per line; --label COLUMN is what is learned\n"   \
    "  FILE.txt                text, for text nets\n"                                             \
    "  FILE.npz                arrays x and y, or x_train, y_train, x_test and y_test\n"          \
    "  FOLDER                  WAV files in sub-folders by class, or in train/ and test/\n"

/* What images become; 0: as they are. */
typedef struct image_size {
    mica_index channels, height, width;
} image_size;

/* What is asked of a CSV file. -1, NULL, 0: not given. */
typedef struct table_settings {
    const char *
        label; /* the column or columns to predict, by name or number, with a comma between them; NULL: the last */
    const char *delimiter; /* a name: delimiter_named */
    int header, task, missing;
    option_list ignore, categories; /* columns by name or number */
    int64_t window, horizon, season;
    size_t memory; /* rows that take more are read in blocks */
} table_settings;

#define TABLE_DEFAULTS                          \
    {                                           \
        .header = -1, .task = -1, .missing = -1 \
    }

/* What the targets of a table can be. */
typedef enum table_task { TABLE_CLASSES, TABLE_NUMBERS, TABLE_YES_NO } table_task;

typedef struct data_opts {
    table_settings table;
    const mica_table *known;    /* what a checkpoint knows of its table; NULL: found out */
    mica_index window, horizon; /* and of its series */
    bool same_rows;             /* the file must have as many rows as that table had */
    const char *test;           /* a file or folder that is for tests alone; NULL: none */
    bool tell;                  /* what was found and chosen, on stderr */
    const char *const *classes; /* [class_count] that labels must be of; NULL: as the data have it */
    int class_count;
    const mica_vocabulary *vocabulary; /* that a text must be of; NULL: its own */
    uint64_t seed;                     /* of the digits */
    const mica_sounds_opts *sound;     /* how WAV files are read; NULL: as usual */
    bool sound_asked;                  /* somebody said how: then they must be WAV files */
    image_size images;                 /* of a folder of them */
} data_opts;

typedef struct data {
    bool is_text;
    mica_text text;
    bool is_sound;
    mica_sounds_opts sound; /* with nothing left open */
    mica_dataset samples;   /* for training and validation; also for tests unless has_test */
    mica_dataset test;      /* of those that come with a part for tests */
    bool has_test;
    const char *const *class_names; /* [class_count]; NULL: their numbers */
    int64_t class_count;            /* 0: targets are no class numbers, or unknown */

    /* Of a table. */
    const mica_table *table; /* NULL: it is none */
    mica_table *own_table;   /* the same, unless it is another's */
    const char *path;
    bool streamed; /* too large for memory: `samples` has no rows */
    table_task task;
    mica_index window, horizon, season; /* of a series; 0: it is none */
    mica_dataset rows[2]; /* of a series: those that the windows of `samples` and `test` are over */
} data;

/* The shape of a sample as the net gets it, without memory; rank 0: text. */
mica_tensor data_sample(const data *d);

/* Loads; or says what is wrong and returns what the program ends with. `out` is to be released in any case. */
int data_load(data *out, const verb *v, mica_context *ctx, const char *spec, const data_opts *opts);
void data_release(mica_context *ctx, data *d);

/* Whether it is a folder of images: their size is for the caller to choose. */
bool data_is_images(const char *spec);

/* Inputs x become (x * scale - mean[c]) / deviation[c], as in mica_batches_opts. */
typedef struct normalization {
    float scale;
    mica_index channels; /* of the two; 0: neither is there */
    float *mean, *deviation;
} normalization;

/* Mean 0 and deviation 1 over the training part: for each channel of pictures and column of tables. */
mica_status normalization_learn(normalization *out, mica_context *ctx, const data *d,
                                const mica_data_split *split);
void normalization_free(normalization *n);

/* One of the files that a sample can come from, by its name: arrays, tables, an image, a sound or text. */
typedef enum file_kind {
    FILE_UNKNOWN,
    FILE_IDX,
    FILE_NPY,
    FILE_CSV,
    FILE_IMAGE,
    FILE_TEXT,
    FILE_NPZ,
    FILE_WAV
} file_kind;
file_kind file_kind_of(const char *path);

/* FOLDER/NAME, plain or .gz, as MNIST's files are called. False: there is neither. */
bool find_idx(char *path, size_t size, const char *folder, const char *name);

#endif
