/* Tables: CSV files of numbers, words and dates, and how their rows become numbers for a net.
 *
 *     mica_table *table;
 *     mica_table_scan(ctx, &table, "houses.csv", NULL);                    // what the columns are
 *     mica_table_set_role(ctx, table, mica_table_find(table, "price"), MICA_ROLE_TARGET);
 *     mica_table_encode(ctx, table, NULL);                                 // what becomes of each
 *     mica_table_load(ctx, &set, table, "houses.csv", NULL);               // rows, in memory
 *     mica_batches_create(ctx, &batches, &set, &(mica_batches_opts){.transform = mica_table_transform(table)});
 *
 * A batch has mica_table_inputs(table) elements per row. A file that is too large for memory is read in blocks:
 * mica_table_stream_create. mica_table_to_text keeps all of it with a trained net, and mica_table_from_text brings it
 * back: files that come later are matched by the names of their columns. */
#ifndef MICA_TABLE_H
#define MICA_TABLE_H

#include <mica/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What the columns are ---- */

typedef enum mica_column_kind {
    MICA_COLUMN_NUMBER,
    MICA_COLUMN_CATEGORY, /* words, not too many different ones; or numbers that are names */
    MICA_COLUMN_DATE,     /* 2024-05-17, 2024/05/17 or 17.05.2024, each with or without 12:30 or 12:30:59 */
    MICA_COLUMN_TEXT,     /* words, nearly all of them different */
    MICA_COLUMN_EMPTY,    /* no row has a value */
} mica_column_kind;

/* What a column is used for. The bits may be combined: a forecast reads the past of what it predicts. */
typedef enum mica_column_role {
    MICA_ROLE_NONE = 0,
    MICA_ROLE_INPUT = 1,
    MICA_ROLE_TARGET = 2,
} mica_column_role;

#define MICA_TABLE_MOST_VALUES  1000 /* different values of a column that are remembered */
#define MICA_TABLE_MOST_COLUMNS 16384
#define MICA_TABLE_LONGEST_LINE ((size_t)1 << 20) /* bytes */
#define MICA_TABLE_SHOWN        32 /* bytes of a value that is kept for a message, its end included */

/* Statistics are those of the whole file that was scanned. */
typedef struct mica_column {
    const char *name; /* from the header; "column 3" without one */
    mica_column_kind kind;
    int role;           /* mica_column_role */
    uint64_t missing;   /* rows without a value: empty, NA, N/A, NaN, null, None, "?" or "-", in any case */
    uint64_t different; /* values; MICA_TABLE_MOST_VALUES + 1: more than that */
    bool whole;         /* all numbers are whole */
    bool counts_rows;   /* numbers that go up by one from row to row: no input unless told so */
    bool times;         /* some dates have a time of day */

    /* Of numbers, and of dates as seconds since 1970. The median is exact up to 1024 values, else that of a sample. */
    double least, most, mean, deviation, median;

    /* The different values [value_count] with the number of rows of each; numbers in their order, words in that of
     * their bytes. Categories, and numbers if there are no more than MICA_TABLE_MOST_VALUES. */
    const char *const *values;
    const uint64_t *counts;
    int value_count;

    /* Which elements of a row's inputs or targets are this column's: mica_table_encode. */
    mica_index first_input, inputs;
    mica_index first_target, targets;

    /* Of words: how many rows have no number although at least nine in ten have one, and the first of those values,
     * cut. 0: it is not so. */
    uint64_t odd;
    char odd_value[MICA_TABLE_SHOWN];

    /* Of dates: the most common distance between two rows that follow each other, in seconds, and how many rows have
     * another. For a series, which is taken to be even. */
    double step;
    uint64_t uneven;
} mica_column;

typedef enum mica_csv_header {
    MICA_CSV_HEADER_AUTO, /* a header if its words stand above numbers or dates, or above other words than the rest */
    MICA_CSV_HEADER_YES,
    MICA_CSV_HEADER_NO,
} mica_csv_header;

typedef struct mica_scan_opts {
    char delimiter; /* 0: the one of comma, semicolon, tab and | that cuts the first lines most evenly */
    mica_csv_header header;
} mica_scan_opts;

