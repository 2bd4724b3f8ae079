/* Recurrent operations over prepared weights: against a model in double precision, and the same bits for one direction
 * and two, for any number of threads, for a sequence alone and among others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/recurrent.h"
#include "test.h"

typedef struct sizes {
    mica_cell cell;
    mica_index steps, batch, inputs, hidden;
    bool time_first, relu, biases, joined; /* joined: rows of y are two directions side by side */
} sizes;

/* One direction: all arrays are [..] as in ops/recurrent.h. */
typedef struct direction {
    float *w_ih, *w_hh, *b_ih, *b_hh, *h_0, *c_0, *prepared;
    bool starts, reverse, wants_y;
} direction;

typedef struct result {
    float *y, *h_n, *c_n; /* y [T, N, H] or [N, T, H] */
} result;

static mica_index gates_of(const sizes *s)
{
    static const mica_index blocks[] = {4, 3, 1};
    return blocks[s->cell] * s->hidden;
}

static float *floats(test_random *r, mica_index count, double scale)
{
    float *p = malloc((size_t)(count + 1) * sizeof *p);
    for (mica_index i = 0; i < count; i++)
        p[i] = (float)(scale * test_normal(r));
    return p;
}

/* ---- The model ---- */

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

static double affine(const float *w, const float *b, bool biased, mica_index row, mica_index n,
                     const double *x)
{
    double sum = biased ? (double)b[row] : 0.0;
    for (mica_index i = 0; i < n; i++)
        sum += (double)w[row * n + i] * x[i];
    return sum;
}

static double unit(const sizes *s, const direction *d, mica_index k, const double *x, const double *before,
                   double *c)
{
    double in[4] = {0}, from[4] = {0};
    for (mica_index g = 0; g < gates_of(s) / s->hidden; g++) {
        in[g] = affine(d->w_ih, d->b_ih, s->biases, g * s->hidden + k, s->inputs, x);
        from[g] = affine(d->w_hh, d->b_hh, s->biases, g * s->hidden + k, s->hidden, before);
    }
    if (s->cell == MICA_CELL_RNN)
        return s->relu ? fmax(0.0, in[0] + from[0]) : tanh(in[0] + from[0]);
    if (s->cell == MICA_CELL_GRU) {
        double z = sigmoid(in[1] + from[1]), n = tanh(in[2] + sigmoid(in[0] + from[0]) * from[2]);
        return (1.0 - z) * n + z * before[k];
    }
    *c = sigmoid(in[1] + from[1]) * *c + sigmoid(in[0] + from[0]) * tanh(in[2] + from[2]);
    return sigmoid(in[3] + from[3]) * tanh(*c);
}

/* The furthest that a result is from the model. */
static double distance(const sizes *s, const direction *d, const float *x, const result *got)
{
    double worst = 0.0;
    double *h = calloc((size_t)(3 * s->hidden + s->inputs), sizeof *h);
    double *before = h + s->hidden, *c = before + s->hidden, *in = c + s->hidden;
    for (mica_index n = 0; n < s->batch; n++) {
        for (mica_index k = 0; k < s->hidden; k++) {
            h[k] = d->starts ? (double)d->h_0[n * s->hidden + k] : 0.0;
            c[k] = d->starts && s->cell == MICA_CELL_LSTM ? (double)d->c_0[n * s->hidden + k] : 0.0;
        }
        for (mica_index t = 0; t < s->steps; t++) {
            mica_index at = d->reverse ? s->steps - 1 - t : t,
                       row = s->time_first ? at * s->batch + n : n * s->steps + at;
            for (mica_index i = 0; i < s->inputs; i++)
                in[i] = (double)x[row * s->inputs + i];
            memcpy(before, h, (size_t)s->hidden * sizeof *h);
            for (mica_index k = 0; k < s->hidden; k++) {
                h[k] = unit(s, d, k, in, before, &c[k]);
                if (d->wants_y)
                    worst = fmax(worst, fabs(h[k] - (double)got->y[row * s->hidden + k]));
            }
        }
        for (mica_index k = 0; k < s->hidden; k++) {
            worst = fmax(worst, fabs(h[k] - (double)got->h_n[n * s->hidden + k]));
            if (s->cell == MICA_CELL_LSTM)
                worst = fmax(worst, fabs(c[k] - (double)got->c_n[n * s->hidden + k]));
        }
    }
    free(h);
    return worst;
}

