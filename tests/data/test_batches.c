/* Batches: every sample once an epoch, the same order for the same seed, cursors, parts, normalisation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { N = 103, C = 3, P = 4 };
static float values[N][C][P];
static int32_t labels[N];

static float value_at(int i, int c, int p) { return (float)(i + 100 * c + 1000 * p); }

/* Inputs [N, C, P] of value_at; targets [N], where i is i. */
static mica_dataset make_set(mica_context *ctx)
{
    mica_tensor targets;
    mica_tensor inputs = mica_3d(&values[0][0][0], N, C, P);
    for (int i = 0; i < N; i++) {
        labels[i] = i;
        for (int k = 0; k < C * P; k++)
            values[i][k / P][k % P] = value_at(i, k / P, k % P);
    }
    mica_dataset set;
    CHECK_OK(ctx, mica_tensor_init(ctx, &targets, labels, MICA_I32, 1, (mica_index[]){N}));
    CHECK_OK(ctx, mica_dataset_over(ctx, &set, &inputs, &targets));
    return set;
}

/* The labels of one epoch, in order; -1 between batches. Returns how many entries. */
static int epoch(mica_context *ctx, mica_batches *b, int *out)
{
    static float x[32 * C * P];
    int64_t y[32];
    mica_tensor inputs = mica_2d(x, 32, C * P), targets;
    CHECK_OK(ctx, mica_tensor_init(ctx, &targets, y, MICA_I64, 1, (mica_index[]){32}));
    int used = 0;
    for (;;) {
        mica_index n = -1;
        if (!CHECK_OK(ctx, mica_batches_next(ctx, &inputs, &targets, &n, b)) || n == 0)
            return used;
        for (mica_index i = 0; i < n; i++) {
            out[used++] = (int)y[i];
            for (int k = 0; k < C * P; k++)
                CHECK(x[i * C * P + k] == value_at((int)y[i], k / P, k % P));
        }
        out[used++] = -1;
    }
}

/* Each of 0 to N - 1 at most once; returns how many. */
static int distinct(const int *order, int used)
{
    bool seen[N] = {false};
    int count = 0;
    for (int i = 0; i < used; i++) {
        if (order[i] < 0)
            continue;
        CHECK(!seen[order[i]]);
        seen[order[i]] = true;
        count++;
    }
    return count;
}

TEST(batches_every_sample_once_an_epoch)
{
    mica_context *ctx = test_context(2);
    mica_dataset set = make_set(ctx);
    mica_batches *a, *b;
    int first[2 * N], second[2 * N], again[2 * N];
    CHECK_OK(ctx, mica_batches_create(ctx, &a, &set, &(mica_batches_opts){.batch = 10, .seed = 5}));
    CHECK_OK(ctx, mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.batch = 10, .seed = 5}));
    CHECK(mica_batches_samples(a) == N && mica_batches_count(a) == 11);
    test_heap before = test_heap_now();
    int used = epoch(ctx, a, first);
    CHECK(used == N + 11 && distinct(first, used) == N);
    CHECK(epoch(ctx, a, second) == used && distinct(second, used) == N);
    CHECK(memcmp(first, second, sizeof(int) * (size_t)used) != 0);
    CHECK(epoch(ctx, b, again) == used && memcmp(first, again, sizeof(int) * (size_t)used) == 0);
    CHECK_OK(ctx, mica_batches_seek(ctx, b, (mica_cursor){1, 0}));
    CHECK(epoch(ctx, b, again) == used && memcmp(second, again, sizeof(int) * (size_t)used) == 0);
    if (test_heap_counted())
        CHECK(test_heap_now().calls == before.calls);
    mica_batches_destroy(ctx, a);
    mica_batches_destroy(ctx, b);
    CHECK_OK(ctx, mica_batches_create(ctx, &a, &set, &(mica_batches_opts){.batch = 10, .drop_last = true}));
    CHECK(mica_batches_count(a) == 10 && epoch(ctx, a, first) == 110 && distinct(first, 110) == 100);
    mica_batches_destroy(ctx, a);
    CHECK_OK(ctx, mica_batches_create(ctx, &a, &set, &(mica_batches_opts){.sequential = true}));
    CHECK(epoch(ctx, a, first) == N + 4 && first[0] == 0 && first[31] == 31 && first[33] == 32);
    mica_batches_destroy(ctx, a);
    mica_batches_destroy(ctx, NULL);
}

