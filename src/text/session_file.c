/* A sequence in a file: what its tokens left in the cache, so that a prompt need not be run again.
 *
 *     0        64                                                            end - 8
 *     | header | tokens, i32 each, an even number   | keys, values of each layer | sum of all before (u64) |
 *
 * All numbers are little-endian. Pages come in the order of places, the last one whole. Every part is a multiple of 8
 * bytes. */
#include <string.h>

#include "io/file.h"
#include "io/quote.h"
#include "tensor/tensor.h"
#include "text/session.h"

enum { HEADER_WORDS = 8, PIECE = 4096 };

/* ---- Sums ---- */

/* FNV-1a over words of 8 bytes: it finds what was damaged, not what was forged. */
static uint64_t sum_bytes(uint64_t sum, const void *bytes, size_t count)
{
    for (size_t i = 0; i + 8 <= count; i += 8) {
        uint64_t word;
        memcpy(&word, (const char *)bytes + i, 8);
        sum = (sum ^ word) * 0x100000001b3u;
    }
    return sum;
}

static const uint64_t no_sum = 0xcbf29ce484222325u;

/* Tells models apart: their sizes, how positions turn keys (which the context may decide), some bytes of weights. */
static mica_status fingerprint(const mica_session *s, uint64_t *out)
{
    const mica_model *model = s->model;
    const mica_model_info *info = &model->info;
    const mica_rope *ropes[] = {s->size.rope, s->size.local_rope};
    uint64_t sum = sum_bytes(no_sum, info->architecture, sizeof info->architecture);
    mica_index sizes[] = {info->layers,   info->width,      info->heads,
                          info->kv_heads, info->head_width, info->vocabulary};
    sum = sum_bytes(sum, sizes, sizeof sizes);
    for (int i = 0; i < 2 && ropes[i] != NULL; i++)
        sum = sum_bytes(sum, ropes[i]->frequency, (size_t)(model->turned / 2) * sizeof(float));
    for (size_t i = 0; i < mica_model_weights(model); i++) {
        mica_tensor t;
        MICA_TRY(mica_model_weight(model, NULL, &t, i));
        size_t bytes = mica_tensor_bytes(&t);
        sum = sum_bytes(sum, t.data, mica_tensor_contiguous(&t) && bytes > 64 ? 64 : 0);
    }
    *out = sum;
    return MICA_OK;
}

/* Bytes of so many tokens in the file. */
static uint64_t token_bytes(uint64_t length) { return (length + length % 2) * 4; }

/* "MICASEQ1", the model, the cache's dtype, layers, places, the first that is seen, tokens before, bytes of all pages */
enum { MAGIC, MODEL, CACHE, LAYERS, LENGTH, FIRST, DROPPED, BYTES };

static mica_status add_bytes(void *user, const mica_tensor *pages)
{
    *(uint64_t *)user += (uint64_t)pages->dim[1];
    return MICA_OK;
}

static mica_status make_header(mica_session *s, uint64_t *header, int sequence)
{
    const mica_sequence *q = &s->sequence[sequence];
    uint64_t bytes = 0;
    memcpy(&header[MAGIC], "MICASEQ1", 8);
    MICA_TRY(fingerprint(s, &header[MODEL]));
    MICA_TRY(mica_pages_each(s, add_bytes, &bytes));
    header[CACHE] = (uint64_t)s->size.cache;
    header[LAYERS] = (uint64_t)s->model->info.layers;
    header[LENGTH] = (uint64_t)q->length;
    header[FIRST] = (uint64_t)s->first[sequence];
    header[DROPPED] = (uint64_t)q->dropped;
    header[BYTES] = bytes;
    return MICA_OK;
}

/* ---- Saving ---- */

typedef struct writing {
    mica_session *s;
    mica_new_file file;
    uint64_t sum;
    int sequence;
} writing;

static mica_status put(writing *w, const void *bytes, size_t count)
{
    w->sum = sum_bytes(w->sum, bytes, count);
    return mica_new_file_write(w->s->ctx, &w->file, bytes, count);
}

static mica_status put_pages(void *user, const mica_tensor *pages)
{
    writing *w = user;
    size_t bytes = (size_t)pages->dim[1];
    for (mica_index i = 0; i < mica_pages_for(w->s->sequence[w->sequence].length); i++)
        MICA_TRY(put(w, (char *)pages->data + (size_t)*mica_page_of(w->s, w->sequence, i) * bytes, bytes));
    return MICA_OK;
}

