/* CSV, a record at a time, out of a buffer: fields are slices of it. */
#ifndef MICA_SRC_DATA_TABLE_CSV_H
#define MICA_SRC_DATA_TABLE_CSV_H

#include <mica/table.h>

#include "io/stream.h"

typedef struct mica_csv_field {
    char *text; /* blanks around what is not quoted are left out */
    size_t length;
    bool quoted, doubled; /* doubled: has two quotes that stand for one */
} mica_csv_field;

/* The current record, and where it is from. */
typedef struct mica_csv {
    mica_context *ctx;
    mica_stream *stream;
    char delimiter;

    mica_csv_field *fields;
    size_t count;    /* of fields */
    uint64_t offset; /* of the record's first byte */
    size_t line;     /* and its line, from 1 on */

    /* Private. */
    size_t room; /* of fields */
    size_t next_line;
    uint64_t next_offset; /* of buffer[at] */
    uint64_t end;         /* of what is read of the stream */
    size_t at, filled, size;
    char *buffer;
    bool ended; /* nothing is left beyond the buffer */
} mica_csv;

/* Takes memory for the buffer, and looks at the first lines: delimiter 0 is found out. The stream is at its start. */
mica_status mica_csv_open(mica_context *ctx, mica_csv *out, mica_stream *stream, char delimiter);
void mica_csv_close(mica_csv *csv); /* safe twice; the stream stays open */

/* Goes to a record that starts at `offset` of a stream that is no gzip, on line `line`; the file seems to end with byte
 * `end`. Allocates nothing. */
mica_status mica_csv_seek(mica_csv *csv, uint64_t offset, uint64_t end, size_t line);

/* The next record that is not a blank line; count is 0 at the end of the file. Fields are valid until the next call. */
mica_status mica_csv_next(mica_csv *csv);

/* "FILE: line L, column C: WHAT", column being the number of a field from 0 on. */
mica_status mica_csv_bad(const mica_csv *csv, size_t field, const char *what);

#endif