TEST(batches_cursors_resume_exactly)
{
    mica_context *ctx = test_context(1);
    mica_dataset set = make_set(ctx);
    mica_batches *a, *b;
    float x[8 * C * P], other[8 * C * P];
    mica_tensor tx = mica_4d(x, 8, C, 2, 2), to = mica_4d(other, 8, C, 2, 2);
    const mica_batches_opts opts = {
        .batch = 8, .seed = 77, .split = {.part = MICA_PART_TRAIN, .validation = 0.25}};
    CHECK_OK(ctx, mica_batches_create(ctx, &a, &set, &opts));
    CHECK_OK(ctx, mica_batches_create(ctx, &b, &set, &opts));
    for (int step = 0; step < 40; step++) {
        mica_index n, m;
        mica_cursor cursor = mica_batches_cursor(a); /* saved, and restored in another walk */
        memset(x, 0, sizeof x);
        memset(other, 0, sizeof other);
        CHECK_OK(ctx, mica_batches_next(ctx, &tx, NULL, &n, a));
        CHECK_OK(ctx, mica_batches_seek(ctx, b, cursor));
        CHECK_OK(ctx, mica_batches_next(ctx, &to, NULL, &m, b));
        CHECK(n == m && memcmp(x, other, sizeof x) == 0);
        mica_cursor one = mica_batches_cursor(a), two = mica_batches_cursor(b);
        CHECK(one.epoch == two.epoch && one.position == two.position);
    }
    CHECK(mica_batches_cursor(a).epoch > 2);
    CHECK_ERROR(ctx, mica_batches_seek(ctx, a, (mica_cursor){0, 78}), MICA_ERR_INDEX,
                "index error: batches_seek: position 78 of 77 samples");
    mica_batches_destroy(ctx, a);
    mica_batches_destroy(ctx, b);
}

TEST(batches_parts_are_disjoint_and_complete)
{
    mica_context *ctx = test_context(1);
    mica_dataset set = make_set(ctx);
    int previous[2 * N] = {0};
    for (uint64_t seed = 0; seed < 3; seed++) {
        mica_batches *train, *validation;
        int order[4 * N];
        mica_batches_opts opts = {.split = {.part = MICA_PART_TRAIN, .validation = 0.2, .seed = seed}};
        CHECK_OK(ctx, mica_batches_create(ctx, &train, &set, &opts));
        opts.split.part = MICA_PART_VALIDATION;
        opts.sequential = true;
        CHECK_OK(ctx, mica_batches_create(ctx, &validation, &set, &opts));
        CHECK(mica_batches_samples(train) == 82 && mica_batches_samples(validation) == 21);
        int used = epoch(ctx, validation, order);
        CHECK(memcmp(order, previous, 21 * sizeof(int)) != 0);
        memcpy(previous, order, 21 * sizeof(int));
        for (int i = 1; i < 21; i++)
            CHECK(order[i] > order[i - 1]);
        used += epoch(ctx, train, order + used);
        CHECK(distinct(order, used) == N);
        mica_batches_destroy(ctx, train);
        mica_batches_destroy(ctx, validation);
    }
    mica_batches *all;
    CHECK_OK(ctx, mica_batches_create(ctx, &all, &set,
                                      &(mica_batches_opts){.split = {.part = MICA_PART_VALIDATION}}));
    int none[8];
    CHECK(mica_batches_samples(all) == 0 && epoch(ctx, all, none) == 0);
    mica_batches_destroy(ctx, all);
}

TEST(batches_split_in_three)
{
    mica_context *ctx = test_context(1);
    mica_dataset set = make_set(ctx);
    static const mica_part parts[] = {MICA_PART_TRAIN, MICA_PART_VALIDATION, MICA_PART_TEST};
    static const mica_index sizes[] = {72, 21, 10};
    int order[2 * N], used = 0;
    for (int i = 0; i < 3; i++) {
        mica_batches *b;
        mica_batches_opts opts = {.split = {.part = parts[i], .validation = 0.2, .test = 0.1, .seed = 5}};
        CHECK_OK(ctx, mica_batches_create(ctx, &b, &set, &opts));
        CHECK(mica_batches_samples(b) == sizes[i]);
        used += epoch(ctx, b, order + used);
        mica_batches_destroy(ctx, b);
    }
    CHECK(distinct(order, used) == N);
    mica_batches *b;
    CHECK_ERROR(
        ctx,
        mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.split = {.validation = 0.6, .test = 0.5}}),
        MICA_ERR_ARGUMENT,
        "argument error: batches_create: test is 0.5, expected 0 to 1 with validation 0.6");
}

