/* Answers as they are printed, and numbers in their own unit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/answer.h"
#include "cli/model/names.h"
#include "cli/model/score_parts.h"
#include "cli/model/take.h"
#include "test.h"

/* The tool's ends it where there is no memory. */
void *take(size_t count, size_t size) { return calloc(count, size); }

/* What is printed of a row. */
static void check_answer(const answer_style *style, const float *row, mica_index count, const char *wanted)
{
    char *text = NULL;
    size_t length = 0;
    float scratch[8];
    answer_style a = *style;
    a.to = open_memstream(&text, &length);
    REQUIRE(a.to != NULL && count <= 8);
    answer_row(&a, 7, row, count, scratch);
    fclose(a.to);
    CHECK_MSG(strcmp(text, wanted) == 0, "%s instead of %s", text, wanted);
    free(text);
}

TEST(answer_classes)
{
    const char *names[] = {"cat", "dog", "e\033el"};
    meaning m = {.class_names = names, .class_count = 3};
    mica_netfile_info info = {.task = MICA_TASK_CLASSES, .classes = 4};
    answer_style style = {.top = 2, .ctx = test_context(1), .info = &info, .meaning = &m};
    const float row[] = {0.125f, 0.25f, 0.5f, 0.125f};
    check_answer(&style, row, 4, "7  e\\x1bel 50.00 %  dog 25.00 %\n");
    style.top = 9; /* equal ones in their order, one without a name by its number */
    check_answer(&style, row, 4, "7  e\\x1bel 50.00 %  dog 25.00 %  cat 12.50 %  3 12.50 %\n");
    style.json = true;
    style.top = 1;
    check_answer(&style, row + 2, 2,
                 "{\"input\": 7, \"classes\": [{\"class\": \"cat\", \"probability\": 0.5}]}\n");
    info.logits = true;
    style.json = false;
    const float equal[] = {1, 1};
    check_answer(&style, equal, 2, "7  cat 50.00 %\n");
}

TEST(answer_yes_or_no)
{
    meaning m = {0};
    mica_netfile_info info = {.task = MICA_TASK_BINARY, .classes = 1};
    answer_style style = {.ctx = test_context(1), .info = &info, .meaning = &m};
    const float yes = 0.625f, no = 0.25f, zero = 0;
    check_answer(&style, &yes, 1, "7  yes  probability 0.62\n");
    check_answer(&style, &no, 1, "7  no  probability 0.75\n");
    const char *names[] = {"benign", "malignant"};
    m.class_names = names;
    m.class_count = 2;
    check_answer(&style, &no, 1, "7  benign  probability 0.75\n");
    info.logits = true;
    check_answer(&style, &zero, 1, "7  malignant  probability 0.50\n");
    style.json = true;
    check_answer(&style, &zero, 1,
                 "{\"input\": 7, \"classes\": [{\"class\": \"malignant\", \"probability\": 0.5}, "
                 "{\"class\": \"benign\", \"probability\": 0.5}]}\n");
    info.logits = false;
    const char *targets[] = {"a", "b"};
    m.units = (target_units){.count = 2, .names = targets};
    const float both[] = {0.75f, 0.25f};
    check_answer(
        &style, both, 2,
        "{\"input\": 7, \"outputs\": [{\"name\": \"a\", \"class\": \"malignant\", \"probability\": 0.75}, "
        "{\"name\": \"b\", \"class\": \"benign\", \"probability\": 0.75}]}\n");
    style.json = false;
    check_answer(&style, both, 2, "7  a malignant 0.75  b benign 0.75\n");
}

TEST(answer_numbers_in_their_unit)
{
    const float mean[] = {250000, -3}, deviation[] = {80000, 0.5f}, row[] = {0.5f, 2};
    const char *names[] = {"price", "depth"};
    meaning m = {0};
    mica_netfile_info info = {.task = MICA_TASK_REGRESSION, .classes = 2};
    answer_style style = {.ctx = test_context(1), .info = &info, .meaning = &m};
    check_answer(&style, row, 2, "7  0.5  2\n");
    m.units = (target_units){2, mean, deviation, names};
    check_answer(&style, row, 2, "7  price 290000  depth -2\n");
    style.json = true;
    check_answer(&style, row, 2,
                 "{\"input\": 7, \"values\": [290000, -2], \"names\": [\"price\", \"depth\"]}\n");
    m.units.names = NULL;
    check_answer(&style, row, 2, "{\"input\": 7, \"values\": [290000, -2]}\n");
}

/* ---- Scores in the unit ---- */

static void last_value(float *out, const float *inputs, const void *user)
{
    (void)user;
    out[0] = out[1] = inputs[1];
}

TEST(score_numbers_in_their_unit)
{
    const float mean[] = {100, 0}, deviation[] = {10, 2};
    float inputs[] = {0, 1, 0, -1}, targets[] = {1, 0.5f, -1, -0.5f}, outputs[] = {2, 0.5f, -1, 1.5f},
          baseline[2];
    target_units units = {2, mean, deviation, NULL};
    forecast_shape forecast = {.window = 2, .horizon = 2, .width = 1, .baseline = last_value};
    score_opts opts = {.units = &units};
    report_pair pairs[2];
    score s = {.pairs = pairs, .pair_samples = 1, .pair_stride = 2, .pair_targets = 2};
    scoring sc = {.s = &s, .opts = &opts, .groups = 2};
    sc.k = (kept_batch){.inputs = inputs, .numbers = targets, .elements = 2, .targets_each = 2};
    mica_tensor y = mica_2d(outputs, 2, 2);
    for (int forecasting = 0; forecasting < 2; forecasting++) {
        tally *t = calloc(1, sizeof *t + 2 * sizeof(error_sums));
        REQUIRE(t != NULL);
        opts.forecast = forecasting ? &forecast : NULL;
        sc.baseline = forecasting ? baseline : NULL;
        score_numbers(&sc, t, &y, 2, 2); /* samples 2 and 3: the pairs have room for 0 alone */
        CHECK(error_rmse(&t->each[0]) == sqrt(50) && error_mae(&t->each[0]) == 5);
        CHECK(error_rmse(&t->each[1]) == sqrt(8) && error_mae(&t->each[1]) == 2);
        CHECK(error_r2(&t->each[0]) == 0.5 && error_r2(&t->each[1]) == -7);
        CHECK(error_baseline(&t->each[0]) == (forecasting ? 0 : 10));
        CHECK(error_baseline(&t->each[1]) == 1);
        score_numbers(&sc, t, &y, 0, 2);
        CHECK(pairs[0].truth == 110 && pairs[0].said == 120 &&
              pairs[0].baseline == (forecasting ? 110 : 100));
        CHECK(pairs[1].truth == 1 && pairs[1].said == 1 && pairs[1].baseline == (forecasting ? 2 : 0));
        free(t);
    }
    opts = (score_opts){0};
    sc.baseline = NULL;
    tally *t = calloc(1, sizeof *t + 2 * sizeof(error_sums));
    REQUIRE(t != NULL);
    score_numbers(&sc, t, &y, 2, 2);
    CHECK(error_mae(&t->each[0]) == 0.5 && isnan(error_baseline(&t->each[0])));
    free(t);
}
