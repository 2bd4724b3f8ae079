/* A profile of a step. The net is watched and every node timed; in turns with that, whole steps are timed that nobody
 * watches, so that what lies between the nodes is seen, too.
 *
 * A node's roofline is the larger of two times: its arithmetic at the rate of multiply-adds, and a copy of as many
 * bytes as it must move. Its gap is what it takes beyond that. */
#include "bench/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/limit.h"
#include "bench/report.h"
#include "host/clock.h"

#define MOST_SAMPLES 128

/* ---- The roofline ---- */

/* Copies of 16 KiB, 64 KiB, ... 64 MiB: each cache has its own rate. */
enum { ROOF_SIZES = 7, ROOF_SAMPLES = 8 };

typedef struct roof {
    double flops;              /* in a second */
    double copied[ROOF_SIZES]; /* bytes in a second */
} roof;

static double roof_bytes(int size) { return (double)((size_t)16 << 10 << 2 * size); }

static mica_status roof_measure(roof *out, mica_context *ctx, const bench_peak *peak)
{
    limit *l = calloc(1, sizeof *l);
    if (l == NULL)
        return MICA_ERR_MEMORY;
    out->flops = 1e9 * peak->gflops;
    mica_status status = MICA_OK;
    for (int size = 0; size < ROOF_SIZES && status == MICA_OK; size++) {
        status = limit_begin_copy(l, ctx, roof_bytes(size));
        for (int i = 0; i < ROOF_SAMPLES && status == MICA_OK; i++)
            status = limit_take(l);
        if (status == MICA_OK)
            out->copied[size] = limit_rate(l, true);
        limit_end(l);
    }
    free(l);
    return status;
}

/* Between the two sizes around it, by its logarithm. */
static double copy_rate(const roof *r, double bytes)
{
    double at = fmin(fmax(0.5 * log2(fmax(bytes, 1.0) / roof_bytes(0)), 0.0), ROOF_SIZES - 1.001);
    int low = (int)at;
    return r->copied[low] + (at - low) * (r->copied[low + 1] - r->copied[low]);
}

static double roof_seconds(const roof *r, const mica_work *work)
{
    return fmax(work->flops / r->flops, work->bytes / copy_rate(r, work->bytes));
}

/* ---- Taking the times ---- */

typedef struct piece {
    mica_work work;
    double seconds; /* the median */
    double sample[MOST_SAMPLES];
} piece;

typedef struct profile {
    piece *pieces;
    int count, room;
    int at;     /* in this step */
    int sample; /* the number of this step */
    double begun;
    bool failed;
} profile;

static bool make_room(profile *p)
{
    if (p->at < p->room)
        return true;
    int room = 2 * p->room + 64;
    piece *more = realloc(p->pieces, (size_t)room * sizeof *more);
    if (more == NULL)
        return false;
    p->pieces = more;
    p->room = room;
    return true;
}

static void note(void *user, const mica_work *work, bool done)
{
    profile *p = user;
    if (!done) {
        p->begun = clock_seconds();
        return;
    }
    double seconds = clock_seconds() - p->begun;
    if (!make_room(p)) {
        p->failed = true;
        return;
    }
    p->pieces[p->at].work = *work;
    p->pieces[p->at].sample[p->sample] = seconds;
    p->at++;
    p->count = p->at > p->count ? p->at : p->count;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return count > 0 ? values[(count - 1) / 2] : 0.0;
}

static mica_status take_times(profile *p, double *step_seconds, const profile_subject *s,
                              const bench_timing *timing)
{
    double whole[MOST_SAMPLES], end = clock_seconds() + timing->seconds;
    BENCH_TRY(s->step(s->work)); /* cold */
    for (; p->sample < MOST_SAMPLES && (p->sample < timing->min_samples || clock_seconds() < end);
         p->sample++) {
        double start = clock_seconds();
        BENCH_TRY(s->step(s->work));
        whole[p->sample] = clock_seconds() - start;
        p->at = 0;
        mica_net_watch(s->net, note, p);
        mica_status status = s->step(s->work);
        mica_net_watch(s->net, NULL, NULL);
        BENCH_TRY(status);
    }
    *step_seconds = median(whole, p->sample);
    for (int i = 0; i < p->count; i++)
        p->pieces[i].seconds = median(p->pieces[i].sample, p->sample);
    return p->failed ? MICA_ERR_MEMORY : MICA_OK;
}

/* ---- Printing ---- */

/* One line of either table: a node, or all of a kind in a phase. */
typedef struct line {
    char what[64];
    const char *phase;
    int pieces;
    double seconds, flops, bytes, roof;
} line;