static mica_status put_all(writing *w)
{
    mica_session *s = w->s;
    uint64_t header[HEADER_WORDS];
    MICA_TRY(make_header(s, header, w->sequence));
    MICA_TRY(put(w, header, sizeof header));
    /* Behind the last token there is room for one more, whatever it holds. */
    MICA_TRY(put(w, mica_history_of(s, w->sequence), (size_t)token_bytes(header[LENGTH])));
    MICA_TRY(mica_pages_each(s, put_pages, w));
    return mica_new_file_write(s->ctx, &w->file, &w->sum, sizeof w->sum);
}

mica_status mica_session_save(mica_session *s, int sequence, const char *path)
{
    writing w = {.s = s, .sum = no_sum, .sequence = sequence};
    MICA_TRY(mica_session_check(s, "session_save", sequence));
    if (path == NULL)
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT, "session_save: path is NULL");
    if (!MICA_LITTLE_ENDIAN)
        return mica_fail(s->ctx, MICA_ERR_IO, "session_save: not supported on a big-endian processor");
    MICA_TRY(mica_new_file_begin(s->ctx, &w.file, path));
    mica_status status = put_all(&w);
    if (status == MICA_OK)
        return mica_new_file_commit(s->ctx, &w.file);
    mica_new_file_abandon(&w.file);
    return status;
}

/* ---- Restoring ---- */

typedef struct reading {
    mica_session *s;
    mica_file file;
    uint64_t at;
    int sequence;
} reading;

static mica_status get(reading *r, void *to, size_t count)
{
    MICA_TRY(mica_file_read(r->s->ctx, to, &r->file, count, r->at));
    r->at += count;
    return MICA_OK;
}

static mica_status get_pages(void *user, const mica_tensor *pages)
{
    reading *r = user;
    size_t bytes = (size_t)pages->dim[1];
    for (mica_index i = 0; i < mica_pages_for(r->s->sequence[r->sequence].length); i++)
        MICA_TRY(get(r, (char *)pages->data + (size_t)*mica_page_of(r->s, r->sequence, i) * bytes, bytes));
    return MICA_OK;
}

static mica_status refuse(const reading *r, const char *why)
{
    return mica_fail(r->s->ctx, MICA_ERR_FORMAT, "%s: %s", MICA_QUOTE(r->file.path), why);
}

/* Reads all of the file and compares its sum. */
static mica_status check_sum(const reading *r)
{
    unsigned char piece[PIECE];
    uint64_t sum = no_sum, wanted, end = r->file.bytes - 8;
    for (uint64_t at = 0; at < end; at += PIECE) {
        size_t count = end - at < PIECE ? (size_t)(end - at) : PIECE;
        MICA_TRY(mica_file_read(r->s->ctx, piece, &r->file, count, at));
        sum = sum_bytes(sum, piece, count);
    }
    MICA_TRY(mica_file_read(r->s->ctx, &wanted, &r->file, 8, end));
    return sum == wanted ? MICA_OK : refuse(r, "the file is damaged: its sum does not match");
}

/* The sum can be forged: no token comes out of here that the model does not have. */
static mica_status check_tokens(const reading *r, uint64_t length)
{
    enum { MANY = PIECE / sizeof(int32_t) };
    int32_t piece[MANY];
    for (uint64_t first = 0; first < length; first += MANY) {
        size_t count = length - first < MANY ? (size_t)(length - first) : MANY;
        MICA_TRY(mica_file_read(r->s->ctx, piece, &r->file, count * sizeof *piece,
                                HEADER_WORDS * sizeof(uint64_t) + first * sizeof *piece));
        for (size_t i = 0; i < count; i++)
            if (piece[i] < 0 || piece[i] >= r->s->model->info.vocabulary)
                return refuse(r, "it has a token that is not in the vocabulary");
    }
    return MICA_OK;
}