TEST(batches_normalize)
{
    mica_context *ctx = test_context(1);
    mica_dataset set = make_set(ctx);
    const float mean[C] = {1, 2, 3}, deviation[C] = {2, 4, 8};
    mica_batches *b;
    CHECK_OK(ctx, mica_batches_create(ctx, &b, &set,
                                      &(mica_batches_opts){.batch = 4,
                                                           .sequential = true,
                                                           .scale = 0.5f,
                                                           .mean = mean,
                                                           .deviation = deviation,
                                                           .channels = C}));
    double x[P][4][C];
    mica_tensor t;
    mica_index n;
    /* Into another dtype and layout: [4, C, P] seen in memory of [P, 4, C]. */
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, x, MICA_F64, 3, (mica_index[]){P, 4, C}));
    CHECK_OK(ctx, mica_view_permute(ctx, &t, &t, (int[]){1, 2, 0}));
    CHECK_OK(ctx, mica_batches_next(ctx, &t, NULL, &n, b));
    for (int i = 0; i < 4; i++)
        for (int c = 0; c < C; c++)
            for (int p = 0; p < P; p++) {
                double want = ((double)values[i][c][p] * 0.5 - (double)mean[c]) / (double)deviation[c];
                CHECK(fabs(x[p][i][c] - want) <= 1e-6 * fabs(want) + 1e-6);
            }
    mica_batches_destroy(ctx, b);
    uint8_t bytes[4] = {0, 51, 255, 102};
    float y[4];
    CHECK_OK(ctx, mica_tensor_init(ctx, &t, bytes, MICA_U8, 1, (mica_index[]){4}));
    CHECK_OK(ctx, mica_dataset_over(ctx, &set, &t, NULL));
    CHECK_OK(ctx,
             mica_batches_create(ctx, &b, &set,
                                 &(mica_batches_opts){.batch = 4, .sequential = true, .scale = 1 / 255.f}));
    mica_tensor out = mica_1d(y, 4);
    CHECK_OK(ctx, mica_batches_next(ctx, &out, NULL, &n, b));
    CHECK(y[0] == 0 && y[2] == 1 && fabsf(y[1] - 0.2f) < 1e-7f);
    mica_batches_destroy(ctx, b);
}

/* Large rows and many of them: more than a chunk, more than a block, the same bits for any number of threads. */
TEST(batches_same_bits_for_any_number_of_threads)
{
    enum { ROWS = 50, ROW = 2500 };
    uint8_t *data = malloc(ROWS * ROW);
    float *x = malloc(sizeof(float) * ROWS * ROW), *first = malloc(sizeof(float) * ROWS * ROW);
    for (int i = 0; i < ROWS * ROW; i++)
        data[i] = (uint8_t)(i * 7 + i / 256);
    for (int threads = 1; threads <= 3; threads++) {
        mica_context *ctx = test_context(threads);
        mica_tensor t, out = mica_2d(x, ROWS, ROW);
        mica_dataset set;
        mica_batches *b;
        mica_index n = 0;
        CHECK_OK(ctx, mica_tensor_init(ctx, &t, data, MICA_U8, 3, (mica_index[]){ROWS, 50, 50}));
        CHECK_OK(ctx, mica_view_transpose(ctx, &t, &t, 1, 2));
        CHECK_OK(ctx, mica_dataset_over(ctx, &set, &t, NULL));
        CHECK_OK(ctx, mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.batch = ROWS, .scale = 0.3f}));
        CHECK_OK(ctx, mica_batches_next(ctx, &out, NULL, &n, b));
        CHECK(n == ROWS);
        if (threads == 1)
            memcpy(first, x, sizeof(float) * ROWS * ROW);
        CHECK(memcmp(first, x, sizeof(float) * ROWS * ROW) == 0);
        mica_batches_destroy(ctx, b);
    }
    free(data);
    free(x);
    free(first);
}

