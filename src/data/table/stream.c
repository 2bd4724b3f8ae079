/* Batches from a file larger than memory.
 *
 * The scan has cut the file into chunks of whole lines. An epoch reads them in an order of its own, some at a time: a
 * group, whose rows are shuffled. One group is handed out while the next is read by a thread of its own:
 *
 *     file     | chunk | chunk | chunk | chunk | chunk | chunk | ...
 *     order      4 1 0 | 5 2 3 | ...                 drawn for the epoch, cut into groups
 *     block    [ tail of the group before | rows of this group ]
 *
 * A batch may begin in one group and end in the next: what is left of a group moves to the front of the next block. */
#include <string.h>

#include <mica/ops.h>

#include "data/split.h"
#include "data/streams.h"
#include "data/table/table.h"
#include "io/quote.h"
#include "tensor/tensor.h"

#if !defined(MICA_NO_THREADS)
#include <pthread.h>
#endif

#define DEFAULT_BYTES ((size_t)32 << 20)
#define FEWEST_CHUNKS 4 /* of a group: fewer would hardly be shuffled */

typedef struct block {
    float *cells, *targets;
    int32_t *order;     /* [batch + rows of a group]: places in the block */
    mica_index rows;    /* of the group, from place `batch` on */
    mica_cursor group;  /* epoch, and the group's number in it */
    mica_status status; /* of reading it */
} block;

struct mica_table_stream {
    const mica_table *table;
    mica_table_stream_opts opts;
    mica_index samples;
    mica_index group_rows;       /* room for rows of a group */
    size_t group_chunks, groups; /* chunks to a group, groups to an epoch */

    unsigned char *member; /* a bit for each row of the file: whether it is in the part */
    uint64_t *first_row;   /* [chunks]: number of a chunk's first row */
    uint32_t *kept;        /* [chunks]: rows of it that are in the part */
    int32_t *order;        /* [chunks] of epoch order_epoch */
    uint64_t order_epoch;

    block blocks[2];
    int current;              /* the block that is handed out; the other is being read */
    mica_index at, end;       /* places in its order: the next sample, and the last */
    uint64_t position, epoch; /* samples handed out in this epoch */
    mica_index first, rows;   /* of the current batch: places in the order */

    /* The reader's own: touched by the reading thread alone while it is busy. */
    mica_context *reading;
    mica_stream file;
    mica_csv csv;
    mica_table_reader reader;

#if !defined(MICA_NO_THREADS)
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool has_thread;
#endif
    bool busy, ends; /* the other block is being read; the thread is to end */

    size_t bytes; /* of the block that this struct begins */
};

/* Passes on what the reader's context says. */
static mica_status say(mica_context *ctx, const mica_table_stream *s, mica_status status)
{
    memcpy(ctx->error, s->reading->error, sizeof ctx->error);
    return ctx->status = status;
}

/* ---- Which rows ---- */

static bool is_member(const mica_table_stream *s, uint64_t row)
{
    return (s->member[row / 8] >> (row % 8) & 1) != 0;
}

static void set_member(mica_table_stream *s, uint64_t row, bool member)
{
    unsigned char bit = (unsigned char)(1u << (row % 8));
    s->member[row / 8] = (unsigned char)(member ? s->member[row / 8] | bit : s->member[row / 8] & ~bit);
}

static mica_status go_to_chunk(mica_table_stream *s, size_t chunk)
{
    const mica_table *t = s->table;
    const mica_table_chunk *c = &t->chunks[chunk];
    uint64_t end = chunk + 1 < t->chunk_count ? t->chunks[chunk + 1].offset : t->file_bytes;
    return mica_csv_seek(&s->csv, c->offset, end, (size_t)c->line);
}

static mica_status next_row(mica_table_stream *s)
{
    MICA_TRY(mica_csv_next(&s->csv));
    return s->csv.count > 0 ? MICA_OK
                            : mica_fail(s->reading, MICA_ERR_IO, "%s: the file changed while being read",
                                        MICA_QUOTE(s->file.file.path));
}

