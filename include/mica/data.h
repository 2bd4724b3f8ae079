/* Data for training: sets of samples loaded once, and batches of them without an allocation.
 *
 *     mica_dataset set;
 *     mica_batches *batches;
 *     mica_dataset_load_idx(ctx, &set, "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz");
 *     mica_batches_create(ctx, &batches, &set, &(mica_batches_opts){.batch = 32, .seed = 1, .scale = 1 / 255.f});
 *     for (mica_index n; mica_batches_next(ctx, &x, &labels, &n, batches) == MICA_OK && n > 0;)
 *             step(&x, &labels, n);                      // one epoch; the next loop is the next epoch
 *
 * Files are hostile until checked: a bad one is an error that names the file and the byte or line. Any of them
 * may be gzip where the library was built with zlib; one that expands to more than 64 MiB and 200 times its own size
 * is refused. */
#ifndef MICA_DATA_H
#define MICA_DATA_H

#include <mica/random.h>
#include <mica/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Data sets --------------------------------------------------------------------------------------- */

/* Samples along axis 0 of one or two tensors. A value: read its fields freely. */
typedef struct mica_dataset {
    mica_index count;    /* N */
    mica_tensor inputs;  /* [N, ...] */
    mica_tensor targets; /* [N, ...]; without data if has_targets is false */
    bool has_targets;
    const char *const *classes; /* names [class_count] if targets are class indices; NULL: none */
    int class_count;
    size_t owned[3]; /* bytes of inputs, targets and classes that the set owns */
} mica_dataset;

/* Over the caller's tensors, of any plain dtype and layout, which must outlive the set. `targets` may be NULL. */
MICA_API mica_status mica_dataset_over(mica_context *ctx, mica_dataset *out, const mica_tensor *inputs,
                                       const mica_tensor *targets);

/* idx, the format of MNIST: inputs from one file and, unless NULL, targets from another with the same number
 * of samples. Dtypes as in the files. */
MICA_API mica_status mica_dataset_load_idx(mica_context *ctx, mica_dataset *out, const char *inputs_path,
                                           const char *targets_path);

/* NumPy's npy, versions 1 to 3: little-endian, C order, of the element types that Mica has and bool. */
MICA_API mica_status mica_dataset_load_npy(mica_context *ctx, mica_dataset *out, const char *inputs_path,
                                           const char *targets_path);

/* NumPy's npz (savez, savez_compressed): arrays by name, of the kinds of npy. Compressed ones need zlib. */
typedef struct mica_npz_opts {
    const char *inputs; /* a name; NULL: x, X, inputs, x_train, X_train or arr_0 */
    /* With inputs: a name; NULL: none. With inputs NULL: y, Y, targets, y_train or arr_1, whichever goes with them. */
    const char *targets;
    bool test; /* with inputs NULL: x_test or X_test, and y_test */
} mica_npz_opts;
MICA_API mica_status mica_dataset_load_npz(mica_context *ctx, mica_dataset *out, const char *path,
                                           const mica_npz_opts *opts);

/* An image as a set of one sample without target: inputs [1, channels, height, width], u8. Channels: grey, grey and
 * alpha, RGB, or RGB and alpha; palettes and other bit depths become these. The file's first bytes tell its kind: PNG
 * (needs zlib), PPM and PGM (P2, P3, P5, P6), JPEG (needs libjpeg; without alpha). With no more pixels than this, which
 * is checked against the header before memory is allocated. */
#define MICA_IMAGE_MOST_PIXELS ((int64_t)1 << 26)
MICA_API mica_status mica_dataset_load_image(mica_context *ctx, mica_dataset *out, const char *path);

/* An image [channels, height, width] of bytes as f32 [1 or 3, H, W], values 0 to 255: composited on
 * white, greyscale or RGB, resized (averaged when shrinking, interpolated when growing). */
MICA_API mica_status mica_image_fit(mica_context *ctx, const mica_tensor *dst, const mica_tensor *image);

/* The middle of an image [channels, height, width], as a view of it: as much as there is of the aspect ratio
 * height : width. Fitted to that size, it is not distorted. */
MICA_API mica_status mica_image_centre(mica_context *ctx, mica_tensor *out, const mica_tensor *image,
                                       mica_index height, mica_index width);

typedef struct mica_images_opts {
    mica_index channels;      /* 1: greyscale; 3: RGB; 0: as the first image has it */
    mica_index height, width; /* 0: those of the first image */
    bool stretch;             /* the whole of each image, distorted if need be, instead of its middle */

    /* With `classes` [class_count], in that order, every sub-folder must be one of these; else all that there are. */
    const char *const *classes;
    int class_count;
} mica_images_opts;

