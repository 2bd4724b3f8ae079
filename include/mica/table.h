/* Tables: CSV files of numbers, words and dates, and how their rows become numbers for a net.
 *
 *     mica_table *table;
 *     mica_table_scan(ctx, &table, "houses.csv", NULL);                    // what the columns are
 *     mica_table_set_role(ctx, table, mica_table_find(table, "price"), MICA_ROLE_TARGET);
 *     mica_table_encode(ctx, table, NULL);                                 // what becomes of each
 *     mica_table_load(ctx, &set, table, "houses.csv", NULL);               // rows, in memory
 *     mica_batches_create(ctx, &batches, &set, &(mica_batches_opts){.transform = mica_table_transform(table)});
 *
 * A row of a batch has mica_table_inputs(table) elements. For a file larger than memory, mica_table_stream_create takes
 * the place of the last two calls. mica_table_to_text writes the table as text, to be kept with a trained net, and
 * mica_table_from_text reads it back: files that come later are read by the names of its columns. examples/table.c has
 * all of it.
 *
 * A table that is encoded and no longer changed may be used by any number of threads, each with its own context. */
#ifndef MICA_TABLE_H
#define MICA_TABLE_H

#include <mica/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What the columns are ---- */

typedef enum mica_column_kind {
    MICA_COLUMN_NUMBER,
    MICA_COLUMN_CATEGORY, /* words that repeat; or numbers that are names: mica_table_set_kind */
    MICA_COLUMN_DATE,     /* 2024-05-17, 2024/05/17 or 17.05.2024, each with or without 12:30 or 12:30:59 */
    MICA_COLUMN_TEXT,     /* words, most of them different: more than 20 and half of the rows, or than 1000 */
    MICA_COLUMN_EMPTY,    /* no row has a value */
} mica_column_kind;

/* What a column is used for. Bits: a forecast reads the past of the column that it predicts, INPUT | TARGET. */
typedef enum mica_column_role {
    MICA_ROLE_NONE = 0,
    MICA_ROLE_INPUT = 1,
    MICA_ROLE_TARGET = 2,
} mica_column_role;

#define MICA_TABLE_MOST_VALUES  1000 /* different values of a column that are remembered */
#define MICA_TABLE_MOST_COLUMNS 16384
#define MICA_TABLE_LONGEST_LINE ((size_t)1 << 20) /* bytes */
#define MICA_TABLE_SHOWN        32 /* bytes of a value that is kept for a message, its end included */

/* A column of the file that was scanned, with statistics over all of its rows. */
typedef struct mica_column {
    const char *name; /* from the header; "column 3" without one; "x (column 3)" for a second x */
    mica_column_kind kind;
    int role;         /* mica_column_role */
    uint64_t missing; /* rows without a value: empty, (#)N/A, NA, NaN, null, None, "?" or "-", in any case */
    uint64_t different; /* values; MICA_TABLE_MOST_VALUES + 1: more than that */
    bool whole;         /* all numbers are whole */
    bool counts_rows;   /* a row number, one more in each row: no input unless given that role */
    bool times;         /* some dates have a time of day */

    /* Of numbers, and of dates in seconds since 1970. deviation is the standard deviation (divided by N). The median is
     * exact for up to 1024 values (128 in tables of more than 1024 columns), else that of so many drawn at random. */
    double least, most, mean, deviation, median;

    /* The different values [value_count] with the number of rows of each; numbers in their order, words in that of
     * their bytes. Categories, and numbers if there are no more than MICA_TABLE_MOST_VALUES. */
    const char *const *values;
    const uint64_t *counts;
    int value_count;

    /* The elements of a row's inputs and targets that are made of this column; 0 of them before mica_table_encode. */
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
    MICA_CSV_HEADER_AUTO, /* the first line is one if it has a word above numbers or dates, or words that never recur */
    MICA_CSV_HEADER_YES,
    MICA_CSV_HEADER_NO,
} mica_csv_header;

typedef struct mica_scan_opts {
    char delimiter; /* 0: the one of comma, semicolon, tab and | that cuts the first lines most evenly */
    mica_csv_header header;
} mica_scan_opts;

/* A table: its columns and how they are encoded, not its rows. */
typedef struct mica_table mica_table;

/* Reads the whole file, once, and finds out what its columns are. Fields may be in double quotes, in which a doubled
 * quote is one; blank lines are skipped; if the delimiter is not a comma, numbers may have a decimal comma (digits may
 * be in groups anywhere: 1.234,50 or 1,234.50). All rows must have as many fields as the first. Every column becomes
 * an input, save those of text, those without values and row numbers.
 *
 * Memory comes from the context's allocator; how much depends on the columns, and by 24 bytes per block on the length
 * of the file, but not on its rows. On failure *out is NULL, and the message gives line and column. To be destroyed
 * with the same context. opts may be NULL. */