/* Whether rows may be left out for what they lack: then they must be found first. */
static bool may_drop(const mica_table *t)
{
    for (int i = 0; i < t->count; i++) {
        const mica_column *c = &t->columns[i].column;
        bool drops = (c->role & MICA_ROLE_TARGET) != 0 ||
                     ((c->role & MICA_ROLE_INPUT) != 0 && t->encode.missing == MICA_MISSING_DROP);
        if (drops && (c->missing > 0 || t->indexed))
            return true;
    }
    return false;
}

/* Marks the rows that have all that is needed; a block has room for one. */
static mica_status find_complete(mica_table_stream *s, mica_index *count)
{
    const mica_table *t = s->table;
    const block *b = &s->blocks[0];
    *count = 0;
    for (size_t c = 0; c < t->chunk_count; c++) {
        MICA_TRY(go_to_chunk(s, c));
        for (uint32_t i = 0; i < t->chunks[c].rows; i++) {
            bool kept;
            MICA_TRY(next_row(s));
            MICA_TRY(mica_table_read_record(&s->reader, b->cells, b->targets, &kept));
            set_member(s, s->first_row[c] + i, kept);
            *count += kept;
        }
    }
    return MICA_OK;
}

/* Deals the complete rows out; those of another part are no members any more. */
static mica_status choose_rows(mica_table_stream *s)
{
    const mica_table *t = s->table;
    mica_index count = t->rows;
    memset(s->member, 0xff, (size_t)(t->rows + 7) / 8);
    if (may_drop(t))
        MICA_TRY(find_complete(s, &count));
    MICA_TRY(mica_split_check(s->reading, "table_stream", &s->opts.split, count));
    mica_dealing dealing;
    mica_dealing_begin(&dealing, &s->opts.split, count);
    for (size_t c = 0; c < t->chunk_count; c++) {
        s->kept[c] = 0;
        for (uint32_t i = 0; i < t->chunks[c].rows; i++) {
            uint64_t row = s->first_row[c] + i;
            bool member = is_member(s, row) && mica_dealing_next(&dealing);
            set_member(s, row, member);
            s->kept[c] += member;
        }
        s->samples += (mica_index)s->kept[c];
    }
    return MICA_OK;
}

/* ---- Reading a group ---- */

static void set_order(mica_table_stream *s, uint64_t epoch)
{
    int32_t chunks = (int32_t)s->table->chunk_count;
    if (s->order_epoch == epoch)
        return;
    s->order_epoch = epoch;
    if (!s->opts.sequential) {
        mica_random r = mica_random_stream(s->opts.seed, MICA_STREAM_BLOCKS + epoch);
        mica_random_permutation_i32(&r, s->order, chunks);
        return;
    }
    for (int32_t i = 0; i < chunks; i++)
        s->order[i] = i;
}

static size_t chunks_end(const mica_table_stream *s, size_t group)
{
    size_t end = (group + 1) * s->group_chunks;
    return end < s->table->chunk_count ? end : s->table->chunk_count;
}

static mica_index samples_of_group(const mica_table_stream *s, size_t group)
{
    mica_index samples = 0;
    for (size_t i = group * s->group_chunks; i < chunks_end(s, group); i++)
        samples += (mica_index)s->kept[s->order[i]];
    return samples;
}

static mica_status read_chunk(mica_table_stream *s, block *b, size_t chunk)
{
    const mica_table *t = s->table;
    MICA_TRY(go_to_chunk(s, chunk));
    for (uint32_t i = 0; i < t->chunks[chunk].rows; i++) {
        bool kept;
        MICA_TRY(next_row(s));
        if (!is_member(s, s->first_row[chunk] + i))
            continue;
        mica_index place = s->opts.batch + b->rows;
        MICA_TRY(mica_table_read_record(&s->reader, b->cells + place * t->cells,
                                        b->targets + place * t->targets, &kept));
        if (!kept)
            return mica_fail(s->reading, MICA_ERR_IO, "%s: the file changed while being read",
                             MICA_QUOTE(s->file.file.path));
        b->rows++;
    }
    return MICA_OK;
}

