/* Every operation in every way: what op_case.h promises. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/list.h"
#include "ops/op_memory.h"

static uint64_t hash(const char *text)
{
    uint64_t h = 14695981039346656037u;
    for (; *text != '\0'; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

/* The next case after `op` (the first for NULL) that $MICA_OP lets through. */
static const op_case *next_case(const op_case *op)
{
    const char *only = getenv("MICA_OP");
    op = op == NULL ? op_cases() : op->next;
    while (op != NULL && only != NULL && *only != '\0' && strcmp(op->name, only) != 0)
        op = op->next;
    return op;
}

/* Call number n of a case: the same every time. */
static op_call draw(const op_case *op, int n, bool large, test_random *r)
{
    *r = test_seed(hash(op->name) + (uint64_t)n * 1000003u + (large ? 7u : 0u));
    op_call c = {.op = op, .large = large, .scale = 1.0};
    op->draw(&c, r);
    return c;
}

static mica_context *context(int threads)
{
    mica_context *ctx = test_context(threads);
    CHECK_OK(ctx, mica_workspace_reserve(ctx, (size_t)64 << 20));
    return ctx;
}

/* The worst error of the outputs, as a multiple of what is allowed. */
static double worst_error(const op_call *c, const op_memory *m, int *tensor, size_t *element)
{
    double worst = 0.0;
    for (int k = 0; k < c->op->outs; k++) {
        if (c->absent[k])
            continue;
        size_t count = op_count(c, k);
        double *got = malloc((count + 1) * sizeof *got);
        op_read(&c->tensor[k], got);
        for (size_t i = 0; i < count; i++) {
            double want = m->value[k][i], allowed = c->op->tolerance * fmax(fabs(want), c->scale);
            double error = got[i] == want || (isnan(got[i]) && isnan(want)) ? 0.0
                                                                            : fabs(got[i] - want) / allowed;
            /* Beyond what f32 can hold, infinity is right. */
            if (isinf(got[i]) && fabs(want) > 3.4028235e38 && (got[i] > 0) == (want > 0))
                error = 0.0;
            if (isnan(error))
                error = INFINITY;
            if (error > worst) {
                worst = error;
                *tensor = k;
                *element = i;
            }
        }
        free(got);
    }
    return worst;
}

static void check_result(const op_call *c, const op_memory *m, int n, const char *how)
{
    int tensor = 0;
    size_t element = 0;
    while (c->absent[tensor])
        tensor++;
    double worst = worst_error(c, m, &tensor, &element);
    char shape[200];
    mica_tensor_print_shape(shape, sizeof shape, &c->tensor[tensor]);
    CHECK_MSG(worst <= 1.0,
              "%s: call %d (%s): element %zu of %s %s is %.3g times the allowed error off (wanted %.9g)",
              c->op->name, n, how, element, c->op->names[tensor], shape, worst,
              m->value[tensor] != NULL ? m->value[tensor][element] : 0.0);
}

TEST(ops_match_their_reference)
{
    mica_context *ctx = context(1);
    for (const op_case *op = next_case(NULL); op != NULL; op = next_case(op)) {
        for (int n = 0; n < test_effort(op->draws > 0 ? op->draws : 200); n++) {
            test_random r;
            op_call c = draw(op, n, false, &r);
            op_memory m;
            op_place(&m, &c, &r, false);
            op_keep(&m);
            op->reference(&c, m.value);
            test_heap heap = test_heap_now();
            mica_status status = op->run(ctx, &c);
            CHECK_MSG(test_heap_now().calls == heap.calls, "%s: call %d made heap calls", op->name, n);
            if (CHECK_MSG(status == MICA_OK, "%s: call %d: %s", op->name, n, mica_error(ctx)))
                check_result(&c, &m, n, "any layout");
            CHECK_MSG(op_unchanged(&m, &c, true), "%s: call %d wrote outside its outputs", op->name, n);
            op_free(&m);
        }
    }
}

/* Whether input k can be laid exactly over output 0. */
static bool fits_output(const op_call *c, int k)
{
    return c->tensor[k].dtype == c->tensor[0].dtype && mica_tensor_same_shape(&c->tensor[k], &c->tensor[0]);
}