MICA_API mica_status mica_table_scan(mica_context *ctx, mica_table **out, const char *path,
                                     const mica_scan_opts *opts);
/* The same from memory; `name` is for messages. */
MICA_API mica_status mica_table_scan_memory(mica_context *ctx, mica_table **out, const char *bytes,
                                            size_t count, const char *name, const mica_scan_opts *opts);
MICA_API void mica_table_destroy(mica_context *ctx, mica_table *table); /* NULL is allowed */

MICA_API int mica_table_columns(const mica_table *table);
/* Number `column`, from 0 on, which must exist. It is the table's: read it, and change it by the functions below. */
MICA_API const mica_column *mica_table_column(const mica_table *table, int column);
MICA_API int mica_table_find(const mica_table *table, const char *name); /* -1: there is none */
MICA_API mica_index mica_table_rows(const mica_table *table);            /* of the file that was scanned */
MICA_API char mica_table_delimiter(const mica_table *table);
MICA_API bool mica_table_has_header(const mica_table *table);

/* ---- What becomes of them ---- */

/* Makes categories of a column of numbers (postal codes, classes), if it has no more than MICA_TABLE_MOST_VALUES
 * different ones; or numbers of it again. No other kind can be changed. */
MICA_API mica_status mica_table_set_kind(mica_context *ctx, mica_table *table, int column,
                                         mica_column_kind kind);
/* role: mica_column_role, or MICA_ROLE_INPUT | MICA_ROLE_TARGET. Columns of text and those without values can have
 * none; dates cannot be targets. Columns that are to be predicted get MICA_ROLE_TARGET, and are inputs no longer. After
 * either of these calls the table must be encoded again. */
MICA_API mica_status mica_table_set_role(mica_context *ctx, mica_table *table, int column, int role);

/* What becomes of a missing value of an input. A row that lacks a target is always left out. */
typedef enum mica_missing {
    MICA_MISSING_MEAN,   /* the column's mean stands for it; of a category, none of its values */
    MICA_MISSING_MEDIAN, /* the same with its median */
    MICA_MISSING_DROP,   /* the row is left out */
    MICA_MISSING_REFUSE, /* an error that gives line and column */
} mica_missing;

typedef struct mica_table_encode_opts {
    mica_missing missing;
    bool raw_targets; /* targets that are numbers stay as they are, instead of mean 0 and deviation 1 */
} mica_table_encode_opts;

/* Decides which elements a row has, by the kinds and roles of the columns, in their order:
 *
 *   input     number     1 element, standardized: (value - mean) / deviation
 *             category   1 for each value, 0 or 1, and 1 for values that the scanned file did not have
 *             date       1 like a number, and the sine and cosine of its place in the year; with times, in the day, too
 *             any        1 more, 1 where the value is missing, if the scanned file has missing values in this column
 *                        (not with MICA_MISSING_DROP and _REFUSE)
 *   target    number     1 element, standardized unless raw_targets
 *             category   1, the index of the value
 *
 * Fails if no column is an input. opts may be NULL. */
MICA_API mica_status mica_table_encode(mica_context *ctx, mica_table *table,
                                       const mica_table_encode_opts *opts);

MICA_API mica_index mica_table_inputs(const mica_table *table);  /* of a row, in elements; 0: not encoded */
MICA_API mica_index mica_table_targets(const mica_table *table); /* the same of its targets */

/* What brings a target element y, or a net's answer, back to its column's own unit: y * deviation + mean. For
 * categories and raw_targets that is y itself. */
MICA_API void mica_table_target_unit(float *mean, float *deviation, const mica_table *table,
                                     mica_index element);

/* The table as JSON: names, kinds, roles, values and statistics of its columns, and how they are encoded. *bytes is the
 * room in `text` before the call and the bytes needed after it, the terminating zero included. Too little room is an
 * error that writes nothing; a NULL text with 0 bytes asks for the size alone. */
MICA_API mica_status mica_table_to_text(mica_context *ctx, char *text, size_t *bytes,
                                        const mica_table *table);
/* The table of such a text, encoded if that one was. The text is checked like a hostile file: what is malformed or
 * contradicts itself is an error, and *out is NULL. */
MICA_API mica_status mica_table_from_text(mica_context *ctx, mica_table **out, const char *text);

/* ---- Rows ---- */