TEST(batches_refuse_what_does_not_fit)
{
    mica_context *ctx = test_context(1);
    mica_dataset set = make_set(ctx), bad;
    mica_batches *b = NULL;
    float x[12 * 8], y[8];
    mica_index n;
    mica_tensor inputs = mica_2d(x, 8, 12), targets = mica_1d(y, 8), few = mica_2d(x, 7, 12),
                narrow = mica_2d(x, 8, 11), own = mica_3d(&values[0][0][0], N, C, P);
    CHECK_ERROR(
        ctx, mica_dataset_over(ctx, &bad, &inputs, &few), MICA_ERR_SHAPE,
        "shape error: dataset: inputs are [8, 12], targets are [7, 12]: expected the same number of samples");
    CHECK_OK(ctx, mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.batch = 8}));
    CHECK_ERROR(
        ctx, mica_batches_next(ctx, &few, NULL, &n, b), MICA_ERR_SHAPE,
        "shape error: batches_next: inputs are [7, 12], expected at least 8 rows for samples of [103, 3, 4] without axis 0");
    CHECK(mica_batches_next(ctx, &narrow, NULL, &n, b) == MICA_ERR_SHAPE);
    CHECK(mica_batches_next(ctx, &inputs, &narrow, &n, b) == MICA_ERR_ALIAS);
    CHECK(mica_batches_next(ctx, &own, NULL, &n, b) == MICA_ERR_ALIAS);
    CHECK(mica_batches_next(ctx, NULL, NULL, &n, b) == MICA_ERR_ARGUMENT);
    CHECK(mica_batches_cursor(b).position == 0);
    CHECK_OK(ctx, mica_batches_next(ctx, &inputs, &targets, &n, b));
    mica_batches_destroy(ctx, b);
    CHECK(mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.batch = -1}) == MICA_ERR_ARGUMENT);
    CHECK(mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.split = {.validation = 1.5}}) ==
          MICA_ERR_ARGUMENT);
    CHECK(mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.split = {.validation = (double)NAN}}) ==
          MICA_ERR_ARGUMENT);
    CHECK(mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.channels = 4}) == MICA_ERR_SHAPE);
    CHECK(mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.deviation = (float[]){0}}) ==
          MICA_ERR_ARGUMENT);
    CHECK(mica_batches_create(ctx, &b, NULL, NULL) == MICA_ERR_ARGUMENT && b == NULL);
}

TEST(batches_folds_are_disjoint_and_complete)
{
    enum { FOLDS = 5 };
    mica_context *ctx = test_context(1);
    mica_dataset set = make_set(ctx);
    int held_back[2 * N], used = 0;
    for (int fold = 0; fold < FOLDS; fold++) {
        mica_batches *b;
        int order[4 * N];
        mica_batches_opts opts = {
            .split = {.part = MICA_PART_VALIDATION, .test = 0.1, .seed = 3, .folds = FOLDS, .fold = fold}};
        CHECK_OK(ctx, mica_batches_create(ctx, &b, &set, &opts));
        CHECK(mica_batches_samples(b) == (fold < 3 ? 19 : 18)); /* 93 are not for tests */
        int validation = epoch(ctx, b, order);
        memcpy(held_back + used, order, (size_t)validation * sizeof order[0]);
        used += validation;
        mica_batches_destroy(ctx, b);
        opts.split.part = MICA_PART_TRAIN;
        CHECK_OK(ctx, mica_batches_create(ctx, &b, &set, &opts));
        validation += epoch(ctx, b, order + validation);
        CHECK(distinct(order, validation) == 93);
        mica_batches_destroy(ctx, b);
    }
    CHECK(distinct(held_back, used) == 93);
    mica_batches *b;
    CHECK_ERROR(ctx, mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.split = {.folds = 104}}),
                MICA_ERR_ARGUMENT, "argument error: batches_create: folds is 104, but there are 103 samples");
    CHECK_ERROR(
        ctx, mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.split = {.folds = 103, .test = 0.5}}),
        MICA_ERR_ARGUMENT, "argument error: batches_create: folds is 103, but there are 51 samples");
    CHECK(mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.split = {.folds = 2, .fold = 2}}) ==
          MICA_ERR_ARGUMENT);
}

TEST(batches_parts_in_order_leave_gaps)
{
    mica_context *ctx = test_context(1);
    mica_dataset set = make_set(ctx);
    static const struct {
        mica_part part;
        int from, to;
    } wanted[] = {{MICA_PART_TRAIN, 0, 72}, {MICA_PART_VALIDATION, 76, 93}, {MICA_PART_TEST, 97, 103}};
    for (int i = 0; i < 3; i++) {
        mica_batches *b;
        int order[2 * N];
        mica_batches_opts opts = {
            .sequential = true,
            .split = {.part = wanted[i].part, .validation = 0.2, .test = 0.1, .in_order = true, .gap = 4}};
        CHECK_OK(ctx, mica_batches_create(ctx, &b, &set, &opts));
        CHECK(mica_batches_samples(b) == wanted[i].to - wanted[i].from);
        int used = epoch(ctx, b, order), next = wanted[i].from;
        for (int k = 0; k < used; k++)
            CHECK(order[k] < 0 || order[k] == next++);
        CHECK(next == wanted[i].to);
        mica_batches_destroy(ctx, b);
    }
}

