/* Pages of a session's cache: who owns them, and the calls that hand them around. */
#include <string.h>

#include "base/format.h"
#include "tensor/tensor.h"
#include "text/session.h"

mica_status mica_session_check(const mica_session *s, const char *what, int sequence)
{
    if (!s->bound)
        return mica_fail(s->ctx, MICA_ERR_STATE, "%s: the session is not bound", what);
    if (sequence < 0 || sequence >= s->size.sequences)
        return mica_fail(s->ctx, MICA_ERR_INDEX, "%s: sequence %d of %td", what, sequence, s->size.sequences);
    return MICA_OK;
}

mica_status mica_pages_each(mica_session *s, mica_status (*fn)(void *user, const mica_tensor *pages),
                            void *user)
{
    for (mica_index layer = 0; layer < s->model->info.layers; layer++)
        for (int values = 0; values < 2; values++) {
            char name[64];
            mica_tensor pages;
            mica_format(name, sizeof name, "blk.%td.cache_%c", layer, values ? 'v' : 'k');
            MICA_TRY(mica_net_tensor(s->net, &pages, name));
            MICA_TRY(fn(user, &pages));
        }
    return MICA_OK;
}

/* ---- Taking and giving back ---- */

/* Whether the last page of a sequence is another's, too, and not full: before it is written to it must be copied. */
static bool must_copy(const mica_session *s, int sequence)
{
    mica_index length = s->sequence[sequence].length;
    return length % MICA_CACHE_PAGE != 0 && s->uses[*mica_page_of(s, sequence, length / MICA_CACHE_PAGE)] > 1;
}

mica_index mica_pages_needed(const mica_session *s, const mica_session_piece *pieces, int number)
{
    int sequence = pieces[number].sequence;
    mica_index length = s->sequence[sequence].length, count = pieces[number].count;
    if (count == 0)
        return 0;
    mica_index pages = mica_pages_for(length + count) - mica_pages_for(length);
    if (!must_copy(s, sequence))
        return pages;
    int32_t last = *mica_page_of(s, sequence, length / MICA_CACHE_PAGE), users = s->uses[last];
    for (int i = 0; i < number; i++) { /* pieces before it will have left the page to it */
        mica_index end = s->sequence[pieces[i].sequence].length;
        if (pieces[i].count > 0 && end % MICA_CACHE_PAGE != 0)
            users -= *mica_page_of(s, pieces[i].sequence, end / MICA_CACHE_PAGE) == last;
    }
    return pages + (users > 1);
}

mica_index mica_pages_free(const mica_session *s)
{
    mica_index free = 0;
    for (mica_index page = 0; page < s->size.pages; page++)
        free += s->uses[page] == 0;
    return free;
}

static int32_t take_page(mica_session *s)
{
    int32_t page = 0;
    while (s->uses[page] != 0)
        page++;
    s->uses[page] = 1;
    return page;
}

typedef struct page_copy {
    int32_t to, from;
} page_copy;

static mica_status copy_page(void *user, const mica_tensor *pages)
{
    const page_copy *copy = user;
    size_t bytes = (size_t)pages->dim[1];
    memcpy((char *)pages->data + (size_t)copy->to * bytes,
           (const char *)pages->data + (size_t)copy->from * bytes, bytes);
    return MICA_OK;
}

mica_status mica_pages_take(mica_session *s, int sequence, mica_index count)
{
    mica_index length = s->sequence[sequence].length;
    if (count > 0 && must_copy(s, sequence)) {
        int32_t *last = mica_page_of(s, sequence, length / MICA_CACHE_PAGE);
        page_copy copy = {.to = take_page(s), .from = *last};
        MICA_TRY(mica_pages_each(s, copy_page, &copy));
        s->uses[copy.from]--;
        *last = copy.to;
    }
    for (mica_index i = mica_pages_for(length); i < mica_pages_for(length + count); i++)
        *mica_page_of(s, sequence, i) = take_page(s);
    return MICA_OK;
}

void mica_pages_release(mica_session *s, int sequence, mica_index kept)
{
    for (mica_index i = kept; i < mica_pages_for(s->sequence[sequence].length); i++)
        s->uses[*mica_page_of(s, sequence, i)]--;
}

/* ---- Sequences ---- */

mica_index mica_session_length(const mica_session *s, int sequence)
{
    if (sequence < 0 || sequence >= s->size.sequences || !s->bound)
        return 0;
    return s->sequence[sequence].length - s->first[sequence];
}

mica_status mica_session_cut(mica_session *s, int sequence, mica_index length)
{
    MICA_TRY(mica_session_check(s, "session_cut", sequence));
    mica_index now = mica_session_length(s, sequence);
    if (length < 0 || length > now)
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT, "session_cut: sequence %d has %td tokens, not %td",
                         sequence, now, length);
    mica_index end = length == 0 ? 0 : s->first[sequence] + length;
    mica_pages_release(s, sequence, mica_pages_for(end));
    s->sequence[sequence].length = end;
    if (end == 0) {
        s->first[sequence] = 0;
        s->sequence[sequence].dropped = 0;
    }
    return MICA_OK;
}

mica_status mica_session_share(mica_session *s, int to, int from, mica_index count)
{
    MICA_TRY(mica_session_check(s, "session_share", to));
    MICA_TRY(mica_session_check(s, "session_share", from));
    mica_index length = mica_session_length(s, from);
    if (to == from || count < 0 || count > length)
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT,
                         "session_share: %td tokens of sequence %d, which has %td, for sequence %d", count,
                         from, length, to);
    MICA_TRY(mica_session_cut(s, to, 0));
    if (count == 0)
        return MICA_OK;
    mica_index end = s->first[from] + count;
    for (mica_index i = 0; i < mica_pages_for(end); i++) {
        *mica_page_of(s, to, i) = *mica_page_of(s, from, i);
        s->uses[*mica_page_of(s, to, i)]++;
    }
    memcpy(mica_history_of(s, to), mica_history_of(s, from), (size_t)end * sizeof *s->history);
    s->sequence[to] = (mica_sequence){.length = end, .dropped = s->sequence[from].dropped};
    s->first[to] = s->first[from];
    return MICA_OK;
}

mica_status mica_session_drop(mica_session *s, int sequence, mica_index count)
{
    MICA_TRY(mica_session_check(s, "session_drop", sequence));
    mica_index length = mica_session_length(s, sequence);
    mica_sequence *q = &s->sequence[sequence];
    if (count < 0 || count > length)
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT, "session_drop: sequence %d has %td tokens, not %td",
                         sequence, length, count);
    if (s->model->positions > 0)
        return mica_fail(
            s->ctx, MICA_ERR_STATE,
            "session_drop: this model has learned positions, which cannot go on behind the last");
    if (count == length)
        return mica_session_cut(s, sequence, 0);
    /* Whole pages go; of the first that stays, some places are no longer seen. */
    mica_index first = s->first[sequence] + count, pages = first / MICA_CACHE_PAGE;
    mica_index places = pages * MICA_CACHE_PAGE, all = mica_pages_for(q->length);
    for (mica_index i = 0; i < pages; i++)
        s->uses[*mica_page_of(s, sequence, i)]--;
    memmove(mica_page_of(s, sequence, 0), mica_page_of(s, sequence, pages),
            (size_t)(all - pages) * sizeof *s->table);
    memmove(mica_history_of(s, sequence), mica_history_of(s, sequence) + places,
            (size_t)(q->length - places) * sizeof *s->history);
    s->first[sequence] = (int32_t)(first - places);
    q->length -= places;
    q->dropped += places;
    return MICA_OK;
}
