/* Sessions as a machine: random runs, shares, cuts, drops, saves and restores on several sequences. Whatever happened,
 * a sequence gives the bits of one that ran alone, in a session of its own, and dropped at the same places. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/scratch.h"
#include "text/small_model.h"

enum { SEQUENCES = 4, FILES = 2, CONTEXT = 90, STREAM = 2000, DROPS = 200, ROWS = 6, STEPS = 60 };

/* What a sequence has been through since it was empty. */
typedef struct past {
    int32_t tokens[STREAM];
    int count;
    int dropped; /* of these tokens, from the first on */
    struct {
        int at, count; /* after so many tokens */
    } drops[DROPS];
    int drop_count;
} past;

typedef struct machine {
    test_random random;
    mica_context *ctx, *plain; /* with some threads, with one */
    mica_model *model, *alone_model;
    mica_session *session, *alone;
    past now[SEQUENCES], saved[FILES];
    char files[FILES][300];
    int steps, refused;
} machine;

static int length_of(const past *p) { return p->count - p->dropped; }

/* The first tokens stay. What was dropped later than their last has been dropped behind it: that is the same. */
static void cut_past(past *p, int length)
{
    if (length == 0) {
        p->count = p->dropped = p->drop_count = 0;
        return;
    }
    p->count = p->dropped + length;
    for (int i = 0; i < p->drop_count; i++)
        if (p->drops[i].at > p->count)
            p->drops[i].at = p->count;
}

/* ---- What it must be ---- */

/* Runs the past alone, to logits of its last `rows` tokens. */
static void replay(machine *m, const past *p, int rows, mica_tensor *out)
{
    int done = 0;
    CHECK_OK(m->plain, mica_session_cut(m->alone, 0, 0));
    for (int i = 0; i <= p->drop_count; i++) {
        bool last = i == p->drop_count;
        int end = last ? p->count : p->drops[i].at;
        mica_session_piece piece = {
            .tokens = p->tokens + done, .count = end - done, .logits = last ? rows : 0};
        CHECK_OK(m->plain, mica_session_run(m->alone, &piece, 1));
        if (!last)
            CHECK_OK(m->plain, mica_session_drop(m->alone, 0, p->drops[i].count));
        done = end;
    }
    CHECK_OK(m->plain, mica_session_logits(m->alone, out));
}

/* Rows of the last run, from `first` on, are those of the sequence by itself. */
static void check_rows(machine *m, int sequence, int first, int rows)
{
    mica_tensor got, want;
    if (rows == 0 || !CHECK_OK(m->ctx, mica_session_logits(m->session, &got)))
        return;
    replay(m, &m->now[sequence], rows, &want);
    CHECK_MSG(memcmp((const float *)got.data + first * SMALL_VOCABULARY, want.data,
                     (size_t)rows * SMALL_VOCABULARY * sizeof(float)) == 0,
              "step %d: sequence %d with %d tokens, %d of them dropped, gives other bits", m->steps, sequence,
              m->now[sequence].count, m->now[sequence].dropped);
}

static void check_history(machine *m, int sequence)
{
    const past *p = &m->now[sequence];
    const int32_t *tokens;
    mica_index count;
    CHECK(mica_session_length(m->session, sequence) == length_of(p));
    if (CHECK_OK(m->ctx, mica_session_history(m->session, sequence, &tokens, &count)))
        CHECK_MSG(count == length_of(p) &&
                      memcmp(tokens, p->tokens + p->dropped, (size_t)count * sizeof *tokens) == 0,
                  "step %d: sequence %d has another history", m->steps, sequence);
}

/* ---- What happens ---- */

static void run(machine *m)
{
    mica_session_piece pieces[SEQUENCES];
    int32_t tokens[SEQUENCES][CONTEXT];
    int count = 0, left = ROWS, first = test_int(&m->random, 0, SEQUENCES - 1);
    for (int i = 0, most = test_int(&m->random, 1, SEQUENCES); i < most; i++) {
        int sequence = (first + i) % SEQUENCES, room = CONTEXT - length_of(&m->now[sequence]);
        if (m->now[sequence].count + room > STREAM)
            continue;
        int size = test_int(&m->random, 0, room < 50 ? room : 50);
        int rows = test_int(&m->random, 0, size < left ? size : left);
        for (int k = 0; k < size; k++)
            tokens[count][k] = test_int(&m->random, 0, SMALL_VOCABULARY - 1);
        pieces[count] = (mica_session_piece){sequence, tokens[count], size, rows};
        left -= rows;
        count++;
    }
    mica_status status = mica_session_run(m->session, pieces, count);
    m->refused += status == MICA_ERR_MEMORY;
    if (status == MICA_ERR_MEMORY) /* fewer pages than all would need: nothing has changed */
        return;
    CHECK_OK(m->ctx, status);
    for (int i = 0; i < count; i++) {
        past *p = &m->now[pieces[i].sequence];
        memcpy(p->tokens + p->count, pieces[i].tokens, (size_t)pieces[i].count * sizeof *p->tokens);
        p->count += (int)pieces[i].count;
    }
    for (int i = 0, row = 0; i < count; row += (int)pieces[i].logits, i++)
        check_rows(m, pieces[i].sequence, row, (int)pieces[i].logits);
}

static void share(machine *m, int sequence)
{
    int from = (sequence + test_int(&m->random, 1, SEQUENCES - 1)) % SEQUENCES;
    int count = test_int(&m->random, 0, length_of(&m->now[from]));
    CHECK_OK(m->ctx, mica_session_share(m->session, sequence, from, count));
    m->now[sequence] = m->now[from];
    cut_past(&m->now[sequence], count);
}

