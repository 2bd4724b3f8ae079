/* Scratch as a contract: what a smaller call needs is never more than what was planned for the large one, nor is what
 * fewer threads need; and it grows slowly with threads. Calls are only measured: there is no data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op_case.h"

enum { MOST_THREADS = 8, MOST_ISAS = 4 };

/* A context for each instruction set that runs here and each number of threads. */
typedef struct crews {
    mica_context *of[MOST_ISAS][MOST_THREADS];
    int isas, threads;
} crews;

static crews make_crews(void)
{
    static const char *const names[MOST_ISAS] = {"scalar", "avx2", "avx512", "neon"};
    crews all = {.threads = MOST_THREADS};
#if defined(MICA_NO_THREADS)
    all.threads = 1;
#endif
    for (int i = 0; i < MOST_ISAS; i++) {
        mica_context **of = all.of[all.isas];
        bool runs = true;
        for (int t = 0; t < all.threads && runs; t++)
            runs = mica_context_create(&of[t], &(mica_context_opts){.threads = t + 1, .isa = names[i]}) ==
                   MICA_OK;
        all.isas += runs ? 1 : 0;
    }
    return all;
}

static void end_crews(crews *all)
{
    for (int i = 0; i < all->isas; i++)
        for (int t = 0; t < all->threads; t++)
            mica_context_destroy(all->of[i][t]);
}

/* Measures a call; false where it is refused. */
static bool measure(mica_context *ctx, const op_call *c, size_t *bytes)
{
    mica_measure_begin(ctx);
    mica_status status = c->op->run(ctx, c);
    *bytes = mica_measure_end(ctx);
    return status == MICA_OK;
}

/* ---- Smaller and larger calls ---- */

/* One size, wherever it stands, changes: axes of the same size are mostly the same axis. The operation says whether
 * the call is one. */
static void resize_any(op_call *c, test_random *r, bool larger)
{
    int all = c->op->outs + c->op->ins, k = test_int(r, 0, all - 1);
    if (c->absent[k] || c->tensor[k].rank == 0)
        return;
    mica_index size = c->tensor[k].dim[test_int(r, 0, c->tensor[k].rank - 1)];
    if (size < 1 || size > 1000000)
        return;
    mica_index other = test_chance(r, 20) ? size - 1 : test_int(r, test_chance(r, 10) ? 0 : 1, (int)size);
    if (larger)
        other = size * test_int(r, 1, 30) + test_int(r, 0, 5);
    for (k = 0; k < all; k++) {
        mica_index dims[MICA_MAX_RANK];
        for (int i = 0; i < c->tensor[k].rank; i++)
            dims[i] = c->tensor[k].dim[i] == size ? other : c->tensor[k].dim[i];
        if (!c->absent[k])
            op_tensor(c, k, c->tensor[k].dtype, c->tensor[k].rank, dims);
    }
}

static bool resize(mica_context *ctx, op_call *c, test_random *r, bool larger)
{
    size_t bytes;
    for (int attempt = 0; attempt < 20; attempt++) {
        op_call other = *c;
        (c->op->resize != NULL ? c->op->resize : resize_any)(&other, r, larger);
        bool same = true;
        for (int k = 0; k < c->op->outs + c->op->ins; k++)
            same = same && (c->absent[k] || mica_tensor_same_shape(&other.tensor[k], &c->tensor[k]));
        if (!same && measure(ctx, &other, &bytes)) {
            *c = other;
            return true;
        }
    }
    return false;
}

/* The shapes of a call, for messages. */
static const char *shapes(char *text, size_t size, const op_call *c)
{
    size_t length = 0;
    text[0] = '\0';
    for (int k = 0; k < c->op->outs + c->op->ins && length < size; k++) {
        char shape[120];
        if (c->absent[k])
            continue;
        mica_tensor_print_shape(shape, sizeof shape, &c->tensor[k]);
        int n = snprintf(text + length, size - length, "%s%s %s", k > 0 ? ", " : "", c->op->names[k], shape);
        length += n > 0 ? (size_t)n : 0;
    }
    return text;
}

/* Compares a call with a smaller one, and with itself by one thread less; *most is raised to what it takes. */
static bool compare(const crews *all, const op_call *large, const op_call *less, int number, size_t *most)
{
    bool good = true;
    for (int i = 0; i < all->isas; i++) {
        size_t fewer = 0;
        for (int t = 0; t < all->threads && good; t++) {
            size_t planned = 0, needed = 0;
            char a[600], b[600];
            good = CHECK(measure(all->of[i][t], large, &planned)) &&
                   CHECK(measure(all->of[i][t], less, &needed)) &&
                   CHECK_MSG(needed <= planned,
                             "%s: call %d, %s, %d threads: %zu bytes for %s, but %zu for %s", large->op->name,
                             number, mica_context_isa(all->of[i][t]), t + 1, planned,
                             shapes(a, sizeof a, large), needed, shapes(b, sizeof b, less)) &&
                   CHECK_MSG(fewer <= planned,
                             "%s: call %d, %s: %zu bytes for %d threads, but %zu for one less",
                             large->op->name, number, mica_context_isa(all->of[i][t]), planned, t + 1, fewer);
            fewer = planned;
            *most = planned > *most ? planned : *most;
        }
    }
    return good;
}

/* Draws calls of an operation, and smaller ones for each, until one is wrong; the number compared. Those that take no
 * scratch are not tried for long. */
static int compare_case(const crews *all, const op_case *op)
{
    int compared = 0;
    size_t most = 0;
    bool good = true;
    mica_context *ctx = all->of[0][0];
    for (int n = 0; good && n < test_effort(most > 0 ? 400 : 40); n++) {
        test_random r = test_seed((uint64_t)n * 7919u + 17u);
        op_call c = {.op = op, .large = n % 2 == 0, .scale = 1.0};
        op->draw(&c, &r);
        for (int k = 0; k < n % 4; k++)
            resize(ctx, &c, &r, true);
        for (int k = 0; good && k < 4; k++) {
            op_call less = c;
            if (!resize(ctx, &less, &r, false))
                continue;
            if (k > 1) /* several sizes */
                resize(ctx, &less, &r, false);
            good = compare(all, &c, &less, n, &most);
            compared++;
        }
    }
    return compared;
}

TEST(ops_need_no_more_scratch_for_smaller_sizes)
{
    crews all = make_crews();
    const char *only = getenv("MICA_OP");
    for (const op_case *op = op_cases(); op != NULL; op = op->next) {
        if (only != NULL && *only != '\0' && strcmp(op->name, only) != 0)
            continue;
        size_t alone = 0;
        int compared = compare_case(&all, op);
        test_random r = test_seed(1);
        op_call c = {.op = op, .large = true, .scale = 1.0};
        op->draw(&c, &r);
        CHECK(measure(all.of[0][0], &c, &alone));
        CHECK_MSG(compared > 0 || alone == 0, "%s: takes scratch, and no smaller call was found", op->name);
    }
    end_crews(&all);
}