static mica_status read_chunks(mica_table_stream *s, block *b)
{
    set_order(s, b->group.epoch);
    b->rows = 0;
    size_t group = (size_t)b->group.position;
    for (size_t i = group * s->group_chunks; i < chunks_end(s, group); i++)
        if (s->kept[s->order[i]] > 0)
            MICA_TRY(read_chunk(s, b, (size_t)s->order[i]));
    return MICA_OK;
}

static void read_group(mica_table_stream *s, block *b)
{
    b->status = read_chunks(s, b);
    int32_t *order = b->order + s->opts.batch;
    mica_random r = {s->opts.seed, MICA_STREAM_BLOCKS + b->group.epoch, (b->group.position + 1) << 32};
    if (!s->opts.sequential)
        mica_random_permutation_i32(&r, order, (int32_t)b->rows);
    for (mica_index i = 0; i < b->rows; i++)
        order[i] = (int32_t)(s->opts.batch + (s->opts.sequential ? i : order[i]));
}

/* ---- The reading thread ---- */

#if !defined(MICA_NO_THREADS)

static void *thread_main(void *user)
{
    mica_table_stream *s = user;
    pthread_mutex_lock(&s->mutex);
    for (;;) {
        while (!s->busy && !s->ends)
            pthread_cond_wait(&s->changed, &s->mutex);
        if (s->ends)
            break;
        block *b = &s->blocks[1 - s->current];
        pthread_mutex_unlock(&s->mutex);
        read_group(s, b);
        pthread_mutex_lock(&s->mutex);
        s->busy = false;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

static mica_status start_thread(mica_context *ctx, mica_table_stream *s)
{
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->has_thread = pthread_create(&s->thread, NULL, thread_main, s) == 0;
    if (s->has_thread)
        return MICA_OK;
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
    return mica_fail(ctx, MICA_ERR_MEMORY, "table_stream: cannot start a thread");
}

static void stop_thread(mica_table_stream *s)
{
    if (!s->has_thread)
        return;
    pthread_mutex_lock(&s->mutex);
    s->ends = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
}

/* Has the other block read. */
static void ask(mica_table_stream *s)
{
    pthread_mutex_lock(&s->mutex);
    s->busy = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
}

static void await(mica_table_stream *s)
{
    pthread_mutex_lock(&s->mutex);
    while (s->busy)
        pthread_cond_wait(&s->changed, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
}

#else

static mica_status start_thread(mica_context *ctx, mica_table_stream *s)
{
    return (void)ctx, (void)s, MICA_OK;
}
static void stop_thread(mica_table_stream *s) { (void)s; }
static void ask(mica_table_stream *s) { s->busy = true; }
static void await(mica_table_stream *s)
{
    if (s->busy)
        read_group(s, &s->blocks[1 - s->current]);
    s->busy = false;
}

#endif

/* ---- Blocks ---- */

static void ask_for(mica_table_stream *s, mica_cursor group)
{
    if (group.position == s->groups)
        group = (mica_cursor){group.epoch + 1, 0};
    s->blocks[1 - s->current].group = group;
    ask(s);
}

/* Goes on to the block that was asked for, with what is left of this one before it, and asks for the next. */
static mica_status next_block(mica_context *ctx, mica_table_stream *s)
{
    const mica_table *t = s->table;
    await(s);
    const block *old = &s->blocks[s->current];
    block *b = &s->blocks[1 - s->current];
    if (b->status != MICA_OK)
        return say(ctx, s, b->status);
    mica_index left = s->end - s->at, start = s->opts.batch - left;
    for (mica_index i = 0; i < left; i++) {
        mica_index from = old->order[s->at + i], to = start + i;
        memcpy(b->cells + to * t->cells, old->cells + from * t->cells, (size_t)t->cells * sizeof(float));
        memcpy(b->targets + to * t->targets, old->targets + from * t->targets,
               (size_t)t->targets * sizeof(float));
        b->order[to] = (int32_t)to;
    }
    s->current = 1 - s->current;
    s->at = start;
    s->end = s->opts.batch + b->rows;
    ask_for(s, (mica_cursor){b->group.epoch, b->group.position + 1});
    return MICA_OK;
}

mica_status mica_table_stream_seek(mica_context *ctx, mica_table_stream *s, mica_cursor cursor)
{
    if (s == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_stream_seek: stream is NULL");
    if (cursor.position > (uint64_t)s->samples)
        return mica_fail(ctx, MICA_ERR_INDEX, "table_stream_seek: position %llu of %td samples",
                         (unsigned long long)cursor.position, s->samples);
    await(s);
    set_order(s, cursor.epoch);
    uint64_t left = cursor.position;
    size_t group = 0;
    while (group + 1 < s->groups && left >= (uint64_t)samples_of_group(s, group))
        left -= (uint64_t)samples_of_group(s, group++);
    s->epoch = cursor.epoch;
    s->position = cursor.position;
    s->at = s->end = s->opts.batch;
    s->rows = 0;
    ask_for(s, (mica_cursor){cursor.epoch, group});
    MICA_TRY(next_block(ctx, s));
    s->at += (mica_index)left;
    return MICA_OK;
}

mica_cursor mica_table_stream_cursor(const mica_table_stream *s)
{
    return (mica_cursor){s->epoch, s->position};
}
mica_index mica_table_stream_samples(const mica_table_stream *s) { return s->samples; }

mica_index mica_table_stream_batches(const mica_table_stream *s)
{
    return (s->samples + s->opts.batch - 1) / s->opts.batch;
}

/* ---- Handing out ---- */

mica_status mica_table_stream_begin(mica_context *ctx, mica_index *count, mica_table_stream *s)
{
    if (count == NULL || s == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_stream_begin: %s is NULL",
                         count == NULL ? "count" : "stream");
    mica_index left = s->samples - (mica_index)s->position,
               rows = left < s->opts.batch ? left : s->opts.batch;
    *count = s->rows = 0;
    if (rows == 0) {
        s->epoch++;
        s->position = 0;
        return MICA_OK;
    }
    while (s->end - s->at < rows)
        MICA_TRY(next_block(ctx, s));
    s->first = s->at;
    s->at += rows;
    s->position += (uint64_t)rows;
    *count = s->rows = rows;
    return MICA_OK;
}

/* The first `rows` rows of a contiguous tensor, as a table of them. */
static mica_status rows_of(mica_context *ctx, mica_tensor *out, const char *name, const mica_tensor *t,
                           mica_index rows, mica_index elements)
{
    if (t->rank < 1 || t->dim[0] < rows || !mica_tensor_contiguous(t) ||
        mica_tensor_count(t) != (size_t)(t->dim[0] * elements))
        return mica_fail(ctx, MICA_ERR_SHAPE,
                         "table_stream_rows: %s are %s: expected at least %td rows of %td, contiguous", name,
                         MICA_SHAPE(t), rows, elements);
    return mica_tensor_init(ctx, out, t->data, t->dtype, 2, (mica_index[]){rows, elements});
}

mica_status mica_table_stream_rows(mica_context *ctx, const mica_tensor *inputs, const mica_tensor *targets,
                                   mica_index first, mica_index count, const mica_table_stream *s)
{
    if (s == NULL || inputs == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "table_stream_rows: %s is NULL",
                         s == NULL ? "stream" : "inputs");
    const mica_table *t = s->table;
    const block *b = &s->blocks[s->current];
    mica_tensor to;
    if (first < 0 || count < 0 || first > s->rows || count > s->rows - first)
        return mica_fail(ctx, MICA_ERR_INDEX, "table_stream_rows: rows %td to %td of a batch of %td", first,
                         first + count - 1, s->rows);
    MICA_TRY(rows_of(ctx, &to, "inputs", inputs, count, t->inputs));
    if (to.dtype != MICA_F32)
        return mica_fail(ctx, MICA_ERR_DTYPE, "table_stream_rows: inputs are %s, expected f32",
                         MICA_SHAPE(inputs));
    for (mica_index i = 0; i < count; i++)
        mica_table_expand_row(t, (float *)to.data + i * t->inputs,
                              b->cells + b->order[s->first + first + i] * t->cells, (mica_random){0});
    if (targets == NULL)
        return MICA_OK;
    MICA_TRY(rows_of(ctx, &to, "targets", targets, count, t->targets));
    for (mica_index i = 0; i < count; i++) {
        mica_tensor from = mica_1d(b->targets + b->order[s->first + first + i] * t->targets, t->targets), row;
        MICA_TRY(mica_tensor_init(ctx, &row,
                                  (char *)to.data + (size_t)(i * t->targets) * mica_dtype_bytes(to.dtype),
                                  to.dtype, 1, &t->targets));
        MICA_TRY(mica_copy(ctx, &row, &from));
    }
    return MICA_OK;
}

/* ---- Making ---- */

/* Groups of as many chunks as two blocks have room for. */
static void choose_groups(mica_table_stream *s, size_t bytes)
{
    const mica_table *t = s->table;
    uint32_t most = 1;
    for (size_t c = 0; c < t->chunk_count; c++)
        most = t->chunks[c].rows > most ? t->chunks[c].rows : most;
    size_t row = (size_t)(t->cells + t->targets + 1) * sizeof(float), chunks = bytes / 2 / (row * most);
    chunks = chunks > FEWEST_CHUNKS ? chunks : FEWEST_CHUNKS;
    chunks = chunks < t->chunk_count ? chunks : t->chunk_count;
    s->group_chunks = chunks;
    s->group_rows = (mica_index)(chunks * most);
    s->groups = (t->chunk_count + chunks - 1) / chunks;
}

/* One block: [ the struct | first_row | kept | order | cells, targets and order of each block | member ] */
static mica_table_stream *allocate(mica_context *ctx, const mica_table_stream *draft)
{
    const mica_table *t = draft->table;
    size_t chunks = t->chunk_count, places = (size_t)(draft->opts.batch + draft->group_rows), at[10],
           used = 0;
    const size_t sizes[] = {sizeof *draft,
                            chunks * sizeof(uint64_t),
                            chunks * sizeof(uint32_t),
                            chunks * sizeof(int32_t),
                            places * (size_t)t->cells * sizeof(float),
                            places * (size_t)t->cells * sizeof(float),
                            places * (size_t)t->targets * sizeof(float),
                            places * (size_t)t->targets * sizeof(float),
                            2 * places * sizeof(int32_t),
                            (size_t)(t->rows + 7) / 8};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        at[i] = used;
        used = mica_align_up(used + sizes[i]);
    }
    char *memory = mica_allocate(ctx, used);
    if (memory == NULL)
        return NULL;
    mica_table_stream *s = (mica_table_stream *)(void *)memory;
    *s = *draft;
    s->bytes = used;
    s->first_row = (uint64_t *)(void *)(memory + at[1]);
    s->kept = (uint32_t *)(void *)(memory + at[2]);
    s->order = (int32_t *)(void *)(memory + at[3]);
    for (int i = 0; i < 2; i++)
        s->blocks[i] = (block){.cells = (float *)(void *)(memory + at[4 + i]),
                               .targets = (float *)(void *)(memory + at[6 + i]),
                               .order = (int32_t *)(void *)(memory + at[8]) + (size_t)i * places};
    s->member = (unsigned char *)(memory + at[9]);
    s->order_epoch = UINT64_MAX;
    uint64_t row = 0;
    for (size_t c = 0; c < chunks; c++, row += t->chunks[c - 1].rows)
        s->first_row[c] = row;
    return s;
}

/* The reader has a context of its own: it must not touch the caller's from another thread. */
static mica_status open_file(mica_table_stream *s, const char *path)
{
    mica_status status = mica_stream_open(s->reading, &s->file, path);
    if (status != MICA_OK)
        return status;
    if (s->file.gzip != NULL || s->file.file.bytes != s->table->file_bytes)
        return mica_fail(s->reading, MICA_ERR_IO, "%s: %s", MICA_QUOTE(path),
                         s->file.gzip != NULL ? "a gzip file cannot be read in blocks: unpack it first"
                                              : "the file changed since it was scanned");
    MICA_TRY(mica_csv_open(s->reading, &s->csv, &s->file, s->table->delimiter));
    static const mica_table_read_opts with_header = {.header = MICA_CSV_HEADER_YES},
                                      without = {.header = MICA_CSV_HEADER_NO};
    const mica_table_read_opts *opts = s->table->has_header ? &with_header : &without;
    MICA_TRY(mica_table_reader_open(s->reading, &s->reader, s->table, &s->csv, opts));
    return choose_rows(s);
}

static mica_status open_all(mica_context *ctx, mica_table_stream *s, const char *path)
{
    mica_context_opts own = {.allocator = &ctx->allocator, .workspace_bytes = 1};
    mica_status status = mica_context_create(&s->reading, &own);
    if (status != MICA_OK)
        return mica_fail(ctx, status, "table_stream_create: no memory for a context");
    status = open_file(s, path);
    if (status != MICA_OK)
        return say(ctx, s, status);
    MICA_TRY(start_thread(ctx, s));
    return mica_table_stream_seek(ctx, s, (mica_cursor){0, 0});
}

mica_status mica_table_stream_create(mica_context *ctx, mica_table_stream **out, const mica_table *table,
                                     const char *path, const mica_table_stream_opts *opts)
{
    static const char op[] = "table_stream_create";
    if (out == NULL || table == NULL || path == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: an argument is NULL", op);
    *out = NULL;
    mica_table_stream draft = {.table = table};
    if (opts != NULL)
        draft.opts = *opts;
    if (draft.opts.batch < 0)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: batch is %td", op, draft.opts.batch);
    draft.opts.batch = draft.opts.batch > 0 ? draft.opts.batch : 32;
    if (!table->encoded || table->targets == 0)
        return mica_fail(ctx, MICA_ERR_STATE, "%s: the table is not encoded, or has no target", op);
    if (table->chunk_count == 0 || table->chunk_count > INT32_MAX)
        return mica_fail(ctx, MICA_ERR_STATE, "%s: the table has no index of a file: gzip has none", op);
    choose_groups(&draft, draft.opts.bytes > 0 ? draft.opts.bytes : DEFAULT_BYTES);
    if (draft.group_rows > INT32_MAX - draft.opts.batch)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "%s: batch is %td", op, draft.opts.batch);
    mica_table_stream *s = allocate(ctx, &draft);
    if (s == NULL)
        return ctx->status;
    mica_status status = open_all(ctx, s, path);
    if (status != MICA_OK) {
        mica_table_stream_destroy(ctx, s);
        return status;
    }
    *out = s;
    return MICA_OK;
}

void mica_table_stream_destroy(mica_context *ctx, mica_table_stream *s)
{
    if (s == NULL)
        return;
    stop_thread(s);
    if (s->reading != NULL) {
        mica_table_reader_close(s->reading, &s->reader);
        if (s->csv.ctx != NULL)
            mica_csv_close(&s->csv);
        mica_stream_close(s->reading, &s->file);
        mica_context_destroy(s->reading);
    }
    mica_release(ctx, s, s->bytes);
}