static void cut(machine *m, int sequence)
{
    int length = test_int(&m->random, 0, length_of(&m->now[sequence]));
    CHECK_OK(m->ctx, mica_session_cut(m->session, sequence, length));
    cut_past(&m->now[sequence], length);
}

static void drop(machine *m, int sequence)
{
    past *p = &m->now[sequence];
    int count = test_int(&m->random, 0, length_of(p));
    if (p->drop_count == DROPS)
        return;
    CHECK_OK(m->ctx, mica_session_drop(m->session, sequence, count));
    if (count == length_of(p)) {
        cut_past(p, 0);
        return;
    }
    p->drops[p->drop_count].at = p->count;
    p->drops[p->drop_count++].count = count;
    p->dropped += count;
}

static void save(machine *m, int sequence)
{
    int file = test_int(&m->random, 0, FILES - 1);
    CHECK_OK(m->ctx, mica_session_save(m->session, sequence, m->files[file]));
    m->saved[file] = m->now[sequence];
}

static void restore(machine *m, int sequence)
{
    int file = test_int(&m->random, 0, FILES - 1);
    if (m->saved[file].count == 0)
        return;
    mica_status status = mica_session_restore(m->session, sequence, m->files[file]);
    m->refused += status == MICA_ERR_MEMORY;
    if (status == MICA_ERR_MEMORY)
        return;
    CHECK_OK(m->ctx, status);
    m->now[sequence] = m->saved[file];
}

static void step(machine *m)
{
    int sequence = test_int(&m->random, 0, SEQUENCES - 1);
    switch (test_int(&m->random, 0, 9)) {
    case 0:
        share(m, sequence);
        break;
    case 1:
        cut(m, sequence);
        break;
    case 2:
        drop(m, sequence);
        break;
    case 3:
        save(m, sequence);
        break;
    case 4:
        restore(m, sequence);
        break;
    default:
        run(m);
        break;
    }
    for (int i = 0; i < SEQUENCES; i++)
        check_history(m, i);
}

/* All pages are there again when all sequences are empty. */
static void check_pages(machine *m, int tokens)
{
    int32_t zeros[CONTEXT] = {0};
    for (int i = 0; i < SEQUENCES; i++)
        CHECK_OK(m->ctx, mica_session_cut(m->session, i, 0));
    for (int i = 0; tokens > 0 && i < SEQUENCES; i++) {
        int count = tokens < CONTEXT ? tokens : CONTEXT;
        mica_session_piece piece = {.sequence = i, .tokens = zeros, .count = count};
        CHECK_OK(m->ctx, mica_session_run(m->session, &piece, 1));
        tokens -= (count + 31) / 32 * 32;
    }
}

static mica_session *begin(mica_context *ctx, mica_model **model, const char *path, mica_session_opts opts)
{
    mica_session *session = NULL;
    if (CHECK_OK(ctx, mica_model_open(ctx, model, path)) &&
        CHECK_OK(ctx, mica_session_create(*model, &session, &opts)))
        CHECK_OK(ctx, mica_session_bind(session, NULL, 0));
    return session;
}

/* contexts: with 1, 2 and 3 threads. */
static void live(uint64_t seed, mica_context *const contexts[3], const small_model *model,
                 mica_cache_type cache)
{
    scratch files = scratch_make();
    machine *m = calloc(1, sizeof *m);
    char path[300];
    m->random = test_seed(seed);
    m->ctx = contexts[test_int(&m->random, 0, 2)];
    m->plain = contexts[0];
    snprintf(path, sizeof path, "%s", scratch_path(&files, "model.gguf"));
    for (int i = 0; i < FILES; i++) {
        char name[] = {'s', (char)('0' + i), '\0'};
        snprintf(m->files[i], sizeof m->files[i], "%s", scratch_path(&files, name));
    }
    CHECK_OK(m->plain, small_model_write(m->plain, path, model));
    int tokens = test_int(&m->random, 0, 1) ? 0 : 32 * test_int(&m->random, 4, 9);
    mica_session_opts opts = {.context = CONTEXT,
                              .sequences = SEQUENCES,
                              .tokens = tokens,
                              .chunk = test_int(&m->random, 1, 40),
                              .logits = ROWS,
                              .cache = cache};
    m->session = begin(m->ctx, &m->model, path, opts);
    opts = (mica_session_opts){
        .context = CONTEXT, .chunk = test_int(&m->random, ROWS, 64), .logits = ROWS, .cache = cache};
    m->alone = begin(m->plain, &m->alone_model, path, opts);
    for (m->steps = 0; m->session != NULL && m->alone != NULL && m->steps < STEPS; m->steps++)
        step(m);
    if (m->session != NULL)
        check_pages(m, (int)mica_session_about(m->session).tokens);
    mica_session_destroy(m->session);
    mica_session_destroy(m->alone);
    mica_model_close(m->model);
    mica_model_close(m->alone_model);
    free(m);
    scratch_remove(&files);
}

TEST(session_random_lives)
{
    static const mica_dtype types[] = {MICA_Q4_0, MICA_F32, MICA_Q8_0, MICA_F16, MICA_Q5_1};
    mica_context *const contexts[] = {test_context(1), test_context(2), test_context(3)};
    for (uint64_t seed = 0; seed < 15; seed++)
        live(seed, contexts,
             &(small_model){.architecture = seed % 4 == 1 ? "qwen3" : "llama",
                            .weights = types[seed % 5],
                            .width = 64,
                            .heads = 2,
                            .kv_heads = 1,
                            .hidden = 64,
                            .window = seed % 4 == 2 ? 25 : 0,
                            .qk_norm = seed % 4 == 1,
                            .seed = seed},
             (mica_cache_type)(seed % 3));
}