/* ---- Runs ---- */

static void prepare(mica_context *ctx, const sizes *s, direction *d)
{
    mica_index gates = gates_of(s);
    size_t count = mica_recurrent_prepared_floats(ctx, s->cell, (size_t)s->inputs, (size_t)s->hidden);
    mica_tensor w_ih = mica_2d(d->w_ih, gates, s->inputs), w_hh = mica_2d(d->w_hh, gates, s->hidden);
    mica_tensor b_ih = mica_1d(d->b_ih, gates), b_hh = mica_1d(d->b_hh, gates);
    d->prepared = aligned_alloc(MICA_ALIGN, count * sizeof(float));
    mica_tensor to = mica_1d(d->prepared, (mica_index)count);
    CHECK_OK(ctx, mica_recurrent_prepare(ctx, &to, s->cell,
                                         &(mica_recurrent_weights){&w_ih, &w_hh, s->biases ? &b_ih : NULL,
                                                                   s->biases ? &b_hh : NULL}));
}

/* `count` directions at once. y of a joined pair lies in rows of both, and is taken apart. */
static void run(mica_context *ctx, const sizes *s, float *x, const direction *d, int count, result *out)
{
    mica_recurrent_way ways[2];
    mica_tensor t[2][8];
    mica_index gates = gates_of(s), first = s->time_first ? s->steps : s->batch,
               second = s->time_first ? s->batch : s->steps, wide = s->joined ? 2 * s->hidden : s->hidden;
    float *y = malloc((size_t)(2 * first * second * wide + 1) * sizeof *y);
    for (int k = 0; k < count; k++) {
        size_t floats_of = mica_recurrent_prepared_floats(ctx, s->cell, (size_t)s->inputs, (size_t)s->hidden);
        t[k][0] = mica_2d(d[k].w_ih, gates, s->inputs);
        t[k][1] = mica_2d(d[k].w_hh, gates, s->hidden);
        t[k][2] = mica_1d(d[k].prepared, (mica_index)floats_of);
        t[k][3] = mica_2d(d[k].h_0, s->batch, s->hidden);
        t[k][4] = mica_2d(d[k].c_0, s->batch, s->hidden);
        t[k][5] = mica_3d(s->joined ? y + k * s->hidden : y + k * first * second * wide, first, second,
                          s->hidden);
        t[k][5].stride[0] = second * wide;
        t[k][5].stride[1] = wide;
        t[k][6] = mica_2d(out[k].h_n, s->batch, s->hidden);
        t[k][7] = mica_2d(out[k].c_n, s->batch, s->hidden);
        bool cells = s->cell == MICA_CELL_LSTM;
        ways[k] = (mica_recurrent_way){.w_ih = &t[k][0],
                                       .w_hh = &t[k][1],
                                       .prepared = &t[k][2],
                                       .h_0 = d[k].starts ? &t[k][3] : NULL,
                                       .c_0 = d[k].starts && cells ? &t[k][4] : NULL,
                                       .y = d[k].wants_y ? &t[k][5] : NULL,
                                       .h_n = &t[k][6],
                                       .c_n = cells ? &t[k][7] : NULL,
                                       .reverse = d[k].reverse};
    }
    mica_tensor in = mica_3d(x, first, second, s->inputs);
    mica_recurrent_prepared_opts opts = {s->cell, s->relu, s->time_first};
    mica_measure_begin(ctx);
    CHECK_OK(ctx, mica_recurrent_prepared(ctx, &in, ways, count, &opts));
    CHECK_OK(ctx, mica_workspace_reserve(ctx, mica_measure_end(ctx)));
    CHECK_OK(ctx, mica_recurrent_prepared(ctx, &in, ways, count, &opts));
    for (int k = 0; k < count; k++)
        for (mica_index row = 0; d[k].wants_y && row < first * second; row++)
            memcpy(out[k].y + row * s->hidden, (float *)t[k][5].data + row * wide,
                   (size_t)s->hidden * sizeof(float));
    free(y);
}