/* What reading a file came across. */
typedef struct mica_table_found {
    mica_index rows;           /* read, without those left out */
    uint64_t missing;          /* values of inputs that were filled in */
    uint64_t dropped;          /* rows left out because of missing values */
    uint64_t unseen;           /* values of categories that the scanned file did not have */
    int extra_columns;         /* of the file, which the table does not know */
    bool by_position;          /* the file has no header: its columns were taken in the table's order */
    const char *unseen_column; /* the table's first column with such a value; NULL: none */
    char unseen_value[MICA_TABLE_SHOWN]; /* and the value, cut */
} mica_table_found;

typedef struct mica_table_read_opts {
    bool no_targets; /* rows to be predicted: columns that are only targets may be absent, and are not read */
    char delimiter;  /* 0: detected, as by mica_table_scan */
    mica_csv_header header;
    mica_table_found *found; /* filled unless NULL */
} mica_table_read_opts;

/* Reads all rows of a file, the one that was scanned or any other. Its columns are found by their names, in any order,
 * and those that the table does not know are skipped. If its first line has none of the names, its columns must be
 * those of the table in the same order (with no_targets: those that are not targets alone are enough). An error, with
 * its line, is: a column that is needed and not there, a word where the table has numbers, and a target's category that
 * is new; a new category of an input is only counted.
 *
 * The set owns its memory: mica_dataset_destroy. Rows are in a short form, inputs [N, cells] f32, which only
 * mica_table_transform and mica_table_expand make sense of. Targets are [N, mica_table_targets()] f32; if the only
 * target is a category, its values are the set's classes. opts may be NULL. */
MICA_API mica_status mica_table_load(mica_context *ctx, mica_dataset *out, const mica_table *table,
                                     const char *path, const mica_table_read_opts *opts);
/* The same from memory; `name` is for messages. */
MICA_API mica_status mica_table_load_memory(mica_context *ctx, mica_dataset *out, const mica_table *table,
                                            const char *bytes, size_t count, const char *name,
                                            const mica_table_read_opts *opts);

/* Turns rows in short form into inputs, for mica_batches_opts. The table must outlive the batches, and not change. */
MICA_API mica_transform mica_table_transform(const mica_table *table);

/* The rows of a set that mica_table_load made, in full: inputs [N, mica_table_inputs()] f32, which `out` owns. Its
 * targets and classes are those of `set`, which must outlive it. */
MICA_API mica_status mica_table_expand(mica_context *ctx, mica_dataset *out, const mica_table *table,
                                       const mica_dataset *set);

/* Windows over rows that follow each other in time, for forecasts: sample i has the inputs of rows i to i + window - 1,
 * [window, elements], and as target those of the `horizon` rows after them, [horizon, elements]. The set has its rows
 * in full (mica_table_expand). `out` is a view: nothing is copied, and the set must outlive it. A split with
 * .in_order and .gap = window + horizon - 1 shows no row to two parts. */
MICA_API mica_status mica_dataset_windows(mica_context *ctx, mica_dataset *out, const mica_dataset *set,
                                          mica_index window, mica_index horizon);

/* ---- Files larger than memory ---- */

/* Goes through a file once to note where its blocks of rows begin, which a stream needs: mica_table_scan has done so
 * for its own file; this is for others, and for tables from text. Columns and statistics stay as they are. */
MICA_API mica_status mica_table_index(mica_context *ctx, mica_table *table, const char *path,
                                      const mica_table_read_opts *opts);

typedef struct mica_table_stream_opts {
    mica_index batch; /* 0: 32 */
    uint64_t seed;
    bool sequential; /* in the order of the file instead of shuffled */
    mica_data_split split;
    size_t bytes; /* of memory for rows, about: the more, the better the shuffle; 0: 32 MiB */
} mica_table_stream_opts;

/* Batches from a file of which a part is in memory at a time: blocks of rows are read in an order drawn for each epoch,
 * and rows are shuffled among some blocks at a time. Where the library has threads, one of the stream's own reads
 * ahead. `path` is the file that was scanned, or indexed last; it must not be gzip, nor change meanwhile. The table
 * must be encoded, have a target, and outlive the stream. All memory is taken here, from the context's allocator. */
typedef struct mica_table_stream mica_table_stream;

MICA_API mica_status mica_table_stream_create(mica_context *ctx, mica_table_stream **out,
                                              const mica_table *table, const char *path,
                                              const mica_table_stream_opts *opts);
MICA_API void mica_table_stream_destroy(mica_context *ctx, mica_table_stream *stream);
MICA_API mica_index mica_table_stream_samples(const mica_table_stream *stream); /* in its part */
MICA_API mica_index mica_table_stream_batches(const mica_table_stream *stream); /* per epoch */

/* As mica_batches_begin, _rows, _cursor and _seek, and mica_source_of_table (mica/fit.h) is a source for mica_fit.
 * Inputs are f32. They allocate nothing; a file that cannot be read any more is an error of _begin. */
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
