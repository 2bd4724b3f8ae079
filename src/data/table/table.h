/* A table from inside. */
#ifndef MICA_SRC_DATA_TABLE_TABLE_H
#define MICA_SRC_DATA_TABLE_TABLE_H

#include <mica/table.h>

#include "base/context.h"
#include "data/table/csv.h"

/* ---- Fields: field.c ---- */

typedef enum mica_field_kind {
    MICA_FIELD_MISSING,
    MICA_FIELD_NUMBER,
    MICA_FIELD_DATE,
    MICA_FIELD_WORD
} mica_field_kind;

typedef struct mica_field {
    mica_field_kind kind;
    double value;  /* of a number, or of a date in seconds since 1970 */
    bool has_time; /* a date */
} mica_field;

/* What a field says. `delimiter` decides whether a number may have a decimal comma. */
mica_field mica_field_read(const char *text, size_t length, char delimiter);

/* The beginning of a value for a message, cut between characters. */
void mica_field_show(char shown[MICA_TABLE_SHOWN], const char *text, size_t length);

/* ---- Different values, gathered: values.c ---- */

typedef struct mica_value_entry {
    uint32_t start, length; /* in text */
    uint64_t hash, count;
} mica_value_entry;

typedef struct mica_value_list {
    mica_value_entry *entries;
    uint32_t *slots; /* a hash table: number of an entry + 1; 0: empty */
    char *text;
    uint32_t count, entry_room, slot_count;
    uint32_t used, text_room;
    bool more; /* than are remembered; then there is nothing else */
} mica_value_list;

mica_status mica_value_list_add(mica_context *ctx, mica_value_list *list, const char *text, size_t length);
bool mica_value_list_has(const mica_value_list *list, const char *text, size_t length);
void mica_value_list_free(mica_context *ctx, mica_value_list *list);

/* ---- Names of columns: names.c ---- */

/* By their bytes: negative, 0 or positive. */
int mica_compare_words(const char *a, size_t n, const char *b, size_t m);

typedef struct mica_name {
    const char *text;
    size_t length;
    int column;
} mica_name;

/* Sorts by text, then by column; returns a name that is there twice, or NULL. */
const mica_name *mica_names_sort(mica_name *names, size_t count);

/* The names of a record's fields. */
typedef struct mica_names {
    mica_name *sorted; /* [count] */
    size_t count;
    const mica_name *twice; /* a name that two columns have; NULL: there is none */
    size_t bytes;
} mica_names;

/* As the fields say, with a name of its own for each: "column 3" for an empty field, or without a header, and "size
 * (column 3)" for a second "size". */
mica_status mica_names_make(mica_context *ctx, mica_names *out, const mica_csv_field *fields, size_t count,
                            bool header);
void mica_names_free(mica_context *ctx, mica_names *names); /* safe twice */
/* The column of that name; -1: there is none. */
int mica_names_find(const mica_names *names, const char *text);

/* ---- Tables ---- */

/* A column, and what the caller need not see of it. */
typedef struct mica_own_column {
    mica_column column;
    bool numeric;    /* its values are numbers, in their order; else words in that of their bytes */
    double *numbers; /* [value_count], with numeric */
    void *block;     /* [ numbers | counts | values | their text ] */
    size_t bytes;
    char *name;
    size_t name_bytes;
    mica_index first_cell, cells; /* elements of the short form */
    bool indicator;               /* the last of its inputs says whether the value is missing */
    float fill;                   /* of a missing number, as encoded */
} mica_own_column;

/* A stretch of whole lines of the file. */
typedef struct mica_table_chunk {
    uint64_t offset; /* of its first byte */
    uint64_t line;   /* and its line */
    uint32_t rows;
} mica_table_chunk;

struct mica_table {
    mica_own_column *columns; /* [count] */
    int count;
    mica_index rows;
    char delimiter;
    bool has_header;

    /* By mica_table_encode. */
    bool encoded;
    mica_table_encode_opts encode;
    mica_index cells, inputs, targets;

    /* Of the file that was scanned or indexed; none if it was gzip. */
    mica_table_chunk *chunks;
    size_t chunk_count, chunk_room;
    uint64_t file_bytes;
    bool indexed; /* they are not of the file that was scanned: what its columns lack is not known */
};

/* Notes where the current record begins, every so many: for each row in order. Not for gzip. */
mica_status mica_table_add_to_chunk(mica_table *table, const mica_csv *csv);

/* With columns that are all zero. */
mica_status mica_table_create(mica_context *ctx, mica_table **out, int columns);
mica_status mica_table_name(mica_context *ctx, mica_own_column *c, const char *name, size_t length);
/* Gives a column its values: words [count], sorted here; with `numeric`, their numbers decide, and those of the same
 * number become one. */
mica_status mica_table_give_values(mica_context *ctx, mica_own_column *c, const mica_value_list *list,
                                   bool numeric);

/* The index of a value among a column's; -1: there is none. */
int mica_table_value_find(const mica_own_column *c, const char *text, size_t length, char delimiter);

/* ---- Rows: rows.c ---- */

/* How the columns of one file stand to those of the table. */
typedef struct mica_table_reader {
    const mica_table *table;
    mica_csv *csv;
    const mica_table_read_opts *opts;
    int *column_of; /* [fields of a record] the table's column; -1: none is wanted */
    size_t fields;
    bool first_is_row; /* the record that is there now belongs to the rows */
    mica_table_found found;
} mica_table_reader;

/* Reads the header, if there is one, and matches the columns. */
mica_status mica_table_reader_open(mica_context *ctx, mica_table_reader *out, const mica_table *table,
                                   mica_csv *csv, const mica_table_read_opts *opts);
void mica_table_reader_close(mica_context *ctx, mica_table_reader *reader);

/* The current record as cells and targets; *kept: not left out for missing values. Allocates nothing. */
mica_status mica_table_read_record(mica_table_reader *reader, float *cells, float *targets, bool *kept);

/* Cells to inputs: a mica_transform's run. */
void mica_table_expand_row(const void *table, float *out, const float *cells, mica_random random);

#endif