/* Lays input k over output 0 from the first element on. */
static void check_alias(mica_context *ctx, op_call c, op_memory *m, int k, int n)
{
    const op_case *op = c.op;
    void *data = c.tensor[0].data;
    c.tensor[k].data = data;
    bool exact = fits_output(&c, k);
    if (exact)
        op_write(&c.tensor[k], m->value[k]);
    op_keep(m);
    mica_status status = op->run(ctx, &c);
    if (exact && (op->in_place & OP_BIT(k))) {
        if (CHECK_MSG(status == MICA_OK, "%s: call %d in place of %s: %s", op->name, n, op->names[k],
                      mica_error(ctx)))
            check_result(&c, m, n, "in place");
        return;
    }
    CHECK_MSG(status == MICA_ERR_ALIAS, "%s: call %d: %s over %s gives \"%s\", not an alias error", op->name,
              n, op->names[0], op->names[k], mica_status_text(status));
    CHECK_MSG(op_unchanged(m, &c, false), "%s: call %d: written in spite of an alias error", op->name, n);
}

TEST(ops_alias_as_documented)
{
    mica_context *ctx = context(1);
    for (const op_case *op = next_case(NULL); op != NULL; op = next_case(op)) {
        for (int n = 0; n < test_effort(40); n++) {
            for (int k = op->outs; k < op->outs + op->ins; k++) {
                test_random r;
                op_call c = draw(op, n, false, &r);
                if (c.absent[k] || c.absent[0] || op_count(&c, k) == 0 || op_count(&c, 0) == 0 ||
                    mica_tensor_bytes(&c.tensor[k]) > mica_tensor_bytes(&c.tensor[0]))
                    continue;
                op_memory m;
                op_place(&m, &c, &r, true);
                op->reference(&c, m.value);
                check_alias(ctx, c, &m, k, n);
                op_free(&m);
            }
        }
    }
}

/* The call must fail, name the operation and the argument, and change nothing. */
static void check_refused(mica_context *ctx, const op_call *c, const op_memory *m, int k, mica_status want,
                          int shapes, const char *what)
{
    const op_case *op = c->op;
    mica_status status = op->run(ctx, c);
    if (!CHECK_MSG(status != MICA_OK && (want == MICA_OK || status == want), "%s: %s with %s gives \"%s\"",
                   op->name, op->names[k], what, mica_status_text(status)))
        return;
    const char *text = mica_error(ctx);
    CHECK_MSG(strstr(text, op->name) != NULL, "%s: %s with %s: no operation in \"%s\"", op->name,
              op->names[k], what, text);
    bool names = false;
    for (int j = 0; j < op->outs + op->ins; j++)
        names = names || strstr(text, op->names[j]) != NULL;
    CHECK_MSG(names, "%s: %s with %s: no argument in \"%s\"", op->name, op->names[k], what, text);
    int brackets = 0;
    for (const char *s = text; *s != '\0'; s++)
        brackets += *s == '[';
    CHECK_MSG(brackets >= shapes, "%s: %s with %s: %d shapes wanted in \"%s\"", op->name, op->names[k], what,
              shapes, text);
    CHECK_MSG(op_unchanged(m, c, false), "%s: %s with %s: something was written", op->name, op->names[k],
              what);
}

static void check_bad_tensor(mica_context *ctx, const op_call *good, op_memory *m, int k)
{
    const op_case *op = good->op;
    op_call c = *good;
    if (!(op->optional & OP_BIT(k))) {
        c.absent[k] = true;
        check_refused(ctx, &c, m, k, MICA_ERR_ARGUMENT, 0, "no tensor");
        c = *good;
    }
    if (op_count(good, k) > 0) {
        c.tensor[k].data = NULL;
        check_refused(ctx, &c, m, k, MICA_ERR_ARGUMENT, 1, "no data");
        c = *good;
    }
    if (!(op->any_dtype & OP_BIT(k))) {
        c.tensor[k].dtype = MICA_I16;
        check_refused(ctx, &c, m, k, MICA_ERR_DTYPE, 1, "dtype i16");
        c = *good;
    }
    c.tensor[k].rank = 9;
    check_refused(ctx, &c, m, k, MICA_OK, 0, "rank 9");
    c = *good;
    if (c.tensor[k].rank > 0) {
        c.tensor[k].dim[0] = -3;
        check_refused(ctx, &c, m, k, MICA_OK, 0, "a negative size");
        c = *good;
    }
    for (int axis = 0; axis < c.tensor[k].rank; axis++) {
        mica_index dims[MICA_MAX_RANK];
        memcpy(dims, c.tensor[k].dim, sizeof dims);
        dims[axis] += 97; /* which nothing broadcasts to by chance */
        op_tensor(&c, k, c.tensor[k].dtype, c.tensor[k].rank, dims);
        c.tensor[k].data = calloc(op_count(&c, k) + 1, mica_dtype_bytes(c.tensor[k].dtype));
        bool accepted = (op->any_shape & OP_BIT(k)) && op->run(ctx, &c) == MICA_OK;
        if (accepted)
            op_keep(m);
        else
            check_refused(ctx, &c, m, k, MICA_ERR_SHAPE, 2, "a size larger");
        free(c.tensor[k].data);
        c = *good;
    }
}

