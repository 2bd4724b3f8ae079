/* Reports of nets that say numbers: what is drawn is what was given, whatever the numbers are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/picture/axis.h"
#include "cli/picture/report.h"
#include "test.h"

/* The page of a report, to be freed. */
static char *page_of(const report *r)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    CHECK(out != NULL && report_write(out, r));
    fclose(out);
    return text;
}

static size_t count_of(const char *in, const char *part)
{
    size_t count = 0;
    for (const char *at = in; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

/* The sum of the bins of all histograms, from what they say: "<title>-1 to 1: 7</title>". */
static long bins_of(const char *page)
{
    long sum = 0;
    for (const char *at = page; (at = strstr(at, "<rect class=\"bin\"")) != NULL; at++) {
        const char *end = strstr(at, "</title>"), *colon = end;
        while (colon != NULL && *colon != ':')
            colon--;
        sum += colon != NULL ? strtol(colon + 1, NULL, 10) : 0;
    }
    return sum;
}

TEST(report_points_and_residuals)
{
    enum { COUNT = 500 };
    static report_pair pairs[COUNT][2];
    test_random random = test_seed(1);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < 2; k++) {
            pairs[i][k].truth = test_normal(&random) * (k ? 1e6 : 1e-3);
            pairs[i][k].said = i == 7 ? (double)NAN : pairs[i][k].truth * 1.1;
        }
    report_target targets[] = {{"small", &pairs[0][0], COUNT, 2}, {NULL, &pairs[0][1], COUNT, 2}};
    report r = {.title = "numbers", .targets = targets, .target_count = 2};
    char *page = page_of(&r);
    CHECK(count_of(page, "h0") == 2 * (COUNT - 1)); /* points */
    CHECK(bins_of(page) == 2 * (COUNT - 1));
    CHECK(count_of(page, "Predicted against true") == 4 && strstr(page, "<span>small</span>") != NULL);
    CHECK(strstr(page, "nan") == NULL && strstr(page, "inf ") == NULL && strstr(page, "inf\"") == NULL);
    CHECK(strlen(page) < 60000);
    free(page);
}

TEST(report_of_odd_numbers)
{
    report_pair one[] = {{5, 5, NAN}}, same[] = {{1e300, 1e300, NAN}, {1e300, 1e300, NAN}},
                none[] = {{NAN, 1, 1}}, zero[] = {{0, 0, 0}, {0, 0, 0}};
    report_target targets[] = {
        {"one", one, 1, 1}, {"same", same, 2, 1}, {"none", none, 1, 1}, {"zero", zero, 2, 1}};
    report_column columns[] = {{"a", 0}, {"b", -1}};
    report r = {.title = "odd",
                .targets = targets,
                .target_count = 4,
                .forecast = {"one", "a guess", one, 1, 1},
                .columns = columns,
                .column_count = 2};
    char *page = page_of(&r);
    CHECK(strstr(page, "nan") == NULL && strstr(page, "inf ") == NULL && strstr(page, "inf\"") == NULL);
    CHECK(strstr(page, "<span>none</span>") == NULL && strstr(page, "<span>zero</span>") != NULL);
    CHECK(strstr(page, "a guess") == NULL); /* a baseline that nobody knows */
    CHECK(strstr(page, "width:-") == NULL);
    free(page);
}

TEST(report_forecast_curves)
{
    enum { COUNT = 900 };
    static report_pair pairs[COUNT];
    for (int i = 0; i < COUNT; i++)
        pairs[i] = (report_pair){sin(i / 9.0), sin(i / 9.0 + 0.1), i == 0 ? (double)NAN : sin((i - 1) / 9.0)};
    report r = {.title = "series", .forecast = {"load", "the last value", pairs, COUNT, 1}};
    char *page = page_of(&r);
    CHECK(count_of(page, "<path class=\"line s") == 3 && strstr(page, "the last value") != NULL);
    CHECK(strlen(page) < 40000); /* no more points than one can see */
    free(page);
}

TEST(report_axis_is_round)
{
    static const double spans[][2] = {{0, 1}, {-3.2, 7.9}, {1e-7, 3e-7},  {300000, 300050},
                                      {5, 5}, {0, 0},      {1e300, 1e300}};
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        axis a = axis_over(spans[i][0], spans[i][1]);
        CHECK_MSG(a.low <= spans[i][0] * (spans[i][0] < 0 ? 1 - 1e-9 : 1 + 1e-9) &&
                      a.high >= spans[i][1] * (1 - 1e-9) && a.high > a.low && isfinite(a.high - a.low),
                  "%g to %g: %g to %g", spans[i][0], spans[i][1], a.low, a.high);
    }
    axis a = axis_over(-3.2, 7.9);
    CHECK(a.low == -5 && a.high == 10);
}
