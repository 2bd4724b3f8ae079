/* Bars and lines. */
#include "cli/model/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/clock.h"
#include "cli/picture/text.h"

#define REDRAW_SECONDS 0.1 /* of a bar */
#define LINE_SECONDS   10  /* between lines where there is no terminal */
#define SMOOTH         0.05
#define EPOCH_LINES    20 /* of many epochs, about so many get a line that stays */

bool terminal_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0')
            return strstr(value, "UTF-8") != NULL || strstr(value, "utf8") != NULL ||
                   strstr(value, "utf-8") != NULL;
    }
    return false;
}

void progress_begin(progress *p, const shared_settings *shared, uint64_t epochs, uint64_t epoch_steps,
                    size_t plan_bytes, uint64_t steps_before)
{
    double now = clock_seconds();
    *p = (progress){.shown = !shared->quiet,
                    .epochs = epochs,
                    .epoch_steps = epoch_steps,
                    .plan_bytes = plan_bytes,
                    .terminal = terminal_of(STDERR_FILENO),
                    .began = now,
                    .epoch_began = now,
                    .drawn_at = now,
                    .first_step = steps_before,
                    .loss = (double)NAN,
                    .metric = (double)NAN};
}

static double smooth(double before, double now)
{
    return isnan(before) ? now : before + SMOOTH * (now - before);
}

/* "1:02:03" or "2:03" */
static void write_duration(char *text, size_t size, double seconds)
{
    long s = seconds < 1e7 ? (long)(seconds + 0.5) : 9999999;
    if (s >= 3600)
        (void)snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        (void)snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
}

/* Puts a piece at `at`, with a zero behind. Returns where the next one goes. */
static char *append(char *at, const char *piece, size_t bytes)
{
    memcpy(at, piece, bytes);
    at[bytes] = '\0';
    return at + bytes;
}

/* An eighth of a cell at a time. */
static void write_bar(char *text, double share, int width)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    bool utf8 = terminal_utf8();
    int cells = (int)(share * width * 8 + 0.5), full = cells / 8, drawn = 0;
    *text = '\0';
    for (; drawn < full && drawn < width; drawn++)
        text = append(text, utf8 ? "█" : "#", utf8 ? 3 : 1);
    if (utf8 && drawn < width && cells % 8 > 0) {
        text = append(text, eighths[cells % 8], 3);
        drawn++;
    }
    for (; drawn < width; drawn++)
        text = append(text, utf8 ? " " : ".", 1);
}

/* "loss 0.1234  96.8 %  31,234/s  eta 0:08  1.2 MiB" */
static int write_numbers(char *text, size_t size, const progress *p, const mica_progress *step)
{
    double now = clock_seconds(), done = (double)(step->step - p->first_step), elapsed = now - p->began;
    double left = (double)(p->epochs * p->epoch_steps) - (double)step->step;
    char metric[32] = "", eta[32];
    if (!isnan(p->metric) && p->rmse)
        (void)snprintf(metric, sizeof metric, "  RMSE %-7.20s", figure_text(p->metric).text);
    else if (!isnan(p->metric))
        (void)snprintf(metric, sizeof metric, "  %5.1f %%", 100 * p->metric);
    write_duration(eta, sizeof eta, done > 0 ? elapsed / done * left : 0);
    double seconds = now - p->epoch_began;
    return snprintf(text, size, "loss %-7.4g%s  %s/s  eta %s  %s", p->loss, metric,
                    count_text(seconds > 0 ? floor((double)step->samples / seconds) : 0).text, eta,
                    size_text((double)p->plan_bytes).text);
}

static void draw_bar(progress *p, const mica_progress *step)
{
    enum { WIDEST = 30, LEAST = 6 };
    char numbers[200], head[64], bar[3 * WIDEST + 1];
    int used = write_numbers(numbers, sizeof numbers, p, step);
    used += snprintf(head, sizeof head, "epoch %llu/%llu", (unsigned long long)step->epoch + 1,
                     (unsigned long long)p->epochs);
    int width = p->terminal.columns - used - 6;
    width = width > WIDEST ? WIDEST : width;
    uint64_t in_epoch = p->epoch_steps > 0 ? step->step - step->epoch * p->epoch_steps : 0;
    double share = p->epoch_steps > 0 ? (double)in_epoch / (double)p->epoch_steps : 1;
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    if (width < LEAST)
        fprintf(stderr, "\r%s %3.0f %% %.*s\033[K", head, 100 * share,
                p->terminal.columns > 20 ? p->terminal.columns - 20 : 0, numbers);
    else {
        write_bar(bar, share, width);
        fprintf(stderr, "\r%s %s%s%s %s\033[K", head, p->terminal.colour ? "\033[36m" : "", bar,
                p->terminal.colour ? "\033[0m" : "", numbers);
    }
    p->drawn = true;
}