/* ---- Cases ---- */

static void make_result(const sizes *s, result *r)
{
    size_t state = (size_t)(s->batch * s->hidden), steps = (size_t)s->steps * state;
    r->y = calloc(steps + 1, sizeof(float));
    r->h_n = calloc(state + 1, sizeof(float));
    r->c_n = calloc(state + 1, sizeof(float));
}

static bool same(const sizes *s, const direction *d, const result *a, const result *b)
{
    size_t state = (size_t)(s->batch * s->hidden) * sizeof(float);
    return (!d->wants_y || memcmp(a->y, b->y, (size_t)s->steps * state) == 0) &&
           memcmp(a->h_n, b->h_n, state) == 0 &&
           (s->cell != MICA_CELL_LSTM || memcmp(a->c_n, b->c_n, state) == 0);
}

/* The last sequence by itself: it lies apart where the batch comes first. */
static void check_alone(mica_context *ctx, const sizes *s, float *x, const direction *d, const result *of)
{
    sizes one = *s;
    direction last = *d;
    result got;
    size_t row = (size_t)s->hidden * sizeof(float), steps = (size_t)s->steps;
    mica_index before = (s->batch - 1) * s->hidden;
    one.batch = 1;
    last.h_0 += before;
    last.c_0 += before;
    make_result(&one, &got);
    run(ctx, &one, x + (s->batch - 1) * s->steps * s->inputs, &last, 1, &got);
    CHECK(memcmp(got.h_n, of->h_n + before, row) == 0);
    CHECK(!d->wants_y || memcmp(got.y, of->y + before * s->steps, steps * row) == 0);
    free(got.y), free(got.h_n), free(got.c_n);
}

static void check(mica_context *const *ctx, int contexts, test_random *r)
{
    static const mica_index hidden[] = {1, 5, 17, 64, 100, 300};
    sizes s = {(mica_cell)test_int(r, 0, 2),
               test_int(r, 0, 20),
               test_int(r, 1, 9),
               test_int(r, 1, 40),
               hidden[test_int(r, 0, test_chance(r, 10) ? 5 : 4)],
               test_chance(r, 50),
               test_chance(r, 30),
               test_chance(r, 70),
               test_chance(r, 50)};
    mica_index gates = gates_of(&s), state = s.batch * s.hidden;
    if (s.relu || s.hidden > 200) /* relu may grow from step to step */
        s.steps = s.steps < 4 ? s.steps : 4;
    float *x = floats(r, s.steps * s.batch * s.inputs, 1.0);
    direction d[2];
    result want[2], got[2];
    for (int k = 0; k < 2; k++) {
        d[k] = (direction){floats(r, gates * s.inputs, 0.3),
                           floats(r, gates * s.hidden, 1.0 / sqrt((double)s.hidden)),
                           floats(r, gates, 0.3),
                           floats(r, gates, 0.3),
                           floats(r, state, 0.5),
                           floats(r, state, 0.5),
                           NULL,
                           test_chance(r, 50),
                           test_chance(r, 50),
                           test_chance(r, 80)};
        prepare(ctx[0], &s, &d[k]);
        make_result(&s, &want[k]);
        make_result(&s, &got[k]);
        run(ctx[0], &s, x, &d[k], 1, &want[k]);
        double off = distance(&s, &d[k], x, &want[k]);
        CHECK_MSG(off < (s.relu ? 1e-4 : 5e-6), "cell %d, %td steps of %td, %td to %td: off by %g",
                  (int)s.cell, s.steps, s.batch, s.inputs, s.hidden, off);
    }
    for (int c = 0; c < contexts; c++) {
        run(ctx[c], &s, x, d, 2, got);
        for (int k = 0; k < 2; k++)
            CHECK_MSG(same(&s, &d[k], &want[k], &got[k]),
                      "cell %d, %td steps of %td, %td to %td: direction %d of two, %d threads, differs",
                      (int)s.cell, s.steps, s.batch, s.inputs, s.hidden, k, mica_context_threads(ctx[c]));
        run(ctx[c], &s, x, &d[1], 1, &got[1]);
        CHECK(same(&s, &d[1], &want[1], &got[1]));
    }
    if (!s.time_first && s.steps > 1) /* a single product with the inputs rounds otherwise */
        check_alone(ctx[contexts - 1], &s, x, &d[0], &want[0]);
    for (int k = 0; k < 2; k++) {
        float *all[] = {d[k].w_ih, d[k].w_hh,   d[k].b_ih,   d[k].b_hh, d[k].h_0,   d[k].c_0,  d[k].prepared,
                        want[k].y, want[k].h_n, want[k].c_n, got[k].y,  got[k].h_n, got[k].c_n};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            free(all[i]);
    }
    free(x);
}