static mica_status check_header(reading *r, const uint64_t *header)
{
    mica_session *s = r->s;
    uint64_t own[HEADER_WORDS];
    MICA_TRY(make_header(s, own, r->sequence));
    if (header[MAGIC] != own[MAGIC])
        return refuse(r, "not a saved sequence: expected it to begin with \"MICASEQ1\"");
    if (header[MODEL] != own[MODEL] || header[LAYERS] != own[LAYERS])
        return refuse(r,
                      "saved with another model, or with a context that scales its positions in another way");
    if (header[CACHE] != own[CACHE] || header[BYTES] != own[BYTES])
        return refuse(r, "saved with another type of cache");
    if (header[LENGTH] > header[FIRST] && header[LENGTH] - header[FIRST] > (uint64_t)s->context)
        return mica_fail(s->ctx, MICA_ERR_FORMAT, "%s: has %llu tokens, the context of this session is %td",
                         MICA_QUOTE(r->file.path), (unsigned long long)(header[LENGTH] - header[FIRST]),
                         s->context);
    uint64_t room = (uint64_t)s->size.pages_each * MICA_CACHE_PAGE;
    if (header[LENGTH] > room || header[FIRST] >= MICA_CACHE_PAGE || header[DROPPED] > INT32_MAX / 2 ||
        (header[FIRST] > 0 && header[FIRST] >= header[LENGTH]) ||
        header[LENGTH] - header[FIRST] > (uint64_t)s->context)
        return refuse(r, "its tokens do not fit into the context of this session");
    if (s->model->positions > 0 && (header[FIRST] > 0 || header[DROPPED] > 0))
        return refuse(r, "its first tokens were dropped, which this model's learned positions do not allow");
    uint64_t pages = (uint64_t)mica_pages_for((mica_index)header[LENGTH]);
    if (r->file.bytes != sizeof own + token_bytes(header[LENGTH]) + pages * header[BYTES] + 8)
        return refuse(r, "its length does not match its header");
    MICA_TRY(check_sum(r));
    return check_tokens(r, header[LENGTH]);
}

static mica_status take_sequence(reading *r, const uint64_t *header)
{
    mica_session *s = r->s;
    mica_index length = (mica_index)header[LENGTH], pages = mica_pages_for(length), own = 0;
    for (mica_index i = 0; i < mica_pages_for(s->sequence[r->sequence].length); i++)
        own += s->uses[*mica_page_of(s, r->sequence, i)] == 1;
    if (pages > mica_pages_free(s) + own)
        return mica_fail(s->ctx, MICA_ERR_MEMORY,
                         "session_restore: %td pages of %d tokens, but the cache has %td left", pages,
                         MICA_CACHE_PAGE, mica_pages_free(s) + own);
    MICA_TRY(mica_session_cut(s, r->sequence, 0));
    MICA_TRY(mica_pages_take(s, r->sequence, length));
    s->sequence[r->sequence] = (mica_sequence){.length = length, .dropped = (mica_index)header[DROPPED]};
    s->first[r->sequence] = (int32_t)header[FIRST];
    mica_status status = get(r, mica_history_of(s, r->sequence), (size_t)token_bytes(header[LENGTH]));
    if (status == MICA_OK)
        status = mica_pages_each(s, get_pages, r);
    if (status != MICA_OK) /* the disk failed */
        (void)mica_session_cut(s, r->sequence, 0);
    return status;
}

mica_status mica_session_restore(mica_session *s, int sequence, const char *path)
{
    uint64_t header[HEADER_WORDS];
    MICA_TRY(mica_session_check(s, "session_restore", sequence));
    if (path == NULL)
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT, "session_restore: path is NULL");
    if (!MICA_LITTLE_ENDIAN)
        return mica_fail(s->ctx, MICA_ERR_IO, "session_restore: not supported on a big-endian processor");
    reading r = {.s = s, .sequence = sequence};
    MICA_TRY(mica_file_open(s->ctx, &r.file, path));
    mica_status status = r.file.bytes < sizeof header + 8
                             ? refuse(&r, "the file is too short to be a saved sequence")
                             : get(&r, header, sizeof header);
    if (status == MICA_OK)
        status = check_header(&r, header);
    if (status == MICA_OK)
        status = take_sequence(&r, header);
    mica_file_close(&r.file);
    return status;
}

mica_status mica_session_history(const mica_session *s, int sequence, const int32_t **tokens,
                                 mica_index *count)
{
    MICA_TRY(mica_session_check(s, "session_history", sequence));
    if (tokens == NULL || count == NULL)
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT, "session_history: %s is NULL",
                         tokens == NULL ? "tokens" : "count");
    *tokens = mica_history_of(s, sequence) + s->first[sequence];
    *count = mica_session_length(s, sequence);
    return MICA_OK;
}
