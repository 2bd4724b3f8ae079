/* Steps that threads share, and sequences that they divide: the same bits for any number of threads, and one sequence
 * alone gives what it gives beside another. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

typedef mica_status recurrent_fn(mica_context *ctx, const mica_tensor *y, const mica_tensor *x,
                                 const mica_recurrent_weights *weights, const mica_recurrent_opts *opts);

static const struct {
    recurrent_fn *run;
    mica_index gates;
} cells[] = {{mica_lstm, 4}, {mica_gru, 3}, {mica_rnn, 1}};

typedef struct sizes {
    mica_index steps, batch, inputs, hidden;
} sizes;

static float *floats(test_random *r, mica_index count, double scale)
{
    float *p = malloc((size_t)count * sizeof *p);
    for (mica_index i = 0; i < count; i++)
        p[i] = (float)(scale * test_normal(r));
    return p;
}

typedef struct data {
    float *x, *w_ih, *w_hh, *b_ih, *b_hh;
} data;

static void run(mica_context *ctx, int cell, const sizes *s, const data *d, float *y)
{
    mica_index gates = cells[cell].gates * s->hidden;
    mica_tensor x = mica_3d(d->x, s->steps, s->batch, s->inputs),
                out = mica_3d(y, s->steps, s->batch, s->hidden);
    mica_tensor w_ih = mica_2d(d->w_ih, gates, s->inputs), w_hh = mica_2d(d->w_hh, gates, s->hidden);
    mica_tensor b_ih = mica_1d(d->b_ih, gates), b_hh = mica_1d(d->b_hh, gates);
    mica_recurrent_weights w = {.w_ih = &w_ih, .w_hh = &w_hh, .b_ih = &b_ih, .b_hh = &b_hh};
    mica_measure_begin(ctx);
    CHECK_OK(ctx, cells[cell].run(ctx, &out, &x, &w, NULL));
    CHECK_OK(ctx, mica_workspace_reserve(ctx, mica_measure_end(ctx)));
    CHECK_OK(ctx, cells[cell].run(ctx, &out, &x, &w, NULL));
}

/* The first sequence alone. */
static void check_alone(mica_context *ctx, int cell, const sizes *s, const data *d, const float *y)
{
    sizes one = {s->steps, 1, s->inputs, s->hidden};
    data first = *d;
    first.x = malloc((size_t)(s->steps * s->inputs) * sizeof *first.x);
    float *alone = malloc((size_t)(s->steps * s->hidden) * sizeof *alone);
    for (mica_index t = 0; t < s->steps; t++)
        memcpy(first.x + t * s->inputs, d->x + t * s->batch * s->inputs, (size_t)s->inputs * sizeof *first.x);
    run(ctx, cell, &one, &first, alone);
    double worst = 0;
    for (mica_index t = 0; t < s->steps; t++)
        for (mica_index i = 0; i < s->hidden; i++)
            worst = fmax(worst,
                         fabs((double)alone[t * s->hidden + i] - (double)y[t * s->batch * s->hidden + i]));
    CHECK_MSG(worst < 2e-5, "cell %d, %td steps of %td, %td to %td: alone it differs by %g", cell, s->steps,
              s->batch, s->inputs, s->hidden, worst);
    free(first.x);
    free(alone);
}

static void check(mica_context *const *ctx, int contexts, test_random *r)
{
    int cell = test_int(r, 0, 2);
    sizes s = {test_int(r, 1, 12), test_chance(r, 40) ? 1 : test_int(r, 2, 20), test_int(r, 1, 60),
               test_int(r, 1, 300)};
    mica_index gates = cells[cell].gates * s.hidden;
    size_t bytes = (size_t)(s.steps * s.batch * s.hidden) * sizeof(float);
    double scale = 1.0 / sqrt((double)s.hidden);
    data d = {floats(r, s.steps * s.batch * s.inputs, 1.0), floats(r, gates * s.inputs, 0.2),
              floats(r, gates * s.hidden, scale), floats(r, gates, 0.3), floats(r, gates, 0.3)};
    float *want = malloc(bytes), *got = malloc(bytes);
    run(ctx[0], cell, &s, &d, want);
    for (int k = 1; k < contexts; k++) {
        run(ctx[k], cell, &s, &d, got);
        CHECK_MSG(memcmp(want, got, bytes) == 0, "cell %d, %td steps of %td, %td to %td: %d threads differ",
                  cell, s.steps, s.batch, s.inputs, s.hidden, mica_context_threads(ctx[k]));
    }
    check_alone(ctx[contexts - 1], cell, &s, &d, want);
    float *all[] = {d.x, d.w_ih, d.w_hh, d.b_ih, d.b_hh, want, got};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        free(all[k]);
}

TEST(recurrent_steps_of_any_number_of_threads)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    static const int threads[] = {1, 2, 5};
    enum { CONTEXTS = 3 };
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        mica_context *ctx[CONTEXTS] = {NULL};
        bool there = true;
        for (int k = 0; k < CONTEXTS && there; k++)
            there = mica_context_create(
                        &ctx[k], &(mica_context_opts){.threads = threads[k], .isa = isas[i]}) == MICA_OK;
        test_random r = test_seed(i);
        for (int k = 0; there && k < test_effort(25); k++)
            check(ctx, CONTEXTS, &r);
        for (int k = 0; k < CONTEXTS; k++)
            mica_context_destroy(ctx[k]);
    }
}