/* A table: its columns and how they are encoded, not its rows. */
typedef struct mica_table mica_table;

/* Reads the whole file once. Fields may be in double quotes, with a doubled quote for one; blank lines are skipped;
 * where the delimiter is not a comma, numbers may have a decimal comma. Takes memory from the context's allocator that
 * depends on the columns alone. Every column becomes an input but those of text, without values, or that count rows. */
MICA_API mica_status mica_table_scan(mica_context *ctx, mica_table **out, const char *path,
                                     const mica_scan_opts *opts);
/* The same from memory; `name` is for messages. */
MICA_API mica_status mica_table_scan_memory(mica_context *ctx, mica_table **out, const char *bytes,
                                            size_t count, const char *name, const mica_scan_opts *opts);
MICA_API void mica_table_destroy(mica_context *ctx, mica_table *table); /* NULL is allowed */

MICA_API int mica_table_columns(const mica_table *table);
MICA_API const mica_column *mica_table_column(const mica_table *table, int column);
MICA_API int mica_table_find(const mica_table *table, const char *name); /* -1: there is none */
MICA_API mica_index mica_table_rows(const mica_table *table);            /* of the file that was scanned */
MICA_API char mica_table_delimiter(const mica_table *table);
MICA_API bool mica_table_has_header(const mica_table *table);

/* ---- What becomes of them ---- */

/* Numbers can be taken as categories, if there are no more than MICA_TABLE_MOST_VALUES different ones; categories
 * cannot be taken as numbers. */
MICA_API mica_status mica_table_set_kind(mica_context *ctx, mica_table *table, int column,
                                         mica_column_kind kind);
MICA_API mica_status mica_table_set_role(mica_context *ctx, mica_table *table, int column, int role);

/* What stands for a value that is missing in an input. A row without one of its targets is always left out. */
typedef enum mica_missing {
    MICA_MISSING_MEAN,   /* the column's mean */
    MICA_MISSING_MEDIAN, /* its median */
    MICA_MISSING_DROP,   /* the row is left out */
    MICA_MISSING_REFUSE, /* an error that gives line and column */
} mica_missing;

typedef struct mica_encode_opts {
    mica_missing missing;
    bool raw_targets; /* targets that are numbers stay as they are, instead of mean 0 and deviation 1 */
} mica_encode_opts;

/* Fixes the elements of inputs and targets. Inputs: a number is one element, with mean 0 and deviation 1; a category is
 * one element for each value, 1 or 0, and one for values that were not seen; a date is one element like a number, the
 * sine and cosine of its place in the year and, with times, of its place in the day. A column that has missing values
 * gets one more element, 1 where the value is missing (not with MICA_MISSING_DROP and _REFUSE). Targets: a number
 * is one element, a category the index of its value. */
MICA_API mica_status mica_table_encode(mica_context *ctx, mica_table *table, const mica_encode_opts *opts);

MICA_API mica_index mica_table_inputs(const mica_table *table);  /* elements of a row; 0: not encoded */
MICA_API mica_index mica_table_targets(const mica_table *table); /* elements of its targets */

/* A target element in its column's own unit: y * deviation + mean. 1 and 0 for categories. */
MICA_API void mica_table_target_unit(const mica_table *table, mica_index element, float *mean,
                                     float *deviation);

/* As JSON, terminated: column names, kinds, roles and statistics. *bytes is the room before and what is needed after,
 * the end included; if the room is too small, the call fails (with text NULL and no room: it only counts). */
MICA_API mica_status mica_table_to_text(mica_context *ctx, const mica_table *table, char *text,
                                        size_t *bytes);
/* Text is hostile until checked. The table is encoded if it was. */
MICA_API mica_status mica_table_from_text(mica_context *ctx, mica_table **out, const char *text);

/* ---- Rows ---- */

/* What reading found. */
typedef struct mica_table_found {
    mica_index rows;           /* with all that is needed */
    uint64_t missing;          /* values that were filled in */
    uint64_t dropped;          /* rows left out because of missing values */
    uint64_t unseen;           /* values of categories that the scanned file did not have */
    int extra_columns;         /* of the file, which the table does not know */
    bool by_position;          /* the file has no header: its columns were taken in the table's order */
    const char *unseen_column; /* the first column with such a value, of the table's; NULL: none */
    char unseen_value[MICA_TABLE_SHOWN]; /* and the value, cut */
} mica_table_found;

