/* Sessions: a model's net with its cache, and the steps that run tokens through it. */
#include "text/session.h"

#include <math.h>
#include <string.h>

#include <mica/text.h>

#include "base/size.h"
#include "tensor/tensor.h"

enum { USUAL_CONTEXT = 4096, USUAL_CHUNK = 128 };
enum { MOST_CONTEXT = INT32_MAX / 4, MOST_ROWS = 1 << 20 };

/* ---- Building ---- */

static const mica_dtype cache_dtypes[] = {MICA_F16, MICA_F32, MICA_Q8_0};

static mica_status check_size(const mica_session *s, const char *what, mica_index value, mica_index most)
{
    if (value >= 1 && value <= most)
        return MICA_OK;
    return mica_fail(s->ctx, MICA_ERR_ARGUMENT, "session: %s is %td: expected 1 to %td", what, value, most);
}

/* What the options mean; zeros are replaced. */
static mica_status choose_sizes(mica_session *s, const mica_session_opts *o)
{
    const mica_model_info *info = &s->model->info;
    mica_index usual = info->context < USUAL_CONTEXT ? info->context : USUAL_CONTEXT;
    mica_text_net_opts *size = &s->size;
    s->context = o->context != 0 ? o->context : usual;
    mica_index chunk = info->embeds ? s->context : USUAL_CHUNK; /* texts to embed are run whole */
    size->sequences = o->sequences != 0 ? o->sequences : 1;
    size->chunk = o->chunk != 0 ? o->chunk : chunk;
    size->logits = o->logits != 0 ? o->logits : size->sequences;
    MICA_TRY(check_size(s, "context", s->context, MOST_CONTEXT));
    MICA_TRY(check_size(s, "sequences", size->sequences, MOST_ROWS));
    MICA_TRY(check_size(s, "chunk", size->chunk, MOST_ROWS));
    MICA_TRY(check_size(s, "logits", size->logits, MOST_ROWS));
    if (o->tokens != 0)
        MICA_TRY(check_size(s, "tokens", o->tokens, INT32_MAX - MICA_CACHE_PAGE));
    if (s->model->positions > 0 && s->context > s->model->positions)
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT,
                         "session: a context of %td tokens, but the model has %td positions", s->context,
                         s->model->positions);
    if (!info->embeds && size->chunk > s->context * size->sequences)
        size->chunk = s->context * size->sequences;
    if (size->logits > size->chunk) /* they all come in the last step */
        size->chunk = size->logits;
    size->pages_each = mica_pages_for(s->context) + 1; /* dropping leaves a part of the first one unused */
    if (o->tokens == 0 && size->pages_each > INT32_MAX / size->sequences)
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT,
                         "session: %td sequences of %td tokens are more than a cache can have",
                         size->sequences, s->context);
    size->pages = o->tokens != 0 ? mica_pages_for(o->tokens) : size->pages_each * size->sequences;
    return MICA_OK;
}

static mica_status build(mica_session *s, mica_dtype cache, size_t budget)
{
    mica_net *net;
    mica_net_destroy(s->net);
    s->net = NULL;
    MICA_TRY(mica_net_create(s->ctx, &net));
    s->net = net;
    s->size.cache = cache;
    MICA_TRY(mica_model_build(s->model, net, &s->size));
    mica_index each = s->size.pages_each * MICA_CACHE_PAGE;
    mica_net_kept(net, MICA_TEXT_USES, MICA_KEPT_PRIVATE, MICA_I32, 1, &s->size.pages, 0.0f);
    mica_net_kept(net, MICA_TEXT_HISTORY, MICA_KEPT_PRIVATE, MICA_I32, 2,
                  (mica_index[]){s->size.sequences, each}, 0.0f);
    if (s->model->info.embeds)
        mica_net_kept(net, MICA_TEXT_VECTORS, MICA_KEPT_PRIVATE, MICA_F32, 2,
                      (mica_index[]){s->size.sequences, s->model->info.width}, 0.0f);
    return mica_net_compile(net, &(mica_compile_opts){.budget = budget});
}

/* Blocks of q8_0 must not lie across heads. */
static bool cache_fits(const mica_model_info *info, mica_dtype cache)
{
    return cache != MICA_Q8_0 || (info->head_width % 32 == 0 && info->value_width % 32 == 0);
}

