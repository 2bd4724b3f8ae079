/* Inside a session: sequences and the pages of the cache that they own.
 *
 * Everything that lasts is in the net's block, so that the plan counts it:
 *
 *     cache.table    i32 [sequences, pages_each]   which page has places 32 i to 32 i + 31 of a sequence
 *     cache.first    i32 [sequences]               places before it are dropped
 *     cache.uses     i32 [pages]                   how many sequences own a page; 0: it is free
 *     cache.history  i32 [sequences, pages_each * 32]  the token at each place
 *
 * A page is written to by one owner alone: a sequence that goes on in a shared page gets a copy of it first. */
#ifndef MICA_SRC_TEXT_SESSION_H
#define MICA_SRC_TEXT_SESSION_H

#include "text/model.h"

#define MICA_TEXT_USES    "cache.uses"
#define MICA_TEXT_HISTORY "cache.history"
#define MICA_TEXT_VECTORS "vectors"

typedef struct mica_sequence {
    mica_index length;  /* places that are written, from 0 on; those before `first` are dropped */
    mica_index dropped; /* tokens that were before place 0: a row's position is dropped + place */
    mica_index before;  /* its length when the last run began */
} mica_sequence;

struct mica_session {
    mica_context *ctx;
    size_t bytes; /* of this block */
    const mica_model *model;
    mica_net *net;
    mica_text_net_opts size;
    mica_index context;
    mica_rope rope, local_rope;
    mica_sequence *sequence; /* [size.sequences] */
    bool bound;
    /* Bound. */
    int32_t *table, *first, *uses, *history;
    int32_t *in_tokens, *in_positions, *in_sequence, *in_place, *in_rows; /* inputs of a step */
    mica_tensor result; /* of the last run; rank 0: there is none */
};

/* ---- pages.c ---- */

static inline int32_t *mica_page_of(const mica_session *s, int sequence, mica_index number)
{
    return &s->table[(mica_index)sequence * s->size.pages_each + number];
}
static inline int32_t *mica_history_of(const mica_session *s, int sequence)
{
    return &s->history[(mica_index)sequence * s->size.pages_each * MICA_CACHE_PAGE];
}
static inline mica_index mica_pages_for(mica_index tokens)
{
    return (tokens + MICA_CACHE_PAGE - 1) / MICA_CACHE_PAGE;
}

/* Pages that a piece must take after those before it: new ones, and a copy of one that is still shared then. */
mica_index mica_pages_needed(const mica_session *s, const mica_session_piece *pieces, int number);
mica_index mica_pages_free(const mica_session *s);
/* Takes them; there are enough. */
mica_status mica_pages_take(mica_session *s, int sequence, mica_index count);
/* Gives back those behind the first `kept`. */
void mica_pages_release(mica_session *s, int sequence, mica_index kept);
/* Calls fn for each layer's keys and values: tensors u8 [pages, bytes]. */
mica_status mica_pages_each(mica_session *s, mica_status (*fn)(void *user, const mica_tensor *pages),
                            void *user);
/* Fails unless it is the number of a sequence of a bound session. */
mica_status mica_session_check(const mica_session *s, const char *what, int sequence);

#endif