TEST(recurrent_prepared_directions)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
#if defined(MICA_NO_THREADS)
    enum { CONTEXTS = 1 };
#else
    enum { CONTEXTS = 3 };
#endif
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        mica_context *ctx[CONTEXTS] = {NULL};
        bool there = true;
        for (int k = 0; k < CONTEXTS && there; k++)
            there = mica_context_create(&ctx[k], &(mica_context_opts){.threads = k + 1, .isa = isas[i]}) ==
                    MICA_OK;
        test_random r = test_seed(40 + i);
        for (int k = 0; there && k < test_effort(60); k++)
            check(ctx, CONTEXTS, &r);
        for (int k = 0; k < CONTEXTS; k++)
            mica_context_destroy(ctx[k]);
    }
}

/* Gates that are far beyond what a sigmoid tells apart, and what is not a number. */
TEST(recurrent_prepared_extremes)
{
    static const float extremes[] = {-1e30f, -200.0f, -50.0f, -43.0f, 50.0f, 88.0f, 200.0f, 1e30f, INFINITY};
    mica_context *ctx = test_context(1);
    sizes s = {.cell = MICA_CELL_LSTM, .steps = 2, .batch = 1, .inputs = 1, .hidden = 1, .biases = true};
    for (int g = 0; g < 4; g++)
        for (size_t e = 0; e < sizeof extremes / sizeof extremes[0]; e++)
            for (int nan = 0; nan < 2; nan++) {
                float w_ih[4] = {0}, w_hh[4] = {0.5f, -0.5f, 0.25f, 1.0f}, b_ih[4] = {0.1f, 0.2f, 0.3f, 0.4f};
                float b_hh[4] = {0}, h_0 = 0.5f, c_0 = 2.0f, x[2] = {0}, y[2], h_n, c_n;
                b_ih[g] = nan ? NAN : extremes[e];
                direction d = {w_ih, w_hh, b_ih, b_hh, &h_0, &c_0, NULL, true, false, true};
                result got = {y, &h_n, &c_n};
                prepare(ctx, &s, &d);
                run(ctx, &s, x, &d, 1, &got);
                if (nan)
                    CHECK(isnan(y[0]) && isnan(y[1]) && isnan(h_n) && (g == 3 || isnan(c_n)));
                else
                    CHECK(distance(&s, &d, x, &got) < 1e-6);
                free(d.prepared);
            }
}