/* A folder of images with a sub-folder for each class (animals/cat/1.png, animals/dog/2.jpg), all at one size: inputs
 * [N, channels, height, width], u8; targets [N], i32 class indices; and the classes' names, in byte order. Samples are
 * in order of class and path. Files are those named .png, .jpg, .jpeg, .ppm, .pgm or .pnm, also deeper in the
 * sub-folders; names that begin with a dot are skipped. */
MICA_API mica_status mica_dataset_load_images(mica_context *ctx, mica_dataset *out, const char *folder,
                                              const mica_images_opts *opts);

/* Synthetic digits, pen strokes on noisy paper: no file is needed. Inputs [count, 28, 28] and
 * targets [count], both u8. Sample i is a function of the seed and first + i alone, the same on every machine: two
 * disjoint ranges make a training set and a test set. */
#define MICA_DIGITS_SIDE 28
typedef struct mica_digits_opts {
    mica_index count; /* 0: 1000 */
    uint64_t seed;
    uint64_t first; /* the number of the first sample */
} mica_digits_opts;
MICA_API mica_status mica_dataset_digits(mica_context *ctx, mica_dataset *out, const mica_digits_opts *opts);

/* Frees what the set owns. May be called twice. */
MICA_API void mica_dataset_destroy(mica_context *ctx, mica_dataset *set);

/* ---- Batches ----------------------------------------------------------------------------------------- */

typedef enum mica_part {
    MICA_PART_ALL,
    MICA_PART_TRAIN,      /* everything not in the other two */
    MICA_PART_VALIDATION, /* round(N * validation) samples, chosen by the seed */
    MICA_PART_TEST,       /* round(N * test) of the others, chosen likewise */
} mica_part;

/* Which samples of a set are used. The same split of as many samples gives the same parts everywhere. */
typedef struct mica_data_split {
    mica_part part;
    double validation; /* share of the validation part, 0 to 1 */
    double test;       /* and of the test part; together at most 1 */
    uint64_t seed;
    /* For k-fold cross-validation: what is not for tests is cut into `folds` parts of (nearly) the same size, chosen by
     * the seed, and number `fold`, from 0 on, is the validation part; `validation` is not used. 0: not. */
    int folds, fold;
    /* Samples that follow each other in time: training comes first, then validation, then test. The first `gap` samples
     * of validation and test are left out: those that overlap with the part before. A part that would lose more than
     * half of its samples gets so many more, as long as training has no fewer than both parts together. */
    bool in_order;
    mica_index gap;
} mica_data_split;

#define MICA_MOST_FOLDS 1000

/* What happens to the inputs of a sample on their way into a batch, such as augmentation. Rows are made in any order,
 * by several threads at once: `run` is a function of its arguments alone, and allocates nothing. */
typedef struct mica_transform {
    /* row: the sample's elements as f32, before scale and normalization, which apply to `out` [elements]. `random` is
     * the start of a stream of this sample's own in this epoch. `out` and `row` do not overlap. */
    void (*run)(const void *user, float *out, const float *row, mica_random random);
    const void *user;
    mica_index elements; /* of `out`; 0: as many as the sample has */
    mica_index takes;    /* elements of `row` that a sample must have; 0: any number */
} mica_transform;

typedef struct mica_batches_opts {
    mica_index batch; /* samples in a batch; 0: 32 */
    uint64_t seed;    /* of the shuffle, together with the epoch */
    bool sequential;  /* in the order of the set instead of shuffled */
    bool drop_last;   /* drop an incomplete last batch */

    mica_data_split split;
    mica_transform transform; /* .run NULL: none */

    /* Inputs x become (x * scale - mean[c]) / deviation[c]. With channels = 1 that is one number for all; else one for
     * each position of axis 1 of the set's inputs (with a transform that changes their number: for each of so many
     * equal parts of a sample). mean and deviation are copied; NULL: 0 and 1. */
    float scale; /* 0: 1 */
    const float *mean;
    const float *deviation;
    mica_index channels; /* of mean and deviation; 0: 1 */
} mica_batches_opts;

/* Iterates over a set in batches, epoch after epoch. */
typedef struct mica_batches mica_batches;

/* The order of the samples is kept in memory from the context's allocator, 4 bytes per sample (8 for a split).
 * The set's elements must outlive it; the struct need not. On failure *out is NULL. */
MICA_API mica_status mica_batches_create(mica_context *ctx, mica_batches **out, const mica_dataset *set,
                                         const mica_batches_opts *opts);