/* A tensor of whole blocks, of any type: refused for its dtype, not read as something else. */
static void check_blocks(mica_context *ctx, const op_call *good, const op_memory *m, int k)
{
    static uint8_t blocks[320], before[320];
    for (mica_dtype d = 0; d < MICA_DTYPE_COUNT; d++) {
        if (mica_dtype_block(d) == 1)
            continue;
        op_call c = *good;
        mica_tensor *t = &c.tensor[k];
        int rank = t->rank > 0 ? t->rank : 1;
        mica_index dims[MICA_MAX_RANK];
        for (int axis = 0; axis < rank; axis++)
            dims[axis] = axis == rank - 1 ? MICA_MAX_BLOCK : 1;
        op_tensor(&c, k, d, rank, dims);
        t->data = blocks;
        CHECK(mica_tensor_bytes(t) <= sizeof blocks);
        memset(blocks, 0x3c, sizeof blocks);
        memcpy(before, blocks, sizeof blocks);
        check_refused(ctx, &c, m, k, MICA_ERR_DTYPE, 1, mica_dtype_name(d));
        CHECK_MSG(memcmp(blocks, before, sizeof blocks) == 0, "%s: %s of %s was written", c.op->name,
                  c.op->names[k], mica_dtype_name(d));
    }
}

TEST(ops_refuse_blocks)
{
    mica_context *ctx = context(1);
    for (const op_case *op = next_case(NULL); op != NULL; op = next_case(op)) {
        for (int n = 0; n < 3; n++) {
            test_random r;
            op_call c = draw(op, n, false, &r);
            op_memory m;
            op_place(&m, &c, &r, true);
            op_keep(&m);
            for (int k = 0; k < op->outs + op->ins; k++)
                if (!c.absent[k] && !(op->blocks & OP_BIT(k)))
                    check_blocks(ctx, &c, &m, k);
            op_free(&m);
        }
    }
}

TEST(ops_refuse_wrong_arguments)
{
    mica_context *ctx = context(1);
    for (const op_case *op = next_case(NULL); op != NULL; op = next_case(op)) {
        for (int n = 0; n < test_effort(25); n++) {
            test_random r;
            op_call c = draw(op, n, false, &r);
            op_memory m;
            op_place(&m, &c, &r, true);
            op_keep(&m);
            for (int k = 0; k < op->outs + op->ins; k++)
                if (!c.absent[k])
                    check_bad_tensor(ctx, &c, &m, k);
            for (long axis = -99; op->axis_option > 0 && axis <= 99; axis += 198) {
                op_call bad = c;
                bad.i[op->axis_option - 1] = axis;
                check_refused(ctx, &bad, &m, 0, MICA_ERR_AXIS, 1, "an axis out of range");
            }
            op_free(&m);
        }
    }
}

/* A call with exactly `bytes` of workspace, in memory that ends with them (which the address sanitizer guards). */
static void check_workspace(mica_context *ctx, const op_call *c, op_memory *m, int n, size_t bytes)
{
    enum { GUARD = 64 };
    const op_case *op = c->op;
    unsigned char *block = aligned_alloc(64, (bytes + 63) / 64 * 64 + GUARD);
    op_keep(m);
    if (bytes > 0) {
        CHECK_OK(ctx, mica_workspace_give(ctx, block, bytes - 1));
        CHECK_MSG(op->run(ctx, c) == MICA_ERR_WORKSPACE, "%s: call %d ran with a byte too few", op->name, n);
        CHECK_MSG(op_unchanged(m, c, false), "%s: call %d wrote without a workspace", op->name, n);
    }
    CHECK_OK(ctx, mica_workspace_give(ctx, block, bytes));
    memset(block + bytes, 0x5a, GUARD);
    CHECK_MSG(op->run(ctx, c) == MICA_OK, "%s: call %d with %zu bytes: %s", op->name, n, bytes,
              mica_error(ctx));
    for (size_t i = bytes; i < bytes + GUARD; i++)
        if (!CHECK_MSG(block[i] == 0x5a, "%s: call %d wrote beyond its scratch", op->name, n))
            break;
    CHECK_OK(ctx, mica_workspace_give(ctx, NULL, 0));
    free(block);
}