void progress_step(progress *p, const mica_progress *step, double metric)
{
    p->loss = smooth(p->loss, step->loss);
    if (!isnan(metric))
        p->metric = smooth(p->metric, metric);
    double now = clock_seconds();
    if (!p->shown || now - p->drawn_at < (p->terminal.is_terminal ? REDRAW_SECONDS : LINE_SECONDS))
        return;
    p->drawn_at = now;
    if (p->terminal.is_terminal) {
        draw_bar(p, step);
        return;
    }
    char numbers[200];
    uint64_t all = p->epochs * p->epoch_steps;
    (void)write_numbers(numbers, sizeof numbers, p, step);
    fprintf(stderr, "epoch %llu/%llu  step %llu/%llu  %s\n", (unsigned long long)step->epoch + 1,
            (unsigned long long)p->epochs, (unsigned long long)step->step, (unsigned long long)all, numbers);
}

void progress_clear(progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
}

/* The first, the last, and some between them at even distances; all of those that take long. */
static bool has_line(const progress *p, uint64_t epoch, double seconds)
{
    uint64_t every = (p->epochs + EPOCH_LINES - 1) / EPOCH_LINES;
    return epoch == 1 || epoch == p->epochs || epoch % (every > 0 ? every : 1) == 0 ||
           seconds >= LINE_SECONDS;
}

void progress_epoch(progress *p, const mica_progress *epoch, uint64_t epoch_samples, double metric)
{
    double now = clock_seconds(), seconds = now - p->epoch_began;
    bool shown = p->shown && has_line(p, epoch->epoch + 1, seconds);
    p->epoch_began = now;
    if (shown)
        p->drawn_at = now;
    if (!shown)
        return;
    progress_clear(p);
    fprintf(stderr, "epoch %*llu/%llu  loss %-7.4f", p->epochs > 9 ? 2 : 1,
            (unsigned long long)epoch->epoch + 1, (unsigned long long)p->epochs, epoch->mean_loss);
    if (epoch->validation != NULL && epoch->validation->samples > 0) {
        fprintf(stderr, "  validation %-7.4f", epoch->validation->loss);
        if (!isnan(metric) && p->rmse)
            fprintf(stderr, " RMSE %-7s", figure_text(metric).text);
        else if (!isnan(metric))
            fprintf(stderr, " %6.2f %%", 100 * metric);
    }
    fprintf(stderr, "  %.1f s", seconds);
    if (epoch_samples > 0 && seconds > 0)
        fprintf(stderr, ", %s samples/s", count_text(floor((double)epoch_samples / seconds)).text);
    fprintf(stderr, "\n");
}

/* The mean of the finite values from `from` to `to`; NaN if there are none. */
static double mean_of(const double *values, size_t from, size_t to)
{
    double sum = 0, count = 0;
    for (size_t i = from; i < to; i++) {
        if (isfinite(values[i])) {
            sum += values[i];
            count++;
        }
    }
    return count > 0 ? sum / count : (double)NAN;
}

void sparkline(char *text, const double *values, size_t count)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, plain[] = "_.,-~=*#";
    size_t cells = count < SPARK_WIDTH ? count : SPARK_WIDTH;
    double cell[SPARK_WIDTH], low = INFINITY, high = -INFINITY;
    bool utf8 = terminal_utf8();
    for (size_t i = 0; i < cells; i++) {
        cell[i] = mean_of(values, i * count / cells, (i + 1) * count / cells);
        cell[i] = cell[i] > 0    ? log(cell[i])
                  : cell[i] == 0 ? -30
                                 : (double)NAN; /* so that the end is seen too */
        low = cell[i] < low ? cell[i] : low;
        high = cell[i] > high ? cell[i] : high;
    }
    *text = '\0';
    for (size_t i = 0; i < cells; i++) {
        int level = !isnan(cell[i]) && high > low ? (int)((cell[i] - low) / (high - low) * 7.999) : 0;
        if (isnan(cell[i]))
            text = append(text, " ", 1);
        else
            text = utf8 ? append(text, bars[level], 3) : append(text, &plain[level], 1);
    }
}
