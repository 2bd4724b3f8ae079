/* Records of a CSV file. */
#include "data/table/csv.h"

#include <string.h>

#include "io/quote.h"

#define SMALLEST_BUFFER ((size_t)4096)
#define FIRST_FIELDS    64

mica_status mica_csv_bad(const mica_csv *csv, size_t field, const char *what)
{
    return mica_fail(csv->ctx, MICA_ERR_FORMAT, "%s: line %zu, column %zu: %s",
                     MICA_QUOTE(csv->stream->file.path), csv->line, field + 1, what);
}

/* ---- The buffer ---- */

/* Moves what is unread to the front and reads on behind it. */
static mica_status refill(mica_csv *c)
{
    size_t got = 0, left = c->filled - c->at, room = c->size - left;
    uint64_t wanted = c->end - c->stream->position;
    memmove(c->buffer, c->buffer + c->at, left);
    c->at = 0;
    c->filled = left;
    MICA_TRY(
        mica_stream_read(c->ctx, c->buffer + left, &got, c->stream, wanted < room ? (size_t)wanted : room));
    c->filled += got;
    c->ended = got < room;
    return MICA_OK;
}

mica_status mica_csv_seek(mica_csv *c, uint64_t offset, uint64_t end, size_t line)
{
    c->stream->position = offset;
    c->end = end;
    c->at = c->filled = 0;
    c->next_offset = offset;
    c->next_line = line;
    return refill(c);
}

/* ---- Fields ---- */

static mica_status more_fields(mica_csv *c)
{
    size_t room = c->room > 0 ? 2 * c->room : FIRST_FIELDS, size = sizeof c->fields[0];
    if (c->count >= MICA_TABLE_MOST_COLUMNS)
        return mica_fail(c->ctx, MICA_ERR_FORMAT, "%s: line %zu: more than %d columns",
                         MICA_QUOTE(c->stream->file.path), c->line, MICA_TABLE_MOST_COLUMNS);
    mica_csv_field *fields = mica_allocate(c->ctx, room * size);
    if (fields == NULL)
        return c->ctx->status;
    if (c->count > 0)
        memcpy(fields, c->fields, c->count * size);
    mica_release(c->ctx, c->fields, c->room * size);
    c->fields = fields;
    c->room = room;
    return MICA_OK;
}

static bool is_line_end(char byte) { return byte == '\n' || byte == '\r'; }

/* Where a record goes on in the buffer. */
typedef struct cursor {
    char *at, *end;
    bool cut; /* the buffer ends within the record */
} cursor;

/* After the opening quote: up to the closing one. */
static mica_status skip_quoted(const mica_csv *c, cursor *in, mica_csv_field *f)
{
    for (;;) {
        char *quote = memchr(in->at, '"', (size_t)(in->end - in->at));
        if (quote == NULL && c->ended)
            return mica_csv_bad(c, c->count, "unterminated quote");
        if (quote == NULL || (quote + 1 == in->end && !c->ended)) {
            in->cut = true;
            return MICA_OK;
        }
        in->at = quote + 1;
        if (in->at == in->end || *in->at != '"') {
            f->length = (size_t)(quote - f->text);
            return MICA_OK;
        }
        f->doubled = true;
        in->at++;
    }
}

/* One field, to the delimiter or the end of the line. */
static mica_status find_field(const mica_csv *c, cursor *in, mica_csv_field *f)
{
    char delimiter = c->delimiter;
    *f = (mica_csv_field){.text = in->at, .quoted = in->at < in->end && *in->at == '"'};
    if (f->quoted) {
        f->text = ++in->at;
        MICA_TRY(skip_quoted(c, in, f));
        if (!in->cut && in->at < in->end && *in->at != delimiter && !is_line_end(*in->at))
            return mica_csv_bad(c, c->count, "text after the closing quote");
        return MICA_OK;
    }
    char *at = in->at;
    while (at < in->end && *at != delimiter && *at != '\n' && *at != '\r')
        at++;
    in->at = at;
    in->cut = at == in->end && !c->ended;
    while (f->text < at && (*f->text == ' ' || *f->text == '\t'))
        f->text++;
    while (at > f->text && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    f->length = (size_t)(at - f->text);
    return MICA_OK;
}

/* The fields of the record that starts at the front of the buffer, and where it ends. */
static mica_status find_fields(mica_csv *c, cursor *in)
{
    for (c->count = 0;; in->at++) {
        if (c->count == c->room)
            MICA_TRY(more_fields(c));
        MICA_TRY(find_field(c, in, &c->fields[c->count]));
        if (in->cut)
            return MICA_OK;
        c->count++;
        if (in->at == in->end || *in->at != c->delimiter || is_line_end(*in->at))
            break;
    }
    if (in->at == in->end)
        return MICA_OK;
    bool windows = *in->at == '\r' && in->at + 1 < in->end && in->at[1] == '\n';
    in->cut = *in->at == '\r' && in->at + 1 == in->end && !c->ended;
    in->at += windows ? 2 : 1;
    return MICA_OK;
}

static void join_doubled_quotes(mica_csv_field *f)
{
    size_t to = 0;
    for (size_t from = 0; from < f->length; from++) {
        f->text[to++] = f->text[from];
        from += f->text[from] == '"';
    }
    f->length = to;
}

static size_t count_lines(const char *from, const char *to)
{
    size_t lines = 0;
    for (; from < to; from++)
        lines += *from == '\n' || (*from == '\r' && (from + 1 == to || from[1] != '\n'));
    return lines;
}

/* Only quoted fields go over several lines. */
static size_t lines_of_record(const mica_csv *c, const char *from, const char *to)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->fields[i].quoted)
            return count_lines(from, to);
    return to > from && is_line_end(to[-1]);
}