static line line_of(const piece *p, const roof *r)
{
    line l = {.phase = mica_phase_text(p->work.phase),
              .pieces = 1,
              .seconds = p->seconds,
              .flops = p->work.flops,
              .bytes = p->work.bytes,
              .roof = roof_seconds(r, &p->work)};
    const char *fused = p->work.fused;
    (void)snprintf(l.what, sizeof l.what, "%s%s%s", p->work.op, fused != NULL ? " + " : "",
                   fused != NULL ? fused : "");
    return l;
}

static void add_to(line *sum, const line *l)
{
    sum->pieces += l->pieces;
    sum->seconds += l->seconds;
    sum->flops += l->flops;
    sum->bytes += l->bytes;
    sum->roof += l->roof;
}

static void print_head(FILE *out, const char *first)
{
    fprintf(out, "%-28s %-22s %-9s %11s %6s %9s %9s %9s %8s %11s\n", first, "kind", "phase", "time", "share",
            "MFLOP", "% of peak", "MB", "% of roof", "gap");
}

static void print_line(FILE *out, const char *first, const line *l, const roof *r, double all)
{
    double peak = 100.0 * l->flops / r->flops / l->seconds;
    fprintf(out, "%-28s %-22s %-9s", first, l->what, l->phase);
    report_time(out, 1e9 * l->seconds);
    fprintf(out, " %4.1f %% %9.3f", 100.0 * l->seconds / all, 1e-6 * l->flops);
    if (l->flops > 0.0)
        fprintf(out, " %7.0f %%", peak);
    else
        fprintf(out, " %9s", "-");
    fprintf(out, " %9.3f %7.0f %%", 1e-6 * l->bytes, 100.0 * l->roof / l->seconds);
    report_time(out, 1e9 * fmax(l->seconds - l->roof, 0.0));
    fputc('\n', out);
}

static int by_gap(const void *a, const void *b)
{
    const line *x = a, *y = b;
    double dx = x->seconds - x->roof, dy = y->seconds - y->roof;
    return (dx < dy) - (dx > dy);
}

/* Sums of kind and phase into sums[], which has room for all; returns how many. */
static size_t sum_kinds(line *sums, const profile *p, const roof *r)
{
    size_t count = 0;
    for (int i = 0; i < p->count; i++) {
        line l = line_of(&p->pieces[i], r);
        size_t k = 0;
        while (k < count && (strcmp(sums[k].what, l.what) != 0 || sums[k].phase != l.phase))
            k++;
        if (k == count)
            sums[count++] = l;
        else
            add_to(&sums[k], &l);
    }
    qsort(sums, count, sizeof *sums, by_gap);
    return count;
}

static mica_status print_all(FILE *out, const profile *p, const roof *r, const profile_subject *s,
                             double step)
{
    line *sums = calloc((size_t)p->count + 1, sizeof *sums), all = {.what = "", .phase = ""};
    if (sums == NULL)
        return MICA_ERR_MEMORY;
    for (int i = 0; i < p->count; i++) {
        line l = line_of(&p->pieces[i], r);
        add_to(&all, &l);
    }
    fprintf(out, "\n%s\n", s->name);
    print_head(out, "layer");
    for (int i = 0; i < p->count; i++) {
        line l = line_of(&p->pieces[i], r);
        print_line(out, p->pieces[i].work.name, &l, r, all.seconds);
    }
    fputc('\n', out);
    print_head(out, "pieces, largest gap first");
    size_t kinds = sum_kinds(sums, p, r);
    for (size_t k = 0; k < kinds; k++) {
        char pieces[24];
        (void)snprintf(pieces, sizeof pieces, "%d", sums[k].pieces);
        print_line(out, pieces, &sums[k], r, all.seconds);
    }
    print_line(out, "all", &all, r, all.seconds);
    fprintf(out, "a step that nobody watches:");
    report_time(out, 1e9 * step);
    fprintf(out, ", of which %.1f %% goes to setting inputs and what lies between its %d pieces\n",
            100.0 * (step - all.seconds) / step, p->count);
    free(sums);
    return MICA_OK;
}

mica_status profile_print(FILE *out, const profile_subject *subject, const bench_peak *peak,
                          const bench_timing *timing)
{
    roof r;
    profile p = {.pieces = NULL};
    double step = 0.0;
    mica_status status = roof_measure(&r, mica_net_context(subject->net), peak);
    if (status == MICA_OK)
        status = take_times(&p, &step, subject, timing);
    if (status == MICA_OK)
        status = print_all(out, &p, &r, subject, step);
    free(p.pieces);
    return status;
}