static mica_status build_fitting(mica_session *s, const mica_session_opts *o)
{
    static const mica_dtype best_first[] = {MICA_F32, MICA_F16, MICA_Q8_0};
    const mica_model_info *info = &s->model->info;
    if ((unsigned)o->cache > MICA_CACHE_FITTING)
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT, "session: unknown type %d of cache", (int)o->cache);
    if (o->cache != MICA_CACHE_FITTING) {
        mica_dtype cache = cache_dtypes[o->cache];
        if (!cache_fits(info, cache))
            return mica_fail(
                s->ctx, MICA_ERR_ARGUMENT,
                "session: a cache of q8_0 needs heads of a multiple of 32 features, this model's have %td",
                info->head_width);
        return build(s, cache, o->budget);
    }
    mica_status status = MICA_OK;
    for (int i = 0; i < 3; i++) {
        if (!cache_fits(info, best_first[i]))
            continue;
        status = build(s, best_first[i], o->budget);
        if (status != MICA_ERR_MEMORY || o->budget == 0)
            return status;
    }
    return status;
}

static mica_status make_ropes(mica_session *s, float *frequencies)
{
    const mica_model *model = s->model;
    if (model->rope_kind == MICA_ROPE_NONE)
        return MICA_OK;
    s->rope.frequency = frequencies;
    s->size.rope = &s->rope;
    MICA_TRY(mica_model_make_rope(model, &s->rope, false, s->context));
    if (model->info.window == 0 || model->local_base == 0.0)
        return MICA_OK;
    s->local_rope.frequency = frequencies + model->turned / 2;
    s->size.local_rope = &s->local_rope;
    return mica_model_make_rope(model, &s->local_rope, true, s->context);
}

mica_status mica_session_create(const mica_model *model, mica_session **out, const mica_session_opts *opts)
{
    static const mica_session_opts defaults = {0};
    mica_context *ctx = model->ctx;
    const mica_session_opts *o = opts != NULL ? opts : &defaults;
    if (out == NULL)
        return mica_fail(ctx, MICA_ERR_ARGUMENT, "session_create: out is NULL");
    mica_index sequences = o->sequences > 0 && o->sequences <= MOST_ROWS ? o->sequences : 1;
    *out = NULL;
    size_t head = mica_round_up(sizeof(mica_session), MICA_ALIGN);
    size_t list = mica_round_up((size_t)sequences * sizeof(mica_sequence), MICA_ALIGN);
    size_t bytes = head + list + (size_t)model->turned * sizeof(float);
    mica_session *s = mica_allocate(ctx, bytes);
    if (s == NULL)
        return ctx->status;
    memset(s, 0, bytes);
    *s = (mica_session){.ctx = ctx, .bytes = bytes, .model = model};
    s->sequence = (mica_sequence *)(void *)((char *)s + head);
    mica_status status = choose_sizes(s, o);
    if (status == MICA_OK)
        status = make_ropes(s, (float *)(void *)((char *)s + head + list));
    if (status == MICA_OK)
        status = build_fitting(s, o);
    if (status != MICA_OK) {
        mica_session_destroy(s);
        return status;
    }
    *out = s;
    return MICA_OK;
}

void mica_session_destroy(mica_session *s)
{
    if (s == NULL)
        return;
    mica_net_destroy(s->net);
    mica_release(s->ctx, s, s->bytes);
}

mica_net *mica_session_net(mica_session *s) { return s->net; }
const mica_model *mica_session_model(const mica_session *s) { return s->model; }

mica_session_opts mica_session_about(const mica_session *s)
{
    mica_cache_type type = s->size.cache == MICA_F32   ? MICA_CACHE_F32
                           : s->size.cache == MICA_F16 ? MICA_CACHE_F16
                                                       : MICA_CACHE_Q8_0;
    return (mica_session_opts){.context = s->context,
                               .sequences = s->size.sequences,
                               .tokens = s->size.pages * MICA_CACHE_PAGE,
                               .chunk = s->size.chunk,
                               .logits = s->size.logits,
                               .cache = type};
}

static mica_status find_numbers(mica_session *s, int32_t **out, const char *name)
{
    mica_tensor t;
    MICA_TRY(mica_net_tensor(s->net, &t, name));
    *out = t.data;
    return MICA_OK;
}

mica_status mica_session_bind(mica_session *s, void *block, size_t bytes)
{
    MICA_TRY(mica_net_bind(s->net, block, bytes));
    MICA_TRY(find_numbers(s, &s->table, MICA_TEXT_TABLE));
    MICA_TRY(find_numbers(s, &s->first, MICA_TEXT_FIRST));
    MICA_TRY(find_numbers(s, &s->uses, MICA_TEXT_USES));
    MICA_TRY(find_numbers(s, &s->history, MICA_TEXT_HISTORY));
    MICA_TRY(find_numbers(s, &s->in_tokens, MICA_TEXT_TOKENS));
    MICA_TRY(find_numbers(s, &s->in_positions, MICA_TEXT_POSITIONS));
    MICA_TRY(find_numbers(s, &s->in_sequence, MICA_TEXT_SEQUENCE));
    MICA_TRY(find_numbers(s, &s->in_place, MICA_TEXT_PLACE));
    if (!s->model->info.embeds)
        MICA_TRY(find_numbers(s, &s->in_rows, MICA_TEXT_ROWS));
    s->bound = true;
    return MICA_OK;
}