/* A record, blank or not; count is 0 at the end. */
static mica_status next_record(mica_csv *c)
{
    c->line = c->next_line;
    c->offset = c->next_offset;
    for (;;) {
        cursor in = {c->buffer + c->at, c->buffer + c->filled, c->at == c->filled};
        c->count = 0;
        if (in.cut && c->ended)
            return MICA_OK;
        if (!in.cut)
            MICA_TRY(find_fields(c, &in));
        if (!in.cut) {
            const char *start = c->buffer + c->at;
            c->next_line += lines_of_record(c, start, in.at);
            c->next_offset += (uint64_t)(in.at - start);
            c->at = (size_t)(in.at - c->buffer);
            break;
        }
        if (c->at == 0 && c->filled == c->size)
            return mica_fail(c->ctx, MICA_ERR_FORMAT, "%s: line %zu: longer than %zu bytes%s",
                             MICA_QUOTE(c->stream->file.path), c->line, c->size,
                             memchr(c->buffer, '"', c->size) != NULL ? ", perhaps an unterminated quote"
                                                                     : "");
        MICA_TRY(refill(c));
    }
    for (size_t i = 0; i < c->count; i++)
        if (c->fields[i].doubled)
            join_doubled_quotes(&c->fields[i]);
    return MICA_OK;
}

mica_status mica_csv_next(mica_csv *c)
{
    do {
        MICA_TRY(next_record(c));
    } while (c->count == 1 && c->fields[0].length == 0 && !c->fields[0].quoted);
    return MICA_OK;
}

/* ---- The delimiter ---- */

enum { LINES = 20 }; /* to find the delimiter from */

/* How often a byte stands in each of the first lines, outside of quotes: the same number in how many of LINES. */
static size_t even_lines(const mica_csv *c, char delimiter, size_t *each)
{
    const char *at = c->buffer + c->at, *end = c->buffer + c->filled;
    size_t lines = 0, even = 0, here = 0;
    bool quoted = false, blank = true;
    *each = 0;
    for (; at <= end && lines < LINES; at++) {
        bool ends = at == end || (!quoted && is_line_end(*at));
        if (at < end && *at == '"')
            quoted = !quoted;
        if (at < end && !quoted && *at == delimiter)
            here++;
        if (!ends) {
            blank = false;
            continue;
        }
        if (at == end && (!c->ended || blank))
            break;
        if (!blank) {
            *each = lines++ == 0 ? here : *each;
            even += here == *each && here > 0;
        }
        here = 0;
        blank = true;
    }
    return lines > 0 ? even * LINES / lines : 0;
}

/* The candidate that cuts most lines alike, and half of them at least: a header of one column may hold any byte. Commas
 * come last: they also stand within numbers and sentences. */
static char find_delimiter(const mica_csv *c)
{
    static const char candidates[] = {'\t', ';', '|', ','};
    char best = ',';
    size_t best_even = LINES / 2 - 1, best_each = 0;
    for (size_t i = 0; i < sizeof candidates; i++) {
        size_t each, even = even_lines(c, candidates[i], &each);
        if (even > best_even || (even == best_even && best_each > 0 && each > 2 * best_each)) {
            best = candidates[i];
            best_even = even;
            best_each = each;
        }
    }
    return best;
}

/* ---- Opening ---- */

static mica_status start(mica_csv *c, char delimiter)
{
    MICA_TRY(refill(c));
    const unsigned char *b = (const unsigned char *)c->buffer;
    if (c->filled >= 2 && ((b[0] == 0xff && b[1] == 0xfe) || (b[0] == 0xfe && b[1] == 0xff)))
        return mica_fail(c->ctx, MICA_ERR_FORMAT, "%s: this is UTF-16: save it as UTF-8",
                         MICA_QUOTE(c->stream->file.path));
    if (c->filled >= 3 && memcmp(b, "\xef\xbb\xbf", 3) == 0)
        c->at = 3; /* some programs begin UTF-8 with a mark */
    c->next_offset = c->at;
    c->next_line = 1;
    c->delimiter = delimiter != 0 ? delimiter : find_delimiter(c);
    return MICA_OK;
}

mica_status mica_csv_open(mica_context *ctx, mica_csv *out, mica_stream *stream, char delimiter)
{
    *out = (mica_csv){.ctx = ctx, .stream = stream, .size = MICA_TABLE_LONGEST_LINE, .end = UINT64_MAX};
    if (delimiter == '"' || delimiter == '\n' || delimiter == '\r')
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "a quote or line end cannot be the delimiter");
    if (stream->most < out->size)
        out->size = (size_t)stream->most + 1;
    if (out->size < SMALLEST_BUFFER)
        out->size = SMALLEST_BUFFER;
    out->buffer = mica_allocate(ctx, out->size);
    if (out->buffer == NULL)
        return ctx->status;
    mica_status status = start(out, delimiter);
    if (status != MICA_OK)
        mica_csv_close(out);
    return status;
}

void mica_csv_close(mica_csv *csv)
{
    mica_release(csv->ctx, csv->buffer, csv->size);
    mica_release(csv->ctx, csv->fields, csv->room * sizeof csv->fields[0]);
    csv->buffer = NULL;
    csv->fields = NULL;
    csv->room = 0;
}