/* 103 samples, a fifth for validation and a tenth for test: 21 and 10. */
TEST(batches_parts_in_order_have_samples)
{
    mica_context *ctx = test_context(1);
    mica_dataset set = make_set(ctx);
    static const struct {
        mica_index gap, train, validation, test;
    } cases[] = {{5, 72, 16, 5},   {6, 66, 15, 10}, {11, 50, 21, 10},
                 {20, 32, 21, 10}, {30, 42, 0, 10}, {42, 72, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const mica_part parts[] = {MICA_PART_TRAIN, MICA_PART_VALIDATION, MICA_PART_TEST};
        const mica_index wanted[] = {cases[i].train, cases[i].validation, cases[i].test};
        for (int k = 0; k < 3; k++) {
            mica_data_split split = {
                .part = parts[k], .validation = 0.2, .test = 0.1, .in_order = true, .gap = cases[i].gap};
            mica_batches *b;
            if (!CHECK_OK(ctx, mica_batches_create(ctx, &b, &set, &(mica_batches_opts){.split = split})))
                continue;
            CHECK_MSG(mica_batches_samples(b) == wanted[k], "gap %td, part %d: %td", cases[i].gap,
                      (int)parts[k], mica_batches_samples(b));
            mica_batches_destroy(ctx, b);
        }
    }
}

/* The sum of a sample, its first element, and two numbers drawn. */
static void summarize(const void *user, float *out, const float *row, mica_random random)
{
    const float *factor = user;
    out[0] = 0;
    for (int k = 0; k < C * P; k++)
        out[0] += *factor * row[k];
    out[1] = row[0];
    out[2] = mica_random_uniform(&random);
    out[3] = mica_random_uniform(&random);
}

TEST(batches_go_through_a_transform)
{
    static const float factor = 2;
    float first[N][4], x[N * 4];
    for (int threads = 1; threads <= 3; threads++) {
        mica_context *ctx = test_context(threads);
        mica_dataset set = make_set(ctx);
        mica_batches *b;
        mica_tensor inputs = mica_2d(x, N, 4);
        mica_batches_opts opts = {.batch = N,
                                  .seed = 9,
                                  .transform = {.run = summarize, .user = &factor, .elements = 4},
                                  .scale = 3};
        CHECK_OK(ctx, mica_batches_create(ctx, &b, &set, &opts));
        float drawn[2][N];
        for (int round = 0; round < 2; round++) {
            mica_index n = 0;
            CHECK_OK(ctx, mica_batches_next(ctx, &inputs, NULL, &n, b));
            CHECK(n == N);
            for (int i = 0; i < N; i++) {
                int sample = (int)(x[4 * i + 1] / 3);
                float sum = 0;
                for (int k = 0; k < C * P; k++)
                    sum += factor * value_at(sample, k / P, k % P);
                CHECK(x[4 * i] == sum * 3);
                drawn[round][sample] = x[4 * i + 2];
                if (round == 0 && threads == 1)
                    memcpy(first[sample], x + 4 * i, sizeof first[0]);
                if (round == 0)
                    CHECK(memcmp(first[sample], x + 4 * i, sizeof first[0]) == 0);
            }
            CHECK_OK(ctx, mica_batches_next(ctx, &inputs, NULL, &n, b));
            CHECK(n == 0);
        }
        int same = 0;
        for (int i = 0; i < N; i++)
            same += drawn[0][i] == drawn[1][i] || (i > 0 && drawn[0][i] == drawn[0][i - 1]);
        CHECK(same == 0); /* every sample draws its own, and others in the next epoch */
        mica_tensor narrow = mica_2d(x, N, 3);
        mica_index n;
        CHECK_ERROR(ctx, mica_batches_next(ctx, &narrow, NULL, &n, b), MICA_ERR_SHAPE,
                    "shape error: batches_next: inputs are [103, 3], expected at least 103 rows for what "
                    "the transform makes of [103, 3, 4]");
        mica_batches_destroy(ctx, b);
        opts.transform.takes = 7;
        CHECK_ERROR(
            ctx, mica_batches_create(ctx, &b, &set, &opts), MICA_ERR_SHAPE,
            "shape error: batches_create: the transform takes 7 elements, inputs are [103, 3, 4]: 12 each");
        /* Samples of nothing, which stay nothing */
        mica_tensor none = mica_2d(x, 5, 0);
        mica_dataset empty;
        opts.transform = (mica_transform){.run = summarize};
        CHECK_OK(ctx, mica_dataset_over(ctx, &empty, &none, NULL));
        CHECK_OK(ctx, mica_batches_create(ctx, &b, &empty, &opts));
        mica_tensor nothing = mica_2d(x, N, 0);
        CHECK_OK(ctx, mica_batches_next(ctx, &nothing, NULL, &n, b));
        CHECK(n == 5);
        mica_batches_destroy(ctx, b);
    }
}