/* ---- Running ---- */

static mica_status check_piece(const mica_session *s, const mica_session_piece *p, int number)
{
    const mica_model_info *info = &s->model->info;
    MICA_TRY(mica_session_check(s, "session_run", p->sequence));
    if (p->count < 0 || p->logits < 0 || p->logits > p->count || (p->count > 0 && p->tokens == NULL))
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT,
                         "session_run: piece %d has %td tokens, logits of %td wanted", number, p->count,
                         p->logits);
    mica_index length = mica_session_length(s, p->sequence);
    if (p->count > s->context - length)
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT,
                         "session_run: sequence %d has %td tokens, %td more do not fit into a context of %td",
                         p->sequence, length, p->count, s->context);
    const mica_sequence *q = &s->sequence[p->sequence];
    if (p->count > INT32_MAX - q->dropped - q->length)
        return mica_fail(
            s->ctx, MICA_ERR_ARGUMENT,
            "session_run: sequence %d was dropped from and went on for %td tokens: %td more have no "
            "position",
            p->sequence, q->dropped + q->length, p->count);
    if (info->embeds && (length > 0 || p->count > s->size.chunk || p->count < 1))
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT,
                         "session_run: piece %d has %td tokens: an embedding is of 1 to %td tokens at once",
                         number, p->count, s->size.chunk);
    for (mica_index i = 0; i < p->count; i++)
        if (p->tokens[i] < 0 || p->tokens[i] >= info->vocabulary)
            return mica_fail(s->ctx, MICA_ERR_INDEX, "session_run: token %d, but the vocabulary has %td",
                             (int)p->tokens[i], info->vocabulary);
    return MICA_OK;
}

static mica_status check_pieces(mica_session *s, const mica_session_piece *pieces, int count)
{
    mica_index logits = 0, pages = 0;
    for (int i = 0; i < count; i++) {
        MICA_TRY(check_piece(s, &pieces[i], i));
        for (int k = 0; k < i; k++)
            if (pieces[k].sequence == pieces[i].sequence)
                return mica_fail(s->ctx, MICA_ERR_ARGUMENT, "session_run: sequence %d is named twice",
                                 pieces[i].sequence);
        logits += pieces[i].logits;
        pages += mica_pages_needed(s, pieces, i);
    }
    if (logits > s->size.logits && !s->model->info.embeds)
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT, "session_run: %td rows of logits, but %td are planned",
                         logits, s->size.logits);
    mica_index free = mica_pages_free(s);
    if (pages > free)
        return mica_fail(s->ctx, MICA_ERR_MEMORY,
                         "session_run: %td more pages of %d tokens, but the cache has only %td of %td left",
                         pages, MICA_CACHE_PAGE, free, s->size.pages);
    return MICA_OK;
}

/* Rows that wait for a step. */
typedef struct step {
    mica_session *s;
    mica_index count, outputs;
} step;

/* Tokens first to first + count - 1 of a piece; `wanted`: with logits. */
static void add_rows(step *t, const mica_session_piece *p, mica_index first, mica_index count, bool wanted)
{
    mica_session *s = t->s;
    mica_sequence *q = &s->sequence[p->sequence];
    for (mica_index i = first; i < first + count; i++, t->count++) {
        mica_index row = t->count, place = q->length++;
        s->in_tokens[row] = p->tokens[i];
        s->in_positions[row] = (int32_t)(q->dropped + place);
        s->in_sequence[row] = (int32_t)p->sequence;
        s->in_place[row] = (int32_t)place;
        mica_history_of(s, p->sequence)[place] = p->tokens[i];
        if (wanted)
            s->in_rows[t->outputs++] = (int32_t)row;
    }
}

static mica_status run_step(step *t)
{
    mica_session *s = t->s;
    MICA_TRY(mica_net_set_size(s->net, "batch", t->count));
    if (!s->model->info.embeds)
        MICA_TRY(mica_net_set_size(s->net, MICA_TEXT_OUTPUTS, t->outputs));
    MICA_TRY(mica_net_forward(s->net));
    *t = (step){.s = s};
    return MICA_OK;
}