typedef struct mica_table_read_opts {
    bool no_targets; /* they need not be there, and are not read */
    char delimiter;  /* 0: found as by mica_table_scan */
    mica_csv_header header;
    mica_table_found *found; /* filled unless NULL */
} mica_table_read_opts;

/* Reads a file: the columns are matched by their names or, without a header in either file, by their number. A column
 * that is needed and not there, or a word where a number was, is an error. The set holds rows in a short form, inputs
 * [N, cells] f32, and its batches need mica_table_transform; targets are [N, mica_table_targets()] f32, and its classes
 * are those of the only target if that is a category. */
MICA_API mica_status mica_table_load(mica_context *ctx, mica_dataset *out, const mica_table *table,
                                     const char *path, const mica_table_read_opts *opts);
/* The same from memory; `name` is for messages. */
MICA_API mica_status mica_table_load_memory(mica_context *ctx, mica_dataset *out, const mica_table *table,
                                            const char *bytes, size_t count, const char *name,
                                            const mica_table_read_opts *opts);

/* From rows in short form to inputs. The table must outlive the batches. */
MICA_API mica_transform mica_table_transform(const mica_table *table);

/* All of a set's rows in full, for those that need them at once: inputs [N, mica_table_inputs()] f32, its own. */
MICA_API mica_status mica_table_expand(mica_context *ctx, mica_dataset *out, const mica_table *table,
                                       const mica_dataset *set);

/* Windows over rows that follow each other in time: sample i has the inputs of rows i to i + window - 1, [window,
 * elements], and the targets of the `horizon` rows after those. A view of the set, whose rows must outlive it. With
 * .in_order and .gap = window + horizon - 1 no row is seen by two parts. */
MICA_API mica_status mica_dataset_windows(mica_context *ctx, mica_dataset *out, const mica_dataset *set,
                                          mica_index window, mica_index horizon);

/* ---- Files larger than memory ---- */

/* Finds the rows of another file than the one that was scanned, in one pass: for a table that comes from text. The
 * columns stay as they are. */
MICA_API mica_status mica_table_index(mica_context *ctx, mica_table *table, const char *path,
                                      const mica_table_read_opts *opts);

typedef struct mica_table_stream_opts {
    mica_index batch; /* 0: 32 */
    uint64_t seed;
    bool sequential; /* in the order of the file instead of shuffled */
    mica_data_split split;
    size_t bytes; /* of memory for rows, about; 0: 32 MiB */
} mica_table_stream_opts;

/* Batches from the file that was scanned or indexed, a part of it in memory at a time: blocks of rows are read in an
 * order drawn for each epoch, and shuffled in groups. A thread of its own reads ahead where the library has threads.
 * The same parts as mica_batches, and the same cursors. The file must not be gzip, nor change. */
typedef struct mica_table_stream mica_table_stream;

MICA_API mica_status mica_table_stream_create(mica_context *ctx, mica_table_stream **out,
                                              const mica_table *table, const char *path,
                                              const mica_table_stream_opts *opts);
MICA_API void mica_table_stream_destroy(mica_context *ctx, mica_table_stream *stream);
MICA_API mica_index mica_table_stream_samples(const mica_table_stream *stream); /* in its part */
MICA_API mica_index mica_table_stream_batches(const mica_table_stream *stream); /* per epoch */

/* As mica_batches_begin, _rows, _cursor and _seek. They allocate nothing. */
MICA_API mica_status mica_table_stream_begin(mica_context *ctx, mica_index *count, mica_table_stream *stream);
MICA_API mica_status mica_table_stream_rows(mica_context *ctx, const mica_tensor *inputs,
                                            const mica_tensor *targets, mica_index first, mica_index count,
                                            const mica_table_stream *stream);
MICA_API mica_cursor mica_table_stream_cursor(const mica_table_stream *stream);
MICA_API mica_status mica_table_stream_seek(mica_context *ctx, mica_table_stream *stream, mica_cursor cursor);

#ifdef __cplusplus
}
#endif
#endif
