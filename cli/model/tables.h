/* CSV files as data: what is asked of their columns, what is learned, and what a net must know of them later. */
#ifndef MICA_CLI_MODEL_TABLES_H
#define MICA_CLI_MODEL_TABLES_H

#include <stdio.h>

#include <mica/netfile.h>

#include "cli/model/data.h"
#include "cli/model/units.h"

struct meaning;

/* ---- Options of verbs that read tables ---- */

extern const char *const table_task_names[];    /* --task, in the order of table_task */
extern const char *const table_header_names[];  /* --header */
extern const char *const table_missing_names[]; /* --missing, in the order of mica_missing */

/* How a table is read: options of every verb that reads one, whose settings have a field `table`. */
#define TABLE_READING_OPTIONS(settings)                                                                    \
    {.name = "--delimiter",                                                                                \
     OPTION_TEXT,                                                                                          \
     offsetof(settings, table.delimiter),                                                                  \
     "CHAR",                                                                                               \
     "table: what is between columns (detected)"},                                                         \
    {                                                                                                      \
        .name = "--header", OPTION_CHOICE, offsetof(settings, table.header), "YES-NO",                     \
        "table: whether the first line has the names of columns (detected)", .choices = table_header_names \
    }

/* The delimiter that --delimiter names: a character, "tab", "comma" ...; 0, with a message: it names none. */
char delimiter_named(const verb *v, const char *name);

/* ---- Loading ---- */

/* Scans the file, or takes it as a checkpoint's table has it; says what it found and chose. */
int table_load(data *out, const verb *v, mica_context *ctx, const char *path, const data_opts *opts);
void table_release(mica_context *ctx, data *d);

/* A file to be predicted, by a known table: inputs in full. From stdin: `bytes` [count]. With `tell`, what is missing
 * or new in it goes to stderr. */
int table_load_inputs(mica_dataset *out, const verb *v, mica_context *ctx, const char *path,
                      const char *bytes, size_t count, const struct meaning *m,
                      const table_settings *settings, bool tell);

/* A file, or what was read of one: `bytes` [count], with a name for messages. */
typedef struct table_source {
    const char *path, *bytes;
    size_t count;
    char delimiter; /* 0: detected */
} table_source;

/* The values of a column, of every one of `rows`: ids [rows], each and all to be given to free(). */
int table_load_ids(char ***out, const verb *v, mica_context *ctx, const table_source *from,
                   const char *column, mica_index rows);

/* ---- Meaning ---- */

/* Fills in the units, columns and forecast of a net that was trained on this table; to be given back. */
void table_meaning(struct meaning *m, const mica_table *table, mica_index window, mica_index horizon,
                   mica_index season);
void table_meaning_free(struct meaning *m);

/* The table as text, to be freed; NULL: it cannot be one, as the context says. */
char *take_table_text(mica_context *ctx, const mica_table *table);

/* ---- Telling: table_tell.c ---- */

/* "price: numbers, 412 different, 10 to 900" */
void put_column(FILE *to, const mica_column *c, mica_index rows);
/* What a table has, and what becomes of it, to stderr. */
void table_tell(const data *d, const verb *v, mica_missing missing);
/* What a later file lacks, or has that the table has not. */
void table_tell_found(const char *path, const verb *v, const mica_table *t, const mica_table_found *found);
/* A series has its oldest row first, or is refused, and is taken to be even in time: with `tell`, says where it is not
 * so. */
int table_check_steps(const data *d, const verb *v, bool tell);

/* The period, of at most `most` rows, after which a series is most like itself, over its first `rows`; 0: none. */
mica_index season_of(const float *series, mica_index stride, mica_index rows, mica_index most);

#endif