/* Takes the context that created it. NULL is allowed. */
MICA_API void mica_batches_destroy(mica_context *ctx, mica_batches *batches);

/* Writes the next batch to the first *count rows of inputs [B, ...] and targets [B, ...], converting as
 * mica_copy does. B is opts.batch at least; a row has as many elements as a sample, in any shape ([28, 28]
 * goes into [1, 28, 28]). *count is 0 at the end of the epoch; the next call starts the next one.
 * `targets` may be NULL. Allocates nothing. */
MICA_API mica_status mica_batches_next(mica_context *ctx, const mica_tensor *inputs,
                                       const mica_tensor *targets, mica_index *count, mica_batches *batches);

/* The same in two steps, for callers that need only some rows of each batch: _begin moves on to the next batch and
 * returns its number of rows, 0 at the end of an epoch; _rows writes rows first .. first + count - 1 of it, as often as
 * you like. */
MICA_API mica_status mica_batches_begin(mica_context *ctx, mica_index *count, mica_batches *batches);
MICA_API mica_status mica_batches_rows(mica_context *ctx, const mica_tensor *inputs,
                                       const mica_tensor *targets, mica_index first, mica_index count,
                                       const mica_batches *batches);

/* The position in the data. The same set, options and cursor give bit-identical batches. */
typedef struct mica_cursor {
    uint64_t epoch;    /* from 0 on */
    uint64_t position; /* samples returned so far in this epoch */
} mica_cursor;

MICA_API mica_cursor mica_batches_cursor(const mica_batches *batches);
MICA_API mica_status mica_batches_seek(mica_context *ctx, mica_batches *batches, mica_cursor cursor);

MICA_API mica_index mica_batches_samples(const mica_batches *batches); /* in its split */
MICA_API mica_index mica_batches_count(const mica_batches *batches);   /* batches per epoch */

/* ---- Text -------------------------------------------------------------------------------------------- */

/* The set of tokens. Bytes: 256, each its own index. Characters: those that occur in a text, ordered by code
 * point. */
typedef struct mica_vocabulary {
    int32_t count;
    const uint32_t *characters; /* [count], ascending code points; NULL: bytes */
} mica_vocabulary;

/* A text as tokens. A value: read its fields freely. Splits of it (such as for validation) are slices of `tokens`. */
typedef struct mica_text {
    mica_tensor tokens; /* [N]: u8 for up to 256 different ones, i32 above */
    mica_vocabulary vocabulary;
    void *block; /* owned by the text */
    size_t bytes;
} mica_text;

typedef struct mica_text_opts {
    bool characters;                   /* tokens are characters (the text is UTF-8) rather than bytes */
    const mica_vocabulary *vocabulary; /* another text's, which must outlive this one; NULL: its own */
} mica_text_opts;

MICA_API mica_status mica_text_load(mica_context *ctx, mica_text *out, const char *path,
                                    const mica_text_opts *opts);
MICA_API mica_status mica_text_from_memory(mica_context *ctx, mica_text *out, const char *bytes, size_t count,
                                           const mica_text_opts *opts);
MICA_API void mica_text_destroy(mica_context *ctx, mica_text *text); /* safe twice */

/* The tokens of a string. *count is the room before and the number of tokens after; if the room is too small,
 * the call fails and *count is the room required. */
MICA_API mica_status mica_text_encode(mica_context *ctx, int32_t *tokens, size_t *count,
                                      const mica_vocabulary *vocabulary, const char *string);

/* The string of tokens [n], terminated, in text[size]. */
MICA_API mica_status mica_text_decode(mica_context *ctx, char *text, size_t size,
                                      const mica_vocabulary *vocabulary, const mica_tensor *tokens);

/* Windows of T tokens and the token that follows each of them: a row of inputs [B, T] holds tokens s to s + T - 1,
 * the same row of targets [B, T] tokens s + 1 to s + T. Of any plain dtype; nothing is allocated. */

/* Each row's s is drawn from `at`: mica_random_stream(seed, step) gives every training step its own. */
MICA_API mica_status mica_windows_random(mica_context *ctx, const mica_tensor *inputs,
                                         const mica_tensor *targets, const mica_tensor *tokens,
                                         mica_random at);

/* Row b is window first + b, which starts at token (first + b) * T: the whole text once, without overlap. */
MICA_API mica_status mica_windows_in_order(mica_context *ctx, const mica_tensor *inputs,
                                           const mica_tensor *targets, const mica_tensor *tokens,
                                           mica_index first);
/* How many whole windows there are. */
MICA_API mica_index mica_windows_count(const mica_tensor *tokens, mica_index length);

#ifdef __cplusplus
}
#endif
#endif