TEST(ops_measure_what_they_take)
{
    for (int threads = 1; threads <= 3; threads += 2) {
        mica_context *ctx = test_context(threads);
        for (const op_case *op = next_case(NULL); op != NULL; op = next_case(op)) {
            for (int n = 0; n < test_effort(12); n++) {
                test_random r;
                op_call c = draw(op, n, n % 4 == 3, &r);
                op_call bare = c; /* shapes without memory */
                mica_measure_begin(ctx);
                CHECK_MSG(op->run(ctx, &bare) == MICA_OK, "%s: measuring call %d: %s", op->name, n,
                          mica_error(ctx));
                size_t bytes = mica_measure_end(ctx);
                if (!CHECK_MSG(bytes <= (size_t)64 << 20, "%s: call %d wants %zu bytes", op->name, n, bytes))
                    continue;
                op_memory m;
                op_place(&m, &c, &r, true);
                check_workspace(ctx, &c, &m, n, bytes);
                op_free(&m);
            }
        }
    }
}

TEST(ops_same_bits_for_any_number_of_threads)
{
    mica_context *one = context(1), *others[] = {context(2), context(3)};
    for (const op_case *op = next_case(NULL); op != NULL; op = next_case(op)) {
        for (int n = 0; n < test_effort(6); n++) {
            test_random r;
            op_call c = draw(op, n, n < 4, &r);
            op_memory m;
            op_place(&m, &c, &r, n % 2 == 0);
            size_t size[OP_TENSORS] = {0};
            unsigned char *start[OP_TENSORS] = {0}, *first[OP_TENSORS] = {0};
            for (int k = 0; k < op->outs; k++) {
                size[k] = m.of[k].size;
                start[k] = malloc(size[k] + 1);
                first[k] = malloc(size[k] + 1);
                if (size[k] > 0)
                    memcpy(start[k], m.of[k].bytes, size[k]);
            }
            CHECK_MSG(op->run(one, &c) == MICA_OK, "%s: call %d: %s", op->name, n, mica_error(one));
            for (int k = 0; k < op->outs; k++)
                if (size[k] > 0)
                    memcpy(first[k], m.of[k].bytes, size[k]);
            for (int t = 0; t < 2; t++) {
                for (int k = 0; k < op->outs; k++)
                    if (size[k] > 0)
                        memcpy(m.of[k].bytes, start[k], size[k]);
                test_heap heap = test_heap_now();
                CHECK_MSG(op->run(others[t], &c) == MICA_OK, "%s: call %d: %s", op->name, n,
                          mica_error(others[t]));
                CHECK_MSG(test_heap_now().calls == heap.calls, "%s: call %d, %d threads: heap calls",
                          op->name, n, t + 2);
                for (int k = 0; k < op->outs; k++)
                    CHECK_MSG(size[k] == 0 || memcmp(first[k], m.of[k].bytes, size[k]) == 0,
                              "%s: call %d: %s differs between 1 and %d threads", op->name, n, op->names[k],
                              t + 2);
            }
            for (int k = 0; k < op->outs; k++) {
                free(start[k]);
                free(first[k]);
            }
            op_free(&m);
        }
    }
}

TEST(ops_all_have_a_case)
{
    static const char *const names[] = {
#define OP_NAME(name, family) #name,
        MICA_OPS(OP_NAME)
#undef OP_NAME
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool found = strcmp(mica_op_find(names[i])->family, "composed") == 0; /* no function to call */
        for (const op_case *op = op_cases(); op != NULL; op = op->next)
            found = found || strcmp(op->name, names[i]) == 0;
        CHECK_MSG(found, "mica_%s has no case in tests/ops", names[i]);
    }
}