/* All rows that need no logits come first, in full steps; those with logits are together in the last one. */
static mica_status run_tokens(mica_session *s, const mica_session_piece *pieces, int count)
{
    mica_index chunk = s->size.chunk, logits = 0;
    step t = {.s = s};
    for (int i = 0; i < count; i++) {
        const mica_session_piece *p = &pieces[i];
        mica_index early = p->count - p->logits, part;
        for (mica_index first = 0; first < early; first += part) {
            part = early - first < chunk - t.count ? early - first : chunk - t.count;
            add_rows(&t, p, first, part, false);
            if (t.count == chunk)
                MICA_TRY(run_step(&t));
        }
        logits += p->logits;
    }
    if (t.count > 0 && (logits == 0 || t.count + logits > chunk))
        MICA_TRY(run_step(&t));
    if (logits == 0)
        return MICA_OK;
    for (int i = 0; i < count; i++)
        add_rows(&t, &pieces[i], pieces[i].count - pieces[i].logits, pieces[i].logits, true);
    MICA_TRY(run_step(&t));
    return mica_net_tensor(s->net, &s->result, MICA_TEXT_LOGITS);
}

/* ---- Embeddings ---- */

/* One vector of unit length out of the rows of a text, as the model was trained: their mean, the first or the last. */
static void pool(const mica_session *s, float *vector, const float *rows, mica_index count)
{
    mica_index width = s->model->info.width;
    double square = 0.0;
    for (mica_index k = 0; k < width; k++) {
        double sum = 0.0;
        for (mica_index i = 0; s->model->pooling == 1 && i < count; i++)
            sum += (double)rows[i * width + k];
        if (s->model->pooling != 1)
            sum = (double)rows[(s->model->pooling == 3 ? count - 1 : 0) * width + k];
        vector[k] = (float)(s->model->pooling == 1 ? sum / (double)count : sum);
        square += (double)vector[k] * (double)vector[k];
    }
    for (mica_index k = 0; k < width && square > 0.0; k++)
        vector[k] = (float)((double)vector[k] / sqrt(square));
}

/* Texts are whole in a step, as their tokens see one another; a text leaves no trace in the cache. */
static mica_status run_texts(mica_session *s, const mica_session_piece *pieces, int count)
{
    mica_tensor hidden, vectors;
    mica_index width = s->model->info.width;
    MICA_TRY(mica_net_tensor(s->net, &vectors, MICA_TEXT_VECTORS));
    for (int first = 0, end = 0; first < count; first = end) {
        step t = {.s = s};
        for (; end < count && t.count + pieces[end].count <= s->size.chunk; end++)
            add_rows(&t, &pieces[end], 0, pieces[end].count, false);
        MICA_TRY(run_step(&t));
        MICA_TRY(mica_net_tensor(s->net, &hidden, MICA_TEXT_HIDDEN));
        const float *rows = hidden.data;
        for (int i = first; i < end; i++) {
            pool(s, (float *)vectors.data + i * width, rows, pieces[i].count);
            rows += pieces[i].count * width;
        }
    }
    for (int i = 0; i < count; i++)
        MICA_TRY(mica_session_cut(s, pieces[i].sequence, 0));
    s->result = vectors;
    s->result.dim[0] = count;
    return MICA_OK;
}

/* *begun becomes the number of pieces that have their pages. */
static mica_status run_pieces(mica_session *s, const mica_session_piece *pieces, int count, int *begun)
{
    for (; *begun < count; ++*begun) {
        const mica_session_piece *p = &pieces[*begun];
        s->sequence[p->sequence].before = s->sequence[p->sequence].length;
        MICA_TRY(mica_pages_take(s, p->sequence, p->count));
    }
    return s->model->info.embeds ? run_texts(s, pieces, count) : run_tokens(s, pieces, count);
}

/* A run that failed: the sequences are as they were, and have the pages that they had. */
static void take_back(mica_session *s, const mica_session_piece *pieces, int count)
{
    for (int i = 0; i < count; i++) {
        mica_sequence *q = &s->sequence[pieces[i].sequence];
        q->length = q->before + pieces[i].count; /* it has pages for all of these */
        mica_pages_release(s, pieces[i].sequence, mica_pages_for(q->before));
        q->length = q->before;
    }
    s->result.rank = 0;
}

mica_status mica_session_run(mica_session *s, const mica_session_piece *pieces, int count)
{
    if (!s->bound)
        return mica_fail(s->ctx, MICA_ERR_STATE, "session_run: the session is not bound");
    if (count < 0 || count > s->size.sequences || (count > 0 && pieces == NULL))
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT, "session_run: %d pieces, but there are %td sequences",
                         count, s->size.sequences);
    MICA_TRY(check_pieces(s, pieces, count));
    s->result.rank = 0;
    int begun = 0;
    mica_status status = run_pieces(s, pieces, count, &begun);
    if (status != MICA_OK)
        take_back(s, pieces, begun);
    return status;
}

mica_status mica_session_logits(const mica_session *s, mica_tensor *out)
{
    if (out == NULL)
        return mica_fail(s->ctx, MICA_ERR_ARGUMENT, "session_logits: out is NULL");
    if (s->result.rank == 0)
        return mica_fail(s->ctx, MICA_ERR_STATE, "session_logits: the last run was to give none");
    *out = s->result;
    return MICA_OK;
}
